"""Slices at static positions, and padding, their adjoint."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import ShapeError
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.operands import as_operand, make_literal, number_of
from dovetail._core.basis.structural import Linear, is_linear, reduce_sum, to_front
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ir.dimensions import as_size
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.shape.dimensions import canonical_dimension, integer, integers
from dovetail._core.ops.shape.reshaping import squeeze_dimensions
from dovetail._core.trace.divisions import Labels, divided_alike, sliced_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]
PaddingConfig = tuple[tuple[int, int, int], ...]


class Slice(Linear):
    """In each dimension, every stride-th element from a start to before a limit."""

    name = "slice"
    generates_nan = False

    def abstract(
        self, x: Any, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
    ) -> Any:
        steps = (1,) * x.ndim if strides is None else strides
        if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
            raise ShapeError(
                f"slice: start_indices {start_indices}, limit_indices {limit_indices} and strides "
                f"{strides} must have one integer for each dimension of an operand of shape "
                f"{x.shape}"
            )
        if any(step < 1 for step in steps):
            raise TypeError(
                f"slice: strides must be positive, got {steps}; to reverse a dimension write "
                "lax.rev"
            )
        for start, limit, n in zip(start_indices, limit_indices, x.shape, strict=True):
            if not 0 <= start <= limit <= n:
                raise TypeError(
                    f"slice: of an operand of shape {x.shape} there is nothing from start_indices "
                    f"{start_indices} to limit_indices {limit_indices}: in each dimension "
                    "0 <= start <= limit <= size must hold; lax.slice_in_dim takes negative indices"
                )
        return make_aval(self.sizes(start_indices, limit_indices, steps), x.dtype, x.weak_type)

    @staticmethod
    def sizes(start: Shape, limit: Shape, steps: Shape) -> Shape:
        """The shape of a slice."""
        return tuple([(b - a + s - 1) // s for a, b, s in zip(start, limit, steps, strict=True)])

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return sliced_labels(avals, results)

    def reference(
        self, x: Any, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
    ) -> Any:
        steps = (1,) * np.ndim(x) if strides is None else strides
        parts = map(slice_of, start_indices, limit_indices, steps)
        return np.asarray(x)[tuple(parts)]

    def transpose(
        self,
        ct: Any,
        x: Any,
        *,
        start_indices: Shape,
        limit_indices: Shape,
        strides: Shape | None,
    ) -> Sequence[Any]:
        if not is_linear(x):
            return (None,)
        steps = (1,) * x.ndim if strides is None else strides
        config = []
        for start, count, step, n in zip(start_indices, shape_of(ct), steps, x.shape, strict=True):
            spread = (count - 1) * step + 1 if count else 0
            config.append((start, n - start - spread, step - 1))
        return (pad_with(ct, make_literal(0, ct.dtype), tuple(config)),)

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        start_indices: Shape,
        limit_indices: Shape,
        strides: Shape | None,
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        out = self.bind(
            x,
            start_indices=(*start_indices[:d], 0, *start_indices[d:]),
            limit_indices=(*limit_indices[:d], shape_of(x)[d], *limit_indices[d:]),
            strides=None if strides is None else (*strides[:d], 1, *strides[d:]),
        )
        return out, d

    def lower(
        self,
        context: Builder,
        x: Any,
        *,
        start_indices: Shape,
        limit_indices: Shape,
        strides: Shape | None,
    ) -> Any:
        return context.slice(x, context.avals_out[0], start_indices, limit_indices, strides)


slice_p: Final = Slice()
# The public function below shadows Python's own slice.
slice_of: Any = slice


def padded_size(size: int, low: int, high: int, interior: int) -> int:
    """The size of a padded dimension."""
    return low + high + size + interior * max(size - 1, 0)


class Pad(Primitive):
    """Puts copies of a scalar before, after and between the elements; negative amounts crop."""

    name = "pad"
    linear_in: ClassVar[Sequence[builtins.slice]] = (builtins.slice(2),)
    accepts_zeros = True
    generates_nan = False

    def abstract(self, x: Any, value: Any, *, padding_config: PaddingConfig) -> Any:
        if len(padding_config) != x.ndim:
            raise ValueError(
                f"pad: padding_config {padding_config} must have one (low, high, interior) for "
                f"each dimension of the operand of shape {x.shape}"
            )
        if value.ndim:
            raise ShapeError(f"pad: padding_value must be a scalar, got shape {value.shape}")
        if value.dtype != x.dtype:
            raise TypeError(
                f"pad: operand and padding_value must have one dtype, got {dtype_name(x.dtype)} "
                f"and {dtype_name(value.dtype)}"
            )
        if any(interior < 0 for _, _, interior in padding_config):
            raise ValueError(
                f"pad: interior padding must not be negative, got padding_config {padding_config}"
            )
        shape = tuple(
            padded_size(n, *config) for n, config in zip(x.shape, padding_config, strict=True)
        )
        if any(n < 0 for n in shape):
            raise ValueError(
                f"pad: padding_config {padding_config} removes more than there is of an operand of "
                f"shape {x.shape}: the result would have the shape {shape}"
            )
        return make_aval(shape, x.dtype, x.weak_type and value.weak_type)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def reference(self, x: Any, value: Any, *, padding_config: PaddingConfig) -> Any:
        x = np.asarray(x)
        for axis, (low, high, interior) in enumerate(padding_config):
            lines = np.moveaxis(x, axis, 0)
            n = len(lines)
            spread = np.full((n + interior * max(n - 1, 0), *lines.shape[1:]), value, x.dtype)
            spread[:: interior + 1] = lines
            edges = [(max(low, 0), max(high, 0))] + [(0, 0)] * (x.ndim - 1)
            inside = np.pad(np.ones(spread.shape, bool), edges)
            filled = np.full(inside.shape, value, x.dtype)
            filled[inside] = spread.reshape(-1)
            # Crop the padded array, which may lose more than the original had.
            cropped = filled[max(-low, 0) : len(filled) - max(-high, 0)]
            x = np.moveaxis(cropped, 0, axis)
        return x

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, padding_config: PaddingConfig
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, padding_config=padding_config)
        if all(type(t) is Zero for t in tangents):
            return out, Zero.of(out)
        t, s = map(structural.instantiate_zeros, tangents)
        return out, self.bind(t, s, padding_config=padding_config)

    def transpose(
        self, ct: Any, x: Any, value: Any, *, padding_config: PaddingConfig
    ) -> Sequence[Any]:
        for_x = for_value = None
        if is_linear(x):
            edges = tuple((-low, -high, 0) for low, high, _ in padding_config)
            trimmed = pad_with(ct, make_literal(0, ct.dtype), edges)
            for_x = trimmed
            if any(interior for _, _, interior in padding_config):
                steps = tuple(interior + 1 for _, _, interior in padding_config)
                for_x = static_slice(trimmed, (0,) * x.ndim, shape_of(trimmed), steps)
        if is_linear(value):
            # Subtracting the share of `x` from the total would lose digits and turn inf into NaN.
            own = self._padded(shape_of(x), padding_config)
            zeros = structural.full(shape_of(ct), 0, ct.dtype)
            for_value = reduce_sum(select_n_p.bind(own, zeros, ct), tuple(range(len(shape_of(ct)))))
        return for_x, for_value

    def _padded(self, shape: Shape, padding_config: PaddingConfig) -> Any:
        """Where the result shows the padding value."""
        inside = structural.full(shape, False, np.dtype(bool))
        return pad_with(inside, make_literal(True, np.dtype(bool)), padding_config)

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        padding_config: PaddingConfig,
    ) -> tuple[Any, Any]:
        (x, value), (d, e) = args, dims
        if e is None:
            assert d is not None
            wider = (*padding_config[:d], (0, 0, 0), *padding_config[d:])
            return pad_with(x, value, wider), d
        size = shape_of(value)[e]
        x = to_front(x, d, size)
        shape = shape_of(x)
        wider = ((0, 0, 0), *padding_config)
        inner = pad_with(x, make_literal(0, aval_of(x).dtype), wider)
        fill = structural.broadcast_in_dim(value, shape_of(inner), (0,))
        return select_n_p.bind(self._padded(shape, wider), inner, fill), 0

    def lower(self, context: Builder, x: Any, value: Any, *, padding_config: PaddingConfig) -> Any:
        aval, out = context.avals_in[0], context.avals_out[0]
        if context.partitioning is not None:
            # XLA ends the process where a hole would be cut.
            cut = [-(low // (hole + 1)) if low < 0 < hole else 0 for low, _, hole in padding_config]
            if any(map(operator.ge, cut, aval.shape)):
                return context.broadcast_in_dim(value, out, ())
            if any(cut):
                part = aval.update(shape=tuple(map(operator.sub, aval.shape, cut)))
                x = context.slice(x, part, cut, aval.shape)
                padding_config = tuple(
                    [
                        (a + n * (c + 1), b, c)
                        for n, (a, b, c) in zip(cut, padding_config, strict=True)
                    ]
                )
        low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())
        return context.pad(x, value, out, low, high, interior)


pad_p: Final = Pad()


# Functions for rules; the arguments are already canonical.


def static_slice(x: Any, start: Shape, limit: Shape, strides: Shape | None = None) -> Any:
    """Elements from `start` to before `limit`; emits nothing if these are all."""
    if limit == shape_of(x) and not any(start) and (strides is None or set(strides) <= {1}):
        return x
    return slice_p.bind(x, start_indices=start, limit_indices=limit, strides=strides)


def slice_dimension(x: Any, start: int, limit: int, dimension: int, stride: int = 1) -> Any:
    """Elements from `start` to before `limit` of one dimension."""
    shape = shape_of(x)
    starts, limits = [0] * len(shape), list(shape)
    starts[dimension], limits[dimension] = start, limit
    strides = None
    if stride != 1:
        strides = (1,) * dimension + (stride,) + (1,) * (len(shape) - dimension - 1)
    return static_slice(x, tuple(starts), tuple(limits), strides)


def pad_with(x: Any, value: Any, padding_config: PaddingConfig) -> Any:
    """`x` with copies of a scalar around its elements; emits nothing if there are none."""
    if not any(n for config in padding_config for n in config):
        return x
    return pad_p.bind(x, value, padding_config=padding_config)


# Public functions


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """Insert copies of a scalar before, after and between the elements of an array.

    Args:
        operand: an array.
        padding_value: a scalar of the same dtype.
        padding_config: for each dimension three integers: how many elements to insert before the
            first, after the last, and between neighbours. Negative values of the first two crop.

    Returns:
        An array; a dimension of size n becomes ``low + n + interior * max(n - 1, 0) + high``.

    Raises:
        TypeError: the dtypes differ, or an argument is of the wrong kind.
        ValueError: `padding_config` does not have one entry for each dimension, has a negative
            number between neighbours, or crops more than there is.
        OverflowError: `padding_value` is an integer that the dtype cannot hold.

    Differs:
        A number of Python takes the dtype of the array; so in `clamp`.

        >>> print(lax.pad(jnp.ones(1), 0, [(1, 0, 0)]), lax.clamp(0, jnp.array([1.5]), 1))
        [0. 1.] [1.]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.pad(np.array([1, 2], np.int32), 0, [(1, 0, 2)]).tolist()
        [0, 1, 0, 0, 2]
    """
    x = as_operand(operand, "lax.pad", "operand")
    value: Any = as_operand(padding_value, "lax.pad", "padding_value")
    dtype = aval_of(x).dtype
    if type(value) is Literal and value.aval.weak_type and value.dtype != dtype:
        # A Python scalar takes the dtype of the array if its kind permits that without loss.
        value = _weak_scalar(value, dtype)
    if not np.iterable(padding_config):
        raise TypeError(
            "lax.pad: padding_config must be a sequence of (low, high, interior), one for each "
            f"dimension, got {padding_config!r:.80}"
        )
    config = tuple([integers(c, "pad", "each entry of padding_config") for c in padding_config])
    if any(len(c) != 3 for c in config):
        raise ShapeError(
            "lax.pad: each entry of padding_config must be three integers (low, high, interior), "
            f"got {padding_config}"
        )
    return pad_p.bind(x, value, padding_config=config)


def _weak_scalar(value: Literal, dtype: Any) -> Literal:
    order = "biufc"
    if dtypes.kind_of(dtype) and order.index(dtypes.kind_of(value.dtype)) <= order.index(
        dtypes.kind_of(dtype)
    ):
        return number_of(value, dtype, "lax.pad")
    return value


def slice(  # the name it has in lax
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """A part of an array, at static positions.

    Args:
        operand: an array.
        start_indices: the first position, for each dimension.
        limit_indices: one past the last position, for each dimension.
        strides: the step between selected elements, for each dimension; 1 by default.

    Returns:
        An array.

    Raises:
        TypeError: positions are out of bounds (unlike in NumPy, they are neither clipped nor may
            they be negative), or an argument is of the wrong kind.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.slice(np.arange(6), (1,), (6,), (2,)).tolist()
        [1, 3, 5]
    """
    return slice_p.bind(
        as_operand(operand, "lax.slice", "operand"),
        start_indices=integers(start_indices, "slice", "start_indices"),
        limit_indices=integers(limit_indices, "slice", "limit_indices"),
        strides=None if strides is None else integers(strides, "slice", "strides"),
    )


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """A part of an array along one dimension, at static positions.

    Args:
        operand: an array.
        start_index: the first position; negative ones count from the end, None means the first.
        limit_index: one past the last position; negative ones count from the end, None means the
            end.
        stride: the step between selected elements.
        axis: the dimension; negative ones count from the end.

    Returns:
        An array of the same rank.

    Raises:
        TypeError: positions are out of bounds (unlike in NumPy, they are not clipped).
        ValueError: the dimension is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.slice_in_dim(np.arange(5), -2, None).tolist()
        [3, 4]
    """
    x = as_operand(operand, "lax.slice_in_dim", "operand")
    shape = shape_of(x)
    axis = canonical_dimension(axis, len(shape), "slice_in_dim")
    size = shape[axis]
    start = 0 if start_index is None else _position(start_index, size, "start_index")
    limit = size if limit_index is None else _position(limit_index, size, "limit_index")
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], strides[axis] = (
        start,
        limit,
        integer(stride, "slice_in_dim", "stride"),
    )
    return slice_p.bind(
        x,
        start_indices=tuple(starts),
        limit_indices=tuple(limits),
        strides=tuple(strides),
    )


def _position(index: Any, size: int, argument: str) -> int:
    try:
        i = as_size(index)
    except TypeError:
        if isinstance(index, Tracer):
            raise
        raise TypeError(
            f"lax.slice_in_dim: {argument} must be an integer or None, got {index!r}"
        ) from None
    return i + size if i < 0 else i


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice of an array at one static position of a dimension.

    Args:
        operand: an array.
        index: the position; negative ones count from the end.
        axis: the dimension; negative ones count from the end.
        keepdims: whether to keep the dimension, with size 1.

    Returns:
        An array.

    Raises:
        IndexError: `index` is out of bounds.
        ValueError: the dimension is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.index_in_dim(np.arange(6).reshape(2, 3), 1, keepdims=False).tolist()
        [3, 4, 5]
    """
    x = as_operand(operand, "lax.index_in_dim", "operand")
    shape = shape_of(x)
    axis = canonical_dimension(axis, len(shape), "index_in_dim")
    position = integer(index, "index_in_dim", "index")
    if not -shape[axis] <= position < shape[axis]:
        raise IndexError(
            f"lax.index_in_dim: index {position} is out of bounds for axis {axis} of size "
            f"{shape[axis]}"
        )
    position %= shape[axis]
    part = slice_in_dim(x, position, position + 1, 1, axis)
    return part if keepdims else squeeze_dimensions(part, (axis,))
