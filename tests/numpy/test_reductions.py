"""Reductions and running sums against NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(2, 3, 4)).astype(np.float32)
NANS = REAL.copy()
NANS[0, 1, 2] = NANS[1, 0, 0] = np.nan
NANS[1, 2] = np.nan
MASK = RNG.random((2, 3, 4)) > 0.4

DTYPES = ("float32", "float16", "bfloat16", "int8", "uint8", "int32", "uint32", "bool", "complex64")
AXES: tuple[Any, ...] = (None, 0, -1, (0, 2), (), (-1, 0, 1))


def make(dtype: str, shape: tuple[int, ...] = (2, 3, 4)) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(7)  # of its own, so that values do not depend on which tests run
    values = rng.integers(1, 5, size=shape)
    if dtype == "complex64":
        return (values + 1j * rng.integers(-2, 3, size=shape)).astype(dtype)
    if dtype == "bool":
        return values > 2
    return values.astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))


def wide(x: Any) -> Any:
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.name in ("float16", "bfloat16", "float32") else x


def close(actual: Any, expected: Any, rtol: float = 2e-5) -> None:
    assert actual.shape == np.shape(expected)
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(actual.dtype.name, rtol)
    np.testing.assert_allclose(wide(actual), wide(expected), rtol=tolerance, atol=tolerance)


def quiet(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def result_dtype(name: str, dtype: str) -> str:
    if name in ("any", "all"):
        return "bool"
    if name in ("sum", "prod", "cumsum", "cumprod"):
        small = {"bool": "int32", "int8": "int32", "uint8": "uint32"}
        return small.get(dtype, dtype) if name in ("sum", "prod") or dtype == "bool" else dtype
    if name in ("mean", "average", "var", "std", "median"):
        if dtype == "complex64":
            return "complex64" if name in ("mean", "average") else "float32"
        return dtype if dtype in ("float32", "float16", "bfloat16") else "float32"
    return {"argmax": "int32", "argmin": "int32", "count_nonzero": "int32"}.get(name, dtype)


FUNCTIONS = (
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "var",
    "std",
    "any",
    "all",
    "count_nonzero",
    "average",
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes(name: str, dtype: str) -> None:
    x = make(dtype)
    function = getattr(jnp, name)
    expected = getattr(np, name)(wide(x), axis=1)
    result = function(x, axis=1)
    assert result.dtype.name == result_dtype(name, dtype)
    assert not result.weak_type
    close(result, expected)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_axes(name: str, axis: Any, keepdims: bool) -> None:
    options = {"axis": axis, "keepdims": keepdims}
    x = MASK.astype(np.int32) if name in ("any", "all", "count_nonzero") else REAL
    if name == "average" and axis == ():
        return
    expected = getattr(np, name)(x, **options)
    close(getattr(jnp, name)(x, **options), expected)
    close(dt.jit(lambda v: getattr(jnp, name)(v, **options))(x), expected)
    if name not in ("count_nonzero", "average"):
        close(getattr(jnp.asarray(x), name)(**options), expected)
    mapped = dt.vmap(lambda v: getattr(jnp, name)(v, **options))(np.stack([x, x]))
    close(mapped, np.stack([expected, expected]))


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0)])
@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean", "var", "any", "all", "count_nonzero", "nansum"]
)
def test_scalars_and_no_elements(name: str, shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    close(getattr(jnp, name)(x), quiet(getattr(np, name), x))
    if len(shape) == 2:
        close(getattr(jnp, name)(x, axis=0), quiet(getattr(np, name), x, axis=0))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std"])
@pytest.mark.parametrize("axis", [None, 1, (0, -1)])
def test_where(name: str, axis: Any) -> None:
    options: dict[str, Any] = {"axis": axis, "where": MASK}
    if name in ("max", "min"):
        options["initial"] = -10.0 if name == "max" else 10.0
    expected = quiet(getattr(np, name), REAL, **options)
    close(getattr(jnp, name)(REAL, **options), expected)
    row = {**options, "where": MASK[0, :1]}
    close(getattr(jnp, name)(REAL, **row), quiet(getattr(np, name), REAL, **row))


def test_options() -> None:
    close(jnp.sum(REAL, axis=0, initial=5), np.sum(REAL, axis=0, initial=5))
    close(jnp.prod(REAL, axis=0, initial=5), np.prod(REAL, axis=0, initial=5))
    close(jnp.max(REAL, axis=0, initial=0.5), np.max(REAL, axis=0, initial=0.5))
    close(jnp.max(np.ones((0, 2)), axis=0, initial=3.0), [3.0, 3.0])
    assert jnp.sum(make("int8"), promote_integers=False).dtype == jnp.int8
    assert jnp.sum(REAL, dtype="float16").dtype == jnp.float16
    assert jnp.sum(np.array([200, 100], "uint8"), dtype="uint8").tolist() == 44
    assert jnp.mean(make("int32"), dtype="bfloat16").dtype == jnp.bfloat16
    close(jnp.mean(np.full(3000, 60.0, np.float16)), 60.0)
    close(jnp.var(REAL, axis=1, ddof=1), np.var(REAL, axis=1, ddof=1))
    close(jnp.std(REAL, axis=1, correction=1), np.std(REAL, axis=1, ddof=1))
    for name in ("var", "std", "nanvar", "nanstd"):
        expected = getattr(np, name)(REAL, axis=1, ddof=0.5)
        close(dt.jit(lambda d: getattr(jnp, name)(REAL, axis=1, ddof=d))(0.5), expected)  # noqa: B023
        close(getattr(jnp, name)(REAL, 1, ddof=jnp.float32(0.5)), expected)
    traced = dt.jit(lambda c: jnp.var(REAL, axis=1, correction=c))(1)
    close(traced, np.var(REAL, axis=1, ddof=1))
    mean = REAL.mean(axis=1, keepdims=True)
    close(jnp.var(REAL, axis=1, mean=mean), np.var(REAL, axis=1))
    close(jnp.var(np.ones(1), ddof=1), np.nan)
    close(jnp.ptp(REAL, axis=1), np.ptp(REAL, axis=1))
    weights = np.array([1.0, 2.0, 0.5], np.float32)
    close(jnp.average(REAL, axis=1, weights=weights), np.average(REAL, axis=1, weights=weights))
    value, total = jnp.average(REAL, axis=1, weights=weights, returned=True, keepdims=True)
    expected = np.average(REAL, axis=1, weights=weights, returned=True, keepdims=True)
    close(value, expected[0])
    close(total, expected[1])
    for axis in ((0, 1), (1, 0), (-1, 0), (2, 1, 0)):
        weights = RNG.random([REAL.shape[d] for d in axis]).astype(np.float32)
        for options in ({}, {"keepdims": True}):
            close(
                jnp.average(REAL, axis=axis, weights=weights, **options),
                np.average(REAL, axis=axis, weights=weights, **options),
            )
    close(jnp.max(np.array([1.0, np.nan])), np.nan)
    close(jnp.mean(np.ones((0, 2)), dtype="int32"), -1)
    assert jnp.amax is jnp.max
    assert jnp.max(make("complex64")).dtype == jnp.complex64


NAN_FUNCTIONS = (
    "nansum",
    "nanprod",
    "nanmax",
    "nanmin",
    "nanmean",
    "nanvar",
    "nanstd",
    "nancumsum",
    "nancumprod",
)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", NAN_FUNCTIONS)
def test_functions_without_nan(name: str, axis: Any) -> None:
    expected = quiet(getattr(np, name), NANS, axis=axis)
    close(getattr(jnp, name)(NANS, axis=axis), expected)
    close(dt.jit(lambda x: getattr(jnp, name)(x, axis=axis))(NANS), expected)
    integers = make("int32", (2, 3))
    close(getattr(jnp, name)(integers, axis=axis), getattr(np, name)(integers, axis=axis))


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", NAN_FUNCTIONS)
def test_complex_numbers_without_nan(name: str, axis: Any) -> None:
    x = make("complex64", (2, 3))
    close(getattr(jnp, name)(x, axis=axis), getattr(np, name)(x, axis=axis))
    x[0, 1], x[1, 2] = complex(np.nan, 1), complex(1, np.nan)
    close(getattr(jnp, name)(x, axis=axis), getattr(np, name)(x, axis=axis))
    x[:, 1] = np.nan
    found = np.isnan(np.asarray(getattr(jnp, name)(x, axis=axis)))
    assert found.tolist() == np.isnan(quiet(getattr(np, name), x, axis=axis)).tolist()


@pytest.mark.parametrize("where", [None, MASK])
@pytest.mark.parametrize("ddof", [1, 2, 3, 9])
@pytest.mark.parametrize("name", ["nanvar", "nanstd"])
def test_variance_of_few_numbers_is_nan(name: str, ddof: int, where: Any) -> None:
    options = {} if where is None else {"where": where}
    for axis in (0, 1, None):
        expected = quiet(getattr(np, name), REAL, axis, ddof=ddof, **options)
        close(getattr(jnp, name)(REAL, axis, ddof=ddof, where=where), expected)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e5m2", "float8_e4m3fn"])
@pytest.mark.parametrize("source", ["float32", "bfloat16", "float8_e5m2", "complex64", "int32"])
def test_a_variance_in_a_dtype_that_does_not_promote(name: str, dtype: str, source: str) -> None:
    result = getattr(jnp, name)(jnp.array([1, 2, 4], source), dtype=dtype)
    expected = getattr(np, name)(np.array([1.0, 2.0, 4.0], np.float32))
    assert result.dtype == dtype
    tolerance = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(result.astype("float32"), expected, rtol=tolerance)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running(name: str, dtype: str, axis: Any) -> None:
    x = make(dtype, (2, 3)) if name == "cumprod" else make(dtype)
    result = getattr(jnp, name)(x, axis=axis)
    assert result.dtype.name == result_dtype(name, dtype)
    if dtype in ("int8", "uint8"):
        expected = getattr(np, name)(x, axis=axis, dtype=dtype)
    else:
        expected = getattr(np, name)(wide(x), axis=axis)
    close(result, expected)
    close(getattr(jnp.asarray(x), name)(axis=axis), expected)


def test_running_details() -> None:
    x = np.array([1, 2, 3], np.int8)
    assert jnp.cumulative_sum(x).dtype == jnp.int32
    close(jnp.cumulative_sum(x, include_initial=True), [0, 1, 3, 6])
    close(
        jnp.cumulative_prod(REAL, axis=1, include_initial=True),
        np.concatenate([np.ones((2, 1, 4)), np.cumprod(REAL, axis=1)], axis=1),
    )
    close(jnp.cumsum(np.float32(2)), [2.0])
    with pytest.raises(ValueError, match="axis"):
        jnp.cumulative_sum(REAL)
    for n in (0, 1, 2, 5):
        close(jnp.diff(REAL, n), np.diff(REAL, n))
    close(
        jnp.diff(REAL, axis=0, prepend=1.0, append=REAL),
        np.diff(REAL, axis=0, prepend=1.0, append=REAL),
    )
    close(jnp.diff(np.array([True, False, False])), [True, False])
    close(jnp.diff(np.float32(2), 0), np.diff(np.float32(2), 0))
    trapezoid = getattr(np, "trapezoid", None) or np.trapz
    places = np.sort(RNG.random(4)).astype(np.float32)
    close(jnp.trapezoid(REAL, places), trapezoid(REAL, places))
    close(jnp.trapezoid(REAL, dx=0.5, axis=1), trapezoid(REAL, dx=0.5, axis=1))


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
def test_running_in_another_dtype(name: str, dtype: str, axis: Any) -> None:
    x = np.array([[0.0, 1.0, 0.0, 3.0], [2.0, 5.0, 0.0, 0.0]], np.float32)
    if name.startswith("nan"):
        x[0, 1] = np.nan
    expected = getattr(np, name)(x, axis, dtype=dtype)
    close(getattr(jnp, name)(x, axis, dtype=dtype), expected)
    if axis is not None and not name.startswith("nan"):
        standard = getattr(jnp, name.replace("cum", "cumulative_"))
        close(standard(x, axis=axis, dtype=dtype), expected)


WITH_WHERE = ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std"] + [
    f"nan{name}" for name in ("sum", "prod", "max", "min", "mean", "var", "std")
]


@pytest.mark.parametrize("where", [1, np.ones(4, np.int8), np.ones(4, np.float32)], ids=repr)
@pytest.mark.parametrize("name", WITH_WHERE)
def test_where_holds_booleans(name: str, where: Any) -> None:
    options = {"initial": 0} if name.endswith(("max", "min")) else {}
    with pytest.raises(TypeError, match="where to hold booleans"):
        getattr(jnp, name)(REAL, where=where, **options)


@pytest.mark.parametrize(
    "name",
    [*WITH_WHERE, "nancumsum", "nancumprod", "ptp", "count_nonzero", "nanargmax", "nanargmin"],
)
def test_errors_name_the_function_that_was_called(name: str) -> None:
    function = getattr(jnp, name)
    calls: list[Callable[[], Any]] = [lambda: function(REAL, axis=7)]
    if name in WITH_WHERE:
        calls.append(lambda: function(REAL, where=1))
    if name.endswith(("max", "min")) and "arg" not in name:
        calls.append(lambda: function(REAL, where=MASK))
        calls.append(lambda: function(REAL[:0]))
    if name.endswith(("max", "min", "sum", "prod")) and "cum" not in name and "arg" not in name:
        calls.append(lambda: function(REAL, initial=REAL))
    if name == "ptp":
        calls.append(lambda: function(REAL[:0]))
        calls.append(lambda: function(MASK))
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
            call()


@pytest.mark.parametrize("initial", [-3.5, 2, True, 0, -np.inf])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float32", "float16"])
@pytest.mark.parametrize("name", ["max", "min", "sum", "prod", "nanmax", "nanmin", "nansum"])
def test_initial_takes_the_dtype_of_the_result(name: str, dtype: str, initial: Any) -> None:
    function = getattr(jnp, name)
    x = make(dtype)
    result = function(x, axis=1, initial=initial)
    assert result.dtype == function(x, axis=1).dtype
    if initial != -np.inf or dtype.startswith("float"):
        close(result, quiet(getattr(np, name), x, axis=1, initial=initial))
    elif name == "max":  # NumPy refuses this for integers
        close(result, x.max(1) | (dtype == "bool"))


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_shares_that_are_nan(method: str) -> None:
    shares = jnp.array([0.25, np.nan, 1.0])
    for axis in (None, 0, (1, 2)):
        result = jnp.quantile(REAL, shares, axis=axis, method=method)
        close(result[0], jnp.quantile(REAL, 0.25, axis=axis, method=method))
        assert np.isnan(result[1]).all()
        assert np.isfinite(result[2]).all()
        assert np.isnan(jnp.percentile(REAL, np.nan, axis=axis, method=method)).all()


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_quantiles(method: str, axis: Any, keepdims: bool) -> None:
    options = {"axis": axis, "keepdims": keepdims, "method": method}
    for q in (0.3, np.array([0.0, 0.25, 1.0])):
        expected = np.quantile(REAL.astype(np.float64), q, **options)
        close(jnp.quantile(REAL, q, **options), expected)
        close(jnp.percentile(REAL, 100 * q, **options), expected)
    close(
        jnp.median(REAL, axis=axis, keepdims=keepdims),
        np.median(REAL, axis=axis, keepdims=keepdims),
    )


def test_quantiles_of_special_values() -> None:
    close(jnp.median(np.array([1.0, np.nan, 2.0])), np.nan)
    close(jnp.median(np.array([1, 4, 2, 3])), 2.5)
    close(jnp.median(np.array([1.0, np.inf, 2.0])), 2.0)
    close(jnp.median(np.ones((0,))), np.nan)
    close(jnp.quantile(np.array([-np.inf, 1.0, 2.0]), 0.5), 1.0)
    assert jnp.median(np.ones(3, "float16")).dtype == jnp.float16
    assert float(dt.grad(lambda x: jnp.median(x))(np.array([3.0, 1.0, 2.0]))[2]) == 1.0


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_positions(name: str, axis: Any, dtype: str) -> None:
    x = make(dtype)
    for keepdims in (False, True):
        expected = getattr(np, name)(wide(x), axis=axis, keepdims=keepdims)
        result = getattr(jnp, name)(x, axis=axis, keepdims=keepdims)
        assert result.dtype == jnp.int32
        np.testing.assert_array_equal(np.asarray(result), expected)
    np.testing.assert_array_equal(
        np.asarray(getattr(jnp.asarray(x), name)(axis)), getattr(np, name)(wide(x), axis=axis)
    )


def test_positions_of_nan() -> None:
    for name in ("argmax", "argmin"):
        np.testing.assert_array_equal(
            np.asarray(getattr(jnp, name)(NANS, axis=1)), getattr(np, name)(NANS, axis=1)
        )
        some = NANS[0]
        np.testing.assert_array_equal(
            np.asarray(getattr(jnp, f"nan{name}")(some, axis=1)),
            getattr(np, f"nan{name}")(some, axis=1),
        )
        assert getattr(jnp, f"nan{name}")(np.array([np.nan, np.nan])).tolist() == -1


SMOOTH: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: jnp.sum(x * x, axis=1).sum(),
    "prod": lambda x: jnp.prod(x, axis=1).sum(),
    "mean": lambda x: jnp.mean(x, axis=0).prod(),
    "var": lambda x: jnp.var(x, axis=1).sum(),
    "std": lambda x: jnp.std(x),
    "max": lambda x: (jnp.max(x, axis=1) ** 2).sum(),
    "min": lambda x: (jnp.min(x, axis=0) ** 3).sum(),
    "cumsum": lambda x: (jnp.cumsum(x, axis=1) ** 2).sum(),
    "cumprod": lambda x: jnp.cumprod(x, axis=1).sum(),
    "average": lambda x: jnp.average(x, weights=x * x),
    "nanmean": lambda x: jnp.nanmean(x, axis=1).prod(),
    "quantile": lambda x: (jnp.quantile(x, 0.3, axis=1) ** 2).sum(),
    "where": lambda x: (jnp.mean(x, axis=1, where=x > 0.2) ** 2).sum(),
    "diff": lambda x: (jnp.diff(x, 2, axis=1) ** 2).sum(),
    "norm": lambda x: jnp.linalg.norm(x),
    "norm 3": lambda x: jnp.linalg.norm(x, 3, axis=1).sum(),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_to_second_order(name: str) -> None:
    function = SMOOTH[name]
    with dt.enable_x64(True):
        x = np.array([[0.3, 1.7, -0.8, 0.9], [2.1, 0.4, 1.1, -1.3]])
        step = RNG.normal(size=x.shape)
        h = 1e-5
        gradient = dt.grad(function)
        slope = (float(function(x + h * step)) - float(function(x - h * step))) / (2 * h)
        assert float((gradient(x) * step).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-7)
        change = (np.asarray(gradient(x + h * step)) - np.asarray(gradient(x - h * step))) / (2 * h)
        _, curvature = dt.jvp(gradient, (x,), (step,))
        np.testing.assert_allclose(np.asarray(curvature), change, rtol=1e-4, atol=1e-5)


def test_gradients_of_ties_are_shared() -> None:
    np.testing.assert_allclose(np.asarray(dt.grad(jnp.max)(np.ones(4))), 0.25)
    np.testing.assert_allclose(
        np.asarray(dt.grad(jnp.min)(np.array([1.0, 1.0, 2.0]))), [0.5, 0.5, 0.0]
    )
    for number in (0.0, 0.1, -3.7e8):
        x = np.full(4, number, np.float32)
        assert (np.asarray(jnp.quantile(x, jnp.array([0.0, 0.3, 0.77]))) == x[0]).all()
        np.testing.assert_allclose(np.asarray(dt.grad(jnp.median)(x)), [0, 0.5, 0.5, 0])
        gradient = dt.grad(lambda y: jnp.quantile(y, 0.3))(x)
        np.testing.assert_allclose(np.asarray(gradient), [0.1, 0.9, 0, 0], rtol=1e-5)
    gradient = dt.grad(jnp.median)(np.array([np.inf, np.inf, 0.0, np.inf]))
    assert np.isfinite(np.asarray(gradient)).all()
    np.testing.assert_allclose(
        np.asarray(dt.grad(jnp.prod)(np.array([0.0, 2.0, 3.0]))), [6.0, 0.0, 0.0]
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.sum(REAL, axis=3), ValueError, "sum: axis 3 is out of bounds"),
        (lambda: jnp.sum(REAL, axis=(0, 0)), ValueError, "sum: duplicate"),
        (lambda: jnp.sum(REAL, axis=1.5), TypeError, "sum.*axis.*integer"),
        (lambda: jnp.sum([1, 2]), TypeError, "sum.*list"),
        (lambda: jnp.sum(REAL, out=REAL), NotImplementedError, "sum.*out"),
        (lambda: jnp.sum(REAL, initial=np.ones(2)), TypeError, "initial"),
        (lambda: jnp.sum(REAL, dtype="foo"), TypeError, "foo"),
        (lambda: jnp.max(np.ones((0,))), ValueError, "max of no elements"),
        (lambda: jnp.max(REAL, where=MASK), ValueError, "initial"),
        (lambda: jnp.argmax(np.ones((0, 2)), axis=0), ValueError, "argmax of no elements"),
        (lambda: jnp.var(REAL, ddof=1, correction=2), ValueError, "ddof"),
        (lambda: jnp.median(np.array([1j])), TypeError, "median"),
        (lambda: jnp.quantile(REAL, 0.5, method="foo"), ValueError, "method"),
        (lambda: jnp.average(REAL, weights=np.ones(2)), ValueError, "weights"),
        (lambda: jnp.cumsum(REAL, axis=5), ValueError, "cumsum.*out of bounds"),
        (lambda: jnp.diff(np.float32(1)), ValueError, "diff"),
        (lambda: jnp.sum(REAL, where=np.ones((5, 1, 1), bool)), TypeError, "sum.*broadcast"),
        (lambda: jnp.linalg.norm(REAL, "foo"), ValueError, "norm"),
        (lambda: jnp.linalg.matrix_norm(REAL, ord="foo"), ValueError, "^linalg.matrix_norm: ord"),
        (lambda: jnp.linalg.matrix_norm(REAL[0, 0]), ValueError, "^linalg.matrix_norm: x"),
        (lambda: jnp.linalg.vector_norm(REAL, ord="fro"), ValueError, "^linalg.vector_norm: ord"),
        (lambda: jnp.linalg.cond(np.eye(2), p=7), ValueError, "^linalg.cond: ord"),
        (lambda: jnp.mean(REAL, dtype=bool), TypeError, "^mean: dtype"),
        (lambda: jnp.nanmean(REAL, dtype=bool), TypeError, "^nanmean: dtype"),
        (lambda: dt.jit(lambda x, a: jnp.sum(x, axis=a))(REAL, 0), Exception, "hash|static|axis"),
        (lambda: jnp.ptp(np.array([True])), TypeError, "ptp.*bool"),
        (lambda: jnp.trapezoid(np.ones(3), np.ones(7)), ValueError, "trapezoid: x.*3 samples"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("ord", [None, 1, 2, 0, 3, 0.5, -1, np.inf, -np.inf])
def test_norms_of_vectors(ord: Any) -> None:
    x = REAL[0, 0]
    close(jnp.linalg.norm(x, ord), np.linalg.norm(x, ord))
    close(
        jnp.linalg.norm(REAL, ord, axis=1, keepdims=True),
        np.linalg.norm(REAL, ord, axis=1, keepdims=True),
    )
    z = x + 1j * REAL[0, 1]
    close(jnp.linalg.norm(z, ord), np.linalg.norm(z, ord))
    close(jnp.linalg.vector_norm(z, ord=ord), np.linalg.norm(z, ord))


@pytest.mark.parametrize("ord", [None, "fro", 1, -1, np.inf, -np.inf, 2, -2, "nuc"])
def test_norms_of_matrices(ord: Any) -> None:
    close(
        jnp.linalg.norm(REAL, ord, axis=(2, 0), keepdims=True),
        np.linalg.norm(REAL, ord, axis=(2, 0), keepdims=True),
    )
    close(jnp.linalg.norm(REAL[0], ord), np.linalg.norm(REAL[0], ord))
    close(jnp.linalg.norm(REAL, ord, axis=(0, 2)), np.linalg.norm(REAL, ord, axis=(0, 2)))
    close(jnp.linalg.matrix_norm(REAL, ord=ord or "fro"), np.linalg.norm(REAL, ord, axis=(1, 2)))
    close(jnp.linalg.vector_norm(REAL, axis=(0, 1)), np.sqrt((REAL**2).sum((0, 1))))
    close(jnp.linalg.norm(REAL), np.linalg.norm(REAL))


# An axis as people write it, and the tuple that it means.
AXES = {
    "list": ([0, 1], (0, 1)),
    "list of one": ([-1], (-1,)),
    "NumPy integer": (np.int64(1), 1),
    "NumPy array": (np.array(1), 1),
    "NumPy array of several": (np.array([0, 2]), (0, 2)),
    "array": (jnp.array(1), 1),
}


@pytest.mark.parametrize(("axis", "meant"), AXES.values(), ids=AXES)
def test_axes_without_a_hash(axis, meant):
    x = jnp.arange(24.0).reshape(2, 3, 4)
    wanted = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4).sum(meant)
    for got in (
        jnp.sum(x, axis=axis),
        jnp.sum(x, axis),
        x.sum(axis=axis),
        dt.jit(lambda v: jnp.sum(v, axis=axis))(x),
    ):
        np.testing.assert_allclose(got, wanted)


@pytest.mark.parametrize("axis", [{0}, {0: 1}, [{0}]])
def test_axes_that_are_none(axis):
    with pytest.raises(TypeError, match=r"sum got .*unhashable type.*pass a number, a string or a"):
        jnp.sum(jnp.ones(3), axis=axis)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_in_16_bits_can_be_refused(dtype: str) -> None:
    x = jnp.asarray(make(dtype))
    functions: list[Callable[[Any], Any]] = [
        jnp.sum,
        jnp.mean,
        jnp.var,
        jnp.nansum,
        lambda v: dt.nn.softmax(v, 0),
        lambda v: jnp.sum(v, axis=(0, 2), where=v > 2),
    ]
    expected = [np.asarray(function(x)) for function in functions]
    with dt.allow_f16_reductions(False):
        for function, value in zip(functions, expected, strict=True):
            result = np.asarray(function(x))
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, value)
        assert jnp.max(x).dtype == dtype
        for refused in (dt.lax.reduce_sum, dt.jit(dt.lax.reduce_sum, static_argnums=1)):
            with pytest.raises(ValueError, match=r"reduce_sum of b?f16\[2,3,4\] is refused"):
                refused(x, (0,))
        assert dt.lax.reduce_sum(x.astype("float32"), (0,)).dtype == "float32"
    assert dt.lax.reduce_sum(x, (0,)).dtype == dtype
