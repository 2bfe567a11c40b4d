"""Processes that measure with one framework each, interleaved with one another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROUNDS = 5
FEWEST_ROUNDS = 3
#: Seconds after which threads of OpenBLAS and PyTorch, which look for work without sleeping, sleep.
SETTLING = 0.12
#: By framework, the answers of its process.
Answers = dict[str, list[dict[str, Any]]]


class Worker:
    """A process that measures with one framework.

    Args:
        python: its Python.
        framework: the framework.
        program: the program that measures.
        cores: the cores that it may run on, which is also how many threads libraries start; those
            of this process if None.
        environment: variables of its environment, besides those of this process.

    Attributes:
        cores: the cores that it may run on.
        names: what it can measure.
    """

    def __init__(
        self,
        python: str,
        framework: str,
        program: str,
        cores: set[int] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        before = os.sched_getaffinity(0)
        self.cores = cores = cores or before
        threads = dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(len(cores))
        )
        # Compiled anew: JAX keeps no programs on disk either.
        fresh = {"DOVETAIL_ENABLE_COMPILATION_CACHE": "0"}
        self.framework = framework
        os.sched_setaffinity(0, cores)  # A child begins with those of its parent.
        try:
            self._process = subprocess.Popen(
                [python, str(HERE / program), framework],
                env=os.environ | threads | fresh | (environment or {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        finally:
            os.sched_setaffinity(0, before)
        self.names: list[str] = self._read()

    def ask(self, **request: Any) -> dict[str, Any]:
        """What the process answers to a request."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = self._read()
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.framework} ended without an answer")
        return json.loads(line)


def interleave(
    workers: list[Worker], name: str, seconds: float, rounds: int = ROUNDS, **request: Any
) -> Answers:
    """Measure in rounds, in each of which the processes follow one another.

    Args:
        workers: the processes; those that lack the name, or fail, are left out.
        name: what is measured.
        seconds: about how long all takes, without compilation.
        rounds: how many rounds; fewer where calls are long.
        request: more for each request.
    """
    having = [worker for worker in workers if name in worker.names]
    share = seconds / len(having) / rounds
    answers: Answers = defaultdict(list)
    spent = 0.0
    for number in range(rounds):
        if spent > seconds and number >= FEWEST_ROUNDS:
            break
        for worker in list(having):
            if len(worker.cores) > 1:
                time.sleep(SETTLING)
            start = time.monotonic()
            answer = worker.ask(name=name, seconds=share, **request)
            if number:
                spent += time.monotonic() - start
            if "error" in answer:
                print(f"{worker.framework}: {name}: {answer['error']}", file=sys.stderr)
                having.remove(worker)
                answers.pop(worker.framework, None)
            else:
                answers[worker.framework].append(answer)
    return dict(answers)


def one_core() -> set[int]:
    """The last of the cores that this process may run on; the first has most interrupts."""
    return {max(os.sched_getaffinity(0))}
