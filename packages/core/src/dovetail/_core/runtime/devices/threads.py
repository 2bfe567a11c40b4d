"""How many threads programs on the CPU compute with."""

from __future__ import annotations

import math
import os
from typing import Final

from dovetail._core.base import config
from dovetail._core.runtime.devices.control_groups import processor_limits

__all__ = ["describe_threads", "thread_count", "usable_processors"]

#: Variables by which users of XLA set the size of its thread pools.
_VARIABLES: Final = ("PJRT_NPROC", "NPROC")


def usable_processors() -> int:
    """The processors of the process's affinity, or fewer if its control groups have a quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    there = os.cpu_count() or 1 if affinity is None else len(affinity(0))
    # Of a part of a processor, one thread makes the most; any more wait for the next period.
    return max(1, min([there, *(math.ceil(limit) for limit in processor_limits())]))


def thread_count() -> int:
    """The threads that a client of the CPU is started with."""
    return _chosen()[0]


def describe_threads() -> str:
    """Their number, and who chose it."""
    return "{} ({})".format(*_chosen())


def _chosen() -> tuple[int, str]:
    option = config.num_threads
    if option.value:
        return option.value, f"the option {option.name}"
    for name in _VARIABLES:
        text = os.environ.get(name, "").strip()
        if text.isascii() and text.isdigit() and int(text):
            return int(text), f"the variable {name}"
    count = usable_processors()
    total = os.cpu_count() or 1
    return count, f"of {total} processors, those that this process may use"
