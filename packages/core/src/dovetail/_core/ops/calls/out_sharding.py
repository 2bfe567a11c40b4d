"""The argument `out_sharding`: how the result of a function is divided over devices.

Functions whose primitive has a parameter for it give it `asked_division`, so that the compiler
divides the computation, and pass the result to `placed`; all others compute by `divided`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

from dovetail._core.base import pytree
from dovetail._core.base.counting import counted
from dovetail._core.base.errors import ShapeError, ShardingTypeError
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.division import Division, asked
from dovetail._core.ir.partition_spec import PartitionSpec, UnreducedKind, axes_of
from dovetail._core.ops.calls.sharding_constraint import constrain
from dovetail._core.trace.current_mesh import current_mesh, get_abstract_mesh
from dovetail._core.trace.divisions import lenient

__all__ = ["asked_division", "divided", "placed"]


def asked_division(
    function: str,
    sharding: Any,
    shape: Sequence[int] | int,
    argument: str = "out_sharding",
    *,
    sums: bool = False,
) -> Division | None:
    """What the argument asks of the type of a result.

    Args:
        function: the name of the user's function, for messages.
        sharding: a `PartitionSpec` over the current mesh, a `NamedSharding`, or None.
        shape: the shape of the result; or its rank, if the primitive checks the shape.
        argument: the name of the argument.
        sums: whether the function can leave a sum in parts, so that the result is unreduced.

    Returns:
        How the result is divided over the axes of the type `Explicit`, which may be over none of
        them; None if nothing is asked for or there are no such axes.

    Raises:
        TypeError: it is none of these.
        ValueError: the result cannot be divided so, there is no current mesh, or the mesh lacks an
            axis.
    """
    if sharding is None:
        return None
    mesh, entries, unreduced = _checked(function, sharding, argument, sums)
    what = f"{function}: {argument}"
    rank = shape if isinstance(shape, int) else len(shape)
    if len(entries) > rank:
        raise ShapeError(
            f"{what} is {PartitionSpec(*entries)}, with "
            f"{counted(len(entries), 'entry', 'entries')}, and the result has "
            f"{rank} dimension{'s' if rank != 1 else ''}"
        )
    sizes = dict(mesh.shape_tuple)
    for d, entry in enumerate(entries):
        parts = prod(sizes[axis] for axis in axes_of(entry))
        if not isinstance(shape, int) and shape[d] % parts:
            axes = ", ".join(f"{axis!r} of {sizes[axis]}" for axis in axes_of(entry))
            raise ShapeError(
                f"{what} is {PartitionSpec(*entries)}, and dimension {d} of the result, of shape "
                f"{tuple(shape)}, cannot be divided evenly over {axes}: {shape[d]} is no multiple "
                f"of {parts}. Pad it to {-(-shape[d] // parts) * parts}, or leave the dimension "
                "whole: its entry would be None"
            )
    explicit = mesh.explicit_axes
    if not explicit:
        return None
    dims = [tuple([axis for axis in axes_of(entry) if axis in explicit]) for entry in entries]
    return asked(mesh, (*dims, *[()] * (rank - len(dims))), unreduced)


def placed(function: str, result: Any, sharding: Any, argument: str = "out_sharding") -> Any:
    """A result, divided over devices as the argument asks.

    Args:
        function: the name of the user's function, for messages.
        result: the result, or a tree of them.
        sharding: a `PartitionSpec` over the current mesh, a `NamedSharding`, or None.
        argument: the name of the argument.

    Raises:
        TypeError: it is none of these.
        ValueError: the result cannot be divided so, there is no current mesh, or the mesh lacks an
            axis.
    """
    if sharding is None:
        return result
    return pytree.map(lambda x: _placed(function, x, sharding, argument), result)


def _placed(function: str, x: Any, sharding: Any, argument: str) -> Any:
    aval = aval_of(x)
    wanted = asked_division(function, sharding, aval.shape, argument)
    if wanted is not None and aval.division is wanted and _is_all(sharding, wanted):
        return x
    return constrain(x, sharding, f"{argument} of {function}", f"{function}, result ")


def _is_all(sharding: Any, wanted: Division) -> bool:
    """Whether a division says all of a sharding: no other axes, and the devices of the mesh."""
    current = current_mesh()
    known = current is not None and getattr(sharding, "mesh", current) in (current, wanted.mesh)
    spec = sharding if isinstance(sharding, PartitionSpec) else sharding.spec
    named = [axis for entry in spec for axis in axes_of(entry)]
    return known and len(named) == sum(map(len, wanted.dims))


def divided(function: str, sharding: Any, compute: Callable[[], Any], *, sums: bool = False) -> Any:
    """What a function computes, divided over devices as its argument `out_sharding` asks.

    Dimensions that are divided in different ways are not ambiguous then: what is not settled by the
    types of operands is left to the compiler.

    Args:
        function: the name of the user's function, for messages.
        sharding: a `PartitionSpec` over the current mesh, a `NamedSharding`, or None.
        compute: computes the result, or a tree of them.
        sums: whether it can leave a sum in parts, so that the result is unreduced.

    Raises:
        TypeError: `sharding` is none of these.
        ValueError: a result cannot be divided so, there is no current mesh, or the mesh lacks an
            axis.
    """
    if sharding is None:
        return compute()
    unreduced = _checked(function, sharding, "out_sharding", sums)[2]
    with lenient():
        result = compute()
    finish = _checked_parts if unreduced else placed
    return finish(function, result, sharding)


def _checked_parts(function: str, result: Any, sharding: Any) -> Any:
    """The result, which has to be unreduced as a sharding says.

    Raises:
        ShardingTypeError: it is not.
    """
    spec = sharding if isinstance(sharding, PartitionSpec) else sharding.spec
    aval = aval_of(result)
    if not aval.manual_axis_type.unreduced >= spec.unreduced:
        raise ShardingTypeError(
            f"{function}: out_sharding is {spec}, and the result, {aval.short_name()}, comes of no "
            "sum over dimensions that two operands have and that are divided. Leave out unreduced"
        )
    return result


def _checked(
    function: str, sharding: Any, argument: str, sums: bool = False
) -> tuple[Any, tuple[Any, ...], frozenset[Hashable]]:
    """The mesh without its devices, the entries of the specification, and what is unreduced."""
    what = f"{function}: {argument}"
    mesh, spec = getattr(sharding, "mesh", None), getattr(sharding, "spec", None)
    if isinstance(sharding, PartitionSpec):
        mesh, spec = get_abstract_mesh(), sharding
        if mesh.empty:
            raise ValueError(
                f"{what} is {sharding}, which says nothing of devices, and there is no current "
                "mesh: set one with dovetail.set_mesh(mesh), or write NamedSharding(mesh, spec)"
            )
    if mesh is None or not isinstance(spec, PartitionSpec):
        raise TypeError(f"{what} must be a PartitionSpec or a NamedSharding, got {sharding!r}")
    mesh = mesh.abstract_mesh
    for kind, axes in (("unreduced", spec.unreduced), ("reduced", spec.reduced)):
        if axes and not (sums and kind == "unreduced"):
            raise NotImplementedError(
                f"{what} is {spec}, and {function} does not make what is {kind}: compute it in "
                f"dovetail.shard_map, where lax.pcast does, with out_specs={spec}"
            )
    if spec.unreduced and (mesh.auto_axes or spec.unreduced_kind is not UnreducedKind.sum):
        raise NotImplementedError(
            f"{what} is {spec}; arrays are unreduced only over a mesh whose axes are all of the "
            f"type Explicit, not {mesh}, and as parts of sums"
        )
    entries = tuple(spec)
    named = [axis for entry in entries for axis in axes_of(entry)] + list(spec.unreduced)
    for axis in named:
        if axis not in mesh.axis_names:
            raise ValueError(f"{what} is {spec}; {mesh} has no axis {axis!r}")
    if len(set(named)) < len(named) or PartitionSpec.UNCONSTRAINED in entries:
        raise ValueError(f"{what} is {spec}: it says for each axis once where it divides")
    return mesh, entries, spec.unreduced
