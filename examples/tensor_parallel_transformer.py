"""Train a transformer on a page of dovetail's documentation, over a mesh of 2 x 4 devices.

Along the axis "data" batches are divided. Along "model" the attention heads and the hidden units
are: each device computes some of them, and what they add to `x` is summed over the devices, twice
in a layer. The functions say nothing of this. Where the parameters and the batch lie does, and the
compiler derives the rest.

The program promises the loss and the gradients of one device, but for rounding, before the first
step, and the same losses in training.

    python examples/tensor_parallel_transformer.py --steps 60
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn, random
from dovetail.example_libraries import optimizers
from dovetail.sharding import AxisType, NamedSharding
from dovetail.sharding import PartitionSpec as P

PAGE = Path(__file__).parents[1] / "docs" / "differences-from-jax.md"
CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 64, 64, 4, 2, 16
ROUNDING, TRAINED = 1e-5, 1e-3  # of one step; of the losses of all

#: Shapes of the parameters of the layers, and how they are divided. Dimension 0 is the layer.
LAYER = {
    "qkv": ((LAYERS, WIDTH, 3, HEADS, WIDTH // HEADS), P(None, None, None, "model")),
    "out": ((LAYERS, HEADS, WIDTH // HEADS, WIDTH), P(None, "model")),
    "up": ((LAYERS, WIDTH, 4 * WIDTH), P(None, None, "model")),
    "down": ((LAYERS, 4 * WIDTH, WIDTH), P(None, "model")),
}
SPECS = {
    "layers": {name: spec for name, (_, spec) in LAYER.items()},
    "letters": P(),
    "places": P(),
    "read": P(),
}


def initial_parameters(key: Any, letters: int) -> Any:
    """Parameters of the network; the layers are stacked, for a scan over them."""
    keys = dict(zip((*LAYER, "letters", "places", "read"), random.split(key, 7), strict=True))

    def normal(name: str, *shape: int) -> Any:
        return 0.1 * random.normal(keys[name], shape)

    return {
        "layers": {name: normal(name, *shape) for name, (shape, _) in LAYER.items()},
        "letters": normal("letters", letters, WIDTH),
        "places": normal("places", CONTEXT, WIDTH),
        "read": normal("read", WIDTH, letters),
    }


def block(x: Any, layer: Any) -> tuple[Any, None]:
    """Attention to what came before, then a network for each character."""
    query, key, value = jnp.einsum("btw,wihs->ibths", nn.standardize(x), layer["qkv"])
    seen = nn.dot_product_attention(query, key, value, is_causal=True)
    x = x + jnp.einsum("bths,hsw->btw", seen, layer["out"])
    return x + nn.gelu(nn.standardize(x) @ layer["up"]) @ layer["down"], None


def loss_of(params: Any, text: Any) -> Any:
    """Mean cross entropy of the characters of texts of CONTEXT + 1 characters."""
    x = params["letters"][text[:, :-1]] + params["places"]
    x, _ = lax.scan(block, x, params["layers"])
    chances = nn.log_softmax(nn.standardize(x) @ params["read"])
    return -jnp.take_along_axis(chances, text[:, 1:, None], -1).mean()


init, update, params_of = optimizers.adam(3e-3)


def step(i: Any, state: Any, text: Any) -> Any:
    """One step of Adam: the new state, and the loss before it."""
    loss, gradient = dt.value_and_grad(loss_of)(params_of(state), text)
    return update(i, optimizers.clip_grads(gradient, 1.0), state), loss


def train(params: Any, batches: Any) -> np.ndarray:
    """The losses of training from parameters, on the devices where they lie."""
    run = dt.jit(step, donate_argnums=1)
    state = init(params)
    losses = []
    for i, text in enumerate(batches):
        state, loss = run(i, state, text)
        losses.append(loss)
    return np.asarray(dt.device_get(losses))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="steps of Adam")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and batches")
    parser.add_argument("--text", type=Path, default=PAGE, help="file to learn from")
    options = parser.parse_args()
    dt.config.update("num_cpu_devices", 8)

    text = options.text.read_text(encoding="utf-8")
    alphabet, numbers = np.unique(list(text), return_inverse=True)
    rng = np.random.default_rng(options.seed)
    starts = rng.integers(0, len(numbers) - CONTEXT, (options.steps, BATCH, 1))
    batches = numbers.astype(np.int32)[starts + np.arange(CONTEXT + 1)]
    params = dt.device_get(initial_parameters(random.key(options.seed), len(alphabet)))

    mesh = dt.make_mesh((2, 4), ("data", "model"), (AxisType.Auto, AxisType.Auto))
    shardings = dt.tree.map(partial(NamedSharding, mesh), SPECS)
    divided = dt.device_put(params, shardings)
    rows = NamedSharding(mesh, P("data"))
    print(f"devices: {len(dt.devices())} x {dt.devices()[0].platform}, {mesh}")

    gradient = dt.jit(dt.value_and_grad(loss_of))
    program = gradient.lower(divided, dt.device_put(batches[0], rows)).compile()
    exchanges: Counter[str] = Counter()
    for each in program.report().collectives:
        exchanges[f"{each.kind} over {' and '.join(each.axes)}"] += each.times
    print("exchanged: " + ", ".join(f"{n} x {name}" for name, n in exchanges.items()))
    found = dt.tree.leaves(program(divided, dt.device_put(batches[0], rows)))
    expected = dt.tree.leaves(gradient(params, batches[0]))
    off = list(map(difference, found, expected))
    print(f"off from one device: loss {off[0]:.1e}, gradients {max(off[1:]):.1e}")

    curves = []
    for place, start, where in (("1 device", params, None), ("8 devices", divided, rows)):
        began = time.perf_counter()
        curves.append(train(start, [dt.device_put(batch, where) for batch in batches]))
        first, last = curves[-1][[0, -1]]
        elapsed = time.perf_counter() - began
        print(f"{place}: loss {first:.4f} to {last:.4f} in {elapsed:.1f} s, with compiling")
    apart = difference(curves[1], curves[0])
    print(f"the losses of {options.steps} steps: {apart:.1e} off from one device")
    if not (np.max(off) <= ROUNDING and apart <= TRAINED):
        raise SystemExit("the mesh of devices differs by more than this program promises")


def difference(x: Any, y: Any) -> float:
    """The largest difference, as a part of the largest number."""
    return float(np.abs(np.asarray(x) - np.asarray(y)).max() / np.abs(np.asarray(y)).max())


if __name__ == "__main__":
    main()
