"""Compare calls of the NumPy API and of `nn` with JAX on the same jaxlib, and write a table.

    python compare_numpy_functions.py --dovetail PYTHON --jax PYTHON [--rounds 5]
        [--output numpy_functions.md] [--append]

Each figure is the median over the rounds; in a round of one call both frameworks measure it one
after the other, every second time in reverse, and a ratio is the median of those of the rounds.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time
from pathlib import Path

from compare import processor, show, versions
from interleaved import Worker, interleave

#: The most that a figure may be of JAX's: of indexing and updates of small matrices, of all others.
INDEXING = 0.3
OTHERS = 1.0
#: The longest that all rounds of a call take, but for the fewest that there are.
SECONDS = 6.0
#: What is summed up together, by patterns of names.
GROUPS = {
    "Small matrices": "^(?!jit ).* 10x10$",
    "Large matrices": "^(?!jit ).* 1000x1000$",
    "Compiled, large matrices": "^jit ",
}


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
    parser.add_argument("--append", action="store_true", help="keep the tables that are there")
    options = parser.parse_args()

    pythons = {"dovetail": options.dovetail, "jax": options.jax}
    workers = [Worker(python, name, "numpy_functions.py") for name, python in pythons.items()]
    figures: dict[str, dict[str, list[float]]] = {}
    failed = []
    for call in (name for name in workers[0].names if name in workers[1].names):
        if options.only not in call:
            continue
        print(call, file=sys.stderr)
        answers = interleave(workers, call, SECONDS, options.rounds)
        if len(answers) < len(workers):
            failed.append(call)
            continue
        figures[call] = {
            name: [answer["microseconds"] for answer in given] for name, given in answers.items()
        }
    for worker in workers:
        worker.close()

    lines = [
        f"{versions(pythons)}. {processor()}, {len(os.sched_getaffinity(0))} cores, "
        f"{time.strftime('%Y-%m-%d')}. Microseconds, medians of {options.rounds} interleaved "
        "rounds.",
        "",
        "| | dovetail | JAX | of JAX | bar | |",
        "|---|--:|--:|--:|--:|---|",
    ]
    ratios = {}
    for name, found in figures.items():
        ratios[name] = ratio = statistics.median(
            a / b for a, b in zip(found["dovetail"], found["jax"], strict=True)
        )
        bar = bar_of(name)
        cells = [f"{statistics.median(found[framework]):.1f}" for framework in pythons]
        verdict = "ok" if ratio <= bar else "missed"
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio:.2f} | {bar} | {verdict} |")
    for shown, pattern in GROUPS.items():
        group = {name: ratio for name, ratio in ratios.items() if re.search(pattern, name)}
        if not group:
            continue
        missed = sorted(
            (name for name, ratio in group.items() if ratio > bar_of(name)),
            key=lambda name: -group[name],
        )
        lines += [
            "",
            f"{shown}: {len(group)} calls; geometric mean of the times of JAX "
            f"{statistics.geometric_mean(group.values()):.2f}; {len(missed)} missed: "
            f"{', '.join(f'{name} {group[name]:.2f}' for name in missed) or 'none'}.",
        ]
    if failed:
        lines += ["", f"Failed: {', '.join(failed)}."]
    show(lines, options.output, options.append)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
