"""Convolutions: arguments, errors, and the functions made of conv_general_dilated."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail.lax import conv_general_dilated_p

NHWC = ("NHWC", "HWIO", "NHWC")


def _numbers(*shape: int, dtype: Any = np.float32) -> Any:
    """Small integers, of which sums and products are exact."""
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(dtype)


X, K = _numbers(2, 3, 5, 6), _numbers(4, 3, 2, 3)


# Padding


@pytest.mark.parametrize(
    ("sizes", "windows", "strides", "name", "want"),
    [
        ((5, 6), (2, 3), (1, 2), "SAME", [(0, 1), (0, 1)]),
        ((5, 6), (2, 3), (1, 2), "SAME_LOWER", [(1, 0), (1, 0)]),
        ((5, 6), (2, 3), (1, 2), "VALID", [(0, 0), (0, 0)]),
        ((5, 6), (2, 3), (1, 2), "same_lower", [(1, 0), (1, 0)]),
        ((7,), (1,), (3,), "Same", [(0, 0)]),
        ((8,), (5,), (3,), "SAME", [(1, 2)]),
        ((0,), (3,), (2,), "SAME", [(0, 1)]),
        ((), (), (), "SAME", []),
        (np.array([5]), np.array([2]), np.array([1]), "valid", [(0, 0)]),
    ],
)
def test_padding_by_name(sizes: Any, windows: Any, strides: Any, name: str, want: Any) -> None:
    assert lax.padtype_to_pads(sizes, windows, strides, name) == want


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("window", range(1, 5))
@pytest.mark.parametrize("stride", range(1, 4))
def test_same_padding_gives_the_size_divided_by_the_stride(
    size: int, window: int, stride: int
) -> None:
    x, kernel = np.ones((1, 1, size), np.float32), np.ones((1, 1, window), np.float32)
    for name in ("SAME", "SAME_LOWER"):
        assert lax.conv_shape_tuple(x.shape, kernel.shape, (stride,), name)[2] == -(-size // stride)
        ((low, high),) = lax.padtype_to_pads((size,), (window,), (stride,), name)
        assert abs(low - high) <= 1
        assert (low <= high) == (name == "SAME" or low == high)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (
            ((5,), (2,), (1,), "FULL"),
            ValueError,
            "padding must be 'VALID', 'SAME', 'SAME_LOWER' (in",
        ),
        (((5,), (2,), (1,), ((0, 0),)), TypeError, "padding must be"),
        (((5,), (2,), (1,), None), TypeError, "padding must be"),
        (((5,), (2, 3), (1,), "SAME"), ValueError, "one length"),
        (((5,), (2,), (0,), "SAME"), ValueError, "window_strides must be positive"),
        ((5, (2,), (1,), "SAME"), TypeError, "in_shape must be a sequence of integers"),
    ],
)
def test_padding_errors(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)) as raised:
        lax.padtype_to_pads(*arguments)
    assert "lax.padtype_to_pads" in str(raised.value)


# Dimension numbers

STANDARD = lax.ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))


@pytest.mark.parametrize(
    ("numbers", "want"),
    [
        (None, STANDARD),
        (("NCHW", "OIHW", "NCHW"), STANDARD),
        (["NCXY", "OIXY", "NCXY"], STANDARD),
        (("NC01", "OI01", "NC01"), STANDARD),
        (STANDARD, STANDARD),
        (tuple(STANDARD), STANDARD),
        ([list(spec) for spec in STANDARD], STANDARD),
        (NHWC, ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))),
        (("NHWC", "WHIO", "CNHW"), ((0, 3, 2, 1), (3, 2, 0, 1), (1, 0, 3, 2))),
    ],
)
def test_dimension_numbers(numbers: Any, want: Any) -> None:
    found = lax.conv_dimension_numbers((2, 3, 5, 6), (4, 3, 2, 3), numbers)
    assert type(found) is lax.ConvDimensionNumbers
    assert found == want
    if numbers is not None:
        assert lax.conv_general_permutations(numbers) == tuple(want)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ("NCHW", "three strings such as"),
        (("NCHW", "OIHW"), "three strings such as"),
        (("NCHW", "OIHW", None), "three strings such as"),
        (5, "three strings such as"),
        (("NHWX", "HWIO", "NHWC"), "lhs_spec of dimension_numbers must have the letters N"),
        (("NHWC", "HWIX", "NHWC"), "rhs_spec of dimension_numbers must have the letters O"),
        (("NHWC", "HWIO", "HWIO"), "out_spec of dimension_numbers must have the letters N"),
        (("nhwc", "hwio", "nhwc"), "must have the letters"),
        (("NHHC", "HHIO", "NHHC"), "names a dimension twice"),
        (("NHWC", "HXIO", "NHWC"), "the same spatial dimensions"),
        (("NCH", "OIH", "NCH"), "must name 4 dimensions"),
        (((0, 1, 2, 2), (0, 1, 2, 3), (0, 1, 2, 3)), "must name the dimensions 0 to"),
        (((0, 1, 2, -1), (0, 1, 2, 3), (0, 1, 2, 3)), "must name the dimensions 0 to"),
        ((0, 1, 2), "each part of dimension_numbers must be a sequence of integers"),
    ],
)
def test_dimension_number_errors(numbers: Any, words: str) -> None:
    for function in (
        lambda: lax.conv_dimension_numbers(X.shape, K.shape, numbers),
        lambda: lax.conv_general_dilated(X, K, (1, 1), "SAME", dimension_numbers=numbers),
    ):
        with pytest.raises(TypeError, match=re.escape(words)) as raised:
            function()
        assert "lax.conv_" in str(raised.value)


def test_any_order_of_dimensions() -> None:
    want = np.asarray(lax.conv(X, K, (1, 2), ((1, 0), (0, 2))))
    for lhs, rhs, out in (NHWC, ("CHNW", "IWOH", "WNCH"), ("WHCN", "OHWI", "CWNH")):
        x = X.transpose(["NCHW".index(letter) for letter in lhs])
        kernel = K.transpose(["OIHW".index(letter) for letter in rhs])
        # The order of strides and padding is that of the kernel's letters.
        spatial = [letter for letter in rhs if letter in "HW"]
        got = lax.conv_general_dilated(
            x,
            kernel,
            [{"H": 1, "W": 2}[letter] for letter in spatial],
            [{"H": (1, 0), "W": (0, 2)}[letter] for letter in spatial],
            dimension_numbers=(lhs, rhs, out),
        )
        np.testing.assert_array_equal(
            np.asarray(got), want.transpose(["NCHW".index(letter) for letter in out])
        )


# The arguments of convolutions


def test_parameters_are_printed() -> None:
    text = str(dt.make_jaxpr(lambda x, k: lax.conv(x, k, (1, 2), "same", "high"))(X, K))
    for line in (
        "batch_group_count=1",
        "dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2, 3), rhs_spec=(0, 1, 2, 3), "
        "out_spec=(0, 1, 2, 3))",
        "feature_group_count=1",
        "lhs_dilation=(1, 1)",
        "out_sharding=None",
        "padding=((0, 1), (0, 1))",
        "precision=(Precision.HIGH, Precision.HIGH)",
        "preferred_element_type=None",
        "rhs_dilation=(1, 1)",
        "window_strides=(1, 2)",
    ):
        assert line in text


def test_forms_of_one_convolution() -> None:
    want = np.asarray(lax.conv(X, K, (1, 1), "SAME"))
    for padding in ("same", ((0, 1), (1, 1)), [[0, 1], [1, 1]], np.array([[0, 1], [1, 1]])):
        for strides in ((1, 1), [np.int32(1), 1]):
            got = lax.conv_with_general_padding(X, K, strides, padding, None, (1, 1))
            np.testing.assert_array_equal(np.asarray(got), want)
    # A kernel with holes, and one with zeros in them.
    dilated = np.zeros((4, 3, 3, 3), np.float32)
    dilated[:, :, ::2] = K
    np.testing.assert_array_equal(
        np.asarray(lax.conv_with_general_padding(X, K, (1, 1), "SAME", None, (2, 1))),
        np.asarray(lax.conv(X, dilated, (1, 1), "SAME")),
    )


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"window_strides": 1}, TypeError, "window_strides must be a sequence of integers"),
        ({"window_strides": (1,)}, ValueError, "window_strides must have one integer for each"),
        ({"window_strides": (1, 0)}, ValueError, "window_strides must be positive"),
        ({"lhs_dilation": (1,)}, ValueError, "lhs_dilation must have one integer for each"),
        ({"rhs_dilation": (0, 1)}, ValueError, "rhs_dilation must be positive"),
        ({"padding": 1}, TypeError, "padding must be 'VALID'"),
        ({"padding": (1, 1)}, TypeError, "padding must be 'VALID'"),
        ({"padding": "FULL"}, ValueError, "padding must be 'VALID'"),
        ({"padding": [(0, 0)]}, ValueError, "padding must have a pair"),
        ({"padding": [(0.5, 0), (0, 0)]}, TypeError, "padding must be a sequence of integers"),
        ({"padding": [(-9, 0), (0, 0)]}, ValueError, "removes more than there is"),
        ({"lhs_dilation": (2, 1)}, ValueError, "or use lax.conv_transpose"),
        ({"feature_group_count": 1.5}, TypeError, "feature_group_count must be an integer"),
        ({"feature_group_count": 0}, ValueError, "feature_group_count must be positive"),
        ({"feature_group_count": 3}, ValueError, "feature_group_count 3 does not divide"),
        ({"feature_group_count": 2}, ValueError, "feature_group_count 2 does not divide the 3"),
        ({"batch_group_count": 4}, ValueError, "batch_group_count 4 does not divide the batch"),
        ({"rhs": K[:, :2]}, ValueError, "the 3 features of lhs"),
        ({"rhs": K[0]}, TypeError, "lhs and rhs must have one rank"),
        ({"rhs": K.astype(np.float16)}, TypeError, "numbers of one dtype, got float32 and float16"),
        ({"rhs": [[[[1.0]]]]}, TypeError, "argument rhs to be an array"),
        ({"precision": "exact"}, ValueError, "precision must be"),
        ({"preferred_element_type": "int32"}, TypeError, "preferred_element_type int32"),
        ({"preferred_element_type": "bfloat16"}, TypeError, "preferred_element_type bfloat16"),
        ({"out_sharding": 1}, TypeError, "out_sharding must be a PartitionSpec"),
    ],
)
def test_errors_name_the_argument(
    changes: dict[str, Any], error: type[Exception], words: str
) -> None:
    arguments = {"lhs": X, "rhs": K, "window_strides": (1, 1), "padding": "SAME", **changes}
    with pytest.raises(error, match=re.escape(words)):
        lax.conv_general_dilated(**arguments)


def test_static_arguments_are_not_traced() -> None:
    for function in (
        lambda n: lax.conv(X, K, (n, 1), "SAME"),
        lambda n: lax.conv(X, K, (1, 1), [(n, 1), (0, 0)]),
        lambda n: lax.conv_general_dilated(X, K, (1, 1), "SAME", feature_group_count=n),
    ):
        with pytest.raises(dt.errors.TracerIntegerConversionError):
            dt.jit(function)(1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64", "complex64"])
def test_dtypes(dtype: str) -> None:
    x, kernel = np.abs(X).astype(dtype), np.abs(K).astype(dtype)
    with dt.enable_x64(True):
        got = lax.conv(x, kernel, (1, 1), "VALID")
    want = np.asarray(lax.conv(np.abs(X), np.abs(K), (1, 1), "VALID"))
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(np.asarray(got), want.astype(dtype))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_narrow_dtypes(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    ones = np.ones((1, 2, 4), np.float32)
    with dt.enable_x64(True):
        x = lax.convert_element_type(ones, dtype)
        got = lax.conv(x, x[:, :, :2], (1,), "VALID")
    assert got.dtype == dtype
    assert np.asarray(lax.convert_element_type(got, np.float32)).tolist() == [[[4.0] * 3]]


def test_gradients_where_products_are_summed_in_another_dtype() -> None:
    x, kernel = X.astype(ml_dtypes.bfloat16), K.astype(ml_dtypes.bfloat16)

    def total(x: Any, kernel: Any) -> Any:
        y = lax.conv(x, kernel, (1, 1), "SAME", preferred_element_type=np.float32)
        assert y.dtype == np.float32
        return lax.reduce_sum(y, (0, 1, 2, 3))

    wide = dt.grad(total, (0, 1))(X, K)
    for got, want in zip(dt.grad(total, (0, 1))(x, kernel), wide, strict=True):
        assert got.dtype == ml_dtypes.bfloat16
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want).astype(got.dtype))


def test_nothing_to_map_over() -> None:
    for axes in ((0, 0), (None, 0), (0, None)):
        x = X if axes[0] is None else np.zeros((0, *X.shape), np.float32)
        kernel = K if axes[1] is None else np.zeros((0, *K.shape), np.float32)
        out = dt.vmap(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), in_axes=axes)(x, kernel)
        assert out.shape == (0, 2, 4, 5, 6)


# Shapes


@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 0), (0, 2))])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_shapes(padding: Any, strides: tuple[int, int]) -> None:
    x, kernel = np.zeros((2, 5, 6, 3), np.float32), np.zeros((2, 3, 3, 4), np.float32)
    got = lax.conv_general_shape_tuple(x.shape, kernel.shape, strides, padding, NHWC)
    out = lax.conv_general_dilated(x, kernel, strides, padding, dimension_numbers=NHWC)
    assert got == out.shape
    got = lax.conv_shape_tuple(X.shape, K.shape, strides, padding)
    assert got == lax.conv(X, K, strides, padding).shape
    got = lax.conv_shape_tuple(X.shape, K.shape, strides, padding, batch_group_count=2)
    out = lax.conv_general_dilated(X, K, strides, padding, batch_group_count=2)
    assert got == out.shape
    got = lax.conv_transpose_shape_tuple(x.shape, kernel.shape, strides, padding, NHWC)
    assert got == lax.conv_transpose(x, kernel, strides, padding).shape


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (
            lambda: lax.conv_shape_tuple((2, 3, 5), (4, 3), (1,), "SAME"),
            TypeError,
            "lax.conv_shape_tuple: lhs and rhs must have one rank",
        ),
        (
            lambda: lax.conv_shape_tuple((2, 3, 5), (4, 3, 2), (1,), "SAME", 3),
            ValueError,
            "lax.conv_shape_tuple: batch_group_count must be positive and divide",
        ),
        (
            lambda: lax.conv_general_shape_tuple((2, 3, 5), (4, 3, 2), (1,), "FULL", None),
            ValueError,
            "lax.conv_general_shape_tuple: padding must be",
        ),
        (
            lambda: lax.conv_transpose_shape_tuple((2, 3, 5), (4, 3, 2), (1,), "SAME_LOWER", None),
            ValueError,
            "lax.conv_transpose_shape_tuple: padding must be 'SAME', 'VALID'",
        ),
        (
            lambda: lax.conv_transpose_shape_tuple((2, 3, 5), (4, 3, 2), (0,), "SAME", None),
            ValueError,
            "lax.conv_transpose_shape_tuple: window_strides must be positive",
        ),
    ],
)
def test_shape_errors(function: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        function()


# Transposed convolution

TRANSPOSED = [
    (n, k, stride, padding, dilation)
    for n, k, stride, dilation in [
        (4, 3, 1, 1),
        (3, 2, 2, 1),
        (3, 2, 3, 1),
        (4, 5, 2, 1),
        (3, 2, 2, 2),
    ]
    for padding in ("SAME", "VALID", ((1, 0),))
]


@pytest.mark.parametrize(("n", "k", "stride", "padding", "dilation"), TRANSPOSED)
def test_conv_transpose_is_the_gradient(
    n: int, k: int, stride: int, padding: Any, dilation: int
) -> None:
    kernel = _numbers(k, 2, 3)
    y = _numbers(2, n, 3)
    back = lax.conv_transpose(
        y,
        kernel,
        (stride,),
        padding,
        rhs_dilation=(dilation,),
        transpose_kernel=True,
        use_consistent_padding=True,
    )
    x = np.zeros(back.shape, np.float32)

    def forward(x: Any) -> Any:
        numbers = ("NHC", "HIO", "NHC")
        return lax.conv_general_dilated(
            x, kernel, (stride,), padding, None, (dilation,), dimension_numbers=numbers
        )

    out, pull_back = dt.vjp(forward, x)
    assert out.shape == y.shape
    np.testing.assert_array_equal(np.asarray(back), np.asarray(pull_back(y)[0]))
    if padding == "SAME":
        assert back.shape[1] == n * stride


@pytest.mark.parametrize(
    ("k", "stride", "padding", "consistent", "want"),
    [
        (2, 1, "SAME", False, (1, 0)),
        (3, 2, "SAME", True, (2, 1)),
        (2, 3, "same", False, (1, 2)),
        (1, 3, "SAME", False, (0, 2)),
        (3, 2, "VALID", False, (2, 2)),
        (2, 3, "valid", True, (1, 2)),
        (3, 3, ((1, 2),), False, (1, 2)),
        (3, 3, ((1, 2),), True, (1, 0)),
    ],
)
def test_padding_of_conv_transpose(
    k: int, stride: int, padding: Any, consistent: bool, want: tuple[int, int]
) -> None:
    x, kernel = np.zeros((1, 4, 1), np.float32), np.zeros((k, 1, 1), np.float32)
    jaxpr = dt.make_jaxpr(
        lambda x: lax.conv_transpose(
            x, kernel, (stride,), padding, use_consistent_padding=consistent
        )
    )(x)
    (eqn,) = jaxpr.jaxpr.eqns
    assert eqn.params["padding"] == (want,)
    assert eqn.params["lhs_dilation"] == (stride,)


def test_conv_transpose_in_any_order_of_dimensions() -> None:
    want = lax.conv_transpose(X.transpose(0, 2, 3, 1), K.transpose(2, 3, 1, 0), (2, 1), "SAME")
    got = lax.conv_transpose(X, K, (2, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
    np.testing.assert_array_equal(np.asarray(got).transpose(0, 2, 3, 1), np.asarray(want))


# Patches, and kernels for each place


def _windows(x: Any, filter_shape: Any, strides: Any, dilation: Any) -> Any:
    """The windows of x (N, C, H, W), by slices."""
    reach = [(k - 1) * d + 1 for k, d in zip(filter_shape, dilation, strict=True)]
    starts = [range(0, n - r + 1, s) for n, r, s in zip(x.shape[2:], reach, strides, strict=True)]
    found = [
        [
            x[:, :, a : a + reach[0] : dilation[0], b : b + reach[1] : dilation[1]].reshape(
                x.shape[0], -1
            )
            for b in starts[1]
        ]
        for a in starts[0]
    ]
    return np.array(found).transpose(2, 3, 0, 1)


@pytest.mark.parametrize("filter_shape", [(2, 3), (1, 1), (5, 6), (4, 2)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
def test_patches(filter_shape: tuple[int, int], strides: tuple[int, int]) -> None:
    x = X.copy()
    x[0, 0, 1, 1:3] = np.nan, np.inf
    for dilation in ((1, 1), (1, 2)) if filter_shape != (5, 6) else ((1, 1),):
        got = lax.conv_general_dilated_patches(
            x, filter_shape, strides, "VALID", rhs_dilation=dilation
        )
        np.testing.assert_array_equal(np.asarray(got), _windows(x, filter_shape, strides, dilation))


@pytest.mark.parametrize("filter_shape", [(2, 10), (9, 2)])
def test_patches_of_many_places(filter_shape: tuple[int, int]) -> None:
    x = _numbers(2, 3, 19, 24)
    options: dict[str, Any] = {"window_strides": (2, 1), "rhs_dilation": (1, 2)}
    want = _windows(x, filter_shape, (2, 1), (1, 2))
    got = lax.conv_general_dilated_patches(x, filter_shape, padding="VALID", **options)
    np.testing.assert_array_equal(np.asarray(got), want)
    last = lax.conv_general_dilated_patches(
        x.transpose(0, 2, 3, 1),
        filter_shape,
        padding="VALID",
        dimension_numbers=("NHWC", "HWIO", "HNWC"),
        **options,
    )
    np.testing.assert_array_equal(np.asarray(last), want.transpose(2, 0, 3, 1))


def test_patches_are_what_a_kernel_is_multiplied_with() -> None:
    options: dict[str, Any] = {
        "window_strides": (2, 1),
        "padding": ((2, -1), (0, 3)),
        "lhs_dilation": (2, 1),
        "rhs_dilation": (1, 2),
    }
    patches = lax.conv_general_dilated_patches(X, (2, 3), **options)
    want = np.einsum("oi,nihw->nohw", K.reshape(4, -1), np.asarray(patches))
    np.testing.assert_array_equal(np.asarray(lax.conv_general_dilated(X, K, **options)), want)
    last = lax.conv_general_dilated_patches(
        X.transpose(0, 2, 3, 1), (2, 3), dimension_numbers=NHWC, **options
    )
    np.testing.assert_array_equal(np.asarray(last), np.asarray(patches).transpose(0, 2, 3, 1))


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "complex64"])
def test_patches_keep_the_dtype(dtype: str) -> None:
    x = X.astype(dtype)
    got = lax.conv_general_dilated_patches(x, (2, 3), (1, 1), "VALID")
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(got), _windows(x, (2, 3), (1, 1), (1, 1)))


def test_patches_with_another_dtype_and_without_windows() -> None:
    x = X.astype(np.int8)
    got = lax.conv_general_dilated_patches(
        x, (2, 3), (1, 1), "VALID", preferred_element_type=np.float32
    )
    assert got.dtype == np.float32
    assert lax.conv_general_dilated_patches(x, (6, 1), (1, 1), "VALID").shape == (2, 18, 0, 6)
    assert lax.conv_general_dilated_patches(X[:, :, 0, 0], (), (), "VALID").shape == (2, 3)


@pytest.mark.parametrize("numbers", [None, NHWC, ("NWHC", "OIHW", "CNHW")])
def test_local_convolution_with_one_kernel_is_a_convolution(numbers: Any) -> None:
    lhs, rhs, out = numbers or ("NCHW", "OIHW", "NCHW")
    x = X.transpose(["NCHW".index(letter) for letter in lhs])
    same = np.broadcast_to(K.reshape(4, -1, 1, 1), (4, 18, 5, 3))
    kernels = same.transpose(["OIHW".index(letter) for letter in rhs])
    got = lax.conv_general_dilated_local(
        x, kernels, (1, 2), "SAME", (2, 3), dimension_numbers=numbers
    )
    want = np.asarray(lax.conv(X, K, (1, 2), "SAME"))
    np.testing.assert_array_equal(
        np.asarray(got), want.transpose(["NCHW".index(letter) for letter in out])
    )


def test_local_convolution_has_a_kernel_for_each_place() -> None:
    kernels = _numbers(4, 18, 4, 4)
    got = lax.conv_general_dilated_local(X, kernels, (1, 1), "VALID", (2, 3))
    windows = _windows(X, (2, 3), (1, 1), (1, 1))
    np.testing.assert_array_equal(np.asarray(got), np.einsum("oihw,nihw->nohw", kernels, windows))


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (
            lambda: lax.conv_general_dilated_patches(X, (2,), (1, 1), "SAME"),
            ValueError,
            "lax.conv_general_dilated_patches: filter_shape must have one integer",
        ),
        (
            lambda: lax.conv_general_dilated_patches(X, (0, 1), (1, 1), "SAME"),
            ValueError,
            "lax.conv_general_dilated_patches: filter_shape must be positive",
        ),
        (
            lambda: lax.conv_general_dilated_local(X, K, (1, 1), "SAME", (2, 3)),
            ValueError,
            "lax.conv_general_dilated_local: rhs must have 18 input features",
        ),
        (
            lambda: lax.conv_transpose(X, K, (1, 1), "SAME_LOWER"),
            ValueError,
            "lax.conv_transpose: padding must be 'SAME', 'VALID'",
        ),
        (
            lambda: lax.conv_transpose(X, K, (1,), "SAME"),
            ValueError,
            "lax.conv_transpose: strides must have one integer",
        ),
    ],
)
def test_errors_of_other_functions(
    function: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=re.escape(words)):
        function()


# What the CPU backend lowers itself. Its ways differ by sizes, so each has a case of that size.

CPU_CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "depthwise": ((2, 24, 14, 13), (24, 1, 3, 3), {"feature_group_count": 24}),
    "depthwise, strided and dilated": (
        (1, 32, 15, 17),
        (64, 1, 3, 2),
        {
            "feature_group_count": 32,
            "window_strides": (2, 1),
            "rhs_dilation": (1, 3),
            "lhs_dilation": (1, 2),
            "padding": ((-1, 3), (2, -2)),
        },
    ),
    "a large kernel, in blocks": ((1, 16, 30, 40), (16, 1, 4, 25), {"feature_group_count": 16}),
    "a long kernel, in blocks and a rest": ((1, 1, 400), (1, 1, 79), {}),
    "one dimension": ((1, 1, 2000), (1, 1, 5), {"padding": ((4, 4),), "rhs_dilation": (2,)}),
    "few features": ((2, 3, 30, 30), (5, 3, 3, 3), {"window_strides": (1, 2)}),
    "groups": ((2, 40, 9, 8), (36, 20, 3, 2), {"feature_group_count": 2, "padding": ((1, 1),) * 2}),
    "groups of the batch": (
        (6, 5, 12, 11),
        (9, 5, 10, 9),
        {"batch_group_count": 3, "rhs_dilation": (1, 1), "padding": ((0, 1), (1, 0))},
    ),
    "few results": ((32, 3, 12, 12), (32, 3, 10, 10), {"batch_group_count": 32}),
    "few results of groups in three dimensions": (
        (4, 3, 5, 6, 7),
        (6, 3, 4, 4, 5),
        {"batch_group_count": 2, "rhs_dilation": (1, 1, 1)},
    ),
    "a kernel of one place": ((2, 20, 15, 12), (24, 20, 1, 1), {"window_strides": (2, 1)}),
    "no spatial dimensions": ((50, 60), (40, 60), {}),
    "groups without spatial dimensions": ((20, 30), (40, 15), {"feature_group_count": 2}),
    "three dimensions": (
        (1, 12, 6, 7, 5),
        (9, 12, 2, 3, 2),
        {"window_strides": (1, 2, 1), "padding": ((1, 0), (0, 0), (0, 1))},
    ),
}
LEFT_TO_XLA = ((1, 24, 9, 9), (24, 24, 3, 3), {})


def _case(shapes: Any, dtype: Any = np.float32) -> tuple[Any, Any, Callable[[Any, Any], Any], Any]:
    lhs, rhs, options = shapes
    rank = len(lhs) - 2
    given = {"window_strides": (1,) * rank, "padding": "VALID", **options}
    x, kernel = _numbers(*lhs), _numbers(*rhs)
    if np.dtype(dtype).kind == "u":
        x, kernel = np.abs(x), np.abs(kernel)

    def function(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(x, kernel, **given)

    (eqn,) = dt.make_jaxpr(function)(x, kernel).jaxpr.eqns
    want = conv_general_dilated_p.reference(x.astype(dtype), kernel.astype(dtype), **eqn.params)
    return x.astype(dtype), kernel.astype(dtype), function, want


@pytest.fixture
def without_kernels() -> Iterator[None]:
    """What is computed where no kernels were built."""
    with dt.cpu_kernels(False):
        yield


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize("name", CPU_CASES)
def test_lowerings_of_the_cpu(name: str) -> None:
    x, kernel, function, want = _case(CPU_CASES[name])
    lowered = dt.jit(function).lower(x, kernel)
    text = lowered.as_text()
    assert "stablehlo.convolution" not in text or "stablehlo.while" in text
    # Integers are summed exactly, in any order.
    np.testing.assert_array_equal(np.asarray(lowered.compile()(x, kernel)), want)


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", ["depthwise", "left to XLA", "few results"])
def test_lowerings_of_the_cpu_in_other_dtypes(name: str, dtype: str) -> None:
    shapes = LEFT_TO_XLA if name == "left to XLA" else CPU_CASES[name]
    x, kernel, function, want = _case(shapes, dtype)
    got = np.asarray(dt.jit(function)(x, kernel))
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.usefixtures("without_kernels")
def test_small_and_plain_convolutions_are_left_to_xla() -> None:
    for shapes in (LEFT_TO_XLA, ((1, 4, 5), (4, 1, 3), {"feature_group_count": 4})):
        x, kernel, function, _ = _case(shapes)
        text = dt.jit(function).lower(x, kernel).as_text()
        assert "stablehlo.convolution" in text
        assert "stablehlo.while" not in text


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize(
    "name", ["depthwise, strided and dilated", "groups", "groups of the batch"]
)
def test_gradients_by_the_lowerings_of_the_cpu(name: str) -> None:
    x, kernel, function, _ = _case(CPU_CASES[name])
    out, pull_back = dt.vjp(function, x, kernel)
    cotangent = _numbers(*out.shape)
    for position, got in enumerate(dt.jit(lambda ct: tuple(pull_back(ct)))(cotangent)):
        tangent = _numbers(*got.shape, dtype=np.float64)
        args = [x, kernel]
        args[position] = tangent.astype(np.float32)
        moved = np.asarray(function(*args), np.float64)
        np.testing.assert_array_equal(np.sum(got * tangent), np.sum(moved * cotangent))


def test_batches_of_kernels() -> None:
    kernels = _numbers(6, 5, 20, 3, 3)
    images = _numbers(6, 2, 20, 8, 8)
    for axes in itertools.product((0, None), repeat=2):
        if axes == (None, None):
            continue
        xs = images if axes[0] == 0 else images[0]
        ks = kernels if axes[1] == 0 else kernels[0]
        got = dt.jit(dt.vmap(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), in_axes=axes))(xs, ks)
        want = [
            np.asarray(
                lax.conv(
                    xs[i] if axes[0] == 0 else xs, ks[i] if axes[1] == 0 else ks, (1, 1), "SAME"
                )
            )
            for i in range(6)
        ]
        np.testing.assert_array_equal(np.asarray(got), np.stack(want))
