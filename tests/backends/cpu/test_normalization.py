"""The kernels of layer norm and RMS norm, and of the logarithms of softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from scipy import special

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail_cpu.kernel_library import library

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)

KERNEL: Final = "dovetail_normalize_rows"
LOGARITHMS: Final = "dovetail_log_softmax"

#: Rows of whole vectors and others, long ones, few and many.
SHAPES: Final[list[tuple[int, ...]]] = [
    (40, 64),
    (1, 256),
    (300,),
    (33, 1001),
    (7, 17, 16),
    (5, 4096),
    (3, 9001),
    (1, 200_001),
    (600, 1024),
    (2, 300_000),
]
EPSILON: Final = 1e-5

Norm = Callable[[Any, Any, Any], Any]


def mean(x: Any) -> Any:
    return jnp.mean(x, -1, keepdims=True)


def variance(x: Any) -> Any:
    return jnp.var(x, -1, keepdims=True)


def in_steps(x: Any, scale: Any, shift: Any) -> Any:
    """As Flax multiplies the scale first."""
    apart = x - mean(x)
    factor = lax.rsqrt(mean(apart * apart) + EPSILON)
    return apart * (factor * scale) + shift


def without_dimensions(x: Any, scale: Any, shift: Any) -> Any:
    centers = jnp.sum(x, -1) / x.shape[-1]
    apart = x - centers[..., None]
    spread = jnp.sqrt(jnp.sum(apart**2, -1) / x.shape[-1] + EPSILON)
    return shift + scale * (apart / spread[..., None])


LAYER_NORMS: Final[dict[str, Norm]] = {
    "rsqrt": lambda x, g, b: (x - mean(x)) * lax.rsqrt(variance(x) + EPSILON) * g + b,
    "sqrt": lambda x, g, b: g * (x - mean(x)) / jnp.sqrt(EPSILON + variance(x)) + b,
    "inverse": lambda x, g, b: b + g * (1 / jnp.sqrt(variance(x) + EPSILON) * (x - mean(x))),
    "in steps": in_steps,
    "without dimensions": without_dimensions,
}


def normalized(x: Any, centered: bool = True) -> Any:
    x = x.astype(np.longdouble)
    apart = x - x.mean(-1, keepdims=True) if centered else x
    return apart / np.sqrt((apart**2).mean(-1, keepdims=True) + EPSILON)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", LAYER_NORMS)
def test_layer_norm(name: str, shape: tuple[int, ...], by_kernel: Any, drawn: Any) -> None:
    x = 3 + drawn("float32", *shape)
    scale, shift = drawn("float32", 2, shape[-1])
    found = by_kernel(LAYER_NORMS[name], x, scale, shift)
    assert found.dtype == "float32"
    # The mean is off by a fraction of a unit in its last place.
    np.testing.assert_allclose(found, normalized(x) * scale + shift, atol=5e-6, rtol=5e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_parts_of_layer_norm(shape: tuple[int, ...], by_kernel: Any, drawn: Any) -> None:
    x, (scale, shift) = drawn("float32", *shape), drawn("float32", 2, shape[-1])
    norm = lambda x: (x - mean(x)) * lax.rsqrt(variance(x) + EPSILON)
    expected = normalized(x)
    for function, result in (
        (norm, expected),
        (lambda x: norm(x) * scale, expected * scale),
        (lambda x: norm(x) + shift, expected + shift),
        (lambda x: (norm(x) + shift) * scale, (expected + shift) * scale),
        (lambda x: norm(x) * scale * scale, expected * scale * scale),
        (lambda x: norm(x) * scale + shift + shift, expected * scale + shift + shift),
        (lambda x: norm(x) * 2 + 1, expected * 2 + 1),
        (lambda x: norm(x) + norm(x) * scale, expected + expected * scale),
    ):
        found = by_kernel(function, x)
        np.testing.assert_allclose(found, result, atol=3e-6, rtol=3e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_rms_norm(shape: tuple[int, ...], by_kernel: Any, drawn: Any) -> None:
    x, scale = 3 + drawn("float32", *shape), drawn("float32", shape[-1])
    expected = normalized(x, centered=False)
    for function in (
        lambda x: x * lax.rsqrt(mean(x * x) + EPSILON) * scale,
        lambda x: scale * (x / jnp.sqrt(mean(x**2) + EPSILON)),
        lambda x: scale * x / jnp.sqrt(mean(jnp.square(x)) + EPSILON),
    ):
        np.testing.assert_allclose(by_kernel(function, x), expected * scale, rtol=1e-6)
    found = by_kernel(lambda x: x * lax.rsqrt(mean(x * x)), x)
    plain = x / np.sqrt((x.astype(float) ** 2).mean(-1, keepdims=True))
    np.testing.assert_allclose(found, plain, rtol=1e-6)


def test_several_dimensions_and_degrees_of_freedom(by_kernel: Any, drawn: Any) -> None:
    x, scale = drawn("float32", 6, 5, 7, 9), drawn("float32", 7, 9)
    wide = x.astype(float)

    def function(x: Any) -> Any:
        centered = x - jnp.mean(x, (2, 3), keepdims=True)
        return centered / jnp.sqrt(jnp.var(x, (2, 3), keepdims=True, ddof=1)) * scale

    expected = wide - wide.mean((2, 3), keepdims=True)
    expected = expected / wide.std((2, 3), keepdims=True, ddof=1) * scale
    np.testing.assert_allclose(by_kernel(function, x), expected, atol=3e-6)


def test_norm_of_a_result(by_kernel: Any, drawn: Any) -> None:
    x, y = drawn("float32", 50, 80), drawn("float32", 50, 80)

    def function(x: Any, y: Any) -> Any:
        x = x * y + x
        return x, (x - mean(x)) * lax.rsqrt(variance(x) + EPSILON) + x

    kept, found = by_kernel(function, x, y)
    np.testing.assert_allclose(kept, x * y + x, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found, normalized(x * y + x) + kept, atol=3e-6)


def test_norm_of_what_is_not_finite(by_kernel: Any, drawn: Any) -> None:
    x = drawn("float32", 40, 64)
    x[0, 3], x[1, 63], x[2, 0], x[3], x[4], x[5] = np.nan, np.inf, -np.inf, 0, 7, 1e-30
    for function in (
        lambda x: (x - mean(x)) / jnp.sqrt(variance(x) + EPSILON),
        lambda x: (x - mean(x)) * lax.rsqrt(variance(x)),
        lambda x: x * lax.rsqrt(mean(x * x) + EPSILON),
    ):
        with dt.cpu_kernels(False):
            expected = np.asarray(dt.jit(lambda x: function(x))(x))  # noqa: B023
        found = by_kernel(function, x)
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, s: (x - mean(x)) * lax.rsqrt(variance(x + 1) + EPSILON),
        lambda x, s: (x - mean(x + x)) * lax.rsqrt(variance(x) + EPSILON),
        lambda x, s: (x - s) * lax.rsqrt(variance(x) + EPSILON),
        lambda x, s: (x - jnp.mean(x, 0)) * lax.rsqrt(variance(x) + EPSILON),
        lambda x, s: (x - mean(x)) * lax.rsqrt(jnp.var(x, -1) + EPSILON),
        lambda x, s: (x - jnp.mean(x, -1)) * lax.rsqrt(jnp.var(x, -1) + EPSILON),
        lambda x, s: (x - mean(x)) * lax.rsqrt(variance(x) + s[:, None]),
        lambda x, s: (x - mean(x)) * lax.rsqrt(variance(x) + mean(x)),
        lambda x, s: x * lax.rsqrt(jnp.mean(x * x, 0) + EPSILON),
        lambda x, s: x * lax.rsqrt(mean(x * x.T) + EPSILON),
        lambda x, s: x[:, :15] * lax.rsqrt(mean(x[:, :15] ** 2) + EPSILON),
        lambda x, s: x * jnp.sqrt(mean(x * x) + EPSILON),
        lambda x, s: lax.rsqrt(mean(x * x) + EPSILON) / x,
        lambda x, s: [r := lax.rsqrt(mean(x * x) + EPSILON), x * r],
    ],
)
def test_what_is_no_norm_of_the_kernel(function: Any, by_kernel: Any, drawn: Any) -> None:
    x, s = drawn("float32", 40, 40), abs(drawn("float32", 40))
    with dt.cpu_kernels(False):
        expected = dt.tree.map(np.asarray, dt.jit(lambda x, s: function(x, s))(x, s))
    found = by_kernel(function, x, s, kernel=False)
    dt.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected
    )


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_other_dtypes_are_left_to_the_compiler(dtype: str, by_kernel: Any, drawn: Any) -> None:
    x, scale = drawn(dtype, 40, 64), drawn(dtype, 64)
    found = by_kernel(LAYER_NORMS["rsqrt"], x, scale, scale, kernel=False)
    scale = scale.astype(float)
    tolerance = 1e-9 if dtype == "float64" else 0.05
    expected = normalized(x) * scale + scale
    np.testing.assert_allclose(found.astype(float), expected, atol=tolerance, rtol=tolerance)


def test_transformations_of_norms(by_kernel: Any, drawn: Any) -> None:
    x, weights = drawn("float32", 50, 90), drawn("float32", 50, 90)
    scale, shift = drawn("float32", 2, 90)
    norm = LAYER_NORMS["rsqrt"]
    mapped = by_kernel(dt.vmap(lambda x: norm(x, scale, shift)), x)
    np.testing.assert_allclose(mapped, normalized(x) * scale + shift, atol=3e-6)
    function = dt.grad(lambda *operands: jnp.sum(weights * norm(*operands)), (0, 1, 2))
    with dt.cpu_kernels(False):
        expected = function(x, scale, shift)
    found = dt.jit(function)(x, scale, shift)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)
    tangent = dt.jit(lambda x: dt.jvp(lambda x: norm(x, scale, shift), (x,), (weights,))[1])
    with dt.cpu_kernels(False):
        expected = dt.jvp(lambda x: norm(x, scale, shift), (x,), (weights,))[1]
    np.testing.assert_allclose(tangent(x), expected, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_logarithms_of_softmax(shape: tuple[int, ...], drawn: Any) -> None:
    x = 4 * drawn("float32", *shape)
    function = dt.jit(lambda x: dt.nn.log_softmax(x, -1))
    assert LOGARITHMS in function.lower(x).as_text()
    expected = special.log_softmax(x.astype(float), -1)
    np.testing.assert_allclose(function(x), expected, rtol=3e-7, atol=3e-7)
    largest = lambda x: jnp.max(x, -1, keepdims=True)
    powers = lambda x: jnp.sum(jnp.exp(x - largest(x)), -1, keepdims=True)
    written = dt.jit(lambda x: (x - largest(x)) - jnp.log(powers(x)))
    assert LOGARITHMS in written.lower(x).as_text()
    np.testing.assert_allclose(written(x), expected, rtol=3e-7, atol=3e-7)


def test_logarithms_of_softmax_that_are_not_finite(drawn: Any) -> None:
    x = drawn("float32", 40, 64)
    x[0, 3], x[1, 63], x[2], x[3, ::2], x[4] = np.nan, np.inf, -np.inf, -np.inf, 3e38
    with dt.cpu_kernels(False):
        expected = np.asarray(dt.jit(lambda x: dt.nn.log_softmax(x))(x))
    assert np.isnan(expected[:3]).all()
    assert np.isfinite(expected[4:]).all()
    found = np.asarray(dt.jit(dt.nn.log_softmax)(x))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: dt.nn.log_softmax(x, 0),
        lambda x: dt.nn.log_softmax(x[:, :15]),
        lambda x: dt.nn.log_softmax(x.astype("float64")),
        lambda x: (x - jnp.max(x, 1)) - jnp.log(jnp.sum(jnp.exp(x - jnp.max(x, 1)), 1)),
        lambda x: (x - jnp.min(x)) - jnp.log(jnp.sum(jnp.exp(x - jnp.max(x)), 1))[:, None],
        dt.grad(lambda x: jnp.sum(dt.nn.log_softmax(x) ** 2)),
    ],
)
def test_what_is_no_logarithm_of_softmax_of_the_kernel(function: Any, drawn: Any) -> None:
    x = drawn("float32", 40, 40)
    with dt.enable_x64(True):
        with dt.cpu_kernels(False):
            expected = np.asarray(function(x))
        jitted = dt.jit(lambda x: function(x))
        assert LOGARITHMS not in jitted.lower(x).as_text()
        np.testing.assert_allclose(jitted(x), expected, rtol=1e-5, atol=1e-5)


def test_no_elements() -> None:
    for shape in ((0, 40), (40, 0)):
        empty = np.zeros(shape, np.float32)
        row = np.zeros(shape[-1], np.float32)
        assert dt.jit(LAYER_NORMS["rsqrt"])(empty, row, row).shape == shape
        assert dt.jit(lambda x: dt.nn.log_softmax(x, 0))(empty.T).shape == shape[::-1]
