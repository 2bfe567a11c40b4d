"""Train a multi-layer perceptron on scikit-learn's handwritten digits.

Minibatch SGD with momentum, compiled with buffer donation. Prints the accuracy on a held-out fifth
of the data and the time that compiling and stepping took, and writes a picture of the loss curve
and of the digits that the network got wrong.

    python examples/train_digits.py --epochs 60 --picture digits.png
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.datasets import load_digits

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import nn, random

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Parameters = list[dict[str, Any]]


def load_data(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images in [0, 1] and labels, split into four fifths to train on and one fifth to test on."""
    digits = load_digits()
    images = (digits.data / 16.0).astype(np.float32)
    labels = digits.target.astype(np.int32)
    order = np.random.default_rng(seed).permutation(len(images))
    held_out = len(images) // 5
    test, train = order[:held_out], order[held_out:]
    return images[train], labels[train], images[test], labels[test]


def initial_parameters(key: Any, sizes: list[int]) -> Parameters:
    """Weights drawn for layers with rectifiers (He et al. 2015), and zero biases."""
    layers = []
    keys = random.split(key, len(sizes) - 1)
    for layer_key, fan_in, fan_out in zip(keys, sizes[:-1], sizes[1:], strict=True):
        scale = np.sqrt(2.0 / fan_in)
        weight = scale * random.normal(layer_key, (fan_in, fan_out))
        layers.append({"weight": weight, "bias": jnp.zeros(fan_out)})
    return layers


def logits_of(parameters: Parameters, image: Any) -> Any:
    """Unnormalised log-probabilities of the ten digits for one image."""
    hidden = image
    for layer in parameters[:-1]:
        hidden = nn.relu(hidden @ layer["weight"] + layer["bias"])
    last = parameters[-1]
    return hidden @ last["weight"] + last["bias"]


def loss_of(parameters: Parameters, images: Any, labels: Any, weight_decay: float) -> Any:
    """Mean cross entropy of a batch, plus weight decay."""
    logits = dt.vmap(logits_of, in_axes=(None, 0))(parameters, images)
    targets = nn.one_hot(labels, 10)
    cross_entropy = -jnp.mean(jnp.sum(targets * nn.log_softmax(logits), axis=-1))
    penalty = sum(jnp.sum(layer["weight"] ** 2) for layer in parameters)
    return cross_entropy + weight_decay * penalty


@partial(dt.jit, donate_argnums=(0, 1))
def train_step(
    parameters: Parameters, velocity: Parameters, images: Any, labels: Any, rate: Any
) -> tuple[Parameters, Parameters, Any]:
    """One step of SGD with momentum; the old parameters and velocity give up their memory."""
    loss, gradient = dt.value_and_grad(loss_of)(parameters, images, labels, 1e-4)
    velocity = dt.tree.map(lambda v, g: 0.9 * v - rate * g, velocity, gradient)
    parameters = dt.tree.map(lambda p, v: p + v, parameters, velocity)
    return parameters, velocity, loss


@dt.jit
def predict(parameters: Parameters, images: Any) -> Any:
    """The most likely digit of each image."""
    return jnp.argmax(dt.vmap(logits_of, in_axes=(None, 0))(parameters, images), axis=-1)


def minibatches(
    images: np.ndarray, labels: np.ndarray, size: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Shuffled batches of equal size; the remainder waits for the next shuffle."""
    order = rng.permutation(len(images))
    for start in range(0, len(order) - size + 1, size):
        chosen = order[start : start + size]
        yield images[chosen], labels[chosen]


def draw(
    path: Path, losses: list[float], images: np.ndarray, labels: np.ndarray, guesses: np.ndarray
) -> None:
    """A picture of the loss curve and of the misclassified digits."""
    wrong = np.flatnonzero(guesses != labels)[:12]
    figure = plt.figure(figsize=(10, 6), layout="constrained")
    curve, gallery = figure.subfigures(2, 1, height_ratios=(3, 2))
    axes = curve.subplots()
    axes.semilogy(losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="loss", title="Training loss")
    gallery.suptitle(f"Misclassified: {np.sum(guesses != labels)} of {len(labels)}")
    cells = np.atleast_1d(gallery.subplots(1, max(len(wrong), 1)))
    for cell in cells:
        cell.axis("off")
    for cell, i in zip(cells, wrong, strict=False):
        cell.imshow(images[i].reshape(8, 8), cmap="gray_r")
        cell.set_title(f"{labels[i]} as {guesses[i]}", fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60, help="passes over the data")
    parser.add_argument("--batch-size", type=int, default=64, help="images in a step")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the split, the weights, the shuffling"
    )
    parser.add_argument("--picture", type=Path, default=Path("digits.png"), help="file to write")
    options = parser.parse_args()

    images, labels, test_images, test_labels = load_data(options.seed)
    parameters = initial_parameters(random.key(options.seed), [64, 128, 64, 10])
    velocity = dt.tree.map(jnp.zeros_like, parameters)
    rng = np.random.default_rng(options.seed)
    steps_in_epoch = len(images) // options.batch_size
    losses: list[Any] = []

    started = time.perf_counter()
    first_step = 0.0
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        steps = options.epochs * steps_in_epoch
        task = progress.add_task("training", total=steps, state="compiling")
        for epoch in range(options.epochs):
            rate = np.float32(0.05 * 0.5 * (1 + np.cos(np.pi * epoch / options.epochs)))
            for batch in minibatches(images, labels, options.batch_size, rng):
                parameters, velocity, loss = train_step(parameters, velocity, *batch, rate)
                losses.append(loss)
                if len(losses) == 1:
                    loss.block_until_ready()
                    first_step = time.perf_counter() - started
                    progress.update(task, state=f"loss {loss:.4f}")
                progress.advance(task)
            progress.update(task, state=f"loss {losses[-1]:.4f}")
    elapsed = time.perf_counter() - started

    guesses = np.asarray(predict(parameters, test_images))
    accuracy = float(np.mean(guesses == test_labels))
    per_step = (elapsed - first_step) / max(len(losses) - 1, 1)
    print(f"device: {dt.devices()[0]}")
    print(
        f"first step, with compiling: {first_step:.2f} s; later steps: {per_step * 1e6:.0f} us each"
    )
    print(f"accuracy on {len(test_labels)} held-out digits: {accuracy:.2%}")
    draw(options.picture, [float(x) for x in losses], test_images, test_labels, guesses)
    print(f"picture: {options.picture.resolve()}")
    if accuracy < 0.97:
        raise SystemExit("the accuracy is below the 97 % that this program promises")


if __name__ == "__main__":
    main()
