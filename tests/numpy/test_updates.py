"""Copies of arrays with other, more or fewer elements against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

VECTOR = np.arange(10, 16)
MATRIX = np.arange(12).reshape(3, 4)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def same(actual: Any, expected: Any, dtype: Any = None) -> None:
    assert isinstance(actual, jnp.ndarray)
    assert actual.shape == np.shape(expected)
    assert dtype is None or actual.dtype == dtype
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


def changed(function: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function of NumPy that changes its first argument makes of a copy."""
    copy = np.array(x)
    function(copy, *args, **kwargs)
    return copy


@pytest.mark.parametrize("mode", [None, "clip", "wrap"])
def test_put(mode: Any) -> None:
    cases: tuple[tuple[Any, Any, Any], ...] = (
        (VECTOR, np.array([0, 5]), 9),
        (CUBE.astype(ml_dtypes.bfloat16), np.array([1, 0, 23]), np.array([[1], [0]])),
        (MATRIX, np.array([[1, 3]]), np.array([7, 8, 9])),
        (MATRIX.astype(np.int8), np.int8(2), 5),
        (MATRIX > 3, np.array([], int), True),
    )
    for x, where, v in cases if mode is None else cases[:2]:
        expected = changed(np.put, x, where, v)
        same(jnp.put(x, where, v, mode, inplace=False), expected, jnp.asarray(x).dtype)
    same(jnp.put(VECTOR, np.array([0]), np.array([]), mode, inplace=False), VECTOR)
    far = np.array([-20, 20, -1], np.int16)
    expected = VECTOR.copy()
    places = {None: [0, 5, 5], "clip": [0, 5, 0], "wrap": [-20 % 6, 20 % 6, 5]}[mode]
    expected[places] = 3
    same(jnp.put(VECTOR, far, 3, mode, inplace=False), expected)
    many = jnp.put(np.zeros(200), np.array([199], np.uint8), 1, mode, inplace=False)
    same(many, np.arange(200) == 199)
    same(jnp.put(np.zeros(0), np.array([0]), 1, mode, inplace=False), np.zeros(0))
    traced = dt.jit(lambda x, i, v: jnp.put(x, i, v, mode, inplace=False))
    same(traced(VECTOR, far, 3), expected)


def test_put_along_axis() -> None:
    for axis, count, values in (
        (0, 2, CUBE + 1),
        (1, 3, np.arange(4, dtype=np.float32)),
        (-1, 1, CUBE[..., :1]),
    ):
        where = np.argsort(-CUBE, axis).take(range(count), axis)
        expected = changed(np.put_along_axis, CUBE, where, values, axis)
        same(jnp.put_along_axis(CUBE, where, values, axis, inplace=False), expected)
        where = where - CUBE.shape[axis]
        same(jnp.put_along_axis(CUBE, where, values, axis, inplace=False), expected)
    one = np.zeros((1, 1, 1), int)
    expected = changed(np.put_along_axis, CUBE, one, 7, 1)
    same(jnp.put_along_axis(CUBE, one, 7, 1, inplace=False), expected)
    expected = changed(np.put_along_axis, MATRIX, np.array([0, 7]), np.array([8, 9]), None)
    same(jnp.put_along_axis(MATRIX, np.array([0, 7]), np.array([8, 9]), None, False), expected)
    far = np.array([[9], [-9], [1]])
    dropped = jnp.put_along_axis(MATRIX, far, 0, 1, inplace=False)
    same(dropped, MATRIX * (np.arange(12).reshape(3, 4) != 9))
    clipped = jnp.put_along_axis(MATRIX, far[:1].repeat(3, 0), 0, 1, inplace=False, mode="clip")
    same(clipped, np.where(np.arange(4) == 3, 0, MATRIX))
    start = np.zeros((2, 1, 4), int)
    total = dt.grad(lambda v: (jnp.put_along_axis(CUBE, start, v, 1, False) ** 2).sum())
    same(dt.jit(total)(np.ones((2, 1, 4), np.float32)), np.full((2, 1, 4), 2.0))


def test_place() -> None:
    for x, vals in (
        (VECTOR, np.array([1, 0])),
        (MATRIX.astype(np.uint8), np.array([[7]], np.uint8)),
        (CUBE.astype(np.float16), np.arange(40).reshape(5, 8).astype(np.float16)),
        (CUBE > 3, np.array([True, False, False])),
        (np.zeros((0, 2), np.float32), np.ones(3, np.float32)),
    ):
        for mask in (np.asarray(x) % 2 == 0, np.zeros(x.size, int)):
            expected = changed(np.place, x, mask.reshape(x.shape), vals)
            same(jnp.place(x, mask, vals, inplace=False), expected, jnp.asarray(x).dtype)
    same(dt.jit(lambda x: jnp.place(x, x > 12, 0, inplace=False))(VECTOR), VECTOR * (VECTOR <= 12))


