"""Joining arrays along a dimension, and taking them apart again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base.errors import ShapeError
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.operands import as_operand, equal_dtypes
from dovetail._core.basis.structural import batch_size, is_linear, to_front
from dovetail._core.ir.avals import ShapedArray, make_aval, shape_of
from dovetail._core.ops.shape.dimensions import (
    canonical_dimension,
    inserted,
    integer,
    integers,
    replaced,
    without,
)
from dovetail._core.ops.shape.reshaping import squeeze_dimensions
from dovetail._core.ops.shape.slicing import slice_dimension
from dovetail._core.trace.divisions import Labels, divided_alike
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.tracer import ArrayClass
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]


def _check_one_dtype(name: str, avals: Sequence[ShapedArray]) -> None:
    if any(a.dtype != avals[0].dtype for a in avals):
        raise TypeError(
            f"{name} requires operands of equal dtypes, got "
            f"{', '.join(dtype_name(a.dtype) for a in avals)}; convert with "
            f"lax.convert_element_type, or use dovetail.numpy.{name}, which promotes"
        )


class Join(Primitive):
    """Linear in all operands jointly; there may be any number of them."""

    accepts_zeros = True

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, Zero.of(out)
        return out, self.bind(*map(structural.instantiate_zeros, tangents), **params)


class Concatenate(Join):
    """The operands, one after another along a dimension."""

    name = "concatenate"
    linear_in: ClassVar[Sequence[slice]] = (slice(None),)
    generates_nan = False

    def abstract(self, *avals: Any, dimension: int) -> Any:
        if not avals:
            raise ValueError("concatenate needs at least one operand")
        _check_one_dtype("concatenate", avals)
        shapes = [a.shape for a in avals]
        first = shapes[0]
        if not 0 <= dimension < len(first) or any(len(s) != len(first) for s in shapes):
            raise ShapeError(
                f"concatenate: operands of shapes {', '.join(map(str, shapes))} cannot be joined "
                f"along dimension {dimension}: all must have one rank, and that dimension"
            )
        if any(without(s, (dimension,)) != without(first, (dimension,)) for s in shapes):
            raise ShapeError(
                f"concatenate: operands of shapes {', '.join(map(str, shapes))} may differ only in "
                f"the size of dimension {dimension}"
            )
        size = sum([s[dimension] for s in shapes])
        weak = all(a.weak_type for a in avals)
        return make_aval(replaced(first, dimension, size), avals[0].dtype, weak)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], *, dimension: int) -> Labels:
        return divided_alike(avals, results)

    def reference(self, *args: Any, dimension: int) -> Any:
        return np.concatenate(args, dimension)

    def transpose(self, ct: Any, *args: Any, dimension: int) -> Sequence[Any]:
        ends = list(accumulate(shape_of(a)[dimension] for a in args))
        return [
            slice_dimension(ct, start, end, dimension) if is_linear(a) else None
            for a, start, end in zip(args, [0, *ends], ends, strict=False)
        ]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, dimension: int
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        if len(set(dims)) == 1 and (d := dims[0]) is not None:
            return self.bind(*args, dimension=dimension + (dimension >= d)), d
        fronted = [to_front(x, d, size) for x, d in zip(args, dims, strict=True)]
        return self.bind(*fronted, dimension=dimension + 1), 0

    def lower(self, context: Builder, *values: Any, dimension: int) -> Any:
        return context.concatenate(values, context.avals_out[0], dimension)


concatenate_p: Final = Concatenate()


class Stack(Join):
    """The operands, all of one shape, stacked along a new dimension."""

    name = "stack"
    linear_in: ClassVar[Sequence[slice]] = (slice(None),)
    generates_nan = False

    def abstract(self, *avals: Any, axis: int) -> Any:
        if not avals:
            raise ValueError("stack needs at least one operand")
        _check_one_dtype("stack", avals)
        shape = avals[0].shape
        if any(a.shape != shape for a in avals):
            raise ValueError(
                f"stack requires operands of one shape, got "
                f"{', '.join(str(a.shape) for a in avals)}"
            )
        if not 0 <= axis <= len(shape):
            raise ValueError(
                f"stack: operands of shape {shape} cannot be stacked along axis {axis}"
            )
        weak = all(a.weak_type for a in avals)
        return make_aval(inserted(shape, axis, len(avals)), avals[0].dtype, weak)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], *, axis: int) -> Labels:
        own = list(range(avals[0].ndim))
        return Labels([own] * len(avals), [[*own[:axis], None, *own[axis:]]])

    def reference(self, *args: Any, axis: int) -> Any:
        return np.stack(args, axis)

    def transpose(self, ct: Any, *args: Any, axis: int) -> Sequence[Any]:
        return [
            squeeze_dimensions(slice_dimension(ct, i, i + 1, axis), (axis,))
            if is_linear(a)
            else None
            for i, a in enumerate(args)
        ]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, axis: int
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        fronted = [to_front(x, d, size) for x, d in zip(args, dims, strict=True)]
        return self.bind(*fronted, axis=axis + 1), 0

    def lower(self, context: Builder, *values: Any, axis: int) -> Any:
        (out,) = context.avals_out
        part = out.update(shape=replaced(out.shape, axis, 1))
        return context.concatenate([context.reshape(v, part) for v in values], out, axis)


stack_p: Final = Stack()


class TakeApart(Primitive):
    """Linear in its one operand; the result is a list of parts of it."""

    multiple_results = True
    accepts_zeros = True

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        outs = self.bind(*primals, **params)
        (t,) = tangents
        if type(t) is Zero:
            return outs, [Zero.of(o) for o in outs]
        return outs, self.bind(t, **params)


class Split(TakeApart):
    """Consecutive parts, of the requested sizes, along a dimension."""

    name = "split"
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)
    generates_nan = False

    def abstract(self, x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
        if not 0 <= axis < x.ndim:
            raise ValueError(f"split: an operand of shape {x.shape} has no axis {axis}")
        if any(n < 0 for n in sizes) or sum(sizes) != x.shape[axis]:
            raise ValueError(
                f"split: sizes {sizes} must not be negative and add up to the size of axis {axis} "
                f"of an operand of shape {x.shape}, not to {sum(sizes)}"
            )
        return [make_aval(replaced(x.shape, axis, n), x.dtype, x.weak_type) for n in sizes]

    def labels(
        self, avals: Sequence[Any], results: Sequence[Any], *, sizes: tuple[int, ...], axis: int
    ) -> Labels:
        own = range(avals[0].ndim)
        return Labels([own], [own] * len(results))

    def reference(self, x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
        return np.split(x, np.cumsum(sizes)[:-1], axis) if sizes else []

    def transpose(self, cts: Any, x: Any, *, sizes: tuple[int, ...], axis: int) -> Sequence[Any]:
        if not is_linear(x):
            return (None,)
        if all(type(ct) is Zero for ct in cts):
            return (Zero(x),)
        return (concatenate_p.bind(*map(structural.instantiate_zeros, cts), dimension=axis),)

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        sizes: tuple[int, ...],
        axis: int,
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        return self.bind(x, sizes=sizes, axis=axis + (axis >= d)), [d] * len(sizes)

    def lower(self, context: Builder, x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
        (aval,), outs = context.avals_in, context.avals_out
        results = []
        start = 0
        for size, out in zip(sizes, outs, strict=True):
            starts = (0,) * axis + (start,) + (0,) * (aval.ndim - axis - 1)
            limits = replaced(aval.shape, axis, start + size)
            results.append(context.slice(x, out, starts, limits))
            start += size
        return results


split_p: Final = Split()


class Unstack(TakeApart):
    """The slices at each position of a dimension, without that dimension."""

    name = "unstack"
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)
    generates_nan = False

    def abstract(self, x: Any, *, axis: int) -> Any:
        if not 0 <= axis < x.ndim:
            raise ValueError(f"unstack: an operand of shape {x.shape} has no axis {axis}")
        return [make_aval(without(x.shape, (axis,)), x.dtype, x.weak_type)] * x.shape[axis]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], *, axis: int) -> Labels:
        own = [None if d == axis else d for d in range(avals[0].ndim)]
        kept = [d for d in own if d is not None]
        return Labels([own], [kept] * len(results), why="takes apart")

    def reference(self, x: Any, *, axis: int) -> Any:
        return list(np.moveaxis(np.asarray(x), axis, 0))

    def transpose(self, cts: Any, x: Any, *, axis: int) -> Sequence[Any]:
        if not is_linear(x):
            return (None,)
        if all(type(ct) is Zero for ct in cts):
            return (Zero(x),)
        return (stack_p.bind(*map(structural.instantiate_zeros, cts), axis=axis),)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, axis: int
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        axis += axis >= d
        outs = self.bind(x, axis=axis)
        return outs, [d - (d > axis)] * len(outs)

    def lower(self, context: Builder, x: Any, *, axis: int) -> Any:
        (aval,), outs = context.avals_in, context.avals_out
        part = aval.update(shape=replaced(aval.shape, axis, 1))
        results = []
        for i, out in enumerate(outs):
            starts = (0,) * axis + (i,) + (0,) * (aval.ndim - axis - 1)
            limits = replaced(aval.shape, axis, i + 1)
            results.append(context.reshape(context.slice(x, part, starts, limits), out))
        return results


unstack_p: Final = Unstack()


# Public functions


def _operands(operands: Any, function: str) -> list[Array]:
    if isinstance(operands, ArrayClass | np.ndarray):
        array: Any = operands
        operands = unstack(array) if operands.ndim else [operands]
    if not np.iterable(operands):
        raise TypeError(f"lax.{function} takes a sequence of arrays, got {operands!r:.80}")
    values = list(operands)
    if not values:
        raise ValueError(f"lax.{function} needs at least one operand, got an empty sequence")
    if isinstance(values[0], ArrayClass):
        dtype = values[0].aval.dtype
        if all(isinstance(v, ArrayClass) and v.aval.dtype == dtype for v in values):
            return values
    return equal_dtypes(function, *values)


def concatenate(operands: Sequence[ArrayLike] | ArrayLike, dimension: int) -> Array:
    """Join arrays along an existing dimension.

    Args:
        operands: a sequence of arrays of one dtype; their shapes may differ only in that dimension.
        dimension: the dimension; not negative.

    Returns:
        An array.

    Raises:
        TypeError: dtypes, ranks or other sizes differ, or the dimension is out of bounds.
        ValueError: there are no operands.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.concatenate([np.zeros(1), np.ones(2)], 0).tolist()
        [0.0, 1.0, 1.0]
    """
    values = _operands(operands, "concatenate")
    if len(values) == 1 and isinstance(values[0], ArrayClass) and values[0].ndim:
        return values[0]
    return concatenate_p.bind(*values, dimension=integer(dimension, "concatenate", "dimension"))


def stack(operands: Sequence[ArrayLike] | ArrayLike, axis: int = 0) -> Array:
    """Join arrays of one shape along a new dimension.

    Args:
        operands: a sequence of arrays, of one dtype and shape.
        axis: the position of the new dimension in the result; negative ones count from its end.

    Returns:
        An array with one more dimension.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the shapes differ, there are no operands, or `axis` is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.stack([np.zeros(2), np.ones(2)]).tolist()
        [[0.0, 0.0], [1.0, 1.0]]
    """
    values = _operands(operands, "stack")
    return stack_p.bind(*values, axis=canonical_dimension(axis, values[0].ndim + 1, "stack"))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Split an array along a dimension.

    Args:
        operand: an array.
        sizes: sizes of the parts; they add up to the size of the dimension.
        axis: the dimension; negative ones count from the end.

    Returns:
        A list of arrays.

    Raises:
        ValueError: the sizes do not add up, one is negative, or `axis` is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> [part.tolist() for part in lax.split(np.arange(3), (1, 2))]
        [[0], [1, 2]]
    """
    x = as_operand(operand, "lax.split", "operand")
    parts: list[Any] = split_p.bind(
        x,
        sizes=integers(sizes, "split", "sizes"),
        axis=canonical_dimension(axis, len(shape_of(x)), "split"),
    )
    return parts


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Unpack an array into its slices along a dimension.

    Args:
        x: an array.
        axis: the dimension; negative ones count from the end.

    Returns:
        A tuple of arrays with one dimension fewer.

    Raises:
        ValueError: the dimension is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> [part.tolist() for part in lax.unstack(np.ones((2, 1)))]
        [[1.0], [1.0]]
    """
    x = as_operand(x, "lax.unstack")
    axis = canonical_dimension(axis, len(shape_of(x)), "unstack")
    return tuple(unstack_p.bind(x, axis=axis))
