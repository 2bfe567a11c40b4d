"""Programs with effects that run: their order, and waiting for them.

Each such program gives back one more result, empty, which is there when the program has ended: its
token. A program with ordered effects takes the token of the one before, so that it starts after it,
while the caller goes on.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import traceback
from typing import Any, Final

import numpy as np

from dovetail._core.base import config
from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.ir.avals import runtime_token
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.failures import original, was_raised

__all__ = ["effects_barrier", "give_token", "ordering", "take_token", "wait_for_ordered"]

#: Held while a program with ordered effects is started, so that two threads cannot both follow the
#: same one.
_ordering: Final = threading.RLock()

_lock: Final = threading.Lock()
_running: Final[list[Any]] = []
_last_ordered: Final[list[Any]] = []
_MOST_FAILED: Final = 64


def _failed(token: Any) -> bool:
    """Whether the program of a token that is ready has failed."""
    try:
        token.block_until_ready()
    except (JaxRuntimeError, ValueError):
        return True
    return False


def ordering() -> contextlib.AbstractContextManager[Any]:
    """What a thread has to hold while it starts a program with ordered effects.

    A callback needs nothing: the thread that called its program may hold it.
    """
    return contextlib.nullcontext() if config.callback_depth.value else _ordering


def take_token(sharding: Any) -> Any:
    """What a program with ordered effects waits for: the token of the one before.

    In a callback it waits for nothing: the program that called is not over.

    Args:
        sharding: where the program runs.
    """
    if config.callback_depth.value == 0 and _last_ordered:
        (token,) = _last_ordered
        # A program must not fail because the one before did, which says so itself.
        if not (token.is_ready() and _failed(token)):
            return buffers.move(token, sharding, False)
    return buffers.put(np.zeros(0, bool), runtime_token, sharding)


def give_token(token: Any, ordered: bool) -> None:
    """Note the token of a program that was started.

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
    """Wait until the programs with ordered effects that were started are over."""
    if config.callback_depth.value == 0 and _last_ordered:
        _failed(_last_ordered[0])


def effects_barrier() -> None:
    """Wait until everything that the programs started so far print, write or call has happened.

    Raises:
        Exception: what a callback raised, if it was not raised before where a result was read.

    Example:
        >>> import dovetail as dt
        >>> seen = []
        >>> dt.jit(lambda x: dt.debug.callback(lambda x: seen.append(int(x)), x))(1)
        >>> dt.effects_barrier()
        >>> seen
        [1]
    """
    if config.callback_depth.value:
        return  # the program that called this is not over before this is
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


@atexit.register
def _wait_at_exit() -> None:
    """Let programs that print do so, and say what failed: nobody else will."""
    try:
        effects_barrier()
    except Exception:
        traceback.print_exc()
