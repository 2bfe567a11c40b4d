"""Windows and the Bessel function behind one of them against NumPy and mpmath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables


def near(actual: Any, expected: Any, tolerance: float = 3e-7) -> None:
    assert actual.shape == np.shape(expected)
    assert actual.dtype == jnp.float32
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=tolerance, atol=1e-16)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning", "kaiser"])
def test_windows(name: str) -> None:
    arguments = (3.5,) if name == "kaiser" else ()
    for size in (0, 1, 2, 51) if name == "bartlett" else (50,):
        window = getattr(jnp, name)(size, *arguments)
        near(window, getattr(np, name)(size, *arguments))
        np.testing.assert_array_equal(np.asarray(window), np.asarray(window)[::-1])
    if name == "kaiser":  # whose program takes long to compile
        return
    with dt.enable_x64(True):
        wide = getattr(jnp, name)(9, *arguments)
        assert wide.dtype == jnp.float64
        expected = getattr(np, name)(9, *arguments)
        np.testing.assert_allclose(np.asarray(wide), expected, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning", "kaiser"])
@pytest.mark.parametrize("size", [True, np.True_, np.array(False), np.int8(1), np.array(1)])
def test_sizes_are_any_integers(name: str, size: Any) -> None:
    arguments = (3.5,) if name == "kaiser" else ()
    for M in (size, jnp.asarray(size)):
        near(getattr(jnp, name)(M, *arguments), np.ones(int(size)))


def test_kaiser_by_beta() -> None:
    for beta in (0.0, -2.0, 700.0):
        near(jnp.kaiser(7, beta), np.kaiser(7, beta), 1e-4)
    near(dt.jit(lambda b: jnp.kaiser(jnp.array(7), b))(np.array([2])), np.kaiser(7, 2), 1e-6)
    slopes = dt.jit(dt.jacfwd(lambda b: jnp.kaiser(7, b)))
    for beta in (0.0, 2.0):
        step = 1e-6
        slope = (np.kaiser(7, beta + step) - np.kaiser(7, beta - step)) / (2 * step)
        np.testing.assert_allclose(np.asarray(slopes(beta)), slope, rtol=1e-5, atol=1e-6)


def test_i0() -> None:
    x = np.array([-91.0, -8.0, -1.5, 0.0, 1e-3, 1.0, 7.9, 8.1, 50.0, 91.0], np.float32)
    expected = np.array([float(mpmath.besseli(0, float(v))) for v in x])
    near(jnp.i0(x), expected, 4e-6)
    near(
        jnp.i0(np.array([np.inf, -np.inf, np.nan, 95], np.float32)),
        [np.inf, np.inf, np.nan, np.inf],
    )
    near(jnp.i0(np.array([0, 2], np.int8)), [1, float(mpmath.besseli(0, 2))], 1e-6)
    half = jnp.i0(np.array([5.0], np.float16))
    assert half.dtype == jnp.float16
    np.testing.assert_allclose(np.asarray(half, float), [27.24], rtol=1e-3)
    assert jnp.i0(2.0).weak_type
    slopes = dt.jit(dt.vmap(dt.grad(jnp.i0)))(x[2:7])
    expected = [float(mpmath.besseli(1, float(v))) for v in x[2:7]]
    np.testing.assert_allclose(np.asarray(slopes), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.hanning(-1), ValueError, "hanning: M.*negative"),
        (lambda: jnp.bartlett(2.5), TypeError, "bartlett.*M.*integer"),
        (
            lambda: dt.jit(jnp.blackman)(3),
            dt.errors.ConcretizationTypeError,
            "argument M of blackman",
        ),
        (lambda: jnp.kaiser(3, 1j), TypeError, "kaiser.*real"),
        (lambda: jnp.kaiser(3, np.ones(2)), TypeError, "kaiser: beta.*scalar"),
        (lambda: jnp.kaiser(3, [1.0]), TypeError, "beta.*list"),
        (lambda: jnp.i0(1j), TypeError, "i0.*real"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
