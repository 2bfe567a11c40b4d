"""Compare with JAX on the same jaxlib, by random programs.

    python compare_with_jax.py --dovetail PYTHON --jax PYTHON [--programs 20000] [--seed 0]

Program number n is that of seed + n, so that one is run again by `--seed N --programs 1`. Each is
run operation by operation, or under `jit`, `vmap` or `grad`, and compared in value, dtype, weak
type, shape and class of error. Each difference that is not one on purpose is shrunk, one of
each cause, and printed as Python; the exit code is 1 where there is one.

Nearly all of the time goes into compiling. What is compiled, and what JAX made of each program, is
kept in a folder, so that the same programs take a tenth of the time when they are run again.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from answers import Remembered
from checking import FIRST, Libraries, check
from comparison import Difference
from generation import generate
from known_differences import reason_for
from shrinking import shrink
from source import Program, script
from workers import Pair, known_flags

CACHE = Path(__file__).parents[2] / ".nox" / "differential"


def find_smallest(libraries: Libraries, program: Program, difference: Difference) -> Program:
    """The smallest program that was found to have a difference."""

    def shows(candidate: Program) -> bool:
        return any(other.key == difference.key for other in check(libraries, candidate))

    outcomes = libraries.other(program, ["eager"])["eager"]
    if difference.mode == FIRST.get(program["mode"]):  # the rest need not run
        program = program | {"mode": difference.mode}
    return shrink(program, difference.operation, outcomes, shows)


class Pairs:
    """A pair of processes for each of several threads.

    Args:
        options: the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.remembered = None
        if options.cache is not None:
            options.cache.mkdir(parents=True, exist_ok=True)
            self.remembered = Remembered(
                options.cache / "answers.sqlite", options.jax, known_flags(options.jax)
            )
        self._local = threading.local()
        self._all: list[Pair] = []

    def here(self) -> Pair:
        """The pair of this thread."""
        pair: Pair | None = getattr(self._local, "pair", None)
        if pair is None:
            options = self.options
            pair = Pair(options.dovetail, options.jax, options.cache, self.remembered)
            self._local.pair = pair
            self._all.append(pair)
        return pair

    def check_all(self) -> Iterator[tuple[Program, list[Difference]]]:
        """Programs in order, with what is found in each."""
        options = self.options

        def one(number: int) -> tuple[Program, list[Difference]]:
            program = generate(options.seed + number)
            if number >= options.programs:
                program["mode"] = "types"
            return program, check(self.here(), program)

        with ThreadPoolExecutor(options.workers) as executor:
            yield from executor.map(one, range(options.programs + options.traced))

    def close(self) -> None:
        """End all processes."""
        for pair in self._all:
            pair.close()


def functions_of(program: Program) -> str:
    """The functions of a program, each once."""
    return " ".join(dict.fromkeys(operation["function"] for operation in program["operations"]))


def report(program: Program, difference: Difference, small: Program | None) -> str:
    """What is printed of a difference."""
    lines = [
        f"--- {' | '.join(difference.key)} ({difference.mode}, seed {program['seed']})",
        f"    dovetail: {difference.ours}",
        f"    jax:      {difference.theirs}",
    ]
    if small is not None:
        lines += ["# or with dovetail in the place of jax", script(small, "jax", difference.mode)]
    return "\n".join(lines)


def main() -> int:
    """Run the programs that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dovetail", default=sys.executable, help="Python that has dovetail")
    parser.add_argument("--jax", required=True, help="Python that has JAX on the same jaxlib")
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="how many programs at a time")
    parser.add_argument("--cache", type=Path, default=CACHE, help="what is kept from run to run")
    parser.add_argument("--no-cache", dest="cache", action="store_const", const=None)
    parser.add_argument("--no-shrinking", action="store_true", help="print causes alone")
    parser.add_argument("--traced", type=int, default=0, help="as many more, for types alone")
    options = parser.parse_args()

    begin = time.monotonic()
    pairs = Pairs(options)
    causes: Counter[tuple[str, ...]] = Counter()
    purposes: Counter[str] = Counter()
    for program, found in pairs.check_all():
        for difference in found:
            reason = reason_for(difference)
            if reason is not None:
                purposes[reason] += 1
                continue
            small = None
            if difference.function == difference.mode and not options.no_shrinking:
                # Of a whole program: what is left of it names the cause.
                small = find_smallest(pairs.here(), program, difference)
                difference = replace(difference, function=functions_of(small))
                reason = reason_for(difference)
                if reason is not None:
                    purposes[reason] += 1
                    continue
            causes[difference.key] += 1
            if causes[difference.key] > 1:
                continue
            if small is None and not options.no_shrinking:
                small = find_smallest(pairs.here(), program, difference)
            print(report(program, difference, small), flush=True)
    pairs.close()
    for reason, count in purposes.most_common():
        print(f"{count:6} on purpose: {reason}")
    for cause, count in causes.most_common():
        print(f"{count:6} unexplained: {' | '.join(cause)}")
    print(
        f"{options.programs} programs from seed {options.seed} and {options.traced} traced, "
        f"{sum(causes.values())} unexplained differences of {len(causes)} causes, "
        f"{time.monotonic() - begin:.0f} s"
    )
    return 1 if causes else 0


if __name__ == "__main__":
    raise SystemExit(main())
