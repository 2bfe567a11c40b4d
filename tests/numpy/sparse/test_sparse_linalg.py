"""Linear equations and eigenvalues of sparse matrices."""

from __future__ import annotations

import numpy as np
import pytest

import dovetail as dt
from dovetail import numpy as jnp
from dovetail.experimental import sparse
from dovetail.experimental.sparse.linalg import lobpcg_standard, spsolve

MATRIX = np.array([[4, 0, 1], [0, 3, 0], [2, 0, 5]], np.float32)
RIGHT = np.array([1, 2, 3], np.float32)
CSR = sparse.CSR.fromdense(MATRIX)
PARTS = (CSR.indices, CSR.indptr)


@pytest.mark.parametrize("reorder", [0, 1, 2, 3])
def test_solutions_and_derivatives(reorder: int) -> None:
    def total(data: jnp.ndarray, b: jnp.ndarray) -> jnp.ndarray:
        return (spsolve(data, *PARTS, b, reorder=reorder) ** 2).sum()

    def dense_total(data: jnp.ndarray, b: jnp.ndarray) -> jnp.ndarray:
        matrix = sparse.CSR((data, *PARTS), shape=(3, 3)).todense()
        return (jnp.linalg.solve(matrix, b) ** 2).sum()

    solution = spsolve(CSR.data, *PARTS, RIGHT, reorder=reorder)
    np.testing.assert_allclose(solution, np.linalg.solve(MATRIX, RIGHT), rtol=1e-5)
    found = dt.jit(dt.grad(total, (0, 1)))(CSR.data, RIGHT)
    expected = dt.grad(dense_total, (0, 1))(CSR.data, jnp.asarray(RIGHT))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_batches_are_solved_one_by_one() -> None:
    rights = np.stack([RIGHT, -RIGHT, 2 * RIGHT])
    found = dt.vmap(lambda b: spsolve(CSR.data, *PARTS, b))(rights)
    np.testing.assert_allclose(found, np.linalg.solve(MATRIX, rights.T).T, rtol=1e-5)


def test_integers_are_converted_and_singular_matrices_give_nan() -> None:
    indices, indptr = jnp.array([0, 1]), jnp.array([0, 1, 2])
    found = spsolve(jnp.array([2, 4]), indices, indptr, jnp.array([1, 1]))
    np.testing.assert_array_equal(found, [0.5, 0.25])
    assert np.isnan(spsolve(jnp.array([2.0, 0.0]), indices, indptr, jnp.ones(2))).all()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "function"])
def test_eigenvalues(kind: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.standard_normal((40, 40)))
    values = np.concatenate([[30.0, 20.0, 15.0], np.linspace(-5, 10, 37)])
    matrix = ((basis * values) @ basis.T).astype(dtype)
    given = {
        "dense": matrix,
        "sparse": sparse.BCOO.fromdense(matrix),
        "function": lambda x: jnp.asarray(matrix) @ x,
    }[kind]
    start = rng.standard_normal((40, 3)).astype(dtype)
    found, vectors, steps = lobpcg_standard(given, start)
    np.testing.assert_allclose(found, values[:3], rtol=1e-4)
    np.testing.assert_allclose(matrix @ vectors, vectors * found, atol=1e-2)
    assert 0 < int(steps) <= 100
    assert int(lobpcg_standard(given, start, m=2)[2]) == 2
