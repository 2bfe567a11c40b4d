"""The record of a plug-in's failure."""

from __future__ import annotations

from typing import Literal, TypeAlias

from dovetail._core.base.records import record

Phase: TypeAlias = Literal[
    "find",
    "import",
    "register",
    "info",
    "version",
    "probe",
    "environment",
    "client",
    "lowerings",
    "compile options",
    "host functions",
    "primitives",
    "array methods",
    "exit",
]
"""The steps of a plug-in's life at which it can fail, in order."""


@record
class PluginFailure:
    """One failure of one plug-in. It is recorded and shown, and never affects other plug-ins.

    Attributes:
        name: name of the plug-in: for a backend, the platform; for an exporter, the format.
        distribution: the installed distribution that provides it, with its version, or
            `"this process"` for a plug-in that was registered here.
        phase: the step that failed.
        error: the exception, or one that describes what was wrong.
    """

    name: str
    distribution: str
    phase: Phase
    error: BaseException

    def __str__(self) -> str:
        """One line: the plug-in, the phase, and the exception with its type."""
        source = f" (from {self.distribution})" if self.distribution else ""
        text = " ".join(str(self.error).split())
        kind = type(self.error).__name__
        return f"{self.name}{source} failed at {self.phase}: {kind}{': ' + text if text else ''}"
