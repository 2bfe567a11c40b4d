"""What this process's devices exchange with others, and the end of that when one has died.

A device waits for another one inside of C++, where nothing interrupts it: the backend ends that, by
`ProcessGroup.disconnectors`. Connections serve all programs, also those of the living alone. So
that happens only if something may wait for the dead.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Set
from typing import Any, Final

__all__ = ["Call", "forget", "may_last"]


def _unknown() -> None:
    return None


#: The latest result of programs over some processes, by the thread that has called them, too.
_latest: Final[dict[tuple[int, frozenset[int]], Callable[[], Any]]] = {}


class Call:
    """The call of a program that exchanges data with other processes, for a `with` statement.

    Args:
        members: the numbers of the processes.
        small: whether the first result may be kept, to know when it has been computed.
    """

    __slots__ = ("_key", "_small", "results")

    def __init__(self, members: frozenset[int], small: bool) -> None:
        self._key = threading.get_ident(), members
        self._small = small
        self.results: list[Any] = []
        """The program's results, to be filled in."""

    def __enter__(self) -> Call:
        _latest[self._key] = _unknown
        return self

    def __exit__(self, *error: object) -> None:
        if not self.results:
            _latest.pop(self._key, None)
            return
        result = self.results[0]
        _latest[self._key] = (lambda: result) if self._small else weakref.ref(result)


def may_last(numbers: Set[int]) -> bool:
    """Whether devices of this process may wait for one of some processes."""
    for (_, members), find in list(_latest.items()):
        if members & numbers:
            result = find()
            if result is None or result.is_deleted() or not result.is_ready():
                return True
    return False


def forget() -> None:
    """Forget everything."""
    _latest.clear()
