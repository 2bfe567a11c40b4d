"""Calls without a program: that they notice each change of an option, and what values become."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.base import config
from dovetail._core.runtime.arrays.held_values import held_value
from dovetail._core.runtime.devices.host_functions import host_functions

pytestmark = pytest.mark.skipif(not host_functions(), reason="every call here needs a program")

ROW = np.arange(5, dtype=np.float32)
MANY = np.arange(100_000, dtype=np.float32)


@pytest.fixture(autouse=True)
def _directly() -> Iterator[None]:
    with dt.direct_calls("all"):
        yield


def is_direct(function: Callable[..., Any], *args: Any) -> bool:
    return held_value(function(*args)) is not None


#: Values of options with which calls need programs.
CHANGES: dict[str, Any] = {
    "cpu_kernels": False,
    "debug_infs": True,
    "debug_nans": True,
    "default_device": "a device",
    "transfer_guard_host_to_device": "log",
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("way", ["scope", "process", "other thread", "nested"])
def test_a_change_of_an_option_is_noticed(name: str, way: str) -> None:
    value = dt.devices()[-1] if CHANGES[name] == "a device" else CHANGES[name]
    option = getattr(config, name)
    add, doubled = dt.jit(lambda x: x + x.sum()), lambda: jnp.multiply(x, x)
    x = jnp.asarray(ROW)
    assert is_direct(add, x)
    assert is_direct(doubled)
    before = option.value

    def check_changed() -> None:
        assert not is_direct(add, x)
        assert not is_direct(doubled)

    if way == "scope":
        with option(value):
            check_changed()
    elif way == "nested":
        with option(value):
            with option(before):
                assert is_direct(add, jnp.asarray(ROW))
            check_changed()
    else:
        change = threading.Thread(target=option.set_global, args=(value,))
        try:
            if way == "process":
                option.set_global(value)
            else:
                change.start()
                change.join()
            check_changed()
        finally:
            option.set_global(before)
    x = jnp.asarray(ROW)
    assert is_direct(add, x)
    assert is_direct(doubled)


def test_the_option_of_another_thread_is_its_own() -> None:
    add, x = dt.jit(lambda x: x + x.sum()), jnp.asarray(ROW)
    seen: dict[str, bool] = {}
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        with dt.direct_calls("all"), dt.debug_nans(True):
            seen["there"] = is_direct(add, jnp.asarray(ROW))
            inside.set()
            done.wait(20)

    thread = threading.Thread(target=other)
    assert is_direct(add, x)
    thread.start()
    assert inside.wait(20)
    seen["here"] = is_direct(add, x)
    done.set()
    thread.join()
    assert seen == {"there": False, "here": True}


def test_options_that_affect_tracing_are_told_apart_again_and_again() -> None:
    traces: list[bool] = []

    @dt.jit
    def function(x: Any) -> Any:
        traces.append(dt.config.enable_x64)
        return x * 2 + 1

    x = jnp.asarray(ROW)
    for wide in (False, True, False, True, False):
        with dt.enable_x64(wide):
            np.testing.assert_array_equal(function(x), ROW * 2 + 1)
    assert traces == [False, True]
    context = dt.make_user_context("a")
    for value in ("a", "b", "a", "b"):
        with context(value):
            function(x)
    assert traces == [False, True, False, False]


def test_programs_take_the_memory_of_large_values() -> None:
    x = jnp.asarray(MANY)
    total = dt.jit(lambda a, b: a + b)(x, x)
    assert held_value(total) is not None
    view = np.asarray(total)
    assert view.__array_interface__["data"][0] == total.unsafe_buffer_pointer()
    del total
    np.testing.assert_array_equal(view, MANY + MANY)


def test_a_donated_value_is_not_overwritten_while_somebody_looks_at_it() -> None:
    total = jnp.add(jnp.asarray(MANY), 1)
    view = np.asarray(total)
    result = dt.jit(lambda a: jnp.sin(a) * 2, donate_argnums=0)(total)
    assert total.is_deleted()
    np.testing.assert_array_equal(view, MANY + 1)
    np.testing.assert_allclose(result, np.sin(MANY + 1) * 2, atol=3e-3)


def test_device_put_of_small_arrays_copies_them() -> None:
    for value in (ROW.copy(), np.float32(3.5), np.zeros((0, 3), np.float32), np.arange(4)[::-1]):
        x = dt.device_put(value)
        expected = np.array(value)
        if isinstance(value, np.ndarray) and value.size:
            value[...] = 7
        np.testing.assert_array_equal(x, expected)
        assert not x.committed
        assert dt.device_put(x) is x
        assert dt.device_put(x, may_alias=False) is not x
        placed = dt.device_put(x, dt.devices()[0])
        assert placed.committed
        np.testing.assert_array_equal(placed, expected)


@pytest.mark.parametrize("size", [0, 1, 4096, 5000, 70_000, 2**18, 2**18 + 1])
def test_single_operations_of_every_size(size: int) -> None:
    x = np.linspace(-3, 3, size, dtype=np.float32)
    for function, expected in [
        (lambda a: a + a, x + x),
        (lambda a: jnp.where(a > 0, a, -a), np.abs(x)),
        (lambda a: jnp.clip(a, -1, 2), x.clip(-1, 2)),
        (lambda a: 1 - a, 1 - x),
    ]:
        for _ in range(3):
            np.testing.assert_array_equal(dt.jit(function)(x), expected)
            np.testing.assert_array_equal(function(jnp.asarray(x)), expected)
