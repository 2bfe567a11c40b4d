"""Derivative rules of one's own, beyond what the package itself offers."""

from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ops.custom.custom_gradient import closure_convert as closure_convert
from dovetail._core.ops.custom.custom_gradient import custom_gradient as custom_gradient
from dovetail._core.ops.custom.custom_jvp import custom_jvp as custom_jvp
from dovetail._core.ops.custom.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from dovetail._core.ops.custom.custom_vjp import custom_vjp as custom_vjp
from dovetail._core.ops.custom.custom_vjp import custom_vjp_call_p as custom_vjp_call_p
from dovetail._core.ops.custom.linear_call import linear_call as linear_call
from dovetail._core.ops.custom.remat_opt import remat_opt_p as remat_opt_p
from dovetail._core.ops.custom.symbolic import CustomVJPPrimal as CustomVJPPrimal
from dovetail._core.ops.custom.symbolic import SymbolicZero as SymbolicZero
from dovetail._core.ops.custom.symbolic import (
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
)
from dovetail._core.ops.custom.symbolic import zero_from_primal as zero_from_primal

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "remat_opt_p",
    "zero_from_primal",
]

_publish(globals())
