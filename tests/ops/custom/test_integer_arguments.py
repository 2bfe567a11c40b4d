"""Integers in and out of functions with derivative rules, and their tangents of float0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.dtypes import float0

X, N = jnp.arange(1.0, 4.0), {"n": jnp.arange(1, 4)}
ONES, ZERO = jnp.ones(3), np.zeros(3, float0)


def product(x: Any, n: Any) -> Any:
    return {"y": x * n["n"], "next": n["n"] + 1}


def _jvp_rule(tangent_of_next: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def rule(primals: Any, tangents: Any) -> Any:
        outs, tangent = product(*primals), tangents[0] * primals[1]["n"]
        return outs, {"y": tangent, "next": tangent_of_next(outs["next"], tangents[1]["n"])}

    return rule


JVP_RULES: dict[str, Callable[[Any, Any], Any]] = {
    "jvp": lambda primals, tangents: dt.jvp(product, primals, tangents),
    "numpy.zeros": _jvp_rule(lambda out, tangent: np.zeros(out.shape, float0)),
    "zeros": _jvp_rule(lambda out, tangent: jnp.zeros(out.shape, float0)),
    "zeros_like": _jvp_rule(lambda out, tangent: jnp.zeros_like(tangent)),
    "numpy.zeros_like": _jvp_rule(lambda out, tangent: np.zeros_like(tangent)),
    "zero_from_primal": _jvp_rule(lambda out, tangent: dt.custom_derivatives.zero_from_primal(out)),
    "passed on": _jvp_rule(lambda out, tangent: tangent),
    "asarray": _jvp_rule(lambda out, tangent: jnp.asarray(tangent)),
}


def _vjp_rule(cotangent_of_n: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    return (
        lambda x, n: (product(x, n), (x, n)),
        lambda saved, ct: (ct["y"] * saved[1]["n"], cotangent_of_n(saved, ct)),
    )


VJP_RULES: dict[str, tuple[Any, Any]] = {
    "numpy.zeros": _vjp_rule(lambda saved, ct: {"n": np.zeros(ct["y"].shape, float0)}),
    "None": _vjp_rule(lambda saved, ct: {"n": None}),
    "None for the tree": _vjp_rule(lambda saved, ct: None),
    "passed on": _vjp_rule(lambda saved, ct: {"n": ct["next"]}),
    "zeros_like": _vjp_rule(lambda saved, ct: {"n": jnp.zeros_like(ct["next"])}),
    "integers": _vjp_rule(lambda saved, ct: dt.tree.map(jnp.zeros_like, saved[1])),
    "vjp": (
        lambda x, n: (product(x, n), (x, n)),
        lambda saved, ct: dt.vjp(product, *saved)[1](ct),
    ),
    "vjp saved": (lambda x, n: dt.vjp(product, x, n), lambda saved, ct: saved(ct)),
    "saved": (
        lambda x, n: (product(x, n), (n["n"], np.zeros(x.shape, float0))),
        lambda saved, ct: (ct["y"] * saved[0], {"n": saved[1]}),
    ),
}

Made = Callable[..., Any]
FORWARD: dict[str, Callable[[Made], Any]] = {
    "jvp": lambda f: dt.jvp(f, (X, N), (ONES, {"n": ZERO}))[1],
    "jvp of jit": lambda f: dt.jvp(dt.jit(f), (X, N), (ONES, {"n": ZERO}))[1],
    "jit of jvp": lambda f: dt.jit(lambda x, n: dt.jvp(f, (x, n), (ONES, {"n": ZERO}))[1])(X, N),
    "jvp of vmap": lambda f: dt.jvp(dt.vmap(f), (X, N), (ONES, {"n": ZERO}))[1],
    "vmap of jvp": lambda f: dt.vmap(
        lambda x, n: dt.jvp(f, (x, n), (1.0, {"n": np.zeros((), float0)}))[1]
    )(X, N),
    "linearize": lambda f: dt.linearize(f, X, N)[1](ONES, {"n": ZERO}),
    "scan": lambda f: dt.jvp(
        lambda x, n: lax.scan(lambda c, xn: (c, f(*xn)), 0.0, (x, n))[1],
        (X, N),
        (ONES, {"n": ZERO}),
    )[1],
    "cond": lambda f: dt.jvp(
        lambda x, n: lax.cond(x[0] > 0, f, product, x, n), (X, N), (ONES, {"n": ZERO})
    )[1],
}
REVERSE: dict[str, Callable[[Made], Any]] = {
    "vjp": lambda f: dt.vjp(f, X, N)[1]({"y": ONES, "next": ZERO}),
    "vjp of jit": lambda f: dt.vjp(dt.jit(f), X, N)[1]({"y": ONES, "next": ZERO}),
    "jit of vjp": lambda f: dt.jit(lambda x, n: dt.vjp(f, x, n)[1]({"y": ONES, "next": ZERO}))(
        X, N
    ),
    "vjp of vmap": lambda f: dt.vjp(dt.vmap(f), X, N)[1]({"y": ONES, "next": ZERO}),
    "vmap of vjp": lambda f: dt.vmap(
        lambda x, n: dt.vjp(f, x, n)[1]({"y": jnp.ones(()), "next": np.zeros((), float0)})
    )(X, N),
    "grad": lambda f: dt.grad(lambda x, n: f(x, n)["y"].sum(), (0, 1), allow_int=True)(X, N),
    "checkpoint": lambda f: dt.vjp(dt.checkpoint(f), X, N)[1]({"y": ONES, "next": ZERO}),
    "scan": lambda f: dt.vjp(
        lambda x, n: lax.scan(lambda c, xn: (c, f(*xn)), 0.0, (x, n))[1], X, N
    )[1]({"y": ONES, "next": ZERO}),
    "cond": lambda f: dt.vjp(lambda x, n: lax.cond(x[0] > 0, f, product, x, n), X, N)[1](
        {"y": ONES, "next": ZERO}
    ),
}


def _check(of_floats: Any, of_integers: Any) -> None:
    np.testing.assert_array_equal(of_floats, N["n"])
    assert (of_integers.dtype, of_integers.shape) == (float0, (3,))


@pytest.mark.parametrize("use", FORWARD)
@pytest.mark.parametrize("rule", JVP_RULES)
def test_tangents(rule: str, use: str) -> None:
    function = dt.custom_jvp(product)
    function.defjvp(JVP_RULES[rule])
    tangents = FORWARD[use](function)
    _check(tangents["y"], tangents["next"])


@pytest.mark.parametrize("use", REVERSE)
@pytest.mark.parametrize("rule", JVP_RULES)
def test_cotangents_by_rules_of_forward_mode(rule: str, use: str) -> None:
    function = dt.custom_jvp(product)
    function.defjvp(JVP_RULES[rule])
    of_x, of_n = REVERSE[use](function)
    _check(of_x, of_n["n"])


@pytest.mark.parametrize("use", REVERSE)
@pytest.mark.parametrize("rule", VJP_RULES)
def test_cotangents(rule: str, use: str) -> None:
    function = dt.custom_vjp(product)
    function.defvjp(*VJP_RULES[rule])
    of_x, of_n = REVERSE[use](function)
    _check(of_x, of_n["n"])


EMPTY = np.zeros((2, 3), float0)
#: Functions that only move elements or forget them, with the shape of what they return.
MOVING: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "asarray": (jnp.asarray, (2, 3)),
    "array": (jnp.array, (2, 3)),
    "zeros_like": (jnp.zeros_like, (2, 3)),
    "ones_like": (jnp.ones_like, (2, 3)),
    "full_like": (lambda z: jnp.full_like(z, 0), (2, 3)),
    "lax.full_like": (lambda z: lax.full_like(z, 0), (2, 3)),
    "empty_like": (jnp.empty_like, (2, 3)),
    "zeros": (lambda z: jnp.zeros(4, float0), (4,)),
    "lax.full": (lambda z: lax.full((4,), 0, float0), (4,)),
    "reshape": (lambda z: jnp.reshape(z, (3, 2)), (3, 2)),
    "ravel": (jnp.ravel, (6,)),
    "stack": (lambda z: jnp.stack([z, z]), (2, 2, 3)),
    "concatenate": (lambda z: jnp.concatenate([z, z]), (4, 3)),
    "broadcast_to": (lambda z: jnp.broadcast_to(z, (4, 2, 3)), (4, 2, 3)),
    "device_put": (dt.device_put, (2, 3)),
    "device_get": (dt.device_get, (2, 3)),
}


@pytest.mark.parametrize("transform", [lambda f: f, dt.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", MOVING)
def test_what_holds_nothing_is_moved(name: str, transform: Any) -> None:
    function, shape = MOVING[name]
    if name == "device_get" and transform is dt.jit:
        function = lambda z: z
    for _ in range(2):  # the second call may take another way
        result = transform(function)(EMPTY)
        assert type(result) is np.ndarray
        assert (result.dtype, result.shape) == (float0, shape)


def test_what_holds_nothing_is_zero_as_a_number() -> None:
    np.testing.assert_array_equal(jnp.astype(EMPTY, "float32"), np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(jnp.asarray(EMPTY, "int32"), np.zeros((2, 3), np.int32))
