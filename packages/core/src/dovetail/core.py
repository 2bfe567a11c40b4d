"""Values and programs as transformations see them: tracers, their types, and jaxprs evaluated.

Jaxprs and their parts are in `dovetail.extend`; the machinery itself is private.
"""

from dovetail._core.api.inspection import ensure_compile_time_eval as ensure_compile_time_eval
from dovetail._core.api.inspection import eval_context as eval_context
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ir.avals import AbstractValue as AbstractValue
from dovetail._core.ir.avals import ShapedArray as ShapedArray
from dovetail._core.ir.dimensions import max_dim as max_dim
from dovetail._core.ir.dimensions import min_dim as min_dim
from dovetail._core.ir.walk import eval_jaxpr as eval_jaxpr
from dovetail._core.trace.state import Trace as Trace
from dovetail._core.trace.tracer import Tracer as Tracer

__all__ = [
    "AbstractValue",
    "ShapedArray",
    "Trace",
    "Tracer",
    "ensure_compile_time_eval",
    "eval_context",
    "eval_jaxpr",
    "max_dim",
    "min_dim",
]

_publish(globals())
