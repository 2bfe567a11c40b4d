"""The checker: what it accepts, and what it says of jaxprs that are not well formed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dovetail
from dovetail import lax
from dovetail._core.base.bindings import get_traceback
from dovetail._core.ir.check import check_jaxpr
from dovetail._core.ir.jaxpr import DebugInfo, DropVar
from dovetail._core.ops.calls.jit import jit_p
from dovetail._core.trace.primitive import primitive
from dovetail.errors import JaxprTypeError
from dovetail.extend import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var
from dovetail.extend.avals import make_aval

F32 = np.dtype(np.float32)
SCALAR = make_aval((), F32)
WEAK = make_aval((), F32, True)
VECTOR = make_aval((3,), F32)
INTEGER = make_aval((), np.dtype(np.int32))
INFO = DebugInfo("jit", "loss", "train.py:7")


@dataclass(frozen=True)
class Effect:
    name: str

    def __str__(self) -> str:
        return self.name


WRITE = frozenset({Effect("write")})
writing = Primitive("check_test_writing")
writing.define("abstract", lambda x: x)
writing.define("effects", lambda x: WRITE)


def eqn(
    name: str, operands: list[Any], out: Any, /, effects: Any = frozenset(), **params: Any
) -> Any:
    outs = out if isinstance(out, list) else [out]
    return JaxprEqn(
        operands,
        outs,
        jit_p if name == "jit" else primitive(name),
        params,
        effects,
        get_traceback(),
    )


def neg(x: Any, y: Any) -> JaxprEqn:
    return eqn("neg", [x], y)


def body(*avals: Any) -> ClosedJaxpr:
    variables = [Var(a) for a in avals]
    return ClosedJaxpr(Jaxpr([], variables, variables, []), [])


GOOD: dict[str, Callable[[], Any]] = {
    "nothing": lambda: Jaxpr([], [], [], []),
    "traced": lambda: dovetail.make_jaxpr(lambda x: lax.mul(lax.sin(x), np.float32(2)))(1.0),
    "a gradient": lambda: dovetail.make_jaxpr(dovetail.grad(lambda x: lax.sin(lax.exp(x))))(1.0),
    "a batch": lambda: dovetail.make_jaxpr(dovetail.vmap(dovetail.grad(lax.tanh)))(np.ones(3, F32)),
    "a call": lambda: dovetail.make_jaxpr(dovetail.jit(lambda x, y: lax.add(x, y)))(1.0, 2.0),
    "constants": lambda: dovetail.make_jaxpr(lambda x: lax.add(x, np.ones(3, F32)))(
        np.ones(3, F32)
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_well_formed(name: str) -> None:
    check_jaxpr(GOOD[name]())


def test_literals_dropped_results_effects_and_weak_types() -> None:
    x, y = Var(SCALAR), Var(WEAK)
    eqns = [
        neg(Literal(2.0, WEAK), DropVar(WEAK)),
        neg(Literal(2.0, WEAK), DropVar(SCALAR)),
        neg(x, y),
        JaxprEqn([y], [Var(WEAK)], writing, {}, WRITE),
    ]
    check_jaxpr(Jaxpr([], [x], [y, Literal(1, INTEGER)], eqns, WRITE))


def bad_use() -> Any:
    x, y = Var(SCALAR), Var(SCALAR)
    return [x], [y], [neg(Var(SCALAR), y)]


def bad_order() -> Any:
    x, y, z = (Var(SCALAR) for _ in range(3))
    return [x], [z], [neg(y, z), neg(x, y)]


def bound_twice() -> Any:
    x, y = Var(SCALAR), Var(SCALAR)
    return [x], [y], [neg(x, y), neg(x, y)]


def parameter_bound_again() -> Any:
    x = Var(SCALAR)
    return [x], [x], [neg(x, x)]


def wrong_shape() -> Any:
    x, y = Var(SCALAR), Var(VECTOR)
    return [x], [y], [neg(x, y)]


def wrong_dtype() -> Any:
    x, y = Var(SCALAR), Var(INTEGER)
    return [x], [y], [neg(x, y)]


def wrong_count() -> Any:
    x = Var(SCALAR)
    return [x], [x], [eqn("neg", [x], [Var(SCALAR), Var(SCALAR)])]


def refused() -> Any:
    x, y, z = Var(VECTOR), Var(make_aval((2,), F32)), Var(VECTOR)
    return [x, y], [z], [eqn("add", [x, y], z)]


def wrong_parameter() -> Any:
    x, y = Var(SCALAR), Var(SCALAR)
    return [x], [y], [eqn("reshape", [x], y, unknown=1)]


def literal_vector() -> Any:
    y = Var(VECTOR)
    return [], [y], [neg(Literal(np.ones(3), VECTOR), y)]


def undeclared_by_equation() -> Any:
    x = Var(SCALAR)
    return [x], [], [JaxprEqn([x], [Var(SCALAR)], writing, {}, traceback=get_traceback())]


def undeclared_by_jaxpr() -> Any:
    x = Var(SCALAR)
    return [x], [], [JaxprEqn([x], [Var(SCALAR)], writing, {}, WRITE, get_traceback())]


def call_with_wrong_operands() -> Any:
    x, y = Var(SCALAR), Var(VECTOR)
    return [x], [y], [eqn("jit", [x], [y], jaxpr=body(VECTOR), name="g")]


def call_with_too_few_operands() -> Any:
    x, y = Var(VECTOR), Var(VECTOR)
    return [x], [y], [eqn("jit", [x], [y], jaxpr=body(VECTOR, VECTOR), name="g")]


def inside_a_call() -> Any:
    x, y = Var(SCALAR), Var(SCALAR)
    a, b = Var(SCALAR), Var(SCALAR)
    inner = ClosedJaxpr(Jaxpr([], [a], [b], [], debug_info=INFO), [])
    return [x], [y], [eqn("jit", [x], [y], jaxpr=inner, name="g")]


def unbound_result() -> Any:
    return [Var(SCALAR)], [Var(SCALAR)], []


def parameter_twice() -> Any:
    x = Var(SCALAR)
    return [x, x], [], []


BAD: dict[Callable[[], Any], list[str]] = {
    bad_use: ["is used before it is bound", "= neg ", "test_jaxpr_check.py", "loss at train.py:7"],
    bad_order: ["is used before it is bound", "= neg "],
    bound_twice: ["is bound a second time", "= neg "],
    parameter_bound_again: ["is bound a second time", "a:f32[] = neg a"],
    wrong_shape: ["abstract rule gives (f32[])", "variables are (f32[3])", "= neg "],
    wrong_dtype: ["abstract rule gives (f32[])", "variables are (i32[])"],
    wrong_count: ["abstract rule gives (f32[])", "variables are (f32[], f32[])"],
    refused: ["refuses the operands", "incompatible shapes", "= add ", "test_jaxpr_check.py"],
    wrong_parameter: ["refuses the operands", "TypeError", "unknown=1"],
    literal_vector: ["not a scalar", "= neg "],
    undeclared_by_equation: ["has effects {write}, the equation {}", "check_test_writing"],
    undeclared_by_jaxpr: ["effects {write} that the jaxpr does not declare", "loss at train.py:7"],
    call_with_wrong_operands: ["takes (f32[3])", "operands are (f32[])", "name=g"],
    call_with_too_few_operands: ["takes (f32[3], f32[3])", "operands are (f32[3])"],
    inside_a_call: ["result number 0", "is not bound", "loss at train.py:7, traced for jit"],
    unbound_result: ["result number 0, a:f32[], is not bound"],
    parameter_twice: ["a:f32[] is bound twice"],
}


@pytest.mark.parametrize("make", BAD, ids=lambda make: make.__name__)
def test_what_is_not_well_formed(make: Callable[[], Any]) -> None:
    invars, outvars, eqns = make()
    with pytest.raises(JaxprTypeError) as raised:
        check_jaxpr(Jaxpr([], invars, outvars, eqns, debug_info=INFO))
    for part in BAD[make]:
        assert part in str(raised.value)


def test_constants_have_the_types_of_their_variables() -> None:
    v = Var(SCALAR)
    with pytest.raises(JaxprTypeError, match=r"constant of type f32\[3\] .* type f32\[\]"):
        check_jaxpr(ClosedJaxpr(Jaxpr([v], [], [v], []), [np.ones(3, F32)]))


def test_an_error_of_a_large_call_is_short() -> None:
    inner = [Var(SCALAR)]
    eqns = []
    for _ in range(5000):
        inner.append(Var(SCALAR))
        eqns.append(neg(inner[-2], inner[-1]))
    closed = ClosedJaxpr(Jaxpr([], inner[:1], inner[-1:], eqns), [])
    x, y = Var(VECTOR), Var(SCALAR)
    call = eqn("jit", [x], [y], jaxpr=closed, name="g")
    with pytest.raises(JaxprTypeError) as raised:
        check_jaxpr(Jaxpr([], [x], [y], [call]))
    assert len(str(raised.value)) < 3000
    assert "name=g" in str(raised.value)


def test_staging_checks_where_checks_are_enabled() -> None:
    lying = Primitive("check_test_lying")
    answers = iter([SCALAR, VECTOR])
    lying.define("abstract", lambda x, key: next(answers))
    with dovetail.enable_checks(True), pytest.raises(JaxprTypeError, match="check_test_lying"):
        # A list is not hashable, so the rule is asked each time.
        dovetail.make_jaxpr(lambda x: lying.bind(x, key=[]))(1.0)


def test_many_equations_and_deep_calls() -> None:
    variables = [Var(SCALAR) for _ in range(100_001)]
    eqns = [neg(x, y) for x, y in pairwise(variables)]
    check_jaxpr(Jaxpr([], variables[:1], variables[-1:], eqns))
    closed = body(SCALAR)
    for _ in range(300):
        x, y, z = (Var(SCALAR) for _ in range(3))
        calls = [
            eqn("jit", [x], [y], jaxpr=closed, name="g"),
            eqn("jit", [y], [z], jaxpr=closed, name="g"),
        ]
        closed = ClosedJaxpr(Jaxpr([], [x], [z], calls), [])
    check_jaxpr(closed)
