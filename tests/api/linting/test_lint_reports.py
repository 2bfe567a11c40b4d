"""What `dt.lint` takes, and the report that it gives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.debug import Finding, LintReport

VECTOR = dt.ShapeDtypeStruct((5,), np.float32)
SCALAR = dt.ShapeDtypeStruct((), np.float32)


def _variables() -> dict[str, Callable[..., Any]]:
    captured = jnp.ones((512, 512))

    class Model:
        def __init__(self) -> None:
            self.weights = jnp.ones((512, 512))

        def __call__(self, x: Any) -> Any:
            return self.weights @ x

    def with_closure(x: Any) -> Any:
        return captured @ x

    def with_weights(weights: Any, x: Any) -> Any:
        return weights @ x

    return {
        "captured": with_closure,
        "self.weights": Model().__call__,
        "weights": functools.partial(lambda x, weights: weights @ x, weights=captured),
        "args[0] of the partial": functools.partial(with_weights, captured),
    }


@pytest.mark.parametrize("name", ["captured", "self.weights", "weights", "args[0] of the partial"])
def test_the_variable_that_holds_a_constant(name: str) -> None:
    report = dt.lint(_variables()[name], jnp.ones(512))
    assert [f.argument for f in report] == [name]
    assert name in report[0].message
    assert name in report[0].remedy
    assert "1.0 MiB" in report[0].message


def test_arguments_of_all_kinds() -> None:
    @functools.partial(dt.jit, static_argnames="count", donate_argnums=0)
    def program(x: Any, *, count: int, scale: Any = 1.0) -> Any:
        for _ in range(count):
            x = jnp.sin(x["a"]) * scale
            x = {"a": x}
        return x

    for leaf in (np.ones(3), jnp.ones(3), dt.ShapeDtypeStruct((3,), np.float32), 2.0):
        assert not dt.lint(program, {"a": leaf}, count=3)
        assert dt.lint(program, {"a": leaf}, count=9)[0].rule == "unrolled-loop"
        assert dt.lint(program, {"a": leaf}, count=9, scale=leaf)


def test_references() -> None:
    ref = dt.new_ref(jnp.zeros(3))

    def program(x: Any) -> Any:
        for i in range(8):
            ref[i % 3] = jnp.sin(x[0])
        return ref[...]

    assert [f.rule for f in dt.lint(program, VECTOR)] == ["unrolled-loop"]
    np.testing.assert_array_equal(ref[...], 0)


def test_a_report() -> None:
    def program(x: Any) -> Any:
        x.at[0].set(1.0)
        for _ in range(8):
            x = jnp.sin(x)
        return x

    report = dt.lint(program, VECTOR)
    assert isinstance(report, LintReport)
    assert len(report) == 2
    assert bool(report)
    first, second = report
    assert isinstance(first, Finding)
    assert (first, second) == (report[0], report[1]) == tuple(report[:])
    assert [first.rule, second.rule] == ["unused-update", "unrolled-loop"]
    line = program.__code__.co_firstlineno
    assert (first.where, second.where) == (f"{__file__}:{line + 1}", f"{__file__}:{line + 2}")
    assert first.function.endswith("program")
    assert first.remedy == "Assign what it returns: x = x.at[...].set(...)"
    assert "8 times" in second.message
    assert str(report) == repr(report)
    assert str(report).splitlines() == [
        "program: 2 findings",
        f"{__file__}:{line + 1} ({first.function}): unused-update",
        f"  {first.message}.",
        f"  {first.remedy}.",
        f"{__file__}:{line + 2} ({first.function}): unrolled-loop",
        f"  {second.message}.",
        f"  {second.remedy}.",
    ]
    assert report._repr_html_().count("<tr>") == 3
    nothing = dt.lint(jnp.sin, VECTOR)
    assert not nothing
    assert list(nothing) == []
    assert str(nothing) == "sin: nothing found"


MISUSES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no function": (lambda: dt.lint(3, VECTOR), TypeError, "takes a function"),  # type: ignore[arg-type]
    "a string": (lambda: dt.lint(jnp.sin, "x"), TypeError, "Argument x of sin"),
    "an argument too few": (lambda: dt.lint(lambda x: x), TypeError, "missing 1 required"),
    "a branch on a value": (
        lambda: dt.lint(lambda x: x if x else -x, SCALAR),
        dt.errors.TracerBoolConversionError,
        "bool",
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuses(name: str) -> None:
    call, error, message = MISUSES[name]
    with pytest.raises(error, match=message):
        call()
