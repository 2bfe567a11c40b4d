"""Values inside `shard_map`, by whether they vary from device to device along an axis of the mesh.

A value that does not vary along an axis is the same on all devices along it. `pvary` says of such a
value that it may differ, and computes nothing; the transpose is a sum over the devices, since each
of them has used the value. So the transpose of a sum over devices is `pvary` in turn. Operations
whose operands vary along different axes are preceded by it (`StageTrace`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.basis.structural import Linear, broadcast_batch, reduce_sum
from dovetail._core.ir.avals import aval_of
from dovetail._core.trace.divisions import Labels, divided_alike
from dovetail._core.trace.forbidden_collectives import check_manual
from dovetail._core.trace.state import state
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

AxisName = Hashable
Axes = tuple[AxisName, ...]


class _OverAxes(Linear):
    """Linear, of one operand, over manual axes in the parameter `axes`."""

    types_axes: ClassVar[bool] = True
    axis_parameter: ClassVar[str] = "axes"
    generates_nan: ClassVar[bool] = False

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, axes: Axes
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        axis = state.batch_axis
        if axis is not None and axis.name in axes:
            x, d = self.over_batch(broadcast_batch(x, axis.size) if d is None else x, d or 0)
            axes = tuple([name for name in axes if name != axis.name])
        return (self.bind(x, axes=axes) if axes else x), d

    def over_batch(self, x: Any, dimension: int) -> tuple[Any, int | None]:
        """The result, and its batch dimension, for a batch along one of the axes."""
        raise NotImplementedError


class Pvary(_OverAxes):
    """The value itself, which may now vary along axes."""

    name = "pvary"

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        # A program may be retraced for operands that vary more.
        (x,) = avals
        missing = tuple([name for name in params["axes"] if name not in x.vma])
        return [x.vma], ({} if missing == params["axes"] else {"axes": missing})

    def abstract(self, x: Any, *, axes: Axes) -> Any:
        return x.update(vma=x.vma.union(axes))

    def reference(self, x: Any, *, axes: Axes) -> Any:
        return np.asarray(x)

    def over_batch(self, x: Any, dimension: int) -> tuple[Any, int | None]:
        return x, dimension

    def transpose(self, cotangent: Any, x: Any, *, axes: Axes) -> Sequence[Any]:
        if type(cotangent) is Zero:
            return [cotangent]
        check_manual("the transpose of pvary, a sum,", axes)
        return [psum_invariant_p.bind(cotangent, axes=axes)]

    def lower(self, context: Builder, x: Any, *, axes: Axes) -> Any:
        return x


pvary_p: Final = Pvary()


class PsumInvariant(_OverAxes):
    """The sum over the devices along axes, which is the same on all of them."""

    name = "psum_invariant"

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        return [avals[0].vma.union(params["axes"])], {}

    def abstract(self, x: Any, *, axes: Axes) -> Any:
        return x.update(vma=x.vma.difference(axes))

    def over_batch(self, x: Any, dimension: int) -> tuple[Any, int | None]:
        return reduce_sum(x, (dimension,)), None

    def transpose(self, cotangent: Any, x: Any, *, axes: Axes) -> Sequence[Any]:
        if type(cotangent) is Zero:
            return [cotangent]
        return [pvary_p.bind(cotangent, axes=axes)]

    def lower(self, context: Builder, x: Any, *, axes: Axes) -> Any:
        return context.all_reduce(x, context.avals_out[0], context.groups(axes), context.add)


psum_invariant_p: Final = PsumInvariant()


def in_order(axes: Iterable[AxisName]) -> Axes:
    """Axes in an order that does not change from run to run."""
    return tuple(sorted(axes, key=str))


def pvary(x: Any, axes: Iterable[AxisName]) -> Any:
    """`x`, which may vary along axes."""
    return pvary_p.bind(x, axes=in_order(axes))


def vary_like(x: Any, aval: Any) -> Any:
    """`x`, which may vary along the axes along which a value of type `aval` does."""
    missing = aval.vma
    if missing:
        missing = missing - aval_of(x).vma
    return pvary(x, missing) if missing else x


def match_axes(cotangent: Any, aval: Any) -> Any:
    """A cotangent that a user's rule returns for a value of type `aval`.

    Of a value that is the same on all devices along an axis, each device has a cotangent of its
    own; theirs is the sum.
    """
    if cotangent is None or type(cotangent) is Zero:
        return cotangent
    more = aval_of(cotangent).vma - aval.vma
    if more:
        check_manual("a derivative that users define", more)
        cotangent = psum_invariant_p.bind(cotangent, axes=in_order(more))
    return vary_like(cotangent, aval)
