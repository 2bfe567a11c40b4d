"""With `disable_jit` functions run as Python: the same results, and values to be looked at."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.core import Tracer

pytestmark = pytest.mark.laws

X = np.arange(1, 5, dtype=np.float32)
ONE = np.float32(1)
THREE = np.int32(3)


@dt.custom_jvp
def with_jvp(x: Any) -> Any:
    return jnp.sin(x)


@with_jvp.defjvp
def _with_jvp_rule(primals: Any, tangents: Any) -> Any:
    return with_jvp(*primals), 3 * tangents[0]


@dt.custom_vjp
def with_vjp(x: Any) -> Any:
    return jnp.sin(x)


with_vjp.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (5 * ct * x,))


@dt.custom_batching.custom_vmap
def with_vmap(x: Any) -> Any:
    return jnp.sin(x)


@with_vmap.def_vmap
def _with_vmap_rule(size: int, batched: Any, x: Any) -> Any:
    return 7 * x, True


def power(x: Any, n: int, *, twice: bool = False) -> Any:
    return x**n * (2 if twice else 1)


static_power = dt.jit(power, static_argnums=1, static_argnames="twice")


@dt.jit
def recursive(x: Any) -> Any:
    return lax.cond(x.sum() > 20, lambda y: y, lambda y: dt.jit(jnp.sin)(y) + y, x)


def of_reference(x: Any) -> Any:
    ref = dt.new_ref(jnp.zeros_like(x))

    def body(i: Any, c: Any) -> Any:
        ref[...] += c * i
        return c + 1

    return lax.fori_loop(0, 3, body, x), ref[...]


def with_reference_argument(x: Any) -> Any:
    @dt.jit
    def add(ref: Any, y: Any) -> Any:
        ref[...] += y
        return ref[...] * 2

    ref = dt.new_ref(jnp.asarray(x))
    return add(ref, x), ref[...]


# Functions of an array, with control flow and calls of every kind.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "jit": dt.jit(lambda x: x * 2 + 1),
    "jit in jit": dt.jit(lambda x: dt.jit(lambda y: jnp.sin(y))(x) + x),
    "jit with static arguments": lambda x: static_power(x, 3) + static_power(x, 2, twice=True),
    "jit with keywords": lambda x: dt.jit(lambda x, y: x - y)(y=x, x=2 * x),
    "jit of trees": lambda x: dt.jit(lambda d: {"b": d["a"][0], "c": (d["a"][1] * 2,)})(
        {"a": [x, x + 1]}
    ),
    "jit with donation": lambda x: dt.jit(lambda y: y + 1, donate_argnums=0)(jnp.asarray(x) * 1),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.float32(0), x),
    "scan backwards": lambda x: lax.scan(
        lambda c, y: (c * 2 + y, {"c": c}), jnp.float32(1), x, reverse=True
    ),
    "scan of trees": lambda x: lax.scan(
        lambda c, y: ((c[1], c[0] + y["a"]), None), (x[0], x[1]), {"a": x}, unroll=2
    ),
    "scan of nothing": lambda x: lax.scan(lambda c, y: (c * y, c), x[0], x[:0]),
    "scan by length": lambda x: lax.scan(lambda c, _: (c * 2, c), x, length=3),
    "scan in scan": lambda x: lax.scan(
        lambda c, y: lax.scan(lambda d, z: (d + z * y, d), c, x), jnp.float32(0), x
    ),
    "while_loop": lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x),
    "while_loop that does not begin": lambda x: lax.while_loop(
        lambda c: c.sum() < 0, lambda c: c * 2, x
    ),
    "fori_loop": lambda x: lax.fori_loop(0, 4, lambda i, c: c * 2 + i, x),
    "fori_loop, bound unknown": lambda x: lax.fori_loop(0, THREE, lambda i, c: c * 2 + i, x),
    "fori_loop of nothing": lambda x: lax.fori_loop(4, 0, lambda i, c: c * 2 + i, x),
    "map": lambda x: lax.map(lambda y: jnp.sin(y) * y, x),
    "map by batches": lambda x: lax.map(lambda y: jnp.sin(y) * y, x, batch_size=3),
    "cond": lambda x: lax.cond(x[0] > 0, lambda y: y + 1, lambda y: y * 2, x),
    "cond, false": lambda x: lax.cond(x[0] < 0, lambda y: y + 1, lambda y: y * 2, x),
    "cond without operands": lambda x: lax.cond(x.sum() > 3, lambda: x, lambda: -x),
    "switch": lambda x: lax.switch(THREE - 2, [jnp.sin, lambda y: y * 2, jnp.cos], x),
    "switch, out of range": lambda x: lax.switch(THREE, [jnp.sin, lambda y: y * 2, jnp.cos], x),
    "associative_scan": lambda x: lax.associative_scan(lambda a, b: a * b, jnp.asarray(x)),
    "associative_scan backwards": lambda x: lax.associative_scan(
        jnp.maximum, jnp.asarray(x), reverse=True
    ),
    "reduce": lambda x: lax.reduce(x, ONE, lambda a, b: a * b, (0,)),
    "custom_jvp": lambda x: with_jvp(x),
    "custom_vjp": lambda x: with_vjp(x),
    "custom_vmap": lambda x: with_vmap(x),
    "jit of custom_jvp": dt.jit(with_jvp),
    "checkpoint": lambda x: dt.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x),
    "custom_root": lambda x: lax.custom_root(
        lambda y: y * y - x,
        x,
        lambda f, y: jnp.sqrt(x) * y / y,
        lambda g, y: y / g(jnp.ones(y.shape)),
    ),
    "custom_linear_solve": lambda x: lax.custom_linear_solve(
        lambda y: y * 2, jnp.asarray(x), lambda _, b: b / 2, symmetric=True
    ),
    "branch of a jitted function": recursive,
    "mutable references": of_reference,
    "reference as an argument": with_reference_argument,
    "platform_dependent": lambda x: lax.platform_dependent(x, default=lambda y: y * 2),
    "numpy functions": lambda x: (jnp.linalg.norm(x), jnp.sort(-x), jnp.where(x > 2, x, 0)),
    "random numbers": lambda x: x * dt.random.normal(dt.random.key(0), x.shape),
    "indexed updates": lambda x: jnp.asarray(x).at[1].set(5).at[0].add(2),
}


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A scalar function."""
    return lambda x: sum(jnp.sum(leaf) for leaf in dt.tree.leaves(f(x)))


