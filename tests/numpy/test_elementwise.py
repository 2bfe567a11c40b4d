"""Elementwise functions against NumPy: dtypes, special values, broadcasting, gradients, errors."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

FLOATS = ("float32", "float16", "bfloat16")
INTS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
REAL = (*FLOATS, *INTS, "bool")
ALL = (*REAL, "complex64")

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.7, 0.1, 9.25, np.inf, -np.inf, np.nan]
SMALL_INTS = [0, 1, 2, 3, 5, 7, 11, 13]
TOLERANCE = {
    "float32": 2e-5,
    "float64": 1e-12,
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "complex64": 5e-5,
}


def make(dtype: str, values: list[float] | None = None) -> np.ndarray[Any, Any]:
    """An array of typical values of a dtype."""
    if dtype == "bool":
        return np.array([True, False, True, True])
    found = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if dtype.startswith(("int", "uint")):
        numbers = SMALL_INTS if dtype.startswith("u") else [*SMALL_INTS, -1, -2, -7]
        return np.array(numbers, found)
    if dtype.startswith("complex"):
        return np.array([1 + 2j, -0.5 + 0.1j, 3 - 1j, -2 - 2j, 0.3j], found)
    return np.array(SPECIAL if values is None else values, found)


def wide(x: Any) -> Any:
    """The values in a dtype in which NumPy computes well."""
    x = np.asarray(x)
    kind = "f" if x.dtype.name in FLOATS else x.dtype.kind
    return x.astype({"f": np.float64, "c": np.complex128}[kind]) if kind in "fc" else x


def close(actual: Any, expected: Any, name: str = "") -> None:
    """Equal within the precision of the result's dtype."""
    dtype = np.asarray(actual).dtype.name
    tolerance = TOLERANCE.get(dtype, 0)
    np.testing.assert_allclose(
        wide(actual), wide(np.asarray(expected)), rtol=tolerance, atol=tolerance, err_msg=name
    )


def quiet(function: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*args)


def numpy_value(name: str, x: Any) -> Any:
    """What NumPy's function gives; `sinc` of infinity, nan there, is the limit."""
    value = quiet(getattr(np, name), x)
    return np.where(np.isinf(x) & (x.imag == 0), 0, value) if name == "sinc" else value


def to_inexact(dtype: str) -> str:
    return dtype if dtype in FLOATS or dtype.startswith("complex") else "float32"


# Functions that give a float for everything: name, dtypes.
INEXACT = {
    **dict.fromkeys(
        ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "arctan", "arcsinh"), ALL
    ),
    **dict.fromkeys(("exp2", "log", "log1p", "log2", "log10", "sqrt", "reciprocal"), ALL),
    **dict.fromkeys(("arcsin", "arccos", "arccosh", "arctanh"), ALL),
    "sinc": ALL,
    **dict.fromkeys(("cbrt", "fabs", "deg2rad", "rad2deg"), REAL),
}


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", INEXACT)
def test_float_functions(name: str, dtype: str) -> None:
    if dtype not in INEXACT[name]:
        with pytest.raises(TypeError, match=name):
            jnp_function(name)(make(dtype))
        return
    x = make(dtype)
    if name in ("sin", "cos", "tan") and dtype in ("float16", "bfloat16"):
        x = x[np.isfinite(x.astype(np.float32))]
    expected = numpy_value(name, wide(x) if x.dtype.kind not in "iub" else x.astype(np.float64))
    actual = jnp_function(name)(x)
    assert actual.dtype.name == to_inexact(dtype)
    overflow = np.asarray(quiet(np.asarray(expected).astype, actual.dtype))
    close(actual, overflow, name)
    close(dt.jit(jnp_function(name))(x), actual, name)


