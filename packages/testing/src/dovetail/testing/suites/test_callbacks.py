"""Programs that call Python at run time, for backends that declare ``host_callbacks``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import ffi, lax
from dovetail.experimental import io_callback
from dovetail.experimental.buffer_callback import buffer_callback
from dovetail.testing.backend import BackendUnderTest, read

Backend = BackendUnderTest
pytestmark = pytest.mark.dovetail_needs("host_callbacks")
full = pytest.mark.dovetail_full

NUMBER = dt.ShapeDtypeStruct((), np.float32)
VECTOR = dt.ShapeDtypeStruct((3,), np.float32)
X = np.array([0.5, -1.0, 2.0], np.float32)
METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"]


def test_pure_callback(dovetail_backend: Backend) -> None:
    """A program uses the result of a Python function, which runs anew on each call."""
    seen = []

    def function(x: Any) -> Any:
        seen.append(np.asarray(x).copy())
        return np.sin(x)

    compiled = dt.jit(lambda x: lax.mul(dt.pure_callback(function, VECTOR, lax.neg(x)), 2))
    for scale in (1, 3):
        x = X * scale
        got = compiled(dovetail_backend.put(x))
        np.testing.assert_allclose(read(got), 2 * np.sin(-x), rtol=1e-5)
    assert [v.tolist() for v in seen] == [(-X).tolist(), (-3 * X).tolist()], (
        f"the function was called with {seen}"
    )


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_values_go_both_ways(dovetail_backend: Backend, shape: tuple[int, ...]) -> None:
    """Arguments and results of any shape and of several dtypes, in trees."""
    names = ["bool", "int8", "uint32", "int32", "float16", "float32"]
    names += ["int64", "float64"] if "float64" in dovetail_backend.capabilities else []
    names += ["complex64"] if "complex" in dovetail_backend.capabilities else []
    size = int(np.prod(shape, dtype=int))
    values = {n: (np.arange(size) % 2).astype(n).reshape(shape) for n in names}

    def function(tree: Any) -> Any:
        return {name: np.asarray(x)[::-1] if shape else np.asarray(x) for name, x in tree.items()}

    results = {n: dt.ShapeDtypeStruct(shape, x.dtype) for n, x in values.items()}
    got = dt.jit(lambda t: dt.pure_callback(function, results, t))(values)
    for name, x in values.items():
        assert got[name].dtype == x.dtype, f"{name} came back as {got[name].dtype}"
        np.testing.assert_array_equal(read(got[name]), x[::-1] if shape else x, err_msg=name)


@full
def test_large_values(dovetail_backend: Backend) -> None:
    """Four million bytes go to Python and come back."""
    x = np.arange(1_000_000, dtype=np.float32)
    result = dt.ShapeDtypeStruct(x.shape, x.dtype)
    got = dt.jit(lambda x: dt.pure_callback(lambda x: np.asarray(x) + 1, result, x))(x)
    np.testing.assert_array_equal(read(got), x + 1)


@pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
def test_io_callback(dovetail_backend: Backend, ordered: bool) -> None:
    """The side effect of a callback happens once for each call of the program, used or not, and in
    program order if requested."""
    seen: list[float] = []

    def note(x: Any) -> None:
        seen.append(float(x))

    @dt.jit
    def f(x: Any) -> Any:
        for i in range(5):
            io_callback(note, None, lax.add(x, float(i)), ordered=ordered)
        return lax.neg(x)

    for start in (0, 10):
        assert read(f(np.float32(start))).item() == -start
    dt.effects_barrier()
    want = [float(start + i) for start in (0, 10) for i in range(5)]
    assert (seen if ordered else sorted(seen)) == want, f"called with {seen} instead of {want}"


def test_ordered_callbacks_of_several_programs(dovetail_backend: Backend) -> None:
    """The order holds across programs that nobody waits for, with eager calls between them."""
    seen: list[int] = []

    def note(i: Any) -> None:
        seen.append(int(i))

    first = dt.jit(lambda i: io_callback(note, None, i, ordered=True))
    slow = dt.jit(
        lambda i, x: (
            io_callback(note, None, i, ordered=True),
            lax.fori_loop(0, 30, lambda _, y: lax.dot(y, y), x),
        )[1]
    )
    x = np.eye(64, dtype=np.float32)
    for i in range(0, 12, 3):
        slow(np.int32(i), x)
        first(np.int32(i + 1))
        io_callback(note, None, np.int32(i + 2), ordered=True)
    dt.effects_barrier()
    assert seen == list(range(12)), f"called in the order {seen}"


def test_effects_barrier(dovetail_backend: Backend) -> None:
    """`effects_barrier` returns once all callbacks of the programs called so far have run."""
    seen = []

    @dt.jit
    def f(x: Any) -> Any:
        y = lax.fori_loop(0, 50, lambda _, y: lax.dot(y, y), x)
        dt.debug.callback(lambda v: seen.append(float(v)), lax.reduce_max(y, (0, 1)))
        return y

    x = np.eye(64, dtype=np.float32)
    for _ in range(3):
        f(x)
    dt.effects_barrier()
    assert seen == [1, 1, 1], f"{len(seen)} of 3 callbacks were called before the barrier returned"


def test_debug_print(dovetail_backend: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    """`debug.print` shows values of a compiled program."""

    @dt.jit
    def f(x: Any) -> Any:
        dt.debug.print("x is {x}, twice {}", lax.mul(x, 2), x=x, ordered=True)
        return x

    f(np.int32(3))
    f(np.int32(4))
    dt.effects_barrier()
    assert capsys.readouterr().out == "x is 3, twice 6\nx is 4, twice 8\n"


def test_progress_of_loops(dovetail_backend: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    """A loop tells on stderr how far it is, and computes what it computes without that."""

    @dt.jit
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda _, x: lax.mul(x, np.float32(2)), x, progress="text")

    got = f(dovetail_backend.put(X))
    np.testing.assert_array_equal(read(got), 32 * X)
    dt.effects_barrier()
    last = capsys.readouterr().err.splitlines()[-1]
    assert all(word in last for word in ("100%", "5/5")), f"the last line is {last!r}"


@pytest.mark.parametrize("kind", ["pure", "io", "ordered"])
def test_exceptions_arrive_as_they_are(dovetail_backend: Backend, kind: str) -> None:
    """An exception in a callback is raised where the result is read or waited for, with its type
    and text; later calls work."""
    calls = {
        "pure": lambda f, x: dt.pure_callback(f, NUMBER, x),
        "io": lambda f, x: io_callback(f, NUMBER, x),
        "ordered": lambda f, x: io_callback(f, NUMBER, x, ordered=True),
    }

    def root(x: Any) -> Any:
        if float(x) < 0:
            raise LookupError(f"no root of {float(x)}")
        return np.sqrt(np.asarray(x))

    compiled = dt.jit(lambda x: calls[kind](root, x))
    assert read(compiled(np.float32(4))).item() == 2
    for _ in range(2):
        with pytest.raises(LookupError, match=r"no root of -1\.0"):
            compiled(np.float32(-1)).block_until_ready()
    assert read(compiled(np.float32(9))).item() == 3
    dt.effects_barrier()


def test_wrong_results(dovetail_backend: Backend) -> None:
    """A callback that returns another shape than promised causes an error, not a crash."""
    compiled = dt.jit(lambda x: dt.pure_callback(lambda x: np.zeros(4, np.float32), VECTOR, x))
    with pytest.raises(TypeError, match=r"float32\[3\]"):
        compiled(X).block_until_ready()


@pytest.mark.parametrize("method", METHODS)
def test_callbacks_under_vmap(dovetail_backend: Backend, method: str) -> None:
    """A batch is passed to Python element by element or as a whole, depending on `vmap_method`."""

    def add(x: Any, y: Any) -> Any:
        return np.asarray(np.broadcast_arrays(np.asarray(x) + np.asarray(y), x)[0], np.float32)

    def f(x: Any, y: Any) -> Any:
        return dt.pure_callback(add, NUMBER, x, y, vmap_method=method)

    got = dt.jit(dt.vmap(f, in_axes=(0, None)))(X, np.float32(1))
    np.testing.assert_allclose(read(got), X + 1, rtol=1e-6)


def test_callbacks_in_derivatives(dovetail_backend: Backend) -> None:
    """A callback with a derivative of its own, itself a callback, is differentiated."""

    @dt.custom_vjp
    def sine(x: Any) -> Any:
        return dt.pure_callback(np.sin, NUMBER, x)

    sine.defvjp(
        lambda x: (sine(x), x),
        lambda x, ct: (lax.mul(ct, dt.pure_callback(np.cos, NUMBER, x)),),
    )
    got = dt.jit(dt.grad(lambda x: lax.mul(sine(x), 2.0)))(np.float32(0.5))
    np.testing.assert_allclose(read(got), 2 * np.cos(0.5), rtol=1e-5)


def test_callbacks_in_scans_and_branches(dovetail_backend: Backend) -> None:
    """A callback in a loop runs in each iteration; one in a branch, if the branch is taken."""
    seen: list[float] = []

    def note(x: Any) -> Any:
        seen.append(float(x))
        return np.asarray(x) * 2

    def turn(carry: Any, x: Any) -> Any:
        y = lax.cond(
            lax.gt(x, 0.0), lambda x: io_callback(note, NUMBER, x, ordered=True), lax.neg, x
        )
        return lax.add(carry, y), y

    total, rows = dt.jit(lambda x: lax.scan(turn, np.float32(0), x))(X)
    dt.effects_barrier()
    assert read(rows).tolist() == [1, 1, 4]
    assert read(total).item() == 6
    assert seen == [0.5, 2], f"the callback was called with {seen}"


def test_computing_in_a_callback(dovetail_backend: Backend) -> None:
    """A callback may itself compute on the device and read the result."""
    inner = dt.jit(lambda x: lax.mul(lax.sin(x), 3))

    def function(x: Any) -> Any:
        return read(inner(np.asarray(x)))

    got = dt.jit(lambda x: lax.neg(dt.pure_callback(function, VECTOR, x)))(X)
    np.testing.assert_allclose(read(got), -3 * np.sin(X), rtol=1e-4)


def test_checks_in_programs(dovetail_backend: Backend) -> None:
    """`debug.check` raises if a predicate of the program is false, and does nothing if it is
    true."""

    @dt.jit
    def f(x: Any) -> Any:
        dt.debug.check(lax.gt(x, 0.0), "x is {x}", x=x)
        return lax.log(x)

    assert read(f(np.float32(1))).item() == 0
    dt.effects_barrier()

    def failing() -> None:
        f(np.float32(-2)).block_until_ready()
        dt.effects_barrier()

    with pytest.raises(Exception, match=r"x is -2\.0"):
        failing()
    assert read(f(np.float32(1))).item() == 0
    dt.effects_barrier()


@pytest.mark.dovetail_needs("buffer_callbacks")
def test_buffer_callback(dovetail_backend: Backend) -> None:
    """A callback that receives the program's memory reads arguments and writes results there."""

    def double(context: Any, out: Any, given: Any) -> None:
        np.asarray(out)[...] = np.asarray(given) * 2

    got = dt.jit(lambda x: lax.neg(buffer_callback(double, VECTOR)(x)))(X)
    np.testing.assert_array_equal(read(got), -2 * X)


def test_native_calls(dovetail_backend: Backend) -> None:
    """A program that calls native code by name is lowered for the platform."""
    call = dt.jit(lambda x: lax.neg(ffi.ffi_call("acme", VECTOR)(x, factor=2)))
    text = call.lower(X).as_text()
    assert "acme" in text
    assert "factor" in text
