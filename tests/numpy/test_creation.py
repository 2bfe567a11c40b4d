"""Making arrays: from values, of one repeated value, ranges, matrices; and the names of the
package."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import UserList
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp


def same(actual: Any, expected: Any, weak: bool | None = None) -> None:
    """Equal in values, shape and dtype."""
    assert isinstance(actual, jnp.ndarray)
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == dt.dtypes.canonicalize_dtype(expected.dtype)
    np.testing.assert_array_equal(np.asarray(actual), expected.astype(actual.dtype))
    if weak is not None:
        assert actual.weak_type is weak


# ------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    "value",
    [
        [1, 2, 3],
        [1.0, 2.5],
        [True, False],
        [1, 2.5, True],
        [[1, 2], [3, 4]],
        ((1, 2.5), (3, 4)),
        [],
        [[], []],
        [[[1]], [[2]]],
        [1 + 2j, 3],
        range(4),
        np.arange(3, dtype="uint8"),
        np.float16(2.5),
        np.arange(6.0).reshape(2, 3)[:, ::2],
        np.arange(3, dtype=">i4"),
        np.array(True),
        memoryview(b"abc"),
        [np.arange(2), np.arange(2)],
    ],
)
def test_array_of_host_values(value: Any) -> None:
    same(jnp.array(value), np.array(value), weak=False)
    same(jnp.asarray(value), np.array(value), weak=False)
    if np.array(value).dtype.kind != "c":
        same(jnp.array(value, "float16"), np.array(value).astype("float16"))


@pytest.mark.parametrize("value", [2, 2.5, 2j])
def test_python_numbers_give_weak_arrays(value: Any) -> None:
    same(jnp.array(value), value, weak=True)
    same(jnp.array(value, complex), complex(value), weak=False)
    same(jnp.array([value]), [value], weak=False)
    same(jnp.array(True), True, weak=False)


def test_elements_have_their_common_dtype() -> None:
    assert jnp.array([np.float16(1), 2]).dtype == jnp.float16
    assert jnp.array([np.int8(1), np.uint8(2)]).dtype == jnp.int16
    assert jnp.array([ml_dtypes.bfloat16(1), 2.5]).dtype == jnp.bfloat16
    assert jnp.array([jnp.ones(2), jnp.arange(2)]).dtype == jnp.float32
    assert jnp.array([jnp.float16(1), 2.5]).dtype == jnp.float16


def test_arrays_and_tracers_in_sequences() -> None:
    x = jnp.arange(2.0)
    same(jnp.array([x, x + 1]), np.array([[0.0, 1], [1, 2]], np.float32))
    same(jnp.array([x[0], 5]), np.array([0, 5], np.float32))
    same(jnp.array([[x[0], 5], [6, x[1]]]), np.array([[0, 5], [6, 1]], np.float32))
    same(dt.jit(lambda a, b: jnp.array([a, 2.0, b]))(1.0, 3.0), np.array([1, 2, 3], np.float32))
    same(dt.grad(lambda a: jnp.array([[a, a * a]]).sum())(3.0), np.float32(7))
    same(dt.jit(lambda a: jnp.asarray(a))(1), 1, weak=True)
    same(dt.vmap(lambda a: jnp.array([a, 1.0]))(x), np.array([[0, 1], [1, 1]], np.float32))


def test_options_of_array() -> None:
    x = jnp.arange(3)
    assert jnp.asarray(x) is x
    assert jnp.array(x) is not x
    assert jnp.array(x, copy=False) is x
    assert jnp.asarray(x, copy=False) is x
    for values in ([1, 2], np.arange(2), np.arange(2.0, dtype="float32"), 3, np.float32(1)):
        same(jnp.asarray(values, copy=False), jnp.asarray(values))
    same(jnp.array(x, float), np.arange(3.0))
    assert jnp.array(1.0, ndmin=2).shape == (1, 1)
    assert jnp.array([1, 2], device=dt.devices()[0]).devices() == {dt.devices()[0]}
    host = np.zeros(3, np.float32)
    copied = jnp.array(host)
    host[0] = 7
    same(copied, np.zeros(3, np.float32))
    same(jnp.array([1.7, -1.7], int), np.array([1, -1], np.int32))

    class Convertible:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
            return np.arange(2.0)

    class Own:
        def __dovetail_array__(self) -> Any:
            return jnp.arange(2)

    same(jnp.array(Convertible()), np.arange(2.0))
    same(jnp.asarray(Own()), np.arange(2))
    same(jnp.negative(Own()), -np.arange(2))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.array([[1, 2], [3]]), ValueError, "inhomogeneous|equal lengths"),
        (lambda: jnp.array(["a"]), TypeError, "U1|numbers"),
        (lambda: jnp.array("a"), TypeError, "str"),
        (lambda: jnp.array(None), TypeError, "None"),
        (lambda: jnp.array([1, None]), TypeError, "None"),
        (lambda: jnp.array({1: 2}), TypeError, "dict"),
        (lambda: jnp.array(object()), TypeError, "object"),
        (lambda: jnp.array(2**40), OverflowError, "int32"),
        (lambda: jnp.array([2**40]), OverflowError, "int32"),
        (lambda: jnp.array(300, "uint8"), OverflowError, "300"),
        (lambda: jnp.array([300], "uint8"), OverflowError, "300"),
        (lambda: jnp.uint8(-1), OverflowError, "-1"),
        (lambda: jnp.array([jnp.ones(2), jnp.ones(3)]), ValueError, "equal shapes"),
        (lambda: jnp.array(1j, float), TypeError, "complex"),
        (lambda: jnp.array([1], "O"), TypeError, "array"),
        (lambda: jnp.array([1], "foo"), TypeError, "foo"),
        (lambda: jnp.array([1], order="F"), NotImplementedError, "order"),
        (lambda: jnp.array("one", int), ValueError, "does not spell numbers of int32"),
        (lambda: jnp.array(["300"], "uint8"), OverflowError, "300"),
        (lambda: jnp.array(np.array([{}]), int), TypeError, "object"),
        (lambda: jnp.array([1, None]), ValueError, "None"),
        (lambda: jnp.array(np.ma.array([1, 2], mask=[0, 1])), ValueError, "masked"),
        (lambda: jnp.arange(3)[np.ma.array([1])], ValueError, "masked"),
        (lambda: jnp.full_like(dt.random.key(0), 0.5), TypeError, "integer scalar"),
        (lambda: dt.jit(lambda k: jnp.tri(2, k=k))(0.5), TypeError, "tri.*integer"),
        (lambda: dt.jit(lambda k: jnp.tri(2, k=k))(np.arange(2)), ValueError, "scalar"),
        (lambda: jnp.zeros(3, "foo"), TypeError, "foo"),
        (lambda: jnp.zeros(-1), ValueError, "negative"),
        (lambda: jnp.zeros(2.5), TypeError, "shape.*integer"),
        (lambda: jnp.zeros("a"), TypeError, "shape.*integer"),
        (lambda: jnp.full(2, [1, 2, 3]), ValueError, "full: fill_value.*broadcast"),
        (lambda: jnp.full(2, np.ones((1, 2))), ValueError, "full: fill_value.*broadcast"),
        (lambda: jnp.full(2, 300, "uint8"), OverflowError, "^full: .* 300 .* uint8"),
        (lambda: jnp.full_like(np.ones(2, "int8"), 300), OverflowError, "^full_like: .* 300"),
        (lambda: jnp.zeros(2, jnp.ones(3)), TypeError, "write dtype=x.dtype"),
        (lambda: jnp.zeros_like([1, 2]), TypeError, "zeros_like.*list"),
        (lambda: dt.jit(jnp.zeros)(3), dt.errors.ConcretizationTypeError, "shape of zeros"),
        (lambda: dt.jit(jnp.arange)(3), dt.errors.ConcretizationTypeError, "start of arange"),
        (lambda: jnp.arange(0, 1, 0), ZeroDivisionError, "step"),
        (lambda: jnp.arange(np.nan), ValueError, "finite"),
        (lambda: jnp.arange(0, np.inf, np.nan), ValueError, "finite"),
        (lambda: jnp.arange(0, 1, np.inf), ValueError, "finite"),
        (lambda: jnp.arange(-np.inf, 0), OverflowError, "finite"),
        (lambda: jnp.arange(0, np.inf), OverflowError, "finite"),
        (lambda: jnp.arange(1j), TypeError, "real"),
        (lambda: jnp.arange(jnp.ones(2)), TypeError, "scalar"),
        (lambda: jnp.linspace(0, 1, -1), ValueError, "^linspace: num"),
        (lambda: jnp.logspace(0, 1, -1), ValueError, "^logspace: num"),
        (lambda: jnp.geomspace(1, 2, -1), ValueError, "^geomspace: num"),
        (lambda: jnp.linspace([0], 1), TypeError, "^linspace .* start"),
        (lambda: jnp.logspace(0, [1]), TypeError, "^logspace .* stop"),
        (lambda: jnp.geomspace([1], 2), TypeError, "^geomspace .* start"),
        (lambda: jnp.linspace(0, 1j, dtype=int), TypeError, "^linspace: complex .* real parts"),
        (lambda: jnp.indices((2, -1)), ValueError, "^indices.*dimensions"),
        (lambda: jnp.indices(2.5), TypeError, "^indices.*dimensions"),
        (lambda: jnp.eye(-1), ValueError, "N"),
        (lambda: jnp.diag(jnp.ones((1, 1, 1))), ValueError, "rank 3"),
        (lambda: jnp.meshgrid(jnp.ones((1, 1))), ValueError, "rank 1"),
        (lambda: jnp.meshgrid(jnp.ones(1), indexing="a"), ValueError, "indexing"),
        (lambda: jnp.arange(None), TypeError, "arange: start.*None"),
        (lambda: jnp.arange(None, 5, 2), TypeError, "arange: start.*None"),
        (lambda: jnp.indices(None), TypeError, "indices.*dimensions.*NoneType"),
        (lambda: jnp.zeros_like(np.array(["a"])), TypeError, "zeros_like.*text"),
        (lambda: jnp.full_like(np.array([object()]), 1), TypeError, "full_like.*object"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "shape", [2.0, (2.0,), (1, 2.0), np.float32(2), "23", {2: 3}, {2, 3}, UserList([2.0])], ids=repr
)
@pytest.mark.parametrize("function", [jnp.zeros, jnp.ones, jnp.empty])
def test_sizes_are_integers_whatever_was_made_before(function: Any, shape: Any) -> None:
    for made in (2, (2,), (1, 2)):
        function(made)
    with pytest.raises(TypeError, match=r"shape.*integer"):
        function(shape)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float32", "bfloat16", "bool"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 300.5, -1.5, 1e12, 1j, 2.5, -0.9])
def test_numbers_in_lists_fit_as_numbers_do(number: Any, dtype: str) -> None:
    """A number in a list gives the same as alone: an element, or an error of the same kind."""
    found: list[Any] = []
    for value in (number, [number], [[1, number]], (0.5, number)):
        try:
            found.append(np.asarray(jnp.array(value, dtype)).ravel()[-1])
        except (OverflowError, TypeError) as error:
            found.append(type(error))
    if isinstance(found[0], type):
        assert found == found[:1] * 4
    else:
        np.testing.assert_array_equal(np.array(found, np.float32), np.float32(found[0]))


def test_sixty_four_bits_are_warned_about() -> None:
    for call in (lambda: jnp.zeros(3, "float64"), lambda: jnp.array([1.0], np.float64)):
        with pytest.warns(UserWarning, match="float64"):
            assert call().dtype == jnp.float32
    with dt.enable_x64(True):
        assert jnp.zeros(3).dtype == jnp.float64
        assert jnp.array([1, 2]).dtype == jnp.int64
        assert jnp.arange(3).dtype == jnp.int64
        assert jnp.array([2**40]).tolist() == [2**40]
        assert jnp.full(2, 1.5).dtype == jnp.float64
        assert jnp.linspace(0, 1, 3).dtype == jnp.float64
    assert jnp.zeros(3).dtype == jnp.float32


# --------------------------------------------------------------------------- one repeated value


@pytest.mark.parametrize(
    "shape",
    [(), 3, (2, 3), [2, 0], (70, 70), np.int64(2), (np.int32(2), 1), UserList([2, 3]), range(1, 3)],
)
@pytest.mark.parametrize("dtype", [None, int, "bfloat16", bool, "complex64", jnp.uint8])
def test_constant_arrays(shape: Any, dtype: Any) -> None:
    kind = np.dtype(jnp.float32 if dtype is None else dt.dtypes.canonicalize_dtype(dtype))
    for _ in range(2):  # the second call takes the remembered value
        same(jnp.zeros(shape, dtype), np.zeros(shape, kind), weak=False)
        same(jnp.ones(shape, dtype), np.ones(shape, kind), weak=False)
        assert jnp.empty(shape, dtype).shape == np.zeros(shape).shape
    same(dt.jit(lambda: jnp.ones(shape, dtype))(), np.ones(shape, kind), weak=False)
    like = jnp.zeros(shape, dtype)
    same(jnp.ones_like(like), np.ones(shape, kind))
    same(jnp.full_like(like, 1), np.ones(shape, kind))
    same(jnp.zeros_like(like, shape=(2,)), np.zeros(2, kind))
    same(jnp.ones_like(like, dtype="float16"), np.ones(shape, "float16"))


def test_full() -> None:
    same(jnp.full(2, 1), [1, 1], weak=True)
    same(jnp.full((2, 2), 1.5), [[1.5, 1.5]] * 2, weak=True)
    same(jnp.full(2, 1.5, "float16"), np.float16([1.5, 1.5]), weak=False)
    same(jnp.full((2, 2), jnp.arange(2)), [[0, 1], [0, 1]])
    same(jnp.full((2, 2), [5, 6]), [[5, 6], [5, 6]])
    same(dt.jit(lambda v: jnp.full((100, 2), v))(3.0), np.full((100, 2), 3.0))
    same(jnp.full_like(jnp.float32(1.0), 2), np.float32(2), weak=False)
    assert jnp.full_like(1.0, 2).weak_type
    assert jnp.ones_like(np.zeros(2)).dtype == jnp.float32


def test_negative_zero_is_kept() -> None:
    for x in (jnp.full(2, -0.0), jnp.array([-0.0, -0.0]), dt.jit(lambda: jnp.full(2, -0.0))()):
        assert np.signbit(np.asarray(x)).all()
    assert not np.signbit(np.asarray(jnp.full(2, 0.0))).any()
    assert np.signbit(float(dt.jit(lambda x: x * -0.0)(1.0)))
    assert not np.signbit(float(dt.jit(lambda x: x * 0.0)(1.0)))


# ----------------------------------------------------------------------------------------- ranges


@pytest.mark.parametrize(
    "args",
    [
        (5,),
        (0,),
        (-3,),
        (2, 7),
        (7, 2),
        (7, 2, -2),
        (1, 10, 3),
        (0, 1, 0.25),
        (3.5,),
        (2.0, 0, -0.5),
        (0, 5000),
        (5000, 0, -7),
        (0, 5000, 1.5),
        (True,),
        (False, True),
        (False, 3, True),
        (np.int8(4),),
        (np.uint8(3), 9),
    ],
    ids=str,
)
def test_arange(args: tuple[Any, ...]) -> None:
    expected = np.arange(*args)
    result = jnp.arange(*args)
    if isinstance(args[0], (int, float)) and not isinstance(args[0], bool):
        assert result.dtype == dt.dtypes.canonicalize_dtype(expected.dtype)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(dt.jit(lambda: jnp.arange(*args))()), expected, rtol=1e-6)
    for dtype in ("float16", "uint16", "complex64", "bfloat16"):
        if expected.size < 50 and not (dtype == "uint16" and np.any(expected < 0)):
            typed = jnp.arange(*args, dtype=dtype)
            assert typed.dtype == jnp.dtype(typed.dtype)
            np.testing.assert_array_equal(np.asarray(typed), expected.astype(typed.dtype))


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("num", [0, 1, 2, 5, 50])
@pytest.mark.parametrize(
    "ends", [(0, 1), (2.0, -3.0), (np.arange(3.0), 5), (np.zeros((2, 1)), np.ones(3)), (1j, 2)]
)
def test_spaces(ends: tuple[Any, Any], num: int, endpoint: bool) -> None:
    expected = np.linspace(*ends, num, endpoint)
    result = jnp.linspace(*ends, num, endpoint)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1e-6)
    same(dt.jit(lambda a, b: jnp.linspace(a, b, num, endpoint))(*ends), np.asarray(result))
    last = np.linspace(*ends, num, endpoint, axis=-1)
    np.testing.assert_allclose(
        np.asarray(jnp.linspace(*ends, num, endpoint, axis=-1)), last, rtol=1e-5, atol=1e-6
    )
    log = np.logspace(*ends, num, endpoint)
    np.testing.assert_allclose(
        np.asarray(jnp.logspace(*ends, num, endpoint)), log, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("dtype", ["int16", "int32"])
@pytest.mark.parametrize(
    ("first", "last", "num", "endpoint"),
    [(5, 5, 3, False), (0, 9, 10, True), (3, -8, 12, True), (-5, 5, 4, False), (0, 3, 30, True)],
)
def test_linspace_of_integers(first: int, last: int, num: int, endpoint: bool, dtype: str) -> None:
    want = np.linspace(first, last, num, endpoint=endpoint, dtype=dtype)
    same(jnp.linspace(first, last, num, endpoint=endpoint, dtype=dtype), want)


@pytest.mark.parametrize("base", [2.5, np.array([2.0, 3.0]), np.array([[2.0], [3.0], [0.5]])])
@pytest.mark.parametrize("ends", [(1, 3), (np.array([1.0, 2.0]), 3), (np.array([[0.5]]), 2)])
@pytest.mark.parametrize("num", [0, 1, 4])
def test_logspace_of_several_bases(num: int, ends: tuple[Any, Any], base: Any) -> None:
    rank = np.ndim(np.broadcast_arrays(*ends, base)[0])
    for axis in range(-rank - 1, rank + 1):
        expected = np.logspace(*ends, num, base=base, axis=axis)
        found = jnp.logspace(*ends, num, base=base, axis=axis)
        assert found.shape == expected.shape
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4", "float8_e5m2"])
@pytest.mark.parametrize("function", ["linspace", "logspace", "geomspace"])
def test_spaces_of_dtypes_that_do_not_promote(function: str, dtype: str) -> None:
    ends = {"linspace": (0.0, 1.0), "logspace": (0.0, 0.0), "geomspace": (1.0, 1.0)}[function]
    want = getattr(np, function)(*ends, 3).astype(dtype)
    for wide in ("bfloat16", "float32"):
        first, last = (jnp.asarray(end, wide) for end in ends)
        same(getattr(jnp, function)(first, last, 3, dtype=dtype), want)


def test_linspace_details() -> None:
    values, step = jnp.linspace(0, 1, 5, retstep=True)
    assert float(step) == 0.25
    same(values, np.linspace(0, 1, 5))
    same(jnp.linspace(0, 9, 4, dtype=int), np.linspace(0, 9, 4, dtype=int))
    assert float(jnp.linspace(0.1, 0.7, 7)[-1]) == np.float32(0.7)
    assert float(dt.grad(lambda a: jnp.linspace(a, 1.0, 3).sum())(0.0)) == pytest.approx(1.5)
    np.testing.assert_allclose(np.asarray(jnp.geomspace(1, 1000, 4)), [1, 10, 100, 1000], rtol=1e-5)
    np.testing.assert_allclose(
        np.asarray(jnp.geomspace(-8, -1, 4)), np.geomspace(-8, -1, 4), rtol=1e-5
    )
    for ends in ((4.0, -9.0), (-4.0, 9.0), (4.0, 0.0)):  # as in NumPy
        found = np.asarray(jnp.geomspace(*ends, 3))
        assert tuple(found[[0, 2]]) == ends
    assert np.isnan(np.asarray(jnp.geomspace(4.0, -9.0, 3))[1])
    np.testing.assert_allclose(
        np.asarray(jnp.geomspace(1, 16, 4, endpoint=False)), [1, 2, 4, 8], rtol=1e-5
    )


def test_grids() -> None:
    x, y, z = np.arange(3), np.arange(2.0), np.arange(4)
    for indexing in ("xy", "ij"):
        for sparse in (False, True):
            results = jnp.meshgrid(x, y, z, indexing=indexing, sparse=sparse)
            expected = np.meshgrid(x, y, z, indexing=indexing, sparse=sparse)
            for a, b in zip(results, expected, strict=True):
                same(a, b)
    same(jnp.meshgrid(x)[0], np.meshgrid(x)[0])
    assert jnp.meshgrid() == ()
    same(jnp.indices((2, 3)), np.indices((2, 3)))
    for a, b in zip(jnp.indices((2, 3), sparse=True), np.indices((2, 3), sparse=True), strict=True):
        same(a, b)


# ------------------------------------------------------------------------------------- matrices


@pytest.mark.parametrize("k", [-4, -1, 0, 1, 2, 5])
def test_special_matrices(k: int) -> None:
    for rows, columns in ((3, None), (3, 4), (4, 2), (0, 2), (70, 80)):
        same(jnp.eye(rows, columns, k), np.eye(rows, columns, k))
        same(dt.jit(lambda r=rows, c=columns: jnp.eye(r, c, k))(), np.eye(rows, columns, k))
        same(jnp.tri(rows, columns, k), np.tri(rows, columns, k))
    same(dt.jit(lambda d: jnp.eye(3, k=d))(k), np.eye(3, k=k))
    same(jnp.identity(3, "int8"), np.identity(3, "int8"))
    for x in (np.arange(12.0).reshape(3, 4), np.arange(24).reshape(2, 3, 4), np.arange(3)):
        same(jnp.tril(x, k), np.tril(x, k))
        same(jnp.triu(x, k), np.triu(x, k))
    for a, b in zip(jnp.tril_indices(3, k, 4), np.tril_indices(3, k, 4), strict=True):
        same(a, b)
    for a, b in zip(jnp.triu_indices(3, k), np.triu_indices(3, k), strict=True):
        same(a, b)
    same(jnp.diag(np.arange(3), k), np.diag(np.arange(3), k))
    same(jnp.diagflat(np.arange(4).reshape(2, 2), k), np.diagflat(np.arange(4).reshape(2, 2), k))
    matrix = np.arange(12).reshape(3, 4)
    same(jnp.diag(matrix, k), np.diag(matrix, k))
    same(jnp.trace(matrix, k), np.trace(matrix, k))
    stack = np.arange(24.0).reshape(2, 3, 4)
    for axes in ((0, 1), (1, 2), (2, 0)):
        same(jnp.diagonal(stack, k, *axes), np.diagonal(stack, k, *axes))
        same(jnp.trace(stack, k, *axes), np.trace(stack, k, *axes))


def test_vander() -> None:
    x = np.array([1, 2, 3, 5])
    same(jnp.vander(x), np.vander(x))
    same(jnp.vander(x, 3, increasing=True), np.vander(x, 3, increasing=True))
    same(jnp.vander(x, 0), np.vander(x, 0))


def test_other_makers() -> None:
    same(
        jnp.frombuffer(b"\x01\x02\x03\x04", "int16", 1, 2),
        np.frombuffer(b"\x01\x02\x03\x04", "int16", 1, 2),
    )
    same(jnp.fromfunction(lambda i, j: 3 * i + j, (2, 3), dtype=int), np.arange(6).reshape(2, 3))
    same(jnp.copy(jnp.arange(3)), np.arange(3))


def test_astype() -> None:
    x = np.array([1.7, -1.7, 0.0])
    for dtype in ("int8", "bool", "complex64", "bfloat16", "int32"):
        target = np.dtype(getattr(ml_dtypes, dtype, dtype))
        same(jnp.astype(x, dtype), x.astype(target))
        same(jnp.array(x).astype(dtype), x.astype(target))
        same(dt.jit(lambda v: v.astype(dtype))(x), x.astype(target))  # noqa: B023  # called at once
    same(jnp.astype(np.array([1 + 2j]), float), np.array([1.0]))
    same(jnp.arange(300).astype("uint8"), np.arange(300).astype("uint8"))
    strong = jnp.asarray(1.5).astype(float)
    assert not strong.weak_type


# -------------------------------------------------------------------------------- names and types


def test_scalar_types() -> None:
    for name in (
        "float32",
        "int8",
        "bool_",
        "bfloat16",
        "complex64",
        "uint32",
        "float8_e4m3fn",
        "int4",
    ):
        scalar_type = getattr(jnp, name)
        numpy_type = getattr(ml_dtypes, name, None) or getattr(np, name)
        assert scalar_type == numpy_type
        assert scalar_type == np.dtype(numpy_type)
        assert np.dtype(scalar_type) == np.dtype(numpy_type)
        assert {scalar_type: 1}[numpy_type] == 1
        assert scalar_type != np.float64
        assert name.rstrip("_") in repr(scalar_type)
        assert pickle.loads(pickle.dumps(scalar_type)) is scalar_type
    same(jnp.float32(1), np.float32(1), weak=False)
    same(jnp.int8([1, 2]), np.int8([1, 2]))
    assert jnp.bool is jnp.bool_
    assert jnp.zeros(2, jnp.bfloat16).dtype == jnp.bfloat16
    assert jnp.issubdtype(jnp.float32, jnp.floating)
    assert jnp.issubdtype(jnp.bfloat16, jnp.inexact)
    assert not jnp.issubdtype(jnp.int8, jnp.unsignedinteger)
    assert jnp.finfo(jnp.bfloat16).bits == 16
    assert jnp.iinfo(jnp.int8).max == 127
    assert jnp.result_type(jnp.int8, 2.0) == jnp.float32
    assert jnp.promote_types("int8", "uint8") == jnp.int16
    assert jnp.can_cast("int8", "int16")
    assert jnp.isdtype(jnp.float32, ("integral", "real floating"))
    assert not jnp.isdtype("bool", "numeric")
    assert jnp.dtype("float32") == jnp.float32


def test_constants() -> None:
    assert (jnp.pi, jnp.e, jnp.inf, jnp.newaxis) == (np.pi, np.e, np.inf, None)
    assert np.isnan(jnp.nan)
    assert jnp.euler_gamma == np.euler_gamma


def test_every_name_is_there() -> None:
    for name in jnp.__all__:
        assert getattr(jnp, name) is not None or name == "newaxis"
        assert name in dir(jnp)
    for name in ("absolute", "acos", "amax", "bitwise_invert", "concat", "divide", "pow"):
        assert callable(getattr(jnp, name))
    with pytest.raises(AttributeError, match="nothing_like_it"):
        jnp.nothing_like_it  # noqa: B018  # the access is what is tested


def test_importing_the_package_loads_nothing() -> None:
    code = (
        "import sys, dovetail.numpy\n"
        "heavy = ('jaxlib', 'numpy', 'dovetail.numpy.')\n"
        "loaded = [m for m in sys.modules if m.startswith(heavy)]\n"
        "assert not loaded, loaded\n"
        "assert dovetail.numpy.pi > 3 and 'jaxlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
