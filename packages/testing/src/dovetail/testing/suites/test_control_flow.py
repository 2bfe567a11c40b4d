"""Branches, loops and scans: the control flow of programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail.testing.backend import BackendUnderTest, read

NDArray = np.ndarray[Any, Any]
Backend = BackendUnderTest
full = pytest.mark.dovetail_full


def close(backend: Backend, got: Any, want: Any, what: str) -> None:
    """Assert that a tree of results equals NumPy's."""
    results = dt.tree.leaves(got)
    expected = [np.asarray(w) for w in dt.tree.leaves(want)]
    assert len(results) == len(expected), (
        f"{what}: {len(results)} results instead of {len(expected)}"
    )
    for number, (a, b) in enumerate(zip(results, expected, strict=True)):
        np.testing.assert_allclose(
            read(a),
            b,
            rtol=backend.precision,
            atol=backend.precision,
            err_msg=f"{what}: result {number}",
        )


def numbers(backend: Backend, *shape: int) -> NDArray:
    """Distinct numbers between -1 and 1."""
    size = int(np.prod(shape, dtype=int))
    return np.asarray(np.sin(np.arange(1.0, size + 1)), backend.widest).reshape(shape)


# ------------------------------------------------------------------------------------- branches


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_switch(dovetail_backend: Backend, index: int) -> None:
    """One of several branches runs, selected by a computed number; numbers out of range are
    clamped."""
    x = numbers(dovetail_backend, 4)
    branches = [lambda x: lax.neg(x), lambda x: lax.exp(x), lambda x: lax.mul(x, x)]
    want = [-x, np.exp(x), x * x][int(np.clip(index, 0, 2))]
    got = dt.jit(lambda i, x: lax.switch(lax.sub(i, 1), branches, x))(np.int32(index + 1), x)
    close(dovetail_backend, got, want, f"switch by {index}")


@pytest.mark.parametrize("predicate", [False, True])
def test_cond(dovetail_backend: Backend, predicate: bool) -> None:
    """One of two branches runs; both may use captured values and return trees."""
    x = numbers(dovetail_backend, 3)
    captured = dovetail_backend.put(x + 1)

    @dt.jit
    def f(flag: Any, x: Any) -> Any:
        return lax.cond(
            flag,
            lambda x: {"a": lax.mul(x, captured), "b": (lax.sin(x),)},
            lambda x: {"a": x, "b": (lax.sub(x, captured),)},
            x,
        )

    want = {"a": x * (x + 1), "b": (np.sin(x),)} if predicate else {"a": x, "b": (x - (x + 1),)}
    close(dovetail_backend, f(predicate, x), want, f"cond of {predicate}")


def test_batched_branches(dovetail_backend: Backend) -> None:
    """If each element of a batch takes its own branch, each gets the result of its own."""
    x = numbers(dovetail_backend, 5, 2)
    index = np.array([2, 0, 1, 1, 2], np.int32)
    branches: list[Callable[[Any], Any]] = [lax.sin, lax.exp, lambda x: lax.mul(x, 3)]
    got = dt.jit(dt.vmap(lambda i, x: lax.switch(i, branches, x)))(index, x)
    want = [[np.sin, np.exp, lambda v: v * 3][i](row) for i, row in zip(index, x, strict=True)]
    close(dovetail_backend, got, np.stack(want), "vmap of switch")


def test_branches_do_not_meet(dovetail_backend: Backend) -> None:
    """The derivative of the branch that runs is not affected by an infinite one of the other."""
    x = np.array([0.0, 4.0, -1.0], dovetail_backend.widest)

    def root(x: Any) -> Any:
        return lax.cond(lax.gt(x, 0), lax.sqrt, lambda x: lax.mul(x, 2), x)

    got = dt.jit(dt.vmap(dt.grad(root)))(x)
    close(dovetail_backend, got, np.array([2.0, 0.25, 2.0]), "vmap of grad of cond")


# ---------------------------------------------------------------------------------------- loops


@pytest.mark.parametrize("turns", [0, 1, 7])
def test_while_loop(dovetail_backend: Backend, turns: int) -> None:
    """A loop runs until its condition fails; if it fails at the start, not at all."""
    x = numbers(dovetail_backend, 3)

    @dt.jit
    def f(n: Any, x: Any) -> Any:
        return lax.while_loop(
            lambda s: lax.lt(s[0], n), lambda s: (lax.add(s[0], 1), lax.mul(s[1], 0.5)), (0, x)
        )

    close(dovetail_backend, f(turns, x), (turns, x * 0.5**turns), f"a loop of {turns} turns")


