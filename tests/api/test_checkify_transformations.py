"""checkify through calls, branches, loops and every other transformation, inside and outside."""

from __future__ import annotations

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental import checkify

pytestmark = pytest.mark.laws


def positive(x):
    """Fails with its argument as the whole message."""
    checkify.check(x > 0, "{x}", x=x)
    return jnp.log(x)


def message(error):
    """The part of a message before the place."""
    text = error.get()
    return None if text is None else text.split(" (`check`")[0].split(" at test_")[0]


def while_of(x):
    def body(c):
        positive(c[0])
        return c[0] - 1, c[1] + 1

    return lax.while_loop(lambda c: c[1] < 3, body, (x, 0))[0]


def while_condition(x):
    def condition(c):
        positive(c[0])
        return c[1] < 3

    return lax.while_loop(condition, lambda c: (c[0] - 1, c[1] + 1), (x, 0))[0]


def switch_of(n):
    return lambda x: lax.switch(n, [lambda x: x, positive, lambda x: positive(x - 10)], x)


def scan_of(x):
    return lax.scan(lambda c, _: (c - 1, positive(c)), x, None, length=3)[0]


def reverse_scan(x):
    return lax.scan(lambda c, y: (c, positive(x - y)), x, jnp.arange(3.0), reverse=True)[0]


def nested(x):
    def turn(i, c):
        return lax.cond(i == 1, lambda c: dt.jit(positive)(c) * 0 + c, lambda c: c, c) - 1

    return lax.fori_loop(0, 3, turn, x)


@dt.custom_jvp
def custom_forward(x):
    return positive(x)


@custom_forward.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return custom_forward(x), t * 100


@dt.custom_vjp
def custom_backward(x):
    return positive(x)


custom_backward.defvjp(lambda x: (custom_backward(x), x), lambda x, ct: (ct * 100,))

# Function, argument that is fine, argument that is not, and the message.
PROGRAMS = {
    "plain": (positive, 1.0, -1.0, "-1.0"),
    "jit": (dt.jit(positive), 1.0, -1.0, "-1.0"),
    "jit of jit": (dt.jit(lambda x: dt.jit(positive)(x - 1)), 2.0, 1.0, "0.0"),
    "cond true": (lambda x: lax.cond(x < 9, positive, lambda x: x, x), 1.0, -1.0, "-1.0"),
    "cond false": (lambda x: lax.cond(x > 9, lambda x: x, positive, x), 1.0, -1.0, "-1.0"),
    "cond not taken": (lambda x: lax.cond(x > 0, positive, lambda x: x, x), -1.0, -1.0, None),
    "cond of different checks": (
        lambda x: lax.cond(
            x > -5,
            lambda x: positive(x),
            lambda x: checkify.check(x > -9, "low {} {}", x, 7) or x,
            x,
        ),
        1.0,
        -10.0,
        "low -10.0 7",
    ),
    "switch 0": (switch_of(0), -1.0, -1.0, None),
    "switch 1": (switch_of(1), 1.0, -1.0, "-1.0"),
    "switch 2": (switch_of(2), 11.0, 1.0, "-9.0"),
    "switch above": (switch_of(5), 11.0, 1.0, "-9.0"),
    "while": (while_of, 5.0, 2.0, "0.0"),
    "while at once": (while_of, 5.0, -2.0, "-2.0"),
    "while condition": (while_condition, 5.0, 3.0, "0.0"),
    "while condition at once": (while_condition, 5.0, -3.0, "-3.0"),
    "scan": (scan_of, 5.0, 2.0, "0.0"),
    "scan backwards": (reverse_scan, 5.0, 0.5, "-1.5"),
    "map": (lambda x: lax.map(positive, x + jnp.arange(3.0)).sum(), 1.0, -1.0, "-1.0"),
    "nested": (nested, 5.0, 0.5, "-0.5"),
    "vmap": (lambda x: dt.vmap(positive)(x - jnp.arange(3.0)).sum(), 5.0, 1.0, "0.0"),
    "vmap of jit": (
        lambda x: dt.vmap(dt.jit(positive))(x - jnp.arange(3.0)).sum(),
        5.0,
        1.0,
        "0.0",
    ),
    "vmap of scan": (lambda x: dt.vmap(scan_of)(x - jnp.arange(2.0)).sum(), 9.0, 2.0, "0.0"),
    "jit of vmap": (
        dt.jit(lambda x: dt.vmap(positive)(x - jnp.arange(3.0)).sum()),
        5.0,
        1.0,
        "0.0",
    ),
    "grad": (dt.grad(positive), 1.0, -1.0, "-1.0"),
    "grad of jit": (dt.grad(dt.jit(positive)), 1.0, -1.0, "-1.0"),
    "grad of cond": (
        dt.grad(lambda x: lax.cond(x < 9, positive, lambda x: x, x)),
        1.0,
        -1.0,
        "-1.0",
    ),
    "grad of scan": (dt.grad(scan_of), 5.0, 2.0, "0.0"),
    "jvp of while": (lambda x: dt.jvp(while_of, (x,), (1.0,))[1], 5.0, 2.0, "0.0"),
    "hessian": (dt.hessian(positive), 1.0, -1.0, "-1.0"),
    "linearize": (lambda x: dt.linearize(positive, x)[1](2.0), 1.0, -1.0, "-1.0"),
    "vmap of grad": (
        lambda x: dt.vmap(dt.grad(positive))(x - jnp.arange(3.0)).sum(),
        5.0,
        1.0,
        "0.0",
    ),
    "checkpoint": (dt.checkpoint(positive), 1.0, -1.0, "-1.0"),
    "grad of checkpoint": (dt.grad(dt.checkpoint(positive)), 1.0, -1.0, "-1.0"),
    "custom_jvp": (custom_forward, 1.0, -1.0, "-1.0"),
    "jit of custom_jvp": (dt.jit(custom_forward), 1.0, -1.0, "-1.0"),
    "grad of custom_jvp": (dt.grad(custom_forward), 1.0, -1.0, "-1.0"),
    "vmap of custom_jvp": (
        lambda x: dt.vmap(custom_forward)(x - jnp.arange(3.0)).sum(),
        5.0,
        1.0,
        "0.0",
    ),
    "custom_vjp": (custom_backward, 1.0, -1.0, "-1.0"),
    "jit of custom_vjp": (dt.jit(custom_backward), 1.0, -1.0, "-1.0"),
    "grad of custom_vjp": (dt.grad(custom_backward), 1.0, -1.0, "-1.0"),
    "grad of jit of custom_vjp": (dt.grad(dt.jit(custom_backward)), 1.0, -1.0, "-1.0"),
    "checkify": (
        lambda x: checkify.check_error(checkify.checkify(positive)(x)[0]) or x,
        1.0,
        -1.0,
        "-1.0",
    ),
}

