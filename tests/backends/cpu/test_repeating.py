"""Repeated elements, rows and blocks by a native kernel, against NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail_cpu import runtime
from dovetail_cpu.kernel_library import library

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

KERNEL = "dovetail_repeat"
DTYPES = ("bool", "int8", "uint16", "float16", "int32", "float32", "complex64", "int64", "float64")
TIMES = (2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 100, 1000)


def numbers(dtype: Any, *shape: int) -> Any:
    x = np.random.default_rng(len(shape)).integers(-100, 100, shape).astype(dtype)
    if x.dtype.kind in "fc":
        x.flat[0], x.flat[-1] = np.nan, -0.0
    return x


def assert_same(found: Any, expected: Any) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [*DTYPES, "complex128", ml_dtypes.bfloat16], ids=str)
def test_elements(dtype: Any, by_kernel: Callable[..., Any]) -> None:
    for times in TIMES:
        x = numbers(dtype, 8203 if times < 16 else 1031)
        assert_same(by_kernel(lambda x, n=times: jnp.repeat(x, n), x), np.repeat(x, times))


@pytest.mark.parametrize("dtype", [*DTYPES, "complex128", ml_dtypes.bfloat16], ids=str)
def test_rows_and_columns(dtype: Any, by_kernel: Callable[..., Any]) -> None:
    for shape in [(70, 301), (3, 20, 301), (2, 9000)]:
        x = numbers(dtype, *shape)
        for axis in range(len(shape)):
            found = by_kernel(lambda x, axis=axis: jnp.repeat(x, 3, axis), x)
            assert_same(found, np.repeat(x, 3, axis))


@pytest.mark.parametrize(
    ("shape", "repeats"),
    [
        ((9001,), (5,)),
        ((301,), (70, 2)),
        ((3, 5, 303), (2, 3, 4)),
        ((70, 303), (1, 1, 2)),
        ((2, 2, 2, 301), (3, 1, 3, 5)),
        ((303, 1), (1, 90)),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_tiles(
    shape: tuple[int, ...], repeats: tuple[int, ...], dtype: str, by_kernel: Callable[..., Any]
) -> None:
    x = numbers(dtype, *shape)
    assert_same(by_kernel(lambda x: jnp.tile(x, repeats), x), np.tile(x, repeats))


def test_many_on_several_threads(by_kernel: Callable[..., Any]) -> None:
    x = numbers("float32", 1_000_003)
    for times in (2, 3, 7):
        assert_same(by_kernel(lambda x, n=times: jnp.repeat(x, n), x), np.repeat(x, times))
    assert_same(by_kernel(lambda x: jnp.tile(x, (3, 2)), x), np.tile(x, (3, 2)))
    matrix = x[:1_000_000].reshape(1000, 1000)
    assert_same(by_kernel(lambda x: jnp.tile(x, (3, 2)), matrix), np.tile(matrix, (3, 2)))


@pytest.mark.parametrize("threads", [1, 2])
def test_broadcasting_alone(
    threads: int, by_kernel: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "_threads", [threads])
    x = numbers("float32", 1000)
    for dimension in (0, 1):
        found = by_kernel(
            lambda x, d=dimension: lax.broadcast_in_dim(x, (1000, 1000), (d,)),
            x,
            kernel=threads > 1,
        )
        column = x if dimension else x[:, None]
        assert_same(found, np.broadcast_to(column, (1000, 1000)).copy())


def test_transformations(by_kernel: Callable[..., Any]) -> None:
    x = np.nan_to_num(numbers("float32", 100, 301))
    found = by_kernel(dt.vmap(lambda x: jnp.repeat(x, 3)), x)
    assert_same(found, np.repeat(x, 3, 1))
    gradient = dt.grad(lambda x: (jnp.repeat(x, 3) ** 2).sum())(x)
    np.testing.assert_allclose(gradient, 6 * x, rtol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.repeat(x, 3) + 1,  # XLA fuses it
        lambda x: jnp.repeat(x + 1, 3),
        lambda x: jnp.repeat(x[:, :20], 3, 0),  # short rows
        lambda x: (y := jnp.repeat(x, 3), y + 1),
        lambda x: lax.fori_loop(0, 2, lambda _, y: jnp.repeat(x, 3) + y, jnp.zeros(3 * x.size)),
        lambda x: jnp.repeat(x[:10, :10], 2),  # few
        lambda x: jnp.repeat(x, 0),
        lambda x: x.reshape(-1),
    ],
)
def test_other_programs(function: Callable[[Any], Any], by_kernel: Callable[..., Any]) -> None:
    x = numbers("float32", 100, 301)
    with dt.cpu_kernels(False):
        expected = dt.jit(lambda x: function(x))(x)
    found = by_kernel(function, x, kernel=False)
    for one, other in zip(dt.tree.leaves(found), dt.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(one, other)
