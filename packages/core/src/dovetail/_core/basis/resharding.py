"""The primitive `reshard`: a value divided in another way over the explicit axes of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dovetail._core.basis.structural import Same
from dovetail._core.ir.avals import ShapedArray, aval_of
from dovetail._core.ir.division import Division, batched_dims
from dovetail._core.ir.division import division as divided_over
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

__all__ = ["divided_like", "reshard_p"]


class Reshard(Same):
    """The value itself, divided as the parameter `division` says; whole if that is None."""

    name = "reshard"
    types_divisions: ClassVar[bool] = True
    sharding_parameter: ClassVar[str] = "division"

    def abstract(self, x: Any, *, division: Division | None) -> Any:
        return x.with_division(division)

    def transpose(self, ct: Any, x: Any, *, division: Division | None) -> Sequence[Any]:
        return [ct if type(ct) is Zero else divided_like(ct, aval_of(x))]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, division: Division | None
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        own = aval_of(x).division
        if own is None:
            return self.bind(x, division=division and division.inserted(d)), d
        wanted = ((),) * (len(own.dims) - 1) if division is None else division.dims
        batched = divided_over(own.mesh, batched_dims(wanted, d, own, d))
        return self.bind(x, division=batched), d

    def lower(self, context: Builder, x: Any, *, division: Division | None) -> Any:
        (operand,) = context.avals_in
        if division is None and operand.division is not None:
            mesh = operand.division.mesh
            return context.divided(x, operand, mesh.shape_tuple, PartitionSpec())
        return x  # what has a type that is divided is made so where it is lowered


reshard_p: Final = Reshard()


def divided_like(x: Any, aval: Any) -> Any:
    """`x`, divided over explicit axes as a value of type `aval` is."""
    if type(aval) is not ShapedArray:
        return x
    wanted = aval.division
    if wanted is aval_of(x).division:
        return x
    return reshard_p.bind(x, division=wanted)
