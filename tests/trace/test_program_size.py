"""Deep programs fit on the stack, and the work of tracing is proportional to a program's size."""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.ir.walk import jaxpr_as_fun

DEPTH = 300
X = np.linspace(0.1, 1.0, 3, dtype=np.float32)[None]


def nested(depth: int) -> Callable[[Any], Any]:
    """A jitted function that calls a jitted one that calls a jitted one ..."""

    def innermost(x: Any) -> Any:
        return jnp.sin(x) * 2.0

    function = dt.jit(innermost)
    for _ in range(depth):

        def caller(x: Any, called: Callable[[Any], Any] = function) -> Any:
            return called(x) + 1.0

        function = dt.jit(caller)
    return function


def total(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jnp.sum(function(x))


def tangent(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: dt.jvp(function, (x,), (jnp.ones_like(x),))[1]


Transformation = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]

# `nested(n)` computes 2 sin(x) + n.
TRANSFORMATIONS: dict[str, Transformation] = {
    "grad": lambda f: dt.grad(total(f)),
    "jvp": tangent,
    "vmap": lambda f: dt.vmap(f),
    "jit": lambda f: dt.jit(f),
}
PAIRS = [(a, b) for a in TRANSFORMATIONS for b in TRANSFORMATIONS]
DERIVATIVES: list[Callable[[Any], Any]] = [
    lambda x: 2 * np.sin(x) + DEPTH,
    lambda x: 2 * np.cos(x),
    lambda x: -2 * np.sin(x),
]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_nested_calls_under_transformations(pair: tuple[str, str]) -> None:
    outer, inner = pair
    function = TRANSFORMATIONS[outer](TRANSFORMATIONS[inner](nested(DEPTH)))
    order = sum(name in ("grad", "jvp") for name in pair)
    np.testing.assert_allclose(function(X), DERIVATIVES[order](X), rtol=1e-5)


STEPS: dict[str, Callable[[Any], Any]] = {
    "trace": lambda f: dt.make_jaxpr(f)(X),
    "print": lambda f: str(dt.make_jaxpr(f)(X)),
    "eval_shape": lambda f: dt.eval_shape(f, X),
    "lower": lambda f: dt.jit(f).lower(X).as_text(),
    "lower for two": lambda f: dt.jit(f).lower(X, lowering_platforms=("cpu", "cuda")),
    "compile": lambda f: dt.jit(f).lower(X).compile()(X),
    "call": lambda f: f(X),
    "linearize": lambda f: dt.linearize(f, X)[1](X),
}


@pytest.mark.parametrize("step", STEPS)
def test_nested_calls_in_every_step(step: str) -> None:
    limits = sys.getrecursionlimit(), gc.get_threshold()
    STEPS[step](nested(DEPTH))
    assert (sys.getrecursionlimit(), gc.get_threshold()) == limits


def test_nested_calls_in_threads() -> None:
    limit = sys.getrecursionlimit()
    found: list[Any] = []

    def run() -> None:
        found.append(np.asarray(dt.grad(total(nested(DEPTH)))(X)))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    for result in found:
        np.testing.assert_allclose(result, 2 * np.cos(X), rtol=1e-5)
    assert sys.getrecursionlimit() == limit


def test_recursion_without_end_is_an_error() -> None:
    limit = sys.getrecursionlimit()

    @dt.jit
    def forever(x: Any) -> Any:
        return forever(x + 1.0)

    with pytest.raises(RecursionError):
        forever(X)
    assert sys.getrecursionlimit() == limit
    np.testing.assert_allclose(dt.jit(jnp.sin)(X), np.sin(X), rtol=1e-6)


def test_the_users_own_limits_win() -> None:
    limit, thresholds = sys.getrecursionlimit(), gc.get_threshold()

    def setting(x: Any) -> Any:
        sys.setrecursionlimit(limit + 77)
        gc.set_threshold(901, 7, 5)
        return x

    try:
        dt.jit(setting)(X)
        assert sys.getrecursionlimit() == limit + 77
        assert gc.get_threshold() == (901, 7, 5)
        dt.grad(total(nested(DEPTH)))(X)
        assert sys.getrecursionlimit() == limit + 77
        assert gc.get_threshold() == (901, 7, 5)
    finally:
        sys.setrecursionlimit(limit)
        gc.set_threshold(*thresholds)


def branch(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: lax.cond(jnp.sum(x) > 0, inner, lambda y: y, x)


def loop(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: lax.while_loop(lambda y: jnp.sum(y) < 0, inner, x)


@pytest.mark.parametrize("control", [branch, loop])
def test_control_flow_too_deep_for_the_compiler(control: Transformation) -> None:
    function: Callable[[Any], Any] = jnp.sin
    for _ in range(150):
        function = control(function)
    assert str(dt.make_jaxpr(function)(X))
    with pytest.raises(RecursionError, match="nested 150 deep; the compiler takes at most 128"):
        dt.jit(function)(X)


def test_derivatives_of_derivatives() -> None:
    order = 7
    function: Callable[[Any], Any] = dt.jit(jnp.sin)
    for _ in range(order):
        function = dt.grad(function)
    np.testing.assert_allclose(function(0.5), -np.cos(0.5), rtol=1e-5)


def test_many_batch_dimensions() -> None:
    function: Callable[[Any], Any] = dt.jit(jnp.sin)
    for _ in range(30):
        function = dt.vmap(function)
    assert function(np.ones((1,) * 30, np.float32)).shape == (1,) * 30


# Work, counted in calls of Python functions: ten times the equations, at most eleven times the
# calls.


def chain(count: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        for _ in range(count // 2):
            x = lax.mul(lax.sin(x), 2.0)
        return x

    return function


def many_arguments(count: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        parts = [x * float(i) for i in range(count // 2)]
        result = parts[0]
        for part in parts:
            result = lax.add(result, part)
        return result

    return function


def calls_of_one(count: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        inner = dt.jit(lax.sin)
        for _ in range(count):
            x = inner(x)
        return x

    return function


def calls_of_many(count: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        for _ in range(count // 2):
            x = dt.jit(lambda y: lax.sin(y))(x)
        return x

    return function


PROGRAMS = {f.__name__: f for f in (chain, many_arguments, calls_of_one, calls_of_many)}


def jaxpr_of(function: Callable[[Any], Any]) -> Any:
    return dt.make_jaxpr(function)(X)


def prepared(
    prepare: Callable[[Any], Any], measured: Callable[[Any], Any]
) -> Callable[[Any], Callable[[], Any]]:
    def step(function: Any) -> Callable[[], Any]:
        given = prepare(function)
        return lambda: measured(given)

    return step


WORK: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "make_jaxpr": lambda f: lambda: jaxpr_of(f),
    "eval_shape": lambda f: lambda: dt.eval_shape(f, X),
    "grad": lambda f: lambda: jaxpr_of(dt.grad(total(f))),
    "jvp": lambda f: lambda: jaxpr_of(tangent(f)),
    "vmap": lambda f: lambda: jaxpr_of(dt.vmap(f)),
    "grad of vmap": lambda f: lambda: jaxpr_of(dt.grad(total(dt.vmap(f)))),
    "lower": prepared(lambda f: dt.jit(f).trace(X), lambda traced: traced.lower()),
    "text": prepared(lambda f: dt.jit(f).lower(X), lambda lowered: lowered.as_text()),
    "print": prepared(jaxpr_of, str),
    "replay": prepared(jaxpr_of, lambda c: jaxpr_of(lambda x: jaxpr_as_fun(c)(x))),
}


def calls_made(run: Callable[[], Any]) -> int:
    counted: Counter[str] = Counter()

    def profile(frame: Any, event: str, argument: Any) -> None:
        counted[event] += 1

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return counted["call"] + counted["c_call"]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("work", WORK)
def test_work_is_linear(work: str, program: str) -> None:
    make = PROGRAMS[program]
    WORK[work](make(40))()
    small, large = (calls_made(WORK[work](make(n))) for n in (200, 2000))
    assert large <= 11 * small


@pytest.mark.parametrize("work", ["make_jaxpr", "grad", "vmap", "print"])
def test_objects_are_not_gone_through_again_and_again(work: str) -> None:
    """Collections of the oldest generation would make the time grow faster than the program."""
    collected: Counter[int] = Counter()

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            collected[info["generation"]] += 1

    run = WORK[work](chain(20_000))
    gc.callbacks.append(note)
    try:
        run()
    finally:
        gc.callbacks.remove(note)
    assert collected[0] > 0
    assert collected[2] == 0
