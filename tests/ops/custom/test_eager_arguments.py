"""A function with rules of its own, and the rules, get arrays, called plainly or traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp


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


def vjp_rule(rule: Callable[..., None], **options: Any) -> Any:
    def fwd(x: Any, n: Any) -> Any:
        leaves = [getattr(leaf, "value", leaf) for leaf in (x, n)]
        rule(*leaves)
        return leaves[0] * leaves[1], None

    custom = dt.custom_vjp(lambda x, n: x * n)
    custom.defvjp(fwd, lambda _, g: (g, None), **options)
    return custom


def jvp_rule(rule: Callable[..., None], **options: Any) -> Any:
    def jvp(primals: Any, tangents: Any) -> Any:
        rule(*primals)
        return primals[0] * primals[1], tangents[0]

    custom = dt.custom_jvp(lambda x, n: x * n)
    custom.defjvp(jvp, **options)
    return custom


@pytest.mark.parametrize("n", [1.0, 1, True, np.float32(1), np.int64(1), np.ones((), np.float32)])
@pytest.mark.parametrize("x", [1.0, np.float32(1), np.ones((), np.float32)])
@pytest.mark.parametrize("options", [{}, {"symbolic_zeros": True}])
@pytest.mark.parametrize("decorate", [vjp_rule, jvp_rule])
def test_arguments_of_rules_are_arrays(
    decorate: Callable[..., Any], options: Any, x: Any, n: Any
) -> None:
    seen: list[Any] = []

    def rule(*values: Any) -> None:
        seen.append([(v.dtype, v.shape, v.weak_type, isinstance(v, dt.Array)) for v in values])

    decorated = decorate(rule, **options)
    eager = dt.grad(decorated)(x, n)
    assert eager == dt.jit(dt.grad(decorated))(x, n) == dt.grad(dt.jit(decorated))(x, n)
    dt.grad(lambda x: decorated(x, n))(jnp.asarray(x))
    types, staged, inside, mixed = seen
    assert types == staged == inside
    assert mixed[1] == types[1]
    assert all(is_array for *_, is_array in types)
