"""The operators of arrays and tracers for bits, and for truths."""

from __future__ import annotations

from typing import Any

from dovetail.extend import dtypes
from dovetail.lax import and_p, not_p, or_p, xor_p
from dovetail.numpy import bits
from dovetail.numpy.arrays.operators import binary_operator
from dovetail.numpy.compiled import plain

and_, rand_ = binary_operator("and", bits.bitwise_and._func, and_p, "biu")
or_, ror_ = binary_operator("or", bits.bitwise_or._func, or_p, "biu")
xor_, rxor_ = binary_operator("xor", bits.bitwise_xor._func, xor_p, "biu")
lshift_, rlshift_ = binary_operator("lshift", plain(bits.left_shift), None, "")
rshift_, rrshift_ = binary_operator("rshift", plain(bits.right_shift), None, "")


def invert_(self: Any) -> Any:
    """See `dovetail.numpy.bitwise_not`."""
    return (
        not_p.bind(self)
        if dtypes.kind_of(self.dtype) in ("b", "i", "u")
        else plain(bits.bitwise_not)(self)
    )