def jnp_function(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(jnp, name)
    return function


KEEPING = {
    "negative": (*FLOATS, *INTS, "complex64"),
    "positive": (*FLOATS, *INTS, "complex64"),
    "abs": ALL,
    "sign": (*FLOATS, *INTS, "complex64"),
    "square": (*FLOATS, *INTS, "complex64"),
    "floor": REAL,
    "ceil": REAL,
    "trunc": REAL,
    "real": ALL,
    "imag": ALL,
    "conj": ALL,
    "nan_to_num": ALL,
    "round": REAL,
}


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", KEEPING)
def test_functions_that_keep_the_dtype(name: str, dtype: str) -> None:
    if dtype not in KEEPING[name]:
        if (name, dtype) == ("square", "bool"):
            assert jnp.square(make("bool")).dtype == jnp.int32
        elif name == "positive":
            close(jnp.positive(make("bool")), make("bool"))
        elif name != "round":
            with pytest.raises(TypeError, match=name):
                jnp_function(name)(make(dtype))
        return
    x = make(dtype)
    if name == "nan_to_num" and dtype in FLOATS:
        limits = ml_dtypes.finfo(x.dtype)
        expected = np.nan_to_num(wide(x), posinf=float(limits.max), neginf=float(limits.min))
    else:
        expected = quiet(getattr(np, name), wide(x) if dtype in FLOATS else x)
    actual = jnp_function(name)(x)
    keeps = "float32" if dtype == "complex64" and name in ("abs", "real", "imag") else dtype
    assert actual.dtype.name == keeps
    if name == "sign" and dtype == "complex64":
        expected = x / np.abs(x)
    close(actual, expected, name)
    close(dt.jit(jnp_function(name))(x), actual, name)


BINARY = {
    **dict.fromkeys(("add", "multiply", "maximum", "minimum"), ALL),
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), ALL),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), ALL),
    "subtract": (*FLOATS, *INTS, "complex64"),
    "true_divide": ALL,
    **dict.fromkeys(("floor_divide", "remainder", "fmod"), (*FLOATS, *INTS)),
    **dict.fromkeys(("fmax", "fmin"), REAL),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (*INTS, "bool")),
    **dict.fromkeys(("arctan2", "hypot", "logaddexp", "logaddexp2", "heaviside"), (*FLOATS, *INTS)),
    "float_power": FLOATS,
}


def pairs(dtype: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    x = make(dtype)
    return np.repeat(x, len(x)), np.tile(x, len(x))


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name: str, dtype: str) -> None:
    if dtype not in BINARY[name]:
        return
    x, y = pairs(dtype)
    if name == "hypot" and dtype == "float16":
        x, y = x.astype(np.float32).astype(x.dtype), y
    reference = getattr(np, name)
    floats = name in ("true_divide", "arctan2", "hypot", "logaddexp", "logaddexp2", "heaviside")
    if floats and dtype not in FLOATS and dtype != "complex64":
        expected = quiet(reference, x.astype(np.float64), y.astype(np.float64))
    else:
        expected = quiet(reference, wide(x), wide(y))
    expected = by_the_standard(name, wide(x), wide(y), expected)
    if dtype in FLOATS and name in ("floor_divide", "remainder", "fmod"):
        keep = np.ones(x.shape, bool)
        if dtype != "float32":  # quotients near an integer are rounded differently in 16 bits
            keep = np.isfinite(wide(x)) & np.isfinite(wide(y)) & (np.abs(wide(y)) >= 0.5)
        x, y, expected = x[keep], y[keep], expected[keep]
    actual = jnp_function(name)(x, y)
    if np.asarray(expected).dtype != bool:
        with np.errstate(all="ignore"):
            expected = np.asarray(expected).astype(actual.dtype)
        assert actual.dtype.name == (to_inexact(dtype) if floats else dtype)
    close(actual, expected, name)
    close(dt.jit(jnp_function(name))(x, y), actual, name)


def by_the_standard(name: str, x: Any, y: Any, expected: Any) -> Any:
    """NumPy's result, or that of the array API standard where the two differ."""
    if name != "floor_divide":
        return expected
    with np.errstate(all="ignore"):
        return np.where(np.isinf(x) | np.isinf(y), x / y, expected).astype(expected.dtype)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_shifts(dtype: str) -> None:
    x = np.array([1, 5, 100, 127, 3], dtype)
    if dtype.startswith("i"):
        x = np.concatenate([x, -x])
    for places in (0, 1, 3, 7):
        y = np.full(x.shape, places, dtype)
        close(jnp.left_shift(x, y), np.left_shift(x, y))
        close(jnp.right_shift(x, y), np.right_shift(x, y))
        close(jnp.array(x) << places, np.left_shift(x, y))
        close(jnp.array(x) >> places, np.right_shift(x, y))
    close(jnp.bitwise_not(x), np.bitwise_not(x))
    if hasattr(np, "bitwise_count"):
        close(jnp.bitwise_count(x), np.bitwise_count(x))
        close(jnp.bitwise_count(x > 0), np.bitwise_count(x > 0))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "complex64"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7])
def test_integer_exponents(dtype: str, exponent: int) -> None:
    x = make(dtype, [0.0, 1.0, -2.0, 0.5, 3.0])
    x = x[:7]
    for power in (lambda v: v**exponent, lambda v: jnp.power(v, exponent)):
        result = power(jnp.array(x))
        assert result.dtype.name == dtype
        close(result, (wide(x) ** exponent).astype(result.dtype))
        close(dt.jit(power)(x), result)


