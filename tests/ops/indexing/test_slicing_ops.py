"""Static and dynamic slices, and padding."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.runtime.programs.compilation import statistics

X = np.arange(20, dtype=np.float32).reshape(4, 5)

AGAINST_NUMPY: list[tuple[Callable[..., Any], Any]] = [
    (lambda x: lax.slice(x, (1, 0), (3, 5)), X[1:3]),
    (lambda x: lax.slice(x, (0, 1), (4, 5), (3, 2)), X[::3, 1::2]),
    (lambda x: lax.slice_in_dim(x, -2, None, axis=-1), X[:, -2:]),
    (lambda x: lax.slice_in_dim(x, None, -1), X[:-1]),
    (lambda x: lax.slice_in_dim(x, 0, 4, stride=3), X[::3]),
    (lambda x: lax.index_in_dim(x, 1), X[1:2]),
    (lambda x: lax.index_in_dim(x, -1, 1, False), X[:, -1]),
    (lambda x: lax.pad(x, 0.0, [(1, 2, 0), (0, 0, 0)]), np.pad(X, [(1, 2), (0, 0)])),
    (lambda x: lax.pad(x, 0, [(-1, -1, 0), (0, -2, 0)]), X[1:-1, :-2]),
    (lambda x: lax.pad(x, np.float32(7), [(0, 0, 0), (1, 0, 0)])[:, 0], np.full(4, 7, np.float32)),
    (lambda x: lax.dynamic_slice(x, (1, 2), (2, 3)), X[1:3, 2:5]),
    (lambda x: lax.dynamic_slice(x, (-1, -3), (1, 3)), X[-1:, -3:]),
    (lambda x: lax.dynamic_slice(x, (9, 9), (2, 2)), X[-2:, -2:]),
    (lambda x: lax.dynamic_slice(x, (-9, 0), (2, 5)), X[:2]),
    (lambda x: lax.dynamic_slice(x, np.array([1, 2]), (2, 3)), X[1:3, 2:5]),
    (lambda x: lax.dynamic_slice_in_dim(x, 1, 2, -1), X[:, 1:3]),
    (lambda x: lax.dynamic_index_in_dim(x, 2, keepdims=False), X[2]),
    (lambda x: lax.dynamic_index_in_dim(x, -1, 1), X[:, -1:]),
]


@pytest.mark.parametrize(("function", "want"), AGAINST_NUMPY)
def test_equals_numpy(function: Callable[..., Any], want: Any) -> None:
    for got in (function(X), dt.jit(function)(X)):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
def test_dynamic_slice_of_long_arrays(dtype: str) -> None:
    long = np.arange(300)
    function = dt.jit(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))
    for start in (0, 2, 3, 100) if dtype.startswith("u") else (0, 2, 3, 100, -1, -2, -100):
        with dt.enable_x64(True):
            got = function(long, np.dtype(dtype).type(start))
        first = min(start + 300 if start < 0 else start, 298)
        assert np.asarray(got).tolist() == [first, first + 1]


def test_negative_indices_can_be_switched_off() -> None:
    below = np.int32(-1)
    clipped = dt.jit(
        lambda x, i: lax.dynamic_slice(x, (-1, i), (1, 1), allow_negative_indices=(True, False))
    )(X, below)
    assert clipped.tolist() == [[15.0]]
    got = dt.jit(lambda x, i: lax.dynamic_slice_in_dim(x, i, 1, allow_negative_indices=False))(
        X, -2
    )
    assert got.tolist() == X[:1].tolist()


def test_dynamic_update() -> None:
    update = -np.ones((2, 2), np.float32)
    for start in ((0, 0), (1, 2), (-2, -2), (9, 9)):
        want = X.copy()
        row = min(max(start[0] + 4 if start[0] < 0 else start[0], 0), 2)
        column = min(max(start[1] + 5 if start[1] < 0 else start[1], 0), 3)
        want[row : row + 2, column : column + 2] = -1
        np.testing.assert_array_equal(np.asarray(lax.dynamic_update_slice(X, update, start)), want)
        traced = dt.jit(lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)))
        np.testing.assert_array_equal(np.asarray(traced(X, update, *start)), want)
    row = lax.dynamic_update_slice_in_dim(X, np.zeros((1, 5), np.float32), 1, 0)
    assert row[1].tolist() == [0.0] * 5
    column = lax.dynamic_update_index_in_dim(X, np.zeros(4, np.float32), -1, 1)
    assert column[:, 4].tolist() == [0.0] * 4
    assert lax.dynamic_update_index_in_dim(np.zeros(3, np.float32), 1.0, 1, 0).tolist() == [0, 1, 0]


def test_another_position_compiles_nothing() -> None:
    x = dt.device_put(X)
    lax.dynamic_slice(x, (0, 0), (1, 5))
    before = statistics()
    for i in range(4):
        lax.dynamic_slice(x, (i, 0), (1, 5))
    assert statistics() == before


def test_batched_positions() -> None:
    batch = np.stack([X, X + 100, X - 100])
    rows, columns = np.array([0, 2, 9]), np.array([1, -1, -3])
    sizes = (2, 3)

    def read(x: Any, i: Any, j: Any) -> Any:
        return lax.dynamic_slice(x, (i, j), sizes)

    def write(x: Any, u: Any, i: Any, j: Any) -> Any:
        return lax.dynamic_update_slice(x, u, (i, j))

    for in_axes in ((0, 0, 0), (None, 0, 0), (0, 0, None), (0, None, None), (1, None, 0)):
        x = np.moveaxis(batch, 0, in_axes[0]) if in_axes[0] is not None else X
        args = (
            x,
            *(a if d == 0 else a[1] for a, d in zip((rows, columns), in_axes[1:], strict=True)),
        )
        got = dt.vmap(read, in_axes)(*args)
        want = [
            read(
                *(a if d is None else np.take(a, n, d) for a, d in zip(args, in_axes, strict=True))
            )
            for n in range(3)
        ]
        np.testing.assert_array_equal(np.asarray(got), np.stack([np.asarray(w) for w in want]))
    updates = -np.arange(18, dtype=np.float32).reshape(3, 2, 3)
    got = dt.vmap(write)(batch, updates, rows, columns)
    want = [write(*row) for row in zip(batch, updates, rows, columns, strict=True)]
    np.testing.assert_array_equal(np.asarray(got), np.stack([np.asarray(w) for w in want]))


def test_gradients_of_slices() -> None:
    def loss(x: Any, u: Any, i: Any) -> Any:
        y = lax.dynamic_update_slice(x, u, (i, 0))
        return lax.reduce_sum(lax.dynamic_slice(y, (1, i), (2, 2)) ** 2, (0, 1))

    update = np.ones((1, 2), np.float32)
    for_x, for_u = dt.grad(loss, argnums=(0, 1))(X, update, 1)
    want = np.zeros_like(X)
    y = X.copy()
    y[1, :2] = 1
    want[1:3, 1:3] = 2 * y[1:3, 1:3]
    assert for_u.tolist() == [[0.0, 2.0]]
    want[1, :2] = 0
    np.testing.assert_array_equal(np.asarray(for_x), want)


PRINTED = [
    (
        lambda x: lax.slice(x, (0, 1), (2, 3)),
        "slice[limit_indices=(2, 3) start_indices=(0, 1) strides=None] a",
    ),
    (
        lambda x: lax.pad(x, 0.0, ((1, -1, 0), (0, 0, 2))),
        "pad[padding_config=((1, -1, 0), (0, 0, 2))] a 0.0:f32[]",
    ),
    (
        lambda x: lax.dynamic_slice(x, (0, -1), (1, 2)),
        "dynamic_slice[slice_sizes=(1, 2)] a 0:i32[] 4:i32[]",
    ),
    (
        lambda x: lax.dynamic_update_slice(x, lax.slice(x, (0, 0), (1, 1)), (0, 1)),
        "dynamic_update_slice a b 0:i32[] 1:i32[]",
    ),
]


@pytest.mark.parametrize(("function", "text"), PRINTED)
def test_printed_form(function: Callable[..., Any], text: str) -> None:
    printed = re.sub(r"\s+", " ", str(dt.make_jaxpr(function)(X)))
    assert f"= {text}" in printed


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lax.slice(X, (0,), (2,)), TypeError, "one integer for each dimension"),
    (lambda: lax.slice(X, (0, 0), (5, 5)), TypeError, "slice_in_dim takes negative"),
    (lambda: lax.slice(X, (-1, 0), (4, 5)), TypeError, "slice_in_dim takes negative"),
    (lambda: lax.slice(X, (0, 0), (4, 5), (0, 1)), TypeError, "write lax.rev"),
    (lambda: lax.slice_in_dim(X, 0, 9), TypeError, "start <= limit <= size"),
    (lambda: lax.slice_in_dim(X, 0, 1, axis=2), ValueError, "out of bounds"),
    (lambda: lax.slice_in_dim(X, 0.5, 1), TypeError, "start_index must be an integer"),
    (lambda: lax.index_in_dim(X, 4), IndexError, "index 4 is out of bounds for axis 0 of size 4"),
    (lambda: lax.index_in_dim(X, -5), IndexError, "index -5 is out of bounds"),
    (lambda: lax.pad(X, 0.0, [(0, 0, 0)]), ValueError, "one .low, high, interior. for each"),
    (lambda: lax.pad(X, 0.0, [(0, 0), (0, 0)]), TypeError, "three integers"),
    (lambda: lax.pad(X, np.int32(0), [(0, 0, 0)] * 2), TypeError, "one dtype"),
    (lambda: lax.pad(X.astype(int), 0.5, [(0, 0, 0)] * 2), TypeError, "one dtype"),
    (lambda: lax.pad(X, X, [(0, 0, 0)] * 2), TypeError, "must be a scalar"),
    (lambda: lax.pad(X, 0.0, [(0, 0, -1)] * 2), ValueError, "interior padding"),
    (lambda: lax.pad(X, 0.0, [(-3, -3, 0)] * 2), ValueError, "removes more than there is"),
    (lambda: lax.dynamic_slice(X, (0,), (1, 1)), ValueError, "one start index for each"),
    (lambda: lax.dynamic_slice(X, (0, 0), (1, 6)), TypeError, "from 0 to its size"),
    (lambda: lax.dynamic_slice(X, (0, 0), (1,)), TypeError, "from 0 to its size"),
    (lambda: lax.dynamic_slice(X, (0.0, 0), (1, 1)), TypeError, "must be an integer scalar"),
    (lambda: lax.dynamic_slice(X, (X, 0), (1, 1)), TypeError, "must be an integer scalar"),
    (lambda: lax.dynamic_slice(X, 0, (1, 1)), TypeError, "must be a sequence of scalars"),
    (lambda: lax.dynamic_slice(X, X, (1, 1)), TypeError, "array of rank 1"),
    (
        lambda: lax.dynamic_slice(
            X, (dt.device_put(np.int32(0)), dt.device_put(np.uint32(0))), (1, 1)
        ),
        TypeError,
        "one integer dtype",
    ),
    (lambda: lax.dynamic_update_slice(X, X[0], (0, 0)), TypeError, "ranks must be equal"),
    (lambda: lax.dynamic_update_slice(X[:1], X, (0, 0)), TypeError, "sizes not larger"),
    (lambda: lax.dynamic_update_slice(X, X.astype(int), (0, 0)), TypeError, "equal dtypes"),
    (lambda: lax.dynamic_update_slice(X, X, (0,)), ValueError, "one start index"),
    *(
        (function, ValueError, "start index -1 of dimension 0 is below zero")
        for function in (
            lambda: lax.dynamic_slice(X, (-1, 0), (1, 1), allow_negative_indices=False),
            lambda: lax.dynamic_slice(X, (-1, -1), (1, 1), allow_negative_indices=(False, True)),
            lambda: lax.dynamic_slice_in_dim(X, np.int8(-1), 1, allow_negative_indices=False),
            lambda: lax.dynamic_index_in_dim(X, -1, allow_negative_indices=False),
            lambda: lax.dynamic_update_slice(X, X[:1], [-1, 0], allow_negative_indices=False),
            lambda: lax.dynamic_update_slice_in_dim(X, X, -1, 0, allow_negative_indices=False),
            lambda: lax.dynamic_update_index_in_dim(X, X[0], -1, 0, allow_negative_indices=False),
        )
    ),
    (lambda: lax.index_take(X, (), ()), ValueError, "an array of indices for each axis"),
    (lambda: lax.index_take(X, (np.arange(2),), (0, 1)), ValueError, "got 1 array for axes"),
    (lambda: lax.index_take(X, (np.arange(2),), (2,)), ValueError, "axes 2 is out of bounds"),
    (lambda: lax.index_take(X, (np.arange(2),) * 2, (0, 0)), ValueError, "named twice"),
    (lambda: lax.index_take(X, (np.arange(2.0),), (0,)), TypeError, "integers of one shape"),
    (lambda: lax.index_take(X, (np.arange(2), np.arange(3)), (0, 1)), TypeError, "of one shape"),
    (lambda: lax.index_take(X, ([0, 1],), (0,)), TypeError, "argument idxs to be an array"),
    (lambda: lax.index_take(X[:0], (np.arange(2),), (0,)), TypeError, "is empty"),
]


@pytest.mark.parametrize(("function", "error", "text"), ERRORS)
def test_errors(function: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        function()


INDICES = np.array([0, 3, -1, 9, -21])


@pytest.mark.parametrize("axes", [(0,), (1,), (-1,), (0, 1), (1, 0)])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_index_take(axes: Any, dtype: str) -> None:
    indices = [(INDICES % 100 if dtype[0] == "u" else INDICES).astype(dtype) + i for i in range(2)]
    indices = indices[: len(axes)]
    wrapped = dict(zip([a % 2 for a in axes], indices, strict=True))
    place = tuple(
        wrapped[d].astype(np.int64) % X.shape[d] if d in wrapped else slice(None) for d in range(2)
    )
    want = X[place] if 0 in wrapped else X[place].T
    for function in (lax.index_take, dt.jit(lax.index_take, static_argnums=2)):
        np.testing.assert_array_equal(np.asarray(function(X, tuple(indices), axes)), want)


def test_index_take_of_other_shapes() -> None:
    stack = np.arange(24).reshape(2, 3, 4)
    pairs = np.array([[0, 1], [2, 4]])
    assert (
        lax.index_take(stack, (pairs,), (1,)).tolist()
        == stack[:, pairs % 3].transpose(1, 2, 0, 3).tolist()
    )
    assert lax.index_take(X, (np.int32(-1),), (1,)).tolist() == X[:, -1].tolist()
    assert lax.index_take(X, (np.zeros(0, int),), (0,)).shape == (0, 5)
    long = np.arange(300)
    assert lax.index_take(long, (np.array([-1, 127], np.int8),), (0,)).tolist() == [299, 127]
    gradient = dt.grad(lambda x: lax.index_take(x, (np.array([1, 1]),), (0,)).sum())(X)
    assert np.asarray(gradient).sum(1).tolist() == [0, 10, 0, 0]
