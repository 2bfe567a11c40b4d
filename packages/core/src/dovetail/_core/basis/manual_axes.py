"""Values inside `shard_map`, by what they are along the axes of the mesh, and casts between these.

`dovetail._core.ir.manual_axis_type` says what there is. Casts compute nothing. A cast from one to
another has as its transpose the cast from the dual of the other to that of the one, varying being
its own dual, and unreduced that of reduced. What is invarying is its own dual too, and its
cotangent has to be added up, since each device has used the value: so the transpose of a cast from
it is a sum over the devices, and the transpose of such a sum is a cast. Operations whose operands
differ along axes are preceded by casts (`StageTrace`).

| cast | from | to | its transpose |
|---|---|---|---|
| `pvary` | invarying | varying | `psum_invariant` |
| `preduced` | invarying | reduced | `unreduced_psum` |
| `reduced_vary_cast` | reduced | varying | `vary_unreduced_cast` |
| `vary_unreduced_cast` | varying | unreduced | `reduced_vary_cast` |
| `unreduced_vary_cast` | unreduced | varying | `vary_reduced_cast` |
| `vary_reduced_cast` | varying | reduced | `unreduced_vary_cast` |

The last two are for residuals of derivatives alone, which are kept as parts of arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base.errors import ShardingTypeError
from dovetail._core.basis.structural import Linear, broadcast_batch, reduce_sum
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.manual_axis_type import ManualAxisType, invarying
from dovetail._core.trace.divisions import Labels, divided_alike
from dovetail._core.trace.forbidden_collectives import check_manual
from dovetail._core.trace.manual_axes import cast_refusal
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.state import state
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

AxisName = Hashable
Axes = tuple[AxisName, ...]
#: What values are cast to by operations, from the first to the last.
_ORDER: Final = ("invarying", "reduced", "varying")


class _OverAxes(Linear):
    """Linear, of one operand, over manual axes in the parameter `axes`.

    Members set `source`, which is what the operand is along them.
    """

    source: ClassVar[str]
    transposed: _OverAxes
    """The primitive that is the transpose; set below, since each is that of the other."""
    types_axes: ClassVar[bool] = True
    axis_parameter: ClassVar[str] = "axes"
    generates_nan: ClassVar[bool] = False

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        return [avals[0].manual_axis_type.become(self.source, params["axes"])], {}

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

    def transpose(self, cotangent: Any, x: Any, *, axes: Axes) -> Sequence[Any]:
        if type(cotangent) is Zero:
            return [cotangent]
        return [self.transposed.bind(cotangent, axes=axes)]


class _Cast(_OverAxes):
    """The value itself, which is of another kind along axes, `target`."""

    target: ClassVar[str]

    def abstract(self, x: Any, *, axes: Axes) -> Any:
        return x.update(manual_axis_type=x.manual_axis_type.become(self.target, axes))

    def reference(self, x: Any, *, axes: Axes) -> Any:
        return np.asarray(x)

    def over_batch(self, x: Any, dimension: int) -> tuple[Any, int | None]:
        return x, dimension

    def lower(self, context: Builder, x: Any, *, axes: Axes) -> Any:
        return x


class _ImpliedCast(_Cast):
    """A cast that operations do themselves where their operands need it."""

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        # A program may be retraced for operands that are cast already.
        own, axes = avals[0].manual_axis_type, params["axes"]
        missing, wanted = [], own
        for name in axes:
            kind = own.along(name)
            if kind == "unreduced" or _ORDER.index(kind) <= _ORDER.index(self.source):
                missing.append(name)
                wanted = wanted.become(self.source, (name,))
            elif _ORDER.index(kind) < _ORDER.index(self.target):
                wanted = wanted.become(self.target, (name,))
        return [wanted], ({} if len(missing) == len(axes) else {"axes": tuple(missing)})


class _Sum(_OverAxes):
    """The sum over the devices along axes, which is the same on all of them."""

    def abstract(self, x: Any, *, axes: Axes) -> Any:
        return x.update(manual_axis_type=x.manual_axis_type.without(axes))

    def over_batch(self, x: Any, dimension: int) -> tuple[Any, int | None]:
        return reduce_sum(x, (dimension,)), None

    def lower(self, context: Builder, x: Any, *, axes: Axes) -> Any:
        return context.all_reduce(x, context.avals_out[0], context.groups(axes), context.add)


class Pvary(_ImpliedCast):
    """A value that is the same on all devices as one that may vary."""

    name, source, target = "pvary", "invarying", "varying"

    def transpose(self, cotangent: Any, x: Any, *, axes: Axes) -> Sequence[Any]:
        if type(cotangent) is not Zero:
            check_manual("the transpose of pvary, a sum,", axes)
        return super().transpose(cotangent, x, axes=axes)


class Preduced(_ImpliedCast):
    """A value that is the same on all devices as one whose cotangent is not added up."""

    name, source, target = "preduced", "invarying", "reduced"


class ReducedVaryCast(_ImpliedCast):
    """A reduced value as one that may vary."""

    name, source, target = "reduced_vary_cast", "reduced", "varying"


class VaryUnreducedCast(_Cast):
    """What each device has as its part of a sum that is not added up."""

    name, source, target = "vary_unreduced_cast", "varying", "unreduced"


class UnreducedVaryCast(_Cast):
    """The parts of a sum as what each device has."""

    name, source, target = "unreduced_vary_cast", "unreduced", "varying"


class VaryReducedCast(_Cast):
    """What is the same on all devices, but not by its type, as a reduced value."""

    name, source, target = "vary_reduced_cast", "varying", "reduced"


def refuse_casts(name: str, aval: Any, axes: Iterable[AxisName]) -> None:
    """Refuse to take what is unreduced or reduced along axes as what each device has.

    Raises:
        ShardingTypeError: it is.
    """
    for axis in axes:
        kind = aval.manual_axis_type.along(axis)
        if kind in ("unreduced", "reduced"):
            advice = (
                f"add it up first, with lax.psum(x, {axis!r})"
                if kind == "unreduced"
                else f"cast it first, with lax.pcast(x, {axis!r}, to='varying')"
            )
            raise ShardingTypeError(
                f"{name} along {axis!r} takes what each device has, and got {aval.short_name()}, "
                f"which is {kind} along it; {advice}"
            )


class PsumInvariant(_Sum):
    """The sum of what each device has."""

    name, source = "psum_invariant", "varying"

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        refuse_casts("psum", avals[0], params["axes"])
        return super().with_axes(avals, params)


class UnreducedPsum(_Sum):
    """An unreduced value, added up."""

    name, source = "unreduced_psum", "unreduced"

    def lower(self, context: Builder, x: Any, *, axes: Axes) -> Any:
        if not context.handles(axes):
            return x  # the compiler adds up what has a type that is not unreduced
        return super().lower(context, x, axes=axes)


pvary_p: Final = Pvary()
preduced_p: Final = Preduced()
reduced_vary_cast_p: Final = ReducedVaryCast()
vary_unreduced_cast_p: Final = VaryUnreducedCast()
unreduced_vary_cast_p: Final = UnreducedVaryCast()
vary_reduced_cast_p: Final = VaryReducedCast()
psum_invariant_p: Final = PsumInvariant()
unreduced_psum_p: Final = UnreducedPsum()

for _one, _other in (
    (pvary_p, psum_invariant_p),
    (preduced_p, unreduced_psum_p),
    (reduced_vary_cast_p, vary_unreduced_cast_p),
    (unreduced_vary_cast_p, vary_reduced_cast_p),
):
    _one.transposed, _other.transposed = _other, _one


def is_done(primitive: Primitive, params: Mapping[str, Any]) -> bool:
    """Whether a primitive is a cast along no axes."""
    return isinstance(primitive, _Cast) and not params["axes"]


def in_order(axes: Iterable[AxisName]) -> Axes:
    """Axes in an order that does not change from run to run."""
    return tuple(sorted(axes, key=str))


def implied_casts(
    own: ManualAxisType, wanted: ManualAxisType
) -> Iterator[tuple[str, frozenset[AxisName]]]:
    """What `cast_to` does, as what values become and the axes along which they do."""
    for kind, axes in (
        ("reduced", wanted.reduced - own.reduced),
        ("varying", wanted.varying & own.reduced),
        ("varying", wanted.varying - own.varying - own.reduced),
    ):
        if axes:
            yield kind, axes


def cast_to(x: Any, wanted: ManualAxisType) -> Any:
    """`x`, cast to what it is wanted to be along manual axes.

    Raises:
        ShardingTypeError: that cannot be without a sum over devices.
    """
    aval = aval_of(x)
    own = aval.manual_axis_type
    if own is wanted:
        return x
    refusal = cast_refusal("an operation", aval, wanted)
    if refusal:
        raise refusal
    for kind, axes in implied_casts(own, wanted):
        if kind == "reduced":
            cast: _Cast = preduced_p
        else:
            cast = reduced_vary_cast_p if axes <= own.reduced else pvary_p
        x = cast.bind(x, axes=in_order(axes))
    return x


def vary_like(x: Any, aval: Any) -> Any:
    """`x`, cast to what a value of type `aval` is along manual axes, if it is not already."""
    wanted = aval.manual_axis_type
    if wanted is invarying:
        return x
    own = aval_of(x).manual_axis_type
    return x if own is wanted else cast_to(x, own | wanted)


def match_axes(cotangent: Any, aval: Any) -> Any:
    """A cotangent that a user's rule returns for a value of type `aval`.

    Of a value that is the same on all devices along an axis, each device has a cotangent of its
    own; theirs is the sum. That of a reduced value remains to be added up.
    """
    if cotangent is None or type(cotangent) is Zero:
        return cotangent
    wanted = aval.manual_axis_type.dual
    parts = aval_of(cotangent).vma & wanted.unreduced
    if parts:
        cotangent = vary_unreduced_cast_p.bind(cotangent, axes=in_order(parts))
    more = aval_of(cotangent).vma - wanted.varying
    if more:
        check_manual("a derivative that users define", more)
        cotangent = psum_invariant_p.bind(cotangent, axes=in_order(more))
    return vary_like(cotangent, aval.cotangent())