@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(wrap: bool) -> None:
    for shape, value in (
        ((3, 3), 5),
        ((2, 5), np.arange(1, 9).reshape(2, 4)),
        ((7, 2), np.array([1, 2])),
        ((7, 2), 3),
        ((3, 3, 3), np.array([1, 2])),
        ((0, 4), 1),
    ):
        x = np.zeros(shape, np.int16)
        expected = changed(np.fill_diagonal, x, value, wrap) if x.size else x
        same(jnp.fill_diagonal(x, value, wrap, inplace=False), expected, "int16")
    gradient = dt.jit(
        dt.grad(lambda v: jnp.fill_diagonal(jnp.ones((2, 3)), v, inplace=False).sum())
    )(2.0)
    same(gradient, 2.0)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_insert(axis: Any) -> None:
    x = CUBE if axis is None else MATRIX.astype(np.int8)
    size = x.size if axis is None else x.shape[axis]
    for where in (1, -1, 0, size, slice(None, None, -2), np.array([1])):
        same(jnp.insert(x, where, 9, axis), np.insert(x, where, 9, axis), x.dtype)
    for where in (np.array([1, 1]), np.array([2, 0]), np.array([-1, 1], np.int8)):
        values = np.array([[7], [8]]) if axis == 0 else np.array([7, 8])
        same(jnp.insert(x, where, values, axis), np.insert(x, where, values, axis))
    same(jnp.insert(VECTOR, np.array([], int), 3), VECTOR)
    same(jnp.insert(np.array(3), 0, 4), [4, 3])


def test_insert_of_slices() -> None:
    for where, values, axis in (
        (1, np.array([7, 8, 9]), 1),
        (1, np.arange(6).reshape(2, 3), 1),
        (2, np.arange(8).reshape(2, 4), 0),
        (np.array([1]), np.array([[7], [8], [9]]), 1),
        (np.array([1]), np.array([7, 8]), 1),
        (np.array([0, 3]), np.arange(6).reshape(3, 2), 1),
        (1, np.array([4, 5, 6]), None),
    ):
        expected = np.insert(MATRIX, where, values, axis)
        same(jnp.insert(MATRIX, where, values, axis), expected)
    expected_of_two = np.insert(MATRIX, np.array([0, 3]), np.arange(6).reshape(3, 2), 1)
    traced = dt.jit(lambda x, i, v: jnp.insert(x, i, v, 1))
    same(traced(MATRIX, np.array([0, 3]), np.arange(6).reshape(3, 2)), expected_of_two)
    same(jnp.insert(VECTOR, -100, 1), np.insert(VECTOR, 0, 1))
    same(jnp.insert(VECTOR, np.array([100, 2]), np.array([1, 2])), [10, 11, 2, *range(12, 16), 1])
    gradient = dt.jit(dt.grad(lambda x: (jnp.insert(x, 1, 5.0) * np.arange(4.0)).sum()))(
        np.zeros(3)
    )
    same(gradient, [0, 2, 3])


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_delete(axis: Any) -> None:
    x = CUBE if axis == -1 else MATRIX
    size = x.size if axis is None else x.shape[axis]
    mask = np.arange(size) % 2 == 0
    for where in (
        *(1, -1, np.uint8(1), slice(0, 2), slice(None, None, -2), mask, ~mask & mask),
        *(np.array([0, 0, -1]), np.array([], int), np.array([[0], [1]])),
    ):
        same(jnp.delete(x, where, axis), np.delete(x, where, axis))
    same(dt.jit(lambda v, i: jnp.delete(v, i, axis))(x, -1), np.delete(x, -1, axis))
    traced = dt.jit(lambda v, i: jnp.delete(v, i, axis, assume_unique_indices=True))
    for where in (np.array([1, 0]), np.array([-1, 0])):
        same(traced(x, where), np.delete(x, where, axis))
    same(jnp.delete(np.array(3), 0), [])
    mapped = dt.vmap(lambda i: jnp.delete(VECTOR, i))(np.array([0, 2]))
    same(mapped, np.stack([np.delete(VECTOR, 0), np.delete(VECTOR, 2)]))
    gradient = dt.jit(dt.grad(lambda x: (jnp.delete(x, 1) * np.arange(1.0, 3.0)).sum()))(
        np.zeros(3)
    )
    same(gradient, [1, 0, 2])


