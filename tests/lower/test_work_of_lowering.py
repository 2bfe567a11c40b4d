"""Lowering takes as much work for each equation of a long program as of a short one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn


def layer_norm(x: Any) -> Any:
    centered = x - jnp.mean(x, -1, keepdims=True)
    return centered / jnp.sqrt(jnp.mean(centered**2, -1, keepdims=True) + 1e-5)


STEPS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: jnp.sin(x) * 2.0 + x,
    "gates": lambda x: x * nn.sigmoid(x),
    "matrix products": lambda x: (x.T @ x).T,
    "reductions": lambda x: x + jnp.sum(x, -1, keepdims=True) + jnp.max(x, 0),
    "layer norm": layer_norm,
    "softmax": lambda x: nn.softmax(x, axis=-1),
    "log-softmax": nn.log_softmax,
    "attention": lambda x: nn.softmax(x @ x.T) @ x,
    "sorts": lambda x: lax.sort((x, x), num_keys=1)[1],
    "gathers": lambda x: x[jnp.argsort(x[:, 0])],
    "scatters": lambda x: x.at[jnp.array([1, 2])].add(x[:2]),
    "distances": lambda x: jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, -1)),
    "gradient": dt.grad(lambda x: jnp.sum(layer_norm(x) ** 2)),
}


def calls_to_lower(step: Callable[[Any], Any], count: int) -> tuple[int, int]:
    """How many calls of Python functions lowering takes, and how many equations there are."""

    def program(x: Any) -> Any:
        for _ in range(count):
            x = step(x)
        return x

    traced = dt.jit(program).trace(np.ones((64, 64), np.float32))
    calls = 0

    def counting(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(counting)
    try:
        traced.lower()
    finally:
        sys.setprofile(None)
    return calls, len(traced.jaxpr.eqns)


@pytest.mark.parametrize("name", STEPS)
def test_work_grows_with_the_number_of_equations(name: str) -> None:
    step = STEPS[name]
    calls_to_lower(step, 2)  # what happens once in a process
    (some, few), (more, many) = calls_to_lower(step, 10), calls_to_lower(step, 60)
    assert many > 5 * few
    assert more / many < 1.1 * some / few
