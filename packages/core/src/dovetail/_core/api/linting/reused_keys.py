"""The rule ``key-reused``: random keys that are used twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dovetail._core.api.linting.findings import Finding, where_is
from dovetail._core.api.linting.sites import Program
from dovetail._core.base.bindings import get_traceback
from dovetail._core.ir.avals import aval_of
from dovetail._core.transform.key_reuse import (
    KeyTracker,
    ReuseCollector,
    frames_of,
    has_keys,
    holds_keys,
    is_position,
    new_identities,
)

__all__ = ["reused_keys"]


def reused_keys(program: Program) -> Iterator[Finding]:
    """Keys from which numbers are made twice, as the option `debug_key_reuse` finds them."""
    if not has_keys(program.closed):
        return
    constants: dict[int, Any] = {}

    def read(tracker: KeyTracker, value: Any) -> Any:
        aval = aval_of(value)
        if holds_keys(aval):
            identities = constants.setdefault(id(value), new_identities(aval.shape))
            return tracker.numbers_of(identities)
        return np.asarray(value) if isinstance(value, np.ndarray) and is_position(aval) else None

    collector = ReuseCollector(read, get_traceback())
    operands: list[Any] = []
    names: dict[int, str] = {}
    for var in program.closed.jaxpr.invars:
        numbers = None
        if holds_keys(var.aval):
            numbers = collector.numbers_of(new_identities(var.aval.shape))
            names |= dict.fromkeys(numbers.flat, program.names.get(var, ""))
        operands.append(numbers)
    collector.follow(program.closed, operands)
    for reuse in collector.found:
        frames = frames_of(reuse.stacks)
        where, function = where_is(frames[0] if frames else None)
        intended = "; random.clone(key) says that it is intended"
        yield Finding(
            "key-reused",
            where,
            function,
            reuse.mistake,
            reuse.remedy + intended,
            names.get(reuse.number) or None,
        )
