"""Unique elements and sets of them, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

DTYPES = ("float32", "float16", "bfloat16", "int8", "uint8", "int32", "uint32", "bool", "complex64")
NAN = np.nan
SPECIAL = np.array([3, 1, NAN, 1, NAN, -0.0, 0.0, np.inf, -np.inf, 1e-3], np.float32)
COMPLEX = np.array([1j, complex(NAN, 1), 1, complex(1, NAN), 1j, -1, 1 - 1j], np.complex64)


def make(dtype: str, shape: tuple[int, ...] = (3, 6), seed: int = 7) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)  # of its own: values do not depend on which tests run
    values = rng.integers(0, 5, size=shape)
    if dtype == "complex64":
        return (values // 2 + 1j * rng.integers(-1, 2, size=shape)).astype(dtype)
    return values.astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))


def wide(x: Any) -> Any:
    """Values in a dtype that NumPy sorts."""
    x = np.asarray(x)
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def same(actual: Any, expected: Any) -> None:
    assert isinstance(actual, jnp.ndarray)
    assert actual.shape == np.shape(expected)
    np.testing.assert_array_equal(wide(actual), wide(expected))


def all_same(actual: Any, expected: Any) -> None:
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        same(a, e)


def filled(expected: Any, size: int, value: Any, fill: Any) -> list[Any]:
    """What `unique` with all results gives for a size."""
    values, index, inverse, counts = expected
    missing = max(size - len(values), 0)
    fills = [value, index[0] if fill is None else fill, 0]
    cut = [
        np.concatenate([part[:size], np.full((missing, *part.shape[1:]), f, part.dtype)])
        for part, f in zip((values, index, counts), fills, strict=True)
    ]
    return [cut[0], cut[1], inverse, cut[2]]


# --------------------------------------------------------------------------------------- unique


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype: str) -> None:
    x = make(dtype)
    expected = np.unique(wide(x), True, True, True)
    found = jnp.unique(x, True)
    assert [v.dtype.name for v in found] == [dtype, "int32"]
    all_same(found, expected[:2])
    if dtype not in ("float32", "bool", "complex64"):
        return  # the rest does not depend on the dtype
    size = len(expected[0]) + 2
    traced = dt.jit(lambda v: jnp.unique(v, True, True, True, size=size, fill_value=1))(x)
    assert [v.dtype.name for v in traced] == [dtype, "int32", "int32", "int32"]
    all_same(traced, filled(expected, size, 1, None))


@pytest.mark.parametrize("equal_nan", [True, False])
@pytest.mark.parametrize("x", [SPECIAL, COMPLEX], ids=["float", "complex"])
def test_unique_of_special_values(x: np.ndarray[Any, Any], equal_nan: bool) -> None:
    expected = np.unique(x, True, True, True, equal_nan=equal_nan)
    found = jnp.unique(x, True, True, True, equal_nan=equal_nan)
    # NumPy has the parts of the first complex nan, and orders several by their parts.
    count = int(np.sum(~np.isnan(expected[0])))
    same(found[0][:count], expected[0][:count])
    assert np.isnan(np.asarray(found[0][count:])).all()
    same(found[1][:count], expected[1][:count])
    if x is SPECIAL or equal_nan:
        all_same(found[2:], expected[2:])
        assert found[1][count] == np.flatnonzero(np.isnan(x))[0]
    if not equal_nan:
        all_same(jnp.unique_all(x), found)


def test_the_first_of_equal_elements_is_returned() -> None:
    for x in (np.array([0.0, -0.0]), np.array([-0.0, 0.0])):
        assert np.signbit(np.asarray(jnp.unique(x)))[0] == np.signbit(x[0])


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 3), (2, 3, 2)], ids=str)
def test_unique_of_shapes(shape: tuple[int, ...]) -> None:
    x = make("int32", shape)
    all_same(jnp.unique(x, True, True, True), np.unique(x, True, True, True))


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((6,), 0), ((2, 9), -1), ((2, 8, 2), 1), ((0, 3), 0), ((0, 3), 1), ((3, 0), 0)],
    ids=str,
)
def test_unique_along_an_axis(shape: tuple[int, ...], axis: int) -> None:
    x = make("int32", shape) % 3
    expected = np.unique(x, True, True, True, axis=axis)
    all_same(jnp.unique(x, True, True, True, axis=axis), expected)
    size = len(expected[1]) + 1
    if x.ndim == 3:
        moved = [np.moveaxis(expected[0], axis, 0), *expected[1:]]
        wanted = filled(moved, size, 9, None)
        wanted[0] = np.moveaxis(wanted[0], 0, axis)
        run = dt.jit(lambda v: jnp.unique(v, True, True, True, axis, size=size, fill_value=9))
        all_same(run(x), wanted)


@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64"])
def test_unique_rows_of_dtypes(dtype: str) -> None:
    x = make(dtype, (9, 2))
    all_same(jnp.unique(x, True, axis=0), np.unique(x, True, axis=0))


def test_unique_rows_with_nan_are_compared_by_elements() -> None:
    for nan in (NAN, complex(1, NAN)):
        x = np.array([[nan, 2], [0, 1], [nan, 2], [nan, 1]])
        _, index, counts = jnp.unique(x, True, False, True, axis=0)
        all_same((index, counts), ([1, 3, 0], [1, 1, 2]))
        assert jnp.unique(x, axis=0, equal_nan=False).shape == (4, 2)


def test_sizes_of_unique() -> None:
    x = make("int32")
    expected = np.unique(x, True, True, True)
    for size, fill in ((0, None), (2, 8), (7, None)):
        found = jnp.unique(x, True, True, True, size=size, fill_value=fill)
        value = expected[0][0] if fill is None else fill
        all_same(found, filled(expected, size, value, None))
    same(jnp.unique(np.zeros(0, int), size=2, fill_value=3), [3, 3])
    rows = jnp.unique(np.array([[1, 2], [1, 2]]), axis=0, size=2, fill_value=np.array([7, 8]))
    same(rows, [[1, 2], [7, 8]])
    same(jnp.unique(x, sorted=False), expected[0])
    assert not jnp.unique(2).weak_type
    same(dt.jit(lambda: jnp.unique(x))(), expected[0])  # what is traced does not matter, x does


def test_functions_of_the_array_api_standard() -> None:
    values, index, inverse, counts = np.unique(make("int32"), True, True, True)
    x = jnp.asarray(make("int32"))
    everything = jnp.unique_all(x)
    all_same(everything, (values, index, inverse, counts))
    assert everything._fields == ("values", "indices", "inverse_indices", "counts")
    pair = dt.jit(lambda v: jnp.unique_counts(v, size=values.size + 1, fill_value=9))(x)
    same(pair.values, [*values, 9])
    same(pair.counts, [*counts, 0])
    inverted = jnp.unique_inverse(x)
    same(inverted.values[inverted.inverse_indices], x)
    same(inverted.inverse_indices, inverse)
    same(jnp.unique_values(x), values)


def test_transformations_of_unique() -> None:
    x = np.array([[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]], np.float32)
    mapped = dt.jit(dt.vmap(lambda v: jnp.unique(v, size=3)))(x)
    same(mapped, [[1.0, 3.0, 1.0], [2.0, 2.0, 2.0]])
    weights = np.array([10.0, 1.0])
    same(dt.grad(lambda v: (jnp.unique(v) * weights).sum())(x[0]), [1.0, 10.0, 0.0])
    sized = dt.jit(dt.grad(lambda v: (jnp.unique(v, size=2) * weights).sum()))
    same(sized(x[0]), [1.0, 10.0, 0.0])


# ------------------------------------------------------------------------------------ two arrays

PAIRS = {
    "integers": (np.array([1, 2, 3, 2, 4]), np.array([[3, 4], [4, 5]])),
    "floats": (SPECIAL, np.array([NAN, 1, 0, 7, -np.inf], np.float32)),
    "mixed": (np.array([200, 3, 3], np.uint8), np.array([-3, 3, 7], np.int8)),
    "complex": (make("complex64"), make("complex64", (4,), 3)),
    "none": (np.zeros(0, np.int32), np.zeros(0, np.int32)),
    "one": (np.array([2, 1, 2]), np.zeros((0, 2), np.int32)),
    "numbers": (np.int32(3), 4),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets(name: str, pair: str) -> None:
    x, y = PAIRS[pair]
    function = getattr(jnp, name)
    expected = np.asarray(getattr(np, name)(x, y))
    found = function(x, y)
    same(found, expected)
    own = jnp.asarray(x).dtype
    assert found.dtype == (own if name == "setdiff1d" else jnp.result_type(own, jnp.asarray(y)))
    if pair in ("integers", "floats"):
        size = expected.size + 1
        traced = dt.jit(lambda a, b: function(a, b, size=size, fill_value=1))(x, y)
        same(traced, [*expected, 1])


def test_sizes_of_sets() -> None:
    x, y = PAIRS["integers"]
    for name, first in (("union1d", 1), ("intersect1d", 3), ("setdiff1d", 0), ("setxor1d", 1)):
        function, expected = getattr(jnp, name), getattr(np, name)(x, y)
        same(function(x, y, size=6), [*expected, *[first] * 6][:6])
    same(jnp.setxor1d(x, y, size=1), [1])
    same(jnp.setxor1d(x, x, size=2), [0, 0])
    same(jnp.intersect1d(x, -x, size=2), [0, 0])


def test_indices_of_common_elements() -> None:
    for x, y in (PAIRS["integers"], PAIRS["floats"]):
        expected = np.intersect1d(x, y, return_indices=True)
        all_same(jnp.intersect1d(x, y, return_indices=True), expected)
        size = len(expected[0]) + 1
        found = dt.jit(lambda a, b, n=size: jnp.intersect1d(a, b, False, True, size=n))(x, y)
        for part, whole, missing in zip(found[1:], expected[1:], (x.size, y.size), strict=True):
            same(part, [*whole, missing])


def test_elements_that_are_unique_already() -> None:
    x, y = np.array([4, 1, 3, 7]), np.array([3, 9, 1])
    for name in ("intersect1d", "setdiff1d", "setxor1d"):
        same(
            getattr(jnp, name)(x, y, assume_unique=True),
            getattr(np, name)(x, y, assume_unique=True),
        )
    found = dt.jit(lambda a, b: jnp.setdiff1d(a, b, True, size=3, fill_value=-1))(x, y)
    same(found, [4, 7, -1])


def test_integers_are_never_compared_as_floats_of_the_other_array() -> None:
    x = np.array([2**24, 2**24 + 1, 2**24 + 2], np.int32)
    same(jnp.setdiff1d(x, np.array([0.5], np.float32)), x)


# --------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("name", ["unique", "union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_traced_arrays_need_a_size(name: str) -> None:
    x = np.arange(3)
    arguments = (x,) if name == "unique" else (x, x)
    with pytest.raises(dt.errors.ConcretizationTypeError, match=f"that {name} returns.*size="):
        dt.jit(getattr(jnp, name))(*arguments)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.unique([1, 2]), TypeError, r"unique.*list.*asarray\(ar\)"),
        (lambda: jnp.unique_all([1, 2]), TypeError, "unique_all.*list"),
        (lambda: jnp.union1d(np.ones(2), [1]), TypeError, "union1d.*ar2.*list"),
        (lambda: jnp.unique(np.ones(3), axis=1), ValueError, "unique: axis 1 is out of bounds"),
        (lambda: jnp.unique(np.ones(3), size=-1), ValueError, "size must not be negative, got -1"),
        (lambda: jnp.unique(np.ones(3), size=1.5), TypeError, "unique requires size.*integer"),
        (lambda: jnp.unique(np.ones(0), size=2), ValueError, "unique of no elements.*fill_value"),
        (
            lambda: jnp.unique(np.ones(3), size=2, fill_value=np.ones(2)),
            ValueError,
            r"unique: fill_value must be a scalar, got shape \(2,\)",
        ),
        (
            lambda: jnp.unique(np.ones((3, 2)), axis=0, size=2, fill_value=np.ones(3)),
            ValueError,
            r"fill_value must broadcast to the shape \(2,\)",
        ),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
