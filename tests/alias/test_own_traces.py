"""Traces of a library's own, written to JAX's protocol."""

from __future__ import annotations

from textwrap import dedent

import pytest
from tests.alias.test_as_jax import under_alias

# A trace that doubles what `sin` gives, and passes everything else on.
DOUBLING = dedent("""
    import jax, jax.numpy as jnp, numpy as np
    import jax.extend.linear_util as lu
    from jax import lax
    from jax._src import core
    from jax.extend.core import set_current_trace, take_current_trace
    from jax.extend.core.primitives import sin_p

    class Tracer(core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, jax.typeof(value))
            self.value = value

        def full_lower(self):
            return core.full_lower(self.value)

    class Trace(core.Trace):
        def __init__(self, parent):
            super().__init__()
            self.parent_trace = parent

        def value(self, x):
            return x.value if isinstance(x, Tracer) and x._trace is self else x

        def process_primitive(self, primitive, tracers, params):
            seen.append(str(primitive))
            values = [self.value(t) for t in tracers]
            avals = [jax.typeof(t) for t in tracers]
            out = primitive.bind_with_trace(self.parent_trace, values, avals, params)
            if primitive is sin_p:
                with set_current_trace(self.parent_trace):
                    out = 2 * out
            return jax.tree.map(lambda o: Tracer(self, o), out)

        def handed_on(self, primitive, functions, tracers, **params):
            seen.append(str(primitive))
            values = [self.value(t) for t in tracers]
            avals = [jax.typeof(v) for v in values]
            params["subfuns"] = functions
            outs = primitive.bind_with_trace(self.parent_trace, values, avals, params)
            return [Tracer(self, out) for out in outs]

        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            functions = (doubling(fun), doubling(jvp))
            return self.handed_on(primitive, functions, tracers, symbolic_zeros=symbolic_zeros)

        def process_custom_vjp_call(
            self, primitive, fun, fwd, bwd, tracers, out_trees, symbolic_zeros
        ):
            functions = (doubling(fun), doubling(fwd), doubling(bwd))
            return self.handed_on(
                primitive, functions, tracers, out_trees=out_trees, symbolic_zeros=symbolic_zeros
            )

    @lu.transformation2
    def doubling(call, *args):
        return doubled(call)(*args)

    def doubled(function):
        def run(*args):
            with take_current_trace() as parent:
                trace = Trace(parent)
                with set_current_trace(trace):
                    tracers = [a if type(a) is bool else Tracer(trace, a) for a in args]
                    results = function(*tracers)
                return jax.tree.map(trace.value, results)
        return run

    @jax.custom_jvp
    def with_jvp(x): return jnp.sin(x)
    with_jvp.defjvp(lambda p, t: (jnp.sin(p[0]), t[0] * 5 * jnp.sin(p[0])))

    @jax.custom_vjp
    def with_vjp(x): return jnp.sin(x)
    with_vjp.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * 5 * jnp.sin(x),))

    seen = []
    x = jnp.arange(1.0, 4.0)
    sin, cos = np.sin(np.arange(1.0, 4.0)), np.cos(np.arange(1.0, 4.0))
    def close(got, expected): np.testing.assert_allclose(got, expected, rtol=1e-6)
    """)

