"""Selecting and searching by native kernels: bit for bit what the lowerings without them give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.extend.indexing import order_statistics, search_sorted, true_positions
from dovetail.lax import top_k_p
from dovetail_cpu.kernel_library import library

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

NAMES = ("bool", "int8", "uint16", "int32", "uint32", "int64", "bfloat16", "float32", "float64")
SIZES = (1, 3, 64, 700, 5000, 40_000)


def rows(name: str, size: int) -> list[np.ndarray[Any, Any]]:
    """Arrays that are hard to select from in one way or another."""
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    generator = np.random.default_rng(size)
    place = np.arange(size)
    if name == "bool":
        return [generator.integers(0, 2, size).astype(bool), np.zeros(size, bool)]
    found = [
        generator.integers(0, 256, size * dtype.itemsize, np.uint8).view(dtype),
        place.astype(dtype),
        place[::-1].astype(dtype),
        (place % 7).astype(dtype),
    ]
    if name in ("float32", "float64"):
        # Compiled comparisons take subnormal numbers for zeros.
        with np.errstate(invalid="ignore"):  # of signalling NaNs
            found[0] = np.where(np.abs(found[0]) < np.finfo(dtype).tiny, dtype.type(1), found[0])
    if name == "bfloat16":
        # XLA computes them in float32, and drops the payload of NaN.
        found[0] = generator.standard_normal(size).astype(dtype)
    if dtype.kind not in "iu":
        special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, 1.0]).astype(dtype)
        found.append(generator.choice(special, size))
    return found


def same_without_kernels(function: Callable[..., Any], *args: Any) -> None:
    """Assert that both lowerings of a function give the same bits, and that one calls a kernel."""
    compiled = dt.jit(function)
    assert "dovetail_" in compiled.lower(*args).as_text()
    found = compiled(*args)
    with dt.cpu_kernels(False):
        plain = dt.jit(lambda *xs: function(*xs))
        assert "dovetail_" not in plain.lower(*args).as_text()
        expected = plain(*args)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_order_statistics(name: str) -> None:
    with dt.enable_x64(True):
        for size in SIZES:
            places = np.array([size // 2, 0, size - 1, size // 3, size // 2], np.int32)
            for x in rows(name, size):
                same_without_kernels(lambda x, places: [order_statistics(x, places)], x, places)


@pytest.mark.parametrize("name", NAMES)
def test_top_k(name: str) -> None:
    with dt.enable_x64(True):
        for size in SIZES:
            for x in rows(name, size):
                for k in sorted({1, min(size, 10), size // 2 or 1}):
                    expected = top_k_p.reference(x, k=k, axis=0)
                    for one, other in zip(lax.top_k(x, k), expected, strict=True):
                        assert np.asarray(one).tobytes() == other.tobytes()


@pytest.mark.parametrize("name", ["int8", "float32", "int64"])
@pytest.mark.parametrize("k", [1, 31, 32, 33, 40, 128, 130])
def test_top_k_of_blocks(name: str, k: int) -> None:
    # Just below and above as many blocks as are gone through, with ties within and between them.
    with dt.enable_x64(True):
        for size in (64 * 64, 64 * 64 + 1, 64 * 80 - 1):
            place = np.arange(size)
            for x in (place % 100, place // 100, -(place // 100), 0 * place, place == size - 1):
                x = x.astype(name)
                expected = top_k_p.reference(x, k=k, axis=0)
                for one, other in zip(lax.top_k(x, k), expected, strict=True):
                    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (1000,), (40_003,), (3, 129), (2, 3, 5000)])
def test_true_positions(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(3)
    flags = [generator.random(shape) < p for p in (0.02, 0.5, 0.98)]
    for x in (*flags, np.zeros(shape, bool), np.ones(shape, bool)):
        for size in (1, 7, shape[-1] // 2 or 1, shape[-1], shape[-1] + 9):
            same_without_kernels(lambda x, size=size: [true_positions(x, size)], x)


def test_true_positions_under_vmap_and_in_loops() -> None:
    x = np.random.default_rng(4).random((6, 500)) < 0.3
    expected = [np.flatnonzero(row)[:100] for row in x]
    for dim, rows in ((0, x), (1, x.T)):
        np.testing.assert_array_equal(
            dt.vmap(lambda row: true_positions(row, 100), in_axes=dim)(rows), expected
        )
    np.testing.assert_array_equal(lax.map(lambda row: true_positions(row, 100), x), expected)


@pytest.mark.parametrize("usable", [True, False])
@pytest.mark.parametrize("name", ["bool", "int32", "bfloat16", "float32"])
def test_partitions_of_long_rows(name: str, usable: bool) -> None:
    # In one program, since without kernels each takes seconds to compile.
    both = dt.jit(lambda x, k: (jnp.partition(x, k), jnp.argpartition(x, k)), static_argnums=1)
    with dt.cpu_kernels(usable):
        for flat in rows(name, 10_000):
            x = flat.reshape(2, 5000)
            wide = x.astype(np.float32) if name == "bfloat16" else x  # for NumPy's comparisons
            ordered = np.sort(wide)
            for k in (0, 7, 2500, -1):
                found, places = map(np.asarray, both(x, k))
                found = found.astype(wide.dtype)
                np.testing.assert_array_equal(np.take_along_axis(wide, places, -1), found)
                np.testing.assert_array_equal(np.sort(places), [np.arange(5000)] * 2)
                np.testing.assert_array_equal(found[:, k], ordered[:, k])
                before = k % 5000
                np.testing.assert_array_equal(np.sort(found[:, :before]), ordered[:, :before])
    assert jnp.partition(np.zeros((0, 5000)), 3).shape == (0, 5000)


def test_gradient_of_a_partition() -> None:
    x = np.random.default_rng(5).standard_normal((5000, 3)).astype(np.float32)
    gradient = dt.grad(lambda x: jnp.partition(x, 7, axis=0)[7].sum())(x)
    np.testing.assert_array_equal(gradient, x == np.sort(x, axis=0)[7])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", NAMES)
def test_search_sorted(name: str, side: str) -> None:
    with dt.enable_x64(True):
        values = rows(name, 5000)
        for size in (1, 2, 3, 64, 700):
            for x in rows(name, size):
                ordered = np.asarray(lax.sort(x))
                for v in values:
                    same_without_kernels(lambda x, v: [search_sorted(x, v, side)], ordered, v)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_along_any_dimension(axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((6, 500, 7)).astype(np.float32)
    k = 5
    expected = np.flip(np.sort(x, axis), axis).take(np.arange(k), axis)
    np.testing.assert_array_equal(lax.top_k(x, k, axis=axis)[0], expected)
    np.testing.assert_allclose(jnp.median(x, axis), np.median(x, axis), rtol=1e-6)


def test_different_positions_in_each_row() -> None:
    x = np.random.default_rng(1).standard_normal((4, 3000)).astype(np.float32)
    places = np.array([[0, 2999], [5, 5], [1500, 7], [-3, 4000]], np.int32)
    expected = np.take_along_axis(np.sort(x), np.clip(places, 0, 2999), -1)
    np.testing.assert_array_equal(order_statistics(x, places), expected)
    same_without_kernels(lambda x, places: [order_statistics(x, places)], x, places)


def test_searching_rows() -> None:
    generator = np.random.default_rng(2)
    ordered = np.sort(generator.standard_normal((3, 900)).astype(np.float32))
    values = generator.standard_normal((3, 2000)).astype(np.float32)
    expected = [np.searchsorted(a, v) for a, v in zip(ordered, values, strict=True)]
    np.testing.assert_array_equal(search_sorted(ordered, values, "left"), expected)
    np.testing.assert_array_equal(dt.vmap(jnp.searchsorted)(ordered, values), expected)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_searching_integers_that_are_close_together(name: str, side: str) -> None:
    limits = np.iinfo(name)
    generator = np.random.default_rng(3)
    with dt.enable_x64(True):
        for first in (limits.min, 0, limits.max - 100):
            ordered = np.sort(generator.integers(0, 100, 300, np.int16)).astype(name) + first
            ends = np.array([limits.min, limits.min + 1, limits.max - 1, limits.max], name)
            near = ordered[generator.integers(0, 300, 80_000)]
            beside = near + generator.integers(0, 2, 80_000).astype(name)  # that may wrap around
            values = np.concatenate([ends, near, beside])
            for x in (ordered, ordered[:1], np.sort(ends)):
                expected = np.searchsorted(x, values, side)
                np.testing.assert_array_equal(jnp.searchsorted(x, values, side), expected)
            np.testing.assert_array_equal(jnp.isin(values, ordered), np.isin(values, ordered))
