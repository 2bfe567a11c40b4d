"""Joins of many small arrays, in groups that the compiler fuses: the bits of NumPy's."""

from __future__ import annotations

import re
from functools import partial

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail_cpu.lowerings.joining import FUSED, SMALL

pytestmark = pytest.mark.tables

COUNTS = (FUSED, FUSED + 1, FUSED**2 + 1)
DTYPES = ("bool", "int8", "float32", "complex64", ml_dtypes.bfloat16)


def parts_of(count, shapes, dtype):
    """Arrays of these shapes in turn, with negative zeros and NaN where the dtype has them."""
    random = np.random.RandomState(count)
    parts = [random.randint(-3, 4, shapes[i % len(shapes)]) for i in range(count)]
    arrays = [np.asarray(p).astype(dtype) for p in parts]
    if arrays[0].dtype.kind in "fc":
        for i, a in enumerate(arrays):
            a.flat[:1] = (-0.0, np.nan)[i % 2]
    return arrays


def assert_same_bits(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert np.asarray(found).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("count", COUNTS)
def test_bits(count, dtype):
    alike = parts_of(count, [(2, 3)], dtype)
    # Sizes that differ, and arrays without elements.
    rows = parts_of(count, [(1, 2), (0, 2), (3, 2)], dtype)
    columns = parts_of(count, [(2, 1), (2, 0), (2, 3)], dtype)

    def joined(np, alike, rows, columns):
        stacked = [np.stack(alike, axis) for axis in range(3)]
        return [*stacked, np.concatenate(rows, 0), np.concatenate(columns, 1)]

    found = dt.jit(partial(joined, jnp))(alike, rows, columns)
    for result, expected in zip(found, joined(np, alike, rows, columns), strict=True):
        assert_same_bits(result, expected)


@pytest.mark.parametrize("count", COUNTS)
def test_results_without_elements(count):
    empty = [np.zeros((0, 2), "f")] * count
    assert dt.jit(lambda *xs: jnp.stack(xs, 1))(*empty).shape == (0, count, 2)
    assert dt.jit(lambda *xs: jnp.concatenate(xs))(*empty).shape == (0, 2)


def test_keys_and_small_integers():
    keys = [dt.random.key(i) for i in range(FUSED + 2)]
    found = dt.jit(lambda *ks: jnp.stack(ks))(*keys)
    data = np.stack([np.asarray(dt.random.key_data(k)) for k in keys])
    np.testing.assert_array_equal(dt.random.key_data(found), data)
    numbers = [jnp.asarray([i % 8 - 3, i % 5], "int4") for i in range(FUSED + 2)]
    found = dt.jit(lambda *xs: jnp.concatenate(xs))(*numbers)
    expected = [v for i in range(FUSED + 2) for v in (i % 8 - 3, i % 5)]
    np.testing.assert_array_equal(found.astype("int32"), expected)


def test_transformations():
    x = np.arange(12.0, dtype="f").reshape(3, 4)

    def f(x):
        return jnp.stack([x * i for i in range(FUSED + 1)], -1).sum(-1) ** 2

    total = sum(range(FUSED + 1))
    np.testing.assert_allclose(dt.jit(dt.vmap(f))(x), (total * x) ** 2)
    gradient = dt.jit(dt.grad(lambda x: f(x).sum()))(x)
    np.testing.assert_allclose(gradient, 2 * total**2 * x)


def most_joined(function, *args):
    """The number of arrays that the compiled program joins at most at once."""
    text = dt.jit(function).lower(*args).compile().as_text()
    joins = re.findall(r" concatenate\(([^)]*)\)", text)
    return max(len(re.sub(r"/\*.*?\*/", "", j).split(",")) for j in joins)


def test_small_results_are_joined_in_groups():
    def quadratic(x):
        return jnp.stack([x[..., i] * x[..., j] for i in range(4) for j in range(4)], -1)

    small = np.ones((SMALL // 16, 4), "f")
    assert most_joined(quadratic, small) <= FUSED
    large = np.ones((SMALL // 16 + 1, 4), "f")
    assert most_joined(quadratic, large) == 16
    assert most_joined(lambda *xs: lax.concatenate(xs, 0), *[np.ones(3, "f")] * 70) <= FUSED
