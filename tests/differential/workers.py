"""A process for each library, which survives programs that end or hang it."""

from __future__ import annotations

import functools
import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from answers import Remembered
from runner import receive, send
from source import Program

RUNNER = Path(__file__).with_name("runner.py")
MOST_PROGRAMS = 400

FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
)
"""Of both libraries: how fast programs run does not matter, and most of the time compiles them."""

PARSE = "from jaxlib import _jax; _jax.get_tfrt_cpu_client()"


@functools.cache
def known_flags(python: str, flags: tuple[str, ...] = FLAGS) -> str:
    """Those flags that the XLA of an interpreter knows: the others would end its process."""
    known = []
    for flag in flags:
        environment = os.environ | {"XLA_FLAGS": flag}
        done = subprocess.run([python, "-c", PARSE], env=environment, capture_output=True)
        if done.returncode == 0:
            known.append(flag)
    return " ".join(known)


def environment(flags: str, cache: Path | None) -> dict[str, str]:
    """The environment of workers, which keep what they have compiled in a folder or not at all."""
    own = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "XLA_FLAGS": flags}
    if cache is None:
        own |= {"DOVETAIL_ENABLE_COMPILATION_CACHE": "0", "JAX_ENABLE_COMPILATION_CACHE": "0"}
    else:
        own |= {
            "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            "DOVETAIL_COMPILATION_CACHE_DIR": str(cache / "dovetail"),
            "DOVETAIL_COMPILATION_CACHE_MAX_SIZE": "-1",
        }
    return os.environ | own


class Lost(Exception):
    """There is no answer: the process ended or hung."""


class Process:
    """A process that answers requests, started anew when it ended, hung or grew old.

    Args:
        command: what it runs.
        patience: how many seconds an answer may take.
        variables: gives its environment.
        most: how many requests it answers.
        errors: a file for what it writes to the standard error.
    """

    def __init__(
        self,
        command: list[str],
        patience: float,
        variables: Callable[[], dict[str, str]],
        most: int = MOST_PROGRAMS,
        errors: Path = Path(os.devnull),
    ) -> None:
        self.command = command
        self.patience = patience
        self.variables = variables
        self.most = most
        self.errors = errors
        self.process: subprocess.Popen[bytes] | None = None
        self.asked = 0

    def start(self) -> bool:
        """Have a process that answers; whether it is a new one."""
        if self.process is not None and self.asked >= self.most:
            self.close()
        if self.process is not None:
            return False
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self.variables(),
            )
        self.asked = 0
        return True

    def ask(self, request: Any) -> None:
        """Send a request, which `reply` waits for."""
        self.start()
        assert self.process is not None
        assert self.process.stdin is not None
        self.asked += 1
        try:
            send(self.process.stdin, request)
        except BrokenPipeError:
            self.close()

    def reply(self) -> Any:
        """The answer.

        Raises:
            Lost: there is none.
        """
        if self.process is None:
            raise Lost("Crashed")
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], self.patience)
        if not ready:
            self.close()
            raise Lost("Hung")
        try:
            return receive(self.process.stdout)
        except EOFError:
            self.close()
            raise Lost("Crashed") from None

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


class Worker:
    """A library in a process of its own."""

    def __init__(
        self, python: str, library: str, patience: float, cache: Path | None = None
    ) -> None:
        self.process = Process(
            [python, str(RUNNER), library],
            patience,
            lambda: environment(known_flags(python), cache),
        )

    def ask(self, program: Program, modes: list[str], noise: int | None = None) -> None:
        """Send a request, which `answer` waits for."""
        self.process.ask({"program": program, "modes": modes, "noise": noise})

    def answer(self, modes: list[str]) -> dict[str, Any]:
        """The outcomes by mode, or that the process ended or hung."""
        try:
            return dict(self.process.reply())
        except Lost as lost:
            return _failed(modes, str(lost))

    def close(self) -> None:
        """End the process."""
        self.process.close()


class Pair:
    """The two libraries, which run one program at the same time.

    Args:
        ours: the Python that has dovetail.
        theirs: the Python that has JAX.
        cache: the folder of what is compiled, or None.
        remembered: the answers of JAX that are known, or None.
        patience: how many seconds a program may take.
    """

    def __init__(
        self,
        ours: str,
        theirs: str,
        cache: Path | None = None,
        remembered: Remembered | None = None,
        patience: float = 120.0,
    ) -> None:
        self.ours = Worker(ours, "dovetail", patience, cache)
        self.theirs = Worker(theirs, "jax", patience, cache)
        self.remembered = remembered

    def run(self, program: Program, modes: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The outcomes of both."""
        self.ours.ask(program, modes)
        theirs = self.other(program, modes)
        return self.ours.answer(modes), theirs

    def other(self, program: Program, modes: list[str], noise: int | None = None) -> dict[str, Any]:
        """The outcomes of JAX alone."""
        key = b""
        if self.remembered is not None:
            key = self.remembered.key(program, modes, noise)
            known = self.remembered.read(key)
            if known is not None:
                return known
        self.theirs.ask(program, modes, noise)
        answers = self.theirs.answer(modes)
        if self.remembered is not None:
            self.remembered.write(key, answers)
        return answers

    def close(self) -> None:
        """End both processes."""
        self.ours.close()
        self.theirs.close()


def _failed(modes: list[str], how: str) -> dict[str, Any]:
    return {mode: [{"error": [how], "message": ""}] for mode in modes}


def python_here() -> str:
    """The interpreter that runs this."""
    return sys.executable
