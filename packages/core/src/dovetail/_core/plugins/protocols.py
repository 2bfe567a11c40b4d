"""Protocols for the objects of a backend written in Python.

A backend on a PJRT library needs none of them: `dovetail.extend.pjrt` creates its client, which is
jaxlib's, and core talks to it in C++. A backend with a runtime of its own implements these
protocols structurally; it inherits from none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np

    from dovetail._core.plugins.hookspecs import CompileRequest


@runtime_checkable
class Device(Protocol):
    """One unit of a platform that holds data and runs programs.

    There is one object for each unit. Core compares devices by identity and stores them in tables
    and sets, so they must be hashable. Objects of plain classes are; a dataclass needs
    ``eq=False``.
    """

    @property
    def id(self) -> int:
        """Number of the device, unique within its platform across all processes."""

    @property
    def process_index(self) -> int:
        """Number of the process that the device belongs to."""

    @property
    def platform(self) -> str:
        """The platform's name."""

    @property
    def device_kind(self) -> str:
        """The vendor's name for the model, such as `"NVIDIA H200"` or `"cpu"`."""

    @property
    def client(self) -> Any:
        """The `Client` that owns the device."""

    def memory_stats(self) -> Mapping[str, int] | None:
        """Bytes in use and limits, by name; None if the device does not count them."""


@runtime_checkable
class Buffer(Protocol):
    """The immutable elements of one array on one device.

    Their computation may still be running, or may have failed.
    """

    @property
    def nbytes(self) -> int:
        """Size in bytes."""

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """Wait for the elements and return them as a NumPy array that nobody will write to.

        Raises:
            Exception: the error that made their computation fail.
        """

    def is_ready(self) -> bool:
        """Whether the computation has finished."""

    def block_until_ready(self) -> object:
        """Wait until the computation has finished; raise its error if it failed."""

    def delete(self) -> None:
        """Free the memory. The buffer is not used afterwards."""


@runtime_checkable
class Executable(Protocol):
    """A compiled program, loaded on its device.

    It may also have methods ``as_text()``, ``cost_analysis()`` and ``memory_analysis()``, which
    `Compiled` offers under the same names, and ``serialize()``, which returns bytes.
    """

    def execute(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Run the program.

        It may return before the results are ready, but not before the effects of the program
        (callbacks, printing) have happened.

        Args:
            arguments: one `Buffer` for each parameter of the program, on its device.

        Returns:
            One `Buffer` for each result. A result may be the same object as an argument that is
            not donated, or as another result: such arrays are deleted together.

        Raises:
            Exception: the error that made the program fail; it reaches the user unchanged.
        """


@runtime_checkable
class Client(Protocol):
    """The connection of one process to one platform.

    Core compares clients by identity, hashes them and takes weak references. Objects of plain
    classes allow this; a dataclass needs ``eq=False``, and one with slots ``weakref_slot=True``.
    """

    @property
    def platform_version(self) -> str:
        """Version text, for the doctor."""

    def devices(self) -> Sequence[Device]:
        """Every device of the platform, including other processes' devices, by increasing id.

        Every call returns the same objects.
        """

    def local_devices(self) -> Sequence[Device]:
        """The devices that this process can address."""

    def process_index(self) -> int:
        """Number of this process among those that share the platform."""

    def put(self, value: np.ndarray[Any, Any], device: Any) -> Buffer:
        """Copy a host value to a device.

        Args:
            value: a NumPy array in native byte order, with any strides. Its owner may write to it
                afterwards, so the elements must be copied before the method returns.
            device: one of `local_devices`.
        """

    def copy(self, buffer: Any, device: Any) -> Buffer:
        """Copy the elements of a buffer to new memory on any of this client's devices."""

    def compile(self, request: CompileRequest) -> Executable:
        """Compile a program and load it.

        Args:
            request: the program, where it runs, and options. The program is ``request.jaxpr`` if
                `BackendInfo.programs` is ``"jaxpr"``, otherwise ``request.module``.

        Raises:
            Exception: why it cannot be compiled; it reaches the user unchanged.
        """


def is_pjrt(client: object) -> bool:
    """Whether a client is jaxlib's, on a PJRT library, and so needs no protocol."""
    return any(kind.__module__.partition(".")[0] == "jaxlib" for kind in type(client).__mro__)


def missing_members(value: object, protocol: type) -> list[str]:
    """The public members of a protocol that an object lacks.

    Args:
        value: any object.
        protocol: one of the protocols of this module.

    Returns:
        The missing names, sorted; empty if `value` has them all.
    """
    # The class is checked first: a property may wait for a computation.
    kind = type(value)
    return [n for n in _members(protocol) if not hasattr(kind, n) and not hasattr(value, n)]


@cache
def _members(protocol: type) -> list[str]:
    """Public names of a protocol, sorted."""
    return sorted(name for name in vars(protocol) if not name.startswith("_"))
