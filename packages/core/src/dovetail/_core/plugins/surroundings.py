"""What a plug-in shares with everything else in its process, and must leave as it is.

What it changed is put back, and becomes a `Meddling`, which the doctor shows. Its own modules, its
own additions to `sys.path` (which move to the end), warning filters that name a message, a module
or a category of its own, and variables that it adds to the environment stay, unless Python, the
linker, XLA or dovetail read those: `dovetail_environment` is the hook for what a driver reads.

Most of this belongs to the process. Where other threads run, what they changed cannot be told from
what the plug-in changed, so only modules and streams are put back.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from dovetail._core.base.config import config
from dovetail._core.base.records import record
from dovetail._core.plugins.waiting import ANNOUNCER

__all__ = ["Meddling", "Surroundings"]

# What everybody shares, beside the standard library. Only the first part of a name counts.
_SHARED_MODULES: Final = frozenset({"dovetail", "jaxlib", "ml_dtypes", "numpy", "pluggy"})
_SHARED_VARIABLES: Final = ("DOVETAIL_", "JAX_", "LD_", "PYTHON", "XLA_")
_STREAMS: Final = {"stdin": 0, "stdout": 1, "stderr": 2}
_NUMPY_DEFAULTS: Final = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


@record
class Meddling:
    """One thing that a plug-in changed and that was put back.

    Attributes:
        name: name of the plug-in.
        distribution: distribution and version.
        phase: what it did then.
        what: what it changed, as a clause that follows its name.
        severe: whether what others do was at stake: the plug-in needs mending.
    """

    name: str
    distribution: str
    phase: str
    what: str
    severe: bool = False

    def __str__(self) -> str:
        """One line."""
        source = f" (from {self.distribution})" if self.distribution else ""
        return f"{self.name}{source} {self.what} at {self.phase}; that was undone"


_Change = tuple[str, bool]


class Surroundings:
    """The state of the process before a plug-in runs."""

    def __init__(self) -> None:
        self._modules = {name: m for name, m in sys.modules.copy().items() if _is_shared(name)}
        self._streams = {name: getattr(sys, name) for name in _STREAMS}
        self._files = {name: _copied(file) for name, file in _STREAMS.items()}
        self._process = _Process() if _is_alone() else None

    def restore(self) -> Iterator[_Change]:
        """Put everything back.

        Yields:
            What had changed, as a clause, and whether that is severe.
        """
        yield from self._restore_modules()
        yield from self._restore_streams()
        if self._process is not None:
            yield from self._process.restore()

    def close(self) -> None:
        """Let go of what was kept for `restore`."""
        for copy in self._files.values():
            if copy is not None:
                with suppress(OSError):
                    os.close(copy[0])
        self._files = dict.fromkeys(self._files)

    def _restore_modules(self) -> Iterator[_Change]:
        changed = [n for n, module in self._modules.items() if sys.modules.get(n) is not module]
        if changed:
            sys.modules.update({name: self._modules[name] for name in changed})
            for name in changed:
                package, _, last = name.rpartition(".")
                if package in self._modules:
                    with suppress(Exception):
                        setattr(self._modules[package], last, self._modules[name])
            shown = ", ".join(sorted(changed)[:3]) + (", ..." if len(changed) > 3 else "")
            yield f"replaced or removed the modules {shown}", True

    def _restore_streams(self) -> Iterator[_Change]:
        for name, file in _STREAMS.items():
            stream, copy = self._streams[name], self._files[name]
            if copy is not None and _identity(file) != copy[1]:
                closed = _identity(file) is None
                with suppress(OSError):
                    os.dup2(copy[0], file)
                yield f"{'closed' if closed else 'redirected'} the file of sys.{name}", True
            if stream is not None and getattr(stream, "closed", False):
                yield f"closed sys.{name}", True
                stream = _reopened(name, stream)
            elif getattr(sys, name) is not stream:
                yield f"replaced sys.{name}", False
            setattr(sys, name, stream)


def _is_alone() -> bool:
    """Whether no other thread runs that could change anything."""
    others = [thread for thread in threading.enumerate() if thread.name != ANNOUNCER]
    return len(others) == 1


def _is_shared(name: str) -> bool:
    first = name.partition(".")[0]
    # setuptools has a distutils of its own.
    return first in _SHARED_MODULES or (first in sys.stdlib_module_names and first != "distutils")


def _identity(file: int) -> tuple[int, int, int] | None:
    """What a file descriptor stands for; None if it is closed."""
    try:
        status = os.fstat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_rdev


def _copied(file: int) -> tuple[int, tuple[int, int, int] | None] | None:
    """A second descriptor of a file, and what it stands for; None if there is no such file."""
    try:
        return os.dup(file), _identity(file)
    except OSError:
        return None


def _reopened(name: str, closed: Any) -> Any:
    """A stream in place of one that was closed: the text is written to the same file."""
    reads = name == "stdin"
    try:
        file = io.FileIO(_STREAMS[name], "r" if reads else "w", closefd=False)
        stream = io.TextIOWrapper(
            io.BufferedReader(file) if reads else io.BufferedWriter(file),
            encoding=getattr(closed, "encoding", None),
            errors=getattr(closed, "errors", None),
            line_buffering=not reads,
        )
    except (OSError, ValueError):
        return closed
    if getattr(sys, f"__{name}__") is closed:
        setattr(sys, f"__{name}__", stream)
    return stream


class _Process:
    """What belongs to the process, where nobody else can have changed it."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._path = list(sys.path)
        self._filters = list(warnings.filters)
        self._values = [(what, read, write, read()) for what, read, write in _values()]

    def restore(self) -> Iterator[_Change]:
        yield from self._restore_environment()
        yield from self._restore_path()
        yield from self._restore_filters()
        for what, read, write, before in self._values:
            after = read()
            # Handlers may be objects of any class, whose comparison is their own affair.
            if after is not before and not (type(after) is type(before) and after == before):
                with suppress(Exception):
                    write(before)
                yield what, False

    def _restore_environment(self) -> Iterator[_Change]:
        before, after = self._environment, dict(os.environ)
        changed = [name for name, value in before.items() if after.get(name) != value]
        added = [n for n in after if n not in before and n.startswith(_SHARED_VARIABLES)]
        os.environ.update({name: before[name] for name in changed})
        for name in added:
            del os.environ[name]
        if changed or added:
            yield f"changed the environment variables {', '.join(sorted(changed + added))}", False

    def _restore_path(self) -> Iterator[_Change]:
        if sys.path[: len(self._path)] != self._path:
            added = [entry for entry in sys.path if entry not in self._path]
            sys.path[:] = [*self._path, *added]
            yield "changed the order of sys.path, or removed a part of it", False

    def _restore_filters(self) -> Iterator[_Change]:
        before, after = self._filters, list(warnings.filters)
        own = [entry for entry in after if entry not in before and not _is_blanket(entry)]
        wanted = [*own, *before]
        if wanted != after:
            blanket = [entry for entry in after if entry not in before and _is_blanket(entry)]
            lost = [entry for entry in before if entry not in after]
            warnings.filters[:] = wanted  # type: ignore[index]
            _tell_of_filters()
            if blanket or lost:
                yield "changed the filters of warnings", False