def test_powers() -> None:
    base = np.array([-3, -2, -1, 0, 1, 2, 3], np.int32)
    exponents = np.array([0, 1, 2, 5, 31, 33, 64, 65], np.int32)
    x, y = (v.ravel() for v in np.meshgrid(base, exponents))
    with np.errstate(all="ignore"):
        close(jnp.power(x, y), np.power(x, y))
    close(jnp.power(jnp.array([1, -1, 2, -1]), jnp.array([-3, -3, -1, -2])), [1, -1, 0, 1])
    close(jnp.power(jnp.array([2.0, -2.0]), jnp.array([3, 3])), [8.0, -8.0])
    close(jnp.power(2.0, jnp.array([0.5, -1.0])), [2**0.5, 0.5])
    close(2 ** jnp.arange(5), [1, 2, 4, 8, 16])
    close(jnp.array([4.0, 9.0]) ** -0.5, [0.5, 1 / 3])
    close(jnp.array([4.0, 2.0]) ** -1, [0.25, 0.5])
    assert jnp.power(jnp.array(True), jnp.array(True)).dtype == jnp.int32
    for bad in (
        lambda: jnp.arange(3) ** -1,
        lambda: jnp.power(np.arange(3), np.int32(-2)),
        lambda: jnp.power(True, jnp.int8(-1)),
        lambda: 2 ** jnp.asarray(-1),
    ):
        with pytest.raises(TypeError, match="negative power"):
            bad()


def divided(name: str, divisor: int, x: Any) -> Any:
    return jnp_function(name)(x, divisor)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "divmod"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "uint8"])
def test_division_by_a_constant(name: str, dtype: str) -> None:
    x = make(dtype, [-7.5, -1.0, 0.0, 2.5, 9.0])
    for divisor in (2, 3) if dtype == "uint8" else (2, 3, -4):
        expected = getattr(np, name)(x, divisor)
        divide = functools.partial(divided, name, divisor)
        for run in (divide, dt.jit(divide)):
            result = run(jnp.array(x))
            for a, b in zip(np.atleast_2d(result), np.atleast_2d(expected), strict=True):
                close(a, b)


def test_division_by_zero_of_integers_gives_zero() -> None:
    x = jnp.array([-3, 0, 5])
    close(x // 0, [0, 0, 0])
    close(x % 0, [0, 0, 0])
    smallest = jnp.array([-(2**31)], jnp.int32)
    close(smallest // -1, smallest)


PARTS = [0.0, -0.0, 1.0, -1.0, 3.0, np.inf, -np.inf, np.nan]
COMPLEX_SPECIAL = np.array([complex(a, b) for a in PARTS for b in PARTS], np.complex64)


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal"])
def test_comparisons_of_special_complex_numbers(name: str) -> None:
    n = len(COMPLEX_SPECIAL)
    x, y = np.repeat(COMPLEX_SPECIAL, n), np.tile(COMPLEX_SPECIAL, n)
    for run in (jnp_function(name), dt.jit(jnp_function(name))):
        close(run(x, y), quiet(getattr(np, name), x, y))
        close(run(x, 1.0), quiet(getattr(np, name), x, 1.0))


def test_sign_of_special_complex_numbers() -> None:
    for run in (jnp.sign, dt.jit(jnp.sign)):
        close(run(COMPLEX_SPECIAL), quiet(np.sign, COMPLEX_SPECIAL))
    assert jnp.sign(1 + 2j).weak_type


@pytest.mark.parametrize("dtype", FLOATS)
def test_modf(dtype: str) -> None:
    x = np.array(
        [1.5, -2.25, np.inf, -np.inf, -0.0, 0.0, 3.0, -2.0, np.nan],
        getattr(ml_dtypes, dtype, dtype),
    )
    for run in (jnp.modf, dt.jit(jnp.modf)):
        for actual, expected in zip(run(x), np.modf(wide(x)), strict=True):
            assert actual.dtype.name == dtype
            close(actual, expected)
            known = ~np.isnan(expected)
            signs = np.signbit(wide(actual))[known]
            np.testing.assert_array_equal(signs, np.signbit(expected)[known])
    steps = dt.jvp(lambda v: jnp.modf(v)[0], (x,), (np.ones_like(x),))[1]
    close(steps, [1, 1, 0, 0, 1, 1, 1, 1, 1])
    assert all(part.weak_type for part in jnp.modf(2.5))


def test_round_to_places_beyond_the_dtype() -> None:
    x = np.array([1.5, -1000.3, np.inf, np.nan, 0.0], np.float32)
    for decimals in (38, 50, 10**4):
        close(jnp.round(x, decimals), x)
    for decimals in (-50, -(10**4)):
        close(jnp.round(x, decimals), [0.0, 0.0, np.inf, np.nan, 0.0])


def test_special_functions() -> None:
    close(jnp.rint(np.array([0.5, 1.5, -2.5])), [0.0, 2.0, -2.0])
    assert jnp.rint(jnp.arange(3)).dtype == jnp.float32
    close(jnp.clip(np.arange(6), 1, 3), [1, 1, 2, 3, 3, 3])
    close(jnp.clip(np.arange(3.0), None, 1.5), [0.0, 1.0, 1.5])
    close(jnp.clip(np.arange(3), jnp.array([1, 1, 1])), [1, 1, 2])
    close(jnp.clip(np.arange(3.0), 2.0, 1.0), [1.0, 1.0, 1.0])
    close(jnp.angle(np.array([1j, -1, 1])), [np.pi / 2, np.pi, 0])
    close(jnp.angle(np.array([1j, -1]), deg=True), [90, 180])
    close(jnp.angle(np.array([-1.0, 1.0])), [np.pi, 0])
    close(jnp.isreal(np.array([1j, 1])), [False, True])
    close(jnp.iscomplex(np.array([1j, 1])), [True, False])


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 2])
def test_round_to_decimals(decimals: int) -> None:
    x = np.array([0.125, 12.5, -37.5, 149.0, 150.0, 250.0, 1e4], np.float32)
    close(jnp.round(x, decimals), np.round(x, decimals))
    integers = np.array([4, 5, 6, 15, 25, -15, -25, 149, 150, 250, -250, 1234], np.int32)
    close(jnp.round(integers, decimals), np.round(integers, decimals))
    assert jnp.round(integers, decimals).dtype == jnp.int32
    close(jnp.round(np.float16(123.456), decimals), np.round(np.float16(123.456), decimals))


