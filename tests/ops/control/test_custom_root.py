"""custom_root: derivatives by the implicit function theorem.

The laws: whatever way a root is found, its derivatives of every order, in both modes, under jit,
vmap and in loops, are those of the same root written in closed form, or of finite differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

A, B = jnp.float32(2.5), jnp.float32(0.75)
VALUES = jnp.array([1.0, 2.0, 9.0])
Root = Callable[[Any, Any], Any]


def newton(f: Any, x: Any) -> Any:
    """A loop whose length is not known: it has no gradient of its own."""

    def step(state: Any) -> Any:
        x, _ = state
        y, slope = dt.jvp(f, (x,), (jnp.ones_like(x),))
        return x - y / slope, x

    return lax.while_loop(lambda s: abs(s[0] - s[1]) > 1e-7 * abs(s[0]), step, (x, x + 1))[0]


def quotient(g: Any, y: Any) -> Any:
    return y / g(jnp.ones_like(y))


def scalar(a: Any, b: Any) -> Any:
    return lax.custom_root(lambda x: x * x * x - a * b, 1.0, newton, quotient)


def with_aux(a: Any, b: Any) -> Any:
    def solve(f: Any, x: Any) -> Any:
        root = newton(f, x)
        return root, {"residual": f(root), "a": a, "n": 3}

    root, aux = lax.custom_root(lambda x: x**3 - a * b, 1.0, solve, quotient, has_aux=True)
    return root + 0 * aux["residual"] + lax.stop_gradient(0 * aux["a"])


def of_trees(a: Any, b: Any) -> Any:
    """u u u = a and u v = b; the root is given away, so that nothing could be differentiated."""

    def f(x: Any) -> Any:
        return {"u": x["u"] ** 3 - a, "v": (x["u"] * x["v"][0] - b,)}

    def solve(_: Any, x: Any) -> Any:
        u = lax.stop_gradient(lax.cbrt(a))
        return {"u": u, "v": (lax.stop_gradient(b / u),)}

    def tangent_solve(g: Any, y: Any) -> Any:
        zero, one = jnp.zeros_like(y["u"]), jnp.ones_like(y["u"])
        first, second = g({"u": one, "v": (zero,)}), g({"u": zero, "v": (one,)})
        p, q, r, s = first["u"], second["u"], first["v"][0], second["v"][0]
        determinant = p * s - q * r
        return {
            "u": (s * y["u"] - q * y["v"][0]) / determinant,
            "v": ((p * y["v"][0] - r * y["u"]) / determinant,),
        }

    x = lax.custom_root(f, {"u": 1.0, "v": (1.0,)}, solve, tangent_solve)
    return x["u"] * x["v"][0] ** 2


def with_linear_solve(a: Any, b: Any) -> Any:
    """The tangents' equation is solved by a loop whose length is not known, too."""

    def iterate(g: Any, y: Any) -> Any:
        def step(state: Any) -> Any:
            x, r = state
            slope = g(jnp.ones_like(r))
            return x + r / slope, y - g(x + r / slope)

        return lax.while_loop(lambda s: abs(s[1]) > 1e-6, step, (jnp.zeros_like(y), y))[0]

    def tangent_solve(g: Any, y: Any) -> Any:
        return lax.custom_linear_solve(g, y, iterate, symmetric=True)

    return lax.custom_root(lambda x: x * x * x - a * b, 1.0, newton, tangent_solve)


def cube_root(a: Any, b: Any) -> Any:
    return lax.cbrt(a * b)


ROOTS: dict[str, tuple[Root, Root]] = {
    "scalar": (scalar, cube_root),
    "with aux": (with_aux, cube_root),
    "of trees": (of_trees, lambda a, b: b * b / lax.cbrt(a)),
    "with linear solve": (with_linear_solve, cube_root),
    "in jit": (dt.jit(scalar), cube_root),
}


def in_scan(f: Root) -> Root:
    return lambda a, b: lax.scan(lambda c, s: (f(c, s), c), a, jnp.stack([b, b + 1]))


