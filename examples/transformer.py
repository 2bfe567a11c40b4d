"""Train a transformer on the characters of a page of dovetail's own documentation.

Attention is `dovetail.nn.dot_product_attention`; all steps are one compiled loop, and text is drawn
by another. The program shows the loss and what the network writes, and promises that on the last
tenth of the page, which it has not seen, the loss falls below that of counts of pairs of
characters.

    python examples/transformer.py --steps 250 --picture transformer.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn, random
from dovetail.example_libraries import optimizers
from dovetail.nn import initializers

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PAGE = Path(__file__).parents[1] / "docs" / "differences-from-jax.md"
CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 64, 64, 4, 2, 16


def load_text(path: Path) -> tuple[np.ndarray, np.ndarray, str]:
    """The characters as numbers, nine tenths to train on, and the alphabet."""
    text = path.read_text(encoding="utf-8")
    alphabet = "".join(sorted(set(text)))
    numbers = np.array([alphabet.index(c) for c in text], np.int32)
    split = len(numbers) * 9 // 10
    return numbers[:split], numbers[split:], alphabet


def initial_parameters(key: Any, letters: int) -> Any:
    """Parameters of the network; the layers are stacked, for a scan over them."""
    init = initializers.lecun_normal(in_axis=-2, out_axis=-1, batch_axis=(0,))
    keys = random.split(key, 6)
    shapes = {
        "qkv": (LAYERS, WIDTH, 3 * WIDTH),
        "out": (LAYERS, WIDTH, WIDTH),
        "up": (LAYERS, WIDTH, 4 * WIDTH),
        "down": (LAYERS, 4 * WIDTH, WIDTH),
    }
    layers = {n: init(k, s) for k, (n, s) in zip(keys, shapes.items(), strict=False)}
    return {
        "layers": layers,
        "letters": 0.1 * random.normal(keys[4], (letters, WIDTH)),
        "places": 0.1 * random.normal(keys[5], (CONTEXT, WIDTH)),
        "read": jnp.zeros((WIDTH, letters)),
    }


def block(x: Any, layer: Any) -> tuple[Any, None]:
    """Attention to what came before, then a network for each character."""
    shape = (*x.shape[:-1], HEADS, WIDTH // HEADS)
    query, key, value = jnp.split(nn.standardize(x) @ layer["qkv"], 3, -1)
    heads = (y.reshape(shape) for y in (query, key, value))
    seen = nn.dot_product_attention(*heads, is_causal=True)
    x = x + seen.reshape(x.shape) @ layer["out"]
    return x + nn.gelu(nn.standardize(x) @ layer["up"]) @ layer["down"], None


def logits_of(params: Any, text: Any) -> Any:
    """For each character of texts of CONTEXT characters, what may come next."""
    x = params["letters"][text] + params["places"]
    x, _ = lax.scan(block, x, params["layers"])
    return nn.standardize(x) @ params["read"]


def loss_of(params: Any, text: Any) -> Any:
    """Mean cross entropy of the characters of texts of CONTEXT + 1 characters."""
    chances = nn.log_softmax(logits_of(params, text[:, :-1]))
    return -jnp.take_along_axis(chances, text[:, 1:, None], -1).mean()


def pairs_loss(train: np.ndarray, test: np.ndarray, letters: int) -> float:
    """The loss of a table of which character follows which."""
    counts = np.full((letters, letters), 0.1)
    np.add.at(counts, (train[:-1], train[1:]), 1)
    table = np.log(counts / counts.sum(1, keepdims=True))
    return -float(table[test[:-1], test[1:]].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=250, help="steps of Adam")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and batches")
    parser.add_argument("--text", type=Path, default=PAGE, help="file to learn from")
    parser.add_argument("--picture", type=Path, default=Path("transformer.png"), help="to write")
    options = parser.parse_args()
    train, test, alphabet = load_text(options.text)
    weight_key, batch_key, text_key = random.split(random.key(options.seed), 3)
    rate = optimizers.polynomial_decay(4e-3, options.steps, 4e-4)
    init, update, params_of = optimizers.adam(rate)
    state = init(initial_parameters(weight_key, len(alphabet)))

    def windows(text: Any, starts: Any) -> Any:
        return text[starts[:, None] + jnp.arange(CONTEXT + 1)]

    @dt.jit
    def fit(state: Any, text: Any) -> Any:
        def step(state: Any, i: Any) -> Any:
            key = random.fold_in(batch_key, i)
            starts = random.randint(key, (BATCH,), 0, len(train) - CONTEXT)
            batch = windows(text, starts)
            loss, gradient = dt.value_and_grad(loss_of)(params_of(state), batch)
            return update(i, optimizers.clip_grads(gradient, 1.0), state), loss

        return lax.scan(step, state, jnp.arange(options.steps))

    @dt.jit
    def write(params: Any, start: Any, keys: Any) -> Any:
        """Characters after a text, one for each key."""

        def step(text: Any, key: Any) -> Any:
            letter = random.categorical(key, logits_of(params, text[None])[0, -1] / 0.7)
            return jnp.append(text[1:], letter.astype(text.dtype)), letter

        return lax.scan(step, start, keys)[1]

    started = time.perf_counter()
    state, found = fit(state, train)
    losses = np.asarray(found)
    elapsed = time.perf_counter() - started
    params = params_of(state)
    starts = np.arange(0, len(test) - CONTEXT - 1, CONTEXT)[:64]
    held_out = float(dt.jit(loss_of)(params, windows(jnp.asarray(test), starts)))
    counted = pairs_loss(train, test, len(alphabet))
    letters = np.asarray(write(params, test[:CONTEXT], random.split(text_key, 200)))
    print(f"device: {dt.devices()[0]}")
    print(f"{options.steps} steps in {elapsed:.1f} s, with compiling")
    print(f"loss of a character: {losses[0]:.2f} at first, {losses[-10:].mean():.2f} at last")
    print(f"on text that was held out: {held_out:.2f}, of counts of pairs {counted:.2f}")
    print("it writes: " + "".join(alphabet[i] for i in letters).replace("\n", "\n    "))
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.plot(losses, linewidth=0.8, label="training")
    axes.axhline(held_out, color="tab:orange", label="held out")
    axes.axhline(counted, color="gray", linestyle="--", label="counts of pairs")
    axes.set(xlabel="step", ylabel="loss of a character")
    axes.legend()
    figure.savefig(options.picture, dpi=120)
    print(f"picture: {options.picture.resolve()}")
    if held_out >= counted:
        raise SystemExit("the network is worse than this program promises")


if __name__ == "__main__":
    main()
