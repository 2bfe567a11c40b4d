"""Integers keep their values: what a dtype cannot hold is an error, never another number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

LARGE = 2**40
X = jnp.arange(3)

CONVERSIONS: dict[str, Callable[[], Any]] = {
    "array": lambda: jnp.array(LARGE),
    "array of a dtype": lambda: jnp.array(LARGE, dtype="int32"),
    "list": lambda: jnp.array([1, LARGE]),
    "list of a dtype": lambda: jnp.asarray([LARGE], dtype="uint32"),
    "narrow": lambda: jnp.array(300, dtype="uint8"),
    "negative": lambda: jnp.asarray([1, -1], dtype="uint8"),
    "NumPy array": lambda: jnp.array(np.array([LARGE])),
    "NumPy scalar": lambda: jnp.asarray(np.int64(LARGE)),
    "scalar type": lambda: jnp.int32(LARGE),
    "narrow scalar type": lambda: jnp.int8(300),
    "float": lambda: jnp.array(1e20, dtype="int32"),
    "nan": lambda: jnp.array([np.nan], dtype="int32"),
    "full": lambda: jnp.full(3, LARGE, "int32"),
    "narrow full": lambda: jnp.full(3, 300, "uint8"),
    "full_like": lambda: jnp.full_like(X, LARGE),
    "set": lambda: X.at[0].set(LARGE),
    "add": lambda: X.at[jnp.array([0, 1])].add(LARGE),
    "operator": lambda: X + LARGE,
    "reflected operator": lambda: LARGE - X,
    "NumPy operand": lambda: X + np.int64(LARGE),
    "comparison": lambda: X < LARGE,
    "function": lambda: jnp.maximum(X, LARGE),
    "where": lambda: jnp.where(X > 1, X, LARGE),
    "clip": lambda: jnp.clip(X, 0, LARGE),
    "initial": lambda: X.sum(initial=LARGE),
    "traced": lambda: dt.jit(lambda x: x + LARGE)(X),
    "argument": lambda: dt.jit(lambda x: x)(LARGE),
    "device_put": lambda: dt.device_put(LARGE),
    "arange": lambda: jnp.arange(LARGE, LARGE + 3),
    "last of arange": lambda: jnp.arange(0, 2**31 + 1, 2**31),
    "narrow arange": lambda: jnp.arange(300, dtype="uint8"),
    "negative arange": lambda: jnp.arange(-1, 3, dtype="uint8"),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_what_does_not_fit_is_an_error(name: str) -> None:
    with pytest.raises(OverflowError, match=r"does not fit|out of bounds for"):
        CONVERSIONS[name]()


def test_what_fits_is_kept() -> None:
    assert jnp.arange(256, dtype="uint8").tolist() == list(range(256))
    assert jnp.arange(2**31 - 1, 2**31).tolist() == [2**31 - 1]
    assert jnp.array(2**32 - 1, dtype="uint32") == np.uint32(2**32 - 1)
    assert jnp.int8(-128) == -128
    with dt.enable_x64(True):
        wide = jnp.arange(3)
        for found in (wide + LARGE, wide.at[:].add(LARGE), jnp.arange(LARGE, LARGE + 3)):
            assert found.tolist() == [LARGE, LARGE + 1, LARGE + 2]
