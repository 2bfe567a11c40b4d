"""Products of integers, which XLA and cuDNN compute for some shapes and dtypes only."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, primitives

TABLE: Final = LoweringTable()

#: Sums over a multiple of so many products of 8-bit integers are right.
_GRANULE: Final = 16
_BITS_OF_A_PIECE: Final = 16


def _bound(name: str, **params: Any) -> Callable[..., Any]:
    return lambda *operands: primitives()[name].bind(*operands, **params)


@TABLE.rule("dot_general")
def dot_general(context: Any, x: Any, y: Any, **params: Any) -> Any:
    """Products of 8-bit integers, with zeros up to a size for which XLA's kernels are right.

    With jaxlib 0.11.2 on an H200, matrices of int8 that are summed over 2, 3, 5 or 33 products in
    int32 were twice what they should be. The barrier keeps XLA from taking the zeros out again.
    """
    a, b = context.avals_in
    dimension_numbers = params["dimension_numbers"]
    (xc, yc), _ = dimension_numbers
    if not (a.dtype.itemsize == b.dtype.itemsize == 1 and {a.dtype.kind, b.dtype.kind} <= {*"iu"}):
        return NotImplemented
    missing = -a.shape[xc[-1]] % _GRANULE if xc else 0
    if prod(a.shape[d] for d in xc) % _GRANULE == 0 or not (a.size and b.size) or not missing:
        return NotImplemented

    def padded(value: Any, dimension: int) -> Any:
        edges = [(0, missing if d == dimension else 0, 0) for d in range(value.ndim)]
        zero = value.dtype.type(0)
        return _bound("pad", padding_config=tuple(edges))(value, zero)

    def function(x: Any, y: Any) -> Any:
        operands = _bound("optimization_barrier")(padded(x, xc[-1]), padded(y, yc[-1]))
        return _bound("dot_general", **params)(*operands)

    (product,) = context.lower_function(function, context.avals_in)(x, y)
    return product


@TABLE.rule("conv_general_dilated")
def conv_general_dilated(context: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    """Convolutions of integers in pieces of 16 bits, each by convolutions of float64.

    cuDNN has none of integers but of int8. The sums of products of two pieces are exact in float64
    up to 2**21 of them; of wider numbers the upper bits are dropped, as in all sums of integers.
    """
    (a, b), (out,) = context.avals_in, context.avals_out
    if any(aval.dtype.kind not in "iu" for aval in (a, b, out)) or not out.size:
        return NotImplemented
    wide = np.dtype(np.int64)
    pieces = max(1, out.dtype.itemsize * 8 // _BITS_OF_A_PIECE)
    options = {**params, "preferred_element_type": np.dtype(np.float64)}

    def converted(value: Any, dtype: Any) -> Any:
        return _bound("convert_element_type", new_dtype=dtype, weak_type=False, sharding=None)(
            value
        )

    def piece(value: Any, number: int, count: int) -> Any:
        shift = np.int64(number * _BITS_OF_A_PIECE)
        shifted = _bound("shift_right_arithmetic")(value, np.full(value.shape, shift))
        if number < count - 1:  # the last has the sign
            mask = np.int64((1 << _BITS_OF_A_PIECE) - 1)
            shifted = _bound("and")(shifted, np.full(value.shape, mask))
        return converted(shifted, np.dtype(np.float64))

    def function(lhs: Any, rhs: Any) -> Any:
        x, y = converted(lhs, wide), converted(rhs, wide)
        counts = [max(1, aval.dtype.itemsize * 8 // _BITS_OF_A_PIECE) for aval in (a, b)]
        total = np.zeros(out.shape, wide)
        for i in range(counts[0]):
            for j in range(counts[1]):
                if i + j < pieces:
                    product = _bound("conv_general_dilated", **options)(
                        piece(x, i, counts[0]), piece(y, j, counts[1])
                    )
                    shift = np.full(out.shape, np.int64((i + j) * _BITS_OF_A_PIECE))
                    total = _bound("add")(
                        total, _bound("shift_left")(converted(product, wide), shift)
                    )
        return converted(total, out.dtype)

    (result,) = context.lower_function(function, context.avals_in)(lhs, rhs)
    return result
