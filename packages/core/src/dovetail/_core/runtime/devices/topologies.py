"""Descriptions of hardware to compile for that need not be on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dovetail._core.plugins.manager import manager
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.device_meshes import create_device_mesh
from dovetail._core.runtime.devices.mesh import Mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]

Device = Any


class TopologyDescription:
    """Compile-only devices; they hold no data and run nothing.

    Attributes:
        devices: the devices, by increasing id.
        platform: the name of their platform.
        name: the requested name.
    """

    __slots__ = ("devices", "name", "platform")

    def __init__(self, devices: Sequence[Device], platform: str, name: str = "") -> None:
        self.devices: list[Device] = list(devices)
        self.platform = platform
        self.name = name

    def __repr__(self) -> str:
        kinds = ", ".join(sorted({str(device.device_kind) for device in self.devices}))
        return (
            f"TopologyDescription({self.name!r}, platform={self.platform!r}, "
            f"{len(self.devices)} of {kinds})"
        )


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Describe the devices of this process' platform, as `get_topology_desc` does others.

    Programs that are compiled for them can be run.

    Args:
        platform: the platform; by default the one that programs run on.

    Raises:
        BackendUnavailableError: the platform is not there.
        TypeError: `platform` is not a string.

    Example:
        >>> from dovetail.experimental import topologies
        >>> topologies.get_attached_topology().devices == dt.devices()
        True
    """
    if platform is not None and not isinstance(platform, str):
        raise TypeError(f"get_attached_topology: platform must be a string, got {platform!r}")
    own = manager().canonical(clients.default_platform() if platform is None else platform)
    return TopologyDescription(clients.devices(own), own)


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: str | Sequence[str],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh of all devices of a description, arranged by `mesh_utils.create_device_mesh`.

    Programs over it are compiled on a machine without them: give `ShapeDtypeStruct` shardings over
    the mesh. ``compile().report()`` then tells memory, communication and time.

    Args:
        topo: the devices.
        mesh_shape: the size of each axis of the mesh; those that communicate most come last.
        axis_names: the name of each axis.
        contiguous_submeshes: whether the devices of each process must be a block of the mesh.

    Raises:
        TypeError: `topo` is not a description, or `mesh_shape` not a sequence of integers.
        ValueError: the number of devices is not the product of `mesh_shape`, there is not one name
            for each axis, or `contiguous_submeshes` cannot be had.
        NotImplementedError: the axes of the mesh are not products of axes of a torus of TPUs.

    Example:
        >>> from dovetail.experimental import topologies
        >>> here = topologies.get_attached_topology()
        >>> topologies.make_mesh(here, (len(here.devices), 1), ("data", "model")).axis_names
        ('data', 'model')
        >>> pod = topologies.get_topology_desc("v5e:16x16", platform="tpu")  # doctest: +SKIP
        >>> topologies.make_mesh(pod, (16, 16), ("data", "model"))  # doctest: +SKIP
        Mesh('data': 16, 'model': 16, axis_types=(Auto, Auto))
    """
    if not isinstance(topo, TopologyDescription):
        raise TypeError(
            "make_mesh: topo is a description of devices, such as "
            f"get_topology_desc('v5e:4x4', platform='tpu'); got {topo!r}"
        )
    devices = create_device_mesh(
        mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes
    )
    return Mesh(devices, axis_names)


# One object for each description, so that programs for its devices are compiled once, and arguments
# whose devices come from separate calls can be combined.
_known: Final[dict[Any, TopologyDescription]] = {}
clients.on_clear(_known.clear)


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **options: Any
) -> TopologyDescription:
    """Describe hardware to compile for, which need not be on this machine.

    Use one of its devices in place of a real one: in ``jit(f, device=...)``, in the ``sharding`` of
    a `ShapeDtypeStruct`, or as ``default_device``. The result of ``jit(f).lower(...).compile()``
    then shows the optimised program, its costs, and the memory that it needs; on TPUs, a program
    that needs more memory than the device has is an error. The result cannot be called. For
    programs over several devices, make a mesh of them with `make_mesh`.

    The same arguments give the same description object if they are hashable; lists and dicts are
    compared by their elements.

    Args:
        topology_name: the backend's name for the hardware: ``"v5e:2x2"`` on ``"tpu"``, the name
            of a GPU on ``"cuda"``; by default the backend chooses.
        platform: the platform, by default the one that programs run on here. Its backend must be
            installed, with its compiler library (libtpu, the PJRT plug-in for CUDA).
        **options: further options of the backend, such as ``num_slices`` on ``"tpu"``.

    Returns:
        The description; its ``devices`` are the ones to compile for.

    Raises:
        BackendUnavailableError: the platform's backend is not installed, lacks its library, or
            does not compile ahead of time.
        ValueError: there is no hardware of that name.
        TypeError: an argument has the wrong type, or there is no such option.

    Differs:
        Hardware that is not there is described by a backend's hook, without a client of that
        platform. A backend that has no such hook is an error that says so.

        >>> from dovetail.experimental import topologies
        >>> try:
        ...     topologies.get_topology_desc("anything", "cpu")
        ... except RuntimeError as error:
        ...     print("compiles nothing ahead of time" in str(error))
        True

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail.experimental import topologies
        >>> from dovetail.sharding import SingleDeviceSharding
        >>> chips = topologies.get_topology_desc("v5e:2x2", platform="tpu")  # doctest: +SKIP
        >>> place = SingleDeviceSharding(chips.devices[0])  # doctest: +SKIP
        >>> x = dt.ShapeDtypeStruct((1024, 1024), "bfloat16", sharding=place)  # doctest: +SKIP
        >>> compiled = dt.jit(jnp.matmul).lower(x, x).compile()  # doctest: +SKIP
        >>> compiled.cost_analysis()["flops"]  # doctest: +SKIP
        2147483648.0
        >>> compiled.memory_analysis().argument_size_in_bytes  # doctest: +SKIP
        4194304
    """
    for argument, value in (("topology_name", topology_name), ("platform", platform)):
        if not isinstance(value, str) and not (value is None and argument == "platform"):
            raise TypeError(f"get_topology_desc: {argument} must be a string, got {value!r}")
    own = manager().canonical(clients.default_platform() if platform is None else platform)
    try:
        key = (own, topology_name, _frozen(options))
        cached = _known.get(key)
    except TypeError:  # an option of an unhashable, backend-specific type
        return _described(own, topology_name, options)
    if cached is None:
        # If two threads get here at once, both return the first one's description.
        cached = _known.setdefault(key, _described(own, topology_name, options))
    return cached


def _described(platform: str, name: str, options: Mapping[str, Any]) -> TopologyDescription:
    devices = manager().topology(platform, name, options)
    text = repr(name) if name else f"that the platform {platform!r} describes by default"
    for client in {id(device.client): device.client for device in devices}.values():
        clients.add_topology(client, platform, text)
    return TopologyDescription(devices, platform, name)


def _frozen(value: Any) -> Any:
    """Convert a value to a key: lists and dicts are not hashable, and ``1`` equals ``True``.

    Raises:
        TypeError: it contains an unhashable value.
    """
    if isinstance(value, Mapping):
        return (dict, frozenset((_frozen(name), _frozen(item)) for name, item in value.items()))
    if isinstance(value, (list, tuple)):
        return (list, tuple(map(_frozen, value)))
    return (type(value), value)
