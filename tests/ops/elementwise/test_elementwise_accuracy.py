"""Errors of functions in units in the last place, against arithmetic with many digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

import dovetail
from dovetail import lax
from dovetail._core.ops.elementwise.functions import Function
from dovetail.testing.samples import defined_primitives

mpmath.mp.prec = 200
NDArray = np.ndarray[Any, Any]


def spread(low: float, high: float, count: int = 40) -> NDArray:
    return np.random.default_rng(0).uniform(low, high, count)


def sizes(low: float, high: float, count: int = 40) -> NDArray:
    powers = 10.0 ** np.random.default_rng(1).uniform(low, high, count)
    return np.concatenate([powers, -powers])


def cube_root(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


# The exact function, arguments, and the largest error in float32 and float64.
CASES: dict[str, tuple[Callable[[Any], Any], NDArray, float, float]] = {
    "sin": (mpmath.sin, np.append(spread(-10, 10), sizes(-30, 5)), 1, 1),
    "cos": (mpmath.cos, np.append(spread(-10, 10), sizes(-30, 5)), 1, 1),
    "tan": (mpmath.tan, np.append(spread(-10, 10), sizes(-30, 0)), 1, 1),
    "asin": (mpmath.asin, np.append(spread(-1, 1), sizes(-30, 0)), 2, 2),
    "acos": (mpmath.acos, np.append(spread(-1, 1), sizes(-30, 0)), 2, 2),
    "atan": (mpmath.atan, np.append(spread(-10, 10), sizes(-30, 30)), 2, 2),
    "sinh": (mpmath.sinh, np.append(spread(-88, 88), sizes(-30, 0)), 4, 4),
    "cosh": (mpmath.cosh, np.append(spread(-88, 88), sizes(-30, 0)), 4, 4),
    "tanh": (mpmath.tanh, np.append(spread(-20, 20), sizes(-30, 0)), 4, 8),
    "asinh": (mpmath.asinh, np.append(spread(-10, 10), sizes(-30, 30)), 2, 2),
    "acosh": (mpmath.acosh, 1 + abs(sizes(-7, 30)), 3, 3),
    "atanh": (mpmath.atanh, np.append(spread(-1, 1), sizes(-30, 0)), 3, 3),
    "exp": (mpmath.exp, np.append(spread(-80, 80), sizes(-30, 0)), 2, 2),
    "exp2": (lambda x: mpmath.mpf(2) ** x, np.append(spread(-120, 120), sizes(-30, 0)), 2, 2),
    "expm1": (mpmath.expm1, np.append(spread(-80, 80), sizes(-30, 0)), 4, 4),
    "log": (mpmath.log, np.append(abs(sizes(-30, 30)), 1 + sizes(-7, -1)), 2, 2),
    "log1p": (mpmath.log1p, np.append(abs(sizes(-30, 30)), -abs(sizes(-30, 0))), 2, 2),
    "logistic": (lambda x: 1 / (1 + mpmath.exp(-x)), spread(-80, 80), 2, 2),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), abs(sizes(-30, 30)), 2, 1),
    "cbrt": (cube_root, sizes(-30, 30), 2, 3),
    "erf": (mpmath.erf, np.append(spread(-6, 6), sizes(-30, 0)), 4, 1),
    "erfc": (mpmath.erfc, np.append(spread(-5, 9), sizes(-30, 0)), 4, 4),
    "erf_inv": (mpmath.erfinv, np.append(spread(-1, 1), 1 - abs(sizes(-7, 0))), 4, 4),
    "lgamma": (
        lambda x: mpmath.loggamma(x).real,
        np.concatenate([spread(0, 12), abs(sizes(-30, 20)), 1 + sizes(-7, -1), 2 + sizes(-7, -1)]),
        4,
        4,
    ),
    "digamma": (
        mpmath.digamma,
        np.concatenate([spread(0, 12), abs(sizes(-10, 20)), 1.4616321449683623 + sizes(-7, -1)]),
        4,
        4,
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_error_in_units_in_the_last_place(name: str) -> None:
    exact, points, single, double = CASES[name]
    function = getattr(lax, name)
    with dovetail.enable_x64(True):
        args = [points.astype(dtype) for dtype in (np.float32, np.float64)]
        results = dovetail.jit(lambda xs: [function(x) for x in xs])(args)
        for x, result, bound in zip(args, results, (single, double), strict=True):
            worst = max(
                error(exact, a, b, x.dtype) for a, b in zip(x, np.asarray(result), strict=True)
            )
            assert worst <= bound, f"{name} of {x.dtype}: {worst:.3g} units"


def error(exact: Callable[[Any], Any], x: Any, got: Any, dtype: Any) -> float:
    """How far `got` is from the function of `x`, in units in the last place; 0 out of its range."""
    try:
        want = exact(mpmath.mpf(float(x)))
    except (ValueError, ZeroDivisionError):
        return 0.0
    info = np.finfo(dtype)
    size = abs(want)
    if mpmath.im(want) or not info.smallest_normal <= size <= info.max:
        return 0.0
    unit = math.ldexp(1.0, math.frexp(float(size))[1] - 1 - info.nmant)
    return float(abs(mpmath.mpf(float(got)) - want) / unit) if np.isfinite(got) else math.inf


def test_small_parts_of_complex_sinh() -> None:
    z = np.complex64(3.9e-12 - 1.2e-13j)
    assert complex(lax.sinh(z)) == pytest.approx(complex(z), rel=1e-6)


FUNCTIONS = sorted(
    name
    for name, primitive in defined_primitives().items()
    if isinstance(primitive, Function) and hasattr(lax, name)
)
NARROW = [ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats_are_computed_in_float32(dtype: Any) -> None:
    x = np.array([0.5, 1, 1.5, 2, -0.5, 0]).astype(dtype)

    def everything(x: Any) -> list[Any]:
        return [getattr(lax, name)(x) for name in FUNCTIONS]

    wide = dovetail.jit(everything)(x.astype(np.float32))
    for name, got, want in zip(FUNCTIONS, dovetail.jit(everything)(x), wide, strict=True):
        np.testing.assert_array_equal(
            np.asarray(got, np.float32), np.asarray(want).astype(dtype).astype(np.float32), name
        )
