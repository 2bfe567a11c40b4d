"""Functions of Python that run beside the devices: `jax.experimental.colocated_python`.

The processes of dovetail run where their devices are, so such a function runs in this process, on
arrays of its CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dovetail._core.base import pytree
from dovetail._core.runtime.arrays.array import Array
from dovetail._core.runtime.devices.clients import devices
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.trace.tracer import Tracer


def colocated_cpu_devices(devices_or_mesh: Iterable[Any] | Mesh) -> Any:
    """The CPU devices beside devices, or the mesh of those beside a mesh's.

    Args:
        devices_or_mesh: devices of this process, or a mesh of them.

    Raises:
        ValueError: there are fewer CPU devices.

    Example:
        >>> import dovetail as dt
        >>> colocated_cpu_devices(dt.devices("cpu")) == dt.devices("cpu")
        True
    """
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        beside = colocated_cpu_devices(mesh.devices.flat)
        shaped = np.asarray(beside, dtype=object).reshape(mesh.devices.shape)
        return Mesh(shaped, mesh.axis_names, axis_types=mesh.axis_types)
    given = list(devices_or_mesh)
    cpus = {device.id: device for device in devices("cpu")}
    numbers = {device: i for i, device in enumerate(devices(given[0].platform))} if given else {}
    beside = [d if d.platform == "cpu" else cpus.get(numbers[d]) for d in given]
    if None in beside:
        raise ValueError(
            f"there are {len(cpus)} CPU devices, and one is wanted beside each of {len(numbers)} "
            f"{given[0].platform} devices: set the option num_cpu_devices"
        )
    return beside


class ColocatedFunction:
    """A function that runs beside the devices of its arguments.

    Args:
        function: takes and returns trees of arrays.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def specialize(
        self,
        in_specs: Any = None,
        out_specs_fn: Callable[..., Any] | None = None,
        out_specs_treedef: Any = None,
        out_specs_leaves: Sequence[Any] | None = None,
        devices: Sequence[Any] | None = None,
    ) -> ColocatedFunction:
        """The same function, and what is known of its arguments and results beforehand.

        All arguments are accepted for JAX's sake, and have no effect.
        """
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function.

        Raises:
            TypeError: something is being traced.
            ValueError: an array is not on a CPU device.
        """
        for leaf in pytree.leaves((args, kwargs)):
            if isinstance(leaf, Tracer):
                raise TypeError(
                    f"{self._function.__qualname__} runs in Python, on arrays, and was called "
                    "within a transformation: use dovetail.pure_callback there"
                )
            if isinstance(leaf, Array) and any(d.platform != "cpu" for d in leaf.devices()):
                raise ValueError(
                    f"{self._function.__qualname__} runs beside the devices, on arrays on CPU "
                    f"devices, and got one on {leaf.devices()}: move it with device_put to "
                    "colocated_cpu_devices(...)"
                )
        return self._function(*args, **kwargs)


def colocated_python(fun: Callable[..., Any]) -> ColocatedFunction:
    """A function that runs beside the devices of its arguments.

    Args:
        fun: takes and returns trees of arrays.

    Example:
        >>> import dovetail.numpy as jnp
        >>> colocated_python(lambda x: x + 1)(jnp.float32(2.0))
        Array(3., dtype=float32)
    """
    return ColocatedFunction(fun)


def colocated_python_class(cls: type) -> type:
    """A class whose objects live beside the devices: the class itself."""
    return cls
