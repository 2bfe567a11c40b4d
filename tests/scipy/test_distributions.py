"""Distributions against SciPy, at edges, and their derivatives against differences."""

from __future__ import annotations

import importlib
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.scipy import stats

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


#: Whose programs take long to compile; of them what is tested in each dtype.
LONG = {"beta", "betabinom", "chi2", "gamma", "gennorm", "truncnorm"}
NARROW = {"logsf", "pdf", "pmf", "ppf", "isf"}
LONG_NARROW, LONG_WIDE = {"logsf", "pmf"}, {"cdf", "logcdf", "logpdf", "logpmf"}


def functions(name: str, dtype: str, quantile: bool) -> list[str]:
    """Those to test in a dtype."""
    module = importlib.import_module(f"dovetail.scipy.stats.{name}")
    names = [n for n in module.__all__ if (n in QUANTILES) == quantile and n != "entropy"]
    narrow, wide = (
        (LONG_NARROW, LONG_WIDE) if name in LONG else (NARROW, set(names) - {"pdf", "pmf"})
    )
    if name == "chi2":  # written as gamma is
        wide = {"logsf", "pdf"}
    return [n for n in names if n in (narrow if dtype == "float32" else wide)]


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


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, "float64") for name in sorted(CASES)]
    + [(name, "float32") for name in ("beta", "cauchy", "gamma", "norm", "poisson", "truncnorm")],
)
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


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("beta", "pdf"),
        ("binom", "pmf"),
        ("cauchy", "ppf"),
        ("chi2", "logsf"),
        ("gumbel_l", "cdf"),
        ("norm", "logsf"),
        ("pareto", "logcdf"),
        ("t", "logpdf"),
        ("truncnorm", "logpdf"),
        ("vonmises", "pdf"),
    ],
)
def test_derivatives(name: str, function: str) -> None:
    """They are differences inside the support, and numbers everywhere."""
    formula = getattr(importlib.import_module(f"dovetail.scipy.stats.{name}"), function)
    reference = getattr(getattr(scipy.stats, name), function)
    with dt.enable_x64(True):
        (x,), rows = grid(name, "float64", function in QUANTILES)
        args = [np.array(a) for a in np.broadcast_arrays(x, *rows)]
        numbers = tuple(range(len(args)))
        derivatives = dt.jit(dt.grad(lambda *a: formula(*a).sum(), numbers))(*args)
    with np.errstate(all="ignore"):
        values = reference(*args)
        checked = 0
        for number, derivative in enumerate(map(np.asarray, derivatives)):
            # At an end where the density is infinite some have no limit.
            assert not np.isnan(derivative[values != INF]).any(), number
            if name == "binom" and number < 2:  # of integers there are no differences
                continue
            step = 1e-6 * np.maximum(1, abs(args[number]))
            above, below = list(args), list(args)
            above[number] = args[number] + step
            below[number] = args[number] - step
            expected = (reference(*above) - reference(*below)) / (2 * step)
            # Not across an end of the support, nor where quantiles are almost vertical.
            known = np.isfinite(expected) & (abs(values) < 1e3) & (values != 0)
            known &= (abs(expected) < 1e3) & (abs(args[0]) > 1e-6) & (abs(args[0] - 1) > 1e-6)
            if not (name == "truncnorm" and number == 0):
                known &= np.isfinite(reference(*above)) & np.isfinite(reference(*below))
            np.testing.assert_allclose(derivative[known], expected[known], 2e-4, 1e-5)
            checked += known.sum()
        assert checked > 10


