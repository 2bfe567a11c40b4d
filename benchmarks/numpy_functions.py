"""Measure eager calls of the NumPy API, one at a time, as another process asks for them.

    python numpy_functions.py jax|dovetail

The first line written is a JSON list of the calls' names. For every name read, one line with the
median wall time of a call follows, in microseconds, on a warm cache.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

SIZES = (10, 1000)
#: Calls follow one another for about so many seconds, and the last result is waited for.
BATCH = 0.002

#: Names of functions: of a matrix, of two, ...
UNARY = """
    abs negative positive sign sqrt square reciprocal cbrt exp exp2 expm1 log log10 log1p log2
    sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh sinc deg2rad
    floor ceil trunc rint isnan isfinite isinf signbit logical_not nan_to_num modf frexp i0
    sum prod max min mean std var any all argmax argmin ptp nansum nanmax nanmean median
    count_nonzero ravel transpose flip rot90 squeeze atleast_2d tril triu diag trace
"""
BINARY = """
    add subtract multiply divide floor_divide remainder power maximum minimum fmax hypot arctan2
    logaddexp copysign nextafter equal less logical_and isclose allclose array_equal heaviside
    dot tensordot
"""
OF_ROWS = "sum max mean argmax cumsum cumprod sort argsort diff"


def calls(jnp: Any, size: int) -> dict[str, Callable[[], Any]]:
    """By name, calls on matrices of a size.

    Args:
        jnp: the NumPy API of a framework.
        size: how many rows and columns they have.
    """
    generator = np.random.default_rng(0)
    host = generator.uniform(0.1, 0.9, (size, size)).astype(np.float32)
    x, y = jnp.asarray(host), jnp.asarray(host.T.copy())
    large = x + 1
    v = x[0]
    places = jnp.asarray(generator.integers(0, size, 8))
    found: dict[str, Callable[[], Any]] = {}
    for name in UNARY.split():
        found[name] = partial(getattr(jnp, name), large if name == "arccosh" else x)
    for name in BINARY.split():
        found[name] = partial(getattr(jnp, name), x, y)
    for name in OF_ROWS.split():
        found[f"{name} of rows"] = partial(getattr(jnp, name), x, axis=-1)
    found |= {
        "x + 1": lambda: x + 1,
        "x * y": lambda: x * y,
        "x @ y": lambda: x @ y,
        "-x": lambda: -x,
        "x > y": lambda: x > y,
        "x ** 2": lambda: x**2,
        "einsum": lambda: jnp.einsum("ij,jk->ik", x, y),
        "outer": lambda: jnp.outer(v, v),
        "where": lambda: jnp.where(x > 0.5, x, y),
        "clip": lambda: jnp.clip(x, 0.2, 0.8),
        "concatenate": lambda: jnp.concatenate([x, y]),
        "stack": lambda: jnp.stack([x, y]),
        "reshape": lambda: jnp.reshape(x, (-1,)),
        "broadcast_to": lambda: jnp.broadcast_to(v, (size, size)),
        "expand_dims": lambda: jnp.expand_dims(x, 0),
        "swapaxes": lambda: jnp.swapaxes(x, 0, 1),
        "roll": lambda: jnp.roll(x, 1, 0),
        "pad": lambda: jnp.pad(x, 1),
        "tile": lambda: jnp.tile(x, (2, 1)),
        "repeat": lambda: jnp.repeat(x, 2, 0),
        "take": lambda: jnp.take(x, places, axis=0),
        "searchsorted": lambda: jnp.searchsorted(v, v),
        "quantile": lambda: jnp.quantile(x, 0.3),
        "astype": lambda: x.astype("int32"),
        "zeros_like": lambda: jnp.zeros_like(x),
        "ones": lambda: jnp.ones((size, size)),
        "full": lambda: jnp.full((size, size), 2.0),
        "arange": lambda: jnp.arange(size),
        "linspace": lambda: jnp.linspace(0.0, 1.0, size),
        "eye": lambda: jnp.eye(size),
        "meshgrid": lambda: jnp.meshgrid(v, v),
        "linalg.norm": lambda: jnp.linalg.norm(x),
        "fft.fft": lambda: jnp.fft.fft(v),
        "x[1]": lambda: x[1],
        "x[1, 2]": lambda: x[1, 2],
        "x[2:5]": lambda: x[2:5],
        "x[:, 1]": lambda: x[:, 1],
        "x[::-1]": lambda: x[::-1],
        "x[None]": lambda: x[None],
        "x[places]": lambda: x[places],
        "x.at[1].set": lambda: x.at[1].set(2.0),
        "x.at[1, 2].set": lambda: x.at[1, 2].set(2.0),
        "x.at[2:5].add": lambda: x.at[2:5].add(1.0),
        "x.at[places].set": lambda: x.at[places].set(0.0),
    }
    return {f"{name} {size}x{size}": call for name, call in found.items()}


def microseconds(call: Callable[[], Any], wait: Callable[[Any], Any]) -> float:
    """Median over batches of the mean time of a call."""
    for _ in range(2):
        wait(call())
    start = time.perf_counter()
    wait(call())
    count = max(1, min(1000, int(BATCH / (time.perf_counter() - start))))
    times = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(count):
            result = call()
        wait(result)
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times) * 1e6


def main() -> None:
    framework = import_module(sys.argv[1])
    jnp = import_module(f"{sys.argv[1]}.numpy")
    for part in ("linalg", "fft"):
        import_module(f"{sys.argv[1]}.numpy.{part}")
    found: dict[str, Callable[[], Any]] = {}
    for size in SIZES:
        found |= calls(jnp, size)
    print(json.dumps(list(found)), flush=True)
    for line in sys.stdin:
        taken = microseconds(found[json.loads(line)["name"]], framework.block_until_ready)
        print(json.dumps({"microseconds": taken}), flush=True)


if __name__ == "__main__":
    main()
