"""custom_jvp: its arguments, what its rule gets and may return, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.custom_derivatives import SymbolicZero, linear_call, zero_from_primal
from dovetail.errors import NonArrayArgumentError, UnexpectedTracerError


def make(fun: Callable[..., Any], rule: Callable[..., Any], **options: Any) -> Any:
    made = dt.custom_jvp(fun, **options)
    made.defjvp(rule)
    return made


def doubling(fun: Callable[..., Any], **options: Any) -> Any:
    """A function whose rule, for one argument, doubles the tangent."""
    count = len(options.get("nondiff_argnums", options.get("nondiff_argnames", ())))

    def rule(*args: Any) -> Any:
        *fixed, primals, tangents = args
        assert len(fixed) == count
        return made(*fixed, *primals), 2 * tangents[0]

    made = make(fun, rule, **options)
    return made


class TestPythonRunsOnValues:
    def test_control_flow_in_function_and_rule(self) -> None:
        @dt.custom_jvp
        def f(x: Any) -> Any:
            return jnp.sin(x) if x > 0 else jnp.cos(x)

        @f.defjvp
        def rule(primals: Any, tangents: Any) -> Any:
            (x,), (t,) = primals, tangents
            return f(x), (2.0 if x > 0 else 3.0) * t

        assert [float(dt.grad(f)(x)) for x in (1.0, -1.0)] == [2.0, 3.0]
        assert float(f(-1.0)) == pytest.approx(np.cos(1.0))
        assert float(dt.jvp(f, (-1.0,), (2.0,))[1]) == 6.0

    def test_what_runs(self) -> None:
        ran: list[str] = []

        def f(x: Any) -> Any:
            ran.append("function")
            return x

        def rule(primals: Any, tangents: Any) -> Any:
            ran.append("rule")
            return primals[0], tangents[0]

        g = make(f, rule)
        for call, expected in (
            (lambda: g(1.0), ["function"]),
            (lambda: dt.grad(g)(1.0), ["rule"]),
            (lambda: dt.jit(g)(1.0), ["function"]),
            (lambda: dt.grad(dt.jit(lambda x: g(x)))(1.0), ["function", "rule"]),
            (lambda: dt.vmap(g)(jnp.ones(2)), ["function"]),
            (lambda: dt.vmap(dt.grad(g))(jnp.ones(2)), ["rule"]),
        ):
            ran.clear()
            call()
            assert ran == expected


class TestArguments:
    def test_keywords_and_defaults_get_positions(self) -> None:
        seen: list[Any] = []

        def rule(primals: Any, tangents: Any) -> Any:
            seen.append((primals[1], float(tangents[1])))
            return primals[0] * primals[1], tangents[0] * primals[1]

        f = make(lambda x, n=3.0: x * n, rule)
        assert float(dt.grad(f)(2.0)) == 3.0
        assert float(dt.grad(lambda x: f(n=5.0, x=x))(2.0)) == 5.0
        assert seen == [(3.0, 0.0), (5.0, 0.0)]

    @pytest.mark.parametrize(
        ("fun", "args", "kwargs", "message"),
        [
            (lambda x, y: x, (1.0,), {}, "missing a required argument: 'y'"),
            (lambda x: x, (1.0, 2.0), {}, "too many positional arguments"),
            (lambda x, *, n=1.0: x, (1.0,), {"n": 2.0}, "no position: n"),
            (lambda x, **rest: x, (1.0,), {"n": 2.0}, "no position: n"),
            (lambda x: x, (1.0,), {"z": 2.0}, "unexpected keyword argument 'z'"),
        ],
    )
    def test_arguments_without_a_position(
        self, fun: Any, args: Any, kwargs: Any, message: str
    ) -> None:
        with pytest.raises(TypeError, match=f"custom_jvp function <lambda> .*{message}"):
            doubling(fun)(*args, **kwargs)

    def test_a_keyword_only_argument_keeps_its_default(self) -> None:
        assert float(dt.grad(doubling(lambda x, *, n=4.0: x * n))(1.0)) == 2.0

    @pytest.mark.parametrize(
        "options",
        [{"nondiff_argnums": (0,)}, {"nondiff_argnames": ("f",)}],
    )
    def test_arguments_that_are_not_differentiated(self, options: Any) -> None:
        apply = doubling(lambda f, x: f(x), **options)
        for wrap in (lambda g: g, dt.jit, dt.vmap):
            x = jnp.ones(3)
            g = wrap(partial(apply, jnp.sin))
            np.testing.assert_allclose(g(x), np.sin(x), rtol=1e-6)
            np.testing.assert_allclose(dt.grad(lambda x: g(x).sum())(x), 2 * np.ones(3))  # noqa: B023  # called at once

    def test_order_of_arguments_that_are_not_differentiated(self) -> None:
        def rule(a: Any, c: Any, primals: Any, tangents: Any) -> Any:
            assert (a, c) == ("a", "c")
            return primals[0], tangents[0]

        f = make(lambda a, x, c: x, rule, nondiff_argnums=(-1,), nondiff_argnames=["a"])
        assert f.nondiff_argnums == (0, 2)
        assert float(dt.grad(lambda x: f("a", x, "c"))(1.0)) == 1.0

    @pytest.mark.parametrize(
        "options",
        [
            {"nondiff_argnums": (2,)},
            {"nondiff_argnums": (-3,)},
            {"nondiff_argnames": ("z",)},
        ],
    )
    def test_no_such_parameter(self, options: Any) -> None:
        with pytest.raises(ValueError, match="names no positional parameter of <lambda>"):
            dt.custom_jvp(lambda x, y: x, **options)

    def test_traced_values_that_are_not_differentiated(self) -> None:
        def rule(n: Any, primals: Any, tangents: Any) -> Any:
            return n * primals[0], 2 * n * tangents[0]

        f = make(lambda n, x: n * x, rule, nondiff_argnums=(0,))
        assert [float(g) for g in dt.grad(f, (0, 1))(3.0, 5.0)] == [0.0, 6.0]
        assert float(dt.jit(dt.grad(f, 1))(3.0, 5.0)) == 6.0
        np.testing.assert_array_equal(
            dt.vmap(dt.grad(f, 1))(jnp.arange(3.0), jnp.ones(3)), [0.0, 2.0, 4.0]
        )
        np.testing.assert_array_equal(
            dt.grad(lambda x: dt.vmap(f)(jnp.arange(3.0), x).sum())(jnp.ones(3)), [0.0, 2.0, 4.0]
        )

    def test_trees(self) -> None:
        def rule(primals: Any, tangents: Any) -> Any:
            (tree,), (t,) = primals, tangents
            return f(tree), {"out": (2 * t["a"][0] * tree["b"] + tree["a"][0] * t["b"], None)}

        f = make(lambda tree: {"out": (tree["a"][0] * tree["b"], None)}, rule)
        tree = {"a": [2.0], "b": 3.0}
        for g in (f, dt.jit(f)):
            found = dt.grad(lambda tree: g(tree)["out"][0])(tree)  # noqa: B023  # called at once
            assert (float(found["a"][0]), float(found["b"])) == (6.0, 2.0)

    def test_what_is_no_array(self) -> None:
        f = doubling(lambda x, mode: x)
        with pytest.raises(NonArrayArgumentError, match="mode of custom_jvp function"):
            f(1.0, "fast")


class TestTangents:
    def test_integers_have_tangents_of_float0(self) -> None:
        def rule(primals: Any, tangents: Any) -> Any:
            (x, n), (t, z) = primals, tangents
            assert z.dtype == dt.float0
            return (x * n, n), (t * n, z)

        f = make(lambda x, n: (x * n, n), rule)
        for g in (f, dt.jit(f)):
            outs, tangents = dt.jvp(g, (2.0, 3), (1.0, np.zeros((), dt.float0)))
            assert (float(outs[0]), int(outs[1]), float(tangents[0])) == (6.0, 3, 3.0)
            assert tangents[1].dtype == dt.float0

    def test_symbolic_zeros(self) -> None:
        seen: list[list[bool]] = []

        def rule(primals: Any, tangents: Any) -> Any:
            seen.append([type(t) is SymbolicZero for t in tangents])
            return (primals[0], primals[1]), (tangents[0], tangents[1])

        f = dt.custom_jvp(lambda x, y, n: (x, y))
        f.defjvp(rule, symbolic_zeros=True)
        for g in (f, dt.jit(f), dt.vmap(f, (None, 0, None))):
            y = jnp.ones(2) if g is not f else 2.0
            _, tangents = dt.jvp(lambda x: g(x, y, 3), (1.0,), (1.0,))  # noqa: B023  # called at once
            np.testing.assert_array_equal(tangents[1], np.zeros(np.shape(y)))
        assert seen == [[False, True, True]] * 3

    def test_zeros(self) -> None:
        zero = zero_from_primal(jnp.ones(3), symbolic_zeros=True)
        assert (zero.shape, zero.dtype, zero.ndim, zero.size) == ((3,), np.float32, 1, 3)
        assert repr(zero) == "SymbolicZero"
        assert zero_from_primal(2).dtype == dt.float0
        values = {"a": (2.0, None), "b": [jnp.ones(3), 2]}
        for symbolic in (False, True):
            zeros = zero_from_primal(values, symbolic_zeros=symbolic)
            assert dt.tree.structure(zeros) == dt.tree.structure(values)
            assert [(z.shape, z.dtype) for z in dt.tree.leaves(zeros)] == [
                ((), np.float32),
                ((3,), np.float32),
                ((), dt.float0),
            ]
        assert float(zero_from_primal(2.0)) == 0.0
        assert SymbolicZero.from_primal_value(2).dtype == dt.float0

    def test_numbers_of_python_and_constants(self) -> None:
        f = make(lambda x: x, lambda p, t: (p[0], 3.0))
        assert float(dt.jvp(f, (1.0,), (1.0,))[1]) == 3.0
        assert float(dt.grad(f)(1.0)) == 0.0  # it does not depend on the tangent

    def test_one_rule_for_each_argument(self) -> None:
        f = dt.custom_jvp(lambda x, y, z: x * y)
        f.defjvps(lambda t, out, x, y, z: 2 * t * y, None, lambda t, out, x, y, z: t * out)
        assert [float(g) for g in dt.grad(f, (0, 1, 2))(2.0, 3.0, 5.0)] == [6.0, 0.0, 6.0]
        none = dt.custom_jvp(lambda x: (x, x))
        none.defjvps(None)
        assert float(dt.jvp(none, (1.0,), (1.0,))[1][0]) == 0.0


CAPTURED = "uses a traced value that it has captured|with respect to a value that it has captured"


def capturing(y: Any) -> Any:
    return make(lambda x: x * y, lambda p, t: (p[0] * y, t[0] * y))


class TestCapturedValues:
    @pytest.mark.parametrize(
        "transform",
        [
            lambda f: dt.grad(f)(2.0),
            lambda f: dt.jvp(f, (2.0,), (1.0,)),
            lambda f: dt.jit(dt.grad(f))(2.0),
            lambda f: dt.grad(dt.jit(f))(2.0),
            lambda f: dt.vmap(dt.grad(f))(jnp.ones(2)),
            lambda f: dt.grad(lambda x: dt.vmap(f)(x).sum())(jnp.ones(2)),
        ],
    )
    @pytest.mark.parametrize("argument", [lambda y: y, lambda y: 2.0])
    def test_what_is_differentiated_must_be_an_argument(
        self, transform: Any, argument: Any
    ) -> None:
        with pytest.raises(UnexpectedTracerError, match=CAPTURED):
            transform(lambda y: capturing(y)(argument(y)))

    @pytest.mark.parametrize("transform", [dt.jit, dt.vmap, lambda f: dt.jit(dt.vmap(f))])
    def test_others_may_be_captured(self, transform: Any) -> None:
        y = jnp.arange(1.0, 3.0)
        np.testing.assert_array_equal(transform(lambda y: capturing(y)(y))(y), y * y)
        np.testing.assert_array_equal(transform(lambda y: capturing(y)(2.0))(y), 2 * y)

        def gradient(y: Any) -> Any:
            return dt.grad(lambda x: capturing(y)(x).sum())(jnp.ones_like(y))

        np.testing.assert_array_equal(transform(gradient)(y), y)


ERRORS: dict[str, tuple[Any, Any, str]] = {
    "no pair": (
        lambda x: x,
        lambda p, t: p[0],
        r"must return a pair \(primal results, tangents of the results\), got",
    ),
    "a triple": (lambda x: x, lambda p, t: (1.0, 1.0, 1.0), "got tuple of length 3"),
    "structures": (
        lambda x: x,
        lambda p, t: (p[0], (t[0], t[0])),
        "primal results and tangents of one structure:\n.*\n.*primal has a leaf\n.*tuple of len",
    ),
    "None": (lambda x: x, lambda p, t: (p[0], None), "tangent has None"),
    "shape": (
        lambda x: {"a": x},
        lambda p, t: ({"a": p[0]}, {"a": jnp.ones(3)}),
        r"the tangent at \['a'\] that the rule .* must be f32\[\].*got f32\[3\]",
    ),
    "dtype": (lambda x: x, lambda p, t: (p[0], jnp.int32(1)), r"must be f32\[\].*got i32\[\]"),
    "no float0": (
        lambda x: x.astype(int),
        lambda p, t: (p[0].astype(int), t[0]),
        r"must be float0\[\].*zero_from_primal",
    ),
    "no array": (lambda x: x, lambda p, t: ("a", t[0]), "result of the rule .* is 'a'"),
}

STAGED_ERRORS: dict[str, tuple[Any, Any, str]] = {
    "structure of the primal": (
        lambda x: x,
        lambda p, t: ((p[0], p[0]), (t[0], t[0])),
        "must have the structure of the results of",
    ),
    "shape of the primal": (
        lambda x: (x,),
        lambda p, t: ((jnp.ones(3),), (jnp.ones(3),)),
        r"the primal result at \[0\] of the rule .* must be f32\[\], as that of .* got f32\[3\]",
    ),
}


class TestErrors:
    @pytest.mark.parametrize("name", ERRORS)
    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit, dt.vmap])
    def test_what_rules_return(self, name: str, wrap: Any) -> None:
        fun, rule, message = ERRORS[name]
        x = jnp.ones(2) if wrap is dt.vmap else jnp.float32(1)
        with pytest.raises(TypeError, match=message) as caught:
            dt.jvp(wrap(make(fun, rule)), (x,), (x,))
        assert f"{__file__}:{rule.__code__.co_firstlineno}" in str(caught.value)

    @pytest.mark.parametrize("name", STAGED_ERRORS)
    def test_what_rules_of_staged_functions_return(self, name: str) -> None:
        fun, rule, message = STAGED_ERRORS[name]
        with pytest.raises(TypeError, match=message):
            dt.jvp(dt.jit(make(fun, rule)), (1.0,), (1.0,))

    def test_no_rule(self) -> None:
        f = dt.custom_jvp(lambda x: x)
        for call in (f, dt.grad(f), dt.jit(f)):
            with pytest.raises(AttributeError, match=r"no derivative rule is defined .*defjvp"):
                call(1.0)

    def test_rules_that_are_not_linear(self) -> None:
        square = make(lambda x: x, lambda p, t: (p[0], t[0] * t[0]))
        assert float(dt.jvp(square, (1.0,), (3.0,))[1]) == 9.0
        with pytest.raises(TypeError, match="must be linear in the tangents"):
            dt.grad(square)(1.0)
        mixed = make(lambda x: x, lambda p, t: (p[0] + t[0], t[0]))
        with pytest.raises(TypeError, match="primal result that depends on a tangent"):
            dt.grad(mixed)(1.0)

    def test_rules_for_each_argument(self) -> None:
        f = dt.custom_jvp(lambda x, y: x)
        f.defjvps(lambda t, out, x, y: t)
        with pytest.raises(TypeError, match="1 rule for the 2 arguments"):
            dt.grad(f)(1.0, 2.0)
        g = dt.custom_jvp(lambda x, y: x, nondiff_argnums=(1,))
        with pytest.raises(TypeError, match="use defjvp"):
            g.defjvps(lambda t, out, x: t)

    def test_no_function(self) -> None:
        for call in (dt.custom_jvp, dt.custom_jvp(jnp.sin).defjvp, dt.custom_jvp(jnp.sin).defjvps):
            with pytest.raises(TypeError, match="takes a function"):
                call(1.0)


def test_jaxpr() -> None:
    f = make(lambda x: x * 2.0, lambda p, t: (p[0], t[0]))
    assert str(dt.make_jaxpr(f)(1.0)) == (
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = custom_jvp_call[\n"
        "      name=<lambda>\n"
        "      call_jaxpr={ lambda ; c:f32[]. let d:f32[] = mul c 2.0:f32[] in (d,) }\n"
        "      jvp=<lambda>\n"
        "      symbolic_zeros=False\n"
        "    ] a\n"
        "  in (b,) }"
    )


def test_the_function_keeps_its_name() -> None:
    @dt.custom_jvp
    def named(x: Any) -> Any:
        """Documented."""
        return x

    assert (named.__name__, named.__doc__) == ("named", "Documented.")


class TestLinearCall:
    @staticmethod
    def halve(x: Any, d: Any = 2.0) -> Any:
        """Half of x, whose transpose is said to be ten times that."""
        return linear_call(lambda d, x: x / d, lambda d, ct: 10 * ct / d, d, x)

    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit, dt.vmap])
    def test_modes(self, wrap: Any) -> None:
        x, f = jnp.arange(3.0), wrap(self.halve)
        np.testing.assert_allclose(f(x), x / 2)
        np.testing.assert_allclose(dt.jvp(f, (x,), (x,))[1], x / 2)
        np.testing.assert_allclose(dt.grad(lambda x: f(x).sum())(x), [5.0] * 3)
        transpose = lambda ct: dt.linear_transpose(f, x)(ct)[0]
        np.testing.assert_allclose(transpose(x), 5 * x)
        np.testing.assert_allclose(dt.linear_transpose(transpose, x)(x)[0], x / 2)

    def test_batched_residuals(self) -> None:
        d, x = jnp.array([1.0, 2.0, 4.0]), jnp.arange(3.0)
        np.testing.assert_allclose(dt.vmap(self.halve)(x, d), x / d)
        np.testing.assert_allclose(dt.vmap(dt.grad(self.halve))(x, d), 10 / d)
        summed = dt.grad(lambda x: dt.vmap(self.halve, (None, 0))(x, d).sum())(3.0)
        assert float(summed) == pytest.approx(float((10 / d).sum()))

    def test_residuals_are_not_differentiated(self) -> None:
        with pytest.raises(TypeError, match="with respect to its residual_args"):
            dt.grad(self.halve, 1)(1.0, 2.0)

    @pytest.mark.parametrize(
        ("transpose", "message"),
        [
            (lambda r, ct: (ct, ct), "must return the structure of linear_args"),
            (lambda r, ct: jnp.ones(3), r"for linear_args a cotangent of .*f32\[\], got f32\[3\]"),
        ],
    )
    def test_wrong_transposes(self, transpose: Any, message: str) -> None:
        f = lambda x: linear_call(lambda r, x: x, transpose, (), x)
        with pytest.raises(TypeError, match=message):
            dt.grad(f)(1.0)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("transform", [lambda f: f, dt.jit, dt.checkpoint])
def test_bodies_in_a_rule_capture_its_arguments(transform: Any, order: int) -> None:
    """Functions that are staged inside a rule use its primals and tangents."""

    @dt.custom_jvp
    def f(x: Any) -> Any:
        return x**3

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        struct = dt.eval_shape(lambda: t * x)
        assert (struct.shape, struct.dtype) == ((), np.float32)
        scaled = dt.jit(lambda: 3 * t * x)()
        looped = dt.lax.fori_loop(0, 1, lambda i, c: c + scaled * x, jnp.zeros_like(x))
        return f(x), dt.lax.cond(x > 0, lambda: looped, lambda: 0 * t)

    for derivative in (dt.grad, dt.jacfwd, lambda f: lambda x: dt.linearize(f, x)[1](1.0)):
        derived = transform(f)
        for _ in range(order):
            derived = derivative(derived)
        assert derived(2.0) == 12