def test_far_tails_of_a_truncated_normal_distribution() -> None:
    """Against mpmath, where SciPy loses digits."""

    def log_mass(a: Any, b: Any) -> Any:
        a, b = (mpmath.mpf(float(x)) for x in (a, b))
        if a <= 0 <= b:
            return mpmath.log1p(-upper(-a) - upper(b))
        return mpmath.log(upper(a) - upper(b) if a > 0 else upper(-b) - upper(-a))

    def upper(x: Any) -> Any:
        return mpmath.erfc(x / mpmath.sqrt(2)) / 2

    rows = [(0, 3, 1e-9), (30, 31, 30.5), (1000, 1001, 1000.001), (-1000, 3, -999), (-3, 4, 2)]
    rows += [(-INF, -50, -51), (1e6, INF, 1e6 + 1), (-0.2, 0.3, 0.1), (7, 9, 8), (19, 21, 20)]
    for dtype in ("float32", "float64"):
        a, b, y = np.array(rows, dtype).T
        with dt.enable_x64(dtype == "float64"), mpmath.workdps(40):
            for function, exact in (
                ("logcdf", lambda a, b, y: log_mass(a, y) - log_mass(a, b)),
                ("logsf", lambda a, b, y: log_mass(y, b) - log_mass(a, b)),
            )[(dtype == "float64") :]:
                found = getattr(stats.truncnorm, function)(y, a, b)
                expected = [float(exact(*row)) for row in zip(a, b, y, strict=True)]
                eps = np.finfo(dtype).eps
                np.testing.assert_allclose(found, expected, 8 * eps, 8 * eps, err_msg=function)


def test_entropies_of_poisson_distributions() -> None:
    def exact(mean: float) -> float:
        mu = mpmath.mpf(mean)
        k, total = 0, mpmath.mpf(0)
        while k < mean + 40 * mean**0.5 + 40:
            log = k * mpmath.log(mu) - mu - mpmath.loggamma(k + 1)
            total, k = total - mpmath.exp(log) * log, k + 1
        return float(total)

    means = np.array([1e-6, 0.5, 3, 30, 149.9, 150.1, 1e3])
    expected = [exact(mean) for mean in means]
    with dt.enable_x64(True):
        np.testing.assert_allclose(stats.poisson.entropy(means), expected, 1e-12)
        edges = stats.poisson.entropy(np.array([0, INF, -1, NAN]))
        np.testing.assert_array_equal(edges, [0, INF, NAN, NAN])
        assert np.isfinite(dt.grad(lambda mu: stats.poisson.entropy(mu).sum())(means)).all()
    np.testing.assert_allclose(stats.poisson.entropy(means.astype("float32")), expected, 3e-6)


def test_multinomial_distributions() -> None:
    x = np.array([[1, 2, 3], [2, 2, 2], [6, 0, 0], [1, 1, 1], [7, -1, 0]])
    for p in ([0.2, 0.3, 0.5], [0, 0.25, 0.75]):
        found = stats.multinomial.logpmf(x, 6, np.float32(p))
        np.testing.assert_allclose(found, scipy.stats.multinomial.logpmf(x, 6, p), 2e-6)
        found = stats.multinomial.pmf(x, np.array([6] * 5), np.float32(p))
        np.testing.assert_allclose(found, scipy.stats.multinomial.pmf(x, 6, p), 2e-6)
    wrong = [stats.multinomial.pmf(x[0], 6, np.float32(p)) for p in ([-0.5, 1, 0.5], [NAN, 0, 1])]
    assert np.isnan(wrong).all()


def test_dirichlet_distributions() -> None:
    x = np.array([[0.2, 0.3], [0.5, 0.1], [0.3, 0.6]])
    for alpha in ([1, 2, 3.5], [0.5, 1, 20]):
        for given in (x, x[:2], x[:, 0]):
            for function in ("logpdf", "pdf"):
                found = getattr(stats.dirichlet, function)(np.float32(given), np.float32(alpha))
                expected = getattr(scipy.stats.dirichlet, function)(given, alpha)
                np.testing.assert_allclose(found, expected, 3e-6, 1e-5)
    outside = np.array([[0.2, -0.1, 0], [0.5, 0.5, 0.5], [0.4, 0.6, 0.5]])
    found = stats.dirichlet.logpdf(outside, np.array([1, 2.0, 3]))
    expected = [-INF, -INF, scipy.stats.dirichlet.logpdf(outside[:, 2], [1, 2, 3])]
    np.testing.assert_allclose(found, expected, 1e-5)
    assert np.isnan(stats.dirichlet.pdf(x, np.array([1, 0.0, 1]))).all()


