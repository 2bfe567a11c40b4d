"""Compare data-parallel training in one and in four processes with JAX on the same jaxlib.

    python compare_processes.py --dovetail PYTHON --jax PYTHON [--rounds 15]
        [--output devices.md] [--append]

Each process has as much to do as a single one: with a core for each and no communication, a step
would take as long. In a round both frameworks measure both, interleaved, every second time in
reverse; figures and ratios are medians over the rounds.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import time
from pathlib import Path

from compare import processor, show, versions

HERE = Path(__file__).parent
COUNTS = (1, 4)
STEPS = 20
#: The most that a step of four processes, as a part of one's of a single one, may be of JAX's.
BAR = 1.1


class Group:
    """Processes that train together.

    Args:
        python: their Python.
        framework: the framework.
        count: how many they are.
    """

    def __init__(self, python: str, framework: str, count: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        environment = {
            f"{prefix}_{option}": value
            for prefix in ("DOVETAIL", "JAX")
            for option, value in (("NUM_CPU_DEVICES", "1"), ("PLATFORMS", "cpu"))
        }
        self._processes = [
            subprocess.Popen(
                [python, str(HERE / "processes.py"), framework, address, str(count), str(number)],
                env=os.environ | environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(count)
        ]

    def measure(self, steps: int) -> float:
        """Microseconds that a step takes."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
        return statistics.mean([self._figure(process) for process in self._processes])

    def _figure(self, process: subprocess.Popen[str]) -> float:
        assert process.stdout is not None
        for line in process.stdout:  # Gloo tells of its connections there
            if line.startswith("figure"):
                return float(line.split()[1])
        raise SystemExit(f"{' '.join(map(str, process.args))} ended without a figure")

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dovetail", required=True, help="Python that has dovetail")
    parser.add_argument("--jax", required=True, help="Python that has JAX on the same jaxlib")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--append", action="store_true", help="keep the tables that are there")
    options = parser.parse_args()

    pythons = {"dovetail": options.dovetail, "jax": options.jax}
    groups = {
        (name, count): Group(python, name, count)
        for name, python in pythons.items()
        for count in COUNTS
    }
    for group in groups.values():
        group.measure(STEPS)
    figures: dict[tuple[str, int], list[float]] = {key: [] for key in groups}
    for number in range(options.rounds):
        order = list(groups.items())
        for key, group in reversed(order) if number % 2 else order:
            figures[key].append(group.measure(STEPS))
    for group in groups.values():
        group.close()

    cores = len(os.sched_getaffinity(0))
    lines = [
        f"{versions(pythons)}. {processor()}, {cores} core{'s' * (cores > 1)}, "
        f"{time.strftime('%Y-%m-%d')}. Data-parallel training, as much for each process: "
        f"microseconds a step, medians of {options.rounds} interleaved rounds.",
        "",
        "| | dovetail | JAX | of JAX | bar | |",
        "|---|--:|--:|--:|--:|---|",
    ]
    single, several = COUNTS
    for count in COUNTS:
        own, their = figures["dovetail", count], figures["jax", count]
        ratio = statistics.median(a / b for a, b in zip(own, their, strict=True))
        name = f"a step in {count} process{'es' * (count > 1)}"
        cells = f"{statistics.median(own):,.0f} | {statistics.median(their):,.0f}"
        lines.append(f"| {name} | {cells} | {ratio:.2f} |  |  |")
    growth = {
        name: [a / b for a, b in zip(figures[name, several], figures[name, single], strict=True)]
        for name in pythons
    }
    ratio = statistics.median(a / b for a, b in zip(growth["dovetail"], growth["jax"], strict=True))
    cells = " | ".join(f"{statistics.median(growth[name]):.2f}" for name in pythons)
    verdict = "ok" if ratio <= BAR else "missed"
    lines.append(
        f"| the latter as a part of the former | {cells} | {ratio:.2f} | {BAR} | {verdict} |"
    )
    show(lines, options.output, options.append)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
