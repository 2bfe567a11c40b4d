"""Users' functions of elementwise operations: what they take, give, print and refuse."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import dovetail
from dovetail import lax
from dovetail.errors import NonArrayArgumentError

F32 = np.ones(3, np.float32)


def printed(function: Any, *args: Any) -> str:
    return " ".join(str(dovetail.make_jaxpr(function)(*args)).split())


# What is traced: names and parameters are those that people know.


@pytest.mark.parametrize(
    ("function", "equation"),
    [
        (lambda x: lax.add(x, 2.0), "b:f32[3] = add a 2.0:f32[]"),
        (lambda x: lax.add(x, np.float32(2)), "b:f32[3] = add a 2.0:f32[]"),
        (lambda x: lax.sub(2, x), "b:f32[3] = sub 2.0:f32[] a"),
        (lax.exp, "b:f32[3] = exp a"),
        (lax.logistic, "b:f32[3] = logistic a"),
        (lax.erfc, "b:f32[3] = erfc a"),
        (
            lambda x: lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST),
            "b:f32[3] = exp[accuracy=AccuracyMode.HIGHEST] a",
        ),
        (lambda x: lax.integer_pow(x, 3), "b:f32[3] = integer_pow[y=3] a"),
        (lax.reciprocal, "b:f32[3] = integer_pow[y=-1] a"),
        (lambda x: lax.pow(x, 2), "b:f32[3] = pow a 2:i32[]"),
        (lambda x: lax.pow(x, 2.0), "b:f32[3] = pow a 2.0:f32[]"),
        (lax.round, "b:f32[3] = round[rounding_method=0] a"),
        (lambda x: lax.clamp(0.0, x, 1.0), "b:f32[3] = clamp 0.0:f32[] a 1.0:f32[]"),
        (lax.conj, "b:c64[3] = conj[input_dtype=float32] a"),
        (lambda x: lax.complex(x, 0.0), "b:c64[3] = complex a 0.0:f32[]"),
        (
            lambda x: lax.convert_element_type(x, np.int32),
            "b:i32[3] = convert_element_type[new_dtype=int32 weak_type=False] a",
        ),
        (
            lambda x: lax.bitcast_convert_type(x, np.int8),
            "b:i8[3,4] = bitcast_convert_type[new_dtype=int8] a",
        ),
        (
            lambda x: lax.reduce_precision(x, 5, 10),
            "b:f32[3] = reduce_precision[exponent_bits=5 mantissa_bits=10] a",
        ),
        (lax.stop_gradient, "b:f32[3] = stop_gradient a"),
        (lax.is_finite, "b:bool[3] = is_finite a"),
        (lambda x: lax.lt(x, 1.0), "b:bool[3] = lt a 1.0:f32[]"),
    ],
)
def test_printed_equation(function: Any, equation: str) -> None:
    text = printed(function, F32)
    assert text == f"{{ lambda ; a:f32[3]. let {equation} in (b,) }}"


def test_select_prints_cases_in_order_of_the_index() -> None:
    text = printed(lambda p, x, y: lax.select(p, x, y), np.array([True] * 3), F32, F32)
    assert "d:f32[3] = select_n a c b" in text


def test_bitwise_names() -> None:
    def function(x: Any) -> Any:
        return lax.bitwise_not(lax.bitwise_and(lax.bitwise_or(lax.bitwise_xor(x, 1), 2), 3))

    text = printed(function, np.arange(3, dtype=np.int32))
    assert [name for name in ("xor", "or", "and", "not") if f" = {name} " in text] == [
        "xor",
        "or",
        "and",
        "not",
    ]


def test_nothing_is_traced_for_a_conversion_to_the_same_dtype() -> None:
    assert printed(lambda x: lax.convert_element_type(x, np.float32), F32).endswith("in (a,) }")


# Scalars, NumPy values, weak types


def test_python_scalars_take_the_dtype_of_the_array() -> None:
    half = dovetail.device_put(np.ones(2, np.float16))
    assert lax.add(half, 2.0).dtype == np.float16
    assert lax.mul(3, np.ones(2, np.int8)).dtype == np.int8


def test_two_python_scalars_give_a_weak_type() -> None:
    assert lax.add(1.0, 2.0).weak_type
    assert not lax.add(1.0, np.float32(2.0)).weak_type


@pytest.mark.parametrize(
    ("function", "weak"),
    [
        (lax.sin, True),
        (lax.abs, True),
        (lax.floor, True),
        (lambda x: lax.integer_pow(x, 2), True),
        (lambda x: lax.pow(x, 2), True),
        (lambda x: lax.pow(x, np.float32(2)), False),
        (lambda x: lax.max(x, 1.0), True),
        (lambda x: lax.select(True, x, 1.0), True),
        (lambda x: lax.select(True, x, np.float32(1.0)), False),
        (lambda x: lax.lt(x, 2.0), False),
        (lax.is_finite, False),
        (lambda x: lax.bitcast_convert_type(x, np.int32), False),
    ],
)
def test_weak_types(function: Any, weak: bool) -> None:
    assert dovetail.make_jaxpr(function)(1.5).out_avals[0].weak_type is weak
    assert function(1.5).weak_type is weak


def test_numpy_arrays_of_64_bits_are_of_32() -> None:
    assert lax.add(np.ones(3), np.ones(3)).dtype == np.float32
    with dovetail.enable_x64(True):
        assert lax.add(np.ones(3), np.ones(3)).dtype == np.float64


def test_sizes_of_one_are_repeated() -> None:
    out = lax.add(np.ones((2, 1), np.float32), np.ones((1, 3), np.float32))
    assert out.shape == (2, 3)


def test_mul_in_another_dtype() -> None:
    out = lax.mul(np.int8([100]), np.int8([100]), out_dtype=np.int32)
    assert out.dtype == np.int32
    assert out.tolist() == [10000]
    narrow = lax.mul(np.float32([1.5]), np.float32([2]), out_dtype=np.float16)
    assert narrow.dtype == np.float16
    assert narrow.tolist() == [3]
    with pytest.raises(TypeError, match="out_dtype int8 does not hold"):
        lax.mul(np.float32([1]), np.float32([1]), out_dtype=np.int8)


# Conversions


def test_floats_out_of_range_become_the_nearest_integer() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, -1.7, 300], np.float32)
    to = lax.convert_element_type
    assert to(x, np.int32).tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), -1, 300]
    assert to(x, np.int8).tolist() == [0, 127, -128, 127, -128, -1, 127]
    assert to(x, np.uint8).tolist() == [0, 255, 0, 255, 0, 0, 255]


def test_integers_out_of_range_wrap() -> None:
    assert lax.convert_element_type(np.int32([300, -1]), np.uint8).tolist() == [44, 255]


def test_to_bool_is_whether_not_zero() -> None:
    out = lax.convert_element_type(np.array([0.0, -0.0, 0.1, np.nan]), bool)
    assert out.tolist() == [False, False, True, True]


def test_complex_to_real_warns() -> None:
    with pytest.warns(Warning, match="discards the imaginary part") as caught:
        assert float(lax.convert_element_type(1 + 2j, np.float32)) == 1.0
    assert caught[0].filename == __file__


def test_convert_to_python_types_is_not_weak() -> None:
    out = lax.convert_element_type(np.int32(1), float)
    assert out.dtype == np.float32
    assert not out.weak_type
    assert not lax.convert_element_type(1.0, float).weak_type


def test_converting_returns_an_array() -> None:
    assert isinstance(lax.convert_element_type(F32, np.float32), dovetail.Array)


def test_bits_of_wider_and_narrower_dtypes() -> None:
    out = lax.bitcast_convert_type(np.float32([1, 2]), np.uint8)
    assert out.tolist() == [[0, 0, 128, 63], [0, 0, 0, 64]]
    assert lax.bitcast_convert_type(out, np.float32).tolist() == [1.0, 2.0]


# Integers


def test_integer_division() -> None:
    x, y = np.int32([7, -7, 7, -7, 5, -(2**31)]), np.int32([2, 2, -2, -2, 0, -1])
    assert lax.div(x, y).tolist() == [3, -3, -3, 3, -1, -(2**31)]
    assert lax.rem(x, y).tolist() == [1, -1, 1, -1, 5, 0]
    assert lax.div(np.uint8([5]), np.uint8([0])).tolist() == [255]
    # Of constants, which the compiler divides; it once ended the process.
    for divide, result in ((lax.div, -1), (lax.rem, 7)):
        assert dovetail.jit(divide)(*map(np.int8, (7, 0))) == result
        constants = lax.full((), 7, np.int8), lax.full((), 0, np.int8)
        assert dovetail.jit(lambda f=divide, c=constants: f(*c))() == result


def test_lowest_integer() -> None:
    assert lax.abs(np.int8([-128])).tolist() == [-128]
    assert lax.neg(np.int8([-128])).tolist() == [-128]


def test_shifts_by_more_than_the_width() -> None:
    one, minus = np.int32([1] * 4), np.int32([-8] * 4)
    distance = np.int32([31, 32, -1, 33])
    assert lax.shift_left(one, distance).tolist() == [-(2**31), 0, 0, 0]
    assert lax.shift_right_logical(minus, distance).tolist() == [1, 0, 0, 0]
    assert lax.shift_right_arithmetic(minus, distance).tolist() == [-1] * 4


# Refusals


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.add([1], 2), NonArrayArgumentError, r"lax\.add|add"),
        (lambda: lax.sin("a"), NonArrayArgumentError, "sin"),
        (lambda: lax.sin(1), TypeError, "sin does not accept dtype int32"),
        (lambda: lax.add(F32, np.ones(2, np.float32)), TypeError, "incompatible shapes"),
        (lambda: lax.add(F32, np.ones(3, np.int32)), TypeError, "equal dtypes.*float32.*int32"),
        (lambda: lax.add(np.ones(2, np.int32), 2.0), TypeError, "equal dtypes"),
        (lambda: lax.add(True, 2), TypeError, "bool|equal dtypes"),
        *(
            (call, TypeError, "equal dtypes, got .*key<fry>")
            for call in (
                lambda: lax.add(dovetail.random.key(0), 1),
                lambda: lax.max(1.0, dovetail.random.key(0)),
                lambda: lax.eq(dovetail.random.key(0), 1),
                lambda: lax.select(True, dovetail.random.key(0), 1),
            )
        ),
        (lambda: lax.real(1.0), TypeError, "real does not accept dtype float32"),
        (lambda: lax.complex(1.0, 2), TypeError, "complex"),
        (lambda: lax.lt(1j, 2j), TypeError, "lt does not accept dtype complex64"),
        (lambda: lax.pow(2, 3), TypeError, "pow does not accept dtype int32"),
        (lambda: lax.integer_pow(np.int32(2), -1), TypeError, "negative exponent -1"),
        (lambda: lax.integer_pow(2.0, 0.5), TypeError, r"use lax\.pow"),
        (
            lambda: lax.integer_pow(2.0, lax.iota(np.int32, 3)),
            TypeError,
            "that is an integer, got Array",
        ),
        (lambda: lax.exp(1.0, accuracy="high"), TypeError, "accuracy must be"),
        (lambda: lax.Tolerance(), ValueError, "at least one"),
        (lambda: lax.Tolerance(atol=-1), ValueError, "must not be negative"),
        (lambda: lax.round(1.5, 7), ValueError, "7"),
        (lambda: lax.reduce_precision(1.0, 0, 3), ValueError, "exponent_bits >= 1"),
        (lambda: lax.select_n(True), ValueError, "at least one case"),
        (lambda: lax.select(np.float32(1), F32, F32), TypeError, "pred must be boolean"),
        (lambda: lax.select(np.array([True]), F32, F32), TypeError, "which must be a scalar"),
        (lambda: lax.select(True, F32, np.ones(2, np.float32)), TypeError, "must have one shape"),
        (lambda: lax.select_n(True, F32, F32, F32), TypeError, "use integers"),
        (lambda: lax.select_n(np.float32(1), F32, F32), TypeError, "boolean or an integer"),
        (lambda: lax.clamp(np.ones(2, np.float32), F32, 1.0), TypeError, "clamp: min must be"),
        (lambda: lax.bitcast_convert_type(np.array([True]), np.int8), TypeError, "bool"),
        (lambda: lax.bitcast_convert_type(np.ones(3), None), TypeError, "requires a dtype"),
        (
            lambda: lax.bitcast_convert_type(np.zeros(3, np.uint8), np.float32),
            ValueError,
            "joins the 4 elements",
        ),
    ],
)
def test_refusal(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int4", "uint4"]
)
def test_every_integer_chooses_a_case(dtype: str) -> None:
    which = np.array([0, 1, 7, 2]).astype(dovetail.numpy.dtype(dtype))
    cases = [np.arange(4.0, dtype=np.float32) + 10 * i for i in range(3)]
    expected = [0, 11, 22, 23]
    for function in (lax.select_n, dovetail.jit(lax.select_n), dovetail.vmap(lax.select_n)):
        assert function(which, *cases).tolist() == expected
    assert lax.select(which, cases[0], cases[1]).tolist() == [10, 1, 2, 3]


def test_an_integer_of_one_byte_chooses_among_more_cases_than_it_counts() -> None:
    cases = [np.full(3, i, np.float32) for i in range(200)]
    which = np.array([-128, 127, 3], np.int8)
    assert lax.select_n(which, *cases).tolist() == [0, 127, 3]


def test_refusals_are_the_same_when_traced() -> None:
    with pytest.raises(TypeError, match="equal dtypes"):
        dovetail.make_jaxpr(lax.add)(F32, np.ones(3, np.int32))


# Objects


def test_tolerances_compare_by_value() -> None:
    assert lax.Tolerance(1e-5, ulps=2) == lax.Tolerance(1e-5, 0.0, 2)
    assert lax.Tolerance(1e-5) != lax.Tolerance(1e-6)
    assert len({lax.Tolerance(1e-5), lax.Tolerance(1e-5)}) == 1


def test_accuracy_reaches_the_program() -> None:
    text = dovetail.jit(lambda x: lax.exp(x, accuracy=lax.Tolerance(1e-5, 1e-6, 2))).lower(1.0)
    assert "result_accuracy<atol = 1.000000e-05" in text.as_text()


def test_stop_gradient_of_a_tree() -> None:
    tree = {"a": np.float32(2.0), "b": [np.int32(3), "text", None]}
    out = lax.stop_gradient(tree)
    assert float(out["a"]) == 2.0
    assert out["b"][1:] == ["text", None]


def test_no_warnings_at_special_values() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (lax.log, lax.sqrt, lax.rsqrt, lax.lgamma, lax.digamma, lax.erf_inv):
            function(x).tolist()


@pytest.mark.parametrize(
    ("base", "exponent", "weak"),
    [(2.0, 3, True), (2.0, np.int32(3), False), (np.float32(2), 3, False)],
)
def test_a_power_is_weak_if_both_operands_are(base: Any, exponent: Any, weak: bool) -> None:
    assert lax.pow(base, exponent).weak_type is weak
