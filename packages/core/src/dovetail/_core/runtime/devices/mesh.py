"""Meshes: devices in an array with named axes."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from dovetail._core.base import config
from dovetail._core.base.notebooks import boxed
from dovetail._core.base.tracebacks import bounded
from dovetail._core.ir.abstract_mesh import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    MeshAxes,
    checked_names,
    checked_types,
)
from dovetail._core.runtime.devices import clients

__all__ = ["Mesh"]

AxisName = Hashable


@bounded
@final
class Mesh(MeshAxes):
    """Devices in an array with named axes. There is one object for equal meshes.

    Args:
        devices: the devices, an array with a dimension for each axis, or a sequence for one axis.
        axis_names: the name of each axis.
        axis_types: who decides how arrays are divided along each axis; `Auto`, the compiler, if
            None.

    Raises:
        TypeError: what is given is not a device, or a type is not an `AxisType`.
        ValueError: there is not one name and type for each axis, a name stands for two axes, a
            device occurs twice, or devices belong to several platforms.

    Differs:
        A device that occurs twice, and devices of several platforms, are refused here. JAX finds
        out when a program is compiled. Meshes can be pickled: they are found again by the numbers
        of their devices.

        >>> from dovetail.sharding import Mesh
        >>> device = dt.devices()[0]
        >>> Mesh([device, device], "x")
        Traceback (most recent call last):
            ...
        ValueError: Mesh: a device occurs twice: ...

    Example:
        >>> import numpy as np
        >>> from dovetail.sharding import Mesh
        >>> mesh = Mesh(np.array(dt.devices()[:1]).reshape(1, 1), ("data", "model"))
        >>> mesh
        Mesh('data': 1, 'model': 1, axis_types=(Auto, Auto))
        >>> mesh.shape["data"], mesh.size
        (1, 1)
    """

    devices: np.ndarray[Any, Any]
    """The devices, an array that cannot be written to."""

    def __new__(
        cls,
        devices: Any,
        axis_names: str | Sequence[AxisName],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Mesh:
        array = np.asarray(devices, object)
        if not array.size:
            array, axis_names, axis_types = np.empty((0,), object), ("",), None
            array = array.reshape(0)
        flat = tuple(array.flat)
        names = checked_names("Mesh", axis_names, array.ndim)
        types = checked_types("Mesh", axis_types, array.ndim, AxisType.Auto)
        key = (flat, array.shape, names, types)
        try:
            found = _interned.get(key)
        except TypeError:  # something that cannot be hashed
            found = None
        if found is None:
            _check_devices(flat)
            found = _interned.setdefault(key, _made(cls, array, names, types))
        return found

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The numbers of the devices, in an array of the same shape."""
        ids = [device.id for device in self.devices.flat]
        return np.array(ids, int).reshape(self.devices.shape)

    @cached_property
    def _flat(self) -> tuple[Any, ...]:
        return tuple(self.devices.flat)

    @property
    def is_scalar(self) -> bool:
        """Whether there are no axes, and one device."""
        return not self.axis_names and self.devices.size == 1

    @property
    def size(self) -> int:
        """The number of devices."""
        return self.devices.size

    @property
    def local_devices(self) -> list[Any]:
        """The devices that this process can address."""
        return [device for device in self._flat if clients.is_addressable(device)]

    @property
    def is_multi_process(self) -> bool:
        """Whether some of the devices belong to other processes."""
        return len(self.local_devices) != self.size

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh that this process can address.

        Raises:
            ValueError: its devices are no block of the mesh.
        """
        if not self.is_multi_process:
            return self
        local = np.array([clients.is_addressable(device) for device in self._flat]).reshape(
            self.devices.shape
        )
        block = tuple(slice(int(i.min()), int(i.max()) + 1) for i in np.nonzero(local))
        if not local.any() or not local[block].all():
            raise ValueError(f"{self}: the devices of this process are no block of the mesh")
        return Mesh(self.devices[block], self.axis_names, self.axis_types)

    @cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices, of which the kind is kept if they have one in common."""
        kinds = {(device.device_kind, clients.platform_of(device)) for device in self._flat}
        device = None
        if len(kinds) == 1:
            kind, platform = kinds.pop()
            cores = getattr(self._flat[0], "num_cores", None)
            device = AbstractDevice(kind, cores, platform)
        return AbstractMesh(
            self.axis_sizes, self.axis_names, self.axis_types, abstract_device=device
        )

    def __enter__(self) -> Mesh:
        """Make it the current mesh, over which a bare `PartitionSpec` divides arrays."""
        if config.disallow_mesh_context_manager.value:
            raise RuntimeError(
                "with mesh: is refused by the option disallow_mesh_context_manager; write "
                "with dovetail.set_mesh(mesh):"
            )
        _around.meshes.append(config.current_mesh.get_local())
        config.current_mesh.set_local(None if self.empty else self)
        return self

    def __exit__(self, *error: object) -> None:
        config.current_mesh.set_local(_around.meshes.pop())

    def update(
        self,
        devices: Any = None,
        axis_names: str | Sequence[AxisName] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Mesh:
        """The same mesh but for what is given."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __repr__(self) -> str:
        return f"Mesh({self._described()})"

    def _repr_html_(self) -> str:
        return boxed(repr(self), "" if self.empty else str(self.device_ids))

    def __reduce__(self) -> tuple[Any, ...]:
        if self.empty:
            return (Mesh, ((), ()))
        for device in self._flat:
            clients.check_runs(device, "its meshes cannot be pickled", "pickle its number instead")
        platform = clients.platform_of(self._flat[0])
        return (_restored, (platform, self.device_ids, self.axis_names, self.axis_types))


class _Around(threading.local):
    """The meshes that were current around those that this thread has entered."""

    def __init__(self) -> None:
        self.meshes: list[Any] = []


_around: Final = _Around()

_interned: Final[dict[Any, Mesh]] = {}
clients.on_clear(_interned.clear)


def _made(cls: type[Mesh], array: Any, names: Any, types: Any) -> Mesh:
    mesh = object.__new__(cls)
    if not array.size:
        array, names, types = array.reshape(0), (), ()
    mesh.devices = array.copy()
    mesh.devices.flags.writeable = False
    mesh.axis_sizes = array.shape if array.size else ()
    mesh.axis_names, mesh.axis_types = names, types
    return mesh


def _check_devices(devices: tuple[Any, ...]) -> None:
    for device in devices:
        if not clients.is_device(device):
            raise TypeError(
                f"Mesh takes devices, such as dovetail.devices(), in an array; got {device!r}"
            )
    twice = [device for number, device in enumerate(devices) if device in devices[:number]]
    if twice:
        raise ValueError(f"Mesh: a device occurs twice: {twice[0]!r}")
    owners = {id(device.client): device for device in devices}
    if len(owners) > 1:
        texts = " and ".join(map(clients.describe_device, owners.values()))
        raise ValueError(
            f"Mesh: the devices of a mesh belong to one platform; {texts} are of several"
        )


def _restored(platform: str, ids: Any, names: Any, types: Any) -> Mesh:
    """Find the devices of a pickled mesh in this process."""
    known = {device.id: device for device in clients.devices(platform)}
    missing = [int(number) for number in ids.flat if number not in known]
    if missing:
        raise ValueError(
            f"the platform {platform!r} has no device {missing[0]} in this process, which a "
            "pickled mesh has"
        )
    devices = np.array([known[number] for number in ids.flat], object).reshape(ids.shape)
    return Mesh(devices, names, types)
