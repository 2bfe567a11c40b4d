"""What this process's devices exchange with others: whether they may wait, and for what.

A device waits for others inside of C++, where nothing interrupts it. So calls of programs that
exchange data are noted here. When a process has died and devices may wait for it, the backend ends
that, by `ProcessGroup.disconnectors`. When processes have made other calls, and so wait for each
other for ever, the coordinator finds that from their notes.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final

__all__ = ["Call", "Exchange", "exchange", "forget", "may_last", "state"]

#: How many calls are remembered: more than can be under way, and to name the first that differs.
_REMEMBERED: Final = 64


class Exchange:
    """The calls of programs over some devices.

    Attributes:
        members: the numbers of the processes that have the devices.
        count: how many calls there were.
        recent: the programs of the latest ones, in words.
        calling: the threads that are in a call.
        results: for each thread that has made calls, functions that return the first result of
            each of the latest ones, or None if it is not known any more.
    """

    __slots__ = ("calling", "count", "members", "recent", "results")

    def __init__(self, members: frozenset[int]) -> None:
        self.members = members
        self.count = 0
        self.recent: deque[str] = deque(maxlen=_REMEMBERED)
        self.calling: set[int] = set()
        self.results: dict[int, deque[Callable[[], Any]]] = {}

    def state(self) -> str:
        """Whether devices are ``"busy"``, ``"idle"``, or neither is known."""
        if self.calling:
            return "busy"
        found = [[_state(find()) for find in list(made)] for made in list(self.results.values())]
        if any("busy" in states for states in found):
            return "busy"
        return "unknown" if any(states[-1:] == ["unknown"] for states in found) else "idle"


def _state(result: Any) -> str:
    if result is None or result.is_deleted():
        return "unknown"
    return "idle" if result.is_ready() else "busy"


_exchanges: Final[dict[tuple[int, ...], Exchange]] = {}


def exchange(members: frozenset[int], devices: Sequence[int]) -> Exchange:
    """The calls of programs over these devices.

    Args:
        members: the numbers of the processes that have the devices.
        devices: the numbers of the devices, in order.
    """
    return _exchanges.setdefault(tuple(devices), Exchange(members))


class Call:
    """The call of a program that exchanges data with other processes, for a `with` statement.

    Args:
        made: the calls over the program's devices.
        text: the program in words.
        small: whether the first result may be kept, to know when it has been computed.
    """

    __slots__ = ("_before", "_made", "_small", "_text", "_thread", "results")

    def __init__(self, made: Exchange, text: str, small: bool) -> None:
        self._made = made
        self._text = text
        self._small = small
        self._thread = threading.get_ident()
        self.results: list[Any] = []
        """The program's results, to be filled in."""

    def __enter__(self) -> Call:
        made = self._made
        made.count += 1
        made.recent.append(self._text)
        made.calling.add(self._thread)
        return self

    def __exit__(self, *error: object) -> None:
        made = self._made
        made.calling.discard(self._thread)
        if not self.results:
            return
        result = self.results[0]
        results = made.results.setdefault(self._thread, deque(maxlen=_REMEMBERED))
        results.append((lambda: result) if self._small else weakref.ref(result))
        while len(results) > 1 and _state(results[0]()) != "busy":
            results.popleft()


def may_last(numbers: Set[int]) -> bool:
    """Whether devices of this process may wait for one of some processes."""
    return any(
        made.members & numbers and made.state() != "idle" for made in list(_exchanges.values())
    )


def state() -> Mapping[str, Any]:
    """The calls over devices, as the coordinator takes it: see `mismatches`."""
    return {
        ", ".join(map(str, devices)): {
            "members": sorted(made.members),
            "count": made.count,
            "state": made.state(),
            "recent": list(made.recent),
        }
        for devices, made in list(_exchanges.items())
        if made.results or made.calling
    }


def forget() -> None:
    """Forget everything."""
    _exchanges.clear()
