"""Shape operations: against NumPy, as they print, and what they say about bad arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail.errors import ConcretizationTypeError, TracerIntegerConversionError

X = np.arange(12, dtype=np.float32).reshape(3, 4)

AGAINST_NUMPY: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (lambda x: lax.broadcast(x, (2, 1)), lambda x: np.broadcast_to(x, (2, 1, 3, 4))),
    (lambda x: lax.broadcast(x, ()), lambda x: x),
    (
        lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)),
        lambda x: np.repeat(x[:, None], 2, 1),
    ),
    (lambda x: lax.broadcast_in_dim(x, (4, 3), (1, 0)), lambda x: x.T),
    (
        lambda x: lax.broadcast_in_dim(x, (4, 2, 3), (2, 0)),
        lambda x: np.repeat(x.T[:, None], 2, 1),
    ),
    (
        lambda x: lax.broadcast_like(x, np.ones((2, 3, 4))),
        lambda x: np.broadcast_to(x, (2, 3, 4)),
    ),
    (lambda x: lax.broadcast_to_rank(x, 4), lambda x: x[None, None]),
    (lambda x: lax.broadcast_to_rank(x, 1), lambda x: x),
    (lambda x: lax.reshape(x, (2, 6)), lambda x: x.reshape(2, 6)),
    (lambda x: lax.reshape(x, 12), lambda x: x.reshape(12)),
    (lambda x: lax.reshape(x, (4, 3), (1, 0)), lambda x: x.T.reshape(4, 3)),
    (lambda x: lax.reshape(x, (2, 6), dimensions=(1, 0)), lambda x: x.T.reshape(2, 6)),
    (lambda x: lax.transpose(x, (1, 0)), lambda x: x.T),
    (lambda x: lax.transpose(x, np.array([1, 0])), lambda x: x.T),
    (lambda x: lax.squeeze(lax.expand_dims(x, (0, -1)), (-1, 0)), lambda x: x),
    (lambda x: lax.expand_dims(x, (1, 3)), lambda x: x[:, None, :, None]),
    (lambda x: lax.rev(x, (0,)), lambda x: x[::-1]),
    (lambda x: lax.rev(x, (-1, 0)), lambda x: x[::-1, ::-1]),
    (lambda x: lax.collapse(x, 0), lambda x: x.reshape(12)),
    (lambda x: lax.collapse(x[None], 0, 2), lambda x: x),
    (lambda x: lax.collapse(x, -1), lambda x: x),
    (lambda x: lax.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3))),
    (lambda x: lax.concatenate([x, x[:1], x], 0), lambda x: np.concatenate([x, x[:1], x])),
    (lambda x: lax.concatenate(x, 0), lambda x: np.concatenate(x)),
    (lambda x: lax.concatenate([x], 1), lambda x: x),
    (lambda x: lax.stack([x, x + 1], -1), lambda x: np.stack([x, x + 1], -1)),
    (lambda x: lax.split(x, (1, 0, 2)), lambda x: [x[:1], x[1:1], x[1:]]),
    (lambda x: lax.split(x, [1, 3], axis=-1), lambda x: [x[:, :1], x[:, 1:]]),
    (lambda x: lax.unstack(x, -1), lambda x: tuple(x.T)),
    (lambda x: lax.full_like(x, 2), lambda x: np.full_like(x, 2)),
    (lambda x: lax.full_like(x, 2, np.int8, (2,)), lambda x: np.full(2, 2, np.int8)),
    (lambda x: lax.full_like(x, x[1, 1]), lambda x: np.full_like(x, 5)),
]


def same(got: Any, want: Any) -> None:
    if isinstance(want, list | tuple):
        assert type(got) is type(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
        return
    assert isinstance(got, dt.Array)
    np.testing.assert_array_equal(np.asarray(got), want)
    assert got.dtype == want.dtype


@pytest.mark.parametrize(("function", "expected"), AGAINST_NUMPY)
def test_equals_numpy(function: Callable[..., Any], expected: Callable[..., Any]) -> None:
    same(function(X), expected(X))
    same(dt.jit(function)(X), expected(X))


def test_arrays_that_need_no_work_are_given_back() -> None:
    x = dt.device_put(X)
    for function in (
        lambda x: lax.broadcast(x, ()),
        lambda x: lax.reshape(x, (3, 4)),
        lambda x: lax.transpose(x, (0, 1)),
        lambda x: lax.squeeze(x, ()),
        lambda x: lax.expand_dims(x, ()),
        lambda x: lax.concatenate([x], 0),
        lambda x: lax.broadcast_to_rank(x, 2),
        lambda x: lax.broadcast_in_dim(x, (3, 4), (0, 1)),
    ):
        assert function(x) is x
        assert isinstance(function(X), dt.Array)


def test_scalars() -> None:
    same(lax.broadcast(2.0, (2,)), np.full(2, 2, np.float32))
    same(lax.expand_dims(2, (0,)), np.full(1, 2, np.int32))
    same(lax.reshape(np.float32(2), (1, 1)), np.full((1, 1), 2, np.float32))
    same(lax.concatenate([np.zeros(1, np.float32), lax.full((1,), 1.0)], 0), np.float32([0, 1]))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "bfloat16", "complex64", "float64"])
def test_full_and_iota(dtype: str) -> None:
    with dt.enable_x64(True):
        full = lax.full((2, 3), 1, dtype)
        assert (full.dtype, full.shape, full.weak_type) == (np.dtype(dtype), (2, 3), False)
        assert np.asarray(full).real.astype(int).tolist() == [[1, 1, 1]] * 2
        if dtype != "bool":
            iota = lax.broadcasted_iota(dtype, (2, 3), -1)
            assert iota.dtype == np.dtype(dtype)
            assert np.asarray(iota).real.astype(int).tolist() == [[0, 1, 2]] * 2
            assert lax.iota(dtype, 0).shape == (0,)


@pytest.mark.parametrize("size", [3, np.int64(3), np.array(3), "an array", (3,), [3]])
def test_a_size_is_any_integer(size: Any) -> None:
    if size == "an array":
        size = lax.full((), 3)
    assert lax.iota(np.int32, size).tolist() == [0, 1, 2]
    assert lax.empty(size, None).aval.str_short() == "f32[3]"
    assert lax.full(size, 1).shape == lax.broadcast(1.0, size).shape == (3,)


def test_full_takes_dtypes_from_its_value() -> None:
    assert (lax.full((2,), 1).dtype, lax.full((2,), 1).weak_type) == (np.dtype("int32"), True)
    assert lax.full((2,), np.int8(1)).dtype == np.dtype("int8")
    assert lax.full((), 2.0).shape == ()
    assert lax.full(3, 2.0).shape == (3,)
    assert lax.full((2,), dt.device_put(np.int16(3)), "float32").tolist() == [3.0, 3.0]
    assert lax.full((2,), np.float32(-0.0)).tolist() == [-0.0, -0.0]
    assert np.signbit(np.asarray(lax.full((2,), -0.0))).all()
    assert lax.empty((2, 3), "int8").shape == (2, 3)
    like = lax.full_like(dt.ShapeDtypeStruct((2,), np.float16), 1)
    assert (like.shape, like.dtype) == ((2,), np.dtype("float16"))


def test_broadcast_shapes() -> None:
    assert lax.broadcast_shapes() == ()
    assert lax.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert lax.broadcast_shapes((0,), (1,)) == (0,)
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        lax.broadcast_shapes((2, 3), (2,))


PRINTED = [
    (lambda x: lax.broadcast(x, (2,)), "broadcast_in_dim[broadcast_dimensions=(1, 2)] a"),
    (lambda x: lax.reshape(x, (12,)), "reshape[dimensions=None new_sizes=(12,) sharding=None] a"),
    (lambda x: lax.expand_dims(x, (0,)), "broadcast_in_dim[broadcast_dimensions=(1, 2)] a"),
    (lambda x: lax.rev(x, (0,)), "rev[dimensions=(0,)] a"),
    (lambda x: lax.tile(x, (2, 2)), "tile[reps=(2, 2)] a"),
    (lambda x: lax.stack([x, x], 1), "stack[axis=1] a a"),
    (lambda x: lax.unstack(x, 0), "unstack[axis=0] a"),
    (lambda x: lax.split(x, (1, 2)), "split[axis=0 sizes=(1, 2)] a"),
    (lambda x: lax.concatenate([x, x], 1), "concatenate[dimension=1] a a"),
    (lambda x: lax.full_like(x, 1), "broadcast_in_dim 1.0:f32[]"),
    (
        lambda x: lax.iota(np.float32, 5),
        "iota[dimension=0 dtype=float32 shape=(5,) sharding=None]",
    ),
]


@pytest.mark.parametrize(("function", "text"), PRINTED)
def test_printed_form(function: Callable[..., Any], text: str) -> None:
    printed = re.sub(r"\s+", " ", str(dt.make_jaxpr(function)(X)))
    assert f"= {text}" in printed


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lax.reshape(X, (5,)), TypeError, r"shape \(3, 4\) has 12 elements"),
    (lambda: lax.reshape(X, (-1,)), TypeError, "dovetail.numpy.reshape infers"),
    (lambda: lax.reshape(X, (12,), (0,)), TypeError, "must be a permutation"),
    (lambda: lax.reshape(X, "ab"), TypeError, "new_sizes must be a sequence of integers"),
    (lambda: lax.reshape([1, 2], (2,)), TypeError, "operand to be an array"),
    (lambda: lax.transpose(X, (0, 0)), TypeError, "not a permutation"),
    (lambda: lax.transpose(X, (0, -1)), TypeError, "not a permutation"),
    (lambda: lax.squeeze(X, (0,)), ValueError, "dimensions of size one"),
    (lambda: lax.squeeze(X, (2,)), ValueError, "out of bounds for an array of rank 2"),
    (lambda: lax.squeeze(X, (0, 0)), ValueError, "named twice"),
    (lambda: lax.expand_dims(X, (4,)), ValueError, "out of bounds"),
    (lambda: lax.expand_dims(X, (0, 0)), ValueError, "named twice"),
    (lambda: lax.rev(X, (2,)), ValueError, "out of bounds"),
    (lambda: lax.rev(X, (0.5,)), TypeError, "sequence of integers"),
    (lambda: lax.tile(X, (2,)), ValueError, "one non-negative integer for each dimension"),
    (lambda: lax.collapse(X, 1, 0), ValueError, "are none"),
    (lambda: lax.broadcast(X, (-1,)), TypeError, "must not be negative"),
    (lambda: lax.broadcast_in_dim(X, (3, 4), (0,)), TypeError, "must name one result"),
    (lambda: lax.broadcast_in_dim(X, (3, 5), (0, 1)), TypeError, "does not go to shape"),
    (lambda: lax.broadcast_like(X, np.ones(4)), ValueError, "fewer dimensions"),
    (lambda: lax.concatenate([], 0), ValueError, "at least one operand"),
    (lambda: lax.concatenate([X, X[0]], 0), TypeError, "must have one rank"),
    (lambda: lax.concatenate([X, X[:, :1]], 0), TypeError, "may differ only in the size"),
    (lambda: lax.concatenate([X, X.astype(int)], 0), TypeError, "equal dtypes"),
    (lambda: lax.concatenate([X, X], 2), TypeError, "dimension 2"),
    (lambda: lax.concatenate([X, X], -1), TypeError, "dimension -1"),
    (lambda: lax.stack([X, X[0]]), ValueError, "one shape"),
    (lambda: lax.stack([X], 3), ValueError, "out of bounds"),
    (lambda: lax.split(X, (1, 3)), ValueError, "add up"),
    (lambda: lax.split(X, (4, -1)), ValueError, "must not be negative"),
    (lambda: lax.unstack(X, 2), ValueError, "out of bounds"),
    (lambda: lax.full((2,), np.ones(2)), TypeError, "must be a scalar"),
    (lambda: lax.full((-2,), 1.0), TypeError, "must not be negative"),
    (lambda: lax.full((2,), 1j, np.float32), TypeError, r"lax\.full: dtype float32 .* 1j"),
    (lambda: lax.full((2,), 300, np.int8), OverflowError, r"lax\.full: dtype int8 .* 300"),
    (lambda: lax.full((2,), np.nan, int), ValueError, r"lax\.full: dtype int32 .* nan"),
    (lambda: lax.full_like(1, 1j), TypeError, r"lax\.full_like: dtype int32 .* 1j"),
    (lambda: lax.full_like(X, 300, np.int8), OverflowError, r"lax\.full_like: dtype int8 .* 300"),
    (lambda: lax.concatenate([X, X], 0.0), TypeError, "dimension must be an integer, got 0.0"),
    (lambda: lax.broadcast_in_dim(X, (3, 4), (1, 1)), TypeError, "strictly increasing"),
    (lambda: lax.full((2,), 1, "text"), TypeError, "lax.full"),
    (lambda: lax.full_like(X, X), TypeError, "must be a scalar"),
    (lambda: lax.iota(bool, 3), TypeError, "does not count in dtype bool"),
    (lambda: lax.iota(np.int32, -1), TypeError, "must not be negative"),
    (lambda: lax.broadcasted_iota(np.int32, (3,), 1), ValueError, "out of bounds"),
    (lambda: lax.full((2,), 1.0, sharding=object()), TypeError, "sharding must be a Part"),
]


@pytest.mark.parametrize(("function", "error", "text"), ERRORS)
def test_errors(function: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        function()


def test_traced_shapes_are_explained() -> None:
    with pytest.raises((ConcretizationTypeError, TracerIntegerConversionError), match="static"):
        dt.jit(lambda n: lax.full((n,), 1.0))(3)
    with pytest.raises((ConcretizationTypeError, TracerIntegerConversionError), match="static"):
        dt.jit(lambda n: lax.iota(np.int32, n))(3)
    with pytest.raises((ConcretizationTypeError, TracerIntegerConversionError), match="static"):
        dt.jit(lambda x, n: lax.reshape(x, n))(X, np.array([12]))


def test_transformations() -> None:
    def function(x: Any) -> Any:
        rows = lax.concatenate([lax.tile(x, (2, 1)), lax.rev(x, (0,))], 0)
        first, rest = lax.split(rows, (1, 8))
        return lax.stack(lax.unstack(rest, 1)), lax.squeeze(first, (0,))

    def loss(x: Any) -> Any:
        a, b = function(x)
        return lax.reduce_sum(a * a, (0, 1)) + lax.reduce_sum(b * b * b, (0,))

    gradient = dt.grad(loss)(X)
    step = 1e-3
    numeric = np.zeros_like(X, dtype=np.float64)
    with dt.enable_x64(True):
        for index in np.ndindex(*X.shape):
            change = np.zeros(X.shape)
            change[index] = step
            numeric[index] = (loss(X + change) - loss(X - change)) / (2 * step)
    np.testing.assert_allclose(np.asarray(gradient), numeric, rtol=1e-4, atol=1e-3)
    batch = np.stack([X, X + 1])
    for got, want in zip(
        dt.vmap(function)(batch), zip(*map(function, batch), strict=True), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(got), np.stack([np.asarray(w) for w in want]))


def test_shapes_as_values() -> None:
    for shape in ((2, 3), [2], (), np.array([4, 5])):
        value = lax.shape_as_value(shape)
        assert (value.dtype, value.tolist()) == (np.dtype(np.int32), list(shape))
    dt.jit(lambda x: lax.reshape(x, lax.shape_as_value(x.shape)[::-1]))(X)
    for wrong in (3, (2.5,), "ab"):
        with pytest.raises(TypeError, match="shape must be a sequence of integers"):
            lax.shape_as_value(wrong)
