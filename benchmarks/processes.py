"""Measure data-parallel training as one of several processes, as another process asks.

    python processes.py jax|dovetail ADDRESS COUNT NUMBER

For every line read, so many steps as it says are taken; one line with the wall time of one follows,
in microseconds. Each process has a batch of its own, of the same size however many they are. A step
places that over all devices, and the parameters are waited for at the end.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

SIZES, BATCH, RATE = (256, 512, 512, 10), 64, 0.01


def training(framework: Any, jnp: Any, sharding: Any) -> Any:
    """A function that takes one step, and returns the parameters.

    Args:
        framework: its module.
        jnp: its NumPy API.
        sharding: its module of shardings.
    """
    mesh = sharding.Mesh(np.array(framework.devices()), ("data",))
    whole = sharding.NamedSharding(mesh, sharding.PartitionSpec())
    split = sharding.NamedSharding(mesh, sharding.PartitionSpec("data"))
    rng = np.random.default_rng(0)
    parameters = [
        framework.make_array_from_callback(
            shape, whole, lambda _, shape=shape: rng.normal(0, 0.05, shape).astype(np.float32)
        )
        for shape in pairwise(SIZES)
    ]
    images = rng.normal(0, 1, (BATCH, SIZES[0])).astype(np.float32)
    labels = rng.integers(0, SIZES[-1], BATCH).astype(np.int32)

    def loss_of(parameters: Any, images: Any, labels: Any) -> Any:
        x = images
        for weight in parameters[:-1]:
            x = jnp.tanh(x @ weight)
        x = x @ parameters[-1]
        x = x - jnp.log(jnp.sum(jnp.exp(x), -1, keepdims=True))
        return -jnp.mean(jnp.where(labels[:, None] == jnp.arange(SIZES[-1]), x, 0).sum(-1))

    def step(parameters: Any, images: Any, labels: Any) -> Any:
        gradient = framework.grad(loss_of)(parameters, images, labels)
        return [p - RATE * g for p, g in zip(parameters, gradient, strict=True)]

    run = framework.jit(step, out_shardings=whole, donate_argnums=0)
    state = [parameters]

    def take_step() -> Any:
        batch = [framework.make_array_from_process_local_data(split, x) for x in (images, labels)]
        state[0] = run(state[0], *batch)
        return state[0]

    return take_step


def main() -> None:
    name, address, count, number = sys.argv[1:]
    framework = import_module(name)
    if count != "1":
        framework.distributed.initialize(address, int(count), int(number))
    take_step = training(
        framework, import_module(f"{name}.numpy"), import_module(f"{name}.sharding")
    )
    framework.block_until_ready(take_step())
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            result = take_step()
        framework.block_until_ready(result)
        seconds = time.perf_counter() - start
        print(f"figure {seconds / int(line) * 1e6}", flush=True)


if __name__ == "__main__":
    main()
