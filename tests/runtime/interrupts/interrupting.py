"""Interrupts a function at a chosen instruction of the framework, as a signal handler would."""

from __future__ import annotations

import dis
import functools
import gc
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.base import config
from dovetail._core.base.bindings import unset
from dovetail._core.base.limits import level
from dovetail._core.base.options import _registry
from dovetail._core.runtime.programs import callbacks
from dovetail._core.trace.state import evaluation_trace, state

OURS: Final = tuple({str(Path(module.__path__[0])) for module in (dt._core, jnp, dt.random)})


class Interrupt(BaseException):
    """What the handler raises: caught by nobody who does not know it."""


@functools.cache
def _handler(code: CodeType, offset: int) -> int | None:
    """Where an exception at an instruction is handled; None if nowhere in the function."""
    for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
        if entry.start <= offset < entry.end:
            return int(entry.target)
    return None


def handle(number: int, frame: object) -> None:
    """A signal handler."""
    raise Interrupt


def interrupted_at(
    function: Callable[[], object], number: int, *, lines: bool = False
) -> tuple[bool, int]:
    """Call a function, and raise `Interrupt` at an instruction of the framework.

    Args:
        function: what is called.
        number: the number of the instruction, from 1; 0 interrupts nothing.
        lines: whether lines are counted, not instructions.

    Returns:
        Whether it was interrupted, and how many instructions or lines there were until then.
    """
    count = 0
    handlers: dict[int, Any] = {}  # by id: frames are not kept alive
    event_name = "line" if lines else "opcode"

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "call":
            frame.f_trace_opcodes = not lines
            handlers.pop(id(frame), None)
        elif event == event_name:
            handler = _handler(frame.f_code, frame.f_lasti)
            before, handlers[id(frame)] = handlers.get(id(frame), handler), handler
            if handler != before:
                return trace  # no signal is handled at the border of a block, such as of a lock
            count += 1
            if count == number:
                sys.settrace(None)
                handle(0, frame)
        return trace

    previous = signal.signal(signal.SIGINT, handle)
    sys._getframe().f_trace_opcodes = not lines  # Python 3.12 asks when tracing begins
    sys.settrace(trace)
    try:
        function()
    except Interrupt:
        return True, count
    except dt.errors.JaxRuntimeError as error:
        # XLA passes on only the text of what is raised where it calls Python, before any `try`.
        if "Interrupt" not in str(error):
            raise
        return True, count
    finally:
        sys.settrace(None)
        signal.signal(signal.SIGINT, previous)
    return False, count


_THRESHOLDS: Final = gc.get_threshold()
_LIMIT: Final = sys.getrecursionlimit()
_OPTIONS: Final = {name: option.value for name, option in _registry.items()}


@dt.jit
def _jitted(x: Any) -> Any:
    return jnp.sin(x) * 2 + jnp.sum(x)


_X: Final = np.arange(3, dtype=np.float32)


def check_process() -> None:
    """Assert that nothing is left of an interrupted call."""
    assert state.trace is evaluation_trace
    assert state.place is None
    assert config.trace_state.get_local() in (None, unset)
    assert level.depth == 0
    assert gc.get_threshold() == _THRESHOLDS
    assert sys.getrecursionlimit() == _LIMIT
    changed = {name: o.value for name, o in _registry.items() if o.value != _OPTIONS[name]}
    assert not changed, changed
    assert not callbacks._active
    x = jnp.asarray(_X)
    np.testing.assert_array_equal(x + 1, _X + 1)
    np.testing.assert_allclose(_jitted(x), np.sin(_X) * 2 + _X.sum(), rtol=1e-6)
    np.testing.assert_allclose(dt.grad(lambda y: jnp.sum(y * y))(x), 2 * _X)
    np.testing.assert_allclose(dt.vmap(lambda y: y * 3)(x), 3 * _X)
