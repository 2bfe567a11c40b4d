"""Functions with derivative rules of their own are, under every transformation and under every two
of them, what the same function with the same derivative is without such a rule."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

pytestmark = pytest.mark.laws

Function = Callable[[Any, Any], Any]

#: By what the rules here multiply the true derivative, so that their use shows.
FACTOR = 3.0


def plain(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


def reference(x: Any, y: Any) -> Any:
    """The value of `plain`, and its derivatives of every order, `FACTOR` times."""
    value = plain(x, y)
    fixed = lax.stop_gradient(value)
    return fixed + FACTOR * (value - fixed)


def with_jvp() -> Function:
    f = dt.custom_jvp(plain)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (s, t) = primals, tangents
        return f(x, y), FACTOR * (jnp.cos(x) * y * s + jnp.sin(x) * t)

    return f


def with_jvp_and_zeros() -> Function:
    f = dt.custom_jvp(plain)

    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (s, t) = primals, tangents
        zero = dt.custom_derivatives.SymbolicZero
        tangent = dt.custom_derivatives.zero_from_primal(x * y, symbolic_zeros=True)
        if type(s) is not zero:
            tangent = FACTOR * jnp.cos(x) * y * s
        if type(t) is not zero:
            other = FACTOR * jnp.sin(x) * t
            tangent = other if type(tangent) is zero else tangent + other
        return f(x, y), tangent

    f.defjvp(rule, symbolic_zeros=True)
    return f


def with_vjp() -> Function:
    f = dt.custom_vjp(plain)
    f.defvjp(
        lambda x, y: (f(x, y), (x, y)),
        lambda kept, ct: (
            FACTOR * jnp.cos(kept[0]) * kept[1] * ct,
            FACTOR * jnp.sin(kept[0]) * ct,
        ),
    )
    return f


def with_vjp_and_zeros() -> Function:
    f = dt.custom_vjp(plain)

    def fwd(x: Any, y: Any) -> Any:
        return f(x.value, y.value), (
            x.value if y.perturbed or x.perturbed else None,
            y.value if x.perturbed else None,
        )

    def bwd(kept: Any, ct: Any) -> Any:
        x, y = kept
        return (
            None if y is None else FACTOR * jnp.cos(x) * y * ct,
            None if x is None else FACTOR * jnp.sin(x) * ct,
        )

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f


def with_vjp_and_remat() -> Function:
    f = dt.custom_vjp(plain)
    f.defvjp(
        lambda x, y: (jnp.sin(x) * y, (x, y)),
        lambda kept, ct: (
            FACTOR * jnp.cos(kept[0]) * kept[1] * ct,
            FACTOR * jnp.sin(kept[0]) * ct,
        ),
        optimize_remat=True,
    )
    return f


def with_gradient() -> Function:
    @dt.custom_gradient
    def f(x: Any, y: Any) -> Any:
        return plain(x, y), lambda ct: (
            FACTOR * jnp.cos(x) * y * ct,
            FACTOR * jnp.sin(x) * ct,
        )

    return f


KINDS: dict[str, Callable[[], Function]] = {
    "custom_jvp": with_jvp,
    "custom_jvp, symbolic_zeros": with_jvp_and_zeros,
    "custom_vjp": with_vjp,
    "custom_vjp, symbolic_zeros": with_vjp_and_zeros,
    "custom_vjp, optimize_remat": with_vjp_and_remat,
    "custom_gradient": with_gradient,
}

#: From a function of two vectors to another.
TRANSFORMATIONS: dict[str, Callable[[Function], Function]] = {
    "jit": lambda f: dt.jit(f),
    "vmap": lambda f: (
        lambda x, y: dt.vmap(f, (0, 1))(jnp.stack([x, 2 * x]), jnp.stack([y, -y], 1)).sum(0)
    ),
    "vmap of one": lambda f: (
        lambda x, y: dt.vmap(f, (None, 0), 1)(x, jnp.stack([y, -y, y * y])).sum(1)
    ),
    "grad": lambda f: lambda x, y: dt.grad(lambda x: (f(x, y) * y).sum())(x),
    "vjp": lambda f: lambda x, y: sum(dt.vjp(f, x, y)[1](x)),
    "jacrev": lambda f: lambda x, y: dt.jacrev(f, 1)(x, y).sum(0),
    "scan": lambda f: (
        lambda x, y: lax.scan(lambda c, e: (f(c, e) + c, f(e, c)), x, jnp.stack([y, x]))[1].sum(0)
    ),
    "cond": lambda f: lambda x, y: lax.cond(x.sum() > 0, f, lambda x, y: x, x, y),
    "fori_loop": lambda f: lambda x, y: lax.fori_loop(0, 2, lambda i, c: f(c, y), x),
    "checkpoint": lambda f: dt.checkpoint(f),
    "jvp": lambda f: lambda x, y: dt.jvp(f, (x, y), (y, x))[1],
    "linearize": lambda f: lambda x, y: dt.linearize(f, x, y)[1](y, x),
}
FORWARD = ("jvp", "linearize")

X = np.linspace(0.3, 1.2, 3, dtype=np.float32)
Y = np.linspace(1.5, 0.7, 3, dtype=np.float32)


def _serves(kind: str, *names: str) -> bool:
    return "jvp" in kind or not any(name in FORWARD for name in names)


@pytest.mark.parametrize(
    ("kind", "name"), [p for p in itertools.product(KINDS, TRANSFORMATIONS) if _serves(*p)]
)
def test_one_transformation(kind: str, name: str) -> None:
    transform = TRANSFORMATIONS[name]
    np.testing.assert_allclose(
        transform(KINDS[kind]())(X, Y), transform(reference)(X, Y), rtol=2e-5, atol=1e-5
    )


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize(("outer", "inner"), [*itertools.product(TRANSFORMATIONS, TRANSFORMATIONS)])
def test_two_transformations(kind: str, outer: str, inner: str) -> None:
    if not _serves(kind, outer, inner):
        kind = "custom_jvp, symbolic_zeros"
    first, second = TRANSFORMATIONS[outer], TRANSFORMATIONS[inner]
    np.testing.assert_allclose(
        first(second(KINDS[kind]()))(X, Y), first(second(reference))(X, Y), rtol=2e-4, atol=1e-4
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_value_is_that_of_the_function(kind: str) -> None:
    f = KINDS[kind]()
    for call in (f, dt.jit(f), dt.checkpoint(f), lambda x, y: dt.vjp(f, x, y)[0]):
        np.testing.assert_allclose(call(X, Y), plain(X, Y), rtol=1e-6)


@pytest.mark.parametrize("kind", ["custom_vjp", "custom_vjp, symbolic_zeros", "custom_gradient"])
@pytest.mark.parametrize("wrap", [lambda f: f, dt.jit, dt.vmap, dt.checkpoint])
def test_forward_mode_of_a_reverse_mode_rule_is_an_error(kind: str, wrap: Any) -> None:
    f = wrap(KINDS[kind]())
    with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
        dt.jvp(f, (X, Y), (X, Y))
    with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
        dt.jacfwd(f)(X, Y)


@pytest.mark.parametrize("kind", KINDS)
def test_functions_with_rules_inside_of_functions_with_rules(kind: str) -> None:
    inner = KINDS[kind]()
    outer = dt.custom_vjp(lambda x, y: inner(x, y) * 2)
    outer.defvjp(
        lambda x, y: dt.vjp(lambda x, y: inner(x, y) * 2, x, y), lambda pullback, ct: pullback(ct)
    )
    expected = dt.grad(lambda x, y: (2 * reference(x, y)).sum(), (0, 1))(X, Y)
    found = dt.grad(lambda x, y: outer(x, y).sum(), (0, 1))(X, Y)
    compiled = dt.jit(dt.grad(lambda x, y: dt.jit(outer)(x, y).sum(), (0, 1)))(X, Y)
    for e, f, c in zip(expected, found, compiled, strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-5)
        np.testing.assert_allclose(c, e, rtol=1e-5)
