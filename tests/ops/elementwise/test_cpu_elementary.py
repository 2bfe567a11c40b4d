"""Elementary functions that the CPU backend computes itself, over all kinds of float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest
import scipy.special

import dovetail
from dovetail import lax
from dovetail import numpy as jnp
from dovetail_cpu.kernel_library import has_long_vectors, library
from dovetail_cpu.kernels import ELEMENTARY

NDArray = np.ndarray[Any, Any]

#: Every 4093th float32: all exponents, both signs, NaN.
PATTERNS = (np.arange(2**20, dtype=np.uint32) * np.uint32(4093)).view(np.float32)
SPECIAL = np.array(
    [0, 1e-45, 1e-40, 1.1754944e-38, 2.5e-38, 0.5, 1 - 2**-24, 1, 1 + 2**-23, 1.5, 2, 2.5, 3]
    + [1000, 8388607.5, 16777215, 16777216, 1e30, 3.4e38, np.inf],
    np.float32,
)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL, np.float32([np.nan])])
# Next to multiples of pi / 2, where nearly all digits of the argument cancel.
NEAR_QUARTERS = np.float32([1.5707964, 3.1415927, 6.2831855, 16367173 * 2.0**72, 5.3e35, 2.5e30])

UNARY: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "sin": np.sin,
    "tan": np.tan,
}
EXACT = {
    **UNARY,
    "acosh": np.arccosh,
    "asinh": np.arcsinh,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cosh": np.cosh,
    "digamma": lambda x: np.where(x == 0, -np.inf, scipy.special.digamma(x)),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
    "lgamma": scipy.special.gammaln,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "pow": np.power,
    "sinh": np.sinh,
    "tanh": np.tanh,
}
#: The errors of what is computed in the precision of the result, in units in the last place.
SAME_PRECISION = {"erfc": 4, "exp2": 0.9, "log": 0.8, "log1p": 1.4, "log2": 1.1, "sinh": 3}
WITH_KERNELS = pytest.mark.skipif(library() is None, reason="there are no kernels")
BY_KERNEL = {
    "acosh": 1.7,
    "asinh": 1.6,
    "atan": 1.3,
    "atanh": 1.6,
    "cosh": 1.5,
    "erf": 1.2 if has_long_vectors() else 8,  # the latter is what XLA makes of it
    "erfc": 3.2 if has_long_vectors() else 4,
    "exp": 1,
    "expm1": 0.8,
    "log": 0.8,
    "log1p": 1.4,
    "log2": 1.1,
    "logistic": 2.3,
    "sinh": 2,
    "digamma": 1.6,
    "lgamma": 0.8,
    **({"tanh": 1} if has_long_vectors() else {}),
}


def errors(name: str, *args: NDArray, **params: Any) -> NDArray:
    """Errors of float32 results in units in the last place; infinity where the kind is wrong.

    Kinds are NaN, infinities and zeros with their signs. Subnormal results may be zeros: so the
    processor rounds them.
    """
    got = np.asarray(dovetail.jit(lambda *xs: getattr(lax, name)(*xs, **params))(*args))
    with np.errstate(all="ignore"):
        exact = EXACT[name](*(x.astype(np.float64) for x in args))
        want = exact.astype(np.float32)
        unit = np.ldexp(1.0, np.maximum(np.frexp(np.abs(exact))[1] - 24, -149))
        error = np.abs(got - exact) / unit
    equal = (got == want) | (np.isnan(got) & np.isnan(want))
    error = np.where(np.isfinite(got) & np.isfinite(want), error, np.where(equal, 0, np.inf))
    error = np.where(np.isnan(want) | (np.signbit(got) == np.signbit(want)), error, np.inf)
    subnormal = np.abs(exact) < np.finfo(np.float32).smallest_normal
    return np.where(subnormal & (got == 0) & np.isfinite(error), 0, error)


def worst(name: str, *args: NDArray) -> str:
    """The arguments with the largest error, for messages."""
    found = errors(name, *args)
    i = int(np.argmax(found))
    values = ", ".join(str(float(x.flat[i])) for x in args)
    return f"{name}({values}) is wrong by {found.flat[i]:.4g} units"


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", sorted(UNARY))
def test_one_operand_over_all_exponents(name: str, native: bool) -> None:
    x = np.concatenate([SPECIAL, NEAR_QUARTERS, PATTERNS, np.linspace(-9, 9, 2**17, dtype="f4")])
    with dovetail.cpu_kernels(native):
        assert errors(name, x).max() < (bound(name) if native else 0.502), worst(name, x)


def bound(name: str) -> float:
    return BY_KERNEL.get(name, 0.502)


@pytest.mark.parametrize(
    ("name", "native"),
    [
        *((name, False) for name in SAME_PRECISION if name != "sinh"),
        *(pytest.param(name, True, marks=WITH_KERNELS) for name in BY_KERNEL),
    ],
)
def test_functions_in_the_precision_of_the_result(name: str, native: bool) -> None:
    """Subnormal arguments are taken for zeros."""
    normal = PATTERNS[~((np.abs(PATTERNS) < 1.2e-38) & (PATTERNS != 0))]
    near = np.linspace(-9, 9, 2**17, dtype="f4")
    wide = np.linspace(-104, 104, 2**17, dtype="f4")
    beside = 1 + np.geomspace(2**-23, 0.5, 2**14).astype("f4")
    x = np.concatenate([normal, near, wide, beside, 2 - beside, beside - 1, 1 - beside])
    x = np.concatenate([x, np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2**25, 3e7])])
    if name in ("erf", "erfc"):
        x = x[::4]
    with dovetail.cpu_kernels(native):
        assert errors(name, x).max() < (BY_KERNEL if native else SAME_PRECISION)[name], worst(
            name, x
        )


#: With and without kernels; the latter only where the formulas are the backend's own.
WIDE = {"exp": (1, 1.1), "expm1": (1, None), "log": (0.65, 0.85), "log1p": (1.3, 1.3)}
WIDE = {**WIDE, "tanh": (2.6, None)}


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", sorted(WIDE))
def test_exponentials_of_float64(name: str, native: bool) -> None:
    bound = WIDE[name][0 if native else 1]
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-300, 300, 1000)
    near = np.concatenate([rng.uniform(0.3, 3, 3000), 1 + 10.0 ** rng.uniform(-15, 0, 1000)])
    x = np.concatenate([sizes, near, near - 1, 10.0 ** rng.uniform(-300, 0, 1000)])
    if name in ("exp", "expm1", "tanh"):
        x = np.concatenate([np.linspace(-708.3, 709.7, 5000), rng.uniform(-2, 2, 3000)])
    elif name == "log":
        x = x[x > 0]
    function = dovetail.jit(getattr(lax, name))
    with dovetail.enable_x64(True), dovetail.cpu_kernels(native):
        got = np.asarray(function(x))
    with mpmath.workprec(120):
        exact = [getattr(mpmath, name)(mpmath.mpf(float(value))) for value in x]
        units = np.spacing(np.abs(np.array(exact, float)))
        error = [abs(float(g - e)) / u for g, e, u in zip(got, exact, units, strict=True)]
    assert bound is None or max(error) < bound
    limits = np.array([0.0, -0.0, -2, np.inf, -np.inf, np.nan, 1, 2.0**1000, 709.7, 709.8, -746])
    limits = np.concatenate([limits, [5e-320, -5e-320, 1e-300, -1e-300, -1.5, -1, 1e308, -1e308]])
    with dovetail.enable_x64(True), dovetail.cpu_kernels(native):
        got = np.asarray(function(np.resize(limits, 4099)))
    # Subnormal numbers are taken for zeros.
    limits = np.where(np.abs(limits) < 1e-307, np.copysign(0, limits), limits)
    with np.errstate(all="ignore"):
        want = np.resize(getattr(np, name)(limits), 4099)
    np.testing.assert_allclose(got, want, 1e-15, 1e-307)
    assert name in ("log", "exp") or np.signbit(got[1])


@pytest.mark.parametrize("native", [True, False])
def test_the_hyperbolic_sine_overflows_where_it_should(native: bool) -> None:
    x = np.float32([88.5, 89.4, 89.41599, 89.416, 89.45, 90, 200, 1e30, 0.3465, 0.3466, 1e-3, 1e-9])
    x = np.resize(np.concatenate([x, -x]), 2049)
    with dovetail.cpu_kernels(native):
        assert errors("sinh", x).max() < 3


@pytest.mark.parametrize("size", [2000, 2**16 + 5])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", sorted({*SAME_PRECISION, *BY_KERNEL} - {"acosh", "atanh"}))
def test_narrow_floats_in_float32(name: str, dtype: Any, size: int) -> None:
    x = np.linspace(0.1, 5, size).astype(dtype)
    got = dovetail.jit(getattr(lax, name))(x)
    assert got.dtype == dtype
    want = EXACT[name](x.astype(np.float64))
    tolerance = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(got, np.float64), want, tolerance, tolerance * 1e-2)


@WITH_KERNELS
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name, dtype in ELEMENTARY
        if dtype == "float16" and (has_long_vectors() or name not in ("erf", "tanh"))
    ),
)
def test_narrow_floats_are_rounded_once(name: str, dtype: Any) -> None:
    """All numbers: the result is that of float32, rounded."""
    x = np.arange(2**16, dtype=np.uint16).view(dtype)
    function = dovetail.jit(getattr(lax, name))
    with dovetail.cpu_kernels(True), np.errstate(over="ignore", invalid="ignore"):
        assert "custom_call" in function.lower(x).as_text()
        got = np.asarray(function(x)).astype(np.float32)
        want = np.asarray(function(x.astype(np.float32))).astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(got, want)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


@WITH_KERNELS
@pytest.mark.parametrize("factor", [-(0.5**0.5), 0.0, 3.0])
def test_the_kernel_multiplies_what_it_takes_the_error_function_of(factor: float) -> None:
    x = np.linspace(-9, 9, 5003, dtype=np.float32)
    x[::1000] = np.nan, np.inf, -np.inf, 0, -0.0, 1e-30
    with dovetail.cpu_kernels(True):
        with np.errstate(invalid="ignore"):
            want = dovetail.jit(lax.erfc)(x * np.float32(factor))
        for program in (
            dovetail.jit(lambda x: lax.erfc(x * factor)),
            dovetail.jit(lambda x: lax.erfc(np.float32(factor) * x)),
        ):
            assert "custom_call" in program.lower(x).as_text()
            np.testing.assert_array_equal(program(x), want)


def test_a_quotient_and_its_logarithm_are_one_loop() -> None:
    x = np.linspace(1, 2, 4096, dtype=np.float32)
    compiled = dovetail.jit(lambda x, y: lax.log(x / y)).lower(x, x).compile().as_text()
    assert compiled.split("ENTRY")[1].count(" fusion(") == 1


def calls(function: Callable[..., Any], *args: Any) -> int:
    """How many kernels a program calls."""
    with dovetail.cpu_kernels(True):
        return dovetail.jit(function).lower(*args).compile().as_text().count(" custom-call(")


GATES: dict[str, Callable[[Any], Any]] = {
    "gelu": lambda x: 0.5 * x * lax.erfc(x * np.float32(-(0.5**0.5))),
    "silu": lambda x: lax.logistic(x) * x,
}


@WITH_KERNELS
@pytest.mark.parametrize("size", [4096, 4099, 2**16 + 5])
@pytest.mark.parametrize("name", GATES)
def test_what_is_only_multiplied_is_one_kernel(name: str, size: int) -> None:
    x = np.linspace(-20, 20, size, dtype=np.float32)
    x[::1000] = np.resize(np.float32([np.nan, np.inf, -np.inf, 0, -0.0, 1e-30]), x[::1000].shape)
    function = GATES[name]
    got = np.asarray(dovetail.jit(function)(x))
    assert calls(function, x) == 1
    want = np.asarray(dovetail.jit(lambda x: lax.optimization_barrier(x) * 1)(function(x)))
    np.testing.assert_allclose(got, want, 1e-6, 1e-37)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])
    if name == "gelu":
        assert calls(lambda x: [function(x), function(-x) * x], x) == 2

        def both(x: Any) -> Any:
            share = lax.erfc(x)
            return share * x, share

        assert calls(both, x) == 1
        np.testing.assert_array_equal(dovetail.jit(both)(x)[0], x * lax.erfc(x))


@WITH_KERNELS
@pytest.mark.parametrize("size", [4096, 4099, 2**16 + 5])
def test_the_logarithm_of_exponentials_is_one_kernel(size: int) -> None:
    x, y = np.random.default_rng(size).normal(0, 30, (2, size)).astype(np.float32)
    special = np.float32([np.nan, np.inf, -np.inf, 0, -0.0, 3e38, -3e38])
    x[:49], y[:49] = np.repeat(special, 7), np.tile(special, 7)
    pairs: list[tuple[Callable[..., Any], NDArray]] = [(jnp.logaddexp, y)]
    pairs += [(lambda x, _, z=z: jnp.logaddexp(x, z), np.full_like(x, z)) for z in (0.0, 2.5)]
    for function, second in pairs:
        assert calls(function, x, y) == 1
        with np.errstate(invalid="ignore"):
            want = np.logaddexp(x.astype(float), second.astype(float)).astype(np.float32)
        np.testing.assert_allclose(dovetail.jit(function)(x, y), want, 4e-7, 1e-7)
    slopes = dovetail.jit(dovetail.vmap(dovetail.grad(jnp.logaddexp)))(x[49:], y[49:])
    np.testing.assert_allclose(slopes, 1 / (1 + np.exp(y[49:].astype(float) - x[49:])), 1e-5, 1e-37)


@WITH_KERNELS
@pytest.mark.parametrize("size", [4096, 4099, 2**16 + 5])
@pytest.mark.parametrize(
    "name",
    sorted(
        {n for n, dtype in ELEMENTARY if dtype == "float32"} & {*UNARY, *BY_KERNEL, "atan2", "pow"}
    ),
)
def test_kernels_of_all_sizes(name: str, size: int) -> None:
    # A few large arguments, which are reduced otherwise, are among small ones.
    x = np.random.default_rng(size).uniform(-1, 1, (2, size)).astype(np.float32)
    x[:, ::1500] *= np.float32(1e7)
    if name == "pow":
        x[0, 2048:] = np.abs(x[0, 2048:])
    operands = x.reshape(2, 1, -1, 1)[: 2 if name in ("atan2", "pow") else 1]
    with dovetail.cpu_kernels(True):
        assert errors(name, *operands).max() < max(bound(name), 0.504), worst(name, *operands)


@WITH_KERNELS
@pytest.mark.parametrize(
    "name", sorted(n for n, d in ELEMENTARY if d == "float64" and n != "erf_inv_fast")
)
def test_kernels_of_float64_of_all_sizes(name: str) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, 2**16 + 5)
    x = np.abs(x) if name == "log" else x
    with dovetail.enable_x64(True), dovetail.cpu_kernels(True):
        got = np.asarray(dovetail.vmap(getattr(lax, name))(x))
        short = np.asarray(dovetail.jit(getattr(lax, name))(x[:4097]))
    np.testing.assert_allclose(got, EXACT[name](x), 6e-16)
    np.testing.assert_array_equal(short, got[:4097])


@WITH_KERNELS
def test_kernels_are_called_where_nothing_is_fused() -> None:
    x = np.linspace(1, 2, 4096, dtype=np.float32)
    assert calls(lax.exp, x) == calls(dovetail.vmap(lax.exp), x) == 1
    assert calls(lambda x: lax.exp(x) * x, x) == calls(lambda x: lax.exp(x * x), x) == 0
    assert calls(lax.exp, x[1:]) == 0
    assert calls(lambda x: [lax.exp(x), x * x], x) == 1
    assert calls(lambda x: lax.log(x) * x, x) == calls(lax.logistic, x) == 1
    assert calls(lambda x: lax.log(x * x), x) == calls(lax.log, x[1:]) == 0
    assert calls(lambda x: lax.asinh(x * x) * x, x) == 1

    def loop(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: lax.fori_loop(0, 3, lambda _, x: function(x), x)

    assert calls(loop(lax.asinh), x) == calls(loop(lax.log), x) == calls(loop(lax.exp), x) == 0
    assert calls(loop(lax.asinh), np.resize(x, 2**15)) == 1


def test_derivatives_of_kernels() -> None:
    x = np.linspace(1.1, 1.9, 4096, dtype=np.float32)
    for name in ("acosh", "asinh", "cbrt", "cosh", "erf", "erfc", "expm1", "log", "log1p"):
        function = getattr(lax, name)
        got = np.asarray(dovetail.jit(dovetail.vmap(dovetail.grad(function)))(x))
        wide = x.astype(float)
        want = (EXACT[name](wide + 1e-5) - EXACT[name](wide - 1e-5)) / 2e-5
        np.testing.assert_allclose(got, want, 1e-5)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", ["cos", "sin"])
def test_sines_of_float64(name: str, native: bool) -> None:
    rng = np.random.default_rng(0)
    quarters = np.arange(-300, 300) * (math.pi / 2)
    near = rng.uniform(-9, 9, 3000)
    # From 2**20 on they are reduced otherwise, as are those in the same block.
    below = rng.uniform(-(2.0**20), 2.0**20, 1000)
    large = 2.0 ** rng.uniform(-60, 400, 1000) * rng.choice([-1, 1], 1000)
    x = np.concatenate([near, np.nextafter(quarters, 0), quarters, below, large])
    function = dovetail.jit(getattr(lax, name))
    with dovetail.enable_x64(True), dovetail.cpu_kernels(native):
        got = np.asarray(function(x.reshape(-1, 1)))[:, 0]
        alone = np.asarray(function(np.resize(near, 1025)))
        odd = np.array([0.0, -0.0, 5e-324, np.inf, -np.inf, np.nan, 2.0**20, -(2.0**20)])
        found = np.asarray(function(np.resize(odd, 1031)))
    np.testing.assert_array_equal(alone, got[:1025])
    with mpmath.workprec(1200):
        exact = [getattr(mpmath, name)(mpmath.mpf(float(value))) for value in x]
        units = np.spacing(np.abs(np.array(exact, float)))
        error = [abs(float(g) - e) / u for g, e, u in zip(got, exact, units, strict=True)]
    assert max(error) < 0.8
    with np.errstate(all="ignore"):
        want = getattr(np, name)(np.resize(odd, 1031))
    np.testing.assert_allclose(found, want, 1e-15, 1e-300)
    np.testing.assert_array_equal(np.signbit(found[:3]), np.signbit(want[:3]))


@pytest.mark.parametrize("native", [True, False])
def test_angles_over_all_exponents(native: bool) -> None:
    rng = np.random.default_rng(0)
    pairs = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    patterns = np.stack([PATTERNS, rng.permutation(PATTERNS)])
    near = rng.uniform(-40, 40, (2, 2**17)).astype(np.float32)
    y, x = np.concatenate([pairs, patterns, near], axis=1)
    with dovetail.cpu_kernels(native):
        assert errors("atan2", y, x).max() < 0.502, worst("atan2", y, x)


@pytest.mark.parametrize("native", [True, False])
def test_powers_over_all_exponents(native: bool) -> None:
    rng = np.random.default_rng(0)
    pairs = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    patterns = np.stack([PATTERNS, rng.permutation(PATTERNS)])[:, ::8]
    finite = 2.0 ** rng.uniform(-149, 128, 2**16)
    near = np.stack([finite, rng.uniform(-150, 128, 2**16) / np.log2(finite)])
    beside_one = np.stack([1 + rng.uniform(-0.01, 0.01, 2**16), rng.uniform(-9e3, 9e3, 2**16)])
    integers = np.stack([rng.uniform(-9, 9, 2**16), rng.integers(-40, 40, 2**16)])
    made = np.concatenate([near, beside_one, integers], axis=1).astype(np.float32)
    x, y = np.concatenate([pairs, patterns, made], axis=1)
    with dovetail.cpu_kernels(native):
        assert errors("pow", x, y).max() < 0.51, worst("pow", x, y)


def test_remainders_are_exact() -> None:
    rng = np.random.default_rng(0)
    pairs = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    patterns = np.stack([PATTERNS, rng.permutation(PATTERNS)])
    divisors = rng.integers(1, 2**12, 2**16)
    multiples = np.stack([divisors * rng.integers(0, 2**12, 2**16), divisors])
    near = np.stack([2.0 ** rng.uniform(-30, 27, 2**16), rng.uniform(0.5, 1, 2**16)])
    for x, y in (pairs, patterns, multiples, near):
        x, y = x.astype(np.float32), y.astype(np.float32)
        with np.errstate(all="ignore"):
            want, quotient = np.fmod(x, y), np.abs(x.astype(np.float64) / y)
        small = ~((quotient > 2.0**28) & (quotient < np.inf))
        for chosen in (slice(None), small):  # one large quotient leads all to the C library
            got = np.asarray(dovetail.jit(lax.rem)(x[chosen], y[chosen]))
            np.testing.assert_array_equal(got, want[chosen])
            number = ~np.isnan(got)
            np.testing.assert_array_equal(
                np.signbit(got)[number], np.signbit(want[chosen])[number], strict=True
            )


@pytest.mark.parametrize("name", ["asin", "atan", "cbrt", "sin", "tan"])
def test_subnormal_arguments_give_subnormal_results(name: str) -> None:
    x = np.tile(SPECIAL, 40)[np.abs(np.tile(SPECIAL, 40)) < 1e-37]
    x = np.resize(x, 2048)
    got = np.asarray(dovetail.jit(getattr(lax, name))(x))
    np.testing.assert_array_equal(got, UNARY[name](x.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize("size", [0, 1023, 1025])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_sizes_and_narrow_floats(dtype: Any, size: int) -> None:
    x = np.linspace(-0.99, 0.99, size).astype(dtype)
    results = dovetail.jit(lambda x: [getattr(lax, name)(x) for name in sorted(UNARY)])(x)
    for name, got in zip(sorted(UNARY), results, strict=True):
        want = UNARY[name](x.astype(np.float64))
        assert got.dtype == dtype
        tolerance = 4 * float(ml_dtypes.finfo(dtype).eps)
        np.testing.assert_allclose(np.asarray(got, np.float64), want, tolerance, tolerance * 1e-3)


def test_operands_are_repeated() -> None:
    column, row = np.linspace(1, 2, 64, dtype="f4")[:, None], np.linspace(-2, 2, 32, dtype="f4")
    got = dovetail.jit(lambda y, x, z: (lax.atan2(y, x), lax.atan2(z, y * x)))
    angle, scalar = got(column, row[None, :], np.float32(1.7))
    np.testing.assert_allclose(angle, np.arctan2(column, row), 3e-7)
    np.testing.assert_allclose(scalar, np.arctan2(np.float32(1.7), column * row), 3e-7)


@pytest.mark.parametrize("accuracy", [None, *lax.AccuracyMode, lax.Tolerance(ulps=4)])
@pytest.mark.parametrize("name", ["cbrt", "sin"])
def test_every_accuracy_that_can_be_asked_for(name: str, accuracy: Any) -> None:
    assert errors(name, np.linspace(-5, 5, 4096, dtype=np.float32), accuracy=accuracy).max() < 2


def test_chains_are_not_fused_and_share_their_code() -> None:
    def chain(x: Any) -> Any:
        for _ in range(8):
            x = lax.sin(x)
        return x

    with dovetail.cpu_kernels(False):
        lowered = dovetail.jit(chain).lower(np.linspace(-1, 1, 4096, dtype=np.float32))
    text = lowered.as_text()
    assert text.count("call @sin(") == 8
    assert text.count("func.func") == 2
    compiled = lowered.compile().as_text()
    assert compiled.count(" multiply(") <= 8 * text.count("stablehlo.multiply")
