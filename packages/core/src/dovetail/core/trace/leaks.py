"""Tracers that outlive their transformation, looked for while ``check_tracer_leaks`` is on."""

from __future__ import annotations

import gc
from types import CellType, FrameType
from typing import Any

from dovetail.core.base import pytree
from dovetail.core.base.errors import UnexpectedTracerError
from dovetail.core.trace.state import Trace
from dovetail.core.trace.tracer import Tracer


def check_leaks(trace: Trace, auxiliary: Any = None) -> None:
    """Raise if a tracer of a finished trace is still alive outside of it.

    Args:
        trace: the trace.
        auxiliary: a tree whose tracers may be, since they are replaced when it is returned.

    Raises:
        UnexpectedTracerError: naming each leaked tracer, where it was made, and what refers to it.
    """
    gc.collect()
    expected = {id(leaf) for leaf in pytree.leaves(auxiliary)}
    leaked = [
        value
        for value in gc.get_objects()
        if isinstance(value, Tracer) and value._trace is trace and id(value) not in expected
    ]
    if not leaked:
        return
    lines = [f"  {tracer!r}, {tracer.origin()}\n{_referrers(tracer, leaked)}" for tracer in leaked]
    raise UnexpectedTracerError(
        "tracers were kept beyond the transformation that made them:\n" + "\n".join(lines)
    )


def _referrers(tracer: Tracer, ignored: Any) -> str:
    """One line for each object, up to three, that keeps a tracer alive."""
    lines = []
    for holder in gc.get_referrers(tracer):
        if holder is ignored or isinstance(holder, FrameType):
            continue
        owner = f"a {type(holder).__name__}"
        if isinstance(holder, CellType):
            owner = "a variable of an enclosing function"
        elif isinstance(holder, dict):
            for key, value in holder.items():
                if value is tracer:
                    owner = f"a dict under {key!r}"
        lines.append(f"    kept alive by {owner}")
    return "\n".join(lines[:3])
