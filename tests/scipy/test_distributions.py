"""Distributions against SciPy, at edges, and their derivatives against differences."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.stats

import dovetail as dt

pytestmark = [pytest.mark.tables, pytest.mark.laws]

INF, NAN = np.inf, np.nan
REAL = [-INF, -1e10, -300, -30, -7, -2.5, -1, -0.3, -1e-9, 0, 1e-9, 0.2, 0.5, 1, 2, 3.7, 9, 40, 350]
REAL += [1e10, INF, NAN]
NEAR = [-INF, -3, -1.5, -0.5, 0, 0.3, 1, 2, 2.7, 5, 7, 30, INF, NAN]
UNIT = [-INF, -0.1, 0, 1e-30, 1e-9, 0.01, 0.2, 0.5, 0.7, 0.93, 0.999, 1, 1.1, INF, NAN]
COUNTS = [-INF, -2, -1, 0, 0.5, 1, 2, 3, 5, 8, 9, 30, 31, 400, INF, NAN]

#: Of each distribution values and parameters, the last of them wrong ones.
CASES: dict[str, tuple[list[float], list[list[float]]]] = {
    "bernoulli": (COUNTS, [[0.25, 0, 1, 0.9, -0.1, 1.1, NAN]]),
    "beta": (UNIT, [[0.5, 1, 2, 30, 1, 0, 1], [2.5, 1, 0.5, 7, 3, 1, NAN]]),
    "betabinom": (
        COUNTS,
        [[9, 30, 1, 0, -1, 2.5, 9], [2, 1, 0.5, 1, 1, 1, 0], [3, 1, 4, 1, 1, 1, 1]],
    ),
    "binom": (COUNTS, [[9, 30, 5, 5, 0, 2.5, -1], [0.3, 0.9, 0, 1, 0.5, 0.5, NAN]]),
    "cauchy": (REAL, []),
    "chi2": (REAL, [[1, 2, 3.5, 40, 0, -1, NAN]]),
    "expon": (REAL, []),
    "gamma": (REAL, [[0.5, 1, 3.5, 40, 0, -1, NAN]]),
    "gennorm": (REAL, [[0.5, 1, 2, 3.5, 0, -1, NAN]]),
    "geom": (COUNTS, [[0.3, 1, 0.01, 0, 1.5, NAN]]),
    "gumbel_l": (REAL, []),
    "gumbel_r": (REAL, []),
    "laplace": (REAL, []),
    "logistic": (REAL, []),
    "nbinom": (COUNTS, [[9, 2.5, 1, 0, 3, NAN], [0.3, 0.9, 1, 0.5, 0, 0.5]]),
    "norm": (REAL, []),
    "pareto": (REAL, [[0.5, 1, 2, 20, 0, -1, NAN]]),
    "poisson": (COUNTS, [[0.5, 3, 30, 0, -1, NAN]]),
    "t": (REAL, [[0.5, 1, 3.5, 1e6, INF, 0, NAN]]),
    "truncnorm": (NEAR, [[-2, 0, 1, -INF, 6, 2, NAN], [2.5, 3, INF, -1, 8, 2, 1]]),
    "uniform": (UNIT, []),
    "vonmises": (REAL[3:-4], [[0, 0.5, 3, 100, -1, NAN]]),
    "wrapcauchy": ([*UNIT, 2.5, 3.5, 6.2, 6.3], [[0.5, 0.01, 0.99, 0, 1, NAN]]),
}
QUANTILES = ("ppf", "isf")
#: Those whose logarithms are such of numbers that may underflow.
UNDERFLOW = {"beta", "chi2", "gamma"}
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


#: Whose programs take long to compile.
LONG = {"beta", "betabinom", "chi2", "gamma", "gennorm", "truncnorm"}
NARROW = {"logsf", "pdf", "pmf", "ppf", "isf"}


def functions(name: str, dtype: str, quantile: bool) -> list[str]:
    """Those to test in a dtype: all in float64, but what takes long only in one of both."""
    module = importlib.import_module(f"dovetail.scipy.stats.{name}")
    names = [n for n in module.__all__ if (n in QUANTILES) == quantile and n != "entropy"]
    if dtype == "float32":
        return [n for n in names if n in NARROW]
    return [n for n in names if name not in LONG or n not in NARROW]


def results(name: str, dtype: Any, quantile: bool) -> dict[str, tuple[Any, Any]]:
    """By function the result and SciPy's, for all values and parameters."""
    module = importlib.import_module(f"dovetail.scipy.stats.{name}")
    reference = getattr(scipy.stats, name)
    (x,), rows = grid(name, dtype, quantile)
    names = functions(name, dtype, quantile)

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
                if dtype == "float32":
                    with np.errstate(over="ignore"):
                        expected = expected.astype(dtype)
                if name == "bernoulli" and quantile:  # SciPy has -1 for 0, and for 1 another one
                    expected[[2, 11]] = found[[2, 11]]
                if name in UNDERFLOW and function.startswith("log"):
                    expected = np.where((found == -INF) & (expected < -80), -INF, expected)
                # SciPy's logarithms are those of numbers that underflow, and a few are nan at inf.
                blank = (expected == -INF) & (found < -700)
                blank |= (
                    np.isnan(expected)
                    & ~np.isnan(found)
                    & np.isinf(grid(name, dtype, quantile)[0][0])
                )
                expected = np.where(blank, found, expected)
                np.testing.assert_allclose(found, expected, rtol, atol, err_msg=function)


def gradients(name: str, function: str) -> tuple[list[Any], Any]:
    """Arguments in one shape, and derivatives of a function by each of them, in float64."""
    formula = getattr(importlib.import_module(f"dovetail.scipy.stats.{name}"), function)
    (x,), rows = grid(name, "float64", function in QUANTILES)
    args = [np.array(a) for a in np.broadcast_arrays(x, *rows)]
    places = tuple(range(len(args)))
    return args, dt.jit(dt.grad(lambda *a: formula(*a).sum(), places))(*args)
