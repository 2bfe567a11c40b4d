"""Reductions, positions of extremes, cumulative operations."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.ops.reduction import cumulative, general_reduction
from dovetail._core.ops.reduction import reductions as reduction
from dovetail._core.trace.primitive import Primitive, RuntimePrimitive

X = np.array([[1.0, 3, 2, 3], [0, -1, 5, 5], [2, 2, 2, 2]], np.float32)
bfloat16 = np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axes", [(0,), (1,), (-1,), (0, 1), (1, 0), (), [0], np.array([1])])
def test_equals_numpy(name: str, axes: Any) -> None:
    got = getattr(lax, f"reduce_{name}")(X, axes)
    want = getattr(np, name)(X, axis=tuple(axes))
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
    assert got.dtype == np.float32


def test_logical() -> None:
    bits = np.array([[1, 3], [5, 7]], np.uint8)
    assert lax.reduce_and(bits, (0,)).tolist() == [1, 3]
    assert lax.reduce_or(bits, (0,)).tolist() == [5, 7]
    assert lax.reduce_xor(bits, (0, 1)).tolist() == 1 ^ 3 ^ 5 ^ 7
    assert lax.reduce_and(bits > 2, (0,)).tolist() == [False, True]
    assert lax.reduce_or(bits > 2, (1,)).tolist() == [True, True]


def test_no_elements() -> None:
    empty = np.zeros((0, 2), np.float32)
    assert lax.reduce_sum(empty, (0,)).tolist() == [0, 0]
    assert lax.reduce_prod(empty, (0,)).tolist() == [1, 1]
    assert lax.reduce_max(empty, (0,)).tolist() == [-np.inf] * 2
    assert lax.reduce_min(empty.astype(np.int32), (0,)).tolist() == [2**31 - 1] * 2
    assert lax.reduce_max(empty.astype(bool), (0,)).tolist() == [False] * 2
    assert lax.reduce_and(empty.astype(np.int8), (0,)).tolist() == [-1, -1]
    assert lax.argmax(np.zeros((2, 0), np.float32), 0, np.int32).shape == (0,)
    assert lax.cumsum(empty).shape == (0, 2)
    assert lax.cumsum(np.zeros((2, 0), np.float32)).shape == (2, 0)


@pytest.mark.parametrize("dtype", [bfloat16, np.dtype(np.float16)])
def test_sums_of_16_bits_lose_nothing(dtype: Any) -> None:
    ones = np.ones(4096, dtype)
    assert float(lax.reduce_sum(ones, (0,))) == 4096
    assert float(lax.cumsum(ones)[-1]) == 4096
    assert float(lax.cumsum(ones[:, None] * np.ones(20, dtype))[-1, 3]) == 4096
    assert float(lax.reduce_prod(np.full(400, 1 + 2**-7, dtype), (0,))) == pytest.approx(
        (1 + 2**-7) ** 400, rel=0.01
    )


def test_ties_share_the_gradient() -> None:
    gradient = dt.jacobian if hasattr(dt, "jacobian") else dt.jacrev
    x = np.array([3.0, 1, 3, 3], np.float32)
    np.testing.assert_allclose(
        np.asarray(dt.grad(lambda x: lax.reduce_max(x, (0,)))(x)), [1 / 3, 0, 1 / 3, 1 / 3]
    )
    for transformation in (dt.jacfwd, gradient):
        rows = np.asarray(transformation(lax.cummax)(x))
        for i, row in enumerate(rows):
            want = dt.grad(lambda x: lax.reduce_max(x, (0,)))(x[: i + 1])
            np.testing.assert_allclose(row[: i + 1], np.asarray(want), rtol=1e-6)
            assert not row[i + 1 :].any()


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_gradient_of_products_with_zeros(zeros: int) -> None:
    x = np.array([2.0, 3, -1.5, 0.5, 4])
    x[:zeros] = 0
    with dt.enable_x64(True):
        first = np.asarray(dt.grad(lambda x: lax.reduce_prod(x, (0,)))(x))
        second = np.asarray(dt.hessian(lambda x: lax.reduce_prod(x, (0,)))(x))
        running = np.asarray(dt.jacrev(lax.cumprod)(x))
    for i in range(5):
        assert first[i] == pytest.approx(np.prod(np.delete(x, i)))
        for j in range(5):
            want = 0 if i == j else np.prod(np.delete(x, [i, j]))
            assert second[i, j] == pytest.approx(want)
            before = np.prod(np.delete(x[: j + 1], i)) if i <= j else 0
            assert running[j, i] == pytest.approx(before)


CUMULATIVE: list[tuple[str, Any]] = [
    ("cumsum", np.add),
    ("cumprod", np.multiply),
    ("cummax", np.maximum),
    ("cummin", np.minimum),
    ("cumlogsumexp", np.logaddexp),
]


@pytest.mark.parametrize(("name", "universal"), CUMULATIVE)
@pytest.mark.parametrize("shape", [(3, 40), (40, 3), (5, 1), (40, 150)])
def test_cumulative(name: str, universal: Any, shape: tuple[int, ...]) -> None:
    x = np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape) + np.float32(0.5)

    @dt.jit
    def everything(x: Any) -> Any:
        return [
            getattr(lax, name)(x, axis, reverse) for axis in (0, 1) for reverse in (False, True)
        ]

    results = iter(everything(x))
    for axis in (0, 1):
        for reverse in (False, True):
            wide = np.flip(x, axis) if reverse else x
            want = universal.accumulate(wide.astype(np.float64), axis)
            want = np.flip(want, axis) if reverse else want
            np.testing.assert_allclose(np.asarray(next(results)), want, rtol=2e-5, atol=1e-5)


def own_lowering(primitive: Primitive, **params: Any) -> Callable[[Any], Any]:
    """The primitive as its own rule lowers it, without the platform's."""
    name = f"own_{primitive.name}_{sorted(params.items())}"
    copy = RuntimePrimitive(name)
    copy.define("abstract", lambda x: primitive.abstract(x, **params))
    copy.define("lower", lambda context, x: primitive.lower(context, x, **params))
    return lambda x: copy.bind(x)


