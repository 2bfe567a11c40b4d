"""Reductions over all elements, or devices, along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.manual_axes import psum_invariant_p, unreduced_psum_p
from dovetail._core.basis.structural import Linear, reduce_sum
from dovetail._core.ir.avals import aval_of
from dovetail._core.ops.elementwise.arithmetic import div
from dovetail._core.ops.elementwise.comparison import eq
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.parallel.collective import Axes, Collective, Groups
from dovetail._core.ops.reduction.reductions import reduce_max_p, reduce_min_p
from dovetail._core.ops.shape.creation import full_like
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class AllReduce(Collective):
    """A reduction of the operands of all members of a group, which all of them get."""

    axis_parameter: ClassVar[str] = "axes"

    def abstract(self, x: Any, *, axes: Axes, axis_index_groups: Groups, manual: Axes) -> Any:
        if axis_index_groups is not None:
            return x
        return x.update(vma=x.vma.difference(manual))

    def _from_all(self, x: Any, **params: Any) -> Any:
        if params["axis_index_groups"] is not None:
            return super()._from_all(x, **params)
        # One axis after the other, of which one is that of the batch.
        for axis in params["axes"]:
            manual = tuple([name for name in params["manual"] if name == axis])
            x = self.bind(x, axes=(axis,), axis_index_groups=None, manual=manual)
        return x

    def batch_other(self, x: Any, d: int, **params: Any) -> tuple[Any, Any]:
        return self.bind(x, **params), d

    def combine(self, x: Any, dimension: int) -> Any:
        """The reduction along a dimension."""
        raise NotImplementedError

    def from_group(self, everyone: Any, place: Any, **params: Any) -> Any:
        return self.combine(everyone, 0)

    def batch_named(self, x: Any, d: int, size: int, **params: Any) -> tuple[Any, Any]:
        return self.combine(x, d), None

    def emit(self, context: Builder, x: Any, y: Any, scalar: Any) -> Any:
        """The reduction of two numbers."""
        raise NotImplementedError

    def lower(
        self, context: Builder, x: Any, *, axes: Axes, axis_index_groups: Groups, manual: Axes
    ) -> Any:
        groups = context.groups(axes, axis_index_groups)
        out = context.avals_out[0]
        return context.all_reduce(x, out, groups, lambda a, b, s: self.emit(context, a, b, s))


class Psum(AllReduce, Linear):
    """The sum, which types do not say to be the same for all: its transpose is a sum again."""

    name = "psum"
    accepts_zeros = True
    jvp = Linear.jvp

    def transpose(self, cotangent: Any, x: Any, **params: Any) -> Sequence[Any]:
        return [cotangent if type(cotangent) is Zero else self.bind(cotangent, **params)]

    def combine(self, x: Any, dimension: int) -> Any:
        return reduce_sum(x, (dimension,))

    def emit(self, context: Builder, x: Any, y: Any, scalar: Any) -> Any:
        return context.add(x, y, scalar)


psum_p: Final = Psum()


class AllExtreme(AllReduce):
    """The greatest or the least number."""

    reduction: ClassVar[Primitive]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        # As for the extreme along a dimension: equal numbers share the tangent evenly.
        (x,), (t,) = primals, tangents
        out = self.bind(x, **params)
        among = eq(x, out)
        total = _sum(select(among, t, full_like(t, 0)), **params)
        count = _sum(convert_element_type(among, aval_of(t).dtype), **params)
        return out, div(total, count)

    def combine(self, x: Any, dimension: int) -> Any:
        return self.reduction.bind(x, axes=(dimension,))


class Pmax(AllExtreme):
    """The greatest number."""

    name, reduction = "pmax", reduce_max_p

    def emit(self, context: Builder, x: Any, y: Any, scalar: Any) -> Any:
        return context.max(x, y, scalar)


class Pmin(AllExtreme):
    """The least number."""

    name, reduction = "pmin", reduce_min_p

    def emit(self, context: Builder, x: Any, y: Any, scalar: Any) -> Any:
        return context.min(x, y, scalar)


pmax_p: Final = Pmax()
pmin_p: Final = Pmin()


def _sum(x: Any, *, axes: Axes, axis_index_groups: Groups, manual: Axes) -> Any:
    return sum_over(x, axes, manual, axis_index_groups)


def sum_over(x: Any, axes: Axes, manual: Axes, groups: Groups = None) -> Any:
    """The sum over axes; along those in `manual` types say that it does not vary."""
    if groups is not None:
        return psum_p.bind(x, axes=axes, axis_index_groups=groups, manual=manual)
    others = tuple([name for name in axes if name not in manual])
    if others:
        x = psum_p.bind(x, axes=others, axis_index_groups=None, manual=())
    unreduced = aval_of(x).manual_axis_type.unreduced
    parts = tuple([name for name in manual if name in unreduced])
    if parts:
        x = unreduced_psum_p.bind(x, axes=parts)
    rest = tuple([name for name in manual if name not in unreduced])
    if rest:
        x = psum_invariant_p.bind(x, axes=rest)
    return x
