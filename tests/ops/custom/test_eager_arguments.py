"""A function with rules of its own is given arrays, whether it is called plainly or traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt


def with_jvp(function: Any) -> Any:
    custom = dt.custom_jvp(function)
    custom.defjvp(lambda p, t: (function(*p), t[0]))
    return custom


def with_vjp(function: Any) -> Any:
    custom = dt.custom_vjp(function)
    custom.defvjp(lambda x: (function(x), None), lambda _, g: (g,))
    return custom


def with_gradient(function: Any) -> Any:
    return dt.custom_gradient(lambda x: (function(x), lambda g: g))


def with_vmap(function: Any) -> Any:
    custom = dt.custom_batching.custom_vmap(function)
    custom.def_vmap(lambda size, batched, x: (function(x), True))
    return custom


@pytest.mark.parametrize("value", [1.0, 1, True, 1j, np.float64(1), np.int64(1), np.ones(2)])
@pytest.mark.parametrize("decorate", [with_jvp, with_vjp, with_gradient, with_vmap])
def test_arguments_are_arrays(decorate: Callable[[Any], Any], value: Any) -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        seen.append((x.dtype, x.shape, x.weak_type, isinstance(x, dt.Array)))
        return x * 1

    decorated = decorate(function)
    decorated(value)
    dt.jit(decorated)(value)
    assert seen[0] == seen[-1]
