"""Cumulative operations with a function that the user gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.core import Tracer


def one_by_one(function: Callable[[Any, Any], Any], x: Any, axis: int, reverse: bool) -> Any:
    """What a scan of an array gives, one element after another."""
    lines = np.moveaxis(x, axis, 0)
    lines = lines[::-1] if reverse else lines
    rows = [reduce(function, lines[: i + 1]) for i in range(len(lines))]
    out = np.stack(rows) if rows else lines
    return np.moveaxis(out[::-1] if reverse else out, 0, axis)


@pytest.mark.parametrize("reverse", [False, True])
def test_every_size(reverse: bool) -> None:
    xs = [np.arange(1, n + 1, dtype=np.int32) for n in range(20)]
    results = dt.jit(lambda xs: [lax.associative_scan(lax.add, x, reverse) for x in xs])(xs)
    for x, result in zip(xs, results, strict=True):
        want = np.cumsum(x[::-1])[::-1] if reverse else np.cumsum(x)
        np.testing.assert_array_equal(np.asarray(result), want)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3, np.int64(1)])
@pytest.mark.parametrize("reverse", [False, True])
def test_every_axis(axis: Any, reverse: bool) -> None:
    x = np.arange(60, dtype=np.int32).reshape(3, 4, 5) * 7 % 23
    got = lax.associative_scan(lax.max, x, reverse, axis)
    np.testing.assert_array_equal(np.asarray(got), one_by_one(np.maximum, x, axis, reverse))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_order_matters(reverse: bool, size: int) -> None:
    x = (np.arange(size * 4, dtype=np.int32) % 5 - 2).reshape(size, 2, 2)
    got = lax.associative_scan(jnp.matmul, x, reverse)
    np.testing.assert_array_equal(np.asarray(got), one_by_one(np.matmul, x, 0, reverse))


def then(first: Any, second: Any) -> Any:
    """The composition of two maps y -> a * y + b, the first of which is applied first."""
    return {"a": first["a"] * second["a"], "b": first["b"] * second["a"] + second["b"]}


def test_trees() -> None:
    maps = {"a": np.array([2, 3, -1, 2], np.int32), "b": np.array([1, 0, 5, -1], np.int32)}
    got = lax.associative_scan(then, maps)
    values, y = [], 0
    for a, b in zip(maps["a"], maps["b"], strict=True):
        y = a * y + b
        values.append(y)
    assert got["b"].tolist() == values
    # The axis is that of the first array, and others may have more dimensions.
    wide = np.arange(8, dtype=np.int32).reshape(4, 2)
    sums = lax.associative_scan(lambda x, y: (x[0] + y[0], x[1] + y[1]), (maps["a"], wide), axis=-1)
    np.testing.assert_array_equal(np.asarray(sums[1]), np.cumsum(wide, 0))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "complex64"])
def test_dtypes(dtype: str) -> None:
    x = jnp.asarray(np.array([0, 1, 0, 0, 1, 1, 0])).astype(dtype)
    for function in (lambda a, b: b, lambda a, b: a):
        got = lax.associative_scan(function, x)
        assert got.dtype == x.dtype
    assert lax.associative_scan(lambda a, b: b, x).tolist() == x.tolist()


def test_the_sign_of_zero_is_kept() -> None:
    x = np.array([-0.0, -0.0, 0.0, -0.0], np.float32)
    got = lax.associative_scan(lambda a, b: b, x)
    np.testing.assert_array_equal(np.signbit(np.asarray(got)), np.signbit(x))


@pytest.mark.parametrize("size", [1, 2, 3, 16, 17, 1000])
def test_how_often_the_function_is_called(size: int) -> None:
    calls: list[int] = []

    def function(x: Any, y: Any) -> Any:
        calls.append(x.shape[0])
        return x + y

    lax.associative_scan(function, np.ones(size, np.float32))
    assert len(calls) <= 2 * np.log2(size)
    assert sum(calls) <= 2 * size


def test_derivatives() -> None:
    x = np.array([0.5, -1.5, 2.0, 0.25, 3.0])
    with dt.enable_x64(True):

        def last(x: Any) -> Any:
            return lax.associative_scan(lax.mul, x)[-1]

        np.testing.assert_allclose(np.asarray(dt.grad(last)(x)), np.prod(x) / x)
        second = np.prod(x) / np.outer(x, x)
        np.fill_diagonal(second, 0)
        np.testing.assert_allclose(np.asarray(dt.hessian(last)(x)), second, atol=1e-12)
        jacobians = [
            f(lambda x: lax.associative_scan(lax.add, x))(x) for f in (dt.jacfwd, dt.jacrev)
        ]
    for jacobian in jacobians:
        np.testing.assert_array_equal(np.asarray(jacobian), np.tri(5))


def test_vmap() -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    got = dt.vmap(lambda x: lax.associative_scan(lax.add, x, reverse=True), in_axes=1, out_axes=1)(
        x
    )
    np.testing.assert_array_equal(np.asarray(got), np.cumsum(x[::-1], 0)[::-1])


def test_eagerly_it_is_one_program_and_inlined_when_traced() -> None:
    x = np.arange(5, dtype=np.float32)
    seen: list[Any] = []

    def function(a: Any, b: Any) -> Any:
        seen.append(a)
        return a + b

    lax.associative_scan(function, x)
    assert all(isinstance(a, Tracer) for a in seen)
    seen.clear()
    with dt.disable_jit():
        got = lax.associative_scan(function, x)
    assert not any(isinstance(a, Tracer) for a in seen)
    np.testing.assert_array_equal(np.asarray(got), np.cumsum(x))
    jaxpr = dt.make_jaxpr(lambda x: lax.associative_scan(lax.add, x))(x)
    assert "jit" not in {eqn.primitive.name for eqn in jaxpr.eqns}
    scale = jnp.asarray(2.0)
    got = lax.associative_scan(lambda a, b: (a * scale + b * scale) / scale, x)
    np.testing.assert_array_equal(np.asarray(got), np.cumsum(x))


X = np.ones((3, 4), np.float32)
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lax.associative_scan(3, X), TypeError, "takes a function"),
    (lambda: lax.associative_scan(lax.add, X, axis=2), ValueError, "axis 2 is out of bounds"),
    (lambda: lax.associative_scan(lax.add, X, axis="a"), TypeError, "axis must be an integer"),
    (lambda: lax.associative_scan(lax.add, np.float32(1)), ValueError, "out of bounds"),
    (lambda: lax.associative_scan(lax.add, {}), ValueError, "elems holds no array"),
    (lambda: lax.associative_scan(lax.add, {"a": "b"}), TypeError, r"elems\['a'\]"),
    (
        lambda: lax.associative_scan(lax.add, (X, X[:2])),
        ValueError,
        r"elems\[1\] of shape \(2, 4\)",
    ),
    (lambda: lax.associative_scan(lax.add, (X, X[0, 0]), axis=1), ValueError, r"elems\[1\]"),
    (lambda: lax.associative_scan(lambda a, b: (a,), X), TypeError, "a tree like its arguments"),
    (lambda: lax.associative_scan(lambda a, b: a[:0], X), TypeError, "was given"),
    (lambda: lax.associative_scan(lambda a, b: a > b, X), TypeError, "returned bool"),
    (lambda: lax.associative_scan(lambda a, b: None, X), TypeError, "a tree like its arguments"),
    (lambda: lax.associative_scan(lambda a, b: "x", X), TypeError, "result of <lambda>"),
]


@pytest.mark.parametrize(("function", "error", "text"), ERRORS)
def test_errors(function: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as found:
        function()
    assert "associative_scan" in str(found.value)