TRANSFORMATIONS: dict[str, Callable[[Root], Any]] = {
    "value": lambda f: f(A, B),
    "jit": lambda f: dt.jit(f)(A, B),
    "jvp": lambda f: dt.jvp(f, (A, B), (B, A)),
    "jvp of b": lambda f: dt.jvp(lambda b: f(A, b), (B,), (A,)),
    "linearize": lambda f: dt.linearize(f, A, B)[1](B, A),
    "grad": lambda f: dt.grad(f, (0, 1))(A, B),
    "jit of grad": lambda f: dt.jit(dt.grad(f, (0, 1)))(A, B),
    "grad of jit": lambda f: dt.grad(dt.jit(f), (0, 1))(A, B),
    "vmap": lambda f: dt.vmap(f)(VALUES, VALUES + 1),
    "vmap of a": lambda f: dt.vmap(f, (0, None))(VALUES, B),
    "vmap of b": lambda f: dt.vmap(f, (None, 0))(A, VALUES),
    "vmap of vmap": lambda f: dt.vmap(dt.vmap(f, (0, None)), (None, 0))(VALUES, VALUES),
    "vmap of grad": lambda f: dt.vmap(dt.grad(f, (0, 1)), (None, 0))(A, VALUES),
    "grad of vmap": lambda f: dt.grad(lambda a: dt.vmap(f, (None, 0))(a, VALUES).sum())(A),
    "hessian": lambda f: dt.hessian(f, (0, 1))(A, B),
    "jacfwd of jacfwd": lambda f: dt.jacfwd(dt.jacfwd(f, (0, 1)), (0, 1))(A, B),
    "jacrev of jacrev": lambda f: dt.jacrev(dt.jacrev(f, (0, 1)), (0, 1))(A, B),
    "vmap of hessian": lambda f: dt.vmap(dt.hessian(f))(VALUES, VALUES),
    "third order": lambda f: dt.grad(dt.grad(dt.grad(f)))(A, B),
    "scan": lambda f: in_scan(f)(A, B),
    "grad of scan": lambda f: dt.grad(lambda a: in_scan(f)(a, B)[0])(A),
    "checked": lambda f: _checked(f),
}


def _checked(f: Root) -> Any:
    with dt.enable_checks(True):
        return dt.jit(dt.vmap(dt.grad(f)))(VALUES, VALUES)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("root", ROOTS)
def test_transformations_are_those_of_the_root(root: str, transformation: str) -> None:
    found_by, closed_form = ROOTS[root]
    transform = TRANSFORMATIONS[transformation]
    found, wanted = transform(found_by), transform(closed_form)
    assert dt.tree.structure(found) == dt.tree.structure(wanted)
    for one, other in zip(dt.tree.leaves(found), dt.tree.leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-6)


def test_derivatives_are_finite_differences() -> None:
    """Kepler's equation: its root has no closed form."""

    def kepler(e: Any, m: Any) -> Any:
        return lax.custom_root(lambda x: x - e * jnp.sin(x) - m, m, newton, quotient)

    def difference(f: Callable[[float], Any], x: float, step: float = 1e-4) -> float:
        return float(8 * (f(x + step) - f(x - step)) - f(x + 2 * step) + f(x - 2 * step)) / (
            12 * step
        )

    with dt.enable_x64(True):
        for e, m in ((0.1, 0.5), (0.5, 1.0), (0.9, 2.0)):
            gradient = dt.grad(kepler, (0, 1))
            for i, (of_e, of_m) in enumerate(dt.hessian(kepler, (0, 1))(e, m)):
                partial = [lambda e: kepler(e, m), lambda m: kepler(e, m)][i]  # noqa: B023
                np.testing.assert_allclose(
                    gradient(e, m)[i], difference(partial, (e, m)[i]), rtol=1e-9
                )
                by_e = difference(lambda e: gradient(e, m)[i], e)  # noqa: B023
                by_m = difference(lambda m: gradient(e, m)[i], m)  # noqa: B023
                np.testing.assert_allclose((of_e, of_m), (by_e, by_m), rtol=1e-8)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("guess", ["a Python number", "an array"])
