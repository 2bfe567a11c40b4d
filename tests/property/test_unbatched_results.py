"""Results that do not depend on the elements of a batch have no batch dimension.

`vmap(f, out_axes=None)` accepts such results alone. Each kind of call goes around each other one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.custom_batching import custom_vmap
from dovetail.custom_derivatives import linear_call

#: Takes x, which is mapped, and y, which is not. The second result depends on y alone.
Function = Callable[[Any, Any], tuple[Any, Any, Any]]


def base(x: Any, y: Any) -> tuple[Any, Any, Any]:
    return x * 2.0, y * 3.0, x + y


def with_jvp(function: Function) -> Function:
    result: Any = dt.custom_jvp(lambda x, y: function(x, y))
    result.defjvp(lambda primals, tangents: dt.jvp(function, primals, tangents))
    return result


def with_vjp(function: Function) -> Function:
    result: Any = dt.custom_vjp(lambda x, y: function(x, y))
    result.defvjp(
        lambda x, y: (result(x, y), (x, y)), lambda kept, g: dt.vjp(function, *kept)[1](g)
    )
    return result


def with_vmap_rule(function: Function) -> Function:
    result: Any = custom_vmap(lambda x, y: function(x, y))

    @result.def_vmap
    def rule(size: int, batched: Any, x: Any, y: Any) -> Any:
        axes = tuple(0 if each else None for each in batched)
        whole = dt.vmap(function, axes, axis_size=size)(x, y)
        if batched[1]:
            return whole, (True, True, True)
        return (whole[0], whole[1][0], whole[2]), (True, False, True)

    return result


def in_while(function: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        start = (0, x, y, x + y)
        return lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, *function(*c[1:3])), start)[
            1:
        ]

    return run


def in_fori(function: Function) -> Function:
    return lambda x, y: lax.fori_loop(0, 1, lambda _, c: tuple(function(x, c[1])), (x, y, x))


def in_scan(function: Function) -> Function:
    def run(x: Any, y: Any) -> Any:
        def turn(carry: Any, _: Any) -> Any:
            results = function(*carry)
            return carry, results

        return tuple(each[0] for each in lax.scan(turn, (x, y), None, length=2)[1])

    return run


CALLS: dict[str, Callable[[Function], Function]] = {
    "custom_jvp": with_jvp,
    "custom_vjp": with_vjp,
    "custom_vmap": with_vmap_rule,
    "cond": lambda f: lambda x, y: lax.cond(y > 0.0, f, f, x, y),
    "switch": lambda f: lambda x, y: lax.switch(jnp.int32(y), [f, f, f], x, y),
    "while_loop": in_while,
    "fori_loop": in_fori,
    "scan": in_scan,
    "map": lambda f: lambda x, y: tuple(r[0] for r in lax.map(lambda e: f(e * x, y), jnp.ones(2))),
    "jit": dt.jit,
    "jit of a closure": lambda f: lambda x, y: dt.jit(lambda: f(x, y))(),
    "checkpoint": dt.checkpoint,
    "named_call": lambda f: dt.named_call(f, name="named"),
    "vjp": lambda f: lambda x, y: dt.vjp(f, x, y)[0],
    "jvp": lambda f: lambda x, y: dt.jvp(f, (x, y), (x, y))[0],
    "stop_gradient": lambda f: lambda x, y: lax.stop_gradient(f(x, y)),
}


#: `custom_vjp` has no forward mode.
PAIRS = [(a, b) for a in CALLS for b in CALLS if (a, b) != ("jvp", "custom_vjp")]


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_what_does_not_depend_on_the_batch_stays_without_it(outer: str, inner: str) -> None:
    function = CALLS[outer](CALLS[inner](base))
    mapped = dt.vmap(function, (0, None), (0, None, 0))
    results = mapped(jnp.arange(1.0, 3.0), 2.0)
    for found, expected in zip(results, ([2.0, 4.0], 6.0, [3.0, 4.0]), strict=True):
        np.testing.assert_array_equal(found, expected)
    for axes in ((None, None, 0), (0, None, None)):
        with pytest.raises(ValueError, match="out_axes"):
            dt.vmap(function, (0, None), axes)(jnp.arange(1.0, 3.0), 2.0)


def test_results_of_a_batched_branch_depend_on_the_batch() -> None:
    def chosen(x: Any, y: Any) -> Any:
        return lax.cond(x > 1.0, lambda y: (y, y * 3.0), lambda y: (y, y * 2.0), y)

    passed_on, computed = dt.vmap(chosen, (0, None), (None, 0))(jnp.arange(1.0, 3.0), 2.0)
    assert passed_on == 2.0
    np.testing.assert_array_equal(computed, [4.0, 6.0])
    with pytest.raises(ValueError, match="out_axes"):
        dt.vmap(chosen, (0, None), None)(jnp.arange(1.0, 3.0), 2.0)


#: Calls that return y, which is not mapped, as it is; the second function may do something else.
PASSING: dict[str, Callable[[Any, Any], Any]] = {
    "cond": lambda f, g: lambda x, y: lax.cond(x > 1.0, f, g, x, y),
    "switch": lambda f, g: lambda x, y: lax.switch(x.astype(int), [f, g, f], x, y),
    "while_loop": lambda f, _: (
        lambda x, y: lax.while_loop(lambda c: c[0] < 3.0, lambda c: f(*c), (x, y))
    ),
    "fori_loop": lambda f, _: lambda x, y: lax.fori_loop(0, 2, lambda _, c: f(*c), (x, y)),
    "scan": lambda f, _: lambda x, y: lax.scan(lambda c, _: (f(*c), None), (x, y), None, 2)[0],
    "jit": lambda f, _: dt.jit(lambda x, y: f(x, y)),
    "checkpoint": lambda f, _: dt.checkpoint(lambda x, y: f(x, y)),
}
CHOOSING = ("cond", "switch", "while_loop")


@pytest.mark.parametrize("inner", PASSING)
@pytest.mark.parametrize("middle", PASSING)
@pytest.mark.parametrize("outer", CHOOSING)
def test_what_each_element_passes_on_stays_without_the_batch(
    outer: str, middle: str, inner: str
) -> None:
    def last(x: Any, y: Any) -> Any:
        return x + 1.0, y

    inside = PASSING[inner](last, last)
    between = PASSING[middle](inside, last)
    function = PASSING[outer](between, inside)
    x, y = jnp.arange(3.0), jnp.float32(2.0)
    moved, same = dt.vmap(function, (0, None), (0, None))(x, y)
    assert same == 2.0
    np.testing.assert_array_equal(moved, [function(e, y)[0] for e in x])
    tangent = dt.jvp(lambda y: dt.vmap(function, (0, None), (0, None))(x, y)[1], (y,), (3.0,))[1]
    assert tangent == 3.0


#: A while loop has no derivative in reverse mode.
RULES = [(a, b) for a in CHOOSING for b in ("jvp", "vmap", "vjp", "linear")][:-2]


@pytest.mark.parametrize(("name", "kind"), RULES)
def test_what_a_rule_passes_on_keeps_its_rule(name: str, kind: str) -> None:
    """The value is that of the operand; its derivative or its batch are not."""
    if kind == "jvp":
        same: Any = dt.custom_jvp(lambda y: y)
        same.defjvp(lambda p, t: (p[0], t[0] * 5.0))
    elif kind == "vjp":
        same = dt.custom_vjp(lambda y: y)
        same.defvjp(lambda y: (y, None), lambda _, g: (g * 5.0,))
    elif kind == "linear":
        same = partial(linear_call, lambda _, y: y, lambda _, g: g * 5.0, ())
    else:
        same = custom_vmap(lambda y: y)
        same.def_vmap(lambda size, batched, y: (y * 5.0, batched[0]))

    def last(x: Any, y: Any) -> Any:
        return x + 1.0, same(y)

    function = PASSING[name](last, last)
    x, y = jnp.array([0.0, 1.0, 2.5]), jnp.ones(3)
    if kind == "vmap":
        found = dt.vmap(function)(x, y)[1]
        expected = 5.0 ** np.array([3, 2, 1] if name == "while_loop" else [1, 1, 1])
    else:
        derivative = dt.jacfwd if kind == "jvp" else dt.jacrev
        found = derivative(lambda y: dt.vmap(function)(x, y)[1])(y).diagonal()
        expected = [
            derivative(partial(lambda a, e: function(a, e)[1], a))(b)
            for a, b in zip(x, y, strict=True)
        ]
        assert float(expected[0]) >= 5.0
    np.testing.assert_allclose(found, expected)


# ---------------------------------------------------------------------------------- gradients


def straight_through(kind: str) -> Any:
    """Results that do not depend on the elements, with rules that say they do."""
    if kind == "jvp":
        result: Any = dt.custom_jvp(lambda x, y: (jnp.float32(1.0), y))
        result.defjvp(lambda p, t: (result(*p), (t[0] * 5.0, t[1] * 7.0)))
        return result
    result = dt.custom_vjp(lambda x, y: (jnp.float32(1.0), y))
    result.defvjp(lambda x, y: (result(x, y), None), lambda _, g: (g[0] * 5.0, g[1] * 7.0))
    return result


FUNCTIONS: dict[str, Function] = {
    "custom_jvp": with_jvp(base),
    "custom_vjp": with_vjp(base),
    "custom_jvp straight through": straight_through("jvp"),
    "custom_vjp straight through": straight_through("vjp"),
    "custom_vjp of custom_jvp": with_vjp(with_jvp(base)),
    "custom_jvp of custom_vjp straight through": lambda x, y: with_jvp(lambda a, b: (a, b))(
        *straight_through("vjp")(x, y)
    ),
}
AROUND: dict[str, Callable[[Function], Function]] = {
    "eager": lambda f: f,
    "jit inside": dt.jit,
    "jit of jit inside": lambda f: dt.jit(dt.jit(f)),
    "scan inside": in_scan,
    "checkpoint inside": dt.checkpoint,
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_mapped_functions_are_those_of_a_loop(
    name: str, around: str, compiled: bool
) -> None:
    function = FUNCTIONS[name]
    function = AROUND[around](function)
    weights = jnp.array([2.0, 3.0, 5.0])

    def mapped(x: Any, y: Any) -> Any:
        results = dt.vmap(function, (0, None))(x, y)
        return sum((r * (i + 1.0)) @ weights for i, r in enumerate(results))

    def looped(x: Any, y: Any) -> Any:
        rows = [function(x[i], y) for i in range(3)]
        return sum(
            r * (i + 1.0) * w
            for row, w in zip(rows, weights, strict=True)
            for i, r in enumerate(row)
        )

    arguments = jnp.array([1.0, -2.0, 0.5]), jnp.float32(3.0)
    chosen = dt.jit(mapped) if compiled else mapped
    for argnums in (0, 1, (0, 1)):
        found = dt.value_and_grad(chosen, argnums)(*arguments)
        expected = dt.value_and_grad(looped, argnums)(*arguments)
        for a, b in zip(dt.tree.leaves(found), dt.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("make", [with_jvp, with_vjp], ids=["jvp", "vjp"])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_cotangent_of_a_result_without_the_batch_counts_once(compiled: bool, make: Any) -> None:
    function = make(base)
    if compiled:
        function = dt.jit(function)

    def total(y: Any) -> Any:
        return dt.vmap(function, (0, None), (0, None, 0))(jnp.arange(4.0), y)[1]

    assert dt.grad(total)(2.0) == 3.0
    assert dt.grad(dt.jit(total))(2.0) == 3.0


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_rules_that_make_results_vary_where_references_are_used(kind: str) -> None:
    if kind == "jvp":
        function: Any = dt.custom_jvp(lambda r, x: (jnp.float32(1.0), r[...]))
        function.defjvp(lambda p, t: (function(*p), (t[1] * 5.0, jnp.zeros_like(p[0][...]))))
    else:
        function = dt.custom_vjp(lambda r, x: (jnp.float32(1.0), r[...]))
        function.defvjp(lambda r, x: (function(r, x), None), lambda _, g: (None, g[0] * 5.0))
    ref = dt.new_ref(jnp.float32(2.0))

    @dt.jit
    def mapped(x: Any) -> Any:
        return dt.vmap(lambda e: function(ref, e), out_axes=(0, None))(x)

    value, gradient = dt.value_and_grad(lambda x: mapped(x)[0] @ jnp.arange(3.0))(jnp.ones(3))
    assert value == 3.0
    np.testing.assert_array_equal(gradient, [0.0, 5.0, 10.0])
    assert mapped(jnp.ones(3))[1] == 2.0
