"""From jaxprs to modules: what a module contains, what a call of it takes, what it computes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dovetail
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.base.bindings import get_traceback
from dovetail._core.lower.donation import match_donations
from dovetail._core.lower.equations import equation_program
from dovetail._core.lower.lowering import LoweredModule, lower_jaxpr
from dovetail._core.ops.calls.jit import jit_p
from dovetail._core.trace.primitive import primitive
from dovetail.errors import MissingRuleError
from dovetail.extend import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var
from dovetail.extend.avals import make_aval

F32 = np.dtype(np.float32)
VECTOR = make_aval((4,), F32)
SCALAR = make_aval((), F32)
x4 = np.arange(4, dtype=F32)
_numbers = itertools.count()


def new_primitive(lower: Callable[..., Any] | None = None, **rules: Callable[..., Any]) -> Any:
    made = Primitive(f"lowering_test_{next(_numbers)}")
    made.define("abstract", lambda *avals, **params: avals[0])
    for name, rule in {"lower": lower, **rules}.items():
        if rule is not None:
            made.define(name, rule)
    return made


def equation(name: str, *operands: Any, out: Any = VECTOR, **params: Any) -> JaxprEqn:
    return JaxprEqn(operands, [Var(out)], primitive(name), params, traceback=get_traceback())


def lower(function: Callable[..., Any], *args: Any, **options: Any) -> LoweredModule:
    return lower_jaxpr(dovetail.make_jaxpr(function)(*args), name="f", **options)


def count(text: str, part: str) -> int:
    return text.count(part)


# The whole module


def test_the_text_of_a_module() -> None:
    lowered = lower(lambda x, y: lax.neg(lax.add(x, y)), x4, x4)
    assert lowered.text() == (
        "module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
        "  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {\n"
        "    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>\n"
        "    %1 = stablehlo.negate %0 : tensor<4xf32>\n"
        "    return %1 : tensor<4xf32>\n"
        "  }\n"
        "}\n"
    )
    assert lowered.name == "jit_f"
    assert lowered.platforms == ("cpu",)
    assert lowered.in_avals == (VECTOR, VECTOR)
    assert lowered.out_avals == (VECTOR,)
    assert lowered.hoisted == ()
    assert lowered.host_callbacks == ()
    assert not lowered.effects


@pytest.mark.parametrize(
    ("name", "module"),
    [("f", "jit_f"), ("<lambda>", "jit__lambda_"), ("a b/c", "jit_a_b_c"), ("été", "jit_été")],
)
def test_names_of_modules(name: str, module: str) -> None:
    assert lower_jaxpr(dovetail.make_jaxpr(lax.sin)(1.0), name=name).name == module


def test_names_of_arguments_and_results() -> None:
    lowered = lower(
        lambda x, y: (lax.add(x, y), x),
        x4,
        x4,
        arg_names=["params['w']", None],
        result_names=["result[0]", None],
    )
    assert "loc(\"params['w']\")" in lowered.text(debug_info=True)
    assert 'jax.result_info = "result[0]"' in lowered.text()
    assert count(lowered.text(), "jax.result_info") == 1


def test_attributes_of_arguments_and_results() -> None:
    lowered = lower(
        lambda x, unused, y: lax.add(x, y),
        x4,
        x4,
        x4,
        arg_attributes=[
            {},
            {"mhlo.sharding": "{replicated}"},
            {"mhlo.sharding": "{maximal device=0}"},
        ],
        result_attributes=[{"mhlo.sharding": "{replicated}"}],
        num_partitions=2,
    )
    text = lowered.text()
    assert '%arg1: tensor<4xf32> {mhlo.sharding = "{maximal device=0}"}' in text
    assert '-> (tensor<4xf32> {mhlo.sharding = "{replicated}"})' in text
    assert "mhlo.num_partitions = 2 : i32" in text


# What is dropped


@pytest.mark.parametrize(
    ("function", "kept"),
    [
        (lambda x, y: x, (True, False)),
        (lambda x, y: lax.sin(y), (False, True)),
        (lambda x, y: (x, lax.sin(y))[0], (True, False)),
        (lambda x, y: dovetail.jit(lambda x, y: (x, y))(x, y)[0], (True, False)),
        (lambda x, y: dovetail.jit(lambda x, y: lax.sin(x))(x, y), (True, False)),
        (lambda x, y: dovetail.jit(dovetail.jit(lambda x, y: (y, x)))(x, y)[0], (False, True)),
        (lambda x, y: 1.0, (False, False)),
    ],
)
def test_arguments_that_nothing_uses_are_dropped(function: Any, kept: tuple[bool, ...]) -> None:
    lowered = lower(function, x4, x4)
    assert lowered.kept == kept
    assert count(lowered.text().split("->")[0], "%arg") == sum(kept)
    everything = lower(function, x4, x4, keep_unused=True)
    assert everything.kept == (True, True)
    assert count(everything.text().split("->")[0], "%arg") == 2


def test_equations_that_nothing_uses_are_dropped() -> None:
    lowered = lower(lambda x: (lax.sin(x), lax.cos(lax.exp(x)))[0], x4)
    assert "sine" in lowered.text()
    assert "cosine" not in lowered.text()
    assert "exponential" not in lowered.text()


@dataclass(frozen=True)
class Effect:
    name: str
    ordered: bool = False


def test_equations_with_effects_stay() -> None:
    seen = []
    noted = new_primitive(
        lambda c, x: seen.append(c.avals_in) or x,
        effects=lambda x: frozenset({Effect("noting")}),
    )
    v = Var(VECTOR)
    eqn = JaxprEqn([v], [Var(VECTOR)], noted, {}, frozenset({Effect("noting")}))
    jaxpr = Jaxpr([], [v], [], [eqn], eqn.effects)
    lowered = lower_jaxpr(ClosedJaxpr(jaxpr, []), name="f")
    assert seen == [(VECTOR,)]
    assert lowered.kept == (True,)
    assert lowered.effects == {Effect("noting")}


# Constants


@pytest.mark.parametrize(
    ("size", "hoisted"), [(4, False), (1024, False), (1025, True), (5000, True)]
)
def test_large_constants_become_arguments(size: int, hoisted: bool) -> None:
    constant = np.arange(size, dtype=F32)
    lowered = lower(lambda x: lax.add(x, constant), constant)
    assert len(lowered.hoisted) == hoisted
    assert count(lowered.text().split("->")[0], "%arg") == 1 + hoisted
    assert ("stablehlo.constant" in lowered.text()) is not hoisted
    if hoisted:
        np.testing.assert_array_equal(np.asarray(lowered.hoisted[0]), constant)


def test_a_threshold_for_constants() -> None:
    lowered = lower(lambda x: lax.add(x, x4), x4, constants_threshold=8)
    assert len(lowered.hoisted) == 1


def test_a_large_constant_of_inner_functions_is_one_argument() -> None:
    constant = lax.neg(np.arange(5000, dtype=F32))
    inner = dovetail.jit(lambda x: lax.mul(x, constant))
    lowered = lower(lambda x: inner(lax.add(inner(x), constant)), constant)
    assert len(lowered.hoisted) == 1
    assert "stablehlo.constant" not in lowered.text()
    found = dovetail.jit(lambda x: inner(lax.add(inner(x), constant)))(constant)
    c = np.asarray(constant)
    np.testing.assert_allclose(np.asarray(found), (c * c + c) * c, rtol=1e-6)


def test_a_closed_jaxpr_with_large_constants_inside_a_call() -> None:
    constant = np.arange(5000, dtype=F32)
    body = dovetail.make_jaxpr(lambda x: lax.mul(x, constant))(constant)
    assert body.consts
    x, y, z = (Var(make_aval((5000,), F32)) for _ in range(3))
    call = jit_p
    eqns = [
        JaxprEqn([x], [y], call, {"jaxpr": body, "name": "g"}),
        JaxprEqn([y], [z], call, {"jaxpr": body, "name": "g"}),
    ]
    lowered = lower_jaxpr(ClosedJaxpr(Jaxpr([], [x], [z], eqns), []), name="f")
    assert len(lowered.hoisted) == 1
    assert count(lowered.text(), "func.func private") == 1
    lowered.module.operation.verify()


def test_literals_are_made_once_for_each_function() -> None:
    def f(x: Any) -> Any:
        return lax.mul(lax.add(lax.mul(x, np.float32(2.0)), np.float32(2.0)), np.float32(-0.0))

    text = lower(lambda x: (f(x), dovetail.jit(f)(x)), x4).text()
    assert count(text, "dense<2.000000e+00> : tensor<f32>") == 2
    assert count(text, "dense<-0.000000e+00> : tensor<f32>") == 2


def test_literals_that_are_results() -> None:
    found = dovetail.jit(lambda x: (1.5, np.float32(-0.0), True, 3, x))(x4)
    assert [np.asarray(f).tolist() for f in found[:4]] == [1.5, -0.0, True, 3]
    assert np.signbit(np.asarray(found[1]))


# Calls


def test_a_function_called_twice_is_emitted_once() -> None:
    g = dovetail.jit(lambda x: lax.sin(lax.cos(x)))
    text = lower(lambda x: g(g(x)), x4).text()
    assert count(text, "func.func private") == 1
    assert count(text, "call @") == 2
    assert count(text, "stablehlo.sine") == 1


def test_functions_of_one_name_have_different_symbols() -> None:
    def made(operation: Any) -> Any:
        def g(x: Any) -> Any:
            return operation(x)

        return dovetail.jit(g)

    functions = [made(op) for op in (lax.sin, lax.cos, lax.exp)]
    text = lower(lambda x: functions[0](functions[1](functions[2](x))), x4).text()
    for symbol in ("@g(", "@g_0(", "@g_1("):
        assert f"func.func private {symbol}" in text


def test_a_function_called_main_does_not_take_the_place_of_the_entry() -> None:
    def main(x: Any) -> Any:
        return lax.sin(x)

    text = lower(dovetail.jit(main), x4).text()
    assert "func.func public @main(" in text
    assert "func.func private @main_0(" in text


def chain_of_calls(depth: int, *, shared: bool = False) -> ClosedJaxpr:
    v, w = Var(VECTOR), Var(VECTOR)
    closed = ClosedJaxpr(Jaxpr([], [v], [w], [JaxprEqn([v], [w], primitive("neg"), {})]), [])
    for _ in range(depth):
        a, b, c = Var(VECTOR), Var(VECTOR), Var(VECTOR)
        params = {"jaxpr": closed, "name": "g"}
        eqns = [JaxprEqn([a], [b], jit_p, params)]
        if shared:
            eqns.append(JaxprEqn([b], [c], jit_p, params))
        closed = ClosedJaxpr(Jaxpr([], [a], [c if shared else b], eqns), [])
    return closed


def test_three_hundred_nested_calls() -> None:
    x = np.arange(4, dtype=F32)
    closed = chain_of_calls(300)
    lowered = lower_jaxpr(closed, name="f")
    lowered.module.operation.verify()
    found = dovetail.jit(lambda x: dovetail.jit(lambda x: x)(lax.neg(x)))(x)
    np.testing.assert_array_equal(np.asarray(found), -x)


def test_calls_that_double_at_every_level_are_not_written_out() -> None:
    lowered = lower_jaxpr(chain_of_calls(60, shared=True), name="f")
    assert count(lowered.text(), "func.func private") == 60


def test_many_equations() -> None:
    v = Var(VECTOR)
    eqns = []
    last = v
    for _ in range(100_000):
        eqns.append(equation("neg", last))
        last = eqns[-1].outvars[0]
    lowered = lower_jaxpr(ClosedJaxpr(Jaxpr([], [v], [last], eqns), []), name="f")
    assert len(lowered.bytecode()) > 100_000


# Donation


@pytest.mark.parametrize(
    ("ins", "outs", "donated", "aliases", "donors", "unused"),
    [
        ("aa", "a", "11", {0: 0}, (), (1,)),
        ("aa", "aa", "11", {0: 0, 1: 1}, (), ()),
        ("ab", "ba", "11", {0: 1, 1: 0}, (), ()),
        ("ab", "ba", "01", {1: 0}, (), ()),
        ("a", "b", "1", {}, (), (0,)),
        ("a", "c", "1", {}, (0,), ()),
        ("aa", "ca", "11", {0: 1}, (1,), ()),
        ("a", "", "1", {}, (), (0,)),
        ("a", "a", "0", {}, (), ()),
    ],
)
def test_donated_arguments_are_paired_with_results(
    ins: str, outs: str, donated: str, aliases: Any, donors: Any, unused: Any
) -> None:
    kinds = {
        "a": VECTOR,
        "b": make_aval((3,), F32),
        "c": make_aval((2, 2), np.dtype(np.int32)),  # as many bytes as a
    }
    found = match_donations(
        [kinds[k] for k in ins], [kinds[k] for k in outs], [d == "1" for d in donated]
    )
    assert (found.aliases, found.donors, found.unused) == (aliases, donors, unused)


def test_donation_is_counted_over_all_arguments() -> None:
    lowered = lower(
        lambda unused, x, y: (lax.sin(x), lax.reshape(y, (2, 2))),
        x4,
        x4,
        np.ones(4, np.int32),
        donated=[True, True, True],
    )
    assert lowered.kept == (False, True, True)
    assert lowered.donation.aliases == {1: 0}
    assert lowered.donation.donors == (2,)
    assert lowered.donation.unused == (0,)
    assert "%arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32}" in lowered.text()
    assert "%arg1: tensor<4xi32> {jax.buffer_donor = true}" in lowered.text()


# Rules


def test_the_order_in_which_rules_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from dovetail._core.lower import rules

    asked: list[str] = []

    def rule(name: str, answer: bool) -> Callable[..., Any]:
        def lower(context: Any, x: Any) -> Any:
            asked.append(name)
            return x if answer else NotImplemented

        return lower

    made = new_primitive(rule("own", True))
    tables: dict[str, Any] = {made.name: rule("platform", False)}

    class Manager:
        def lowerings(self, platform: str) -> dict[str, Any]:
            return tables

    monkeypatch.setattr(rules, "manager", Manager)
    closed = dovetail.make_jaxpr(lambda x: made.bind(x))(x4)
    lower_jaxpr(closed, name="f", overrides={made.name: rule("override", False)})
    assert asked == ["override", "platform", "own"]
    asked.clear()
    lower_jaxpr(closed, name="f", overrides={made.name: rule("override", True)})
    assert asked == ["override"]
    asked.clear()
    tables[made.name] = rule("platform", True)
    lower_jaxpr(closed, name="f")
    assert asked == ["platform"]


def test_a_missing_rule_names_primitive_platform_and_line() -> None:
    made = new_primitive()
    closed = dovetail.make_jaxpr(lambda x: made.bind(x))(x4)
    with pytest.raises(MissingRuleError) as raised:
        lower_jaxpr(closed, name="f")
    text = str(raised.value)
    assert made.name in text
    assert "'cpu'" in text
    assert "test_lowering.py" in text


def test_an_error_in_a_rule_says_which_equation() -> None:
    def broken(context: Any, x: Any) -> Any:
        raise RuntimeError("something went wrong")

    made = new_primitive(broken)
    inner = dovetail.jit(lambda x: made.bind(x))
    with pytest.raises(RuntimeError, match="something went wrong") as raised:
        lower(lambda x: inner(lax.sin(x)), x4)
    (note,) = raised.value.__notes__
    assert made.name in note
    assert "(f32[4]) -> (f32[4])" in note
    assert "test_lowering.py" in note


@pytest.mark.parametrize("answer", [[], [1, 2]])
def test_a_rule_with_the_wrong_number_of_values(answer: list[int]) -> None:
    made = new_primitive(lambda context, x: [x for _ in answer])
    with pytest.raises(TypeError, match=f"returned {len(answer)} values for one result"):
        lower(lambda x: made.bind(x), x4)


def test_a_wrong_type_is_found_where_checks_are_enabled() -> None:
    made = new_primitive(lambda context, x: context.constant(0, SCALAR))
    with dovetail.enable_checks(True), pytest.raises(Exception, match=r"type"):
        lower(lambda x: made.bind(x), x4)


def test_a_rule_made_of_other_primitives() -> None:
    def softplus(x: Any) -> Any:
        return lax.log1p(lax.exp(x))

    made = new_primitive(lambda c, x: c.lower_function(softplus, c.avals_in)(x))
    lowered = lower(lambda x: made.bind(x), x4)
    assert "stablehlo.exponential" in lowered.text()
    assert f"jit(f)/{made.name}/exp" in lowered.text(debug_info=True)
    np.testing.assert_allclose(np.asarray(made.bind(x4)), np.log1p(np.exp(x4)), rtol=1e-6)


def test_avals_are_those_of_the_rule_again_after_a_jaxpr_was_inlined() -> None:
    seen = []

    def rule(context: Any, x: Any) -> Any:
        before = (context.avals_in, context.avals_out, context.equation, context.location)
        with context.named_scope("inside"):
            result = context.lower_function(lambda x: lax.sin(x[0]), context.avals_in)
            del result
            out = context.inline_jaxpr(dovetail.make_jaxpr(lax.sin)(x4), [x])
        after = (context.avals_in, context.avals_out, context.equation, context.location)
        seen.append(before == after)
        return out

    made = new_primitive(rule)
    assert f"jit(f)/{made.name}/inside/sin" in lower(lambda x: made.bind(x), x4).text(True)
    assert seen == [True]


def test_functions_made_by_a_rule() -> None:
    body = dovetail.make_jaxpr(lambda x: lax.sin(x))(x4)
    made = new_primitive(lambda c, x: c.call_jaxpr(body, c.call_jaxpr(body, [x], "body"), "body"))
    other = new_primitive(lambda c, x: c.call_jaxpr(body, [x], "body", cache_key="other"))
    text = lower(lambda x: other.bind(made.bind(x)), x4).text()
    assert count(text, "func.func private @body") == 2
    assert count(text, "call @body(") == 2


def test_operations_apart_from_others() -> None:
    def twice(context: Any, x: Any) -> Any:
        (out,) = context.avals_out
        return context.outlined(lambda x: context.add(x, x, out), [x], [out], "twice")

    made = new_primitive(twice)
    text = lower(lambda x: lax.sin(made.bind(made.bind(x))), x4).text()
    assert count(text, "func.func private @twice") == 2
    assert count(text, 'inlineable = "false"') == 2
    compiled = dovetail.jit(lambda x: lax.sin(made.bind(made.bind(x)))).lower(x4).compile()
    np.testing.assert_array_equal(np.asarray(compiled(x4)), np.asarray(lax.sin(4 * x4)))
    assert count(compiled.as_text(), "to_apply") == 2


def test_host_callbacks_are_numbered() -> None:
    functions = [lambda: 1, lambda: 2]
    made = new_primitive(lambda c, x: [c.host_callback(f) for f in functions] and x)
    lowered = lower(lambda x: made.bind(x), x4)
    assert lowered.host_callbacks == tuple(functions)


# Ordered effects


def ordered_primitive(log: list[Any]) -> Any:
    effect = Effect("writing", ordered=True)

    def rule(c: Any, x: Any) -> Any:
        before = c.token(effect)
        (after,) = c.ops("stablehlo.after_all", [before], [before.type])
        c.set_token(effect, after)
        log.append((before, after))
        return x

    made = new_primitive(rule, effects=lambda x: frozenset({effect}))
    return made, effect


def test_tokens_order_effects_in_functions() -> None:
    made, effect = ordered_primitive([])
    v, w = Var(VECTOR), Var(VECTOR)
    effects = frozenset({effect})
    body = ClosedJaxpr(Jaxpr([], [v], [w], [JaxprEqn([v], [w], made, {}, effects)], effects), [])
    a, b, c, d = (Var(VECTOR) for _ in range(4))
    eqns = [
        JaxprEqn([a], [b], made, {}, effects),
        JaxprEqn([b], [c], jit_p, {"jaxpr": body, "name": "g"}, effects),
        JaxprEqn([c], [d], made, {}, effects),
    ]
    lowered = lower_jaxpr(ClosedJaxpr(Jaxpr([], [a], [d], eqns, effects), []), name="f")
    text = lowered.text()
    lowered.module.operation.verify()
    assert count(text, "stablehlo.create_token") == 1
    assert "call @g(%1, %arg0) : (!stablehlo.token, tensor<4xf32>)" in text
    assert "after_all %2#0" in text


def test_tokens_go_round_loops_and_through_branches() -> None:
    effect = Effect("writing", ordered=True)
    number = make_aval((), np.dtype(np.int32))

    def note(c: Any) -> None:
        c.set_token(
            effect, c.ops("stablehlo.after_all", [c.token(effect)], [c.token(effect).type])[0]
        )

    def rule(c: Any, x: Any) -> Any:
        def body(n: Any) -> Any:
            note(c)
            return c.add(n, c.constant(1, number), number)

        def branch() -> list[Any]:
            note(c)
            return [x]

        (n,) = c.while_loop(
            [c.constant(0, number)],
            [number],
            lambda n: c.compare(n, c.constant(3, number), "LT", number),
            body,
            effects=[effect],
        )
        (out,) = c.case(n, [branch, lambda: x], [VECTOR], effects=[effect])
        note(c)
        return out

    made = new_primitive(rule)
    lowered = lower(lambda x: made.bind(x), x4)
    lowered.module.operation.verify()
    assert count(lowered.text(), "create_token") == 1


# Several platforms


def test_platforms_with_the_same_rules_share_all_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail._core.lower.rules.manager", lambda: _Tables({}))
    g = dovetail.jit(lambda x: lax.sin(x))
    lowered = lower(g, x4, platforms=("cpu", "other"))
    text = lowered.text()
    assert lowered.platforms == ("cpu", "other")
    assert "@main(%arg0: tensor<i32>, %arg1: tensor<4xf32>)" in text
    assert "call @_lambda_(%arg0, %arg1)" in text
    assert "stablehlo.case" not in text
    lowered.module.operation.verify()


class _Tables:
    def __init__(self, tables: dict[str, dict[str, Any]]) -> None:
        self.tables = tables

    def lowerings(self, platform: str) -> dict[str, Any]:
        return self.tables.get(platform, {})


def test_platforms_with_different_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, ...]] = []
    inner = dovetail.jit(lambda x: lax.cos(x))

    def own(c: Any, x: Any) -> Any:
        seen.append(c.platforms)
        return c.neg(x, c.avals_out[0])

    def other(c: Any, x: Any) -> Any:
        seen.append(c.platforms)
        return c.lower_function(inner, c.avals_in)(x)

    made = new_primitive(own)
    tables = _Tables({"other": {made.name: other}})
    monkeypatch.setattr("dovetail._core.lower.rules.manager", lambda: tables)
    lowered = lower(
        dovetail.jit(lambda x: lax.add(made.bind(x), x)), x4, platforms=("cpu", "other", "third")
    )
    lowered.module.operation.verify()
    assert seen == [("cpu",), ("other",), ("third",)]
    assert count(lowered.text(), '"stablehlo.case"(%arg0)') == 1
    assert count(lowered.text(), "stablehlo.cosine") == 1


# Identity


def test_equal_programs_have_equal_keys_wherever_they_are_written() -> None:
    def first(x: Any) -> Any:
        return lax.sin(lax.mul(x, np.float32(2.0)))

    def second(x: Any) -> Any:
        doubled = lax.mul(x, np.float32(2.0))
        return lax.sin(doubled)

    one, two = lower(first, x4), lower(second, x4)
    assert one.key() == two.key() == one.key()
    assert len(one.key()) == 32
    assert one.bytecode() != two.bytecode()
    assert one.text() == two.text()
    assert one.text(debug_info=True) != two.text(debug_info=True)
    # Making the key leaves the module with its locations.
    assert "test_lowering.py" in one.text(debug_info=True)


CHANGES: dict[str, Callable[[], LoweredModule]] = {
    "operation": lambda: lower(lax.cos, x4),
    "shape": lambda: lower(lax.sin, x4[:3]),
    "dtype": lambda: lower(lax.sin, x4.astype(np.float16)),
    "name": lambda: lower_jaxpr(dovetail.make_jaxpr(lax.sin)(x4), name="g"),
    "donation": lambda: lower(lax.sin, x4, donated=[True]),
    "partitions": lambda: lower(lax.sin, x4, num_partitions=2),
    "attributes": lambda: lower(lax.sin, x4, arg_attributes=[{"mhlo.sharding": "{replicated}"}]),
    "results": lambda: lower(lambda x: (lax.sin(x), x), x4),
}


@pytest.mark.parametrize("change", CHANGES)
def test_programs_that_differ_have_different_keys(change: str) -> None:
    assert CHANGES[change]().key() != lower(lax.sin, x4).key()


def test_locations_name_operations_and_lines() -> None:
    g = dovetail.jit(lambda x: lax.cos(x))
    text = lower(lambda x: g(lax.sin(x)), x4).text(debug_info=True)
    assert '"jit(f)/sin"' in text
    assert '"jit(f)/jit(<lambda>)"' in text
    assert '"cos"' in text
    assert "test_lowering.py" in text
    assert "/dovetail/_core/" not in text


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x, (4,)),
        (lambda x: lax.add(x, x), (4,)),
        (jnp.sum, ()),
        (lambda x: x[:2], (2,)),
        (lambda x: x[:, None] * x, (4, 4)),
        (lambda x: jnp.sum(x[:, None] * x), (4, 4)),
        (lambda x: lax.fori_loop(0, 3, lambda _, y: y + jnp.sum(y[:, None] * x), x), (4, 4)),
        (lambda x: lax.cond(x[0] > 0, lambda y: y, lambda y: jnp.tile(y, 5)[:4], x), (20,)),
        (lambda x: lax.sub(jnp.sum(x), np.arange(3.0, dtype=F32)), (3,)),
    ],
)
def test_the_shapes_of_arrays(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    closed = dovetail.make_jaxpr(function)(x4)
    program = equation_program(
        closed, name="f", platform="numpy", kept=(True,), donation=match_donations([], [], [])
    )
    for shapes in (lower(function, x4).shapes(), program.shapes()):
        assert {(4,), shape} <= shapes
        assert max(map(math.prod, shapes)) == max(4, math.prod(shape))


@pytest.mark.parametrize("values", [[1], [1, 2]])
def test_literals_of_many_kinds_are_exact(values: Sequence[int]) -> None:
    kinds = [np.float16(0.1), np.float32(0.1), np.int8(-3), np.uint32(2**32 - 1), np.bool_(True)]
    v = Var(VECTOR)
    outs = [Literal(k, make_aval((), k.dtype)) for k in kinds for _ in values]
    lowered = lower_jaxpr(ClosedJaxpr(Jaxpr([], [v], outs, []), []), name="f")
    text = lowered.text()
    assert "4294967295" in text
    assert "dense<-3> : tensor<i8>" in text
    assert "dense<true> : tensor<i1>" in text


HUGE = 1 << 40


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.zeros((HUGE, HUGE)),
        lambda: jnp.zeros(1 << 64, jnp.int8),
        lambda: dovetail.jit(lambda x: x).lower(dovetail.ShapeDtypeStruct((HUGE, HUGE, 0), "f4")),
        lambda: jnp.broadcast_to(jnp.float32(1), (HUGE, HUGE)),
        lambda: dovetail.jit(lambda: jnp.zeros((HUGE, HUGE)).sum())(),
        lambda: dovetail.jit(lambda x: x).lower(dovetail.ShapeDtypeStruct((HUGE, HUGE), jnp.int8)),
        lambda: dovetail.jit(jnp.fft.fft).lower(dovetail.ShapeDtypeStruct((1 << 59,), jnp.float32)),
        lambda: lax.pad(jnp.ones(3), 0.0, [(1 << 62, 1 << 62, 0)]),
        lambda: lax.scan(lambda c, _: (c, c), jnp.zeros(1 << 20), None, length=1 << 50),
    ],
)
def test_arrays_that_no_machine_holds_do_not_end_the_process(call):
    with pytest.raises(ValueError, match=r"would take \S+ bytes"):
        call()


def test_shapes_of_arrays_that_no_machine_holds():
    assert dovetail.eval_shape(lambda: jnp.zeros((HUGE, HUGE)) + 1).shape == (HUGE, HUGE)
    assert jnp.zeros((0, 1 << 57)).shape == (0, 1 << 57)


def test_a_rule_may_compile_another_program() -> None:
    """A constant of four bits is read by a program of its own, while the one around it is built."""

    def rule(hlo: Any, x: Any) -> Any:
        assert float(inner.bind(x4[:1])[0]) == 0
        return hlo.add(x, x, hlo.avals_out[0])

    inner, outer = new_primitive(lambda hlo, x: x), new_primitive(rule)
    lowered = dovetail.jit(outer.bind).lower(x4)
    assert inner.name not in lowered.as_text()
    assert lowered.as_text().count("module") == 1
    np.testing.assert_array_equal(lowered.compile()(x4), x4 * 2)
