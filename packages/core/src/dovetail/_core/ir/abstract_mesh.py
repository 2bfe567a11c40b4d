"""Meshes without devices: names, sizes and types of axes."""

from __future__ import annotations

import enum
import math
import operator
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, final

from dovetail._core.base.counting import counted
from dovetail._core.base.records import record
from dovetail._core.base.tracebacks import bounded

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "MeshAxes",
    "checked_names",
    "checked_sizes",
    "checked_types",
]

AxisName = Hashable


class AxisType(enum.Enum):
    """Who decides how arrays are divided along an axis of a mesh.

    `Auto`: the compiler. `Explicit`: the types of arrays say it. `Manual`: the program handles the
    part of one device.

    Example:
        >>> from dovetail.sharding import AxisType
        >>> list(AxisType)
        [Auto, Explicit, Manual]
    """

    Auto = 1
    Explicit = 2
    Manual = 3

    def __repr__(self) -> str:
        return self.name


class MeshAxes:
    """What meshes with and without devices have in common."""

    axis_sizes: tuple[int, ...]
    """The number of devices along each axis."""
    axis_names: tuple[AxisName, ...]
    """The names of the axes."""
    axis_types: tuple[AxisType, ...]
    """Who decides how arrays are divided along each axis."""

    @property
    def shape(self) -> OrderedDict[AxisName, int]:
        """The number of devices along each axis, by its name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[AxisName, int], ...]:
        """Pairs of the name of an axis and the number of devices along it."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The number of devices; 0 for a mesh without axes."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether there are no axes."""
        return self.size == 0

    def _of_type(self, axis_type: AxisType) -> tuple[AxisName, ...]:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(name for name, own in pairs if own is axis_type)

    @property
    def auto_axes(self) -> tuple[AxisName, ...]:
        """The names of the axes of the type `Auto`."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[AxisName, ...]:
        """The names of the axes of the type `Explicit`."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[AxisName, ...]:
        """The names of the axes of the type `Manual`."""
        return self._of_type(AxisType.Manual)

    def _all_are(self, *axis_types: AxisType) -> bool:
        return bool(self.axis_types) and all(own in axis_types for own in self.axis_types)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes, and all are of the type `Auto`."""
        return self._all_are(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes, and all are of the type `Explicit`."""
        return self._all_are(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes, and all are of the type `Manual`."""
        return self._all_are(AxisType.Manual)

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """Whether there are axes, and the compiler decides about none of them."""
        return self._all_are(AxisType.Explicit, AxisType.Manual)

    def _described(self) -> str:
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"{axes or '()'}, axis_types={self.axis_types}"


@record
class AbstractDevice:
    """What is known of the devices of a mesh before there are any.

    Attributes:
        device_kind: the kind of the devices, such as ``"TPU v5 lite"``.
        num_cores: how many cores each of them has; None if that is unknown.
        platform: their platform.

    Example:
        >>> from dovetail.sharding import AbstractDevice
        >>> AbstractDevice("TPU v5 lite", 1, "tpu").num_cores
        1
    """

    device_kind: str
    num_cores: int | None
    platform: str


@bounded
@final
class AbstractMesh(MeshAxes):
    """Named axes of devices without the devices: to trace and to describe programs.

    Args:
        axis_sizes: the number of devices along each axis.
        axis_names: the names of the axes.
        axis_types: who decides how arrays are divided along each axis, or along all; `Explicit` if
            None.
        abstract_device: what is known of the devices; None if that is nothing.

    Raises:
        TypeError: a size is not an integer, or a type is not an `AxisType`.
        ValueError: there is not one name, size and type for each axis, a size is not positive, or
            a name stands for two axes.

    Example:
        >>> from dovetail.sharding import AbstractMesh
        >>> mesh = AbstractMesh((4, 2), ("data", "model"))
        >>> mesh.shape["data"], mesh.size
        (4, 8)
        >>> mesh
        AbstractMesh('data': 4, 'model': 2, axis_types=(Explicit, Explicit))
    """

    __slots__ = ("_hash", "abstract_device", "axis_names", "axis_sizes", "axis_types")

    abstract_device: AbstractDevice | None
    """What is known of the devices."""

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: str | Sequence[AxisName],
        axis_types: AxisType | Sequence[AxisType] | None = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> None:
        self.axis_sizes = checked_sizes("AbstractMesh", axis_sizes)
        self.axis_names = checked_names("AbstractMesh", axis_names, len(self.axis_sizes))
        if isinstance(axis_types, AxisType):
            axis_types = (axis_types,) * len(self.axis_sizes)
        self.axis_types = checked_types(
            "AbstractMesh", axis_types, len(self.axis_sizes), AxisType.Explicit
        )
        self.abstract_device = abstract_device
        self._hash = hash((self.shape_tuple, self.axis_types, abstract_device))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AbstractMesh):
            return NotImplemented
        return (
            self.axis_sizes == other.axis_sizes
            and self.axis_names == other.axis_names
            and self.axis_types == other.axis_types
            and self.abstract_device == other.abstract_device
        )

    def __hash__(self) -> int:
        return self._hash

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def update(
        self,
        axis_sizes: Sequence[int] | None = None,
        axis_names: str | Sequence[AxisName] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> AbstractMesh:
        """The same mesh but for what is given."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=self.abstract_device,
        )

    def update_axis_types(self, name_to_type: Mapping[AxisName, AxisType]) -> AbstractMesh:
        """The same mesh with other types of some of its axes, by their names.

        Raises:
            ValueError: there is no axis of a name.
        """
        unknown = [name for name in name_to_type if name not in self.axis_names]
        if unknown:
            raise ValueError(
                f"AbstractMesh: there is no axis {unknown[0]!r}; the axes are {self.axis_names}"
            )
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=[name_to_type.get(name, own) for name, own in pairs])

    def __repr__(self) -> str:
        known = self.abstract_device
        device = "" if known is None else f", abstract_device={known}"
        return f"AbstractMesh({self._described()}{device})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            _restored,
            (self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device),
        )


def _restored(sizes: Any, names: Any, types: Any, device: Any) -> AbstractMesh:
    return AbstractMesh(sizes, names, types, abstract_device=device)


def checked_sizes(what: str, sizes: Any) -> tuple[int, ...]:
    """Sizes of axes.

    Raises:
        TypeError: they are no sequence of integers.
        ValueError: one is below 1.
    """
    try:
        known = tuple(map(operator.index, sizes))
    except TypeError:
        raise TypeError(
            f"{what}: sizes of axes are integers, in a sequence such as (4, 2); got {sizes!r}"
        ) from None
    if min(known, default=1) < 1:
        raise ValueError(f"{what}: there is at least one device along an axis, got {known}")
    return known


def checked_names(what: str, names: Any, count: int) -> tuple[AxisName, ...]:
    """Names of axes, of which a single one may be given as it is.

    Raises:
        TypeError: they are no sequence.
        ValueError: there are fewer or more than axes, or one stands for two.
    """
    try:
        known: tuple[AxisName, ...] = (names,) if isinstance(names, str) else tuple(names)
    except TypeError:
        raise TypeError(
            f"{what}: the names of axes are a sequence, such as ('data', 'model'); got {names!r}"
        ) from None
    if len(known) != count:
        raise ValueError(
            f"{what}: got {counted(len(known), 'name')} for {counted(count, 'axis', 'axes')}: "
            f"{known}; give one for each"
        )
    twice = [name for number, name in enumerate(known) if name in known[:number]]
    if twice:
        raise ValueError(f"{what}: the name {twice[0]!r} stands for two axes: {known}")
    if None in known:
        raise ValueError(f"{what}: None is no name of an axis, got {known}")
    return known


def checked_types(what: str, types: Any, count: int, default: AxisType) -> tuple[AxisType, ...]:
    """Types of axes.

    Raises:
        TypeError: one is not an `AxisType`.
        ValueError: there are fewer or more than axes.
    """
    if types is None:
        return (default,) * count
    try:
        known: tuple[AxisType, ...] = (types,) if isinstance(types, AxisType) else tuple(types)
    except TypeError:
        raise TypeError(f"{what}: types of axes are of the class AxisType, got {types!r}") from None
    wrong = [one for one in known if not isinstance(one, AxisType)]
    if wrong:
        raise TypeError(f"{what}: types of axes are of the class AxisType, got {wrong[0]!r}")
    if len(known) != count:
        raise ValueError(
            f"{what}: got {counted(len(known), 'type')} for {counted(count, 'axis', 'axes')}: "
            f"{known}; give one for each"
        )
    return known
