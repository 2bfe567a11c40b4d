"""Both extremes at once, and several of them, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

CASES = {
    "float32": np.array([[1, 5, -np.inf, 5], [2, -0.5, 9, np.inf]], np.float32),
    "nan": np.array([[1, np.nan, 3, -np.nan], [2, -1, 9, 4]], np.float32),
    "int8": np.array([[-128, 127, 0, 127], [1, 1, 0, 0]], np.int8),
    "uint32": np.array([[2**32 - 1, 0, 7, 7], [1, 2, 3, 4]], np.uint32),
    "bool": np.array([[True, False, True, False], [False] * 4]),
}


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("name", CASES)
def test_top_k_takes_what_a_stable_sort_has_first(name: str, axis: int) -> None:
    x = CASES[name]
    # Growing ranks of values, nan the greatest of all; equal values, and nans, share a rank.
    keys = np.unique(x, return_inverse=True)[1].reshape(x.shape).astype(int)
    for mode, order in (
        ("largest", np.argsort(-keys, axis, kind="stable")),
        ("smallest", np.argsort(keys, axis, kind="stable")),
    ):
        values, places = dt.jit(lambda v, m=mode: jnp.top_k(v, 2, axis=axis, mode=m))(x)
        wanted = np.take(order, range(2), axis)
        assert values.dtype == x.dtype
        assert places.dtype == jnp.int32
        np.testing.assert_array_equal(places, wanted)
        np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, axis))


def test_top_k_eagerly_and_its_edges() -> None:
    values, places = jnp.top_k(jnp.array([1.0, 3.0]), 0, sorted=False)
    assert values.shape == places.shape == (0,)
    gradient = dt.grad(lambda v: jnp.top_k(v, 2, mode="smallest")[0].sum())(jnp.array([3.0, 1, 2]))
    np.testing.assert_array_equal(gradient, [0, 1, 1])


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "message"),
    [
        ((np.ones(3), 4), {}, ValueError, "k must be from 0 to 3, the size of dimension 0, got 4"),
        ((np.ones(3), -1), {}, ValueError, "k must be from 0 to 3"),
        ((np.ones(3), 1.5), {}, TypeError, "requires k to be an integer"),
        ((np.ones(3), 1), {"mode": "max"}, ValueError, "mode must be 'largest' or 'smallest'"),
        ((np.ones(3, complex), 1), {}, TypeError, "top_k is defined for real numbers only"),
        ((1.0, 1), {}, ValueError, "rank 1 or more"),
        (([1, 2], 1), {}, TypeError, "array or"),
    ],
)
def test_errors_of_top_k(arguments: Any, options: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        jnp.top_k(*arguments, **options)


@pytest.mark.parametrize("name", CASES)
def test_minmax(name: str) -> None:
    x = CASES[name]
    for axis, keepdims in ((None, False), (-1, True), ((0, 1), True)):
        low, high = jnp.minmax(x, axis, keepdims=keepdims)
        np.testing.assert_array_equal(low, np.min(x, axis, keepdims=keepdims))
        np.testing.assert_array_equal(high, np.max(x, axis, keepdims=keepdims))


def test_options_of_minmax() -> None:
    x = CASES["float32"]
    low, high = jnp.minmax(x, 1, initial=(0.0, 7.0), where=x > 1)
    np.testing.assert_array_equal(low, [0, 0])
    np.testing.assert_array_equal(high, [7, np.inf])
    with pytest.raises(ValueError, match="initial"):
        jnp.minmax(jnp.zeros(0))
    with pytest.raises(NotImplementedError, match="out="):
        jnp.minmax(x, out=x)
