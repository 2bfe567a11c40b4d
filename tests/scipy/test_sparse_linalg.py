"""Iterative solvers: solutions against NumPy's and SciPy's, and the laws of linear systems."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse.linalg as reference

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.scipy.sparse.linalg import bicgstab, cg, gmres

pytestmark = pytest.mark.tables

SOLVERS = {
    "cg": cg,
    "bicgstab": bicgstab,
    "batched": gmres,
    "incremental": partial(gmres, solve_method="incremental"),
}


@pytest.fixture(params=SOLVERS)
def solver(request):
    return SOLVERS[request.param]


def _system(solver, dtype, size=12):
    rng = np.random.default_rng(3)
    a = rng.normal(size=(size, size))
    b = rng.normal(size=size)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.normal(size=(size, size))
        b = b + 1j * rng.normal(size=size)
    a = a @ a.conj().T / size + np.eye(size) if solver is cg else 4 * np.eye(size) + a / 2
    return a.astype(dtype), b.astype(dtype)


def test_solutions_are_within_the_tolerance(solver):
    dtype = "float32" if solver in (bicgstab, gmres) else "complex128"
    with dt.enable_x64(True):
        a, b = _system(solver, dtype)
        tol = 1e-5 if dtype in ("float32", "complex64") else 1e-12
        inverse = np.linalg.inv(a + 0.1 * np.eye(len(b))).astype(dtype)
        for given in ({}, {"M": inverse, "x0": np.linalg.solve(a, b) + np.asarray(0.01, dtype)}):
            x, info = solver(a, b, tol=tol, **given)
            assert x.dtype == dtype
            assert int(info) == 0
            assert np.linalg.norm(a @ np.asarray(x) - b) <= 2 * tol * np.linalg.norm(b)


def test_info_says_what_scipy_says(solver):
    a, b = _system(solver, "float32")
    for given in (b, np.zeros_like(b)):
        found = solver(a, given, maxiter=2) if solver in (cg, bicgstab) else None
        if found is not None:
            of = getattr(reference, solver.__name__)
            x, info = of(a, given, rtol=1e-5, maxiter=2)
            np.testing.assert_allclose(found[0], x, rtol=1e-4, atol=1e-5)
            assert int(found[1]) == info
        else:
            x, info = solver(a, given, restart=3, maxiter=2)
            expected, _ = reference.gmres(a, given, rtol=1e-5, restart=3, maxiter=2)
            np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-5)
            assert int(info) == (2 if given.any() else 0)


def test_what_is_not_finite_has_no_solution(solver):
    a, b = _system(solver, "float32")
    x, info = solver(a, b + np.float32(np.inf))
    assert np.isnan(x).all()
    assert int(info) == -1


def test_a_singular_system_ends(solver):
    x, info = solver(np.diag([1.0, 0.0]).astype("float32"), np.ones(2, "float32"))
    assert np.isfinite(x).all()
    assert int(info) != 0


def test_no_tolerance_ends_at_the_solution(solver):
    a, b = _system(solver, "float32")
    x, _ = solver(a, b, tol=0.0, atol=0.0)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-4, atol=1e-5)


def test_trees_narrow_floats_integers_and_nothing(solver):
    def operator(x):
        return {
            "u": 4 * x["u"] + x["v"][0].astype(x["u"].dtype),
            "v": (2 * x["v"]).at[0].add(jnp.sum(x["u"])),
        }

    b = {"u": jnp.array([1.0, 2.0], "bfloat16"), "v": jnp.arange(3)}
    x, info = solver(operator, b)
    assert {k: str(v.dtype) for k, v in x.items()} == {"u": "bfloat16", "v": "float32"}
    assert int(info) == 0
    matrix = np.array([[4, 0, 1, 0, 0], [0, 4, 1, 0, 0], [1, 1, 2, 0, 0], [0, 0, 0, 2, 0]])
    matrix = np.concatenate([matrix, [[0, 0, 0, 0, 2]]])
    found = np.concatenate([np.asarray(x["u"], "float32"), x["v"]])
    # bfloat16 rounds the unknowns, so that the residual is as small as it can be.
    np.testing.assert_allclose(matrix @ found, [1, 2, 0, 1, 2], atol=0.02)
    x, info = solver(np.zeros((0, 0), "float32"), np.zeros(0, "float32"))
    assert x.shape == (0,)
    assert int(info) == 0


def test_derivatives_and_batches(solver):
    with dt.enable_x64(True):
        a, b = _system(solver, "float64", 5)
        m = np.diag(1 / np.diag(a)) @ (np.eye(5) + (0 if solver is cg else 0.1 * np.eye(5, k=1)))
        w = np.arange(1.0, 6.0)

        def iterated(a, b):
            operator = (a + a.T) / 2 if solver is cg else a
            return solver(lambda x: operator @ x, b, tol=1e-13, M=lambda x: m @ x)[0]

        def exact(a, b):
            return jnp.linalg.solve((a + a.T) / 2 if solver is cg else a, b)

        def laws(solve, many):
            gradient = dt.grad(lambda a, b: w @ solve(a, b), (0, 1))(a, b)
            moved = dt.jvp(solve, (a, b), (a / 3 + 1, 2 * b - 1))
            return gradient, moved, dt.vmap(solve, (None, 0))(a, many)

        many = np.stack([b, 2 * b, 0 * b, b + 1])
        found, expected = dt.jit(lambda x: laws(iterated, x))(many), laws(exact, many)
        for x, y in zip(dt.tree.leaves(found), dt.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-10)


def test_mistakes_are_refused(solver):
    a, b = np.eye(2, dtype="float32"), np.ones(2, "float32")
    for error, given in [
        (TypeError, {"A": 3}),
        (ValueError, {"A": a[:1]}),
        (ValueError, {"x0": np.zeros(3, "float32")}),
        (ValueError, {"x0": (b,)}),
        (TypeError, {"x0": b + 1j}),
        (TypeError, {"A": lambda x: (x,)}),
        (TypeError, {"A": lambda x: x[:1]}),
        (TypeError, {"M": 3}),
        (ValueError, {"M": a[:1]}),
        (TypeError, {"b": {"a": b}}),
        (TypeError, {"maxiter": "some"}),
        (TypeError, {"maxiter": b}),
        (TypeError, {"tol": "x"}),
        (TypeError, {"atol": b}),
    ]:
        with pytest.raises(error, match=r"cg|bicgstab|gmres"):
            solver(**{"A": a, "b": b, **given})
    for given in ({"solve_method": "other"}, {"solve_method": b}, {"restart": 0}):
        with pytest.raises(ValueError, match="gmres"):
            gmres(a, b, **given)