def test_predicates() -> None:
    x = np.array(SPECIAL, np.float32)
    for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf"):
        for value in (x, x.astype(np.float16), np.arange(3)):
            result = jnp_function(name)(value)
            assert result.dtype == bool
            close(result, getattr(np, name)(value), name)
    z = np.array([1 + 1j, np.nan + 0j, 1j * np.inf, complex(-np.inf, np.nan)])
    for name in ("isnan", "isinf", "isfinite"):
        close(jnp_function(name)(z), getattr(np, name)(z), name)


def test_closeness() -> None:
    a = np.array([1.0, np.inf, -np.inf, np.nan, 0.0, 1e-9], np.float32)
    b = np.array([1.000001, np.inf, np.inf, np.nan, 1e-9, 0.0], np.float32)
    for equal_nan in (False, True):
        close(jnp.isclose(a, b, equal_nan=equal_nan), np.isclose(a, b, equal_nan=equal_nan))
        assert bool(jnp.allclose(a, a, equal_nan=equal_nan)) is equal_nan
        assert bool(jnp.array_equal(a, a, equal_nan=equal_nan)) is equal_nan
    close(jnp.isclose(np.arange(3), 1), [False, True, False])
    grid, row = np.arange(6.0).reshape(2, 3), np.array([0.0, 0.5, 0.1])
    for options in ({"rtol": row}, {"atol": row}, {"rtol": row[:2, None], "atol": row}):
        close(jnp.isclose(grid, grid + 0.3, **options), np.isclose(grid, grid + 0.3, **options))
        close(jnp.isclose(row, row + 0.3, **options), np.isclose(row, row + 0.3, **options))
        assert bool(jnp.allclose(grid, grid, **options))
    tolerances = np.array([[0.5], [1.0], [0.0]], np.float32)
    x, y = np.arange(3.0, dtype=np.float32), np.float32(1.5)
    for rtol, atol in ((tolerances, 0.0), (0.0, tolerances), (tolerances[:, 0], tolerances)):
        close(jnp.isclose(x, y, rtol, atol), np.isclose(x, y, rtol, atol))
    close(jnp.isclose(np.array([1 + 1j]), np.array([1 + 1.000001j])), [True])
    assert bool(jnp.array_equal([1, 2], jnp.array([1, 2])))
    assert not bool(jnp.array_equal(jnp.ones(2), jnp.ones(3)))
    assert bool(jnp.array_equiv(jnp.ones((2, 3)), jnp.ones(3)))
    assert not bool(jnp.array_equiv(jnp.ones((2, 3)), jnp.ones(2)))


# ------------------------------------------------------------------------------ promotion, shapes


