"""Reductions, cumulative operations and remainders by native kernels, against NumPy's results."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail_cpu.kernel_library import library

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

NDArray = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

REDUCED = ("bool", "int8", "uint8", "int32", "int64", "float32", "float64")
ACCUMULATED = ("int8", "uint16", "int32", "uint32", "uint64", "bfloat16", "float32", "float64")
SUMMED = ("int32", "uint32", "int64", "uint64", "float32", "float64")
SHAPES = ((70_001,), (13, 23, 47))
"""On several threads; rows that are no whole vectors, and dimensions in the middle."""
COLUMNS = ((30_001, 3), (2, 5003, 11), (40, 5000), (520, 9), (600, 45))
"""Few columns, of which several steps lie side by side; more columns than do; short rows."""


def dtype_of(name: str) -> np.dtype[np.generic]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def patterns(name: str, shape: tuple[int, ...]) -> list[NDArray]:
    """Random numbers; equal ones; those that are equal but for the last."""
    dtype, generator = dtype_of(name), np.random.default_rng(len(shape))
    numbers = generator.integers(-(2**31), 2**31, shape)
    if name == "bool":
        most = np.ones(shape, bool)
        last = np.zeros(shape, bool)
        last.flat[-1] = True
        return [numbers > 0, most, last]
    if name.startswith(("int", "uint")):
        least, most = (np.full(shape, x, dtype) for x in (np.iinfo(dtype).min, np.iinfo(dtype).max))
        last = least.copy()
        last.flat[-1] += 1
        return [(numbers * (2**32 + 1)).astype(dtype), most, last]
    with_nan = numbers.astype(dtype)
    with_nan.flat[:: with_nan.size // 5] = np.nan
    return [(numbers / 2**31).astype(dtype), with_nan, np.full(shape, -np.inf, dtype)]


@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name: str) -> None:
    def program(x: dt.Array) -> list[dt.Array]:
        axes = [None, *range(x.ndim)]
        found = []
        for axis in axes:
            found += [jnp.max(x, axis), jnp.min(x, axis), jnp.any(x, axis), jnp.all(x, axis)]
            found += [jnp.argmax(x, axis), jnp.argmin(x, axis), (x > 0).sum(axis)]
            if x.dtype.kind in "biu":
                found.append(jnp.sum(x, axis))
        return found

    def expected(x: NDArray) -> list[NDArray]:
        found = []
        for axis in [None, *range(x.ndim)]:
            found += [x.max(axis), x.min(axis), x.any(axis), x.all(axis)]
            found += [x.argmax(axis), x.argmin(axis), (x > 0).sum(axis)]
            if name.startswith(("bool", "int", "uint")):
                found.append(x.sum(axis))
        return [np.asarray(one) for one in found]

    with dt.enable_x64(True):
        native = dt.jit(program)
        for shape in (*SHAPES, *COLUMNS):
            for x in patterns(name, shape):
                for one, other in zip(native(x), expected(x), strict=True):
                    np.testing.assert_array_equal(one, other.astype(one.dtype))
        assert "dovetail_reduce" in native.lower(np.zeros(5000, dtype_of(name))).as_text()


@pytest.mark.parametrize("size", [256, 259, 271, 289, 300, 4099, 8221])
@pytest.mark.parametrize("name", REDUCED)
def test_extremes_at_every_place(name: str, size: int) -> None:
    """Rows that end within vectors and groups of them, with what is looked for wherever it may
    be; with a NaN before it or behind."""
    places = np.unique([*range(40), *range(0, size, 113), *range(size - 40, size)])
    rows = np.zeros((len(places), size), dtype_of(name))
    rows[range(len(places)), places] = 1
    is_float = name in ("float32", "float64")
    with dt.enable_x64(True):
        for nan in (None, 0, size - 1) if is_float else (None,):
            x = rows.copy()
            if nan is not None:
                x[:, nan] = np.nan
            found = dt.jit(lambda x: (jnp.max(x, 1), jnp.argmax(x, 1), jnp.argmin(x == 0, 1)))(x)
            expected = x.max(1), x.argmax(1), (x == 0).argmin(1)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(dt.jit(lambda x: (x > 0).sum(1))(rows), 1)


@pytest.mark.parametrize("name", ["int32", "int64", "float32", "float64"])
def test_positions_in_short_rows(name: str) -> None:
    """Few distinct numbers, so that the first of several is looked for; nothing but the least or
    the greatest; zeros of both signs and a NaN anywhere."""
    dtype, generator = dtype_of(name), np.random.default_rng(0)
    ends = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    with dt.enable_x64(True):
        for size in (*range(13, 20), 31, 33, 63, 64, 65, 100, 129, 2047, 2049, 4100):
            few = generator.integers(-3, 4, (21, size)).astype(dtype)
            arrays = [few, *(np.full_like(few, end) for end in ends)]
            if dtype.kind == "f":
                signs = np.where(few > 0, -0.0, 0.0).astype(dtype)
                with_nan = few.copy()
                with_nan[range(21), generator.integers(0, size, 21)] = np.nan
                arrays += [signs, with_nan]
            found = dt.jit(lambda *xs: [(jnp.argmax(x, 1), jnp.argmin(x, 1)) for x in xs])(*arrays)
            for x, (most, least) in zip(arrays, found, strict=True):
                np.testing.assert_array_equal(most, x.argmax(1))
                np.testing.assert_array_equal(least, x.argmin(1))


@pytest.mark.parametrize("name", REDUCED)
def test_first_extreme_of_a_long_row(name: str) -> None:
    """Of two that are equal, with nothing beyond them or with something that none surpasses; parts
    of the row may be read side by side."""
    size, dtype = 70_003, dtype_of(name)
    most = 1 if name == "bool" else np.inf if dtype.kind == "f" else np.iinfo(dtype).max
    with dt.enable_x64(True):
        program = dt.jit(lambda x: (jnp.argmax(x), jnp.max(x)))
        for value in (1, most):
            for place in (0, 1023, 1024, 17_499, 17_500, 17_501, 40_000, size - 4, size - 1):
                x = np.zeros(size, dtype)
                x[[place, (place + size) // 2, size - 1]] = value
                position, found = program(x)
                assert (int(position), found) == (place, dtype.type(value))


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("kept", ["some", "none", "one"])
@pytest.mark.filterwarnings("ignore:All-NaN")
def test_extremes_of_numbers(name: str, kept: str) -> None:
    generator = np.random.default_rng(0)
    with dt.enable_x64(True):
        for shape in ((300,), (70_001,), (67, 129), (600, 9), (3, 20, 47)):
            x = generator.standard_normal(shape).astype(name)
            x[generator.random(shape) < (0.3 if kept == "some" else 2)] = np.nan
            if kept == "one":
                x.flat[-1] = -np.inf
            axes = (None, *range(x.ndim))
            program = dt.jit(
                lambda x, axes=axes: [(jnp.nanmax(x, a), jnp.nanmin(x, a)) for a in axes]
            )
            for axis, (most, least) in zip(axes, program(x), strict=True):
                np.testing.assert_array_equal(most, np.nanmax(x, axis))
                np.testing.assert_array_equal(least, np.nanmin(x, axis))
        text = dt.jit(jnp.nanmax).lower(np.zeros(5000, name)).as_text()
        assert text.count("dovetail_reduce") == 2


@pytest.mark.parametrize("name", SUMMED)
def test_sums_and_products(name: str) -> None:
    def program(x: dt.Array, y: dt.Array) -> list[dt.Array]:
        found = [jnp.vdot(x, y), jnp.einsum("ij,ij->i", *(v.reshape(7, -1) for v in (x, y)))]
        for axis in [None, *range(x.ndim), tuple(range(1, x.ndim))]:
            found += [jnp.sum(x, axis), jnp.prod(y, axis), jnp.sum(x * y, axis)]
        return found

    dtype = np.dtype(name)
    is_float = dtype.kind == "f"
    wide = np.longdouble if is_float else dtype
    with dt.enable_x64(dtype.itemsize == 8):
        native = dt.jit(program)
        for shape in ((70_007,), (14, 23, 47), *((7 * n, *rest) for n, *rest in COLUMNS)):
            x, y = (patterns(name, shape)[0] for _ in range(2))
            y = np.flip(y)
            if is_float:  # with products near 1
                y = (1 + y / 1000).astype(dtype)
            a, b = x.astype(wide), y.astype(wide)
            expected = [(a * b).sum(), (a * b).reshape(7, -1).sum(1)]
            for axis in [None, *range(x.ndim), tuple(range(1, x.ndim))]:
                expected += [a.sum(axis), b.prod(axis), (a * b).sum(axis)]
            for one, other in zip(native(x, y), expected, strict=True):
                if is_float:
                    near = 8 * np.finfo(dtype).eps * np.sqrt(a.size // np.size(other))
                    np.testing.assert_allclose(one, other.astype(np.float64), near, near)
                else:
                    np.testing.assert_array_equal(one, np.asarray(other).astype(dtype))
        text = native.lower(np.zeros(7000, dtype), np.zeros(7000, dtype)).as_text()
    assert text.count("dovetail_reduce") == 4
    assert text.count("dovetail_sum_of_products") == 4


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_sums_of_what_is_no_number(name: str) -> None:
    dtype = np.dtype(name)
    for shape, axis in (((9001,), 0), ((3, 9001), 1), ((9001, 3), 0), ((600, 500), 0)):
        x = np.ones(shape, dtype)
        total = x.sum(axis)
        with dt.enable_x64(True):
            for place in (0, -1, x.size // 2):
                for value in (np.nan, np.inf, -np.inf):
                    x.flat[place] = value
                    one, many = jnp.sum(x, axis), jnp.sum(x * x, axis)
                    np.testing.assert_array_equal(one, x.sum(axis))
                    np.testing.assert_array_equal(many, (x * x).sum(axis))
                    np.testing.assert_array_equal(jnp.prod(x, axis), x.prod(axis))
                    x.flat[place] = 1
            np.testing.assert_array_equal(jnp.sum(x, axis), total)
            zeros = jnp.sum(-0 * x, axis)
            assert not np.signbit(zeros).any()
            with np.errstate(over="ignore"):
                x[...] = np.finfo(dtype).max / 4
                np.testing.assert_array_equal(jnp.sum(x, axis), np.full(total.shape, np.inf, dtype))


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_sums_and_means_of_numbers_among_nan(name: str) -> None:
    dtype = np.dtype(name)
    near = 1e-4 if name == "float32" else 1e-12
    with dt.enable_x64(dtype.itemsize == 8):
        for shape in (*SHAPES, *COLUMNS, (1, 300), (300, 1)):
            random = patterns(name, shape)[0]
            some, infinite = (np.where(random > 0, np.nan, x) for x in (random, -np.inf))
            some.flat[-1] = np.nan
            for x in (random, some, infinite, np.full(shape, np.nan)):
                x = x.astype(dtype)
                for axis in [None, *range(x.ndim)]:
                    found = jnp.nansum(x, axis), jnp.nanmean(x, axis)
                    sums = np.nansum(x.astype(np.longdouble), axis)
                    counts = (x == x).sum(axis)
                    with np.errstate(invalid="ignore"):
                        expected = [np.asarray(e).astype(dtype) for e in (sums, sums / counts)]
                    for one, other in zip(found, expected, strict=True):
                        np.testing.assert_allclose(one, other, near, near)


@pytest.mark.parametrize("name", SUMMED)
def test_counts_of_numbers_that_are_not_zero(name: str) -> None:
    def program(x: dt.Array) -> list[dt.Array]:
        return [jnp.count_nonzero(x), jnp.count_nonzero(x, -1), jnp.count_nonzero(x, 0)]

    dtype = dtype_of(name)
    with dt.enable_x64(dtype.itemsize == 8):
        for shape in (*SHAPES, (300,), (3, 4099)):
            for x in patterns(name, shape):
                zeros = np.arange(x.size).reshape(shape) % 3 == 0
                x = np.where(zeros, -0.0 if dtype.kind == "f" else 0, x).astype(dtype)
                expected = [np.count_nonzero(x, axis) for axis in (None, -1, 0)]
                for found, exact in zip(dt.jit(program)(x), expected, strict=True):
                    np.testing.assert_array_equal(found, exact)
        counts = 3 if len(shape) == 1 else 2
        assert dt.jit(program).lower(x).as_text().count("operation = 6") == counts


def test_which_sums_leave_nan_out() -> None:
    def sums(x: dt.Array, y: dt.Array) -> list[dt.Array]:
        return [jnp.where(x == x, x, 1), jnp.where(x == x, y, 0), jnp.where(x == y, x, 0)]

    x = np.where(np.arange(5000) % 3, np.arange(5000), np.nan).astype("f")
    y = np.ones(5000, "f")
    found = dt.jit(lambda x, y: [each.sum() for each in sums(x, y)])(x, y)
    np.testing.assert_allclose(found, [np.nansum(x) + 1667, 3333, 1], 1e-6)

    def program(x: dt.Array) -> tuple[dt.Array, dt.Array]:
        return jnp.nansum(x), jnp.nanmean(x, 0)

    assert dt.jit(program).lower(x).as_text().count("dovetail_reduce") == 3
    gradient = dt.grad(lambda x: jnp.nansum(x) + jnp.nanmean(x))(x)
    np.testing.assert_allclose(gradient, np.where(x == x, 1 + 1 / 3333, 0), 1e-6)


@pytest.mark.parametrize("size", [256, 263, 300, 4099, 70_001])
def test_sums_of_bfloat16(size: int) -> None:
    def program(x: dt.Array) -> list[dt.Array]:
        return [jnp.sum(x), jnp.sum(x, -1), jnp.mean(x, -1), jnp.sum(x, -1, dtype="float32")]

    generator = np.random.default_rng(size)
    x = generator.normal(1, 2, (3, size)).astype(ml_dtypes.bfloat16)
    compiled = dt.jit(program)
    assert compiled.lower(x).as_text().count("@dovetail_reduce") == 4
    wide = x.astype(np.float64)
    expected = [wide.sum(), wide.sum(-1), wide.mean(-1), wide.sum(-1)]
    for found, exact, rounding in zip(compiled(x), expected, [2**-8] * 3 + [1e-6], strict=True):
        np.testing.assert_allclose(np.asarray(found, np.float64), exact, rtol=rounding)
    x[0, -1], x[1, 0] = np.inf, np.nan
    np.testing.assert_array_equal(np.isnan(np.asarray(compiled(x)[1], float)), [False, True, False])
    assert np.isinf(compiled(x)[1][0])


def test_sums_of_many_are_accurate() -> None:
    x = np.random.default_rng(3).random(2_000_000, np.float32)
    exact = x.astype(np.float64).sum()
    assert jnp.sum(x) == np.float32(exact)
    columns = x.reshape(-1, 4).astype(np.float64).sum(0).astype(np.float32)
    np.testing.assert_array_max_ulp(np.asarray(jnp.sum(x.reshape(-1, 4), 0)), columns, 1)
    with dt.enable_x64(True):
        y = x.astype(np.float64) + 1e-9
        found = float(jnp.sum(y))
        assert abs(found - float(y.astype(np.longdouble).sum())) <= 16 * np.spacing(found)


BITS = """
import os, sys
if sys.argv[1] == "one":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np
import dovetail as dt
import dovetail.numpy as jnp
dt.config.update("enable_x64", True)
for dtype in (np.float32, np.float64):
    x = np.random.default_rng(0).standard_normal(1_200_000).astype(dtype)
    for shape in ((-1,), (4, -1), (-1, 4), (-1, 3000)):
        y = x.reshape(shape)
        for axis in range(y.ndim):
            found = [jnp.sum(y, axis), jnp.sum(y * y, axis), jnp.prod(1 + y / 1000, axis)]
            print(*(np.asarray(each).tobytes().hex() for each in found))
