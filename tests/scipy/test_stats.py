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
        (lambda: stats.gaussian_kde(np.ones(1)), ValueError, "two elements"),
        (lambda: stats.gaussian_kde(np.ones((2, 2, 2))), ValueError, "dataset must have"),
        (lambda: stats.gaussian_kde(np.ones(2), "x"), ValueError, "bw_method"),
        (lambda: stats.gaussian_kde(np.ones(2), [1, 2]), ValueError, "bw_method"),
        (lambda: stats.gaussian_kde(np.ones(2), weights=np.ones(3)), ValueError, "weights"),
        (lambda: stats.gaussian_kde(np.ones(2) * 1j), NotImplementedError, "complex"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
