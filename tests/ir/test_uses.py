"""Makers and users of the variables of a jaxpr, against what looking at every equation finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.ir.jaxpr import Jaxpr, Literal
from dovetail._core.ir.uses import Uses

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "twice in one": lambda x: x * x,
    "by two": lambda x: jnp.sin(x) + jnp.cos(x),
    "returned and used": lambda x: (jnp.sin(x), jnp.exp(jnp.sin(x))),
    "returned twice": lambda x: (x, x),
    "by nothing": lambda x: (jnp.sin(x), 1.0)[1],
    "literals": lambda x: x * 2.0 + 2.0,
    "several results": lambda x: lax.sort((x, x), num_keys=1)[1],
    "constant": lambda x: x + np.arange(3.0, dtype=np.float32),
    "inner jaxpr": lambda x: lax.fori_loop(0, 3, lambda i, y: y * x, x),
    "gradient": dt.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)),
}


def jaxprs() -> dict[str, Jaxpr]:
    x = np.ones(3, np.float32)
    return {name: dt.make_jaxpr(function)(x).jaxpr for name, function in PROGRAMS.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_makers_and_users_are_those_of_every_equation(name: str) -> None:
    jaxpr = jaxprs()[name]
    uses = Uses(jaxpr)
    variables = [*jaxpr.invars, *jaxpr.constvars, *(v for e in jaxpr.eqns for v in e.outvars)]
    for var in variables:
        taken = [eqn for eqn in jaxpr.eqns for v in eqn.invars if v is var]
        returned = sum(v is var for v in jaxpr.outvars)
        made = [eqn for eqn in jaxpr.eqns if any(v is var for v in eqn.outvars)]
        assert uses.users.get(var, []) == taken
        assert uses.returned.get(var, 0) == returned
        assert [eqn for eqn in [uses.makers.get(var)] if eqn is not None] == made
        assert uses.count(var) == len(taken) + returned
    assert uses.parameters == set(jaxpr.invars)


@pytest.mark.parametrize("name", PROGRAMS)
def test_equations_of_another_jaxpr_are_told_apart(name: str) -> None:
    uses = Uses(jaxprs()[name])
    assert all(uses.are_of(eqn) for eqn in uses.jaxpr.eqns)
    assert not any(uses.are_of(eqn) for eqn in jaxprs()[name].eqns)


def test_a_literal_is_used_once() -> None:
    jaxpr = jaxprs()["literals"]
    literals = [v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Literal]
    assert [Uses(jaxpr).count(literal) for literal in literals] == [1, 1]
