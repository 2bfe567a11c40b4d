"""Objects that are indexed, blocks, and choices, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

X, Y, M = np.array([1, 2]), np.array([3, 4]), np.ones((2, 2), np.float32)
Concrete = dt.errors.ConcretizationTypeError


def same(actual: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            same(a, e)
        return
    assert isinstance(actual, jnp.ndarray)
    assert actual.shape == np.shape(expected)
    assert np.dtype(actual.dtype).kind == np.asarray(expected).dtype.kind
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[0:3],
        np.s_[:3],
        np.s_[5:],
        np.s_[5::2],
        np.s_[0:3:4j],
        np.s_[0:3:0.5],
        np.s_[0:3, 0:2],
        np.s_[0:3:4j, 0:2],
        np.s_[1:7:2, 3:0:-1, 0:1:3j],
        (),
    ],
)
def test_grids(key: Any) -> None:
    same(jnp.mgrid[key], np.mgrid[key])
    same(jnp.ogrid[key], np.ogrid[key])


@pytest.mark.parametrize(
    "key",
    [
        (X, 3, np.array([4.0])),
        np.s_[0:3],
        np.s_[0:3:4j, 5],
        ([1, 2], 3),
        8,
        (M, M),
        ("-1,2", X, Y),
        ("0,2", X, Y),
        ("0,3,1", X, Y),
        ("0,3,-2", X, Y),
        ("0,3,0", X, Y),
        ("0,3,-1", X, np.ones((2, 1, 2))),
        ("-1", M, M),
        ("1", M, M),
    ],
)
def test_joining(key: Any) -> None:
    same(jnp.r_[key], np.r_[key])
    try:
        expected = np.c_[key]
    except ValueError:
        with pytest.raises(TypeError, match="sizes"):
            jnp.c_[key]
    else:
        same(jnp.c_[key], expected)


def test_rows_and_columns() -> None:
    same(jnp.r_["r", X, Y], np.array([[1, 2, 3, 4]]))
    same(jnp.r_["c", X, Y], np.array([[1], [2], [3], [4]]))
    same(jnp.r_["c", M], M)
    same(jnp.c_["r", X, Y], np.c_[X, Y])
    same(dt.jit(lambda x: jnp.r_[x, 0:2, 1.5])(X), np.r_[X, 0:2, 1.5])
    assert [repr(t) for t in (jnp.r_, jnp.c_, jnp.mgrid, jnp.ogrid, jnp.s_, jnp.index_exp)] == [
        *("r_", "c_", "mgrid", "ogrid", "s_", "index_exp")
    ]


def test_index_expressions() -> None:
    for key in (3, np.s_[1:2], (slice(None), ...), ()):
        assert jnp.s_[key] == np.s_[key]
        assert jnp.index_exp[key] == np.index_exp[key]
    same(jnp.arange(5)[jnp.s_[1:3]], np.array([1, 2]))


def test_ix() -> None:
    same(jnp.ix_(X, Y, np.array([0], np.int8)), np.ix_(X, Y, np.array([0], np.int8)))
    mask = np.array([True, False, True])
    same(jnp.ix_(mask, X), np.ix_(mask, X))
    assert jnp.ix_() == ()
    same(jnp.ix_(np.array([])), (np.zeros(0, int),))
    same(jnp.ix_(np.array([1.5, 2.5], np.float32), X), np.ix_(np.array([1.5, 2.5], np.float32), X))
    same(dt.jit(jnp.ix_)(X, Y), np.ix_(X, Y))


def test_mask_indices() -> None:
    same(jnp.mask_indices(4, jnp.triu), np.mask_indices(4, np.triu))
    same(jnp.mask_indices(4, jnp.tril, -1), np.mask_indices(4, np.tril, -1))
    same(
        dt.jit(lambda: jnp.mask_indices(2, jnp.triu, 1, size=2))(),
        (np.array([0, 0]), np.array([1, 0])),
    )


@pytest.mark.parametrize(
    "arrays",
    [
        X,
        5,
        [1, 2.5],
        [X, np.array([3])],
        [[X], [Y]],
        [[X[None], 5], [np.array([3, 4, 5])]],
        [[[1, 2]], [[3, 4]]],
        [[M, np.zeros((2, 1))], [np.ones((1, 2)), 7]],
        [np.ones((2, 1, 1)), np.ones((2, 1, 3))],
    ],
)
def test_block(arrays: Any) -> None:
    same(jnp.block(arrays), np.block(arrays))


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap"])
def test_choose(mode: Any) -> None:
    choices = [np.array([1, 2, 3]), np.array([4.0, 5, 6]), 7]
    for a in (np.array([0, 1, 2]), np.array([[0], [2]], np.int8)):
        same(jnp.choose(a, choices, mode=mode), np.choose(a, choices, mode=mode))
    same(jnp.choose(X - 1, np.array([[1, 2], [3, 4]]), mode=mode), np.array([1, 4]))
    if mode != "raise":
        far = np.array([-1, 5, -7])
        traced = dt.jit(lambda a: jnp.choose(a, choices, mode=mode))
        same(traced(far), np.choose(far, choices, mode=mode))
        far = np.array([200, 2**32 - 1, 3], np.uint32)
        same(traced(far), np.choose(far.astype(np.int64), choices, mode=mode))


def test_resize() -> None:
    for shape in ((2, 4), 5, (), (2, 0)):
        for x in (np.arange(3, dtype=np.int8), np.zeros((0, 2))):
            same(jnp.resize(x, shape), np.resize(x, shape))
    same(jnp.resize(3, (2,)), np.array([3, 3]))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.mgrid[3], TypeError, "mgrid.*slices.*int"),
        (lambda: jnp.ogrid[0:3, 3], TypeError, "ogrid.*slices"),
        (lambda: jnp.mgrid[0::3j], ValueError, "needs a stop"),
        (lambda: dt.jit(lambda n: jnp.mgrid[0:n])(3), Concrete, "stop of a slice in mgrid"),
        (lambda: jnp.r_[()], ValueError, "at least one"),
        (lambda: jnp.r_[X, "0"], ValueError, "stands first"),
        (lambda: jnp.r_["q", X], ValueError, "directive 'q'"),
        (lambda: jnp.c_["0,1,2,3", X], ValueError, "directive"),
        (lambda: jnp.r_["0,2,-3", X], ValueError, "rank 2"),
        (lambda: jnp.ix_(M), ValueError, "ix_ takes vectors"),
        (lambda: jnp.ix_([0, 1]), TypeError, "list"),
        (lambda: dt.jit(jnp.ix_)(np.array([True])), Concrete, "nonzero"),
        (lambda: dt.jit(lambda: jnp.mask_indices(3, jnp.triu))(), Concrete, "size="),
        (lambda: jnp.block((X, Y)), TypeError, "no tuples"),
        (lambda: jnp.block([(X, Y)]), TypeError, "no tuples"),
        (lambda: jnp.block([]), ValueError, "empty"),
        (lambda: jnp.block([X, [Y]]), ValueError, "depths"),
        (lambda: jnp.block([[X], [np.ones(3)]]), TypeError, "sizes"),
        (lambda: jnp.choose(np.array([0, 3]), [X, Y]), ValueError, "from 0 to 1"),
        (lambda: jnp.choose(np.array([0.0]), [X]), TypeError, "integers"),
        (lambda: jnp.choose(X, []), ValueError, "at least one"),
        (lambda: jnp.choose(X, [X], mode="x"), ValueError, "mode"),
        (lambda: jnp.choose(X, [X], X), NotImplementedError, "out="),
        (lambda: dt.jit(lambda a: jnp.choose(a, [X, Y]))(X), Concrete, "mode='clip'"),
        (lambda: jnp.resize(X, (-1,)), ValueError, "new_shape"),
        (lambda: jnp.resize([1], 2), TypeError, "list"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
