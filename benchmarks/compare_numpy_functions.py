"""Compare eager calls of the NumPy API with JAX on the same jaxlib, and write a table.

    python compare_numpy_functions.py --dovetail PYTHON --jax PYTHON [--rounds 5]
        [--output numpy_functions.md]

Each figure is the median over the rounds; in a round of one call both frameworks measure it one
after the other, every second time in reverse, and a ratio is the median of those of the rounds.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

from compare import show, versions
from workers import Worker

#: The most that a figure may be of JAX's: of indexing and updates of small matrices, of all others.
INDEXING = 0.3
OTHERS = 1.0


def bar_of(name: str) -> float:
    """The bar for a call."""
    indexing = name.startswith(("x[", "x.at[")) and name.endswith(" 10x10")
    return INDEXING if indexing else OTHERS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dovetail", required=True, help="Python that has dovetail")
    parser.add_argument("--jax", required=True, help="Python that has JAX on the same jaxlib")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="measure names that contain this")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()

    pythons = {"dovetail": options.dovetail, "jax": options.jax}
    figures: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"DOVETAIL_COMPILATION_CACHE_DIR": folder}
        workers = {
            name: Worker(pythons[name], name, "numpy_functions.py", environment=environment)
            for name in pythons
        }
        for call in workers["dovetail"].names:
            if options.only not in call:
                continue
            print(call, file=sys.stderr)
            figures[call] = {name: [] for name in workers}
            for number in range(options.rounds):
                order = reversed(workers.items()) if number % 2 else workers.items()
                for name, worker in order:
                    figures[call][name].append(worker.ask(name=call)["microseconds"])
        for worker in workers.values():
            worker.close()

    lines = [
        f"{versions(pythons)}. {platform.machine()}, {os.cpu_count()} cores, "
        f"{time.strftime('%Y-%m-%d')}. Microseconds, medians of {options.rounds} interleaved "
        "rounds.",
        "",
        "| | dovetail | JAX | of JAX | bar | |",
        "|---|--:|--:|--:|--:|---|",
    ]
    ratios, missed = [], []
    for name, found in figures.items():
        ratio = statistics.median(
            a / b for a, b in zip(found["dovetail"], found["jax"], strict=True)
        )
        ratios.append(ratio)
        bar = bar_of(name)
        if ratio > bar:
            missed.append(name)
        cells = [f"{statistics.median(found[framework]):.1f}" for framework in workers]
        verdict = "ok" if ratio <= bar else "missed"
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio:.2f} | {bar} | {verdict} |")
    lines += [
        "",
        f"Geometric mean of the times of JAX: {statistics.geometric_mean(ratios):.2f}. Missed: "
        f"{', '.join(missed) or 'none'}.",
    ]
    show(lines, options.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
