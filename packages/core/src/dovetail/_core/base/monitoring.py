"""Events: what happens in the framework and in libraries on it, told to functions that listen."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from dovetail._core.base import config, events

__all__ = [
    "clear_event_listeners",
    "log_duration",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "timed",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]


class EventListener(Protocol):
    """A function that is called for each event."""

    def __call__(self, event: str, /, **kwargs: str | int) -> object: ...


class NumberListener(Protocol):
    """A function that is called for each duration or number."""

    def __call__(self, event: str, value: float, /, **kwargs: str | int) -> object: ...


class TimeSpanListener(Protocol):
    """A function that is called for each stretch of time."""

    def __call__(self, event: str, start: float, end: float, /, **kwargs: str | int) -> object: ...


# Tuples, which are replaced: a listener may register and unregister others while it is called.
_events: tuple[Callable[..., object], ...] = ()
_durations: tuple[Callable[..., object], ...] = ()
_time_spans: tuple[Callable[..., object], ...] = ()
_scalars: tuple[Callable[..., object], ...] = ()


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell those that listen that something has happened.

    Args:
        event: its name, such as ``"/acme/restarts"``.
        **kwargs: facts about it.

    Raises:
        Exception: what a listener raises.

    Example:
        >>> from dovetail import monitoring
        >>> monitoring.register_event_listener(lambda event, **facts: print(event, facts))
        >>> monitoring.record_event("/acme/restarts", host=3)
        /acme/restarts {'host': 3}
        >>> monitoring.clear_event_listeners()
    """
    for listener in _events:
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell those that listen how long something took.

    Args:
        event: its name.
        duration: seconds.
        **kwargs: facts about it.

    Raises:
        Exception: what a listener raises.
    """
    for listener in _durations:
        listener(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tell those that listen when something began and ended.

    Args:
        event: its name.
        start_time: seconds since the epoch, as of `time.time`.
        end_time: the same.
        **kwargs: facts about it.

    Raises:
        Exception: what a listener raises.
    """
    for listener in _time_spans:
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tell those that listen a number.

    Args:
        event: its name.
        value: the number.
        **kwargs: facts about it.

    Raises:
        Exception: what a listener raises.
    """
    for listener in _scalars:
        listener(event, value, **kwargs)


def register_event_listener(callback: EventListener) -> None:
    """Call a function for each event.

    Besides those of libraries there are ``/jax/compilation_cache/compile_requests_use_cache``,
    ``.../cache_hits`` and ``.../cache_misses``, of the cache of compiled programs on disk.

    Args:
        callback: called as ``callback(event, **facts)``, in the thread where it happens.

    Raises:
        TypeError: it is not a function.
    """
    global _events
    _events = (*_events, _checked(callback))


def register_event_duration_secs_listener(callback: NumberListener) -> None:
    """Call a function for each duration.

    Besides those of libraries there are ``/jax/core/compile/jaxpr_trace_duration``,
    ``.../jaxpr_to_mlir_module_duration`` and ``.../backend_compile_duration``, of tracing, lowering
    and compiling the function `fun_name`, and
    ``/jax/compilation_cache/cache_retrieval_time_sec``.

    Args:
        callback: called as ``callback(event, seconds, **facts)``, in the thread where it happens.

    Raises:
        TypeError: it is not a function.

    Differs:
        The cache on disk does not say how long its programs once took to compile
        (``/jax/compilation_cache/compile_time_saved_sec``).

        >>> from dovetail import monitoring
        >>> seen = []
        >>> monitoring.register_event_duration_secs_listener(
        ...     lambda event, seconds, **facts: seen.append(event.split("/")[-1]))
        >>> _ = dt.jit(lambda x: x + 17)(1)
        >>> monitoring.clear_event_listeners()
        >>> print("backend_compile_duration" in seen, "compile_time_saved_sec" in seen)
        True False
    """
    global _durations
    _durations = (*_durations, _checked(callback))


def register_event_time_span_listener(callback: TimeSpanListener) -> None:
    """Call a function for each stretch of time: those of tracing, lowering and compiling.

    Args:
        callback: called as ``callback(event, start, end, **facts)`` with times as of `time.time`,
            in the thread where it happens.

    Raises:
        TypeError: it is not a function.
    """
    global _time_spans
    _time_spans = (*_time_spans, _checked(callback))


def register_scalar_listener(callback: NumberListener) -> None:
    """Call a function for each number: the times at which tracing, lowering and compiling begin.

    Args:
        callback: called as ``callback(event, value, **facts)``, in the thread where it happens.

    Raises:
        TypeError: it is not a function.
    """
    global _scalars
    _scalars = (*_scalars, _checked(callback))


def unregister_event_listener(callback: EventListener) -> None:
    """Stop calling a function for each event.

    Args:
        callback: the function; if it was registered several times, this takes back one of them.

    Raises:
        ValueError: it is not registered.
    """
    global _events
    _events = _without(_events, callback)


def unregister_event_duration_listener(callback: NumberListener) -> None:
    """Stop calling a function for each duration.

    Args:
        callback: the function; if it was registered several times, this takes back one of them.

    Raises:
        ValueError: it is not registered.
    """
    global _durations
    _durations = _without(_durations, callback)


def unregister_event_time_span_listener(callback: TimeSpanListener) -> None:
    """Stop calling a function for each stretch of time.

    Args:
        callback: the function; if it was registered several times, this takes back one of them.

    Raises:
        ValueError: it is not registered.
    """
    global _time_spans
    _time_spans = _without(_time_spans, callback)


def unregister_scalar_listener(callback: NumberListener) -> None:
    """Stop calling a function for each number.

    Args:
        callback: the function; if it was registered several times, this takes back one of them.

    Raises:
        ValueError: it is not registered.
    """
    global _scalars
    _scalars = _without(_scalars, callback)


def clear_event_listeners() -> None:
    """Stop calling all functions that were registered."""
    global _events, _durations, _time_spans, _scalars
    _events = _durations = _time_spans = _scalars = ()


def _checked(callback: Any) -> Callable[..., object]:
    if not callable(callback):
        raise TypeError(f"a listener is a function, got {callback!r:.80}")
    return callback  # type: ignore[no-any-return]


def _without(
    listeners: tuple[Callable[..., object], ...], callback: Any
) -> tuple[Callable[..., object], ...]:
    if callback not in listeners:
        raise ValueError(f"{callback!r:.80} is no listener that is registered")
    position = listeners.index(callback)
    return (*listeners[:position], *listeners[position + 1 :])


#: The events of the steps from a function to a program.
_STEPS: Final = {
    "traced": "/jax/core/compile/jaxpr_trace_duration",
    "lowered": "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "compiled": "/jax/core/compile/backend_compile_duration",
}


@contextmanager
def timed(step: str, name: str) -> Iterator[None]:
    """Record how long a step takes, unless it fails.

    Args:
        step: ``"traced"``, ``"lowered"`` or ``"compiled"``.
        name: the name of the function.
    """
    if not (_durations or _time_spans or _scalars or events.listeners):
        yield
        return
    event = _STEPS[step]
    shown = name if step == "traced" else f"jit({name})"
    begin, start = time.time(), time.perf_counter()
    record_scalar(event, begin, fun_name=shown)
    yield
    seconds = time.perf_counter() - start
    if step == "lowered":  # the others tell more, elsewhere
        events.emit("lower", name, seconds)
    record_event_duration_secs(event, seconds, fun_name=shown)
    record_event_time_span(event, begin, begin + seconds, fun_name=shown)


def log_duration(step: str, name: str, seconds: float) -> None:
    """Log the duration of a compilation step, as a warning if ``log_compiles`` is on.

    Args:
        step: the step, such as ``"traced"``, ``"lowered"``, ``"compiled"``.
        name: the name of the function or program.
        seconds: how long it took.
    """
    warns = config.log_compiles.value
    if not warns and "logging" not in sys.modules:
        return  # nobody can have asked for what is logged, and to load it takes 3 ms
    import logging  # deferred: as above

    level = logging.WARNING if warns else logging.DEBUG
    logging.getLogger("dovetail").log(level, "%s %s in %.4f s", step, name, seconds)
