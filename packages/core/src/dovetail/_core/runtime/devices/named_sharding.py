"""Shardings over meshes: the dimensions of an array divided over named axes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import config
from dovetail._core.base.bindings import _hlo, _jax
from dovetail._core.base.counting import counted
from dovetail._core.base.errors import ShapeError
from dovetail._core.base.notebooks import table
from dovetail._core.base.tracebacks import bounded
from dovetail._core.ir.abstract_mesh import AbstractMesh, AxisType
from dovetail._core.ir.avals import set_shown_sharding
from dovetail._core.ir.division import Division, division_of_spec
from dovetail._core.ir.manual_axis_type import ManualAxisType, invarying
from dovetail._core.ir.partition_spec import PartitionSpec, axes_of
from dovetail._core.plugins.protocols import is_pjrt
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.sharding import (
    Index,
    Sharding,
    default_sharding,
    memory_kinds,
    sharding_class,
)
from dovetail._core.trace.current_mesh import current_mesh, get_abstract_mesh

__all__ = ["NamedSharding", "default_place", "over_current_mesh"]

Shape = tuple[int, ...]


@bounded
class NamedSharding(Sharding):
    """An array whose dimensions are divided over the axes of a mesh.

    There is one object for equal shardings. Along axes that the specification does not name, all
    devices hold the same.

    Args:
        mesh: the devices and the names of their axes; an `AbstractMesh` where no array is placed,
            as in the types of arrays.
        spec: the axes over which each dimension is divided.
        memory_kind: the memory of the devices, such as ``"device"`` or ``"pinned_host"``; their
            default memory if None.

    Raises:
        TypeError: `mesh` is not a mesh, or `spec` not a `PartitionSpec`.
        ValueError: the specification names an axis that the mesh does not have, or one for two
            dimensions; or the devices have no memory of that kind.

    Example:
        >>> from dovetail.sharding import Mesh, NamedSharding, PartitionSpec as P
        >>> mesh = Mesh(dt.devices()[:1], "data")
        >>> sharding = NamedSharding(mesh, P("data"))
        >>> sharding
        NamedSharding(mesh=Mesh('data': 1, axis_types=(Auto,)), spec=P('data'))
        >>> sharding.shard_shape((8, 2)), sharding is NamedSharding(mesh, P("data"))
        ((8, 2), True)
    """

    mesh: Mesh | AbstractMesh
    """The devices and the names of their axes."""
    spec: PartitionSpec
    """The axes over which each dimension is divided."""
    _memory_kind: str | None

    def __new__(
        cls, mesh: Mesh | AbstractMesh, spec: PartitionSpec, memory_kind: str | None = None
    ) -> NamedSharding:
        _check(mesh, spec)
        key = (mesh, spec, memory_kind)
        found = _interned.get(key)
        if found is None:
            found = _interned.setdefault(key, _made(mesh, spec, memory_kind))
        return found

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory that holds the data; None for an abstract mesh that does not say."""
        return self._memory_kind

    @property
    def replicated_axes(self) -> frozenset[Hashable]:
        """The axes along which all devices hold the same."""
        named = {axis for entry in self.spec for axis in axes_of(entry)}
        return frozenset(self.mesh.axis_names) - named - self.spec.unreduced

    def update(self, **changes: Any) -> NamedSharding:
        """The same sharding but for `mesh`, `spec` or `memory_kind`, as they are given.

        Raises:
            TypeError: another name is given.
        """
        fields: dict[str, Any] = {
            "mesh": self.mesh,
            "spec": self.spec,
            "memory_kind": self._memory_kind,
        }
        unknown = changes.keys() - fields.keys()
        if unknown:
            raise TypeError(
                f"NamedSharding.update takes mesh, spec and memory_kind, not {min(unknown)!r}"
            )
        fields |= changes
        return NamedSharding(fields["mesh"], fields["spec"], fields["memory_kind"])

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same sharding in another memory of the devices."""
        return NamedSharding(self.mesh, self.spec, kind)

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        """Raise unless an array of this shape has a dimension for each entry.

        Raises:
            ValueError: it has fewer.
        """
        if len(self.spec) > len(aval_shape):
            hint = "; a scalar goes with PartitionSpec()" if not aval_shape else ""
            raise ShapeError(
                f"{self.spec} has entries for {counted(len(self.spec), 'dimension')}, and an "
                f"array of shape {tuple(aval_shape)} has {len(aval_shape)}{hint}"
            )

    def shard_shape(self, global_shape: Shape) -> Shape:
        """The shape of each part of an array of the given shape.

        Raises:
            ValueError: a dimension cannot be divided evenly, or there are fewer than entries.
        """
        parts = self._parts(global_shape)
        return tuple(n // count for n, count in zip(global_shape, parts, strict=True))

    def _parts(self, shape: Shape) -> Shape:
        """Into how many parts each dimension is divided."""
        self.check_compatible_aval(shape)
        if self.spec.unreduced:
            raise NotImplementedError(
                f"{self.spec} says that each device holds a part of a sum that has not been added "
                "up, so that there is nothing to be read, placed or divided. It is added up by "
                "dovetail.reshard(x, PartitionSpec()), or by lax.psum inside shard_map, and made "
                "there by lax.pcast(x, axis, to='unreduced')"
            )
        sizes = self.mesh.shape
        entries = (*self.spec, *(None,) * (len(shape) - len(self.spec)))
        parts = tuple(math.prod(sizes[axis] for axis in axes_of(entry)) for entry in entries)
        for number, (n, count) in enumerate(zip(shape, parts, strict=True)):
            if n % count:
                axes = ", ".join(f"{axis!r} of {sizes[axis]}" for axis in axes_of(entries[number]))
                more = "s" if len(axes_of(entries[number])) > 1 else ""
                raise ShapeError(
                    f"dimension {number} of an array of shape {tuple(shape)} cannot be divided "
                    f"evenly over the ax{'e' if more else 'i'}s {axes} of {self.mesh}: {n} is no "
                    f"multiple of {count}. Pad it to {-(-n // count) * count}, or leave the "
                    f"dimension whole: its entry in {self.spec} would be None"
                )
        return parts

    def is_equivalent_to(self, other: object, ndim: int) -> bool:
        """Whether arrays of the given rank are laid out identically under both shardings."""
        if self is other:
            return True
        if not isinstance(other, Sharding) or self.memory_kind != getattr(
            other, "memory_kind", None
        ):
            return False
        ours, theirs = (_devices_in_order(sharding) for sharding in (self, other))
        if ours != theirs:
            return False
        return len(ours) == 1 or bool(
            self._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)
        )

    def _division(self, ndim: int) -> Division | None:
        return _explicit_division(self, ndim)

    def _typed(self, aval: Any) -> Any:
        aval, spec = Sharding._typed(self, aval), self.spec
        if not spec.unreduced and not spec.reduced:
            return aval
        sums = ManualAxisType(
            unreduced=spec.unreduced, reduced=spec.reduced, unreduced_kind=spec.unreduced_kind
        )
        return aval.update(manual_axis_type=sums)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return hlo_sharding(self.mesh.shape_tuple, self.spec, num_dimensions)

    def __repr__(self) -> str:
        kind = ""
        if isinstance(self.mesh, Mesh) and self._memory_kind != memory_kinds(self.mesh._flat[0])[0]:
            kind = f", memory_kind={self._memory_kind!r}"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"

    def _repr_html_(self) -> str:
        parts = [(str(n), str(part)) for n, part in enumerate(self.spec)]
        return table([("dimension", "divided along"), *parts], ("right", "left"), str(self.mesh))

    def __reduce__(self) -> tuple[Any, ...]:
        return (NamedSharding, (self.mesh, self.spec, self._memory_kind))


_interned: Final[dict[Any, NamedSharding]] = {}
clients.on_clear(_interned.clear)


@lru_cache(maxsize=4096)
def _explicit_division(sharding: NamedSharding, ndim: int) -> Division | None:
    return division_of_spec(sharding.mesh.abstract_mesh, sharding.spec, ndim)


def _shown(aval: Any) -> Any:
    """How the type of an array is divided, as users see it."""
    divided, sums = aval.division, aval.manual_axis_type
    mesh = get_abstract_mesh() if divided is None else divided.mesh
    spec = PartitionSpec(*[None] * aval.ndim) if divided is None else divided.spec
    if sums is not invarying:
        explicit = mesh.explicit_axes
        spec = spec.update(
            unreduced=sums.unreduced.intersection(explicit),
            reduced=sums.reduced.intersection(explicit),
        )
    return NamedSharding(mesh, spec)


set_shown_sharding(_shown)


def default_place() -> tuple[Any, bool]:
    """Where data and programs go that are told of no devices, and whether they are committed there.

    That is each device of the mesh that `dovetail.set_mesh` has set, or the default device.
    """
    mesh = config.default_mesh.value
    if mesh is None or not _can_hold(mesh):
        return default_sharding(), False
    return NamedSharding(mesh, PartitionSpec()), True


@lru_cache(maxsize=256)
def _can_hold(mesh: Mesh) -> bool:
    """Whether arrays can lie on a mesh: its devices are there, and are jaxlib's."""
    first = mesh._flat[0]
    return is_pjrt(first.client) and not clients.is_compile_only(first)


