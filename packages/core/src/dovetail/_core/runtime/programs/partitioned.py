"""Runs handwritten StableHLO modules on several devices at once.

Collective operations have no primitives yet. The conformance kit tests the communication between a
backend's devices with such modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dovetail._core.base.bindings import xla_client
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.plugins.hookspecs import CompileRequest
from dovetail._core.plugins.manager import manager
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.host import numpy_aval
from dovetail._core.runtime.devices import clients, process_ends
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding
from dovetail._core.runtime.devices.sharding import SingleDeviceSharding
from dovetail._core.runtime.programs.compilation import compile_options

__all__ = ["run_partitioned"]

NDArray = np.ndarray[Any, Any]


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
    rows = NamedSharding(Mesh(devices, "d"), PartitionSpec("d"))
    placed = [buffers.put(argument, numpy_aval(argument), rows, True) for argument in arguments]
    results = executable.execute_sharded(placed).disassemble_into_single_device_arrays()
    return [
        [_read(part, aval, device) for part, device in zip(result, devices, strict=True)]
        for result, aval in zip(results, parts, strict=True)
    ]


def _read(buffer: Any, aval: Any, device: Any) -> NDArray:
    """The value of one device's shard of a result."""
    return buffers.read(buffers.rewrap(buffer, aval, SingleDeviceSharding(device), True))
