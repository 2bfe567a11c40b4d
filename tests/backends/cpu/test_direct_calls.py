"""Eager calls of small arrays that need no program."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.runtime.arrays.held_values import held_value
from dovetail._core.runtime.calls import direct_calls
from dovetail._core.runtime.devices.host_functions import host_functions
from dovetail_cpu import runtime
from dovetail_cpu.kernel_library import has_long_vectors

pytestmark = pytest.mark.skipif(not host_functions(), reason="every call here needs a program")

SPECIAL = np.float32(
    [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e38, 3.5, -2.5, 0.5, 1e-30]
)
INTEGERS = np.array([0, 1, -1, 7, 2**31 - 1, -(2**31)], np.int32)
TRUTHS = np.array([True, False])
VALUES = {"float32": SPECIAL, "int32": INTEGERS, "bool": TRUTHS}

ARITHMETIC = ("add", "subtract", "multiply", "maximum", "minimum")
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
BINARY = {
    "float32": (*ARITHMETIC, *COMPARISONS, "divide"),
    "int32": (*ARITHMETIC, *COMPARISONS, *BITWISE),
    "bool": ("equal", "not_equal", *BITWISE, "logical_and", "logical_or", "logical_xor"),
}
UNARY = {
    "float32": (
        *("abs", "negative", "sqrt", "floor", "ceil", "exp", "log", "sin", "cos", "tan"),
        *("tanh", "expm1", "log1p"),
    ),
    "int32": ("abs", "negative", "sign", "invert"),
    "bool": ("logical_not", "invert"),
}
#: Their rounding differs from a program's.
ROUNDED = {"exp", "log", "sin", "cos", "tan", "tanh", "expm1", "log1p", "logistic", "rsqrt"}


def directly(function: Callable[..., Any], *args: Any) -> np.ndarray[Any, Any]:
    """The value of a call that makes no program."""
    result = function(*args)
    assert held_value(result) is not None, "a program was run"
    return np.asarray(result)


def assert_same(name: str, found: Any, expected: Any) -> None:
    """The same, with the same signs of zeros; up to two units in the last place where rounded.

    Denormal results may be zeros.
    """
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if name in ROUNDED:
        np.testing.assert_allclose(found, expected, rtol=2.4e-7, atol=np.finfo(np.float32).tiny)
    else:
        np.testing.assert_array_equal(found, expected)
    if found.dtype == np.float32:
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize(("dtype", "name"), [(d, n) for d, names in UNARY.items() for n in names])
def test_functions_of_one_array_are_what_programs_are(dtype: str, name: str) -> None:
    x, function = jnp.asarray(VALUES[dtype]), getattr(jnp, name)
    assert_same(name, directly(function, x), np.asarray(dt.jit(function)(x)))


@pytest.mark.parametrize("name", ["logistic", "rsqrt"])
def test_primitives_are_what_programs_are(name: str) -> None:
    x, function = jnp.asarray(SPECIAL), getattr(lax, name)
    assert_same(name, directly(function, x), np.asarray(dt.jit(function)(x)))


@pytest.mark.parametrize(("dtype", "name"), [(d, n) for d, names in BINARY.items() for n in names])
def test_functions_of_two_arrays_are_what_programs_are(dtype: str, name: str) -> None:
    """Of all pairs of values; and of each value with an array, on both sides."""
    values, function = VALUES[dtype], getattr(jnp, name)
    x, y = (jnp.asarray(np.ascontiguousarray(v)) for v in np.meshgrid(values, values))
    program = dt.jit(function)
    assert_same(name, directly(function, x, y), np.asarray(program(x, y)))
    for number in map(jnp.asarray, values):
        row = jnp.asarray(values)
        assert_same(name, directly(function, number, row), np.asarray(program(number, row)))
        # Programs divide by a scalar by its reciprocal, which may be denormal.
        other = jnp.full(row.shape, number) if name == "divide" else number
        assert_same(name, directly(function, row, number), np.asarray(program(row, other)))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_complex_numbers(name: str, dtype: str) -> None:
    parts = np.array([0, -0.0, 1, -2.5, np.inf, np.nan, 0.1])
    pairs = np.stack(np.meshgrid(parts, parts), -1)
    values = pairs.view(np.complex128).ravel().astype(dtype)
    with dt.enable_x64(True):
        x, y = (jnp.asarray(np.ascontiguousarray(v)) for v in np.meshgrid(values, values))
        function = getattr(jnp, name)
        expected = np.asarray(dt.jit(function)(x, y))
        np.testing.assert_allclose(directly(function, x, y), expected, rtol=1e-6)
        # A Python number becomes complex, which a program does.
        np.testing.assert_allclose(function(x, 2), dt.jit(function)(x, 2), rtol=1e-6)


#: What absolute values of complex numbers must not lose, or make infinite.
PARTS = np.float32([0, -0.0, 1, -2.5, np.inf, -np.inf, np.nan, 3e38, 1e-37, 2e-30, 5e20])


@pytest.mark.parametrize("size", [1, 15, 16, 17, 1000, 2**16 + 3])
def test_absolute_values_of_complex_numbers(size: int) -> None:
    """Of each alone, and of others beside them: the same bits."""
    special = np.stack(np.meshgrid(PARTS, PARTS), -1).view(np.complex64).ravel()
    normal = np.random.default_rng(size).normal(size=(2 * size)).astype("float32").view("complex64")
    for values in (normal, np.resize(special, size), np.where(normal.real > 0, normal, special[5])):
        found = np.asarray(jnp.abs(jnp.asarray(values)))
        exact = np.hypot(values.real.astype(float), values.imag)
        with np.errstate(over="ignore"):
            wanted = exact.astype("float32")
        ends = np.isnan(wanted) | np.isinf(wanted) | (wanted == 0)
        np.testing.assert_array_equal(found[ends], wanted[ends])
        units = np.abs(found[~ends] - exact[~ends]) / np.spacing(wanted[~ends])
        # The latter is XLA's: 1.83 for 0.911956 + 0.002028076j, with or without kernels.
        assert units.max(initial=0) < (1.5 if has_long_vectors() else 2)
        parts = [jnp.abs(jnp.asarray(values[i : i + 16])) for i in range(3, size, 4099)]
        for part, i in zip(parts, range(3, size, 4099), strict=True):
            np.testing.assert_array_equal(part, found[i : i + 16])


def test_choices() -> None:
    for values in VALUES.values():
        x, y = (jnp.asarray(np.ascontiguousarray(v)) for v in np.meshgrid(values, values))
        mask = jnp.asarray(np.arange(x.size).reshape(x.shape) % 3 == 0)
        assert_same("", directly(jnp.where, mask, x, y), np.asarray(dt.jit(jnp.where)(mask, x, y)))


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "reflected -": lambda x, y: y - x,
    "*": lambda x, y: x * y,
    ">": lambda x, y: x > y,
    "==": lambda x, y: x == y,
}


@pytest.mark.parametrize("number", [2, -3, 0, 2.5, 1e-40, float("inf")])
@pytest.mark.parametrize("symbol", OPERATORS)
def test_python_numbers(symbol: str, number: float) -> None:
    operator = OPERATORS[symbol]
    for values in [SPECIAL] if isinstance(number, float) else [SPECIAL, INTEGERS]:
        x = jnp.asarray(values)
        expected = np.asarray(dt.jit(operator)(x, number))
        assert_same("", directly(operator, x, number), expected)
        assert_same("", directly(operator, x * 1, number), expected)  # now known to C


@pytest.mark.parametrize("number", [2**31, -(2**40), 10**400])
def test_integers_that_do_not_fit_are_refused_as_before(number: int) -> None:
    x = jnp.asarray(INTEGERS) + 1
    x + 1
    with pytest.raises(OverflowError):
        x + number


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 4), (2, 0, 3), (1,) * 8, (4096,)])
def test_shapes(shape: tuple[int, ...]) -> None:
    value = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x = jnp.asarray(value) + 0
    for _ in range(2):
        for found, expected in [
            (x + x, value + value),
            (x * 2, value * 2),
            (1 - x, 1 - value),
            (x > 1.5, value > 1.5),
            (x + jnp.asarray(np.float32(3)), value + 3),
        ]:
            assert found.shape == shape
            np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("shapes", [((3, 4), (4,)), ((3, 1), (1, 4)), ((1,), (3,)), ((9,) * 2, ())])
def test_operands_that_broadcast(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    one, other = (np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes)
    jnp.asarray(one) + jnp.asarray(one)  # C knows operands of one shape
    for _ in range(2):
        found = jnp.asarray(one) + jnp.asarray(other)
        np.testing.assert_array_equal(np.asarray(found), one + other)


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((2, 3), (2,))])
def test_operands_that_do_not_fit_have_the_usual_error(shapes: Any) -> None:
    one, other = (jnp.ones(shape) * 2 for shape in shapes)
    one + one
    with pytest.raises((TypeError, ValueError), match="broadcast"):
        one + other


def test_dtypes_that_differ_are_promoted() -> None:
    x, n, b = jnp.asarray(SPECIAL[:2]) * 1, jnp.asarray(INTEGERS[:2]) * 1, jnp.asarray(TRUTHS)
    for one, other in [(x, n), (n, x), (x, b), (b, n), (b, b)]:
        expected = dt.jit(lambda v, w: v + w)(one, other)
        found = one + other
        assert (found.dtype, found.weak_type) == (expected.dtype, expected.weak_type)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 4), (2, 0, 3), (512,)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8", "uint32", "complex64"])
def test_numbers_that_are_repeated(shape: tuple[int, ...], dtype: str) -> None:
    for number in (0, 1, 100):
        value = np.asarray(number, dtype)[()]
        found = directly(lax.broadcast_in_dim, value, shape, ())
        np.testing.assert_array_equal(found, np.full(shape, value))
        assert found.dtype == value.dtype


def test_special_numbers_that_are_repeated() -> None:
    for value in SPECIAL:
        found = directly(lax.broadcast_in_dim, value, (3,), ())
        assert_same("broadcast", found, np.full(3, value))


def test_repeated_numbers_that_need_a_program() -> None:
    one = np.float32(1)
    large = lax.broadcast_in_dim(one, (2**20 + 1,), ())
    assert held_value(large) is None
    assert large.sum() == 2**20 + 1
    assert lax.broadcast_in_dim(1.0, (3,), ()).weak_type
    with dt.debug_nans(True), pytest.raises(FloatingPointError):
        lax.broadcast_in_dim(np.float32("nan"), (3,), ()) * one


def test_tanh_is_the_identity_near_zero() -> None:
    x = np.float32([1e-45, -1e-40, 1e-30, -1e-5, 2.0**-14, 0, -0.0])
    found = directly(jnp.tanh, jnp.asarray(x))
    np.testing.assert_array_equal(found.view(np.int32), x.view(np.int32))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_arrays_may_be_larger_where_programs_have_few_threads(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_calls, "thread_count", lambda: threads)
    direct_calls.limits.cache_clear()
    try:
        for size, needs_program in ((2**17, False), (10**6, threads > 2), (2**20 + 1, True)):
            x = np.linspace(-3, 3, size, dtype=np.float32)
            placed = jnp.asarray(x)
            with dt.direct_calls("all"):
                for function, expected in [
                    (lambda a: a / 4, x / 4),
                    (lambda a: jnp.where(a > 0, a, -a), np.abs(x)),
                    (lambda a: a > 0.5, x > 0.5),
                    (jnp.floor, np.floor(x)),
                    (jnp.max, x.max()),
                ]:
                    compiled = dt.jit(lambda a, function=function: function(a))
                    for _ in range(2):
                        np.testing.assert_array_equal(compiled(placed), expected)
                found = dt.jit(lambda a: a - 1)(placed)
            assert (held_value(found) is None) == needs_program
    finally:
        direct_calls.limits.cache_clear()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_quick_functions_of_any_size_need_no_program_of_few_threads(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow ones may take as long as some programs take to start."""
    monkeypatch.setattr(direct_calls, "thread_count", lambda: threads)
    direct_calls.limits.cache_clear()
    try:
        x = np.linspace(-3, 3, 10**6, dtype=np.float32)
        with dt.direct_calls("all"):
            for function, is_quick in ((jnp.exp, True), (lax.erf_inv, False)):
                program = dt.jit(lambda a, function=function: function(a))
                found = program(jnp.asarray(x))
                assert (held_value(found) is not None) == (is_quick and threads < 3)
                if is_quick:
                    np.testing.assert_allclose(found, np.exp(x), 2e-7)
    finally:
        direct_calls.limits.cache_clear()


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("shape", [(4096,), (70_001,), (3, 5003)])
def test_long_rows_are_reduced_to_the_bits_of_programs(shape: tuple[int, ...], dtype: str) -> None:
    generator = np.random.default_rng(0)
    x, y = (generator.normal(0, 1 if dtype == "float32" else 2**20, shape) for _ in range(2))
    x, y = x.astype(dtype), y.astype(dtype)
    with_nan = np.where(x == x.max(), np.float32(np.nan), x) if dtype == "float32" else x
    for name in ("sum", "prod", "argmax", "argmin"):
        function = getattr(jnp, name)
        for a in (x, with_nan, -np.abs(x)):
            found = directly(lambda a, function=function: function(a, -1), jnp.asarray(a))
            with dt.direct_calls("none"):
                expected = function(jnp.asarray(a), -1)
            np.testing.assert_array_equal(found, expected)
    if dtype == "float32" and x.ndim == 1:
        compiled = dt.jit(jnp.dot)
        with dt.direct_calls("none"):
            expected = compiled(x, y)
        np.testing.assert_allclose(jnp.dot(jnp.asarray(x), jnp.asarray(y)), expected, rtol=0)


