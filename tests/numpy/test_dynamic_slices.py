"""dovetail.ds: slices of a fixed size whose start is known when a program runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

X = np.arange(60).reshape(4, 5, 3)


def plain(start: int, size: int, stride: int, length: int) -> slice:
    """NumPy's slice of the positions that `ds` takes of a dimension."""
    last = length - ((size - 1) * stride + 1 if size else 0)
    start = min(max(start, 0), last)
    return slice(start, start + size * stride, stride)


#: Start, size and stride along the second dimension.
SLICES = [(0, 5, 1), (1, 3, 1), (4, 3, 1), (-2, 2, 1), (1, 2, 3), (9, 3, 2), (2, 0, 1), (3, 1, 4)]
#: Starts of every kind.
STARTS = [int, np.int8, np.uint32, jnp.int32, lambda n: jnp.asarray(n, "int16"), np.array]


@pytest.mark.parametrize(("start", "size", "stride"), SLICES)
@pytest.mark.parametrize("way", ["static", "eager", "traced"])
def test_positions(start: int, size: int, stride: int, way: str) -> None:
    where = plain(start, size, stride, 5)
    expected, written = X[:, where], X.copy()
    written[:, where] = -1

    def read(start: Any) -> Any:
        return jnp.asarray(X)[:, dt.ds(start, size, stride)]

    def write(start: Any) -> Any:
        return jnp.asarray(X).at[:, dt.ds(start, size, stride)].set(-1)

    for function, wanted in ((read, expected), (write, written)):
        given = start if way == "static" else jnp.int32(start)
        got = dt.jit(function)(given) if way == "traced" else function(given)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("make", STARTS)
def test_starts(make: Any) -> None:
    np.testing.assert_array_equal(jnp.asarray(X)[dt.ds(make(1), 2)], X[1:3])


@pytest.mark.parametrize("traced", [False, True])
def test_among_other_entries(traced: bool) -> None:
    x = jnp.asarray(X)

    def cases(i: Any) -> Any:
        return [
            x[dt.ds(i, 2), 0],
            x[..., dt.ds(i, 2)],
            x[None, dt.ds(i, 2), 1:4:2, dt.ds(i, 1)],
            x[dt.ds(i, 2), jnp.array([0, 3])],
            x[jnp.array([0, 3]), dt.ds(i, 2), jnp.array([1, 1])],
            x[dt.ds(3)],
            x[dt.ds(None), dt.ds(i, 2)],
        ]

    expected = [
        X[1:3, 0],
        X[..., 1:3],
        X[None, 1:3, 1:4:2, 1:2],
        X[1:3, np.array([0, 3])],
        X[np.array([0, 3]), 1:3, np.array([1, 1])],
        X[:3],
        X[:, 1:3],
    ]
    for got, wanted in zip((dt.jit(cases) if traced else cases)(1), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_references() -> None:
    ref = dt.new_ref(jnp.asarray(X))

    @dt.jit
    def change(i: Any) -> Any:
        ref[dt.ds(i, 2), 0] = 0
        part = ref.at[dt.ds(i, 3)]
        part[dt.ds(0, 1), 1] = 7
        return ref[dt.ds(i, 1)]

    expected = X.copy()
    expected[1:3, 0] = 0
    expected[1, 1] = 7
    np.testing.assert_array_equal(change(1), expected[1:2])
    np.testing.assert_array_equal(ref[...], expected)


def test_transformations() -> None:
    x = jnp.arange(5.0)
    gradient = dt.grad(lambda x, i: (x[dt.ds(i, 2)] ** 2).sum())(x, 3)
    np.testing.assert_array_equal(gradient, [0, 0, 0, 6, 8])
    windows = dt.vmap(lambda i: x[dt.ds(i, 2)])(jnp.arange(5))
    np.testing.assert_array_equal(windows, [[0, 1], [1, 2], [2, 3], [3, 4], [3, 4]])


def test_form() -> None:
    assert repr(dt.ds(1, 2, 3)) == "Slice(start=1, size=2, stride=3)"
    assert dt.ds(4) == dt.ds(0, 4) == dt.ds(0, np.int64(4), 1)
    assert dt.ds(None) == slice(None)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: x[dt.ds(0, 9)], IndexError, "takes 9 positions, and axis 0 has 4"),
        (lambda x: x[:, dt.ds(0, 3, 3)], IndexError, "takes 7 positions, and axis 1 has 5"),
        (lambda x: x[dt.ds(1.5, 2)], TypeError, "must have integer"),
        (lambda x: x[dt.ds(True, 2)], TypeError, "start of a slice is an integer"),
        (lambda x: x[dt.ds(jnp.arange(2), 2)], TypeError, "start of a slice is an integer"),
        (lambda x: dt.ds(1, -1), ValueError, "size is 0 or more"),
        (lambda x: dt.ds(1, 2, 0), ValueError, "stride is 1 or more"),
        (lambda x: dt.ds(1, 2.0), TypeError, "size and stride are ints"),
        (lambda x: dt.jit(lambda n: x[dt.ds(0, n)])(2), Exception, "int"),
    ],
)
def test_mistakes(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        call(jnp.asarray(X))