@pytest.mark.parametrize(
    "first", ["bool", "int8", "uint8", "int32", "uint32", "float16", "float32"]
)
@pytest.mark.parametrize("second", ["bool", "int16", "uint16", "bfloat16", "float32", "complex64"])
def test_results_have_the_common_dtype(first: str, second: str) -> None:
    x, y = jnp.ones(2, first), jnp.ones(2, second)
    common = jnp.promote_types(first, second)
    assert jnp.add(x, y).dtype == common
    assert (x + y).dtype == common
    assert dt.jit(lambda a, b: a * b)(x, y).dtype == common
    assert jnp.where(x > 0, x, y).dtype == common
    assert jnp.concatenate([x, y]).dtype == common


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("scalar", [True, 2, 2.5, 2j])
def test_python_scalars_are_weak(dtype: str, scalar: Any) -> None:
    x = jnp.ones(2, dtype)
    expected, weak = dt.dtypes.result_type(x, scalar, return_weak_type_flag=True)
    for result in (
        x * scalar,
        scalar * x,
        dt.jit(lambda a: a * scalar)(x),
        jnp.multiply(x, scalar),
    ):
        assert result.dtype == expected
        assert result.weak_type == weak
        close(result, np.ones(2) * scalar)


def test_strict_promotion() -> None:
    with dt.numpy_dtype_promotion("strict"):
        close(jnp.ones(2) * 2, [2.0, 2.0])
        for run in (jnp.add, dt.jit(jnp.add), lambda x, y: x + y):
            with pytest.raises(
                dt.errors.TypePromotionError
                if hasattr(dt.errors, "TypePromotionError")
                else ValueError,
                match="strict",
            ):
                run(jnp.ones(2), jnp.ones(2, jnp.int32))


def test_rank_promotion() -> None:
    x, y = jnp.ones((2, 3)), jnp.ones(3)
    with dt.numpy_rank_promotion("raise"):
        close(x + 1.0, np.full((2, 3), 2.0))
        for run in (jnp.add, lambda a, b: a + b, dt.jit(jnp.add)):
            with pytest.raises(ValueError, match="rank"):
                run(x, y)
    with dt.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank"):
        jnp.subtract(x, y)


SHAPES = [
    ((), (3,)),
    ((3,), (2, 3)),
    ((2, 1), (1, 3)),
    ((2, 3), (3,)),
    ((1,), (0,)),
    ((2, 1, 3), (4, 1)),
    ((0, 3), (1, 3)),
    ((), ()),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize(
    "name", ["add", "floor_divide", "power", "where", "hypot", "less", "logaddexp"]
)
def test_broadcasting(name: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x = np.arange(1.0, 1.0 + np.prod(left, dtype=int), dtype=np.float32).reshape(left)
    y = np.arange(2.0, 2.0 + np.prod(right, dtype=int), dtype=np.float32).reshape(right)
    args = (x > 2, x, y) if name == "where" else (x, y)
    expected = getattr(np, name)(*args)
    actual = jnp_function(name)(*args)
    assert actual.shape == expected.shape
    close(actual, expected)
    close(dt.jit(jnp_function(name))(*args), expected)
    mapped = dt.vmap(jnp_function(name))(*(np.stack([a, a]) for a in args))
    close(mapped, np.stack([expected, expected]))


def test_select_and_where() -> None:
    x = np.arange(6)
    close(
        jnp.select([x < 2, x > 3], [x, 10.0 * x], -1), np.select([x < 2, x > 3], [x, 10.0 * x], -1)
    )
    close(jnp.where(np.array([1, 0, 2]), 5, np.array([7.0, 8.0, 9.0])), [5.0, 8.0, 5.0])
    close(jnp.where(jnp.array(True), jnp.ones(3), 0), np.ones(3))
    assert jnp.where(jnp.array([True]), 1, 2.0).weak_type
    with pytest.raises(ValueError, match="either"):
        jnp.where(x > 1, x)
    with pytest.raises(ValueError, match="conditions"):
        jnp.select([x > 1], [x, x])


# -------------------------------------------------------------------------------------- gradients

DERIVATIVES: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(
        ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "arctan", "arcsinh"),
        (-1.3, -0.4, 0.0, 0.7, 1.9),
    ),
    **dict.fromkeys(("log", "log1p", "log2", "log10", "sqrt", "cbrt"), (0.3, 1.0, 4.2)),
    **dict.fromkeys(("reciprocal", "square"), (0.3, 1.0, 4.2)),
    **dict.fromkeys(("arcsin", "arccos", "arctanh"), (-0.6, 0.1, 0.8)),
    "sinc": (-1.3, -0.04, 0.0, 0.05, 0.06, 0.7, 1.9),
    "arccosh": (1.4, 3.0),
    "abs": (-2.0, 3.0),
}