SPECIAL = np.array([1, np.nan, np.inf, -np.inf, -0.0, 0.0, np.nan, 7] * 9, np.float32)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e5m2fnuz"])
@pytest.mark.parametrize("function", [lax.cummax, lax.cummin])
def test_derivatives_of_running_extremes_where_there_is_no_infinity(
    function: Callable[[Any], Any], dtype: str
) -> None:
    def gradient(x: Any) -> Any:
        return dt.grad(lambda x: lax.reduce_sum(function(x), (0,)).astype("float32"))(x)

    x = np.array([1.0, 0.5, 2.0, 2.0], np.float32)
    got = gradient(x.astype(dtype)).astype("float32")
    np.testing.assert_array_equal(got, gradient(x))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint32", "bool"])
def test_platform_rules_agree_with_own_ones(dtype: str) -> None:
    """On a CPU: argmax in two passes, short rows as columns, cumulative operations as loops."""
    tables = [
        SPECIAL.reshape(9, 8)[:, :7],
        np.roll(SPECIAL, 3).reshape(8, 9),
        SPECIAL[8:15].reshape(1, 7),
    ]
    with np.errstate(invalid="ignore"):
        tables = [np.nan_to_num(t) % 5 if dtype[0] in "iub" else t for t in tables]
    # Short rows are columns where there are 512 of them. Of 4,096 elements XLA's own maximum of
    # rows forgets NaN.
    tables = [
        np.tile(t.astype(dtype), (times, 1)) for t, times in zip(tables, (64, 8, 8), strict=True)
    ]
    position = {"axes": (1,), "index_dtype": np.dtype(np.int32)}
    rules: list[tuple[Primitive, dict[str, Any]]] = [
        (reduction.argmax_p, position),
        (reduction.argmin_p, position),
        (reduction.reduce_max_p, {"axes": (1,)}),
        (reduction.reduce_min_p, {"axes": (1,)}),
    ]
    if dtype != "bool":
        rules += [
            (cumulative.cummax_p, {"axis": 0, "reverse": False}),
            (cumulative.cummin_p, {"axis": 0, "reverse": True}),
        ]
    own = [own_lowering(p, **params) for p, params in rules if dtype == "float32"] or [
        lambda x, p=p, params=params: np.asarray(p.reference(np.asarray(x), **params))
        for p, params in rules
    ]
    if dtype == "float32":
        expected = dt.jit(lambda xs: [[f(x) for f in own] for x in xs])(tables)
    else:
        with np.errstate(invalid="ignore"):
            expected = [[f(x) for f in own] for x in tables]
    found = dt.jit(lambda xs: [[p.bind(x, **params) for p, params in rules] for x in xs])(tables)
    for got, want, (primitive, _) in (
        item for g, w in zip(found, expected, strict=True) for item in zip(g, w, rules, strict=True)
    ):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want), err_msg=primitive.name)