clients.on_clear(_can_hold.cache_clear)


def over_current_mesh(place: Any, what: str) -> Any:
    """The sharding over the current mesh that a bare specification stands for.

    Args:
        place: the specification, or a sharding over the axes of the current mesh without its
            devices; anything else is returned unchanged.
        what: a phrase for it, for messages.

    Raises:
        ValueError: there is no current mesh, or it lacks an axis.
    """
    if isinstance(place, NamedSharding):
        current = current_mesh()
        without_devices = isinstance(place.mesh, AbstractMesh)
        if without_devices and isinstance(current, Mesh) and current.abstract_mesh == place.mesh:
            return NamedSharding(current, place.spec, memory_kind=place.memory_kind)
        return place
    if not isinstance(place, PartitionSpec):
        return place
    mesh = current_mesh()
    if mesh is None:
        raise ValueError(
            f"{what} is {place}, which says nothing of devices, and there is no current mesh: set "
            "one with dovetail.set_mesh(mesh), or write NamedSharding(mesh, spec)"
        )
    return NamedSharding(mesh, place)


def _check(mesh: Any, spec: Any) -> None:
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(f"NamedSharding: mesh must be a Mesh or an AbstractMesh, got {mesh!r}")
    if not isinstance(spec, PartitionSpec):
        known = spec if isinstance(spec, tuple) else (spec,)
        raise TypeError(
            f"NamedSharding: spec must be a PartitionSpec, got {spec!r}; write "
            f"PartitionSpec({', '.join(map(repr, known))})"
        )
    named = [axis for entry in spec for axis in axes_of(entry)]
    for axis in (*named, *spec.unreduced, *spec.reduced):
        if axis not in mesh.axis_names:
            raise ValueError(
                f"NamedSharding: {spec} names the axis {axis!r}, which {mesh} does not have"
            )
    twice = [axis for number, axis in enumerate(named) if axis in named[:number]]
    if twice:
        raise ValueError(
            f"NamedSharding: {spec} divides two dimensions over the axis {twice[0]!r}; an axis "
            "goes with one"
        )
    for name, axes in (("unreduced", spec.unreduced), ("reduced", spec.reduced)):
        types = mesh.axis_types
        others = [a for a, t in zip(mesh.axis_names, types, strict=True) if t is AxisType.Auto]
        if not axes.isdisjoint(others):
            axis = min(axes.intersection(others), key=repr)
            raise ValueError(
                f"NamedSharding: {spec} has the axis {axis!r} in {name}, and it is of the type "
                f"Auto in {mesh}; only types of arrays, along Explicit axes, say such things"
            )


