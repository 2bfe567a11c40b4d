"""Integers keep their values: what a dtype cannot hold is an error, never another number."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

pytestmark = pytest.mark.tables

LARGE = 2**40
X = jnp.arange(3)

CONVERSIONS: dict[str, Callable[[], Any]] = {
    "array": lambda: jnp.array(LARGE),
    "array of a dtype": lambda: jnp.array(LARGE, dtype="int32"),
    "list": lambda: jnp.array([1, LARGE]),
    "list of a dtype": lambda: jnp.asarray([LARGE], dtype="uint32"),
    "narrow": lambda: jnp.array(300, dtype="uint8"),
    "negative": lambda: jnp.asarray([1, -1], dtype="uint8"),
    "NumPy array": lambda: jnp.array(np.array([LARGE])),
    "NumPy scalar": lambda: jnp.asarray(np.int64(LARGE)),
    "scalar type": lambda: jnp.int32(LARGE),
    "narrow scalar type": lambda: jnp.int8(300),
    "float": lambda: jnp.array(1e20, dtype="int32"),
    "nan": lambda: jnp.array([np.nan], dtype="int32"),
    "full": lambda: jnp.full(3, LARGE, "int32"),
    "narrow full": lambda: jnp.full(3, 300, "uint8"),
    "full_like": lambda: jnp.full_like(X, LARGE),
    "fill_value": lambda: X.astype("uint8").at[X].get(mode="fill", fill_value=-7),
    "fill_value of take": lambda: jnp.take(X.astype("int8"), X, fill_value=300),
    "fill_value of extract": lambda: jnp.extract(X > 1, X.astype("uint8"), size=3, fill_value=-1),
    "set": lambda: X.at[0].set(LARGE),
    "add": lambda: X.at[jnp.array([0, 1])].add(LARGE),
    "operator": lambda: X + LARGE,
    "reflected operator": lambda: LARGE - X,
    "NumPy operand": lambda: X + np.int64(LARGE),
    "comparison": lambda: X < LARGE,
    "function": lambda: jnp.maximum(X, LARGE),
    "where": lambda: jnp.where(X > 1, X, LARGE),
    "clip": lambda: jnp.clip(X, LARGE, LARGE),
    "initial": lambda: X.sum(initial=LARGE),
    "first beyond": lambda: X + 2**31,
    "traced": lambda: dt.jit(lambda x: x + LARGE)(X),
    "argument": lambda: dt.jit(lambda x: x)(LARGE),
    "device_put": lambda: dt.device_put(LARGE),
    "arange": lambda: jnp.arange(LARGE, LARGE + 3),
    "last of arange": lambda: jnp.arange(0, 2**31 + 1, 2**31),
    "narrow operand": lambda: X.astype("uint8") + 300,
    "narrow left operand": lambda: 300 * X.astype("int8"),
    "negative operand": lambda: X.astype("uint32") - (-1),
    "narrow function": lambda: jnp.minimum(X.astype("int16"), 2**15),
    "narrow where": lambda: jnp.where(X > 1, X.astype("int8"), 300),
    "narrow select": lambda: jnp.select([X > 1], [X.astype("int8")], 300),
    "narrow bound": lambda: jnp.clip(X.astype("uint8"), 300, 400),
    "narrow traced bound": lambda: dt.jit(lambda x: jnp.clip(x, -5, -1))(X.astype("uint8")),
    "narrow insert": lambda: jnp.insert(X.astype("uint8"), 0, 300),
    "narrow place": lambda: jnp.place(X.astype("uint8"), X > 1, 300, inplace=False),
    "narrow put": lambda: jnp.put(X.astype("uint8"), X, 300, inplace=False),
    "narrow diagonal": lambda: jnp.fill_diagonal(jnp.eye(2, dtype="int8"), 300, inplace=False),
    "narrow list": lambda: jnp.array([jnp.uint8(3), 300]),
    "narrow NumPy list": lambda: jnp.array([np.uint8(3), 300]),
    "narrow list of values": lambda: X.astype("int8").at[:2].set([jnp.int8(3), 300]),
    "narrow bits": lambda: X.astype("uint8") & ~3,
    "narrow traced": lambda: dt.jit(lambda x: x + 300)(X.astype("uint8")),
    "narrow arange": lambda: jnp.arange(300, dtype="uint8"),
    "narrow padding": lambda: lax.pad(X.astype("int8"), 300, [(1, 0, 0)]),
    "negative arange": lambda: jnp.arange(-1, 3, dtype="uint8"),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_what_does_not_fit_is_an_error(name: str) -> None:
    with pytest.raises(OverflowError, match=r"does not fit|out of bounds for") as caught:
        CONVERSIONS[name]()
    assert not str(caught.value).startswith("Python integer"), "NumPy's message names no function"


def test_what_fits_is_kept() -> None:
    assert jnp.arange(256, dtype="uint8").tolist() == list(range(256))
    assert jnp.arange(2**31 - 1, 2**31).tolist() == [2**31 - 1]
    assert jnp.array(2**32 - 1, dtype="uint32") == np.uint32(2**32 - 1)
    assert jnp.int8(-128) == -128
    with dt.enable_x64(True):
        wide = jnp.arange(3)
        for found in (wide + LARGE, wide.at[:].add(LARGE), jnp.arange(LARGE, LARGE + 3)):
            assert found.tolist() == [LARGE, LARGE + 1, LARGE + 2]


NARROW = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
INTEGERS = (0, 5, 44, -1, -300, 300, 70_000, 2**31 - 1, -(2**31))
# An unsigned dtype of the default width holds these, and the default integer dtype does not.
LARGE_UNSIGNED = (2**31, 2**32 - 1)
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.and_)

Operator = Callable[[Any, Any], Any]


def extremes(dtype: str) -> np.ndarray[Any, Any]:
    limits = np.iinfo(dtype)
    return np.array([limits.min, 0, 1, 44, limits.max], dtype)


def ways(compute: Operator, x: Any, number: int) -> dict[str, Callable[[], Any]]:
    """Calls of an operator with an array and a Python integer, on either side."""
    return {
        "right": lambda: compute(x, number),
        "left": lambda: compute(number, x),
        "right traced": lambda: dt.jit(lambda v: compute(v, number))(x),
        "left traced": lambda: dt.jit(lambda v: compute(number, v))(x),
    }


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("dtype", NARROW)
def test_comparisons_are_by_value(dtype: str, compare: Operator) -> None:
    x = extremes(dtype)
    for number in INTEGERS + LARGE_UNSIGNED:
        calls = ways(compare, jnp.asarray(x), number)
        if number in INTEGERS:
            calls["argument"] = functools.partial(dt.jit(compare), x, number)
        for way, call in calls.items():
            want = compare(number, x) if "left" in way else compare(x, number)
            np.testing.assert_array_equal(np.asarray(call()), want, f"{way}: {number}")


@pytest.mark.parametrize("compute", ARITHMETIC)
@pytest.mark.parametrize("dtype", NARROW)
def test_integers_fit_where_they_do_in_numpy(dtype: str, compute: Operator) -> None:
    for number in (5, -1, 300, *LARGE_UNSIGNED):
        for way, call in ways(compute, jnp.asarray(extremes(dtype)), number).items():
            try:
                with np.errstate(all="ignore"):
                    x = extremes(dtype)
                    want = compute(number, x) if "left" in way else compute(x, number)
            except OverflowError:
                place = dtype if number in INTEGERS else "int32"
                with pytest.raises(OverflowError, match=f"{number} does not fit {place}"):
                    call()
            else:
                np.testing.assert_array_equal(np.asarray(call()), want, f"{way}: {number}")


U32 = np.array([1, 2**32 - 1], "uint32")
F32 = np.array([1, 2], "float32")
LARGE_OPERANDS: dict[str, Callable[[Any, Any, int], Any]] = {
    "and": lambda np_, x, n: x & n,
    "maximum": lambda np_, x, n: np_.maximum(x, n),
    "where": lambda np_, x, n: np_.where(x == 1, n, x),
    "select": lambda np_, x, n: np_.select([x == 1], [x], n),
    "clip": lambda np_, x, n: np_.clip(x, n, None),
    "isin": lambda np_, x, n: np_.isin(x, n),
    "searchsorted": lambda np_, x, n: np_.searchsorted(x, n),
    "insert": lambda np_, x, n: np_.insert(x, 0, n),
    "full_like": lambda np_, x, n: np_.full_like(x, n),
    "full": lambda np_, x, n: np_.full(2, n, x.dtype),
    "full of floats": lambda np_, x, n: np_.full(2, n, "float32"),
    "set": lambda np_, x, n: x.at[0].set(n) if np_ is jnp else np.array([n, x[1]], x.dtype),
    "float": lambda np_, x, n: np_.asarray(F32) * n,
    "large float": lambda np_, x, n: np_.asarray(F32) * 10**30,
}


@pytest.mark.parametrize("name", LARGE_OPERANDS)
@pytest.mark.parametrize("x64", [False, True])
def test_the_dtype_of_the_array_may_hold_more_than_the_default_one(name: str, x64: bool) -> None:
    call = LARGE_OPERANDS[name]
    x = U32.astype("uint64") if x64 else U32
    n = 2**64 - 1 if x64 else 2**32 - 1
    want = call(np, x, n)
    with dt.enable_x64(x64):
        for found in (call(jnp, jnp.asarray(x), n), dt.jit(lambda x: call(jnp, x, n))(x)):
            np.testing.assert_array_equal(np.asarray(found), want)


def test_a_call_that_fits_does_not_let_others_pass() -> None:
    x = jnp.arange(3, dtype="uint8")
    assert [(x + n).tolist() for n in (1, 255)] == [[1, 2, 3], [255, 0, 1]]
    with pytest.raises(OverflowError, match="add: the Python integer 256 does not fit uint8"):
        x + 256
    for wide in (np.arange(3, dtype="int16"), jnp.arange(3, dtype="int16")):
        assert [(wide + jnp.int16(n)).tolist() for n in (1, 300)] == [[1, 2, 3], [300, 301, 302]]
        assert jnp.add(wide, 300).tolist() == [300, 301, 302]
    for narrow in (x, np.arange(3, dtype="uint8")):
        for number in (3, 300):
            with pytest.raises(OverflowError) if number == 300 else contextlib.nullcontext():
                assert jnp.add(narrow, number).tolist() == [3, 4, 5]
    with dt.enable_x64(True):
        assert (x + 7).tolist() == [7, 8, 9]
        with pytest.raises(OverflowError):
            x + 256
    # A weakly typed array is no Python integer: it is converted, and lets no integer pass later.
    for _ in range(3):
        assert (x + jnp.asarray(256)).tolist() == [0, 1, 2]
        with pytest.raises(OverflowError):
            x + 256
    # An array of the default dtype is no Python integer, and is converted as ever.
    assert (x + jnp.array(256, "int32")).dtype == np.int32


X8 = np.array([1, 3, 200], "uint8")
BY_VALUE: dict[str, tuple[Callable[[], Any], Any]] = {
    "allclose": (lambda: jnp.allclose(X8, 300), False),
    "isclose": (lambda: jnp.isclose(300, X8), [False] * 3),
    "array_equal": (lambda: jnp.array_equal(X8[:1], np.array([257])), False),
    "array_equiv": (lambda: jnp.array_equiv(X8 * 0 + 44, 300), False),
    "searchsorted": (lambda: jnp.searchsorted(X8, 300), 3),
    "searchsorted below": (lambda: jnp.searchsorted(X8, -1), 0),
    "isin": (lambda: jnp.isin(X8, 456), [False] * 3),
    "clip": (lambda: jnp.clip(X8, -1, 300), X8),
    "clip far": (lambda: jnp.clip(X, -LARGE, LARGE), [0, 1, 2]),
    "clip one side": (lambda: jnp.asarray(X8).clip(-1, 7), [1, 3, 7]),
    "linspace": (lambda: jnp.linspace(X8, 300, 2), [[1, 3, 200], [300, 300, 300]]),
    "geomspace": (lambda: jnp.geomspace(X8, 300, 2), [[1, 3, 200], [300, 300, 300]]),
    "unravel_index": (lambda: jnp.unravel_index(X8, 300)[0], X8),
    "polyint": (lambda: jnp.polyint(X8, 1, 300), [1 / 3, 1.5, 200, 300]),
}


BYTES = np.arange(3, dtype=np.int8)

TOO_LARGE: dict[str, Callable[[], Any]] = {
    "lax.add": lambda: lax.add(BYTES, 300),
    "lax.max": lambda: lax.max(300, BYTES),
    "lax.clamp": lambda: lax.clamp(0, BYTES, 300),
    "lax.select": lambda: lax.select(BYTES > 0, BYTES, 300),
    "lax.reduce": lambda: lax.reduce(BYTES, 300, lax.add, (0,)),
    "lax.reduce_window": lambda: lax.reduce_window(BYTES, 300, lax.add, (2,)),
    "array": lambda: jnp.array(300, jnp.int8),
    "array of a list": lambda: jnp.array([1, 300], jnp.int8),
    "array of a scalar type": lambda: jnp.uint8(-1),
    "full": lambda: jnp.full((2,), 300, jnp.int8),
    "full_like": lambda: jnp.full_like(BYTES, 300),
    "where": lambda: jnp.where(BYTES > 0, jnp.asarray(BYTES), 300),
    "select": lambda: jnp.select([BYTES > 0], [jnp.asarray(BYTES)], 300),
    "pad": lambda: jnp.pad(BYTES, 1, constant_values=300),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_integers_that_the_dtype_cannot_hold(name: str) -> None:
    message = f"{name.split()[0]}: the Python integer (300|-1) does not fit"
    with pytest.raises(OverflowError, match=message):
        TOO_LARGE[name]()


@pytest.mark.parametrize("name", BY_VALUE)
def test_functions_that_take_integers_by_value(name: str) -> None:
    compute, want = BY_VALUE[name]
    np.testing.assert_allclose(np.asarray(compute()), want, rtol=1e-6)
