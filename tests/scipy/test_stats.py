"""Ranks, modes, standard errors and estimated densities against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.scipy import stats

pytestmark = pytest.mark.tables

NAN = np.nan
TIES = np.random.default_rng(0).integers(0, 5, (4, 3, 7))
WITH_NAN = np.where(TIES[:, :, :3] == 2, NAN, TIES[:, :, :3].astype("float32"))


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_ranks(method: str, axis: int | None) -> None:
    found = stats.rankdata(TIES, method, axis=axis)
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, scipy.stats.rankdata(TIES, method, axis=axis))
    if method == "average":
        np.testing.assert_array_equal(
            stats.rankdata(WITH_NAN, axis=axis), scipy.stats.rankdata(WITH_NAN, axis=axis)
        )


def test_ranks_of_few_elements() -> None:
    for x in (np.zeros(0), np.zeros((0, 2)), np.float32(3)):
        assert stats.rankdata(x).shape == (np.size(x),)
    assert stats.rankdata(np.zeros((0, 2)), axis=0).shape == (0, 2)
    np.testing.assert_array_equal(stats.rankdata(np.array([True, False])), [2, 1])
    with dt.enable_x64(True):
        assert stats.rankdata(np.float32([2, 1])).dtype == jnp.float64


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_modes(axis: int | None, keepdims: bool) -> None:
    for x in (TIES.astype("int8"), WITH_NAN.astype("float32")):
        found = stats.mode(x, axis, keepdims=keepdims)
        expected = scipy.stats.mode(x, axis=axis, keepdims=keepdims)
        assert found.mode.dtype == x.dtype
        assert found.count.dtype == jnp.int32
        np.testing.assert_array_equal(found.mode, expected.mode)
        np.testing.assert_array_equal(found.count, expected.count)


def test_modes_of_few_elements() -> None:
    for shape in ((0,), (0, 3)):
        found = stats.mode(jnp.zeros(shape, int))
        np.testing.assert_array_equal(found.mode, np.full(shape[1:], NAN))
        np.testing.assert_array_equal(found.count, np.zeros(shape[1:]))
    assert [float(x) for x in stats.mode(2.0)] == [2, 1]
    # nan is an element like others.
    assert [float(x) for x in stats.mode(np.array([NAN, 2, NAN]))][1] == 2


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("policy", ["propagate", "omit"])
def test_standard_errors(axis: int | None, policy: str) -> None:
    for x, ddof in ((WITH_NAN.astype("float32"), 1), (TIES, 0)):
        found = stats.sem(x, axis, ddof, policy)
        with np.errstate(all="ignore"):
            wide = np.ma.masked_invalid(x.astype(float)) if policy == "omit" else x.astype(float)
            number = np.sum(wide == wide, axis=axis)
            expected = np.std(wide, axis=axis, ddof=ddof) / np.sqrt(number)
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, np.ma.filled(expected, NAN), 1e-6)
    assert stats.sem(TIES, axis, keepdims=True).ndim == 3


def test_standard_errors_at_edges() -> None:
    assert np.isnan([stats.sem(x) for x in (np.zeros(0), np.ones(1), 1.0)]).all()
    assert stats.sem(np.array([1, 2], "float16")).dtype == jnp.float16
    np.testing.assert_allclose(stats.sem(np.array([1j, 2])), 1.118034, 1e-6)


@pytest.mark.parametrize(
    ("d", "method"), [(1, None), (2, "silverman"), (1, 0.4), (2, lambda kde: 0.1 * kde.neff)]
)
def test_estimated_densities(d: int, method: Any) -> None:
    rng = np.random.default_rng(1)
    data, weights = rng.normal(size=(d, 9)).astype("float32"), rng.uniform(size=9)
    weights = None if method is None else weights.astype("float32")
    found = stats.gaussian_kde(data, method, weights)
    expected = scipy.stats.gaussian_kde(data.astype(float), method, weights)
    assert (found.d, found.n) == (expected.d, expected.n)
    for name in ("dataset", "weights", "neff", "covariance", "inv_cov"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), 3e-5, 1e-5)
    if not isinstance(method, str | None):
        return
    points = rng.normal(size=(d, 6)).astype("float32")
    np.testing.assert_allclose(found(points), expected(points), 3e-5)
    np.testing.assert_allclose(found.logpdf(points * 9), expected.logpdf(points * 9), 1e-4)
    mean, cov = np.ones(d, "float32"), 2 * np.eye(d, dtype="float32")
    product = found.integrate_gaussian(mean, cov)
    np.testing.assert_allclose(product, expected.integrate_gaussian(mean, cov), 3e-5)
    other = (stats.gaussian_kde(data[:, :5] + 1), scipy.stats.gaussian_kde(data[:, :5] + 1.0))
    product = found.integrate_kde(other[0])
    np.testing.assert_allclose(product, expected.integrate_kde(other[1]), 3e-5)
    if d == 1:
        for low, high in ((-1, 2), (0.5, 9), (-np.inf, 0)):
            box = found.integrate_box_1d(low, high)
            np.testing.assert_allclose(box, expected.integrate_box_1d(low, high), 3e-5)
    if method is None:
        # A tree: an argument of compiled functions.
        np.testing.assert_allclose(
            dt.jit(lambda k, p: k.pdf(p))(found, points), found(points), 1e-6
        )


def test_numbers_of_an_estimated_density() -> None:
    data = np.array([[0.0, 4, 5], [1, 1, 3]], "float32")
    density = stats.gaussian_kde(data, 0.1, np.float32([0.5, 0.25, 0.25]))
    drawn = np.asarray(density.resample(dt.random.key(0), (100, 80)))
    assert drawn.shape == (2, 100, 80)
    near = abs(drawn[..., None] - data[:, None, None]).max(0) < 1
    np.testing.assert_allclose(near.mean((0, 1)), [0.5, 0.25, 0.25], atol=0.02)
    one = density.resample(dt.random.key(1))
    assert (one.shape, one.dtype) == ((2,), jnp.float32)


KDE = stats.gaussian_kde(np.array([[0.0, 4, 5], [1, 1, 3]], "float32"))
LINE = stats.gaussian_kde(np.array([0.0, 4, 5], "float32"))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: stats.rankdata([1, 2]), TypeError, "rankdata requires its argument a"),
        (lambda: stats.rankdata(TIES, "first"), ValueError, "rankdata: method"),
        (lambda: stats.rankdata(TIES, axis=3), ValueError, "rankdata: axis 3"),
        (lambda: stats.rankdata(TIES, nan_policy="omit"), NotImplementedError, "rankdata"),
        (lambda: stats.mode(TIES, nan_policy="raise"), NotImplementedError, "mode"),
        (lambda: stats.mode(TIES, nan_policy="x"), ValueError, "mode: nan_policy"),
        (lambda: stats.mode(TIES, axis=(0, 1)), TypeError, "mode requires axis"),
        (lambda: stats.sem(TIES, nan_policy="raise"), ValueError, "sem: nan_policy"),
        (lambda: stats.sem(1.0, axis=2), ValueError, "sem: axis 2"),
        (lambda: stats.sem(TIES, ddof="one"), TypeError, "ddof"),
        (lambda: stats.gaussian_kde(np.ones(1)), ValueError, "two elements"),
        (lambda: stats.gaussian_kde(np.ones((2, 2, 2))), ValueError, "dataset must have"),
        (lambda: stats.gaussian_kde(np.ones(2), "x"), ValueError, "bw_method"),
        (lambda: stats.gaussian_kde(np.ones(2), [1, 2]), ValueError, "bw_method"),
        (lambda: stats.gaussian_kde(np.ones(2), weights=np.ones(3)), ValueError, "weights"),
        (lambda: stats.gaussian_kde(np.ones(2) * 1j), NotImplementedError, "complex"),
        (lambda: KDE(np.ones((3, 2))), ValueError, "points must have the shape"),
        (lambda: LINE(1j), NotImplementedError, "complex"),
        (lambda: KDE.integrate_gaussian(0.0, 1.0), ValueError, "mean must have"),
        (lambda: KDE.integrate_box_1d(0, 1), ValueError, "one dimension"),
        (lambda: KDE.integrate_box(0, 1), NotImplementedError, "integrate_box"),
        (lambda: KDE.integrate_kde(LINE), ValueError, "same number"),
        (lambda: KDE.integrate_kde(3), TypeError, "gaussian_kde, got int"),
        (lambda: KDE.set_bandwidth(), NotImplementedError, "set_bandwidth"),
        (lambda: KDE.resample(3), TypeError, "key"),
        (lambda: KDE.resample(dt.random.key(0), "x"), TypeError, "shape"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
