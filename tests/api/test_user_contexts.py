"""Contexts of users, evaluation inside of traces, and enumerations for jit and options."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

SCALE = dt.make_user_context(3)


def test_functions_are_traced_for_each_value() -> None:
    traced: list[int] = []

    @dt.jit
    def scaled(x: Any) -> Any:
        traced.append(SCALE.value)
        return x * SCALE.value

    assert [int(scaled(2)) for _ in range(2)] == [6, 6]
    with SCALE(5):
        assert [int(scaled(2)) for _ in range(2)] == [10, 10]
        with SCALE(7):
            assert int(scaled(2)) == 14
        assert SCALE.value == 5
    assert int(scaled(2)) == 6
    assert traced == [3, 5, 7]


def test_values_of_threads_and_of_the_process() -> None:
    context = dt.make_user_context()
    assert context.value is None
    seen: list[Any] = []
    with context("here"):
        thread = threading.Thread(target=lambda: seen.append(context.value))
        thread.start()
        thread.join()
        context.set_global("everywhere")
        assert context.value == "here"
    assert seen == [None]
    assert context.value == context.get_global() == "everywhere"
    with pytest.raises(RuntimeError), context("here"):
        raise RuntimeError
    assert context.value == "everywhere"


def test_values_can_be_hashed() -> None:
    for call in (dt.make_user_context, SCALE, SCALE.set_global):
        with pytest.raises(TypeError, match="unhashable"):
            call([])  # type: ignore[arg-type]
    assert SCALE.value == 3


def test_cache_misses_are_explained(caplog: pytest.LogCaptureFixture) -> None:
    @dt.jit
    def scaled(x: Any) -> Any:
        return x * SCALE.value

    scaled(2)
    with SCALE(11), dt.explain_cache_misses(True):
        scaled(2)
    assert "make_user_context" in caplog.text


def test_evaluation_inside_of_traces() -> None:
    @dt.jit
    def f(x: Any) -> Any:
        with dt.core.eval_context():
            table = jnp.arange(3) ** 2
            assert int(table[2]) == 4
        return x + table[1]

    assert int(f(1)) == 2

    @dt.jit
    def wrong(x: Any) -> Any:
        with dt.core.eval_context():
            return lax.sin(x)

    with pytest.raises(dt.errors.UnexpectedTracerError):
        wrong(1.0)
    assert float(dt.jit(lambda x: x + 1)(1.0)) == 2


@pytest.mark.parametrize("inline", [True, False, *dt.Inline])
def test_inlined_calls(inline: Any) -> None:
    double = dt.jit(lambda x: x * 2, inline=inline)
    names = [e.primitive.name for e in dt.make_jaxpr(double)(1.0).eqns]
    assert names == (["mul"] if inline in (True, dt.Inline.JAX_EARLY) else ["jit"])
    assert float(dt.grad(double)(1.0)) == 2


@pytest.mark.parametrize("option", ["optimization_level", "memory_fitting_level"])
@pytest.mark.parametrize("level", dt.CompilerEffortLevel)
def test_efforts(option: str, level: dt.CompilerEffortLevel) -> None:
    with dt.config.option(option)(level):
        assert dt.config.read(option) == level.name
    with pytest.raises(ValueError, match="takes one of 'UNKNOWN', 'O0'"):
        dt.config.option(option)("O9")
