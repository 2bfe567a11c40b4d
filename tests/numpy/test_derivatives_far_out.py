"""Derivatives of elementwise functions at numbers whose squares no dtype holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

POINTS = {
    "float16": (300.0, 5e3, 6e4),
    "bfloat16": (1e10, 1e20, 3e38),
    "float32": (1e10, 1e20, 3e38),
}

NAMES = """
    abs arccosh arcsinh arctan arctanh cbrt ceil cos cosh deg2rad exp exp2 expm1 fabs floor i0 log
    log10 log1p log2 nan_to_num negative positive rad2deg reciprocal rint sign sin sinc sinh sqrt
    square tan tanh trunc
"""

#: Derivatives that are powers, all but exactly.
EXACT: dict[str, Callable[[Any], Any]] = {
    "arccosh": lambda x: 1 / x,
    "arcsinh": lambda x: 1 / x,
    "cbrt": lambda x: np.cbrt(x) / (3 * x),
    "log": lambda x: 1 / x,
    "log1p": lambda x: 1 / (1 + x),
    "sqrt": lambda x: 0.5 / np.sqrt(x),
    "square": lambda x: 2 * x,
}


def derivative(name: str, x: Any) -> Any:
    return dt.vmap(dt.grad(getattr(jnp, name)))(x)


@pytest.mark.parametrize("dtype", POINTS)
@pytest.mark.parametrize("name", NAMES.split())
def test_where_the_value_is_finite_the_derivative_is_a_number(name: str, dtype: str) -> None:
    for sign in (1, -1):
        x = jnp.asarray(sign * np.array(POINTS[dtype]), dtype)
        finite = jnp.isfinite(getattr(jnp, name)(x))
        assert not (jnp.isnan(derivative(name, x)) & finite).any()


@pytest.mark.parametrize("dtype", POINTS)
@pytest.mark.parametrize("name", EXACT)
def test_derivatives_that_are_powers(name: str, dtype: str) -> None:
    x = jnp.asarray(POINTS[dtype], dtype)
    limits = jnp.finfo(dtype)
    expected = EXACT[name](np.asarray(x).astype(np.float64))
    held = (expected >= float(limits.tiny)) & (expected <= float(limits.max))
    got = np.asarray(derivative(name, x)).astype(np.float64)
    np.testing.assert_allclose(got[held], expected[held], rtol=4 * float(limits.eps))
