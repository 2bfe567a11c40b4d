"""The public `vmap`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from dovetail._core.base import pytree
from dovetail._core.base.counting import counted
from dovetail._core.base.typing import PyTree
from dovetail._core.base.wrapping import wraps
from dovetail._core.basis.operands import as_result
from dovetail._core.ir.avals import shape_of
from dovetail._core.trace.mutable_references import Ref, refuse_parts
from dovetail._core.trace.named_axes import BatchAxis, axes_of
from dovetail._core.transform.batch import batch_flat, place_batch
from dovetail._core.transform.flattening import (
    FlatFunction,
    check_array_leaves,
    check_callable,
    leaf_names,
    name_of,
)
from dovetail._core.transform.referencing import Lending

P = ParamSpec("P")
R = TypeVar("R")

#: No axis, in a tree where None would be an empty one.
_NONE: Final = -1 << 32


def vmap(
    fun: Callable[P, R],
    in_axes: int | Sequence[PyTree] | None = 0,
    out_axes: PyTree = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | None = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Vectorize a function: apply it to each element along an axis of its arguments at once.

    Args:
        fun: function of arrays and pytrees of them.
        in_axes: the axis to map over, or None to pass the argument whole; either one integer for
            all positional arguments, or a tuple with an entry for each (an integer, None, or a
            pytree of them that is a prefix of the argument). Arguments that are passed whole need
            not be arrays. Keyword arguments are mapped over axis 0.
        out_axes: the position of the new axis in each part of the result, as a prefix of the
            result; None for a part that does not depend on the mapped arguments.
        axis_name: a name for the mapped axis, for collective operations such as `lax.psum`.
        axis_size: the number of elements; needed only if no argument is mapped.
        spmd_axis_name: the name of an axis of a mesh, or a tuple of them, over which the mapped
            axis is divided: `lax.with_sharding_constraint` and `dovetail.shard_map` inside divide
            it so.
        sum_match: accepted for compatibility; must be False.

    Returns:
        The mapped function.

    Raises:
        ValueError: axes do not fit the arguments, or sizes along mapped axes differ.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> dt.vmap(jnp.dot)(jnp.ones((2, 3)), jnp.ones((2, 3))).shape
        (2,)
    """
    check_callable(fun, "vmap")
    if sum_match:
        raise NotImplementedError("sum_match of vmap must keep its default")
    for argument, given in (("axis_name", axis_name), ("spmd_axis_name", spmd_axis_name)):
        if not isinstance(given, Hashable):
            raise TypeError(
                f"{argument} of vmap is a name, such as a string, which has to be hashable; got "
                f"{given!r}"
            )
    spmd = () if spmd_axis_name is None else axes_of(spmd_axis_name)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or type(in_axes) is int or isinstance(in_axes, tuple)):
        raise TypeError(
            "in_axes of vmap must be an integer, None, or a tuple with an entry for each "
            f"positional argument, got {in_axes!r}"
        )
    _check_axes(in_axes, "in_axes")
    _check_axes(out_axes, "out_axes")
    name = name_of(fun)

    @wraps(fun)
    def vmap_fun(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                f"in_axes of vmap of {name} has {counted(len(in_axes), 'entry', 'entries')}, but "
                "the call has "
                f"{counted(len(args), 'positional argument')}; give one entry for each (keyword "
                "arguments are always mapped over axis 0)"
            )
        if _batched_nodes:
            args, kwargs = _spread((args, kwargs))
        leaves, tree = pytree.flatten((args, kwargs))
        lends = any(type(leaf) is Ref for leaf in leaves)
        if lends:
            refuse_parts((args, kwargs), f"vmap of {name}")
        dims = [
            *pytree.flatten_up_to_prefix(
                f"in_axes of vmap of {name}", in_axes, pytree.structure(args)
            ),
            *[0] * pytree.structure(kwargs).num_leaves,
        ]
        if _batched_nodes:
            _check_nodes(tree, dims, f"in_axes of vmap of {name}", False)
        dims, size = mapped_dims(
            leaves, dims, axis_size, lambda: leaf_names(fun, args, kwargs), f"vmap of {name}"
        )
        flat = FlatFunction(fun, tree, keywords=True)
        axis = BatchAxis(axis_name, size, spmd)
        if lends:
            outs, out_dims = _batch_references(flat, leaves, dims, axis)
        else:
            outs, out_dims = batch_flat(flat, leaves, dims, size, axis)
        destinations = pytree.flatten_up_to_prefix(
            f"out_axes of vmap of {name}", out_axes, flat.out_tree
        )
        if _batched_nodes:
            _check_nodes(flat.out_tree, destinations, f"out_axes of vmap of {name}", True)
        placed = [
            _placed(o, d, destination, size, i, flat.out_tree, name)
            for i, (o, d, destination) in enumerate(zip(outs, out_dims, destinations, strict=True))
        ]
        return flat.out_tree.unflatten(placed)

    return vmap_fun


class BatchedNode(Protocol):
    """A class of tree nodes whose leaves have dimensions of a batch in front of others."""

    def spread(self) -> Any:
        """The node with leaves of full size along all dimensions of the batch."""

    def check_axes(self, what: str, added: bool) -> None:
        """Refuse axes that are not ones of the batch.

        Args:
            what: a phrase for the axes, for messages. They stand in the place of the leaves.
            added: whether the axis is put in; otherwise it is mapped over.
        """