def test_batched_while_loop(dovetail_backend: Backend) -> None:
    """Each element of a batch has its own number of iterations: finished ones stay unchanged, even
    if another iteration would give infinity."""
    start = np.array([1.0, 30.0, 300.0, 2.0], dovetail_backend.widest)

    def one(x: Any) -> Any:
        return lax.while_loop(
            lambda s: lax.lt(s[0], 100.0),
            lambda s: (lax.exp(s[0]), lax.add(s[1], 1)),
            (x, np.int32(0)),
        )

    want = []
    for value in start:
        count = 0
        while value < 100:
            value, count = np.exp(value), count + 1
        want.append((value, count))
    got = dt.jit(dt.vmap(one))(start)
    counts = [count for _, count in want]
    assert read(got[1]).tolist() == counts, f"turns of each element: {read(got[1])}, not {counts}"
    np.testing.assert_allclose(read(got[0]), [v for v, _ in want], rtol=1e-3)


@pytest.mark.parametrize("bounds", [(0, 5), (3, 3), (5, 2), (-2, 2)])
@pytest.mark.parametrize("traced", [False, True], ids=["known", "computed"])
def test_fori_loop(dovetail_backend: Backend, bounds: tuple[int, int], traced: bool) -> None:
    """A loop over integers, with known bounds and with bounds that the program computes."""

    def f(low: Any, high: Any) -> Any:
        return lax.fori_loop(low, high, lambda i, s: lax.add(lax.mul(s, 2), i), np.int32(1))

    want = 1
    for i in range(*bounds):
        want = want * 2 + i
    got = dt.jit(f)(*map(np.int32, bounds)) if traced else dt.jit(lambda: f(*bounds))()
    assert read(got).item() == want, f"a loop from {bounds[0]} to {bounds[1]}"


def test_large_carries(dovetail_backend: Backend) -> None:
    """A loop carries many arrays of several dtypes, some of which never change."""
    carries = {
        f"{dtype}{i}": np.full((3,) if i % 2 else (1000, 11), i % 2, dtype)
        for i in range(20)
        for dtype in ("float32", "int32", "bool", "uint8")
    }

    def body(i: Any, state: Any) -> Any:
        return {
            n: lax.bitwise_not(x)
            if x.dtype == bool
            else lax.add(x, 1)
            if n.startswith("uint8")
            else x
            for n, x in state.items()
        }

    got = dt.jit(lambda s: lax.fori_loop(0, 4, body, s))(carries)
    for name, value in carries.items():
        want = value + 4 if name.startswith("uint8") else value
        np.testing.assert_array_equal(read(got[name]), want.astype(value.dtype), err_msg=name)


def test_nested_loops(dovetail_backend: Backend) -> None:
    """Loops in branches in loops in scans, each using variables of the enclosing ones."""
    x = numbers(dovetail_backend, 4)

    def turn(carry: Any, element: Any) -> Any:
        def inner(i: Any, s: Any) -> Any:
            return lax.cond(
                lax.eq(lax.rem(i, 2), 0),
                lambda s: lax.add(s, element),
                lambda s: lax.while_loop(
                    lambda t: lax.gt(lax.abs(t), 1.0), lambda t: lax.mul(t, 0.5), lax.mul(s, carry)
                ),
                s,
            )

        new = lax.fori_loop(0, 3, inner, carry)
        return new, lax.mul(new, element)

    carry, rows = 1.5, []
    for element in x.tolist():
        s = carry
        for i in range(3):
            if i % 2 == 0:
                s += element
            else:
                s *= carry
                while abs(s) > 1:
                    s *= 0.5
        carry = s
        rows.append(s * element)
    first = np.asarray(1.5, x.dtype)
    got = dt.jit(lambda c, x: lax.scan(turn, c, x))(first, x)
    close(dovetail_backend, got, (carry, np.array(rows)), "loops in branches in loops in a scan")


# ---------------------------------------------------------------------------------------- scans


