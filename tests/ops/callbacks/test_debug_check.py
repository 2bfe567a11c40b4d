"""debug.check: checks that raise by themselves."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental import checkify


class Unphysical(Exception):
    """A type of the user's own."""


def positive(x):
    dt.debug.check(x > 0, "{x} is not positive", x=x, error=Unphysical)
    return jnp.log(x)


def run(function, *args):
    """Call, and read the results."""
    out = dt.block_until_ready(function(*args))
    dt.effects_barrier()
    return out


def scan_of(x):
    return lax.scan(lambda c, _: (c - 1, positive(c)), x, None, length=3)[0]


def while_of(x):
    return lax.while_loop(lambda c: c > -1, lambda c: c - 1 + 0 * positive(c), x)


XS = jnp.array([5.0, -1.0, -2.0])
# Function, argument that is fine, argument that is not, and the value that the message has.
PROGRAMS = {
    "eager": (positive, 1.0, -1.0, "-1.0"),
    "jit": (dt.jit(positive), 1.0, -1.0, "-1.0"),
    "jit of jit": (dt.jit(lambda x: dt.jit(positive)(x) + 1), 1.0, -1.0, "-1.0"),
    "cond": (lambda x: lax.cond(x < 9, positive, lambda x: x, x), 1.0, -1.0, "-1.0"),
    "switch": (lambda x: lax.switch(1, [lambda x: x, positive], x), 1.0, -1.0, "-1.0"),
    "scan": (scan_of, 5.0, 2.0, "0.0"),
    "jit of scan": (dt.jit(scan_of), 5.0, 2.0, "0.0"),
    "while": (while_of, -5.0, 1.0, "0.0"),
    "vmap": (lambda x: dt.vmap(positive)(x + XS), 9.0, 0.0, "-1.0"),
    "jit of vmap": (dt.jit(lambda x: dt.vmap(positive)(x + XS)), 9.0, 0.0, "-1.0"),
    "vmap of scan": (lambda x: dt.vmap(scan_of)(x + XS), 9.0, 2.5, "-0.5"),
    "grad": (dt.grad(positive), 1.0, -1.0, "-1.0"),
    "jit of grad": (dt.jit(dt.grad(positive)), 1.0, -1.0, "-1.0"),
    "grad of jit": (dt.grad(dt.jit(positive)), 1.0, -1.0, "-1.0"),
    "grad of scan": (dt.grad(scan_of), 5.0, 2.0, "0.0"),
    "jvp": (lambda x: dt.jvp(positive, (x,), (x,)), 1.0, -1.0, "-1.0"),
    "checkpoint": (dt.grad(dt.checkpoint(positive)), 1.0, -1.0, "-1.0"),
    "vmap of a choice": (
        dt.jit(lambda x: dt.vmap(lambda y: lax.cond(y > x, positive, lambda y: y, y))(XS)),
        0.0,
        -1.5,
        "-1.0",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_checks_raise_in(name):
    function, fine, bad, value = PROGRAMS[name]
    run(function, jnp.array(fine))
    for _ in range(2):  # also when the program is there
        with pytest.raises(Unphysical) as caught:
            run(function, jnp.array(bad))
        assert str(caught.value).startswith(f"{value} is not positive")
    run(function, jnp.array(fine))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_of_the_user_is_named(name):
    function, _, bad, _ = PROGRAMS[name]
    line = inspect.getsourcelines(positive)[1] + 1
    with pytest.raises(Unphysical, match=rf"test_debug_check\.py:{line} \(positive\)"):
        run(function, jnp.array(bad))


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_the_option_nothing_is_left_of_a_check(name):
    function, _, bad, _ = PROGRAMS[name]
    with dt.debug_checks(False):
        run(function, jnp.array(bad))
        assert "check" not in str(dt.make_jaxpr(function)(bad))
        jaxpr = dt.make_jaxpr(function)(bad)
        assert not jaxpr.effects
        assert "custom_call" not in dt.jit(function).lower(bad).as_text()
    assert "check" in str(dt.make_jaxpr(function)(bad))


def test_the_type_of_the_exception_is_a_value_error_by_default():
    def f(x):
        dt.debug.check(x > 0, "no")
        return x

    for g in (f, dt.jit(f)):
        with pytest.raises(ValueError, match="no"):
            run(g, jnp.array(-1))


def test_messages():
    def f(x):
        dt.debug.check(x.sum() < 0, "{} {x:.1f} {t[a]}", 1, x=x, t={"a": x[0]})

    for g in (f, dt.jit(f)):
        with pytest.raises(ValueError, match=r"^1 \[1.0 2.0\] 1.0 \(`check` failed at test_debug"):
            run(g, jnp.array([1.0, 2.0]))


def test_checks_without_results_are_run():
    def f(x):
        dt.debug.check(x > 0, "no")

    dt.jit(f)(1)
    with pytest.raises(ValueError, match="no"):
        run(dt.jit(f), -1)


def test_under_checkify_the_failure_is_a_result():
    for f in (positive, dt.jit(positive)):
        error, _ = dt.jit(checkify.checkify(f))(-1.0)
        assert error.get().startswith("-1.0 is not positive")
        with pytest.raises(Unphysical):
            error.throw()
        # Where checkify looks for something else the check raises as ever.
        with pytest.raises(Unphysical):
            run(dt.jit(checkify.checkify(f, checkify.nan_checks)), -1.0)


def test_both_kinds_of_checks_in_a_branch():
    def branch(x):
        dt.debug.check(x < 9, "large", error=Unphysical)
        checkify.debug_check(x > 0, "small")
        return x

    def f(x):
        return dt.vmap(lambda x: lax.cond(x > -1.5, branch, lambda x: x, x))(x)

    for g in (f, dt.jit(f)):
        run(g, jnp.array([1.0, -1.0, -2.0]))
        with pytest.raises(Unphysical, match="large"):
            run(g, jnp.array([1.0, 10.0, -2.0]))
    assert checkify.checkify(f)(jnp.array([1.0, -1.0]))[0].get().startswith("small")


MISTAKES = {
    "vector": (lambda: dt.debug.check(XS > 0, "no"), TypeError, "debug.check: .* scalar bool"),
    "type": (lambda: dt.debug.check(True, "no", error="x"), TypeError, "type of exceptions"),
    "no exception": (lambda: dt.debug.check(True, "no", error=int), TypeError, "of exceptions"),
    "message": (lambda: dt.debug.check(True, 3), TypeError, "message must be a string"),
    "field": (lambda: dt.debug.check(True, "{y}", x=1), ValueError, "add y="),
    "value": (lambda: dt.debug.check(True, "{x}", x="a"), TypeError, r"\['x'\].*got str"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    function, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        function()


def test_results_are_those_without_checks():
    for function, fine, _, _ in PROGRAMS.values():
        # Results of programs, as with checks: what has none is rounded differently.
        with dt.debug_checks(False), dt.direct_calls("eager"):
            expected = dt.tree.map(np.asarray, run(function, jnp.array(fine)))
        dt.tree.map(np.testing.assert_array_equal, run(function, jnp.array(fine)), expected)
