"""experimental.buffer_callback: Python functions that write to the memory of programs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental.buffer_callback import (
    Buffer,
    ExecutionContext,
    ExecutionStage,
    buffer_callback,
)

X = np.arange(6, dtype=np.float32).reshape(2, 3)
WAYS = {"eager": lambda f: f, "jit": dt.jit}


def like(x: Any) -> Any:
    return dt.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype)


def double(context: Any, out: Any, x: Any) -> None:
    np.asarray(out)[...] = np.asarray(x) * 2


DTYPES = [
    *("bool", "int8", "int32", "uint8", "uint32", "float16", "float32", "complex64"),
    ml_dtypes.bfloat16,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3), (2, 1, 3)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_and_shapes(dtype: Any, shape: tuple[int, ...], way: str) -> None:
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)

    def copy(context: Any, out: Any, given: Any) -> None:
        assert isinstance(given, Buffer)
        assert isinstance(out, Buffer)
        assert (given.shape, given.dtype, given.ndim) == (shape, np.dtype(dtype), len(shape))
        assert (out.shape, out.dtype) == (shape, np.dtype(dtype))
        assert out.writeable
        assert not given.writeable
        np.asarray(out)[...] = np.asarray(given)

    result = WAYS[way](buffer_callback(copy, like(x)))(x)
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(result, x)


@pytest.mark.parametrize("way", WAYS)
def test_trees_and_keywords(way: str) -> None:
    def fill(context: Any, out: Any, x: Any, *, scale: Any) -> None:
        np.asarray(out["sum"])[...] = (np.asarray(x[0]) + np.asarray(x[1])) * np.asarray(scale)
        np.asarray(out["count"][0])[...] = 2

    results = {"sum": like(X), "count": (dt.ShapeDtypeStruct((), np.int32),)}
    call = buffer_callback(fill, results)
    found = WAYS[way](lambda x, y: call([x, y], scale=3.0))(X, X + 1)
    np.testing.assert_array_equal(found["sum"], (2 * X + 1) * 3)
    assert int(found["count"][0]) == 2


def test_the_context() -> None:
    seen: list[Any] = []

    def look(context: Any, out: Any) -> None:
        seen.append((type(context), context.stage))
        np.asarray(out)[...] = 1

    np.testing.assert_array_equal(buffer_callback(look, like(X))(), np.ones_like(X))
    assert seen == [(ExecutionContext, ExecutionStage.EXECUTE)]


@pytest.mark.parametrize("way", WAYS)
def test_aliased_arguments_are_where_results_begin(way: str) -> None:
    def add(context: Any, out: Any, x: Any, y: Any) -> None:
        np.asarray(out)[...] += np.asarray(y)

    x = jnp.asarray(X)
    call = buffer_callback(add, like(X), input_output_aliases={0: 0})
    np.testing.assert_array_equal(WAYS[way](call)(x, X), 2 * X)
    np.testing.assert_array_equal(x, X)  # what the caller holds is not written to
    np.testing.assert_array_equal(dt.jit(lambda x: call(x, x) + x)(x), 3 * X)


METHODS = {
    "sequential": [(3,), (3,)],
    "sequential_unrolled": [(3,), (3,)],
    "expand_dims": [(2, 3)],
    "broadcast_all": [(2, 3)],
    "legacy_vectorized": [(2, 3)],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", METHODS)
def test_vmap(method: str, way: str) -> None:
    shapes: list[Any] = []

    def add(context: Any, out: Any, x: Any, y: Any) -> None:
        shapes.append(x.shape)
        np.asarray(out)[...] = np.asarray(x) + np.asarray(y)

    y = np.float32([5, 6, 7])
    call = buffer_callback(add, like(y), vmap_method=method)
    found = WAYS[way](dt.vmap(call, (0, None)))(X, y)
    np.testing.assert_array_equal(found, X + y)
    assert shapes == METHODS[method]


def test_loops_and_branches() -> None:
    call = buffer_callback(double, dt.ShapeDtypeStruct((), np.float32))
    found = dt.jit(lambda x: lax.scan(lambda c, _: (call(c), c), x, None, length=5))(1.0)
    assert float(found[0]) == 32.0
    branch = dt.jit(lambda x: lax.cond(x > 0, call, lambda x: x, x))
    assert [float(branch(x)) for x in (2.0, -2.0)] == [4.0, -2.0]


def test_a_custom_rule_gives_a_derivative() -> None:
    call = dt.custom_jvp(buffer_callback(double, dt.ShapeDtypeStruct((), np.float32)))
    call.defjvp(lambda primals, tangents: (call(*primals), 2 * tangents[0]))
    assert float(dt.grad(lambda x: call(x) ** 2)(3.0)) == 24.0
    with pytest.raises(ValueError, match=r"buffer_callback has no derivative.*double"):
        dt.grad(buffer_callback(double, dt.ShapeDtypeStruct((), np.float32)))(1.0)


@pytest.mark.parametrize("effect", [False, True])
def test_side_effects(effect: bool) -> None:
    calls: list[int] = []

    def count(context: Any, out: Any, x: Any) -> None:
        calls.append(1)
        np.asarray(out)[...] = 0

    call = buffer_callback(count, like(X), has_side_effect=effect)
    dt.jit(lambda x: (call(x), x)[1])(X)
    dt.effects_barrier()
    assert len(calls) == int(effect)


@pytest.mark.parametrize("effect", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_what_it_raises(way: str, effect: bool) -> None:
    def fail(context: Any, out: Any, x: Any) -> None:
        raise LookupError("no such row")

    call = WAYS[way](buffer_callback(fail, like(X), has_side_effect=effect))
    with pytest.raises(LookupError, match="no such row") as caught:
        np.asarray(call(X))
    assert (
        "which buffer_callback was given at test_buffer_callback.py:" in caught.value.__notes__[0]
    )


def test_it_may_compute() -> None:
    def sines(context: Any, out: Any, x: Any) -> None:
        np.asarray(out)[...] = dt.jit(jnp.sin)(np.asarray(x))

    found = dt.jit(buffer_callback(sines, like(X)))(X)
    np.testing.assert_allclose(found, np.sin(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: buffer_callback(3, like(X)), TypeError, "takes a function"),  # type: ignore[arg-type]
        (lambda: buffer_callback(double, 3), TypeError, "must have a shape and a dtype"),
        (
            lambda: buffer_callback(double, like(X), vmap_method="all"),
            ValueError,
            "vmap_method of buffer_callback must be one of",
        ),
        (lambda: buffer_callback(double, like(X))("text"), TypeError, r"args\[0\].*got str"),
        (lambda: buffer_callback(double, like(X))(dt.random.key(0)), TypeError, "key_data"),
        (
            lambda: buffer_callback(double, like(X), input_output_aliases={1: 0})(X),
            ValueError,
            "has 1: 0, with 1 argument and 1 result",
        ),
        (
            lambda: buffer_callback(double, like(X[0]), input_output_aliases={0: 0})(X),
            ValueError,
            r"argument 0 and result 0.*differ: f32\[2,3\] and f32\[3\]",
        ),
        (
            lambda: buffer_callback(double, like(X), input_output_aliases={0: 0, 1: 0})(X, X),
            ValueError,
            "one result for several arguments",
        ),
        (lambda: dt.vmap(buffer_callback(double, like(X)))(X), NotImplementedError, "vmap_method"),
        (
            lambda: (
                dt.jit(buffer_callback(double, like(X))).trace(X).lower(lowering_platforms=("tpu",))
            ),
            NotImplementedError,
            "programs for tpu cannot give Python their memory.*pure_callback",
        ),
    ],
)
def test_misuse(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
