"""What the tools cost: nothing where nobody asks, and how much while they are on.

    python tools.py --dovetail PYTHON --jax PYTHON [--rounds 7] [--output tools.md] [--append]

Each row is measured in one process with the tools off, in a block of `dovetail.events`, and in a
block of `dovetail.profile`, in turn, and in a process of JAX on the same jaxlib; figures are the
least of the rounds. Below stand loops with a bound and with progress.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_SECONDS = 0.05


def _rows(framework: Any, jnp: Any) -> dict[str, Callable[[], Any]]:
    """The calls to be measured, by name."""
    small = framework.jit(lambda x: x * 2)
    array, host = jnp.ones(3), np.ones(3, np.float32)
    weights = [jnp.ones((4, 4)) for _ in range(10)]

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = jnp.tanh(x @ w)
        return x.sum()

    def trace() -> Any:
        return framework.jit(lambda w, x: framework.grad(loss)(w, x)).trace(weights, jnp.ones(4))

    return {
        "a call of a compiled function": lambda: small(array),
        "the same with an array of NumPy": lambda: small(host),
        "an eager addition": lambda: array + array,
        "reading an array, `np.asarray(x)`": lambda: np.asarray(array),
        "placing one, `device_put(x)`": lambda: framework.device_put(host),
        "tracing a gradient of ten layers": trace,
    }


def _loops(framework: Any, jnp: Any) -> dict[str, Callable[[], Any]]:
    """Loops of 1,000 turns, compiled."""
    lax, start = framework.lax, jnp.ones(100)
    bounded = {"max_steps": 1000} if framework.__name__ == "dovetail" else None

    def turn(carry: Any) -> Any:
        number, x = carry
        return number + 1, jnp.sin(x) * 1.01

    def scanned(x: Any) -> Any:
        return lax.scan(lambda x, _: (jnp.sin(x) * 1.01, None), x, None, length=1000)[0].sum()

    def looped(x: Any, **options: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 1000, turn, (0, x), **options)[1].sum()

    found = {
        "while_loop": framework.jit(looped),
        "scan": framework.jit(scanned),
        "gradient of scan": framework.jit(framework.grad(scanned)),
    }
    if bounded is not None:

        def shown(x: Any) -> Any:
            turn = lambda x, _: (jnp.sin(x) * 1.01, None)  # noqa: E731
            return lax.scan(turn, x, None, length=1000, progress="text")[0].sum()

        def with_bound(x: Any) -> Any:
            return looped(x, max_steps=1000)

        def kept(x: Any) -> Any:
            return looped(x, max_steps=1000, checkpoints=1000)

        found |= {
            "while_loop(max_steps=1000)": framework.jit(with_bound),
            "gradient of while_loop(max_steps=1000)": framework.jit(framework.grad(with_bound)),
            "the same, checkpoints=1000": framework.jit(framework.grad(kept)),
            "scan(progress='text'), bars hidden": framework.jit(shown),
        }
    return {name: (lambda f=f: f(start).block_until_ready()) for name, f in found.items()}


def _microseconds(call: Callable[[], Any]) -> float:
    """The least time of a call, by calling it in groups for a while."""
    start = time.perf_counter()
    call()
    count = max(1, min(1000, int(0.002 / max(time.perf_counter() - start, 1e-7))))
    least = float("inf")
    until = time.perf_counter() + _SECONDS
    while time.perf_counter() < until:
        start = time.perf_counter()
        for _ in range(count):
            call()
        least = min(least, (time.perf_counter() - start) / count)
    return least * 1e6


def _measure(name: str, rounds: int) -> dict[str, dict[str, float]]:
    """The figures of one framework: for each row, by the state of the tools."""
    if name == "dovetail":
        import dovetail as framework
        import dovetail.numpy as jnp

        framework.config.update("progress_bars", False)
        states: dict[str, Callable[[], Any]] = {
            "off": contextlib.nullcontext,
            "events": framework.events,
            "profile": framework.profile,
        }
    else:
        import jax as framework
        import jax.numpy as jnp

        states = {"off": contextlib.nullcontext}
    figures: dict[str, dict[str, float]] = {}
    for table, tools in ((_rows(framework, jnp), states), (_loops(framework, jnp), ["off"])):
        for row, call in table.items():
            call()
            own = figures[row] = {state: float("inf") for state in tools}
            for _ in range(rounds):
                for state in tools:
                    with states[state]():
                        own[state] = min(own[state], _microseconds(call))
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dovetail", help="Python that has dovetail")
    parser.add_argument("--jax", help="Python that has JAX on the same jaxlib")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--append", action="store_true", help="add to the file")
    parser.add_argument("--measure", help="measure this framework, in this process")
    options = parser.parse_args()
    if options.measure:
        json.dump(_measure(options.measure, options.rounds), sys.stdout)
        return 0
    from compare import processor, show, versions

    pythons = {"dovetail": options.dovetail, "jax": options.jax}
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in ("dovetail", "jax", "dovetail", "jax"):
        words = [pythons[name], __file__, "--measure", name, "--rounds", str(options.rounds)]
        measured = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
        for row, states in measured.items():
            own = found.setdefault(name, {}).setdefault(row, states)
            for state, value in states.items():
                own[state] = min(own[state], value)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    lines = [
        f"{versions(pythons)}. {processor()}, cores: {cores}, {time.strftime('%Y-%m-%d')}. "
        "Microseconds.",
        "",
        "| | JAX | tools off | of JAX | in `dt.events()` | in `dt.profile()` |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    loops = ["", "| loops of 1,000 turns | JAX | dovetail |", "|---|--:|--:|"]
    for row, own in found["dovetail"].items():
        other = found["jax"].get(row, {}).get("off")
        shown = "" if other is None else f"{other:.1f}"
        if len(own) == 1:
            loops.append(f"| {row} | {shown} | {own['off']:.1f} |")
            continue
        ratio = "" if other is None else f"{own['off'] / other:.2f}"
        cells = (shown, f"{own['off']:.1f}", ratio, f"{own['events']:.1f}", f"{own['profile']:.1f}")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    show([*lines, *loops], options.output, options.append)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
