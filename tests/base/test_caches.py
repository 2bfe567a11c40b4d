"""Caches: what is kept, what the key is, and that all can be emptied."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from dovetail._core.base import caches, config


class Key:
    """Something hashable that takes weak references."""


MAKERS: list[Any] = [
    caches.lru_cache,
    caches.traced_cache,
    caches.weakref_lru_cache,
]


@pytest.mark.parametrize("maker", MAKERS)
def test_results_are_kept_until_cleared(maker: Any) -> None:
    calls = []

    @maker(maxsize=8)
    def function(key: Key, number: int = 0, *, option: str = "") -> tuple[Key, int, str]:
        """Say something."""
        calls.append(number)
        return key, number, option

    key = Key()
    assert function(key, 1) == function(key, 1) == (key, 1, "")
    assert function(key, 2, option="x") == (key, 2, "x")
    assert calls == [1, 2]
    info = function.cache_info()
    assert (info.hits, info.misses, info.maxsize, info.currsize) == (1, 2, 8, 2)
    function.cache_clear()
    function(key, 1)
    assert calls == [1, 2, 1]
    caches.clear_all()
    function(key, 1)
    assert calls == [1, 2, 1, 1]
    assert function.cache_info().currsize == 1


@pytest.mark.parametrize("maker", MAKERS)
def test_size_is_limited(maker: Any) -> None:
    @maker(maxsize=2)
    def function(key: Key, number: int) -> int:
        return number

    key = Key()
    for number in range(5):
        function(key, number)
    assert function.cache_info().currsize <= 2
    function(key, 4)
    assert function.cache_info().hits == 1


@pytest.mark.parametrize("maker", MAKERS)
def test_errors_are_not_kept(maker: Any) -> None:
    calls = []

    @maker()
    def function(key: Key) -> int:
        calls.append(key)
        if len(calls) == 1:
            raise KeyError
        return 7

    key = Key()
    with pytest.raises(KeyError):
        function(key)
    assert function(key) == 7


@pytest.mark.parametrize("maker", [caches.traced_cache, caches.weakref_lru_cache])
def test_options_that_affect_tracing_are_part_of_the_key(maker: Any) -> None:
    @maker()
    def width(key: Key) -> int:
        return 64 if config.enable_x64.value else 32

    key = Key()
    assert width(key) == 32
    with config.enable_x64(True):
        assert width(key) == 64
    with config.log_compiles(True):
        assert width(key) == 32
    assert width.cache_info().hits == 1


def test_weak_cache_without_options() -> None:
    @caches.weakref_lru_cache(traced=False)
    def width(key: Key) -> int:
        return 64 if config.enable_x64.value else 32

    key = Key()
    assert width(key) == 32
    with config.enable_x64(True):
        assert width(key) == 32


def test_weak_cache_drops_what_died() -> None:
    @caches.weakref_lru_cache()
    def function(key: Key, number: int) -> int:
        return number

    key, other = Key(), Key()
    function(key, 1)
    function(key, 2)
    function(other, 3)
    assert function.cache_info().currsize == 3
    del key
    gc.collect()
    assert function.cache_info().currsize == 1


def test_registered_functions_are_called_once() -> None:
    calls: list[int] = []

    def clear() -> None:
        calls.append(1)

    caches.register(clear)
    caches.register(clear)
    caches.clear_all()
    assert calls == [1]


def test_wrapped_function_is_described() -> None:
    @caches.traced_cache()
    def function() -> None:
        """Say something."""

    assert (function.__name__, function.__doc__) == ("function", "Say something.")
    assert function.__wrapped__() is None
