"""A primitive of a plug-in's author that holds a program takes part in everything.

It is made with public names alone: those of `dovetail.extend`.
"""

from __future__ import annotations

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.ad_checkpoint import checkpoint_name, saved_residuals
from dovetail.core import eval_jaxpr
from dovetail.experimental import checkify
from dovetail.extend import Literal, Primitive, Wanted, dce_call, evaluate


def _function(closed):
    """The function that a jaxpr is, as operations that can be transformed."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


def _dependencies(flags, *, jaxpr, **params):
    """Which results of a jaxpr depend on flagged arguments, equation by equation."""
    found = {v for v, flag in zip(jaxpr.jaxpr.invars, flags, strict=True) if flag}
    for eqn in jaxpr.jaxpr.eqns:
        if any(not isinstance(v, Literal) and v in found for v in eqn.invars):
            found.update(eqn.outvars)
    return [not isinstance(v, Literal) and v in found for v in jaxpr.jaxpr.outvars]


def _primitive(name, **attributes):
    made = Primitive(name, multiple_results=True, generates_nan=False, **attributes)
    made.define("abstract", lambda *avals, jaxpr, hint: jaxpr.out_avals)
    made.define("effects", lambda *avals, jaxpr, hint: jaxpr.effects)
    made.define("dependencies", _dependencies)
    made.define("dce", dce_call)

    @made.define("reference")
    def reference(*args, jaxpr, hint):
        return evaluate(jaxpr, args, platform="cpu")

    @made.define("jvp")
    def jvp(primals, tangents, *, jaxpr, hint):
        def both(primals, tangents):
            return dt.jvp(_function(jaxpr), primals, tangents)

        derived = dt.make_jaxpr(both)(tuple(primals), tuple(tangents))
        outs = made.bind(*primals, *tangents, jaxpr=derived, hint=hint)
        return outs[: len(outs) // 2], outs[len(outs) // 2 :]

    @made.define("batch")
    def batch(args, dims, *, jaxpr, hint):
        outs = dt.vmap(_function(jaxpr), in_axes=tuple(dims))(*args)
        return outs, [0] * len(outs)

    @made.define("lower")
    def lower(context, *values, jaxpr, hint):
        return context.call_jaxpr(jaxpr, values, name)

    @made.define("check")
    def check(checks, *args, jaxpr, hint):
        return checks.evaluate(jaxpr, args)

    return made


call = _primitive("acme_call", is_call=True, shown_params={"hint": lambda value: value is not None})
#: A primitive that is no call, since its author wants it to stay in the program as it is.
region = _primitive("acme_region")
PRIMITIVES = pytest.mark.parametrize("primitive", [call, region], ids=repr)


def _apply(primitive, function, *args, hint=None):
    closed = dt.make_jaxpr(function)(*args)
    return primitive.bind(*args, jaxpr=closed, hint=hint)


@PRIMITIVES
def test_results_and_derivatives(primitive):
    def f(x):
        a, b = _apply(primitive, lambda x: (jnp.sin(x), x * x), x)
        return a + b

    x = 0.5
    expected, slope = np.sin(x) + x * x, np.cos(x) + 2 * x
    np.testing.assert_allclose(f(x), expected, rtol=1e-6)
    np.testing.assert_allclose(dt.jit(f)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(dt.jvp(f, (x,), (1.0,)), (expected, slope), rtol=1e-6)
    np.testing.assert_allclose(dt.jit(dt.jacfwd(f))(x), slope, rtol=1e-6)
    np.testing.assert_allclose(
        primitive.reference(np.float32(x), jaxpr=dt.make_jaxpr(jnp.sin)(x), hint=None),
        [np.sin(x)],
        rtol=1e-6,
    )


@PRIMITIVES
def test_dead_code_inside_is_removed(primitive):
    def f(x):
        return _apply(primitive, lambda x: (jnp.sin(x), jnp.cos(x)), x)[0]

    text = dt.jit(f).lower(1.0).as_text()
    assert "sine" in text
    assert "cosine" not in text


@PRIMITIVES
def test_effects_inside_stay(primitive):
    seen = []

    def inner(x):
        dt.debug.callback(seen.append, x)
        return [jnp.sin(x)]

    @dt.jit
    def f(x):
        _apply(primitive, inner, x)
        return x

    f(2.0)
    dt.effects_barrier()
    assert seen == [2.0]


def test_a_rule_for_dead_code_of_its_own():
    wanted = []
    pair = _primitive("acme_pair")

    @pair.define("dce")
    def dce(eqn, used):
        wanted.append(list(used))
        everything = Wanted(eqn.params["jaxpr"], (True, True), (True,))
        reduced, kept = yield everything
        assert kept == [True]
        return eqn.replace(params={**eqn.params, "jaxpr": reduced})

    def f(x):
        return _apply(pair, lambda x: (jnp.sin(x), jnp.cos(x)), x)[0]

    text = dt.jit(f).lower(1.0).as_text()
    assert wanted
    assert set(map(tuple, wanted)) == {(True, False)}
    assert "cosine" in text


@PRIMITIVES
def test_checks_find_what_fails_inside(primitive):
    def f(x):
        return _apply(primitive, lambda x: [jnp.log(x), lax.div(1.0, x)], x)

    for transformed in (f, dt.jit(f)):
        error, _ = checkify.checkify(transformed, checkify.nan_checks)(-1.0)
        assert "nan generated by primitive: log" in error.get()
        error, _ = checkify.checkify(transformed, checkify.div_checks)(0.0)
        assert "division by zero" in error.get()
        error, _ = checkify.checkify(transformed, checkify.float_checks)(1.0)
        assert error.get() is None


def test_results_are_looked_at_where_nothing_is_said():
    opaque = Primitive("acme_log")
    opaque.define("abstract", lambda x: x)
    opaque.define("lower", lambda context, x: context.op("log", (x,), context.avals_out[0]))
    error, _ = checkify.checkify(dt.jit(opaque.bind), checkify.nan_checks)(-1.0)
    assert "nan generated by primitive: acme_log" in error.get()


@PRIMITIVES
def test_the_body_is_printed(primitive):
    def f(x):
        return _apply(primitive, lambda x: [jnp.sin(x)], x)

    text = " ".join(str(dt.make_jaxpr(f)(1.0)).split())
    assert "sin" in text
    assert f"{primitive}[" in text
    assert ("hint" in text) == (primitive is region)
    assert "hint=7" in str(dt.make_jaxpr(lambda x: _apply(primitive, jnp.sin, x, hint=7))(1.0))


@PRIMITIVES
def test_policies_of_checkpoint_see_into_calls_alone(primitive):
    def inner(x):
        return [2.0 * checkpoint_name(jnp.exp(x), "inner")]

    def f(x):
        return jnp.sin(_apply(primitive, inner, x)[0])

    policy = dt.checkpoint_policies.save_only_these_names("inner")
    sources = [source for _, source in saved_residuals(dt.checkpoint(f, policy=policy), 1.0)]
    assert any("named 'inner'" in source for source in sources) == (primitive is call)
