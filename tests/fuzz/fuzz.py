"""Call every public function with random arguments, valid and not, and look for what must not be.

    python fuzz.py [--calls 20000] [--seed 0] [--workers 2] [--seconds 0]

Call number n is that of seed + n. A finding is a process that ended, a call that took more than
20 seconds, an error that nobody can read who did not write the library (`judging`), or a state that
changed: options, the trace, results of what is known. Each is printed once, as a program; the exit
code is 1 where there is one.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER.parent / "differential"))

from call_drawing import Call, CallDraw  # noqa: E402 - what these import is in that folder
from workers import FLAGS, Lost, Process, environment, known_flags  # noqa: E402

PATIENCE = 20.0
GIGABYTES = 3.0
MOST_CALLS = 500


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be.

    Args:
        call: the call.
        what: what came of it.
        where: why it is a finding, and where it came from.
    """

    call: Call
    what: str
    where: str

    @property
    def cause(self) -> tuple[str, str]:
        """Findings of one cause are alike here."""
        return re.sub(r"\d+|'[^']*'|\(.*?\)", "_", self.what)[:60], self.where

    def __str__(self) -> str:
        head = f"--- seed {self.call.seed}: {self.what}\n    {self.where}"
        return f"{head}\n{self.call.script()}\n"


class Caller:
    """A process that makes calls.

    Args:
        python: the interpreter.
    """

    def __init__(self, python: str) -> None:
        folder = Path(tempfile.mkdtemp(prefix="dovetail-fuzz-log-"))
        self.log = folder / "log"
        command = [python, str(FOLDER / "call_runner.py"), str(GIGABYTES)]
        paths = [str(FOLDER), str(FOLDER.parent / "differential")]
        # Without the flag of emitters that no user has.
        flags = tuple(flag for flag in FLAGS if "emitters" not in flag)
        variables = environment(known_flags(python, flags), None)
        variables["PYTHONPATH"] = ":".join([*paths, variables.get("PYTHONPATH", "")])
        self.process = Process(command, PATIENCE, lambda: variables, MOST_CALLS, self.log)
        self.made: list[int] = []
        self.accepted = 0

    def make(self, call: Call) -> list[Finding]:
        """Make a call, and tell what was found."""
        if self.process.start():
            self.made = []
        self.made.append(call.seed)
        try:
            self.process.ask({"line": call.line, "x64": call.x64})
            answer = self.process.reply()
        except Lost as lost:
            after = f"{lost} after {len(self.made)} calls, the first of seed {self.made[0]}"
            return [Finding(call, str(lost), f"{after}\n{self._last_words()}")]
        found = []
        self.accepted += answer["made"]
        if answer["found"] is not None:
            found.append(Finding(call, *answer["found"]))
        if answer["changed"]:
            found.append(Finding(call, "the state changed", answer["changed"]))
            self.process.close()
        return found

    def _last_words(self) -> str:
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        return "\n".join(f"    {line}" for line in text.splitlines()[:24])


class Callers:
    """A process for each of several threads.

    Args:
        python: the interpreter.
        workers: how many.
    """

    def __init__(self, python: str, workers: int) -> None:
        self.python, self.workers = python, workers
        self._local = threading.local()
        self._all: list[Caller] = []

    def make_all(self, first: int, count: int, until: float = math.inf) -> Iterator[list[Finding]]:
        """What was found by each of several calls, in order."""

        def one(seed: int) -> list[Finding]:
            if time.monotonic() > until:
                return []
            caller: Caller | None = getattr(self._local, "caller", None)
            if caller is None:
                caller = self._local.caller = Caller(self.python)
                self._all.append(caller)
            return caller.make(CallDraw(seed).call())

        with ThreadPoolExecutor(self.workers) as executor:
            yield from executor.map(one, range(first, first + count))

    def accepted(self) -> int:
        """How many calls were no mistakes."""
        return sum(caller.accepted for caller in self._all)

    def close(self) -> None:
        """End the processes."""
        for caller in self._all:
            caller.process.close()


def main() -> int:
    """Make the calls that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="how many calls at a time")
    parser.add_argument("--seconds", type=float, default=0.0, help="to stop after; 0 is never")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with dovetail")
    options = parser.parse_args()
    begin = time.monotonic()
    until = begin + options.seconds if options.seconds else float("inf")
    callers = Callers(options.python, options.workers)
    causes: Counter[tuple[str, str]] = Counter()
    made = 0
    for found in callers.make_all(options.seed, options.calls, until):
        made += time.monotonic() < until
        for finding in found:
            causes[finding.cause] += 1
            if causes[finding.cause] == 1:
                print(finding, flush=True)
    callers.close()
    for (what, where), count in causes.most_common():
        print(f"{count:6} {what} | {where.splitlines()[0]}")
    print(
        f"{made} calls from seed {options.seed}, of which {callers.accepted()} were accepted, "
        f"{causes.total()} findings of {len(causes)} causes, {time.monotonic() - begin:.0f} s"
    )
    return 1 if causes else 0


if __name__ == "__main__":
    raise SystemExit(main())
