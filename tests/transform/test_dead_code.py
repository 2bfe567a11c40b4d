"""What nothing uses is not computed: also in branches, loops, and other bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.ir.check import check_jaxpr
from dovetail._core.ir.walk import all_equations, count_equations, dce
from dovetail._core.transform.derived import dce_closed, reference_of
from dovetail.custom_batching import custom_vmap
from dovetail.experimental import checkify
from dovetail.experimental.jet import jet
from dovetail.extend import ClosedJaxpr

pytestmark = pytest.mark.laws

X, Y = np.float32(0.5), np.float32(2.0)


@dovetail.custom_vjp
def only_backwards(x: Any) -> Any:
    return jnp.sin(x)


only_backwards.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x),))


def square(x: Any) -> Any:
    """The square of x, and beside it a derivative that cannot be computed."""
    dovetail.jvp(only_backwards, (x,), (1.0,))
    return x * x


# Each: a function of x and y, and for each of its results the arguments that it needs.
PROGRAMS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "call": (dovetail.jit(lambda x, y: (jnp.sin(x), square(y), x * y)), ["x", "y", "xy"]),
    "cond": (
        lambda x, y: lax.cond(
            True,
            lambda a, b: (square(a), jnp.cos(b), b, 1.0),
            lambda a, b: (jnp.sin(a), a * a, 2 * b, 2.0),
            x,
            y,
        ),
        ["x", "xy", "y", ""],
    ),
    "switch by an argument": (
        lambda x, y: lax.switch(
            (x > 0).astype(int), [lambda a: (a, 1.0), lambda a: (square(a), 2.0)], y
        ),
        ["xy", "x"],
    ),
    "scan": (
        lambda x, y: sum(
            lax.scan(
                lambda c, e: ((c[0] + 1, c[1] * y + square(c[0]), c[2] + c[1]), (c[0] * e, y)),
                (x, x, 0.0),
                jnp.arange(3.0),
            ),
            (),
        ),
        ["x", "xy", "xy", "x", "y"],
    ),
    "constants and elements": (
        lambda x, y: sum(
            lax.scan(lambda c, e: ((c[0] + e[0], c[1]), (e[1], 3.0 * y)), (0.0, 1.0), (x, y)), ()
        ),
        ["x", "", "y", "y"],
    ),
    "backwards": (
        lambda x, y: lax.scan(
            lambda c, e: ((c[1], c[0] * e), c[0]), (x, y), jnp.arange(1.0, 4.0), reverse=True
        )[0],
        ["xy", "xy"],
    ),
    "fori": (
        lambda x, y: lax.fori_loop(0, 3, lambda i, c: (c[0] + i, c[1] * square(c[1])), (x, y)),
        ["x", "y"],
    ),
    "while": (
        lambda x, y: lax.while_loop(
            lambda c: c[0] < 5.0,
            lambda c: (c[0] + 1.0, c[1] + square(c[0]), c[2] * y, c[3] + c[2], 3.0),
            (x, x, x, 1.0, y),
        ),
        ["x", "x", "xy", "xy", "xy"],
    ),
    "checkpoint": (
        dovetail.checkpoint(lambda x, y: (square(x), jnp.sin(y))),
        ["x", "y"],
    ),
    "cond in scan": (
        lambda x, y: lax.scan(
            lambda c, _: (lax.cond(c[0] > 1, lambda a, b: (a, square(b)), swapped, *c), None),
            (x, y),
            None,
            3,
        )[0],
        ["x", "xy"],
    ),
    "while in cond": (
        lambda x, y: lax.cond(
            True,
            lambda a, b: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, 2 * c[1]), (a, b)),
            lambda a, b: (square(a), b),
            x,
            y,
        ),
        ["x", "xy"],
    ),
    "scan in call in scan": (
        lambda x, y: lax.scan(
            lambda c, _: (
                dovetail.jit(
                    lambda c: lax.scan(lambda d, _: ((d[0] * d[0], square(d[1])), None), c, None, 2)
                )(c)[0],
                None,
            ),
            (x, y),
            None,
            2,
        )[0],
        ["x", "y"],
    ),
}


def swapped(a: Any, b: Any) -> tuple[Any, Any]:
    return a + 1, b * a


def staged(name: str) -> ClosedJaxpr:
    function = PROGRAMS[name][0]
    x, y = (np.array([v, v]) if name == "constants and elements" else v for v in (X, Y))
    return dovetail.make_jaxpr(function)(x, y)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_left_computes_the_used_results_from_what_they_need(name: str) -> None:
    closed = staged(name)
    args = [np.broadcast_to(v, a.shape) for v, a in zip((X, Y), closed.in_avals, strict=True)]
    every = reference_of(dce_closed(closed), args)
    needed = PROGRAMS[name][1]
    count = len(needed)
    for used in [[i == k for i in range(count)] for k in range(count)] + [[True] * count]:
        reduced, kept = dce(closed.jaxpr, used)
        check_jaxpr(reduced)
        letters = set("".join(n for n, u in zip(needed, used, strict=True) if u))
        assert kept == ["x" in letters, "y" in letters]
        assert dce(reduced)[0] is reduced
        assert not any(e.primitive.name == "custom_lin" for e in all_equations(reduced))
        given = [a for a, k in zip(args, kept, strict=True) if k]
        found = reference_of(ClosedJaxpr(reduced, closed.consts), given)
        for f, e in zip(found, [e for e, u in zip(every, used, strict=True) if u], strict=True):
            np.testing.assert_allclose(f, e, rtol=1e-6)
    assert dce(closed.jaxpr, [False] * count)[0].eqns == []
    assert count_equations(dce_closed(closed)) <= count_equations(closed)


def effectful(x: Any) -> Any:
    dovetail.debug.callback(lambda v: None, x + 1)
    return jnp.sin(x)


EFFECTS: dict[str, Callable[..., Any]] = {
    "call": dovetail.jit(effectful),
    "cond": lambda x: lax.cond(x > 0, effectful, lambda x: x, x),
    "scan": lambda x: lax.scan(lambda c, _: (c + 1, effectful(c)), x, None, 2)[1],
    "while": lambda x: lax.while_loop(
        lambda c: c[0] < 5, lambda c: (c[0] + 1, effectful(c[0])), (x, x)
    )[1],
    "checkpoint": dovetail.checkpoint(effectful),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_effects_stay_and_nothing_else(name: str) -> None:
    closed = dovetail.make_jaxpr(EFFECTS[name])(X)
    reduced, kept = dce(closed.jaxpr, [False])
    check_jaxpr(reduced)
    assert kept == [True]
    assert reduced.effects == closed.jaxpr.effects
    names = [e.primitive.name for e in all_equations(reduced)]
    assert "sin" not in names
    assert any("callback" in n for n in names), names


# Functions of x that are its square, and compute for nothing what cannot be computed.


@dovetail.custom_jvp
def with_jvp(x: Any) -> Any:
    return square(x)


with_jvp.defjvp(lambda primals, ts: (with_jvp(*primals), 2 * primals[0] * ts[0]))


@dovetail.custom_vjp
def with_vjp(x: Any) -> Any:
    return square(x)


with_vjp.defvjp(lambda x: (with_vjp(x), x), lambda x, ct: (2 * x * ct,))


@custom_vmap
def with_vmap(x: Any) -> Any:
    return square(x)


@with_vmap.def_vmap
def _(size: int, in_batched: list[bool], x: Any) -> tuple[Any, bool]:
    return x * x, in_batched[0]


def loop_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: lax.scan(lambda c, _: (function(c), None), x, None, 1)[0]


SQUARES: dict[str, Callable[..., Any]] = {
    "call": dovetail.jit(square),
    "unused result of a call": dovetail.jit(
        lambda x: dovetail.jit(lambda x: (dovetail.jvp(only_backwards, (x,), (1.0,))[1], x * x))(x)[
            1
        ]
    ),
    "cond": lambda x: lax.cond(x > 0, square, lambda x: x, x),
    "switch": lambda x: lax.switch(1, [jnp.sin, dovetail.jit(square), jnp.cos], x),
    "scan": loop_of(square),
    "fori": lambda x: lax.fori_loop(0, 1, lambda _, c: square(c), x),
    "map": lambda x: lax.map(square, x[None])[0],
    "while": lambda x: lax.while_loop(
        lambda c: c[0] < 1, lambda c: (c[0] + 1, square(c[1])), (0, x)
    )[1],
    "checkpoint": dovetail.checkpoint(square),
    "custom_jvp": dovetail.jit(with_jvp),
    "custom_vjp": dovetail.jit(with_vjp),
    "custom_vmap": with_vmap,
    "linear solve": lambda x: lax.custom_linear_solve(
        lambda v: v / square(x), 1.0, lambda _, b: b * square(x), lambda _, b: b * square(x)
    ),
    "root": lambda x: lax.custom_root(
        lambda v: v - square(x), x, lambda *_: square(x), lambda g, y: y / g(1.0)
    ),
    "cond in scan": loop_of(lambda x: lax.cond(x > 0, square, lambda x: x, x)),
    "checkpoint in scan": loop_of(dovetail.checkpoint(square)),
    "custom_vjp in scan": loop_of(with_vjp),
}


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: checkify.checkify(function, errors=checkify.all_checks)(x)[1]


WAYS: dict[str, tuple[Callable[..., Callable[..., Any]], float]] = {
    "eager": (lambda f: f, 0.25),
    "jit": (dovetail.jit, 0.25),
    "jvp": (lambda f: lambda x: dovetail.jvp(f, (x,), (1.0,))[1], 1.0),
    "grad": (dovetail.grad, 1.0),
    "jit of grad": (lambda f: dovetail.jit(dovetail.grad(f)), 1.0),
    "grad of grad": (lambda f: dovetail.grad(dovetail.grad(f)), 2.0),
    "vmap": (lambda f: lambda x: dovetail.vmap(f)(x[None])[0], 0.25),
    "grad of vmap": (lambda f: dovetail.grad(lambda x: dovetail.vmap(f)(x[None])[0]), 1.0),
    "linearize": (lambda f: lambda x: dovetail.linearize(f, x)[1](1.0), 1.0),
    "grad of checkpoint": (lambda f: dovetail.grad(dovetail.checkpoint(f)), 1.0),
    "checkify": (checked, 0.25),
    "jet": (lambda f: lambda x: jet(f, (x,), ((1.0,),))[1][0], 1.0),
}
FORWARD = {"eager", "jit", "jvp", "vmap", "linearize", "checkify", "jet"}


@pytest.mark.parametrize("name", SQUARES)
def test_what_cannot_be_computed_is_no_error_where_nobody_wants_it(name: str) -> None:
    for way, (transform, wanted) in WAYS.items():
        if name == "while" and way not in FORWARD:
            continue
        if "custom_vjp" in name and way in ("jvp", "linearize", "jet"):
            continue
        found = transform(SQUARES[name])(jnp.float32(0.5))
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, err_msg=way)


def test_debug_nans_looks_for_the_operation_without_what_nobody_wants() -> None:
    def program(x: Any) -> Any:
        return jnp.log(square(x) - 1.0)

    with dovetail.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        dovetail.jit(program)(jnp.float32(0.5))


@pytest.mark.parametrize("kind", ["scan", "while", "cond", "call"])
def test_deep_nesting_takes_time_in_proportion(kind: str) -> None:
    # Each level is reduced a few times, as its uses become known: in all, not for each use anew.
    def body(c: tuple[Any, Any]) -> tuple[Any, Any]:
        return c[0] * 2.0, c[1] + square(c[0])

    for _ in range(40):
        inner = body
        body = {
            "scan": lambda c, f=inner: lax.scan(lambda c, _: (f(c), None), c, None, 2)[0],
            "while": lambda c, f=inner: lax.while_loop(lambda c: c[0] < 9, f, c),
            "cond": lambda c, f=inner: lax.cond(c[0] > 0, f, lambda c: (c[0], 0.0), c),
            "call": lambda c, f=inner: dovetail.jit(f)(c),
        }[kind]
    closed = dovetail.make_jaxpr(body)((X, Y))
    reduced, kept = dce(closed.jaxpr, [True, False])
    check_jaxpr(reduced)
    assert kept == [True, False]
    assert count_equations(reduced) < count_equations(closed)
