"""What functions with rules of their own hold is released with them, also where a rule calls the
function that it is the rule of."""

from __future__ import annotations

import copy
import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental.jet import jet
from dovetail.extend import ClosedJaxpr

Function = Callable[[Any], Any]


class Held:
    """What the functions capture."""


def of_custom_jvp(held: Held) -> Function:
    @dt.custom_jvp
    def k(x: Any) -> Any:
        assert held
        return jnp.sin(x)

    @k.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return k(*primals), jnp.cos(*primals) * tangents[0]

    return k


def of_custom_vjp(held: Held) -> Function:
    @dt.custom_vjp
    def k(x: Any) -> Any:
        assert held
        return jnp.sin(x)

    k.defvjp(lambda x: (k(x), x), lambda x, ct: (ct * jnp.cos(x) + 0 * k(x),))
    return k


def of_custom_vmap(held: Held) -> Function:
    @dt.custom_batching.custom_vmap
    def k(x: Any) -> Any:
        assert held
        return jnp.sin(x)

    @k.def_vmap
    def rule(size: int, batched: Any, x: Any) -> Any:
        return lax.map(k, x), True

    return k


KINDS = {"custom_jvp": of_custom_jvp, "custom_vjp": of_custom_vjp, "custom_vmap": of_custom_vmap}

ONES = np.ones(3, np.float32)

USES: dict[str, Callable[[Function], Any]] = {
    "eager": lambda k: k(1.0),
    "jit": lambda k: dt.jit(k)(1.0),
    "jit of jit": lambda k: dt.jit(dt.jit(k))(1.0),
    "jit of a function": lambda k: dt.jit(lambda x: k(x))(1.0),
    "grad": lambda k: dt.grad(k)(1.0),
    "grad of jit": lambda k: dt.grad(dt.jit(k))(1.0),
    "grad of jit of a function": lambda k: dt.grad(dt.jit(lambda x: k(x) * k(x)))(1.0),
    "grad of grad of jit": lambda k: dt.grad(dt.grad(dt.jit(k)))(1.0),
    "jit of grad": lambda k: dt.jit(dt.grad(k))(1.0),
    "vmap": lambda k: dt.vmap(k)(ONES),
    "vmap of jit": lambda k: dt.vmap(dt.jit(k))(ONES),
    "jit of vmap": lambda k: dt.jit(dt.vmap(k))(ONES),
    "checkpoint": lambda k: dt.grad(dt.checkpoint(k))(1.0),
    "jit of checkpoint": lambda k: dt.jit(dt.grad(dt.checkpoint(lambda x: k(x))))(1.0),
    "scan": lambda k: lax.scan(lambda c, x: (k(c) + x, None), 1.0, ONES),
    "scan of jit": lambda k: lax.scan(lambda c, x: (dt.jit(k)(c) + x, None), 1.0, ONES),
    "grad of scan": lambda k: dt.grad(
        lambda y: lax.scan(lambda c, x: (k(c) * x, None), y, ONES)[0]
    )(1.0),
    "cond": lambda k: lax.cond(True, k, jnp.cos, 1.0),
    "while_loop": lambda k: lax.while_loop(lambda c: c < 0, k, 1.0),
    "map": lambda k: lax.map(k, ONES),
    "make_jaxpr": lambda k: dt.make_jaxpr(dt.grad(k))(1.0),
    "eval_shape": lambda k: dt.eval_shape(k, 1.0),
    "lower": lambda k: dt.jit(k).lower(1.0).compile()(1.0),
}


def collected(released: weakref.ref[Any]) -> bool:
    """Whether an object goes, at once or when other threads are done: one that has run a program
    holds it for a moment longer, and while one collects garbage `gc.collect` does nothing."""
    deadline = time.monotonic() + 20.0
    while released() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    return released() is None


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", KINDS)
def test_functions_are_released(kind: str, use: str) -> None:
    def run() -> weakref.ref[Any]:
        held = Held()
        for _ in range(2):
            USES[use](KINDS[kind](held))
        return weakref.ref(held)

    assert collected(run())


def test_jet() -> None:
    def run() -> weakref.ref[Any]:
        held = Held()
        k = of_custom_jvp(held)
        jet(dt.jit(k), (1.0,), ([1.0, 0.0],))
        return weakref.ref(held)

    assert collected(run())


def test_programs_are_released_with_their_jaxprs() -> None:
    """A body with a rule is in no table of bodies."""
    k = of_custom_jvp(Held())

    def run() -> None:
        lax.scan(lambda c, x: (dt.jit(lambda y: k(y))(c) + x, None), 1.0, ONES)

    def alive() -> int:
        for _ in range(3):
            gc.collect()
        return sum(type(o) is ClosedJaxpr for o in gc.get_objects())

    run()
    before = alive()
    for _ in range(4):
        run()
    assert alive() <= before


@pytest.mark.parametrize("made", [dt.debug.callback, dt.pure_callback])
def test_callbacks(made: Any) -> None:
    def run() -> weakref.ref[Any]:
        held = Held()

        def body(c: Any, x: Any) -> Any:
            if made is dt.debug.callback:
                made(lambda _: held, c)
                return c, None
            return made(lambda c: np.float32(c) if held else c, c, c), None

        lax.scan(body, jnp.float32(1.0), ONES)
        dt.jit(lambda c: body(c, None)[0])(jnp.float32(1.0))
        dt.effects_barrier()
        return weakref.ref(held)

    assert collected(run())


@pytest.mark.parametrize("kind", KINDS)
def test_copies_remember_nothing(kind: str) -> None:
    k = KINDS[kind](Held())
    np.testing.assert_allclose(dt.jit(k)(ONES), np.sin(ONES), rtol=1e-6)
    assert k._memory
    for copied in (copy.copy(k), copy.deepcopy(k)):
        assert not copied._memory
        np.testing.assert_allclose(dt.jit(copied)(ONES), np.sin(ONES), rtol=1e-6)
    dt.clear_caches()
    assert not k._memory