PROGRAMS = {
    "values": """
        close(doubled(lambda x: jnp.sin(x) * 3 + x)(x), 6 * sin + np.asarray(x))
        assert seen == ["sin", "mul", "add"], seen
        close(doubled(doubled(jnp.sin))(x), 4 * sin)
        assert isinstance(core.full_lower(Tracer(Trace(None), x)), jax.Array)
        """,
    "transformations_around": """
        f = doubled(jnp.sin)
        close(jax.jit(f)(x), 2 * sin)
        close(jax.vmap(f)(x), 2 * sin)
        close(jax.grad(lambda x: f(x).sum())(x), 2 * cos)
        close(jax.jvp(f, (x,), (x,))[1], 2 * cos * np.asarray(x))
        close(jax.lax.scan(lambda c, y: (c + f(y), c), 0.0, x)[0], 2 * sin.sum())
        close(jax.lax.cond(x[0] > 0, f, jnp.cos, x), 2 * sin)
        close(jax.jit(jax.grad(jax.checkpoint(lambda x: f(x).sum())))(x), 2 * cos)
        """,
    "transformations_inside": """
        # The derivative is taken of the sine that JAX knows; the cosine is the parent's.
        close(doubled(jax.grad(lambda x: jnp.sin(x).sum()))(x), cos)
        close(doubled(jax.vmap(jnp.sin))(x), 2 * sin)
        # What is a program is one primitive, whose body runs in the parent.
        for program in (
            jax.jit(jnp.sin),
            lambda x: lax.map(jnp.sin, x),
            lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
        ):
            close(doubled(program)(x), sin)
        assert {"jit", "scan", "cond"} <= set(seen)
        """,
    "functions_with_rules": """
        for f, name in ((with_jvp, "custom_jvp_call"), (with_vjp, "custom_vjp_call")):
            seen.clear()
            close(doubled(f)(x), 2 * sin)
            assert seen == [name, "sin"], seen
            close(jax.jit(doubled(f))(x), 2 * sin)
            close(jax.vmap(doubled(f))(x), 2 * sin)
            # The rule is doubled, too.
            gradient = jax.grad(lambda x: doubled(f)(x).sum())
            for call in (gradient, jax.jit(gradient), jax.vmap(jax.grad(doubled(f)))):
                close(call(x), 10 * sin)
            # So it is where the trace meets the call in a program.
            jaxpr = jax.make_jaxpr(lambda x: f(x) + jnp.asarray([1.0, 2, 3]))(x)
            close(doubled(core.jaxpr_as_fun(jaxpr))(x)[0], 2 * sin + [1, 2, 3])
        """,
    "functions_with_rules_that_take_zeros": """
        @jax.custom_jvp
        def f(x, y): return x * jnp.sin(y)
        def rule(primals, tangents):
            kinds.append([type(t).__name__ for t in tangents])
            return f(*primals), tangents[0] * 7
        f.defjvp(rule, symbolic_zeros=True)
        kinds = []
        class Dropping(Trace):
            def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
                assert symbolic_zeros
                return self.handed_on(primitive, (fun, jvp), tracers, symbolic_zeros=True)
        def run(x, y):
            with take_current_trace() as parent:
                trace = Dropping(parent)
                with set_current_trace(trace):
                    return trace.value(f(Tracer(trace, x), Tracer(trace, y)))
        close(jax.grad(run)(2.0, 1.0), 7)
        assert kinds[0][1] == "SymbolicZero"
        """,
    "loops_say_what_they_carry_as_jax_does": """
        class Reading(Trace):
            def process_primitive(self, primitive, tracers, params):
                if str(primitive) != "scan":
                    return super().process_primitive(primitive, tracers, params)
                values = [self.value(t) for t in tracers]
                groups = params["ft_in"].update(values).unpack()
                sizes.append([len(group.vals) for group in groups])
                with set_current_trace(self.parent_trace):
                    outs = primitive.bind(*values, **params)
                return [Tracer(self, out) for out in outs]
        sizes = []
        def loop(c, x): return lax.scan(lambda t, e: (t + c * e, t), 0.0, x)
        two = jnp.float32(2)
        with take_current_trace() as parent:
            trace = Reading(parent)
            with set_current_trace(trace):
                total, before = loop(Tracer(trace, two), Tracer(trace, x))
        assert sizes == [[1, 1, 1]] and trace.value(total) == 12
        assert trace.value(before).tolist() == [0, 2, 6]
        """,
    "what_a_trace_lacks_is_named": """
        class Bare(core.Trace): pass
        for call, name in (
            (jnp.sin, "process_primitive"),
            (with_jvp, "process_custom_jvp_call"),
            (with_vjp, "process_custom_vjp_call"),
        ):
            try:
                with set_current_trace(Bare()): call(x)
            except NotImplementedError as error:
                assert f"Bare has to override {name}" in str(error), error
            else:
                raise AssertionError
        assert jnp.sin(x).shape == (3,)
        trace = Bare()
        assert isinstance(trace, core.Trace) and trace.is_valid()
        assert isinstance(trace.parent, core.Trace) and not isinstance(trace.parent, Bare)
        assert issubclass(type(trace.parent), core.Trace) and not issubclass(Trace, Bare)
        trace.invalidate()
        assert not trace.is_valid() and trace.full_raise(x) is x
        """,
    "references": """
        def f(x):
            ref = jax.new_ref(x)
            def write(y): ref[...] = y
            try:
                doubled(write)(x)
            except ValueError as error:
                assert "a value of Trace" in str(error)
            return doubled(lambda y: y + ref[...])(x)
        assert jax.jit(f)(x).tolist() == [2, 4, 6]
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    under_alias(DOUBLING + dedent(PROGRAMS[name]))
