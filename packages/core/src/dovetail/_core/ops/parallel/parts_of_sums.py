"""Sums over divided dimensions of which each device keeps its part."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn

from dovetail._core.base.errors import ShardingTypeError
from dovetail._core.basis.manual_axes import in_order, vary_like, vary_unreduced_cast_p
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.division import Axes, Division, asked
from dovetail._core.ir.jaxpr import DebugInfo
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.ops.parallel.shard_map import (
    inside,
    mesh_inside,
    part_division,
    scaled,
    shard_map_p,
)
from dovetail._core.transform.derived import hoist_consts
from dovetail._core.transform.interning import interned
from dovetail._core.transform.stage import stage

__all__ = ["sum_of_parts"]


def sum_of_parts(
    function: str,
    compute: Callable[..., Any],
    operands: Sequence[Any],
    summed: Sequence[Sequence[int]],
    wanted: Division,
) -> Any:
    """The sum of what devices compute from their parts of operands, not added up.

    Args:
        function: the name of the function, for messages.
        compute: called with the part of each operand, and with what is asked of how the result is
            divided over the other axes; returns a part of the sum.
        operands: the operands.
        summed: for each operand, the dimensions that are summed over, in one order.
        wanted: the axes along which the result is unreduced, and how it is divided over others.

    Raises:
        ShardingTypeError: the operands are not all divided alike, over just these axes, along the
            dimensions that are summed over.
    """
    axes, mesh = wanted.unreduced, wanted.mesh
    avals = list(map(aval_of, operands))
    over = [_axes_of(aval, dims) for aval, dims in zip(avals, summed, strict=True)]
    if any(own != over[0] for own in over) or {a for own in over[0] for a in own} != axes:
        _refuse(function, avals, wanted)
    specs = [
        PartitionSpec(*_entries(aval.ndim, dims, over[0]))
        for aval, dims in zip(avals, summed, strict=True)
    ]
    inner = mesh_inside(mesh, axes)
    sizes = dict(mesh.shape_tuple)
    parts = [
        aval.update(shape=scaled(aval.shape, spec, sizes, True), vma=aval.vma | axes).with_division(
            part_division(aval.division, inner)
        )
        for aval, spec in zip(avals, specs, strict=True)
    ]

    def run(*parts: Any) -> list[Any]:
        part = compute(*parts, asked(inner, wanted.dims))
        part = vary_like(part, aval_of(part).update(vma=aval_of(part).vma | axes))
        return [vary_unreduced_cast_p.bind(part, axes=in_order(axes))]

    with inside(mesh, axes, True):
        closed, captured = hoist_consts(stage(run, parts, DebugInfo("shard_map", function)))
    (result,) = shard_map_p.bind(
        *captured,
        *operands,
        check_vma=True,
        in_specs=(*[PartitionSpec()] * len(captured), *specs),
        jaxpr=interned(closed),
        mesh=mesh,
        newly_manual_axes=axes,
        out_specs=(PartitionSpec(unreduced=axes),),
    )
    return result


def _axes_of(aval: Any, dims: Sequence[int]) -> list[Axes]:
    return [() if aval.division is None else aval.division.dims[d] for d in dims]


def _entries(ndim: int, dims: Sequence[int], over: Sequence[Axes]) -> list[Hashable]:
    entries: list[Hashable] = [None] * ndim
    for d, own in zip(dims, over, strict=True):
        entries[d] = own or None
    return entries


def _refuse(function: str, avals: Sequence[Any], wanted: Division) -> NoReturn:
    shown = " and ".join([aval.short_name() for aval in avals])
    raise ShardingTypeError(
        f"{function}: out_sharding is {wanted.spec}, and the operands are {shown}. A sum is left "
        "in parts along the axes over which all operands are divided, alike, along the dimensions "
        f"that are summed over, and they are not divided so over {_shown(wanted.unreduced)} "
        "alone. Divide them with dovetail.reshard, or leave out unreduced, so that it is added up; "
        "inside of vmap types do not say it, so give the batch a dimension of its own"
    )


def _shown(axes: frozenset[Hashable]) -> str:
    return " and ".join(map(repr, in_order(axes)))
