"""Transfer guards: which transfers are implicit, which explicit, and which are none."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import config, lax

HOST = np.arange(3, dtype=np.float32)
LARGE = np.ones(1000, np.float32)
FIRST, SECOND = dt.devices()[:2]
ARRAY = dt.device_put(jnp.ones(3), FIRST)
UNCOMMITTED = jnp.ones(3)
ELSEWHERE = dt.device_put(jnp.ones(3), SECOND)
KEY = dt.random.key(0)

double = dt.jit(lambda x: x + x)
with_constants = dt.jit(lambda x: x + HOST + jnp.asarray(HOST) + jnp.sum(LARGE) + jnp.ones(3))

IMPLICIT: dict[str, tuple[str, Callable[[], Any]]] = {
    "asarray of a number": ("host-to-device", lambda: jnp.asarray(1)),
    "asarray of an array": ("host-to-device", lambda: jnp.asarray(HOST)),
    "an array on the right": ("host-to-device", lambda: ARRAY + HOST),
    "an array on the left": ("host-to-device", lambda: HOST * ARRAY),
    "a number": ("host-to-device", lambda: ARRAY + 1),
    "an argument": ("host-to-device", lambda: double(HOST)),
    "a number as argument": ("host-to-device", lambda: double(1.0)),
    "a position": ("host-to-device", lambda: ARRAY[1]),
    "positions": ("host-to-device", lambda: ARRAY[np.array([1])]),
    "zeros": ("host-to-device", lambda: jnp.zeros(3)),
    "a seed": ("host-to-device", lambda: dt.random.key(0)),
    "the cotangent of grad": ("host-to-device", lambda: dt.grad(jnp.sum)(ARRAY)),
    "operands of two devices": ("device-to-device", lambda: UNCOMMITTED + ELSEWHERE),
    "an argument that follows": ("device-to-device", lambda: lax.add(UNCOMMITTED, ELSEWHERE)),
}
EXPLICIT: dict[str, tuple[str, Callable[[], Any]]] = {
    "device_put": ("host-to-device", lambda: dt.device_put(HOST)),
    "device_put of a number": ("host-to-device", lambda: dt.device_put(1.0)),
    "device_put of a tree": ("host-to-device", lambda: dt.device_put({"a": [HOST, 1]}, SECOND)),
    "from_dlpack": ("host-to-device", lambda: jnp.from_dlpack(HOST)),
    "device_put elsewhere": ("device-to-device", lambda: dt.device_put(ARRAY, SECOND)),
    "to_device": ("device-to-device", lambda: ARRAY.to_device(SECOND)),
}
NONE: dict[str, Callable[[], Any]] = {
    "an operation": lambda: ARRAY + ARRAY,
    "a call": lambda: double(ARRAY),
    "a program with constants": lambda: with_constants(ARRAY),
    "a new program with constants": lambda: dt.jit(lambda x: x + jnp.asarray(LARGE).sum())(ARRAY),
    "a copy": lambda: jnp.array(ARRAY, copy=True),
    "copy.copy": lambda: copy.copy(ARRAY),
    "device_put where it is": lambda: dt.device_put(ARRAY, FIRST),
    "device_put with a copy": lambda: dt.device_put(ARRAY, FIRST, may_alias=False),
    "reading on the CPU": lambda: np.asarray(ARRAY + ARRAY),
    "device_get on the CPU": lambda: dt.device_get(ARRAY + ARRAY),
    "printing on the CPU": lambda: str(ARRAY + ARRAY),
    "bits": lambda: dt.random.bits(KEY, (3,)),
    "a loop": lambda: lax.scan(lambda c, x: (c + x, c), ARRAY, dt.tree.map(double, ARRAY)),
}


@pytest.fixture(autouse=True)
def no_guard_left() -> Iterator[None]:
    yield
    config.update("transfer_guard", None)
    assert jnp.asarray(HOST).shape == (3,)


def refused(call: Callable[[], Any], direction: str) -> None:
    with pytest.raises(RuntimeError, match=f"Disallowed {direction} transfer"):
        call()


@pytest.mark.parametrize("name", IMPLICIT)
def test_implicit_transfers(name: str) -> None:
    direction, call = IMPLICIT[name]
    option = config.option(f"transfer_guard_{direction.replace('-', '_')}")
    call()  # the second call may take another way
    call()
    for level in ("disallow", "disallow_explicit"):
        with dt.transfer_guard(level):
            refused(call, direction)
            with option("allow"):
                call()
            refused(call, direction)
        with option(level):
            refused(call, direction)
    with dt.transfer_guard("allow"):
        call()
    call()


@pytest.mark.parametrize("name", EXPLICIT)
def test_explicit_transfers(name: str) -> None:
    direction, call = EXPLICIT[name]
    with dt.transfer_guard("disallow"):
        call()
        with pytest.raises(RuntimeError, match="Disallowed"):
            jnp.asarray(HOST)
    with dt.transfer_guard("disallow_explicit"):
        refused(call, direction)
    call()


@pytest.mark.parametrize("name", NONE)
@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
def test_what_is_no_transfer(name: str, level: str) -> None:
    with dt.transfer_guard(level):
        NONE[name]()


@pytest.mark.parametrize("name", ["asarray of an array", "operands of two devices"])
def test_the_error_says_what_to_write(name: str) -> None:
    with dt.transfer_guard("disallow"), pytest.raises(RuntimeError) as caught:
        IMPLICIT[name][1]()
    [note] = caught.value.__notes__
    assert "dovetail.device_put(x, device)" in note
    assert 'with dovetail.transfer_guard("allow")' in note


def test_the_guard_of_all_directions_sets_each() -> None:
    directions = [name for name in config if name.startswith("transfer_guard_")]
    assert len(directions) == 3
    with dt.transfer_guard_host_to_device("log"):
        with dt.transfer_guard("disallow"):
            assert [config.read(name) for name in directions] == ["disallow"] * 3
            assert config.transfer_guard == "disallow"
        assert config.transfer_guard_host_to_device == "log"
        assert config.transfer_guard_device_to_host is None
    config.update("jax_transfer_guard", "disallow")
    assert [config.read(name) for name in directions] == ["disallow"] * 3
    refused(lambda: jnp.asarray(HOST), "host-to-device")
    config.update("transfer_guard_host_to_device", "allow")
    jnp.asarray(HOST)


def test_scopes_are_of_one_thread_and_updates_of_all() -> None:
    failures: list[str] = []

    def work() -> None:
        try:
            jnp.asarray(HOST)
        except RuntimeError as error:
            failures.append(str(error))

    def in_a_thread() -> int:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return len(failures)

    with dt.transfer_guard("disallow"):
        assert in_a_thread() == 0
    config.update("transfer_guard", "disallow")
    assert in_a_thread() == 1


def test_a_guard_is_a_decorator() -> None:
    @dt.transfer_guard("disallow")
    def guarded() -> Any:
        return jnp.asarray(HOST)

    refused(guarded, "host-to-device")
    jnp.asarray(HOST)


def in_a_process(code: str) -> subprocess.CompletedProcess[str]:
    head = "import gc; import numpy as np; import dovetail as dt; import dovetail.numpy as jnp\n"
    return subprocess.run(
        [sys.executable, "-c", head + code], capture_output=True, text=True, timeout=120, check=True
    )


def test_transfers_are_logged() -> None:
    result = in_a_process(
        "with dt.transfer_guard('log'):\n"
        "    jnp.asarray(np.ones(3)); dt.device_put(np.ones(5))\n"
        "with dt.transfer_guard('log_explicit'):\n"
        "    dt.device_put(np.ones(7))\n"
    )
    logged = [line for line in result.stderr.splitlines() if "host-to-device transfer" in line]
    assert ["float32[3]" in logged[0], "float32[7]" in logged[1], len(logged)] == [True, True, 2]


def test_every_move_between_devices_is_logged() -> None:
    result = in_a_process(
        "first, second = dt.devices()[:2]\n"
        "x, y = jnp.ones(3), dt.device_put(jnp.ones(3), second)\n"
        "x + y; x + y\n"
        "with dt.transfer_guard('log'):\n"
        "    x + y; x + y; x + y; y + y; y + y\n"
    )
    assert result.stderr.count("device-to-device transfer") == 3


def test_arrays_that_the_garbage_collector_frees_are_logged() -> None:
    code = (
        "class Node: pass\n"
        "node = Node(); node.itself = node; node.array = dt.jit(jnp.sin)(jnp.ones(3))\n"
        "with dt.array_garbage_collection_guard({level!r}):\n"
        "    del node; gc.collect()\n"
    )
    text = "was deleted by the Python garbage collector"
    assert text in in_a_process(code.format(level="log")).stderr
    assert text not in in_a_process(code.format(level="allow")).stderr


def test_the_thread_guard_leaves_one_process_alone() -> None:
    results: list[Any] = []
    with dt.thread_guard(True):
        thread = threading.Thread(target=lambda: results.append(ARRAY + ARRAY))
        thread.start()
        thread.join()
    assert len(results) == 1
    assert config.thread_guard is False
    gc.collect()
