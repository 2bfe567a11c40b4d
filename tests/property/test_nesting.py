"""Transformations in any order: each pair and triple agrees with what mathematics says."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.laws

Function = Callable[[Any], Any]


def program(x: Any) -> Any:
    """A function of a scalar that uses every family of primitives."""
    vector = jnp.stack([x, jnp.sin(x), x * x])
    matrix = vector[:, None] * jnp.array([1.0, 2.0])
    chosen = jnp.where(matrix > 0.1, matrix, jnp.exp(matrix))
    updated = chosen.at[0].add(jnp.tanh(x))
    product = updated.T @ updated
    return jnp.sum(product) / (1.0 + jnp.max(vector) ** 2) + jnp.concatenate([vector, vector])[4]


def _jvp(f: Function) -> Function:
    return lambda x: dt.jvp(f, (x,), (1.0,))[1]


def _vjp(f: Function) -> Function:
    return lambda x: dt.vjp(f, x)[1](1.0)[0]


def _linearize(f: Function) -> Function:
    return lambda x: dt.linearize(f, x)[1](1.0)


def _vmap(f: Function) -> Function:
    return lambda x: jnp.sum(dt.vmap(f)(jnp.stack([x, x]))) * 0.5


# Each is a derivative (True), or leaves the function what it is (False).
TRANSFORMATIONS: dict[str, tuple[Callable[[Function], Function], bool]] = {
    "jit": (dt.jit, False),
    "vmap": (_vmap, False),
    "grad": (dt.grad, True),
    "jvp": (_jvp, True),
    "vjp": (_vjp, True),
    "linearize": (_linearize, True),
    "jacfwd": (dt.jacfwd, True),
    "jacrev": (dt.jacrev, True),
}
SEQUENCES = [
    *itertools.product(TRANSFORMATIONS, repeat=2),
    *(
        triple
        for triple in itertools.product(("jit", "vmap", "grad", "jvp"), repeat=3)
        if sum(TRANSFORMATIONS[name][1] for name in triple) <= 2
    ),
]
POINT = 0.7


@pytest.fixture(scope="module")
def derivatives() -> list[float]:
    """The value and its first two derivatives, by Richardson's extrapolation of differences."""
    with dt.enable_x64(True):
        compiled = dt.jit(program)
        value = lambda x: float(compiled(np.float64(x)))

        def first(h: float) -> float:
            return (value(POINT + h) - value(POINT - h)) / (2 * h)

        def second(h: float) -> float:
            return (value(POINT + h) - 2 * value(POINT) + value(POINT - h)) / h**2

        return [
            value(POINT),
            (4 * first(5e-4) - first(1e-3)) / 3,
            (4 * second(5e-3) - second(1e-2)) / 3,
        ]


@pytest.mark.parametrize("names", SEQUENCES, ids="-".join)
def test_sequence(names: tuple[str, ...], derivatives: list[float]) -> None:
    with dt.enable_x64(True):
        function: Function = program
        order = 0
        for name in names:
            transform, is_derivative = TRANSFORMATIONS[name]
            function = transform(function)
            order += is_derivative
        np.testing.assert_allclose(
            float(function(np.float64(POINT))), derivatives[order], rtol=(1e-12, 1e-8, 1e-6)[order]
        )
