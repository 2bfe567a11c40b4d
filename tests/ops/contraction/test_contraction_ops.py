"""dot_general and the matrix products made of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail import lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.arange(12, dtype=np.float32).reshape(3, 4)
MATRICES = (((1,), (0,)), ((), ()))


def test_products() -> None:
    np.testing.assert_array_equal(np.asarray(lax.dot(X, Y)), X @ Y)
    np.testing.assert_array_equal(np.asarray(lax.dot(X[0], Y)), X[0] @ Y)
    np.testing.assert_array_equal(np.asarray(lax.dot(X, Y[:, 0])), X @ Y[:, 0])
    np.testing.assert_array_equal(np.asarray(lax.dot(X[0], X[1])), X[0] @ X[1])
    a, b = np.ones((5, 2, 3), np.float32), np.ones((5, 3, 4), np.float32)
    np.testing.assert_array_equal(np.asarray(lax.batch_matmul(a, b)), a @ b)
    numbers = (((2,), (1,)), ((0,), (0,)))
    np.testing.assert_array_equal(np.asarray(lax.dot(a, b, dimension_numbers=numbers)), a @ b)
    assert lax.dot_general(X, 2.0, (((), ()), ((), ()))).tolist() == (X * 2).tolist()


DTYPES = ["bool", "int8", "uint8", "int32", "uint64", "float16", "bfloat16", "float64", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    x, y = X.astype(dtype), Y.astype(dtype)
    with dt.enable_x64(True):
        got = lax.dot(x, y)
    assert got.dtype == np.dtype(dtype)
    want = (X @ Y).astype(dtype)
    np.testing.assert_array_equal(np.asarray(got), want)


def test_mixed_dtypes_promote() -> None:
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    assert lax.dot(X.astype(bfloat16), Y).dtype == np.float32
    assert lax.dot(X.astype(np.int8), Y).dtype == np.float32
    assert lax.dot(X, Y + 1j).dtype == np.complex64
    assert lax.dot(X, 1j * Y).tolist() == (1j * (X @ Y)).tolist()


def test_narrow_dtypes_are_summed_in_wide_ones() -> None:
    for dtype in ("bfloat16", "float16"):
        ones = np.ones((1, 4096), dtype)
        assert float(lax.dot(ones, ones.T)[0, 0]) == 4096
        wide = lax.dot(ones * 3, ones.T / 3, preferred_element_type=np.float32)
        assert wide.dtype == np.float32
    hundreds = np.full((1, 4), 100, np.int8)
    wide = lax.dot(hundreds, hundreds.T, preferred_element_type=np.int32)
    assert (wide.dtype, wide.tolist()) == (np.dtype(np.int32), [[40000]])
    wrapped = lax.dot(hundreds, hundreds.T)
    assert (wrapped.dtype, wrapped.tolist()) == (np.dtype(np.int8), [[64]])


def test_gradients_keep_dtypes() -> None:
    x, y = X.astype("bfloat16"), Y.astype(np.float32)
    for_x, for_y = dt.grad(lambda x, y: lax.reduce_sum(lax.dot(x, y), (0, 1)), (0, 1))(x, y)
    assert (for_x.dtype, for_y.dtype) == (x.dtype, y.dtype)
    np.testing.assert_allclose(np.asarray(for_y), np.repeat(X.sum(0)[:, None], 4, 1))

    def wide(x: Any, y: Any) -> Any:
        return lax.reduce_sum(lax.dot(x, y, preferred_element_type=np.float32), (0, 1))

    for_x, for_y = dt.grad(wide, (0, 1))(x, y.astype("bfloat16"))
    assert for_x.dtype == for_y.dtype == x.dtype


def test_batching_needs_no_transposition() -> None:
    product = dt.vmap(lambda x, y: lax.dot(x, y), in_axes=(2, 1))
    jaxpr = dt.make_jaxpr(product)(np.ones((2, 3, 5), np.float32), np.ones((3, 5, 4), np.float32))
    assert [e.primitive.name for e in jaxpr.eqns] == ["dot_general"]
    assert jaxpr.eqns[0].params["dimension_numbers"] == (((1,), (0,)), ((2,), (1,)))


def test_precision() -> None:
    assert lax.Precision("float32") is lax.Precision.HIGHEST
    assert lax.Precision(None) is lax.Precision.DEFAULT
    assert lax.Precision("tensorfloat32") is lax.Precision.HIGH
    assert (repr(lax.Precision.HIGH), str(lax.Precision.HIGH)) == ("Precision.HIGH", "HIGH")
    for precision in ("highest", lax.Precision.HIGH, ("default", lax.Precision.HIGHEST)):
        np.testing.assert_array_equal(np.asarray(lax.dot(X, Y, precision=precision)), X @ Y)
    text = dt.jit(lambda x, y: lax.dot(x, y, precision="highest")).lower(X, Y).as_text()
    assert "HIGHEST" in text


def test_default_precision_is_an_option() -> None:
    def printed() -> str:
        return re.sub(r"\s+", " ", str(dt.make_jaxpr(lambda x, y: lax.dot(x, y))(X, Y)))

    assert "precision" not in printed()
    with dt.default_matmul_precision("float32"):
        assert "precision=(Precision.HIGHEST, Precision.HIGHEST)" in printed()
    function = dt.jit(lambda x, y: lax.dot(x, y))
    assert "HIGHEST" not in function.lower(X, Y).as_text()
    with dt.default_matmul_precision("highest"):
        assert "HIGHEST" in function.lower(X, Y).as_text()


PRESETS = list(lax.DotAlgorithmPreset)


@pytest.mark.parametrize("preset", PRESETS, ids=str)
def test_algorithms(preset: Any) -> None:
    narrow = preset.name.startswith("ANY_F8")
    default = preset is lax.DotAlgorithmPreset.DEFAULT
    precision = preset if default else preset.name
    dtypes = ["float8_e4m3fn"] if narrow else ["float8_e4m3fn", "bfloat16", "float16", "float"]

    @dt.jit
    def products(pairs: Any) -> Any:
        wide = np.float32
        return [lax.dot(x, y, precision=precision, preferred_element_type=wide) for x, y in pairs]

    pairs = [(X.astype(dtype), Y.astype(dtype)) for dtype in dtypes]
    for got in products(pairs):
        assert got.dtype == np.float32
        np.testing.assert_array_equal(np.asarray(got), X @ Y)
    text = products.lower(pairs).as_text()
    assert text.count("algorithm = <") == (0 if default else len(pairs))
    if narrow:
        with pytest.raises(TypeError, match="for operands of 8-bit floats, got float32"):
            lax.dot(X, Y, precision=preset)


def test_algorithms_in_full() -> None:
    with dt.enable_x64(True):
        for types in (["float32"] * 3, [np.float32] * 3, [ml_dtypes.bfloat16] * 2 + ["float32"]):
            algorithm = lax.DotAlgorithm(*types)
            x, y = X.astype("float16"), Y.astype("float16")
            np.testing.assert_array_equal(np.asarray(lax.dot(x, y, precision=algorithm)), X @ Y)
    split = lax.DotAlgorithm("bfloat16", "bfloat16", "float32", 2, 2, 3, True)
    text = dt.jit(lambda x, y: lax.dot(x, y, precision=split)).lower(X, Y).as_text()
    assert "lhs_component_count = 2" in text
    assert "num_primitive_operations = 3" in text
    assert "allow_imprecise_accumulation = true" in text
    assert "convert" not in text
    preset = lax.DotAlgorithmPreset.BF16_BF16_F32_X3
    assert preset.supported_lhs_types == preset.supported_rhs_types == (np.float32,)
    assert preset.accumulation_type is np.float32
    tensor_float = dt.jit(lambda x, y: lax.dot(x, y, precision="TF32_TF32_F32_X3"))
    assert "lhs_precision_type = tf32" in tensor_float.lower(X, Y).as_text()


def test_algorithms_are_for_floats() -> None:
    for x, y in ((X.astype(int), Y.astype(int)), (1j * X, Y + 0j), (X > 1, Y > 1)):
        plain, asked = lax.dot(x, y), lax.dot(x, y, precision="BF16_BF16_F32")
        assert (asked.dtype, asked.tolist()) == (plain.dtype, plain.tolist())
    with dt.default_matmul_precision("BF16_BF16_F32"):
        assert "BF16_BF16_F32" in str(dt.make_jaxpr(lax.dot)(X, Y))
        assert lax.dot(X, Y, precision="highest").tolist() == (X @ Y).tolist()


def test_narrow_floats() -> None:
    """They are multiplied with each other and with others, also in gradients."""
    x, y = X.astype("float8_e4m3fn"), Y.astype("float8_e5m2")
    for algorithm in (None, "ANY_F8_ANY_F8_F32_FAST_ACCUM"):

        def loss(x: Any, y: Any, precision: Any = algorithm) -> Any:
            product = lax.dot(x, y, precision=precision, preferred_element_type=np.float32)
            return lax.reduce_sum(product, (0, 1))

        for_x, for_y = dt.grad(loss, (0, 1))(x, y)
        assert (for_x.dtype, for_y.dtype) == (x.dtype, y.dtype)
        want = np.repeat(X.sum(0)[:, None], 4, 1)
        np.testing.assert_allclose(np.asarray(for_y, float), want.astype(y.dtype).astype(float))
    assert lax.dot(x, y).dtype == y.dtype
    assert lax.dot(x, Y).dtype == np.float32
    fine = np.full((2, 3), 1.125, "float8_e4m3fn")
    got = lax.dot(fine, np.ones((3, 2), "float8_e5m2"), preferred_element_type=np.float32)
    assert got.tolist() == [[3.375, 3.375]] * 2
    with pytest.raises(ValueError, match="do not combine"):
        lax.dot(X.astype("float8_e4m3fnuz"), Y.astype("float8_e4m3"))
    with dt.numpy_dtype_promotion("strict"):  # which products do not depend on
        assert lax.dot(X.astype(np.int8), Y).dtype == np.float32


def test_scaled_products() -> None:
    x, y = X.astype("float8_e4m3fn"), Y.astype("float8_e4m3fn")
    plain = lax.scaled_dot(x, y)
    assert (plain.dtype, plain.tolist()) == (np.dtype("bfloat16"), (X @ Y).tolist())
    rows = np.array([[2.0], [0.5]])
    scaled = lax.scaled_dot(
        x, y, lhs_scale=rows.astype("float8_e8m0fnu"), preferred_element_type=np.float32
    )
    assert (scaled.dtype, scaled.tolist()) == (np.dtype("float32"), (rows * (X @ Y)).tolist())
    stacked = lax.scaled_dot(x[None], y[None], rhs_scale=np.full((1, 1, 4), 4, np.float32))
    assert stacked.tolist() == [(4 * (X @ Y)).tolist()]
    inner = (((1,), (1,)), ((), ()))
    turned = lax.scaled_dot(x, y.T, dimension_numbers=inner, rhs_scale=np.full((4, 3), 0.5, "f"))
    assert turned.tolist() == (X @ Y / 2).tolist()
    # Wide operands keep their digits.
    fine = np.full((1, 2), 1 + 2**-20, np.float32)
    got = lax.scaled_dot(fine, fine.T, preferred_element_type=np.float32)
    np.testing.assert_array_equal(np.asarray(got), fine @ fine.T)
    jaxpr = dt.make_jaxpr(lax.scaled_dot)(x, y)
    assert jaxpr.eqns[-1].primitive.name == "scaled_dot"


def test_scaled_products_have_gradients_and_batches() -> None:
    scale = np.array([[2.0], [0.5]], np.float32)

    def loss(x: Any, y: Any, scale: Any) -> Any:
        product = lax.scaled_dot(x, y, lhs_scale=scale, preferred_element_type=np.float32)
        return lax.reduce_sum(product, (0, 1))

    for_x, for_y, for_scale = dt.grad(loss, (0, 1, 2))(X, Y, scale)
    np.testing.assert_allclose(np.asarray(for_x), scale * Y.sum(1))
    np.testing.assert_allclose(np.asarray(for_y), np.repeat((scale * X).sum(0)[:, None], 4, 1))
    np.testing.assert_allclose(np.asarray(for_scale), (X @ Y).sum(1, keepdims=True))
    scales = np.stack([scale, 3 * scale])
    batched = dt.vmap(lambda s: lax.scaled_dot(X, Y, lhs_scale=s, preferred_element_type="float32"))
    np.testing.assert_allclose(np.asarray(batched(scales)), scales * (X @ Y))


def test_printed_form() -> None:
    printed = re.sub(r"\s+", " ", str(dt.make_jaxpr(lambda x, y: lax.dot(x, y))(X, Y)))
    assert "= dot_general[dimension_numbers=(([1], [0]), ([], []))] a b" in printed


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lax.dot(X, X), TypeError, r"shapes \(2, 3\) and \(2, 3\)"),
    (lambda: lax.dot(X, 2.0), TypeError, "no matrices or vectors"),
    (lambda: lax.dot(X[None], Y[None]), TypeError, "use dovetail.numpy.matmul"),
    (lambda: lax.batch_matmul(X, Y[None]), TypeError, "dovetail.numpy.matmul broadcasts"),
    (lambda: lax.batch_matmul(X[0], X[0]), TypeError, "at least 2"),
    (lambda: lax.dot_general(X, Y, ((1,), (0,))), TypeError, "four sequences of integers"),
    (lambda: lax.dot_general(X, Y, 3), TypeError, "four sequences of integers"),
    (lambda: lax.dot_general(X, Y, (((0,), (0,)), ((), ()))), TypeError, "of equal sizes"),
    (lambda: lax.dot_general(X, Y, (((2,), (0,)), ((), ()))), TypeError, "dimensions of its shape"),
    (lambda: lax.dot_general(X, Y, (((-1,), (0,)), ((), ()))), TypeError, "not negative"),
    (lambda: lax.dot_general(X, X, (((1,), (1,)), ((1,), (1,)))), TypeError, "all be different"),
    (lambda: lax.dot(X, Y, precision="exact"), ValueError, "precision must be None"),
    (lambda: lax.dot(X, Y, precision=("high",) * 3), ValueError, "a pair of these"),
    (lambda: lax.scaled_dot(X[0], Y), TypeError, "must be matrices or stacks of matrices"),
    (lambda: lax.scaled_dot(X, X), TypeError, "scaled_dot requires contracting dimensions"),
    (lambda: lax.scaled_dot(X, Y, lhs_scale=2.0), TypeError, "lhs_scale must have the shape of"),
    (lambda: lax.scaled_dot(X, Y, rhs_scale=[[1.0]]), TypeError, "rhs_scale to be an array"),
    (lambda: lax.scaled_dot(X * 1j, Y), TypeError, "does not accept dtype complex64 of lhs"),
    (
        lambda: lax.scaled_dot(X, Y, preferred_element_type=np.int32),
        TypeError,
        "scaled_dot: products of float32 cannot be summed",
    ),
    (lambda: lax.dot(X, Y, precision=("F32_F32_F32",) * 2), ValueError, "lax.DotAlgorithmPreset"),
    (
        lambda: lax.dot(X, Y, precision=lax.DotAlgorithm("int8", "int8", "int32")),
        TypeError,
        "lhs_precision_type must be a dtype of floats",
    ),
    (
        lambda: lax.dot(X, Y, precision=lax.DotAlgorithm("float16", "float16", "float32", 0)),
        ValueError,
        "counts must be positive",
    ),
    (lambda: lax.dot(X, Y, preferred_element_type=np.int32), TypeError, "cannot be summed in"),
    (
        lambda: lax.dot(X.astype(int), Y.astype(int), preferred_element_type=np.int8),
        TypeError,
        "narrower",
    ),
]


@pytest.mark.parametrize(("function", "error", "text"), ERRORS)
def test_errors(function: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        function()


NARROW = ["int2", "uint2", "int4", "uint4", "int8", "float4_e2m1fn", "float8_e4m3fn", "float32"]


@pytest.mark.parametrize("dtype", NARROW)
def test_products_of_few_bits_in_every_dtype_of_sums(dtype: str) -> None:
    for preferred in NARROW:
        numbers = np.dtype(getattr(ml_dtypes, preferred, preferred))
        for size in (1, 3):  # compilers treat one element in a way of its own
            x = lax.full((size, size), 1, dtype)
            product = partial(lax.dot, x, preferred_element_type=preferred)
            try:
                dt.eval_shape(product, x)
            except TypeError:
                continue
            expected = np.full((size, size), size).astype(numbers)
            for run in (product, dt.jit(product)):
                found = np.asarray(run(x))
                assert found.dtype == numbers
                np.testing.assert_array_equal(found.astype(float), expected.astype(float))
