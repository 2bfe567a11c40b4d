"""Train a small convolutional network on scikit-learn's handwritten digits.

Layers and Adam are those of `dovetail.example_libraries`; a whole epoch is one compiled loop. The
program promises 97 % on a held-out fifth of the data, and writes a picture of the loss, of the
kernels of the first layer and of the digits that the network got wrong.

    python examples/convolutions.py --epochs 8 --picture convolutions.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn, random
from dovetail.example_libraries import optimizers, stax

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BATCH = 64

init_network, apply_network = stax.serial(
    stax.Conv(16, (3, 3), padding="SAME"),
    stax.Relu,
    stax.Conv(32, (3, 3), padding="SAME"),
    stax.Relu,
    stax.MaxPool((2, 2), (2, 2)),
    stax.Flatten,
    stax.Dense(64),
    stax.Relu,
    stax.Dense(10),
)


def load_data(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images of shape (n, 8, 8, 1) in [0, 1] and labels, four fifths of them to train on."""
    digits = load_digits()
    images = (digits.images[..., None] / 16.0).astype(np.float32)
    labels = digits.target.astype(np.int32)
    order = np.random.default_rng(seed).permutation(len(images))
    held_out = len(images) // 5
    test, train = order[:held_out], order[held_out:]
    return images[train], labels[train], images[test], labels[test]


def loss_of(params: Any, images: Any, labels: Any) -> Any:
    """Mean cross entropy of a batch."""
    chances = nn.log_softmax(apply_network(params, images))
    return -jnp.take_along_axis(chances, labels[:, None], 1).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8, help="passes over the data")
    parser.add_argument("--seed", type=int, default=0, help="of the split and of the weights")
    parser.add_argument(
        "--picture", type=Path, default=Path("convolutions.png"), help="file to write"
    )
    options = parser.parse_args()
    images, labels, test_images, test_labels = load_data(options.seed)
    batches = len(images) // BATCH
    steps = options.epochs * batches
    init, update, params_of = optimizers.adam(optimizers.polynomial_decay(3e-3, steps, 1e-4))
    weight_key, order_key = random.split(random.key(options.seed))
    state = init(init_network(weight_key, (-1, 8, 8, 1))[1])

    @dt.jit
    def epoch(number: Any, state: Any, images: Any, labels: Any) -> Any:
        """Steps through all batches, in a new order; the state and the losses."""
        order = random.permutation(random.fold_in(order_key, number), len(images))
        rows = order[: batches * BATCH].reshape(batches, BATCH)

        def step(state: Any, item: Any) -> Any:
            place, chosen = item
            loss, gradient = dt.value_and_grad(loss_of)(
                params_of(state), images[chosen], labels[chosen]
            )
            return update(number * batches + place, gradient, state), loss

        return lax.scan(step, state, (jnp.arange(batches), rows))

    started = time.perf_counter()
    losses = []
    for number in range(options.epochs):
        state, found = epoch(number, state, images, labels)
        losses.append(np.asarray(found))
    elapsed = time.perf_counter() - started
    curve = np.concatenate(losses)
    params = params_of(state)
    guesses = np.asarray(jnp.argmax(dt.jit(apply_network)(params, test_images), -1))
    accuracy = float(np.mean(guesses == test_labels))
    print(f"device: {dt.devices()[0]}")
    print(f"{steps} steps in {elapsed:.1f} s, with compiling; last loss {curve[-1]:.4f}")
    print(f"accuracy on {len(test_labels)} held-out digits: {accuracy:.2%}")
    draw(options.picture, curve, np.asarray(params[0][0]), test_images, test_labels, guesses)
    print(f"picture: {options.picture.resolve()}")
    if accuracy < 0.97:
        raise SystemExit("the accuracy is below the 97 % that this program promises")


def draw(
    path: Path,
    losses: np.ndarray,
    kernels: np.ndarray,
    images: np.ndarray,
    labels: np.ndarray,
    guesses: np.ndarray,
) -> None:
    """A picture of the losses, the first kernels and the misclassified digits."""
    wrong = np.flatnonzero(guesses != labels)[:8]
    figure = plt.figure(figsize=(9, 6), layout="constrained")
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=(3, 1, 1))
    top.subplots().semilogy(losses, linewidth=0.8)
    top.suptitle("Training loss")
    for cell, kernel in zip(
        middle.subplots(1, 16), kernels[:, :, 0].transpose(2, 0, 1), strict=True
    ):
        cell.imshow(kernel, cmap="coolwarm", vmin=-1, vmax=1)
        cell.axis("off")
    bottom.suptitle(f"Misclassified: {np.sum(guesses != labels)} of {len(labels)}")
    cells = bottom.subplots(1, 8)
    for cell in cells:
        cell.axis("off")
    for cell, i in zip(cells, wrong, strict=False):
        cell.imshow(images[i, :, :, 0], cmap="gray_r")
        cell.set_title(f"{labels[i]} as {guesses[i]}", fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
