"""Exchanges of parts and of whole operands between elements, or devices, along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.basis.structural import move_dimension, reshape
from dovetail._core.ir.avals import make_aval, shape_of
from dovetail._core.ops.elementwise.arithmetic import mul
from dovetail._core.ops.elementwise.comparison import eq
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.indexing.dynamic_slicing import dynamic_slice_in_dim
from dovetail._core.ops.parallel.collective import (
    AllGather,
    Axes,
    AxisName,
    Collective,
    Groups,
    ReduceScatter,
    axis_index_p,
    rows,
)
from dovetail._core.ops.parallel.reductions import sum_over
from dovetail._core.ops.shape.creation import full_like
from dovetail._core.ops.shape.dimensions import replaced
from dovetail._core.trace.divisions import Labels, own_labels
from dovetail._core.trace.named_axes import axes_of

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Pairs = tuple[tuple[int, int], ...]


class _Exchange(Collective):
    """Linear, of one operand."""

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*primals, **params), self.bind(*tangents, **params)


class AllGatherInvariant(AllGather):
    """All operands along one axis, joined; types say that the result is the same for all."""

    name = "all_gather_invariant"

    def abstract(self, x: Any, **params: Any) -> Any:
        joined = super().abstract(x, **params)
        return joined.update(vma=joined.vma.difference(params["manual"]))

    def transpose(self, cotangent: Any, x: Any, **params: Any) -> Sequence[Any]:
        # Each device gets the cotangent of its own part.
        (name,) = params["axis_name"]
        d = params["all_gather_dimension"]
        place = axis_index_p.bind(axis_name=name, manual=params["manual"])
        if not params["tiled"]:
            return [rows(move_dimension(cotangent, d, 0), place)]
        size = x.shape[d]
        return [dynamic_slice_in_dim(cotangent, mul(place, np.int32(size)), size, d)]


class AllGatherReduced(AllGather):
    """All operands along one axis, joined; the result is reduced, so that its cotangent is not."""

    name = "all_gather_reduced"

    def abstract(self, x: Any, **params: Any) -> Any:
        joined = super().abstract(x, **params)
        own = joined.manual_axis_type
        return joined.update(manual_axis_type=own.become("reduced", params["manual"]))

    def transpose(self, cotangent: Any, x: Any, **params: Any) -> Sequence[Any]:
        d = params.pop("all_gather_dimension")
        return [unreduced_reduce_scatter_p.bind(cotangent, scatter_dimension=d, **params)]


class UnreducedReduceScatter(ReduceScatter):
    """An unreduced value, added up, of which each member gets a part along a dimension."""

    name = "unreduced_reduce_scatter"

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        return [avals[0].manual_axis_type.become("unreduced", params["manual"])], {}

    def abstract(self, x: Any, **params: Any) -> Any:
        part = super().abstract(x, **params)
        own = part.manual_axis_type
        return part.update(manual_axis_type=own.become("varying", params["manual"]))

    def transpose(self, cotangent: Any, x: Any, **params: Any) -> Sequence[Any]:
        d = params.pop("scatter_dimension")
        return [all_gather_reduced_p.bind(cotangent, all_gather_dimension=d, **params)]


class AllToAll(_Exchange):
    """Parts along one dimension go one to each member, which joins them along another."""

    name = "all_to_all"

    def abstract(
        self, x: Any, *, axis_size: int, split_axis: int, concat_axis: int, **params: Any
    ) -> Any:
        shape = replaced(x.shape, split_axis, x.shape[split_axis] // axis_size)
        return x.update(shape=replaced(shape, concat_axis, shape[concat_axis] * axis_size))

    def labels(
        self,
        avals: Sequence[Any],
        results: Sequence[Any],
        *,
        split_axis: int,
        concat_axis: int,
        **params: Any,
    ) -> Labels:
        own = replaced(replaced(own_labels(avals[0]), split_axis, None), concat_axis, None)
        return Labels([own], [own], why="makes or joins parts along")

    def transpose(self, cotangent: Any, x: Any, **params: Any) -> Sequence[Any]:
        split, concat = params.pop("split_axis"), params.pop("concat_axis")
        return [self.bind(cotangent, split_axis=concat, concat_axis=split, **params)]

    def batch_other(self, x: Any, d: int, **params: Any) -> tuple[Any, Any]:
        params["split_axis"] += 1
        params["concat_axis"] += 1
        return self.bind(move_dimension(x, d, 0), **params), 0

    def batch_named(self, x: Any, d: int, size: int, **params: Any) -> tuple[Any, Any]:
        parts = self._split(move_dimension(x, d, 0), **params)
        return self._joined(parts, 1, **params), 0

    def from_group(self, everyone: Any, place: Any, **params: Any) -> Any:
        return self._joined(rows(self._split(everyone, **params), place), 0, **params)

    def _split(
        self, everyone: Any, *, axis_size: int, split_axis: int, concat_axis: int, **params: Any
    ) -> Any:
        """Parts by target, then by source."""
        shape, s = shape_of(everyone), split_axis + 1
        part = shape[s] // axis_size
        return move_dimension(
            reshape(everyone, (*shape[:s], axis_size, part, *shape[s + 1 :])), s, 0
        )

    def _joined(
        self, parts: Any, at: int, *, axis_size: int, concat_axis: int, **params: Any
    ) -> Any:
        """Parts by source, along the dimension `at`, joined."""
        c = at + concat_axis
        moved = move_dimension(parts, at, c)
        shape = shape_of(moved)
        return reshape(moved, (*shape[:c], shape[c] * shape[c + 1], *shape[c + 2 :]))

    def lower(
        self,
        context: Builder,
        x: Any,
        *,
        axis_index_groups: Groups,
        axis_name: Any,
        axis_size: int,
        concat_axis: int,
        split_axis: int,
        manual: Axes,
    ) -> Any:
        groups = context.groups(axes_of(axis_name), axis_index_groups)
        return context.all_to_all(x, context.avals_out[0], groups, split_axis, concat_axis)


class Ppermute(_Exchange):
    """Operands go from one member to another; who gets none has zeros."""

    name = "ppermute"

    def abstract(self, x: Any, **params: Any) -> Any:
        return x

    def transpose(self, cotangent: Any, x: Any, *, perm: Pairs, **params: Any) -> Sequence[Any]:
        back = tuple([(target, source) for source, target in perm])
        return [self.bind(cotangent, perm=back, **params)]

    def batch_other(self, x: Any, d: int, **params: Any) -> tuple[Any, Any]:
        return self.bind(x, **params), d

    def batch_named(self, x: Any, d: int, size: int, **params: Any) -> tuple[Any, Any]:
        return rows(move_dimension(x, d, 0), _sources(size, **params)), 0

    def from_group(self, everyone: Any, place: Any, **params: Any) -> Any:
        return rows(everyone, rows(_sources(shape_of(everyone)[0], **params), place))

    def lower(self, context: Builder, x: Any, *, axis_name: Axes, perm: Pairs, manual: Axes) -> Any:
        return context.collective_permute(x, context.avals_out[0], context.groups(axis_name), perm)


def _sources(size: int, *, perm: Pairs, **params: Any) -> Any:
    """For each member, from whom it gets a value; the number of members where from none."""
    sources = np.full(size, size, np.int32)
    for source, target in perm:
        sources[target] = source
    return sources


class Pbroadcast(_Exchange):
    """The operand of one member, which all of them get."""

    name = "pbroadcast"

    def abstract(self, x: Any, **params: Any) -> Any:
        return x

    def transpose(
        self, cotangent: Any, x: Any, *, axis_name: AxisName, source: int, manual: Axes
    ) -> Sequence[Any]:
        total = sum_over(cotangent, (axis_name,), manual)
        here = eq(axis_index_p.bind(axis_name=axis_name, manual=manual), np.int32(source))
        return [select(here, total, full_like(total, 0))]

    def batch_other(self, x: Any, d: int, **params: Any) -> tuple[Any, Any]:
        return self.bind(x, **params), d

    def batch_named(
        self, x: Any, d: int, size: int, *, source: int, **params: Any
    ) -> tuple[Any, Any]:
        return rows(move_dimension(x, d, 0), np.int32(source)), None

    def lower(
        self, context: Builder, x: Any, *, axis_name: AxisName, source: int, manual: Axes
    ) -> Any:
        # As a sum, since XLA:CPU has no operation for it. Negative zero is what adds nothing.
        (out,) = context.avals_out
        number = make_aval((), np.dtype(np.int32))
        here = context.compare(
            context.axis_index((axis_name,), number), context.constant(source, number), "EQ", number
        )
        nothing = context.constant(-0.0 if out.dtype.kind in "fcV" else 0, out)
        chosen = context.select(here, x, nothing, out)
        return context.all_reduce(chosen, out, context.groups((axis_name,)), context.add)


all_gather_invariant_p: Final = AllGatherInvariant()
all_gather_reduced_p: Final = AllGatherReduced()
unreduced_reduce_scatter_p: Final = UnreducedReduceScatter()
all_to_all_p: Final = AllToAll()
ppermute_p: Final = Ppermute()
pbroadcast_p: Final = Pbroadcast()
