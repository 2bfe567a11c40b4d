"""Shardings in Shardy's dialect: meshes of a module, and annotations of values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from dovetail._core.hlo.context import load_dialect
from dovetail._core.hlo.mlir import Attribute, ir, sdy
from dovetail._core.hlo.module import ModuleBuilder
from dovetail._core.ir.avals import physical_aval
from dovetail._core.ir.partition_spec import PartitionSpec, axes_of

__all__ = ["Partitioning"]

Axes = tuple[tuple[Hashable, int], ...]


class Partitioning:
    """The meshes of a module under construction, and annotations that refer to them."""

    __slots__ = ("_alone", "_meshes", "_module", "mesh")

    def __init__(self, module: ModuleBuilder, mesh: Any = None) -> None:
        self._module = module
        #: The devices of the program, with the names of their axes.
        self.mesh = mesh
        self._meshes: dict[Axes, str] = {}
        self._alone: dict[int, str] = {}
        load_dialect("sdy")

    def _mesh(self, axes: Axes) -> str:
        """The symbol of a mesh, which is added to the module where it is new."""
        symbol = self._meshes.get(axes)
        if symbol is None:
            sizes = [sdy.MeshAxisAttr.get(str(name), size) for name, size in axes]
            symbol = self._meshes[axes] = self._add(sdy.MeshAttr.get(sizes))
        return symbol

    def _add(self, mesh: Attribute) -> str:
        symbol = self._module.unique_symbol("mesh")
        ir.Operation.create(
            "sdy.mesh",
            attributes={"sym_name": ir.StringAttr.get(symbol), "mesh": mesh},
            loc=self._module.locations.unknown,
            ip=ir.InsertionPoint.at_block_begin(self._module.module.body),
        )
        return symbol

    def sharding(
        self,
        axes: Axes,
        spec: PartitionSpec,
        ndim: int,
        open_dims: bool = False,
        whole: Sequence[Hashable] = (),
    ) -> Attribute:
        """How a value is divided.

        Args:
            axes: names and sizes of the axes of the mesh.
            spec: the axes that each of the first dimensions is divided over.
            ndim: the rank of the value.
            open_dims: whether the compiler may divide dimensions over more axes.
            whole: axes over which it may not.
        """
        entries = (*spec, *(None,) * (ndim - len(spec)))
        return sdy.TensorShardingAttr.get(
            self._mesh(axes),
            [_dimension(entry, open_dims) for entry in entries],
            replicated_axes=[_axis(name) for name, _ in axes if name in whole],
            unreduced_axes=[_axis(name) for name, _ in axes if name in spec.unreduced],
        )

    def of_type(self, mesh: Any, spec: PartitionSpec, ndim: int) -> Attribute:
        """How a value is divided whose type speaks of the explicit axes of a mesh.

        Along axes of the type `Auto` the compiler may divide it.

        Args:
            mesh: the mesh.
            spec: the explicit axes that each dimension is divided over.
            ndim: the rank of the value.
        """
        axes = mesh.shape_tuple
        if not mesh.auto_axes:
            return self.sharding(axes, spec, ndim)
        named = [*spec.unreduced, *(axis for entry in spec for axis in axes_of(entry))]
        whole = [axis for axis in mesh.explicit_axes if axis not in named]
        return self.sharding(axes, spec, ndim, True, whole)

    def of_values(
        self,
        axes: Axes,
        specs: Sequence[PartitionSpec],
        avals: Sequence[Any],
        manual: frozenset[Hashable],
    ) -> Attribute:
        """How the values that a manual computation takes or returns are divided.

        Args:
            axes: names and sizes of the axes of the mesh.
            specs: for each value, the manual axes that its dimensions are divided over.
            avals: the avals of the parts.
            manual: the manual axes. Where there are others, the compiler divides over them.
        """
        open_dims = len(manual) < len(axes)
        return sdy.TensorShardingPerValueAttr.get(
            [
                self.sharding(axes, spec, physical_aval(aval).ndim, open_dims)
                for spec, aval in zip(specs, avals, strict=True)
            ]
        )

    def manual_axes(self, axes: Axes, manual: frozenset[Hashable]) -> Attribute:
        """The names of manual axes, in the order of the mesh."""
        return sdy.ManualAxesAttr.get(
            [ir.StringAttr.get(str(name)) for name, _ in axes if name in manual]
        )

    def rule(
        self,
        sizes: Sequence[int],
        operands: Sequence[Sequence[Sequence[int]]],
        results: Sequence[Sequence[Sequence[int]]],
        *,
        reduction: Sequence[int] = (),
        need_replication: Sequence[int] = (),
        permutation: Sequence[int] = (),
    ) -> Attribute:
        """Along which dimensions an operation can be divided.

        Args:
            sizes: the sizes of its factors.
            operands: for each dimension of each operand, the numbers of its factors.
            results: the same for results.
            reduction: the factors that it reduces.
            need_replication: those along which it cannot be divided.
            permutation: those along which devices exchange parts.
        """
        mapped = [
            [
                sdy.TensorMappingAttr.get([sdy.DimMappingAttr.get(list(dim)) for dim in array])
                for array in arrays
            ]
            for arrays in (operands, results)
        ]
        return sdy.OpShardingRuleAttr.get(
            list(sizes),
            *mapped,
            reduction_factors=list(reduction),
            need_replication_factors=list(need_replication),
            permutation_factors=list(permutation),
            is_custom=True,
        )

    def batched(
        self,
        operands: Sequence[Sequence[int]],
        results: Sequence[Sequence[int]],
        batch_dims: int,
    ) -> Attribute:
        """That an operation can be divided along its batch dimensions, which come first.

        Args:
            operands: the shapes of its operands.
            results: those of its results.
            batch_dims: how many there are.
        """
        sizes = list(operands[0][:batch_dims])

        def factors(shape: Sequence[int]) -> list[list[int]]:
            own = range(len(sizes), len(sizes) + len(shape) - batch_dims)
            sizes.extend(shape[batch_dims:])
            return [[number] for number in (*range(batch_dims), *own)]

        mapped = [[factors(shape) for shape in shapes] for shapes in (operands, results)]
        return self.rule(sizes, *mapped, need_replication=range(batch_dims, len(sizes)))

    def replicated(self, ndim: int) -> Attribute | None:
        """That all devices hold the whole of a value of this rank; None if there is no mesh yet."""
        axes = next(iter(self._meshes), None)
        return None if axes is None else self.sharding(axes, PartitionSpec(), ndim)

    def one_device(self, count: int, position: int) -> Attribute:
        """That an operation of so many results runs on one device alone, by its position."""
        symbol = self._alone.get(position)
        if symbol is None:
            symbol = self._alone[position] = self._add(sdy.MeshAttr.get([], [position]))
        there = sdy.TensorShardingAttr.get(symbol, [])
        return sdy.TensorShardingPerValueAttr.get([there] * max(count, 1))


def _axis(name: Hashable) -> Attribute:
    return sdy.AxisRefAttr.get(str(name))


def _dimension(entry: Any, is_open: bool) -> Attribute:
    names = list(map(_axis, axes_of(entry)))
    is_closed = not is_open and entry is not PartitionSpec.UNCONSTRAINED
    return sdy.DimensionShardingAttr.get(names, is_closed=is_closed)
