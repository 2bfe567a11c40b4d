"""What importing a plug-in and asking it about itself does to a process.

    python -B -m dovetail.testing.examination MODULE[:OBJECT] PLATFORM

prints JSON. It needs a process of its own, in which nothing else has imported anything or been
asked before, and whose audit hook nobody minds.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import reduce
from importlib import import_module
from typing import Any, Final

__all__ = ["Examination", "Phase", "examine"]

#: Audit events (https://docs.python.org/3/library/audit_events.html) by what they begin with.
_FORBIDDEN: Final = {
    "ctypes.dlopen": "loads a library",
    "os.exec": "starts a program",
    "os.fork": "forks",
    "os.mkdir": "makes a folder",
    "os.posix_spawn": "starts a program",
    "os.putenv": "changes the environment",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.system": "starts a program",
    "os.unsetenv": "changes the environment",
    "socket.": "uses the network",
    "subprocess.Popen": "starts a program",
    "time.sleep": "waits",
    "urllib.": "uses the network",
}
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


@dataclass(frozen=True, slots=True)
class Phase:
    """One step.

    Attributes:
        deeds: what it did that it should not, in words.
        modules: what it imported.
        error: what it raised; empty if nothing.
        answers: what the hook returned, called twice, as text; with the types in front.
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


def examine(value: str, platform: str) -> Examination:
    """Examine a plug-in in a fresh process.

    Args:
        value: that of its entry point: a module, with an object in it after a colon.
        platform: its platform.

    Raises:
        RuntimeError: the process ended without an answer.
    """
    command = [sys.executable, "-B", "-m", __name__, value, platform]
    path = os.pathsep.join(entry or os.curdir for entry in sys.path)
    answer = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    if answer.returncode:
        raise RuntimeError(f"importing {value} ended the process: {answer.stderr[-2000:]}")
    found = json.loads(answer.stdout.splitlines()[-1])
    return Examination(**{name: Phase(**phase) for name, phase in found.items()})


class _Watch:
    """Notes forbidden deeds while it is on. Audit hooks cannot be removed."""

    def __init__(self) -> None:
        self.deeds: list[str] | None = None
        sys.addaudithook(self.see)

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
        """Watch one step, and keep what it raises."""
        modules = set(sys.modules)
        environment = dict(os.environ)
        self.deeds = phase.deeds
        try:
            yield
        finally:
            self.deeds = None
            phase.modules.extend(sorted(set(sys.modules) - modules))
            changed = {k for k, _ in environment.items() ^ os.environ.items()}
            phase.deeds.extend(f"leaves another {name} in os.environ" for name in sorted(changed))


def _called(function: Callable[..., Any], **known: Any) -> Any:
    """Call a hook, which may leave out arguments, with those that it takes."""
    return function(**{n: known[n] for n in inspect.signature(function).parameters if n in known})


def _examine_here(value: str, platform: str) -> Examination:
    found = Examination(Phase(), Phase(), Phase())
    watch = _Watch()
    plugin: Any = None
    errors: dict[int, str] = {}
    try:
        with watch.on(found.imported):
            module, _, attributes = (part.strip() for part in value.partition(":"))
            plugin = import_module(module)
            plugin = reduce(getattr, attributes.split("."), plugin) if attributes else plugin
    except Exception as error:
        errors[id(found.imported)] = _text(error)
    for phase, hook in (
        (found.described, "dovetail_backend_info"),
        (found.probed, "dovetail_probe"),
    ):
        function = getattr(plugin, hook, None)
        if function is None:
            continue
        try:
            with watch.on(phase):
                for _ in range(2):
                    answer = _called(function, platform=platform)
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
    print(json.dumps(asdict(_examine_here(*sys.argv[1:]))))
