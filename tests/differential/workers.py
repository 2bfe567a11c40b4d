"""A process for each library, which survives programs that end or hang it."""

from __future__ import annotations

import functools
import os
import select
import subprocess
import sys
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
def known_flags(python: str) -> str:
    """Those of `FLAGS` that the XLA of an interpreter knows: the others would end its process."""
    known = []
    for flag in FLAGS:
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


class Worker:
    """A library in a process of its own, started anew when it ended, hung or grew old."""

    def __init__(
        self, python: str, library: str, patience: float, cache: Path | None = None
    ) -> None:
        self.cache = cache
        self.command = [python, str(RUNNER), library]
        self.patience = patience
        self.process: subprocess.Popen[bytes] | None = None
        self.asked = 0

    def start(self) -> None:
        """Have a process that answers."""
        if self.process is not None and self.asked >= MOST_PROGRAMS:
            self.close()
        if self.process is None:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(known_flags(self.command[0]), self.cache),
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
