"""Jaxprs and primitives, for those who walk, build and interpret programs: JAX's names.

`dovetail.extend` has what backends and APIs are written with.
"""

from dovetail._core.api.jaxprs import Primitive as Primitive
from dovetail._core.api.jaxprs import Token as Token
from dovetail._core.api.jaxprs import TraceTag as TraceTag
from dovetail._core.api.jaxprs import array_types as array_types
from dovetail._core.api.jaxprs import concrete_or_error as concrete_or_error
from dovetail._core.api.jaxprs import find_top_trace as find_top_trace
from dovetail._core.api.jaxprs import gensym as gensym
from dovetail._core.api.jaxprs import get_opaque_trace_state as get_opaque_trace_state
from dovetail._core.api.jaxprs import jaxprs_in_params as jaxprs_in_params
from dovetail._core.api.jaxprs import mapped_aval as mapped_aval
from dovetail._core.api.jaxprs import new_jaxpr_eqn as new_jaxpr_eqn
from dovetail._core.api.jaxprs import nonempty_axis_env as nonempty_axis_env_DO_NOT_USE
from dovetail._core.api.jaxprs import primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype
from dovetail._core.api.jaxprs import set_current_trace as set_current_trace
from dovetail._core.api.jaxprs import subjaxprs as subjaxprs
from dovetail._core.api.jaxprs import take_current_trace as take_current_trace
from dovetail._core.api.jaxprs import unmapped_aval as unmapped_aval
from dovetail._core.api.jaxprs import (
    unsafe_am_i_under_a_jit as unsafe_am_i_under_a_jit_DO_NOT_USE,
)
from dovetail._core.api.jaxprs import (
    unsafe_am_i_under_a_vmap as unsafe_am_i_under_a_vmap_DO_NOT_USE,
)
from dovetail._core.api.jaxprs import unsafe_get_axis_names as unsafe_get_axis_names_DO_NOT_USE
from dovetail._core.api.jaxprs import valid_jaxtype as valid_jaxtype
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ir.avals import AbstractToken as AbstractToken
from dovetail._core.ir.check import check_jaxpr as check_jaxpr
from dovetail._core.ir.effects import HostEffect as Effect
from dovetail._core.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from dovetail._core.ir.jaxpr import DebugInfo as DebugInfo
from dovetail._core.ir.jaxpr import DropVar as DropVar
from dovetail._core.ir.jaxpr import Effects as Effects
from dovetail._core.ir.jaxpr import Jaxpr as Jaxpr
from dovetail._core.ir.jaxpr import JaxprEqn as JaxprEqn
from dovetail._core.ir.jaxpr import Literal as Literal
from dovetail._core.ir.jaxpr import Var as Var
from dovetail._core.ir.jaxpr import no_effects as no_effects
from dovetail._core.ir.walk import jaxpr_as_fun as jaxpr_as_fun
from dovetail.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from dovetail.errors import JaxprTypeError as JaxprTypeError
from dovetail.extend.core import primitives as primitives

__all__ = [
    "AbstractToken",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Literal",
    "Primitive",
    "Token",
    "TraceTag",
    "Var",
    "array_types",
    "check_jaxpr",
    "concrete_or_error",
    "find_top_trace",
    "gensym",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "primitives",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

_publish(globals())
