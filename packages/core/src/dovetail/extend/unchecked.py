"""Functions of `dovetail.lax` for operands that have been checked.

They bind a primitive without checking for mistakes, or return the operand if the result would equal
it. Shapes are tuples of `int`, dimensions count from zero, dtypes are NumPy's.
`AnyPrimitive` is the class of all primitives, for annotations; `add_any_p` adds cotangents;
`reduce_max_of_numbers_p` finds the largest element where it may leave NaN out.
"""

from dovetail._core.basis.elementwise import add_any_p as add_any_p
from dovetail._core.basis.elementwise import broadcast_scalar as broadcast_scalar
from dovetail._core.basis.elementwise import convert_element_type as convert_element_type
from dovetail._core.basis.elementwise import mul as mul
from dovetail._core.basis.elementwise import neg as neg
from dovetail._core.basis.operands import make_literal as make_literal
from dovetail._core.basis.structural import broadcast_in_dim as broadcast_in_dim
from dovetail._core.basis.structural import full as full
from dovetail._core.basis.structural import instantiate_zeros as instantiate_zeros
from dovetail._core.basis.structural import move_dimension as move_dimension
from dovetail._core.basis.structural import reshape as reshape
from dovetail._core.ops.reduction.reductions import (
    reduce_max_of_numbers_p as reduce_max_of_numbers_p,
)
from dovetail._core.ops.shape.creation import iota_like as iota_like
from dovetail._core.ops.shape.creation import position_dtype as position_dtype
from dovetail._core.ops.shape.reshaping import add_dimensions as add_dimensions
from dovetail._core.ops.shape.reshaping import reverse as reverse
from dovetail._core.ops.shape.reshaping import squeeze_dimensions as squeeze_dimensions
from dovetail._core.ops.shape.slicing import slice_dimension as slice_dimension
from dovetail._core.ops.shape.slicing import static_slice as static_slice
from dovetail._core.trace.primitive import Primitive as AnyPrimitive

__all__ = [
    "AnyPrimitive",
    "add_any_p",
    "add_dimensions",
    "broadcast_in_dim",
    "broadcast_scalar",
    "convert_element_type",
    "full",
    "instantiate_zeros",
    "iota_like",
    "make_literal",
    "move_dimension",
    "mul",
    "neg",
    "position_dtype",
    "reduce_max_of_numbers_p",
    "reshape",
    "reverse",
    "slice_dimension",
    "squeeze_dimensions",
    "static_slice",
]
