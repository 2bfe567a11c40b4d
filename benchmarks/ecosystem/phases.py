"""How long each phase of a program took: printed as JSON when it ends."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

_seconds: dict[str, float] = {}
_last = float(os.environ.get("PROGRAM_STARTED", time.time()))


def phase(name: str) -> None:
    """End a phase, which began when the one before ended."""
    global _last
    now = time.time()
    _seconds[name] = now - _last
    _last = now


def steps(step: Callable[[Any], Any], state: Any, count: int, wait: Callable[[Any], Any]) -> Any:
    """Repeat a step on its own result; keep the median of the times.

    Args:
        step: maps a state to the next.
        state: the first state.
        count: how often.
        wait: waits for a state to be computed.
    """
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        state = step(state)
        wait(state)
        times.append(time.perf_counter() - begin)
    _seconds["step"] = statistics.median(times)
    phase("all steps")
    return state


def report(**results: float) -> None:
    """Print times and results."""
    print(json.dumps({"seconds": _seconds, "results": {k: float(v) for k, v in results.items()}}))
