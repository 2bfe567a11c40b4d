"""The primitive `mesh_cast`: the same value on a mesh whose axes have other types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from dovetail._core.basis.resharding import reshard_p
from dovetail._core.basis.structural import Same
from dovetail._core.ir.abstract_mesh import AbstractMesh
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.division import Division, batched_dims, division_of_spec
from dovetail._core.ir.division import division as divided_over
from dovetail._core.ops.calls import placement
from dovetail._core.trace.zeros import Zero

__all__ = ["mesh_cast"]


class MeshCast(Same):
    """The value itself, of whose type another mesh speaks.

    Its parameters are the meshes before and after, and how the result is divided over the explicit
    axes of the latter.
    """

    name = "mesh_cast"
    types_divisions: ClassVar[bool] = True

    def abstract(
        self, x: Any, *, source: AbstractMesh, target: AbstractMesh, division: Division | None
    ) -> Any:
        return x.with_division(division)

    def transpose(
        self,
        ct: Any,
        x: Any,
        *,
        source: AbstractMesh,
        target: AbstractMesh,
        division: Division | None,
    ) -> Sequence[Any]:
        if type(ct) is Zero:
            return [ct]
        before = aval_of(x).division
        return [self.bind(ct, source=target, target=source, division=before)]

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        source: AbstractMesh,
        target: AbstractMesh,
        division: Division | None,
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        own = aval_of(x).division
        kept = None if own is None else division_of_spec(target, own.spec, len(own.dims))
        each = ((),) * (aval_of(x).ndim - 1) if division is None else division.dims
        wanted = divided_over(target, batched_dims(each, d, kept, d))
        return self.bind(x, source=source, target=target, division=wanted), d

    def evaluate(
        self, x: Any, *, source: AbstractMesh, target: AbstractMesh, division: Division | None
    ) -> Any:
        """Say of an array that it is on the other mesh, outside compiled programs."""
        sharding: Any = getattr(x, "sharding", None)
        mesh = getattr(sharding, "mesh", None)
        if mesh is None or mesh.shape_tuple != target.shape_tuple:
            return x if division is None else reshard_p.bind(x, division=division)
        mesh = mesh.update(axis_types=target.axis_types)
        same = sharding.update(mesh=mesh)
        if division is None or division_of_spec(target, same.spec, x.ndim) is division:
            return placement.place(x, same)
        return placement.place(x, same.update(spec=division.spec))


mesh_cast_p: Final = MeshCast()


def mesh_cast(x: Any, source: AbstractMesh, target: AbstractMesh, wanted: Any = None) -> Any:
    """A value that is on another mesh, in whose type its explicit axes count.

    Args:
        x: the value.
        source: the mesh that its type speaks of now.
        target: the mesh, with the same axes, of other types.
        wanted: the specification that divides the result; None to leave it divided as it is.
    """
    aval = aval_of(x)
    spec = wanted
    if spec is None:
        if aval.division is None:
            return x
        spec = aval.division.spec
    how = division_of_spec(target, spec, aval.ndim)
    return mesh_cast_p.bind(x, source=source, target=target, division=how)