@pytest.mark.parametrize("reverse", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("unroll", [1, 2, 5])
def test_scan(dovetail_backend: Backend, reverse: bool, unroll: int) -> None:
    """A scan carries a value over the elements of arrays and stacks the outputs."""
    x, y = numbers(dovetail_backend, 5, 2), np.arange(5, dtype=np.int32)

    def turn(carry: Any, row: Any) -> Any:
        a, i = row
        new = lax.add(lax.mul(carry, 0.5), a)
        return new, {"state": new, "index": lax.add(i, 1)}

    carry, states = np.ones(2), np.zeros((5, 2))
    for i in reversed(range(5)) if reverse else range(5):
        carry = carry * 0.5 + x[i]
        states[i] = carry
    start = np.ones(2, dovetail_backend.widest)
    scan = dt.jit(lambda c, x: lax.scan(turn, c, x, reverse=reverse, unroll=unroll))
    want = (carry, {"index": y + 1, "state": states})
    close(dovetail_backend, scan(start, (x, y)), want, f"scan, reverse={reverse}, {unroll=}")


def test_scan_of_nothing(dovetail_backend: Backend) -> None:
    """A scan over no elements returns its initial carry, and arrays with no rows."""
    x = np.zeros((0, 3), dovetail_backend.widest)
    start = numbers(dovetail_backend, 3)
    carry, rows = dt.jit(lambda c, x: lax.scan(lambda c, x: (lax.add(c, x), x), c, x))(start, x)
    close(dovetail_backend, (carry, rows), (start, x), "a scan over no elements")


def test_scan_of_counters(dovetail_backend: Backend) -> None:
    """A scan over no arrays runs for the requested length."""
    carry, rows = dt.jit(lambda c: lax.scan(lambda c, _: (lax.mul(c, 2), c), c, None, length=6))(
        np.int32(1)
    )
    assert read(carry).item() == 64
    assert read(rows).tolist() == [1, 2, 4, 8, 16, 32]


@full
def test_long_scans(dovetail_backend: Backend) -> None:
    """A scan of ten thousand iterations, and its gradient."""
    x = (np.arange(10_000) % 7 / 1e4).astype(dovetail_backend.widest)

    def total(x: Any) -> Any:
        def turn(c: Any, e: Any) -> Any:
            return lax.add(lax.mul(c, 0.9995), e), ()

        return lax.scan(turn, np.zeros((), x.dtype), x)[0]

    value, gradient = dt.jit(dt.value_and_grad(total))(x)
    weights = 0.9995 ** np.arange(9_999, -1, -1)
    np.testing.assert_allclose(read(value), np.dot(weights, x), rtol=1e-3)
    np.testing.assert_allclose(read(gradient), weights, rtol=1e-3)


def test_batched_scan(dovetail_backend: Backend) -> None:
    """Under `vmap` the carry, the elements, or both may be batched."""
    x, c = numbers(dovetail_backend, 3, 4), numbers(dovetail_backend, 2)

    def run(c: Any, x: Any) -> Any:
        return lax.scan(lambda c, e: (lax.mul(lax.add(c, e), 0.5), lax.sin(c)), c, x)

    def loop(c: Any, x: NDArray) -> tuple[Any, NDArray]:
        rows = []
        for e in x:
            rows.append(np.sin(c))
            c = (c + e) * 0.5
        return c, np.stack(rows)

    got = dt.jit(dt.vmap(run, in_axes=(None, 0)))(c[0], x)
    want = [loop(c[0], row) for row in x]
    close(dovetail_backend, got, tuple(map(np.stack, zip(*want, strict=True))), "batched elements")
    got = dt.jit(dt.vmap(run, in_axes=(0, None)))(c, x[0])
    want = [loop(value, x[0]) for value in c]
    close(dovetail_backend, got, tuple(map(np.stack, zip(*want, strict=True))), "batched carry")


def test_map(dovetail_backend: Backend) -> None:
    """`lax.map` applies a function to each row in turn, or to several at once."""
    x = numbers(dovetail_backend, 7, 3)

    def f(row: Any) -> Any:
        return lax.reduce_max(row, (0,)), lax.neg(row)

    for size in (None, 1, 3, 7):
        got = dt.jit(lambda x, size=size: lax.map(f, x, batch_size=size))(x)
        close(dovetail_backend, got, (x.max(1), -x), f"map with batch_size={size}")


@pytest.mark.parametrize("reverse", [False, True], ids=["forwards", "backwards"])
def test_associative_scan(dovetail_backend: Backend, reverse: bool) -> None:
    """Cumulative products of matrices, which do not commute, in logarithmic depth."""
    x = numbers(dovetail_backend, 6, 2, 2)

    def times(a: Any, b: Any) -> Any:
        return lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))))

    rows = [x[-1] if reverse else x[0]]
    for matrix in x[-2::-1] if reverse else x[1:]:
        rows.append(rows[-1] @ matrix)
    want = np.stack(rows[::-1] if reverse else rows)
    got = dt.jit(lambda x: lax.associative_scan(times, x, reverse=reverse))(x)
    close(dovetail_backend, got, want, "running products of matrices")


