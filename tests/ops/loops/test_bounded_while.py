"""`while_loop` with `max_steps`: gradients, the states that it keeps, the steps that it takes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail.experimental import io_callback

RNG = np.random.default_rng(0)
W = RNG.normal(size=3).astype(np.float32)
X = RNG.normal(size=(5, 3)).astype(np.float32)
STOPS = np.array([0, 3, 7, 9, 5])
MOST = 7
#: How many states are kept: all numbers of segments that the bound allows, and more.
CHECKPOINTS = (None, *range(1, MOST + 1), 20)


def _body(w: Any, state: Any) -> Any:
    i, y, z = state
    return i + 1, jnp.sin(y * w) + 0.1 * z, z * jnp.cos(y)


def bounded(max_steps: int, checkpoints: int | None) -> Callable[..., Any]:
    """A loss of the last state of a loop, with a captured value that is differentiated."""

    def loss(w: Any, x: Any, stop: Any) -> Any:
        i, y, z = lax.while_loop(
            lambda s: s[0] < stop,
            lambda s: _body(w, s),
            (jnp.int32(0), x, x * w),
            max_steps=max_steps,
            checkpoints=checkpoints,
        )
        return jnp.sum(y * z) + i

    return loss


def masked(w: Any, x: Any, stop: Any) -> Any:
    """The same loss by a loop that always runs to its bound."""

    def step(state: Any, _: Any) -> Any:
        return lax.cond(state[0] < stop, lambda s: _body(w, s), lambda s: s, state), None

    (i, y, z), _ = lax.scan(step, (jnp.int32(0), x, x * w), None, MOST)
    return jnp.sum(y * z) + i


def assert_close(actual: Any, expected: Any, tolerance: float = 3e-5) -> None:
    dt.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, tolerance, tolerance), actual, expected
    )


def _forward_over_reverse(f: Any) -> Any:
    return dt.hessian(f, (0, 1))


def _reverse_over_reverse(f: Any) -> Any:
    return dt.jacrev(dt.grad(f, (0, 1)), (0, 1))


def _reverse_over_forward(f: Any) -> Any:
    return dt.grad(lambda w, x, stop: dt.jvp(lambda w: f(w, x, stop), (w,), (x,))[1], (0, 1))


FIRST: dict[str, Any] = {
    "value": lambda f: f,
    "grad": lambda f: dt.value_and_grad(f, (0, 1)),
    "jvp": lambda f: lambda w, x, stop: dt.jvp(lambda w, x: f(w, x, stop), (w, x), (x, w)),
}
SECOND: dict[str, Any] = {
    "forward over reverse": _forward_over_reverse,
    "reverse over reverse": _reverse_over_reverse,
    "reverse over forward": _reverse_over_forward,
}
CASES = [
    *(("grad", k) for k in CHECKPOINTS),
    *itertools.product(("value", "jvp"), (None,)),
    *itertools.product(SECOND, (1, 3, MOST)),
]


@pytest.mark.parametrize(("way", "checkpoints"), CASES)
def test_derivatives(way: str, checkpoints: int | None) -> None:
    derive = (FIRST | SECOND)[way]
    actual, expected = dt.jit(derive(bounded(MOST, checkpoints))), dt.jit(derive(masked))
    for stop in (0, 1, 3, 7, 9):
        assert_close(actual(W, X[0], stop), expected(W, X[0], stop), 1e-4)


@pytest.mark.parametrize("checkpoints", [3, MOST])
@pytest.mark.parametrize("way", ["grad of vmap", "vmap of grad", "vmap of hessian"])
def test_elements_that_take_different_numbers_of_steps(way: str, checkpoints: int) -> None:
    def derive(f: Any) -> Any:
        if way == "grad of vmap":
            batched = dt.vmap(f, (None, 0, 0))
            return dt.jit(dt.grad(lambda w, x: batched(w, x, STOPS).sum(), (0, 1)))(W, X)
        derived = dt.grad(f, (0, 1)) if way == "vmap of grad" else _forward_over_reverse(f)
        return dt.jit(dt.vmap(derived, (None, 0, 0)))(W, X, STOPS)

    assert_close(derive(bounded(MOST, checkpoints)), derive(masked), 2e-4)


def test_finite_differences() -> None:
    with dt.enable_x64(True):
        loss = bounded(6, 2)

        def at(v: Any) -> Any:
            return loss(v[:3], v[3:], 5)

        value, grad, hessian = map(dt.jit, (at, dt.grad(at), dt.jacrev(dt.grad(at))))
        v = np.concatenate([W, X[0]]).astype(np.float64)
        steps = 1e-5 * np.eye(6)
        for function, derivative in ((value, grad), (grad, hessian)):
            differences = [(function(v + h) - function(v - h)) / 2e-5 for h in steps]
            np.testing.assert_allclose(derivative(v), np.array(differences), 1e-6, 1e-8)


def test_an_infinite_derivative_after_the_end_is_not_seen() -> None:
    def root(x: Any, stop: Any) -> Any:
        step = lambda s: (s[0] + 1, jnp.sqrt(s[1] - 1))
        return lax.while_loop(lambda s: s[0] < stop, step, (0, x), max_steps=4)[1]

    x, stops = jnp.array([2.0, 5.0]), jnp.array([1, 2])
    expected = [dt.grad(root)(x[i], stops[i]) for i in (0, 1)]
    assert_close(dt.vmap(dt.grad(root))(x, stops), np.array(expected))
    batched = dt.vmap(root)
    assert_close(dt.grad(lambda x: batched(x, stops).sum())(x), np.array(expected))


@pytest.mark.parametrize("max_steps", [1, 4, 10])
def test_the_bound_ends_the_loop(max_steps: int) -> None:
    goes_on = lambda n: n < 6
    last = lax.while_loop(goes_on, lambda n: n + 1, 0, max_steps=max_steps)
    assert int(last) == min(max_steps, 6)
    assert bool(goes_on(last)) == (max_steps < 6)
    with dt.disable_jit():
        assert int(lax.while_loop(goes_on, lambda n: n + 1, 0, max_steps=max_steps)) == int(last)


def test_eager_as_compiled() -> None:
    loss = bounded(MOST, 3)
    for derive in (lambda f: f, lambda f: dt.grad(f, (0, 1))):
        eager, compiled = derive(loss)(W, X[0], 4), dt.jit(derive(loss))(W, X[0], 4)
        assert_close(eager, compiled, 1e-6)


SIZE = 4096


def _states_held(f: Any) -> float:
    """The temporary memory of a program, in states of a loop."""
    memory = dt.jit(f).lower(jnp.ones(SIZE)).compile().memory_analysis()
    return float(memory.temp_size_in_bytes / (4 * SIZE))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("max_steps", "checkpoints"), [(64, None), (64, 1), (64, 4), (256, 16), (256, 4), (64, 64)]
)
def test_memory(max_steps: int, checkpoints: int | None, order: int) -> None:
    kept = checkpoints or 8
    stated = kept + max_steps / kept if kept < max_steps else max_steps

    def loss(x: Any) -> Any:
        step = lambda s: (s[0] + 1, jnp.sin(s[1]) * 1.01)
        goes_on = lambda s: s[0] < 1000
        bounds = {"max_steps": max_steps, "checkpoints": checkpoints}
        return lax.while_loop(goes_on, step, (0, x), **bounds)[1].sum()

    derived: Any = dt.grad(loss)
    if order == 2:
        derived = dt.grad(lambda x: dt.grad(loss)(x).sum())
    held = _states_held(derived)
    # The second derivative carries and keeps a few values in place of each.
    assert stated - 1 <= held <= (stated + 8 if order == 1 else 6.5 * stated + 24)


@pytest.mark.parametrize("checkpoints", [None, 10, 1000])
def test_time_is_that_of_the_steps_that_are_taken(checkpoints: int | None) -> None:
    calls = []

    def called(i: Any) -> Any:
        calls.append(int(i))
        return np.asarray(i + 1, np.int32)

    def step(state: Any) -> Any:
        i, x = state
        return dt.pure_callback(called, dt.ShapeDtypeStruct((), np.int32), i), x * x

    def loss(x: Any) -> Any:
        bounds = {"max_steps": 1000, "checkpoints": checkpoints}
        return lax.while_loop(lambda s: s[1] < 100, step, (jnp.int32(0), x), **bounds)[1]

    assert float(dt.grad(loss)(2.0)) == 8 * 2.0**7
    assert set(calls) == {0, 1, 2}
    assert len(calls) <= 3 * 3


def _custom_rule() -> Any:
    @dt.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, ct: (3 * ct * x,))  # a rule of its own
    return square


def test_rules_of_the_body_are_used() -> None:
    square = _custom_rule()
    for checkpoints in (1, 2, 5):
        loop = lambda x, k=checkpoints: lax.while_loop(
            lambda s: s < 100, square, x, max_steps=5, checkpoints=k
        )
        assert float(dt.grad(loop)(3.0)) == 3 * 3 * 3 * 9 * 3 * 81


def test_keys() -> None:
    def loop(x: Any, key: Any) -> Any:
        def step(state: Any) -> Any:
            i, x, key = state
            key, used = random.split(key)
            return i + 1, x * random.normal(used), key

        return lax.while_loop(lambda s: s[0] < 3, step, (0, x, key), max_steps=5)[1]

    key = random.key(0)
    assert_close(dt.grad(loop)(2.0, random.clone(key)), loop(1.0, key))


def test_printing_happens_once_for_each_step(capfd: Any) -> None:
    def step(x: Any) -> Any:
        dt.debug.print("at {}", x)
        return x * x

    loop = lambda x: lax.while_loop(lambda x: x < 100, step, x, max_steps=6)
    assert float(dt.grad(loop)(2.0)) == 8 * 2.0**7
    dt.effects_barrier()
    assert capfd.readouterr().out.split() == ["at", "2.0", "at", "4.0", "at", "16.0"]


def test_results_of_host_functions_are_refused() -> None:
    def step(x: Any) -> Any:
        return x * io_callback(lambda: np.float32(2), dt.ShapeDtypeStruct((), np.float32))

    loop = lambda x: lax.while_loop(lambda x: x < 9, step, x, max_steps=6)
    assert float(loop(1.0)) == 16
    with pytest.raises(NotImplementedError, match="computed a second time; call it before"):
        dt.grad(loop)(1.0)


def test_a_reference_that_the_body_writes() -> None:
    def loss(x: Any) -> Any:
        total = dt.new_ref(0.0)

        def step(x: Any) -> Any:
            total[...] += x
            return x * x

        last = lax.while_loop(lambda x: x < 100, step, x, max_steps=6)
        return last + total[...]

    assert float(dt.grad(loss)(2.0)) == 8 * 2.0**7 + 1 + 2 * 2 + 4 * 2.0**3


def test_what_does_not_change_is_not_kept() -> None:
    def loss(table: Any, x: Any) -> Any:
        step = lambda s: (s[0], s[1] + 1, s[2] * s[0].sum())
        goes_on = lambda s: s[1] < 5
        return lax.while_loop(goes_on, step, (table, 0, x), max_steps=64, checkpoints=64)[2]

    table = jnp.ones(SIZE) / SIZE
    assert _states_held(dt.grad(lambda t: loss(t, 1.0))) < 6
    assert_close(dt.grad(loss)(table, 1.0), np.full(SIZE, 5.0))


def test_linear_loops_are_transposed() -> None:
    double = lambda x: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, 2 * s[1]), (0, x), max_steps=5
    )[1]
    (result,) = dt.linear_transpose(double, 1.0)(1.0)
    assert float(result) == 8
    with pytest.raises(TypeError, match="condition depends on a tangent"):
        dt.linear_transpose(
            lambda x: lax.while_loop(lambda x: x < 3, lambda x: 2 * x, x, max_steps=5), 1.0
        )(1.0)


ERRORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"max_steps": 0}, ValueError, "max_steps must be a positive integer up to 2.*, got 0"),
    ({"max_steps": -3}, ValueError, "max_steps must be a positive integer"),
    ({"max_steps": 2**30 + 1}, ValueError, "max_steps must be a positive integer"),
    ({"max_steps": True}, ValueError, "max_steps must be a positive integer.*True"),
    ({"max_steps": 2.0}, TypeError, "max_steps must be an integer, got 2.0"),
    ({"max_steps": "9"}, TypeError, "max_steps must be an integer, got '9'"),
    ({"max_steps": 9, "checkpoints": 0}, ValueError, "checkpoints must be a positive integer"),
    ({"max_steps": 9, "checkpoints": 1.5}, TypeError, "checkpoints must be an integer"),
    ({"checkpoints": 3}, ValueError, "checkpoints=3.*give max_steps"),
]


@pytest.mark.parametrize(("given", "kind", "message"), ERRORS)
def test_errors(given: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        lax.while_loop(lambda n: n < 3, lambda n: n + 1, 0, **given)


def test_errors_of_bounds_and_bodies_that_do_not_fit() -> None:
    with pytest.raises(dt.errors.ConcretizationTypeError, match="argument max_steps"):
        dt.jit(lambda n: lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0, max_steps=n))(3)
    with pytest.raises(TypeError, match="shape changes"):
        lax.while_loop(lambda c: True, lambda c: jnp.stack([c, c]), 0.0, max_steps=3)
