"""Shardings in Shardy's dialect: meshes of a module, and annotations of values."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from dovetail._core.hlo.context import load_dialect
from dovetail._core.hlo.mlir import Attribute, ir, sdy
from dovetail._core.hlo.module import ModuleBuilder
from dovetail._core.ir.partition_spec import PartitionSpec, axes_of

__all__ = ["Partitioning"]

Axes = tuple[tuple[Hashable, int], ...]


class Partitioning:
    """The meshes of a module under construction, and annotations that refer to them."""

    __slots__ = ("_meshes", "_module")

    def __init__(self, module: ModuleBuilder) -> None:
        self._module = module
        self._meshes: dict[Axes, str] = {}
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

    def sharding(self, axes: Axes, spec: PartitionSpec, ndim: int) -> Attribute:
        """How a value is divided.

        Args:
            axes: names and sizes of the axes of the mesh.
            spec: the axes that each of the first dimensions is divided over.
            ndim: the rank of the value.
        """
        entries = (*spec, *(None,) * (ndim - len(spec)))
        return sdy.TensorShardingAttr.get(
            self._mesh(axes),
            list(map(_dimension, entries)),
            unreduced_axes=[_axis(name) for name, _ in axes if name in spec.unreduced],
        )

    def replicated(self, ndim: int) -> Attribute | None:
        """That all devices hold the whole of a value of this rank; None if there is no mesh yet."""
        axes = next(filter(None, self._meshes), None)
        return None if axes is None else self.sharding(axes, PartitionSpec(), ndim)

    def first_device(self, count: int) -> Attribute:
        """That an operation of so many results runs on the first device alone."""
        symbol = self._meshes.get(())
        if symbol is None:
            symbol = self._meshes[()] = self._add(sdy.MeshAttr.get([], [0]))
        there = sdy.TensorShardingAttr.get(symbol, [])
        return sdy.TensorShardingPerValueAttr.get([there] * max(count, 1))


def _axis(name: Hashable) -> Attribute:
    return sdy.AxisRefAttr.get(str(name))


def _dimension(entry: Any) -> Attribute:
    names = list(map(_axis, axes_of(entry)))
    return sdy.DimensionShardingAttr.get(names, is_closed=entry is not PartitionSpec.UNCONSTRAINED)
