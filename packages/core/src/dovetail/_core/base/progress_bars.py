"""Bars that show on the standard error how far loops are."""

from __future__ import annotations

import atexit
import importlib
import sys
import time
import warnings
from typing import Any, Final

from dovetail._core.base import config
from dovetail._core.base.locks import shared_lock

__all__ = ["end_lines", "show", "show_here"]

#: The time from one change of a bar to the next, in seconds: on a terminal, and in a file.
_PAUSE: Final = 0.1
_PAUSE_IN_FILE: Final = 10.0
_WIDTH: Final = 24

_lock: Final = shared_lock()
_open: Final[dict[tuple[str, int], _Bar]] = {}


class _Process:
    """Whether this is the process that shows bars: of several that belong together the first."""

    shows = True


def show_here(shows: bool) -> None:
    """Say whether this process shows bars."""
    _Process.shows = shows


def show(
    description: str, depth: int, count: Any, total: int, *, is_bound: bool, is_last: bool
) -> None:
    """Show how far a loop is.

    Args:
        description: which loop it is.
        depth: in how many others it is; the bar of an inner loop goes away when it ends.
        count: the number of turns that it has made, an array of NumPy; for each element of a batch
            if it is no scalar.
        total: how many there will be; negative if that is not known.
        is_bound: whether `total` is a bound, which it may not reach.
        is_last: whether it has ended.
    """
    most = int(count.max(initial=0))
    key = (description, depth)
    with _lock:
        bar = _open.get(key)
        is_seen = sys.stderr is not None and not sys.stderr.closed
        if not (is_seen and _Process.shows and config.progress_bars.get_global()):
            if bar is not None:
                bar.end()
            return
        if bar is None:
            if is_last:  # a loop without turns
                return
            bar = _open[key] = _Bar(key, total, is_bound)
        running = int((count == most).sum())
        lanes = f", {running} of {count.size} elements" if count.ndim and not is_last else ""
        bar.move(max(most, bar.count), lanes, now=is_last)
        if is_last:
            bar.end()


def end_lines() -> None:
    """End the lines of bars, since something else is to be shown."""
    if _open:
        with _lock:
            for bar in list(_open.values()):
                bar.end()


atexit.register(end_lines)


class _Bar:
    """The bar of a loop that runs.

    Args:
        key: what it is found by: the description, and the depth.
        total: the number of turns; negative if it is not known.
        is_bound: whether there may be fewer.
    """

    def __init__(self, key: tuple[str, int], total: int, is_bound: bool) -> None:
        self._key = key
        self._total = total
        self._of = (" of at most " if is_bound else "/") + str(total) if total >= 0 else ""
        self._began = time.monotonic()
        self._file = sys.stderr
        self._is_terminal = self._file.isatty()
        # A file gets no lines of inner loops that take a moment.
        self._drawn = self._began if key[1] and not self._is_terminal else float("-inf")
        self._text = ""
        self._tqdm = self._made_by_tqdm()
        self.count = 0

    def _made_by_tqdm(self) -> Any:
        """A bar of tqdm, where it is installed and somebody looks; else None."""
        from dovetail._core.base.notebooks import notebook  # deferred: few programs show bars

        if not self._is_terminal and notebook() is None:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that widgets are not there
                tqdm: Any = importlib.import_module("tqdm.auto").tqdm  # not a dependency
        except ImportError:
            return None
        description, depth = self._key
        total = None if self._total < 0 else self._total
        return tqdm(desc=description, total=total, leave=depth == 0, file=None)

    def move(self, count: int, lanes: str, now: bool) -> None:
        """Show another number of turns, if the last one was not shown just before."""
        self.count = count
        pause = _PAUSE if self._is_terminal or self._tqdm is not None else _PAUSE_IN_FILE
        is_soon = time.monotonic() - self._drawn < pause
        if is_soon and not (now and (self._text or self._is_terminal or self._tqdm is not None)):
            return
        self._drawn = time.monotonic()
        if self._tqdm is not None:
            self._tqdm.n = count
            self._tqdm.set_postfix_str(lanes.removeprefix(", "), refresh=False)
            self._tqdm.refresh()
            return
        self._write(self._line(lanes))

    def _line(self, lanes: str) -> str:
        seconds = time.monotonic() - self._began
        share = ""
        if self._total > 0:
            done = min(self.count / self._total, 1.0)
            bar = ("#" * int(done * _WIDTH)).ljust(_WIDTH, ".")
            share = f"{done:4.0%} {bar} "
        return f"{self._key[0]}: {share}{self.count}{self._of}{lanes} [{seconds:.1f} s]"

    def _write(self, text: str) -> None:
        if self._file.closed:
            return
        if self._is_terminal:
            self._file.write("\r" + text.ljust(len(self._text)))
        else:
            self._file.write(text + "\n")
        self._text = text
        self._file.flush()

    def end(self) -> None:
        """End the line; an inner loop's goes away."""
        _open.pop(self._key, None)
        if self._tqdm is not None:
            self._tqdm.close()
            return
        if self._is_terminal and not self._file.closed:
            self._file.write("\r" + " " * len(self._text) + "\r" if self._key[1] else "\n")
            self._file.flush()
