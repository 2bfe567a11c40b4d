"""Train a deep network on handwritten digits, each of eight devices being a stage of it.

A stage is two layers of the network. A batch goes through the stages in microbatches: in each tick
every device works on one of them and hands it to the next device (`lax.ppermute`). The ticks are a
`lax.scan`, so that the derivative runs the same pipeline backwards. A stage is idle before the
first microbatch reaches it and after the last, 7 of 23 ticks; more microbatches make that less.

The program promises the parameters of training in sequence on one device, but for rounding.

    python examples/pipeline.py --steps 100
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import numpy as np
from train_digits import load_data

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn, random
from dovetail.sharding import AxisType, NamedSharding
from dovetail.sharding import PartitionSpec as P

STAGES, MICROBATCHES, SIZE = 8, 16, 16
LAYERS, WIDTH = 16, 64
RATE, MOMENTUM = 0.02, 0.9
ROUNDING = 1e-3  # training enlarges it


def initial_parameters(key: Any) -> Any:
    """Two weights for each layer, stacked, and those of the end."""
    up, down, read = random.split(key, 3)
    return {
        "up": random.normal(up, (LAYERS, WIDTH, WIDTH)) / np.sqrt(WIDTH),
        "down": random.normal(down, (LAYERS, WIDTH, WIDTH)) / np.sqrt(WIDTH * LAYERS),
        "read": random.normal(read, (WIDTH, 10)) / np.sqrt(WIDTH),
    }


def layers_of(x: Any, up: Any, down: Any) -> Any:
    """What some layers, one after the other, make of a microbatch."""

    def layer(x: Any, weights: Any) -> Any:
        up, down = weights
        return x + nn.relu(nn.standardize(x) @ up) @ down, None

    return lax.scan(layer, x, (up, down))[0]


def in_sequence(x: Any, up: Any, down: Any) -> Any:
    """All layers, on one device, for one microbatch after the other."""
    return lax.map(lambda microbatch: layers_of(microbatch, up, down), x)


def in_stages(x: Any, up: Any, down: Any) -> Any:
    """The same in `shard_map`, where `up` and `down` are those of the layers of this stage."""
    stage = lax.axis_index("stage")
    following = [(i, i + 1) for i in range(STAGES - 1)]

    def tick(received: Any, fresh: Any) -> Any:
        done = layers_of(jnp.where(stage == 0, fresh, received), up, down)
        return lax.ppermute(done, "stage", following), done

    # While the last microbatches leave the pipeline, nothing of use enters it.
    fresh = jnp.concatenate([x, jnp.zeros((STAGES - 1, *x.shape[1:]))])
    _, done = lax.scan(tick, jnp.zeros_like(x[0]), fresh)
    results = jnp.where(stage == STAGES - 1, done[STAGES - 1 :], 0)
    return lax.psum(results, "stage")


def loss_of(parameters: Any, images: Any, labels: Any, network: Any) -> Any:
    """Mean cross entropy of microbatches of images."""
    x = network(images, parameters["up"], parameters["down"])
    chances = nn.log_softmax(nn.standardize(x) @ parameters["read"])
    return -jnp.take_along_axis(chances, labels[..., None], -1).mean()


def train(state: Any, batches: Any, network: Any) -> tuple[Any, np.ndarray, float]:
    """The parameters after SGD with momentum, the losses, and the seconds of a step."""

    @partial(dt.jit, donate_argnums=0)
    def step(state: Any, images: Any, labels: Any) -> Any:
        parameters, velocity = state
        loss, gradient = dt.value_and_grad(loss_of)(parameters, images, labels, network)
        velocity = dt.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, gradient)
        return (dt.tree.map(jnp.add, parameters, velocity), velocity), loss

    losses = []
    for number, batch in enumerate(batches):
        if number == 1:  # the first compiles
            dt.block_until_ready(state)
            started = time.perf_counter()
        state, loss = step(state, *batch)
        losses.append(loss)
    parameters = dt.device_get(state[0])
    return parameters, np.array(losses), (time.perf_counter() - started) / (len(losses) - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100, help="steps of SGD, at least 2")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the shuffling")
    options = parser.parse_args()
    dt.config.update("num_cpu_devices", STAGES)
    images, labels, test_images, test_labels = load_data(options.seed)
    rng = np.random.default_rng(options.seed)
    chosen = rng.integers(0, len(images), (options.steps, MICROBATCHES, SIZE))
    batches = list(zip(images[chosen], labels[chosen], strict=True))
    parameters = dt.device_get(initial_parameters(random.key(options.seed)))
    state = parameters, dt.tree.map(np.zeros_like, parameters)

    mesh = dt.make_mesh((STAGES,), ("stage",), (AxisType.Auto,))
    specs = {"up": P("stage"), "down": P("stage"), "read": P()}
    parts = dt.tree.map(partial(NamedSharding, mesh), (specs, specs))
    staged = dt.shard_map(
        in_stages, mesh=mesh, in_specs=(P(), P("stage"), P("stage")), out_specs=P()
    )
    expected, plain_losses, plain = train(dt.device_put(state), batches, in_sequence)
    found, losses, seconds = train(dt.device_put(state, parts), batches, staged)
    off = max_difference(found, expected)
    test = nn.standardize(layers_of(jnp.asarray(test_images), found["up"], found["down"]))
    accuracy = np.mean((test @ found["read"]).argmax(-1) == test_labels)
    idle, ticks = STAGES - 1, MICROBATCHES + STAGES - 1
    print(f"devices: {len(dt.devices())} x {dt.devices()[0].platform}")
    print(f"with {MICROBATCHES} microbatches a stage is idle in {idle} of {ticks} ticks")
    print(f"a step in sequence: {plain * 1e3:.1f} ms; in the pipeline: {seconds * 1e3:.1f} ms")
    print(f"loss: {losses[0]:.3f} to {losses[-1]:.3f}, in sequence to {plain_losses[-1]:.3f}")
    print(f"accuracy on {len(test)} held-out digits: {accuracy:.2%}")
    print(f"parameters after {options.steps} steps: {off:.1e} off from one device")
    if not off <= ROUNDING:
        raise SystemExit(f"parameters differ by more than the {ROUNDING} that is promised")


def max_difference(found: Any, expected: Any) -> float:
    """The largest difference of arrays in trees, as a part of the largest number in an array."""
    off = dt.tree.map(lambda x, y: np.abs(x - y).max() / np.abs(y).max(), found, expected)
    return float(np.max(dt.tree.leaves(off)))


if __name__ == "__main__":
    main()
