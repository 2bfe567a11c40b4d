"""Observes what importing a plug-in, and asking it about itself, does to a process.

    python -B -m dovetail.testing.examination MODULE[:OBJECT] PLATFORM

prints JSON, in a line that begins with ``examination:``. It needs a fresh process, in which nothing
has been imported or queried before, and in which its audit hook disturbs nobody.
"""

from __future__ import annotations

import _thread
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import reduce
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import pluggy

from dovetail._core.plugins import hookspecs

__all__ = ["PATIENCE", "Examination", "Phase", "examine", "hooks_of", "run_module"]

PATIENCE: Final = 120.0
"""Seconds that another process has. Drivers of large machines take half of it to start."""

#: Prefixes of audit events (https://docs.python.org/3/library/audit_events.html).
_FORBIDDEN: Final = {
    "_thread.start": "starts a thread",
    "ctypes.dlopen": "loads a library",
    "os.chdir": "changes the folder",
    "os.chmod": "changes a file",
    "os.chown": "changes a file",
    "os.exec": "starts a program",
    "os.fork": "forks",
    "os.kill": "sends a signal",
    "os.link": "makes a link",
    "os.mkdir": "makes a folder",
    "os.posix_spawn": "starts a program",
    "os.putenv": "changes the environment",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.rmdir": "removes a folder",
    "os.symlink": "makes a link",
    "os.system": "starts a program",
    "os.truncate": "changes a file",
    "os.unsetenv": "changes the environment",
    "os.utime": "changes a file",
    "shutil.": "changes files",
    "socket.": "uses the network",
    "sqlite3.connect": "opens a database",
    "subprocess.Popen": "starts a program",
    "time.sleep": "waits",
    "urllib.": "uses the network",
}
#: Functions without an audit event before some version of Python, by their names.
_SILENT: Final = (
    ((3, 12), "_thread.start_new_thread", _thread, "start_new_thread"),
    ((3, 12), "_thread.start_new_thread", threading, "_start_new_thread"),
    ((3, 13), "time.sleep", time, "sleep"),
)
_ANSWER: Final = "examination: "
#: Runs a module with a timeout, and then prints what it is doing, even outside of Python code.
_BOUNDED: Final = """
import faulthandler, runpy, sys
_, patience, module, *arguments = sys.argv
faulthandler.dump_traceback_later(float(patience), exit=True)
sys.argv[:] = [module, *arguments]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
_LATE: Final = r"^Timeout \([\d:.]+\)!$"
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


@dataclass(frozen=True, slots=True)
class Phase:
    """One step.

    Attributes:
        deeds: forbidden actions, in words.
        modules: the imported modules, except namespace packages, which hold no code.
        error: the exception raised; empty if none.
        answers: the hook's results of two calls, as text, preceded by their types.
    """

    deeds: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    error: str = ""
    answers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Examination:
    """All steps: importing the plug-in, asking for its description, asking whether it can run."""

    imported: Phase
    described: Phase
    probed: Phase


def examine(value: str, platform: str, patience: float = PATIENCE) -> Examination:
    """Examine a plug-in in a fresh process.

    Args:
        value: the value of its entry point: a module, with an object in it after a colon.
        platform: its platform.
        patience: the timeout in seconds.

    Raises:
        RuntimeError: the process ended without an answer.
        TimeoutError: importing the plug-in, or one of its hooks, did not return.
    """
    answer = run_module(__name__, value, platform, patience=patience)
    if answer.returncode:
        raise RuntimeError(f"importing {value} ended the process: {answer.stderr[-2000:]}")
    # A driver may print as well.
    lines = (line for line in answer.stdout.splitlines() if line.startswith(_ANSWER))
    found = json.loads(next(lines).removeprefix(_ANSWER))
    return Examination(**{name: Phase(**phase) for name, phase in found.items()})


def run_module(
    module: str, *arguments: str, patience: float = PATIENCE
) -> subprocess.CompletedProcess[str]:
    """Run a module as a program, in a process with the same import path as this one.

    Args:
        module: its name.
        arguments: those of the program.
        patience: the timeout in seconds.

    Raises:
        TimeoutError: it took longer. The message says what it was doing then.
    """
    command = [sys.executable, "-B", "-c", _BOUNDED, str(patience), module, *arguments]
    path = os.pathsep.join(entry or os.curdir for entry in sys.path)
    answer = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    late = re.search(_LATE, answer.stderr, re.MULTILINE)
    if answer.returncode and late:
        stack = answer.stderr[late.end() :]
        hook = re.search(r" in (dovetail_\w+)$", stack, re.MULTILINE)
        what = hook[1] if hook else f"python -m {' '.join((module, *arguments))}"
        raise TimeoutError(f"{what} did not return within {patience:g} seconds:{stack}")
    return answer


def hooks_of(plugin: object) -> Any:
    """The hooks that a plug-in implements, by the rules of pluggy, under the hooks' own names.

    Args:
        plugin: a module or an object.
    """
    hooks = pluggy.PluginManager("dovetail")
    hooks.add_hookspecs(hookspecs)
    hooks.register(plugin)
    return hooks.hook


class _Watch:
    """Records forbidden actions while active. Audit hooks cannot be removed."""

    def __init__(self) -> None:
        self.deeds: list[str] | None = None
        sys.addaudithook(self.see)
        for version, event, module, name in _SILENT:
            if sys.version_info < version:
                setattr(module, name, _audited(event, getattr(module, name)))

    def see(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The audit hook."""
        if self.deeds is None:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = isinstance(flags, int) and flags & _WRITING
            if writes or (isinstance(mode, str) and set(mode) & set("wax+")):
                self.deeds.append(f"writes to {path!r}")
            return
        for beginning, deed in _FORBIDDEN.items():
            if event.startswith(beginning):
                self.deeds.append(f"{deed} ({event}{arguments!r:.200})")

    @contextmanager
    def on(self, phase: Phase) -> Iterator[None]:
        """Observe one step, and record its exception."""
        modules = set(sys.modules)
        environment = dict(os.environ)
        self.deeds = phase.deeds
        try:
            yield
        finally:
            self.deeds = None
            added = {name: sys.modules[name] for name in set(sys.modules) - modules}
            phase.modules.extend(sorted(n for n, module in added.items() if _has_code(module)))
            changed = {k for k, _ in environment.items() ^ os.environ.items()}
            phase.deeds.extend(f"leaves another {name} in os.environ" for name in sorted(changed))


