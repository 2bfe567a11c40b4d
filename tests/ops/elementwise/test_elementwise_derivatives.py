"""Derivatives where finite differences say nothing: at kinks, poles, ties, and far out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dovetail
from dovetail import lax


def derivative(function: Any, x: Any) -> float:
    return float(dovetail.grad(function)(x))


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (lax.abs, 0.0, 1.0),
        (lax.abs, -0.0, 1.0),
        (lax.abs, -2.0, -1.0),
        (lax.sign, 2.0, 0.0),
        (lax.floor, 2.5, 0.0),
        (lax.round, 2.5, 0.0),
        (lambda x: lax.max(x, 0.0), 0.0, 0.5),
        (lambda x: lax.max(0.0, x), 0.0, 0.5),
        (lambda x: lax.min(x, 0.0), 0.0, 0.5),
        (lambda x: lax.max(x, x), 3.0, 1.0),
        (lambda x: lax.max(x, 1.0), math.nan, 0.0),
        (lambda x: lax.clamp(0.0, x, 1.0), 0.0, 0.0),
        (lambda x: lax.clamp(0.0, x, 1.0), 0.5, 1.0),
        (lambda x: lax.clamp(x, 2.0, 5.0), 3.0, 1.0),
        (lambda x: lax.clamp(0.0, 2.0, x), 1.0, 1.0),
        (lax.sqrt, 0.0, math.inf),
        (lax.cbrt, 0.0, math.inf),
        (lambda x: lax.pow(x, 0.0), 0.0, 0.0),
        (lambda x: lax.pow(x, 1.0), 0.0, 1.0),
        (lambda x: lax.pow(x, 2.0), 0.0, 0.0),
        (lambda x: lax.pow(x, 0), 0.0, 0.0),
        (lambda x: lax.pow(x, 1), 0.0, 1.0),
        (lambda x: lax.pow(x, 2), 0.0, 0.0),
        (lambda x: lax.pow(x, np.int32(0)), 0.0, 0.0),
        (lambda x: lax.pow(x, 3), -2.0, 12.0),
        (lambda y: lax.pow(0.0, y), 2.0, 0.0),
        (lambda y: lax.pow(0.0, y), 0.0, 0.0),
        (lambda x: lax.integer_pow(x, 0), 0.0, 0.0),
        (lambda x: lax.integer_pow(x, 1), 0.0, 1.0),
        (lambda x: lax.integer_pow(x, 2), 0.0, 0.0),
        (lambda x: lax.integer_pow(x, -1), 2.0, -0.25),
        (lax.logistic, 100.0, 0.0),
        (lax.logistic, -100.0, 0.0),
        (lax.tanh, 100.0, 0.0),
        (lax.expm1, -200.0, 0.0),
        (lax.log1p, -1.0, math.inf),
        (lax.asin, 1.0, math.inf),
        (lax.atan, 1e30, 0.0),
        (lambda x: lax.stop_gradient(x), 3.0, 0.0),
        (lambda x: lax.mul(x, lax.stop_gradient(x)), 3.0, 3.0),
        (lambda x: lax.div(1.0, x), 1e30, 0.0),
        (lambda x: lax.rem(x, 2.0), 5.5, 1.0),
        (lambda y: lax.rem(5.5, y), 2.0, -2.0),
    ],
)
def test_derivative(function: Any, x: float, expected: float) -> None:
    assert derivative(function, x) == pytest.approx(expected, nan_ok=True)


def test_derivative_near_the_end_of_the_domain_is_exact() -> None:
    x = np.float32(1) - np.float32(2**-23)
    exact = 1 / math.sqrt(1 - float(x) ** 2)
    assert derivative(lax.asin, x) == pytest.approx(exact, rel=1e-6)


def test_integers_have_no_derivative() -> None:
    with pytest.raises(TypeError):
        dovetail.grad(lambda x: lax.mul(x, 2))(3)


def test_order_of_polygamma_has_no_derivative() -> None:
    with pytest.raises(ValueError, match="not differentiable in m"):
        dovetail.grad(lambda m: lax.polygamma(m, 2.0))(1.0)
    with pytest.raises(ValueError, match="first argument x"):
        dovetail.grad(lambda x: lax.zeta(x, 2.0))(2.5)


# Complex numbers: the cotangents that JAX gives, and derivatives on the right branch.


@pytest.mark.parametrize(
    ("function", "x", "cotangent", "expected"),
    [
        (lax.real, np.complex64(1 + 2j), np.float32(1), 1 + 0j),
        (lax.imag, np.complex64(1 + 2j), np.float32(1), -1j),
        (lax.conj, np.complex64(1 + 2j), np.complex64(1 + 3j), 1 - 3j),
        (lax.conj, np.float32(1), np.complex64(1 + 3j), 1.0),
        (lax.abs, np.complex64(3 + 4j), np.float32(1), 0.6 - 0.8j),
        (lax.abs, np.complex64(0), np.float32(1), 0j),
        (lax.sign, np.complex64(0), np.complex64(1), 0j),
    ],
)
def test_cotangent_of_complex(function: Any, x: Any, cotangent: Any, expected: complex) -> None:
    (got,) = dovetail.vjp(function, x)[1](cotangent)
    assert got.dtype == x.dtype
    assert complex(got) == pytest.approx(expected)


def test_cotangents_of_parts() -> None:
    real, imag = dovetail.vjp(lax.complex, np.float32(1), np.float32(2))[1](np.complex64(1 + 3j))
    assert (float(real), float(imag)) == (1.0, -3.0)


@pytest.mark.parametrize("z", [-2 + 0.5j, -2 - 0.5j, 0.3 + 1j, 2 - 1j])
def test_holomorphic_derivatives_on_all_branches(z: complex) -> None:
    step = 1e-5
    with dovetail.enable_x64(True):
        for function, known in (
            (lax.acosh, np.arccosh),
            (lax.asin, np.arcsin),
            (lax.acos, np.arccos),
            (lax.atanh, np.arctanh),
            (lax.asinh, np.arcsinh),
            (lax.log, np.log),
            (lax.sqrt, np.sqrt),
        ):
            got = dovetail.grad(function, holomorphic=True)(np.complex128(z))
            want = (known(z + step) - known(z - step)) / (2 * step)
            assert complex(got) == pytest.approx(complex(want), rel=1e-8)


def test_derivatives_keep_the_dtype() -> None:
    for dtype in (np.float16, np.float32):
        x = dovetail.device_put(np.ones((), dtype))
        for function in (lax.sin, lax.tanh, lax.erf, lax.cbrt, lax.square, lax.logistic):
            assert dovetail.grad(function)(x).dtype == dtype


def test_select_passes_the_chosen_derivative_only() -> None:
    def function(x: Any) -> Any:
        return lax.select(lax.gt(x, 0.0), lax.square(x), lax.neg(x))

    assert derivative(function, 3.0) == 6.0
    assert derivative(function, -3.0) == -1.0


def test_tangent_of_a_predicate_holds_nothing() -> None:
    def function(x: Any) -> Any:
        return dovetail.jvp(lax.is_finite, (x,), (x,))[1]

    x = np.ones(3, np.float32)
    assert function(x).dtype == dovetail.float0
    assert dovetail.jit(function)(x).dtype == dovetail.float0
