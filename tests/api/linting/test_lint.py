"""`dt.lint`: what each rule finds, with its line, and what looks alike and is no mistake."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random

VECTOR = dt.ShapeDtypeStruct((5,), np.float32)
ROWS = dt.ShapeDtypeStruct((3, 5), np.float32)
SCALAR = dt.ShapeDtypeStruct((), np.float32)
KEY = random.key(0)
WEIGHTS = np.ones((512, 512), np.float32)
TABLES = {"embedding": [jnp.ones((512, 512))]}
SMALL = np.ones((100, 100), np.float32)

Program = Callable[..., Any]
Lines = Callable[[Program], list[str]]
_found: list[tuple[Program, tuple[Any, ...], str]] = []
_clean: list[tuple[Program, tuple[Any, ...]]] = []


def finds(rule: str, *args: Any) -> Callable[[Program], Program]:
    """Expect findings of a rule alone, at the lines with the comment ``# here``."""

    def register(program: Program) -> Program:
        _found.append((program, args, rule))
        return program

    return register


def clean(*args: Any) -> Callable[[Program], Program]:
    """Expect nothing."""

    def register(program: Program) -> Program:
        _clean.append((program, args))
        return program

    return register


# vmapped-cond


def choose(x: Any) -> Any:
    return lax.cond(x > 0, lambda x: jnp.sin(x) * x, lambda x: x * 2, x)


@finds("vmapped-cond", VECTOR)
def cond_of_elements(x: Any) -> Any:
    def one(x: Any) -> Any:
        return lax.cond(x > 0, jnp.sin, jnp.cos, x)  # here

    return dt.vmap(one)(x)


@finds("vmapped-cond", ROWS)
def cond_of_elements_of_elements(x: Any) -> Any:
    def one(x: Any) -> Any:
        return lax.cond(x > 0, jnp.sin, jnp.cos, x)  # here

    return dt.vmap(dt.vmap(one))(x)


@finds("vmapped-cond", VECTOR)
def switch_of_elements(x: Any) -> Any:
    def one(x: Any) -> Any:
        branches = [jnp.sin, jnp.cos, jnp.tan]
        return lax.switch(x.astype(int), branches, x)  # here

    return dt.vmap(one)(x)


@finds("vmapped-cond", VECTOR)
def cond_of_elements_in_jit(x: Any) -> Any:
    @dt.jit
    def one(x: Any) -> Any:
        return lax.cond(x > 0, jnp.sin, jnp.cos, x)  # here

    return dt.vmap(one)(x)


