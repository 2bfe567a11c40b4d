"""How operations combine values that differ in what they are along the manual axes of a mesh.

`dovetail._core.ir.manual_axis_type` says what there is. The rules of primitives know nothing of it:
before an operation its operands are cast to what `wanted_types` says.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import reduce
from operator import or_
from typing import Any

from dovetail._core.base.errors import ShardingTypeError
from dovetail._core.ir.manual_axis_type import ManualAxisType, invarying

__all__ = ["cast_refusal", "joined", "refuse_divided_sums", "types_of", "wanted_types"]


def types_of(avals: Sequence[Any]) -> list[ManualAxisType]:
    """What values are along the manual axes of a mesh."""
    return [aval.manual_axis_type for aval in avals]


def joined(types: Sequence[ManualAxisType]) -> ManualAxisType:
    """What the results are of an operation whose operands are of these types."""
    return reduce(or_, types, invarying)


def wanted_types(
    name: str, avals: Sequence[Any], linear_in: Sequence[slice]
) -> list[ManualAxisType]:
    """What each operand of an operation has to be.

    Args:
        name: the name of the primitive.
        avals: the avals of the operands.
        linear_in: ranges of operands; the operation is linear in those of each range together.

    Raises:
        ShardingTypeError: the operation is not linear in what is unreduced, or one operand varies
            where another one is unreduced.
    """
    try:
        whole = joined(types_of(avals))
    except ShardingTypeError as error:
        raise ShardingTypeError(f"{name}: {error}") from None
    if not whole.unreduced:
        return [whole] * len(avals)
    numbers = range(len(avals))
    parts: list[set[Hashable]] = [set() for _ in avals]
    for axis in whole.unreduced:
        unreduced = [i for i in numbers if axis in avals[i].manual_axis_type.unreduced]
        for group in linear_in:
            if all(i in numbers[group] for i in unreduced):
                break
        else:
            raise _not_linear(name, avals, axis, bool(linear_in))
        for i in numbers[group]:
            parts[i].add(axis)
    return [
        whole.update(unreduced=frozenset(own), reduced=whole.reduced | (whole.unreduced - own))
        for own in parts
    ]


def _not_linear(
    name: str, avals: Sequence[Any], axis: Hashable, in_some: bool
) -> ShardingTypeError:
    shown = ", ".join([aval.short_name() for aval in avals])
    why = "is linear in one of them at a time" if in_some else "is not linear"
    return ShardingTypeError(
        f"{name} of {shown}: a value that is unreduced along {axis!r} is a sum that has not been "
        f"added up, and {name} {why}; add it up first, with lax.psum(x, {axis!r}), or outside of "
        "shard_map with dovetail.reshard"
    )


def refuse_divided_sums(name: str, avals: Sequence[Any]) -> None:
    """Refuse operands that are divided over an axis along which one is unreduced or reduced.

    Raises:
        ShardingTypeError: there are such.
    """
    sums = frozenset[Hashable]().union(
        *(a.manual_axis_type.unreduced | a.manual_axis_type.reduced for a in avals)
    )
    for aval in avals if sums else ():
        dims = () if aval.division is None else aval.division.dims
        for axis in sums.intersection(axis for axes in dims for axis in axes):
            shown = ", ".join([a.short_name() for a in avals])
            raise ShardingTypeError(
                f"{name} of {shown}: one is divided over {axis!r}, along which another one is "
                "unreduced or reduced. Compute it inside of shard_map, or give "
                "dovetail.reshard(x, PartitionSpec()) of one of them"
            )


def cast_refusal(name: str, aval: Any, wanted: ManualAxisType) -> ShardingTypeError | None:
    """Why an operand cannot be cast to what an operation wants; None if it can be."""
    own = aval.manual_axis_type
    for axis in wanted.unreduced - own.unreduced:
        return ShardingTypeError(
            f"{name} takes {aval.short_name()}, which is not unreduced along {axis!r}, where "
            "another value is: it would count once for each device. Add up the other one first, "
            f"with lax.psum(x, {axis!r})"
        )
    for axis in own.unreduced - wanted.unreduced:
        return ShardingTypeError(
            f"{name} takes {aval.short_name()}, a sum along {axis!r} that has not been added up, "
            f"where it has to be {wanted.along(axis)}; add it up first, with "
            f"lax.psum(x, {axis!r})"
        )
    for axis in (own.varying | own.reduced) - wanted.varying - wanted.reduced:
        return ShardingTypeError(
            f"{name} takes {aval.short_name()}, which is {own.along(axis)} along {axis!r}, where "
            f"it has to be {wanted.along(axis)}"
        )
    for axis in own.varying - wanted.varying:
        return ShardingTypeError(
            f"{name} takes {aval.short_name()}, which varies along {axis!r}, where it has to be "
            f"{wanted.along(axis)}; add it up first, with lax.psum(x, {axis!r})"
        )
    return None
