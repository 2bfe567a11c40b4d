"""Shardings: where the data of an array lives.

A sharding subclasses jaxlib's own class, so the C++ jit recognises it, and is interned, so that
comparing two of them runs no Python. Every method that C++ or a user calls is defined here, because
another framework in the process may set its own methods on jaxlib's classes.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dovetail._core.base.bindings import JaxRuntimeError, _hlo, _jax
from dovetail._core.base.config import default_device
from dovetail._core.base.notebooks import boxed
from dovetail._core.base.tracebacks import boundary, bounded, hide_frames
from dovetail._core.ir.division import Division
from dovetail._core.ir.manual_axis_type import invarying
from dovetail._core.plugins.protocols import is_pjrt
from dovetail._core.runtime.devices import clients

__all__ = ["Sharding", "SingleDeviceSharding", "as_sharding", "default_sharding", "memory_kinds"]

Index = tuple[slice, ...]

_replicated: Final = _hlo.HloSharding.replicate()


@bounded
class Sharding(ABC):
    """Base of all shardings: how an array is laid out over devices."""

    device_set: frozenset[Any]
    """The devices that hold a part of the array."""

    _internal_device_list: Any

    @property
    def num_devices(self) -> int:
        """The number of devices that hold a part of the array."""
        return len(self.device_set)

    @property
    def addressable_devices(self) -> frozenset[Any]:
        """The devices among them that this process can address."""
        return frozenset(filter(clients.is_addressable, self.device_set))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can address all of the devices."""
        return len(self.addressable_devices) == len(self.device_set)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return bool(self._to_xla_hlo_sharding(1).is_replicated())

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        raise TypeError(f"{type(self).__name__} does not say how it is written for XLA")

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of each part of an array of the given shape."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Any, Index]:
        """Which part of an array of the given shape each device holds."""
        whole = (slice(None),) * len(global_shape)
        return dict.fromkeys(self.device_set, whole)

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> Mapping[Any, Index]:
        """Which part of an array of the given shape each device of this process holds."""
        indices = self.devices_indices_map(global_shape)
        return {device: indices[device] for device in self.addressable_devices}

    def is_equivalent_to(self, other: object, ndim: int) -> bool:
        """Whether arrays of the given rank are laid out identically under both shardings."""
        return self is other

    def _division(self, ndim: int) -> Division | None:
        """What the type of an array of the given rank says of it."""
        return None

    def _typed(self, aval: Any) -> Any:
        """The type of an array of this sharding, from its type but for that."""
        aval = aval.with_division(self._division(aval.ndim))
        if aval.manual_axis_type is not invarying:
            aval = aval.update(manual_axis_type=invarying)
        return aval

    # Names that libraries for checkpoints read.

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return tuple(self._internal_device_list)

    @property
    def _addressable_device_assignment(self) -> tuple[Any, ...]:
        return tuple(filter(clients.is_addressable, self._device_assignment))

    # What a program asks of the place where it runs: see `Placement`.

    @property
    def _replicated(self) -> Any:
        return self

    def _of_argument(self, number: int) -> Any:
        return self

    def _of_results(self, executable: Any, ranks: Sequence[int]) -> list[Any]:
        return [self] * len(ranks)

    def _typing(self, avals: Sequence[Any]) -> Any:
        return self


_Class = TypeVar("_Class", bound=type)


def sharding_class(*bases: type) -> Callable[[_Class], _Class]:
    """Make a class a subclass of others, the first of which comes first.

    jaxlib's classes do not allow a second base class.
    """

    def complete(cls: _Class) -> _Class:
        for base in bases:
            for name, value in vars(base).items():
                own = name in vars(cls) or name in ("__new__", "__init_subclass__")
                if not own and (isinstance(value, property) or callable(value)):
                    setattr(cls, name, value)
        bases[0].register(cls)  # type: ignore[attr-defined]
        return cls

    return complete


if TYPE_CHECKING:
    _SingleDevice = Sharding
else:
    _SingleDevice = _jax.SingleDeviceSharding