@finds("vmapped-cond", VECTOR)
def cond_of_elements_in_scan(x: Any) -> Any:
    def one(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            return lax.cond(c > 0, jnp.sin, jnp.cos, c), None  # here

        return lax.scan(step, x, None, length=3)[0]

    return dt.vmap(one)(x)


@finds("vmapped-cond", VECTOR)
def derivative_of_cond_of_elements(x: Any) -> Any:
    def one(x: Any) -> Any:
        return lax.cond(x > 0, jnp.sin, jnp.cos, x)  # here

    return dt.grad(lambda x: dt.vmap(one)(x).sum())(x)


@finds("vmapped-cond", VECTOR)
def derivatives_of_elements(x: Any) -> Any:
    def one(x: Any) -> Any:
        return lax.cond(x > 0, jnp.sin, jnp.cos, x)  # here

    return dt.vmap(dt.grad(dt.checkpoint(one)))(x)


@finds("vmapped-cond", VECTOR)
def cond_in_a_named_scope(x: Any) -> Any:
    def one(x: Any) -> Any:
        with dt.named_scope("model"):
            return lax.cond(x > 0, jnp.sin, jnp.cos, x)  # here

    return dt.vmap(dt.jit(one))(x)


@clean(SCALAR)
def cond_of_one(x: Any) -> Any:
    return choose(x)


@clean(VECTOR, SCALAR)
def cond_for_all_elements(x: Any, y: Any) -> Any:
    return dt.vmap(lambda x: lax.cond(y > 0, jnp.sin, jnp.cos, x))(x)


@clean(VECTOR)
def cond_element_by_element(x: Any) -> Any:
    return lax.map(choose, x)


@clean(VECTOR)
def where_of_elements(x: Any) -> Any:
    return dt.vmap(lambda x: jnp.where(x > 0, jnp.sin(x), x))(x)


@clean(VECTOR)
def cond_that_chooses_nothing(x: Any) -> Any:
    return dt.vmap(lambda x: lax.cond(x > 0, lambda x: x, lambda x: x, x))(x)


@clean(VECTOR)
def conditionals_of_the_framework(x: Any) -> Any:
    return jnp.piecewise(x, [x < 0, x > 1], [jnp.sin, jnp.cos, 0.0])


# unrolled-loop


@finds("unrolled-loop", VECTOR)
def for_loop(x: Any) -> Any:
    for _ in range(10):  # here
        x = jnp.sin(x) * x
    return x


@finds("unrolled-loop", VECTOR)
def while_loop(x: Any) -> Any:
    i = 0
    while i < 10:  # here
        x = jnp.sin(x) * x
        i += 1
    return x


@finds("unrolled-loop", VECTOR)
def comprehension(x: Any) -> Any:
    return jnp.stack([jnp.sin(x * i) for i in range(10)])  # here


@finds("unrolled-loop", dt.ShapeDtypeStruct((10, 5), np.float32))
def loop_over_rows(x: Any) -> Any:
    return [jnp.sin(row) for row in x]  # here


@finds("unrolled-loop", [ROWS] * 10, VECTOR)
def loop_over_layers(weights: Any, x: Any) -> Any:
    for w in weights:  # here
        x = jnp.tanh(w @ x)[:1] + x
    return x


@finds("unrolled-loop", SCALAR)
def loop_with_a_number(x: Any) -> Any:
    for _ in range(10):  # here
        x = jnp.cos(x)
    return x


@finds("unrolled-loop", KEY)
def loop_over_keys(key: Any) -> Any:
    return [random.normal(key) for key in random.split(key, 10)]  # here


@finds("unrolled-loop", VECTOR)
def generator(x: Any) -> Any:
    return sum(jnp.sin(x * i) for i in range(10))  # here


@finds("unrolled-loop", VECTOR)
def loop_of_calls(x: Any) -> Any:
    for _ in range(10):  # here
        x = layer(x)
    return x


def layer(x: Any) -> Any:
    return jnp.tanh(x) + 1.0


@finds("unrolled-loop", VECTOR)
def loop_of_compiled_calls(x: Any) -> Any:
    compiled = dt.jit(layer)
    for _ in range(10):  # here
        x = compiled(x)
    return x


@finds("unrolled-loop", VECTOR)
def loop_of_scans(x: Any) -> Any:
    for _ in range(10):  # here
        x, _ = lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=4)
    return x


@finds("unrolled-loop", VECTOR)
def loop_with_handlers(x: Any) -> Any:
    for _ in range(10):  # here
        try:
            with dt.named_scope("turn"):
                x = jnp.sin(x)
        except ValueError:
            continue
    return x


