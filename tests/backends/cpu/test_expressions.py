"""Expressions of elementwise functions by one kernel: what the other lowerings give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.runtime.arrays.held_values import held_value
from dovetail_cpu import runtime
from dovetail_cpu.kernel_library import library

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

KERNEL = "dovetail_expression"


@pytest.fixture
def several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_threads", [2])


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
        # Operations with several results, and with programs inside.
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


OF_FLOATS = {
    "abs": lambda x, y: jnp.abs(x),
    "negative": lambda x, y: -x,
    "rounded down": lambda x, y: jnp.floor(x) - y,
    "rounded up": lambda x, y: jnp.ceil(x) - y,
    "root": lambda x, y: jnp.sqrt(x),
    "quotient": lambda x, y: x / y,
    "half": lambda x, y: x / 2,
    "cube": lambda x, y: x**3,
    "NaN": lambda x, y: jnp.isnan(x),
}
OF_NUMBERS = {
    "sum and product": lambda x, y: x * y + y,
    "difference": lambda x, y: x - y,
    "square": lambda x, y: jnp.square(x),
    "extremes": lambda x, y: jnp.minimum(jnp.maximum(x, 1), y),
    "less": lambda x, y: ~(x < y),
    "less or equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater or equal": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
    "unequal": lambda x, y: x != y,
    "choice": lambda x, y: jnp.where(x > 0, x, y),
}
BITS = {
    "and": lambda x, y: x & y,
    "exclusive": lambda x, y: (x | y) ^ y,
    "not": lambda x, y: ~x,
}
FEW = [
    *((dtype, n) for dtype in ("float32", "float64") for n in (*OF_FLOATS, *OF_NUMBERS)),
    *((dtype, n) for dtype in ("int32", "int64", "uint32") for n in (*OF_NUMBERS, *BITS)),
    *(("bool", name) for name in (*BITS, "equal", "unequal")),
]


@pytest.mark.parametrize(("dtype", "name"), FEW)
def test_few_operations_of_many_elements_on_several_threads(
    dtype: str, name: str, drawn: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    function = {**OF_FLOATS, **OF_NUMBERS, **BITS}[name]
    with dt.enable_x64(True):
        shape = (601, 1000)
        x, y = drawn("float64", *shape) * 3, drawn("float64", *shape)[::-1] * 3
        if dtype.startswith("float"):
            for part in (x, x[500:], y[:, ::3]):  # in the first thread's part, and in the other's
                part.flat[:7] = np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 3e-310
        x, y = (z.astype("int64" if dtype == "uint32" else dtype).astype(dtype) for z in (x, y))
        for threads, rows, by_kernel in [(1, 601, False), (2, 65, False), (2, 601, True)]:
            monkeypatch.setattr(runtime, "_threads", [threads])
            compiled = dt.jit(lambda x, y: function(x, y))
            text = compiled.lower(x[:rows], y[:rows]).as_text()
            assert (KERNEL in text) == by_kernel
        with dt.cpu_kernels(False):
            expected = dt.jit(lambda x, y: function(x, y))(x, y)
        found = compiled(x, y)
        assert found.dtype == expected.dtype
        # XLA's loop rounds a product and a sum once.
        error = 1e-14 if dtype == "float64" else 1e-6
        np.testing.assert_allclose(found, expected, rtol=error, atol=error)
        np.testing.assert_array_equal(np.signbit(found * 1.0), np.signbit(expected * 1.0))


def test_no_inverse_is_flushed_to_zero(drawn: Callable[..., Any], several_threads: None) -> None:
    """That of 2**127 is subnormal; XLA's own loop multiplies by it."""
    x = drawn("float32", 100_000) * np.float32(2**120)
    compiled = dt.jit(lambda x: x / 2.0**127)
    assert KERNEL in compiled.lower(x).as_text()
    np.testing.assert_array_equal(compiled(x), x / np.float32(2**127))


def test_what_is_donated_is_written_over(drawn: Callable[..., Any], several_threads: None) -> None:
    x = drawn("float32", 1000, 1000)
    for donated, by_kernel in [((), True), ((0,), False), ((1,), False)]:
        lowered = dt.jit(lambda x, y: x + y, donate_argnums=donated).lower(x, x)
        assert (KERNEL in lowered.as_text()) == by_kernel
        assert lowered.compile().memory_analysis().temp_size_in_bytes < x.nbytes


