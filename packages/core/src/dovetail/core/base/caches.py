"""Caches that `dovetail.clear_caches` empties, and that know which options affect tracing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, cast

from dovetail.core.base import bindings
from dovetail.core.base.config import trace_key

__all__ = [
    "CacheInfo",
    "Cached",
    "clear_all",
    "lru_cache",
    "register",
    "traced_cache",
    "weakref_lru_cache",
]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_clear_functions: list[Callable[[], object]] = []


class CacheInfo(NamedTuple):
    """How a cache did: calls answered from it, calls that were not, its limit and present size."""

    hits: int
    misses: int
    maxsize: int | None
    currsize: int


class Cached(Protocol[P, R_co]):
    """A function with a cache."""

    __wrapped__: Callable[..., Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def cache_info(self) -> CacheInfo:
        """Hits, misses, limit and size."""

    def cache_clear(self) -> None:
        """Forget everything."""


def register(clear: Callable[[], object]) -> None:
    """Have ``clear`` called by `clear_all`. Registering the same function twice has no effect."""
    if clear not in _clear_functions:
        _clear_functions.append(clear)


def clear_all() -> None:
    """Empty every registered cache."""
    for clear in tuple(_clear_functions):
        clear()


def lru_cache(maxsize: int | None = 4096) -> Callable[[Callable[P, R]], Cached[P, R]]:
    """`functools.lru_cache` that `clear_all` empties.

    Args:
        maxsize: How many results are kept; None for all.

    Example:
        >>> from dovetail.core.base import caches
        >>> @caches.lru_cache(maxsize=8)
        ... def square(number):
        ...     return number * number
        >>> square(3), square(3), square.cache_info().hits
        (9, 9, 1)
    """

    def decorate(function: Callable[P, R]) -> Cached[P, R]:
        cached = functools.lru_cache(maxsize=maxsize)(function)
        register(cached.cache_clear)
        return cast("Cached[P, R]", cached)

    return decorate


def traced_cache(maxsize: int | None = 4096) -> Callable[[Callable[P, R]], Cached[P, R]]:
    """A cache whose key holds, besides the arguments, the options that affect tracing.

    Args:
        maxsize: How many results are kept; None for all.

    Example:
        >>> from dovetail.core.base import caches
        >>> from dovetail.core.base.config import enable_x64
        >>> @caches.traced_cache()
        ... def width():
        ...     return 64 if enable_x64.value else 32
        >>> width()
        32
        >>> with enable_x64(True):
        ...     width()
        64
    """

    def decorate(function: Callable[P, R]) -> Cached[P, R]:
        @functools.lru_cache(maxsize=maxsize)
        def keyed(_key: tuple[Any, ...], *args: P.args, **kwargs: P.kwargs) -> R:
            return function(*args, **kwargs)

        @functools.wraps(function)
        def cached(*args: P.args, **kwargs: P.kwargs) -> R:
            return keyed(trace_key(), *args, **kwargs)  # type: ignore[arg-type]

        cached.cache_info = keyed.cache_info  # type: ignore[attr-defined]
        cached.cache_clear = keyed.cache_clear  # type: ignore[attr-defined]
        register(keyed.cache_clear)
        return cast("Cached[P, R]", cached)

    return decorate


def weakref_lru_cache(
    maxsize: int = 2048, *, traced: bool = True
) -> Callable[[Callable[P, R]], Cached[P, R]]:
    """A cache, in C++, that holds the first argument weakly: its entries go when that object goes.

    The first argument is compared by ``==`` and must take weak references; the others must be
    hashable.

    Args:
        maxsize: How many results are kept.
        traced: Whether the options that affect tracing are part of the key.
    """

    def decorate(function: Callable[P, R]) -> Cached[P, R]:
        context = trace_key if traced else _no_context
        cached = bindings.weakref_lru_cache(context, function, maxsize)
        register(cached.cache_clear)
        return cast("Cached[P, R]", cached)

    return decorate


def _no_context() -> None:
    return None
