"""`dovetail.memory()` and `memory_stats()`: what holds the memory of devices now."""

from __future__ import annotations

import gc
import inspect
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.memory
import dovetail.numpy as jnp
from dovetail._core.runtime.devices import clients
from dovetail.errors import BackendUnavailableError, OutOfMemoryError
from dovetail.sharding import Mesh, NamedSharding
from dovetail.sharding import PartitionSpec as P

DEVICES = dt.devices("cpu")[:4]


def line(function: Any, offset: int, held: Any) -> Any:
    """What the line of a function holds."""
    number = inspect.getsourcelines(function)[1] + offset
    found = [x for x in held.lines if x.file == __file__ and x.line == number]
    return found[0] if found else None


def make() -> Any:
    return [jnp.ones((100, 50)), jnp.zeros(3)]


@dt.jit
def double(x: Any) -> Any:
    return x * 2


def doubled(x: Any) -> Any:
    return double(x)


def test_arrays_by_the_line_that_made_them() -> None:
    made = make()
    found = line(make, 1, dt.memory())
    assert (found.count, found.bytes) == (2, 20_012)
    assert found.largest == ("f32[100,50]", "f32[3]")
    assert found.source == f"test_live_memory.py:{found.line} (make)"
    assert found.devices == ("cpu:0",)
    del made
    gc.collect()
    assert line(make, 1, dt.memory()) is None


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_results_of_compiled_functions_name_the_line_of_the_call(calls: int) -> None:
    x = jnp.ones(1000)
    results = [doubled(x) for _ in range(calls)]
    found = line(doubled, 1, dt.memory())
    assert (found.count, found.bytes) == (calls, 4000 * calls)
    results[0].delete()
    left = line(doubled, 1, dt.memory())
    assert (0 if left is None else left.count) == calls - 1


def test_donated_arrays_are_gone() -> None:
    step = dt.jit(lambda x: x + 1, donate_argnums=0)

    def twice() -> Any:
        x = jnp.ones(5000)
        return step(x)

    kept = twice()
    held = dt.memory()
    assert line(twice, 1, held) is None
    assert line(twice, 2, held).bytes == kept.nbytes


def test_arrays_that_share_their_memory_count_once() -> None:
    x = jnp.ones(5000)
    before = dt.memory().bytes
    y = dt.device_put(x, DEVICES[0])
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert dt.memory().bytes == before


@pytest.mark.parametrize(("spec", "copies"), [(P("i"), 1), (P(), 4)])
def test_arrays_over_several_devices(spec: Any, copies: int) -> None:
    def spread() -> Any:
        return dt.device_put(np.ones(1024, np.float32), NamedSharding(mesh, spec))

    mesh = Mesh(np.array(DEVICES), "i")
    before = {use.device: use.array_bytes for use in dt.memory().devices}
    x = spread()
    held = dt.memory()
    found = line(spread, 1, held)
    assert (found.count, found.bytes) == (1, 4096 * copies)
    assert found.devices == ("cpu:0", "cpu:1", "cpu:2", "cpu:3")
    for use in held.devices[:4]:
        assert use.array_bytes - before[use.device] == 1024 * copies
    assert x.size == 1024


def test_the_table() -> None:
    made = make()
    held = dt.memory("cpu")
    text = str(held)
    assert text.startswith(f"{held.count} live arrays of ")
    assert " (make)" in text
    assert text.splitlines()[-4].startswith("cpu:0: ")
    assert "<th" in held._repr_html_()
    assert held.count == sum(x.count for x in held.lines)
    assert held.bytes == sum(x.bytes for x in held.lines)
    sizes = [x.bytes for x in held.lines]
    assert sizes == sorted(sizes, reverse=True)
    assert len(made) == 2


def test_the_module_is_a_module_too() -> None:
    assert dovetail.memory is dt.memory
    assert dt.memory.Space.Host is dovetail.memory.Space.Host
    assert dt.memory.__name__ == "dovetail.memory"
    assert isinstance(dt.memory(), dt.memory.LiveMemory)
    assert "Example:" in dt.memory.__call__.__doc__
    with pytest.raises(AttributeError):
        _ = dt.memory.Spaces
    with pytest.raises(BackendUnavailableError, match="unknown platform 'abacus'"):
        dt.memory("abacus")


def test_memory_stats_of_a_cpu() -> None:
    device = DEVICES[2]
    before = device.memory_stats()
    small = dt.device_put(np.ones(10, np.float32), device)
    large = dt.device_put(np.ones(2_000_000, np.float32), device)
    after = device.memory_stats()
    assert after["bytes_in_use"] - before["bytes_in_use"] == small.nbytes + large.nbytes
    assert after["num_allocs"] - before["num_allocs"] == 2
    assert after["largest_alloc_size"] >= large.nbytes
    assert after["bytes_limit"] > after["bytes_in_use"]
    assert "peak_bytes_in_use" not in after
    large.delete()
    assert device.memory_stats()["bytes_in_use"] == before["bytes_in_use"] + small.nbytes


def test_devices_of_other_clients_answer_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_clients", {})
    assert DEVICES[0].memory_stats() is None


def test_running_out_of_memory_names_the_lines_that_hold_it() -> None:
    made = make()
    with pytest.raises(OutOfMemoryError) as caught:
        jnp.ones((2**44,))
    text = str(caught.value)
    assert "  alive: " in text
    held = dt.memory()
    first = held.lines[0]
    assert f"in {first.count} of {', '.join(first.largest)}, {first.source}" in text
    assert len(made) == 2
