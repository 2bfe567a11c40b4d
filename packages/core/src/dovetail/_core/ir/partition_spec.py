"""Which axes of a mesh the dimensions of an array are divided over."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, ClassVar, Final, final, overload

from dovetail._core.base.tracebacks import bounded

__all__ = ["PartitionSpec", "Unconstrained", "UnreducedKind", "axes_of"]

AxisName = Hashable


@final
class Unconstrained:
    """The type of `PartitionSpec.UNCONSTRAINED`: the compiler chooses the axes of a dimension."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "_unconstrained"


_unconstrained: Final = Unconstrained()


class UnreducedKind(enum.Enum):
    """How what is not reduced yet is to be reduced.

    Example:
        >>> from dovetail.sharding import UnreducedKind
        >>> UnreducedKind.sum
        <UnreducedKind.sum: 1>
    """

    sum = 1
    max = 2
    min = 3


@bounded
@final
class PartitionSpec:
    """For each dimension of an array, the axes of a mesh that it is divided over.

    An entry is None where a dimension is not divided, the name of an axis, a tuple of names (it is
    divided over all of them, the first one most coarsely), or ``P.UNCONSTRAINED``, which leaves it
    to the compiler. Dimensions without an entry are not divided. `dovetail.P` is a short name.

    Args:
        *partitions: an entry for each of the first dimensions.
        unreduced: names of axes; the devices along them hold parts of a sum that has not been
            added up yet.
        reduced: names of axes over which a gradient will be such a sum.
        unreduced_kind: what is not reduced yet: a sum, which is the default where there are
            unreduced axes, a maximum or a minimum.

    Raises:
        TypeError: an entry is none of these, or a set of axes is not a set.
        ValueError: an axis is both in an entry and in a set, or in both sets.

    Differs:
        One entry is printed without a comma, as it is written, and what can be no name of an axis
        is refused here, not where the specification is used.

        >>> from dovetail.sharding import PartitionSpec as P
        >>> P("x"), P(None, ("x", "y"))
        (P('x'), P(None, ('x', 'y')))
        >>> P(("x", None))
        Traceback (most recent call last):
            ...
        TypeError: PartitionSpec: entry 0 is ('x', None), of which None is no name of an axis...

    Example:
        >>> from dovetail.sharding import PartitionSpec as P
        >>> spec = P("data", None)
        >>> len(spec), spec[0]
        (2, 'data')
        >>> spec == P("data"), P(("data",)) == P("data")
        (False, True)
    """

    __slots__ = ("_hash", "partitions", "reduced", "unreduced", "unreduced_kind")

    UNCONSTRAINED: ClassVar[Unconstrained] = _unconstrained

    partitions: tuple[Any, ...]
    """The entries."""
    unreduced: frozenset[AxisName]
    """The axes along which devices hold parts of a sum."""
    reduced: frozenset[AxisName]
    """The axes over which a gradient will be such a sum."""
    unreduced_kind: UnreducedKind | None
    """What is not reduced yet; None if there are no such axes."""

    def __init__(
        self,
        *partitions: Any,
        unreduced: frozenset[AxisName] | set[AxisName] = frozenset(),
        reduced: frozenset[AxisName] | set[AxisName] = frozenset(),
        unreduced_kind: UnreducedKind | None = None,
    ) -> None:
        self.partitions = tuple(_entry(i, entry) for i, entry in enumerate(partitions))
        self.unreduced = _axes("unreduced", unreduced)
        self.reduced = _axes("reduced", reduced)
        self.unreduced_kind = _kind(unreduced_kind, bool(self.unreduced))
        named = {axis for entry in self.partitions for axis in axes_of(entry)}
        for one, other, what in (
            (named, self.unreduced, "an entry and in unreduced"),
            (named, self.reduced, "an entry and in reduced"),
            (self.unreduced, self.reduced, "unreduced and in reduced"),
        ):
            if not other.isdisjoint(one):
                twice = ", ".join(sorted(map(repr, other.intersection(one))))
                raise ValueError(f"PartitionSpec: the axis {twice} is both in {what}")
        self._hash = hash((self.partitions, self.unreduced, self.reduced, self.unreduced_kind))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionSpec):
            return NotImplemented
        return (
            self.partitions == other.partitions
            and self.unreduced == other.unreduced
            and self.reduced == other.reduced
            and self.unreduced_kind is other.unreduced_kind
        )

    def __hash__(self) -> int:
        return self._hash

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.partitions)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self.partitions[index]

    def index(self, value: Any) -> int:
        """The number of the first entry that is this one."""
        return self.partitions.index(_entry(0, value))

    def count(self, value: Any) -> int:
        """How many entries are this one."""
        return self.partitions.count(_entry(0, value))

    def __add__(self, other: PartitionSpec | tuple[Any, ...]) -> PartitionSpec:
        if isinstance(other, tuple):
            other = PartitionSpec(*other)
        if not isinstance(other, PartitionSpec):
            return NotImplemented
        kinds = {self.unreduced_kind, other.unreduced_kind} - {None}
        if len(kinds) > 1:
            raise ValueError(f"PartitionSpec: {self} and {other} are unreduced in different ways")
        return PartitionSpec(
            *self.partitions,
            *other.partitions,
            unreduced=self.unreduced | other.unreduced,
            reduced=self.reduced | other.reduced,
            unreduced_kind=next(iter(kinds), None),
        )

    def __radd__(self, other: tuple[Any, ...]) -> PartitionSpec:
        return PartitionSpec(*other) + self if isinstance(other, tuple) else NotImplemented

    def update(
        self,
        partitions: Iterable[Any] | None = None,
        unreduced: frozenset[AxisName] | set[AxisName] | None = None,
        reduced: frozenset[AxisName] | set[AxisName] | None = None,
        unreduced_kind: UnreducedKind | None = None,
    ) -> PartitionSpec:
        """The same specification but for what is given."""
        kept = self.unreduced if unreduced is None else unreduced
        kind = self.unreduced_kind if kept else None
        return PartitionSpec(
            *(self.partitions if partitions is None else partitions),
            unreduced=kept,
            reduced=self.reduced if reduced is None else reduced,
            unreduced_kind=kind if unreduced_kind is None else unreduced_kind,
        )

    @property
    def dual(self) -> PartitionSpec:
        """The specification of a cotangent of what this one is of."""
        if not self.unreduced and not self.reduced:
            return self
        return PartitionSpec(*self.partitions, unreduced=self.reduced, reduced=self.unreduced)

    def _of_rows(self) -> PartitionSpec:
        """The specification without the first dimension."""
        return self.update(self.partitions[1:])

    def __repr__(self) -> str:
        parts = list(map(repr, self.partitions))
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                parts.append(f"{name}={{{', '.join(sorted(map(repr, axes)))}}}")
        if self.unreduced_kind not in (None, UnreducedKind.sum):
            parts.append(f"unreduced_kind={self.unreduced_kind}")
        return f"P({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            _restored,
            (self.partitions, self.unreduced, self.reduced, self.unreduced_kind),
        )


