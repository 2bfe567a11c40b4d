"""Expressions of elementwise functions by one kernel: what the other lowerings give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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

KERNEL = "dovetail_expression"


def haversine(a: Any, b: Any) -> Any:
    between = jnp.sin((b - a) / 2) ** 2 + jnp.cos(a) * jnp.cos(b) * jnp.sin(b / 4) ** 2
    return 2 * jnp.arctan2(jnp.sqrt(between), jnp.sqrt(1 - between))


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "haversine": haversine,
    "powers": lambda x, y: jnp.sin(x) ** 3 + jnp.cos(y) ** 4,
    "choice": lambda x, y: jnp.where((x > 0) & ~(y < 1), jnp.sin(x), jnp.cos(y) * 3),
    "nested choice": lambda x, y: jnp.where((x == 0) ^ (y != y), jnp.sin(x), y) * jnp.cos(x),
    "limits": lambda x, y: jnp.maximum(jnp.sin(x), jnp.minimum(y, 0.5)),
    "quotient": lambda x, y: jnp.cos(x / -4) / jnp.sin(y),
    "result of a function": lambda x, y: jnp.cos(jnp.abs(x) * y - 1),
    "called": lambda x, y: dt.jit(lambda z: jnp.sin(z) + z)(x * 2) - y,
    "derivative of its own": lambda x, y: jnp.sin(dt.nn.relu(x)) + jnp.cos(y),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, dtype: str, drawn: Callable[..., Any]) -> None:
    function = FUNCTIONS[name]
    with dt.enable_x64(True):
        for shape in [(4096,), (5, 1021), (50_001,), (1100, 1000)]:
            x, y = drawn(dtype, *shape), drawn(dtype, *shape)[::-1].copy()
            x.flat[:5] = np.nan, np.inf, -np.inf, -0.0, 0.0
            if "choice" not in name:
                x.flat[5] = 1e-40
            compiled = dt.jit(function)
            text = compiled.lower(x, y).as_text()
            assert KERNEL in text or dtype == "float64" or "derivative" in name
            with dt.cpu_kernels(False):
                expected = dt.jit(lambda x, y: function(x, y))(x, y)
            found = compiled(x, y)
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
            assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


def test_digits_are_dropped(drawn: Callable[..., Any]) -> None:
    x = drawn("float32", 5000)
    x[:4] = np.nan, np.inf, -np.inf, 3.4e38
    for digits in (1, 7, 22, 23):
        compiled = dt.jit(lambda x, n=digits: lax.reduce_precision(jnp.sin(x), 8, n))
        assert KERNEL in compiled.lower(x).as_text()
        sines = dt.jit(jnp.sin)(x)
        expected = dt.jit(lambda x, n=digits: lax.reduce_precision(x, 8, n))(sines)
        np.testing.assert_array_equal(compiled(x), expected)


def test_one_number_for_all(drawn: Callable[..., Any]) -> None:
    x = drawn("float32", 5000)
    compiled = dt.jit(lambda x, factor: jnp.sin(x) * factor)
    assert KERNEL in compiled.lower(x, np.float32(3)).as_text()
    np.testing.assert_allclose(compiled(x, np.float32(3)), 3 * np.sin(x), rtol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.sin(x),  # has a kernel of its own
        lambda x: x * 3 + 1,  # XLA fuses it
        lambda x: jnp.sin(x) + jnp.cos(x[::-1]),
        lambda x: (jnp.sin(x) + 1, x),
        lambda x: jnp.sin(x) + x.sum(),
        lambda x: (((((x * x + 1) * x + 1) * x + 1) * x + 1) * x + 1) * x + jnp.sin(x),
        # Operations without operands, with several results, and with programs inside.
        lambda x: jnp.sin(x) * jnp.cos(lax.iota("float32", 5000)),
        lambda x: jnp.sin(x) * jnp.cos(lax.sort((x, -x), num_keys=1)[1]),
        lambda x: jnp.sin(x) * jnp.cos(lax.scan(lambda c, a: (c + a, c), 0.0, x)[1]),
        lambda x: jnp.sin(x) * jnp.cos(lax.cond(x[0] > 0, lambda v: v, lambda v: -v, x)),
        lambda x: jnp.sin(x) * jnp.cos(dt.random.normal(dt.random.key(0), x.shape)),
        lambda x: jnp.abs(jnp.sin(jnp.linalg.qr(x.reshape(50, 100))[1])),
    ],
)
def test_other_programs(function: Callable[[Any], Any], drawn: Callable[..., Any]) -> None:
    x = drawn("float32", 5000)
    compiled = dt.jit(function)
    assert KERNEL not in compiled.lower(x).as_text()
    with dt.cpu_kernels(False):
        expected = dt.jit(lambda x: function(x))(x)
    for found, wanted in zip(dt.tree.leaves(compiled(x)), dt.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)
