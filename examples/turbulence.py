"""Vortices in a plane that flow around each other, on a grid that eight devices share.

The vorticity `w` of a fluid in a periodic square obeys `w_t + u w_x + v w_y = viscosity (w_xx +
w_yy)`. It is solved by its Fourier coefficients, where derivatives and the velocities `u` and `v`
are products. Devices have slabs of the grid: rows of the plane, columns of the coefficients. A
transform is one along the rows, `lax.all_to_all`, which exchanges rows for columns, and one along
the columns.

The program promises the vorticity that one device finds by `jnp.fft.rfft2`, but for rounding, and
energy that friction alone takes away.

    python examples/turbulence.py --steps 300 --picture turbulence.png
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.sharding import NamedSharding
from dovetail.sharding import PartitionSpec as P

matplotlib.use("Agg")
import matplotlib.pyplot as plt

DEVICES, SIZE = 8, 256
VISCOSITY, STEP = 1e-3, 0.01
ROUNDING = 1e-4

Transform = Callable[[Any], Any]


def to_waves(plane: Any) -> Any:
    """Fourier coefficients of fields, on one device. The highest wave in x is left out."""
    return jnp.fft.rfft2(plane)[..., : SIZE // 2]


def to_plane(waves: Any) -> Any:
    """The fields of Fourier coefficients, on one device."""
    return jnp.fft.irfft2(waves, s=(SIZE, SIZE))


def rows_to_waves(rows: Any) -> Any:
    """The same in `shard_map`: from a slab of rows to a slab of columns."""
    half = jnp.fft.rfft(rows)[..., : SIZE // 2]
    columns = lax.all_to_all(half, "slab", split_axis=-1, concat_axis=-2, tiled=True)
    return jnp.fft.fft(columns, axis=-2)


def waves_to_rows(waves: Any) -> Any:
    """In `shard_map`, from a slab of columns to a slab of rows."""
    columns = jnp.fft.ifft(waves, axis=-2)
    half = lax.all_to_all(columns, "slab", split_axis=-2, concat_axis=-1, tiled=True)
    return jnp.fft.irfft(half, SIZE)


def simulate(
    vorticity: Any, kx: Any, ky: Any, steps: int, forward: Transform, back: Transform
) -> Any:
    """The vorticity after steps of Runge and Kutta's method; `kx` and `ky` are the wave numbers."""
    square = kx**2 + ky**2
    kept = (kx < SIZE / 3) & (abs(ky) < SIZE / 3)  # products of these waves are exact
    friction = jnp.exp(-VISCOSITY * square * STEP / 2)  # of half a step, which is exact, too

    def change(w: Any) -> Any:
        """What the flow alone does to the coefficients in a unit of time."""
        stream = w / jnp.where(square == 0, 1, square)
        slopes = jnp.stack([1j * ky * stream, -1j * kx * stream, 1j * kx * w, 1j * ky * w])
        u, v, w_x, w_y = back(slopes)
        return kept * -forward(u * w_x + v * w_y)

    def step(w: Any, _: None) -> tuple[Any, None]:
        a = STEP * change(w)
        b = STEP * change(friction * (w + a / 2))
        c = STEP * change(friction * w + b / 2)
        d = STEP * change(friction**2 * w + friction * c)
        return friction**2 * (w + a / 6) + friction * (b + c) / 3 + d / 6, None

    waves, _ = lax.scan(step, kept * forward(vorticity), None, steps)
    return back(waves)


def vortices(rng: np.random.Generator) -> np.ndarray:
    """Vorticity at first: random waves, most of them about a sixth of the plane long."""
    kx, ky = np.fft.rfftfreq(SIZE, 1 / SIZE), np.fft.fftfreq(SIZE, 1 / SIZE)[:, None]
    length = np.hypot(kx, ky)
    waves = np.fft.rfft2(rng.normal(size=(SIZE, SIZE))) * length * np.exp(-((length / 6) ** 2))
    plane = np.fft.irfft2(waves, s=(SIZE, SIZE))
    return (plane * 5 / plane.std()).astype(np.float32)


def energy(vorticity: np.ndarray) -> float:
    """The mean kinetic energy of a flow."""
    kx, ky = np.fft.fftfreq(SIZE, 1 / SIZE), np.fft.fftfreq(SIZE, 1 / SIZE)[:, None]
    square = kx**2 + ky**2
    square[0, 0] = np.inf
    return float(np.sum(np.abs(np.fft.fft2(vorticity)) ** 2 / square) / 2 / SIZE**4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300, help="steps in time, of 0.01")
    parser.add_argument("--seed", type=int, default=0, help="of the vorticity at first")
    parser.add_argument(
        "--picture", type=Path, default=Path("turbulence.png"), help="file to write"
    )
    options = parser.parse_args()
    dt.config.update("num_cpu_devices", DEVICES)
    before = vortices(np.random.default_rng(options.seed))
    kx = np.arange(SIZE // 2, dtype=np.float32)[None]
    ky = np.fft.fftfreq(SIZE, 1 / SIZE).astype(np.float32)[:, None]

    mesh = dt.make_mesh((DEVICES,), ("slab",))
    rows, columns = P("slab"), P(None, "slab")
    plain = partial(simulate, steps=options.steps, forward=to_waves, back=to_plane)
    shared = dt.shard_map(
        partial(simulate, steps=options.steps, forward=rows_to_waves, back=waves_to_rows),
        mesh=mesh,
        in_specs=(rows, columns, P()),
        out_specs=rows,
    )
    places = tuple(NamedSharding(mesh, spec) for spec in (rows, columns, P()))
    expected, plain_time = timed(plain, (before, kx, ky))
    after, shared_time = timed(shared, dt.device_put((before, kx, ky), places))
    off = float(np.abs(after - expected).max() / np.abs(expected).max())
    lost = 1 - energy(after) / energy(before)
    print(f"devices: {len(dt.devices())} x {dt.devices()[0].platform}")
    print(
        f"a step of {SIZE} x {SIZE} points on one device: {plain_time / options.steps * 1e3:.1f} ms"
    )
    print(f"on {DEVICES}: {shared_time / options.steps * 1e3:.1f} ms")
    print(f"energy that friction took: {lost:.1%}")
    print(f"vorticity at last: {off:.1e} off from one device")
    draw(options.picture, before, after)
    print(f"picture: {options.picture.resolve()}")
    if not (off <= ROUNDING and 0 < lost < 0.5):
        raise SystemExit("the flow is not what this program promises")


def timed(function: Any, arguments: Any) -> tuple[np.ndarray, float]:
    """The result of a function, and the seconds that it takes when it is compiled."""
    program = dt.jit(function).lower(*arguments).compile()
    started = time.perf_counter()
    result = dt.block_until_ready(program(*arguments))
    return np.asarray(result), time.perf_counter() - started


def draw(path: Path, before: np.ndarray, after: np.ndarray) -> None:
    """A picture of the vorticity at first and at last, and of the slabs."""
    figure, pair = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
    for axes, plane, title in zip(pair, (before, after), ("at first", "at last"), strict=True):
        axes.imshow(plane, cmap="RdBu", vmin=-10, vmax=10, origin="lower")
        for device in range(1, DEVICES):
            axes.axhline(device * SIZE / DEVICES - 0.5, color="black", linewidth=0.3)
        axes.set(title=f"Vorticity {title}", xlabel="x", ylabel="y")
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
