"""Running programs with effects: their order, and waiting for them.

Each such program returns an additional empty result, its token, which is ready when the program
has finished. A program with ordered effects takes the token of the previous one as an argument, so
it starts after that one without blocking the caller.
"""

from __future__ import annotations

import atexit
import contextlib
import traceback
from typing import Any, Final

import numpy as np

from dovetail._core.base import config
from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.base.locks import shared_lock
from dovetail._core.ir.avals import runtime_token
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.failures import original, was_raised
from dovetail._core.runtime.devices import process_ends

__all__ = ["effects_barrier", "give_token", "ordering", "take_token", "wait_for_ordered"]

#: Held while a program with ordered effects is started, so that no two threads take the same token.
_ordering: Final = shared_lock()

_lock: Final = shared_lock()
_running: Final[list[Any]] = []
_last_ordered: Final[list[Any]] = []
_MOST_FAILED: Final = 64


def _failed(token: Any) -> bool:
    """Whether a token's program failed; waits for it."""
    try:
        token.block_until_ready()
    except (JaxRuntimeError, ValueError):
        return True
    return False


def ordering() -> contextlib.AbstractContextManager[Any]:
    """The lock that a thread holds while it starts a program with ordered effects.

    A callback takes no lock: the thread that called its program may hold it.
    """
    return contextlib.nullcontext() if config.callback_depth.value else _ordering


def take_token(sharding: Any) -> Any:
    """The token that a program with ordered effects waits for: the previous program's.

    In a callback there is nothing to wait for: the calling program is still running.

    Args:
        sharding: where the program runs.
    """
    if config.callback_depth.value == 0 and _last_ordered:
        (token,) = _last_ordered
        # A program must not fail because the previous one did; that one reports its own error.
        if not (token.is_ready() and _failed(token)):
            return buffers.move(token, sharding, False)
    return buffers.put(np.zeros(0, bool), runtime_token, sharding)


def give_token(token: Any, ordered: bool) -> None:
    """Record the token of a program that was started.

    Args:
        token: the token.
        ordered: whether the program has ordered effects.
    """
    if ordered and config.callback_depth.value == 0:
        _last_ordered[:] = [token]
    with _lock:
        _running[:] = [t for t in _running if not t.is_ready() or _failed(t)][-_MOST_FAILED:]
        _running.append(token)


def wait_for_ordered() -> None:
    """Wait until all programs with ordered effects started so far have finished."""
    if config.callback_depth.value == 0 and _last_ordered:
        _failed(_last_ordered[0])


def effects_barrier() -> None:
    """Wait until all effects of the programs started so far have happened.

    Raises:
        Exception: a callback's exception, unless reading a result has already raised it.

    Example:
        >>> import dovetail as dt
        >>> seen = []
        >>> dt.jit(lambda x: dt.debug.callback(lambda x: seen.append(int(x)), x))(1)
        >>> dt.effects_barrier()
        >>> seen
        [1]
    """
    if config.callback_depth.value:
        return  # the program that called this cannot finish before it returns
    with _lock:
        waiting = list(_running)
        _running.clear()
    errors = []
    for token in waiting:
        try:
            token.block_until_ready()
        except (JaxRuntimeError, ValueError) as error:
            if not was_raised(error):
                errors.append(original(error))
    if errors:
        raise errors[0]


def _forget_in_child() -> None:
    if process_ends.in_child():
        _running.clear()
        _last_ordered.clear()


process_ends.on_end(_forget_in_child)


@atexit.register
def _wait_at_exit() -> None:
    """Let running programs finish printing, and print errors that nobody else would report."""
    try:
        effects_barrier()
    except Exception:
        traceback.print_exc()