@pytest.mark.parametrize("shape", [(1,), (300,), (300_001,), (3, 5000), (500, 3)])
def test_places_of_truths(shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    for place in (0, size // 2, size - 1, None):
        x = np.zeros(shape, bool)
        if place is not None:
            x.flat[place] = True
        for truths in (x, ~x):
            for name in ("any", "all", "argmax", "argmin"):
                for axis in range(len(shape)):
                    function = getattr(jnp, name)
                    found = directly(
                        lambda a, function=function, axis=axis: function(a, axis),
                        jnp.asarray(truths),
                    )
                    np.testing.assert_array_equal(found, getattr(np, name)(truths, axis))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    ("batch", "rows", "columns", "size", "directly"),
    [
        ((), 32, 64, 70, (1, 2)),
        ((), 15, 33, 17, (1, 2)),
        ((), 32, 512, 784, (1,)),
        ((), 130, 129, 140, (1,)),
        ((2, 3), 64, 65, 150, (1,)),
        ((), 256, 500, 256, ()),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_products_of_matrices(
    batch: tuple[int, ...],
    rows: int,
    columns: int,
    size: int,
    directly: tuple[int, ...],
    dtype: str,
    threads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "num_threads", lambda: threads)
    generator = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        x = generator.normal(size=(2, *batch, *shape))
        return (x[0] + 1j * x[1] if dtype.startswith("c") else x[0]).astype(dtype)

    with dt.enable_x64(True), dt.direct_calls("all"):
        for x, y, axes in (
            (drawn(rows, size), drawn(size, columns), (-1, -2)),
            (drawn(size, rows), drawn(columns, size), (-2, -1)),
        ):
            over = [(x.ndim + axes[0],), (y.ndim + axes[1],)]
            dimensions = (tuple(over), (tuple(range(len(batch))),) * 2)
            program = dt.jit(lambda x, y, d=dimensions: lax.dot_general(x, y, d))
            placed = jnp.asarray(x), jnp.asarray(y)
            for _ in range(2):
                found = program(*placed)
            assert (held_value(found) is not None) == (threads in directly)
            left = x if axes[0] == -1 else x.swapaxes(-1, -2)
            expected = left @ (y if axes[1] == -2 else y.swapaxes(-1, -2))
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=0, atol=size * np.finfo(dtype).eps * 4)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_larger_arrays_are_reduced_where_threads_are_few(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "num_threads", lambda: threads)
    for size, most in ((10**6, 2), (2**19, 3)):
        x = np.linspace(-3, 3, size, dtype=np.float32)
        for function in (jnp.sum, jnp.argmax, jnp.any, jnp.argmin):
            a = x > 0 if function in (jnp.any, jnp.argmin) else x
            compiled, placed = dt.jit(lambda a, function=function: function(a)), jnp.asarray(a)
            with dt.direct_calls("all"):
                for _ in range(2):
                    found = compiled(placed)
            assert (held_value(found) is not None) == (threads <= most)
            np.testing.assert_allclose(found, getattr(np, function.__name__)(a), atol=1)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_many_short_signals_are_transformed_where_threads_are_few(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "num_threads", lambda: threads)
    generator = np.random.default_rng(0)
    for name, shape, is_short in [
        ("rfft", (500, 1000), True),
        ("fft2", (3, 200, 128), True),
        ("irfft", (70, 513), True),
        ("fft", (2**13, 5), True),
        ("fft", (2**15 + 1,), False),
        ("ifft", (10, 5000), False),
    ]:
        x = generator.normal(size=shape).astype("float32" if name == "rfft" else "complex64")
        compiled = dt.jit(lambda x, name=name: getattr(jnp.fft, name)(x))
        with dt.direct_calls("all"):
            for _ in range(2):
                found = compiled(jnp.asarray(x))
        assert (held_value(found) is not None) == (is_short and threads < 3), (name, shape)
        with dt.direct_calls("none"):
            expected = np.asarray(compiled(jnp.asarray(x)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("number", [2, -0.5, np.inf, np.nan, -0.0])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max"])
def test_numbers_of_a_dtype(name: str, number: float) -> None:
    function, value = getattr(lax, name), np.float32(number)
    program = dt.jit(function)
    for _ in range(2):
        found = directly(function, jnp.asarray(SPECIAL), value)
        assert_same(name, found, np.asarray(program(SPECIAL, value)))
        found = directly(function, value, jnp.asarray(SPECIAL))
        assert_same(name, found, np.asarray(program(value, SPECIAL)))
    placed = jnp.asarray(SPECIAL)
    assert placed._buffer is not None
    assert_same(name, np.asarray(function(placed, value)), np.asarray(program(SPECIAL, value)))


def test_gradients() -> None:
    for function in (
        lambda v: jnp.sum(jnp.sin(v) ** 2),
        lambda v: jnp.sum(v * np.float32(3)),
    ):
        x = np.float32([0.5, -1, 2])
        expected = np.asarray(dt.jit(dt.grad(function))(x))
        found = directly(dt.grad(function), jnp.asarray(x))
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_no_shape_is_compiled_for() -> None:
    jnp.sin(jnp.ones(3)), jnp.ones(3) * 2 + 1
    with dt.no_recompiles():
        for size in range(1, 200):
            x = jnp.sin(jnp.ones(size)) * 2 + 1
            assert x.shape == (size,)


def test_a_first_result_needs_neither_a_client_nor_a_compiler() -> None:
    code = (
        "import sys\n"
        "import dovetail.numpy as jnp\n"
        "from dovetail._core.runtime.devices import clients\n"
        "print(jnp.ones(3) + 1, clients.started(), 'jaxlib.mlir' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[2. 2. 2.] [] False\n"


def test_the_usual_options_have_their_way_after_many_others() -> None:
    x = jnp.ones(3) * 2
    for precision in ("default", "high", "highest", "bfloat16", "float32"):
        for mode in ("allow", "raise"):
            with dt.default_matmul_precision(precision), dt.index_mode(mode):
                for number in (2, 2.0):
                    directly(jnp.multiply, x, number)
                    directly(lambda v, number=number: v * number, x)
    directly(lambda v: v * 2, x)
    directly(lambda v: v * v, x)


# -------------------------------------------------------------------------------------- options


def test_traces_see_the_operations() -> None:
    """Values of the host are constants of what is traced."""
    x = jnp.ones(3) * 2
    jaxpr = dt.make_jaxpr(lambda y: y + (x * 3))(1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["mul", "add"]
    assert dt.grad(lambda y: jnp.sum(x * y))(3.0) == 6
    np.testing.assert_array_equal(dt.vmap(lambda y: x[0] * y)(x), [4, 4, 4])


def test_options_that_programs_see_to_are_kept() -> None:
    x = jnp.ones(3) * 0
    x / x  # C knows it
    with dt.debug_nans(True), pytest.raises(FloatingPointError):
        x / x
    with dt.debug_infs(True), pytest.raises(FloatingPointError):
        1.0 / x
    with dt.transfer_guard("disallow"), pytest.raises(dt.errors.JaxRuntimeError):
        jnp.ones(5)
    with dt.transfer_guard("disallow"):
        assert dt.jit(lambda v: v + 1)(x).shape == (3,)
    with dt.enable_x64(True):
        assert (jnp.ones(3) * 2).dtype == np.float64
        assert (x * np.float64(2)).dtype == np.float64
    with dt.cpu_kernels(False):
        assert held_value(x * 2) is None
    with dt.numpy_dtype_promotion("strict"), pytest.raises((TypeError, ValueError), match="strict"):
        x + jnp.ones(3, "int32")


def test_events_tell_of_what_runs_while_somebody_listens() -> None:
    x = jnp.ones(7) * 2
    with dt.events() as seen:
        x + 1
    assert any(event.kind == "eager" for event in seen)


@pytest.mark.skipif(len(dt.devices()) < 2, reason="there is one device")
def test_other_devices_have_programs() -> None:
    x = dt.device_put(np.ones(3, np.float32), dt.devices()[1])
    assert (x * 2).devices() == {dt.devices()[1]}
    with dt.default_device(dt.devices()[1]):
        assert (jnp.ones(3) * 2).devices() == {dt.devices()[1]}


def test_arrays_stay_where_they_were_made() -> None:
    x = jnp.ones(3) * 2
    with dt.default_device(dt.devices()[-1]):
        assert x.devices() == {dt.devices()[0]}


# --------------------------------------------------------------------------------------- arrays


@pytest.fixture
def held() -> dt.Array:
    array = jnp.asarray(np.float32([[1, 2, 3], [4, 5, 6]])) * 2
    assert held_value(array) is not None
    return array


VALUE = np.float32([[2, 4, 6], [8, 10, 12]])

USES: dict[str, Callable[[Any], Any]] = {
    "numpy": np.asarray,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "tolist": lambda x: x.tolist(),
    "rows": lambda x: np.stack([np.asarray(row) for row in x]),
    "jit": dt.jit(lambda x: x + 0),
    "in containers": lambda x: dt.jit(lambda tree: tree["a"][0][1])({"a": [(0, x)]}),
    "kept": lambda x: dt.tree.map(lambda v: v, {"x": x})["x"],
    "dlpack": lambda x: np.from_dlpack(x),
    "device_put": lambda x: dt.device_put(x, dt.devices()[0]),
    "shard": lambda x: x.addressable_shards[0].data,
    "ahead of time": lambda x: dt.jit(lambda v: v).lower(x).compile()(x),
    "scan": lambda x: dt.lax.scan(lambda c, row: (c, row), 0, x)[1],
    "reference": lambda x: dt.new_ref(x)[...],
    "flattened": lambda x: dt.tree.leaves([x])[0],
    "callback": lambda x: dt.pure_callback(lambda v: np.asarray(v), x, x),
}


@pytest.mark.parametrize("use", USES)
def test_uses_of_arrays_that_hold_values(held: dt.Array, use: str) -> None:
    np.testing.assert_array_equal(np.asarray(USES[use](held)), VALUE)
    np.testing.assert_array_equal(np.asarray(held), VALUE)


def test_what_is_known_of_an_array_needs_no_buffer(held: dt.Array) -> None:
    assert (held.shape, held.dtype, held.ndim, held.size) == ((2, 3), np.float32, 2, 6)
    assert (held.nbytes, held.weak_type, held.committed) == (24, False, False)
    assert (held.is_ready(), held.is_deleted()) == (True, False)
    assert held.block_until_ready() is held
    assert dt.block_until_ready([held])[0] is held
    dt.copy_to_host_async(held)
    assert repr(held).startswith("Array([[ 2.,  4.,  6.]")
    assert held_value(held) is not None


def test_values_are_not_written_to(held: dt.Array) -> None:
    value = np.asarray(held)
    with pytest.raises(ValueError, match="read-only"):
        value[0, 0] = 1
    given = np.ones(3, np.float32)
    array = jnp.asarray(given)
    given[:] = 7
    np.testing.assert_array_equal(np.asarray(array), [1, 1, 1])


def test_deleted_and_donated(held: dt.Array) -> None:
    other = held * 1
    held.delete()
    assert (held.is_deleted(), held.shape) == (True, (2, 3))
    with pytest.raises(dt.errors.DeletedArrayError):
        held + 1
    dt.jit(lambda x: x + 1, donate_argnums=0)(other)
    with pytest.raises(dt.errors.DeletedArrayError, match="donated"):
        other + 1


def test_live_arrays_are_all_there(held: dt.Array) -> None:
    sizes = [x.shape for x in dt.live_arrays()]
    marked = jnp.ones((1, 2, 3, 1, 2)) * 2
    assert [x.shape for x in dt.live_arrays()].count(marked.shape) == (
        sizes.count(marked.shape) + 1
    )


def test_reports_of_memory_have_the_line_that_made_a_value() -> None:
    def make() -> dt.Array:
        return jnp.ones((7, 1, 7)) * 2

    array = make()
    dt.jit(lambda x: x + 1)(array)  # which makes a buffer of it
    lines = {line.largest: line.source for line in dt.memory().lines}
    assert "make)" in lines[("f32[7,1,7]",)]
    assert "make" in str(array.traceback)


def test_arrays_are_freed() -> None:
    array = jnp.ones(3) * 2
    gone = weakref.ref(array)
    value = weakref.ref(held_value(array))  # type: ignore[arg-type]
    del array
    gc.collect()
    assert (gone(), value()) == (None, None)


def _kept(size: int = 500) -> tuple[dt.Array, np.ndarray[Any, Any]]:
    """An array whose value is of those that are kept, and what it has to be."""
    array = jnp.arange(float(size)) * 2
    assert 1024 <= held_value(array).nbytes < 16384
    return array, np.arange(size, dtype=np.float32) * 2


VIEWERS: dict[str, Callable[[dt.Array], Any]] = {
    "the array": lambda x: x,
    "a view": np.asarray,
    "a part of a view": lambda x: np.asarray(x)[::-1],
    "a buffer": lambda x: (x.unsafe_buffer_pointer(), x)[1],
    "another array": lambda x: dt.jit(lambda x: x)(x),
    "an array through DLPack": lambda x: np.from_dlpack(x),
    "memory": lambda x: np.frombuffer(memoryview(np.asarray(x)), np.float32),
    "the host's": dt.device_get,
    "a tree": lambda x: {"a": [x]},
    "a deep copy": copy.deepcopy,
}


@pytest.mark.parametrize("name", VIEWERS)
@pytest.mark.parametrize("compiled", [False, True])
def test_values_are_not_written_while_anybody_has_them(name: str, compiled: bool) -> None:
    double = dt.jit(lambda x: x * 2) if compiled else lambda x: x * 2
    start = jnp.arange(500.0)
    expected = np.arange(500, dtype=np.float32)
    viewers = []
    for i in range(12):
        array = double(start + i)
        viewers.append(VIEWERS[name](array))
        del array
        for _ in range(8):
            double(start)  # takes the memory of what is gone
    for i, viewer in enumerate(viewers):
        (leaf,) = dt.tree.leaves(viewer)
        found = np.asarray(leaf)
        found = found[::-1] if name == "a part of a view" else found
        np.testing.assert_array_equal(found, (expected + i) * 2)


def test_memory_of_small_values_is_taken_again() -> None:
    def address() -> int:
        return int(np.asarray(_kept()[0]).ctypes.data)

    address()
    assert len({address() for _ in range(50)}) <= 8


def test_kept_values_are_bounded_and_forgotten() -> None:
    values = []
    for size in range(300, 3000, 7):
        array, expected = _kept(size)
        np.testing.assert_array_equal(np.asarray(array), expected)
        values.append(weakref.ref(held_value(array)))  # type: ignore[arg-type]
        del array
    gc.collect()
    assert sum(value() is not None for value in values) <= 128
    dt.clear_caches()
    assert all(value() is None for value in values)


def test_kept_values_of_other_dtypes_and_shapes() -> None:
    for shape in ((600,), (2, 300), (300, 2), (1, 600), (3, 10, 20)):
        for dtype in (np.float32, np.int32, np.uint32):
            x = jnp.ones(shape, dtype) + jnp.ones(shape, dtype)
            assert (x.shape, x.dtype) == (shape, dtype)
            np.testing.assert_array_equal(np.asarray(x), np.full(shape, 2, dtype))


def test_deleted_and_donated_values_are_taken_again() -> None:
    step = dt.jit(lambda x: x + 1, donate_argnums=0)
    array, expected = _kept()
    for i in range(20):
        before, array = array, step(array)
        np.testing.assert_array_equal(np.asarray(array), expected + i + 1)
        with pytest.raises(RuntimeError, match="donated"):
            np.asarray(before)


@pytest.mark.parametrize("end", [dt.Array.delete, dt.jit(lambda x: x + 1, donate_argnums=0)])
def test_buffers_that_were_read_are_not_read_after_their_end(end: Callable[..., Any]) -> None:
    x = dt.device_put(np.ones(50_000, np.float32))
    for _ in range(3):
        y = x + x
    np.testing.assert_array_equal(np.asarray(y), np.full(50_000, 2, np.float32))
    end(x)
    with pytest.raises(RuntimeError, match=r"deleted|donated"):
        x + x


def test_threads_share_arrays_that_hold_values() -> None:
    """Each makes the buffer, or reads the value, of arrays that others use, too."""
    step = dt.jit(lambda x: x + 1)
    arrays = [jnp.full(5, float(i)) * 1 for i in range(200)]
    wrong: list[Any] = []

    def work(number: int) -> None:
        for i, x in enumerate(arrays):
            found = step(x) if (i + number) % 2 else x + 1
            if not np.array_equal(np.asarray(found), np.full(5, i + 1.0)):
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


WEAKENED: dict[str, tuple[Any, ...]] = {
    "numbers": (2.0, 3.0),
    "integers": (2, 3),
    "an integer and a number": (2, 0.5),
    "a weak array and a number": ("weak", 3.0),
    "two weak arrays": ("weak", "weak"),
    "a weak array and another": ("weak", "strong"),
    "another and a weak array": ("strong", "weak"),
    "two others": ("strong", "strong"),
    "another and a number": ("strong", 3.0),
    "another and an integer": ("strong", 3),
}


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "power", "less"])
@pytest.mark.parametrize("compiled", [False, True])
def test_weak_types_are_those_of_programs(name: str, compiled: bool) -> None:
    function = getattr(jnp, name)
    function = dt.jit(function) if compiled else function

    def results() -> list[Any]:
        arrays = {"weak": jnp.full((3,), 2.0), "strong": jnp.asarray(SPECIAL[:3])}
        return [
            function(*[arrays[x] if isinstance(x, str) else x for x in operands])
            for operands in WEAKENED.values()
        ]

    with dt.direct_calls("none"):
        expected = results()
    for _ in range(3):
        with dt.direct_calls("all"):
            direct = results()
        for case, found, program in zip(WEAKENED, direct, expected, strict=True):
            assert (found.dtype, found.weak_type) == (program.dtype, program.weak_type), case
            np.testing.assert_allclose(found, program, rtol=1e-6)
            assert found._buffer.aval == program._buffer.aval


@pytest.mark.parametrize("function", [jnp.sin, dt.grad(lambda x: jnp.sin(x) * x)])
def test_numbers_alone_need_no_program(function: Callable[..., Any]) -> None:
    with dt.direct_calls("none"):
        expected = function(2.0)
    for call in (function, dt.jit(function)):
        for _ in range(3):
            with dt.direct_calls("all"):
                found = directly(call, 2.0)
            np.testing.assert_allclose(found, expected, rtol=1e-6)