#: Parts of one array, and rows and columns that repeat.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "neighbours": lambda x: x.ravel()[1:] - x.ravel()[:-1],
    "far neighbours": lambda x: x.ravel()[1000:] * x.ravel()[:-1000],
    "rows": lambda x: x[2:] - x[:-2],
    "every other row": lambda x: x[1::2] - x[:-1:2],
    "columns": lambda x: x[:, 1:] - x[:, :-1],
    "both": lambda x: x[1:, 1:] * x[:-1, :-1],
    "a row": lambda x: x + x[3],
    "a column": lambda x: x[:, 7:8] * x,
    "a row and a column": lambda x: x[:, 7:8] - x[3],
    "outer": lambda x: jnp.outer(x[0], x[1]),
    "a number": lambda x: x * x[5, 5],
    "two rows": lambda x: x * x[3] + x[4],
    "a row twice": lambda x: x * x[3] + x[3],
    "the first row": lambda x: x[0] - x,
    "greater than a row": lambda x: x > x[3],
    "a row or a column": lambda x: jnp.where(x > 0, x[3], x[:, 7:8]),
    "three dimensions": lambda x: x.reshape(5, -1, 1000) + x[:5, None, :],
    "the middle of three": lambda x: x.reshape(5, -1, 1000) * x[0, : x.shape[0] // 5, None],
    "one dimension more": lambda x: x[:, None] - x[0],
    "transposed blocks": lambda x: x.reshape(5, -1, 1000).transpose(1, 0, 2) + x[0],
    "called": lambda x: dt.jit(lambda y: y[1:])(x) - x[3],
    "a lower triangle": jnp.tril,
    "an upper triangle": lambda x: jnp.triu(x, -7),
    "another row": lambda x: jnp.where(lax.broadcasted_iota("int32", x.shape, 0) == 3, x[7], x),
    "counts of both kinds": lambda x: lax.iota("float32", 1000)[None] * x,
}
OF_DTYPES = [
    *(("float32", name) for name in VIEWS),
    *(
        (dtype, name)
        for dtype in ("float64", "int32", "bfloat16", "complex64")
        for name in ("neighbours", "both", "a row and a column")
    ),
]


