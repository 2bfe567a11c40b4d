"""composite: functions as operations with names of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.trace.primitive import primitive

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@lambda f: lax.composite(f, "tests.scaled_sine", version=3)
def scaled(x: Any, *, factor: Any) -> Any:
    return lax.mul(lax.sin(x), lax.full_like(x, factor))


def sine(x: Any, factor: float = 2.0) -> Any:
    return np.sin(x) * np.float32(factor)


def test_values() -> None:
    for function in (scaled, dt.jit(scaled, static_argnames="factor")):
        for factor in (2.0, 3.0, 2.0):
            got = function(X, factor=factor)
            np.testing.assert_allclose(np.asarray(got), sine(X, factor), rtol=1e-6)
    assert scaled.__name__ == "scaled"


def test_programs() -> None:
    jaxpr = dt.make_jaxpr(lambda x: scaled(x, factor=2.0))(X)
    (eqn,) = jaxpr.eqns
    assert (eqn.primitive.name, eqn.params["name"]) == ("composite", "tests.scaled_sine")
    assert sorted(eqn.params) == ["attributes", "jaxpr", "name", "version"]
    assert str(eqn.params["attributes"]).startswith("(('factor', (2.0,)")
    text = dt.jit(lambda x: scaled(x, factor=2.0)).lower(X).as_text()
    assert 'stablehlo.composite "tests.scaled_sine" %arg0' in text
    assert "composite_attributes = {factor = 2.000000e+00 : f64}" in text
    assert "decomposition = @tests.scaled_sine" in text
    assert "version = 3 : i32" in text
    assert "call @" not in text


def test_attributes() -> None:
    seen = []

    def decomposition(x: Any, **attributes: Any) -> Any:
        seen.append(attributes)
        return x

    function = lax.composite(decomposition, "tests.identity")
    given = {"a": 1, "b": "text", "c": (1, 2), "d": True, "e": np.arange(2), "f": {"g": 1.5}}
    text = dt.jit(lambda x: function(x, **given)).lower(X).as_text()
    assert (
        'composite_attributes = {a = 1 : i64, b = "text", c = array<i64: 1, 2>, d = true, '
        "e = dense<[0, 1]> : tensor<2xi64>, f = {g = 1.500000e+00 : f64}}"
    ) in text
    assert seen[0] == given
    # Equal numbers of different types are different attributes, equal arrays the same.
    texts = {dt.jit(lambda x, v=v: function(x, a=v)).lower(X).as_text() for v in (1, True, 1.0)}
    assert len(texts) == 3
    traced = len(seen)
    for _ in range(2):
        function(X, a=np.ones(2))
    assert len(seen) == traced + 1


def test_trees_and_constants() -> None:
    constant = np.arange(3, dtype=np.float32)
    function = lax.composite(lambda d: {"sum": d["x"] + constant, "two": (d["x"], 2)}, "tests.tree")
    for run in (function, dt.jit(function)):
        out = run({"x": X})
        assert out["sum"].tolist() == (X + constant).tolist()
        assert int(out["two"][1]) == 2
    empty = lax.composite(lambda x: (), "tests.empty")
    assert dt.jit(lambda x: (empty(x), x + 1))(X)[0] == ()
    inner = lax.composite(lambda x: scaled(x, factor=2.0), "tests.outer")
    assert dt.jit(inner).lower(X).as_text().count("stablehlo.composite") == 2
    np.testing.assert_allclose(np.asarray(dt.jit(inner)(X)), sine(X), rtol=1e-6)


def test_transformations_are_those_of_the_decomposition() -> None:
    def function(x: Any) -> Any:
        return lax.reduce_sum(scaled(x, factor=2.0), (0, 1))

    for gradient in (dt.grad(function), dt.jit(dt.grad(function))):
        np.testing.assert_allclose(np.asarray(gradient(X)), 2 * np.cos(X), rtol=1e-5)
    _, tangent = dt.jvp(lambda x: scaled(x, factor=2.0), (X,), (X,))
    np.testing.assert_allclose(np.asarray(tangent), 2 * np.cos(X) * X, rtol=1e-5)
    mapped = dt.vmap(lambda x: scaled(x, factor=2.0), in_axes=1, out_axes=1)(X)
    np.testing.assert_allclose(np.asarray(mapped), sine(X), rtol=1e-6)
    # What is not differentiated stays one operation.
    jaxpr = dt.make_jaxpr(lambda x: dt.jvp(lambda y: scaled(x, factor=2.0) * y, (x,), (x,)))(X)
    assert [e.primitive.name for e in jaxpr.eqns].count("composite") == 1


def test_reference() -> None:
    (eqn,) = dt.make_jaxpr(lambda x: scaled(x, factor=2.0))(X).eqns
    (out,) = primitive("composite").reference(X, **eqn.params)
    np.testing.assert_allclose(out, sine(X), rtol=1e-6)


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: lax.composite(3, "a"), "decomposition must be a function"),  # type: ignore[arg-type]
    (lambda: lax.composite(lax.sin, ""), "name must be a string"),
    (lambda: lax.composite(lax.sin, "a", -1), "version must be a number"),
    (lambda: scaled(X, factor=object()), "attribute factor of tests.scaled_sine holds a value of"),
    (lambda: dt.jit(lambda k: scaled(X, factor=k))(2.0), "is a traced value"),
    (lambda: scaled("text", factor=2.0), "composite tests.scaled_sine requires its argument 0"),
    (
        lambda: dt.jit(lambda y: lax.composite(lambda x: x + y, "tests.captures")(X))(X),
        "uses a traced value from outside",
    ),
    (lambda: lax.composite(lambda x: "text", "tests.text")(X), "argument result 0 to be an array"),
    (
        lambda: lax.composite(lambda x: lax.dce_sink(x), "tests.sink")(X),
        "has side effects",
    ),
]


@pytest.mark.parametrize(("function", "text"), ERRORS)
def test_errors(function: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        function()