"""


def test_sums_have_the_same_bits_on_any_number_of_threads() -> None:
    command = [sys.executable, "-c", BITS]
    one, several = (
        subprocess.run([*command, threads], capture_output=True, text=True, timeout=120, check=True)
        for threads in ("one", "all")
    )
    assert one.stdout
    assert one.stdout == several.stdout


@pytest.mark.parametrize("name", ACCUMULATED)
def test_cumulative_operations(name: str) -> None:
    functions = {
        lax.cumsum: np.add,
        lax.cumprod: np.multiply,
        lax.cummax: np.maximum,
        lax.cummin: np.minimum,
    }
    dtype = dtype_of(name)
    is_float = name.startswith(("float", "bfloat"))
    wide = np.dtype(np.float64) if is_float else dtype

    def program(x: dt.Array) -> list[dt.Array]:
        return [
            function(x, axis=axis, reverse=reverse)
            for axis in range(x.ndim)
            for function in functions
            for reverse in (False, True)
        ]

    with dt.enable_x64(True):
        native = dt.jit(program)
        for shape in SHAPES:
            x = patterns(name, shape)[0]
            if is_float:  # with sums of no extreme size, and products near 1
                x = (1 + x.astype(wide) / 1000).astype(dtype)
            found = iter(native(x))
            for axis in range(x.ndim):
                for function in functions.values():
                    for reverse in (False, True):
                        turned = np.flip(x, axis) if reverse else x
                        result = function.accumulate(turned.astype(wide), axis, wide)
                        result = np.flip(result, axis) if reverse else result
                        one = np.asarray(next(found)).astype(wide)
                        if is_float:
                            near = 4 * float(ml_dtypes.finfo(dtype).eps)
                            if name == "float64":  # what NumPy's loop rounds, too
                                near *= x.shape[axis]
                            np.testing.assert_allclose(one, result, near)
                        else:
                            np.testing.assert_array_equal(one, result)
        assert "dovetail_cumulative" in native.lower(np.zeros(5000, dtype)).as_text()


@pytest.mark.parametrize("name", ["int32", "float32", "float64", "complex64"])
def test_cumulative_operations_without_kernel(name: str) -> None:
    """Rows that are divided into blocks."""
    dtype = dtype_of(name)
    wide = np.dtype({"int32": np.int32, "complex64": np.complex128}.get(name, np.float64))
    near = 0 if name == "int32" else 40 * float(ml_dtypes.finfo(dtype).eps)
    functions: list[tuple[Any, Any]] = [(lax.cumsum, np.add)]
    if name != "complex64":
        functions.append((lax.cummax, np.maximum))

    def program(x: dt.Array) -> list[dt.Array]:
        directions = (False, True)
        return [f(x, axis=x.ndim - 1, reverse=r) for f, _ in functions for r in directions]

    with dt.enable_x64(True), dt.cpu_kernels(False):
        for shape in ((9001,), (3, 3000), (2, 16385)):
            x = (1 + np.arange(np.prod(shape)).reshape(shape) % 7 / 8).astype(dtype)
            x[..., 0] = x[..., -1] = 3
            native = dt.jit(program)
            text = native.lower(x).as_text()
            assert "stablehlo.while" in text
            assert "custom_call" not in text
            found = iter(native(x))
            for _, function in functions:
                for reverse in (False, True):
                    turned = np.flip(x, -1) if reverse else x
                    result = function.accumulate(turned.astype(wide), -1)
                    result = np.flip(result, -1) if reverse else result
                    np.testing.assert_allclose(np.asarray(next(found)).astype(wide), result, near)


def test_recurrence_without_kernel() -> None:
    bounds: list[tuple[Any, float]] = [(np.float32, 1e-4), (np.float64, 1e-11)]
    with dt.enable_x64(True), dt.cpu_kernels(False):
        for dtype, near in bounds:
            x = (1 + np.sin(np.arange(20001)) / 100).astype(dtype)
            weights = np.cos(np.arange(20001)).astype(dtype)
            slopes = dt.jit(dt.grad(lambda x, w=weights: (lax.cumprod(x) * w).sum()))(x)
            products = np.cumprod(x.astype(np.longdouble)) * weights
            exact = np.cumsum(products[::-1])[::-1] / x
            np.testing.assert_allclose(slopes, exact.astype(np.float64), near, near)


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
def test_log_sum_exp_so_far(name: str) -> None:
    dtype = dtype_of(name)
    near = 16 * float(ml_dtypes.finfo(dtype).eps)
    with dt.enable_x64(True):
        for shape in ((9001,), (3, 700), (700, 3), (2, 90, 300)):
            x = (10 * np.random.default_rng(4).standard_normal(shape)).astype(dtype)
            x.flat[:2], x.flat[5] = -np.inf, 30
            for axis in range(x.ndim):
                for reverse in (False, True):
                    native = dt.jit(lambda x, a=axis, r=reverse: lax.cumlogsumexp(x, a, r))
                    turned = np.flip(x, axis) if reverse else x
                    result = np.logaddexp.accumulate(turned.astype(np.longdouble), axis)
                    result = np.flip(result, axis) if reverse else result
                    one = np.asarray(native(x)).astype(np.float64)
                    np.testing.assert_allclose(one, result, near, near)
        assert "dovetail_linear_recurrence" in native.lower(x).as_text()


def test_derivatives_of_log_sum_exp_so_far() -> None:
    x = np.random.default_rng(5).standard_normal((2, 600)).astype(np.float32)
    weights = np.random.default_rng(6).standard_normal(x.shape).astype(np.float32)
    for reverse in (False, True):
        slope = dt.grad(lambda x, r=reverse: jnp.sum(weights * lax.cumlogsumexp(x, 1, r)))
        assert "dovetail_linear_recurrence" in dt.jit(slope).lower(x).as_text()
        a, w = x.astype(np.float64), weights.astype(np.float64)
        flip = (lambda v: np.flip(v, 1)) if reverse else (lambda v: v)
        totals = np.cumsum(np.exp(flip(a)), 1)
        exact = np.exp(a) * flip(np.flip(np.cumsum(np.flip(flip(w) / totals, 1), 1), 1))
        np.testing.assert_allclose(slope(x), exact, 1e-4, 1e-5)


def test_extremes_so_far_keep_nan() -> None:
    x = np.random.default_rng(0).standard_normal((2, 5000)).astype(np.float32)
    x[0, 1234] = x[1, 4990] = np.nan
    np.testing.assert_array_equal(lax.cummax(x, 1), np.maximum.accumulate(x, 1))
    turned = np.flip(np.minimum.accumulate(np.flip(x, 1), 1), 1)
    np.testing.assert_array_equal(lax.cummin(x, 1, reverse=True), turned)
    np.testing.assert_array_equal(lax.cummax(x.T, 0), np.maximum.accumulate(x.T, 0))


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "float64"])
def test_remainders_are_exact(name: str) -> None:
    dtype, generator = dtype_of(name), np.random.default_rng(0)
    limits = ml_dtypes.finfo(dtype)
    special = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, float(limits.max), float(limits.tiny), 3.0]
    x, y = (each.ravel() for each in np.meshgrid(special, special))
    numbers = generator.standard_normal((2, 5000))
    integers = generator.integers(-2000, 2000, (2, 5000)).astype(np.float64)
    scales = 2.0 ** generator.integers(-14, 15, (2, 5000))
    pairs = np.concatenate([np.stack([x, y]), numbers, integers, numbers * scales], axis=1)
    x, y = pairs.astype(dtype)
    with np.errstate(invalid="ignore"):
        expected = np.fmod(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    by_three = np.fmod(x[100:].astype(np.float64), 3.0).astype(dtype)
    with dt.enable_x64(True):
        native = dt.jit(lambda x, y: (lax.rem(x, y), jnp.fmod(x[100:], 3)))
        assert native.lower(x, y).as_text().count("dovetail_remainder") == 2
        for one, other in zip(native(x, y), (expected, by_three), strict=True):
            found, exact = (np.asarray(each).astype(np.float64) for each in (one, other))
            np.testing.assert_array_equal(found, exact)
            numbers = exact == exact
            np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(exact)[numbers])


def test_programs_without_kernels_give_the_same() -> None:
    x = np.random.default_rng(1).integers(-100, 100, (300, 70)).astype(np.float32)

    def program(x: dt.Array) -> tuple[dt.Array, ...]:
        loss = dt.grad(lambda x: jnp.max(x) + lax.cumsum(x, axis=0).max() + jnp.fmod(x, 7.0).sum())
        rows = dt.vmap(lambda row: (jnp.max(row), jnp.argmax(row), jnp.cumsum(row)))(x)
        return loss(x), *rows, (x > 0).sum(0), jnp.any(x > 99), jnp.fmod(x, 7.0), lax.cummin(x)

    targets = "dovetail_reduce", "dovetail_extreme_positions", "dovetail_cumulative"
    with dt.cpu_kernels(True):
        native = dt.jit(program)
        text = native.lower(x).as_text()
        assert all(target in text for target in (*targets, "dovetail_remainder"))
        found = native(x)
    with dt.cpu_kernels(False):
        other = dt.jit(program)
        assert "dovetail_" not in other.lower(x).as_text()
        expected = other(x)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, np.asarray(two))


@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nansum", "nanmean"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_complex_numbers_without_nan(name: str, axis: int | None) -> None:
    """Complex constants tell no number, and the kernels know none."""
    numbers = np.random.default_rng(0).normal(size=(3, 700, 2)).astype("float32")
    x = numbers.view("complex64")[..., 0]
    x[0, :2] = [complex(np.nan, 1), complex(1, np.nan)]
    with dt.direct_calls("none"):
        found = dt.jit(partial(getattr(jnp, name), axis=axis))(x)
    np.testing.assert_allclose(found, getattr(np, name)(x, axis=axis), rtol=1e-4, atol=1e-4)