def jvp(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: dt.jvp(f, (x,), (x + 1,))


# Functions of a transformation around and inside; which names cannot be transformed so.
WITHOUT_GRADIENT = {
    "while_loop",
    "while_loop that does not begin",
    "fori_loop, bound unknown",
}
WAYS: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "plain": lambda f: f,
    "jit": lambda f: dt.jit(f),
    "grad": lambda f: dt.grad(total(f)),
    "jit of grad": lambda f: dt.jit(dt.grad(total(f))),
    "grad of jit": lambda f: dt.grad(total(dt.jit(f))),
    "jvp": jvp,
    "vmap": lambda f: lambda x: dt.vmap(f)(jnp.stack([x, x + 1, x * 3])),
    "vmap of jit": lambda f: lambda x: dt.vmap(dt.jit(f))(jnp.stack([x, x + 1])),
    "scan of it": lambda f: (
        lambda x: lax.scan(lambda c, _: (total(f)(c) + 0 * c, None), x, length=2)[0]
    ),
}

CASES = [
    (way, name)
    for way in WAYS
    for name in FUNCTIONS
    if not ("grad" in way and name in WITHOUT_GRADIENT)
    # Rules say nothing of the other kind of differentiation, and a donated argument is the user's.
    and not (way == "jvp" and name == "custom_vjp")
]