def _made(mesh: Mesh | AbstractMesh, spec: PartitionSpec, memory_kind: str | None) -> Any:
    if isinstance(mesh, AbstractMesh):
        sharding: Any = object.__new__(_Abstract)
        sharding.mesh, sharding.spec, sharding._memory_kind = mesh, spec, memory_kind
        return sharding
    if mesh.empty:
        raise ValueError("NamedSharding: the mesh has no devices")
    first = mesh._flat[0]
    if not is_pjrt(first.client):
        raise ValueError(
            f"NamedSharding: the platform {clients.platform_of(first)!r} is written in Python, and "
            "arrays lie on one of its devices; write SingleDeviceSharding(device)"
        )
    kinds = memory_kinds(first)
    kind = kinds[0] if memory_kind is None else memory_kind
    if kind not in kinds:
        raise ValueError(f"{first!r} has no memory of kind {kind!r}; it has {', '.join(kinds)}")
    if memory_kind is None:
        return NamedSharding(mesh, spec, kind)
    base: Any = _jax.GSPMDSharding
    sharding = base.__new__(_OnDevices)
    # C++ asks for the sharding of a rank; the one that is given here counts the devices alone.
    base.__init__(sharding, _jax.DeviceList(mesh._flat), _hlo.HloSharding.replicate(), kind)
    sharding.mesh, sharding.spec = mesh, spec
    sharding._plugin_client = None
    sharding._device = first
    sharding._device_list = list(mesh._flat)
    sharding._device_set = frozenset(mesh._flat)
    return sharding


