"""The kernel of distances between all pairs of rows, beside NumPy's sums in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail_cpu.kernel_library import library

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)

KERNEL: Final = "dovetail_distances"

SQUARES: Callable[..., Any] = lambda m, x, y: m.sum((x - y) ** 2, -1)
SIZES: Callable[..., Any] = lambda m, x, y: m.sum(m.abs(x - y), -1)


def pairs(kind: Any, m: Any, x: Any, y: Any) -> Any:
    return kind(m, x[..., :, None, :], y[..., None, :, :])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", [SQUARES, SIZES], ids=["squares", "sizes"])
@pytest.mark.parametrize(
    ("rows", "columns", "size", "batch"),
    [
        (100, 70, 64, ()),
        (33, 1000, 5, ()),
        (2, 3, 20000, ()),
        (600, 65, 9, ()),
        (40, 65, 31, (3,)),
        (257, 64, 16, (2, 1)),
    ],
)
def test_distances(
    dtype: str,
    kind: Any,
    rows: int,
    columns: int,
    size: int,
    batch: tuple[int, ...],
    by_kernel: Any,
    drawn: Any,
) -> None:
    x, y = drawn(dtype, *batch, rows, size), drawn(dtype, *batch, columns, size)
    expected = pairs(kind, np, x.astype(float), y.astype(float))
    found = by_kernel(lambda x, y: pairs(kind, jnp, x, y), x, y)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)
    turned = by_kernel(lambda x, y: kind(jnp, y[..., None, :, :], x[..., :, None, :]), x, y)
    np.testing.assert_array_equal(turned, found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", [SQUARES, SIZES], ids=["squares", "sizes"])
@pytest.mark.parametrize(
    ("shape", "finite"),
    [
        ((70, 64), True),
        ((1130, 5), True),
        ((3, 200, 33), True),
        ((300, 130), True),
        ((130, 40), False),
    ],
)
def test_pairs_of_one_matrix(
    dtype: str, kind: Any, shape: tuple[int, ...], finite: bool, by_kernel: Any, drawn: Any
) -> None:
    # Half of them is computed: to the same bits, but for roots of numbers beside those not finite.
    x = drawn(dtype, *shape)
    if not finite:
        x[3, 7], x[5, 0], x[100, 39], x[9] = np.nan, np.inf, -np.inf, -0.0
    for function in (lambda sums: sums, jnp.sqrt):
        found = by_kernel(lambda x, f=function: f(pairs(kind, jnp, x, x)), x)
        both = by_kernel(lambda x, y, f=function: f(pairs(kind, jnp, x, y)), x, x.copy())
        bound = 0 if finite else float(np.finfo(dtype).eps)
        np.testing.assert_allclose(found, both, rtol=bound)
        if finite:
            np.testing.assert_array_equal(found, np.swapaxes(found, -1, -2))


@pytest.mark.parametrize("kind", [SQUARES, SIZES], ids=["squares", "sizes"])
def test_not_finite(kind: Any, by_kernel: Any, drawn: Any) -> None:
    x, y = drawn("float32", 90, 40), drawn("float32", 70, 40)
    x[3, 7], x[5, 0], y[69, 39], y[2, 0] = np.nan, np.inf, -np.inf, np.inf
    with np.errstate(invalid="ignore"):
        expected = pairs(kind, np, x, y)
    found = by_kernel(lambda x, y: pairs(kind, jnp, x, y), x, y)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("size", "close", "scale"),
    [
        (32, 0, 1.0),
        (64, 9, 1.0),
        (65, 3, 1e-12),
        (129, 1, 1e17),
        (200, 100, 1.0),  # which is most of a tile
        (64, 9, "tiny"),
        (64, 9, "huge"),
    ],
)
@pytest.mark.parametrize("function", [lambda m, x: x, lambda m, x: m.sqrt(x)], ids=["", "roots"])
def test_close_rows_among_long_ones(
    function: Any, dtype: str, size: int, close: int, scale: Any, by_kernel: Any, drawn: Any
) -> None:
    # Squares of most are found by products; of those that are close differences are squared.
    x, y = drawn(dtype, 130, size), drawn(dtype, 110, size)
    y[:close] = x[20 : 20 + close] + 1e-3 * y[:close]
    x[7], y[100] = 0, 0
    if scale == "tiny":
        scale = 1e7 * np.finfo(dtype).tiny ** 0.5
    elif scale == "huge":  # some squares overflow
        scale = 0.06 * np.finfo(dtype).max ** 0.5
    x, y = (x * scale).astype(dtype), (y * scale).astype(dtype)
    with np.errstate(over="ignore"):
        wide = pairs(SQUARES, np, x.astype(np.longdouble), y.astype(np.longdouble))
        expected = function(np, wide).astype(dtype)
    found = by_kernel(lambda x, y: function(jnp, pairs(SQUARES, jnp, x, y)), x, y)
    largest = np.isinf(expected) | (wide > 0.999 * np.finfo(dtype).max)
    np.testing.assert_allclose(
        np.where(largest, 0, found),
        np.where(largest, 0, expected),
        rtol=6 * np.finfo(dtype).eps,
        atol=function(np, size * np.finfo(dtype).tiny),  # of squares that are lost
    )
    assert np.all(found[largest] > 0.99 * function(np, np.finfo(dtype).max))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_rows_far_from_zero(dtype: str, by_kernel: Any, drawn: Any) -> None:
    x, y = drawn(dtype, 100, 70) + 100, drawn(dtype, 140, 70) + 100
    x, y = x.astype(dtype), y.astype(dtype)
    expected = pairs(SQUARES, np, x.astype(np.longdouble), y.astype(np.longdouble))
    found = by_kernel(lambda x, y: pairs(SQUARES, jnp, x, y), x, y)
    np.testing.assert_allclose(found, expected.astype(dtype), rtol=6 * np.finfo(dtype).eps)


ROOTS: Callable[..., Any] = lambda m, sums: m.sqrt(sums)
POWERS: Callable[..., Any] = lambda m, sums: m.exp(-0.5 * sums)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [ROOTS, POWERS], ids=["roots", "exponentials"])
@pytest.mark.parametrize("size", [3, 8, 40])
def test_functions_of_distances(
    dtype: str, function: Any, size: int, by_kernel: Any, drawn: Any
) -> None:
    x, y = drawn(dtype, 150, size), drawn(dtype, 151, size)
    expected = function(np, pairs(SQUARES, np, x.astype(float), y.astype(float)))
    kernel = size > 3 or function is ROOTS
    found = by_kernel(lambda x, y: function(jnp, pairs(SQUARES, jnp, x, y)), x, y, kernel=kernel)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=400 * np.finfo(dtype).eps)
    x[3], y[5, 0] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        expected = function(np, pairs(SQUARES, np, x.astype(float), y.astype(float)))
    found = by_kernel(lambda x, y: function(jnp, pairs(SQUARES, jnp, x, y)), x, y, kernel=kernel)
    np.testing.assert_allclose(found, expected, rtol=400 * np.finfo(dtype).eps)


@pytest.mark.parametrize("function", [ROOTS, POWERS], ids=["roots", "exponentials"])
def test_distances_that_are_used_besides(function: Any, drawn: Any) -> None:
    x = drawn("float32", 150, 8)

    def both(m: Any, x: Any) -> Any:
        sums = pairs(SQUARES, m, x, x)
        return function(m, sums), sums

    compiled = dt.jit(lambda x: both(jnp, x)).lower(x)
    assert compiled.as_text().count(KERNEL) == 1, "not computed twice"
    for found, expected in zip(compiled.compile()(x), both(np, x.astype(float)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    twice = dt.jit(lambda x: jnp.sqrt(jnp.sqrt(pairs(SQUARES, jnp, x, x))))(x)
    expected = np.sqrt(np.sqrt(pairs(SQUARES, np, x.astype(float), x.astype(float))))
    np.testing.assert_allclose(twice, expected, rtol=1e-5)


def test_transformations(by_kernel: Any, drawn: Any) -> None:
    x, y = drawn("float64", 60, 7), drawn("float64", 200, 7)
    expected = pairs(SQUARES, np, x, y)
    mapped = dt.vmap(lambda a: dt.vmap(lambda b: jnp.sum((a - b) ** 2))(y))
    np.testing.assert_allclose(by_kernel(mapped, x), expected, rtol=1e-14)
    loss = lambda x, y: jnp.sum(jnp.sqrt(pairs(SQUARES, jnp, x, y)))
    with dt.enable_x64(True):
        gradient = np.asarray(dt.jit(dt.grad(loss))(x, y))
    difference = x[:, None] - y[None]
    np.testing.assert_allclose(
        gradient, np.sum(difference / np.sqrt(expected)[..., None], 1), rtol=1e-10
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: jnp.sum((x[:9, None] - y[None]) ** 2, 2),  # too few
        lambda x, y: jnp.sum((x[:, None] - y[None, :1]) ** 2, (0, 2)),
        lambda x, y: jnp.sum((x[:, None] - y[None]) ** 2, 1),
        lambda x, y: jnp.sum((x[:, None] + y[None]) ** 2, 2),
        lambda x, y: jnp.sum((x[:, None] - y[None]) * x[:, None], 2),
        lambda x, y: jnp.sum((jnp.tile(x[None], (150, 1, 1)) - y[None]) ** 2, 2),
        lambda x, y: jnp.sum((x.T[:, :, None] - y[:, 0]) ** 2, 2),
        lambda x, y: jnp.sum((x[:, None] - y[None, :, :1]) ** 2, 2),
    ],
)
def test_other_sums_are_left_as_they_are(function: Any, by_kernel: Any, drawn: Any) -> None:
    x, y = drawn("float32", 150, 5), drawn("float32", 150, 5)
    with dt.cpu_kernels(False):
        expected = function(x, y)
    found = by_kernel(function, x, y, kernel=False)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
