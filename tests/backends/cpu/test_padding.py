"""Padding in loops of vectors: the bits of NumPy's."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

pytestmark = pytest.mark.tables

DTYPES = ("bool", "int8", "uint16", "int32", "uint64", "float32", "float64", ml_dtypes.bfloat16)
SHAPES = {
    (9000,): [(1, 1)],
    (100, 90): [(1, 2), (3, 1)],
    (100, 91): [(0, 1), (0, 2)],
    (93, 100): [(2, 0), (0, 1)],
    (3, 60, 60): [(0, 0), (1, 1), (1, 1)],
    (0, 100): [(50, 50), (1, 1)],
    (1, 1): [(100, 1), (1, 100)],
}


def bits_of(x):
    x = np.asarray(x)
    return x.shape, x.dtype, x.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits(dtype):
    with dt.enable_x64(True):
        for shape, edges in SHAPES.items():
            x = np.random.RandomState(0).randint(-3, 4, shape).astype(dtype)
            if x.dtype.kind not in "biu" and x.size:
                x.flat[0], x.flat[-1] = -0.0, np.nan
            for fill in (0, 1):
                value = np.asarray(fill, x.dtype)
                found = dt.jit(lambda x, v, edges=edges: lax.pad(x, v, [(*e, 0) for e in edges]))(
                    x, value
                )
                assert bits_of(found) == bits_of(np.pad(x, edges, constant_values=value))


def test_holes_and_crops():
    x = np.arange(10_000.0, dtype="f").reshape(100, 100)
    expected = np.full((100, 201), 7, "f")
    expected[1:, 1:-1:2] = x[:-1]
    found = dt.jit(lambda x: lax.pad(x, np.float32(7), [(1, -1, 0), (1, 1, 1)]))(x)
    np.testing.assert_array_equal(found, expected)


def test_transformations():
    x = np.random.RandomState(0).randn(3, 100, 100).astype("f")

    def f(x):
        return jnp.pad(x, 1, constant_values=2) ** 2

    expected = np.pad(x, [(0, 0), (1, 1), (1, 1)], constant_values=2) ** 2
    np.testing.assert_array_equal(dt.jit(dt.vmap(f))(x), expected)
    np.testing.assert_array_equal(dt.jit(dt.grad(lambda x: f(x).sum()))(x), 2 * x)
    slope = dt.grad(lambda fill: lax.pad(x[0], fill, [(1, 1, 0)] * 2).sum())(np.float32(2))
    assert slope == 4 * 101
    # The cotangent of a slice is padded, too.
    gradient = dt.jit(dt.grad(lambda x: (x[:, 1:-1, 1:-1] ** 2).sum()))(x)
    np.testing.assert_array_equal(gradient[:, 1:-1, 1:-1], 2 * x[:, 1:-1, 1:-1])
    assert np.asarray(gradient)[:, 0].any() == 0


@pytest.mark.parametrize(
    ("shape", "edges", "by_vectors"),
    [
        ((100, 100), [(0, 0), (1, 1)], True),
        ((100, 100), [(1, 1), (0, 0)], False),  # whole rows
        ((4, 4), [(1, 1), (1, 1)], False),  # small
    ],
)
def test_what_is_padded_by_vectors(shape, edges, by_vectors):
    text = dt.jit(lambda x: jnp.pad(x, edges)).lower(np.ones(shape, "f")).as_text()
    assert ("stablehlo.or" in text) == by_vectors
