"""Linear functions whose calls, branches and loops compute other things too, at any depth.

JAX has the derivatives of all of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail
import dovetail.numpy as jnp
from dovetail import checkpoint, jit, lax
from dovetail.custom_batching import custom_vmap

pytestmark = pytest.mark.laws

Y = 2.0
X = jnp.arange(1.0, 4.0)


def product(pair: Any) -> Any:
    first, second = pair
    return first * second


def with_sine(x: Any, y: Any) -> tuple[Any, Any]:
    """Something linear in x, and something that does not depend on it."""
    return x * 2, jnp.sin(y)


def counting(count: Any, x: Any) -> tuple[Any, Any]:
    """A turn of a loop that is linear in x alone."""
    return count + 1, x * jnp.sin(count)


@dovetail.custom_jvp
def with_rule(x: Any, y: Any) -> tuple[Any, Any]:
    return with_sine(x, y)


with_rule.defjvp(lambda ps, ts: (with_rule(*ps), (2 * ts[0], jnp.cos(ps[1]) * ts[1])))


@dovetail.custom_vjp
def with_backward(x: Any, y: Any) -> tuple[Any, Any]:
    return with_sine(x, y)


with_backward.defvjp(
    lambda x, y: (with_sine(x, y), y), lambda y, cts: (2 * cts[0], jnp.cos(y) * cts[1])
)


@custom_vmap
def with_vmap(x: Any, y: Any) -> tuple[Any, Any]:
    return with_sine(x, y)


@with_vmap.def_vmap
def _(size: int, in_batched: list[bool], x: Any, y: Any) -> tuple[Any, Any]:
    return with_sine(x, y), tuple(in_batched)


def loop(turn: Callable[..., Any], *first: Any, length: int = 3) -> Any:
    """What is carried at last."""
    return lax.scan(lambda c, _: (turn(*c), None), first, None, length)[0]


# Functions linear in x.
LINEAR: dict[str, Callable[[Any], Any]] = {
    "call": lambda x: product(jit(with_sine)(x, Y)),
    "call in call": jit(lambda x: product(jit(with_sine)(x, jit(jnp.cos)(Y)))),
    "constant result of a call": lambda x: product(jit(lambda x: (x, 3.0))(x)),
    "checkpoint": lambda x: product(checkpoint(with_sine)(x, Y)),
    "cond": lambda x: product(lax.cond(Y > 1, with_sine, lambda x, y: (x, y), x, Y)),
    "switch": lambda x: product(
        lax.switch(2, [lambda x, y: (x, y), with_sine, lambda x, y: (3 * x, 1.0)], x, Y)
    ),
    "index out of a call": lambda x: lax.cond(
        jit(lambda x, y: (x, y > 1))(x, Y)[1], lambda x: 2 * x, lambda x: x, x
    ),
    "custom_jvp": lambda x: product(with_rule(x, Y)),
    "custom_vjp": lambda x: product(with_backward(x, Y)),
    "custom_vmap": lambda x: product(with_vmap(x, Y)),
    "scan": lambda x: loop(counting, Y, x)[1],
    "what is counted": lambda x: product(loop(counting, Y, x)),
    "stacked": lambda x: product(
        lax.scan(lambda c, _: (c, (x * c, jnp.sin(c) + jnp.zeros(3))), Y, None, 3)[1]
    )[0],
    "exchanged": lambda x: loop(lambda a, b, x: (b, a, x * a), Y, 3 * Y, x)[2],
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: (c[0] + i, c[1] * c[0]), (Y, x))[1],
    "call in fori_loop": lambda x: lax.fori_loop(0, 3, jit(lambda i, c: c * jnp.sin(i + 1.0)), x),
    "call in scan": lambda x: loop(jit(counting), Y, x)[1],
    "checkpoint in scan": lambda x: loop(checkpoint(counting), Y, x)[1],
    "cond in scan": lambda x: loop(
        lambda c, x: lax.cond(c > 2, counting, lambda c, x: (c * 2, x), c, x), Y, x
    )[1],
    "scan in scan": lambda x: loop(lambda c, x: loop(counting, c, x, length=2), Y, x)[1],
    "custom_jvp in scan": lambda x: loop(lambda c, x: with_rule(x, c)[::-1], Y, x)[1],
    "custom_vmap in scan": lambda x: loop(lambda c, x: with_vmap(x, c)[::-1], Y, x)[1],
    "while in scan": lambda x: loop(
        lambda c, x: (lax.while_loop(lambda a: a < 9, lambda a: a * 2, c) / 4, x * c), Y, x
    )[1],
    "while": lambda x: (
        x * lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] * 2, c[1]), (Y, x))[0]
    ),
    "scan in cond": lambda x: lax.cond(Y > 1, lambda x: loop(counting, Y, x)[1], lambda x: x, x),
    "scan in cond in call": jit(
        lambda x: product(lax.cond(Y > 1, lambda x: loop(counting, Y, x), lambda x: (Y, x), x))
    ),
    "scan in checkpoint in cond": lambda x: product(
        lax.cond(Y > 1, checkpoint(lambda x: loop(counting, Y, x)), lambda x: (Y, x), x)
    ),
    "map": lambda x: lax.map(lambda i: product(jit(with_sine)(x, i)), jnp.arange(3.0)).sum(0),
    "derivative of a loop": lambda x: dovetail.jvp(
        lambda z: loop(counting, Y, z)[1] * jnp.cos(z), (X,), (x,)
    )[1],
}


@pytest.mark.parametrize("name", LINEAR)
def test_the_transpose_of_what_is_linear_beside_other_things(name: str) -> None:
    function = LINEAR[name]
    matrix = np.stack([np.asarray(function(e)) for e in jnp.eye(3)], axis=1)
    transpose = dovetail.linear_transpose(function, X)
    cotangent = jnp.asarray([1.0, -2.0, 0.5])
    for way in (transpose, jit(transpose)):
        (found,) = way(cotangent)
        np.testing.assert_allclose(found, matrix.T @ np.asarray(cotangent), rtol=1e-5)
    (again,) = jit(dovetail.linear_transpose(lambda ct: transpose(ct)[0], cotangent))(X)
    np.testing.assert_allclose(again, matrix @ np.asarray(X), rtol=1e-5)


def test_what_is_not_linear_is_still_an_error() -> None:
    def function(x: Any) -> Any:
        return product(jit(lambda x, y: (x * y, x + y))(x, Y))

    with pytest.raises(TypeError, match="not linear"):
        dovetail.linear_transpose(function, X)(X)


# Functions of x whose derivative rule computes the result and its tangent in one.
CORES: dict[str, Callable[[Any], Any]] = {
    "call": jit(lambda x: jnp.sin(x) * x),
    "call in call": jit(lambda x: jit(jnp.sin)(x) * x),
    "scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, None, 3)[0],
    "stacked": lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, None, 3)[1].sum(0),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * jnp.sin(c) + i, x),
    "map": lambda x: lax.map(jnp.sin, x),
    "cond": lambda x: lax.cond(Y > 1, jnp.sin, jnp.cos, x),
    "checkpoint": checkpoint(lambda x: jnp.sin(x) * x),
    "cond in scan": lambda x: loop(lambda c: (lax.cond(c[0] > 1, jnp.sin, jnp.cos, c),), x)[0],
    "scan in cond in call": jit(
        lambda x: lax.cond(Y > 1, lambda x: loop(lambda c: (jnp.sin(c),), x)[0], jnp.cos, x)
    ),
    "linear solve": lambda x: lax.custom_linear_solve(
        lambda v: v * x, jnp.sin(x), lambda _, b: b / x, symmetric=True
    ),
    "root": lambda x: lax.custom_root(
        lambda v: v - jnp.sin(x), x, lambda *_: jnp.sin(x), lambda g, y: y / g(jnp.ones(3))
    ),
    "custom_vmap": lambda x: product(with_vmap(x, x)),
    "custom_jvp": lambda x: product(with_rule(x, x)),
    "checkpoint in scan": lambda x: loop(checkpoint(lambda c: (c * jnp.sin(c),)), x)[0],
}


def ruled(core: Callable[[Any], Any], around: Callable[..., Any]) -> Callable[[Any], Any]:
    @dovetail.custom_jvp
    def function(x: Any) -> Any:
        return core(x)

    function.defjvp(around(lambda primals, tangents: dovetail.jvp(core, primals, tangents)))
    return function


@pytest.mark.parametrize("name", CORES)
def test_rules_that_compute_result_and_tangent_in_one(name: str) -> None:
    core = CORES[name]
    function = ruled(core, jit if len(name) % 2 else lambda rule: rule)

    def same(transform: Callable[..., Callable[..., Any]]) -> None:
        found, expected = (np.asarray(transform(f)(X)) for f in (function, core))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    same(lambda f: dovetail.grad(lambda x: f(x).sum()))
    same(lambda f: jit(lambda x: dovetail.linearize(jit(f), x)[1](x)))
    same(lambda f: jit(dovetail.jacrev(dovetail.grad(lambda x: f(x).sum()))))


def test_a_rule_may_call_functions_with_rules_for_both() -> None:
    @dovetail.custom_jvp
    def both(x: Any, t: Any) -> tuple[Any, Any]:
        return jnp.sin(x), jnp.cos(x) * t

    both.defjvp(lambda ps, ts: (both(*ps), (jnp.cos(ps[0]) * ts[0], both(ps[0], ts[1])[1])))

    @dovetail.custom_jvp
    def sine(x: Any) -> Any:
        return jnp.sin(x)

    sine.defjvp(lambda primals, tangents: both(*primals, *tangents))
    for way in (dovetail.grad(sine), jit(dovetail.grad(sine)), dovetail.grad(jit(sine))):
        np.testing.assert_allclose(way(0.5), np.cos(0.5), rtol=1e-6)


ROWS = np.arange(9, dtype=np.float32).reshape(3, 3) + np.eye(3, dtype=np.float32)
NOT_LINEAR: dict[str, tuple[Any, Any]] = {
    "product": (lambda y: y * y, X),
    "quotient": (lambda y: 2.0 / y, X),
    "matrix product": (lambda y: y @ y, ROWS),
    "ragged product": (lambda y: lax.ragged_dot(y, y[None], np.array([3])), ROWS),
    "convolution": (
        lambda y: lax.conv_general_dilated(y[None, None], y[None, None], (1,), "VALID"),
        X,
    ),
    "solve": (lambda y: lax.linalg.triangular_solve(y, ROWS, left_side=True), ROWS),
    "remainder": (lambda y: y % 2.0, X),
    "choice": (lambda y: lax.select_n(y > 0, y, y), X),
    "branch": (lambda y: lax.cond(y[0] > 0, jnp.negative, jnp.positive, y), X),
    "conversion": (lambda y: y.astype(int).astype(float), X),
    "positions read": (lambda y: y[y.astype(int)], X),
    "positions of a slice": (lambda y: lax.dynamic_slice(y, (y[0].astype(int),), (2,)), X),
    "positions written": (lambda y: y.at[y.astype(int)].add(1.0), X),
    "in a call": (jit(lambda y: y * y), X),
    "in a loop": (lambda y: lax.fori_loop(0, 2, lambda _, c: c * c, y), X),
}


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_what_is_not_linear_is_refused(name: str) -> None:
    function, at = NOT_LINEAR[name]
    at = np.broadcast_to(np.float32(at), (3, 3) if np.ndim(at) == 2 else (3,))
    out = dovetail.eval_shape(function, at)
    with pytest.raises(TypeError, match="cannot be transposed: it is not linear"):
        dovetail.linear_transpose(function, at)(jnp.ones(out.shape))
