"""Quantiles, histograms, covariances and correlations against NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

METHODS = (
    "linear",
    "lower",
    "higher",
    "nearest",
    "midpoint",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "median_unbiased",
    "normal_unbiased",
)
RNG = np.random.default_rng(5)
REAL = RNG.normal(size=(2, 3, 10)).astype(np.float32)
#: Rows with 0 to 10 numbers among nan.
RAGGED = RNG.normal(size=(11, 10)).astype(np.float32)
for row, numbers in enumerate(RAGGED):
    numbers[RNG.permutation(10)[row:]] = np.nan
SHARES = np.arange(21) / 20


def wide(x: Any) -> Any:
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.name in ("float16", "bfloat16", "float32") else x


def close(actual: Any, expected: Any, rtol: float = 3e-6) -> None:
    assert isinstance(actual, jnp.ndarray)
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(wide(actual), wide(expected), rtol=rtol, atol=rtol)


def quiet(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


# ------------------------------------------------------------------------------------ quantiles


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_quantile(method: str) -> None:
    # NumPy places float64 shares: what is whole but for rounding must be whole here too.
    expected = quiet(np.nanquantile, wide(RAGGED), SHARES, axis=1, method=method)
    close(jnp.nanquantile(RAGGED, SHARES, axis=1, method=method), expected)
    if method in METHODS[5:9]:  # the others are placed, or mixed, as "linear" or "hazen"
        expected = np.quantile(wide(REAL), SHARES, axis=-1, method=method)
        close(dt.jit(lambda x: jnp.quantile(x, SHARES, -1, method=method))(REAL), expected)


@pytest.mark.parametrize("axis", [None, (0, 2), -1], ids=str)
def test_axes_of_quantiles_without_nan(axis: Any) -> None:
    x = np.where(REAL > 1, np.nan, REAL)
    percents = np.array([20.0, 70.0])
    close(jnp.nanpercentile(x, percents, axis), np.nanpercentile(wide(x), percents, axis))
    close(jnp.nanmedian(x, axis, keepdims=True), np.nanmedian(wide(x), axis, keepdims=True))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "bool"])
def test_dtypes_of_nanmedian(dtype: str) -> None:
    x = (
        RNG.integers(-3, 4, (3, 4)) > 0 if dtype == "bool" else RNG.integers(-3, 4, (3, 4))
    ).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    result = jnp.nanmedian(x, axis=0)
    assert result.dtype.name == (dtype if dtype[-2:] in ("16", "32") else "float32")
    close(result, np.median(wide(x).astype(float), axis=0))


def test_nanmedian_of_little() -> None:
    close(jnp.nanmedian(np.zeros((0, 2)), axis=0), [np.nan, np.nan])
    close(jnp.nanmedian(3), 3.0)
    close(jnp.nanmedian(np.array([np.inf, np.nan, np.inf])), np.inf)


def test_transformations_of_nanquantile() -> None:
    def run(x: Any) -> Any:
        return jnp.nanquantile(x, np.array([0.3, 0.9]), method="hazen").sum()

    gradients = dt.jit(dt.vmap(dt.grad(run)))(RAGGED[5:9])
    assert (np.asarray(gradients)[np.isnan(RAGGED[5:9])] == 0).all()
    step = 1e-3 * RNG.normal(size=(4, 10))
    ends = [
        np.nanquantile(wide(RAGGED[5:9]) + s * step, [0.3, 0.9], axis=1, method="hazen").sum(0)
        for s in (1, -1)
    ]
    np.testing.assert_allclose((wide(gradients) * 2 * step).sum(1), ends[0] - ends[1], rtol=1e-3)


WEIGHTS = np.array([1.0, 2.0, 0.0, 4.0, 0.5])
FIVE = np.array([[1, 2, 4, 3, 0], [0, 1, 5, 2, 7], [3, 3, 3, 9, 1]], np.float32)


@pytest.mark.parametrize(
    "weights", [WEIGHTS, FIVE, np.array([1, 0, 0, 2, 1])], ids=["1", "2", "int"]
)
def test_weighted_quantiles(weights: Any) -> None:
    shares = np.array([0.0, 0.3, 0.55, 0.9, 1.0])
    options: Any = {"axis": 1, "method": "inverted_cdf", "keepdims": True}
    expected = np.quantile(FIVE, shares, weights=weights, **options)
    close(jnp.quantile(FIVE, shares, weights=weights, **options), expected)
    percent = jnp.nanpercentile(FIVE, 100 * shares, weights=weights, **options)
    close(percent, expected)


def test_weights_over_several_axes_and_without_nan() -> None:
    both = np.arange(15.0).reshape(5, 3)
    options: Any = {"axis": (1, 0), "method": "inverted_cdf"}
    close(
        jnp.percentile(FIVE, 30.0, weights=both, **options),
        np.percentile(FIVE, 30.0, weights=both, **options),
    )
    x = np.array([[5.0, np.nan, 1.0, 3.0], [np.nan] * 4, [1, 2, 3, 4]])
    w = np.array([1.0, 9.0, 1.0, 2.0])
    found = jnp.nanquantile(x, 0.5, 1, method="inverted_cdf", weights=w)
    close(found, [3.0, np.nan, 2.0])
    close(jnp.quantile(x, 0.5, 1, method="inverted_cdf", weights=w), [np.nan, np.nan, 2.0])
    for bad in (-w, 0 * w, np.where(w > 2, np.nan, w)):
        assert np.isnan(jnp.quantile(x[2], 0.5, method="inverted_cdf", weights=bad))


def test_shares_need_no_promotion() -> None:
    with dt.enable_x64(True), dt.numpy_dtype_promotion("strict"):
        for method in ("linear", "inverted_cdf"):
            assert jnp.quantile(FIVE, 0.5, method=method).dtype == jnp.float32


def test_shares_out_of_range_and_nan() -> None:
    close(jnp.nanquantile(FIVE[0], np.array([[-1.0], [2.0], [np.nan]])), [[0.0], [4.0], [np.nan]])


# ----------------------------------------------------------------------------------- histograms

X = np.array([3.0, 1.0, 2.0, 2.5, 2.5, 7.0, 1.0], np.float32)
Y = np.array([0.0, 1.0, 1.0, 2.0, 0.0, 3.0, 3.0], np.float32)
EDGES = np.array([1.0, 2.0, 3.0, 8.0], np.float32)
POINTS = np.stack([X, Y, Y + 1], 1)

HISTOGRAMS: dict[str, Callable[[Any], Any]] = {
    "integers": lambda m: m.histogram(np.array([3, 1, 2, 2, 7, 1], np.int32), bins=3),
    "bool": lambda m: quiet(m.histogram, np.array([True, False, True]), bins=2),
    "range": lambda m: m.histogram(X, bins=3, range=(1.5, 3)),
    "equal range": lambda m: m.histogram(X, bins=2, range=(2, 2)),
    "weights": lambda m: m.histogram(X, bins=3, weights=Y),
    "integer weights": lambda m: m.histogram(X, bins=3, weights=np.arange(7)),
    "complex weights": lambda m: m.histogram(X, bins=2, weights=Y * 1j),
    "density": lambda m: m.histogram(X, bins=EDGES, weights=Y, density=True),
    "edges": lambda m: m.histogram(X, bins=EDGES),
    "one edge": lambda m: m.histogram(X, bins=np.array([1.0])),
    "equal edges": lambda m: m.histogram(X, bins=np.array([1.0, 2.5, 2.5, 2.5, 7.0])),
    "constant": lambda m: m.histogram(np.array([2.0, 2.0]), bins=3),
    "nothing": lambda m: m.histogram(np.zeros(0), bins=3),
    "matrix": lambda m: m.histogram(X[:6].reshape(2, 3), bins=3, weights=np.ones((2, 3))),
    "nan": lambda m: m.histogram(np.array([1.0, np.nan, 3.0, np.inf]), bins=2, range=(0, 4)),
    "2d numbers": lambda m: m.histogram2d(X, Y, bins=(2, 3)),
    "2d edges": lambda m: m.histogram2d(X, Y, bins=np.array([0.0, 2.0, 8.0])),
    "2d both": lambda m: m.histogram2d(X, Y, bins=[2, np.array([0.0, 5.0])]),
    "2d density": lambda m: m.histogram2d(X, Y, bins=2, weights=Y, density=True),
    "3d numbers": lambda m: m.histogramdd(POINTS.astype(int), bins=[1, 2, 3], density=True),
    "3d range": lambda m: m.histogramdd(POINTS, bins=2, range=[(0, 2)] * 3),
    "no points": lambda m: m.histogramdd(np.zeros((0, 2)), bins=2),
    "only edges": lambda m: (m.histogram_bin_edges(X, bins=3),),
    "edges in a range": lambda m: (m.histogram_bin_edges(X, bins=10, range=(0, 1)),),
}


def flat(results: Any) -> list[Any]:
    return [part for r in results for part in (r if isinstance(r, list) else [r])]


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms(name: str) -> None:
    found, expected = flat(HISTOGRAMS[name](jnp)), flat(HISTOGRAMS[name](np))
    for actual, wanted in zip(found, expected, strict=True):
        close(actual, wanted, 2e-7)


def test_traced_histograms() -> None:
    run = dt.jit(lambda x, w, low: jnp.histogram(x, 3, range=(low, 4), weights=w))
    for actual, wanted in zip(
        run(X, Y, 1.0), np.histogram(X, 3, range=(1, 4), weights=Y), strict=True
    ):
        close(actual, wanted)
    mapped = dt.jit(dt.vmap(lambda x: jnp.histogram(x, 2)[0]))(POINTS.T)
    close(mapped, [np.histogram(x, 2)[0] for x in POINTS.T])
    gradient = dt.jit(dt.grad(lambda w: (jnp.histogram(X, EDGES, weights=w)[0] ** 2).sum()))(Y)
    counts = np.histogram(X, EDGES, weights=Y)[0]
    close(gradient, 2 * counts[np.digitize(X, EDGES) - 1])
    close(jnp.histogram(X, jnp.array(3), range=jnp.array([0, 4]))[0], [2.0, 3.0, 1.0])


def test_dtypes_of_histograms() -> None:
    many = np.ones(3000, np.float16)
    counts, edges = jnp.histogram(many, bins=1, range=(0, 2))
    assert (counts.dtype, edges.dtype) == (jnp.float32, jnp.float16)
    close(counts, [3000.0])  # where float16 would have stopped at 2,048
    counts, _ = jnp.histogram(many, bins=1, range=(0, 2), weights=many)
    close(counts, [3000.0])
    close(jnp.histogram2d(Y, Y, 1, weights=np.full(7, 100, np.int8))[0], [[700]])
    assert jnp.histogram(X.astype(int))[1].dtype == jnp.float32
    assert jnp.histogramdd(POINTS)[0].dtype == jnp.int32
    with dt.enable_x64(True):
        assert jnp.histogram(X.astype(int))[0].dtype == jnp.float64


def test_every_element_is_in_the_bin_that_edges_say() -> None:
    x = RNG.normal(size=5000).astype(np.float32)
    counts, edges = jnp.histogram(x, bins=37)
    np.testing.assert_array_equal(counts, np.histogram(x, np.asarray(edges))[0])
    np.testing.assert_allclose(edges, np.histogram_bin_edges(wide(x), 37), rtol=3e-7, atol=3e-7)


# --------------------------------------------------------------------- covariances, correlations

M = np.array([[1, 2, 4, 3], [0, 1, 5, 2], [3, 3, 3, 9]], np.float32)
FREQUENCIES, IMPORTANCE = np.array([1, 2, 0, 3]), np.array([1, 2, 0.5, 3])

COVARIANCES: dict[str, Callable[[Any], Any]] = {
    "matrix": lambda m: m.cov(M),
    "two": lambda m: m.cov(M, M[0]),
    "vectors": lambda m: m.cov(M[0], M[1], rowvar=False),
    "columns": lambda m: m.cov(M.T, 2 * M.T, rowvar=False),
    "one": lambda m: m.cov(M[0]),
    "scalar": lambda m: quiet(m.cov, 3.0),
    "biased": lambda m: m.cov(M, bias=True),
    "ddof": lambda m: m.cov(M, ddof=2),
    "too few": lambda m: quiet(m.cov, M, ddof=5),
    "one observation": lambda m: quiet(m.cov, M[:, :1]),
    "no observations": lambda m: quiet(m.cov, M[:, :0]),
    "no variables": lambda m: m.cov(M[:0]),
    "frequencies": lambda m: m.cov(M, fweights=FREQUENCIES),
    "weights": lambda m: m.cov(M, aweights=IMPORTANCE),
    "both": lambda m: m.cov(M, fweights=FREQUENCIES, aweights=IMPORTANCE),
    "both, ddof": lambda m: m.cov(M, fweights=FREQUENCIES, aweights=IMPORTANCE, ddof=0),
    "complex": lambda m: m.cov(M[:2] + 1j * M[1:], aweights=IMPORTANCE),
    "correlation": lambda m: m.corrcoef(M),
    "correlation of columns": lambda m: m.corrcoef(M, rowvar=False),
    "correlation of one": lambda m: m.corrcoef(M[0]),
    "correlation of constants": lambda m: quiet(m.corrcoef, np.array([[1.0, 1, 1], [1, 2, 3]])),
    "correlation of complex": lambda m: m.corrcoef(M[:2] + 1j * M[1:]),
}


@pytest.mark.parametrize("name", COVARIANCES)
def test_covariances(name: str) -> None:
    close(COVARIANCES[name](jnp), COVARIANCES[name](np), 1e-6)


def test_dtypes_of_covariances() -> None:
    for dtype in ("float16", "bfloat16"):
        x = (M + 100).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))  # squares do not fit
        assert jnp.cov(x).dtype == dtype
        close(jnp.cov(x), np.cov(M), 1e-2)
    assert jnp.cov(M.astype(int)).dtype == jnp.float32
    assert jnp.corrcoef(M, dtype="complex64").dtype == jnp.complex64
    assert np.abs(np.asarray(jnp.corrcoef(RNG.normal(size=(20, 5))))).max() <= 1
    close(jnp.cov(M > 2), np.cov((M > 2).astype(float)))
    assert np.isnan(np.asarray(jnp.cov(M, aweights=-IMPORTANCE))).all()


def test_transformations_of_covariances() -> None:
    stack = np.stack([M, M + M**2])
    close(dt.jit(dt.vmap(jnp.corrcoef))(stack), [np.corrcoef(m) for m in stack], 1e-6)
    gradient = dt.jit(dt.grad(lambda x: jnp.cov(x)[0, 1]))(M)
    centred = wide(M) - wide(M).mean(1, keepdims=True)
    close(gradient, np.stack([centred[1], centred[0], 0 * centred[0]]) / 3)


A = np.array([1, 2, 3, 4, 5], np.float32)
V = np.array([1, 0, 2], np.float32)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolutions(name: str, mode: str) -> None:
    function, reference = getattr(jnp, name), getattr(np, name)
    x, y = A * 1j + 1, V + 1j * V[::-1]
    for a, v in ((A, V[:2]), (V[1:], A), (x, y), (y, x)):
        close(function(a, v, mode), reference(a, v, mode))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16"])
def test_dtypes_of_convolutions(dtype: str) -> None:
    x, y = (v.astype(np.dtype(getattr(ml_dtypes, dtype, dtype))) for v in (A, V))
    floating = dtype in ("float16", "bfloat16")
    found = jnp.convolve(x, y)
    assert found.dtype.name == (dtype if floating else "float32")
    close(found, np.convolve(wide(x).astype(float), wide(y).astype(float)))
    out = "float32" if floating else "int32"
    exact = jnp.correlate(x, y, preferred_element_type=out)
    assert exact.dtype.name == out
    close(exact, np.correlate(wide(x).astype(out), wide(y).astype(out)))
    if dtype in ("bool", "int8"):
        half = jnp.convolve(x, y, preferred_element_type="bfloat16")
        assert half.dtype.name == "bfloat16"
        close(half, np.asarray(found).astype(half.dtype))


def test_transformations_of_convolutions() -> None:
    x, y = RNG.normal(size=(2, 6)), RNG.normal(size=3)
    mapped = dt.jit(dt.vmap(lambda v: jnp.convolve(v, y, "same", precision="highest")))(x)
    close(mapped, [np.convolve(v, y, "same") for v in x])
    gradient = dt.jit(dt.grad(lambda v: (jnp.correlate(v, y) ** 2).sum()))(x[0])
    close(gradient, 2 * np.convolve(np.correlate(x[0], y), y))


# --------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.quantile(X, 0.5, method="foo"), ValueError, "method must be.*hazen.*'foo'"),
        (lambda: jnp.quantile(X, 0.5, weights=X), ValueError, "weights with method='inverted_cdf'"),
        (
            lambda: jnp.quantile(FIVE, 0.5, 1, method="inverted_cdf", weights=X),
            ValueError,
            r"quantile: weights must have the shape \(3, 5\).*or \(5,\).*got \(7,\)",
        ),
        (
            lambda: jnp.nanquantile(FIVE, 0.5, method="inverted_cdf", weights=WEIGHTS),
            ValueError,
            r"weights must have the shape \(3, 5\), the shape of a; got",
        ),
        (lambda: jnp.nanmedian(X * 1j), TypeError, "nanmedian is defined for real numbers"),
        (lambda: jnp.nanmedian([1.0]), TypeError, "nanmedian.*list"),
        (lambda: jnp.nanquantile(X, 0.5, out=X), NotImplementedError, "nanquantile.*out="),
        (lambda: jnp.nanquantile(X, 0.5, axis=1), ValueError, "axis 1 is out of bounds"),
        (lambda: jnp.histogram(X, bins="auto"), TypeError, "bins must be a number.*'auto'"),
        (lambda: jnp.histogram(X, bins=[1.0, 2.0]), TypeError, r"list.*asarray\(bins\)"),
        (lambda: jnp.histogram(X, bins=0), ValueError, "number of bins must be positive, got 0"),
        (lambda: jnp.histogram(X, bins=M), ValueError, r"vector of edges, got shape \(3, 4\)"),
        (lambda: jnp.histogram(X, bins=np.zeros(0)), ValueError, "at least one edge"),
        (lambda: jnp.histogram(X, range=(3, 1)), ValueError, r"smaller number first, got \(3, 1\)"),
        (lambda: jnp.histogram(X, range=(1, np.inf)), ValueError, "range must be finite"),
        (lambda: jnp.histogram(X, range=(1, 2, 3)), ValueError, "pair of numbers, got 3"),
        (lambda: jnp.histogram(X, range=A), ValueError, r"pair of numbers, got shape \(5,\)"),
        (lambda: jnp.histogram(X, weights=A), ValueError, r"one entry for each.*\(7,\).*\(5,\)"),
        (lambda: jnp.histogram(X * 1j), TypeError, "histogram is defined for real numbers"),
        (
            lambda: dt.jit(lambda b: jnp.histogram(X, bins=b))(3),
            dt.errors.ConcretizationTypeError,
            "the argument bins of histogram",
        ),
        (lambda: jnp.histogram2d(X, A), ValueError, r"vectors of equal size.*\(7,\) and \(5,\)"),
        (lambda: jnp.histogramdd(X), ValueError, r"matrix.*sample\[:, None\]"),
        (lambda: jnp.histogramdd((X, Y)), TypeError, "sample.*tuple"),
        (
            lambda: jnp.histogramdd(POINTS, bins=[1, 2]),
            ValueError,
            "each of the 3 dimensions, got 2",
        ),
        (lambda: jnp.histogramdd(POINTS, range=[None]), ValueError, "range.*3 dimensions, got 1"),
        (lambda: jnp.histogramdd(POINTS, weights=A), ValueError, "weights.*sample"),
        (lambda: jnp.cov(M[None]), ValueError, "cov: m must have two dimensions at most"),
        (lambda: jnp.cov(M, M[None]), ValueError, "cov: y must have two dimensions at most"),
        (lambda: jnp.cov(M, M[:, :2]), ValueError, "equally many observations, got 4 and 2"),
        (lambda: jnp.cov(M, ddof=0.5), TypeError, "cov requires ddof to be an integer"),
        (lambda: jnp.cov(M, fweights=IMPORTANCE), TypeError, "fweights.*integers"),
        (lambda: jnp.cov(M, aweights=A), RuntimeError, r"aweights must be a vector.*\(5,\)"),
        (lambda: jnp.cov(M, dtype=int), TypeError, "dtype must be one of floats or complex"),
        (lambda: jnp.corrcoef([[1.0]]), TypeError, "corrcoef.*list"),
        (lambda: jnp.convolve(A, V, "SAME"), ValueError, "mode must be 'full', 'same' or 'valid'"),
        (lambda: jnp.convolve(A, M), ValueError, r"convolve needs vectors.*\(5,\) and \(3, 4\)"),
        (lambda: jnp.correlate(A, V[:0]), ValueError, "one element at least"),
        (lambda: jnp.correlate([1.0], V), TypeError, "correlate.*list"),
        (
            lambda: jnp.convolve(A, V, preferred_element_type=int),
            TypeError,
            r"convolve: products of float32 cannot be summed.*astype\(int32\)",
        ),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
