"""Train the network of train_digits.py on eight devices, in three ways.

- Data parallel: each device has all parameters and an eighth of each batch.
- Fully sharded (FSDP): the devices keep an eighth of the parameters and velocities, too. The
  program is the same; only where its arguments lie is another.
- Fully sharded by hand: in `shard_map` each device gathers the parameters for its part of the
  batch. The derivative of that gathering is `lax.psum_scatter`: each device is sent the sum of the
  gradients of what it keeps.

The program promises the parameters of one device after all steps, but for rounding. What devices
keep and send counts here: eight devices that are one CPU take longer than one.

    python examples/sharded_digits.py --steps 200
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from train_digits import initial_parameters, load_data, loss_of, minibatches, predict

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail.sharding import AxisType, NamedSharding
from dovetail.sharding import PartitionSpec as P

DEVICES, BATCH, DECAY = 8, 64, 1e-4
ROUNDING = 1e-5


def step(state: Any, images: Any, labels: Any, rate: Any, gradient_of: Any) -> Any:
    """One step of SGD with momentum: new parameters and velocities, and the loss."""
    parameters, velocity = state
    loss, gradient = gradient_of(parameters, images, labels)
    velocity = dt.tree.map(lambda v, g: 0.9 * v - rate * g, velocity, gradient)
    return (dt.tree.map(jnp.add, parameters, velocity), velocity), loss


def spec_of(x: Any) -> P:
    """Rows of what has enough of them are divided, the rest is kept by every device."""
    return P("data") if x.shape[0] % DEVICES == 0 else P()


def gathered(parameters: Any) -> Any:
    """In `shard_map`, all parameters from the parts that the devices keep."""

    def gather(x: Any) -> Any:
        return lax.all_gather(x, "data", tiled=True) if "data" in dt.typeof(x).vma else x

    return dt.tree.map(gather, parameters)


def mean_loss(parameters: Any, images: Any, labels: Any) -> Any:
    """In `shard_map`, the loss of the whole batch, of which each device has a part."""
    return lax.pmean(loss_of(gathered(parameters), images, labels, DECAY), "data")


def ways(state: Any) -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """The name of each way, its compiled step, and the state where that wants it."""
    mesh = dt.make_mesh((DEVICES,), ("data",), (AxisType.Auto,))
    whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    plain = partial(step, gradient_of=dt.value_and_grad(partial(loss_of, weight_decay=DECAY)))
    compiled = partial(dt.jit, donate_argnums=0)
    yield "one device", compiled(plain), dt.device_put(state)

    parallel = compiled(
        plain, in_shardings=(whole, split, split, whole), out_shardings=(whole, whole)
    )
    yield "data parallel", parallel, dt.device_put(state, whole)

    specs = dt.tree.map(spec_of, state)
    parts = dt.tree.map(partial(NamedSharding, mesh), specs)
    sharded = compiled(
        plain, in_shardings=(parts, split, split, whole), out_shardings=(parts, whole)
    )
    yield "fully sharded", sharded, dt.device_put(state, parts)

    by_hand = dt.shard_map(
        partial(step, gradient_of=dt.value_and_grad(mean_loss)),
        mesh=mesh,
        in_specs=(specs, P("data"), P("data"), P()),
        out_specs=(specs, P()),
    )
    yield "sharded by hand", compiled(by_hand), dt.device_put(state, parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="steps of SGD")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the shuffling")
    options = parser.parse_args()
    dt.config.update("num_cpu_devices", DEVICES)
    images, labels, test_images, test_labels = load_data(options.seed)
    rng = np.random.default_rng(options.seed)
    epochs = iter(lambda: minibatches(images, labels, BATCH, rng), None)
    batches = list(islice((batch for epoch in epochs for batch in epoch), options.steps))
    rates = (0.05 * (1 - np.arange(options.steps) / options.steps)).astype(np.float32)
    parameters = dt.device_get(initial_parameters(random.key(options.seed), [64, 128, 64, 10]))
    expected: Any = None
    off = []
    print(f"devices: {len(dt.devices())} x {dt.devices()[0].platform}")
    for name, run, state in ways((parameters, dt.tree.map(np.zeros_like, parameters))):
        kept = sum(x.addressable_shards[0].data.nbytes for x in dt.tree.leaves(state))
        program = run.lower(state, *batches[0], rates[0]).compile()
        started = time.perf_counter()
        for batch, rate in zip(batches, rates, strict=True):
            state, loss = program(state, *batch, rate)
        dt.block_until_ready(state)
        elapsed = (time.perf_counter() - started) / options.steps
        found = dt.device_get(state[0])
        expected = expected or found
        off.append(max_difference(found, expected))
        print(
            f"{name:>15}: a device keeps {kept / 1024:5.1f} KiB and sends "
            f"{program.report().sent_bytes / 1024:5.1f} KiB a step of {elapsed * 1e6:4.0f} us; "
            f"loss {loss:.5f}, {off[-1]:.0e} from one device"
        )
    accuracy = np.mean(np.asarray(predict(found, test_images)) == test_labels)
    print(f"accuracy on {len(test_labels)} held-out digits: {accuracy:.2%}")
    if not np.max(off) <= ROUNDING:
        raise SystemExit(f"parameters differ by more than the {ROUNDING} that is promised")


def max_difference(found: Any, expected: Any) -> float:
    """The largest difference of arrays in trees, as a part of the largest number in an array."""
    off = dt.tree.map(lambda x, y: np.abs(x - y).max() / np.abs(y).max(), found, expected)
    return float(np.max(dt.tree.leaves(off)))


if __name__ == "__main__":
    main()
