"""Small functions under `jit`, and eager ones with several operations, that need no program."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail._core.runtime.arrays.held_values import held_value
from dovetail._core.runtime.devices.host_functions import host_functions
from dovetail.extend.random import threefry_prng_impl

pytestmark = [
    pytest.mark.usefixtures("directly"),
    pytest.mark.skipif(not host_functions(), reason="every call here needs a program"),
]


def normals(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


SPECIAL = np.float32([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e38, 3.5, -2.5])
LARGE = np.float32([1e5, -1e6, 1.1e6, 3e8, 1e20, -3e38, 88, -88, 104, -104, 1e-30, -1e-7])
INTEGERS = np.array([[5, -3, 2**31 - 1], [0, 7, -(2**31)]], np.int32)
TRUTHS = np.array([[True, False, True], [True, True, True]])
X, M, ROW = normals(7, 5), normals(5, 5), normals(5)
BLOCK = normals(3, 4, 5)
INDICES = np.array([3, 0, 6, 6, 1], np.int32)


def by_program(function: Callable[..., Any], *args: Any) -> dt.Array:
    with dt.direct_calls("none"):
        result: dt.Array = dt.jit(function).lower(*args).compile()(*args)
    return result


def check(
    function: Callable[..., Any], *args: Any, tolerance: float = 2e-6, direct: bool = True
) -> None:
    """A function gives what its program gives, again and again, and no program is run."""
    arrays = [jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
    expected = np.asarray(by_program(function, *arrays))
    compiled = dt.jit(function)
    for values in (arrays, arrays, args):
        result = compiled(*values)
        assert not direct or held_value(result) is not None, "a program was run"
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        found = np.asarray(result)
        if expected.dtype == np.float32:
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(found, expected)


UNARY = {
    **{name: getattr(jnp, name) for name in ("sin", "cos", "tan", "exp", "log", "expm1", "log1p")},
    **{name: getattr(jnp, name) for name in ("tanh", "sqrt", "square", "isfinite", "negative")},
    **{name: getattr(dt.nn, name) for name in ("sigmoid", "relu", "gelu", "silu")},
    "rsqrt": lax.rsqrt,
    "x**3": lambda x: x**3,
    "x**-2": lambda x: x**-2,
    "to int32": lambda x: x.astype("int32"),
    "to bool": lambda x: x.astype(bool),
}


@pytest.mark.parametrize("values", [SPECIAL, LARGE, X], ids=["special", "large", "normal"])
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name: str, values: np.ndarray[Any, Any]) -> None:
    check(UNARY[name], values)


REDUCTIONS = {
    name: getattr(jnp, name)
    for name in ("sum", "max", "min", "prod", "mean", "var", "std", "argmax", "argmin")
}


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (1, 2), -1])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, axis: Any) -> None:
    if isinstance(axis, tuple) and name.startswith("arg"):
        axis = axis[0]
    # What is the same along a middle axis is not computed in rows.
    direct = axis != 1 or name not in ("var", "std")
    check(lambda x: REDUCTIONS[name](x, axis=axis), BLOCK, direct=direct)


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod", "argmax", "argmin", "cumsum"])
def test_reductions_of_special_values(name: str) -> None:
    function = getattr(jnp, name)
    for values in [SPECIAL, SPECIAL[:6], SPECIAL[[1, 0]], SPECIAL[[0, 1, 7]], SPECIAL[[7, 8, 1]]]:
        check(function, values)
        check(function, np.repeat(values, 70))
        found = np.asarray(dt.jit(function)(values))
        program = np.asarray(by_program(function, values))
        numbers = ~np.isnan(program)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(program[numbers]))
    check(function, INTEGERS)
    check(lambda x: function(x, axis=0), INTEGERS)


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 63, 64, 65, 1000, 4000])
def test_sizes(size: int) -> None:
    values = normals(size)
    for function in (jnp.sum, jnp.max, jnp.argmax, jnp.cumsum, jnp.exp):
        check(function, values, tolerance=1e-7 * size + 1e-6)
    check(jnp.dot, values, values[::-1].copy(), tolerance=1e-5)


@pytest.mark.parametrize("name", ["all", "any"])
def test_truths(name: str) -> None:
    function = getattr(jnp, name)
    for axis in (None, 0, 1):
        for values in (TRUTHS, ~TRUTHS, TRUTHS & False, TRUTHS | True):
            check(lambda x, axis=axis: function(x, axis=axis), values)


PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "vectors": (jnp.dot, (ROW, ROW)),
    "matrix, vector": (jnp.matmul, (X, ROW)),
    "vector, matrix": (jnp.matmul, (ROW, M)),
    "matrices": (jnp.matmul, (X, M)),
    "transposed left": (lambda x, y: x.T @ y, (X, X)),
    "transposed right": (lambda x, y: x @ y.T, (X, M)),
    "both transposed": (lambda x, y: x.T @ y.T, (X, normals(3, 7))),
    "batches": (jnp.matmul, (BLOCK, normals(3, 5, 2))),
    "batches of vectors": (lambda x, y: jnp.einsum("ij,ij->i", x, y), (X, X)),
    "outer": (jnp.outer, (ROW, ROW)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    function, operands = PRODUCTS[name]
    check(function, *operands)


SHAPES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "row": (lambda x, r: x + r, (X, ROW)),
    "column": (lambda x, r: x * r[:, None], (X, X[:, 0].copy())),
    "row and column": (lambda r, c: r * c[:, None], (ROW, X[:, 0].copy())),
    "reshaped": (lambda x: x.reshape(5, 7) + 1, (X,)),
    "transposed": (lambda x: x.T * 2, (X,)),
    "squeezed": (lambda x: jnp.squeeze(x[None] * 2), (X,)),
    "summed rows again": (lambda x: x - x.sum(0), (X,)),
    "summed columns again": (lambda x: x / x.sum(1, keepdims=True), (X,)),
    "softmax": (dt.nn.softmax, (X,)),
    "softmax of columns": (lambda x: dt.nn.softmax(x, axis=0), (X,)),
    "log_softmax": (dt.nn.log_softmax, (X,)),
    "counted": (lambda x: x + jnp.arange(5.0), (X,)),
    "chosen": (lambda x: jnp.where(x > 0, x, -1.0), (X,)),
    "clipped": (lambda x: jnp.clip(x, -0.5, 0.5), (X,)),
    "full": (lambda x: jnp.full((2, 3), x), (np.float32(3),)),
    "taken": (lambda x, i: jnp.take(x, i, axis=0, mode="clip"), (X, INDICES)),
    "taken beyond": (lambda x, i: jnp.take(x, i, mode="clip"), (ROW, INDICES * 3 - 4)),
    "segments": (lambda x, i: dt.ops.segment_sum(x, i, num_segments=4), (ROW, INDICES)),
    "added at": (lambda x, i, y: x.at[i].add(y), (X[:, 0].copy(), INDICES, ROW)),
    "constants": (lambda x: x * jnp.asarray(ROW), (X,)),
    "conversions": (lambda i, t: i.astype("float32") * t, (INTEGERS, TRUTHS)),
    "distances": (lambda x: jnp.sum((x[:, None] - x[None]) ** 2, -1), (X,)),
    "no products": (jnp.matmul, (normals(2, 0), normals(0, 3))),
    "nothing": (lambda x: jnp.sum(x * 2, axis=0), (normals(0, 3),)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    function, operands = SHAPES[name]
    arrays = [jnp.asarray(x) for x in operands]
    expected = np.asarray(by_program(function, *arrays))
    compiled = dt.jit(function)
    for _ in range(3):
        np.testing.assert_allclose(compiled(*arrays), expected, rtol=2e-6, atol=2e-6)


def test_most_of_these_need_no_program() -> None:
    direct = 0
    for function, operands in SHAPES.values():
        direct += held_value(dt.jit(function)(*operands)) is not None
    assert direct >= 18


def test_gradients() -> None:
    def loss(w: Any) -> Any:
        return jnp.sum(jnp.tanh(M @ w) ** 2) + jnp.mean(dt.nn.relu(w)) * jnp.exp(-w[0])

    check(lambda w: jnp.sum(w**3 * jnp.sin(w)), ROW)
    expected = dt.grad(loss)(jnp.asarray(ROW))
    for function in (dt.jit(dt.grad(loss)), dt.grad(dt.jit(loss)), dt.jit(dt.grad(dt.jit(loss)))):
        np.testing.assert_allclose(function(jnp.asarray(ROW)), expected, rtol=1e-5)


# ------------------------------------------------------------------------------------ arguments


def test_python_numbers_and_static_arguments() -> None:
    @dt.jit
    def scaled(x: Any, factor: Any) -> Any:
        return x * factor + 1

    for factor in (2.0, 3, -1.5, 2**31 - 1):
        np.testing.assert_allclose(scaled(jnp.asarray(ROW), factor), ROW * factor + 1, rtol=1e-6)
    with pytest.raises(OverflowError):
        scaled(jnp.asarray(ROW), 2**40)

    def reduced(x: Any, axis: int, name: str) -> Any:
        return getattr(jnp, name)(x, axis=axis)

    compiled = dt.jit(reduced, static_argnums=1, static_argnames="name")
    for axis in (0, 1, 0, 1):
        for name in ("sum", "max", "sum"):
            result = compiled(X, axis, name=name)
            np.testing.assert_allclose(result, getattr(X, name)(axis), rtol=1e-5)
            assert held_value(result) is not None


def test_values_that_are_equal_but_of_other_types_are_other_static_arguments() -> None:
    compiled = dt.jit(lambda x, n: x * 2 if n is True else x * 3, static_argnums=1)
    for n, factor in [(True, 2), (1, 3), (True, 2), (1.0, 3), (False, 3)]:
        np.testing.assert_array_equal(compiled(ROW, n), ROW * factor)


def test_keyword_arguments_in_any_order() -> None:
    compiled = dt.jit(lambda x, *, a, b: x * a - b)
    for _ in range(2):
        np.testing.assert_allclose(compiled(ROW, a=X[0], b=M[0]), ROW * X[0] - M[0], rtol=1e-6)
        np.testing.assert_allclose(compiled(ROW, b=M[0], a=X[0]), ROW * X[0] - M[0], rtol=1e-6)
        np.testing.assert_allclose(compiled(x=ROW, b=M[0], a=X[0]), ROW * X[0] - M[0], rtol=1e-6)
    for axis in (0, 1, None):
        result = jnp.sum(jnp.asarray(X), axis=axis)
        np.testing.assert_allclose(result, X.sum(axis), rtol=1e-5)
        assert held_value(result) is not None


@pytest.mark.parametrize(
    "argument",
    [
        ROW.astype(np.float64),
        ROW.astype(">f4"),
        np.arange(10, dtype=np.float32)[::2],
        np.broadcast_to(np.float32(2), 5),
        np.asfortranarray(M),
        ROW.view(type("Derived", (np.ndarray,), {})),
        np.frombuffer(b"\0" + ROW.tobytes(), np.uint8)[1:].view(np.float32),
    ],
    ids=["float64", "swapped", "strided", "broadcast", "Fortran", "subclass", "unaligned"],
)
def test_arrays_of_numpy_of_any_kind(argument: Any) -> None:
    compiled = dt.jit(lambda x: x * 2 + 1)
    for given in (np.ascontiguousarray(argument, np.float32), argument, argument):
        np.testing.assert_allclose(compiled(given), np.asarray(argument) * 2 + 1, rtol=1e-6)


def test_arrays_of_numpy_may_be_overwritten_afterwards() -> None:
    compiled, given = dt.jit(lambda x: x * 2), ROW.copy()
    results = [compiled(given) for _ in range(3)]
    given[:] = 0
    for result in results:
        np.testing.assert_array_equal(result, ROW * 2)


def test_buffers_and_results_of_programs_are_arguments() -> None:
    compiled = dt.jit(lambda x: jnp.sum(x * 2))
    with dt.direct_calls("none"):
        x = dt.jit(lambda v: v + 1)(ROW)
    assert held_value(x) is None
    for _ in range(3):
        np.testing.assert_allclose(compiled(x), ((ROW + 1) * 2).sum(), rtol=1e-6)
    assert held_value(compiled(x)) is not None
    x.delete()
    with pytest.raises(dt.errors.DeletedArrayError):
        compiled(x)


def test_programs_read_many_buffers_sooner() -> None:
    with dt.direct_calls("none"):
        buffers = dt.jit(lambda x: [x + i for i in range(40)])(ROW)
    values = [jnp.asarray(ROW) for _ in range(40)]
    for function in (lambda v: v[-1] * 2, lambda v: [v[0] * 2, *v[1:-1], v[-1] * 2]):
        compiled = dt.jit(function)
        for count in (4, 40, 4):
            few = count == 4
            for given in (values, values[:-1] + buffers[-1:], buffers):
                for _ in range(2):
                    result = dt.tree.leaves(compiled(given[-count:]))
                    held = held_value(result[-1]) is not None
                    assert held == (few or given is not buffers or len(result) > 20)
                    np.testing.assert_array_equal(result[-1], given[-1] * 2)


def test_weak_types_and_results_without_operations() -> None:
    assert dt.jit(lambda x: x * 2)(3.0).weak_type
    _, second = dt.jit(lambda x: (x + 1, x * 2))(ROW)
    np.testing.assert_array_equal(second, ROW * 2)
    assert list(dt.jit(lambda t: {"a": t["x"] + 1})({"x": ROW})) == ["a"]
    np.testing.assert_array_equal(dt.jit(lambda x: x)(ROW), ROW)
    assert dt.jit(lambda: jnp.ones(3) * 2)().shape == (3,)


# ------------------------------------------------------------------------------- what else is asked


def test_options_are_kept() -> None:
    compiled = dt.jit(lambda x: jnp.log(x) * 0)
    compiled(jnp.ones(3))
    zeros = jnp.zeros(3)
    compiled(zeros)
    with dt.debug_nans(True), pytest.raises(FloatingPointError):
        compiled(zeros)
    with dt.enable_x64(True):
        assert compiled(np.ones(3)).dtype == np.float64
    with dt.direct_calls("none"):
        assert held_value(compiled(zeros)) is None
        assert held_value(jnp.sum(zeros)) is None
    with dt.direct_calls("eager"):
        assert held_value(compiled(zeros)) is None
        assert held_value(jnp.sum(zeros)) is not None
    with dt.disable_jit():
        assert compiled(jnp.ones(3)).shape == (3,)
    assert held_value(compiled(zeros)) is not None


def in_a_buffer(x: Any) -> dt.Array:
    with dt.direct_calls("none"):
        return dt.jit(lambda v: v + 0)(x)


@pytest.mark.parametrize("made", [jnp.asarray, in_a_buffer], ids=["value", "buffer"])
@pytest.mark.parametrize(
    "around",
    [
        lambda x: x,
        lambda x: (x, None, [x * 2]),
        lambda x: {"a": x, "b": {"c": x * 2}},
        lambda x: dt.tree_util.Partial(abs, x, x * 2),
        lambda x: (x, random.wrap_key_data(jnp.zeros(2, "uint32"))),
    ],
    ids=["array", "list", "dict", "node", "key"],
)
def test_donated_arrays_are_deleted(made: Callable[..., Any], around: Callable[..., Any]) -> None:
    def step(state: Any, other: Any) -> Any:
        leaves, form = dt.tree.flatten(state)
        return form.unflatten([x + other if x.dtype == ROW.dtype else x for x in leaves])

    for options in ({"donate_argnums": 0}, {"donate_argnames": "state"}):
        compiled = dt.jit(step, **options)
        other = made(np.ones(5, np.float32))
        for _ in range(3):
            state = around(made(ROW))
            donated = dt.tree.leaves(state)
            if "donate_argnums" in options:
                results = dt.tree.leaves(compiled(state, other))
            else:
                results = dt.tree.leaves(compiled(state=state, other=other))
            assert made is in_a_buffer or held_value(results[0]) is not None
            np.testing.assert_allclose(results[0], ROW + 1)
            assert [x.is_deleted() for x in (*donated, *results, other)] == (
                [True] * len(donated) + [False] * (len(results) + 1)
            )
            for x in donated:
                with pytest.raises(dt.errors.DeletedArrayError, match="donated to step at test_ch"):
                    x.copy()


def test_what_is_donated_and_used() -> None:
    compiled = dt.jit(lambda a, b: a + b, donate_argnums=0)
    x = jnp.asarray(ROW)
    np.testing.assert_array_equal(compiled(x, jnp.asarray(ROW)), ROW * 2)
    for x in (jnp.asarray(ROW), in_a_buffer(ROW)):
        with pytest.raises(dt.errors.JaxRuntimeError, match=r"one array twice, .*, as a and as b"):
            compiled(x, x)
        assert not x.is_deleted()


def test_donated_arrays_without_a_result_in_their_place_stay() -> None:
    total = dt.jit(lambda a: a.sum(), donate_argnums=0)
    x = jnp.asarray(ROW)
    with pytest.warns(UserWarning, match="Some donated buffers were not usable"):
        total(x)
    np.testing.assert_array_equal(x, ROW)


def test_arrays_of_numpy_and_numbers_can_be_donated() -> None:
    compiled = dt.jit(lambda a, b: (a + 1, b * 2), donate_argnums=(0, 1))
    for _ in range(2):
        row, double = compiled(ROW, 2.0)
        np.testing.assert_array_equal(row, ROW + 1)
        assert double == 4


def test_options_of_jit_have_programs() -> None:
    device = dt.devices()[-1]
    placed = dt.jit(lambda v: v + 1)(dt.device_put(ROW, device))
    assert placed.devices() == {device}
    assert placed.committed


def test_traces_see_the_call() -> None:
    compiled = dt.jit(lambda x: jnp.sum(x * 2))
    compiled(ROW)
    jaxpr = dt.make_jaxpr(lambda x: compiled(x) + 1)(ROW)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["jit", "add"]
    np.testing.assert_allclose(dt.vmap(compiled)(X), (X * 2).sum(1), rtol=1e-5)
    np.testing.assert_allclose(dt.grad(compiled)(jnp.asarray(ROW)), np.full(5, 2.0))


def test_programs_that_are_counted_are_made() -> None:
    """While somebody listens to events, a function has a program; one that is there stays."""
    compiled = dt.jit(lambda x: x * 2 + 3)
    with dt.events() as log:
        compiled(ROW)
    assert len(log.of("compile", "load", "reuse")) == 1
    other = dt.jit(lambda x: x * 2 + 4)
    other(ROW)
    assert other._cache_size() == 1
    with dt.events() as log:
        other(ROW)
    assert not log.of("trace", "compile", "load", "reuse")


def test_effects_happen() -> None:
    seen = []

    @dt.jit
    def told(x: Any) -> Any:
        dt.debug.callback(lambda v: seen.append(float(v)), x[0])
        return x * 2

    for _ in range(3):
        told(ROW)
    dt.effects_barrier()
    assert len(seen) == 3


def test_cleared_caches_trace_anew() -> None:
    factor = 2

    def scaled(x: Any) -> Any:
        return x * factor + 0

    compiled = dt.jit(scaled)
    np.testing.assert_array_equal(compiled(ROW), ROW * 2)
    factor = 3
    np.testing.assert_array_equal(compiled(ROW), ROW * 2)
    compiled.clear_cache()
    np.testing.assert_array_equal(compiled(ROW), ROW * 3)
    factor = 4
    dt.clear_caches()
    np.testing.assert_array_equal(compiled(ROW), ROW * 4)


def test_functions_of_ever_other_shapes_get_programs() -> None:
    compiled = dt.jit(lambda x: x * 2 + 1)
    for _ in range(4):
        for size in range(1, 40):
            np.testing.assert_array_equal(compiled(jnp.ones(size)), np.full(size, 3.0))
    with dt.events() as log:
        for size in range(1, 40):
            compiled(jnp.ones(size))
    assert not log.of("trace")


def test_errors_are_those_of_programs() -> None:
    compiled = dt.jit(lambda x: x @ x)
    with pytest.raises(TypeError):
        compiled(X)
    np.testing.assert_allclose(compiled(M), M @ M, rtol=1e-5, atol=1e-5)


def test_tokens_have_programs() -> None:
    @dt.jit
    def inside(x: Any) -> Any:
        token = lax.after_all(lax.create_token(), lax.create_token(x))
        return lax.optimization_barrier((token, lax.neg(x)))[1]

    passed = dt.jit(lambda token, x: (lax.after_all(token), x + 1))
    for _ in range(2):
        np.testing.assert_array_equal(inside(ROW), -ROW)
        np.testing.assert_array_equal(passed(lax.create_token(), ROW)[1], ROW + 1)


def test_threads() -> None:
    compiled = dt.jit(lambda x: jnp.sum(jnp.exp(x)))
    wrong = []

    def work(number: int) -> None:
        for size in range(1, 60):
            x = jnp.full(size, 0.01 * number)
            if abs(float(compiled(x)) - size * np.exp(0.01 * number)) > 1e-3:
                wrong.append(size)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_first_gradient_needs_neither_a_client_nor_a_compiler_nor_random_numbers() -> None:
    code = (
        "import sys\n"
        "import numpy as np, dovetail as dt, dovetail.numpy as jnp\n"
        "from dovetail._core.runtime.devices import clients\n"
        "f = dt.jit(dt.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)))\n"
        "first = np.asarray(f(jnp.ones(2)))[0]\n"
        "print(f'{first:.3f}', clients.started(), 'jaxlib.mlir' in sys.modules)\n"
        "print([name for name in sys.modules if 'ops.random' in name or 'ops.special' in name])\n"
    )
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "DOVETAIL_DIRECT_CALLS": "all"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "0.909 [] False\n[]\n"


# ----------------------------------------------------------------- keys, trees, what moves elements


KEYED: dict[str, Callable[..., Any]] = {
    "bits": lambda k: dt.random.bits(k, (37,)),
    "bits of 8": lambda k: dt.random.bits(k, (37,), "uint8"),
    "uniform": lambda k: dt.random.uniform(k, (1000,)),
    "uniform between": lambda k: dt.random.uniform(k, (3, 5), minval=-2.0, maxval=3.0),
    "normal": lambda k: dt.random.normal(k, (1000,)),
    "randint": lambda k: dt.random.randint(k, (50,), -3, 17),
    "bernoulli": lambda k: dt.random.bernoulli(k, 0.3, (50,)),
    "exponential": lambda k: dt.random.exponential(k, (50,)),
    "permutation": lambda k: dt.random.permutation(k, 20),
    "split": lambda k: dt.random.key_data(dt.random.split(k, (2, 3))),
    "a row of keys": lambda k: dt.random.key_data(dt.random.split(k, 5)[3]),
    "fold_in": lambda k: dt.random.key_data(dt.random.fold_in(k, 7)),
    "two": lambda k: sum(dt.random.uniform(x, (4,)) for x in dt.random.split(k)),
}


@pytest.mark.parametrize("name", KEYED)
def test_random_numbers(name: str) -> None:
    function = dt.jit(KEYED[name])
    for seed in (0, 7, 2**31 - 1):
        key = dt.random.key(seed)
        expected = np.asarray(by_program(KEYED[name], key))
        for _ in range(2):
            result = function(key)
            assert held_value(result) is not None
            assert result.dtype == expected.dtype
            if name in ("normal", "exponential", "uniform between"):
                np.testing.assert_allclose(result, expected, rtol=2e-6, atol=2e-7)
            else:
                np.testing.assert_array_equal(result, expected)
    with dt.threefry_partitionable(False):
        expected = np.asarray(by_program(KEYED[name], key))
        np.testing.assert_allclose(function(key), expected, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_keys_of_integers(dtype: str) -> None:
    with dt.enable_x64(True):
        seeds = np.array([[0, 1, 2**31 - 1], [2**63 - 1, 2**31, 2**64 - 1]], "uint64").astype(dtype)
        keyed = dt.jit(lambda x: dt.random.key_data(dt.vmap(dt.vmap(dt.random.key))(x)))
        expected = [[threefry_prng_impl.reference.seed(x) for x in row] for row in seeds]
        result = keyed(jnp.asarray(seeds))
        assert held_value(result) is not None
        np.testing.assert_array_equal(result, np.array(expected))
    drawn = dt.jit(lambda x: dt.random.uniform(dt.random.key(x)))(np.uint32(7))
    assert held_value(drawn) is not None


def test_keys_that_hold_values_are_keys() -> None:
    first, second = dt.random.split(dt.random.key(3))
    keys = dt.random.split(first, 4)
    assert keys.shape == (4,)
    assert keys.dtype == first.dtype
    assert not keys.committed
    assert not keys.is_deleted()
    assert len(list(keys)) == 4
    assert str(dt.random.key_impl(keys)) == str(dt.random.key_impl(first))
    moved = dt.device_put(keys, dt.devices()[0])
    np.testing.assert_array_equal(dt.random.key_data(moved), dt.random.key_data(keys))
    again = dt.vmap(lambda k: dt.random.uniform(k))(keys)
    np.testing.assert_array_equal(again[1], dt.random.uniform(keys[1]))
    second.delete()
    assert second.is_deleted()
    with pytest.raises(dt.errors.DeletedArrayError):
        dt.random.uniform(second)
    with dt.debug_key_reuse(True):
        key = dt.random.key(5)
        dt.random.uniform(key)
        with pytest.raises(dt.errors.KeyReuseError):
            dt.random.uniform(key)


def test_trees() -> None:
    @dt.jit
    def step(params: Any, grads: Any, rate: Any) -> Any:
        new = {name: params[name] - rate * grads[name] for name in params}
        return new, [new["w"].sum(), None, (params["b"], params["b"])]

    params = {"w": jnp.asarray(X), "b": jnp.asarray(ROW)}
    for given in (params, {"b": params["b"], "w": params["w"]}, {"w": X, "b": ROW}):
        for rate in (0.5, jnp.float32(0.5), np.float32(0.5)):
            new, (total, nothing, (one, other)) = step(given, params, rate)
            assert held_value(new["w"]) is not None
            assert list(new) == ["b", "w"]
            assert nothing is None
            assert one is not other
            np.testing.assert_allclose(new["w"], X / 2, rtol=1e-6)
            np.testing.assert_allclose(total, X.sum() / 2, rtol=1e-5)
            np.testing.assert_array_equal(other, ROW)
    with pytest.raises(KeyError):
        step({"w": X, "c": ROW}, params, 0.5)
    assert step({"w": X, "b": X[0]}, params, 0.5)[0]["b"].shape == (5,)
    assert step({"w": M, "b": ROW}, {"w": M, "b": ROW}, 1)[0]["w"].shape == (5, 5)


def test_nodes_of_classes() -> None:
    import collections

    pair = collections.namedtuple("pair", "a b")
    swapped = dt.jit(lambda p, q: pair(p.b * 2, q[0].a))
    for _ in range(3):
        result = swapped(pair(jnp.asarray(X), jnp.asarray(ROW)), [pair(ROW, X)])
        assert type(result) is pair
        assert held_value(result.a) is not None
        np.testing.assert_array_equal(result.a, ROW * 2)
        np.testing.assert_array_equal(result.b, ROW)
    partial = dt.tree_util.Partial(lambda a, b: a + b, jnp.asarray(ROW))
    called = dt.jit(lambda f, x: f(x))
    for _ in range(2):
        np.testing.assert_array_equal(called(partial, ROW), ROW * 2)
    other = dt.tree_util.Partial(lambda a, b: a - b, jnp.asarray(ROW))
    np.testing.assert_array_equal(called(other, ROW), ROW * 0)


def test_many_leaves() -> None:
    each = dt.jit(lambda values: [v + 1 for v in values])
    for count in (1, 2, 9, 50, 100, 200):
        for _ in range(2):
            results = each([jnp.asarray(ROW)] * count)
            assert len(results) == count
            np.testing.assert_array_equal(results[-1], ROW + 1)
    total = dt.jit(lambda *values: values[0] + values[-1])
    for _ in range(2):
        np.testing.assert_array_equal(total(*[jnp.asarray(ROW)] * 60), ROW * 2)


MOVED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "slice": (lambda x: x[1:6:2, ::-1], (X,)),
    "column": (lambda x: x[:, 2], (X,)),
    "transposed": (lambda x: jnp.transpose(x, (2, 0, 1)), (BLOCK,)),
    "reversed": (lambda x: jnp.flip(x, (0, 2)), (BLOCK,)),
    "joined": (lambda x: jnp.concatenate([x, x * 2], axis=1), (X,)),
    "stacked": (lambda x: jnp.stack([x, x * 2], axis=1), (X,)),
    "padded": (lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=7), (X,)),
    "interior": (lambda x: lax.pad(x, np.float32(1), ((1, 0, 2), (0, 2, 1))), (X,)),
    "rolled": (lambda x: jnp.roll(x, 2, 1), (X,)),
    "lower": (jnp.tril, (M,)),
    "dynamic": (lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 3)), (X, np.int32(9))),
    "updated": (lambda x, i: lax.dynamic_update_slice(x, x[:2, :2], (i, 1)), (X, np.int32(-4))),
    "set": (lambda x, i: x.at[i].set(1.5), (X, INDICES)),
    "added": (lambda x, i: x.at[i].add(1.5), (X, INDICES)),
    "taken": (lambda x, i: x[i], (X, INDICES)),
    "truths": (lambda t: jnp.concatenate([t[:, 1:], ~t], 1), (TRUTHS,)),
    "sorted": (jnp.sort, (SPECIAL[[0, 2, 3, 4, 5, 6, 10, 11]],)),
    "sorted rows": (jnp.sort, (X,)),
    "positions": (jnp.argsort, (X,)),
    "places": (lambda x, y: jnp.searchsorted(jnp.sort(x), y), (ROW, SPECIAL)),
    "integers": (lambda i: (i // 3) * 5 + i % 7 - (i << 2) + (i >> 1), (INTEGERS,)),
    "by zero": (lambda i: lax.div(i, i * 0) + lax.rem(i, i * 0), (INTEGERS,)),
    "remainders": (lambda x: x % 0.7, (X,)),
    "middle axis": (lambda x: x - x.mean(1, keepdims=True), (BLOCK,)),
    "counted": (lambda i: jnp.bincount(i, length=7), (INDICES,)),
    "cumulative": (lambda x: jnp.cumprod(x, 0) + lax.cummax(x, 1), (X,)),
}


@pytest.mark.parametrize("name", MOVED)
def test_elements_that_are_moved(name: str) -> None:
    function, operands = MOVED[name]
    check(function, *operands)


def test_numbers_of_64_bits() -> None:
    def values(x: Any, i: Any) -> Any:
        return jnp.sum(jnp.exp(x) * jnp.sin(x), axis=0) + i // 3 + jnp.max(i)

    with dt.enable_x64(True):
        x, i = jnp.asarray(X.astype(np.float64)), jnp.arange(5)
        expected = by_program(values, x, i)
        for _ in range(2):
            result = dt.jit(values)(x, i)
            assert result.dtype == np.float64
            assert held_value(result) is not None
            np.testing.assert_allclose(result, expected, rtol=1e-14)


def test_choices_by_integers_have_programs() -> None:
    which, cases = np.int32([0, 2, 1, 2, 0]), [ROW, ROW * 2, ROW * 3]
    for function in (lax.select_n, dt.jit(lax.select_n)):
        found = np.asarray(function(which, *cases))
        np.testing.assert_array_equal(found, np.choose(which, cases))


# ------------------------------------------------------------------- operations with parameters

SINGLE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "integer_pow": (lambda x: lax.integer_pow(x, 3), (X,)),
    "transpose": (lambda x: lax.transpose(x, (1, 0)), (X,)),
    "reshape": (lambda x: lax.reshape(x, (5, 7)), (X,)),
    "reshape a number": (lambda: lax.reshape(np.float32(2), (1, 1)), ()),
    "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (7, 5), (1,)), (ROW,)),
    "squeeze": (lambda x: lax.squeeze(x, (0,)), (X[None],)),
    "rev": (lambda x: lax.rev(x, (1,)), (X,)),
    "slice": (lambda x: lax.slice(x, (1, 0), (6, 4), (2, 1)), (X,)),
    "concatenate": (lambda *x: lax.concatenate(x, 0), (X,) * 8),
    "convert_element_type": (lambda x: lax.convert_element_type(x, np.int32), (X,)),
    "convert to the same": (lambda x: lax.convert_element_type(x, np.float32), (X,)),
    "sort": (lambda k, x: lax.sort((k, x), num_keys=1), (INDICES, ROW)),
    "split": (lambda x: lax.split(x, (2, 5)), (X,)),
    "cumsum": (lambda x: lax.cumsum(x, 1), (X,)),
    "argmax": (lambda x: lax.argmax(x, 1, np.int32), (X,)),
    "dot_general": (lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ()))), (M, ROW)),
    "scatter-add": (lambda x, i, y: x.at[i].add(y), (X[:, 0].copy(), INDICES, ROW)),
}


@pytest.mark.parametrize("name", SINGLE)
def test_operations_with_parameters(name: str) -> None:
    function, operands = SINGLE[name]
    arrays = [jnp.asarray(x) for x in operands]
    with dt.direct_calls("none"):
        expected = dt.tree.leaves(function(*arrays))
    for _ in range(3):
        found = dt.tree.leaves(function(*arrays))
        assert [x.dtype for x in found] == [x.dtype for x in expected]
        assert all(held_value(x) is not None for x in found), "a program was run"
        for result, program in zip(found, expected, strict=True):
            np.testing.assert_allclose(result, program, rtol=2e-6, atol=2e-6)


def test_operations_of_ever_other_shapes() -> None:
    for _ in range(3):
        for size in range(1, 80):
            row = jnp.asarray(np.arange(size, dtype=np.float32))
            np.testing.assert_array_equal(lax.rev(row, (0,)), np.arange(size)[::-1])


def test_operations_of_one_shape_and_dtype_after_another() -> None:
    # float16 has no function for it; what was refused for one dtype or size is not for others.
    for dtype in ("float16", "float32", "int32", "float32"):
        for size in (5, 2**17, 5):
            values = np.arange(size * 2).reshape(2, size) % 7
            row = jnp.asarray(values.astype(dtype))
            np.testing.assert_array_equal(lax.cummax(row, 1), np.maximum.accumulate(row, 1))


def test_eager_gradients_need_no_program() -> None:
    def loss(w: Any) -> Any:
        return jnp.mean((jnp.tanh(M @ w) - ROW) ** 2) + jnp.sum(jnp.sin(w) ** 3) / 2

    w = jnp.asarray(ROW)
    with dt.direct_calls("none"):
        expected = dt.grad(loss)(w)
    for _ in range(2):
        with dt.events() as log:
            found = dt.grad(loss)(w)
        assert not log.of("compile")
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("array", [ROW, X, BLOCK, INTEGERS, TRUTHS, X[:0]], ids=str)
@pytest.mark.parametrize("placed", ["held", "by a program", "committed"])
def test_rows_of_arrays(array: np.ndarray[Any, Any], placed: str) -> None:
    values = jnp.asarray(array)
    if placed == "by a program":
        values._buffer  # noqa: B018
    elif placed == "committed":
        values = dt.device_put(array, dt.devices()[-1])
    rows = list(values)
    assert len(rows) == len(array)
    for row, expected in zip(rows, array, strict=True):
        assert (row.shape, row.dtype, row.weak_type) == (expected.shape, expected.dtype, False)
        assert row.committed == values.committed
        assert row.devices() == values.devices()
        np.testing.assert_array_equal(row, expected)
