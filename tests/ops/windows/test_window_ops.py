"""Reductions by windows, the derivatives of their extremes, and approximate largest elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.ops.windows.window_geometry import Window
from dovetail._core.trace.primitive import Primitive

X = (np.arange(30, dtype=np.float32) * 7 % 30).reshape(5, 6)
bfloat16 = np.dtype(ml_dtypes.bfloat16)

FUNCTIONS: list[tuple[Any, float, Any]] = [
    (lax.add, 0.0, np.add),
    (lax.max, -np.inf, np.maximum),
    (lax.min, np.inf, np.minimum),
    (lax.mul, 1.0, np.multiply),
]


def windows(x: Any, window: Any, strides: Any, padding: Any, fill: Any) -> Iterator[Any]:
    """For each position that the window sees, what all windows see there."""
    x = np.pad(x, padding, constant_values=fill)
    count = [(n - w) // s + 1 for n, w, s in zip(x.shape, window, strides, strict=True)]
    for place in itertools.product(*map(range, window)):
        yield x[
            tuple(
                slice(k, k + (n - 1) * s + 1, s)
                for k, n, s in zip(place, count, strides, strict=True)
            )
        ]


@pytest.mark.parametrize(
    ("padding", "pairs"),
    [
        ("VALID", ((0, 0), (0, 0))),
        ("SAME", ((0, 1), (0, 1))),
        ("same_lower", ((1, 0), (1, 0))),
        (((2, 0), (1, 3)), ((2, 0), (1, 3))),
        ([[np.int64(1), 1], (0, 2)], ((1, 1), (0, 2))),
    ],
)
def test_padding(padding: Any, pairs: Any) -> None:
    for function, start, universal in FUNCTIONS:
        got = lax.reduce_window(X, start, function, (2, 3), (1, 2), padding)
        want = np.full(got.shape, start, np.float32)
        for elements in windows(X, (2, 3), (1, 2), pairs, start):
            want = universal(want, elements)
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
    assert got.shape == lax.reduce_window_shape_tuple((5, 6), (2, 3), (1, 2), padding)


def test_defaults() -> None:
    got = lax.reduce_window(X, 0.0, lax.add, (2, 2))
    np.testing.assert_array_equal(
        np.asarray(got), X[:-1, :-1] + X[1:, :-1] + X[:-1, 1:] + X[1:, 1:]
    )
    assert float(lax.reduce_window(np.float32(3), 0.0, lax.add, ())) == 3


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [
        (((4, 6), (2, 3), (1, 2), "SAME"), (4, 3)),
        (((4, 6), (2, 3), (1, 2), ((0, 1), (1, 0)), (2, 3)), (7, 8)),
        (((4, 6), (2, 3), (1, 2), "VALID", None, (3, 1)), (1, 2)),
        (((4, 6), (2, 3), None, "VALID"), (3, 4)),
        (((1, 2), (4, 4), (1, 1), "VALID"), (0, 0)),
        (((0,), (2,), (1,), ((2, 1),), (3,)), (2,)),
        (((5,), (2,), (1,), ((-3, -4),)), (0,)),
        (((), (), (), ()), ()),
    ],
)
def test_shapes(arguments: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    assert lax.reduce_window_shape_tuple(*arguments) == shape
    operand, *rest = arguments
    got = lax.reduce_window(np.ones(operand, np.float32), 0.0, lax.add, *rest)
    assert got.shape == shape


def name(x: Any, *args: Any) -> str:
    """The primitive that a reduction by windows becomes."""
    jaxpr = dt.make_jaxpr(lambda x: lax.reduce_window(x, *args, (2, 2)))(x)
    return jaxpr.eqns[-1].primitive.name


def test_common_functions_are_known() -> None:
    assert name(X, 0.0, lax.add) == "reduce_window_sum"
    assert name(X, 0, lambda a, b: b + a) == "reduce_window_sum"
    assert name(X, np.int32(0), lax.add) == "reduce_window_sum"
    assert name(X, dt.device_put(-np.inf), lax.max) == "reduce_window_max"
    assert name(X.astype(bfloat16), np.float32(np.inf), lax.min) == "reduce_window_min"
    assert name(X.astype(np.int8), -128, lax.max) == "reduce_window_max"
    assert name(X > 3, False, lax.max) == "reduce_window_max"
    assert name(X + 0j, 0, lax.add) == "reduce_window_sum"
    assert name(X, 1.0, lax.add) == "reduce_window"
    assert name(X, 0.0, lax.max) == "reduce_window"
    assert name(X, 1.0, lax.mul) == "reduce_window"
    assert name(X > 3, False, lax.bitwise_or) == "reduce_window"


def test_a_start_known_only_later_is_general() -> None:
    def function(x: Any, start: Any) -> Any:
        return lax.reduce_window(x, start, lax.add, (2, 2))

    jaxpr = dt.make_jaxpr(function)(X, np.float32(0))
    assert jaxpr.eqns[-1].primitive.name == "reduce_window"
    np.testing.assert_array_equal(
        np.asarray(dt.jit(function)(X, np.float32(0))), np.asarray(function(X, 0.0))
    )


def test_several_operands() -> None:
    def largest(a: Any, b: Any) -> Any:
        later = a["value"] < b["value"]
        return {key: lax.select(later, b[key], a[key]) for key in a}

    place = np.arange(30, dtype=np.int32).reshape(5, 6)
    got = lax.reduce_window(
        {"value": X, "place": place}, {"value": -np.inf, "place": -1}, largest, (2, 3), (1, 2)
    )
    np.testing.assert_array_equal(
        np.asarray(got["value"]), np.asarray(lax.reduce_window(X, -np.inf, lax.max, (2, 3), (1, 2)))
    )
    np.testing.assert_array_equal(X.reshape(-1)[np.asarray(got["place"])], np.asarray(got["value"]))


@pytest.mark.parametrize("dtype", [bfloat16, np.dtype(np.float16)])
@pytest.mark.parametrize("size", [64, 4096])
def test_sums_of_16_bits_lose_nothing(dtype: Any, size: int) -> None:
    ones = np.ones((size, 2), dtype)
    total = lax.reduce_window(ones, 0.0, lax.add, (size, 1))
    assert np.asarray(total).astype(float).tolist() == [[size, size]]
    add = dt.grad(lambda x: lax.reduce_sum(best(x, (size,), (1,), ((size - 1, 0),)), (0,)))
    gradient = add(np.zeros(size, np.float32).astype(dtype))
    assert float(gradient[0]) == size


def best(x: Any, *args: Any, **named: Any) -> Any:
    """The largest elements that windows see."""
    return lax.reduce_window(x, -np.inf, lax.max, *args, **named)


TIES: list[tuple[list[float], int]] = [
    ([1, 1, 1], 0),
    ([1, 2, 2], 1),
    ([-0.0, 0.0, -1], 0),
    ([-np.inf, -np.inf, -np.inf], 0),
    ([np.inf, np.nan, np.inf], 1),
    ([np.nan, 1, np.nan], 0),
    ([3, 1, np.nan], 2),
]


@pytest.mark.parametrize(("row", "first"), TIES)
@pytest.mark.parametrize("repeats", [1, 400])
@pytest.mark.parametrize("low", [0, 2])
def test_the_first_of_equal_elements_has_the_derivative(
    row: list[float], first: int, repeats: int, low: int
) -> None:
    x = np.tile(np.array(row, np.float32), (repeats, 1))
    pads = ((0, 0), (low, 0))

    def largest(x: Any) -> Any:
        return best(x, (1, 3 + low), (1, 1), pads)

    want = np.zeros_like(x)
    want[:, first] = 1
    out, tangent = dt.jvp(largest, (x,), (np.cumsum(np.ones_like(x), 1),))
    np.testing.assert_array_equal(np.asarray(tangent), np.full((repeats, 1), first + 1))
    (gradient,) = dt.vjp(largest, x)[1](np.ones_like(np.asarray(out)))
    np.testing.assert_array_equal(np.asarray(gradient), want)
    smallest = dt.vjp(lambda x: lax.reduce_window(x, np.inf, lax.min, (1, 3), (1, 1)), -x)
    (gradient,) = smallest[1](np.ones_like(np.asarray(smallest[0])))
    np.testing.assert_array_equal(np.asarray(gradient), want)


@pytest.mark.parametrize("dilations", [((2, 1), (1, 1)), ((1, 1), (2, 3)), ((3, 2), (2, 1))])
def test_gradients_of_dilated_extremes(dilations: Any) -> None:
    base, window = dilations
    arguments = ((2, 3), (1, 2), ((1, 0), (2, 1)), base, window)
    out, pull_back = dt.vjp(lambda x: best(x, *arguments), X)
    ct = np.arange(1, out.size + 1, dtype=np.float32).reshape(out.shape)
    want = np.zeros_like(X)
    for value, share in zip(np.asarray(out).reshape(-1), ct.reshape(-1), strict=True):
        want += share * (value == X)  # all elements are different; -inf is none of them
    np.testing.assert_array_equal(np.asarray(pull_back(ct)[0]), want)


def test_derivatives_of_any_function() -> None:
    def product(x: Any) -> Any:
        return lax.reduce_window(x, 1.0, lax.mul, (2, 2), (1, 2), "SAME")

    with dt.enable_x64(True):
        x = 1 + X.astype(np.float64) / 30
        by_cases = dt.hessian(lambda x: lax.reduce_sum(product(x), (0, 1)))(x)
        logarithm = dt.hessian(
            lambda x: lax.reduce_sum(
                lax.exp(lax.reduce_window(lax.log(x), 0.0, lax.add, (2, 2), (1, 2), "SAME")), (0, 1)
            )
        )(x)
    np.testing.assert_allclose(np.asarray(by_cases), np.asarray(logarithm), rtol=1e-10, atol=1e-12)


def test_vmap_over_what_it_starts_with() -> None:
    def function(x: Any, start: Any) -> Any:
        return lax.reduce_window(x, start, lax.max, (2, 2))

    starts = np.array([-np.inf, 5, 20], np.float32)
    got = dt.vmap(function, in_axes=(None, 0))(X, starts)
    want = [function(X, start) for start in starts]
    np.testing.assert_array_equal(np.asarray(got), np.stack(list(map(np.asarray, want))))


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: best(X, (2,)), TypeError, "window_dimensions must have an entry for each dimension"),
    (lambda: best(X, (2, 2), (1,)), TypeError, "window_strides must have an entry"),
    (lambda: best(X, (2, 2), base_dilation=(1,)), TypeError, "base_dilation must have an entry"),
    (lambda: best(X, (2, 2), window_dilation=()), TypeError, "window_dilation must have an entry"),
    (lambda: best(X, (2, 0)), TypeError, "window_dimensions must be positive"),
    (lambda: best(X, (2, 2), (1, 0)), TypeError, "window_strides must be positive"),
    (lambda: best(X, (2, 2), base_dilation=(0, 1)), TypeError, "base_dilation must be positive"),
    (lambda: best(X, (2, 2), window_dilation=(-1, 1)), TypeError, "window_dilation must be"),
    (lambda: best(X, (2, 2.0)), TypeError, "window_dimensions must be a sequence of integers"),
    (lambda: best(X, 2), TypeError, "window_dimensions must be a sequence of integers"),
    (lambda: best(X, (2, 2), padding="FULL"), ValueError, "'VALID', 'SAME'"),
    (lambda: best(X, (2, 2), padding=((0, 0),)), ValueError, "padding must have a pair"),
    (lambda: best(X, (2, 2), padding=((0, 0), (0,))), TypeError, "padding must be"),
    (lambda: lax.reduce_window(X, X, lax.add, (2, 2)), TypeError, "must be scalars"),
    (lambda: lax.reduce_window(X, np.int32(1), lax.add, (2, 2)), TypeError, "init value of dtype"),
    (lambda: lax.reduce_window((X, X), 0.0, lax.add, (2, 2)), ValueError, "trees of one structure"),
    (lambda: lax.reduce_window((), (), lax.add, (2, 2)), ValueError, "trees of one structure"),
    (
        lambda: lax.reduce_window((X, X[0]), (0.0, 0.0), lambda a, b: a, (2, 2)),
        TypeError,
        "operands of one shape",
    ),
    (lambda: lax.reduce_window(X, 0.0, lambda a, b: (a, b), (2, 2)), TypeError, "a tree like"),
    (lambda: lax.reduce_window(X, 0.0, lambda a, b: a > b, (2, 2)), TypeError, "return scalars"),
    (
        lambda: dt.jit(lambda x, y: lax.reduce_window(x, 0.0, lambda a, b: a + y, (2, 2)))(X, 2.0),
        TypeError,
        "uses a traced value from outside",
    ),
    (lambda: lax.reduce_window_shape_tuple((2, 3), (1,), None, "SAME"), TypeError, "shape_tuple"),
    (lambda: lax.reduce_window_shape_tuple((2, -3), (1, 1), None, "SAME"), TypeError, "negative"),
]


@pytest.mark.parametrize(("function", "error", "text"), ERRORS)
def test_errors(function: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as found:
        function()
    assert "reduce_window" in str(found.value)


# What backends lower in ways of their own, where arrays are large enough.

LARGE: list[tuple[tuple[int, ...], Window]] = [
    (shape, Window(size, step, padding, base or (1,) * len(size), distance or (1,) * len(size)))
    for shape, size, step, padding, base, distance in [
        ((17, 40), (2, 2), (2, 2), ((0, 0), (0, 0)), None, None),
        ((17, 40), (3, 3), (2, 2), ((1, 1), (1, 1)), None, None),
        ((17, 40), (3, 3), (1, 1), ((1, 1), (1, 1)), None, None),
        ((17, 40), (3, 2), (3, 1), ((-1, 2), (2, -3)), None, None),
        ((17, 40), (1, 5), (2, 1), ((0, 0), (7, 6)), None, None),
        ((17, 40), (7, 6), (1, 3), ((3, 3), (9, 0)), None, None),
        ((17, 40), (2, 3), (1, 2), ((1, 2), (3, 0)), None, (3, 2)),
        ((17, 40), (2, 20), (1, 1), ((0, 0), (2, 2)), None, (2, 1)),
        ((9, 15), (3, 2), (1, 1), ((2, 1), (1, 2)), (2, 2), None),
        ((9, 15), (4, 3), (2, 1), ((-2, 5), (4, -1)), (3, 1), None),
        ((9, 15), (2, 1), (1, 2), ((3, 0), (0, 0)), (3, 4), None),
        ((9, 15), (2, 3), (1, 1), ((0, 0), (1, 1)), (2, 1), (2, 2)),
        ((300,), (24,), (1,), ((5, 5),), None, None),
        ((300,), (100,), (40,), ((20, 80),), None, None),
        ((300,), (300,), (1,), ((299, 0),), None, None),
        ((300,), (310,), (1,), ((0, 309),), None, None),
        ((300,), (45,), (2,), ((-3, 30),), (2,), None),
    ]
]


def special(shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers many of which are equal, some the worst that there are, some NaN."""
    generator = np.random.default_rng(3)
    x = generator.integers(0, 4, shape).astype(dtype)
    lucky = generator.random(shape)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.where(lucky < 0.3, limits.min, np.where(lucky < 0.4, limits.max, x)).astype(dtype)
    x = np.where(lucky < 0.4, -np.inf, np.where(lucky < 0.5, np.inf, x))
    return np.where(lucky < 0.52, np.nan, x).astype(dtype)