def second_differences(function: Callable[[Any], Any], x: float) -> tuple[float, float]:
    """First and second derivative by differences, in 64 bits."""
    h = 1e-4
    low, middle, high = (float(function(np.float64(v))) for v in (x - h, x, x + h))
    return (high - low) / (2 * h), (high - 2 * middle + low) / h**2


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_to_second_order(name: str) -> None:
    function, reference = jnp_function(name), getattr(np, name)
    with dt.enable_x64(True):
        first, second = dt.grad(function), dt.grad(dt.grad(function))
        for x in DERIVATIVES[name]:
            slope, curvature = second_differences(reference, x)
            np.testing.assert_allclose(
                first(np.float64(x)), slope, rtol=1e-5, atol=1e-6, err_msg=name
            )
            np.testing.assert_allclose(
                second(np.float64(x)), curvature, rtol=1e-4, atol=1e-4, err_msg=name
            )


PAIR_DERIVATIVES = {
    **dict.fromkeys(
        ("add", "subtract", "multiply", "maximum", "minimum", "fmax", "fmin"), (1.3, -0.4)
    ),
    **dict.fromkeys(("true_divide", "arctan2", "hypot", "logaddexp", "logaddexp2"), (1.3, 0.7)),
    **dict.fromkeys(("power", "float_power"), (1.3, 0.7)),
    **dict.fromkeys(("remainder", "fmod"), (5.3, 1.7)),
}


@pytest.mark.parametrize("name", PAIR_DERIVATIVES)
def test_derivatives_of_pairs(name: str) -> None:
    function, reference = jnp_function(name), getattr(np, name)
    x, y = PAIR_DERIVATIVES[name]
    with dt.enable_x64(True):
        for number, along in ((0, lambda v: reference(v, y)), (1, lambda v: reference(x, v))):
            point = (x, y)[number]
            slope, curvature = second_differences(along, point)
            arguments = (np.float64(x), np.float64(y))
            first = dt.grad(function, number)(*arguments)
            second = dt.grad(dt.grad(function, number), number)(*arguments)
            np.testing.assert_allclose(first, slope, rtol=1e-5, atol=1e-6, err_msg=name)
            np.testing.assert_allclose(second, curvature, rtol=1e-4, atol=1e-4, err_msg=name)


def test_derivatives_at_edges() -> None:
    assert float(dt.grad(jnp.logaddexp)(2.0, 2.0)) == 0.5
    assert float(dt.grad(dt.grad(jnp.logaddexp))(2.0, 2.0)) == pytest.approx(0.25)
    assert [float(s) for s in dt.grad(jnp.logaddexp, (0, 1))(1.0, -np.inf)] == [1.0, 0.0]
    assert sum(float(s) for s in dt.grad(jnp.logaddexp, (0, 1))(-np.inf, -np.inf)) == 1.0
    assert float(dt.grad(jnp.hypot)(0.0, 0.0)) == 0.0
    assert float(dt.grad(dt.grad(jnp.hypot))(3.0, 3.0)) == pytest.approx(0.5**1.5 / 3)
    assert float(dt.grad(jnp.hypot)(np.inf, 1.0)) == 0.0
    assert float(dt.grad(jnp.hypot)(3.0, 3.0)) == pytest.approx(0.5**0.5)
    assert float(dt.grad(jnp.abs)(0.0)) == 1.0
    assert float(dt.grad(lambda x: jnp.maximum(x, 0.0))(0.0)) == 0.5
    assert float(dt.grad(lambda x: x**2)(0.0)) == 0.0
    assert float(dt.grad(lambda x: x**0)(0.0)) == 0.0
    assert (
        float(dt.grad(lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0))(-1.0))
        == 0.0
    )
    for x in (0.0, np.inf, -np.inf):
        assert float(dt.grad(jnp.sinc)(x)) == 0.0
        assert complex(jnp.sinc(complex(x))) == float(jnp.sinc(x)) == (x == 0)
    assert float(dt.grad(dt.grad(jnp.sinc))(0.0)) == pytest.approx(-(np.pi**2) / 3, rel=1e-5)


EDGE_PAIRS = [(x, y) for x in (0.0, 1.0, np.inf, -np.inf, np.nan) for y in (0.0, 1.0, np.nan)]


@pytest.mark.parametrize(("x", "y"), EDGE_PAIRS)
def test_derivatives_of_pairs_at_edges(x: float, y: float) -> None:
    def slopes(function: Any, *args: float) -> list[float]:
        return [float(s) for s in dt.grad(function, (0, 1))(*args)]

    for a, b in ((x, y), (y, x)):
        assert slopes(jnp.floor_divide, a, b) == [0.0, 0.0]
        assert slopes(lambda p, q: jnp.divmod(p, q)[0], a, b) == [0.0, 0.0]
        for function in (jnp.fmax, jnp.fmin):
            if a == b:
                assert slopes(function, a, b) == [0.5, 0.5]
            elif not (np.isnan(a) and np.isnan(b)):
                assert slopes(function, a, b) == [float(function(a, b) == v) for v in (a, b)]
        if np.isnan(a) or np.isnan(b):
            assert np.isnan(slopes(jnp.logaddexp, a, b)).all()
            assert np.isnan(slopes(jnp.logaddexp2, a, b)).all()


