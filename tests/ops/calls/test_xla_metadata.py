"""experimental.xla_metadata and scheduling_groups: what programs tell XLA of operations."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental import scheduling_groups
from dovetail.experimental.xla_metadata import (
    fuse_limit,
    must_fuse_call,
    set_xla_metadata,
    xla_metadata_call,
    xla_metadata_call2,
)


def told(function: Any, *args: Any) -> dict[str, str]:
    """What is told of the operations of a program, by name; the last of each name counts."""
    text = dt.jit(function).lower(*args).as_text()
    found = {}
    for line in text.splitlines():
        match = re.match(r"\s*%\w+ = (?:stablehlo\.)?(\w+) (@\w+)?", line)
        if match:
            attributes = re.search(r"mhlo\.frontend_attributes = \{(.*?)\}", line)
            found[match[2] or match[1]] = attributes[1] if attributes else ""
    found.pop("constant", None)
    return found


def test_blocks() -> None:
    def f(x: Any) -> Any:
        with set_xla_metadata(flag=True, size=3, part=0.5, text="x"):
            y = jnp.sin(x)
            with set_xla_metadata(size=4, more="z"):
                y = lax.cos(y) * y
            y = lax.exp(y)
        return lax.tan(y)

    outer = 'flag = "true", part = "0.5", size = "3", text = "x"'
    inner = 'flag = "true", more = "z", part = "0.5", size = "4", text = "x"'
    expected = {"sine": outer, "cosine": inner, "multiply": inner, "exponential": outer, "tan": ""}
    assert told(f, 1.0) == expected


def test_decorators_and_derived_operations() -> None:
    @set_xla_metadata(color="red")
    def f(x: Any) -> Any:
        return jnp.sin(x)

    assert told(f, 1.0) == {"sine": 'color = "red"'}
    assert set(told(dt.grad(f), 1.0).values()) == {'color = "red"'}
    assert told(dt.vmap(f), np.ones(3)) == {"sine": 'color = "red"'}


def test_values() -> None:
    def f(x: Any) -> Any:
        y = set_xla_metadata({"a": jnp.sin(x), "b": (jnp.cos(x),)}, size=1)
        z = set_xla_metadata(x, size=2)  # an argument comes from no operation
        return lax.exp(y["a"] + y["b"][0]) * z

    assert told(f, 1.0) == {
        "sine": 'size = "1"',
        "cosine": 'size = "1"',
        "add": "",
        "exponential": "",
        "multiply": "",
    }
    np.testing.assert_allclose(
        dt.grad(f)(1.0), dt.grad(lambda x: jnp.exp(jnp.sin(x) + jnp.cos(x)) * x)(1.0)
    )
    assert float(set_xla_metadata(np.float32(3), size=1)) == 3


def test_operations_of_others_are_left_alone() -> None:
    """What a block only passes on was made outside of it."""

    def f(x: Any) -> Any:
        y = jnp.sin(x)
        with set_xla_metadata(size=1):
            return lax.stop_gradient(y)

    assert told(f, 1.0) == {"sine": ""}


def test_programs_inside_and_outside() -> None:
    """Of a jitted function only the call is told; bodies of control flow are told of."""
    inner = dt.jit(lambda x: jnp.cos(x), inline=False)

    def f(x: Any) -> Any:
        with set_xla_metadata(size=1):
            y = inner(x)
            return lax.cond(y > 0, jnp.sin, lambda x: x, y)

    found = told(f, 1.0)
    assert found["cosine"] == ""
    assert found["sine"] == found["compare"] == 'size = "1"'
    assert any(key.startswith("@") and value == 'size = "1"' for key, value in found.items())


def test_programs_that_differ_in_it_alone() -> None:
    def looped(size: int) -> Any:
        def f(x: Any) -> Any:
            def step(c: Any, _: Any) -> Any:
                with set_xla_metadata(size=size):
                    return jnp.sin(c), None

            return lax.scan(step, x, None, length=3)[0]

        return f

    assert [told(looped(n), 1.0)["sine"] for n in (1, 2)] == ['size = "1"', 'size = "2"']


@pytest.mark.parametrize("way", ["called", "decorated", "second"])
def test_calls(way: str) -> None:
    def wave(x: Any, *, y: Any) -> Any:
        return {"sum": jnp.sin(x) + y}

    made = {
        "called": lambda: xla_metadata_call(wave, color="red"),
        "decorated": lambda: xla_metadata_call(color="red")(wave),
        "second": lambda: xla_metadata_call2(metadata={"color": "red"})(wave),
    }[way]()
    assert made.__name__ == "wave"
    assert told(lambda x: made(x, y=x)["sum"], 1.0) == {
        "@xla_metadata_call": 'color = "red"',
        "sine": "",
        "add": "",
    }
    assert float(made(0.0, y=2.0)["sum"]) == 2
    np.testing.assert_allclose(dt.grad(lambda x: made(x, y=x)["sum"])(0.0), 2)
    np.testing.assert_allclose(dt.vmap(lambda x: made(x, y=1.0)["sum"])(np.zeros(3)), np.ones(3))
    np.testing.assert_allclose(dt.jvp(lambda x: made(x, y=x)["sum"], (0.0,), (1.0,))[1], 2)


@pytest.mark.parametrize(
    ("said", "backward"),
    [("same", 'a = "1"'), ("drop", ""), ({"b": 2}, 'b = "2"'), ({}, "")],
)
def test_derivatives_of_calls(said: Any, backward: str) -> None:
    f = xla_metadata_call2(jnp.sin, {"a": 1}, ad_metadata=said)
    found = told(dt.grad(f), 1.0)
    assert found["@xla_metadata_call"] == 'a = "1"'
    assert found["@xla_metadata_call_0"] == backward
    np.testing.assert_allclose(dt.grad(dt.grad(f))(1.0), -np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose(dt.linearize(f, 1.0)[1](2.0), 2 * np.cos(1.0), rtol=1e-6)


def test_captured_tracers() -> None:
    def outer(x: Any, y: Any) -> Any:
        return xla_metadata_call(lambda x: x * y, color="red")(x)

    assert [float(g) for g in dt.jit(dt.grad(outer, (0, 1)))(3.0, 4.0)] == [4, 3]


def test_what_xla_knows() -> None:
    call = must_fuse_call("wave")(lambda x: 2 * jnp.sin(x))
    assert told(call, 1.0)["@xla_metadata_call"] == 'MUST_FUSE = "wave"'
    assert told(fuse_limit()(jnp.sin), 1.0) == {"sine": 'FUSE_LIMIT = "true"'}
    group = scheduling_groups.scheduling_group(name="g")(jnp.sin)
    assert told(group, 1.0)["@xla_metadata_call"] == 'scheduling_group = "g"'
    assert scheduling_groups.xla_metadata_call is xla_metadata_call
    for f in (call, group):
        assert float(dt.jit(f)(0.0)) == 0


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: set_xla_metadata(a=[1]), "value of a is a string"),
        (lambda: set_xla_metadata("text", a=1), "set_xla_metadata requires its argument x"),
        (lambda: xla_metadata_call(jnp.sin, a=None), "value of a is a string"),
        (lambda: xla_metadata_call(3, a=1), "xla_metadata_call"),
        (lambda: xla_metadata_call2(jnp.sin, ad_metadata="none"), "ad_metadata is 'same'"),
        (lambda: xla_metadata_call(jnp.sin, a=1)("text"), r"argument args\[0\]"),
    ],
)
def test_mistakes(call: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        call()
