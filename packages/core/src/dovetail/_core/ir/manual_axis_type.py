"""How a value differs from device to device along the axes of a mesh, as its type says.

Along each axis that `dovetail.shard_map` handles a value is one of four:

- invarying: the same on all devices, and so is its cotangent. Nothing is said of it.
- varying: each device has a value of its own.
- unreduced: each device has a part of a sum that has not been added up. What is linear may be
  computed from the parts.
- reduced: the same on all devices, while its cotangent is unreduced, and the reverse. So their sum
  is taken where the user says, and not where a reduced value is first used.

An operation whose operands are not all of one kind takes them as the last one of invarying,
reduced, varying that is among them. An unreduced value stays so.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final, final
from weakref import WeakValueDictionary

from dovetail._core.base.errors import ShardingTypeError
from dovetail._core.ir.partition_spec import UnreducedKind

__all__ = ["ManualAxisType", "invarying"]

AxisName = Hashable
_none: Final[frozenset[AxisName]] = frozenset()


@final
class ManualAxisType:
    """How a value inside `dovetail.shard_map` differs along the axes that it handles.

    There is one object for equal ones.

    Args:
        varying: the axes along which it may differ from device to device.
        unreduced: the axes along which it is still to be summed.
        reduced: the axes along which its cotangent is still to be summed.
        unreduced_kind: how it is to be reduced along the unreduced axes, by default a sum.

    Raises:
        TypeError: axes are not given as a set.
        ValueError: an axis is in two of the sets.

    Example:
        >>> from dovetail.sharding import ManualAxisType
        >>> ManualAxisType(varying=frozenset({"x"})).varying
        frozenset({'x'})
    """

    __slots__ = ("__weakref__", "reduced", "unreduced", "unreduced_kind", "varying")

    varying: frozenset[AxisName]
    unreduced: frozenset[AxisName]
    reduced: frozenset[AxisName]
    unreduced_kind: UnreducedKind | None

    def __new__(
        cls,
        *,
        varying: Iterable[AxisName] = _none,
        unreduced: Iterable[AxisName] = _none,
        reduced: Iterable[AxisName] = _none,
        unreduced_kind: UnreducedKind | None = None,
    ) -> ManualAxisType:
        known = {"varying": varying, "unreduced": unreduced, "reduced": reduced}
        for name, axes in known.items():
            if not isinstance(axes, (set, frozenset)):
                raise TypeError(
                    f"ManualAxisType: {name} is a set of names of axes, such as {{'x'}}; got "
                    f"{axes!r:.80}"
                )
        for one, other in (
            ("varying", "unreduced"),
            ("varying", "reduced"),
            ("unreduced", "reduced"),
        ):
            both = frozenset(known[one]).intersection(known[other])
            if both:
                raise ValueError(
                    f"ManualAxisType: {one} and {other} both have {sorted(both, key=str)}; a "
                    "value is one or the other along an axis"
                )
        if not unreduced:
            unreduced_kind = None
        elif unreduced_kind is None:
            unreduced_kind = UnreducedKind.sum
        return _made(frozenset(varying), frozenset(unreduced), frozenset(reduced), unreduced_kind)

    def update(
        self,
        *,
        varying: frozenset[AxisName] | None = None,
        unreduced: frozenset[AxisName] | None = None,
        reduced: frozenset[AxisName] | None = None,
    ) -> ManualAxisType:
        """The same but for what is given."""
        kept = self.unreduced if unreduced is None else unreduced
        return ManualAxisType(
            varying=self.varying if varying is None else varying,
            unreduced=kept,
            reduced=self.reduced if reduced is None else reduced,
            unreduced_kind=self.unreduced_kind if kept else None,
        )

    @property
    def dual(self) -> ManualAxisType:
        """The type of a cotangent of a value of this type."""
        if not self.unreduced and not self.reduced:
            return self
        return ManualAxisType(varying=self.varying, unreduced=self.reduced, reduced=self.unreduced)

    def without(self, axes: Iterable[AxisName]) -> ManualAxisType:
        """The type of what is the same on all devices along some axes."""
        if self is invarying:
            return self
        return self.update(
            varying=self.varying.difference(axes),
            unreduced=self.unreduced.difference(axes),
            reduced=self.reduced.difference(axes),
        )

    def become(self, kind: str, axes: Iterable[AxisName]) -> ManualAxisType:
        """The type of what is of some kind along some axes, whatever it was."""
        rest = self.without(axes)
        if kind == "invarying":
            return rest
        return rest.update(**{kind: getattr(rest, kind).union(axes)})

    def along(self, axis: AxisName) -> str:
        """Which of the four a value is along an axis."""
        for kind in ("varying", "unreduced", "reduced"):
            if axis in getattr(self, kind):
                return kind
        return "invarying"

    def __or__(self, other: ManualAxisType) -> ManualAxisType:
        """What operands of both types are taken as, and results are.

        Raises:
            ShardingTypeError: one varies along an axis, along which the other is unreduced.
        """
        if self is other or other is invarying:
            return self
        if self is invarying:
            return other
        varying = self.varying | other.varying
        unreduced = self.unreduced | other.unreduced
        for axis in varying & unreduced:
            raise ShardingTypeError(
                f"one value varies along {axis!r}, and another one is unreduced along it; add up "
                f"the latter with lax.psum(x, {axis!r}), or cast the former with lax.pcast(x, "
                f"{axis!r}, to='unreduced') if it is a part of a sum as well"
            )
        return ManualAxisType(
            varying=varying,
            unreduced=unreduced,
            reduced=(self.reduced | other.reduced) - varying - unreduced,
            unreduced_kind=self.unreduced_kind or other.unreduced_kind,
        )

    def shown(self) -> str:
        """What stands behind a type where it is printed, such as ``{V:x, U:y}``."""
        if self is invarying:
            return ""
        kinds = (("V", self.varying), ("U", self.unreduced), ("R", self.reduced))
        return "{" + ", ".join([f"{kind}:{_shown(axes)}" for kind, axes in kinds if axes]) + "}"

    def __repr__(self) -> str:
        return (
            f"ManualAxisType(varying={self.varying}, unreduced={self.unreduced}, "
            f"reduced={self.reduced}, unreduced_kind={self.unreduced_kind!s})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_made, (self.varying, self.unreduced, self.reduced, self.unreduced_kind))

    def __copy__(self) -> ManualAxisType:
        return self

    def __deepcopy__(self, memo: Any) -> ManualAxisType:
        return self


def _shown(axes: frozenset[AxisName]) -> str:
    names = sorted(map(str, axes))
    return names[0] if len(names) == 1 else f"({','.join(names)})"


_interned: Final[WeakValueDictionary[Any, ManualAxisType]] = WeakValueDictionary()


def _made(
    varying: frozenset[AxisName],
    unreduced: frozenset[AxisName],
    reduced: frozenset[AxisName],
    kind: UnreducedKind | None,
) -> ManualAxisType:
    key = (varying, unreduced, reduced, kind)
    found = _interned.get(key)
    if found is None:
        candidate = object.__new__(ManualAxisType)
        candidate.varying, candidate.unreduced, candidate.reduced = varying, unreduced, reduced
        candidate.unreduced_kind = kind
        found = _interned.setdefault(key, candidate)
    return found


invarying: Final = ManualAxisType()
"""The type of what is the same on all devices."""
