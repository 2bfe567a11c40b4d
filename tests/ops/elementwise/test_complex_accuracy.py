"""Both parts of complex functions in units in the last place; axes, cuts, infinities as in C99."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest

import dovetail
from dovetail import lax

NDArray = np.ndarray[Any, Any]
DTYPES = [np.dtype(np.complex64), np.dtype(np.complex128)]

USUAL = (1e-8, 1e-3, 0.7, 1.0, math.pi / 2, 50.0)


class Case(NamedTuple):
    """A function, up to which sizes of the parts it is tested, and the terms of its real part.

    Where these cancel (`cancelled` gives their size), the error is one in their last place.
    """

    exact: Callable[[Any], Any]
    real: float = math.inf
    imaginary: float = math.inf
    cancelled: Callable[[Any, Any], Any] = lambda z, w: 0
    bound: float = 8.0


def terms_of_expm1(z: Any, w: Any) -> Any:
    return min(1, max(abs(z.real), z.imag**2))


def terms_of_logistic(z: Any, w: Any) -> Any:
    return abs(w) if z.real < 0 else 0


CASES: dict[str, Case] = {
    "sin": Case(mpmath.sin, imaginary=900),
    "cos": Case(mpmath.cos, imaginary=900),
    "tan": Case(mpmath.tan, imaginary=900),
    "sinh": Case(mpmath.sinh, real=900),
    "cosh": Case(mpmath.cosh, real=900),
    "tanh": Case(mpmath.tanh, real=900),
    "asin": Case(mpmath.asin),
    "acos": Case(mpmath.acos),
    "atan": Case(mpmath.atan),
    "asinh": Case(mpmath.asinh),
    "acosh": Case(mpmath.acosh),
    "atanh": Case(mpmath.atanh),
    "exp": Case(mpmath.exp, real=900),
    "exp2": Case(lambda z: mpmath.exp(z * mpmath.log(2)), real=1200, imaginary=4000),
    "expm1": Case(lambda z: mpmath.exp(z) - 1, real=900, cancelled=terms_of_expm1),
    "log": Case(mpmath.log),
    "log2": Case(lambda z: mpmath.log(z) / mpmath.log(2)),
    "log1p": Case(lambda z: mpmath.log(1 + z)),
    "logistic": Case(lambda z: 1 / (1 + mpmath.exp(-z)), real=900, cancelled=terms_of_logistic),
    "sqrt": Case(mpmath.sqrt),
    "rsqrt": Case(lambda z: 1 / mpmath.sqrt(z)),
    "sign": Case(lambda z: z / abs(z)),
    "square": Case(lambda z: z * z, real=1e19),
}


def points(name: str, dtype: Any) -> NDArray:
    """Every pair of sizes of parts, in one quadrant each, and those where functions lose digits."""
    info, case = np.finfo(dtype), CASES[name]
    extremes = (1e-37, 1e-20, 1e20, 3e38) if dtype == np.complex64 else (1e-300, 1e-160, 1e160)
    sizes = (*USUAL, *extremes, float(info.max) * 0.9)
    pairs = [(min(a, case.real), min(b, case.imaginary)) for a in sizes for b in sizes]
    random = np.random.default_rng(sum(map(ord, name)))
    pairs += [tuple(p) for p in random.uniform(0, 3, (20, 2))]
    turns = random.uniform(0, math.pi / 2, 10)
    # On the unit circle and about it, those less 1, around 1 and -1, and near the poles.
    rings = [(r * math.cos(t), r * math.sin(t)) for r in (1, 0.97, 0.75, 1.2) for t in turns]
    pairs += rings + [(1 - a, b) for a, b in rings]
    pairs += [(1 + d, abs(d)) for d in (1e-7, -1e-7, 1e-3, -1e-3)]
    near = [(d, p + e) for p in (math.pi / 2, math.pi) for d in (1e-7, 1e-3) for e in (1e-7, 1e-3)]
    pairs += near + [(b, a) for a, b in near]
    signs = random.choice([-1, 1], (len(pairs), 2))
    parts = (np.array(pairs) * signs).astype(f"float{4 * dtype.itemsize}")
    return np.ascontiguousarray(parts).view(dtype)[:, 0]


def error(got: Any, want: Any, term: Any, info: Any) -> float:
    """The error of a part in units in the last place of it or of `term`; 0 if it is subnormal."""
    size = abs(want)
    largest = mpmath.mpf(float(info.max))
    if size > largest * (1 - 16 * mpmath.mpf(float(info.eps))):
        return (
            0.0 if abs(got) >= info.max * (1 - 32 * info.eps) and (got < 0) == (want < 0) else 9e9
        )
    if not np.isfinite(got):
        return math.inf
    if size < 2 * float(info.smallest_normal):
        return 0.0 if abs(got) < 3 * info.smallest_normal else 9e9
    unit = mpmath.ldexp(1, mpmath.frexp(max(size, term))[1] - 1 - info.nmant)
    distance = abs(mpmath.mpf(float(got)) - want)
    # A term may be flushed to zero.
    return 0.0 if distance < info.smallest_normal else float(distance / unit)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", sorted(CASES))
def test_each_part_is_exact(name: str, dtype: Any) -> None:
    case, info, x = CASES[name], np.finfo(dtype), points(name, dtype)
    with dovetail.enable_x64(True):
        results = np.asarray(getattr(lax, name)(x))
    assert results.dtype == dtype
    worst = (0.0, "")
    for point, got in zip(x, results, strict=True):
        z = mpmath.mpc(complex(point))
        sizes = [abs(z.real), abs(z.imag)]
        # Digits enough for 1 - 1e-300**2, where there are such parts.
        with mpmath.workprec(300 if min(sizes) > 1e-40 and max(sizes) < 1e40 else 2200):
            want = case.exact(z)
            for part in ("real", "imag"):
                term = case.cancelled(z, want) if part == "real" else 0
                units = error(getattr(got, part), getattr(want, part), term, info)
                worst = max(worst, (units, f"{part} part at {point}: {got}"))
    assert worst[0] <= case.bound, f"{name}: {worst[0]:.3g} units, {worst[1]}"


SPECIAL = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -2.5, math.inf, -math.inf, math.nan)
IN_NUMPY = {
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(np, name) for name in ("exp", "log", "log1p", "sqrt")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sinh", "cosh", "tanh")},
    "abs": np.abs,
}


def special_points(dtype: Any) -> NDArray:
    grid = np.empty((len(SPECIAL), len(SPECIAL)), dtype)
    grid.real, grid.imag = np.array(SPECIAL)[:, None], np.array(SPECIAL)
    return grid.ravel()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", sorted(IN_NUMPY))
def test_axes_cuts_and_infinities_are_those_of_numpy(name: str, dtype: Any) -> None:
    x = special_points(dtype)
    with np.errstate(all="ignore"), dovetail.enable_x64(True):
        want, results = IN_NUMPY[name](x), np.asarray(getattr(lax, name)(x))
    for point, got, expected in zip(x, results, want, strict=True):
        # C99 leaves the sign open where the other part, or both parts of the point, are unknown.
        open_sign = np.isnan(expected) or not (np.isfinite(point.real) or np.isfinite(point.imag))
        for a, b in ((got.real, expected.real), (got.imag, expected.imag)):
            where = f"{name}({point}) is {got}, not {expected}"
            assert np.isnan(a) == np.isnan(b), where
            if np.isnan(b):
                continue
            np.testing.assert_allclose(abs(a), abs(b), rtol=16 * np.finfo(dtype).eps, err_msg=where)
            assert open_sign or np.signbit(a) == np.signbit(b), where


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_that_c_lacks_at_infinity(dtype: Any) -> None:
    inf, nan = math.inf, math.nan
    table = {
        "expm1": [
            (complex(-inf, 2), complex(-1, 0)),
            (complex(-inf, nan), complex(-1, 0)),
            (complex(inf, 0), complex(inf, 0)),
            (complex(inf, 2), complex(-inf, inf)),
            (complex(inf, nan), complex(inf, nan)),
            (complex(-0.0, -0.0), complex(-0.0, -0.0)),
        ],
        "exp2": [
            (complex(-inf, nan), 0j),
            (complex(inf, 0), complex(inf, 0)),
            (complex(3, -0.0), complex(8, -0.0)),
            (complex(inf, nan), complex(inf, nan)),
        ],
        "log2": [(0j, complex(-inf, 0)), (complex(inf, 1), complex(inf, 0))],
        "logistic": [
            (complex(inf, nan), 1 + 0j),
            (complex(-inf, nan), 0j),
            (complex(-inf, 2), 0j),
            (complex(0.0, -0.0), complex(0.5, -0.0)),
        ],
        "rsqrt": [
            (0j, complex(inf, nan)),
            (complex(inf, 2), complex(0, -0.0)),
            (complex(-1, inf), complex(0, -0.0)),
            (complex(-4, 0.0), complex(0, -0.5)),
            (complex(-4, -0.0), complex(0, 0.5)),
        ],
    }
    with dovetail.enable_x64(True):
        for name, pairs in table.items():
            x, want = np.array(pairs, dtype).T
            got = np.asarray(getattr(lax, name)(x))
            np.testing.assert_array_equal(got, want, err_msg=name)
            for part in (np.real, np.imag):
                known = ~np.isnan(part(want))
                signs = (np.signbit(part(v))[known] for v in (got, want))
                np.testing.assert_array_equal(*signs, err_msg=f"sign of {name}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_powers_of_zero_and_squares_in_powers(dtype: Any) -> None:
    exponents = np.array([1 + 1j, 0.5 - 2j, 2, 0, 3 + 0j], dtype)
    with dovetail.enable_x64(True):
        powers = np.asarray(lax.pow(np.zeros(5, dtype), exponents))
        fine = dtype.type(1 + 2.0 ** (-np.finfo(dtype).nmant) + 1j)
        squares = [np.asarray(lax.integer_pow(fine, 2)), np.asarray(lax.square(fine))]
    np.testing.assert_array_equal(powers, [0, 0, 0, 1, 0])
    for square in squares:
        exact = mpmath.mpf(float(fine.real)) ** 2 - 1
        assert square.real == pytest.approx(float(exact), rel=float(np.finfo(dtype).eps))