def test_derivatives_of_loops(dovetail_backend: Backend) -> None:
    """Gradients of a loop with known bounds, and tangents of one with a computed end."""
    x = np.asarray(0.6, dovetail_backend.widest)

    def power(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, y: lax.mul(y, x), np.ones((), x.dtype))

    def doubled(x: Any) -> Any:
        return lax.while_loop(lambda y: lax.lt(y, 10.0), lambda y: lax.mul(y, 2.0), x)

    close(dovetail_backend, dt.jit(dt.grad(power))(x), 5 * 0.6**4, "grad of a loop")
    close(dovetail_backend, dt.jit(dt.grad(dt.grad(power)))(x), 20 * 0.6**3, "grad of its grad")
    got = dt.jit(lambda x: dt.jvp(doubled, (x,), (lax.full_like(x, 1.0),)))(x)
    close(dovetail_backend, got, (0.6 * 32, 32.0), "jvp of a while loop")


def test_references_in_loops(dovetail_backend: Backend) -> None:
    """A loop that writes to a mutable reference carries its value."""
    pytest.importorskip("dovetail.numpy", reason="writing to references takes dovetail-numpy")
    ref = dt.new_ref(dovetail_backend.put(np.zeros(5, np.float32)))

    @dt.jit
    def fill(x: Any) -> Any:
        def body(i: Any, carry: Any) -> Any:
            ref[...] = lax.add(lax.mul(ref[...], 2.0), carry)
            return lax.add(carry, 1.0)

        return lax.fori_loop(1, 4, body, x)

    assert read(fill(np.float32(2))).item() == 5
    assert read(ref[...]).tolist() == [18.0] * 5


def test_reductions_of_ones_own(dovetail_backend: Backend) -> None:
    """`lax.reduce` and `lax.reduce_window` combine elements with a user-defined function."""
    x = np.arange(12, dtype=np.int32).reshape(3, 4)

    def larger_and_sum(a: Any, b: Any) -> Any:
        return lax.max(a[0], b[0]), lax.add(a[1], b[1])

    reduce = dt.jit(lambda x: lax.reduce((x, x), (-1, 0), larger_and_sum, (1,)))
    largest, total = reduce(x)
    assert read(largest).tolist() == [3, 7, 11]
    assert read(total).tolist() == [6, 22, 38]
    window = dt.jit(
        lambda x: lax.reduce_window(
            x, 0, lambda a, b: lax.bitwise_xor(a, b), (1, 2), (1, 2), "VALID"
        )
    )
    want = [[x[i, j] ^ x[i, j + 1] for j in (0, 2)] for i in range(3)]
    assert read(window(x)).tolist() == want


@pytest.mark.parametrize("platforms", ["own", "default"])
def test_platform_dependent(dovetail_backend: Backend, platforms: str) -> None:
    """The branch for this platform is the one that is compiled, or else the default."""
    name = dovetail_backend.platform if platforms == "own" else "another_platform"
    chosen = {name: lambda x: lax.mul(x, 2)}

    def f(x: Any) -> Any:
        return lax.platform_dependent(x, default=lambda x: lax.neg(x), **chosen)

    assert read(dt.jit(f)(np.float32(3))).item() == (6 if platforms == "own" else -3)


def test_tokens_order(dovetail_backend: Backend) -> None:
    """Tokens and barriers pass through a program and change no value."""
    x = np.arange(4, dtype=np.float32)

    def f(x: Any) -> Any:
        token = lax.after_all(lax.create_token(), lax.create_token(x))
        _, y = lax.optimization_barrier((token, lax.neg(x)))
        return y

    assert read(dt.jit(f)(x)).tolist() == [-0.0, -1, -2, -3]
