"""The mesh that is set for this thread."""

from __future__ import annotations

from functools import partial
from typing import Any

from dovetail._core.base import config
from dovetail._core.base.restoring import Restoring
from dovetail._core.ir.abstract_mesh import AbstractMesh, MeshAxes

_empty = AbstractMesh((), ())


class mesh_scope(Restoring[Any]):
    """A scope in which a mesh, with or without devices, is the current one."""

    __slots__ = ()

    def __init__(self, mesh: MeshAxes | None) -> None:
        cell = config.current_mesh
        super().__init__(cell.get_local, partial(_set, mesh), cell.set_local)


def _set(mesh: MeshAxes | None) -> MeshAxes | None:
    config.current_mesh.set_local(mesh)
    return mesh


def current_mesh() -> Any:
    """The current mesh, a `Mesh` or an `AbstractMesh`; None if there is none."""
    return config.current_mesh.value


def undivided_if_manual(aval: Any) -> Any:
    """The type of a value from outside a `dovetail.shard_map`, which its function uses whole."""
    mesh = current_mesh()
    manual = () if mesh is None else mesh.manual_axes
    if any(axis in manual for axes in aval.division.dims for axis in axes):
        return aval.with_division(None)
    return aval


def get_abstract_mesh() -> AbstractMesh:
    """The current mesh without its devices.

    Inside `dovetail.shard_map` the axes that it handles are of the type `Manual`.

    Returns:
        The mesh; one without axes if there is no current one.

    Example:
        >>> mesh = dt.make_mesh((1,), ("x",))
        >>> with dt.set_mesh(mesh):
        ...     print(dt.sharding.get_abstract_mesh().axis_names)
        ('x',)
    """
    mesh = current_mesh()
    return _empty if mesh is None else mesh.abstract_mesh