_batched_nodes: list[type[BatchedNode]] = []


def register_batched_node(cls: type[BatchedNode]) -> None:
    """Have `vmap` ask the nodes of a class whether axes are ones of their batch."""
    _batched_nodes.append(cls)


def _is_batched_node(x: Any) -> bool:
    return isinstance(x, tuple(_batched_nodes))


def _spread(arguments: Any) -> Any:
    nodes, tree = pytree.flatten(arguments, _is_batched_node)
    return tree.unflatten([x.spread() if _is_batched_node(x) else x for x in nodes])


def _check_nodes(tree: Any, axes: Sequence[int | None], what: str, added: bool) -> None:
    given = [_NONE if axis is None else axis for axis in axes]
    for node in pytree.leaves(tree.unflatten(given), _is_batched_node):
        if _is_batched_node(node):
            node.check_axes(what, added)


def _batch_references(
    flat: FlatFunction,
    leaves: Sequence[Any],
    dims: Sequence[int | None],
    axis: BatchAxis,
) -> tuple[list[Any], list[int | None]]:
    """`batch_flat` for arguments that include mutable references.

    Of a mapped reference, each element of the batch gets a reference to its own part. The others
    are passed unchanged, to be read.
    """
    mapped = [
        i
        for i, (leaf, d) in enumerate(zip(leaves, dims, strict=True))
        if type(leaf) is Ref and d is not None
    ]
    function = Lending(flat, leaves, mapped, f"vmap of {name_of(flat.function)}")
    outs, out_dims = batch_flat(function, function.values(), dims, axis.size, axis)
    count = flat.out_tree.num_leaves
    for i, value, dim in zip(function.changed, outs[count:], out_dims[count:], strict=True):
        destination = dims[i]
        assert destination is not None
        leaves[i].write(place_batch(value, dim, axis.size, destination))
    return outs[:count], out_dims[:count]


def _check_axes(axes: Any, name: str) -> None:
    for axis in pytree.leaves(axes):
        if type(axis) is not int:
            raise TypeError(f"{name} of vmap must hold integers and None, got {axis!r} in {axes!r}")


def mapped_dims(
    leaves: Sequence[Any],
    dims: Sequence[int | None],
    axis_size: int | None,
    names: Callable[[], Sequence[str]],
    what: str,
) -> tuple[list[int | None], int]:
    """Non-negative mapped dimensions, and their common size.

    Args:
        leaves: flat arguments.
        dims: for each the dimension that is mapped, negative ones counted from the end, or None.
        axis_size: the size that they should have, if it was given.
        names: gives their names, for messages.
        what: a phrase for the transformation, for messages: `vmap of f`.

    Raises:
        TypeError: a mapped leaf is not an array.
        ValueError: it has no such dimension, the sizes differ, or there is none.
    """
    mapped = [i for i, dim in enumerate(dims) if dim is not None]
    check_array_leaves(
        [leaves[i] for i in mapped],
        lambda: [names()[i] for i in mapped],
        what,
        references=True,
    )
    axes: list[int | None] = []
    sizes: dict[int, int] = {}
    for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            axes.append(None)
            continue
        shape = _shape_of(leaf)
        if not -len(shape) <= dim < len(shape):
            raise ValueError(
                f"{what} was asked to map its argument {names()[i]} over axis {dim}, "
                f"but that has shape {shape}, of rank {len(shape)}; choose another axis with "
                "in_axes, or None to pass it whole"
            )
        axes.append(dim % len(shape))
        sizes[i] = shape[dim]
    distinct = set(sizes.values())
    if axis_size is not None:
        distinct.add(axis_size)
    if not distinct:
        raise ValueError(
            f"{what} needs at least one mapped argument (in_axes not None), or axis_size"
        )
    if len(distinct) > 1:
        listed = "\n".join(
            f"  {names()[i]}: shape {_shape_of(leaves[i])}, mapped over axis {axes[i]} of size {n}"
            for i, n in sizes.items()
        )
        asked = f"\n  axis_size={axis_size}" if axis_size is not None else ""
        raise ValueError(
            f"{what} got inconsistent sizes for the mapped axis:\n{listed}{asked}\n"
            "Pass arrays of one size along it, or None in in_axes for what is passed whole"
        )
    return axes, distinct.pop()


def _shape_of(leaf: Any) -> tuple[int, ...]:
    return leaf.shape if type(leaf) is Ref else shape_of(leaf)


def _placed(
    value: Any,
    dim: int | None,
    destination: int | None,
    size: int,
    position: int,
    out_tree: Any,
    function: str,
) -> Any:
    if destination is None:
        if dim is not None:
            path = pytree.keystr(
                pytree.flatten_with_path(out_tree.unflatten(range(out_tree.num_leaves)))[0][
                    position
                ][0]
            )
            raise ValueError(
                f"vmap of {function}: out_axes is None for the result{path}, but that depends on a "
                "mapped argument; give it an axis"
            )
        return as_result(value)
    rank = len(shape_of(value)) + (dim is None)
    if not -rank <= destination < rank:
        raise ValueError(
            f"out_axes of vmap of {function} has {destination} for a result of rank {rank} (the "
            "mapped axis included)"
        )
    return as_result(place_batch(value, dim, size, destination % rank))
