"""Elements put or added at positions of a vector, by a kernel: as by NumPy, one after another."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail_cpu.kernel_library import library
from dovetail_cpu.lowerings.scattering import FAR, SMALL_TABLE, WORTH_A_KERNEL

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

COUNT = WORTH_A_KERNEL + 37
DTYPES = ["bool", "int8", "int16", "float32", "complex64", "int64"]


def called(function: Any, *args: Any) -> Any:
    compiled = dt.jit(function)
    assert "@dovetail_scatter" in compiled.lower(*args).as_text()
    return np.asarray(compiled(*args))


def positions_around(size: int, dtype: str = "int32") -> Any:
    """Positions in and out of bounds, several of them the same."""
    found = np.random.default_rng(size).integers(-size - 9, size + 9, COUNT)
    found[::7] = found[0]
    return found.astype(dtype)


def expected_of(x: Any, positions: Any, updates: Any, adds: bool) -> Any:
    result, size = x.copy(), len(x)
    places = positions.astype(np.int64)
    places = np.where(places < 0, places + size, places)
    kept = (places >= 0) & (places < size)
    values = np.broadcast_to(updates, places.shape)
    if adds:
        np.add.at(result, places[kept], values[kept])
    else:
        for place, value in zip(places[kept], values[kept], strict=True):
            result[place] = value
    return result


def numbers(count: int, dtype: str) -> Any:
    return np.random.default_rng(count).integers(-50, 50, count).astype(dtype)


@pytest.mark.parametrize("position", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_put(dtype: str, position: str) -> None:
    with dt.enable_x64(True):
        size = FAR // np.dtype(dtype).itemsize
        x, updates = numbers(size, dtype), numbers(COUNT, dtype)
        places = positions_around(size, position)
        result = called(lambda x, i, u: x.at[i].set(u), x, places, updates)
        np.testing.assert_array_equal(result, expected_of(x, places, updates, False))
        one = np.ones((), dtype)
        result = called(lambda x, i: x.at[i].set(one), x, places)
        np.testing.assert_array_equal(result, expected_of(x, places, one, False))


@pytest.mark.parametrize("position", ["int32", "int64"])
@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        *product(["int32", "uint32", "uint64"], [1, 5, SMALL_TABLE, FAR // 4]),
        *product(["float32", "float64"], [FAR // 4]),  # XLA adds floats at few positions.
    ],
)
def test_add(dtype: str, size: int, position: str) -> None:
    with dt.enable_x64(True):
        x, updates, places = (
            numbers(size, dtype),
            numbers(COUNT, dtype),
            positions_around(size, position),
        )
        result = called(lambda x, i, u: x.at[i].add(u), x, places, updates)
        np.testing.assert_array_equal(result, expected_of(x, places, updates, True))
        three = np.full((), 3, dtype)
        result = called(lambda x, i: x.at[i].add(three), x, places)
        np.testing.assert_array_equal(result, expected_of(x, places, three, True))


@pytest.mark.parametrize("count", [COUNT, 2**17 + 1])
@pytest.mark.parametrize("dtype", ["int32", "int8"])
def test_counts(count: int, dtype: str) -> None:
    x = np.random.default_rng(0).integers(-5, 120, count).astype(dtype)
    result = called(lambda x: jnp.bincount(x, length=100), x)
    np.testing.assert_array_equal(result, np.bincount(np.maximum(x, 0), minlength=120)[:100])


def test_positions_that_are_computed() -> None:
    x, updates = numbers(FAR // 4, "float32"), numbers(COUNT, "float32")
    places = positions_around(50)

    def least(x: Any, i: Any, u: Any) -> Any:
        return x.at[jnp.maximum(i, -3)].set(u)

    def other(x: Any, i: Any, u: Any) -> Any:
        return x.at[jnp.where(i < 0, i + 7, i)].set(u)

    raised = np.maximum(places, -3)
    np.testing.assert_array_equal(
        called(least, x, places, updates), expected_of(x, raised, updates, False)
    )
    moved = np.where(places < 0, places + 7, places)
    np.testing.assert_array_equal(
        called(other, x, places, updates), expected_of(x, moved, updates, False)
    )


def test_what_xla_does() -> None:
    def calls(function: Any, *args: Any) -> bool:
        return "@dovetail_scatter" in dt.jit(function).lower(*args).as_text()

    x, places, updates = (
        numbers(FAR // 4, "float32"),
        positions_around(9),
        numbers(COUNT, "float32"),
    )
    assert not calls(lambda x, i, u: x.at[i[:99]].set(u[:99]), x, places, updates)
    assert not calls(lambda x, i, u: x[:999].at[i].set(u), x, places, updates)
    assert not calls(lambda x, i, u: x.at[i].set(u, mode="clip"), x, places, updates)
    assert not calls(lambda x, i, u: x.at[i].multiply(u), x, places, updates)
    assert not calls(lambda x, i, u: x.reshape(2, -1).at[0, i].set(u), x, places, updates)