# ------------------------------------------------------------------------------------- operators


def test_operators() -> None:
    x, y = np.array([7, -3, 2]), np.array([2, 2, -5])
    a, b = jnp.array(x), jnp.array(y)
    for run in (
        lambda p, q: p + q,
        lambda p, q: p - q,
        lambda p, q: p * q,
        lambda p, q: p / q,
        lambda p, q: p // q,
        lambda p, q: p % q,
        lambda p, q: p & q,
        lambda p, q: p | q,
        lambda p, q: p ^ q,
        lambda p, q: p == q,
        lambda p, q: p != q,
        lambda p, q: p < q,
        lambda p, q: p <= q,
        lambda p, q: p > q,
        lambda p, q: p >= q,
        lambda p, q: p @ q,
        lambda p, q: -p + +q,
        lambda p, q: abs(p) * ~q,
        lambda p, q: divmod(p, q)[0] + divmod(p, q)[1],
        lambda p, q: p + 2 - 3 * q,
        lambda p, q: 2 / p + 2 // q,
        lambda p, q: 7 % p + divmod(20, q)[1],
        lambda p, q: (3 & p) | (1 ^ q),
        lambda p, q: 2.5 - p,
        lambda p, q: (p > 1) & (q <= 2),
    ):
        expected = run(x, y)
        for left, right in ((a, b), (a, y), (x, b)):
            close(run(left, right), expected)
            close(dt.jit(run)(left, right), expected)
    close(np.array([1.0, 2.0]) - jnp.array([3.0, 5.0]), [-2.0, -3.0])
    close(round(jnp.array(2.567), 1), 2.6)
    assert round(jnp.array(2.5)).dtype == jnp.int32
    assert 2 in jnp.arange(3)
    assert 7 not in jnp.arange(3)


