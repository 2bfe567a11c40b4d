"""Checkpointed functions: the same values and derivatives, and less memory between the two."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.base.source import user_frame
from dovetail._core.ir.walk import all_equations, all_jaxprs, count_equations
from dovetail.ad_checkpoint import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint_name,
    checkpoint_name_fwd,
    checkpoint_policies,
    name_p,
    saved_residuals,
)
from dovetail.lax import conv_general_dilated_p, cos_p, dot_general_p, sin_p

pytestmark = pytest.mark.laws

Function = Callable[..., Any]

MATRIX = np.linspace(-0.5, 0.7, 9, dtype=np.float32).reshape(3, 3)
ARRAY = jnp.linspace(0.1, 0.6, 3)


def named(x: Any) -> Any:
    y = checkpoint_name(jnp.sin(x), "y")
    return jnp.cos(checkpoint_name(MATRIX @ y, "z")) * y


def looped(x: Any) -> Any:
    def body(carry: Any, element: Any) -> Any:
        carry = jnp.sin(carry * element + x)
        return carry, carry * element

    carry, ys = lax.scan(body, x, jnp.arange(1.0, 4.0))
    return carry + ys.sum()


def looped_names(x: Any) -> Any:
    def inner(carry: Any, element: Any) -> Any:
        carry = checkpoint_name(jnp.cos(carry * element), "z")
        return carry, carry * x

    def body(carry: Any, element: Any) -> Any:
        y = checkpoint_name(dt.jit(jnp.sin)(MATRIX @ carry[0]), "y")
        z, zs = lax.scan(inner, y * element, jnp.arange(2.0))
        return (y + z, carry[1] + 1), (y, jnp.exp(zs), z * element)

    (carry, _), ys = lax.scan(body, (x, 0), jnp.arange(1.0, 4.0), reverse=True)
    return carry + sum(y.sum() for y in ys)


def branching(x: Any) -> Any:
    return lax.cond(jnp.sum(x) > 0, lambda v: jnp.sin(v) * v, jnp.cos, x)


def branching_names(x: Any) -> Any:
    def first(v: Any) -> Any:
        y = checkpoint_name(dt.jit(jnp.sin)(MATRIX @ v), "y")
        return jnp.exp(y) * v, y

    def second(v: Any) -> Any:
        z = checkpoint_name(jnp.cos(v), "z")
        return checkpoint_name(MATRIX @ z, "y") * x, z

    def third(v: Any) -> Any:
        return v, lax.cond(v[1] > 0, first, second, v)[0]

    a, b = lax.cond(x[0] > 0, first, second, x)
    c, d = lax.switch(b.astype(int)[2] + 1, [second, third, first], a)
    return c * b + d


def repeated(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 1.5 + x), (0, x))[1]


def tree(x: Any) -> Any:
    made = dt.checkpoint(lambda d: {"c": d["a"] * d["b"][0], "d": (jnp.exp(d["a"]),)})(
        {"a": x, "b": [jnp.cos(x)]}
    )
    return made["c"] + made["d"][0]


def closing(x: Any) -> Any:
    y = jnp.sin(x)
    return dt.checkpoint(lambda z: jnp.cos(z * y) + ARRAY * MATRIX[0])(x)


# Functions of a vector of three; the derivatives of the last in reverse mode do not exist.
FUNCTIONS: dict[str, Function] = {
    "elementwise": lambda x: jnp.sin(jnp.sin(x) * 2.0) + x,
    "matrix": lambda x: jnp.tanh(MATRIX @ jnp.tanh(MATRIX @ x)),
    "named": named,
    "jit": lambda x: dt.jit(jnp.sin)(dt.jit(named)(x)),
    "scan": looped,
    "scan of names": looped_names,
    "scan of checkpoint": lambda x: lax.scan(
        dt.checkpoint(lambda c, e: (jnp.sin(c) * e, jnp.cos(c))), x, jnp.arange(1.0, 4.0)
    )[0],
    "cond": branching,
    "cond of names": branching_names,
    "cond of checkpoint": lambda x: lax.cond(x[0] > 0, dt.checkpoint(named), jnp.cos, x),
    "nested": lambda x: dt.checkpoint(lambda y: dt.checkpoint(named)(jnp.sin(y)) * y)(x),
    "vmap": lambda x: dt.vmap(lambda e: jnp.sin(e) * x[0])(x),
    "grad": lambda x: dt.grad(lambda v: jnp.sum(named(v)))(x),
    "identity": lambda x: x,
    "constant": lambda x: jnp.ones(3) * 2.0,
    "partly constant": lambda x: (x * jnp.arange(3) + MATRIX[0]).at[0].set(1.0),
    "pytree": tree,
    "closing": closing,
    "integers": lambda x: x * jnp.floor(x).astype(int) + jnp.argmax(x),
}
POLICIES: dict[str, Any] = {
    "none": None,
    "everything": checkpoint_policies.everything_saveable,
    "nothing": checkpoint_policies.nothing_saveable,
    "dots": checkpoint_policies.dots_saveable,
    "no batch dims": checkpoint_policies.dots_with_no_batch_dims_saveable,
    "except y": checkpoint_policies.save_anything_except_these_names("y"),
    "any but y": checkpoint_policies.save_any_names_but_these("y"),
    "only y": checkpoint_policies.save_only_these_names("y"),
    "both": checkpoint_policies.save_from_both_policies(
        checkpoint_policies.dots_saveable, checkpoint_policies.save_only_these_names("y")
    ),
    "offload y": checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["z"],
        names_which_can_be_offloaded=["y"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
    "offload dots": checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
    "types": lambda prim, *_, **__: Saveable if prim is sin_p else Recompute,
}


def total(f: Function) -> Function:
    return lambda x: jnp.sum(f(x) * jnp.arange(1.0, 4.0))


def value_of_vjp(f: Function) -> Function:
    def function(x: Any) -> Any:
        y, pullback = dt.vjp(f, x)
        return y, pullback(jnp.cos(y))

    return function


def value_of_linearize(f: Function) -> Function:
    def function(x: Any) -> Any:
        y, linear = dt.linearize(f, x)
        return y, linear(jnp.ones(3)), linear(jnp.arange(3.0))

    return function


LAWS: dict[str, Callable[[Function], Function]] = {
    "value": lambda f: f,
    "jit": dt.jit,
    "grad": lambda f: dt.grad(total(f)),
    "value and grad": lambda f: dt.value_and_grad(total(f)),
    "jit of grad": lambda f: dt.jit(dt.grad(total(f))),
    "vjp": value_of_vjp,
    "linearize": value_of_linearize,
    "jit of linearize": lambda f: dt.jit(value_of_linearize(f)),
    "jvp": lambda f: lambda x: dt.jvp(f, (x,), (jnp.arange(3.0),)),
    "Jacobian forwards": dt.jacfwd,
    "Jacobian backwards": dt.jacrev,
    "Hessian": lambda f: dt.hessian(total(f)),
    "reverse over reverse": lambda f: dt.jit(dt.jacrev(dt.grad(total(f)))),
    "third order": lambda f: dt.jit(dt.grad(lambda x: jnp.sum(jnp.sin(dt.hessian(total(f))(x))))),
    "vmap": lambda f: lambda x: dt.vmap(f)(jnp.stack([x, 2 * x])),
    "vmap of grad": lambda f: lambda x: dt.vmap(dt.grad(total(f)))(jnp.stack([x, 2 * x])),
    "grad of vmap": lambda f: (
        lambda x: dt.grad(lambda v: jnp.sum(dt.vmap(total(f))(jnp.stack([v, 2 * v]))))(x)
    ),
    "grad of scan": lambda f: dt.grad(
        lambda x: jnp.sum(lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])
    ),
    "grad of cond": lambda f: dt.grad(lambda x: jnp.sum(lax.cond(x[0] < 1, f, lambda v: v, x))),
}


@functools.cache
def without_checkpoints(name: str, law: str) -> Any:
    """What a transformation makes of a function without checkpoints."""
    return LAWS[law](FUNCTIONS[name])(ARRAY)


def check_equal(found: Any, expected: Any, tolerance: float = 2e-4) -> None:
    found, expected = dt.tree.leaves(found), dt.tree.leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


class TestCheckpointLeavesAFunctionWhatItIs:
    @pytest.mark.parametrize("law", LAWS)
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_for_every_function(self, name: str, law: str) -> None:
        again = dt.checkpoint(FUNCTIONS[name])
        check_equal(LAWS[law](again)(ARRAY), without_checkpoints(name, law))

    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize(
        "law", ["value", "linearize", "jit of grad", "Hessian", "vmap of grad"]
    )
    @pytest.mark.parametrize(
        "name",
        ["named", "jit", "scan", "scan of names", "nested", "cond", "cond of names", "closing"],
    )
    def test_for_every_policy(self, name: str, law: str, policy: str) -> None:
        again = dt.checkpoint(FUNCTIONS[name], policy=POLICIES[policy])
        check_equal(LAWS[law](again)(ARRAY), without_checkpoints(name, law))

    @pytest.mark.parametrize("policy", POLICIES)
    def test_of_branches_in_loops_for_every_policy(self, policy: str) -> None:
        def f(x: Any) -> Any:
            def body(c: Any, e: Any) -> Any:
                return branching_names(c * e), branching_names(c + e)

            return lax.scan(body, x, jnp.arange(-1.0, 2.0))[1].sum(0)

        again = dt.checkpoint(f, policy=POLICIES[policy])
        gradients = [dt.jit(dt.grad(total(g)))(ARRAY) for g in (again, f)]
        check_equal(*gradients)

    @pytest.mark.parametrize("prevent_cse", [True, False, [True], [False], ([True],)])
    @pytest.mark.parametrize("law", LAWS)
    def test_whatever_the_compiler_may_do(self, law: str, prevent_cse: Any) -> None:
        again = dt.checkpoint(named, prevent_cse=prevent_cse)
        if prevent_cse == ([True],):
            again = lambda x: dt.checkpoint(lambda xs: named(xs[0]), prevent_cse=prevent_cse)([x])
        check_equal(LAWS[law](again)(ARRAY), without_checkpoints("named", law))

    def test_loops_of_unknown_length_forwards(self) -> None:
        for transform in (LAWS["value"], LAWS["jvp"], LAWS["vmap"], dt.jacfwd):
            check_equal(transform(dt.checkpoint(repeated))(ARRAY), transform(repeated)(ARRAY))
        with pytest.raises(ValueError, match="while_loop"):
            dt.grad(total(dt.checkpoint(repeated)))(ARRAY)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int32"])
    def test_dtypes(self, dtype: str) -> None:
        x = jnp.arange(3).astype(dtype)
        f = lambda x: (x * x, x + 1)
        check_equal(dt.checkpoint(f)(x), f(x))
        if dtype != "int32":
            pullbacks = [dt.vjp(g, x)[1]((x, x)) for g in (f, dt.checkpoint(f))]
            check_equal(*pullbacks)

    @pytest.mark.parametrize("value", [2.0, 3, True, np.float32(2), np.arange(3), 1j])
    def test_results_are_arrays(self, value: Any) -> None:
        for f in (lambda x: x, lambda x: value, lambda x: (x, [value])):
            found = dt.checkpoint(f)(value)
            expected = dt.jit(f)(value)
            check_equal(found, expected)
            for a, b in zip(dt.tree.leaves(found), dt.tree.leaves(expected), strict=True):
                assert isinstance(a, dt.Array)
                assert dt.typeof(a) == dt.typeof(b)

    def test_integers_and_keys_are_carried_through(self) -> None:
        def f(x: Any, n: Any, key: Any) -> Any:
            return jnp.sum(x**n * dt.random.normal(key, (3,)))

        key = dt.random.key(0)
        check_equal(dt.grad(dt.checkpoint(f))(ARRAY, 3, key), dt.grad(f)(ARRAY, 3, key))

    def test_transposition_of_a_linear_function(self) -> None:
        f = dt.checkpoint(lambda x: (MATRIX @ x) * 2.0)
        (found,) = dt.linear_transpose(f, ARRAY)(ARRAY)
        check_equal(found, 2.0 * MATRIX.T @ ARRAY)

    def test_deep_nesting(self) -> None:
        f: Function = jnp.sin
        for _ in range(20):
            f = functools.partial(lambda g, x: jnp.cos(dt.checkpoint(g)(x)), f)
        plain: Function = jnp.sin
        for _ in range(20):
            plain = functools.partial(lambda g, x: jnp.cos(g(x)), plain)
        for transform in (dt.grad, lambda f: dt.jit(dt.grad(dt.grad(f)))):
            check_equal(transform(f)(0.5), transform(plain)(0.5))

    def test_it_is_traced_once(self) -> None:
        count = 0

        def f(x: Any) -> Any:
            nonlocal count
            count += 1
            return jnp.sin(x)

        g = dt.checkpoint(f)
        for _ in range(3):
            g(1.0)
            dt.grad(g)(1.0)
            dt.jit(dt.grad(lambda x: g(g(x))))(1.0)
            dt.checkpoint(f)(2.0)
        assert count == 1
        g(ARRAY)
        assert count == 2

    def test_it_is_traced_anew_where_it_captured_a_tracer(self) -> None:
        captured: list[Any] = []
        g = dt.checkpoint(lambda x: x * captured[-1])

        def h(x: Any, y: Any) -> Any:
            captured.append(y)
            return g(x)

        for _ in range(2):
            assert float(dt.grad(h, 1)(2.0, 3.0)) == 2.0
            assert float(dt.jit(h)(2.0, 4.0)) == 8.0

    def test_signature_and_name(self) -> None:
        f = dt.checkpoint(named)
        assert f.__name__ == "named"
        assert inspect.signature(f) == inspect.signature(named)
        assert dt.remat is dt.checkpoint


class TestStaticArguments:
    @pytest.mark.parametrize(
        ("options", "args", "kwargs"),
        [
            ({"static_argnums": 1}, (2.0, 3), {}),
            ({"static_argnums": (1,)}, (2.0, 3), {}),
            ({"static_argnums": -1}, (2.0, 3), {}),
            ({"static_argnums": [1]}, (2.0,), {"n": 3}),
            ({"static_argnames": "n"}, (2.0,), {"n": 3}),
            ({"static_argnames": ["n"]}, (2.0, 3), {}),
            ({"static_argnums": 1, "static_argnames": "n"}, (2.0,), {"n": 3}),
            ({"static_argnums": 1}, (2.0,), {}),
        ],
    )
    def test_they_decide_what_is_done(self, options: Any, args: Any, kwargs: Any) -> None:
        def power(x: Any, n: int = 3) -> Any:
            return x * power(x, n - 1) if n > 0 else 1.0

        f = dt.checkpoint(power, **options)
        assert float(f(*args, **kwargs)) == 8.0
        assert float(dt.grad(f)(*args, **kwargs)) == 12.0
        assert float(dt.jit(lambda x: f(x, *args[1:], **kwargs))(2.0)) == 8.0

    def test_without_a_hash(self) -> None:
        f = dt.checkpoint(lambda x, ns: x * sum(ns), static_argnums=1)
        assert float(f(2.0, [1, 2])) == 6.0
        assert float(f(2.0, [1, 3])) == 8.0

    def test_equal_values_of_other_types_are_told_apart(self) -> None:
        f = dt.checkpoint(lambda x, n: x * (2 if type(n) is bool else 3), static_argnums=1)
        assert [float(f(1.0, n)) for n in (1, True, 1.0)] == [3.0, 2.0, 3.0]


@dt.custom_vjp
def tripled(x: Any) -> Any:
    return jnp.sin(x)


tripled.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (3.0 * ct * jnp.cos(x),))


@dt.custom_jvp
def sevenfold(x: Any) -> Any:
    return jnp.sin(x)


sevenfold.defjvp(lambda primals, tangents: (sevenfold(*primals), 7.0 * tangents[0]))


class TestWithOtherRules:
    @pytest.mark.parametrize("policy", ["none", "everything", "types", "only y"])
    @pytest.mark.parametrize("law", ["value", "grad", "jit of grad", "vmap of grad", "third order"])
    @pytest.mark.parametrize("rule", [tripled, sevenfold])
    def test_derivatives_of_ones_own(self, rule: Function, law: str, policy: str) -> None:
        f = lambda x: rule(checkpoint_name(rule(x) * x, "y")) * x
        x: Any = ARRAY
        transform = LAWS[law]
        if law == "third order":  # the rule of `tripled` is for reverse mode only
            transform, x = lambda g: dt.grad(dt.grad(dt.grad(g))), 0.3
        check_equal(transform(dt.checkpoint(f, policy=POLICIES[policy]))(x), transform(f)(x))

    @pytest.mark.parametrize("policy", ["none", "everything", "types"])
    def test_effects_happen_once(self, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
        def f(x: Any) -> Any:
            y = jnp.sin(x)
            dt.debug.print("y={:.2f}", y)
            return jnp.sin(y)

        g = dt.checkpoint(f, policy=POLICIES[policy])
        for run in (g, dt.grad(g), dt.jit(dt.grad(g)), dt.jit(dt.value_and_grad(g))):
            dt.block_until_ready(run(1.0))
            dt.effects_barrier()
            assert capsys.readouterr().out == "y=0.84\n"


class TestProgram:
    def test_printed_form(self) -> None:
        f = dt.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=checkpoint_policies.dots_saveable)
        text = str(dt.make_jaxpr(f)(1.0))
        assert "remat2[" in text
        for parameter in ("differentiated=False", "policy=dots_saveable", "prevent_cse=True"):
            assert parameter in text
        assert "differentiated=True" in str(dt.make_jaxpr(dt.grad(f))(1.0))
        assert "name[name=y] " in str(dt.make_jaxpr(named)(ARRAY))

    def test_a_captured_array_is_an_operand(self) -> None:
        jaxpr = dt.make_jaxpr(dt.checkpoint(lambda x: x * ARRAY, prevent_cse=[False]))(1.0)
        (eqn,) = jaxpr.jaxpr.eqns
        assert len(eqn.invars) == 2
        assert eqn.params["prevent_cse"] == (True, False)

    @pytest.mark.parametrize("policy", POLICIES)
    def test_what_is_saved_is_not_computed_again(self, policy: str) -> None:
        f = dt.checkpoint(named, policy=POLICIES[policy])
        jaxpr = dt.make_jaxpr(lambda x: dt.linearize(f, x)[1](x))(ARRAY)
        second = jaxpr.jaxpr.eqns[-1]
        assert second.params["differentiated"]
        again = [eqn.primitive for eqn in second.params["jaxpr"].jaxpr.eqns]
        products = again.count(dot_general_p)
        assert (cos_p in again) == (policy not in ("everything", "except y"))
        # One product is linear, and there in any case.
        keeps_z = policy in ("everything", "dots", "no batch dims", "except y", "any but y", "both")
        assert products == (1 if keeps_z or policy.startswith("offload") else 2)

    def test_unused_results_are_not_computed(self) -> None:
        f = dt.checkpoint(lambda x, y: (jnp.sin(x), jnp.exp(y)))
        jaxpr = dt.make_jaxpr(lambda x, y: dt.checkpoint(lambda a, b: f(a, b)[0])(x, y))(1.0, 2.0)
        text = dt.jit(lambda x, y: f(x, y)[0]).lower(1.0, 2.0).as_text()
        assert "exponential" not in text or count_equations(jaxpr) == 4
        gradient = dt.jit(dt.grad(lambda x, y: f(x, y)[0]))
        assert "exponential" not in gradient.lower(1.0, 2.0).as_text()

    @pytest.mark.parametrize(
        ("options", "held"),
        [({}, True), ({"prevent_cse": False}, False), ({"prevent_cse": [False]}, True)],
    )
    def test_the_compiler_is_kept_from_merging(self, options: Any, held: bool) -> None:
        f = dt.checkpoint(lambda x: jnp.sin(jnp.sin(x)), **options)
        text = dt.jit(dt.grad(f)).lower(1.0, lowering_platforms=("cuda",)).as_text()
        assert ("optimization_barrier" in text) == held
        text = dt.jit(f).lower(1.0, lowering_platforms=("cuda",)).as_text()
        assert "optimization_barrier" not in text

    def test_on_several_platforms(self) -> None:
        f = dt.jit(dt.grad(total(dt.checkpoint(named))))
        text = f.lower(ARRAY, lowering_platforms=("cpu", "cuda")).as_text()
        assert "optimization_barrier" in text

    def test_memory_that_a_backend_does_not_have(self) -> None:
        policy = dt.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[],
            names_which_can_be_offloaded=["y"],
            offload_src="device",
            offload_dst="unpinned_host",
        )
        f = dt.jit(dt.grad(total(dt.checkpoint(named, policy=policy))))
        with pytest.raises(
            NotImplementedError, match="from the memory 'device' to 'unpinned_host'"
        ):
            f.lower(ARRAY, lowering_platforms=("cuda",))

    def test_memory_of_the_host_of_a_gpu(self) -> None:
        f = dt.jit(dt.grad(total(dt.checkpoint(named, policy=POLICIES["offload y"]))))
        text = f.lower(ARRAY, lowering_platforms=("cuda",)).as_text()
        for kind in ("pinned_host", "device"):
            assert text.count(f'_xla_buffer_placement = "{kind}"') == 1

    def test_no_jaxpr_has_constants(self) -> None:
        f = dt.checkpoint(lambda x: x * np.arange(3.0, dtype=np.float32) + ARRAY)
        jaxpr = dt.make_jaxpr(dt.hessian(total(f)))(ARRAY)
        assert all(not inner.constvars for inner in list(all_jaxprs(jaxpr.jaxpr))[1:])

    def test_places_survive_differentiation(self) -> None:
        f = dt.checkpoint(named)
        jaxpr = dt.make_jaxpr(dt.grad(total(f)))(ARRAY)
        lines, first = inspect.getsourcelines(named)
        for eqn in all_equations(jaxpr.jaxpr):
            if eqn.primitive is cos_p:
                frame = user_frame(eqn.traceback)
                assert frame is not None
                assert first < frame.line < first + len(lines)


def _temporary(f: Function, *args: Any) -> int:
    return int(dt.jit(f).lower(*args).compile().memory_analysis().temp_size_in_bytes)


class TestMemory:
    SIZE = 512 * 32 * 4

    def chain(self, wrap: Any, block: int) -> Function:
        def step(x: Any, w: Any) -> Any:
            y = jnp.tanh(x @ w)
            return y * jnp.exp(-y * y)

        def f(ws: Any, x: Any) -> Any:
            several = wrap(lambda x, *ws: functools.reduce(step, ws, x))
            for i in range(0, len(ws), block):
                x = several(x, *ws[i : i + block])
            return jnp.sum(x)

        return dt.grad(f)

    @pytest.mark.parametrize("block", [1, 4])
    def test_of_a_deep_chain(self, block: int) -> None:
        ws, x = [jnp.eye(32)] * 16, jnp.ones((512, 32))
        plain = _temporary(self.chain(lambda f: f, block), ws, x)
        less = _temporary(self.chain(dt.checkpoint, block), ws, x)
        merged = _temporary(self.chain(lambda f: dt.checkpoint(f, prevent_cse=False), block), ws, x)
        # Each block keeps one array; the one that runs backwards has a few for each of its steps.
        assert less <= (16 // block + 5 * block + 2) * self.SIZE
        assert less < plain / 1.5
        assert less < merged

    @pytest.mark.parametrize("prevent_cse", [True, False])
    def test_of_a_scan(self, prevent_cse: bool) -> None:
        def loop(wrap: Any) -> Function:
            def body(c: Any, w: Any) -> Any:
                for _ in range(4):
                    y = jnp.tanh(c @ w)
                    c = y * jnp.exp(-y * y)
                return c, None

            return dt.grad(lambda ws, x: jnp.sum(lax.scan(wrap(body), x, ws)[0]))

        ws, x = jnp.stack([jnp.eye(32)] * 16), jnp.ones((512, 32))
        plain = _temporary(loop(lambda f: f), ws, x)
        less = _temporary(loop(lambda f: dt.checkpoint(f, prevent_cse=prevent_cse)), ws, x)
        # One array for each turn is kept, where four or more in each turn were.
        assert less <= (16 + 24) * self.SIZE
        assert less < plain / 4


class TestMistakes:
    @pytest.mark.parametrize(
        ("call", "kind", "message"),
        [
            (lambda: dt.checkpoint(3), TypeError, "takes a function"),
            (lambda: dt.checkpoint(jnp.sin, policy=3), TypeError, "got 3 of type int"),
            (
                lambda: dt.checkpoint(jnp.sin, prevent_cse="a"),
                TypeError,
                "prevent_cse of checkpoint",
            ),
            (
                lambda: dt.checkpoint(jnp.sin, prevent_cse=[True, False])(1.0),
                ValueError,
                "prevent_cse of checkpoint of sin",
            ),
            (
                lambda: dt.checkpoint(lambda x: x, prevent_cse=[1])(1.0),
                TypeError,
                "holds 1; it must hold True or False",
            ),
            (
                lambda: dt.checkpoint(lambda x, n: x, static_argnums=5),
                ValueError,
                "has 2 positional arguments",
            ),
            (
                lambda: dt.checkpoint(lambda x, n: x, static_argnums="n"),
                TypeError,
                "must be an integer or a sequence of integers",
            ),
            (
                lambda: dt.checkpoint(lambda x, n: x, static_argnames="m"),
                ValueError,
                "has no argument 'm'; it has x, n",
            ),
            (
                lambda: dt.checkpoint(lambda x, n: x, static_argnames=[1]),
                TypeError,
                "must be a string or strings",
            ),
            (
                lambda: dt.checkpoint(lambda x, n: x if n else -x)(1.0, True),
                dt.errors.TracerBoolConversionError,
                "cannot decide Python control",
            ),
            (lambda: dt.checkpoint(lambda x: "a")(1.0), TypeError, "not an array"),
            (lambda: dt.checkpoint(lambda x: x)("a"), TypeError, "Argument x of checkpoint of"),
            (
                lambda: dt.grad(dt.checkpoint(jnp.sin, policy=lambda *_, **__: 3))(1.0),
                TypeError,
                "returned 3 of type int",
            ),
            (lambda: checkpoint_name(1.0, 3), TypeError, "takes a string as name"),
            (lambda: checkpoint_name({"a": "s"}, "n"), TypeError, r"argument x\['a'\]"),
            (
                lambda: checkpoint_policies.save_only_these_names(["y"]),
                TypeError,
                "which are strings",
            ),
            (
                lambda: checkpoint_policies.save_and_offload_only_these_names(
                    names_which_can_be_saved="y",
                    names_which_can_be_offloaded=[],
                    offload_src="device",
                    offload_dst="pinned_host",
                ),
                TypeError,
                "which are strings",
            ),
            (
                lambda: checkpoint_policies.save_and_offload_only_these_names(
                    names_which_can_be_saved=["y"],
                    names_which_can_be_offloaded=["y"],
                    offload_src="device",
                    offload_dst="pinned_host",
                ),
                ValueError,
                r"\['y'\] are in both lists",
            ),
            (
                lambda: checkpoint_policies.offload_dot_with_no_batch_dims("device", "moon"),
                ValueError,
                "got 'moon'",
            ),
            (
                lambda: checkpoint_policies.save_from_both_policies(None, None),
                TypeError,
                "save_from_both_policies takes a policy",
            ),
            (lambda: saved_residuals(3), TypeError, "takes a function"),
            (lambda: saved_residuals(jnp.sin, "a"), TypeError, "not a valid array type"),
        ],
    )
    def test_message(self, call: Function, kind: type[Exception], message: str) -> None:
        with pytest.raises(kind, match=message):
            call()

    def test_policies_are_keys(self) -> None:
        class Policy:
            __hash__ = None  # type: ignore[assignment]

            def __call__(self, *_: Any, **__: Any) -> bool:
                return True

        with pytest.raises(TypeError, match="needs a hash"):
            dt.checkpoint(jnp.sin, policy=Policy())

    def test_control_flow_on_an_argument_names_static_argnums(self) -> None:
        with pytest.raises(dt.errors.TracerBoolConversionError) as caught:
            dt.checkpoint(lambda x, n: x if n else -x)(1.0, True)
        assert any("static_argnums" in note for note in caught.value.__notes__)


class TestPolicies:
    @pytest.mark.parametrize(
        ("policy", "kept"),
        [
            ("everything_saveable", "all"),
            ("nothing_saveable", ""),
            ("dots_saveable", "dot batch conv"),
            ("checkpoint_dots", "dot batch conv"),
            ("dots_with_no_batch_dims_saveable", "dot"),
            ("checkpoint_dots_with_no_batch_dims", "dot"),
        ],
    )
    def test_what_they_keep(self, policy: str, kept: str) -> None:
        applications = {
            "dot": (dot_general_p, {"dimension_numbers": (((1,), (0,)), ((), ()))}),
            "batch": (dot_general_p, {"dimension_numbers": (((2,), (1,)), ((0,), (0,)))}),
            "conv": (conv_general_dilated_p, {}),
            "sin": (sin_p, {}),
            "name": (name_p, {"name": "y"}),
        }
        ask = getattr(checkpoint_policies, policy)
        found = [name for name, (prim, params) in applications.items() if ask(prim, **params)]
        assert found == (list(applications) if kept == "all" else kept.split())

    def test_a_policy_is_asked_about_primitives_types_and_parameters(self) -> None:
        asked = []

        def policy(prim: Any, *avals: Any, **params: Any) -> bool:
            asked.append((prim.name, [a.short_name() for a in avals], sorted(params)))
            return False

        dt.grad(total(dt.checkpoint(lambda x: jnp.sin(MATRIX @ x), policy=policy)))(ARRAY)
        assert ("cos", ["f32[3]"], []) in [(n, a, []) for n, a, _ in asked]
        (product,) = [p for p in asked if p[0] == "dot_general"][:1]
        assert product[1] == ["f32[3,3]", "f32[3]"]
        assert "dimension_numbers" in product[2]

    def test_offloading(self) -> None:
        ask = checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
        dot = {"dimension_numbers": (((1,), (0,)), ((), ()))}
        assert ask(dot_general_p, **dot) == Offloadable("device", "pinned_host")
        assert not ask(sin_p)
        both = checkpoint_policies.save_from_both_policies
        assert both(ask, checkpoint_policies.nothing_saveable)(dot_general_p, **dot) == Offloadable(
            "device", "pinned_host"
        )
        assert both(ask, checkpoint_policies.dots_saveable)(dot_general_p, **dot) is True


class TestNames:
    def test_values_are_the_same(self) -> None:
        given = {"a": 1.0, "b": ARRAY, "c": [np.arange(2)]}
        found = checkpoint_name(given, "n")
        assert found["b"] is ARRAY
        check_equal(found, dt.jit(lambda x: x)(given))

    @pytest.mark.parametrize("name", [checkpoint_name, checkpoint_name_fwd])
    def test_tangents_have_no_name(self, name: Any) -> None:
        jaxpr = dt.make_jaxpr(lambda x, t: dt.jvp(lambda x: name(x, "n"), (x,), (t,)))
        assert [e.primitive.name for e in jaxpr(1.0, 2.0).jaxpr.eqns] == ["name"]


def test_what_is_kept_is_logged_on_demand(caplog: pytest.LogCaptureFixture) -> None:
    f = dt.checkpoint(named, policy=checkpoint_policies.save_only_these_names("y"))
    with caplog.at_level(logging.WARNING, "dovetail"):
        dt.grad(total(f))(ARRAY)
        assert not caplog.records
        dt.config.update("jax_log_checkpoint_residuals", True)
        try:
            dt.grad(total(f))(ARRAY)
        finally:
            dt.config.update("log_checkpoint_residuals", False)
    (record,) = caplog.records
    assert "checkpoint of named keeps 2 of its arguments and captured values" in record.getMessage()
    assert "f32[3] named 'y' from" in record.getMessage()