@pytest.mark.parametrize(("dtype", "name"), OF_DTYPES)
def test_views(dtype: str, name: str, several_threads: None) -> None:
    x = np.random.default_rng(0).integers(-99, 99, (1005, 1000)).astype(dtype)
    if dtype.startswith("float"):
        x[3:5, 5:9] = x[700, 100:104] = np.nan, np.inf, -np.inf, -0.0
    with dt.enable_x64(True):
        assert_same_bits(lambda x: VIEWS[name](x), x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + x[::-1],
        lambda x: jnp.diff(x, 2, 0),
        lambda x: x[:, ::2] - x[:, 1::2],
        lambda x: x * x[:, 1:2].T,
        lambda x: x.T - x[0],
        lambda x: x.reshape(-1, 100) + x[0, :100],  # short rows
        lambda x: jnp.concatenate([x, x]) + x[0],
        lambda x: x[:20] + x[0],  # few
        lambda x: x - x.mean(0),
        lambda x: (x[1:] - x[:-1], x),
        lambda x: x[1:].reshape(-1)[1:] - x[:, 1:].reshape(-1)[: 999 * 1000 - 1],
    ],
)
def test_other_views(
    function: Callable[[Any], Any], several_threads: None, drawn: Callable[..., Any]
) -> None:
    x = drawn("float32", 1000, 1000)
    compiled = dt.jit(function)
    text = compiled.lower(x).as_text()
    assert KERNEL not in text or isinstance(compiled(x), tuple)
    with dt.cpu_kernels(False):
        expected = dt.jit(lambda x: function(x))(x)
    for found, wanted in zip(dt.tree.leaves(compiled(x)), dt.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_functions_of_views(drawn: Callable[..., Any]) -> None:
    x = drawn("float32", 70, 1000)
    compiled = dt.jit(lambda x: jnp.sin(x[1:] - x[:-1]) * x[0])
    assert KERNEL in compiled.lower(x).as_text()
    np.testing.assert_allclose(compiled(x), np.sin(x[1:] - x[:-1]) * x[0], rtol=1e-5, atol=1e-6)


def test_functions_of_counts(drawn: Callable[..., Any]) -> None:
    x = drawn("float32", 70, 1000)
    compiled = dt.jit(lambda x: jnp.sin(x) * jnp.cos(lax.broadcasted_iota("float32", x.shape, 1)))
    assert KERNEL in compiled.lower(x).as_text()
    np.testing.assert_allclose(compiled(x), np.sin(x) * np.cos(np.arange(1000)), atol=1e-5)


def test_arguments_that_are_not_read(drawn: Callable[..., Any], several_threads: None) -> None:
    x, key = drawn("float32", 300, 1000), dt.random.key(0)
    compiled = dt.jit(lambda key, x, empty, row: x + row, keep_unused=True)
    args = key, x, np.zeros((0, 3)), x[0]
    assert KERNEL in compiled.lower(*args).as_text()
    np.testing.assert_array_equal(compiled(*args), x + x[0])


#: Operations that are a kernel alone, where several threads share many elements.
NARROW = {
    "add": lax.add,
    "div": lax.div,
    "max": lax.max,
    "min": lax.min,
    "mul": lax.mul,
    "sub": lax.sub,
}
MANY = 2**16 + 4465


def assert_same_bits(function: Callable[..., Any], *args: Any) -> None:
    """What a kernel computes is what XLA does; NaN may have other bits."""
    compiled = dt.jit(lambda *xs: function(*xs))
    assert KERNEL in compiled.lower(*args).as_text()
    with dt.cpu_kernels(False):
        expected = np.asarray(dt.jit(lambda *xs: function(*xs))(*args))
    found = np.asarray(compiled(*args))
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    single = {np.dtype("complex64"): np.dtype("float32")}.get(found.dtype, found.dtype)
    found, expected = found.view(single), expected.view(single)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    numbers = ~np.isnan(expected)
    bits = np.dtype(f"u{single.itemsize}")
    np.testing.assert_array_equal(found.view(bits)[numbers], expected.view(bits)[numbers])


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_alone(name: str, dtype: Any, several_threads: None) -> None:
    """Of all of them, each with another one or with one for all; XLA may keep what is subnormal."""
    function = NARROW[name]
    x = np.resize(np.arange(2**16, dtype=np.uint16), MANY).view(dtype)
    if name in ("max", "min"):
        x[np.abs(x.astype(np.float32)) < np.finfo(np.float32).tiny] = 0
    y = np.random.default_rng(0).permutation(x)
    x[:6] = np.array([-0.0, 0, -np.inf, np.inf, 1, np.nan], dtype)
    y[:6] = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1], dtype)
    assert_same_bits(function, x, y)
    assert_same_bits(lambda x: function(lax.full_like(x, 1.5), x), x)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_narrow_floats_are_rounded_once(dtype: Any) -> None:
    """A program may round the result of several operations alone: so only one needs none."""
    x = np.arange(2**16, dtype=np.uint16).view(dtype)
    y = np.random.default_rng(0).permutation(x)
    for name, function in NARROW.items():
        for compiled in (dt.jit(function), dt.jit(lambda x, y, f=function: f(x, y) * x - y)):
            with dt.direct_calls("none"):
                expected = np.asarray(compiled(x, y)).astype(np.float32)
            found = np.asarray(compiled(x, y)).astype(np.float32)
            np.testing.assert_array_equal(found, expected, err_msg=name)
    assert held_value(jnp.asarray(x[:9]) + jnp.asarray(y[:9])) is not None
    assert held_value(dt.jit(lambda x, y: x * y + x)(x[:9], y[:9])) is None


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_conversions_alone(dtype: Any, several_threads: None) -> None:
    x = np.resize(np.arange(2**16, dtype=np.uint16), MANY).view(dtype)
    assert_same_bits(lambda x: lax.convert_element_type(x, np.float32), x)
    patterns = np.arange(MANY, dtype=np.uint32) * np.uint32(61441)
    normal = (patterns & 0x7F800000 != 0) | (patterns & 0x7FFFFFFF == 0)
    singles = np.where(normal, patterns, 0).astype(np.uint32).view(np.float32)
    assert_same_bits(lambda x: lax.convert_element_type(x, dtype), singles)


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_complex_numbers_alone(name: str, several_threads: None) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, MANY, 2)).astype(np.float32).view(np.complex64)[..., 0]
    special = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1, 1e-40, -2.5])
    parts = np.stack(np.meshgrid(special, special, special, special), -1).reshape(-1, 4)
    x[: len(parts)], y[: len(parts)] = parts.view(np.complex64).T
    compiled = dt.jit(NARROW[name])
    assert KERNEL in compiled.lower(x, y).as_text()
    with dt.cpu_kernels(False):
        expected = np.asarray(dt.jit(lambda x, y: NARROW[name](x, y))(x, y))
    np.testing.assert_allclose(compiled(x, y), expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reciprocal_roots_alone(dtype: str, several_threads: None) -> None:
    with dt.enable_x64(True):
        x = np.geomspace(1.2e-38, 3.4e38, MANY).astype(dtype)
        x[:5] = 0, -0.0, np.inf, -1, np.nan
        compiled = dt.jit(lax.rsqrt)
        assert KERNEL in compiled.lower(x).as_text()
        with np.errstate(all="ignore"):
            exact = 1 / np.sqrt(x.astype(np.longdouble))
        found = np.asarray(compiled(x))
        np.testing.assert_array_equal(found[:5], exact[:5])
        units = np.abs(found[5:] - exact[5:]) / np.spacing(found[5:])
        assert units.max() < 1.5


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.astype(np.float16) * x.astype(np.float16),
        lambda x: lax.convert_element_type(x, ml_dtypes.bfloat16) + 1,
        lambda x: lax.convert_element_type(x, np.int32),
        lambda x: lax.convert_element_type(x[: MANY // 2], np.float16),
    ],
)
def test_other_programs_of_many(
    function: Callable[[Any], Any], several_threads: None, drawn: Callable[..., Any]
) -> None:
    assert KERNEL not in dt.jit(function).lower(drawn("float32", MANY)).as_text()
