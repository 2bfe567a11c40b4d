"""custom_linear_solve: derivatives that solve the same system again.

The laws: whatever way a solution is found, its derivatives of every order, in both modes, under
jit, vmap and in loops, are those of the same solution written in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

A = jnp.array([[3.0, 1.0], [0.5, 2.0]])
B = jnp.array([1.0, -2.0])
Solver = Callable[[Any, Any], Any]


def inverse(a: Any) -> Any:
    determinant = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    return jnp.array([[a[1, 1], -a[0, 1]], [-a[1, 0], a[0, 0]]]) / determinant


def symmetrized(a: Any) -> Any:
    return a + a.T + 4 * jnp.eye(2, dtype=a.dtype)


def opaque(a: Any, b: Any) -> Any:
    """A solution through which nothing could be differentiated."""
    return lax.stop_gradient(inverse(a)) @ b


def conjugate_gradients(matvec: Any, b: Any) -> Any:
    """A loop whose length is not known: it has no gradient of its own."""

    def step(state: Any) -> Any:
        x, r, p, norm = state
        product = matvec(p)
        length = norm / jnp.vdot(p, product)
        x, r = x + length * p, r - length * product
        after = jnp.vdot(r, r)
        return x, r, r + after / norm * p, after

    start = (jnp.zeros_like(b), b, b, jnp.vdot(b, b))
    return lax.while_loop(lambda s: s[3] > 1e-10, step, start)[0]


def general(a: Any, b: Any) -> Any:
    return lax.custom_linear_solve(
        lambda x: a @ x, b, lambda _, y: opaque(a, y), lambda _, y: opaque(a.T, y)
    )


def iterative(a: Any, b: Any) -> Any:
    s = symmetrized(a)
    return lax.custom_linear_solve(lambda x: s @ x, b, conjugate_gradients, symmetric=True)


def with_aux(a: Any, b: Any) -> Any:
    def solve(matvec: Any, y: Any) -> Any:
        x = opaque(a, y)
        return x, {"residual": matvec(x) - y, "steps": 1}

    def transpose_solve(vecmat: Any, y: Any) -> Any:
        return opaque(a.T, y), (vecmat(y), None)

    return lax.custom_linear_solve(lambda x: a @ x, b, solve, transpose_solve, has_aux=True)[0]


def of_trees(a: Any, b: Any) -> Any:
    def matvec(x: Any) -> Any:
        y = a @ jnp.array([x["u"], x["v"][0]])
        return {"u": y[0], "v": (y[1],)}

    def by(matrix: Any) -> Any:
        def solve(_: Any, y: Any) -> Any:
            x = opaque(matrix, jnp.array([y["u"], y["v"][0]]))
            return {"u": x[0], "v": (x[1],)}

        return solve

    x = lax.custom_linear_solve(matvec, {"u": b[0], "v": (b[1],)}, by(a), by(a.T))
    return jnp.array([x["u"], x["v"][0]])


SYSTEMS: dict[str, tuple[Solver, Solver]] = {
    "general": (general, lambda a, b: inverse(a) @ b),
    "iterative": (iterative, lambda a, b: inverse(symmetrized(a)) @ b),
    "with aux": (with_aux, lambda a, b: inverse(a) @ b),
    "of trees": (of_trees, lambda a, b: inverse(a) @ b),
    "in jit": (dt.jit(general), lambda a, b: inverse(a) @ b),
}


def sum_of_squares(solver: Solver) -> Solver:
    return lambda a, b: (solver(a, b) ** 2).sum()


def in_scan(solver: Solver) -> Solver:
    return lambda a, b: lax.scan(lambda c, s: (solver(a + s, c), c), b, jnp.array([0.0, 0.3]))


def in_cond(solver: Solver) -> Solver:
    return lambda a, b: lax.cond(a[0, 0] > 0, solver, lambda a, b: b, a, b)


TRANSFORMATIONS: dict[str, Callable[[Solver], Any]] = {
    "value": lambda f: f(A, B),
    "jit": lambda f: dt.jit(f)(A, B),
    "jvp": lambda f: dt.jvp(f, (A, B), (A * A, B + 1)),
    "jvp of b": lambda f: dt.jvp(lambda b: f(A, b), (B,), (B + 1,)),
    "linearize": lambda f: dt.linearize(f, A, B)[1](A * A, B + 1),
    "vjp": lambda f: dt.vjp(f, A, B)[1](B),
    "jit of vjp": lambda f: dt.jit(lambda a, b: dt.vjp(f, a, b)[1](b))(A, B),
    "linear_transpose": lambda f: dt.linear_transpose(lambda b: f(A, b), B)(B + 1),
    "vmap": lambda f: dt.vmap(f)(jnp.stack([A, 2 * A, A.T]), jnp.stack([B, B, -B])),
    "vmap of a": lambda f: dt.vmap(f, (2, None))(jnp.stack([A, 2 * A], 2), B),
    "vmap of b": lambda f: dt.vmap(f, (None, 1))(A, jnp.stack([B, -B], 1)),
    "vmap of vmap": lambda f: dt.vmap(dt.vmap(f, (0, None)), (None, 0))(
        jnp.stack([A, 2 * A]), jnp.stack([B, -B, 2 * B])
    ),
    "vmap of grad": lambda f: dt.vmap(dt.grad(sum_of_squares(f), (0, 1)), (None, 0))(
        A, jnp.stack([B, -B])
    ),
    "grad of vmap": lambda f: dt.grad(
        lambda a: (dt.vmap(f, (None, 0))(a, jnp.stack([B, 2 * B])) ** 2).sum()
    )(A),
    "hessian": lambda f: dt.hessian(sum_of_squares(f), (0, 1))(A, B),
    "jacfwd of jacfwd": lambda f: dt.jacfwd(dt.jacfwd(sum_of_squares(f)))(A, B),
    "jacrev of jacrev": lambda f: dt.jacrev(dt.jacrev(sum_of_squares(f)))(A, B),
    "third order": lambda f: dt.grad(
        lambda t: dt.grad(dt.grad(lambda s: sum_of_squares(f)(A * s, B)))(t)
    )(1.2),
    "scan": lambda f: in_scan(f)(A, B),
    "grad of scan": lambda f: dt.grad(lambda a: (in_scan(f)(a, B)[0] ** 2).sum())(A),
    "grad of cond": lambda f: dt.grad(lambda a: in_cond(f)(a, B).sum())(A),
    "checked": lambda f: _checked(f),
}


def _checked(f: Solver) -> Any:
    with dt.enable_checks(True):
        return dt.jit(dt.grad(sum_of_squares(f)))(A, B)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_transformations_are_those_of_the_solution(system: str, transformation: str) -> None:
    solver, closed_form = SYSTEMS[system]
    transform = TRANSFORMATIONS[transformation]
    found, wanted = transform(solver), transform(closed_form)
    assert dt.tree.structure(found) == dt.tree.structure(wanted)
    for one, other in zip(dt.tree.leaves(found), dt.tree.leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 2)])
def test_dtypes_and_shapes(dtype: str, shape: tuple[int, ...]) -> None:
    with dt.enable_x64(True):
        b = jnp.ones(shape, dtype) * (1 + 1j if dtype == "complex64" else 1)
        scale = jnp.asarray(2, dtype)

        def solver(s: Any, b: Any) -> Any:
            return lax.custom_linear_solve(
                lambda x: s * x, b, lambda _, y: y / lax.stop_gradient(s), symmetric=True
            )

        for f in (solver, dt.jit(solver)):
            outs, tangents = dt.jvp(f, (scale, b), (jnp.ones_like(scale), b))
            found, pull = dt.vjp(f, scale, b)
            of_scale, of_b = pull(jnp.ones_like(b))
            np.testing.assert_allclose(outs, b / 2)
            np.testing.assert_allclose(found, b / 2)
            np.testing.assert_allclose(tangents, b / 2 - b / 4)
            np.testing.assert_allclose(of_scale, (-b / 4).sum())
            np.testing.assert_allclose(of_b, jnp.ones_like(b) / 2)
            assert {x.dtype.name for x in (outs, tangents, found, of_scale, of_b)} == {dtype}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_python_number_takes_the_dtype_of_the_system(dtype: str) -> None:
    s = jnp.asarray(2, dtype)
    x = lax.custom_linear_solve(lambda x: s * x, 3.0, lambda _, y: y / s, symmetric=True)
    assert (float(x), x.dtype) == (1.5, dtype)


def test_integers_are_solved_exactly_and_have_no_derivative() -> None:
    def solve(s: Any, b: Any) -> Any:
        return lax.custom_linear_solve(
            lambda x: {"n": 3 * x["n"], "r": s * x["r"]},
            b,
            lambda _, y: {"n": y["n"] // 3, "r": y["r"] / s},
            symmetric=True,
        )

    b = {"n": jnp.array(12), "r": jnp.array(5.0)}
    outs, tangents = dt.jvp(lambda s: solve(s, b), (2.0,), (1.0,))
    assert (int(outs["n"]), float(outs["r"]), float(tangents["r"])) == (4, 2.5, -1.25)
    assert tangents["n"].dtype == dt.float0


def test_auxiliary_data() -> None:
    def solve(a: Any) -> Any:
        return lax.custom_linear_solve(
            lambda x: a * x, 6.0, lambda _, y: (y / a, {"a": a, "n": 7}), symmetric=True,
            has_aux=True,
        )  # fmt: skip

    (x, aux), (x_dot, aux_dot) = dt.jvp(solve, (2.0,), (1.0,))
    assert (float(x), float(x_dot), float(aux["a"]), int(aux["n"])) == (3.0, -1.5, 2.0, 7)
    assert float(aux_dot["a"]) == 0.0
    assert aux_dot["n"].dtype == dt.float0
    assert dt.vmap(solve)(jnp.array([1.0, 2.0]))[1]["a"].tolist() == [1.0, 2.0]


def test_derivatives_do_not_look_into_the_solver() -> None:
    """The solution is nothing but what `solve` says, and its derivative is that of the system."""

    def wrong(s: Any) -> Any:
        return lax.custom_linear_solve(lambda x: s * x, 1.0, lambda _, y: 10 * y, symmetric=True)

    assert float(wrong(2.0)) == 10.0
    assert float(dt.grad(wrong)(2.0)) == -100.0


def test_programs() -> None:
    jaxpr = dt.make_jaxpr(general)(A, B)
    (eqn,) = [e for e in jaxpr.eqns if e.primitive is lax.linear_solve_p]
    assert eqn.primitive.name == "custom_linear_solve"
    assert sorted(eqn.params) == ["const_lengths", "jaxprs"]
    text = str(jaxpr)
    assert "const_lengths=_LinearSolveTuple(matvec=1, vecmat=1, solve=1, transpose_solve=1)" in text
    one_way = dt.make_jaxpr(
        lambda b: lax.custom_linear_solve(lambda x: A @ x, b, lambda _, y: opaque(A, y))
    )(B)
    assert "vecmat=None" in str(one_way)
    assert "transpose_solve=None)" in str(one_way)


def test_matvec_is_compiled_once_for_the_solution() -> None:
    text = dt.jit(general).lower(A, B).as_text()
    assert text.count("dot_general") == 1  # that of `opaque`: the system itself is not multiplied


def _two(x: Any) -> Any:
    return x, x


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], tuple[str, ...]]] = {
    "matvec is no function": (
        lambda: lax.custom_linear_solve(A, B, lambda m, y: y),  # type: ignore[arg-type]
        TypeError,
        ("for matvec", "takes a function"),
    ),
    "transpose_solve is no function": (
        lambda: lax.custom_linear_solve(lambda x: x, B, lambda m, y: y, 3),  # type: ignore[arg-type]
        TypeError,
        ("for transpose_solve",),
    ),
    "structure of matvec": (
        lambda: lax.custom_linear_solve(_two, B, lambda m, y: y),
        TypeError,
        ("matvec _two (", "test_linear_solve.py:", "structure of b", "a tuple of length 2"),
    ),
    "structure of solve": (
        lambda: lax.custom_linear_solve(lambda x: x, {"w": B}, lambda m, y: y["w"]),
        TypeError,
        ("solve <lambda> (", "structure of b", "a dict with keys ['w']"),
    ),
    "shape of matvec": (
        lambda: lax.custom_linear_solve(lambda x: {"w": x["w"][:1]}, {"w": B}, lambda m, y: y),
        TypeError,
        ("matvec", "b['w'] is f32[2] and is returned as f32[1]", "test_linear_solve.py:"),
    ),
    "dtype of solve": (
        lambda: lax.custom_linear_solve(lambda x: x, 1, lambda m, y: y / 3.0),
        TypeError,
        ("solve", "b is i32[] and is returned as f32[]"),
    ),
    "shape of transpose_solve": (
        lambda: lax.custom_linear_solve(lambda x: x, B, lambda m, y: y, lambda m, y: y[:1]),
        TypeError,
        ("transpose_solve", "b is f32[2] and is returned as f32[1]"),
    ),
    "no auxiliary data": (
        lambda: lax.custom_linear_solve(lambda x: x, B, lambda m, y: y, has_aux=True),
        TypeError,
        ("solve <lambda> (", "must return a pair", "has_aux=True"),
    ),
    "no transposed solution": (
        lambda: dt.grad(
            lambda b: lax.custom_linear_solve(lambda x: x, b, lambda m, y: y).sum()
        )(B),
        TypeError,
        ("reverse mode", "transpose_solve", "symmetric=True"),
    ),
    "argument of vecmat": (
        lambda: lax.custom_linear_solve(
            lambda x: x, {"w": B}, lambda m, y: y, lambda m, y: m(y["w"])
        ),
        TypeError,
        ("the product with the transpose takes a tree of the structure of b", "a leaf"),
    ),
    "b is no array": (
        lambda: lax.custom_linear_solve(lambda x: x, {"w": "text"}, lambda m, y: y),
        TypeError,
        ("lax.custom_linear_solve", "b['w']", "str"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, kind, parts = ERRORS[case]
    with pytest.raises(kind) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