@pytest.mark.parametrize("traced", [False, True])
def test_operators_refuse_what_is_no_array(traced: bool) -> None:
    class Other:
        def __radd__(self, other: Any) -> str:
            return "added"

    def run(function: Callable[[Any], Any]) -> Any:
        if not traced:
            return function(jnp.ones(2))
        found = []
        dt.make_jaxpr(lambda x: found.append(function(x)) or x)(jnp.ones(2))
        return found[0]

    assert run(lambda x: x + Other()) == "added"
    for other in ("a", None, object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            run(lambda x: x + other)  # noqa: B023  # called at once
        with pytest.raises(TypeError):
            run(lambda x: x < other)  # noqa: B023  # called at once
        assert run(lambda x: x == other) is False  # noqa: B023  # called at once
    for other in ([1, 2], (1, 2), {}):
        with pytest.raises(TypeError, match=r"list|tuple|dict"):
            run(lambda x: x * other)  # noqa: B023  # called at once


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jnp.sin([1.0, 2.0]), "sin.*list"),
        (lambda: jnp.add(jnp.ones(2), [1, 2]), "add.*x2.*list"),
        (lambda: jnp.add(jnp.ones(2), None), "add.*x2.*NoneType"),
        (lambda: jnp.add(jnp.ones(3), jnp.ones(4)), r"\(3,\), \(4,\)"),
        (lambda: jnp.ones(3) * jnp.ones(4), r"\(3,\), \(4,\)"),
        (lambda: jnp.ones(2) & jnp.ones(2), "bitwise_and.*float32"),
        (lambda: jnp.array(True) - jnp.array(True), "logical_xor"),
        (lambda: -jnp.array(True), "negative.*bool"),
        (lambda: jnp.floor(jnp.array(1j)), "floor.*real"),
        (lambda: jnp.arctan2(1j, 1.0), "arctan2.*real"),
        (lambda: jnp.clip(jnp.array(1j), 0, 1), "clip"),
        (lambda: jnp.sin("a"), "sin.*str"),
        (lambda: jnp.sin(np.array(["a"])), "sin|str"),
    ],
)
def test_messages(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_sixty_four_bits() -> None:
    with dt.enable_x64(True):
        x = np.array([0.1, 2.5, -3.0])
        assert jnp.sin(x).dtype == jnp.float64
        close(jnp.sin(x), np.sin(x))
        assert jnp.sin(np.arange(3)).dtype == jnp.float64
        assert jnp.sin(np.arange(3, dtype=np.int32)).dtype == jnp.float32
        assert (jnp.arange(3) + 2**40).dtype == jnp.int64
        close(jnp.arange(3) + 2**40, np.arange(3) + 2**40)


def test_a_jaxpr_is_short() -> None:
    """Python scalars are literals of the array's dtype, and nothing is converted needlessly."""
    text = str(dt.make_jaxpr(lambda x: jnp.sin(x * 2 + 1.5))(jnp.ones(3)))
    equations = "b:f32[3] = mul a 2.0:f32[] c:f32[3] = add b 1.5:f32[] d:f32[3] = sin c in (d,) }"
    assert text.split("let")[1].split() == equations.split()


WIDE = ("float64", "int64", "uint64", "complex128")


@pytest.mark.parametrize("dtype", WIDE)
def test_sixty_four_bit_dtypes(dtype: str) -> None:
    narrow = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
    like = narrow[dtype]
    with dt.enable_x64(True):
        x = make(like).astype(dtype)
        left, right = np.repeat(x, len(x)), np.tile(x, len(x))
        for name, dtypes in INEXACT.items():
            if like not in dtypes:
                continue
            points = x if dtype != "float64" or name not in ("sin", "cos", "tan") else x[:10]
            expected = numpy_value(name, wide(points).astype(np.result_type(x, np.float64)))
            result = jnp_function(name)(points)
            assert result.dtype == np.result_type(x, np.float64)
            np.testing.assert_allclose(np.asarray(result), expected, 1e-11, 1e-11, err_msg=name)
        for name, dtypes in KEEPING.items():
            if like not in dtypes or name == "sign":
                continue
            result = jnp_function(name)(x)
            assert result.dtype == quiet(getattr(np, name), x).dtype
            np.testing.assert_allclose(
                np.asarray(result), getattr(np, name)(x), 1e-14, err_msg=name
            )
        for name, dtypes in BINARY.items():
            if like not in dtypes:
                continue
            expected = quiet(getattr(np, name), left, right)
            expected = by_the_standard(name, left, right, expected)
            keep = np.ones(left.shape, bool)
            if dtype == "uint64" and name == "true_divide":
                keep = right != 0
            result = jnp_function(name)(left, right)
            np.testing.assert_allclose(
                np.asarray(result)[keep], expected[keep], 1e-11, 1e-11, err_msg=name
            )


@pytest.mark.parametrize("name", [*INEXACT, *KEEPING, "add", "power", "remainder", "less", "where"])
def test_vmap_is_a_loop_and_nothing_is_fine(name: str) -> None:
    x = np.array([[0.1, 0.5, 0.9], [0.2, 0.3, 0.4]], np.float32)
    count = 3 if name == "where" else 2 if name in (*BINARY, "power") else 1
    args = [x + 0.01 * i for i in range(count)]
    function = jnp_function(name)
    looped = [np.asarray(function(*row)) for row in zip(*args, strict=True)]
    np.testing.assert_allclose(np.asarray(dt.vmap(function)(*args)), np.stack(looped), rtol=1e-6)
    nothing = [a[:, :0] for a in args]
    assert function(*nothing).shape == (2, 0)
    scalar = function(*(float(a[0, 0]) for a in args))
    assert scalar.shape == ()


@pytest.mark.parametrize(
    "name", ["sin", "log2", "sinc", "sqrt", "floor_divide", "remainder", "logaddexp", "hypot"]
)
def test_results_of_python_numbers_are_weak(name: str) -> None:
    args = (2.5, 1.5) if name in BINARY else (2.5,)
    assert jnp_function(name)(*args).weak_type
    assert dt.jit(jnp_function(name))(*args).weak_type
    assert not jnp_function(name)(*(jnp.float32(a) for a in args)).weak_type


@pytest.mark.parametrize("number", [300, -1, 70000, True, 2**31 - 1])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "uint32"])
@pytest.mark.parametrize(
    "name",
    ["true_divide", "hypot", "arctan2", "copysign", "float_power", "logaddexp", "logaddexp2"]
    + ["heaviside", "nextafter"],
)
def test_integers_of_float_functions_need_not_fit(name: str, dtype: str, number: int) -> None:
    function, reference = jnp_function(name), getattr(np, name)
    x = np.array([1, 0, 1] if dtype == "bool" else [1, 2, 100], dtype)
    y, floats = np.float32(number), x.astype("float32")
    # NumPy's float_power computes in 64 bits.
    expected = quiet(lambda: reference(floats, y).astype("float32"))
    for run in (function, dt.jit(function), dt.jit(lambda a, _: function(a, number))):
        close(run(x, number), expected, name)
    expected = quiet(lambda: reference(y, floats).astype("float32"))
    for run in (function, dt.jit(function), dt.jit(lambda _, a: function(number, a))):
        close(run(number, x), expected, name)


def test_logarithms_of_complex_zero() -> None:
    for name in ("log", "log2", "log10"):
        assert complex(jnp_function(name)(jnp.array(0j))) == complex(-np.inf, 0)
