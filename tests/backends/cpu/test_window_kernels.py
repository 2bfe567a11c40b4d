"""Extremes and sums of windows, and what is added where they select, by kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail_cpu.kernel_library import library

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

KERNEL = "@dovetail_reduce_windows"
SELECTING = "@dovetail_add_to_selected"
OPERATIONS = {"max": (lax.max, np.maximum), "min": (lax.min, np.minimum), "add": (lax.add, np.add)}
DTYPES = ["float32", "float64", "int32"]
# Shape, window, strides, padding, dilation of windows.
WINDOWS: list[tuple[Any, ...]] = [
    ((3, 8, 10, 32), (1, 2, 2, 1), (1, 2, 2, 1), ((0, 0),) * 4, (1,) * 4),
    ((3, 8, 10, 33), (1, 2, 2, 1), (1, 2, 2, 1), ((0, 0),) * 4, (1,) * 4),
    ((2, 9, 11, 19), (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (0, 2), (0, 0)), (1,) * 4),
    ((2, 9, 11, 16), (1, 3, 3, 1), (1, 1, 1, 1), ((0, 0), (1, 1), (1, 1), (0, 0)), (1,) * 4),
    ((2, 13, 15, 8), (1, 3, 2, 1), (1, 2, 3, 1), ((0, 0), (2, 1), (3, 0), (0, 0)), (1, 2, 3, 1)),
    ((2, 9, 21, 8), (1, 4, 5, 1), (1, 1, 2, 1), ((0, 0),) * 4, (1,) * 4),
    ((2, 4, 6, 5, 9), (1, 2, 2, 2, 1), (1, 2, 1, 2, 1), ((0, 0),) * 5, (1,) * 5),
    ((2, 4, 19, 45), (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1)), (1,) * 4),
    ((2, 4, 19, 45), (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0),) * 4, (1,) * 4),
    ((2, 4, 9, 9), (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0),) * 4, (1,) * 4),
    ((2, 9, 45, 2), (1, 3, 3, 1), (1, 2, 1, 1), ((0, 0),) * 4, (1,) * 4),
    ((2, 4, 19, 21), (1, 1, 2, 3), (1, 1, 1, 1), ((0, 0), (0, 0), (1, 0), (1, 1)), (1,) * 4),
    ((3, 9000), (1, 7), (1, 1), ((0, 0), (3, 3)), (1, 1)),
    ((700,), (3,), (2,), ((5, 4),), (1,)),
]


# Whose elements are selected in vectors.
SELECTED = [w for w in WINDOWS if w[0][-1] >= 8 and w[1][-1] == 1 and set(w[4]) == {1}]


@pytest.fixture(params=range(len(WINDOWS)))
def window(request: pytest.FixtureRequest) -> Any:
    return WINDOWS[request.param]


def drawn_with_ties(shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(prod(shape)).integers(-9, 9, shape).astype(dtype)


def places(shape: Any, window: Any, distances: Any) -> Iterator[tuple[int, ...]]:
    for place in product(*map(range, window)):
        yield tuple(k * d for k, d in zip(place, distances, strict=True))


def reference(x: Any, universal: Any, windows: Any) -> Any:
    """The results, of the elements that are no padding; the universal function's for none."""
    _, window, strides, padding, distances = windows
    floats = x.dtype.kind == "f"
    least, most = (-np.inf, np.inf) if floats else (np.iinfo("i4").min, np.iinfo("i4").max)
    fill = {np.maximum: least, np.minimum: most, np.add: 0}[universal]
    padded = np.pad(x, padding, constant_values=fill)
    total = None
    for corner in places(x.shape, window, distances):
        spans = [
            slice(c, c + (n - (w - 1) * d - 1) // s * s + 1, s)
            for c, n, w, d, s in zip(corner, padded.shape, window, distances, strides, strict=True)
        ]
        seen = padded[tuple(spans)]
        total = seen if total is None else universal(total, seen)
    return total


def reduced(name: str, windows: Any) -> Callable[..., Any]:
    _, window, strides, padding, distances = windows
    start = {"max": -np.inf, "min": np.inf, "add": 0}[name]

    def function(x: Any) -> Any:
        first = start
        if x.dtype.kind == "i" and name != "add":
            limits = np.iinfo("i4")
            first = limits.min if name == "max" else limits.max
        return lax.reduce_window(
            x,
            np.asarray(first, x.dtype),
            OPERATIONS[name][0],
            window,
            strides,
            padding,
            window_dilation=distances,
        )

    return function


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_reductions(name: str, dtype: str, window: Any, by_kernel: Any) -> None:
    x = drawn_with_ties(window[0], dtype)
    result = by_kernel(reduced(name, window), x)
    np.testing.assert_array_equal(result, reference(x, OPERATIONS[name][1], window))


@pytest.mark.parametrize("name", ["max", "min"])
def test_nan_stays(name: str, window: Any, by_kernel: Any) -> None:
    x = drawn_with_ties(window[0], "float32")
    x.flat[::11] = np.nan
    result = by_kernel(reduced(name, window), x)
    np.testing.assert_array_equal(result, reference(x, OPERATIONS[name][1], window))


@pytest.mark.parametrize("size", [(2, 2), (2, 3), (3, 2), (3, 3), (1, 4), (4, 1)])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("inner", [8, 19])
def test_sums_are_rounded_alike_beside_padding(
    size: tuple[int, int], step: int, inner: int, by_kernel: Any
) -> None:
    x = np.random.default_rng(0).normal(size=(2, 16, 20, inner)).astype(np.float32)
    whole = (x.shape, (1, *size, 1), (1, step, step, 1), ((0, 0),) * 4, (1,) * 4)
    padded = (*whole[:3], ((0, 0), (step, step), (step, step), (0, 0)), (1,) * 4)
    inside = by_kernel(reduced("add", whole), x)
    around = by_kernel(reduced("add", padded), x)
    _, rows, columns, _ = inside.shape
    np.testing.assert_array_equal(around[:, 1 : rows + 1, 1 : columns + 1], inside)


@pytest.mark.parametrize("divisor", [4, 6])
def test_means(divisor: int, by_kernel: Any) -> None:
    window = WINDOWS[0]
    x = drawn_with_ties(window[0], "float32")
    sums = reduced("add", window)
    result = by_kernel(lambda x: sums(x) / divisor, x)
    expected = reference(x, np.add, window)
    np.testing.assert_array_equal(result, expected / np.float32(divisor))
    both = by_kernel(lambda x: (sums(x), sums(x) / divisor), x)
    np.testing.assert_array_equal(both[0], expected)
    np.testing.assert_allclose(both[1], expected / divisor, rtol=1e-6)


@pytest.mark.parametrize("ones", [True, False])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("window", SELECTED)
def test_selection(dtype: str, name: str, ones: bool, window: Any) -> None:
    shape, size, strides, padding, distances = window
    x = drawn_with_ties(shape, dtype)
    x.flat[::13] = np.nan
    x.flat[::7] = -np.inf if name == "max" else np.inf
    function = reduced(name, window)
    with dt.enable_x64(True):
        given = np.ones(function(x).shape, dtype)
        if not ones:
            given = drawn_with_ties(given.shape, dtype)

        def gradient(x: Any, given: Any) -> Any:
            return dt.vjp(function, x)[1](given)[0]

        jitted = dt.jit((lambda x: gradient(x, np.ones_like(given))) if ones else gradient)
        arguments = (x,) if ones else (x, given)
        assert SELECTING in jitted.lower(*arguments).as_text()
        result = np.asarray(jitted(*arguments))
    expected = np.zeros_like(x)
    for index in np.ndindex(*given.shape):
        best = None
        for corner in places(shape, size, distances):
            at = tuple(
                i * s + c - low
                for i, s, c, (low, _) in zip(index, strides, corner, padding, strict=True)
            )
            if any(not 0 <= i < n for i, n in zip(at, shape, strict=True)):
                continue
            better = best is not None and (x[at] > x[best] if name == "max" else x[at] < x[best])
            if best is None or better or (np.isnan(x[at]) and not np.isnan(x[best])):
                best = at
        if best is not None:
            expected[best] += given[index]
    np.testing.assert_array_equal(result, expected)


def test_what_xla_does(by_kernel: Any) -> None:
    apart, single = WINDOWS[0], (2, 8, 64, 64)
    x = drawn_with_ties(apart[0], "float32")
    by_kernel(lambda x: reduced("max", apart)(x * 2), x, kernel=False)
    planes = (single, (1, 1, 2, 2), (1, 1, 2, 2), ((0, 0),) * 4, (1,) * 4)
    by_kernel(reduced("max", planes), drawn_with_ties(single, "float32"), kernel=False)
    wide = (single, (1, 1, 1, 17), (1, 1, 1, 1), ((0, 0),) * 4, (1,) * 4)
    by_kernel(reduced("max", wide), drawn_with_ties(single, "float32"), kernel=False)