@finds("unrolled-loop", VECTOR)
def loop_in_scan(x: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        for _ in range(10):  # here
            c = jnp.sin(c) * c
        return c, None

    return lax.scan(step, x, None, length=4)


@finds("unrolled-loop", VECTOR)
def derivative_of_loop(x: Any) -> Any:
    def total(x: Any) -> Any:
        for _ in range(10):  # here
            x = jnp.sin(x) * x
        return x.sum()

    return dt.grad(total)(x)


@finds("unrolled-loop", ROWS)
def loop_for_elements(x: Any) -> Any:
    def one(x: Any) -> Any:
        for _ in range(10):  # here
            x = jnp.sin(x) * x
        return x

    return dt.vmap(dt.jit(one))(x)


@finds("unrolled-loop", VECTOR)
def steps_of_descent(x: Any) -> Any:
    for _ in range(10):  # here
        slope = dt.grad(lambda x: jnp.sum(jnp.sin(x)))(x)
        x = dt.tree.map(lambda p, g: p - 0.1 * g, x, slope)
    return x


@finds("unrolled-loop", VECTOR)
def long_loop_in_a_short_one(x: Any) -> Any:
    for _ in range(2):
        x = x + 1.0
        for _ in range(10):  # here
            x = jnp.sin(x)
    return x


@finds("unrolled-loop", VECTOR)
def short_loop_in_a_long_one(x: Any) -> Any:
    for _ in range(10):  # here
        x = x + 1.0
        for _ in range(2):
            x = jnp.sin(x)
    return x


@clean(VECTOR)
def short_loop(x: Any) -> Any:
    for _ in range(7):
        x = jnp.sin(x) * x
    return x


@clean(VECTOR)
def derivative_of_a_short_loop(x: Any) -> Any:
    def total(x: Any) -> Any:
        for _ in range(4):
            x = x * x * x
        return x.sum()

    return dt.hessian(total)(x)


@clean(VECTOR)
def loop_in_which_shapes_change(x: Any) -> Any:
    for _ in range(10):
        x = jnp.concatenate([x, x[:1]])
    return x


@clean(VECTOR)
def loop_that_computes_on_the_host(x: Any) -> Any:
    total = 0.0
    for i in range(100):
        total += float(np.sin(i))
    return x * total


@clean([VECTOR] * 20)
def map_over_leaves(x: Any) -> Any:
    return dt.tree.map(lambda x: jnp.sin(x) * x, x)


@clean([VECTOR] * 20)
def few_maps_over_leaves(x: Any) -> Any:
    for _ in range(2):
        x = dt.tree.map(lambda x: jnp.sin(x) * x, x)
    return x


@clean({str(i): VECTOR for i in range(20)}, SCALAR)
def comprehension_over_leaves(tree: Any, rate: Any) -> Any:
    slopes = dt.grad(lambda tree: sum(x @ x for x in tree.values()))(tree)
    return {name: x - rate * slopes[name] for name, x in tree.items()}


@clean([VECTOR] * 20)
def sum_over_leaves(leaves: Any) -> Any:
    total = 0.0
    for leaf in leaves:
        total += jnp.sum(leaf * leaf)
    return total


@clean(VECTOR)
def loops_of_the_framework(x: Any) -> Any:
    total = jnp.polyval(jnp.ones(20), x) + lax.associative_scan(jnp.add, x).sum()
    return total + jnp.einsum("i,i,i,i,i,i,i,i,i,i->", *[x] * 10)


@clean(VECTOR)
def compiled_loops(x: Any) -> Any:
    x = lax.fori_loop(0, 100, lambda i, x: jnp.sin(x), x)
    return lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=20, unroll=10)


@clean(VECTOR)
def a_line_called_from_many(x: Any) -> Any:
    x = layer(layer(layer(layer(x))))
    return layer(layer(layer(layer(layer(x)))))


# large-constant


@finds("large-constant", VECTOR)
def weights_of_numpy(x: Any) -> Any:
    return x.sum() + WEIGHTS @ jnp.ones(512)  # here


@finds("large-constant", VECTOR)
def weights_in_a_table(x: Any) -> Any:
    return x.sum() + TABLES["embedding"][0][0]  # here