def _is_blanket(entry: Any) -> bool:
    """Whether a filter of warnings concerns other people's: no message, module, category."""
    _, message, category, module, line = entry
    own = getattr(category, "__module__", "builtins") != "builtins"
    return message is None and module is None and not line and not own


def _tell_of_filters() -> None:
    """Make Python forget which warnings it has shown, as it does when filters change."""
    changed = getattr(warnings, "_filters_mutated", None) or getattr(
        warnings, "_filters_mutated_lock_held", None
    )
    if changed is not None:
        changed()


def _values() -> Iterator[tuple[str, Callable[[], Any], Callable[[Any], object]]]:
    """What is read and written as a whole: what a plug-in did to it, a reader, and a writer."""
    import locale  # deferred: only where a plug-in of others is installed

    yield "changed the current folder", _current_folder, os.chdir
    yield "changed the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit
    yield "changed the switch interval", sys.getswitchinterval, sys.setswitchinterval
    yield (
        "changed the locale",
        lambda: locale.setlocale(locale.LC_ALL),
        lambda value: locale.setlocale(locale.LC_ALL, value),
    )
    yield (
        "switched the garbage collector off or on",
        gc.isenabled,
        lambda on: gc.enable() if on else gc.disable(),
    )
    for hook in ("excepthook", "displayhook", "unraisablehook", "breakpointhook"):
        yield f"replaced sys.{hook}", _getter(sys, hook), _setter(sys, hook)
    yield (
        "replaced threading.excepthook",
        _getter(threading, "excepthook"),
        _setter(threading, "excepthook"),
    )
    yield (
        "replaced warnings.showwarning",
        _getter(warnings, "showwarning"),
        _setter(warnings, "showwarning"),
    )
    yield "changed the handling of errors in NumPy", _numpy_errors, _set_numpy_errors
    yield "changed options of dovetail", _options, _set_options
    if threading.current_thread() is threading.main_thread():
        for number in sorted(signal.valid_signals()):
            if signal.getsignal(number) is not None:  # None: not set by Python, nor to be set
                yield (
                    f"replaced the handler of the signal {_signal_name(number)}",
                    _handler_getter(number),
                    _handler_setter(number),
                )


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _getter(module: Any, name: str) -> Callable[[], Any]:
    return lambda: getattr(module, name)


def _setter(module: Any, name: str) -> Callable[[Any], object]:
    return lambda value: setattr(module, name, value)


def _handler_getter(number: int) -> Callable[[], Any]:
    return lambda: signal.getsignal(number)


def _handler_setter(number: int) -> Callable[[Any], object]:
    return lambda handler: signal.signal(number, handler)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _numpy_errors() -> dict[str, Any]:
    numpy = sys.modules.get("numpy")
    geterr = getattr(numpy, "geterr", None)
    return dict(_NUMPY_DEFAULTS) if geterr is None else dict(geterr())


def _set_numpy_errors(values: dict[str, Any]) -> None:
    import numpy as np  # deferred: it was loaded, or there is nothing to set

    np.seterr(**values)


def _options() -> dict[str, Any]:
    return {name: config.option(name).get_global() for name in config}


def _set_options(values: dict[str, Any]) -> None:
    for name, value in values.items():
        if config.option(name).get_global() is not value:
            config.update(name, value)