def test_normal_distributions_of_vectors() -> None:
    rng = np.random.default_rng(0)
    mean, roots = rng.normal(size=3), rng.normal(size=(4, 3, 3))
    covs, x = roots @ roots.swapaxes(1, 2) + np.eye(3), rng.normal(size=(5, 4, 3))
    normal = scipy.stats.multivariate_normal
    expected = np.stack([normal.logpdf(x[:, i], mean, covs[i]) for i in range(4)], 1)
    f32 = np.float32
    found = stats.multivariate_normal.logpdf(f32(x), f32(mean), f32(covs))
    np.testing.assert_allclose(found, expected, 1e-5)
    found = stats.multivariate_normal.logpdf(f32(x[:, 0]), f32(mean), f32(covs[0]))
    np.testing.assert_allclose(found, expected[:, 0], 1e-5)
    found = stats.multivariate_normal.pdf(f32(x), f32(mean), 2.0)
    np.testing.assert_allclose(found, normal.pdf(x, mean, 2), 1e-5)
    found = stats.multivariate_normal.pdf(f32(x[:, 0]), 0.5, 2.0)
    np.testing.assert_allclose(found, normal.pdf(x[:, 0, :, None], 0.5, 2), 1e-5)
    assert np.isnan(stats.multivariate_normal.logpdf(f32(mean), f32(mean), -np.eye(3, dtype=f32)))


def test_dtypes_and_shapes() -> None:
    half = stats.norm.logpdf(np.ones((2, 1), "float16"), np.zeros(3, "float16"))
    assert (half.dtype, half.shape) == (jnp.float16, (2, 3))
    np.testing.assert_allclose(half, scipy.stats.norm.logpdf(np.ones((2, 3))), 1e-3)
    assert stats.t.pdf(jnp.ones(2, "bfloat16"), 3).dtype == jnp.bfloat16
    # Numbers of Python have the dtype of what stands beside them.
    assert stats.poisson.pmf(np.int8([1, 2]), 300).dtype == jnp.float32
    assert (stats.norm.pdf(1).weak_type, stats.norm.pdf(np.int8(1)).weak_type) == (True, False)
    assert stats.gamma.cdf(jnp.zeros((0, 3)), 2.0).shape == (0, 3)
    x = np.linspace(0.1, 3, 5, dtype="float32")
    batched = dt.vmap(stats.gamma.logpdf)(x, x + 1)
    np.testing.assert_allclose(batched, stats.gamma.logpdf(x, x + 1), 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: stats.norm.pdf(1j), TypeError, "norm.pdf"),
        (lambda: stats.norm.ppf([0.5]), TypeError, "norm.ppf requires its argument q"),
        (lambda: stats.gamma.cdf(1.0, "a"), TypeError, "gamma.cdf requires its argument a"),
        (lambda: stats.norm.cdf(np.ones(2), np.ones(3)), ValueError, "norm.cdf got incompatible"),
        (lambda: stats.multinomial.pmf(np.ones(2), 2, np.ones(2)), ValueError, "must hold integ"),
        (lambda: stats.multinomial.logpmf(1, 1, 1.0), ValueError, "x must have a dimension"),
        (lambda: stats.dirichlet.pdf(0.5, np.ones(3)), ValueError, "first dimension of x"),
        (lambda: stats.dirichlet.pdf(np.ones(3), np.ones((3, 1))), ValueError, "one dimension"),
        (
            lambda: stats.multivariate_normal.logpdf(np.ones(2), np.ones(2), np.ones(2)),
            ValueError,
            "x and mean must have",
        ),
        (
            lambda: stats.multivariate_normal.logpdf(1.0, 0.0, 1.0, allow_singular=True),
            NotImplementedError,
            "allow_singular",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
