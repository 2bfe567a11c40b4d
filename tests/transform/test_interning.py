"""Equal jaxprs are one object: loops and branches are not compiled again when they are called
again, and what they are traced from is looked at on every call."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.transform.interning import interned

pytestmark = pytest.mark.laws

X = np.arange(1, 5, dtype=np.float32)
SCALAR = jnp.float32(2.0)
ONES = np.ones(4, np.float32)

# By functions that are made anew in each call: `k` is what they capture.
CALLS: dict[str, Callable[[Any], Any]] = {
    "scan": lambda k: lax.scan(lambda c, x: (c + k * x, c), 1.0, jnp.asarray(X)),
    "scan of nothing": lambda k: lax.scan(lambda c, _: (c + k, c), SCALAR, length=3),
    "scan in scan": lambda k: lax.scan(
        lambda c, x: (lax.scan(lambda d, _: (d * k, None), c, length=2)[0], x), SCALAR, X
    ),
    "while_loop": lambda k: lax.while_loop(lambda c: c < 9 * k, lambda c: c + k, SCALAR),
    "fori_loop": lambda k: lax.fori_loop(0, 3, lambda i, c: c * k + i, SCALAR),
    "fori_loop, bound unknown": lambda k: lax.fori_loop(
        0, jnp.int32(3), lambda i, c: c * k + i, SCALAR
    ),
    "map": lambda k: lax.map(lambda x: jnp.sin(x) * k, X),
    "map by batches": lambda k: lax.map(lambda x: jnp.sin(x) * k, X, batch_size=2),
    "cond": lambda k: lax.cond(SCALAR > 1, lambda x: x * k, lambda x: x - k, SCALAR),
    "cond, converted": lambda k: lax.cond(SCALAR > 1, lambda x: x * k, lambda x: 1, SCALAR),
    "switch": lambda k: lax.switch(jnp.int32(1), [lambda x: x, lambda x: x * k], SCALAR),
    "associative_scan": lambda k: lax.associative_scan(lambda a, b: a * b * k, jnp.asarray(X)),
    "custom_root": lambda k: lax.custom_root(
        lambda x: x * x - k, SCALAR, lambda f, x: jnp.sqrt(k) * x / x, lambda g, y: y / g(1.0)
    ),
    "custom_linear_solve": lambda k: lax.custom_linear_solve(
        lambda x: x * k, jnp.asarray(X), lambda _, b: b / k, symmetric=True
    ),
    "grad of scan": lambda k: dt.grad(
        lambda y: lax.scan(lambda c, x: (c * jnp.sin(x) * k, None), y, X)[0]
    )(SCALAR),
    "grad of cond": lambda k: dt.grad(
        lambda y: lax.cond(y > 1, lambda x: x * k, lambda x: jnp.sin(x), y)
    )(SCALAR),
    "jvp of while_loop": lambda k: dt.jvp(
        lambda y: lax.while_loop(lambda c: c < 9 * k, lambda c: c * c * k, y), (SCALAR,), (SCALAR,)
    ),
    "vmap of scan": lambda k: dt.vmap(
        lambda y: lax.scan(lambda c, x: (c + jnp.sin(x) * k, c), y, X)
    )(jnp.asarray(X)),
    "mutable reference": lambda k: _with_reference(k),
}


def _with_reference(k: Any) -> Any:
    ref = dt.new_ref(SCALAR)

    def body(i: Any, c: Any) -> Any:
        ref[...] += c * k
        return c + i

    return lax.fori_loop(0, 3, body, SCALAR), ref[...]


def results(value: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in dt.tree.leaves(value)]


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_compiled_again(caplog: pytest.LogCaptureFixture, name: str) -> None:
    captured = [jnp.float32(3.0), jnp.float32(3.0), jnp.float32(4.0)]
    with dt.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        counts = []
        for k in captured:
            CALLS[name](k)
            counts.append(len(caplog.records))
    assert counts[0] > 0
    assert counts[1:] == [counts[0]] * 2


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", [jnp.float32, np.float32, float])
def test_what_is_captured_is_looked_at_each_time(name: str, kind: Any) -> None:
    values = [3.0, 5.0, 3.0, -0.0, 0.0]
    if name in ("while_loop", "jvp of while_loop", "custom_linear_solve"):
        values = values[:3]  # would not end, or divides by zero
    found = [results(CALLS[name](kind(k))) for k in values]
    assert dt.tree.structure(found[0]) == dt.tree.structure(found[1])
    assert any((a != b).any() for a, b in zip(found[0], found[1], strict=True))
    for k, outs in zip(values, found, strict=True):
        dt.clear_caches()
        for out, expected in zip(outs, results(CALLS[name](kind(k))), strict=True):
            np.testing.assert_array_equal(out, expected, strict=True)
            np.testing.assert_array_equal(np.signbit(out), np.signbit(expected))


factor: Any = 2.0


def of_global(c: Any, x: Any) -> tuple[Any, Any]:
    return c + factor * x, None


class Model:
    """A function whose state changes."""

    def __init__(self) -> None:
        self.weight = np.ones(4, np.float32)

    def __call__(self, c: Any, x: Any) -> tuple[Any, Any]:
        return c + self.weight.sum() * x, None


def test_changes_of_what_functions_see(monkeypatch: pytest.MonkeyPatch) -> None:
    def sums(f: Any) -> float:
        return float(lax.scan(f, jnp.float32(0), X)[0])

    assert sums(of_global) == 20
    monkeypatch.setitem(globals(), "factor", 3.0)
    assert sums(of_global) == 30
    monkeypatch.setitem(globals(), "factor", jnp.float32(4.0))
    assert sums(of_global) == 40
    model = Model()
    assert sums(model) == 40
    model.weight[0] = 2  # in place
    assert sums(model) == 50
    model.weight = np.zeros(4, np.float32)
    assert sums(model) == 0


def test_options_are_part_of_it() -> None:
    def run() -> Any:
        return lax.scan(lambda c, x: (c + jnp.asarray(1.0), x), 0.0, X)[0].dtype

    assert run() == np.float32
    with dt.enable_x64(True):
        assert run() == np.float64
    assert run() == np.float32


def test_errors_come_each_time() -> None:
    for _ in range(3):
        with pytest.raises(TypeError, match=r"dtype changes from float32 to int32"):
            lax.scan(lambda c, x: (jnp.int32(1), x), SCALAR, X)
        with pytest.raises(TypeError, match=r"branches must return the same shapes and dtypes"):
            lax.cond(True, lambda: SCALAR, lambda: jnp.int32(1))


def staged(f: Callable[..., Any], *args: Any) -> Any:
    return interned(dt.make_jaxpr(f)(*args))


DIFFERENT: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sign of a literal": (lambda x: x * 0.0, lambda x: x * -0.0),
    "parameter": (lambda x: x.sum(0), lambda x: x.sum(1)),
    "operation": (jnp.sin, jnp.cos),
    "order": (lambda x, y: x - y, lambda x, y: y - x),
    "result": (lambda x: (x, jnp.sin(x)), lambda x: (jnp.sin(x), x)),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_different(name: str) -> None:
    args = [np.ones((2, 2), np.float32)] * (2 if name == "order" else 1)
    both = DIFFERENT[name]
    # One line and one name for all.
    jaxprs = [staged(lambda *xs, f=f: f(*xs), *args) for f in (*both, *both)]
    texts = [str(jaxpr) for jaxpr in jaxprs]
    assert texts[0] == texts[2] != texts[1] == texts[3]
    assert jaxprs[0] is not jaxprs[1]


def test_equal_ones_are_one_object() -> None:
    one, two = (staged(lambda x: jnp.sin(x) * 2.0, SCALAR) for _ in range(2))
    assert one is two
    wider = staged(lambda x: jnp.sin(x) * 2.0, X)
    assert wider is not one
    elsewhere = staged(lambda x: jnp.sin(x) * 2.0, SCALAR)
    assert elsewhere is not one  # the places of its operations are others
    constants = [staged(lambda x: x + jnp.asarray(X), X) for _ in range(2)]
    assert constants[0] is not constants[1]


def test_calls_of_calls() -> None:
    """What is called twice at each of 60 levels is looked at once."""

    def doubled(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        jitted = dt.jit(f)
        return lambda x: jitted(x) + jitted(x)

    function: Callable[[Any], Any] = jnp.sin
    for _ in range(60):
        function = doubled(function)
    one, two = (staged(lambda x: function(x), SCALAR) for _ in range(2))
    assert one is two


def test_scopes_are_part_of_it() -> None:
    def within(name: str) -> Any:
        def f(x: Any) -> Any:
            with dt.named_scope(name):
                return jnp.sin(x)

        return staged(f, SCALAR)

    one, two, other = (within(name) for name in ("a", "a", "b"))
    assert one is two
    assert other is not one


def test_what_functions_capture_is_released() -> None:
    def run() -> weakref.ref[Any]:
        big = jnp.ones(4)
        for _ in range(2):
            lax.scan(lambda c, x: (c + big * x, None), jnp.zeros(4), X)
            dt.grad(lambda y: lax.map(lambda x: (x * big * y).sum(), X).sum())(1.0)
        return weakref.ref(big)

    released = run()
    gc.collect()
    assert released() is None
