"""Sorting, and the largest elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import DTypeError
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import batch_size, to_front
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ops.indexing.gather import (
    GatherDimensionNumbers,
    GatherScatterMode,
    gather_slices,
)
from dovetail._core.ops.shape.creation import iota_like, position_dtype
from dovetail._core.ops.shape.dimensions import canonical_dimension, integer, replaced
from dovetail._core.trace.divisions import Labels, labels_along
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

INT32: Final = np.dtype(np.int32)


def take_along(x: Any, indices: Any, dimension: int) -> Any:
    """``out[..., i, ...] = x[..., indices[..., i, ...], ...]``, for distinct indices.

    They must be in bounds.
    """
    shape = shape_of(x)
    if not aval_of(x).size:
        return structural.full(shape_of(indices), 0, aval_of(x).dtype)
    others = tuple([i for i in range(len(shape)) if i != dimension])
    vectors = structural.reshape(indices, (*shape_of(indices), 1))
    numbers = GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(dimension,),
        start_index_map=(dimension,),
        operand_batching_dims=others,
        start_indices_batching_dims=others,
    )
    return gather_slices(
        x,
        vectors,
        numbers,
        (1,) * len(shape),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        unique_indices=True,
    )


class Sort(Primitive):
    """Sorts several arrays together, in lexicographic order of the first `num_keys` of them.

    -0.0 and 0.0 are equal, and so are all NaNs, which come last. Complex numbers are ordered by
    their real parts, then by their imaginary parts. Those with a NaN come last as well; among them,
    numbers whose real part is not NaN come first.
    """

    name = "sort"
    multiple_results = True
    accepts_zeros = True
    generates_nan = False

    def abstract(self, *avals: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
        if not avals:
            raise TypeError("sort needs at least one operand")
        shape = avals[0].shape
        if any(a.shape != shape for a in avals):
            raise TypeError(
                f"sort requires operands of one shape, got {', '.join(str(a.shape) for a in avals)}"
            )
        if not 1 <= num_keys <= len(avals):
            raise ValueError(
                f"sort: num_keys must be from 1 to the number of operands, {len(avals)}, got "
                f"{num_keys}"
            )
        if not 0 <= dimension < len(shape):
            raise ValueError(f"sort: operands of shape {shape} have no dimension {dimension}")
        for aval in avals[:num_keys]:
            if not dtypes.kind_of(aval.dtype):
                raise TypeError(f"sort cannot order values of dtype {dtype_name(aval.dtype)}")
        return list(avals)

    def labels(
        self,
        avals: Sequence[Any],
        results: Sequence[Any],
        *,
        dimension: int,
        is_stable: bool,
        num_keys: int,
    ) -> Labels:
        return labels_along(avals, results, dimension, "sorts along")

    def reference(self, *args: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
        arrays = [np.asarray(a) for a in args]
        keys = [
            a.astype(np.float64) if dtypes.kind_of(a.dtype) == "f" else a for a in arrays[:num_keys]
        ]
        # NumPy expects the most significant key last.
        order = np.lexsort(keys[::-1], axis=dimension)
        return [np.take_along_axis(a, order, dimension) for a in arrays]

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        dimension: int,
        is_stable: bool,
        num_keys: int,
    ) -> tuple[Any, Any]:
        params = {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}
        if all(type(t) is Zero for t in tangents):
            outs = self.bind(*primals, **params)
            return outs, [Zero.of(o) for o in outs]
        shape = shape_of(primals[0])
        positions = iota_like(position_dtype(shape[dimension]), shape, dimension)
        *outs, order = self.bind(*primals, positions, **params)
        return outs, [
            Zero.of(o) if type(t) is Zero else take_along(t, order, dimension)
            for t, o in zip(tangents, outs, strict=True)
        ]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, dimension: int, **params: Any
    ) -> tuple[Any, Any]:
        d = dims[0]
        if d is None or any(e != d for e in dims):
            size = batch_size(args, dims)
            args, d = [to_front(x, e, size) for x, e in zip(args, dims, strict=True)], 0
        outs = self.bind(*args, dimension=dimension + (dimension >= d), **params)
        return outs, [d] * len(outs)

    def lower(
        self, context: Builder, *values: Any, dimension: int, is_stable: bool, num_keys: int
    ) -> Any:
        avals = context.avals_in
        if any(context.physical_dimensions(a) for a in avals):
            # Elements that consist of several words, random keys, follow the order of the others.
            def function(*args: Any) -> tuple[Any, ...]:
                shape = shape_of(args[0])
                positions = iota_like(position_dtype(shape[dimension]), shape, dimension)
                *_, order = self.bind(
                    *args[:num_keys],
                    positions,
                    dimension=dimension,
                    is_stable=is_stable,
                    num_keys=num_keys,
                )
                return tuple([take_along(x, order, dimension) for x in args])

            return context.lower_function(function, avals)(*values)
        # Compilers do not lay out arrays narrowly beside others, and XLA writes beyond them.
        work = [a.update(dtype=dtypes.whole_bytes(a.dtype)) for a in avals]
        scalars = [make_aval((), a.dtype) for a in work[:num_keys]]

        def comparator(*pairs: Any) -> Any:
            return sorts_before(context, list(zip(pairs[::2], pairs[1::2], strict=True)), scalars)

        wide = [context.convert(*entry) for entry in zip(values, avals, work, strict=True)]
        outs = context.sort(wide, work, dimension, is_stable, comparator)
        return [context.convert(*entry) for entry in zip(outs, work, avals, strict=True)]


sort_p: Final = Sort()


def sorts_before(
    context: Builder, pairs: Sequence[tuple[Any, Any]], scalars: Sequence[ShapedArray]
) -> Any:
    """Whether the left element of each pair precedes the right one, in lexicographic order."""
    truth = make_aval((), np.dtype(bool))
    result = None
    keys = [
        part
        for (x, y), scalar in zip(pairs, scalars, strict=False)
        for part in _parts(context, x, y, scalar)
    ]
    for x, y, scalar in reversed(keys):
        less = _less(context, x, y, scalar)
        if result is not None:
            more = _less(context, y, x, scalar)
            tied = context.and_(context.not_(more, truth), result, truth)
            less = context.or_(less, tied, truth)
        result = less
    return result


def _parts(context: Builder, x: Any, y: Any, scalar: ShapedArray) -> list[tuple[Any, Any, Any]]:
    if dtypes.kind_of(scalar.dtype) != "c":
        return [(x, y, scalar)]
    part = make_aval((), np.dtype(f"float{scalar.dtype.itemsize * 4}"))
    truth = make_aval((), np.dtype(bool))
    parts = [
        (context.real(x, part), context.real(y, part)),
        (context.imag(x, part), context.imag(y, part)),
    ]
    # NaN in a part decides first: numbers without one precede all numbers with one.
    missing = [[context.compare(v, v, "NE", part) for v in pair] for pair in parts]
    return [*[(a, b, truth) for a, b in missing], *[(a, b, part) for a, b in parts]]


def _less(context: Builder, x: Any, y: Any, scalar: ShapedArray) -> Any:
    less = context.compare(x, y, "LT", scalar)
    if dtypes.kind_of(scalar.dtype) != "f":
        return less
    truth = make_aval((), np.dtype(bool))
    number = context.compare(x, x, "EQ", scalar)
    last = context.and_(number, context.compare(y, y, "NE", scalar), truth)
    return context.or_(less, last, truth)


class TopK(Primitive):
    """The `k` largest elements along an axis, largest first, and their positions.

    Among equal elements, the first win. NaNs with a positive sign are above all numbers, those with
    a negative sign below, and -0.0 is below 0.0.
    """

    name = "top_k"
    multiple_results = True
    accepts_zeros = True
    generates_nan = False

    def abstract(self, x: Any, *, k: int, axis: int) -> Any:
        if dtypes.kind_of(x.dtype) in ("", "c"):
            raise DTypeError(
                f"top_k does not accept dtype {dtype_name(x.dtype)}; it takes bool, integers and "
                "floating point"
            )
        if not 0 <= axis < x.ndim:
            raise ValueError(f"top_k: an operand of shape {x.shape} has no axis {axis}")
        if not 0 <= k <= x.shape[axis]:
            raise ValueError(
                f"top_k: k must be from 0 to the size of axis {axis} of an operand of shape "
                f"{x.shape}, got {k}"
            )
        dtypes.check_holds(x.shape[axis] - 1, INT32, "top_k", "take the last ones of lax.sort")
        shape = replaced(x.shape, axis, k)
        return [make_aval(shape, x.dtype, x.weak_type), make_aval(shape, INT32)]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], *, k: int, axis: int) -> Labels:
        return labels_along(avals, results, axis, "looks for the largest along")

    def reference(self, x: Any, *, k: int, axis: int) -> Any:
        x = np.moveaxis(np.asarray(x), axis, -1)
        ranks = x.astype(np.int8) if x.dtype == bool else x
        if dtypes.kind_of(x.dtype) == "f":
            bits = np.ascontiguousarray(x).view(f"int{x.dtype.itemsize * 8}")
            ranks = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
        # The complement reverses the order of integers without overflow.
        order = np.argsort(~ranks, axis=-1, kind="stable")[..., :k]
        values = np.take_along_axis(x, order, -1)
        return [np.moveaxis(values, -1, axis), np.moveaxis(order, -1, axis).astype(np.int32)]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, k: int, axis: int
    ) -> tuple[Any, Any]:
        values, order = self.bind(*primals, k=k, axis=axis)
        (t,) = tangents
        tangent = Zero.of(values) if type(t) is Zero else take_along(t, order, axis)
        return [values, order], [tangent, Zero.of(order)]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, k: int, axis: int
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        return self.bind(x, k=k, axis=axis + (axis >= d)), [d, d]

    def lower(self, context: Builder, x: Any, *, k: int, axis: int) -> Any:
        (aval,), outs = context.avals_in, context.avals_out
        # Compilers sort the elements beside 32-bit positions, and do not lay out both narrowly.
        whole = np.dtype(np.uint8) if aval.dtype == np.bool_ else dtypes.whole_bytes(aval.dtype)
        work = aval.update(dtype=whole)
        x = context.convert(x, aval, work)
        last = aval.ndim - 1
        if axis == last:
            values, order = self._find(context, x, [outs[0].update(dtype=work.dtype), outs[1]], k)
        else:
            there = (*[i for i in range(aval.ndim) if i != axis], axis)
            back = tuple([there.index(i) for i in range(aval.ndim)])
            turned = work.update(shape=tuple([aval.shape[i] for i in there]))
            small = replaced(turned.shape, last, k)
            results = self._find(
                context,
                context.transpose(x, turned, there),
                [work.update(shape=small), outs[1].update(shape=small)],
                k,
            )
            values, order = (
                context.transpose(v, o, back)
                for v, o in zip(results, [outs[0].update(dtype=work.dtype), outs[1]], strict=True)
            )
        return [context.convert(values, outs[0].update(dtype=work.dtype), outs[0]), order]

    @staticmethod
    def _find(context: Builder, x: Any, outs: Sequence[ShapedArray], k: int) -> list[Any]:
        return context.ops("chlo.top_k", [x], outs, {"k": k})


top_k_p: Final = TopK()


# Public functions


@overload
def sort(
    operand: ArrayLike, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Array: ...
@overload
def sort(
    operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> tuple[Array, ...]: ...
def sort(
    operand: ArrayLike | Sequence[ArrayLike],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Array | tuple[Array, ...]:
    """Sort an array, or several together.

    Args:
        operand: an array, or a sequence of arrays of one shape.
        dimension: the dimension to sort along; negative ones count from the end.
        is_stable: whether equal elements keep their order.
        num_keys: how many of the arrays are keys; the first is the most significant.

    Returns:
        A sorted array, or a tuple of the arrays in the order that sorts the keys. NaNs come last,
        and -0.0 equals 0.0. Complex numbers are ordered by their real parts, then by their
        imaginary parts.

    Raises:
        TypeError: there are no operands, or shapes differ.
        ValueError: the dimension is out of bounds, or `num_keys` is not from 1 to the number of
            arrays.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.sort(np.array([3, 1, 2])).tolist()
        [1, 2, 3]
    """
    several = isinstance(operand, tuple | list)
    operands: Any = operand if several else [operand]
    values = [as_operand(x, "lax.sort", "operand") for x in operands]
    if not values:
        raise TypeError("lax.sort needs at least one operand, got an empty sequence")
    dimension = canonical_dimension(dimension, len(shape_of(values[0])), "sort", "dimension")
    keys = integer(num_keys, "sort", "num_keys")
    outs = sort_p.bind(*values, dimension=dimension, is_stable=bool(is_stable), num_keys=keys)
    return tuple(outs) if several else outs[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort an array of keys, and reorder an array of values with it.

    Args:
        keys: an array.
        values: an array of the same shape.
        dimension: the dimension to sort along; negative ones count from the end.
        is_stable: whether values with equal keys keep their order.

    Returns:
        The keys and the values, sorted.

    Raises:
        TypeError: the shapes differ.
        ValueError: the dimension is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> keys, values = lax.sort_key_val(np.array([3, 1, 2]), np.array([0, 1, 2]))
        >>> values.tolist()
        [1, 2, 0]
    """
    sorted_keys, sorted_values = sort((keys, values), dimension, is_stable)
    return sorted_keys, sorted_values


