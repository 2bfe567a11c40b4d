"""Sorting, searching and taking elements against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

RNG = np.random.default_rng(2)
SPECIAL = np.array([1.0, np.nan, -0.0, 0.0, 3.0, -np.inf, np.inf, 2.0, -1.0], np.float32)
DTYPES = ("float32", "float16", "bfloat16", "int8", "uint8", "int32", "uint32", "bool", "complex64")


def make(dtype: str, shape: tuple[int, ...] = (3, 7)) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(7)  # of its own, so that values do not depend on which tests run
    values = rng.integers(0, 5, size=shape)
    if dtype == "complex64":
        return (values + 1j * rng.integers(-2, 3, size=shape)).astype(dtype)
    return values.astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))


def same(actual: Any, expected: Any) -> None:
    assert isinstance(actual, jnp.ndarray)
    assert actual.shape == np.shape(expected)
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort(dtype: str, axis: Any) -> None:
    x = make(dtype)
    reference = x.astype(np.float32) if dtype == "bfloat16" else x
    for run in (lambda v: v, dt.jit(lambda v: v)):
        value = run(jnp.asarray(x))
        same(jnp.sort(value, axis).astype(reference.dtype), np.sort(reference, axis))
        order = np.argsort(reference, axis, kind="stable")
        same(jnp.argsort(value, axis), order)
        assert jnp.argsort(value, axis).dtype == jnp.int32
        same(value.sort(axis).astype(reference.dtype), np.sort(reference, axis))
        same(value.argsort(axis), order)
    falling = np.flip(np.sort(reference, axis), axis if axis is not None else 0)
    same(jnp.sort(x, axis, descending=True).astype(reference.dtype), falling)
    flat = reference if axis is not None else reference.ravel()
    along = axis if axis is not None else 0
    backwards = np.flip(flat, along)
    size = flat.shape[along]
    stable = size - 1 - np.flip(np.argsort(backwards, along, kind="stable"), along)
    same(jnp.argsort(x, axis, descending=True), stable)


def test_sort_of_special_values() -> None:
    same(jnp.sort(SPECIAL), np.sort(SPECIAL))
    same(jnp.argsort(SPECIAL), np.argsort(SPECIAL, kind="stable"))
    assert np.isnan(np.asarray(jnp.sort(SPECIAL, descending=True))[0])
    same(jnp.sort(np.zeros((2, 0))), np.zeros((2, 0)))
    same(jnp.sort(np.ones(1)), [1.0])
    keys = RNG.integers(0, 3, (3, 8))
    same(jnp.lexsort(tuple(keys)), np.lexsort(tuple(keys)))
    same(jnp.lexsort(keys), np.lexsort(keys))
    mapped = dt.vmap(jnp.sort)(make("float32"))
    same(mapped, np.sort(np.asarray(mapped), -1))


@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex64"])
def test_partition(dtype: str) -> None:
    x = make(dtype)
    for kth, axis in ((2, -1), (-1, 0), (4, None)):
        expected = np.sort(x, axis)
        along = 0 if axis is None else axis
        found, places = jnp.partition(x, kth, axis), jnp.argpartition(x, kth, axis)
        assert found.dtype == dtype
        assert places.dtype == jnp.int32
        flat = x.ravel() if axis is None else x
        same(found, np.take_along_axis(flat, np.asarray(places), along))
        same(jnp.take(found, kth, along), np.take(expected, kth, along))
        same(jnp.sort(found, along), expected)
        before = np.take(np.asarray(found), range(kth % expected.shape[along]), along)
        assert (before <= np.take(expected, [kth], along)).all()
    same(jnp.asarray(x).argpartition(0), jnp.argpartition(x, 0))


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "complex64"])
def test_sort_complex(dtype: str) -> None:
    x = make(dtype)
    result = jnp.sort_complex(x)
    assert result.dtype == jnp.complex64
    same(result, np.sort(x.astype(np.complex64)))
    with dt.enable_x64(True), dt.numpy_dtype_promotion("strict"):
        assert jnp.sort_complex(np.array([2, 1])).dtype == jnp.complex128


def test_searching_and_membership_of_complex_numbers() -> None:
    nan = np.nan
    x = np.array([1, 1 + 1j, 1 - 2j, complex(1, nan), 2, complex(nan, 0), -1j], np.complex64)
    ordered = jnp.sort(x)
    same(jnp.searchsorted(ordered, ordered), np.arange(7))
    same(jnp.searchsorted(ordered, ordered, "right"), np.arange(1, 8))
    same(jnp.searchsorted(ordered, x[2:4] + 1, method="compare_all"), [4, 6])
    same(jnp.isin(x, x[::2]), np.isin(x, x[::2]))
    parts = [0.0, 1.0, -1.0, np.inf, -np.inf, nan]
    every = RNG.permutation(np.array([complex(a, b) for a in parts for b in parts], np.complex64))
    same(jnp.argsort(every), np.argsort(every, kind="stable"))
    ordered = np.sort(every)
    for side in ("left", "right"):
        for method in ("scan", "compare_all"):
            found = jnp.searchsorted(ordered, every, side, method=method)
            same(found, np.searchsorted(ordered, every, side))


@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nanargmax", "nanargmin"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_extremes_without_nan(name: str, dtype: str) -> None:
    x = make(dtype).astype(dtype)
    x[0, ::2] = np.nan
    x[1, 3] = np.nan
    if dtype == "complex64":
        x[2, 4] = complex(9, np.nan)
        x[2, 5] = complex(np.nan, -9)
    for axis in (None, 0, 1):
        expected = np.asarray(getattr(np, name)(x, axis))
        for run in (getattr(jnp, name), dt.jit(getattr(jnp, name), static_argnums=1)):
            same(run(x, axis), expected)


def test_gradient_of_sort() -> None:
    x = np.array([3.0, 1.0, 2.0])
    gradient = dt.grad(lambda v: (jnp.sort(v) * jnp.arange(3.0)).sum())(x)
    same(gradient, [2.0, 0.0, 1.0])


@pytest.mark.parametrize("mode", [None, "fill", "clip", "wrap"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_take(axis: Any, mode: Any) -> None:
    x = make("float32", (3, 4, 2))
    size = x.size if axis is None else x.shape[axis]
    for indices in (np.array([0, size - 1, -1]), np.array([[1, 0], [0, 1]]), np.int32(1), 0):
        expected = np.take(x, indices, axis, mode="clip" if mode == "clip" else "wrap")
        same(jnp.take(x, indices, axis, mode=mode), expected)
        same(dt.jit(lambda v, i: jnp.take(v, i, axis, mode=mode))(x, indices), expected)
        same(jnp.asarray(x).take(jnp.asarray(indices), axis, mode=mode), expected)
    far = np.array([size, -size - 1, 2 * size + 1])
    result = jnp.take(x, far, axis, mode=mode)
    if mode in (None, "fill"):
        assert np.isnan(np.asarray(result)).all()
        assert (np.asarray(jnp.take(x, far, axis, fill_value=7.0)) == 7).all()
    else:
        same(result, np.take(x, far, axis, mode=mode))


def test_take_of_integers_out_of_bounds() -> None:
    assert jnp.take(jnp.arange(3), jnp.array([5])).tolist() == [-(2**31)]
    assert jnp.take(jnp.arange(3, dtype="uint8"), jnp.array([5])).tolist() == [255]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_axis(axis: int) -> None:
    x = make("float32", (3, 4))
    order = np.argsort(x, axis)
    for function in (jnp.take_along_axis, dt.jit(jnp.take_along_axis, static_argnums=2)):
        same(function(x, order, axis), np.take_along_axis(x, order, axis))
        same(function(x, order - x.shape[axis], axis), np.take_along_axis(x, order, axis))
    one = np.zeros((1, 1), int)
    same(jnp.take_along_axis(x, one, axis), np.take_along_axis(x, one, axis))
    assert np.isnan(np.asarray(jnp.take_along_axis(x, one + 9, axis))).all()
    same(
        jnp.take_along_axis(x, np.array([5, 0]), None),
        np.take_along_axis(x, np.array([5, 0]), None),
    )
    gradient = dt.grad(lambda v: (jnp.take_along_axis(v, order, axis) ** 2).sum())(x)
    np.testing.assert_allclose(np.asarray(gradient), 2 * x)


def test_nonzero() -> None:
    x = np.array([[1, 0, 2], [0, 0, 3]])
    for value in (x, x.astype(bool), x.astype(np.float32), x[:0], x[:, 1]):
        for actual, expected in zip(jnp.nonzero(value), np.nonzero(value), strict=True):
            same(actual, expected)
        same(jnp.flatnonzero(value), np.flatnonzero(value))
        same(jnp.argwhere(value), np.argwhere(value))
        for actual, expected in zip(jnp.where(value), np.where(value), strict=True):
            same(actual, expected)
    for size in (0, 2, 3, 5):
        rows, columns = dt.jit(lambda v: jnp.nonzero(v, size=size, fill_value=(7, -1)))(x)  # noqa: B023  # called at once
        same(rows, [*np.nonzero(x)[0], 7, 7][:size])
        same(columns, [*np.nonzero(x)[1], -1, -1][:size])
        same(jnp.flatnonzero(x, size=size), [0, 2, 5, 0, 0][:size])
        same(jnp.argwhere(x, size=size)[:3], np.argwhere(x)[:size])
    same(jnp.flatnonzero(np.zeros(3), size=2, fill_value=9), [9, 9])
    same(jnp.flatnonzero(np.zeros(0), size=2, fill_value=9), [9, 9])
    assert jnp.argwhere(np.float32(2)).shape == (1, 0)
    same(jnp.asarray(x).nonzero()[0], np.nonzero(x)[0])
    same(jnp.compress(np.array([True, False, True]), x, axis=1), x[:, [0, 2]])
    same(jnp.compress(np.array([False, True]), np.arange(3), size=2, fill_value=9), [1, 9])
    same(jnp.extract(x > 1, x), x[x > 1])


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side: str, method: str) -> None:
    for a in (np.array([1, 3, 3, 5]), np.array([]), np.array([2.0]), np.sort(RNG.normal(size=37))):
        v = np.array([[0.0, 1, 2, 3, 4], [5, 6, -1, np.inf, np.nan]], np.float32)
        a = a.astype(np.float32)
        same(jnp.searchsorted(a, v, side, method=method), np.searchsorted(a, v, side))
    with_nan = np.array([1.0, 2.0, np.nan, np.nan], np.float32)
    same(jnp.searchsorted(with_nan, v, side, method=method), np.searchsorted(with_nan, v, side))
    shuffled = np.array([5, 1, 3])
    order = np.argsort(shuffled)
    same(
        jnp.searchsorted(shuffled, 4, side, order, method=method),
        np.searchsorted(shuffled, 4, side, order),
    )
    same(dt.jit(lambda x: jnp.searchsorted(x, 2))(np.arange(5)), 2)
    same(jnp.arange(5).searchsorted(jnp.array([1, 9])), [1, 5])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.sort(np.float32(1)), ValueError, "sort.*rank 1"),
        (lambda: jnp.sort(np.ones(3), axis=1), ValueError, "sort.*out of bounds"),
        (lambda: jnp.sort(np.ones(3), kind="quicksort"), TypeError, "kind"),
        (lambda: jnp.argsort([3, 1]), TypeError, "argsort.*list"),
        (lambda: jnp.lexsort((np.ones(2), np.ones(3))), ValueError, "one shape"),
        (lambda: jnp.partition(np.ones(3), 3), ValueError, "partition: kth=3.*from -3 to 2"),
        (lambda: jnp.argpartition(np.ones(3), -4), ValueError, "argpartition: kth=-4"),
        (lambda: jnp.partition(np.ones(3), (0, 1)), TypeError, "partition.*kth.*tuple"),
        (lambda: jnp.partition(np.float32(1), 0), ValueError, "partition.*rank 1"),
        (lambda: jnp.sort_complex(np.float32(1)), ValueError, "sort_complex.*rank 1"),
        (lambda: jnp.take(np.ones(3), np.array([0.5])), TypeError, "take.*integer"),
        (lambda: jnp.take(np.ones(3), np.array([0]), axis=2), ValueError, "out of bounds"),
        (lambda: jnp.take(np.ones(3), np.array([0]), mode="raise"), ValueError, "raise"),
        (lambda: jnp.take(np.ones(3), [0, 1]), TypeError, "indices.*list"),
        (lambda: jnp.take_along_axis(np.ones((3, 3)), np.array([0]), 0), ValueError, "rank"),
        (lambda: jnp.take_along_axis(np.ones((3, 3)), np.ones((3, 3)), 0), TypeError, "integer"),
        (lambda: jnp.nonzero(np.float32(1)), ValueError, "rank 1"),
        (lambda: dt.jit(jnp.nonzero)(np.ones(3)), dt.errors.ConcretizationTypeError, "size="),
        (
            lambda: dt.jit(lambda x: jnp.where(x))(np.ones(3)),
            dt.errors.ConcretizationTypeError,
            "size=",
        ),
        (lambda: jnp.searchsorted(np.ones((2, 2)), 1), ValueError, "vector"),
        (lambda: jnp.searchsorted(np.ones(2), 1, side="middle"), ValueError, "side"),
        (lambda: jnp.searchsorted(np.ones(2), 1, method="foo"), ValueError, "method"),
        (lambda: jnp.nonzero(np.ones(2), size=-1), ValueError, "nonzero: size"),
        (lambda: jnp.select(None, [SPECIAL]), TypeError, "select.*condlist"),
        (lambda: jnp.select([SPECIAL > 1], 1.0), TypeError, "select.*choicelist"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
