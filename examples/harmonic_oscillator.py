"""The parameters of a driven pendulum with friction, from noisy angles.

The angle obeys ``angle'' = force cos(drive t) - friction angle' - rate**2 sin(angle)``. `odeint`
solves it, and gives gradients by the adjoint equation; Adam follows them to the force, friction and
rate, and to the angle and the velocity at first, all unknown. The program promises each of the
first three within a twentieth, residuals as large as the noise, and a forecast that is closer to
the truth than an observation is.

    python examples/harmonic_oscillator.py --steps 200 --picture harmonic_oscillator.png
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
from dovetail import lax
from dovetail.example_libraries import optimizers
from dovetail.experimental.ode import odeint

matplotlib.use("Agg")
import matplotlib.pyplot as plt

NOISE = 0.05
DRIVE = 1.3
#: What the program is to find, and where it begins.
TRUTH = {"force": 0.8, "friction": 0.25, "rate": 1.7, "start": np.float32([1.2, 0.0])}
GUESS = {"force": 0.4, "friction": 0.5, "rate": 1.5, "start": np.float32([1.0, 0.3])}


def slope(state: Any, t: Any, params: Any) -> Any:
    """The derivatives of the angle and the velocity."""
    angle, velocity = state
    push = params["force"] * jnp.cos(DRIVE * t)
    pull = params["friction"] * velocity + params["rate"] ** 2 * jnp.sin(angle)
    return jnp.stack([velocity, push - pull])


def angles(params: Any, times: Any) -> Any:
    """The angles at times."""
    return odeint(slope, params["start"], times, params, rtol=1e-5, atol=1e-5)[:, 0]


def error(params: Any, times: Any, observed: Any) -> Any:
    """The mean square of differences to what was observed."""
    return jnp.mean((angles(params, times) - observed) ** 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="steps of Adam")
    parser.add_argument("--seed", type=int, default=0, help="of the noise")
    parser.add_argument(
        "--picture", type=Path, default=Path("harmonic_oscillator.png"), help="file to write"
    )
    options = parser.parse_args()
    times = np.linspace(0, 30, 241, dtype=np.float32)
    seen = times <= 20
    truth = np.asarray(angles(TRUTH, times))
    noise = np.random.default_rng(options.seed).normal(0, NOISE, truth.shape)
    observed = (truth + noise).astype(np.float32)
    init, update, params_of = optimizers.adam(0.03)

    @dt.jit
    def fit(state: Any, times: Any, observed: Any) -> Any:
        def step(state: Any, i: Any) -> Any:
            loss, gradient = dt.value_and_grad(error)(params_of(state), times, observed)
            return update(i, gradient, state), loss

        return lax.scan(step, state, jnp.arange(options.steps))

    started = time.perf_counter()
    state, found = fit(init(dt.tree.map(jnp.float32, GUESS)), times[seen], observed[seen])
    losses = np.asarray(found)
    elapsed = time.perf_counter() - started
    params = params_of(state)
    fitted = np.asarray(angles(params, times))
    residual = float(np.sqrt(np.mean((fitted - observed)[seen] ** 2)))
    forecast = float(np.sqrt(np.mean((fitted - truth)[~seen] ** 2)))
    names = ("force", "friction", "rate")
    off = {name: abs(float(params[name]) / TRUTH[name] - 1) for name in names}
    print(f"device: {dt.devices()[0]}")
    print(f"{options.steps} steps in {elapsed:.1f} s, with compiling")
    for name in names:
        print(f"{name}: {float(params[name]):.3f}, in truth {TRUTH[name]}, {off[name]:.1%} off")
    print(f"residuals of {seen.sum()} observations: {residual:.3f}, noise {NOISE}")
    print(f"error of the forecast for {(~seen).sum()} times: {forecast:.3f}")
    draw(options.picture, times, truth, observed, fitted, seen, losses)
    print(f"picture: {options.picture.resolve()}")
    promised = max(off.values()) < 0.05 and 0.7 < residual / NOISE < 1.3 and forecast < NOISE
    if not promised:
        raise SystemExit("the fit is worse than this program promises")


def draw(
    path: Path,
    times: np.ndarray,
    truth: np.ndarray,
    observed: np.ndarray,
    fitted: np.ndarray,
    seen: np.ndarray,
    losses: np.ndarray,
) -> None:
    """A picture of the angles and of the fit."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(times[seen], observed[seen], "o", markersize=3, label="observed")
    left.plot(times, truth, color="gray", linewidth=0.8, label="truth")
    left.plot(times, fitted, label="fit, then forecast")
    left.axvline(times[seen][-1], color="gray", linestyle="dotted")
    left.set(xlabel="time", title="Angle")
    left.legend()
    right.semilogy(np.sqrt(losses))
    right.axhline(NOISE, color="gray", linestyle="dotted")
    right.set(xlabel="step", title="Root mean square of residuals")
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
