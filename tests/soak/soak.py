"""What a process does for hours: nothing may be left behind, get stuck, or be wrong.

    python soak.py [--iterations 20000] [--seconds 600] [--thread-seconds 600] [--kills 500]

First the table of leaks, each pattern of `patterns` in a process of its own; then threads that
compute and compile at once (`threads`); then writers of the disk cache that are killed (`writers`).
With ``--jax PYTHON`` the table has JAX's figures, too. The exit code is 1 where anything was found.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from leaks import Growth
from patterns import PATTERNS
from writers import PROGRAMS, Outcome, kill_writers

FOLDER: Final = Path(__file__).parent

#: What may be left behind: the allocator's own, and caches with a limit that were not full.
MEGABYTES: Final = 4.0
MEGABYTES_PER_10000: Final = 2.0
OBJECTS: Final = 100

#: A process that is killed leaves at most the file that it was writing.
TEMPORARY_PER_KILL: Final = 1


def measured(
    python: str, library: str, names: list[str], iterations: int, seconds: float
) -> list[Growth]:
    """What patterns leave behind, measured in one new process.

    Args:
        python: the interpreter.
        library: ``dovetail`` or ``jax``.
        names: the patterns.
        iterations: how often each is repeated at most.
        seconds: how long each is repeated at most.
    """
    words = [python, str(FOLDER / "leaks.py"), library, str(iterations), str(seconds), *names]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, f"{names}: {done.stderr[-4000:]}"
    return [Growth(**json.loads(line)) for line in done.stdout.splitlines()]


def is_leak(growth: Growth) -> bool:
    """Whether a pattern left more behind than it may."""
    allowed = MEGABYTES + MEGABYTES_PER_10000 * growth.iterations / 1e4
    return growth.megabytes > allowed or growth.objects > OBJECTS


def what_is_wrong(outcome: Outcome) -> list[str]:
    """What killed writers must not leave."""
    wrong = []
    if sum(outcome.first) != PROGRAMS or outcome.second != (0, PROGRAMS):
        wrong.append(f"programs were not all compiled once and then read: {outcome}")
    if outcome.temporary > outcome.kills * TEMPORARY_PER_KILL:
        wrong.append(f"{outcome.temporary} unfinished files after {outcome.kills} kills")
    return wrong


def _table(options: argparse.Namespace) -> list[str]:
    """Print the table of leaks, and return those that there are."""
    found = []
    print("| pattern | iterations | objects | MB per 10,000 | of JAX |\n|---|---|---|---|---|")
    for name, entry in PATTERNS.items():
        (ours,) = measured(sys.executable, "dovetail", [name], options.iterations, options.seconds)
        theirs = ""
        if options.jax and entry.only != "dovetail":
            (other,) = measured(options.jax, "jax", [name], options.iterations, options.seconds)
            theirs = f"{other.megabytes_per_10000:.2f}"
        figure = f"{ours.megabytes_per_10000:.2f}"
        print(f"| {name} | {ours.iterations} | {ours.objects} | {figure} | {theirs} |", flush=True)
        if is_leak(ours):
            found.append(f"{name}: {ours}")
    return found


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=20_000, help="of each pattern")
    parser.add_argument("--seconds", type=float, default=600.0, help="of each pattern, at most")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--thread-seconds", type=float, default=600.0)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--jax", help="an interpreter that has JAX, to compare with")
    options = parser.parse_args()
    found = _table(options) if options.iterations else []
    if options.thread_seconds:
        words = [str(FOLDER / "threads.py"), str(options.threads), str(options.thread_seconds)]
        if subprocess.run([sys.executable, *words]).returncode:
            found.append("threads: see above")
    if options.kills:
        with tempfile.TemporaryDirectory() as folder:
            outcome = kill_writers(Path(folder) / "cache", options.kills)
        print(outcome)
        found += what_is_wrong(outcome)
    print("\n".join(found) if found else "nothing was found")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
