"""The functions of loops, branches and `checkpoint`: traced once for arguments of the same types,
and anew where what their variables hold may have changed."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.base import strictness as policies

# A function of any of them takes `*args`: its result is `times(args, factor)`.
RUN: dict[str, Callable[[Any, Any], Any]] = {
    "scan": lambda f, x: lax.scan(f, x, None, length=2)[0],
    "scan from a number": lambda f, x: lax.scan(f, 1.0, None, length=2)[0],
    "map": lambda f, x: lax.map(f, x),
    "while_loop": lambda f, x: lax.while_loop(below, f, x),
    "condition of while_loop": lambda f, x: lax.while_loop(f, halved, x),
    "fori_loop": lambda f, x: lax.fori_loop(0, 2, f, x),
    "fori_loop to a bound": lambda f, x: lax.fori_loop(0, jnp.asarray(2), f, x),
    "cond": lambda f, x: lax.cond(True, f, same, x),
    "switch": lambda f, x: lax.switch(1, [same, f], x),
    "checkpoint": lambda f, x: dt.checkpoint(f)(x),
    "gradient of scan": lambda f, x: dt.grad(lambda y: lax.scan(f, y, None, length=2)[0].sum())(x),
    "scan in jit": lambda f, x: dt.jit(lambda y: lax.scan(f, y, None, length=2)[0])(x),
    "scan in vmap": lambda f, x: dt.vmap(lambda y: lax.scan(f, y, None, length=2)[0])(x),
}
X = np.array([1, 2, 3], np.float32)


def same(x: Any) -> Any:
    return x


def halved(x: Any) -> Any:
    return x / 2


def below(x: Any) -> Any:
    return x.sum() < 100


def times(args: Any, factor: Any) -> Any:
    """The result of a function with these arguments, whichever of the loops it is for."""
    if args[-1] is None:
        return args[0] * factor, None
    result = args[-1] * factor
    return result.sum() > 10 if CONDITION else result


def run_on_tracers(name: str, f: Any) -> Any:
    global CONDITION
    CONDITION = name.startswith("condition")
    return RUN[name](f, jnp.asarray(X))


def run(name: str, f: Any) -> Any:
    return np.asarray(run_on_tracers(name, f))


class Settings:
    factor: Any = 2.0

    def __call__(self, *args: Any) -> Any:
        return times(args, self.factor)


def by_a_class(*args: Any) -> Any:
    return times(args, Settings.factor)


class Pair(NamedTuple):
    name: str
    factor: Any


CONDITION = False
FACTOR: Any = 2.0
MODULE = ModuleType("settings")
OBJECT = Settings()
TRACED = itertools.count()


def by_a_global(*args: Any) -> Any:
    return times(args, FACTOR)


def factor() -> Any:
    return FACTOR


def by_a_function(*args: Any) -> Any:
    return times(args, factor())


def by_a_nested_function(*args: Any) -> Any:
    return times(args, max(FACTOR for _ in range(1)))


def by_a_module(*args: Any) -> Any:
    return times(args, MODULE.factor)  # type: ignore[attr-defined]


def by_an_object(*args: Any) -> Any:
    return times(args, OBJECT.factor)


def changing(kind: str) -> tuple[Any, Callable[[Any], None]]:
    """A function whose variable holds a factor, and what gives it another."""
    if kind.startswith("global"):
        by = {
            "global": by_a_global,
            "global of a function": by_a_function,
            "global of a part": by_a_nested_function,
            "global of partial": partial(by_a_global),
        }
        return by[kind], lambda value: globals().__setitem__("FACTOR", value)
    if kind == "module":
        return by_a_module, lambda value: setattr(MODULE, "factor", value)
    if kind == "object":
        return by_an_object, lambda value: setattr(OBJECT, "factor", value)
    if kind == "callable object":
        own = Settings()
        return own, lambda value: setattr(own, "factor", value)
    if kind == "class":
        return by_a_class, lambda value: setattr(Settings, "factor", value)

    held: Any = 2.0

    def assign(value: Any) -> None:
        nonlocal held
        held = value

    if kind == "variable":
        return lambda *args: times(args, held), assign
    if kind == "named tuple":
        held = Pair("", 2.0)
        return lambda *args: times(args, held.factor), lambda value: assign(Pair("", value))
    if kind == "array":
        held = jnp.float32(2)
        return lambda *args: times(args, held), lambda value: assign(jnp.float32(value))
    if kind == "default":

        def with_default(*args: Any, k: Any = 2.0) -> Any:
            return times(args, k)

        return with_default, lambda value: setattr(with_default, "__kwdefaults__", {"k": value})
    containers: dict[str, Any] = {
        "list": [2.0],
        "dictionary": {0: 2.0},
        "list in a tuple": ([2.0],),
        "array of NumPy": np.array([2.0], np.float32),
    }
    container = containers[kind]
    written = container[0] if kind == "list in a tuple" else container
    if kind == "list in a tuple":
        return lambda *args: times(args, container[0][0]), partial(written.__setitem__, 0)
    return lambda *args: times(args, container[0]), partial(written.__setitem__, 0)


KINDS = (
    "global",
    "global of a function",
    "global of a part",
    "global of partial",
    "module",
    "object",
    "callable object",
    "class",
    "variable",
    "named tuple",
    "array",
    "default",
    "list",
    "dictionary",
    "list in a tuple",
    "array of NumPy",
)


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("kind", KINDS)
def test_changes_are_seen(name: str, kind: str) -> None:
    function, assign = changing(kind)
    try:
        for value in (2.0, 3.0, 2.0):
            assign(value)
            expected = run(name, lambda *args, k=value: times(args, k))
            for _ in range(2):
                np.testing.assert_array_equal(run(name, function), expected)
    finally:
        assign(2.0)


def counted(*args: Any) -> Any:
    next(TRACED)
    return times(args, 2.0)


def times_traced(name: str, function: Any, calls: int = 3) -> int:
    before = next(TRACED)
    for _ in range(calls):
        run(name, function)
    return next(TRACED) - before - 1


@pytest.mark.parametrize("name", RUN)
def test_traced_once(name: str) -> None:
    dt.clear_caches()
    assert times_traced(name, counted) == 1


@pytest.mark.parametrize("name", RUN)
def test_variables_that_a_function_sets_itself_are_not_compared(name: str) -> None:
    count = 0

    def counting(*args: Any) -> Any:
        nonlocal count
        count += 1
        return times(args, 2.0)

    for _ in range(3):
        run(name, counting)
    assert count == 1


@pytest.mark.parametrize("name", RUN)
def test_by_the_policy_of_jax_variables_are_constants(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    relaxed = replace(policies.strictness(), bodies_see_changes=False)
    monkeypatch.setattr(policies, "_current", relaxed)
    seen: list[Any] = []

    def function(*args: Any) -> Any:
        seen.append(args)
        return times(args, 2.0)

    for _ in range(3):
        run(name, function)
    assert len(seen) == 1


@pytest.mark.parametrize("name", RUN)
def test_other_types_and_options_are_traced_anew(name: str) -> None:
    dt.clear_caches()
    assert times_traced(name, counted, 1) == 1
    with dt.default_matmul_precision("highest"):
        assert times_traced(name, counted) == 1
    assert times_traced(name, counted) == 0
    if name != "scan from a number":
        before = next(TRACED)
        RUN[name](counted, X.astype(np.float16))
        assert next(TRACED) - before - 1 == 1


@pytest.mark.parametrize("name", RUN)
def test_captured_tracers_are_those_of_the_call(name: str) -> None:
    """A function that outlives a trace holds a value of the next one."""
    values: list[Any] = [None]

    def function(*args: Any) -> Any:
        return times(args, values[0])

    def outer(k: Any) -> Any:
        values[0] = k
        return run_on_tracers(name, function)

    for k in (2.0, 3.0):
        expected = run(name, lambda *args, k=k: times(args, np.float32(k)))
        np.testing.assert_array_equal(dt.jit(outer)(np.float32(k)), expected)
        np.testing.assert_array_equal(dt.vmap(outer)(np.full(1, k, np.float32))[0], expected)


@pytest.mark.parametrize("name", RUN)
def test_functions_are_released(name: str) -> None:
    def make() -> Any:
        def function(*args: Any) -> Any:
            again = function  # names itself
            return times(args, 2.0 if again else 3.0)

        return function

    function = make()
    run(name, function)
    released = weakref.ref(function)
    del function
    gc.collect()
    assert released() is None


def test_messages_name_the_line_of_each_function() -> None:
    for function in (lambda c, x: (c[0], x), lambda c, x: (jnp.zeros(2), x)):
        for _ in range(2):
            with pytest.raises(TypeError, match=r"what <lambda> \(.*test_traced_once"):
                lax.scan(function, jnp.zeros(3), None, length=2)
