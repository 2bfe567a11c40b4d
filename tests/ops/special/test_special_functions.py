"""Special functions and operations on numbers: facts beyond the samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail
from dovetail import lax

NDArray = np.ndarray[Any, Any]
X = np.array([0.5, 0.75], np.float32)


# Polynomials


@pytest.mark.parametrize(
    ("coeffs", "value"),
    [
        ([], 0.0),
        ([3], 3.0),
        ((1, 2.5), 6.0),
        (np.array([1.0, 2.0, 3.0]), 17.0),
        ([np.float16(1), True], 3.0),
    ],
    ids=str,
)
def test_polynomial_takes_sequences_and_arrays(coeffs: Any, value: float) -> None:
    found = lax.polynomial(np.full(3, 2, np.float32), coeffs)
    assert found.dtype == np.float32
    assert np.asarray(found).tolist() == [value] * 3


def test_polynomial_of_arrays_of_coefficients() -> None:
    rows = dovetail.jit(lambda a: a)(np.arange(6, dtype=np.float32).reshape(3, 2))
    assert np.asarray(lax.polynomial(X, rows)).tolist() == [0 + 1 + 1, 1 + 2.25 + 2.8125]


def test_polynomial_of_scalars_is_weakly_typed() -> None:
    found = lax.polynomial(2.0, [1.0, 0.5])
    assert float(found) == 2.0
    assert found.weak_type
    assert lax.polynomial(2.0, []).weak_type
    assert not lax.polynomial(np.float32(2), [1.0, 0.5]).weak_type
    assert not lax.polynomial(np.float32(2), []).weak_type


@pytest.mark.parametrize("unroll", [None, 1, 2, 5, 40, 41])
def test_polynomial_in_a_loop_is_the_same(unroll: int | None) -> None:
    coeffs = [0.9**k for k in range(41)]
    found = dovetail.jit(lambda x: lax.polynomial(x, coeffs, unroll=unroll))(X)
    assert np.asarray(found) == pytest.approx(np.polyval(coeffs[::-1], X), rel=1e-6)


def test_polynomial_in_a_loop_has_a_short_program() -> None:
    def size(unroll: int | None) -> int:
        jitted = dovetail.jit(lambda x: lax.polynomial(x, [0.5] * 200, unroll=unroll))
        return len(jitted.lower(X).as_text().splitlines())

    assert size(None) > 400
    assert size(1) < size(8) < 150


@pytest.mark.parametrize(
    ("x", "coeffs", "unroll", "error", "message"),
    [
        (X, 3.0, None, TypeError, "coeffs to be a sequence"),
        (X, [1, 2j], None, TypeError, r"coeffs\[1\] is of dtype complex64.*float32"),
        (np.arange(3), [0.5, 1], None, TypeError, r"coeffs\[0\] is of dtype float32.*int32"),
        (X > 0, [], None, TypeError, "polynomial does not accept dtype bool"),
        (X, [1, np.ones(3)], None, TypeError, "incompatible shapes"),
        (X, [1, "a"], None, TypeError, r"coeffs\[1\]"),
        (X, [1, 2, 3], 0, ValueError, "unroll must be a positive integer"),
        (X, [1, 2, 3], 1.5, ValueError, "unroll must be a positive integer"),
        (X, [1, 2, 3], True, ValueError, "unroll must be a positive integer"),
    ],
    ids=str,
)
def test_polynomial_refuses(
    x: Any, coeffs: Any, unroll: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        lax.polynomial(x, coeffs, unroll=unroll)


def test_derivative_of_a_polynomial_is_one() -> None:
    jaxpr = dovetail.make_jaxpr(
        lambda x, t: dovetail.jvp(lambda y: lax.polynomial(y, [1.0] * 3), (x,), (t,))
    )(X, X)
    assert [e.primitive.name for e in jaxpr.eqns].count("polynomial") == 2
    grads = dovetail.grad(lambda c: lax.polynomial(2.0, [c, c, 1.0]))(1.0)
    assert float(grads) == 3.0


# Integers


def test_mulhi_of_random_numbers() -> None:
    generator = np.random.default_rng(0)
    with dovetail.enable_x64(True):
        for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
            info = np.iinfo(name)
            x, y = generator.integers(info.min, info.max, (2, 500), name, endpoint=True)
            want = [int(a) * int(b) >> info.bits for a, b in zip(x, y, strict=True)]
            assert np.asarray(lax.mulhi(x, y)).tolist() == want, name


def test_mulhi_takes_its_arguments_by_position() -> None:
    with pytest.raises(TypeError, match="positional"):
        lax.mulhi(x=1, y=2)  # type: ignore[call-arg]


# Logarithm to base two


def test_log2_of_every_power_of_two() -> None:
    with dovetail.enable_x64(True):
        for dtype in (np.float32, np.float64):
            info = np.finfo(dtype)
            powers = np.arange(info.minexp, info.maxexp)
            found = np.asarray(lax.log2(np.ldexp(dtype(1), powers)))
            assert found.tolist() == powers.tolist()


# Order of all floats


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_total_order_is_that_of_the_bits(name: str) -> None:
    dtype = dovetail.dtypes.canonicalize_dtype(name)
    values = np.array([-np.nan, -np.inf, -2.5, -0.0, 0.0, 1.0, np.inf, np.nan], dtype)
    rows, columns = values[:, None], values[None]
    index = np.arange(len(values))
    found = [np.asarray(p.bind(rows, columns)) for p in (lax.eq_to_p, lax.lt_to_p, lax.le_to_p)]
    assert (found[0] == (index[:, None] == index)).all()
    assert (found[1] == (index[:, None] < index)).all()
    assert (found[2] == (index[:, None] <= index)).all()


# Loops for all elements take as many steps as one of them needs.

NUMBERS = np.array([1e-20, 0.3, 1.0, 2.5, 40.0, 1e10, 1e20, 1e30], np.float32)
OF_ONE: dict[str, Any] = {
    function.__name__: function
    for function in (lax.digamma, lax.lgamma, lax.erf, lax.erfc, lax.erf_inv, lax.bessel_i0e)
}
OF_ONE |= {
    function.__name__: function
    for function in (lax.bessel_i1e, lax.sin, lax.log1p, lax.expm1, lax.tan, lax.asinh)
}
OF_ONE |= {
    "zeta": lambda x: lax.zeta(lax.full_like(x, 2.5), x),
    "polygamma": lambda x: lax.polygamma(lax.full_like(x, 1), x),
    "igamma": lambda x: lax.igamma(lax.full_like(x, 3), x),
    "igamma of shapes": lambda x: lax.igamma(x, lax.full_like(x, 3)),
    "igammac": lambda x: lax.igammac(lax.full_like(x, 3), x),
    "betainc": lambda x: lax.betainc(x, lax.full_like(x, 2), lax.full_like(x, 0.4)),
    "random_gamma_grad": lambda x: lax.random_gamma_grad(x, lax.full_like(x, 2)),
}


@pytest.mark.parametrize("name", OF_ONE)
def test_one_number_has_the_value_that_it_has_among_others(name: str) -> None:
    function = dovetail.jit(OF_ONE[name])
    with np.errstate(all="ignore"):
        expected = np.asarray(function(NUMBERS))
        for shape in ((), (1,)):
            found = [np.asarray(function(x.reshape(shape))).item() for x in NUMBERS]
            np.testing.assert_allclose(found, expected, rtol=2e-6)
