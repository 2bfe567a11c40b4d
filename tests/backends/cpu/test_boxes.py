"""What is rolled or padded by a native kernel, and Kronecker products by another: NumPy's bits."""

from __future__ import annotations

from collections.abc import Callable
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

BOXES, PRODUCTS = "dovetail_copy_boxes", "dovetail_kronecker"
DTYPES = ("bool", "int8", "uint16", "int32", "int64", "bfloat16", "float32", "float64")


def drawn_of(name: str, *shape: int) -> np.ndarray[Any, Any]:
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    if dtype.kind not in "biu":
        x.flat[0], x.flat[-1], x.flat[x.size // 2] = -0.0, np.nan, 1e-40
    return x


def assert_bits(function: Callable[..., Any], expected: Any, *operands: Any, kernel: str) -> None:
    """Assert that a compiled function, which calls the kernel if it is named, gives an array."""
    with dt.enable_x64(True):
        compiled = dt.jit(function)
        text = compiled.lower(*operands).as_text()
        assert [name for name in (BOXES, PRODUCTS) if name in text] == [kernel] * bool(kernel)
        found = np.asarray(compiled(*operands))
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", DTYPES)
def test_rolls(name: str) -> None:
    for shape, shifts, axes in [
        ((300, 100), (3, 5), (0, 1)),
        ((20, 33, 40), (3, -5, 7), (0, 1, 2)),
        ((20, 33, 41), (3, 7), (0, 2)),
        ((20, 33, 97), (19, 1), (0, 1)),
    ]:
        x = drawn_of(name, *shape)
        expected = np.roll(x, shifts, axes)
        assert_bits(lambda x, s=shifts, a=axes: jnp.roll(x, s, a), expected, x, kernel=BOXES)


@pytest.mark.parametrize("name", DTYPES)
def test_pads_alone(name: str) -> None:
    for shape, edges in [
        ((200, 100), [(1, 1), (1, 1)]),
        ((20, 33, 40), [(0, 0), (2, 0), (0, 3)]),
        ((1, 1), [(100, 20), (99, 101)]),
        ((2, 3, 5, 91), [(9, 0), (0, 1), (0, 0), (37, 41)]),
    ]:
        x = drawn_of(name, *shape)
        fill = x.dtype.type(1)
        expected = np.pad(x, edges, constant_values=fill)
        for function in (
            lambda x, fill, e=edges: lax.pad(x, fill, [(*edge, 0) for edge in e]),
            lambda x, fill, e=edges: jnp.pad(x, e, constant_values=1),
        ):
            assert_bits(function, expected, x, fill, kernel=BOXES)


def test_other_updates_are_left_to_the_compiler() -> None:
    x = drawn_of("float32", 200, 100)

    def shifted(x: Any, *places: tuple[int, int]) -> Any:
        """Two halves of an array, put where they are said to."""
        result = jnp.zeros_like(x)
        for start, place in zip((0, 100), places, strict=True):
            result = lax.dynamic_update_slice(result, x[start : start + 100], place)
        return result

    swapped = np.concatenate([x[100:], x[:100]])
    assert_bits(lambda x: shifted(x, (100, 0), (0, 0)), swapped, x, kernel=BOXES)
    overlapping = np.concatenate([np.zeros_like(x[:50]), x[100:], x[50:100]])
    assert_bits(lambda x: shifted(x, (100, 0), (50, 0)), overlapping, x, kernel="")
    outside = np.concatenate([x[100:], x[:100]])
    assert_bits(lambda x: shifted(x, (150, 0), (0, 0)), outside, x, kernel="")


@pytest.mark.parametrize("name", ["int32", "uint32", "int64", "float32", "float64"])
def test_kronecker_products(name: str) -> None:
    for left, right in [
        ((32, 32), (32, 32)),
        ((3, 5), (70, 64)),
        ((101, 3), (7, 11)),
        ((9, 130), (65, 3)),
        ((5, 40), (70, 45)),
    ]:
        x = np.random.default_rng(0).integers(-9, 9, left).astype(name)
        y = np.random.default_rng(1).integers(-9, 9, right).astype(name)
        expected = np.kron(x, y)
        assert_bits(lambda x, y: jnp.kron(x, y), expected, x, y, kernel=PRODUCTS)


def test_transformed() -> None:
    x = drawn_of("int32", 3, 100, 200)
    expected = np.roll(x, (1, 2), (1, 2))

    def rolled(x: Any) -> Any:
        return jnp.roll(x, (1, 2), (0, 1))

    assert_bits(dt.vmap(rolled), expected, x, kernel=BOXES)
    y = np.random.default_rng(0).normal(size=(100, 200)).astype("f")

    def weighted(x: Any) -> Any:
        return jnp.vdot(rolled(x), y)

    gradient = dt.jit(dt.grad(weighted))(y)
    np.testing.assert_array_equal(gradient, np.roll(y, (-1, -2), (0, 1)))
