"""What core asks of the objects of a backend that is written in Python, as structural types.

A backend on a PJRT library needs none of this: its client, which `dovetail.extend.pjrt` makes, is
jaxlib's, and core talks to it in C++. A backend that has a runtime of its own implements these
protocols; nothing here is inherited.
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

    There is one object for each unit. Core compares devices by identity and keeps them in tables
    and sets, so that they must be hashable, as objects of plain classes are: a dataclass needs
    ``eq=False``.
    """

    @property
    def id(self) -> int:
        """Number of the device, unique in its platform over all processes."""

    @property
    def process_index(self) -> int:
        """Number of the process that the device belongs to."""

    @property
    def platform(self) -> str:
        """The platform's name."""

    @property
    def device_kind(self) -> str:
        """The vendor's name of the model, such as `"NVIDIA H200"` or `"cpu"`."""

    @property
    def client(self) -> Any:
        """The `Client` that owns the device."""

    def memory_stats(self) -> Mapping[str, int] | None:
        """Bytes in use and limits, by name; None where nothing is counted."""


@runtime_checkable
class Buffer(Protocol):
    """The elements of one array on one device, which never change.

    Their computation may still be running, or have failed.
    """

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes."""

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """Wait for the elements, and give them as a NumPy array that nobody will write to.

        Raises:
            Exception: what made their computation fail.
        """

    def is_ready(self) -> bool:
        """Whether the computation is over."""

    def block_until_ready(self) -> object:
        """Wait until the computation is over; raises what made it fail."""

    def delete(self) -> None:
        """Free the memory. Nothing is asked of the buffer afterwards."""


@runtime_checkable
class Executable(Protocol):
    """A compiled program, loaded on its device.

    It may also have methods ``as_text()``, ``cost_analysis()`` and ``memory_analysis()``, which
    `Compiled` offers under the same names, and ``serialize()``, which gives bytes.
    """

    def execute(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Run the program.

        It may return before the results are there, but not before the effects of the program
        (callbacks, printing) have happened.

        Args:
            arguments: one `Buffer` for each parameter of the program, on its device.

        Returns:
            One `Buffer` for each result. A result may be an argument that is not donated, or
            another result: such arrays are deleted together.

        Raises:
            Exception: what made the program fail; the user gets it as it is.
        """


@runtime_checkable
class Client(Protocol):
    """The connection of one process to one platform.

    Core compares clients by identity, hashes them and refers to them weakly, which objects of plain
    classes allow: a dataclass needs ``eq=False``, and one with slots ``weakref_slot=True``.
    """

    @property
    def platform_version(self) -> str:
        """Version text, for the doctor."""

    def devices(self) -> Sequence[Device]:
        """Every device of the platform, those of other processes included, by increasing id.

        They are the same objects each time.
        """

    def local_devices(self) -> Sequence[Device]:
        """The devices that this process can address."""

    def process_index(self) -> int:
        """Number of this process among those that share the platform."""

    def put(self, value: np.ndarray[Any, Any], device: Any) -> Buffer:
        """Copy a value of the host to a device.

        Args:
            value: a NumPy array in native byte order, of any strides. Its owner may write to it
                afterwards, so that its elements have to be taken before the method returns.
            device: one of `local_devices`.
        """

    def copy(self, buffer: Any, device: Any) -> Buffer:
        """The elements of a buffer in memory of their own, on any of this client's devices."""

    def compile(self, request: CompileRequest) -> Executable:
        """Compile a program and load it.

        Args:
            request: the program, where it runs, and options. ``request.jaxpr`` holds it where
                `BackendInfo.programs` is ``"jaxpr"``, ``request.module`` otherwise.

        Raises:
            Exception: why it cannot be compiled; the user gets it as it is.
        """


def is_pjrt(client: object) -> bool:
    """Whether a client is one of jaxlib's, on a PJRT library, and so needs no protocol."""
    return any(kind.__module__.partition(".")[0] == "jaxlib" for kind in type(client).__mro__)


def missing_members(value: object, protocol: type) -> list[str]:
    """Public names of a protocol that an object does not have.

    Args:
        value: any object.
        protocol: one of the protocols of this module.

    Returns:
        The missing names, sorted; empty when `value` satisfies the protocol by name.
    """
    # The class is asked first: a property may wait for a computation.
    kind = type(value)
    return [n for n in _members(protocol) if not hasattr(kind, n) and not hasattr(value, n)]


@cache
def _members(protocol: type) -> list[str]:
    """Public names of a protocol, sorted."""
    return sorted(name for name in vars(protocol) if not name.startswith("_"))