OUTSIDE = {
    "alone": lambda f, x: f(x),
    "jit": lambda f, x: dt.jit(f)(x),
    "jit of jit": lambda f, x: dt.jit(lambda x: dt.jit(f)(x))(x),
    "cond": lambda f, x: lax.cond(x < 99, f, f, x),
    "scan": lambda f, x: dt.tree.map(
        lambda y: y[0], lax.scan(lambda c, x: (c, f(x)), 0, x[None])[1]
    ),
    "vmap": lambda f, x: dt.tree.map(lambda y: y[0], dt.vmap(f)(x[None])),
    "grad": lambda f, x: dt.vjp(f, x)[0],
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("outside", ["alone", "jit"])
def test_checks_are_found_in(name, outside):
    function, fine, bad, expected = PROGRAMS[name]
    run = OUTSIDE[outside]
    error, out = run(checkify.checkify(function), jnp.array(fine))
    assert error.get() is None
    error, _ = run(checkify.checkify(function), jnp.array(bad))
    assert message(error) == expected
    # The result is that of the function without checks.
    unchecked, plain = checkify.checkify(function, frozenset())(jnp.array(fine))
    assert unchecked.get() is None
    np.testing.assert_allclose(out, plain, rtol=1e-6)


# A while loop has no derivative in reverse mode.
@pytest.mark.parametrize(
    ("outside", "name"),
    [
        (outside, name)
        for outside in OUTSIDE
        for name in ["plain", "cond true", "while", "scan", "vmap", "nested"]
        if (outside, name) != ("grad", "while")
    ],
)
def test_a_checked_function_in(outside, name):
    function, fine, bad, expected = PROGRAMS[name]
    for value, wanted in ((fine, None), (bad, expected)):
        error, _ = OUTSIDE[outside](checkify.checkify(function), jnp.array(value))
        assert message(error) == wanted


def test_derivatives_of_a_checked_function_are_those_of_the_function():
    for name in ("plain", "jit", "cond true", "scan", "vmap"):
        function, fine, _, _ = PROGRAMS[name]
        (value, error), slope = dt.value_and_grad(
            lambda x, f=function: checkify.checkify(f)(x)[::-1], has_aux=True
        )(fine)
        assert error.get() is None
        with dt.disable_jit():
            np.testing.assert_allclose(value, function(jnp.array(fine)), rtol=1e-6)
            np.testing.assert_allclose(slope, dt.grad(function)(fine), rtol=1e-6)


@pytest.mark.parametrize("function", [custom_forward, custom_backward], ids=["jvp", "vjp"])
@pytest.mark.parametrize("inner", [lambda f: f, dt.jit], ids=["live", "jit"])
@pytest.mark.parametrize("outer", [lambda f: f, dt.jit], ids=["eager", "jit"])
def test_derivatives_of_a_checked_function_follow_its_own_rule(function, inner, outer):
    checked = checkify.checkify(inner(function))
    run = outer(dt.value_and_grad(lambda x: checked(x)[::-1], has_aux=True))
    (value, error), slope = run(jnp.array(1.0))
    assert (float(value), float(slope), error.get()) == (0.0, 100.0, None)
    (_, error), _ = run(jnp.array(-1.0))
    assert message(error) == "-1.0"
    error, _ = outer(dt.vmap(checked))(jnp.array([1.0, -1.0]))
    assert "at mapped index 1: -1.0" in error.get()


def test_the_first_failure_in_time_is_reported():
    def turn(i, c):
        checkify.check(i < 3, "second {i}", i=i)
        checkify.check(c < 1, "first {i} {c}", i=i, c=c)
        return c + 1

    for outside in ("alone", "jit"):
        error, _ = OUTSIDE[outside](
            checkify.checkify(lambda c: lax.fori_loop(0, 9, turn, c)), jnp.array(-1)
        )
        assert message(error) == "first 2 1"


# vmap of branches and loops whose elements do different things


XS = jnp.array([1.0, -1.0, -2.0, 3.0])
CHOICES = {
    "none that fails": (lambda x: lax.cond(x > 0, positive, lambda x: x, x), None),
    "chosen": (lambda x: lax.cond(x > -1.5, positive, lambda x: x, x), "-1.0"),
    "last": (lambda x: lax.cond(x < -1.5, positive, lambda x: x, x), "-2.0"),
    "switch": (
        lambda x: lax.switch((x < -1.5).astype(int) + 1, [positive, lambda x: x, positive], x),
        "-2.0",
    ),
    "while": (
        lambda x: lax.while_loop(lambda c: c < 2, lambda c: (positive(c + 2.5), c + 1)[1], x),
        None,
    ),
    "while that fails": (
        lambda x: lax.while_loop(lambda c: c < 2, lambda c: (positive(c + 1.5), c + 1)[1], x),
        "-0.5",
    ),
    "while that is done": (
        # An element that is done must not fail by being computed on.
        lambda x: lax.while_loop(lambda c: c < 2, lambda c: (positive(3.5 - c), c + 1)[1], x),
        None,
    ),
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("inner", ["plain", "jit"])
def test_checks_speak_of_the_elements_whose_turn_it_is(name, inner):
    function, expected = CHOICES[name]
    if inner == "jit":
        function = dt.jit(function)
    inside, out = checkify.checkify(dt.vmap(function))(XS)
    assert message(inside) == expected
    outside, other = dt.vmap(checkify.checkify(function))(XS)
    if expected is None:
        assert outside.get() is None
    else:
        assert expected in outside.get()
    np.testing.assert_array_equal(out, other)


def test_debug_checks_stay_debug_checks_under_vmap():
    def f(x):
        def branch(x):
            checkify.debug_check(x > 0, "{x}", x=x)
            return x

        return lax.cond(x > -1.5, branch, lambda x: x, x)

    dt.jit(dt.vmap(f))(XS)
    assert message(checkify.checkify(dt.vmap(f))(XS)[0]) == "-1.0"


# Operations that are looked at

AUTOMATIC = {
    "jit": (dt.jit(jnp.log), "log"),
    "composite": (lax.composite(jnp.log, "a.log"), "log"),
    "cond": (lambda x: lax.cond(x < 9, jnp.log, lambda x: x, x), "log"),
    "scan": (lambda x: lax.scan(lambda c, _: (jnp.log(c), None), x, None, 2)[0], "log"),
    "while": (lambda x: lax.while_loop(lambda c: c < 9, lambda c: jnp.log(c) + 99, x), "log"),
    "vmap": (lambda x: dt.vmap(jnp.log)(x[None])[0], "log"),
    "grad": (dt.grad(lambda x: jnp.sqrt(x - x) * 0.0), "mul"),
    "transposed": (lambda x: dt.vjp(lambda y: y * jnp.inf, x)[1](x * 0)[0], "mul"),
}


@pytest.mark.parametrize("name", AUTOMATIC)
def test_nans_are_found_in(name):
    function, primitive = AUTOMATIC[name]
    for run in (OUTSIDE["alone"], OUTSIDE["jit"]):
        error, _ = run(checkify.checkify(function, checkify.nan_checks), jnp.array(-1.0))
        assert message(error) == f"nan generated by primitive: {primitive}"


def test_programs_without_checks_are_not_changed():
    def f(x):
        return lax.scan(lambda c, _: (dt.jit(jnp.sin)(c), None), x, None, 3)[0]

    plain = dt.make_jaxpr(f)(1.0)
    checked = dt.make_jaxpr(lambda x: checkify.checkify(f)(x)[1])(1.0)
    assert str(plain) == str(checked)
