"""Derivatives and differences of samples against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

RNG = np.random.default_rng(6)
CUBE = RNG.normal(size=(3, 4, 5)).astype(np.float32)
PLACES = np.array([0, 1, 5, 7])


def near(actual: Any, expected: Any, dtype: str = "float32") -> None:
    assert actual.dtype == dtype
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient(edge_order: int) -> None:
    cases: list[tuple[tuple[Any, ...], Any]] = [
        ((1.0, PLACES, np.sort(RNG.normal(size=5))), None),
        ((), 1),
        ((3,), (0, -1)),
        ((PLACES,), (-2,)),
    ]
    for distances, axis in cases if edge_order == 1 else cases[:2]:
        actual = jnp.gradient(CUBE, *distances, axis=axis, edge_order=edge_order)
        expected = np.gradient(CUBE, *distances, axis=axis, edge_order=edge_order)
        if isinstance(expected, tuple):
            assert isinstance(actual, list)
            for a, e in zip(actual, expected, strict=True):
                near(a, e)
        else:
            near(actual, expected)


def test_gradient_of_few_and_special_samples() -> None:
    near(jnp.gradient(np.array([1, 4], np.uint8)), [3, 3])
    near(jnp.gradient(np.array([True, False])), [-1, -1])
    near(jnp.gradient(np.array([1j, 4], np.complex64)), [4 - 1j, 4 - 1j], "complex64")
    hole = np.array([1, 2, np.nan, 4, 6, 7], np.float32)
    near(jnp.gradient(hole), np.gradient(hole))
    assert jnp.gradient(np.float32(1)) == []
    assert jnp.gradient(CUBE, axis=()) == []
    found = dt.jit(dt.grad(lambda h: jnp.gradient(CUBE[0, 0], h)[0]))(2.0)
    near(found, -(CUBE[0, 0, 1] - CUBE[0, 0, 0]) / 4)


def test_ediff1d() -> None:
    for x, dtype in (
        (np.array([1, 2, 4], np.uint8), "uint8"),
        (CUBE, "float32"),
        (np.zeros(0, np.float32), "float32"),
        (np.array(3), "int32"),
    ):
        near(jnp.ediff1d(x), np.ediff1d(x), dtype)
        ends = np.array([[5, 6]], x.dtype), x.dtype.type(7)
        near(jnp.ediff1d(x, *ends), np.ediff1d(x, *ends), dtype)
    near(dt.jit(jnp.ediff1d)(np.array([1, 5]), 9), [4, 9], "int32")


def test_unwrap() -> None:
    angles = RNG.uniform(-20, 20, (3, 9)).astype(np.float32)
    edges = np.array([0, 2, 0, -2, 0, 6, 0], np.float32)
    near(jnp.unwrap(angles, period=2.5, axis=0), np.unwrap(angles, period=2.5, axis=0))
    near(jnp.unwrap(angles, 7), np.unwrap(angles, 7))
    for period in (2 * np.pi, 4.0, 2.5):
        near(jnp.unwrap(edges, period=period), np.unwrap(edges, period=period))
    for p in (np.array([0, 3, 6, 9, -10]), np.array([0, 2, 0, -2, 0], np.int8)):
        for period in (4, 5):
            near(jnp.unwrap(p, period=period), np.unwrap(p, period=period), jnp.asarray(p).dtype)
    near(jnp.unwrap(np.array([0, 3, 6, 9, -10])), np.unwrap([0, 3, 6, 9, -10.0]))
    near(jnp.unwrap(np.zeros((2, 0), np.float32)), np.zeros((2, 0)))
    near(jnp.unwrap(np.ones((2, 1), np.float32)), np.ones((2, 1)))
    # Turns are counted, so that errors do not add up.
    turning = np.linspace(0, 60000, 60001)
    wrapped = (turning % (2 * np.pi)).astype(np.float32)
    found = np.asarray(dt.jit(jnp.unwrap)(wrapped), float)
    np.testing.assert_allclose(found, turning, rtol=1e-6, atol=1e-6)
    near(dt.jit(dt.grad(lambda p: jnp.unwrap(p).sum()))(edges), np.ones(7))
    saw = np.array([0, 5, 0, 5], np.float32)
    near(dt.jit(dt.grad(lambda c: jnp.unwrap(saw, period=c).sum()))(6.0), -2.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.gradient([1.0, 2.0]), TypeError, "gradient.*f.*list"),
        (lambda: jnp.gradient(np.ones(1)), ValueError, "at least 2 points"),
        (lambda: jnp.gradient(np.ones(2), edge_order=2), ValueError, "at least 3 points"),
        (lambda: jnp.gradient(np.ones(5), edge_order=3), ValueError, "edge_order"),
        (lambda: jnp.gradient(CUBE, 1.0, 2.0), TypeError, "one distance"),
        (lambda: jnp.gradient(CUBE, PLACES, axis=0), ValueError, "vectors of the 3 places"),
        (lambda: jnp.gradient(CUBE, axis=3), ValueError, "out of bounds"),
        (lambda: jnp.gradient(CUBE, axis=(0, 0)), ValueError, "duplicate"),
        (lambda: jnp.ediff1d(np.array([True])), TypeError, "booleans"),
        (lambda: jnp.ediff1d(PLACES, to_end=[1]), TypeError, "to_end.*list"),
        (lambda: jnp.unwrap(1.0), IndexError, "out of bounds"),
        (lambda: jnp.unwrap(np.array([1j])), TypeError, "real"),
        (lambda: jnp.unwrap(np.array([1], np.uint8), period=4), TypeError, "uint8.*astype"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