def test_trim_zeros() -> None:
    padded = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]])
    for x in (np.array([0, 0, 1, 0, 2, 0]), np.array([np.nan, 0]), np.zeros(3), np.array([], int)):
        for trim in ("f", "b", "fb", "B", "bf"):
            same(jnp.trim_zeros(x, trim), np.trim_zeros(x, trim))
    same(jnp.trim_zeros(padded), padded[1:3, 1:3])
    same(jnp.trim_zeros(padded, "f", axis=0), padded[1:])
    same(jnp.trim_zeros(padded, "b", axis=(-1,)), padded[:, :3])
    same(jnp.trim_zeros(padded, axis=()), padded)
    same(jnp.trim_zeros(padded * 0, axis=1), np.zeros((4, 0)))
    same(jnp.trim_zeros(np.float32(0)), 0)


Concrete = dt.errors.ConcretizationTypeError


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.put(VECTOR, 0, 1), ValueError, "put.*inplace=False"),
        (lambda: jnp.put(VECTOR, 0, 1, "raise", inplace=False), ValueError, "'clip' or 'wrap'"),
        (lambda: jnp.put(VECTOR, 0.5, 1, inplace=False), TypeError, "integer"),
        (lambda: jnp.put(VECTOR, [0], 1, inplace=False), TypeError, "ind.*list"),
        (lambda: jnp.put_along_axis(MATRIX, MATRIX, 1, 0), ValueError, "inplace=False"),
        (lambda: jnp.put_along_axis(MATRIX, VECTOR, 1, 0, False), ValueError, "rank"),
        (lambda: jnp.put_along_axis(MATRIX, MATRIX[:2], 1, 1, False), ValueError, "do not fit"),
        (lambda: jnp.put_along_axis(MATRIX, MATRIX, VECTOR, 1, False), ValueError, "broadcast"),
        (lambda: jnp.put_along_axis(MATRIX, CUBE[0], 1, 1, False), TypeError, "integer"),
        (lambda: jnp.put_along_axis(MATRIX, MATRIX, 1, 2, False), ValueError, "out of bounds"),
        (lambda: jnp.place(VECTOR, VECTOR > 1, 1), ValueError, "place.*inplace=False"),
        (lambda: jnp.place(VECTOR, MATRIX, 1, inplace=False), ValueError, "as many"),
        (lambda: jnp.place(VECTOR, VECTOR, np.ones(0), inplace=False), ValueError, "at least one"),
        (lambda: jnp.fill_diagonal(MATRIX, 1), NotImplementedError, "inplace=False"),
        (lambda: jnp.fill_diagonal(VECTOR, 1, inplace=False), ValueError, "rank 2"),
        (lambda: jnp.fill_diagonal(CUBE, 1, inplace=False), ValueError, "equal sizes"),
        (lambda: jnp.fill_diagonal(MATRIX, np.ones(0), inplace=False), ValueError, "at least one"),
        (lambda: jnp.insert(VECTOR, VECTOR > 1, 1), TypeError, "flatnonzero"),
        (lambda: jnp.insert(VECTOR, 1.5, 1), TypeError, "integer"),
        (lambda: jnp.insert(VECTOR, [1], 1), TypeError, "obj.*list"),
        (lambda: jnp.insert(VECTOR, MATRIX, 1), ValueError, "a vector or a slice"),
        (lambda: jnp.insert(VECTOR, np.array([0, 1]), np.ones(3)), ValueError, "do not fit"),
        (lambda: jnp.insert(VECTOR, 0, MATRIX), ValueError, "more dimensions"),
        (lambda: jnp.insert(MATRIX, 0, 1, axis=2), ValueError, "out of bounds"),
        (lambda: jnp.delete(VECTOR, 6), IndexError, "position 6 .* size 6"),
        (lambda: jnp.delete(MATRIX, np.array([0, -4]), 0), IndexError, "position -4"),
        (lambda: jnp.delete(VECTOR, np.array([True])), ValueError, "6 booleans"),
        (lambda: jnp.delete(VECTOR, 0.5), TypeError, "integers and booleans"),
        (lambda: jnp.delete(VECTOR, [0]), TypeError, "obj.*list"),
        (lambda: dt.jit(jnp.delete)(VECTOR, np.array([0])), Concrete, "assume_unique_indices"),
        (lambda: dt.jit(jnp.delete)(VECTOR, VECTOR > 12), Concrete, "integer positions"),
        (lambda: jnp.trim_zeros(VECTOR, "x"), ValueError, "trim"),
        (lambda: jnp.trim_zeros([0, 1]), TypeError, "filt.*list"),
        (lambda: jnp.trim_zeros(MATRIX, axis=2), ValueError, "out of bounds"),
        (lambda: dt.jit(jnp.trim_zeros)(VECTOR), Concrete, "slice of known size"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
