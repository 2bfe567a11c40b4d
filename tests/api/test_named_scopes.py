"""named_scope and named_call: names of parts of programs, as compiled programs show them."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.ir.walk import inline_calls
from dovetail._core.runtime.programs import compilation
from dovetail._core.trace.state import state

X = np.arange(1, 4, dtype=np.float32)
scope = dt.named_scope


def operations(function: Callable[..., Any], *args: Any) -> list[str]:
    """The names of the operations of a program, without that of the program."""
    text = dt.jit(function).lower(*args).as_text(debug_info=True)
    return [name.partition("/")[2] for name in re.findall(r'loc\("(jit\([^"]*)"', text)]


def inner(x: Any) -> Any:
    with scope("a"), scope("b"):
        return lax.sin(x)


@dt.custom_jvp
def with_rule(x: Any) -> Any:
    return scope("value")(lax.sin)(x)


@with_rule.defjvp
def _jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    with scope("rule"):
        return with_rule(x), t * lax.cos(x)


@dt.custom_vjp
def with_backward(x: Any) -> Any:
    return lax.sin(x)


def _backward(x: Any, cotangent: Any) -> Any:
    with scope("rule"):
        return (cotangent * lax.cos(x),)


with_backward.defvjp(lambda x: (with_backward(x), x), _backward)


def in_two_passes(x: Any) -> Any:
    with scope("there"):
        value, back = dt.vjp(inner, x)
    with scope("back"):
        return back(value)


def looping(x: Any) -> Any:
    def body(carry: Any, y: Any) -> Any:
        with scope("turn"):
            return lax.sin(carry) * y, y

    with scope("loop"):
        return lax.scan(body, np.float32(1), x)[0]


def scalar(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: lax.reduce_sum(function(x), (0,))


PROGRAMS: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "alone": (inner, {"a/b/sin"}),
    "decorator": (scope("o")(inner), {"o/a/b/sin"}),
    "slashes": (scope("o/p")(lax.sin), {"o/p/sin"}),
    "empty": (scope("")(scope("p")(lax.sin)), {"p/sin"}),
    "twice": (scope("o")(scope("o")(lax.sin)), {"o/o/sin"}),
    "after a scope": (lambda x: lax.cos(inner(x)), {"a/b/sin", "cos"}),
    "jvp": (
        lambda x: dt.jvp(inner, (x,), (x,)),
        {"jvp(a)/b/sin", "jvp(a)/b/cos", "jvp(a)/b/mul"},
    ),
    "vmap": (dt.vmap(inner), {"vmap(a)/b/sin"}),
    "vmap in a scope": (scope("o")(dt.vmap(inner)), {"o/vmap(a)/b/sin"}),
    "a scope in vmap": (dt.vmap(scope("o")(inner)), {"vmap(o)/a/b/sin"}),
    "vmap of vmap": (lambda x: dt.vmap(dt.vmap(inner))(x[None]), {"vmap(vmap(a))/b/sin"}),
    "grad": (dt.grad(scalar(inner)), {"jvp(a)/b/cos", "transpose(jvp(a))/b/mul"}),
    "grad in a scope": (
        scope("o")(dt.grad(scalar(inner))),
        {"o/jvp(a)/b/cos", "o/transpose(jvp(a))/b/mul"},
    ),
    "vmap of grad": (
        dt.vmap(dt.grad(inner)),
        {"vmap(jvp(a))/b/cos", "vmap(transpose(jvp(a)))/b/mul"},
    ),
    "a scope in vmap, of grad": (
        dt.vmap(scope("o")(dt.grad(inner))),
        {"vmap(o)/jvp(a)/b/cos", "vmap(o)/transpose(jvp(a))/b/mul"},
    ),
    "grad of vmap": (
        dt.grad(scalar(dt.vmap(inner))),
        {"jvp(vmap(a))/b/cos", "transpose(jvp(vmap(a)))/b/mul"},
    ),
    "grad of grad": (
        lambda x: dt.grad(dt.grad(inner))(x[0]),
        {"transpose(jvp(transpose(jvp(a))))/b/mul", "transpose(jvp(jvp(a)))/b/neg"},
    ),
    "vjp, each pass in its scope": (
        in_two_passes,
        {"there/jvp(a)/b/sin", "there/jvp(a)/b/cos", "back/transpose(jvp(a))/b/mul"},
    ),
    "linear_transpose": (
        lambda x: dt.linear_transpose(scope("o")(lambda x: x * 2), x)(x),
        {"transpose(o)/mul"},
    ),
    "linearize": (
        lambda x: dt.linearize(inner, x)[1](x),
        {"jvp(a)/b/cos", "jvp(a)/b/mul"},
    ),
    "a call in a scope": (scope("o")(dt.jit(lambda x: lax.sin(x))), {"o/jit(<lambda>)"}),
    "an inlined call": (scope("o")(dt.jit(inner, inline=True)), {"o/a/b/sin"}),
    "grad of a call": (dt.grad(lambda x: scope("o")(dt.jit(inner))(x[0])), {"jvp(o)/jit(inner)"}),
    "scan": (looping, {"loop/scan/turn/sin", "loop/scan/turn/mul"}),
    "scan of vmap": (
        lambda x: dt.vmap(looping)(x[None]),
        {"vmap(loop)/scan/vmap(turn)/sin"},
    ),
    "grad of scan": (
        dt.grad(looping),
        {"jvp(loop)/scan/jvp(turn)/cos", "transpose(jvp(loop))/scan/transpose(jvp(turn))/mul"},
    ),
    "while": (
        lambda x: lax.while_loop(lambda c: c[0] < 3, scope("o")(lambda c: c + 1), x),
        {"while/o/add"},
    ),
    "cond": (
        lambda x: scope("c")(lax.cond)(x[0] > 0, scope("o")(lax.sin), lax.cos, x),
        {"c/cond/o/sin", "c/cond/cos"},
    ),
    "checkpoint": (
        dt.grad(scalar(dt.checkpoint(lambda x: lax.sin(inner(x))))),
        {"remat2/jvp(a)/b/cos", "remat2/transpose(jvp(a))/b/mul"},
    ),
    "custom_jvp": (
        lambda x: scope("o")(dt.grad(with_rule))(x[0]),
        {"o/jvp(rule)/cos", "o/transpose(jvp(rule))/mul"},
    ),
    "custom_vjp": (
        lambda x: dt.grad(scope("o")(with_backward))(x[0]),
        {"transpose(jvp(o))/rule/mul"},
    ),
    "named_call": (dt.named_call(inner), {"inner/a/b/sin"}),
    "named_call with a name": (dt.named_call(inner, name="n"), {"n/a/b/sin"}),
    "named_call of a partial function": (
        dt.named_call(functools.partial(inner)),
        {"inner/a/b/sin"},
    ),
}


@pytest.mark.parametrize("label", PROGRAMS)
def test_names_of_operations(label: str) -> None:
    function, expected = PROGRAMS[label]
    found = operations(function, X)
    assert expected <= set(found), found
    assert not any("//" in name or name.count("(") != name.count(")") for name in found), found


def test_results_do_not_depend_on_scopes() -> None:
    for function, _ in PROGRAMS.values():
        plain = dt.make_jaxpr(function)(X)
        with scope("around"):
            scoped = dt.make_jaxpr(function)(X)
        assert str(plain) == str(scoped)


def test_a_function_is_traced_once_for_all_scopes() -> None:
    traced = []

    @dt.jit
    def function(x: Any) -> Any:
        traced.append(None)
        return inner(x)

    def calls(x: Any) -> Any:
        return scope("one")(function)(x) + scope("two")(function)(x)

    found = operations(calls, X)
    assert {"one/jit(function)", "two/jit(function)"} <= set(found)
    scope("three")(function)(X)
    function(X)
    assert len(traced) == 1


def test_calls_that_are_written_out_keep_their_scopes() -> None:
    call = scope("o")(dt.jit(inner))
    for function in (call, lambda x: scope("p")(dt.jit(call))(x)):
        names = inline_calls(dt.make_jaxpr(function)(X)).jaxpr.pretty_print(name_stack=True)
        assert "o/a/b/sin" in names
        assert ("p/o/a/b/sin" in names) == (function is not call)
    policy = dt.checkpoint_policies.dots_saveable
    kept = dt.checkpoint(lambda x: lax.sin(call(x)), policy=policy)
    assert "remat2/jvp(o)/jvp(a)/b/cos" in operations(dt.grad(scalar(kept)), X)


def test_compiled_programs_show_names() -> None:
    text = dt.jit(scope("shown")(lambda x: lax.sin(x) + 0.25)).lower(X).compile().as_text()
    assert 'op_name="jit(<lambda>)/shown/sin"' in text
    called = dt.jit(lambda x: scope("outer")(dt.jit(inner))(x) + 0.375).lower(X).compile()
    assert 'op_name="jit(<lambda>)/outer/jit(inner)/a/b/sin"' in called.as_text()


def _with_scope(name: str) -> Any:
    return dt.jit(scope(name)(lambda x: lax.sin(x) + 0.4375))


def _with_another_argument_name(name: str) -> Any:
    function: Any = {"x": lambda x: lax.cos(x) + 0.4375, "y": lambda y: lax.cos(y) + 0.4375}[name]
    return dt.jit(function)


def _with_a_call_in_a_scope(name: str) -> Any:
    return dt.jit(lambda x: scope(name)(dt.jit(inner))(x) + 0.5625)


def _with_a_loop(name: str) -> Any:
    return dt.jit(lambda x: lax.fori_loop(0, 3, scope(name)(lambda i, a: a * 0.6875), x))


def _with_a_gradient(name: str) -> Any:
    return dt.jit(dt.grad(scalar(scope(name)(lambda x: lax.sin(x) * 0.8125))))


# Programs that do the same under two names, and what only the first or second of them shows.
EQUAL_PROGRAMS: dict[str, tuple[Callable[[str], Any], str, str, str]] = {
    "scope": (_with_scope, "first", "second", "/{}/sin"),
    "scopes of scopes": (_with_scope, "third", "third/fourth", "/{}/sin"),
    "argument": (_with_another_argument_name, "x", "y", '"{}"'),
    "call": (_with_a_call_in_a_scope, "first", "second", "/{}/jit(inner)"),
    "loop": (_with_a_loop, "first", "second", "/{}/mul"),
    "gradient": (_with_a_gradient, "first", "second", "jvp({})"),
}


@pytest.mark.parametrize("has_run", [False, True])
@pytest.mark.parametrize("label", EQUAL_PROGRAMS)
def test_texts_of_equal_programs_show_their_own_names(label: str, has_run: bool) -> None:
    make, first, second, shown = EQUAL_PROGRAMS[label]
    functions = {name: make(name) for name in (first, second)}
    if has_run:
        for function in functions.values():
            function(X)
    for name, other in ((first, second), (second, first)):
        lowered = functions[name].lower(X)
        for text in (lowered.compile().as_text(), lowered.as_text("hlo", debug_info=True)):
            names = " ".join(re.findall(r'op_name=("[^"]*")', text))
            assert shown.format(name) in names
            assert shown.format(other) not in names


def test_only_a_text_is_compiled_again() -> None:
    first, second = _with_scope("compiled"), _with_scope("shared")
    first(X)
    before = compilation.statistics()
    second(X)
    compiled = second.lower(X).compile()
    after = compilation.statistics()
    assert (after.compiled, after.reused - before.reused) == (before.compiled, 2)
    assert "/shared/sin" in compiled.as_text()
    assert compiled.runtime_executable() is first.lower(X).compile().runtime_executable()
    assert "/compiled/sin" in first.lower(X).compile().as_text()


def test_hlo_shows_names_on_demand() -> None:
    lowered = dt.jit(scope("shown")(lambda x: lax.sin(x))).lower(X)
    text = lowered.as_text("hlo", debug_info=True)
    assert 'op_name="jit(<lambda>)/shown/sin"' in text
    assert "test_named_scopes.py" in text
    assert "shown" not in lowered.as_text("hlo")
    assert "shown" in lowered.compiler_ir("hlo").get_hlo_module().to_string()


def test_jaxprs_show_names_on_demand() -> None:
    jaxpr = dt.make_jaxpr(dt.grad(scalar(inner)))(X)
    assert "jvp(a)" not in str(jaxpr)
    lines = jaxpr.jaxpr.pretty_print(name_stack=True).split("\n")
    assert any(line.endswith("# transpose(jvp(a))/b/mul") for line in lines)


def test_errors_in_scopes_name_the_line() -> None:
    def function(x: Any) -> Any:
        with scope("o"):
            return dt.pure_callback(lambda x: x, X, x)  # the line

    (eqn,) = dt.make_jaxpr(function)(X).eqns
    text = dt.make_jaxpr(function)(X).jaxpr.pretty_print(source_info=True)
    line = function.__code__.co_firstlineno + 2
    assert f"test_named_scopes.py:{line}" in text
    assert eqn.traceback.raw_frames()


class TestScope:
    def test_it_is_left_on_errors(self) -> None:
        def fails(x: Any) -> Any:
            with scope("o"):
                raise KeyError("no")

        for run in (fails, dt.jit(fails), dt.grad(fails), dt.vmap(fails)):
            with pytest.raises(KeyError):
                run(X)
            assert state.place is None
        assert "sin" in operations(lambda x: lax.sin(x), X)

    def test_one_object_may_be_used_again_and_inside_itself(self) -> None:
        name = scope("o")

        @name
        def recursive(x: Any, depth: int) -> Any:
            return recursive(lax.sin(x), depth - 1) if depth else x

        def nested(x: Any) -> Any:
            with name, name:
                return recursive(x, 2)

        assert operations(nested, X) == ["o/o/o/sin", "o/o/o/o/sin"]

    def test_a_decorated_function_keeps_its_name_and_signature(self) -> None:
        decorated = dt.named_call(inner, name="n")
        assert (decorated.__name__, decorated.__wrapped__) == ("inner", inner)  # type: ignore[attr-defined]

    def test_threads_have_scopes_of_their_own(self) -> None:
        entered, left = threading.Event(), threading.Event()
        found: list[str] = []

        def other() -> None:
            entered.wait(60)
            found.extend(operations(lambda x: lax.sin(x), X))
            left.set()

        thread = threading.Thread(target=other)
        thread.start()
        with scope("here"):
            entered.set()
            assert left.wait(60)
        thread.join()
        assert found == ["sin"]

    def test_a_generator_may_be_left_after_the_trace(self) -> None:
        kept = []

        def steps(x: Any) -> Any:
            with scope("o"):
                yield lax.sin(x)

        def function(x: Any) -> Any:
            kept.append(steps(x))
            return next(kept[-1])

        assert operations(function, X) == ["o/sin"]
        for generator in kept:
            generator.close()
        assert state.place is None

    def test_names_of_any_text(self) -> None:
        for name in ('q"uote', "new\nline", "nul\0", "(", "jvp(", "ünï", " "):
            with scope("before"), scope(name):
                dt.jit(lambda x: lax.sin(x)).lower(X).as_text(debug_info=True)
        assert operations(dt.vmap(scope("odd(")(lax.sin)), X) == ["vmap(odd()/sin"]


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: scope(1), TypeError, "named_scope takes a name, which is a string, and got int: 1"),  # type: ignore[arg-type]
    (lambda: scope(None), TypeError, "got NoneType"),  # type: ignore[arg-type]
    (lambda: scope(b"o"), TypeError, "got bytes"),  # type: ignore[arg-type]
    (lambda: scope(inner), TypeError, r"write @named_scope\('name'\) above"),  # type: ignore[arg-type]
    (lambda: scope("\udc80"), ValueError, "UTF-8"),
    (lambda: dt.named_call(3), TypeError, "named_call takes a function, and got int: 3"),  # type: ignore[type-var]
    (lambda: dt.named_call(inner, name=2), TypeError, "takes a name"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_arguments(number: int) -> None:
    make, kind, message = BAD[number]
    with pytest.raises(kind, match=message):
        make()