class _Abstract(NamedSharding):
    """A sharding over an abstract mesh."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    @property
    def device_set(self) -> frozenset[Any]:  # type: ignore[override]
        """There is none.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"{self} has no devices: its mesh is abstract")

    def devices_indices_map(self, global_shape: Shape) -> Mapping[Any, Index]:
        return dict.fromkeys(self.device_set, ())  # raises


if TYPE_CHECKING:
    _GSPMD = NamedSharding
else:
    _GSPMD = _jax.GSPMDSharding


@sharding_class(NamedSharding, Sharding)
class _OnDevices(_GSPMD):
    """A sharding over devices, in jaxlib's class."""

    # C slots, so that the C++ jit calls them without a Python frame.
    __hash__ = object.__hash__
    __eq__ = object.__eq__

    _device: Any
    _device_list: list[Any]
    _device_set: frozenset[Any]
    _internal_device_list: Any
    _plugin_client: None

    @property
    def device_set(self) -> frozenset[Any]:  # type: ignore[override]
        """The devices that hold a part of the array."""
        return self._device_set

    def devices_indices_map(self, global_shape: Shape) -> Mapping[Any, Index]:
        """Which part of an array of the given shape each device holds."""
        return dict(zip(self._device_list, self._indices(tuple(global_shape)), strict=True))

    def _indices(self, shape: Shape) -> tuple[Index, ...]:
        """The parts of the devices, in their order."""
        parts = self._parts(shape)
        return part_indices(self.mesh.shape_tuple, self.spec, shape, parts)


_OnDevices.__name__ = _OnDevices.__qualname__ = "NamedSharding"
_Abstract.__name__ = _Abstract.__qualname__ = "NamedSharding"


def _devices_in_order(sharding: Any) -> tuple[Any, ...]:
    mesh = getattr(sharding, "mesh", None)
    if isinstance(mesh, AbstractMesh):
        return (mesh,)
    return tuple(sharding._device_list)


@lru_cache(maxsize=4096)
def part_indices(
    axes: tuple[tuple[Hashable, int], ...], spec: PartitionSpec, shape: Shape, parts: Shape
) -> tuple[Index, ...]:
    """The part of an array that each device of a mesh holds, in the order of the devices.

    Args:
        axes: names and sizes of the axes of the mesh.
        spec: the axes that each dimension is divided over.
        shape: the shape of the array.
        parts: into how many parts each dimension is divided.
    """
    sizes = [size for _, size in axes]
    coordinates = np.indices(sizes).reshape(len(sizes), -1)
    place = {name: coordinates[number] for number, (name, _) in enumerate(axes)}
    size = dict(axes)
    columns: list[Any] = []
    for number, (n, count) in enumerate(zip(shape, parts, strict=True)):
        if count == 1:
            columns.append([slice(None)] * coordinates.shape[1])
            continue
        position: Any = 0
        for axis in axes_of(spec[number]):
            position = position * size[axis] + place[axis]
        step = n // count
        columns.append([slice(int(p) * step, (int(p) + 1) * step) for p in position])
    if not columns:
        return ((),) * coordinates.shape[1]
    return tuple(zip(*columns, strict=True))


@lru_cache(maxsize=4096)
def hlo_sharding(axes: tuple[tuple[Hashable, int], ...], spec: PartitionSpec, ndim: int) -> Any:
    """XLA's form of a sharding: a tiling of the devices.

    Args:
        axes: names and sizes of the axes of the mesh.
        spec: the axes that each dimension is divided over.
        ndim: the rank of the array.
    """
    size = dict(axes)
    order = [name for name, _ in axes]
    used = [axis for entry in spec for axis in axes_of(entry)]
    unreduced = [name for name in order if name in spec.unreduced]
    rest = [name for name in order if name not in used and name not in unreduced]
    tiles = [math.prod(size[axis] for axis in axes_of(entry)) for entry in spec]
    tiles += [1] * (ndim - len(tiles))
    kinds = _hlo.OpSharding.Type
    subgroups = [
        (kind, math.prod(size[axis] for axis in names))
        for kind, names in ((kinds.UNREDUCED, unreduced), (kinds.REPLICATED, rest))
    ]
    subgroups = [(kind, count) for kind, count in subgroups if count > 1]
    if all(count == 1 for count in tiles) and not any(k is kinds.UNREDUCED for k, _ in subgroups):
        return _hlo.HloSharding.replicate()
    return _hlo.HloSharding.iota_tile(
        (*tiles, *(count for _, count in subgroups)),
        reshape_dims=[size[name] for name in order],
        transpose_perm=[order.index(name) for name in (*used, *unreduced, *rest)],
        subgroup_types=[kind for kind, _ in subgroups],
    )
