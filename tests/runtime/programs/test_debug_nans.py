"""debug_nans and debug_infs: the operation and the user's line, wherever a value comes from."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax


def log(x):
    y = x * 2
    return jnp.log(y)


def steep(x):
    # The square root has an infinite slope at 0, which times 0 is no number.
    y = jnp.sqrt(x)
    return (y * 0.0).sum()


ONE = jnp.array(-1.0)
FORWARD = {
    "eager": lambda: log(ONE),
    "jit": lambda: dt.jit(log)(ONE),
    "jit of a Python number": lambda: dt.jit(log)(-1.0),
    "jit of jit": lambda: dt.jit(lambda x: dt.jit(log)(x) + 1)(ONE),
    "cond": lambda: lax.cond(True, log, lambda x: x, ONE),
    "switch": lambda: lax.switch(1, [lambda x: x, log], ONE),
    "scan": lambda: lax.scan(lambda c, _: (log(c), None), ONE, None, 3),
    "later turn of a scan": lambda: lax.scan(lambda c, _: (log(c) - 1, None), 0.9, None, 9),
    "while": lambda: lax.while_loop(lambda c: c < 5, lambda c: log(c) + 9, ONE),
    "bounded while": lambda: lax.while_loop(
        lambda c: c < 5, lambda c: log(c) + 9, ONE, max_steps=9
    ),
    "grad of bounded while": lambda: dt.grad(
        lambda x: lax.while_loop(lambda c: c < 5, lambda c: log(c) + 9, x, max_steps=9)
    )(ONE),
    "fori_loop": lambda: lax.fori_loop(0, 3, lambda i, c: log(c), ONE),
    "map": lambda: lax.map(log, ONE[None]),
    "jit of scan": lambda: dt.jit(lambda x: lax.scan(lambda c, _: (log(c), None), x, None, 3))(ONE),
    "vmap": lambda: dt.vmap(log)(jnp.array([1.0, -1.0])),
    "jit of vmap": lambda: dt.jit(dt.vmap(log))(jnp.array([1.0, -1.0])),
    "grad": lambda: dt.grad(log)(ONE),
    "value_and_grad in jit": lambda: dt.jit(dt.value_and_grad(log))(ONE),
    "jvp": lambda: dt.jvp(log, (ONE,), (ONE,)),
    "linearize": lambda: dt.linearize(log, ONE),
    "static arguments": lambda: dt.jit(lambda f, x: f(x), static_argnums=0)(log, ONE),
    "pytrees": lambda: dt.jit(lambda d: {"b": log(d["a"])})({"a": ONE}),
    "captured": lambda: dt.jit(lambda: log(ONE))(),
}
BACKWARD = {
    "grad": lambda: dt.grad(steep)(0.0),
    "grad of jit": lambda: dt.grad(dt.jit(steep))(0.0),
    "jit of grad": lambda: dt.jit(dt.grad(steep))(0.0),
    "grad of scan": lambda: dt.grad(
        lambda x: lax.scan(lambda c, _: (steep(c), None), x, None, 2)[0]
    )(0.0),
    "grad of cond": lambda: dt.grad(lambda x: lax.cond(x < 1, steep, lambda x: x, x))(0.0),
    "grad of vmap": lambda: dt.grad(lambda x: dt.vmap(steep)(x).sum())(jnp.zeros(2)),
    "vjp": lambda: dt.vjp(steep, 0.0)[1](1.0),
}


def place(function, offset):
    return f"test_debug_nans.py:{inspect.getsourcelines(function)[1] + offset} ("


def test_functions_called_eagerly_name_the_line_of_each_call():
    def first():
        return jnp.log(ONE)

    def second():
        return jnp.log(ONE)

    for function in (first, second, first):
        with dt.debug_nans(True), pytest.raises(FloatingPointError) as caught:
            function()
        assert place(function, 1) in str(caught.value)


@pytest.mark.parametrize("name", FORWARD)
def test_forward(name):
    with dt.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        FORWARD[name]()
    assert "invalid value (nan) encountered in log at " in str(caught.value)
    assert place(log, 2) in str(caught.value)


@pytest.mark.parametrize("name", BACKWARD)
def test_backward(name):
    with dt.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        BACKWARD[name]()
    message = str(caught.value)
    assert "invalid value (nan) encountered in mul at " in message
    assert place(steep, 2) in message


def logs(steps, **options):
    return lambda x: lax.while_loop(
        lambda c: c[0] < steps, lambda c: (c[0] + 1, jnp.log(c[1])), (0, x), **options
    )[1]


@pytest.mark.parametrize(
    "loop",
    [
        logs(5, max_steps=9),
        logs(5, max_steps=9, checkpoints=9),
        logs(9, max_steps=5),
        dt.grad(logs(5, max_steps=9)),
        dt.jit(dt.grad(logs(5, max_steps=9, checkpoints=9))),
        logs(5),
    ],
)
def test_the_turn_of_a_while_loop(loop):
    with dt.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        loop(1.5)
    message = str(caught.value)
    assert "in:   turn 3 of the while at test_debug_nans.py:" in message
    assert "operand 0: f32[]: -0.902721 (the value carried)" in message
    assert "trap: log of a number below 0" in message
    assert message.count("in:   turn") == 1


def test_a_bound_that_is_met_before_there_is_a_nan():
    with dt.debug_nans(True):
        assert np.isfinite(logs(9, max_steps=2)(1.5))
        assert np.isfinite(dt.grad(logs(9, max_steps=2))(1.5))


def test_the_turn_of_a_loop_whose_value_another_loop_uses():
    """The backward loop takes it from the first, and is not around it."""

    def roots(x):
        return lax.scan(lambda c, _: (jnp.sqrt(c) - 1, None), x, None, 5)[0]

    with dt.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        dt.jit(dt.grad(roots))(2.0)
    message = str(caught.value)
    assert "pass: forward; its value is used in the backward pass" in message
    assert message.count("in:   turn") == 1
    assert "in:   turn 3 of 5 of the scan" in message


def test_forward_mode():
    with dt.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        dt.jvp(steep, (0.0,), (1.0,))
    assert f"(nan) encountered in mul at {place(steep, 3)}" in str(caught.value)


def sine(x):
    return jnp.sin(x)


def forward(x):
    y = jnp.sin(x)
    return y, jnp.log(-x)


def backward(x, ct):
    y = ct * 2
    return (y * jnp.log(-x),)


def of_tangents(primals, tangents):
    (x,), (t,) = primals, tangents
    return sine(x), jnp.log(-x) * t


def of_batch(size, in_batched, x):
    y = x * 2
    return jnp.log(-y), True


def with_forward():
    function = dt.custom_vjp(sine)
    function.defvjp(forward, lambda res, ct: (ct * res,))
    return function


def with_backward():
    function = dt.custom_vjp(sine)
    function.defvjp(lambda x: (sine(x), x), backward)
    return function


def with_tangents():
    function = dt.custom_jvp(sine)
    function.defjvp(of_tangents)
    return function


def with_batch():
    function = dt.custom_batching.custom_vmap(sine)
    function.def_vmap(of_batch)
    return lambda x: dt.vmap(function)(x[None])[0]


RULES = {
    "forward rule": (with_forward, forward),
    "backward rule": (with_backward, backward),
    "jvp rule": (with_tangents, of_tangents),
    "vmap rule": (with_batch, of_batch),
}
AROUND = {
    "plain": lambda f: f,
    "jit": dt.jit,
    "checkpoint": dt.checkpoint,
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0],
    "vmap": lambda f: lambda x: dt.vmap(f)(x[None])[0],
}


def using(rule, around):
    """A function in which the rule runs, and the place in the rule where there is no number."""
    function, written = RULES[rule]
    inner = AROUND[around](function())
    return (inner if rule == "vmap rule" else dt.grad(inner)), place(written, 2)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("rule", RULES)
def test_the_line_in_a_rule(rule, around):
    function, line = using(rule, around)
    for way in (function, dt.jit(function)):
        with dt.debug_nans(True), pytest.raises(FloatingPointError) as caught:
            way(jnp.array(1.0))
        assert f"in log at {line}" in str(caught.value)


@pytest.mark.parametrize("rule", RULES)
def test_programs_name_the_line_in_a_rule(rule):
    function, line = using(rule, "jit")
    text = dt.jit(function).lower(jnp.array(1.0)).as_text(debug_info=True)
    assert line.replace(":", '":').replace(" (", ":") in text


INFINITE = {
    "eager": lambda: 1 / jnp.zeros(3),
    "jit": lambda: dt.jit(lambda x: 1 / x)(jnp.zeros(3)),
    "complex": lambda: dt.jit(lambda x: 1 / x)(jnp.zeros(3) + 0j),
    "scan": lambda: lax.scan(lambda c, _: (1 / c, None), 0.0, None, 1),
}


@pytest.mark.parametrize("name", INFINITE)
def test_infinities(name):
    with dt.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\).* in div at test_"):
        INFINITE[name]()
    with dt.debug_nans(True):
        if name != "complex":
            INFINITE[name]()


def test_the_first_of_both_is_named():
    def f(x):
        return jnp.log(1 / x - 1 / x)

    with dt.debug_nans(True), pytest.raises(FloatingPointError, match=r"\(nan\).* in sub at"):
        dt.jit(f)(0.0)
    first = pytest.raises(FloatingPointError, match=r"\(inf\) encountered in div at")
    with dt.debug_nans(True), dt.debug_infs(True), first:
        dt.jit(f)(0.0)


def test_values_that_come_from_outside_are_named_by_the_program():
    def identity(x):
        return x[::-1]

    with dt.debug_nans(True), pytest.raises(FloatingPointError, match="in identity at test_debug"):
        dt.jit(identity)(jnp.array([np.nan, 1.0]))


def test_donated_arguments():
    f = dt.jit(lambda x: jnp.log(x), donate_argnums=0)
    with dt.debug_nans(True), pytest.raises(FloatingPointError, match=r"invalid value \(nan\)"):
        f(jnp.array([-1.0]))


def test_programs_with_effects_are_not_run_twice():
    seen = []

    def f(x):
        dt.debug.callback(lambda x: seen.append(float(x)), x)
        return jnp.log(x)

    with dt.debug_nans(True), pytest.raises(FloatingPointError, match=r"\(nan\) encountered in f"):
        dt.jit(f)(ONE)
    dt.effects_barrier()
    assert seen == [-1.0]


def test_hidden_values_are_no_errors():
    with dt.debug_nans(True):
        assert dt.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0))(ONE) == 0.0


def test_nothing_is_looked_at_without_the_option():
    assert np.isnan(log(ONE))
    assert np.isnan(dt.jit(log)(ONE))