def test_argmax() -> None:
    for index_dtype in (np.int32, np.uint8):
        found = lax.argmax(X, 1, index_dtype)
        assert (found.tolist(), found.dtype) == ([1, 2, 0], np.dtype(index_dtype))
    assert lax.argmin(X, -2, np.int32).tolist() == [1, 1, 0, 2]
    nan = np.array([0.0, np.nan, 5, np.nan], np.float32)
    assert (int(lax.argmax(nan, 0, np.int32)), int(lax.argmin(nan, 0, np.int32))) == (1, 1)
    zeros = np.array([-0.0, 0.0, -0.0], np.float32)
    assert (int(lax.argmax(zeros, 0, np.int32)), int(lax.argmin(zeros, 0, np.int32))) == (0, 0)
    assert int(lax.argmax(np.array([1 + 2j, 1 + 3j, 0]), 0, np.int32)) == 1
    assert not np.asarray(dt.grad(lambda x: X[lax.argmax(x, 0, np.int32), 0] * 1.0)(X[0])).any()


PRINTED = [
    (lambda x: lax.reduce_sum(x, (0,)), "reduce_sum[axes=(0,) out_sharding=None] a"),
    (lambda x: lax.reduce_max(x, (0, 1)), "reduce_max[axes=(0, 1)] a"),
    (lambda x: lax.argmax(x, 0, np.int32), "argmax[axes=(0,) index_dtype=int32] a"),
    (lambda x: lax.cumsum(x, 1, True), "cumsum[axis=1 reverse=True] a"),
]


@pytest.mark.parametrize(("function", "text"), PRINTED)
def test_printed_form(function: Callable[..., Any], text: str) -> None:
    printed = re.sub(r"\s+", " ", str(dt.make_jaxpr(function)(X)))
    assert f"= {text}" in printed


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lax.reduce_sum(X, (2,)), ValueError, "axes 2 is out of bounds"),
    (lambda: lax.reduce_sum(X, (0, -2)), ValueError, "named twice"),
    (lambda: lax.reduce_sum(X, 0), TypeError, "sequence of integers"),
    (lambda: lax.reduce_sum(X > 0, (0,)), TypeError, "reduce_sum does not accept dtype bool"),
    (lambda: lax.reduce_prod(X > 0, (0,)), TypeError, "reduce_prod does not accept dtype bool"),
    (lambda: lax.reduce_and(X, (0,)), TypeError, "reduce_and does not accept dtype float32"),
    (lambda: lax.reduce_sum([1.0], (0,)), TypeError, "dovetail.numpy.asarray"),
    (lambda: lax.argmax(X[:0], 0, np.int32), ValueError, "empty sequence"),
    (lambda: lax.argmax(X, 2, np.int32), ValueError, "out of bounds"),
    (lambda: lax.argmax(X, 0, np.float32), TypeError, "integer dtype"),
    (lambda: lax.cumsum(X, 2), ValueError, "out of bounds"),
    (lambda: lax.cumsum(X > 0), TypeError, "cumsum does not accept dtype bool"),
    (lambda: lax.cummax(X > 0), TypeError, "cummax does not accept dtype bool"),
    (lambda: lax.cumlogsumexp(X.astype(int)), TypeError, "cumlogsumexp does not accept dtype int"),
    (lambda: lax.cumsum(np.float32(1)), ValueError, "rank 0"),
]


