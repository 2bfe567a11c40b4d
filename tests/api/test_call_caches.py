"""`dt.explain` and `cache_info`: what a jitted function has in its cache, and why."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

F = np.float32


def doubled() -> Any:
    return dt.jit(lambda x, n=2: x * n, static_argnames="n")


def test_sums() -> None:
    f = doubled()
    assert f.cache_info()[:4] == (0, 0, 0.0, 0.0)
    for x in (F(1), F(2), np.ones(3, F)):
        f(x)
    info = f.cache_info()
    assert (info.signatures, info.programs) == (2, 2)
    assert info.trace_seconds > 0
    assert info.compile_seconds > 0
    f(dt.device_put(F(1), dt.devices()[1]))
    assert f.cache_info()[:2] == (2, 3)
    f.clear_cache()
    assert f.cache_info()[:2] == (0, 0)


def test_signatures() -> None:
    f = doubled()
    f(F(1))
    f({"a": jnp.ones(3)}["a"], n=3)
    f.lower(np.int32(1)).compile()
    explanation = dt.explain(f)
    first, second, third = explanation
    assert first.arguments == (("x", "f32[]"),)
    assert (second.arguments, second.statics) == ((("x", "f32[3]"),), (("n", "3"),))
    assert second.cause.again
    assert second.equations == 1
    assert third.compile_seconds == (("cpu:0", None),)
    text = str(explanation)
    assert "traced for 3 signatures" in text
    assert "x: f32[3], n = 3 (static)" in text
    assert "compiled for cpu:0 ahead of time" in text
    assert "to avoid it, " in text
    assert explanation[1:] == (second, third)
    assert "3 signatures" in repr(explanation)
    assert "<pre>" in explanation._repr_html_()


def test_jits_of_one_function_are_kept_apart() -> None:
    def f(x: Any) -> Any:
        return x + 1

    once, donating = dt.jit(f), dt.jit(f, donate_argnums=0)
    once(jnp.ones(3))
    donating(jnp.ones(4))
    assert [len(dt.explain(g)) for g in (once, donating)] == [1, 1]
    assert dt.explain(donating)[0].arguments == (("x", "f32[4]"),)


def test_many_arguments_are_summed_up() -> None:
    f = dt.jit(lambda tree: tree)
    f([F(n) for n in range(30)])
    assert "tree[7]: f32[], and 22 more" in str(dt.explain(f))


def test_functions_that_cannot_be_remembered() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x: Any) -> Any:
            return x + 1

    f = dt.jit(Unhashable())
    f(F(1))
    assert len(dt.explain(f)) == 1


def test_methods() -> None:
    class Model:
        @functools.partial(dt.jit, static_argnums=0)
        def step(self, x: Any) -> Any:
            return x + 1

    model = Model()
    model.step(F(1))
    assert len(dt.explain(Model.step)) == len(dt.explain(model.step)) == 1
    assert model.step.cache_info().signatures == 1


def test_a_function_that_was_not_called() -> None:
    assert "was not called yet" in str(dt.explain(doubled()))


WRONG = {"a function": abs, "a number": 3, "a gradient": dt.grad(lambda x: x)}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_jitted_function(name: str) -> None:
    with pytest.raises(TypeError, match=r"explain takes .* got .*Write f = dovetail.jit"):
        dt.explain(WRONG[name])  # type: ignore[arg-type]