@sharding_class(Sharding)
class SingleDeviceSharding(_SingleDevice):
    """All of an array on one device. There is one object for each device and memory kind.

    Args:
        device: the device.
        memory_kind: the device's memory, such as ``"device"`` or ``"pinned_host"``; its default
            memory if None.

    Raises:
        TypeError: ``device`` is not a device.
        ValueError: the device has no memory of that kind.

    Example:
        >>> import dovetail
        >>> from dovetail.sharding import SingleDeviceSharding
        >>> device = dovetail.devices()[0]
        >>> SingleDeviceSharding(device) is SingleDeviceSharding(device)
        True
    """

    # C slots, so the C++ jit calls them without a Python frame.
    __hash__ = object.__hash__
    __eq__ = object.__eq__

    _device: Any
    _device_list: list[Any]
    _device_set: frozenset[Any]
    _internal_device_list: Any
    _memory_kind: str | None
    _plugin_client: Any
    """The client where the backend is written in Python; None for jaxlib's."""

    def __new__(cls, device: Any, memory_kind: str | None = None) -> SingleDeviceSharding:
        interned = _interned.get((device, memory_kind))
        if interned is None:
            try:
                interned = _intern(cls, device, memory_kind)
            except Exception as error:  # no boundary: most calls end one line above
                hide_frames(error)
                raise
        return interned

    def __init__(self, device: Any, memory_kind: str | None = None) -> None:
        pass  # __new__ returns an initialised object, perhaps an existing one

    @property
    def device_set(self) -> frozenset[Any]:  # type: ignore[override]
        """The device, alone in a set."""
        return self._device_set

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory that holds the data."""
        return self._memory_kind or memory_kinds(self._device)[0]

    @boundary
    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The sharding of the same device with another of its memories."""
        return SingleDeviceSharding(self._device, kind)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return _replicated

    def is_equivalent_to(self, other: object, ndim: int) -> bool:
        """Whether arrays of the given rank are laid out identically under both shardings."""
        if self is other or not isinstance(other, Sharding):
            return self is other
        return type(other) is not type(self) and other.is_equivalent_to(self, ndim)

    def __repr__(self) -> str:
        kind = self.memory_kind
        memory = "" if kind == memory_kinds(self._device)[0] else f", memory_kind={kind!r}"
        return f"SingleDeviceSharding({self._device!r}{memory})"

    def _repr_html_(self) -> str:
        return boxed(repr(self), "undivided")

    def __reduce__(self) -> tuple[Any, ...]:
        device = self._device
        clients.check_runs(device, "its shardings cannot be pickled", "pickle its number instead")
        return (_restore, (clients.platform_of(device), device.id, self.memory_kind))


_interned: Final[dict[tuple[Any, str | None], SingleDeviceSharding]] = {}
clients.on_clear(_interned.clear)


def _intern(cls: type, device: Any, memory_kind: str | None) -> SingleDeviceSharding:
    if not clients.is_device(device):
        raise TypeError(
            f"SingleDeviceSharding takes a device, such as dovetail.devices()[0]; got {device!r}"
        )
    kinds = memory_kinds(device)
    default = kinds[0]
    kind = default if memory_kind is None else memory_kind
    if kind not in kinds:
        raise ValueError(f"{device!r} has no memory of kind {kind!r}; it has {', '.join(kinds)}")
    interned: Any = _interned.get((device, kind))
    if interned is None:
        base: Any = _jax.SingleDeviceSharding
        interned = base.__new__(cls)
        plugin_client = None if is_pjrt(device.client) else device.client
        # C++ cannot look up the memories of devices that are not jaxlib's.
        base.__init__(interned, device, memory_kind=kind if plugin_client is None else None)
        interned._plugin_client = plugin_client
        interned._device_list = [device]
        interned._device_set = frozenset((device,))
        interned = _interned.setdefault((device, kind), interned)
    if kind == default:
        _interned[device, None] = interned
    sharding: SingleDeviceSharding = interned
    return sharding


def of_rows(place: Any) -> Any:
    """The sharding of the rows of an array that has a sharding."""
    return place if len(place._device_list) == 1 else place.update(spec=place.spec._of_rows())


def memory_kinds(device: Any) -> list[str]:
    """The kinds of memory that a device has, the default one first."""
    if not is_pjrt(device.client):
        return ["device"]
    try:
        default = device.default_memory().kind
    except JaxRuntimeError:  # a compile-only GPU
        return ["device"]
    kinds = [memory.kind for memory in device.addressable_memories()]
    return [default, *(kind for kind in kinds if kind != default)]


def _restore(platform: str, device_id: int, memory_kind: str | None) -> SingleDeviceSharding:
    """Find the device of a pickled sharding in this process."""
    for device in clients.devices(platform):
        if device.id == device_id:
            return SingleDeviceSharding(device, memory_kind)
    raise ValueError(f"the platform {platform!r} has no device {device_id} in this process")


# The sharding of the default device while the option `default_device` is unset.
_first: SingleDeviceSharding | None = None


def _forget_first() -> None:
    global _first
    _first = None


clients.on_clear(_forget_first)


def default_sharding() -> SingleDeviceSharding:
    """The sharding of uncommitted data."""
    if default_device.value is not None:
        return SingleDeviceSharding(clients.default_device())
    return first_sharding() if _first is None else _first


def first_sharding() -> SingleDeviceSharding:
    """The sharding of uncommitted data where nobody has asked for another device."""
    global _first
    if _first is None:
        _first = SingleDeviceSharding(clients.first_device())
    return _first


def as_sharding(place: Any, argument: str = "device") -> Any:
    """Convert a device or a sharding to a sharding.

    Args:
        place: a device or a sharding.
        argument: the argument's name, for the message.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(place, Sharding):
        place.device_set  # noqa: B018 - raises where the mesh is abstract
        return place
    if clients.is_device(place):
        return SingleDeviceSharding(place)
    hint = f"; write dovetail.devices({place!r})[0]" if isinstance(place, str) else ""
    raise ValueError(
        f"{argument} must be a device (from dovetail.devices()), a sharding or None; "
        f"got {place!r}{hint}"
    )
