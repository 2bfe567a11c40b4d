"""The part of the rule ``host-in-loop`` about loops of Python, which need values while they run.

Tracing ends there with an error. Called as it is, the function waits for the device in each turn.
"""

from __future__ import annotations

import linecache
from typing import Final

from dovetail._core.api.linting.bytecode import loops_at
from dovetail._core.api.linting.findings import Finding, where_is
from dovetail._core.api.linting.sites import RawFrame
from dovetail._core.base.errors import ConcretizationTypeError, TracerArrayConversionError
from dovetail._core.base.source import frame_at, is_internal
from dovetail._core.trace.state import evaluation_trace
from dovetail._core.transform.stage import StageTracer, stage

__all__ = ["VALUE_IS_NEEDED", "needed_value"]

VALUE_IS_NEEDED: Final = (ConcretizationTypeError, TracerArrayConversionError)
"""What is raised where a value has to be known."""


def needed_value(
    error: ConcretizationTypeError | TracerArrayConversionError,
) -> Finding | None:
    """The finding about an error, if it is one in a loop and only tracing makes it one."""
    tracer = error.tracer
    if type(tracer) is not StageTracer or tracer._trace.parent is not evaluation_trace:
        return None
    frames = _traced_frames(error)
    if not any(map(_is_in_loop, frames)):
        return None
    where, function = where_is(frame_at(*frames[0]))
    return Finding(
        "host-in-loop",
        where,
        function,
        "each turn of a loop of Python needs the value of an array here, and waits for the device. "
        "Under jit it is an error, so that what follows has not been looked at",
        "Keep it an array, and look at its value after the loop; or write the loop with lax.scan, "
        "lax.fori_loop or lax.while_loop",
    )


def _traced_frames(error: BaseException) -> list[RawFrame]:
    """The user's frames in the function that is traced, innermost first."""
    frames: list[RawFrame] = []
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code is stage.__code__:
            frames.clear()
        elif not is_internal(code.co_filename):
            frames.append((code, traceback.tb_lasti))
        traceback = traceback.tb_next
    return frames[::-1]


def _is_in_loop(frame: RawFrame) -> bool:
    code, offset = frame
    # The condition of `while` may be compiled twice: once before the loop.
    line = linecache.getline(code.co_filename, frame_at(code, offset).line)
    return bool(loops_at(code, offset)) or line.lstrip().startswith("while ")
