"""Functions made of several primitives are one program when they are called eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.runtime.programs.compilation import statistics

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "append": lambda x, v: jnp.append(x, x),
    "average": lambda x, v: jnp.average(x, 1),
    "column_stack": lambda x, v: jnp.column_stack([v, v]),
    "corrcoef": lambda x, v: jnp.corrcoef(x),
    "cov": lambda x, v: jnp.cov(x),
    "diagflat": lambda x, v: jnp.diagflat(x),
    "diff": lambda x, v: jnp.diff(x, 2),
    "dstack": lambda x, v: jnp.dstack([v, x[0]]),
    "gradient": lambda x, v: jnp.gradient(v),
    "hstack": lambda x, v: jnp.hstack([v, v]),
    "interp": lambda x, v: jnp.interp(v, v, v),
    "isclose": lambda x, v: jnp.isclose(x, x),
    "isin": lambda x, v: jnp.isin(x, v),
    "kron": lambda x, v: jnp.kron(v, v),
    "logspace": lambda x, v: jnp.logspace(0, v, 7),
    "linspace": lambda x, v: jnp.linspace(0, v, 7),
    "matvec": lambda x, v: jnp.matvec(x, v),
    "median": lambda x, v: jnp.median(x, 0),
    "meshgrid": lambda x, v: jnp.meshgrid(v, v),
    "nanmean": lambda x, v: jnp.nanmean(x),
    "norm": lambda x, v: jnp.linalg.norm(x),
    "outer": lambda x, v: jnp.outer(v, v),
    "pad": lambda x, v: jnp.pad(x, 2),
    "percentile": lambda x, v: jnp.percentile(x, 30),
    "polyval": lambda x, v: jnp.polyval(v[:3], v),
    "ptp": lambda x, v: jnp.ptp(x, 0),
    "repeat": lambda x, v: jnp.repeat(x, 3),
    "roll": lambda x, v: jnp.roll(x, 5),
    "rot90": lambda x, v: jnp.rot90(x),
    "searchsorted": lambda x, v: jnp.searchsorted(v, x),
    "std": lambda x, v: jnp.std(x, 0),
    "take": lambda x, v: jnp.take(x, jnp.array([1, 0]), 1),
    "tile": lambda x, v: jnp.tile(x, (2, 2)),
    "trace": lambda x, v: jnp.trace(x),
    "trapezoid": lambda x, v: jnp.trapezoid(v),
    "tril": lambda x, v: jnp.tril(x),
    "unwrap": lambda x, v: jnp.unwrap(v),
    "vander": lambda x, v: jnp.vander(v),
    "vecmat": lambda x, v: jnp.vecmat(v, x.T),
    "vstack": lambda x, v: jnp.vstack([v, v]),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_eager_call_is_one_program(name: str) -> None:
    # Sizes that no other test has, so that nothing is remembered.
    x = dt.device_put(np.random.default_rng(0).uniform(1, 2, (31, 37)).astype(np.float32))
    v = dt.device_put(np.linspace(1, 2, 37, dtype=np.float32))
    parts = [x[0], v[:3], x.T, jnp.array([1, 0])]  # programs of their own
    before = statistics()
    CALLS[name](x, v)
    after = statistics()
    assert parts
    programs = [getattr(after, n) - getattr(before, n) for n in ("compiled", "loaded", "reused")]
    assert sum(programs) <= 1
