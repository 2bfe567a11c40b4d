"""Evaluation while tracing: known values at once, traced values as ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp


def with_both(x: Any) -> Any:
    """3 sin(x), where 3 is computed while tracing and becomes a Python integer."""
    with dt.ensure_compile_time_eval():
        size = int(jnp.sum(dt.jit(jnp.asarray)(np.array([1, 2]))))
        return dt.jit(jnp.sin)(x) * size


WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "eager": (with_both, lambda x: 3 * np.sin(x)),
    "jit": (dt.jit(with_both), lambda x: 3 * np.sin(x)),
    "grad": (dt.grad(with_both), lambda x: 3 * np.cos(x)),
    "jvp": (lambda x: dt.jvp(with_both, (x,), (1.0,))[1], lambda x: 3 * np.cos(x)),
    "jit of grad": (dt.jit(dt.grad(with_both)), lambda x: 3 * np.cos(x)),
    "grad of jit": (dt.grad(dt.jit(with_both)), lambda x: 3 * np.cos(x)),
    "grad of grad": (dt.grad(dt.grad(with_both)), lambda x: -3 * np.sin(x)),
    "vmap": (lambda x: dt.vmap(with_both)(jnp.full(2, x))[1], lambda x: 3 * np.sin(x)),
    "vmap of jit": (
        lambda x: dt.vmap(dt.jit(with_both))(jnp.full(2, x))[1],
        lambda x: 3 * np.sin(x),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_known_values_are_evaluated(way: str) -> None:
    function, expected = WAYS[way]
    np.testing.assert_allclose(function(0.5), expected(0.5), rtol=1e-6)


def test_what_is_known_is_no_equation() -> None:
    @dt.ensure_compile_time_eval()
    def table() -> Any:
        return jnp.cumsum(jnp.arange(4.0))

    jaxpr = dt.make_jaxpr(lambda x: x + table())(1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["add"]
    np.testing.assert_array_equal(jaxpr.consts[0], [0, 1, 3, 6])


def test_a_leaked_tracer_is_an_error() -> None:
    kept: list[Any] = []
    dt.jit(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(dt.errors.UnexpectedTracerError), dt.ensure_compile_time_eval():
        jnp.sin(kept[0])
