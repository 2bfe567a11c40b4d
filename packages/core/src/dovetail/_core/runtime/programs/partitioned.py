"""Runs handwritten StableHLO modules on several devices at once.

The framework itself does not generate such programs yet. The conformance kit uses them to test the
communication between a backend's devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base.bindings import _jax, xla_client
from dovetail._core.plugins.hookspecs import CompileRequest
from dovetail._core.plugins.manager import manager
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.host import numpy_aval
from dovetail._core.runtime.devices import clients, process_ends
from dovetail._core.runtime.devices.sharding import SingleDeviceSharding
from dovetail._core.runtime.programs.compilation import compile_options

__all__ = ["run_partitioned"]

NDArray = np.ndarray[Any, Any]

_COPY: Final = xla_client.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL


def run_partitioned(
    module: str, devices: Sequence[Any], arguments: Sequence[NDArray], parts: Sequence[Any]
) -> list[list[NDArray]]:
    """Compile a module for several devices of one platform, and run it once.

    Args:
        module: MLIR text with as many partitions as there are devices; all its arguments are
            sharded along their first dimension.
        devices: the devices, all of this process.
        arguments: NumPy arrays whose first dimension is a multiple of the number of devices.
        parts: for each result, the aval of one device's shard.

    Returns:
        For each result of the module, the shard of each device.
    """
    process_ends.check()
    platform = clients.platform_of(devices[0])
    options, _ = compile_options(platform, devices)
    executable: Any = manager().compile(
        CompileRequest(
            platform=platform,
            client=devices[0].client,
            module=module,
            devices=xla_client.DeviceList(tuple(devices)),
            options=options,
            name="partitioned",
        )
    )
    placed = [_divided(argument, devices) for argument in arguments]
    results = executable.execute_sharded(placed).disassemble_into_single_device_arrays()
    return [
        [_read(part, aval, device) for part, device in zip(result, devices, strict=True)]
        for result, aval in zip(results, parts, strict=True)
    ]


class _Divided(_jax.GSPMDSharding):  # type: ignore[misc]
    """Sharding along the first dimension, with the Python methods that jaxlib calls."""

    memory_kind = None

    def __init__(self, devices: Sequence[Any], rank: int) -> None:
        op = xla_client.OpSharding()
        op.type = xla_client.OpSharding.Type.OTHER
        op.tile_assignment_dimensions = [len(devices)] + [1] * (rank - 1)
        op.tile_assignment_devices = list(range(len(devices)))
        self._assigned = tuple(devices)
        self._written = xla_client.HloSharding.from_proto(op)
        super().__init__(xla_client.DeviceList(self._assigned), self._written)

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return self._assigned

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return self._written


def _divided(argument: NDArray, devices: Sequence[Any]) -> Any:
    parts = [np.ascontiguousarray(part) for part in np.split(argument, len(devices))]
    sharding = _Divided(devices, argument.ndim)
    return _jax.batched_device_put(
        numpy_aval(argument), sharding, parts, list(devices), True, False, _COPY, True
    )


def _read(buffer: Any, aval: Any, device: Any) -> NDArray:
    """The value of one device's shard of a result."""
    return buffers.read(buffers.rewrap(buffer, aval, SingleDeviceSharding(device), True))
