"""The family of collective operations; gathering, and scattering a sum, which is its transpose.

Axes are those of `vmap`, or manual axes of a mesh. Along an axis of `vmap` the batching rule
computes the operation from the whole batch; nothing of it is left to be lowered. Along an axis of a
mesh it is lowered to a collective operation of the devices.

To add one, derive from `Collective` and define, besides `abstract`, `lower` and what derivatives
need:

- `batch_other`, for a batch along another axis than those of the operation;
- `batch_named`, for a batch along the only axis of the operation;
- `from_group`, the result of one member of a group in terms of the operands of all, from which
  the rest follows: several axes, and groups.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.basis.families import NoGradient
from dovetail._core.basis.manual_axes import refuse_casts
from dovetail._core.basis.structural import broadcast_batch, move_dimension, reduce_sum, reshape
from dovetail._core.ir.avals import make_aval, shape_of
from dovetail._core.ir.manual_axis_type import ManualAxisType
from dovetail._core.ir.shown_params import ShownParams, never
from dovetail._core.ops.elementwise.arithmetic import add, mul
from dovetail._core.ops.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from dovetail._core.ops.shape.creation import iota
from dovetail._core.ops.shape.dimensions import inserted, replaced, without
from dovetail._core.trace.divisions import Labels, divided_alike, own_labels
from dovetail._core.trace.named_axes import NamedAxis, axes_of, lookup
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.state import state
from dovetail._core.transform.batch import batch_flat

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

AxisName = Hashable
Axes = tuple[AxisName, ...]
Groups = tuple[tuple[int, ...], ...] | None


class Collective(Primitive):
    """An operation of all elements, or devices, along axes.

    The parameter `manual` holds those of its axes along which types say what varies: operands and,
    unless a class says otherwise, results do.
    """

    axis_parameter: ClassVar[str] = "axis_name"
    types_axes: ClassVar[bool] = True
    generates_nan: ClassVar[bool] = False
    shown_params: ClassVar[ShownParams] = {"manual": never}

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        varying = ManualAxisType(varying=frozenset(params["manual"]))
        for aval in avals:
            refuse_casts(self.name, aval, params["manual"])
        return [aval.manual_axis_type | varying for aval in avals], {}

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        axis = state.batch_axis
        axes = axes_of(params[self.axis_parameter])
        (x,), (d,) = args, dims
        if axis is None or axis.name not in axes:
            assert d is not None
            return self.batch_other(x, d, **params)
        if len(axes) > 1 or params.get("axis_index_groups") is not None:
            outs, out_dims = batch_flat(
                lambda *xs: [self._from_all(*xs, **params)], args, dims, axis.size, axis
            )
            return outs[0], out_dims[0]
        return self.batch_named(
            broadcast_batch(x, axis.size) if d is None else x, d or 0, axis.size, **params
        )

    def batch_other(self, x: Any, d: int, **params: Any) -> tuple[Any, Any]:
        """The result, and its batch dimension, for a batch along another axis."""
        raise NotImplementedError

    def batch_named(self, x: Any, d: int, size: int, **params: Any) -> tuple[Any, Any]:
        """The result, and its batch dimension, for a batch along the axis of the operation."""
        raise NotImplementedError

    def _from_all(self, x: Any, **params: Any) -> Any:
        axes = lookup(params[self.axis_parameter], self.name)
        everyone: Any = x
        place: Any = np.int32(0)
        for axis in reversed(axes):
            everyone = all_gather_p.bind(
                everyone,
                all_gather_dimension=0,
                axis_index_groups=None,
                axis_name=(axis.name,),
                axis_size=axis.size,
                tiled=False,
                manual=typed_axes([axis]),
            )
        for axis in axes:
            place = add(mul(place, np.int32(axis.size)), index_along(axis))
        everyone = reshape(everyone, (math.prod(axis.size for axis in axes), *shape_of(x)))
        groups = params.get("axis_index_groups")
        if groups is not None:
            count = len(groups[0])
            order = np.argsort(np.concatenate(groups))
            group = rows((order // count).astype(np.int32), place)
            everyone = rows(everyone, rows(np.asarray(groups, np.int32), group))
            place = rows((order % count).astype(np.int32), place)
        return self.from_group(everyone, place, **params)

    def from_group(self, everyone: Any, place: Any, **params: Any) -> Any:
        """The result of one member of a group.

        Args:
            everyone: the operands of all members, along a new leading dimension.
            place: which of them it is.
            params: the parameters.
        """
        raise NotImplementedError


def typed_axes(axes: Sequence[NamedAxis]) -> Axes:
    """The names of those axes along which types say what varies."""
    return tuple([axis.name for axis in axes if axis.is_checked])


def rows(x: Any, indices: Any) -> Any:
    """The elements along the leading dimension at some positions, zeros where there is none."""
    shape = shape_of(x)
    count = len(shape_of(indices))
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(count, count + len(shape) - 1)),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
    )
    where = reshape(indices, (*shape_of(indices), 1))
    sizes = (1, *shape[1:])
    return gather(x, where, numbers, sizes, mode=GatherScatterMode.FILL_OR_DROP, fill_value=0)


class AxisIndex(NoGradient):
    """The position of this element, or device, along an axis."""

    name = "axis_index"
    axis_parameter: ClassVar[str] = "axis_name"
    types_axes: ClassVar[bool] = True
    shown_params: ClassVar[ShownParams] = {"manual": never}

    def abstract(self, *, axis_name: AxisName, manual: Axes) -> Any:
        varying = ManualAxisType(varying=frozenset(manual))
        return make_aval((), np.dtype(np.int32), manual_axis_type=varying)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, axis_name: AxisName, manual: Axes
    ) -> tuple[Any, Any]:
        assert state.batch_axis is not None
        return iota(np.int32, state.batch_axis.size), 0

    def lower(self, context: Builder, *, axis_name: AxisName, manual: Axes) -> Any:
        return context.axis_index((axis_name,), context.avals_out[0])


axis_index_p: Final = AxisIndex()


def index_along(axis: NamedAxis) -> Any:
    """The position of this element, or device, along an axis."""
    return axis_index_p.bind(axis_name=axis.name, manual=typed_axes([axis]))


class AllGather(Collective):
    """The operands of all members of a group, joined along a dimension, a new one if not `tiled`.

    All members get the same, but types say of it that it varies.
    """

    name = "all_gather"

    def abstract(
        self, x: Any, *, all_gather_dimension: int, axis_size: int, tiled: bool, **params: Any
    ) -> Any:
        d, shape = all_gather_dimension, x.shape
        if tiled:
            return x.update(shape=replaced(shape, d, shape[d] * axis_size))
        return x.update(shape=inserted(shape, d, axis_size))

    def labels(
        self,
        avals: Sequence[Any],
        results: Sequence[Any],
        *,
        all_gather_dimension: int,
        tiled: bool,
        **params: Any,
    ) -> Labels:
        d, own = all_gather_dimension, own_labels(avals[0])
        if tiled:
            own = replaced(own, d, None)
            return Labels([own], [own], why="joins parts along")
        return Labels([own], [inserted(own, d, None)])

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, cotangent: Any, x: Any, **params: Any) -> Sequence[Any]:
        d = params.pop("all_gather_dimension")
        return [reduce_scatter_p.bind(cotangent, scatter_dimension=d, **params)]

    def batch_other(self, x: Any, d: int, **params: Any) -> tuple[Any, Any]:
        params["all_gather_dimension"] += 1
        return self.bind(move_dimension(x, d, 0), **params), 0

    def batch_named(self, x: Any, d: int, size: int, **params: Any) -> tuple[Any, Any]:
        return self._joined(move_dimension(x, d, 0), **params), None

    def from_group(self, everyone: Any, place: Any, **params: Any) -> Any:
        return self._joined(everyone, **params)

    def _joined(
        self, everyone: Any, *, all_gather_dimension: int, tiled: bool, **params: Any
    ) -> Any:
        d, shape = all_gather_dimension, shape_of(everyone)
        joined = move_dimension(everyone, 0, d)
        if not tiled:
            return joined
        return reshape(joined, replaced(shape[1:], d, shape[0] * shape[d + 1]))

    def lower(
        self,
        context: Builder,
        x: Any,
        *,
        all_gather_dimension: int,
        axis_index_groups: Groups,
        axis_name: Axes,
        tiled: bool,
        **params: Any,
    ) -> Any:
        (taken,), (given,) = context.avals_in, context.avals_out
        if not tiled:
            taken = taken.update(shape=inserted(taken.shape, all_gather_dimension, 1))
            x = context.reshape(x, taken)
        groups = context.groups(axis_name, axis_index_groups)
        return context.all_gather(x, given, groups, all_gather_dimension)


all_gather_p: Final = AllGather()


class ReduceScatter(Collective):
    """The sum of the operands of a group, of which each member gets a part along a dimension.

    The dimension is left out unless the operation is `tiled`.
    """

    name = "reduce_scatter"
    generates_nan = True

    def abstract(
        self, x: Any, *, axis_size: int, scatter_dimension: int, tiled: bool, **params: Any
    ) -> Any:
        d, shape = scatter_dimension, x.shape
        if tiled:
            return x.update(shape=replaced(shape, d, shape[d] // axis_size))
        return x.update(shape=without(shape, (d,)))

    def labels(
        self,
        avals: Sequence[Any],
        results: Sequence[Any],
        *,
        scatter_dimension: int,
        tiled: bool,
        **params: Any,
    ) -> Labels:
        own = replaced(own_labels(avals[0]), scatter_dimension, None)
        kept = own if tiled else without(own, (scatter_dimension,))
        return Labels([own], [kept], why="makes parts along")

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, cotangent: Any, x: Any, **params: Any) -> Sequence[Any]:
        d = params.pop("scatter_dimension")
        return [all_gather_p.bind(cotangent, all_gather_dimension=d, **params)]

    def batch_other(self, x: Any, d: int, **params: Any) -> tuple[Any, Any]:
        params["scatter_dimension"] += 1
        return self.bind(move_dimension(x, d, 0), **params), 0

    def batch_named(self, x: Any, d: int, size: int, **params: Any) -> tuple[Any, Any]:
        return self._parts(reduce_sum(x, (d,)), **params)

    def from_group(self, everyone: Any, place: Any, **params: Any) -> Any:
        parts, d = self._parts(reduce_sum(everyone, (0,)), **params)
        return rows(move_dimension(parts, d, 0), place)

    def _parts(
        self, total: Any, *, axis_size: int, scatter_dimension: int, tiled: bool, **params: Any
    ) -> tuple[Any, int]:
        """The parts of a sum, along a dimension of their own."""
        d, shape = scatter_dimension, shape_of(total)
        if tiled:
            total = reshape(total, (*shape[:d], axis_size, shape[d] // axis_size, *shape[d + 1 :]))
        return total, d

    def lower(
        self,
        context: Builder,
        x: Any,
        *,
        axis_index_groups: Groups,
        axis_name: Axes,
        scatter_dimension: int,
        tiled: bool,
        **params: Any,
    ) -> Any:
        (given,) = context.avals_out
        groups = context.groups(axis_name, axis_index_groups)
        if tiled:
            return context.reduce_scatter(x, given, groups, scatter_dimension)
        one = given.update(shape=inserted(given.shape, scatter_dimension, 1))
        return context.reshape(context.reduce_scatter(x, one, groups, scatter_dimension), given)


reduce_scatter_p: Final = ReduceScatter()
