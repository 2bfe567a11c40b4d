"""Gaussian-process regression on scikit-learn's diabetes data.

The kernel has a length for each of ten features, a scale and noise; all are fitted by gradients of
the marginal likelihood, as in Rasmussen and Williams, Gaussian Processes for Machine Learning
(2006), algorithm 2.1. The program promises an error on held-out patients that is below that of a
line through all features, and that nine tenths of them are within the bounds of nine tenths.

    python examples/gaussian_process.py --steps 60 --picture gaussian_process.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import load_diabetes

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn
from dovetail.example_libraries import optimizers

matplotlib.use("Agg")
import matplotlib.pyplot as plt

#: 90 % of normal numbers are within this many standard deviations.
NINETY = 1.6449


def load_data(seed: int) -> tuple[np.ndarray, ...]:
    """Standardised features and targets, four fifths of them to fit to."""
    data = load_diabetes()
    features = (data.data / data.data.std(0)).astype(np.float32)
    targets = ((data.target - data.target.mean()) / data.target.std()).astype(np.float32)
    order = np.random.default_rng(seed).permutation(len(features))
    held_out = len(features) // 5
    test, train = order[:held_out], order[held_out:]
    return features[train], targets[train], features[test], targets[test], data.feature_names


def covariance(params: Any, x: Any, y: Any) -> Any:
    """A linear kernel plus a squared-exponential one with a length for each feature."""
    lengths = nn.softplus(params["lengths"])
    p, q = x / lengths, y / lengths
    distance = jnp.sum(p**2, 1)[:, None] + jnp.sum(q**2, 1) - 2 * p @ q.T
    linear = nn.softplus(params["linear"]) * (x @ y.T)
    return nn.softplus(params["scale"]) * jnp.exp(-distance / 2) + linear


def factor(params: Any, x: Any) -> Any:
    """The Cholesky factor of the covariance of noisy observations."""
    noise = nn.softplus(params["noise"]) + 1e-4
    return lax.linalg.cholesky(covariance(params, x, x) + noise * jnp.eye(len(x)))


def solve(root: Any, b: Any, transpose: bool = False) -> Any:
    """A triangular system."""
    return lax.linalg.triangular_solve(root, b, left_side=True, lower=True, transpose_a=transpose)


def surprise(params: Any, x: Any, y: Any) -> Any:
    """The negative logarithm of the marginal likelihood of an observation, on average."""
    root = factor(params, x)
    white = solve(root, y[:, None])
    total = jnp.sum(white**2) / 2 + jnp.log(jnp.diagonal(root)).sum()
    return total / len(x) + np.log(2 * np.pi) / 2


@dt.jit
def predict(params: Any, x: Any, y: Any, new: Any) -> tuple[Any, Any]:
    """Means and standard deviations of new observations."""
    root = factor(params, x)
    weights = solve(root, solve(root, y[:, None]), transpose=True)
    cross = covariance(params, x, new)
    own = dt.vmap(lambda a: covariance(params, a[None], a[None])[0, 0])(new)
    variance = own + nn.softplus(params["noise"]) - jnp.sum(solve(root, cross) ** 2, 0)
    return (cross.T @ weights)[:, 0], jnp.sqrt(variance)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="steps of Adam")
    parser.add_argument("--seed", type=int, default=0, help="of the split")
    parser.add_argument(
        "--picture", type=Path, default=Path("gaussian_process.png"), help="file to write"
    )
    options = parser.parse_args()
    x, y, test_x, test_y, names = load_data(options.seed)
    init, update, params_of = optimizers.adam(0.1)
    state = init(
        {
            "lengths": jnp.full(x.shape[1], 3.0),
            "scale": jnp.zeros(()),
            "linear": jnp.full((), -2.0),
            "noise": jnp.zeros(()),
        }
    )

    @dt.jit
    def fit(state: Any, x: Any, y: Any) -> Any:
        def step(state: Any, i: Any) -> Any:
            loss, gradient = dt.value_and_grad(surprise)(params_of(state), x, y)
            return update(i, gradient, state), loss

        return lax.scan(step, state, jnp.arange(options.steps))

    started = time.perf_counter()
    state, found = fit(state, x, y)
    losses = np.asarray(found)
    elapsed = time.perf_counter() - started
    params = params_of(state)
    mean, spread = (np.asarray(v) for v in predict(params, x, y, test_x))
    error = float(np.sqrt(np.mean((mean - test_y) ** 2)))
    within = float(np.mean(np.abs(mean - test_y) < NINETY * spread))
    line = np.linalg.lstsq(x, y, rcond=None)[0]
    linear_error = float(np.sqrt(np.mean((test_x @ line - test_y) ** 2)))
    relevance = 1 / np.asarray(nn.softplus(params["lengths"]))
    print(f"device: {dt.devices()[0]}")
    print(f"{options.steps} steps in {elapsed:.1f} s, with compiling")
    print(
        f"negative log likelihood of a patient: {losses[0]:.3f} at first, {losses[-1]:.3f} at last"
    )
    print(f"error on {len(test_y)} held-out patients: {error:.3f}, of a line {linear_error:.3f}")
    print(f"within the bounds of 90 %: {within:.0%}")
    draw(options.picture, losses, mean, spread, test_y, relevance, names)
    print(f"picture: {options.picture.resolve()}")
    if not (losses[-1] < losses[0] and error < linear_error and 0.8 <= within <= 0.98):
        raise SystemExit("the fit is worse than this program promises")


def draw(
    path: Path,
    losses: np.ndarray,
    mean: np.ndarray,
    spread: np.ndarray,
    truth: np.ndarray,
    relevance: np.ndarray,
    names: Any,
) -> None:
    """A picture of the fit, the predictions and of what features matter."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    left.plot(losses)
    left.set(xlabel="step", title="Negative log marginal likelihood")
    middle.errorbar(truth, mean, NINETY * spread, fmt="o", markersize=3, linewidth=0.5)
    middle.plot([-2, 3], [-2, 3], color="gray", linewidth=0.8)
    middle.set(xlabel="observed", ylabel="predicted", title="Held-out patients, with 90 % bounds")
    right.barh(names, relevance)
    right.set(title="Inverse lengths")
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
