"""Compare programs and transfers over eight CPU devices with JAX on the same jaxlib.

    python compare_devices.py --dovetail PYTHON --jax PYTHON [--rounds 9]
        [--output devices.md] [--append]

Each figure is the median over the rounds; in a round of one call both frameworks measure it one
after the other, every second time in reverse, and a ratio is the median of those of the rounds.

On jaxlib before 0.11 both have a pool of sixteen threads, as dovetail makes it: with JAX's default,
programs in which devices wait for each other hang there.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

from compare import processor, show, versions
from interleaved import Worker

#: The most that a figure may be of JAX's, by the beginning of its name.
BARS = {
    "call of a program": 1.05,
    "device_put": 1.0,
    "trace and lower": 0.35,
    "call of shard_map": 0.3,
}
#: Versions of jaxlib that need more threads than they make.
THREADS_WANTED = ("0.10",)


def bar_of(name: str) -> float | None:
    """The bar for a figure; None if there is none."""
    return next((bar for start, bar in BARS.items() if name.startswith(start)), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dovetail", required=True, help="Python that has dovetail")
    parser.add_argument("--jax", required=True, help="Python that has JAX on the same jaxlib")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="measure names that contain this")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--append", action="store_true", help="keep the tables that are there")
    options = parser.parse_args()

    pythons = {"dovetail": options.dovetail, "jax": options.jax}
    figures: dict[str, dict[str, list[float]]] = {}
    environment = {
        "DOVETAIL_NUM_CPU_DEVICES": "8",
        "JAX_NUM_CPU_DEVICES": "8",
    }
    if any(f"jaxlib {version}." in versions(pythons) for version in THREADS_WANTED):
        environment["PJRT_NPROC"] = "16"
    workers = {
        name: Worker(pythons[name], name, "devices.py", environment=environment) for name in pythons
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

    count = len(os.sched_getaffinity(0))
    lines = [
        f"{versions(pythons)}. {processor()}, {count} core{'s' * (count > 1)}, eight CPU "
        f"devices, {time.strftime('%Y-%m-%d')}. Microseconds, medians of {options.rounds} "
        "interleaved rounds.",
        "",
        "| | dovetail | JAX | of JAX | bar | |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for name, found in figures.items():
        ratio = statistics.median(
            a / b for a, b in zip(found["dovetail"], found["jax"], strict=True)
        )
        bar = bar_of(name)
        verdict = "" if bar is None else "ok" if ratio <= bar else "missed"
        cells = [f"{statistics.median(found[framework]):,.1f}" for framework in workers]
        shown = "" if bar is None else str(bar)
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio:.2f} | {shown} | {verdict} |")
    show(lines, options.output, options.append)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
