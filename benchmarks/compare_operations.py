"""Compare workloads with JAX, NumPy or SciPy, and PyTorch, and write tables.

    python compare_operations.py --dovetail PYTHON --jax PYTHON [--torch PYTHON] [--cores one]
        [--only PATTERN] [--seconds 1.5] [--rounds 5] [--busy] [--check]
        [--output operations.md] [--append]

Each figure is the median over the rounds of the median times of calls; in a round of one workload
all frameworks measure it one after the other, every second time in reverse, and a ratio is the
median of those of the rounds. What seems slow is measured again, by new processes and for longer,
and that counts. There is one table for one core and one for all cores.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from compare import processor, show, versions
from interleaved import ROUNDS, Answers, Worker, interleave, one_core
from workloads import FAMILIES

#: The most that the geometric mean may be of the best peer, and a row.
GEOMETRIC_MEAN = 0.8
LARGEST = 1.1
#: A row is called slower than JAX above this: what is measured twice differs by as much.
SLOWER = 1.05
#: How much longer is measured again what is slower than the best of the others.
LONGER = 4
SHOWN = {"jax": "JAX", "numpy": "NumPy", "torch": "PyTorch"}


@dataclass(frozen=True)
class Row:
    """The figures of one workload.

    Args:
        name: the workload.
        answers: by framework, what was answered in the rounds.
        busy: whether least CPU times count, instead of medians.
    """

    name: str
    answers: Answers
    busy: bool = False

    @property
    def times(self) -> dict[str, float]:
        """By framework, the time of a call in seconds."""
        over = min if self.busy else statistics.median
        return {name: over(self._seconds(name)) for name in self.answers}

    @property
    def best(self) -> str:
        """The fastest of the others."""
        times = self.times
        return min((name for name in times if name != "dovetail"), key=times.__getitem__)

    def of(self, peer: str) -> float:
        """How much of a peer's time dovetail takes."""
        if self.busy:
            return self.times["dovetail"] / self.times[peer]
        pairs = zip(self._seconds("dovetail"), self._seconds(peer), strict=False)
        return statistics.median(a / b for a, b in pairs)

    def compilation(self, framework: str) -> float:
        """How many seconds tracing, lowering and compiling took."""
        return float(self.answers[framework][0]["compile"])

    def measured_again(self, later: Row) -> Row:
        """A row with later times, and the compilation that came first."""
        compilations = {name: found[0]["compile"] for name, found in self.answers.items()}
        answers = {
            name: [found[0] | {"compile": compilations[name]}, *found[1:]]
            for name, found in later.answers.items()
        }
        return Row(self.name, answers, self.busy)

    def cells(self) -> str:
        """The row of a table."""
        times = self.times
        compilation = self.compilation("dovetail")
        figures = [
            *(f"{times[f] * 1e3:.3g}" if f in times else "" for f in ("dovetail", *SHOWN)),
            f"{self.of('jax'):.2f}",
            f"{self.of(self.best):.2f}",
            SHOWN[self.best],
            f"{compilation * 1e3:.0f}",
            f"{compilation / self.compilation('jax'):.2f}",
        ]
        return f"| {self.name} | {' | '.join(figures)} |"

    def _seconds(self, framework: str) -> list[float]:
        return [answer["seconds"] for answer in self.answers[framework]]


def measured(
    pythons: dict[str, str],
    wanted: dict[str, list[str]],
    cores: set[int],
    options: argparse.Namespace,
    longer: int = 1,
) -> dict[str, list[Row]]:
    """The rows of all families, by new processes."""
    workers = [Worker(pythons[name], name, "operations.py", cores) for name in pythons]
    rows: dict[str, list[Row]] = {}
    for family, names in wanted.items():
        rows[family] = []
        for name in names:
            answers = interleave(
                workers, name, longer * options.seconds, rounds=options.rounds, busy=options.busy
            )
            if {"dovetail", "jax"} <= answers.keys():
                rows[family].append(Row(name, answers, options.busy))
                print(rows[family][-1].cells(), file=sys.stderr)
    for worker in workers:
        worker.close()
    return {family: found for family, found in rows.items() if found}


def slow(rows: dict[str, list[Row]]) -> dict[str, list[str]]:
    """The names of what is slower than the best of the others."""
    return {
        family: [row.name for row in found if row.of(row.best) > SLOWER]
        for family, found in rows.items()
    }


def table(rows: dict[str, list[Row]]) -> list[str]:
    """The rows of all families, and what they come to."""
    lines = [
        "| | dovetail | JAX | NumPy | PyTorch | of JAX | of the best | best | compile | of JAX |",
        "|---|--:|--:|--:|--:|--:|--:|---|--:|--:|",
    ]
    for family, found in rows.items():
        lines += [f"| **{family}** | | | | | | | | | |", *(row.cells() for row in found)]
    every = [row for found in rows.values() for row in found]
    of_jax = {row.name: row.of("jax") for row in every}
    of_best = {row.name: row.of(row.best) for row in every}
    jax_of_best = statistics.geometric_mean(
        row.times["jax"] / min(seconds for name, seconds in row.times.items() if name != "dovetail")
        for row in every
    )
    compilation = {row.name: row.compilation("dovetail") / row.compilation("jax") for row in every}
    worst = max(compilation, key=compilation.__getitem__)
    mean = statistics.geometric_mean(of_best.values())
    above, slower = ranked(of_best, LARGEST), ranked(of_jax, SLOWER)
    families = ", ".join(
        f"{family} {statistics.geometric_mean(row.of(row.best) for row in found):.2f}"
        for family, found in rows.items()
    )
    return [
        *lines,
        "",
        f"{len(every)} workloads. Geometric mean of the times of JAX: "
        f"{statistics.geometric_mean(of_jax.values()):.2f}; of the best of the others: {mean:.2f} "
        f"(bar {GEOMETRIC_MEAN}: {'ok' if mean <= GEOMETRIC_MEAN else 'missed'}), where JAX has "
        f"{jax_of_best:.2f}. By family: {families}.",
        "",
        f"Above {LARGEST} of the best: {len(above)} rows, {_count_above(of_best, 1.5)} above 1.5, "
        f"{_count_above(of_best, 3)} above 3. {'; '.join(above) or 'None'}.",
        "",
        f"Above {SLOWER} of JAX: {len(slower)} rows. {'; '.join(slower) or 'None'}.",
        "",
        "Tracing, lowering and compiling: geometric mean "
        f"{statistics.geometric_mean(compilation.values()):.2f} of JAX's, "
        f"{sum(row.compilation('dovetail') for row in every):.1f} s of "
        f"{sum(row.compilation('jax') for row in every):.1f} s in all; worst: {worst} "
        f"{compilation[worst]:.2f}.",
    ]


