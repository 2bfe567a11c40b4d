"""Contractions of numbers with block-wise shared scales: `scaled_dot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import DTypeError
from dovetail._core.base.typing import Array, ArrayLike, DTypeLike
from dovetail._core.basis.elementwise import add_tangents, convert_element_type, dtype_name, mul
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import batch_size, broadcast_in_dim, full, reshape, to_front
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.contraction.dot_general import (
    DimensionNumbers,
    Dims,
    DotDimensionNumbers,
    batched_numbers,
    canonical_dimension_numbers,
    contracted_aval,
    dot_general_p,
)
from dovetail._core.trace.divisions import Labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

_BFLOAT16: Final = np.dtype(ml_dtypes.bfloat16)
_SCALES: Final = np.dtype(ml_dtypes.float8_e8m0fnu)


class ScaledDot(Primitive):
    """A contraction of two operands, each multiplied by scales shared by blocks of its contracting
    dimensions."""

    name = "scaled_dot"
    accepts_zeros = True

    def abstract(
        self,
        x: Any,
        y: Any,
        x_scale: Any,
        y_scale: Any,
        *,
        dimension_numbers: DimensionNumbers,
        preferred_element_type: Any,
    ) -> Any:
        (xc, yc), _ = dimension_numbers
        for side, a in (("lhs", x), ("rhs", y), ("lhs_scale", x_scale), ("rhs_scale", y_scale)):
            if dtypes.kind_of(a.dtype) not in ("i", "u", "f"):
                raise DTypeError(
                    f"{self.name} does not accept dtype {dtype_name(a.dtype)} of {side}"
                )
        dtype = _factor_dtype(x, y, x_scale, y_scale)
        left, right = x.update(dtype=dtype), y.update(dtype=dtype)
        out = contracted_aval(self.name, left, right, dimension_numbers, preferred_element_type)
        self._check_scale("lhs", x.shape, x_scale.shape, xc)
        self._check_scale("rhs", y.shape, y_scale.shape, yc)
        return out.strengthen()

    def labels(
        self,
        avals: Sequence[Any],
        results: Sequence[Any],
        *,
        dimension_numbers: DimensionNumbers,
        **params: Any,
    ) -> Labels:
        whole = dot_general_p.labels(avals[:2], results, dimension_numbers=dimension_numbers)
        summed = whole.ambiguous
        sides = [[None if one in summed else one for one in own] for own in whole.operands]
        return Labels([*sides, *sides], whole.results, why="sums blocks along")

    def _check_scale(self, side: str, shape: Dims, scale: Dims, contracting: Dims) -> None:
        fits = len(scale) == len(shape) and all(
            n == s or (i in contracting and s and n % s == 0)
            for i, (n, s) in enumerate(zip(shape, scale, strict=True))
        )
        if not fits:
            raise TypeError(
                f"{self.name}: {side}_scale must have the shape of {side}, {shape}, but for its "
                f"contracting dimensions {contracting}, whose sizes must divide those of {side}, "
                f"got {scale}"
            )

    def reference(self, *args: Any, **params: Any) -> Any:
        x, y, x_scale, y_scale = map(np.asarray, args)
        dtype = _factor_dtype(x, y, x_scale, y_scale)

        def scaled(x: Any, scale: Any) -> Any:
            scale = scale.astype(dtype)
            for i, (n, s) in enumerate(zip(x.shape, scale.shape, strict=True)):
                scale = np.repeat(scale, n // s if s else 1, i)
            return x.astype(dtype) * scale

        return dot_general_p.reference(
            scaled(x, x_scale), scaled(y, y_scale), precision=None, **params
        )

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        x, y, x_scale, y_scale = primals
        dx, dy, dx_scale, dy_scale = tangents
        out = self.bind(*primals, **params)
        dtype = _factor_dtype(*map(aval_of, primals))
        tangent: Any = Zero.of(out)
        for_x = add_tangents(_scaled(dx, x_scale, dtype), _scaled(x, dx_scale, dtype))
        for_y = add_tangents(_scaled(dy, y_scale, dtype), _scaled(y, dy_scale, dtype))
        if type(for_x) is not Zero:
            tangent = _product(for_x, _scaled(y, y_scale, dtype), **params)
        if type(for_y) is not Zero:
            other = _product(_scaled(x, x_scale, dtype), for_y, **params)
            tangent = add_tangents(tangent, other)
        return out, tangent

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        dimension_numbers: DimensionNumbers,
        **params: Any,
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        placed, batched = list(args), []
        for side in (0, 1):
            pair = (side, side + 2)
            batched.append(any(dims[i] is not None for i in pair))
            if batched[side]:
                # An operand and its scales have the same dimensions.
                for i in pair:
                    placed[i] = to_front(args[i], dims[i], size)
        numbers, place = batched_numbers(
            dimension_numbers,
            *[len(shape_of(x)) for x in placed[:2]],
            *[0 if b else None for b in batched],
        )
        return self.bind(*placed, dimension_numbers=numbers, **params), place

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        avals = context.avals_in
        dtype = _factor_dtype(*avals)

        def product(x: Any, y: Any, x_scale: Any, y_scale: Any) -> Any:
            return _product(_scaled(x, x_scale, dtype), _scaled(y, y_scale, dtype), **params)

        return context.lower_function(product, avals)(*values)


scaled_dot_p: Final = ScaledDot()


def _factor_dtype(*operands: Any) -> Any:
    """The dtype in which operands are multiplied by their scales: bfloat16, which holds all 8-bit
    numbers, or a wider one if an operand or a scale is wider."""
    wide = {_BFLOAT16}
    for x in operands:
        if dtypes.itemsize_bits(x.dtype) > 8:
            wide.add(x.dtype if dtypes.kind_of(x.dtype) == "f" else np.dtype(np.float32))
    return dtypes.result_type(*wide)


def _scaled(x: Any, scale: Any, dtype: Any) -> Any:
    """`x` times its scales, in that dtype."""
    for factor in (x, scale):
        if type(factor) is Zero:
            return Zero(make_aval(shape_of(x), dtype))
    shape, scales = shape_of(x), shape_of(scale)
    blocks: list[int] = []
    places: list[int] = []
    for n, s in zip(shape, scales, strict=True):
        places.append(len(blocks))
        blocks.extend([s] if n == s else [s, n // s])
    spread = broadcast_in_dim(convert_element_type(scale, dtype), tuple(blocks), tuple(places))
    return mul(convert_element_type(x, dtype), reshape(spread, shape))


def _product(x: Any, y: Any, **params: Any) -> Any:
    return dot_general_p.bind(x, y, out_sharding=None, precision=None, **params)


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """A contraction of low-precision operands with scales shared by blocks of their elements.

    Each operand is multiplied by its scales. Each scale applies to a block of consecutive positions
    of the contracting dimensions: to 32, if `lhs` has 64 positions and `lhs_scale` has two. The
    products are computed in bfloat16, or in float32 or wider if an operand or a scale is wider.

    Args:
        lhs: an array of floats or integers, such as float8_e4m3fn.
        rhs: an array of floats or integers.
        lhs_scale: an array, for example of float8_e8m0fnu, with the shape of `lhs` except in the
            contracting dimensions, where its sizes divide those of `lhs`; None for ones.
        rhs_scale: the same for `rhs`.
        dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, as for
            `dot_general`; by default those of products of matrices, or of stacks of matrices.
        preferred_element_type: dtype of the result; bfloat16 if None.

    Returns:
        An array with the batch dimensions, the other dimensions of `lhs`, then those of `rhs`.

    Raises:
        TypeError: shapes or dtypes are incompatible.

    Differs:
        It multiplies by its scales in float32 where an operand or a scale has more than 8 bits
        and is no bfloat16.

        >>> x, y, scale = jnp.ones((1, 2)), jnp.ones((2, 1)), jnp.full((1, 1), 1 + 2**-12)
        >>> out = lax.scaled_dot(x, y, lhs_scale=scale, preferred_element_type="float32")
        >>> print(out[0, 0] == 2 + 2**-11)
        True

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x = np.ones((1, 4), "float8_e4m3fn")
        >>> scale = np.array([[2, 8]], "float8_e8m0fnu")
        >>> lax.scaled_dot(x, x.T, lhs_scale=scale).tolist()
        [[20.0]]
    """
    x = as_operand(lhs, "lax.scaled_dot", "lhs")
    y = as_operand(rhs, "lax.scaled_dot", "rhs")
    ranks = len(shape_of(x)), len(shape_of(y))
    if dimension_numbers is None:
        if ranks[0] != ranks[1] or ranks[0] < 2:
            raise TypeError(
                "lax.scaled_dot: without dimension_numbers, operands must be matrices or stacks of "
                f"matrices of one rank, got shapes {shape_of(x)} and {shape_of(y)}"
            )
        batch = tuple(range(ranks[0] - 2))
        numbers: DimensionNumbers = (((ranks[0] - 1,), (ranks[0] - 2,)), (batch, batch))
    else:
        numbers = canonical_dimension_numbers(dimension_numbers, "scaled_dot")
    preferred = dtypes.check_user_dtype(
        _BFLOAT16 if preferred_element_type is None else preferred_element_type, "lax.scaled_dot"
    )
    scales = [
        _ones_for(operand, contracting)
        if scale is None
        else as_operand(scale, "lax.scaled_dot", name)
        for scale, name, operand, contracting in (
            (lhs_scale, "lhs_scale", x, numbers[0][0]),
            (rhs_scale, "rhs_scale", y, numbers[0][1]),
        )
    ]
    return scaled_dot_p.bind(
        x, y, *scales, dimension_numbers=numbers, preferred_element_type=preferred
    )


def _ones_for(x: Any, contracting: Dims) -> Any:
    shape = [min(n, 1) if i in contracting else n for i, n in enumerate(shape_of(x))]
    return full(tuple(shape), 1, _SCALES)
