"""Tracers that outlive their transformation, with the option check_tracer_leaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

X = np.ones(2, np.float32)

TRANSFORMATIONS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jit": lambda f: dt.jit(f)(X),
    "grad": lambda f: dt.grad(lambda x: jnp.sum(f(x)))(X),
    "vjp": lambda f: dt.vjp(f, X)[1](X),
    "jvp": lambda f: dt.jvp(f, (X,), (X,)),
    "linearize": lambda f: dt.linearize(f, X)[1](X),
    "vmap": lambda f: dt.vmap(f)(X),
    "jacfwd": lambda f: dt.jacfwd(f)(X),
    "jacrev": lambda f: dt.jacrev(f)(X),
    "make_jaxpr": lambda f: dt.make_jaxpr(f)(X),
    "eval_shape": lambda f: dt.eval_shape(f, X),
    "grad of jit": lambda f: dt.grad(lambda x: jnp.sum(dt.jit(f)(x)))(X),
    "vmap of grad of jit": lambda f: dt.vmap(dt.grad(dt.jit(f)))(X),
    "jit of vmap of jit": lambda f: dt.jit(dt.vmap(dt.jit(f)))(X),
    "jvp of jit": lambda f: dt.jvp(dt.jit(f), (X,), (X,)),
    "jit of hessian": lambda f: dt.jit(dt.hessian(lambda x: jnp.sum(f(x))))(X),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_leaks_are_found(name: str) -> None:
    kept: list[Any] = []

    def leaking(x: Any) -> Any:
        kept.append(jnp.sin(x))
        return x * 2.0

    with (
        pytest.raises(dt.errors.UnexpectedTracerError, match="kept alive by a list"),
        dt.check_tracer_leaks(True),
    ):
        TRANSFORMATIONS[name](leaking)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_functions_that_keep_nothing_pass(name: str) -> None:
    weights = jnp.arange(2.0)

    def function(x: Any) -> Any:
        inner = dt.jit(lambda y: jnp.sin(y) * x)
        return inner(x) + jnp.sum(weights)

    with dt.check_tracer_leaks(True):
        TRANSFORMATIONS[name](function)


def test_auxiliary_data_is_no_leak() -> None:
    def function(x: Any) -> Any:
        return jnp.sum(x * x), {"squares": x * x}

    with dt.check_tracer_leaks(True):
        for result in (
            dt.grad(function, has_aux=True)(X)[1],
            dt.vjp(function, X, has_aux=True)[2],
            dt.jvp(function, (X,), (X,), has_aux=True)[2],
            dt.linearize(function, X, has_aux=True)[2],
        ):
            np.testing.assert_array_equal(result["squares"], X)


def test_owners_are_named() -> None:
    state: dict[str, Any] = {}
    with (
        pytest.raises(dt.errors.UnexpectedTracerError, match="a dict under 'loss'"),
        dt.check_tracer_leaks(True),
    ):
        dt.grad(lambda x: state.update(loss=x) or x)(1.0)
    state.clear()

    def closes_over(x: Any) -> Any:
        state["later"] = lambda: x
        return x

    with (
        pytest.raises(dt.errors.UnexpectedTracerError, match="variable of an enclosing function"),
        dt.check_tracer_leaks(True),
    ):
        dt.jit(closes_over)(1.0)