def together(cases: list[tuple[Primitive, tuple[Any, ...], dict[str, Any]]]) -> None:
    """Compare several applications with references, compiled as one program."""
    program = dt.jit(
        lambda args: [p.bind(*a, **params) for (p, _, params), a in zip(cases, args, strict=True)]
    )
    results = program([args for _, args, _ in cases])
    for (applied, args, params), result in zip(cases, results, strict=True):
        with np.errstate(all="ignore"):
            want = applied.reference(*args, **params)
        got = np.asarray(result)
        assert got.dtype == want.dtype, (applied, params)
        np.testing.assert_allclose(
            got.astype(np.float64),
            want.astype(np.float64),
            rtol=1e-5 if got.dtype.itemsize > 2 else 1e-2,
            err_msg=f"{applied} of {args[0].dtype} with {params}",
        )


DTYPES = [np.dtype(np.float32), bfloat16, np.dtype(np.int32), np.dtype(np.uint8)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("which", ["sum", "max", "min"])
def test_large_reductions(which: str, dtype: Any) -> None:
    applied = getattr(lax, f"reduce_window_{which}_p")
    cases: list[Any] = []
    for shape, window in LARGE if dtype == np.float32 else LARGE[1::4]:
        x = special(shape, dtype)
        if which == "sum" and dtype.kind not in "iu":
            x = np.where(np.isfinite(x.astype(np.float32)), x, 1).astype(dtype)
        cases.append((applied, (x,), window.params()))
    together(cases)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("which", [lax.ge_p, lax.le_p], ids=str)
def test_large_selections(which: Primitive, dtype: Any) -> None:
    select, cases = {"select_prim": which}, []
    for shape, window in LARGE if dtype == np.float32 else LARGE[1::4]:
        x = special(shape, dtype)
        tangents = np.arange(x.size, dtype=np.float32).reshape(shape)
        cases.append((lax.select_and_gather_add_p, (tangents, x), {**select, **window.params()}))
        if not window.is_dilated:
            count = window.count(shape)
            source = (np.arange(np.prod(count)) % 3).reshape(count).astype(dtype)
            cases.append((lax.select_and_scatter_add_p, (source, x), {**select, **window.steps()}))
    together(cases)


def test_large_windows_of_other_dtypes() -> None:
    shape, window = LARGE[2]
    x = special(shape, np.dtype(np.int32))
    sums, extreme = lax.reduce_window_sum_p, lax.reduce_window_max_p
    together([(extreme, (x > 2,), window.params())])
    together([(extreme, (x.astype(ml_dtypes.float8_e4m3fn),), window.params())])
    x = x % 4 + 1j * (x % 3)
    got = dt.jit(lambda x: sums.bind(x, **window.params()))(x.astype(np.complex64))
    np.testing.assert_allclose(np.asarray(got), sums.reference(x, **window.params()), rtol=1e-5)


# Largest elements that may be missed.


def test_approximate_extremes() -> None:
    x = X[:3]
    for k, dimension in ((1, 0), (3, 0), (2, 1), (2, -1), (6, -1)):
        values, positions = lax.approx_max_k(x, k, dimension)
        want = np.flip(np.sort(x, dimension), dimension).take(range(k), dimension)
        np.testing.assert_array_equal(np.asarray(values), want)
        np.testing.assert_array_equal(
            np.take_along_axis(x, np.asarray(positions), dimension), np.asarray(values)
        )
        values, positions = lax.approx_min_k(x, k, reduction_dimension=dimension, recall_target=0.5)
        np.testing.assert_array_equal(
            np.asarray(values), np.sort(x, dimension).take(range(k), dimension)
        )
        assert positions.dtype == np.int32


def test_approximate_extremes_of_special_values() -> None:
    x = np.array([1, np.nan, -np.inf, 3, np.inf], np.float32)
    assert np.asarray(lax.approx_max_k(x, 5)[1]).tolist() == [1, 4, 3, 0, 2]
    assert np.asarray(lax.approx_min_k(x, 5)[1]).tolist() == [2, 0, 3, 4, 1]


def test_more_approximate_extremes_than_asked_for() -> None:
    x = np.sin(np.arange(3000, dtype=np.float32))
    values, positions = lax.approx_max_k(
        x, 10, reduction_input_size_override=30000, aggregate_to_topk=False
    )
    assert values.shape == positions.shape
    assert values.shape[0] >= 10
    assert set(np.argsort(-x)[:10].tolist()) <= set(np.asarray(positions).tolist())


def test_derivatives_of_approximate_extremes() -> None:
    def total(x: Any) -> Any:
        return lax.reduce_sum(lax.square(lax.approx_max_k(x, 2)[0]), (0, 1))

    ranks = np.argsort(np.argsort(-X, 1), 1)
    np.testing.assert_allclose(np.asarray(dt.grad(total)(X)), np.where(ranks < 2, 2 * X, 0))


APPROXIMATE_ERRORS: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda f: f(X, 0), ValueError, "k must be from 1"),
    (lambda f: f(X, 7), ValueError, "k must be from 1"),
    (lambda f: f(X, 1.5), TypeError, "k must be"),
    (lambda f: f(X, 1, 2), ValueError, "reduction_dimension 2 is out of bounds"),
    (lambda f: f(np.float32(1), 1), ValueError, "out of bounds"),
    (lambda f: f(X.astype(int), 1), TypeError, "does not accept dtype"),
    (lambda f: f(X + 0j, 1), TypeError, "does not accept dtype"),
    (lambda f: f(X, 1, recall_target=0.0), ValueError, "recall_target"),
    (lambda f: f(X, 1, reduction_input_size_override=3), ValueError, "input_size_override"),
    (lambda f: f([1.0], 1), TypeError, "operand"),
]


@pytest.mark.parametrize("function", [lax.approx_max_k, lax.approx_min_k])
@pytest.mark.parametrize(("call", "error", "text"), APPROXIMATE_ERRORS)
def test_errors_of_approximate_extremes(
    function: Any, call: Callable[[Any], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(function)
