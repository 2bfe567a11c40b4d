"""Walking through jaxprs and transforming them."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dovetail
from dovetail import lax
from dovetail._core.ir import walk
from dovetail._core.ir.check import check_jaxpr
from dovetail._core.ir.jaxpr import DebugInfo, DropVar
from dovetail._core.ops.calls.jit import jit_p
from dovetail._core.trace.primitive import primitive
from dovetail.extend import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var
from dovetail.extend.avals import make_aval

F32 = np.dtype(np.float32)
SCALAR = make_aval((), F32)
_numbers = itertools.count()


def eqn(name: str, operands: Any, *outs: Var, **params: Any) -> JaxprEqn:
    return JaxprEqn(list(operands), list(outs), primitive(name), params)


def call(closed: ClosedJaxpr, operands: Any, *outs: Var, name: str = "g") -> JaxprEqn:
    return JaxprEqn(list(operands), list(outs), jit_p, {"jaxpr": closed, "name": name})


def variables(count: int) -> list[Var]:
    return [Var(SCALAR) for _ in range(count)]


def chain(length: int) -> ClosedJaxpr:
    names = variables(length + 1)
    eqns = [eqn("neg", [x], y) for x, y in pairwise(names)]
    return ClosedJaxpr(Jaxpr([], names[:1], names[-1:], eqns), [])


def nested(depth: int, *, calls: int = 1) -> ClosedJaxpr:
    closed = chain(1)
    for _ in range(depth):
        names = variables(calls + 1)
        eqns = [call(closed, [x], y) for x, y in pairwise(names)]
        closed = ClosedJaxpr(Jaxpr([], names[:1], names[-1:], eqns), [])
    return closed


def names_of(jaxpr: Jaxpr) -> str:
    return " ".join(e.primitive.name for e in jaxpr.eqns)


def several(*results: str) -> Any:
    """A primitive with several results."""
    made = Primitive(f"walk_test_{next(_numbers)}", multiple_results=True)
    made.define("abstract", lambda x: [SCALAR for _ in results])
    made.define("lower", lambda c, x: [x for _ in results])
    return made


def effectful() -> Any:
    made = Primitive(f"walk_test_{next(_numbers)}")
    made.define("abstract", lambda x: x)
    made.define("effects", lambda x: frozenset({"noise"}))
    return made


# Finding


def test_jaxprs_in_parameters() -> None:
    a, b, c, d = (chain(1) for _ in range(4))
    params = {"one": a, "open": b.jaxpr, "many": (c, [d.jaxpr, 3], "x"), "no": {"jaxpr": a}}
    assert list(walk.jaxprs_and_closed_jaxprs(params)) == [a, b.jaxpr, c, d.jaxpr]
    assert list(walk.jaxprs_in_params(params)) == [a.jaxpr, b.jaxpr, c.jaxpr, d.jaxpr]


def test_subjaxprs_are_those_one_level_down() -> None:
    closed = nested(3, calls=2)
    below = closed.eqns[0].params["jaxpr"].jaxpr
    assert list(walk.subjaxprs(closed.jaxpr)) == [below, below]


def test_every_jaxpr_comes_once_and_outer_ones_come_first() -> None:
    closed = nested(60, calls=2)
    found = list(walk.all_jaxprs(closed.jaxpr))
    assert len(found) == 61
    assert found[0] is closed.jaxpr
    assert len(list(walk.all_equations(closed.jaxpr))) == 60 * 2 + 1
    assert walk.count_equations(closed) == walk.count_equations(closed.jaxpr) == 121


@pytest.mark.parametrize(("depth", "calls"), [(0, 1), (1, 1), (7, 2), (1000, 1), (200, 2)])
def test_call_depth(depth: int, calls: int) -> None:
    assert walk.call_depth(nested(depth, calls=calls).jaxpr) == depth


def test_free_variables() -> None:
    a, b, c, d, e = variables(5)
    eqns = [eqn("add", [d, a], b), eqn("add", [b, Literal(1.0, SCALAR)], c), eqn("neg", [d], a)]
    jaxpr = Jaxpr([], [a], [c, e, Literal(1.0, SCALAR)], eqns)
    assert walk.free_variables(jaxpr) == [d, e]
    assert walk.free_variables(chain(3).jaxpr) == []


def test_substitute() -> None:
    a, b, c, d = variables(4)
    eqns = [eqn("add", [a, b], c), eqn("neg", [c], d)]
    literal = Literal(2.0, SCALAR)
    first, second = walk.substitute(eqns, {a: literal, b: d, c: a})
    assert first.invars == [literal, d]
    assert first.outvars == [c]
    assert second.invars == [a]
    unchanged = walk.substitute(eqns, {d: a})
    assert all(x is y for x, y in zip(unchanged, eqns, strict=True))


def test_rename() -> None:
    jaxpr = dovetail.make_jaxpr(lambda x: lax.add(lax.sin(x), np.float32(2)))(1.0).jaxpr
    renamed = walk.rename(jaxpr)
    assert str(renamed) == str(jaxpr)
    old = {v for e in jaxpr.eqns for v in (*e.invars, *e.outvars) if type(v) is Var}
    new = {v for e in renamed.eqns for v in (*e.invars, *e.outvars) if type(v) is Var}
    assert not old & new
    check_jaxpr(renamed)


# Dead code


def program(outputs: int = 1) -> Jaxpr:
    a, b, c, d, e, f = variables(6)
    eqns = [eqn("neg", [a], c), eqn("sin", [b], d), eqn("cos", [c], e), eqn("exp", [d], f)]
    return Jaxpr([], [a, b], [e, f, a][:outputs], eqns)


@pytest.mark.parametrize(
    ("outputs", "used", "left", "inputs"),
    [
        (1, None, "neg cos", [True, False]),
        (2, None, "neg sin cos exp", [True, True]),
        (2, [False, True], "sin exp", [False, True]),
        (2, [False, False], "", [False, False]),
        (3, [False, False, True], "", [True, False]),
    ],
)
def test_dead_code(outputs: int, used: Any, left: str, inputs: list[bool]) -> None:
    jaxpr = program(outputs)
    reduced, used_inputs = walk.dce(jaxpr, used)
    assert names_of(reduced) == left
    assert used_inputs == inputs
    assert len(reduced.invars) == sum(inputs)
    assert len(reduced.outvars) == (outputs if used is None else sum(used))
    check_jaxpr(reduced)
    kept, all_inputs = walk.dce(jaxpr, used, instantiate=True)
    assert all_inputs == [True, True]
    assert kept.invars == jaxpr.invars
    _, some = walk.dce(jaxpr, used, instantiate=[False, True])
    assert some == [inputs[0], True]


def test_what_is_all_used_stays_the_same_object() -> None:
    for jaxpr in (program(2), nested(3, calls=2).jaxpr):
        assert walk.dce(jaxpr)[0] is jaxpr


def test_a_wrong_number_of_used_outputs() -> None:
    with pytest.raises(ValueError, match="2 entries, the jaxpr has 1 result"):
        walk.dce(program(1), [True, False])


def test_effects_are_kept() -> None:
    noise = frozenset({"noise"})
    a, b, c = variables(3)
    eqns = [eqn("sin", [a], b), JaxprEqn([b], [c], effectful(), {}, noise)]
    reduced, used = walk.dce(Jaxpr([], [a], [], eqns, noise))
    assert len(reduced.eqns) == 2
    assert used == [True]
    assert reduced.effects == noise


def test_effects_inside_calls_are_kept_without_the_rest() -> None:
    noise = frozenset({"noise"})
    a, b, c, d = variables(4)
    body = Jaxpr(
        [], [a, b], [c], [eqn("sin", [a], c), JaxprEqn([b], [d], effectful(), {}, noise)], noise
    )
    x, y, z = variables(3)
    outer = call(ClosedJaxpr(body, []), [x, y], z)
    outer = outer.replace(effects=noise)
    reduced, used = walk.dce(Jaxpr([], [x, y], [], [outer], noise))
    (left,) = reduced.eqns
    assert len(left.params["jaxpr"].eqns) == 1
    assert left.outvars == []
    assert left.invars == [y]
    assert used == [False, True]
    check_jaxpr(reduced)


def test_unused_ones_of_several_results_are_dropped() -> None:
    a, b, c, d = variables(4)
    made = several("x", "y", "z")
    jaxpr = Jaxpr([], [a], [c], [JaxprEqn([a], [b, c, d], made, {})])
    reduced, _ = walk.dce(jaxpr)
    assert [type(v) for v in reduced.eqns[0].outvars] == [DropVar, Var, DropVar]
    assert walk.dce(reduced)[0] is reduced
    check_jaxpr(reduced)


def test_calls_lose_results_and_operands() -> None:
    a, b, c, d = variables(4)
    body = ClosedJaxpr(Jaxpr([], [a, b], [c, d], [eqn("sin", [a], c), eqn("cos", [b], d)]), [])
    x, y, z, u, v, w = variables(6)
    eqns = [
        call(body, [x, y], z, u),
        call(body, [y, x], DropVar(SCALAR), v),
        call(body, [z, y], w, DropVar(SCALAR)),
    ]
    reduced, used = walk.dce(Jaxpr([], [x, y], [v, w], eqns))
    assert [len(e.invars) for e in reduced.eqns] == [1, 1, 1]
    assert [names_of(e.params["jaxpr"].jaxpr) for e in reduced.eqns] == ["sin", "cos", "sin"]
    assert used == [True, False]
    first, _, third = (e.params["jaxpr"] for e in reduced.eqns)
    assert first is third, "calls that were equal remain equal"
    assert names_of(body.jaxpr) == "sin cos"
    check_jaxpr(reduced)


def test_rules_for_other_primitives() -> None:
    made = several("x", "y")
    asked: list[list[bool]] = []

    def rule(equation: JaxprEqn, used: list[bool]) -> walk.Reduction:
        asked.append(used)
        yield from ()  # it wants no jaxpr
        return None if used == [True, False] else equation.replace(invars=equation.invars[:1])

    made.define("dce", rule)
    a, b, c, d = variables(4)
    jaxpr = Jaxpr([], [a, b], [d], [JaxprEqn([a, b], [c, d], made, {})])
    reduced, used = walk.dce(jaxpr)
    assert asked == [[False, True]]
    assert used == [True, False]
    assert len(reduced.eqns) == 1
    assert names_of(walk.dce(jaxpr.replace(outvars=[c]))[0]) == ""


@pytest.mark.parametrize("calls", [1, 2])
def test_dead_code_in_deep_calls(calls: int) -> None:
    a, b, c, d = variables(4)
    closed = ClosedJaxpr(Jaxpr([], [a, b], [c, d], [eqn("sin", [a], c), eqn("cos", [b], d)]), [])
    for _ in range(300):
        x, y, z, u = variables(4)
        eqns = [call(closed, [x, y], z, u)]
        if calls == 2:
            v, w = variables(2)
            eqns.append(call(closed, [z, u], v, w))
            z, u = v, w
        closed = ClosedJaxpr(Jaxpr([], [x, y], [z, u], eqns), [])
    reduced, used = walk.dce(closed.jaxpr, [True, False])
    assert used == [True, False]
    assert walk.count_equations(reduced) == 300 * calls + 1
    check_jaxpr(reduced)


# Evaluation


def functions() -> dict[str, Callable[..., Any]]:
    constant = np.arange(3, dtype=F32)
    return {
        "arithmetic": lambda x, y: [lax.mul(lax.sin(x), y), lax.neg(y)],
        "constants": lambda x, y: [lax.add(x, constant), y],
        "literals": lambda x, y: [1.5, np.float32(-0.0), x],
        "calls": lambda x, y: [dovetail.jit(lambda a, b: lax.add(a, b))(x, y), x],
        "unused": lambda x, y: [x],
        "many results": lambda x, y: lax.sort((x, y), num_keys=1),
    }


@pytest.mark.parametrize("name", functions())
@pytest.mark.parametrize("way", ["eval_jaxpr", "jaxpr_as_fun", "jit", "inlined", "reduced"])
def test_evaluation(name: str, way: str) -> None:
    x, y = np.array([3, 1, 2], F32), np.array([0.5, 1, -2], F32)
    function = functions()[name]
    closed = dovetail.make_jaxpr(function)(x, y)
    if way == "eval_jaxpr":
        found = walk.eval_jaxpr(closed.jaxpr, closed.consts, x, y)
    elif way == "jit":
        found = dovetail.jit(walk.jaxpr_as_fun(closed))(x, y)
    elif way == "inlined":
        inlined = walk.inline_calls(closed)
        assert "jit" not in names_of(inlined.jaxpr)
        check_jaxpr(inlined)
        found = walk.jaxpr_as_fun(inlined)(x, y)
    elif way == "reduced":
        reduced, used = walk.dce(closed.jaxpr)
        args = [a for a, u in zip((x, y), used, strict=True) if u]
        found = walk.eval_jaxpr(reduced, closed.consts, *args)
    else:
        found = walk.jaxpr_as_fun(closed)(x, y)
    wanted = list(function(x, y))
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(f), np.asarray(w))


def test_evaluation_can_be_transformed() -> None:
    closed = dovetail.make_jaxpr(lambda x: [lax.mul(lax.sin(x), x)])(1.0)
    function = walk.jaxpr_as_fun(closed)
    found = dovetail.grad(lambda x: function(x)[0])(2.0)
    np.testing.assert_allclose(np.asarray(found), np.sin(2) + 2 * np.cos(2), rtol=1e-6)


def test_literals_keep_their_types() -> None:
    closed = dovetail.make_jaxpr(lambda: [2.0, np.float16(3), True])()
    found = walk.eval_jaxpr(closed.jaxpr, [])
    again = dovetail.make_jaxpr(lambda: walk.eval_jaxpr(closed.jaxpr, []))()
    assert found == [2.0, 3.0, True]
    assert [v.aval for v in again.jaxpr.outvars] == [v.aval for v in closed.jaxpr.outvars]


def test_values_are_let_go_after_their_last_use() -> None:
    alive: list[weakref.ref[Any]] = []
    counts: list[int] = []
    made = Primitive(f"walk_test_{next(_numbers)}")

    class Value:
        pass

    def make(x: Any) -> Any:
        counts.append(sum(ref() is not None for ref in alive))
        value = Value()
        alive.append(weakref.ref(value))
        return value

    class Binding:
        name = made.name
        multiple_results = False
        bind = staticmethod(make)

    names = variables(6)
    eqns = [JaxprEqn([x], [y], Binding(), {}) for x, y in pairwise(names)]  # type: ignore[arg-type]
    eqns.insert(1, JaxprEqn([names[0]], [DropVar(SCALAR)], Binding(), {}))  # type: ignore[arg-type]
    eqns.insert(2, JaxprEqn([names[0]], [Var(SCALAR)], Binding(), {}))  # type: ignore[arg-type]
    walk.eval_jaxpr(Jaxpr([], names[:1], names[-1:], eqns), [], None)
    gc.collect()
    assert max(counts) == 1


@pytest.mark.parametrize("args", [[], [1.0, 2.0]])
def test_a_wrong_number_of_values(args: list[float]) -> None:
    with pytest.raises(TypeError, match=f"1 argument; 0 and {len(args)} were given"):
        walk.eval_jaxpr(chain(1).jaxpr, [], *args)


def test_the_function_of_a_jaxpr_has_its_name() -> None:
    closed = chain(1)
    closed.jaxpr.debug_info = DebugInfo("jit", "loss")
    assert walk.jaxpr_as_fun(closed).__name__ == "loss"


def test_evaluating_many_equations_takes_no_stack() -> None:
    closed = chain(20_000)
    traced = dovetail.make_jaxpr(walk.jaxpr_as_fun(closed))(1.0)
    assert len(traced.eqns) == 20_000


# Inlining


def test_inlining_renames_what_is_inlined_twice() -> None:
    closed = nested(2, calls=2)
    inlined = walk.inline_calls(closed)
    assert names_of(inlined.jaxpr) == "neg neg neg neg"
    check_jaxpr(inlined)
    assert walk.inline_calls(inlined) is inlined


def test_inlining_what_is_chosen() -> None:
    a, b, c = variables(3)
    eqns = [call(chain(1), [a], b, name="f"), call(chain(2), [b], c, name="g")]
    closed = ClosedJaxpr(Jaxpr([], [a], [c], eqns), [])
    inlined = walk.inline_calls(closed, lambda e: e.params["name"] == "g")
    assert names_of(inlined.jaxpr) == "jit neg neg"
    check_jaxpr(inlined)


def test_inlining_collects_constants_once() -> None:
    constant = np.float32(3).reshape(())
    k, a, b = variables(3)
    body = ClosedJaxpr(Jaxpr([k], [a], [b], [eqn("mul", [a, k], b)]), [constant])
    x, y, z = variables(3)
    closed = ClosedJaxpr(Jaxpr([], [x], [z], [call(body, [x], y), call(body, [y], z)]), [])
    inlined = walk.inline_calls(closed)
    assert inlined.consts == [constant]
    check_jaxpr(inlined)
    (found,) = walk.jaxpr_as_fun(inlined)(np.float32(2))
    assert float(found) == 18


def test_inlining_results_that_are_operands_or_literals() -> None:
    a, b = variables(2)
    body = ClosedJaxpr(Jaxpr([], [a, b], [b, a, Literal(4.0, SCALAR)], []), [])
    x, y, z, u, v, w = variables(6)
    eqns = [
        call(body, [x, Literal(2.0, SCALAR)], y, z, u),
        call(body, [y, u], v, w, DropVar(SCALAR)),
    ]
    inlined = walk.inline_calls(ClosedJaxpr(Jaxpr([], [x], [v, w, z], eqns), []))
    assert names_of(inlined.jaxpr) == ""
    assert [getattr(o, "val", o) for o in inlined.jaxpr.outvars] == [4.0, 2.0, x]


def test_inlining_deep_calls() -> None:
    inlined = walk.inline_calls(nested(1000))
    assert names_of(inlined.jaxpr) == "neg"
    single = walk.inline_single_calls(nested(1000))
    assert names_of(single.jaxpr) == "neg"
    shared = nested(60, calls=2)
    assert walk.inline_single_calls(shared) is shared


def test_a_closed_jaxpr_shows_what_its_jaxpr_has() -> None:
    closed = dovetail.make_jaxpr(lambda x, y: (lax.mul(x, y), 2.0))(1.0, np.ones((), F32))
    for name in ("constvars", "invars", "outvars", "eqns", "effects", "debug_info", "in_avals"):
        assert getattr(closed, name) == getattr(closed.jaxpr, name)
    assert [v.aval for v in closed.invars] == closed.in_avals == closed.jaxpr.in_avals
    assert [v.aval for v in closed.outvars] == closed.out_avals == closed.jaxpr.out_avals


def test_an_equation_tells_where_it_came_from() -> None:
    def function(x: Any) -> Any:
        with dovetail.named_scope("outer"), dovetail.named_scope("inner"):
            x = lax.sin(x)
        return lax.cos(x)

    inside, outside = dovetail.make_jaxpr(function)(1.0).eqns
    assert inside.source_info.name_stack == "outer/inner"
    assert outside.source_info.name_stack == ""
    for eqn in (inside, outside):
        frames = eqn.source_info.traceback.frames
        assert any(frame.function_name.endswith("function") for frame in frames)
        with eqn.ctx.manager:
            assert eqn.ctx.compute_type is None
    assert inside.replace(traceback=None).source_info.traceback is None