def _audited(event: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that raises an audit event when it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        sys.audit(event, *args)
        return function(*args, **kwargs)

    return call


def _has_code(module: ModuleType) -> bool:
    """Whether it is more than a folder shared by several distributions."""
    return not hasattr(module, "__path__") or getattr(module, "__file__", None) is not None


def _examine_here(value: str, platform: str) -> Examination:
    found = Examination(Phase(), Phase(), Phase())
    watch = _Watch()
    hooks: Any = None
    known = {"platform": platform}
    errors: dict[int, str] = {}
    try:
        with watch.on(found.imported):
            module, _, attributes = (part.strip() for part in value.partition(":"))
            plugin: Any = import_module(module)
            plugin = reduce(getattr, attributes.split("."), plugin) if attributes else plugin
        hooks = hooks_of(plugin)
    except Exception as error:
        errors[id(found.imported)] = _text(error)
    for phase, hook in (
        (found.described, "dovetail_backend_info"),
        (found.probed, "dovetail_probe"),
    ):
        function = getattr(hooks, hook, None)
        if function is None or not function.get_hookimpls():
            continue
        arguments = {name: known[name] for name in function.spec.argnames}
        try:
            with watch.on(phase):
                for _ in range(2):
                    answer = function(**arguments)
                    phase.answers.append(f"{type(answer).__name__}: {answer!r}")
        except Exception as error:
            errors[id(phase)] = _text(error)
    return Examination(
        *(
            Phase(phase.deeds, phase.modules, errors.get(id(phase), ""), phase.answers)
            for phase in (found.imported, found.described, found.probed)
        )
    )


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    print(_ANSWER + json.dumps(asdict(_examine_here(*sys.argv[1:]))))