def top_k(operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True) -> list[Array]:
    """The largest elements along a dimension, and their positions.

    Args:
        operand: an array of bool, integers or floating point numbers.
        k: how many; at most the size of the dimension.
        axis: the dimension; negative ones count from the end.
        is_stable: whether equal elements are returned in their order, the first ones preferred.
            They always are.

    Returns:
        A list of the `k` largest elements, largest first, and their positions as int32. NaN is
        the largest.

    Raises:
        TypeError: the dtype is not supported, or `k` is not an integer.
        ValueError: the axis is out of bounds, or has fewer than `k` elements.

    Differs:
        NaN of either sign counts as the largest.

        >>> print(*lax.top_k(jnp.array([1.0, -np.nan, 2.0]), 2))
        [2. 1.] [2 0]

        Positions, counts and booleans are never weakly typed, here and elsewhere.

        >>> print(lax.top_k(jnp.full(2, 1.0), 1)[1].weak_type, jnp.isnan(1.0).weak_type)
        False False

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> values, positions = lax.top_k(np.array([1, 4, 3]), 2)
        >>> values.tolist(), positions.tolist()
        ([4, 3], [1, 2])
    """
    x = as_operand(operand, "lax.top_k", "operand")
    count = integer(k, "top_k", "k")
    axis = canonical_dimension(axis, len(shape_of(x)), "top_k")
    return list(top_k_p.bind(x, k=count, axis=axis))
