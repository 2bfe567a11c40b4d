"""A process for each library, which survives programs that end or hang it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

from runner import receive, send
from source import Program

RUNNER = Path(__file__).with_name("runner.py")
MOST_PROGRAMS = 400


class Worker:
    """A library in a process of its own, started anew when it ended, hung or grew old."""

    def __init__(self, python: str, library: str, patience: float) -> None:
        self.command = [python, str(RUNNER), library]
        self.patience = patience
        self.process: subprocess.Popen[bytes] | None = None
        self.asked = 0

    def start(self) -> None:
        """Have a process that answers."""
        if self.process is not None and self.asked >= MOST_PROGRAMS:
            self.close()
        if self.process is None:
            environment = os.environ | {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            self.asked = 0

    def ask(self, program: Program, modes: list[str], noise: int | None = None) -> None:
        """Send a request, which `answer` waits for."""
        self.start()
        assert self.process is not None
        assert self.process.stdin is not None
        self.asked += 1
        try:
            send(self.process.stdin, {"program": program, "modes": modes, "noise": noise})
        except BrokenPipeError:
            self.close()

    def answer(self, modes: list[str]) -> dict[str, Any]:
        """The outcomes by mode, or that the process ended or hung."""
        if self.process is None:
            return _failed(modes, "Crashed")
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], self.patience)
        if not ready:
            self.close()
            return _failed(modes, "Hung")
        try:
            return dict(receive(self.process.stdout))
        except EOFError:
            self.close()
            return _failed(modes, "Crashed")

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


class Pair:
    """The two libraries, which run one program at the same time."""

    def __init__(self, ours: str, theirs: str, patience: float = 120.0) -> None:
        self.ours = Worker(ours, "dovetail", patience)
        self.theirs = Worker(theirs, "jax", patience)

    def run(
        self, program: Program, modes: list[str], noise: int | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The outcomes of both."""
        for worker in (self.ours, self.theirs):
            worker.ask(program, modes, noise)
        return self.ours.answer(modes), self.theirs.answer(modes)

    def close(self) -> None:
        """End both processes."""
        self.ours.close()
        self.theirs.close()


def _failed(modes: list[str], how: str) -> dict[str, Any]:
    return {mode: [{"error": [how], "message": ""}] for mode in modes}


def python_here() -> str:
    """The interpreter that runs this."""
    return sys.executable
