"""The mesh that is set for this thread, and meshes of the devices that there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dovetail._core.base import config
from dovetail._core.base.counting import counted
from dovetail._core.base.tracebacks import bounded
from dovetail._core.base.typing import DeviceLike
from dovetail._core.ir.abstract_mesh import (
    AbstractMesh,
    AxisType,
    checked_names,
    checked_sizes,
    checked_types,
)
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.device_meshes import create_device_mesh
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.sharding import SingleDeviceSharding
from dovetail._core.trace.current_mesh import current_mesh, mesh_scope
from dovetail._core.trace.state import evaluation_trace, state


@bounded
class set_mesh:
    """Set the current mesh of this thread, over which a bare `PartitionSpec` divides arrays.

    It takes effect at once. As a context manager it restores the mesh that was there before.

    Functions and operations run on the devices of the mesh, and arrays are made there, whole on
    each of them, unless arguments are on a mesh of the same devices, or the program says by itself
    where it runs. Arguments that are committed to other devices are an error. ``with mesh:`` and
    `dovetail.sharding.use_abstract_mesh` leave arrays on the default device.

    Args:
        mesh: the mesh; None for none.

    Raises:
        TypeError: it is not a mesh of devices.
        ValueError: a function is being traced.

    Example:
        >>> from dovetail.sharding import PartitionSpec as P
        >>> with dt.set_mesh(dt.make_mesh((1,), ("x",))):
        ...     print(dt.device_put(jnp.arange(4), P("x")).sharding.spec)
        P('x')
        >>> with dt.set_mesh(dt.make_mesh((1,), ("x",))):
        ...     print(jnp.zeros(4).sharding)
        NamedSharding(mesh=Mesh('x': 1, axis_types=(Explicit,)), spec=P())
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            hint = "; write dovetail.sharding.use_abstract_mesh" * isinstance(mesh, AbstractMesh)
            raise TypeError(f"set_mesh takes a Mesh of devices, got {mesh!r}{hint}")
        if state.trace is not evaluation_trace:
            raise ValueError(
                "set_mesh cannot be used inside of a function that is being traced: set the mesh "
                "around the call of the transformed function"
            )
        self.mesh = mesh
        self._before: Any = (config.current_mesh.get_local(), config.default_mesh.get_local())
        there = None if mesh is None or mesh.empty else mesh
        self._set(there, there)

    def __enter__(self) -> Mesh | None:
        return self.mesh

    def __exit__(self, *error: object) -> None:
        self._set(*self._before)

    @staticmethod
    def _set(current: Any, default: Any) -> None:
        config.current_mesh.set_local(current)
        config.default_mesh.set_local(default)


def use_abstract_mesh(mesh: AbstractMesh) -> mesh_scope:
    """A scope in which a mesh without devices is the current one, to trace programs for it.

    Args:
        mesh: the mesh.

    Returns:
        A context manager.

    Raises:
        TypeError: it is not an abstract mesh.

    Example:
        >>> from dovetail.sharding import AbstractMesh, use_abstract_mesh
        >>> with use_abstract_mesh(AbstractMesh((4,), ("x",))):
        ...     print(dt.sharding.get_abstract_mesh().shape["x"])
        4
    """
    if not isinstance(mesh, AbstractMesh):
        raise TypeError(
            f"use_abstract_mesh takes an AbstractMesh, got {mesh!r}; a Mesh has it as its "
            "attribute abstract_mesh"
        )
    return mesh_scope(None if mesh.empty else mesh)


def get_mesh() -> Mesh:
    """The current mesh of devices.

    Returns:
        The mesh; one without devices if there is none.

    Raises:
        ValueError: a function is being traced; `get_abstract_mesh` is what programs depend on.

    Example:
        >>> with dt.set_mesh(dt.make_mesh((1,), ("x",))):
        ...     print(dt.get_mesh().axis_names)
        ('x',)
    """
    if state.trace is not evaluation_trace:
        raise ValueError(
            "get_mesh cannot be used inside of a function that is being traced, since programs do "
            "not depend on devices: write dovetail.sharding.get_abstract_mesh()"
        )
    mesh = current_mesh()
    return mesh if isinstance(mesh, Mesh) else Mesh((), ())


def make_mesh(
    axis_sizes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of the devices that there are, in an order that suits their connections.

    Args:
        axis_sizes: the number of devices along each axis.
        axis_names: the names of the axes.
        axis_types: who decides how arrays are divided along each axis; `Explicit` by default.
        devices: the devices; the first of `dovetail.devices` that are needed by default.

    Returns:
        The mesh.

    Raises:
        TypeError: a size is not an integer, or a type not an `AxisType`.
        ValueError: there are fewer devices than are needed, or not one name and type for each axis.

    Example:
        >>> dt.make_mesh((1, 1), ("data", "model"))
        Mesh('data': 1, 'model': 1, axis_types=(Explicit, Explicit))
    """
    sizes = checked_sizes("make_mesh", axis_sizes)
    names = checked_names("make_mesh", axis_names, len(sizes))
    types = checked_types("make_mesh", axis_types, len(sizes), AxisType.Explicit)
    count = math.prod(sizes)
    known = list(clients.devices() if devices is None else devices)
    if len(known) < count or (devices is not None and len(known) != count):
        described = ", ".join(f"{name!r}: {n}" for name, n in zip(names, sizes, strict=True))
        have = "there are" if devices is None else "devices has"
        hint = ""
        if devices is None and clients.default_platform() == "cpu":
            hint = (
                "; set the option num_cpu_devices (DOVETAIL_NUM_CPU_DEVICES) before the first "
                f"computation to have {count} on this computer"
            )
        raise ValueError(
            f"make_mesh: a mesh of {described} takes {counted(count, 'device')}, and {have} "
            f"{len(known)}{hint}"
        )
    array = create_device_mesh(sizes, known[:count], allow_split_physical_axes=True)
    return Mesh(array, names, types)


def make_single_device_sharding(
    device: DeviceLike, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The sharding of an array that lies on one device.

    Args:
        device: the device.
        memory_kind: which of its memories; its default memory if None.

    Returns:
        The sharding.

    Example:
        >>> from dovetail.sharding import make_single_device_sharding
        >>> make_single_device_sharding(dt.devices()[0]).num_devices
        1
    """
    return SingleDeviceSharding(device, memory_kind)