def test_dtypes(dtype: str, guess: str) -> None:
    """A Python number as the first guess takes the dtype of what `f` returns."""
    with dt.enable_x64(True):
        a = jnp.asarray(4, dtype)

        def half(a: Any) -> Any:
            start: Any = 1.0 if guess == "a Python number" else jnp.ones((), dtype)
            return lax.custom_root(lambda x: 2 * x - a, start, lambda _, x: x * 0 + a / 2, quotient)

        for f in (half, dt.jit(half)):
            value, tangent = dt.jvp(f, (a,), (a,))
            assert (complex(value), complex(tangent)) == (2, 2)
            assert (value.dtype, tangent.dtype) == (dtype, dtype)
            assert dt.vjp(f, a)[1](a)[0].dtype == dtype


def test_nothing_depends_on_the_first_guess() -> None:
    def root(a: Any, guess: Any) -> Any:
        return lax.custom_root(lambda x: x - a, guess, lambda f, x: x + 3, quotient)

    assert float(root(1.0, 2.0)) == 5.0  # nothing but what `solve` says
    assert [float(g) for g in dt.grad(root, (0, 1))(1.0, 2.0)] == [1.0, 0.0]


def test_roots_among_integers() -> None:
    assert int(lax.custom_root(lambda x: x - 3, 0, lambda f, x: x - f(x), quotient)) == 3


def test_auxiliary_data() -> None:
    def root(a: Any) -> Any:
        return lax.custom_root(
            lambda x: x - a, 0.0, lambda f, x: (x - f(x), {"a": a, "n": 2}), quotient, has_aux=True
        )

    (x, aux), (x_dot, aux_dot) = dt.jvp(root, (2.0,), (3.0,))
    assert (float(x), float(x_dot), float(aux["a"]), int(aux["n"])) == (2.0, 3.0, 2.0, 2)
    assert float(aux_dot["a"]) == 0.0
    assert aux_dot["n"].dtype == dt.float0
    assert dt.vmap(root)(VALUES)[1]["a"].tolist() == VALUES.tolist()
    assert dt.grad(root, has_aux=True)(2.0)[1]["n"] == 2


def _two(x: Any, *_: Any) -> Any:
    return x, x


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], tuple[str, ...]]] = {
    "f is no function": (
        lambda: lax.custom_root(3, 1.0, newton, quotient),  # type: ignore[arg-type]
        TypeError,
        ("for f", "takes a function"),
    ),
    "structure of f": (
        lambda: lax.custom_root(_two, 1.0, newton, quotient),
        TypeError,
        ("f _two (", "test_custom_root.py:", "structure of initial_guess", "a tuple of length 2"),
    ),
    "structure of solve": (
        lambda: lax.custom_root(lambda x: x, 1.0, lambda f, x: (x,), quotient),
        TypeError,
        ("solve <lambda> (", "structure of initial_guess", "a tuple of length 1"),
    ),
    "structure of tangent_solve": (
        lambda: lax.custom_root(lambda x: x, 1.0, newton, lambda g, y: {"x": y}),
        TypeError,
        ("tangent_solve <lambda> (", "a dict with keys ['x']"),
    ),
    "shape of solve": (
        lambda: lax.custom_root(lambda x: x, {"w": 1.0}, lambda f, x: {"w": VALUES}, quotient),
        TypeError,
        ("solve", "initial_guess['w'] is f32[] and is returned as f32[3]"),
    ),
    "dtype of solve": (
        lambda: lax.custom_root(lambda x: x, 1, lambda f, x: x / 2, quotient),
        TypeError,
        ("solve", "initial_guess is i32[] and is returned as f32[]"),
    ),
    "no auxiliary data": (
        lambda: lax.custom_root(lambda x: x, 1.0, newton, quotient, has_aux=True),
        TypeError,
        ("solve newton (", "must return a pair", "has_aux=True"),
    ),
    "first guess is no array": (
        lambda: lax.custom_root(lambda x: x, ["text"], newton, quotient),
        TypeError,
        ("lax.custom_root", "initial_guess[0]", "str"),
    ),
    "argument of g": (
        lambda: lax.custom_root(lambda x: x, {"w": 1.0}, lambda f, x: x, lambda g, y: g(y["w"])),
        TypeError,
        ("the linearized function takes a tree of the structure of initial_guess", "a leaf"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, kind, parts = ERRORS[case]
    with pytest.raises(kind) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
