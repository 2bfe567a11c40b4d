"""Measure programs and transfers over eight CPU devices, one at a time, as another process asks.

    DOVETAIL_NUM_CPU_DEVICES=8 JAX_NUM_CPU_DEVICES=8 python devices.py jax|dovetail

The first line written is a JSON list of what is measured. For every name read, one line with the
median wall time follows, in microseconds, on a warm cache. Results are waited for.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sharded_transformer import eager_of, step_of

COUNT = 8
#: Of 32-bit numbers: 64 MB.
SIDE = 4096
#: Calls of a program follow one another, and the last result is waited for.
CALLS = 20

#: Prepares a call and returns it; what it holds is dropped afterwards.
Measured = Callable[[], Callable[[], Any]]


def host_matrix() -> np.ndarray[Any, Any]:
    """A matrix where NumPy puts a large one: 16 bytes after the beginning of a page.

    One at a multiple of 64 bytes would be measured in JAX without a copy: there it is shared with
    whoever may write to it later.
    """
    memory = np.empty(SIDE * SIDE + 1024, np.float32)
    start = (4096 + 16 - memory.ctypes.data % 4096) // 4
    matrix = memory[start : start + SIDE * SIDE].reshape(SIDE, SIDE)
    matrix[:] = np.arange(SIDE)
    return matrix


def measured(framework: Any, jnp: Any, sharding: Any) -> dict[str, Measured]:
    """What is measured, by name.

    Args:
        framework: its module.
        jnp: its NumPy API.
        sharding: its module of shardings.
    """
    spec, devices = sharding.PartitionSpec, framework.devices()
    assert len(devices) == COUNT, f"{framework.__name__} has {len(devices)} devices, not {COUNT}"
    mesh = sharding.Mesh(np.array(devices), ("x",))
    places = {
        "rows": sharding.NamedSharding(mesh, spec("x")),
        "columns": sharding.NamedSharding(mesh, spec(None, "x")),
        "replicated": sharding.NamedSharding(mesh, spec()),
    }
    host = host_matrix()
    found: dict[str, Measured] = {}

    def program(count: int) -> Measured:
        def prepare() -> Callable[[], Any]:
            small = np.ones((COUNT, 16), np.float32)
            arguments = [framework.device_put(small + i, places["rows"]) for i in range(count)]
            add = framework.jit(lambda *xs: [x + 1.0 for x in xs])
            return lambda: add(*arguments)

        return prepare

    for count in (4, 100):
        found[f"call of a program of {count} arguments"] = program(count)

    def put(place: str) -> Measured:
        return lambda: lambda: framework.device_put(host, places[place])

    for place in places:
        found[f"device_put of 64 MB from the host: {place}"] = put(place)

    def moved(source: str, target: str, fresh: bool) -> Measured:
        def prepare() -> Callable[[], Any]:
            x = framework.device_put(host, places[source])
            if not fresh:
                framework.block_until_ready(framework.device_put(x, places[target]))
            x = framework.block_until_ready(x + 1) if fresh else x
            return lambda: framework.device_put(x, places[target])

        return prepare

    for source, target in (("rows", "columns"), ("rows", "replicated"), ("replicated", "rows")):
        found[f"device_put of 64 MB, {source} to {target}"] = moved(source, target, True)
        found[f"the same once more, {source} to {target}"] = moved(source, target, False)

    def read(source: str) -> Measured:
        def prepare() -> Callable[[], Any]:
            x = framework.block_until_ready(framework.device_put(host, places[source]) + 1)
            return lambda: np.asarray(x)

        return prepare

    found["np.asarray of 64 MB in rows"] = read("rows")

    def shards() -> Callable[[], Any]:
        x = framework.device_put(np.ones((COUNT, 16), np.float32), places["rows"])
        x = framework.block_until_ready(x + 1)
        return lambda: [shard.data for shard in x.addressable_shards]

    found["addressable_shards of an array"] = shards

    def lowered() -> Callable[[], Any]:
        make, arguments = step_of(framework)
        return lambda: make().trace(*arguments).lower()

    found["trace and lower a transformer step with shard_map"] = lowered

    def eager() -> Callable[[], Any]:
        call = eager_of(framework)
        framework.block_until_ready(call())
        return call

    found["call of shard_map outside of jit"] = eager
    return found


def microseconds(name: str, prepare: Measured, wait: Callable[[Any], Any]) -> float:
    """Median of the time of a call."""
    if name.startswith("call"):
        call = prepare()
        wait(call())
        times = []
        for _ in range(15):
            start = time.perf_counter()
            for _ in range(CALLS):
                result = call()
            wait(result)
            times.append((time.perf_counter() - start) / CALLS)
        return statistics.median(times) * 1e6
    times = []
    for _ in range(7):
        call = prepare()
        start = time.perf_counter()
        result = call()
        if not name.startswith("trace"):
            wait(result)
        times.append(time.perf_counter() - start)
        del call, result
    return statistics.median(times) * 1e6


def main() -> None:
    name = sys.argv[1]
    framework = import_module(name)
    found = measured(framework, import_module(f"{name}.numpy"), import_module(f"{name}.sharding"))
    print(json.dumps(list(found)), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)["name"]
        taken = microseconds(asked, found[asked], framework.block_until_ready)
        print(json.dumps({"microseconds": taken}), flush=True)


if __name__ == "__main__":
    main()
