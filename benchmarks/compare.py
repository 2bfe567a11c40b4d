"""Compare dovetail with JAX on the same jaxlib, interleaved, and write a table.

    python compare.py --dovetail PYTHON --jax PYTHON [--rounds 5] [--output results.md] [--append]

Each figure is the median over the rounds; in a round both programs run one after the other, and a
ratio is the median of those of the rounds. Under `taskset -c 0` both have one core.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
GROUPS = (
    "dispatch",
    "small_programs",
    "eager",
    "sizes",
    "tracing",
    "size",
    "lowering",
    "fresh",
    "loops",
)
#: The most that a figure may be of JAX's, by the beginning of its name; the longest that fits
# counts.
BARS = {
    "import": 0.4,
    "start to": 0.4,
    "start to the value of jnp.ones(3) + 1": 0.33,
    "jit: ": 1.0,
    "eager ": 1.0,
    "grad of a small function": 0.1,
    "x + y": 0.9,
    "jnp.sin": 0.9,
    "x[": 0.3,
    "x.at": 0.3,
    "jnp.zeros": 0.3,
    "jnp.array": 0.3,
    "trace: 1,000": 0.3,
    "trace: 10": 0.4,
    "trace: gradient": 0.4,
    "lower: ": 0.35,
    "jit(lambda)": 0.15,
    "scan: gradient of 1,000 steps, trace and lower": 0.6,
    "scan: gradient of 1,000 steps, run": 1.05,
    "scan: gradient of 1,000 steps, bytes": 1.0,
}
#: The most that the geometric mean of figures may be of JAX's, by the beginning of their names.
MEANS = {"eager 10x10": 0.4, "eager 1000x1000": 1.0}
STARTS = {
    "import of the NumPy API": "import {0}.numpy",
    "start to the value of jnp.ones(3) + 1": (
        "import {0}.numpy as jnp; (jnp.ones(3) + 1).block_until_ready()"
    ),
    "start to the first result of jit": (
        "import {0} as f, {0}.numpy as jnp; "
        "f.jit(lambda x: jnp.sin(x) * 2)(jnp.ones(3)).block_until_ready()"
    ),
    "start to the first compiled gradient": (
        "import {0} as f, {0}.numpy as jnp; "
        "f.jit(f.grad(lambda x: jnp.sum(jnp.sin(x) * x)))(jnp.ones(3)).block_until_ready()"
    ),
    "start to the first random numbers": (
        "from {0} import random; random.normal(random.key(0), (3,)).block_until_ready()"
    ),
}


def cpu_seconds(command: list[str], environment: dict[str, str]) -> float:
    """CPU time of a process, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


Figures = dict[str, tuple[float, str]]


def start(name: str, python: str, framework: str, environment: dict[str, str]) -> Figures:
    """CPU time of a process that runs one of `STARTS`."""
    command = [python, "-c", STARTS[name].format(framework)]
    cpu_seconds(command, environment)  # compiles the modules
    runs = [cpu_seconds(command, environment) for _ in range(3)]
    return {name: (statistics.median(runs) * 1e3, "ms")}


def alone(python: str, framework: str, environment: dict[str, str]) -> Figures:
    """CPU time of the import of the package without the NumPy API, above that of bare Python."""
    bare, imported = (
        statistics.median(cpu_seconds([python, "-c", code], environment) for _ in range(5))
        for code in ("pass", f"import {framework}")
    )
    return {"package alone, above bare Python": ((imported - bare) * 1e3, "ms")}


def group(name: str, python: str, framework: str, environment: dict[str, str]) -> Figures:
    """The figures of one group of `worker.py`."""
    command = [python, str(HERE / "worker.py"), framework, name]
    text = subprocess.run(
        command, check=True, env=environment, capture_output=True, text=True
    ).stdout
    return {
        figure: (value, "B" if figure.endswith(", bytes") else "us")
        for figure, value in json.loads(text).items()
    }


#: What is measured; of each first dovetail, then JAX, so that a machine that becomes slower or
#: faster does not favour either.
MEASUREMENTS: list[Callable[[str, str, dict[str, str]], Figures]] = [
    *(partial(start, name) for name in STARTS),
    alone,
    *(partial(group, name) for name in GROUPS),
]


