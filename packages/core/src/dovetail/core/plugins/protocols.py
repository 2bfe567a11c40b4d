"""What the runtime asks of a backend's objects, as structural types.

A backend whose client comes out of a PJRT library (`jaxlib.xla_client`) satisfies these without
writing a line. A backend that is not PJRT implements them itself: nothing here is inherited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Device(Protocol):
    """One unit of a platform that holds data and runs programs."""

    @property
    def id(self) -> int:
        """Number of the device, unique in its platform over all processes."""

    @property
    def process_index(self) -> int:
        """Number of the process that the device belongs to."""

    @property
    def device_kind(self) -> str:
        """The vendor's name of the model, such as `"NVIDIA H200"` or `"cpu"`."""

    @property
    def client(self) -> Any:
        """The `Client` that owns the device."""

    def memory_stats(self) -> Mapping[str, int] | None:
        """Bytes in use and limits, or None where the backend does not count them."""


@runtime_checkable
class Executable(Protocol):
    """A compiled program, loaded on its devices."""

    def execute_sharded(self, arguments: Sequence[Any], with_tokens: bool = False) -> Any:
        """Start the program on one buffer object per argument, and return without waiting.

        Args:
            arguments: one buffer object for each parameter that the program kept.
            with_tokens: whether the result also carries a token that is ready when it is.

        Returns:
            An object with `consume_with_handlers(handlers)`: one result per handler.
        """

    def serialize(self) -> bytes:
        """The program as bytes that `Client.deserialize_executable` of the same build reads."""

    def cost_analysis(self) -> Mapping[str, float]:
        """Counted operations and bytes, by the backend's own names."""

    def get_compiled_memory_stats(self) -> Any:
        """Bytes for arguments, results, temporaries and code, as attributes."""


@runtime_checkable
class Client(Protocol):
    """The connection of one process to one platform."""

    @property
    def platform(self) -> str:
        """The name that the driver gives itself; core uses the entry point's name instead."""

    @property
    def platform_version(self) -> str:
        """Version text; part of the key of the persistent compilation cache."""

    def devices(self) -> Sequence[Device]:
        """Every device of the platform, those of other processes included, by increasing id."""

    def local_devices(self) -> Sequence[Device]:
        """The devices that this process can address."""

    def device_count(self) -> int:
        """How many devices `devices()` lists."""

    def process_index(self) -> int:
        """Number of this process among those that share the platform."""

    def compile_and_load(
        self,
        computation: bytes | str,
        executable_devices: Any,
        compile_options: Any,
        host_callbacks: Sequence[Callable[..., Any]] = (),
    ) -> Executable:
        """Compile one StableHLO module and load it on its devices.

        Args:
            computation: the module, as MLIR bytecode or MLIR text.
            executable_devices: the devices that the program spans, as a list of the client's own
                type (`jaxlib`'s `DeviceList` for PJRT).
            compile_options: options of the client's own type (`jaxlib`'s `CompileOptions`).
            host_callbacks: Python functions that the program may call, by index.
        """

    def deserialize_executable(
        self, serialized: bytes, executable_devices: Any, compile_options: Any
    ) -> Executable:
        """Load what `Executable.serialize` wrote; raises when the bytes are not its own."""


def missing_members(value: object, protocol: type) -> list[str]:
    """Public names of a protocol that an object does not have.

    Args:
        value: any object.
        protocol: one of the protocols of this module.

    Returns:
        The missing names, sorted; empty when `value` satisfies the protocol by name.
    """
    names = [name for name in vars(protocol) if not name.startswith("_")]
    return sorted(name for name in names if not hasattr(value, name))
