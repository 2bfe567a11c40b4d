"""Compare single operations on large arrays with JAX, NumPy and PyTorch, and write a table.

    python compare_operations.py --dovetail PYTHON --jax PYTHON [--torch PYTHON] [--rounds 3]
        [--output operations.md]

Each figure is the median over the rounds; in a round all programs run one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compare import versions

HERE = Path(__file__).parent
GEOMETRIC_MEAN = 0.6
LARGEST = 1.1


def measure(python: str, framework: str, environment: dict[str, str]) -> dict[str, float]:
    """Milliseconds by operation."""
    answer = subprocess.run(
        [python, str(HERE / "operations.py"), framework],
        check=True,
        env=environment,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dovetail", required=True, help="Python that has dovetail")
    parser.add_argument("--jax", required=True, help="Python that has JAX on the same jaxlib")
    parser.add_argument("--torch", help="Python that has PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()

    pythons = {"dovetail": options.dovetail, "jax": options.jax, "numpy": options.dovetail}
    if options.torch:
        pythons["torch"] = options.torch
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"DOVETAIL_COMPILATION_CACHE_DIR": folder}
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            for name, python in pythons.items():
                rounds[name].append(measure(python, name, environment))

    packages = {"dovetail": ("dovetail", "jaxlib", "numpy"), "jax": ("jax", "jaxlib")}
    shown = [f"{name}: Python {versions(pythons[name], packages[name])}" for name in packages]
    if options.torch:
        shown.append(f"PyTorch: Python {versions(options.torch, ('torch',))}")
    lines = [
        f"{'. '.join(shown)}. {platform.machine()}, {os.cpu_count()} cores, "
        f"{time.strftime('%Y-%m-%d')}. Milliseconds, medians of {options.rounds} interleaved "
        "rounds.",
        "",
        "| | dovetail | JAX | NumPy | PyTorch | of JAX | of the best |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    ratios = {}
    for name in rounds["dovetail"][0]:
        times = {
            framework: statistics.median(r[name] for r in found)
            for framework, found in rounds.items()
            if name in found[0]
        }
        ours = times["dovetail"]
        ratios[name] = ours / times["jax"]
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
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output:
        options.output.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
