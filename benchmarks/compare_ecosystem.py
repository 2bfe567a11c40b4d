"""Programs of the ecosystem on dovetail and on JAX, in turn; medians of each phase as a table.

    python benchmarks/compare_ecosystem.py --dovetail PYTHON --jax PYTHON [--rounds N]
        [--output docs/ecosystem.md] [NAME ...]

Started by `nox -s bench_ecosystem`, whose environments hold the same libraries. Each program runs
on dovetail twice: with an empty cache of compiled programs, and with that of the run before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "ecosystem"
BEGIN, END = "<!-- programs -->", "<!-- end of programs -->"
#: Phases of a program, in the order of the table.
PHASES = ("start", "set-up", "trace", "compile", "first step", "step")


def run(python: str, program: str, words: list[str], **environment: str) -> dict[str, Any]:
    """Run a program; the times and results that it printed."""
    started = {**os.environ, **environment, "PROGRAM_STARTED": repr(time.time())}
    started.pop("PYTHONDONTWRITEBYTECODE", None)
    out = subprocess.run(
        [python, "-W", "ignore", *words, f"{program}.py"],
        cwd=PROGRAMS,
        env=started,
        capture_output=True,
        text=True,
        check=False,
    )
    if out.returncode:
        raise RuntimeError(f"{program} failed with {python}:\n{out.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(out.stdout.splitlines()[-1])
    return found


def medians(runs: list[dict[str, Any]]) -> dict[str, float]:
    """The median of each phase, in seconds."""
    return {
        phase: statistics.median(r["seconds"][phase] for r in runs)
        for phase in PHASES
        if phase in runs[0]["seconds"]
    }


def table(rounds: int, pythons: dict[str, str], names: list[str]) -> list[str]:
    """The rows of the table, for all programs."""
    rows = [
        "| program | | " + " | ".join(PHASES) + " | to the first step | results |",
        "|---|---|" + "--:|" * (len(PHASES) + 1) + "---|",
    ]
    alias = ["-m", "dovetail.as_jax"]
    for name in names:
        for python, words in ((pythons["jax"], []), (pythons["dovetail"], alias)):
            run(python, name, words)  # now Python has compiled all modules, as an installer does
        runs: dict[str, list[dict[str, Any]]] = {"JAX": [], "dovetail": [], "again": []}
        for _ in range(rounds):
            runs["JAX"].append(run(pythons["jax"], name, []))
            with tempfile.TemporaryDirectory() as cache:
                for kind in ("dovetail", "again"):
                    runs[kind].append(
                        run(
                            pythons["dovetail"],
                            name,
                            alias,
                            DOVETAIL_COMPILATION_CACHE_DIR=cache,
                        )
                    )
        for kind, title in (("JAX", "JAX"), ("dovetail", "dovetail"), ("again", "started again")):
            found = medians(runs[kind])
            first = sum(found.get(p, 0) for p in ("trace", "compile", "first step"))
            cells = [f"{found[p]:.3g}" if p in found else "" for p in PHASES]
            results = ", ".join(f"{k} {v:.4g}" for k, v in runs[kind][0]["results"].items())
            label = name.replace("_", " ") if kind == "JAX" else ""
            rows.append(f"| {label} | {title} | {' | '.join(cells)} | {first:.3g} | {results} |")
        sys.stderr.write("\n".join(rows[-3:]) + "\n")
    return rows


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Compare programs on dovetail and on JAX.")
    parser.add_argument("--dovetail", required=True, help="an interpreter with dovetail")
    parser.add_argument("--jax", required=True, help="an interpreter with jax")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="the page whose table is written")
    parser.add_argument("names", nargs="*", help="programs; all by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as bytecode:
        os.environ["PYTHONPYCACHEPREFIX"] = bytecode
        write(options)


def write(options: argparse.Namespace) -> None:
    """Measure, and write or print the table."""
    known = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "phases")
    pythons = {"dovetail": options.dovetail, "jax": options.jax}
    text = "\n".join(table(options.rounds, pythons, options.names or known))
    if options.output is None:
        print(text)
        return
    page = options.output.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    options.output.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
