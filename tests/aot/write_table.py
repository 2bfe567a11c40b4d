"""Writes docs/aot.md from the reports of `nox -s aot-tpu` and `nox -s aot-cuda`.

python tests/aot/write_table.py .nox/aot-tpu.json .nox/aot-cuda.json
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).parents[2] / "docs" / "aot.md"

HEAD = """# Primitives compiled ahead of time

Every primitive that a program can contain is lowered and compiled, on a machine without an
accelerator, for the hardware below, by `nox -s aot-tpu` and `nox -s aot-cuda`: on all samples of
the conformance kit, in the dtypes that the platform declares, or on a program where its parameters
are programs. Nothing is run. `python tests/aot/write_table.py .nox/aot-*.json` writes this file
from their reports.
"""


def summary(outcomes: list[dict[str, Any]]) -> list[str]:
    """Counts for each target."""
    lines = ["| compiled for | primitives | compile | in part | not |", "|---|---|---|---|---|"]
    for target in dict.fromkeys(outcome["target"] for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome["target"] == target]
        wholly = sum(outcome["failed"] == 0 for outcome in own)
        never = sum(outcome["failed"] >= max(outcome["programs"], 1) for outcome in own)
        partly = len(own) - wholly - never
        lines.append(f"| {target} | {len(own)} | {wholly} | {partly} | {never} |")
    return lines


def gaps(outcomes: list[dict[str, Any]]) -> list[str]:
    """The primitives of which something does not compile, those with one reason in a line."""
    found: dict[tuple[str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    places: dict[tuple[str, tuple[str, ...]], dict[str, str]] = defaultdict(dict)
    for outcome in outcomes:
        if outcome["failed"]:
            share = f"{outcome['failed']} of {max(outcome['programs'], outcome['failed'])}"
            reasons = tuple(outcome["reasons"])
            places[outcome["primitive"], reasons][outcome["target"]] = share
    for (primitive, reasons), shares in places.items():
        targets = ", ".join(sorted(shares))
        found[targets, ", ".join(sorted(set(shares.values()))), reasons].append(primitive)
    lines = [
        "| primitives | for | samples that fail | what the compiler lacks |",
        "|---|---|---|---|",
    ]
    for (targets, share, reasons), names in sorted(found.items(), key=lambda item: item[1]):
        shown = ", ".join(f"`{name}`" for name in sorted(names))
        lines.append(f"| {shown} | {targets} | {share} | {'; '.join(reasons)} |")
    return lines


def slow(outcomes: list[dict[str, Any]], limit: float = 20.0) -> str:
    """The primitives whose samples take long to compile."""
    found = defaultdict(list)
    for outcome in outcomes:
        if outcome["seconds"] >= limit:
            found[outcome["target"]].append((outcome["primitive"], outcome["seconds"]))
    lines = [
        f"{target}: " + ", ".join(f"`{name}` {seconds:.0f} s" for name, seconds in sorted(slowest))
        for target, slowest in found.items()
    ]
    return "\n".join(f"- {line}" for line in lines)


def main(paths: list[str]) -> None:
    """Write the file."""
    reports = [json.loads(Path(path).read_text()) for path in paths]
    outcomes = [outcome for report in reports for outcome in report["outcomes"]]
    versions = {name: number for report in reports for name, number in report["versions"].items()}
    text = "\n".join(
        [
            HEAD,
            "With " + ", ".join(f"{name} {number}" for name, number in versions.items()) + ":",
            "",
            *summary(outcomes),
            "",
            "What does not compile:",
            "",
            *gaps(outcomes),
            "",
            "All samples of one primitive took 20 seconds or more (two busy cores):",
            "",
            slow(outcomes),
            "",
            "The incomplete gamma and beta functions and `polygamma` are computed in float64,",
            "which TPUs emulate; of these one sample each is compiled there.",
        ]
    )
    OUTPUT.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
