"""sort, sort_key_val and top_k."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail import lax, random

RANDOM = np.random.default_rng(0)
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, -np.nan, 1.0, -0.0, 0.0] * 20, np.float32)
bfloat16 = np.dtype(ml_dtypes.bfloat16)


def bits(x: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(x)
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.itemsize < 16 else array


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_special_values_keep_their_bits_and_order(dtype: str) -> None:
    """All NaNs are equal and last, -0.0 equals 0.0, and equal elements keep their order."""
    for x in (SPECIAL.astype(dtype), SPECIAL[:9].astype(dtype)):
        positions = np.arange(len(x), dtype=np.int32)
        order = np.argsort(np.asarray(x, np.float64), kind="stable")
        with dt.enable_x64(True):
            alone = lax.sort(x)
            values, found = lax.sort_key_val(x, positions)
        assert np.asarray(found).tolist() == order.tolist()
        assert bits(values).tolist() == bits(x[order]).tolist()
        assert bits(alone).tolist() == bits(x[order]).tolist()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("size", [7, 400])
def test_integers(dtype: str, size: int) -> None:
    if dtype == "bool":
        x = RANDOM.integers(0, 2, size).astype(bool)
    else:
        limits = np.iinfo(dtype)
        x = RANDOM.integers(limits.min, limits.max, size, dtype=dtype, endpoint=True)
        x[:2] = limits.min, limits.max
        x[3:5] = limits.max, limits.min
    order = np.argsort(x, kind="stable")
    with dt.enable_x64(True):
        assert np.asarray(lax.sort(x)).tolist() == x[order].tolist()
        _, found = lax.sort_key_val(x, np.arange(size))
    assert np.asarray(found).tolist() == order.tolist()


@pytest.mark.parametrize("dimension", [0, 1, 2, -1])
def test_dimensions(dimension: int) -> None:
    x = RANDOM.normal(size=(5, 12, 7)).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(lax.sort(x, dimension)), np.sort(x, dimension))
    keys, values, other = lax.sort((x, -x, x > 0), dimension=dimension)
    want = np.sort(x, dimension)
    np.testing.assert_array_equal(np.asarray(keys), want)
    np.testing.assert_array_equal(np.asarray(values), -want)
    np.testing.assert_array_equal(np.asarray(other), want > 0)


def test_several_keys() -> None:
    first = RANDOM.integers(0, 4, 200).astype(np.float32)
    second = RANDOM.integers(0, 4, 200)
    positions = np.arange(200)
    for keys in (1, 2, 3):
        found = lax.sort((first, second, positions), num_keys=keys)
        columns = [first, second, positions][:keys]
        order = np.lexsort(columns[::-1])
        assert np.asarray(found[2]).tolist() == order.tolist()


def test_complex_numbers() -> None:
    x = np.array([1 + 1j, 1 - 1j, 0 + 2j, -0.0 + 1j, 2])
    assert lax.sort(x).tolist() == np.sort(x).tolist()
    parts = [0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    x = RANDOM.permutation(np.array([complex(a, b) for a in parts for b in parts], np.complex64))
    got, want = np.asarray(lax.sort(x)), np.sort(x)
    np.testing.assert_array_equal(got.real, want.real)
    np.testing.assert_array_equal(got.imag, want.imag)


def test_random_keys_go_along() -> None:
    keys = random.split(random.key(0), 3)
    order, moved = lax.sort((np.array([2, 0, 1]), keys))
    assert order.tolist() == [0, 1, 2]
    data = np.asarray(random.key_data(keys))
    np.testing.assert_array_equal(np.asarray(random.key_data(moved)), data[[1, 2, 0]])
    with pytest.raises(TypeError, match="sort cannot order values of dtype key"):
        lax.sort(keys)


def test_results_are_of_the_kind_of_the_operands() -> None:
    x = np.array([2.0, 1.0], np.float32)
    assert isinstance(lax.sort(x), dt.Array)
    assert isinstance(lax.sort((x,)), tuple)
    assert len(lax.sort([x, x])) == 2
    assert lax.sort(np.zeros((2, 0), np.float32)).shape == (2, 0)


def test_gradient_goes_back_to_where_values_came_from() -> None:
    x = np.array([3.0, 1.0, 2.0], np.float32)
    weights = np.array([1.0, 10.0, 100.0], np.float32)
    gradient = dt.grad(lambda x: lax.dot(lax.sort(x), weights))(x)
    assert gradient.tolist() == [100.0, 1.0, 10.0]
    gradient = dt.grad(lambda v: lax.dot(lax.sort_key_val(x, v)[1], weights))(x)
    assert gradient.tolist() == [100.0, 1.0, 10.0]
    gradient = dt.grad(lambda x: lax.dot(lax.top_k(x, 2)[0], weights[:2]))(x)
    assert gradient.tolist() == [1.0, 0.0, 10.0]


def test_vmap() -> None:
    x = RANDOM.normal(size=(4, 50)).astype(np.float32)
    keys, values = dt.vmap(lax.sort_key_val, in_axes=(1, None), out_axes=1)(x.T, np.arange(50))
    np.testing.assert_array_equal(np.asarray(keys), np.sort(x, 1).T)
    np.testing.assert_array_equal(np.asarray(values), np.argsort(x, 1).T)
    found, places = dt.vmap(lambda row: lax.top_k(row, 3))(x)
    np.testing.assert_array_equal(np.asarray(found), -np.sort(-x, 1)[:, :3])
    np.testing.assert_array_equal(np.asarray(places), np.argsort(-x, 1)[:, :3])


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int64", "float16", "bfloat16", "float64"]
)
def test_top_k(dtype: str) -> None:
    x = np.array([[3, 1, 3, 0, 2], [0, 0, 1, 1, 0]]).astype(dtype)
    with dt.enable_x64(True):
        for axis in (0, 1):
            values, places = lax.top_k(x, 2, axis=axis)
            order = np.argsort(-x.astype(float), axis, kind="stable").take(range(2), axis)
            assert (values.dtype, places.dtype) == (x.dtype, np.dtype(np.int32))
            np.testing.assert_array_equal(np.asarray(places), order)
            np.testing.assert_array_equal(np.asarray(values), np.take_along_axis(x, order, axis))


def test_top_k_of_special_values() -> None:
    x = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0], np.float32)
    _, places = lax.top_k(x, 6)
    assert places.tolist() == [2, 3, 5, 0, 1, 4]
    assert lax.top_k(x, 0)[0].shape == (0,)


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lax.sort(()), TypeError, "at least one operand"),
    (lambda: lax.sort(1.0), ValueError, "rank 0"),
    (lambda: lax.sort(np.zeros(3), 1), ValueError, "dimension 1 is out of bounds"),
    (lambda: lax.sort((np.zeros(3), np.zeros(2))), TypeError, "one shape"),
    (lambda: lax.sort((np.zeros(3),), num_keys=2), ValueError, "num_keys"),
    (lambda: lax.sort_key_val(np.zeros(3), np.zeros(2)), TypeError, "one shape"),
    (lambda: lax.top_k(np.zeros(3), 4), ValueError, "k must be from 0 to the size"),
    (lambda: lax.top_k(np.zeros(3), -1), ValueError, "k must be from 0 to the size"),
    (lambda: lax.sort((np.zeros(3),), num_keys=1.0), TypeError, "num_keys must be an integer"),
    (lambda: lax.top_k(np.zeros(3), 1.5), TypeError, "k must be an integer, got 1.5"),
    (lambda: lax.top_k(np.zeros(3) + 1j, 1), TypeError, "does not accept dtype complex"),
    (lambda: lax.top_k(np.float32(1), 1), ValueError, "rank 0"),
]


@pytest.mark.parametrize(("function", "error", "text"), ERRORS)
def test_errors(function: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        function()
