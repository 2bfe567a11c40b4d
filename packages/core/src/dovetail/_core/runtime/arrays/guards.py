"""Which transfers the options ``transfer_guard...`` concern, and in which way.

jaxlib refuses and logs them itself, by the levels that the options tell it. Here stands what it
cannot know: which transfers the user asked for by name, which copies are no transfers, and what
backends written in Python do.
"""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Any, Final

from dovetail._core.base import config
from dovetail._core.base.bindings import JaxRuntimeError, guards
from dovetail._core.trace.state import Trace, state
from dovetail._core.transform.stage import StageTrace

__all__ = ["check", "explicit", "is_idle", "is_none", "suspended"]

_thread_state: Final = guards.thread_local_state
_NOTHING: Final = contextlib.nullcontext()

_host_to_device: Final = config.transfer_guard_host_to_device
_device_to_device: Final = config.transfer_guard_device_to_device
_device_to_host: Final = config.transfer_guard_device_to_host
_GUARDS: Final = {
    "host-to-device": (_host_to_device, "explicit_device_put"),
    "device-to-device": (_device_to_device, "explicit_device_put"),
    "device-to-host": (_device_to_host, "explicit_device_get"),
}
_ADVICE: Final = (
    "The option transfer_guard refuses it. Write dovetail.device_put(x, device) or "
    "dovetail.device_get(x) where data is meant to move, or put this into a block of its own: "
    'with dovetail.transfer_guard("allow"): ...'
)


def is_idle() -> bool:
    """Whether no transfer is refused or logged."""
    return (
        _host_to_device.value is None
        and _device_to_device.value is None
        and _device_to_host.value is None
    )


class _Explicit:
    """A scope in which jaxlib takes transfers of a kind for explicit ones."""

    __slots__ = ("_before", "_kind", "_state")

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        self._state = _thread_state()
        self._before = getattr(self._state, self._kind)
        setattr(self._state, self._kind, True)

    def __exit__(self, *exception: object) -> None:
        setattr(self._state, self._kind, self._before)


def explicit(kind: str = "explicit_device_put") -> AbstractContextManager[None]:
    """A scope in which transfers are asked for by name.

    Args:
        kind: jaxlib's name for them: ``explicit_device_put`` or ``explicit_device_get``.
    """
    return _NOTHING if is_idle() else _Explicit(kind)


def suspended() -> AbstractContextManager[None]:
    """A scope in which nothing is refused or logged: what moves is part of a program."""
    return _NOTHING if is_idle() else config.transfer_guard("allow")


def _is_staging() -> bool:
    trace: Trace | None = state.trace
    while trace is not None and not isinstance(trace, StageTrace):
        trace = trace.parent
    return trace is not None


def is_none(error: JaxRuntimeError) -> bool:
    """Whether a refused transfer is none: it puts a constant into a program that is being traced.

    Otherwise the error is told what to write instead.
    """
    if "Disallowed" not in str(error):
        return False
    if _is_staging():
        return True
    error.add_note(_ADVICE)
    return False


def check(direction: str, aval: Any, place: Any) -> None:
    """Guard a transfer that jaxlib does not see, of a backend written in Python.

    Args:
        direction: ``"host-to-device"``, ``"device-to-device"`` or ``"device-to-host"``.
        aval: what moves.
        place: the sharding that it moves to or from.

    Raises:
        JaxRuntimeError: the level of that direction disallows it.
    """
    guard, kind = _GUARDS[direction]
    level = guard.value
    if level in (None, "allow") or (
        not level.endswith("_explicit") and getattr(_thread_state(), kind)
    ):
        return
    if level.startswith("log"):
        import logging  # deferred: seldom needed, and takes 3 ms

        logger = logging.getLogger("dovetail")
        logger.warning("%s transfer: aval=%s, sharding=%s", direction, aval, place)
    elif not _is_staging():
        error = JaxRuntimeError(f"Disallowed {direction} transfer: aval={aval}, sharding={place}")
        error.add_note(_ADVICE)
        raise error