@finds("large-constant", VECTOR)
def weights_in_scan(x: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        return jnp.tanh(WEIGHTS @ c), None  # here

    return lax.scan(step, jnp.ones(512), None, length=3)


@finds("large-constant", VECTOR)
def weights_in_jit(x: Any) -> Any:
    @dt.jit
    def loss(x: Any) -> Any:
        return (WEIGHTS @ jnp.ones(512)).sum() * x  # here

    return dt.vmap(dt.grad(loss))(x)


@finds("large-constant", VECTOR)
def array_made_of_one_of_numpy(x: Any) -> Any:
    table = np.arange(300_000.0).reshape(3, -1).astype(np.float32)
    return x.sum() + jnp.asarray(table)[0]  # here


@clean(VECTOR)
def small_constant(x: Any) -> Any:
    return x.sum() + SMALL


@clean(VECTOR)
def large_array_made_in_the_program(x: Any) -> Any:
    return x.sum() + jnp.zeros((1000, 1000)) + jnp.arange(1000)


@clean(VECTOR, dt.ShapeDtypeStruct((512, 512), np.float32))
def weights_as_argument(x: Any, weights: Any) -> Any:
    return x.sum() + weights @ jnp.ones(512)


# unused-update, unused-result


@finds("unused-update", VECTOR)
def update_as_statement(x: Any) -> Any:
    x.at[0].set(1.0)  # here
    x.at[1:3].add(2.0)  # here
    return x


@finds("unused-update", VECTOR)
def update_of_a_variable_that_nothing_uses(x: Any) -> Any:
    y = x.at[0].set(1.0)  # here
    del y
    return x


@finds("unused-update", VECTOR)
def update_of_a_slice(x: Any) -> Any:
    lax.dynamic_update_slice(x, x[:2], (1,))  # here
    return x


@finds("unused-update", VECTOR)
def update_in_jit(x: Any) -> Any:
    @dt.jit
    def inner(x: Any) -> Any:
        x.at[0].set(1.0)  # here
        return x * 2

    return inner(x)


@finds("unused-update", VECTOR)
def update_in_scan(x: Any) -> Any:
    def step(c: Any, i: Any) -> Any:
        c.at[i].set(1.0)  # here
        return c * 2, None

    return lax.scan(step, x, jnp.arange(3))


@finds("unused-update", ROWS)
def update_in_vmap(x: Any) -> Any:
    def one(x: Any) -> Any:
        x.at[0].multiply(2.0)  # here
        return x

    return dt.vmap(one)(x)


@finds("unused-update", VECTOR)
def update_under_grad(x: Any) -> Any:
    def total(x: Any) -> Any:
        x.at[0].set(1.0)  # here
        return (x * x).sum()

    return dt.grad(total)(x)


@finds("unused-result", VECTOR)
def statements_with_results(x: Any) -> Any:
    x.sort()  # here
    jnp.linalg.norm(x)  # here
    x.at[0].get()  # here
    return x


@finds("unused-result", KEY)
def split_without_result(key: Any) -> Any:
    random.split(key)  # here
    return key


@clean(VECTOR)
def updates_that_are_used(x: Any) -> Any:
    x = x.at[0].set(1.0)
    return x.at[1].add(2.0)


@clean(VECTOR)
def value_beside_a_derivative(x: Any) -> Any:
    _, pullback = dt.vjp(lambda x: x.at[0].set(1.0), x)
    _, tangent = dt.jvp(lambda x: x.at[0].set(1.0), (x,), (x,))
    slope = dt.grad(lambda x: x.at[0].set(1.0)[1])(x)
    return pullback(x), tangent, slope


@clean(VECTOR)
def last_turn_of_a_loop(x: Any) -> Any:
    seen = []
    for i in range(3):
        seen.append(x[i])
        x = x.at[i].set(2.0)
    return seen


def _cleared(x: Any) -> Any:
    y = x.at[0].set(0.0)
    return y, x


@clean(VECTOR)
def function_whose_result_one_caller_ignores(x: Any) -> Any:
    _, same = _cleared(x)
    changed, _ = _cleared(x)
    return same + changed


@clean(VECTOR)
def statements_with_effects(x: Any) -> Any:
    dt.debug.print("{}", x * 2)
    dt.debug.callback(lambda x: None, x + 1)
    ref = dt.new_ref(x)
    ref[0] = 1.0
    dt.debug.check(x.sum() > 0, "a sum")
    assert jnp.ndim(x) == 1
    return ref[...]


@clean(VECTOR)
def results_that_are_in_part_unused(x: Any) -> Any:
    values, _ = jnp.linalg.eigh(jnp.outer(x, x))
    y = x @ x
    del y
    return values


# host-in-loop


@finds("host-in-loop", VECTOR)
def print_in_a_loop(x: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        dt.debug.print("{}", x)  # here
        return x + 1

    return lax.fori_loop(0, 4, body, x)


@finds("host-in-loop", VECTOR)
def callbacks_in_scan(x: Any) -> Any:
    @dt.jit
    def step(c: Any, _: Any) -> Any:
        c = dt.pure_callback(np.sin, c, c)  # here
        return dt.experimental.io_callback(np.sin, c, c), None  # here

    return lax.scan(step, x, None, length=4)


@finds("host-in-loop", VECTOR)
def callback_in_while(x: Any) -> Any:
    def more(x: Any) -> Any:
        dt.debug.callback(lambda x: None, x)  # here
        return x.sum() < 10

    return lax.while_loop(more, lambda x: x + 1, x)


@finds("host-in-loop", ROWS)
def callback_under_vmap_and_grad(x: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        dt.debug.callback(lambda x: None, c)  # here
        return jnp.sin(c), None

    def total(x: Any) -> Any:
        return lax.scan(step, x, None, length=4)[0].sum()

    return dt.vmap(dt.grad(total))(x)


@clean(VECTOR)
def callbacks_outside_of_loops(x: Any) -> Any:
    dt.debug.print("{}", x)
    x = lax.fori_loop(0, 4, lambda i, x: x + 1, x)
    return lax.cond(x.sum() > 0, lambda x: dt.pure_callback(np.sin, x, x), jnp.cos, x)


@clean(ROWS)
def callbacks_for_elements(x: Any) -> Any:
    def one(x: Any) -> Any:
        dt.debug.callback(lambda x: None, x)
        dt.debug.print("{}", x)
        return dt.pure_callback(np.sin, x, x, vmap_method="sequential")

    return dt.vmap(one)(x)


# key-reused


@finds("key-reused", KEY)
def two_draws(key: Any) -> Any:
    x = random.normal(key, (3,))
    return x + random.uniform(key, (3,))  # here


@finds("key-reused", KEY)
def three_draws(key: Any) -> Any:
    x = random.normal(key)
    y = random.uniform(key)  # here
    return x + y + random.bernoulli(key)  # here


@finds("key-reused", KEY)
def draws_in_a_loop(key: Any) -> Any:
    def body(i: Any, total: Any) -> Any:
        return total + random.normal(key)  # here

    return lax.fori_loop(0, 4, body, 0.0)


@finds("key-reused", KEY)
def draw_after_split(key: Any) -> Any:
    first, second = random.split(key)
    return random.normal(key) + random.normal(first) + random.normal(second)  # here


@finds("key-reused", KEY)
def draws_in_jit(key: Any) -> Any:
    @dt.jit
    def draw(key: Any) -> Any:
        return random.normal(key)  # here

    return draw(key) + draw(key)


@clean(KEY)
def keys_that_are_split(key: Any) -> Any:
    first, second = random.split(key)
    return random.normal(first) + random.normal(second)


@clean(KEY, SCALAR)
def draws_in_branches(key: Any, x: Any) -> Any:
    return lax.cond(x > 0, lambda: random.normal(key), lambda: random.uniform(key))


@clean(KEY)
def keys_that_are_folded(key: Any) -> Any:
    def body(i: Any, total: Any) -> Any:
        return total + random.normal(random.fold_in(key, i))

    return lax.fori_loop(0, 4, body, 0.0)


@clean(KEY)
def clones(key: Any) -> Any:
    return random.normal(key) + random.normal(random.clone(key))


# Tests


def names(program: Any) -> str:
    return program.__name__ if isinstance(program, types.FunctionType) else ""


@pytest.mark.parametrize(("program", "args", "rule"), _found, ids=names)
def test_a_mistake_is_found(
    program: Program, args: tuple[Any, ...], rule: str, marked_lines: Lines
) -> None:
    report = dt.lint(program, *args)
    assert {finding.rule for finding in report} == {rule}, report
    assert [f.where for f in report] == marked_lines(program), report


@pytest.mark.parametrize(("program", "args", "rule"), _found, ids=names)
def test_a_mistake_is_found_under_jit(program: Program, args: tuple[Any, ...], rule: str) -> None:
    found = dt.lint(program, *args)
    assert list(dt.lint(dt.jit(program), *args)) == list(found)
    inside = dt.lint(lambda *args: dt.jit(program)(*args), *args)
    places = {(f.rule, f.where) for f in inside if f.rule == rule}
    assert places == {(f.rule, f.where) for f in found}


@pytest.mark.parametrize(("program", "args"), _clean, ids=names)
def test_what_is_no_mistake(program: Program, args: tuple[Any, ...]) -> None:
    report = dt.lint(program, *args)
    assert not report, report
    assert not dt.lint(lambda *args: dt.jit(program)(*args), *args)


ARGUMENTS: list[tuple[Program, tuple[Any, ...], str | None]] = [
    (two_draws, (KEY,), "key"),
    (draw_after_split, (KEY,), "key"),
    (update_as_statement, (VECTOR,), "x"),
    (weights_of_numpy, (VECTOR,), "WEIGHTS"),
    (weights_in_a_table, (VECTOR,), "TABLES['embedding'][0]"),
    (weights_in_scan, (VECTOR,), "WEIGHTS"),
    (array_made_of_one_of_numpy, (VECTOR,), None),
    (for_loop, (VECTOR,), None),
]


@pytest.mark.parametrize(("program", "args", "argument"), ARGUMENTS, ids=names)
def test_the_argument(program: Program, args: tuple[Any, ...], argument: str | None) -> None:
    assert {finding.argument for finding in dt.lint(program, *args)} == {argument}


def test_nothing_runs() -> None:
    effects: list[Any] = []

    def program(x: Any) -> Any:
        dt.debug.callback(effects.append, x)
        return TABLES["embedding"][0] @ (jnp.ones(512) * x)

    weights, key = jnp.ones(5), random.key(0)
    with dt.no_execution(True):
        assert dt.lint(program, SCALAR)
        assert dt.lint(two_draws, key)
        assert dt.lint(for_loop, weights)
    assert not effects


def test_keys_are_new_to_it() -> None:
    """What ran before does not count, nor does what is looked at count for what runs."""
    key = random.key(1)
    with dt.debug_key_reuse(True):
        assert not dt.lint(keys_that_are_split, key)
        random.normal(key)
        assert not dt.lint(keys_that_are_split, key)
    assert dt.lint(two_draws, key)


def test_functions_of_the_framework_have_the_line_of_the_call() -> None:
    report = dt.lint(dt.vmap(choose), VECTOR)
    line = choose.__code__.co_firstlineno + 1
    assert [f.where for f in report] == [f"{__file__}:{line}"]


def test_programs_are_the_same_with_notes() -> None:
    """What `vmap` notes for the rule about conditionals is no part of what is compiled."""

    def one(x: Any) -> Any:
        with dt.named_scope("model"):
            return choose(x)

    lowered = dt.jit(dt.grad(lambda x: dt.vmap(dt.jit(one))(x).sum())).lower(jnp.ones(3))
    text = lowered.as_text(debug_info=True)
    assert "all branches run" not in text
    assert "jvp(vmap(model))/select_n" in text
