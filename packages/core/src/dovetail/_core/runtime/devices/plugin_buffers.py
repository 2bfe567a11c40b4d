"""Buffers and programs of backends that are written in Python.

Such a backend gives a `Buffer` for the elements of an array, and an `Executable` that takes and
gives them. The classes here surround these with what the rest of the runtime asks of jaxlib's
objects, by the same names, so that an `Array` does not know the difference. Calls of programs with
such arrays always go through Python: C++ does not know them.
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

# Threads make buffers, and the collector drops them, while another thread looks at all. Each change
# here is one call in C, and so is a copy, so that none comes in between; a WeakSet's are in Python.
_live: Final[set[weakref.ref[PluginBuffer]]] = set()


class PluginBuffer:
    """The elements of an array on a device of a backend that is written in Python.

    Args:
        cell: a list that holds the backend's `Buffer`, and None once that is gone; one for all that
            share the buffer.
        aval: the abstract value.
        sharding: where it is.
        committed: whether the data sticks to the device.
    """

    __slots__ = ("__weakref__", "_committed", "_npy_value", "_sharding", "aval", "cell")

    #: jaxlib's buffers say where they were made, if tracebacks are on.
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
            JaxRuntimeError: it is gone; jaxlib's buffers say so in the same way.
        """
        if self.cell[0] is None:
            raise JaxRuntimeError("INVALID_ARGUMENT: the buffer has been deleted or donated")
        return self.cell[0]

    def platform(self) -> str:
        """The name of the platform."""
        return str(self._sharding._device.platform)

    def is_deleted(self) -> bool:
        """Whether the elements are gone."""
        return self.cell[0] is None

    def delete(self) -> None:
        """Free the memory."""
        data = self.give()
        if data is not None:
            data.delete()

    def give(self) -> Any:
        """The backend's buffer; what it holds belongs to the caller from now on."""
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
        """The number of bytes that the elements take."""
        return int(self.data.nbytes)

    def read(self) -> np.ndarray[Any, Any]:
        """The elements as a NumPy array of the aval's shape and dtype, which cannot be written to.

        Raises:
            TypeError: the backend gave something else.
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
    """The buffers on a client's devices that are alive."""
    found = [buffer for reference in list(_live) if (buffer := reference()) is not None]
    return [b for b in found if not b.is_deleted() and b._sharding._device.client is client]


class _Results:
    """The results of a program, under the interface of jaxlib's."""

    __slots__ = ("cells",)

    def __init__(self, cells: Sequence[list[Any]]) -> None:
        self.cells = cells

    def consume_with_handlers(self, handlers: Sequence[Callable[[Any], Any]]) -> list[Any]:
        """Each result, as its handler makes a buffer of it."""
        return [handle(cell) for handle, cell in zip(handlers, self.cells, strict=True)]


class PluginProgram:
    """A backend's executable, under the interface of jaxlib's.

    Args:
        executable: the backend's `Executable`.
        name: the program's name.
        platform: the platform's name.
        donated: numbers of the arguments whose memory the program takes.
        results: how many results it has.

    Raises:
        TypeError: `executable` is none.
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
            ValueError: the memory of one is donated, and that of another as well.
            TypeError: the backend gave another number of results.
        """
        data = [buffer.data for buffer in arguments]
        # By the backend's buffers: several of ours may share one. Nothing is given away before all
        # is known to be well, as with jaxlib, so that a refused call leaves the arrays alone.
        uses = Counter(map(id, data))
        if any(uses[id(data[number])] > 1 for number in self.donated):
            # The words of jaxlib, which `donating` explains.
            raise ValueError("a buffer was previously donated in the same call")
        for number in self.donated:
            arguments[number].give()
        kept = {
            id(given): buffer.cell
            for given, buffer in zip(data, arguments, strict=True)
            if not buffer.is_deleted()
        }
        results = list(self.executable.execute(data))
        if len(results) != self.results:
            raise TypeError(
                f"the program {self.name} of the platform {self.platform!r} has {self.results} "
                f"results, and Executable.execute gave {len(results)}"
            )
        # A result may be an argument, or another result: it then is gone when that one is.
        return _Results([kept.setdefault(id(result), [result]) for result in results])

    def get_hlo_text(self) -> str:
        """The compiled program as text, in the backend's own form."""
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
        found = getattr(self.executable, method, None)
        if found is None:
            raise NotImplementedError(
                f"compiled programs of the platform {self.platform!r} have no {method}(): its "
                "backend does not offer it"
            )
        return found()
