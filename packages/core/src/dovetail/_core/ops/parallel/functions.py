"""Collective operations of trees of arrays, as users call them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.errors import DTypeError, ShardingTypeError
from dovetail._core.base.typing import Array, ArrayLike, PyTree
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.manual_axes import refuse_casts
from dovetail._core.basis.operands import as_operand, as_result, literal_like
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ops.elementwise.arithmetic import add, div, mul
from dovetail._core.ops.parallel.collective import (
    Groups,
    all_gather_p,
    index_along,
    reduce_scatter_p,
    typed_axes,
)
from dovetail._core.ops.parallel.exchanges import (
    all_gather_invariant_p,
    all_gather_reduced_p,
    all_to_all_p,
    pbroadcast_p,
    ppermute_p,
    unreduced_reduce_scatter_p,
)
from dovetail._core.ops.parallel.ragged import checked_operands, ragged_all_to_all_p
from dovetail._core.ops.parallel.reductions import pmax_p, pmin_p, sum_over
from dovetail._core.ops.shape.dimensions import canonical_dimension
from dovetail._core.ops.shape.reshaping import add_dimensions, squeeze_dimensions
from dovetail._core.trace.forbidden_collectives import check_manual
from dovetail._core.trace.named_axes import NamedAxis, lookup
from dovetail._core.trace.primitive import Primitive

AxisName = Hashable
#: Sequences of positions along an axis, as users write them.
IndexGroups = Sequence[Sequence[int]] | None


def _size(axes: Sequence[NamedAxis]) -> int:
    return math.prod(axis.size for axis in axes)


def _axes_to_collect(names: Any, function: str) -> tuple[NamedAxis, ...]:
    """`lookup` for a function whose devices communicate along the axes."""
    axes = lookup(names, function)
    check_manual(function, [axis.name for axis in axes])
    return axes


def _names(axes: Sequence[NamedAxis]) -> tuple[AxisName, ...]:
    return tuple([axis.name for axis in axes])


def _groups(groups: IndexGroups, size: int, function: str) -> Groups:
    """Groups of positions along an axis, which have to be a partition into equal parts.

    Raises:
        ValueError: they are not.
    """
    if groups is None:
        return None
    known = tuple([tuple([int(place) for place in group]) for group in groups])
    places = sorted(place for group in known for place in group)
    if places != list(range(size)) or len({len(group) for group in known}) != 1:
        raise ValueError(
            f"lax.{function}: axis_index_groups has to name each position along the axis, of which "
            f"there are {size}, in one group, and groups have to be of one size; got {groups}"
        )
    return known


def _mapped(function: Callable[[Any], Any], x: PyTree, name: str) -> PyTree:
    return pytree.map(lambda leaf: as_result(function(as_operand(leaf, f"lax.{name}"))), x)


def psum(x: PyTree, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> PyTree:
    """The sum of what all elements, or devices, along axes have.

    Args:
        x: an array, or a pytree of arrays. Booleans are added as integers. A Python number gives
            its product with the number of elements, a number again. What is unreduced along an axis
            is added up.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them.
        axis_index_groups: groups of positions along the axis; each group has a sum of its own.
            All by default.

    Returns:
        The sums, in the structure of `x`. All elements of a group get the same.

    Raises:
        NameError: there is no such axis.
        ValueError: the groups are no partition into equal parts.

    Example:
        >>> f = dt.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")
        >>> print(f(jnp.array([1.0, 3.0])))
        [0.25 0.75]
    """
    axes = lookup(axis_name, "lax.psum")
    groups = _groups(axis_index_groups, _size(axes), "psum")
    names, manual = _names(axes), typed_axes(axes)
    count = _size(axes) if groups is None else len(groups[0])

    def total(leaf: Any) -> Any:
        if type(leaf) in (bool, int, float, complex):
            return leaf * count
        check_manual("lax.psum", names)
        operand = as_operand(leaf, "lax.psum")
        if groups is not None:
            refuse_casts("lax.psum of groups", aval_of(operand), manual)
        if aval_of(operand).dtype == bool:
            operand = convert_element_type(operand, dtypes.default_dtype("i"))
        _check_numbers(operand, "psum")
        return as_result(sum_over(operand, names, manual, groups))

    return pytree.map(total, x)


def _check_numbers(x: Any, function: str) -> None:
    dtype = aval_of(x).dtype
    if dtypes.is_extended(dtype):
        raise DTypeError(f"lax.{function} takes numbers, got an array of dtype {dtype}")


def pmean(x: PyTree, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> PyTree:
    """The mean of what all elements, or devices, along axes have.

    Args:
        x: an array, or a pytree of arrays. The mean of integers is a float.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them.
        axis_index_groups: groups of positions along the axis; each group has a mean of its own.
            All by default.

    Returns:
        The means, in the structure of `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: the groups are no partition into equal parts.

    Example:
        >>> dt.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
        Array([-1.,  1.], dtype=float32)
    """
    axes = _axes_to_collect(axis_name, "lax.pmean")
    groups = _groups(axis_index_groups, _size(axes), "pmean")
    count = _size(axes) if groups is None else len(groups[0])

    def mean(leaf: Any) -> Any:
        total = psum(as_operand(leaf, "lax.pmean"), axis_name, axis_index_groups=axis_index_groups)
        dtype = aval_of(total).dtype
        if not dtypes.issubdtype(dtype, np.inexact):
            total = convert_element_type(total, dtypes.default_dtype("f"))
        return div(total, literal_like(count, total))

    return pytree.map(mean, x)


def pmax(x: PyTree, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> PyTree:
    """The greatest of the numbers that all elements, or devices, along axes have.

    Args:
        x: an array of real numbers, or a pytree of arrays.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them.
        axis_index_groups: groups of positions along the axis; each group has a greatest number of
            its own. All by default.

    Returns:
        The greatest numbers, element by element, in the structure of `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: the groups are no partition into equal parts.

    Differs:
        It has derivatives: those who have the greatest number share the tangent evenly.

        >>> f = lambda x: dt.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(x)[0]
        >>> print(dt.grad(f)(jnp.array([1.0, 3.0, 2.0])))
        [0. 1. 0.]

    Example:
        >>> dt.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 3, 2]))
        Array([3, 3, 3], dtype=int32)
    """
    return _extreme(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: PyTree, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> PyTree:
    """The least of the numbers that all elements, or devices, along axes have.

    Args:
        x: an array of real numbers, or a pytree of arrays.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them.
        axis_index_groups: groups of positions along the axis; each group has a least number of its
            own. All by default.

    Returns:
        The least numbers, element by element, in the structure of `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: the groups are no partition into equal parts.

    Example:
        >>> dt.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([1, 3, 2]))
        Array([1, 1, 1], dtype=int32)
    """
    return _extreme(pmin_p, x, axis_name, axis_index_groups)


def _extreme(
    primitive: Primitive, x: PyTree, axis_name: AxisName, index_groups: IndexGroups
) -> PyTree:
    axes = _axes_to_collect(axis_name, f"lax.{primitive.name}")
    groups = _groups(index_groups, _size(axes), primitive.name)
    names, manual = _names(axes), typed_axes(axes)

    def extreme(operand: Any) -> Any:
        _check_numbers(operand, primitive.name)
        if dtypes.issubdtype(aval_of(operand).dtype, np.complexfloating):
            raise DTypeError(f"lax.{primitive.name} takes real numbers, which have an order")
        return primitive.bind(operand, axes=names, axis_index_groups=groups, manual=manual)

    return _mapped(extreme, x, primitive.name)


def all_gather(
    x: PyTree,
    axis_name: AxisName,
    *,
    axis_index_groups: IndexGroups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> PyTree:
    """What all elements, or devices, along axes have, joined.

    Args:
        x: an array, or a pytree of arrays.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them, the
            one along which neighbours lie last.
        axis_index_groups: groups of positions along the axis, each joined on its own. All by
            default.
        axis: the dimension of the result along which it is joined.
        tiled: whether arrays are joined along a dimension that they have; by default along a new
            one.
        to: what types say of the result: ``"varying"``, that it may differ from device to device;
            ``"invarying"``, that it does not; or ``"reduced"``, that it does not, and that its
            cotangent is not added up (`pcast`). It matters inside `dovetail.shard_map` alone.

    Returns:
        The joined arrays, in the structure of `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: the groups are no partition into equal parts, there is no such dimension, or
            `to` is something else.
        ShardingTypeError: the result is to be reduced, and `x` does not vary along the axes.

    Example:
        >>> dt.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.arange(2)).tolist()
        [[0, 1], [0, 1]]
    """
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(f"lax.all_gather: to is 'varying', 'invarying' or 'reduced', got {to!r}")
    axes = _axes_to_collect(axis_name, "lax.all_gather")
    groups = _groups(axis_index_groups, _size(axes), "all_gather")
    if to != "varying" and groups is not None:
        raise ValueError(
            "lax.all_gather: what groups have differs from group to group; leave out "
            f"axis_index_groups, or to={to!r}"
        )

    def gathered(operand: Any) -> Any:
        rank = len(shape_of(operand)) + (not tiled)
        d = canonical_dimension(axis, rank, "all_gather", "axis")
        if to == "varying" or not typed_axes(axes):
            return all_gather_p.bind(
                operand,
                all_gather_dimension=d,
                axis_index_groups=groups,
                axis_name=_names(axes),
                axis_size=_size(axes) if groups is None else len(groups[0]),
                tiled=tiled,
                manual=typed_axes(axes),
            )
        primitive: Primitive = all_gather_invariant_p
        if to == "reduced":
            primitive = all_gather_reduced_p
            aval = aval_of(operand)
            for name in typed_axes(axes):
                if name not in aval.vma:
                    raise ShardingTypeError(
                        f"lax.all_gather: to='reduced' takes what varies along {name!r}, and got "
                        f"{aval.short_name()}; cast it first, with lax.pcast"
                    )
        if not tiled:
            operand = add_dimensions(operand, (d,))
        for one in reversed(axes):
            operand = primitive.bind(
                operand,
                all_gather_dimension=d,
                axis_index_groups=None,
                axis_name=(one.name,),
                axis_size=one.size,
                tiled=True,
                manual=typed_axes([one]),
            )
        return operand

    return _mapped(gathered, x, "all_gather")


def psum_scatter(
    x: PyTree,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
) -> PyTree:
    """The sum of what all elements, or devices, along axes have; each of them gets a part of it.

    Args:
        x: an array, or a pytree of arrays; it may be unreduced along the axes.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them.
        scatter_dimension: the dimension along which the sum is divided.
        axis_index_groups: groups of positions along the axis, each with a sum of its own. All by
            default.
        tiled: whether the dimension stays, divided by the number of elements. Otherwise it has
            their number as its size, and is left out.

    Returns:
        The parts, in the structure of `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: the dimension does not have such a size, or the groups are no partition into
            equal parts.

    Example:
        >>> x = jnp.arange(4.0).reshape(2, 2)
        >>> print(dt.vmap(lambda row: lax.psum_scatter(row, "i"), axis_name="i")(x))
        [2. 4.]
    """
    axes = _axes_to_collect(axis_name, "lax.psum_scatter")
    groups = _groups(axis_index_groups, _size(axes), "psum_scatter")
    count = _size(axes) if groups is None else len(groups[0])

    def scattered(operand: Any) -> Any:
        _check_numbers(operand, "psum_scatter")
        shape = shape_of(operand)
        d = canonical_dimension(scatter_dimension, len(shape), "psum_scatter", "scatter_dimension")
        _check_parts(shape, d, count, tiled, "psum_scatter", "scatter_dimension")
        primitive: Primitive = reduce_scatter_p
        manual = typed_axes(axes)
        if groups is None and aval_of(operand).manual_axis_type.unreduced.intersection(manual):
            primitive = unreduced_reduce_scatter_p
        return primitive.bind(
            operand,
            scatter_dimension=d,
            axis_index_groups=groups,
            axis_name=_names(axes),
            axis_size=count,
            tiled=tiled,
            manual=manual,
        )

    return _mapped(scattered, x, "psum_scatter")


def _check_parts(
    shape: tuple[int, ...], d: int, count: int, tiled: bool, function: str, argument: str
) -> None:
    if shape[d] == count or (tiled and shape[d] % count == 0):
        return
    need = f"a multiple of {count}" if tiled else f"{count}, or tiled=True"
    raise ValueError(
        f"lax.{function}: dimension {d} ({argument}) of an array of shape {shape} goes to {count} "
        f"elements, so its size has to be {need}; it is {shape[d]}"
    )


def all_to_all(
    x: PyTree,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
) -> PyTree:
    """Each element, or device, along axes gives a part to each other one, and joins what it gets.

    Args:
        x: an array, or a pytree of arrays.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them.
        split_axis: the dimension along which arrays are divided.
        concat_axis: the dimension of the result along which parts are joined.
        axis_index_groups: groups of positions along the axis, which exchange parts among
            themselves. All by default.
        tiled: whether both dimensions stay, one divided and one multiplied by the number of
            elements. Otherwise the first has their number as its size, and is left out, and the
            second is new.

    Returns:
        The joined parts, in the structure of `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: the dimension does not have such a size, or the groups are no partition into
            equal parts.

    Example:
        >>> x = jnp.arange(4).reshape(2, 2)
        >>> dt.vmap(lambda row: lax.all_to_all(row, "i", 0, 0), axis_name="i")(x).tolist()
        [[0, 2], [1, 3]]
    """
    axes = _axes_to_collect(axis_name, "lax.all_to_all")
    groups = _groups(axis_index_groups, _size(axes), "all_to_all")
    count = _size(axes) if groups is None else len(groups[0])
    names = _names(axes)

    def exchanged(operand: Any) -> Any:
        shape = shape_of(operand)
        split = canonical_dimension(split_axis, len(shape), "all_to_all", "split_axis")
        concat = canonical_dimension(concat_axis, len(shape), "all_to_all", "concat_axis")
        _check_parts(shape, split, count, tiled, "all_to_all", "split_axis")
        if not tiled:
            # The new dimension is there from the beginning, and the other until the end.
            after = concat + (concat >= split)
            operand = add_dimensions(operand, (after,))
            split, concat = split + (split >= after), after
        result = all_to_all_p.bind(
            operand,
            axis_index_groups=groups,
            axis_name=names[0] if len(names) == 1 else names,
            axis_size=count,
            concat_axis=concat,
            split_axis=split,
            manual=typed_axes(axes),
        )
        return result if tiled else squeeze_dimensions(result, (split,))

    return _mapped(exchanged, x, "all_to_all")


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: AxisName,
    axis_index_groups: IndexGroups = None,
) -> Array:
    """Each element, or device, along axes gives some of its rows to each other one.

    Element `i` puts ``operand[input_offsets[j] :][: send_sizes[j]]`` into the result of element
    `j`, from the row ``output_offsets[j]`` on. CPUs, which have no operation for it, give everybody
    all operands. A row that goes to several elements gets the sum of their cotangents.

    Args:
        operand: an array whose rows are given.
        output: an array whose rows are replaced by those that come. All sizes but the first are
            those of `operand`.
        input_offsets: for each element the first row that goes to it; integers, as all that follow.
        send_sizes: how many rows go to it.
        output_offsets: the first row in its result where they go.
        recv_sizes: for each element the number of rows that come from it, which has to be the
            number that it sends.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them.
        axis_index_groups: groups of positions along the axis, which exchange rows among
            themselves. All by default.

    Returns:
        An array like `output`. It is not said what happens where rows lie outside of an array, or
        where several elements write to one row.

    Raises:
        NameError: there is no such axis.
        TypeError: dtypes do not fit.
        ValueError: shapes do not fit, or the groups are no partition into equal parts.

    Differs:
        It runs on CPUs too, where everybody gets all operands, and along axes of `dovetail.vmap`.

        >>> def swap(x):  # both give their row to the other
        ...     place, ones = lax.axis_index("i"), jnp.ones(2, int)
        ...     sizes = (jnp.arange(2) != place).astype(int)
        ...     args = x, jnp.zeros_like(x), 0 * ones, sizes, 0 * ones, sizes
        ...     return lax.ragged_all_to_all(*args, axis_name="i")
        >>> dt.vmap(swap, axis_name="i")(jnp.array([[1], [2]])).tolist()
        [[2], [1]]

        A row that goes to several elements gets the sum of their cotangents.

        >>> def total(x):  # both give their row to both
        ...     ones = jnp.ones(2, int)
        ...     args = x, jnp.zeros(2), 0 * ones, ones, lax.axis_index("i") * ones, ones
        ...     return lax.ragged_all_to_all(*args, axis_name="i").sum()
        >>> f = lambda x: dt.vmap(total, axis_name="i")(x).sum()
        >>> dt.grad(f)(jnp.array([[1.0], [2.0]])).tolist()
        [[2.0], [2.0]]

    Example:
        >>> rows = jnp.array([[1, 2, 3], [4, 5, 6]])
        >>> starts, sizes = jnp.array([[0, 2], [0, 1]]), jnp.array([[2, 1], [1, 2]])
        >>> targets, received = jnp.array([[0, 0], [2, 1]]), jnp.array([[2, 1], [1, 2]])
        >>> f = lambda *args: lax.ragged_all_to_all(*args, axis_name="i")
        >>> f = dt.vmap(f, axis_name="i")
        >>> print(f(rows, jnp.zeros((2, 4), int), starts, sizes, targets, received))
        [[1 2 4 0]
         [3 5 6 0]]
    """
    axes = _axes_to_collect(axis_name, "lax.ragged_all_to_all")
    groups = _groups(axis_index_groups, _size(axes), "ragged_all_to_all")
    count = _size(axes) if groups is None else len(groups[0])
    numbers = {
        "input_offsets": input_offsets,
        "send_sizes": send_sizes,
        "output_offsets": output_offsets,
        "recv_sizes": recv_sizes,
    }
    place = "lax.ragged_all_to_all"
    operands = checked_operands(
        as_operand(operand, place),
        as_operand(output, place),
        {name: as_operand(x, place) for name, x in numbers.items()},
        count,
    )
    result: Array = ragged_all_to_all_p.bind(
        *operands,
        axis_index_groups=groups,
        axis_name=_names(axes),
        axis_size=count,
        manual=typed_axes(axes),
    )
    return result


def ppermute(x: PyTree, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> PyTree:
    """What elements, or devices, along axes have goes from one to another.

    Args:
        x: an array, or a pytree of arrays.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them.
        perm: pairs of positions, from where and to where. No position is twice a source or twice a
            target.

    Returns:
        For each position what comes to it, and zeros if that is nothing, in the structure of `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: a position is out of bounds, or occurs twice.

    Example:
        >>> shift = lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)])
        >>> print(dt.vmap(shift, axis_name="i")(jnp.array([5, 6, 7])))
        [0 5 6]
    """
    axes = _axes_to_collect(axis_name, "lax.ppermute")
    size = _size(axes)
    try:
        pairs = tuple([(int(source), int(target)) for source, target in perm])
    except (TypeError, ValueError):
        raise TypeError(
            f"lax.ppermute: perm holds pairs (source, target) of positions, got {perm!r}"
        ) from None
    for side, places in (("source", [s for s, _ in pairs]), ("target", [t for _, t in pairs])):
        for number, place in enumerate(places):
            if not 0 <= place < size:
                raise ValueError(
                    f"lax.ppermute: {place} in perm is no position along {axis_name!r}, where "
                    f"there are {size}"
                )
            if place in places[:number]:
                raise ValueError(f"lax.ppermute: {place} is twice a {side} in perm {pairs}")

    def permuted(operand: Any) -> Any:
        return ppermute_p.bind(operand, axis_name=_names(axes), perm=pairs, manual=typed_axes(axes))

    return _mapped(permuted, x, "ppermute")


def pshuffle(x: PyTree, axis_name: AxisName, perm: Sequence[int]) -> PyTree:
    """What elements, or devices, along axes have, in another order.

    Args:
        x: an array, or a pytree of arrays.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them.
        perm: for each position, from where it gets what it has afterwards; a permutation.

    Returns:
        The arrays in another order, in the structure of `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: it is no permutation of the positions.

    Example:
        >>> print(dt.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.arange(3)))
        [2 0 1]
    """
    size = _size(lookup(axis_name, "lax.pshuffle"))
    if sorted(perm) != list(range(size)):
        raise ValueError(
            f"lax.pshuffle: perm has to be a permutation of the {size} positions along "
            f"{axis_name!r}, got {perm!r}"
        )
    return ppermute(x, axis_name, [(source, target) for target, source in enumerate(perm)])


def pswapaxes(
    x: PyTree, axis_name: AxisName, axis: int, *, axis_index_groups: IndexGroups = None
) -> PyTree:
    """Swap a dimension with the axis of elements, or devices, which has the same size.

    Args:
        x: an array, or a pytree of arrays.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`.
        axis: the dimension.
        axis_index_groups: groups of positions along the axis, which exchange parts among
            themselves. All by default.

    Returns:
        The arrays, in the structure of `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: the sizes differ, or the groups are no partition into equal parts.

    Example:
        >>> x = jnp.arange(4).reshape(2, 2)
        >>> dt.vmap(lambda row: lax.pswapaxes(row, "i", 0), axis_name="i")(x).tolist()
        [[0, 2], [1, 3]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: PyTree, axis_name: AxisName, source: int) -> PyTree:
    """What one element, or device, along an axis has, for all of them.

    Args:
        x: an array, or a pytree of arrays.
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`.
        source: the position of the one.

    Returns:
        Its arrays, in the structure of `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: there is no such position.

    Example:
        >>> print(dt.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.arange(3)))
        [1 1 1]
    """
    axes = _axes_to_collect(axis_name, "lax.pbroadcast")
    if len(axes) != 1:
        raise ValueError(f"lax.pbroadcast: axis_name is one axis, got {axis_name!r}")
    if not 0 <= source < axes[0].size:
        raise ValueError(
            f"lax.pbroadcast: source {source} is no position along {axis_name!r}, where there are "
            f"{axes[0].size}"
        )

    def broadcast(operand: Any) -> Any:
        return pbroadcast_p.bind(
            operand, axis_name=axes[0].name, source=int(source), manual=typed_axes(axes)
        )

    return _mapped(broadcast, x, "pbroadcast")


def axis_index(axis_name: AxisName) -> Array:
    """The position of this element, or device, along axes.

    Args:
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them, of
            which the position in row-major order is given.

    Returns:
        An int32 scalar.

    Raises:
        NameError: there is no such axis.

    Example:
        >>> print(dt.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.zeros(3)))
        [0. 1. 2.]
    """
    axes = lookup(axis_name, "lax.axis_index")
    place: Any = index_along(axes[0]) if axes else as_operand(np.int32(0), "lax.axis_index")
    for axis in axes[1:]:
        place = add(mul(place, np.int32(axis.size)), index_along(axis))
    return place


def axis_size(axis_name: AxisName) -> int:
    """The number of elements, or devices, along axes.

    Args:
        axis_name: the axis of a `dovetail.vmap` or a `dovetail.shard_map`, or a tuple of them, of
            which the product is given.

    Returns:
        A Python integer.

    Raises:
        NameError: there is no such axis.

    Example:
        >>> print(dt.vmap(lambda x: x / lax.axis_size("i"), axis_name="i")(jnp.ones(4)))
        [0.25 0.25 0.25 0.25]
    """
    return _size(lookup(axis_name, "lax.axis_size"))
