"""Arguments beyond arrays of the usual kind that functions take: lists, dtypes, keys, booleans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
KEY = random.key(5)
KEYS = random.split(KEY)
COMPLEX = np.array([1.567 + 2.345j, -0.5 - 20.5j], np.complex64)
ONE_HOT: Any = {"mode": "one_hot"}


def numbers(keys: Any) -> Any:
    return random.key_data(keys)


CALLS: dict[str, tuple[Callable[[], Any], Any]] = {
    # values: what is called, what it gives
    "shape of a list": (lambda: jnp.shape([MATRIX, MATRIX]), (2, 2, 3)),
    "shape of nothing": (lambda: jnp.shape([]), (0,)),
    "shape of a text": (lambda: (jnp.shape("abc"), jnp.shape(None), jnp.shape(int)), ((), (), ())),
    "axes from a range": (
        lambda: (
            jnp.sum(MATRIX, range(2)).tolist(),
            jnp.expand_dims(MATRIX, range(2)).shape,
            jnp.flip(MATRIX, range(2))[0].tolist(),
            jnp.roll(MATRIX, (1, 1), range(2))[0].tolist(),
            jnp.transpose(MATRIX, range(1, -1, -1)).shape,
            jnp.squeeze(MATRIX[:1, :1], range(2)).tolist(),
        ),
        (15, (1, 1, 2, 3), [5, 4, 3], [5, 3, 4], (3, 2), 0),
    ),
    "ndim": (lambda: (jnp.ndim([[1], [2]]), jnp.ndim(jnp.float32), jnp.ndim(3)), (2, 0, 0)),
    "size": (lambda: (jnp.size([[1], [2]]), jnp.size([[1], [2]], 0), jnp.size(None)), (2, 2, 1)),
    "iscomplexobj": (
        lambda: [
            jnp.iscomplexobj(x)
            for x in ([1, 2j], (1, 2), [], 1j, jnp.complex64, complex, np.dtype("c8"), "c8", None)
        ],
        [True, False, False, True, True, True, True, False, False],
    ),
    "isrealobj": (
        lambda: [jnp.isrealobj(x) for x in ([1, 2j], [1], jnp.complex64, jnp.int8, None, KEY)],
        [False, True, False, True, True, True],
    ),
    # arrays
    "texts": (lambda: jnp.array(["1", "-2"], int), np.array([1, -2], np.int32)),
    "texts in rows": (lambda: jnp.array([["1.5"], [2]], "bfloat16"), [[1.5], [2]]),
    "a text": (lambda: jnp.asarray(b"12", dtype="float32"), np.float32(12)),
    "NumPy's texts": (lambda: jnp.array(np.array(["1", "2"]), int), np.array([1, 2], np.int32)),
    "objects": (lambda: jnp.array(np.array([1, 2], object), int), np.array([1, 2], np.int32)),
    "positions of a flattened array": (
        lambda: jnp.ravel_multi_index((1, 2), (2, 3), mode="raise"),
        np.int32(5),
    ),
    "tri": (lambda: dt.jit(lambda k: jnp.tri(2, 3, k, int))(1), np.tri(2, 3, 1, np.int32)),
    "many tri": (
        lambda: dt.vmap(lambda k: jnp.tri(3, k=k))(jnp.arange(-1, 2)),
        np.stack([np.tri(3, k=k, dtype=np.float32) for k in (-1, 0, 1)]),
    ),
    "eye": (lambda: dt.jit(lambda k: jnp.eye(3, k=k))(-1), np.eye(3, k=-1, dtype=np.float32)),
    "trace": (lambda: dt.jit(lambda k: jnp.trace(MATRIX, k))(1), np.float32(6)),
    "trace of truths": (lambda: dt.jit(lambda k: jnp.trace(MATRIX > 3, k))(0), np.int32(1)),
    "boolean shifts": (
        lambda: jnp.array([True, False]) << jnp.array([True, True]),
        np.array([2, 0], np.int32),
    ),
    "right_shift": (lambda: jnp.right_shift(True, np.array([False, True])), np.array([1, 0])),
    "boolean positions": (
        lambda: jnp.take(MATRIX, np.array([True, False]), axis=1),
        MATRIX[:, [1, 0]],
    ),
    "take of one": (lambda: jnp.take(MATRIX, True), np.float32(1)),
    "put": (lambda: jnp.put(MATRIX[0], np.array([True]), 9, inplace=False), [0, 9, 2]),
    "one_hot": (
        lambda: jnp.take_along_axis(MATRIX, np.array([[0, 5], [-1, -4]]), 1, **ONE_HOT),
        np.array([[0, 0], [5, 0]], np.float32),
    ),
    "one_hot of rows": (
        lambda: jnp.take_along_axis(MATRIX, np.array([[0, 1, 0]], "uint8"), 0, **ONE_HOT),
        np.array([[0, 4, 2]], np.float32),
    ),
    "one_hot of truths": (
        lambda: jnp.take_along_axis(MATRIX > 1, np.array([2, 9]), None, **ONE_HOT),
        np.array([True, False]),
    ),
    "one_hot and nan": (
        lambda: jnp.take_along_axis(np.array([np.nan, 2], "f4"), np.array([1]), 0, **ONE_HOT),
        np.array([2], np.float32),
    ),
    "one_hot gradient": (
        lambda: dt.grad(lambda x: jnp.take_along_axis(x, np.array([[0], [2]]), 1, **ONE_HOT).sum())(
            MATRIX
        ),
        np.array([[1, 0, 0], [0, 0, 1]], np.float32),
    ),
    "round": (lambda: jnp.round(COMPLEX, 1), np.round(COMPLEX, 1)),
    "round to tens": (lambda: jnp.round(COMPLEX, -1), np.round(COMPLEX, -1)),
    "polyadd": (
        lambda: jnp.polyadd(MATRIX, np.ones((3, 3), "f4")),
        np.vstack([np.ones((1, 3)), MATRIX + 1]).astype(np.float32),
    ),
    "polysub": (lambda: jnp.polysub(MATRIX, MATRIX[:1]), [[0, 1, 2], [3, 3, 3]]),
    "polyval": (lambda: jnp.polyval(MATRIX, np.float32(2)), MATRIX[0] * 2 + MATRIX[1]),
    "polyval of rows": (
        lambda: jnp.polyval(MATRIX, np.ones((4, 1), "f4")),
        np.broadcast_to(MATRIX.sum(0), (4, 3)),
    ),
    "long polyval": (lambda: jnp.polyval(np.ones((20, 2), "f4"), np.float32(1)), [20, 20]),
    "polyder": (lambda: jnp.polyder(MATRIX), MATRIX[:1]),
    # random keys
    "full_like": (lambda: numbers(jnp.full_like(KEYS, KEY)), [[0, 5], [0, 5]]),
    "full_like of a number": (lambda: numbers(jnp.full_like(KEY, 3)), [3, 3]),
    "full_like of a shape": (lambda: numbers(jnp.full_like(KEY, KEYS, shape=2)), numbers(KEYS)),
    "zeros_like": (lambda: numbers(jnp.zeros_like(KEYS)), [[0, 0], [0, 0]]),
    "ones_like": (lambda: numbers(dt.jit(jnp.ones_like)(KEY)), [1, 1]),
    "empty_like": (lambda: jnp.empty_like(KEYS).shape, (2,)),
    "zeros": (lambda: numbers(jnp.zeros(1, KEY.dtype)), [[0, 0]]),
    "full": (lambda: numbers(jnp.full(1, KEY, KEY.dtype)), [[0, 5]]),
    "lax.full": (lambda: numbers(lax.full((1,), 7, KEY.dtype)), [[7, 7]]),
    "lax.full_like": (lambda: numbers(lax.full_like(KEY, 7)), [7, 7]),
    "lax.empty": (lambda: lax.empty((2,), KEY.dtype).dtype == KEY.dtype, True),
    "isclose": (lambda: jnp.isclose(KEYS, KEYS[::-1]), [False, False]),
    "allclose": (lambda: jnp.allclose(KEYS, KEYS), True),
    "wrap_key_data": (
        lambda: numbers(random.wrap_key_data(numbers(KEY), dtype=KEY.dtype)),
        [0, 5],
    ),
    "wrap_key_data by name": (
        lambda: numbers(random.wrap_key_data(numbers(KEY), dtype="threefry2x32")),
        [0, 5],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_taken(name: str) -> None:
    call, expected = CALLS[name]
    found = call()
    if not isinstance(found, jnp.ndarray):
        assert found == expected
        return
    np.testing.assert_allclose(np.asarray(found, np.asarray(expected).dtype), expected, 1e-6)
    if isinstance(expected, (np.ndarray, np.generic)) and expected.dtype.itemsize <= 4:
        assert found.dtype == expected.dtype


@pytest.mark.parametrize(
    ("x", "y"),
    [(1j, 2.0), (3 + 2j, 3 - 2j), (-np.inf, -np.inf), (500 + 1j, 499 - 2j), (2.0, -999 + 1j)],
)
def test_complex_logaddexp2(x: complex, y: complex) -> None:
    expected = np.logaddexp(-np.inf, -np.inf)
    if np.isfinite(x.real) or np.isfinite(y.real):
        scale = max(np.real(x), np.real(y))
        expected = scale + np.log2(2 ** (np.complex128(x) - scale) + 2 ** (complex(y) - scale))
    with dt.enable_x64(True):
        found = complex(jnp.logaddexp2(np.complex128(x), np.complex128(y)))
    np.testing.assert_allclose(found, expected, 1e-12)


X = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)
#: Functions of `lax` whose results are a list.
LISTS: dict[str, Callable[[], Any]] = {
    "top_k": lambda: lax.top_k(X, 1),
    "approx_max_k": lambda: lax.approx_max_k(X, 1),
    "approx_min_k": lambda: lax.approx_min_k(X, 1),
    "lu": lambda: lax.linalg.lu(X),
    "hessenberg": lambda: lax.linalg.hessenberg(X),
    "schur": lambda: lax.linalg.schur(X),
    "tridiagonal": lambda: lax.linalg.tridiagonal(X),
    "optimization_barrier": lambda: lax.optimization_barrier([X]),
    "split": lambda: lax.split(X, (1, 1)),
    "atleast_1d": lambda: jnp.atleast_1d(1, 2),
    "atleast_2d": lambda: jnp.atleast_2d(1, 2),
    "atleast_3d": lambda: jnp.atleast_3d(1, 2),
    "jnp.split": lambda: jnp.split(X, 2),
    "jnp.array_split": lambda: jnp.array_split(X, 2),
    "jnp.ogrid": lambda: jnp.ogrid[0:2, 0:2],
}
#: Functions whose results are a tuple: as in the array API standard, where that has them.
TUPLES: dict[str, Callable[[], Any]] = {
    "top_k": lambda: jnp.top_k(X, 1),
    "meshgrid": lambda: jnp.meshgrid(X[0], X[0]),
    "broadcast_arrays": lambda: jnp.broadcast_arrays(X, X[0]),
    "unstack": lambda: jnp.unstack(X),
    "nonzero": lambda: jnp.nonzero(X),
    "ix_": lambda: jnp.ix_(np.arange(2)),
    "indices": lambda: jnp.indices((2,), sparse=True),
    "lax.qr": lambda: lax.linalg.qr(X),
    "lax.svd": lambda: lax.linalg.svd(X),
    "lax.sort": lambda: lax.sort((X, X), num_keys=1),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists(name: str) -> None:
    assert type(LISTS[name]()) is list


@pytest.mark.parametrize("name", TUPLES)
def test_tuples(name: str) -> None:
    assert type(TUPLES[name]()) is tuple
