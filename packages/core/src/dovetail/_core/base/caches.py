"""Caches that `dovetail.clear_caches` empties, some keyed by the options that affect tracing."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, ParamSpec, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from dovetail._core.base import bindings
from dovetail._core.base.config import trace_key

__all__ = [
    "ByFunction",
    "CacheInfo",
    "Cached",
    "HasMemory",
    "Memory",
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
    """Statistics of a cache: hits, misses, limit and current size."""

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
        """Drop all entries."""


def register(clear: Callable[[], object]) -> None:
    """Make `clear_all` call ``clear``. Registering the same function twice has no effect."""
    if clear not in _clear_functions:
        _clear_functions.append(clear)


def clear_all() -> None:
    """Empty every registered cache."""
    for clear in tuple(_clear_functions):
        clear()


class Memory(dict[Any, Any]):
    """A cache that belongs to an object and is held by it; `clear_all` empties it.

    Its entries may refer to the object: a global table with weak keys and these entries as values
    would then keep both alive forever.
    """

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        super().__init__()
        _memories[id(self)] = self


_memories: Final[WeakValueDictionary[int, Memory]] = WeakValueDictionary()


def _clear_memories() -> None:
    for memory in list(_memories.values()):
        memory.clear()


register(_clear_memories)


class HasMemory:
    """A function object with a cache of its own, which copies do not share."""

    _memory: Memory

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_memory"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._memory = Memory()


class ByFunction:
    """A cache for each function, for as long as the function lives."""

    __slots__ = ("__weakref__", "_tables")

    def __init__(self) -> None:
        self._tables: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()
        register(self._tables.clear)

    def of(self, function: Any) -> dict[Any, Any]:
        """The cache of a function.

        Raises:
            TypeError: the function is not hashable, or does not support weak references.
        """
        if isinstance(function, HasMemory):
            own: dict[Any, Any] = function._memory.setdefault(self, {})
            return own
        table = self._tables.get(function)
        if table is None:
            table = self._tables[function] = {}
        return table

    def forget(self, function: Any) -> None:
        """Empty the cache of a function."""
        with contextlib.suppress(TypeError):
            self.of(function).clear()


def lru_cache(maxsize: int | None = 4096) -> Callable[[Callable[P, R]], Cached[P, R]]:
    """`functools.lru_cache` that `clear_all` empties.

    Args:
        maxsize: how many results are kept; None for all.

    Example:
        >>> from dovetail._core.base import caches
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
    """A cache keyed by the arguments and by the options that affect tracing.

    Args:
        maxsize: how many results are kept; None for all.

    Example:
        >>> from dovetail._core.base import caches
        >>> from dovetail._core.base.config import enable_x64
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
    """A C++ cache that holds the first argument weakly; its entries are dropped with that object.

    The first argument is compared by ``==`` and must support weak references; the others must be
    hashable.

    Args:
        maxsize: how many results are kept.
        traced: whether the options that affect tracing are part of the key.
    """

    def decorate(function: Callable[P, R]) -> Cached[P, R]:
        context = trace_key if traced else _no_context
        cached = bindings.weakref_lru_cache(context, function, maxsize)
        register(cached.cache_clear)
        return cast("Cached[P, R]", cached)

    return decorate


def _no_context() -> None:
    return None