def first_call(python: str, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds of the demo's first training step without and with a warm cache on disk."""
    program = HERE / "first_step.py"
    with tempfile.TemporaryDirectory() as folder:
        local = environment | {"DOVETAIL_COMPILATION_CACHE_DIR": folder}
        times = [
            float(
                subprocess.run(
                    [python, str(program)], check=True, env=local, capture_output=True, text=True
                ).stdout
            )
            for _ in range(2)
        ]
    return times[0], times[1]


def bar_of(name: str) -> float | None:
    """The bar for a figure."""
    fitting = [prefix for prefix in BARS if name.startswith(prefix)]
    return BARS[max(fitting, key=len)] if fitting else None


#: What figures depend on: for each program its name in tables, and distributions.
PACKAGES = {
    "dovetail": ("dovetail", "dovetail-core jaxlib numpy"),
    "jax": ("JAX", "jax jaxlib numpy"),
    "torch": ("PyTorch", "torch"),
}


def versions(pythons: dict[str, str]) -> str:
    """The versions of Python and of packages, for each program and its Python."""
    shown = []
    for program, (name, packages) in PACKAGES.items():
        if program in pythons:
            shown.append(f"{name}: Python {_versions(pythons[program], packages.split())}")
    return ". ".join(shown)


def _versions(python: str, packages: list[str]) -> str:
    program = (
        "import sys, importlib.metadata as m; "
        "print(sys.version.split()[0], *(f'{p} {m.version(p)}' for p in sys.argv[1:]), sep=', ')"
    )
    return subprocess.run(
        [python, "-c", program, *packages], check=True, capture_output=True, text=True
    ).stdout.strip()


def processor() -> str:
    """The machine, and the widest of those of its vectors that kernels differ by."""
    flags = Path("/proc/cpuinfo")
    known = flags.read_text(errors="replace").split() if flags.exists() else []
    widest = next((name for name in ("avx512f", "avx2") if name in known), None)
    return platform.machine() + (f" with {widest}" if widest else "")


def show(lines: list[str], output: Path | None, append: bool = False) -> None:
    """Print a table, and write it to a file if one is given, or to its end."""
    text = "\n".join(lines) + "\n"
    print(text)
    if output is not None:
        before = output.read_text() + "\n" if append and output.exists() else ""
        output.write_text(before + text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dovetail", required=True, help="Python that has dovetail")
    parser.add_argument("--jax", required=True, help="Python that has JAX on the same jaxlib")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--append", action="store_true", help="keep the tables that are there")
    options = parser.parse_args()

    pythons = {"dovetail": options.dovetail, "jax": options.jax}
    rounds: dict[str, list[Figures]] = {"dovetail": [], "jax": []}
    first: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        # Both packages run from compiled modules, as an installed wheel does: an editable install,
        # or a machine that forbids writing them, would compile dovetail's in every process.
        environment = os.environ | {
            "DOVETAIL_COMPILATION_CACHE_DIR": folder,
            "PYTHONPYCACHEPREFIX": str(Path(folder) / "modules"),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            found: dict[str, Figures] = {"dovetail": {}, "jax": {}}
            for measure in MEASUREMENTS:
                for framework, python in pythons.items():
                    found[framework] |= measure(python, framework, environment)
            for framework, figures in found.items():
                rounds[framework].append(figures)
            first.append(first_call(options.dovetail, environment))

    count = len(os.sched_getaffinity(0))
    cores = f"{count} core" + "s" * (count > 1)
    lines = [
        f"{versions(pythons)}. "
        f"{processor()}, {cores}, {time.strftime('%Y-%m-%d')}. "
        f"Medians of {options.rounds} interleaved rounds.",
        "",
        "| | dovetail | JAX | ratio | bar | |",
        "|---|--:|--:|--:|--:|---|",
    ]
    ratios = {}
    for name, (_, unit) in rounds["dovetail"][0].items():
        ours, theirs = ([r[name][0] for r in rounds[framework]] for framework in pythons)
        ratios[name] = ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        bar = bar_of(name)
        verdict = "" if bar is None else "ok" if ratio <= bar else "missed"
        limit = "" if bar is None else f"{bar:.2f}"
        lines.append(
            f"| {name} | {statistics.median(ours):.1f} {unit} | "
            f"{statistics.median(theirs):.1f} {unit} | {ratio:.2f} | {limit} | {verdict} |"
        )
    for beginning, bar in MEANS.items():
        mean = statistics.geometric_mean(r for n, r in ratios.items() if n.startswith(beginning))
        verdict = "ok" if mean <= bar else "missed"
        lines += ["", f"Geometric mean of {beginning}: {mean:.2f} (bar {bar:.2f}: {verdict})."]
    cold = statistics.median(a for a, _ in first)
    warm = statistics.median(b for _, b in first)
    verdict = "ok" if warm <= 0.5 * cold else "missed"
    lines += [
        "",
        f"First training step of the demo: {cold * 1e3:.0f} ms in a first process, "
        f"{warm * 1e3:.0f} ms in a "
        f"second one with a warm cache on disk: {warm / cold:.2f} of it (bar 0.50: {verdict}).",
    ]
    show(lines, options.output, options.append)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
