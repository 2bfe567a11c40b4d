"""Distributions against SciPy, at edges, and their derivatives against differences."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.stats

import dovetail as dt

pytestmark = pytest.mark.tables

INF, NAN = np.inf, np.nan
REAL = [-INF, -1e10, -300, -30, -7, -2.5, -1, -0.3, -1e-9, 0, 1e-9, 0.2, 0.5, 1, 2, 3.7, 9, 40, 350]
REAL += [1e10, INF, NAN]
UNIT = [-INF, -0.1, 0, 1e-30, 1e-9, 0.01, 0.2, 0.5, 0.7, 0.93, 0.999, 1, 1.1, INF, NAN]
COUNTS = [-INF, -2, -1, 0, 0.5, 1, 2, 3, 5, 8, 9, 30, 31, 400, INF, NAN]

#: Of each distribution values and parameters, the last of them wrong ones.
CASES: dict[str, tuple[list[float], list[list[float]]]] = {
    "cauchy": (REAL, []),
    "expon": (REAL, []),
    "gumbel_l": (REAL, []),
    "gumbel_r": (REAL, []),
    "laplace": (REAL, []),
    "logistic": (REAL, []),
    "pareto": (REAL, [[0.5, 1, 2, 20, 0, -1, NAN]]),
    "uniform": (UNIT, []),
    "wrapcauchy": ([*UNIT, 2.5, 3.5, 6.2, 6.3], [[0.5, 0.01, 0.99, 0, 1, NAN]]),
}
QUANTILES = ("ppf", "isf")
#: Where SciPy has no digits, or another convention; the reason stands beside it.
NO_SCALE = {"gennorm", "vonmises", "wrapcauchy"}


def grid(name: str, dtype: Any, quantile: bool) -> tuple[list[Any], tuple[Any, ...]]:
    """Values as a column; parameters, and location and scale where there are such, as rows."""
    values, parameters = CASES[name]
    module = getattr(scipy.stats, name)
    size = max((len(p) for p in parameters), default=4)
    rows = [np.resize(np.array(p, dtype), size) for p in parameters]
    if name not in NO_SCALE and not hasattr(module, "pmf"):
        loc = np.array([0, 0, 0.5, 0], dtype)
        rows += [np.resize(loc, size), np.resize(np.array([1, 2, 1, 0.25], dtype), size)]
    x = np.array(UNIT if quantile else values, dtype)[:, None]
    if name not in NO_SCALE and not parameters and not hasattr(module, "pmf"):
        rows = [np.append(r, b).astype(dtype) for r, b in zip(rows, (0, -1), strict=True)]
    return [x], tuple(rows)


def functions(name: str, quantile: bool) -> list[str]:
    module = importlib.import_module(f"dovetail.scipy.stats.{name}")
    return [n for n in module.__all__ if (n in QUANTILES) == quantile and n != "entropy"]


def results(name: str, dtype: Any, quantile: bool) -> dict[str, tuple[Any, Any]]:
    """By function the result and SciPy's, for all values and parameters."""
    module = importlib.import_module(f"dovetail.scipy.stats.{name}")
    reference = getattr(scipy.stats, name)
    (x,), rows = grid(name, dtype, quantile)
    names = functions(name, quantile)

    @dt.jit
    def everything(*args: Any) -> Any:
        return {n: getattr(module, n)(*args) for n in names}

    found = everything(x, *rows) if names else {}
    wide = [np.asarray(a, np.float64) for a in (x, *rows)]
    with np.errstate(all="ignore"):
        return {n: (np.asarray(found[n]), getattr(reference, n)(*wide)) for n in names}


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values(name: str, dtype: str) -> None:
    with dt.enable_x64(dtype == "float64"):
        for quantile in (False, True):
            for function, (found, expected) in results(name, dtype, quantile).items():
                assert found.dtype == dtype
                assert found.shape == expected.shape
                rtol, atol = (3e-5, 1e-5) if dtype == "float32" else (1e-12, 1e-13)
                # SciPy's logarithms are those of numbers that underflow, and a few are nan at inf.
                blank = (expected == -INF) & (found < -700)
                blank |= (
                    np.isnan(expected)
                    & ~np.isnan(found)
                    & np.isinf(grid(name, dtype, quantile)[0][0])
                )
                expected = np.where(blank, found, expected)
                np.testing.assert_allclose(found, expected, rtol, atol, err_msg=function)