def _restored(partitions: Any, unreduced: Any, reduced: Any, kind: Any) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)


def axes_of(entry: Any) -> tuple[AxisName, ...]:
    """The axes that an entry of a `PartitionSpec` names."""
    if entry is None or entry is _unconstrained:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def _entry(number: int, entry: Any) -> Any:
    """An entry in the form in which entries are compared."""
    if entry is None or entry is _unconstrained:
        return entry
    if isinstance(entry, (tuple, list)):
        names = tuple(_name(number, entry, name) for name in entry)
        return names if len(names) > 1 else names[0] if names else None
    return _name(number, entry, entry)


def _name(number: int, entry: Any, name: Any) -> AxisName:
    unusable = name is None or name is _unconstrained or isinstance(name, (PartitionSpec, tuple))
    if unusable or getattr(type(name), "__hash__", None) is None:
        of_it = f", of which {name!r} is" if name is not entry else ", which is"
        raise TypeError(
            f"PartitionSpec: entry {number} is {entry!r}{of_it} no name of an axis; an entry is "
            "None, a name, a tuple of names or PartitionSpec.UNCONSTRAINED"
        )
    known: AxisName = name
    return known


def _axes(what: str, axes: Any) -> frozenset[AxisName]:
    if not isinstance(axes, (set, frozenset)):
        raise TypeError(f"PartitionSpec: {what} must be a set of names of axes, got {axes!r}")
    if None in axes:
        raise ValueError(f"PartitionSpec: {what} holds None, which is no name of an axis")
    return frozenset(axes)


def _kind(kind: Any, unreduced: bool) -> UnreducedKind | None:
    if kind is not None and not isinstance(kind, UnreducedKind):
        raise TypeError(f"PartitionSpec: unreduced_kind must be an UnreducedKind, got {kind!r}")
    if not unreduced:
        return None
    return UnreducedKind.sum if kind is None else kind
