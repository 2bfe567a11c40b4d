"""The module `jax._src.core`."""

from collections.abc import Sequence as _Sequence
from typing import Any as Value

from dovetail._core.alias.own_traces import LibraryTrace as Trace
from dovetail._core.alias.own_traces import full_lower as full_lower
from dovetail._core.alias.sequences import canonicalize_shape as canonicalize_shape
from dovetail._core.alias.sequences import safe_map as safe_map
from dovetail._core.alias.sequences import safe_zip as safe_zip
from dovetail._core.ir.avals import ShapedArray as ShapedArray
from dovetail._core.ir.avals import aval_of as get_aval
from dovetail._core.ir.avals import physical_aval as physical_aval
from dovetail._core.trace.state import evaluation_trace as _evaluation_trace
from dovetail._core.trace.state import state as _state
from dovetail.core import AbstractValue as AbstractValue
from dovetail.core import Tracer as Tracer
from dovetail.core import eval_context as eval_context
from dovetail.core import eval_jaxpr as eval_jaxpr
from dovetail.extend.core import *  # noqa: F403

DimSize = int | Value
Shape = _Sequence[DimSize]


def get_referent(x: object) -> object:
    """The value itself."""
    return x


def trace_state_clean() -> bool:
    """Whether nothing is being traced."""
    return _state.trace is _evaluation_trace