@pytest.mark.parametrize(("way", "name"), CASES)
def test_the_same_results(way: str, name: str) -> None:
    function = WAYS[way](FUNCTIONS[name])
    # The first compiled gradient of a loop without turns may be a Zero; shapes must agree too.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some donated buffers were not usable")
        expected = function(jnp.asarray(X))
        with dt.disable_jit():
            found = function(jnp.asarray(X))
    assert dt.tree.structure(found) == dt.tree.structure(expected)
    for one, other in zip(dt.tree.leaves(found), dt.tree.leaves(expected), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


# From a callback to a function whose Python code calls it with its values.
LOOKS: dict[str, Callable[[Callable[..., None]], Any]] = {
    "jit": lambda see: dt.jit(lambda x: see(x))(X),
    "jit in jit": lambda see: dt.jit(lambda x: dt.jit(lambda y: see(y))(x * 2))(X),
    "scan": lambda see: lax.scan(lambda c, x: (see(c, x), None)[:0] or (c + x, None), ONE, X),
    "while_loop": lambda see: lax.while_loop(
        lambda c: bool(c < 9), lambda c: (see(c), c * 2)[1], jnp.float32(1)
    ),
    "fori_loop": lambda see: lax.fori_loop(0, 3, lambda i, c: (see(i, c), c + i)[1], THREE),
    "map": lambda see: lax.map(lambda x: (see(x), x)[1], X),
    "cond": lambda see: lax.cond(True, lambda x: (see(x), x)[1], lambda x: x, X),
    "switch": lambda see: lax.switch(1, [lambda x: x, lambda x: (see(x), x)[1]], X),
    "associative_scan": lambda see: lax.associative_scan(
        lambda a, b: (see(a, b), a + b)[1], jnp.asarray(X)
    ),
    "cond in scan": lambda see: lax.scan(
        lambda c, x: (lax.cond(x > 2, lambda: (see(c), c)[1], lambda: c), None), ONE, X
    ),
    "custom_jvp": lambda see: _custom_jvp_that(see)(X),
    "checkpoint": lambda see: dt.checkpoint(lambda x: (see(x), x)[1])(X),
}


def _custom_jvp_that(see: Callable[..., None]) -> Any:
    f = dt.custom_jvp(lambda x: (see(x), x)[1])
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return dt.jit(f)


@pytest.mark.parametrize("name", LOOKS)
def test_values_can_be_looked_at(name: str) -> None:
    seen: list[Any] = []

    def see(*values: Any) -> None:
        for value in values:
            assert not isinstance(value, Tracer)
            seen.append(np.asarray(value).tolist())

    with dt.disable_jit():
        LOOKS[name](see)
    assert seen
    if name == "scan":
        assert seen == [1, 1, 2, 2, 4, 3, 7, 4]
    if name == "cond in scan":
        assert len(seen) == 2


@pytest.mark.parametrize("around", ["grad", "vmap", "jvp"])
def test_tracers_of_other_transformations_remain(around: str) -> None:
    """What is differentiated or batched is a tracer all the same; others are values."""
    kinds: list[bool] = []

    @dt.jit
    def f(x: Any, y: Any) -> Any:
        kinds.append(isinstance(x, Tracer))
        kinds.append(isinstance(y, Tracer))
        return x * y

    with dt.disable_jit():
        if around == "grad":
            dt.grad(f)(2.0, 3.0)
        elif around == "vmap":
            dt.vmap(f, in_axes=(0, None))(X, 3.0)
        else:
            dt.jvp(lambda x: f(x, 3.0), (2.0,), (1.0,))
    assert kinds == [True, False]


def test_it_ends() -> None:
    traced = []
    f = dt.jit(lambda x: (traced.append(type(x)), x + 1)[1])
    f(1.0)
    with dt.disable_jit():
        f(1.0)
        with dt.disable_jit(False):
            f(1.0)
    f(1.0)
    assert len(traced) == 2
    with pytest.raises(ZeroDivisionError), dt.disable_jit():
        dt.jit(lambda x: x / 0)(1)
    f(1.0)
    assert len(traced) == 2


def test_python_decides() -> None:
    """Code that cannot be traced runs."""

    @dt.jit
    def f(x: Any) -> Any:
        return x * 2 if x.sum() > 3 else x[x > 0]

    with pytest.raises(dt.errors.ConcretizationTypeError):
        f(X)
    with dt.disable_jit():
        np.testing.assert_array_equal(f(X), X * 2)
        np.testing.assert_array_equal(f(X[:1]), X[:1])