@pytest.mark.parametrize(("function", "error", "text"), ERRORS)
def test_errors(function: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        function()


def _sum_and_product(first: Any, second: Any) -> Any:
    return {"sum": first["sum"] + second["sum"], "product": first["product"] * second["product"]}


def _both(x: Any) -> Any:
    starts = {"sum": 0.0, "product": 1.0}
    return lax.reduce({"sum": x, "product": x}, starts, _sum_and_product, (0,))


def test_reduce_with_a_function() -> None:
    for got in (_both(X), dt.jit(_both)(X)):
        np.testing.assert_allclose(np.asarray(got["sum"]), X.sum(0))
        np.testing.assert_allclose(np.asarray(got["product"]), X.prod(0))
    batched = dt.vmap(_both, in_axes=1)(X)
    np.testing.assert_allclose(np.asarray(batched["product"]), X.prod(0))
    for transformation in (dt.jacfwd, dt.jacrev):
        rows = transformation(lambda x: _both(x)["product"])(X)
        want = transformation(lambda x: lax.reduce_prod(x, (0,)))(X)
        np.testing.assert_allclose(np.asarray(rows), np.asarray(want))
    empty = lax.reduce(X[:0], 3.0, lambda a, b: a * 1 + b, (0,))
    assert empty.tolist() == [3.0] * 4
    starts = np.array([0.0, 1, 2], np.float32)
    got = dt.vmap(lambda x, s: lax.reduce(x, s, lambda a, b: a + b, (0,)))(X, starts)
    np.testing.assert_allclose(np.asarray(got), X.sum(1) + starts)
    second = dt.grad(lambda x: lax.reduce(x, 1.0, lambda a, b: a * b * 1.0, (0,)))(X[0])
    np.testing.assert_allclose(np.asarray(second), [18.0, 6, 9, 6])


def test_reduce_agrees_with_its_reference() -> None:
    jaxpr = dt.make_jaxpr(lambda a, b: lax.max(a, b) + 0 * a)(np.float32(0), np.float32(0))
    params = {"jaxpr": jaxpr, "dimensions": (1,)}
    (want,) = general_reduction.reduce_p.reference(X, np.float32(-9), **params)
    (got,) = general_reduction.reduce_p.bind(X, np.float32(-9), **params)
    np.testing.assert_array_equal(np.asarray(got), want)


def test_reduce_knows_common_functions() -> None:
    def name(*args: Any) -> str:
        jaxpr = dt.make_jaxpr(lambda x: lax.reduce(x, *args, (0,)))(X)
        return jaxpr.eqns[-1].primitive.name

    assert name(0.0, lax.add) == "reduce_sum"
    assert name(0, lambda a, b: b + a) == "reduce_sum"
    assert name(1.0, lax.mul) == "reduce_prod"
    assert name(-np.inf, lax.max) == "reduce_max"
    assert name(np.float32(np.inf), lax.min) == "reduce_min"
    assert name(dt.device_put(np.int32(0)), lax.add) == "reduce_sum"
    assert name(1.0, lax.add) == "reduce"
    assert name(0.0, lambda a, b: a + a) == "reduce"
    assert lax.reduce(X > 2, False, lax.bitwise_or, (0,)).tolist() == [False, True, True, True]


REDUCE_ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lax.reduce(X, 0.0, lax.add, (2,)), ValueError, "out of bounds"),
    (lambda: lax.reduce((X, X), (0.0,), lax.add, (0,)), ValueError, "trees of one structure"),
    (lambda: lax.reduce(X, X, lax.add, (0,)), TypeError, "must be scalars"),
    (lambda: lax.reduce(X.astype(int), 0.5, lax.add, (0,)), TypeError, "init value of dtype"),
    (lambda: lax.reduce(X, np.int32(5), lax.add, (0,)), TypeError, "init value of dtype"),
    (lambda: lax.reduce((X, X[0]), (0.0, 0.0), lambda a, b: a, (0,)), TypeError, "of one shape"),
    (lambda: lax.reduce(X, 0.0, lambda a, b: (a, b), (0,)), TypeError, "must be a tree like"),
    (lambda: lax.reduce(X, 0.0, lambda a, b: a > b, (0,)), TypeError, "must return scalars"),
    (
        lambda: dt.jit(lambda x, y: lax.reduce(x, 0.0, lambda a, b: a + b * y, (0,)))(X, 2.0),
        TypeError,
        "uses a traced value from outside",
    ),
]


@pytest.mark.parametrize(("function", "error", "text"), REDUCE_ERRORS)
def test_errors_of_reduce(function: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        function()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_extreme_of_computed_values_is_found(dtype: str) -> None:
    """Fused with what computes its operand, argmax must not see other roundings of it."""
    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, (300, 300)).astype(dtype) for _ in range(2))

    def values(a: Any, b: Any) -> Any:
        return lax.add(lax.mul(lax.exp(a), b), lax.sin(a))

    x = np.asarray(dt.jit(values)(a, b)).astype(np.float64)
    largest = dt.jit(lambda a, b: lax.argmax(values(a, b), 1, np.int32))(a, b)
    smallest = dt.jit(lambda a, b: lax.argmin(values(a, b), 0, np.int32))(a, b)
    np.testing.assert_array_equal(largest, x.argmax(1))
    np.testing.assert_array_equal(smallest, x.argmin(0))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float32", "bfloat16"])
@pytest.mark.parametrize("kind", [float, np.float32])
def test_infinities_are_neutral_for_extrema(dtype: str, kind: Any) -> None:
    """Whatever the dtype of the elements, an infinity is beyond them."""
    x = np.array([1, 0, 3, 2]).astype(dtype)
    for computation, start, extremum in ((lax.max, -np.inf, max), (lax.min, np.inf, min)):
        start = kind(start)
        result = lax.reduce(x, start, computation, (0,))
        assert (result.dtype, result) == (dtype, extremum(x))
        windows = lax.reduce_window(x, start, computation, (2,), (1,), "VALID")
        expected = [extremum(pair) for pair in itertools.pairwise(x)]
        assert windows.dtype == dtype
        np.testing.assert_array_equal(windows, np.array(expected, dtype))
        if x.dtype.kind in "iu":
            for wrong in (-start, kind(0.5)):
                with pytest.raises(TypeError, match="init value of dtype float32"):
                    lax.reduce(x, wrong, computation, (0,))
