"""What `dt.lint` takes, and the report that it gives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.debug import Finding, LintReport

ROWS = dt.ShapeDtypeStruct((3, 5), np.float32)
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


def number_in_each_turn(x: Any) -> Any:
    total = 0.0
    for row in x:
        total += float(jnp.sum(row))  # here
    return total


def numbers_in_a_comprehension(x: Any) -> Any:
    return [row.sum().item() for row in x]  # here


def condition_of_a_loop(x: Any) -> Any:
    while jnp.sum(x) < 10:  # here
        x = x + 1
    return x


def branch_in_a_loop(x: Any) -> Any:
    for _ in range(10):
        if x[0] > 0:  # here
            x = x + 1
    return x


def copies_to_the_host(x: Any) -> Any:
    history = []
    for _ in range(3):
        x = dt.jit(jnp.sin)(x)
        history.append(np.asarray(x))  # here
    return history


NEED_VALUES: list[tuple[Callable[..., Any], Any]] = [
    (number_in_each_turn, ROWS),
    (numbers_in_a_comprehension, ROWS),
    (condition_of_a_loop, VECTOR),
    (branch_in_a_loop, VECTOR),
    (copies_to_the_host, VECTOR),
]


@pytest.mark.parametrize(("program", "x"), NEED_VALUES, ids=lambda p: getattr(p, "__name__", ""))
def test_loops_that_need_values(
    program: Callable[..., Any], x: Any, marked_lines: Callable[[Any], list[str]]
) -> None:
    (finding,) = dt.lint(program, x)
    assert finding.rule == "host-in-loop"
    assert [finding.where] == marked_lines(program)
    # What fails however it is called gets its own error.
    for function in (dt.jit(program), lambda x: dt.jit(program)(x)):
        with pytest.raises(TypeError):
            dt.lint(function, x)


MISUSES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no function": (lambda: dt.lint(3, VECTOR), TypeError, "takes a function"),  # type: ignore[arg-type]
    "a string": (lambda: dt.lint(jnp.sin, "x"), TypeError, "Argument x of sin"),
    "an argument too few": (lambda: dt.lint(lambda x: x), TypeError, "missing 1 required"),
    "a value in a compiled loop": (
        lambda: dt.lint(dt.jit(lambda x: [float(v) for v in x]), VECTOR),
        dt.errors.ConcretizationTypeError,
        "concrete",
    ),
    "a value in a body": (
        lambda: dt.lint(
            lambda x: lax.scan(lambda c, _: (next(float(c) for _ in "ab"), None), x, None, 2),
            SCALAR,
        ),
        dt.errors.ConcretizationTypeError,
        "concrete",
    ),
    "a number that is differentiated": (
        lambda: dt.lint(dt.grad(number_in_each_turn), ROWS),
        dt.errors.ConcretizationTypeError,
        "differentiated",
    ),
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
