"""Compare single operations on large arrays with JAX, NumPy and PyTorch, and write a table.

    python compare_operations.py --dovetail PYTHON --jax PYTHON [--torch PYTHON] [--rounds 15]
        [--only PATTERN] [--output operations.md] [--append]

Each figure is the median over the rounds; in a round of one operation all frameworks measure it
one after the other, every second time in reverse, and a ratio is the median of those of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compare import show, versions

HERE = Path(__file__).parent
GEOMETRIC_MEAN = 0.6
LARGEST = 1.1
#: A short operation has more rounds than asked for: as many as fit into this time.
SECONDS = 6.0
MOST_ROUNDS = 99


class Worker:
    """A process that measures operations with one framework.

    Args:
        python: its Python.
        framework: the framework.
        environment: its environment.
        program: the program that measures.

    Attributes:
        names: the operations it has.
    """

    def __init__(
        self,
        python: str,
        framework: str,
        environment: dict[str, str],
        program: str = "operations.py",
    ) -> None:
        self._process = subprocess.Popen(
            [python, str(HERE / program), framework],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.names: list[str] = json.loads(self._read())

    def measure(self, name: str) -> float:
        """Measure an operation once more, in the unit of the program."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return float(self._read())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(map(str, self._process.args))} ended without a figure")
        return line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dovetail", required=True, help="Python that has dovetail")
    parser.add_argument("--jax", required=True, help="Python that has JAX on the same jaxlib")
    parser.add_argument("--torch", help="Python that has PyTorch")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="a pattern that is in the names of operations")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--append", action="store_true", help="keep the tables that are there")
    options = parser.parse_args()

    pythons = {"dovetail": options.dovetail, "jax": options.jax, "numpy": options.dovetail}
    if options.torch:
        pythons["torch"] = options.torch
    figures: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"DOVETAIL_COMPILATION_CACHE_DIR": folder}
        workers = {name: Worker(pythons[name], name, environment) for name in pythons}
        for operation in workers["dovetail"].names:
            if not re.search(options.only, operation):
                continue
            print(operation, file=sys.stderr)
            having = {name: w for name, w in workers.items() if operation in w.names}
            figures[operation] = {name: [] for name in having}
            started = time.monotonic()
            while (rounds := len(figures[operation]["dovetail"])) < options.rounds or (
                rounds < MOST_ROUNDS and time.monotonic() - started < SECONDS
            ):
                # To and fro: the threads of PyTorch wait for work without sleeping, which would
                # always slow the next one.
                order = reversed(having.items()) if rounds % 2 else having.items()
                for name, worker in order:
                    figures[operation][name].append(worker.measure(operation))
        for worker in workers.values():
            worker.close()

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    lines = [
        f"{versions(pythons)}. {platform.machine()}, {cores} of {os.cpu_count()} cores, "
        f"{time.strftime('%Y-%m-%d')}. Milliseconds, medians of at least {options.rounds} "
        "interleaved rounds.",
        "",
        "| | dovetail | JAX | NumPy | PyTorch | of JAX | of the best |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    ratios = {}
    for name, found in figures.items():
        times = {framework: statistics.median(runs) for framework, runs in found.items()}
        ours = times["dovetail"]
        ratios[name] = statistics.median(
            a / b for a, b in zip(found["dovetail"], found["jax"], strict=True)
        )
        best = min(value for framework, value in times.items() if framework != "dovetail")
        cells = [f"{times[f]:.2f}" if f in times else "" for f in ("jax", "numpy", "torch")]
        figures = [f"{ours:.2f}", *cells, f"{ratios[name]:.2f}", f"{ours / best:.2f}"]
        lines.append(f"| {name} | {' | '.join(figures)} |")
    mean = statistics.geometric_mean(ratios.values())
    slow = [f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio > LARGEST]
    lines += [
        "",
        f"Geometric mean of the times of JAX: {mean:.2f} (bar {GEOMETRIC_MEAN}: "
        f"{'ok' if mean <= GEOMETRIC_MEAN else 'missed'}). Above {LARGEST}: "
        f"{', '.join(slow) or 'none'}.",
    ]
    show(lines, options.output, options.append)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