def ranked(ratios: dict[str, float], bound: float) -> list[str]:
    """The names above a bound, with their ratios, the worst first."""
    order = sorted(ratios.items(), key=lambda item: -item[1])
    return [f"{name} {ratio:.2f}" for name, ratio in order if ratio > bound]


def _count_above(ratios: dict[str, float], bound: float) -> int:
    return sum(ratio > bound for ratio in ratios.values())


def differences(workers: list[Worker], wanted: dict[str, list[str]]) -> list[str]:
    """What differs between the results of dovetail and those of others."""
    found = []
    tolerances = {w.name: w.tolerance for family in FAMILIES.values() for w in family}
    with tempfile.TemporaryDirectory() as folder:
        for name in (name for names in wanted.values() for name in names):
            print(name, file=sys.stderr)
            results: dict[str, list[Any]] = {}
            for worker in workers:
                if name not in worker.names:
                    continue
                path = Path(folder) / f"{worker.framework}.npz"
                answer = worker.ask(name=name, results=str(path))
                if "error" in answer:
                    found.append(f"{name}: {worker.framework}: {answer['error']}")
                    print(found[-1], file=sys.stderr)
                    continue
                with np.load(path) as archive:
                    results[worker.framework] = list(archive.values())
            ours = results.pop("dovetail", [])
            for framework, theirs in results.items():
                difference = largest_difference(ours, theirs)
                if not difference <= tolerances[name]:
                    found.append(f"{name}: {framework} differs by {difference:.2g}")
                    print(found[-1], file=sys.stderr)
    return found


def largest_difference(ours: list[Any], theirs: list[Any]) -> float:
    """Of the largest absolute value or of 1; infinite where shapes differ."""
    if [np.shape(x) for x in ours] != [np.shape(x) for x in theirs]:
        return float("inf")
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        wide = np.complex128 if np.iscomplexobj(a) else np.float64
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        difference = np.max(np.abs(a.astype(wide) - b.astype(wide)), initial=0.0)
        worst = max(worst, float(difference) / scale)
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dovetail", required=True, help="Python that has dovetail and SciPy")
    parser.add_argument("--jax", required=True, help="Python that has JAX on the same jaxlib")
    parser.add_argument("--torch", help="Python that has PyTorch")
    parser.add_argument("--cores", choices=("one", "all", "both"), default="both")
    parser.add_argument("--seconds", type=float, default=1.5, help="for each workload")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="in which the time is spent")
    parser.add_argument(
        "--busy", action="store_true", help="least CPU times, on one core of a busy machine"
    )
    parser.add_argument("--only", default="", help="a pattern in names of workloads or families")
    parser.add_argument("--check", action="store_true", help="compare results, and do not measure")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--append", action="store_true", help="keep the tables that are there")
    options = parser.parse_args()

    pythons = {"dovetail": options.dovetail, "jax": options.jax, "numpy": options.dovetail}
    if options.torch:
        pythons["torch"] = options.torch
    wanted = {
        family: [w.name for w in found if re.search(options.only, f"{family}: {w.name}")]
        for family, found in FAMILIES.items()
    }
    wanted = {family: names for family, names in wanted.items() if names}
    every = os.sched_getaffinity(0)
    settings = {"one": [one_core()], "all": [every], "both": [one_core(), every]}
    if options.busy and options.cores != "one":
        parser.error("--busy needs --cores one: threads on other cores have CPU time, too")
    if options.check:
        workers = [Worker(pythons[name], name, "operations.py", every) for name in pythons]
        found = differences(workers, wanted)
        for worker in workers:
            worker.close()
        print("\n".join(found) or "All results agree.")
        return len(found) > 0

    lines = [
        f"{versions(pythons)}. {processor()}, {time.strftime('%Y-%m-%d')}. Milliseconds, "
        f"{'least CPU times' if options.busy else 'medians'} of interleaved rounds.",
    ]
    for cores in settings[options.cores]:
        rows = measured(pythons, wanted, cores, options)
        again = measured(pythons, slow(rows), cores, options, LONGER)
        later = {row.name: row for found in again.values() for row in found}
        rows = {
            family: [
                row.measured_again(later[row.name]) if row.name in later else row for row in found
            ]
            for family, found in rows.items()
        }
        heading = "One core" if len(cores) == 1 else f"{len(cores)} cores"
        lines += ["", f"## {heading}", "", *table(rows)]
    show(lines, options.output, options.append)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
