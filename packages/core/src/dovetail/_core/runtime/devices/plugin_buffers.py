"""Buffers and programs of backends written in Python.

Such a backend provides a `Buffer` for the elements of an array, and an `Executable` that takes and
returns buffers. The classes here wrap them in the interface of jaxlib's objects, so that an `Array`
cannot tell the difference. Calls of programs on such arrays always go through Python, since C++
does not support them.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.plugins.protocols import Executable, missing_members

__all__ = ["PluginBuffer", "PluginProgram", "live_plugin_buffers"]

# Threads create buffers and the collector drops them while another thread lists them. Each change
# of a set is a single call in C, and so is a copy, so they are atomic; a WeakSet's are in Python.
_live: Final[set[weakref.ref[PluginBuffer]]] = set()


class PluginBuffer:
    """The elements of an array on a device of a backend written in Python.

    Args:
        cell: a list with the backend's `Buffer`, or None once that is deleted or donated; all
            wrappers of the same buffer share one list.
        aval: the abstract value.
        sharding: where it is.
        committed: whether the data is committed to the device.
    """

    __slots__ = ("__weakref__", "_committed", "_npy_value", "_sharding", "aval", "cell")

    #: jaxlib's buffers record where they were created, if tracebacks are on.
    traceback: Final = None

    def __init__(self, cell: list[Any], aval: Any, sharding: Any, committed: bool) -> None:
        self.cell = cell
        self.aval = aval
        self._sharding = sharding
        self._committed = committed
        self._npy_value: np.ndarray[Any, Any] | None = None
        _live.add(weakref.ref(self, _live.discard))

    @property
    def data(self) -> Any:
        """The backend's buffer.

        Raises:
            JaxRuntimeError: it is deleted or donated, as with jaxlib's buffers.
        """
        if self.cell[0] is None:
            raise JaxRuntimeError("INVALID_ARGUMENT: the buffer has been deleted or donated")
        return self.cell[0]

    def platform(self) -> str:
        """The name of the platform."""
        return str(self._sharding._device.platform)

    def is_deleted(self) -> bool:
        """Whether the buffer is deleted or donated."""
        return self.cell[0] is None

    def delete(self) -> None:
        """Free the memory."""
        data = self.give()
        if data is not None:
            data.delete()

    def give(self) -> Any:
        """Return the backend's buffer and transfer its ownership to the caller."""
        data, self.cell[0], self._npy_value = self.cell[0], None, None
        return data

    def is_ready(self) -> bool:
        """Whether the elements are computed."""
        return bool(self.data.is_ready())

    def block_until_ready(self) -> PluginBuffer:
        """Wait until the elements are computed."""
        self.data.block_until_ready()
        return self

    def on_device_size_in_bytes(self) -> int:
        """The size in bytes."""
        return int(self.data.nbytes)

    def read(self) -> np.ndarray[Any, Any]:
        """The elements as a read-only NumPy array of the aval's shape and dtype.

        Raises:
            TypeError: the backend returned another shape or dtype.
        """
        value: np.ndarray[Any, Any] = np.asarray(self.data.to_numpy())
        aval = self.aval
        if value.shape != aval.shape or value.dtype != aval.dtype:
            raise TypeError(
                f"the backend of the platform {self.platform()!r} gave {value.dtype}"
                f"{list(value.shape)} for an array of {aval.dtype}{list(aval.shape)}: "
                "Buffer.to_numpy gives the elements in the shape and dtype that they were made in"
            )
        view = value.view()
        view.flags.writeable = False
        return view


def live_plugin_buffers(client: Any) -> list[PluginBuffer]:
    """The live buffers on a client's devices."""
    alive = [buffer for reference in list(_live) if (buffer := reference()) is not None]
    return [b for b in alive if not b.is_deleted() and b._sharding._device.client is client]


class _Results:
    """The results of a program, with jaxlib's interface."""

    __slots__ = ("cells",)

    def __init__(self, cells: Sequence[list[Any]]) -> None:
        self.cells = cells

    def consume_with_handlers(self, handlers: Sequence[Callable[[Any], Any]]) -> list[Any]:
        """The buffers that the handlers create from the results."""
        return [handle(cell) for handle, cell in zip(handlers, self.cells, strict=True)]


class PluginProgram:
    """A backend's executable, with the interface of jaxlib's.

    Args:
        executable: the backend's `Executable`.
        name: the program's name.
        platform: the platform's name.
        donated: indices of the donated arguments.
        results: the number of results.

    Raises:
        TypeError: `executable` is not an `Executable`.
    """

    __slots__ = ("donated", "executable", "name", "platform", "results")

    def __init__(
        self, executable: Any, name: str, platform: str, donated: Sequence[int], results: int
    ) -> None:
        missing = missing_members(executable, Executable)
        if missing:
            raise TypeError(
                f"the client of the platform {platform!r} compiled {name} to {executable!r}, which "
                f"is no Executable: it lacks {', '.join(missing)}"
            )
        self.executable = executable
        self.name = name
        self.platform = platform
        self.donated = frozenset(donated)
        self.results = results

    def execute_sharded(self, arguments: Sequence[PluginBuffer]) -> _Results:
        """Run the program.

        Raises:
            JaxRuntimeError: an argument is deleted.
            ValueError: a donated argument shares its memory with another argument.
            TypeError: the backend returned the wrong number of results.
        """
        data = [buffer.data for buffer in arguments]
        # Count the backend's buffers, since several of ours may share one. As with jaxlib, nothing
        # is donated before all checks have passed, so a refused call leaves the arrays intact.
        uses = Counter(map(id, data))
        if any(uses[id(data[number])] > 1 for number in self.donated):
            # jaxlib's wording, which `donating` recognises and explains.
            raise ValueError("a buffer was previously donated in the same call")
        for number in self.donated:
            arguments[number].give()
        cells = {
            id(argument): buffer.cell
            for argument, buffer in zip(data, arguments, strict=True)
            if not buffer.is_deleted()
        }
        results = list(self.executable.execute(data))
        if len(results) != self.results:
            raise TypeError(
                f"the program {self.name} of the platform {self.platform!r} has {self.results} "
                f"results, and Executable.execute gave {len(results)}"
            )
        # A result may be an argument or another result: they are then deleted together.
        return _Results([cells.setdefault(id(result), [result]) for result in results])

    def get_hlo_text(self) -> str:
        """The compiled program as text, in the backend's own format."""
        return str(self._optional("as_text"))

    def cost_analysis(self) -> Any:
        """Counted operations and bytes, by the backend's names."""
        return self._optional("cost_analysis")

    def get_compiled_memory_stats(self) -> Any:
        """Bytes for arguments, results and temporaries, as attributes."""
        return self._optional("memory_analysis")

    def serialize(self) -> bytes:
        """The program as bytes."""
        return bytes(self._optional("serialize"))

    def _optional(self, method: str) -> Any:
        function = getattr(self.executable, method, None)
        if function is None:
            raise NotImplementedError(
                f"compiled programs of the platform {self.platform!r} have no {method}(): its "
                "backend does not offer it"
            )
        return function()
