"""custom_vjp, custom_gradient and closure_convert: what rules get and may return, and errors."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.custom_derivatives import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
)
from dovetail.errors import NonArrayArgumentError, UnexpectedTracerError


def make(
    fun: Callable[..., Any], fwd: Callable[..., Any], bwd: Callable[..., Any], **options: Any
) -> Any:
    defined = {k: options.pop(k) for k in ("symbolic_zeros", "optimize_remat") if k in options}
    made = dt.custom_vjp(fun, **options)
    made.defvjp(fwd, bwd, **defined)
    return made


def identity(bwd: Callable[..., Any]) -> Any:
    return make(lambda x: x, lambda x: (x, None), bwd)


class TestWhatRuns:
    def test_python_runs_on_values(self) -> None:
        f = make(
            lambda x: x if x > 0 else -x,
            lambda x: (x if x > 0 else -x, x),
            lambda x, ct: (ct * (2.0 if x > 0 else 3.0),),
        )
        assert [float(dt.grad(f)(x)) for x in (1.0, -1.0)] == [2.0, 3.0]
        assert float(f(-1.0)) == 1.0

    def test_each_once(self) -> None:
        ran: list[str] = []

        def note(name: str, result: Any) -> Any:
            ran.append(name)
            return result

        f = make(
            lambda x: note("fun", x),
            lambda x: note("fwd", (x, None)),
            lambda kept, ct: note("bwd", (ct,)),
        )
        y, pullback = dt.vjp(f, 1.0)
        assert ran == ["fwd"]
        pullback(y)
        assert ran == ["fwd", "bwd"]
        ran.clear()
        dt.vmap(f)(jnp.ones(2))
        assert ran == ["fun"]

    def test_clipped_gradients(self) -> None:
        clip = make(
            lambda lo, hi, x: x,
            lambda lo, hi, x: (x, (lo, hi)),
            lambda bounds, ct: (None, None, jnp.clip(ct, *bounds)),
        )
        x = jnp.linspace(0.0, 4.0, 5)
        loss = lambda x: jnp.sum(jnp.sin(5 * clip(-1.0, 1.0, x)))
        np.testing.assert_allclose(
            dt.jit(dt.grad(loss))(x), np.clip(5 * np.cos(5 * np.asarray(x)), -1, 1), rtol=1e-5
        )

    def test_fixed_point(self) -> None:
        @partial(dt.custom_vjp, nondiff_argnums=(0,))
        def fixed_point(f: Any, a: Any, guess: Any) -> Any:
            def unfinished(pair: Any) -> Any:
                return jnp.abs(pair[0] - pair[1]) > 1e-6

            return lax.while_loop(
                unfinished, lambda pair: (pair[1], f(a, pair[1])), (guess, f(a, guess))
            )[1]

        def fwd(f: Any, a: Any, guess: Any) -> Any:
            found = fixed_point(f, a, guess)
            return found, (a, found)

        def bwd(f: Any, kept: Any, ct: Any) -> Any:
            a, found = kept
            _, in_a = dt.vjp(lambda a: f(a, found), a)
            _, in_x = dt.vjp(lambda x: f(a, x), found)
            step = lambda total: ct + in_x(total)[0]
            (result,) = in_a(lax.fori_loop(0, 30, lambda i, total: step(total), ct))
            return result, jnp.zeros_like(found)

        fixed_point.defvjp(fwd, bwd)
        root = partial(fixed_point, lambda a, x: 0.5 * (x + a / x))
        assert float(root(4.0, 1.0)) == pytest.approx(2.0)
        assert float(dt.grad(root)(4.0, 1.0)) == pytest.approx(0.25, rel=1e-5)
        assert float(dt.jit(dt.grad(root))(4.0, 1.0)) == pytest.approx(0.25, rel=1e-5)
        np.testing.assert_allclose(
            dt.vmap(dt.grad(root), (0, None))(jnp.array([1.0, 4.0]), 1.0), [0.5, 0.25], rtol=1e-5
        )


class TestResiduals:
    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit, dt.checkpoint])
    def test_trees_and_scalars_of_the_host(self, wrap: Any) -> None:
        f = make(
            lambda x: x * 6.0,
            lambda x: (x * 6.0, {"a": (2, None), "b": [x, np.float32(3)], "c": True}),
            lambda kept, ct: (ct * kept["a"][0] * kept["b"][1] * kept["c"],),
        )
        assert float(dt.grad(wrap(f))(1.0)) == 6.0

    def test_numbers_are_given_back_as_they_are(self) -> None:
        f = make(lambda x: x**3, lambda x: (x**3, (x, 3)), lambda kept, ct: (sum([ct] * kept[1]),))
        assert float(dt.grad(f)(2.0)) == 3.0

    def test_unbatched_residuals_stay_so(self) -> None:
        f = make(lambda x, w: x * w, lambda x, w: (x * w, w), lambda w, ct: (ct * w, None))
        _, pullback = dt.vjp(dt.vmap(lambda x: f(x, jnp.full(3, 2.0))), jnp.ones((4, 3)))
        shapes = [leaf.shape for leaf in dt.tree.leaves(pullback)]
        assert (4, 3) not in shapes

    @pytest.mark.parametrize("value", ["text", jnp.sin])
    def test_what_is_no_array(self, value: Any) -> None:
        f = make(lambda x: x, lambda x: (x, {"k": value}), lambda kept, ct: (ct,))
        with pytest.raises(NonArrayArgumentError, match=r"residuals\['k'\] of the forward rule"):
            dt.grad(f)(1.0)


class TestCotangents:
    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit])
    @pytest.mark.parametrize(
        ("bwd", "expected"),
        [
            (lambda kept, ct: ({"a": (ct, None), "b": 2 * ct},), (1.0, 0.0, 2.0)),
            (lambda kept, ct: ({"a": None, "b": ct},), (0.0, 0.0, 1.0)),
            (lambda kept, ct: (None,), (0.0, 0.0, 0.0)),
            (lambda kept, ct: [{"a": (3, 4.0), "b": ct}], (3.0, 4.0, 1.0)),
            (lambda kept, ct: ({"a": (ct.astype("float16"), True), "b": ct},), (1.0, 1.0, 1.0)),
        ],
    )
    def test_none_stands_for_zeros(self, bwd: Any, expected: Any, wrap: Any) -> None:
        value = lambda tree: tree["a"][0] + tree["a"][1] + tree["b"]
        f = wrap(make(value, lambda tree: (value(tree), None), bwd))
        tree = {"a": (1.0, 2.0), "b": 3.0}
        found = dt.tree.leaves(dt.grad(f)(tree))
        assert tuple(float(g) for g in found) == expected
        assert all(g.dtype == np.float32 for g in found)

    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit])
    @pytest.mark.parametrize("zeros", [None, 0.0])
    def test_a_rule_runs_though_the_next_one_says_zeros(self, zeros: Any, wrap: Any) -> None:
        # Rules that hand on what is no derivative, such as statistics for the next step.
        scaled = make(
            lambda x, state: 2.0 * x, lambda x, state: (2.0 * x, x), lambda x, ct: (2.0 * ct, x)
        )
        first = make(lambda x, y: x + y, lambda x, y: (x + y, None), lambda kept, ct: (ct, zeros))
        loss = lambda x, state: first(x, jnp.sin(scaled(x, state)))
        found = wrap(dt.grad(loss, (0, 1)))(3.0, 0.0)
        assert tuple(map(float, found)) == (1.0, 3.0)
        # A rule is not run for results that nothing uses.
        unused = lambda x, state: (scaled(x, state), x)[1]
        assert tuple(map(float, wrap(dt.grad(unused, (0, 1)))(3.0, 0.0))) == (1.0, 0.0)

    @pytest.mark.parametrize("ct", [None, np.zeros((), dt.float0), 5, 5.0, jnp.ones(7)])
    def test_those_of_integers_say_nothing(self, ct: Any) -> None:
        f = make(lambda x, n: x * n, lambda x, n: (x * n, n), lambda n, c: (c * n, ct))
        assert float(dt.grad(f)(2.0, 3)) == 3.0
        gradient = dt.grad(f, (0, 1), allow_int=True)(2.0, 3)[1]
        assert gradient.dtype == dt.float0

    def test_of_results_that_are_integers_or_unused(self) -> None:
        seen: list[Any] = []

        def bwd(kept: Any, cts: Any) -> Any:
            seen.append([(ct.dtype, float(ct) if ct.dtype != dt.float0 else None) for ct in cts])
            return (cts[0],)

        f = make(lambda x: (x, x, 3), lambda x: ((x, x, 3), None), bwd)
        assert float(dt.grad(lambda x: f(x)[0])(1.0)) == 1.0
        assert seen == [[(np.float32, 1.0), (np.float32, 0.0), (dt.float0, None)]]

    def test_sums_over_the_batch(self) -> None:
        f = make(
            lambda x, w: x * w,
            lambda x, w: (x * w, (x, w)),
            lambda kept, ct: (ct * kept[1], ct * kept[0]),
        )
        one = make(lambda x, w: x * w, lambda x, w: (x * w, None), lambda kept, ct: (ct, 1.0))
        x = jnp.arange(4.0)
        loss = lambda g: lambda w: dt.vmap(g, (0, None))(x, w).sum()
        assert float(dt.grad(loss(f))(2.0)) == 6.0
        assert float(dt.grad(loss(one))(2.0)) == 4.0  # once for each element


class TestSymbolicZeros:
    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit, lambda f: dt.vmap(f, (0, None, None))])
    def test_what_rules_get(self, wrap: Any) -> None:
        seen: list[Any] = []

        def fwd(x: Any, y: Any, n: Any) -> Any:
            values = custom_vjp_primal_tree_values((x, y, n))
            seen.append([a.perturbed for a in (x["a"], y, n)])
            return (values[0]["a"], values[1]), None

        def bwd(kept: Any, cts: Any) -> Any:
            seen.append([type(ct) is SymbolicZero for ct in cts])
            return {"a": cts[0]}, cts[1], None

        f = wrap(make(lambda x, y, n: (x["a"], y), fwd, bwd, symbolic_zeros=True))
        x = jnp.ones(2)
        gradient = dt.grad(lambda x: f({"a": x}, 3.0, 4)[0].sum())(x)
        np.testing.assert_array_equal(gradient, [1.0, 1.0])
        # `vmap` also traces the backward rule to see what depends on elements of the batch.
        assert (seen[0], seen[-1]) == ([True, False, False], [False, True])
        assert seen[1:-1] in ([], [[False, False]])

    def test_values_of_trees(self) -> None:
        assert custom_vjp_primal_tree_values([CustomVJPPrimal(1.0, False)]) == [1.0]
        with pytest.raises(TypeError, match="CustomVJPPrimal, got a leaf of type float"):
            custom_vjp_primal_tree_values([1.0])


class TestArgumentsThatAreNotDifferentiated:
    @pytest.mark.parametrize(
        "options", [{"nondiff_argnums": (1,)}, {"nondiff_argnames": ("f",)}, {"nondiff_argnums": 1}]
    )
    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit, dt.vmap])
    def test_functions(self, options: Any, wrap: Any) -> None:
        f = make(
            lambda x, f: f(x),
            lambda x, f: (f(x), x),
            lambda f, x, ct: (ct * f(x),),
            **options,
        )
        x = jnp.arange(3.0)
        gradient = dt.grad(lambda x: wrap(lambda x: f(x, f=jnp.exp))(x).sum())(x)
        np.testing.assert_allclose(gradient, np.exp(x), rtol=1e-6)

    @pytest.mark.parametrize("wrap", [dt.jit, dt.vmap, lambda f: dt.grad(lambda x, y: f(x, y), 1)])
    def test_traced_values_are_refused(self, wrap: Any) -> None:
        f = make(
            lambda x, y: x * y,
            lambda x, y: (x * y, None),
            lambda y, kept, ct: (ct,),
            nondiff_argnums=(1,),
        )
        x = jnp.ones(2) if wrap is dt.vmap else 1.0
        with pytest.raises(UnexpectedTracerError, match=r"argument 1 .* nondiff_argnums names"):
            wrap(f)(x, x)


ERRORS: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "fwd: no pair": (
        lambda x: x["k"],
        lambda kept, ct: ({"k": ct},),
        TypeError,
        "forward rule .* must return a pair .*residuals.* got ",
    ),
    "bwd: no tuple": (
        lambda x: (x["k"], None),
        lambda kept, ct: ct,
        TypeError,
        r"backward rule .* must return a tuple with one cotangent for each.*write \(ct,\)",
    ),
    "bwd: too many": (
        lambda x: (x["k"], None),
        lambda kept, ct: ({"k": ct}, ct),
        TypeError,
        "1 in all, got a tuple of 2",
    ),
    "bwd: structure": (
        lambda x: (x["k"], None),
        lambda kept, ct: ({"other": ct},),
        TypeError,
        "structure of the arguments, or None where they are zero:\n",
    ),
    "bwd: shape": (
        lambda x: (x["k"], None),
        lambda kept, ct: ({"k": jnp.ones((3, 1))},),
        ValueError,
        r"for the argument x\['k'\] a cotangent of its type, f32\[\], got f32\[3,1\]",
    ),
    "bwd: dtype": (
        lambda x: (x["k"], None),
        lambda kept, ct: ({"k": jnp.ones((), "complex64")},),
        TypeError,
        r"for the argument x\['k'\] a cotangent of its type, f32\[\], got c64\[\]",
    ),
    "bwd: no array": (
        lambda x: (x["k"], None),
        lambda kept, ct: ({"k": "text"},),
        NonArrayArgumentError,
        r"x\['k'\] of the backward rule .* is 'text'",
    ),
}


class TestErrors:
    @pytest.mark.parametrize("name", ERRORS)
    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit, dt.checkpoint])
    def test_what_rules_return(self, name: str, wrap: Any) -> None:
        fwd, bwd, kind, message = ERRORS[name]
        f = wrap(make(lambda x: x["k"], fwd, bwd))
        with pytest.raises(kind, match=message) as caught:
            dt.grad(f)({"k": 1.0})
        rule = fwd if name.startswith("fwd") else bwd
        assert f"{__file__}:{rule.__code__.co_firstlineno}" in str(caught.value)

    def test_results_of_the_forward_rule_of_a_staged_function(self) -> None:
        f = make(lambda x: (x,), lambda x: ((jnp.ones(3),), None), lambda kept, ct: ct)
        with pytest.raises(TypeError, match=r"result at \[0\] of the rule .* must be f32\[\]"):
            dt.vjp(dt.jit(f), 1.0)

    def test_no_rule(self) -> None:
        f = dt.custom_vjp(lambda x: x)
        for call in (f, dt.grad(f), dt.jit(f)):
            with pytest.raises(AttributeError, match=r"no derivative rule is defined .*defvjp"):
                call(1.0)

    def test_captured_values(self) -> None:
        def f(y: Any) -> Any:
            return make(lambda x: x * y, lambda x: (x * y, x), lambda x, ct: (ct * y,))(y)

        for transformed in (dt.grad(f), dt.grad(dt.jit(f)), dt.jit(dt.grad(f))):
            with pytest.raises(UnexpectedTracerError, match="it has captured"):
                transformed(2.0)
        assert float(dt.jit(f)(3.0)) == 9.0
        np.testing.assert_array_equal(dt.vmap(f)(jnp.arange(3.0)), [0.0, 1.0, 4.0])

    def test_both_options(self) -> None:
        with pytest.raises(NotImplementedError, match="cannot be combined"):
            dt.custom_vjp(lambda x: x).defvjp(
                lambda x: (x, None), lambda r, c: (c,), symbolic_zeros=True, optimize_remat=True
            )


class TestUnusedDerivatives:
    """A derivative in forward mode that nothing uses is no error in what is compiled."""

    f = make(lambda x: jnp.sin(x), lambda x: (jnp.sin(x), x), lambda x, ct: (2 * jnp.cos(x) * ct,))

    def test_linearized_gradients(self) -> None:
        g = make(
            lambda x: jnp.sin(x), lambda x: (self.f(x), x), lambda x, ct: (2 * jnp.cos(x) * ct,)
        )
        _, linear = dt.linearize(dt.grad(g), 0.5)
        assert float(linear(1.0)) == pytest.approx(-2 * np.sin(0.5), rel=1e-6)


class TestOptimizedRematerialisation:
    @staticmethod
    def of(scale: float) -> Any:
        """A function whose forward rule, for the test, gives another result."""
        return make(
            lambda x: x,
            lambda x: (x * scale, x),
            lambda x, ct: (ct * x,),
            optimize_remat=True,
        )

    def test_the_function_runs_where_nothing_is_kept(self) -> None:
        f = self.of(2.0)
        assert float(dt.jit(lambda x: dt.vjp(f, x)[0])(3.0)) == 3.0
        assert float(dt.jit(lambda x: dt.vjp(f, x)[1](1.0)[0])(3.0)) == 3.0
        value, gradient = dt.jit(dt.value_and_grad(f))(3.0)
        assert (float(value), float(gradient)) == (6.0, 3.0)
        x = jnp.arange(3.0)
        np.testing.assert_array_equal(dt.jit(dt.vmap(lambda x: dt.vjp(f, x)[0]))(x), np.arange(3.0))

    def test_captured_values_keep_the_rule(self) -> None:
        def g(x: Any, y: Any) -> Any:
            f = make(
                lambda x: x * y, lambda x: (x * y, x), lambda x, ct: (ct,), optimize_remat=True
            )
            return dt.vjp(f, x)[0]

        assert float(dt.jit(g)(3.0, 2.0)) == 6.0


class TestCustomGradient:
    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit, dt.vmap])
    def test_orders(self, wrap: Any) -> None:
        f = wrap(dt.custom_gradient(lambda x: (x**3, lambda ct: ct * x**2)))
        x = jnp.array([1.0, 2.0])
        total = lambda f: lambda x: f(x).sum()
        np.testing.assert_allclose(f(x), x**3)
        np.testing.assert_allclose(dt.grad(total(f))(x), x**2)
        np.testing.assert_allclose(dt.grad(total(dt.grad(total(f))))(x), 2 * x)

    def test_trees_keywords_and_decorator(self) -> None:
        @dt.custom_gradient()
        def f(x: Any, n: Any = 2.0) -> Any:
            return {"out": (x * n, n)}, lambda ct: (5 * ct["out"][0], ct["out"][1])

        assert float(dt.grad(lambda x: f(x, n=3.0)["out"][0])(1.0)) == 5.0
        assert f.__name__ == "f"

    @pytest.mark.parametrize("name", ["with_logs", "remat", "with_accums"])
    def test_options(self, name: str) -> None:
        with pytest.raises(NotImplementedError, match=name):
            dt.custom_gradient(lambda x: x, **{name: True})

    @pytest.mark.parametrize("result", [1.0, (1.0, 2.0), (1.0, jnp.sin, 3.0)])
    def test_no_pair(self, result: Any) -> None:
        with pytest.raises(TypeError, match=r"must return a pair \(result, function from its"):
            dt.custom_gradient(lambda x: result)(1.0)

    def test_wrong_cotangents(self) -> None:
        f = dt.custom_gradient(lambda x, y: (x * y, lambda ct: ct))
        with pytest.raises(TypeError, match="2 in all, got Array") as caught:
            dt.grad(f)(1.0, 2.0)
        assert f"{__file__}:" in str(caught.value)


class TestClosureConvert:
    def test_captured_values_become_arguments(self) -> None:
        @partial(dt.custom_vjp, nondiff_argnums=(0,))
        def apply(f: Any, x: Any, captured: Any) -> Any:
            return f(x, *captured)

        apply.defvjp(
            lambda f, x, captured: dt.vjp(lambda x, captured: f(x, *captured), x, captured),
            lambda f, pullback, ct: pullback(3 * ct),
        )

        def of(y: Any) -> Any:
            converted, captured = dt.closure_convert(lambda x: x * y, 0.0)
            assert len(captured) == 1
            return apply(converted, 5.0, captured)

        assert float(dt.grad(of)(2.0)) == 15.0
        assert float(dt.jit(dt.grad(of))(2.0)) == 15.0

    def test_constants_and_integers_stay(self) -> None:
        def of(n: Any) -> Any:
            converted, captured = dt.closure_convert(lambda x: x * n + jnp.arange(3.0).sum(), 0.0)
            assert captured == []
            return converted(2.0)

        assert float(dt.jit(of)(4)) == 11.0

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            ((1.0, 2.0), "structure of the example"),
            (((1.0,),), "structure of the example"),
            ((jnp.ones(3),), r"for x what the example was, f32\[\], got f32\[3\]"),
            ((1,), r"for x what the example was, f32\[\], got i32\[\]"),
        ],
    )
    def test_other_arguments(self, args: Any, message: str) -> None:
        converted, _ = dt.closure_convert(lambda x: x, 1.0)
        with pytest.raises(TypeError, match=message):
            converted(*args)


class TestWhatIsKept:
    """Rules stand in jaxprs; neither these nor any cache keep more than rules have captured."""

    @pytest.mark.parametrize("wrap", [lambda f: f, dt.jit, dt.vmap, lambda f: dt.jit(dt.vmap(f))])
    def test_no_tracers(self, wrap: Any) -> None:
        x = jnp.ones(2)
        f = make(jnp.sin, lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x),))
        with dt.checking_leaks():
            gradient = dt.jit(dt.grad(lambda x: wrap(lambda x: f(x))(x).sum()))(x)
        np.testing.assert_allclose(gradient, np.cos(x), rtol=1e-6)

    @pytest.mark.parametrize("transform", [dt.jit, dt.grad, lambda f: dt.grad(dt.jit(f))])
    def test_captured_arrays_are_released(self, transform: Any) -> None:
        def run() -> weakref.ref[Any]:
            big = jnp.ones(3)
            f = make(
                lambda x: (x * big).sum(),
                lambda x: ((x * big).sum(), None),
                lambda kept, ct: (ct * big,),
            )
            transform(lambda x: f(x))(jnp.ones(3))
            return weakref.ref(big)

        released = run()
        for _ in range(2):
            gc.collect()
        assert released() is None
