"""BCSR, COO, CSR and CSC, sparse arrays that are made without a dense one, and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental import sparse

FORMATS = {"bcoo": sparse.BCOO, "bcsr": sparse.BCSR, "coo": sparse.COO}
FORMATS |= {"csr": sparse.CSR, "csc": sparse.CSC}
MATRIX = np.array([[0, 2, 0, 1], [3, 0, 0, 0], [0, 0, -1, 4]], np.float32)
VECTOR = np.array([1, -2, 3, 5], np.float32)
OTHER = np.arange(12, dtype=np.float32).reshape(3, 4)

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "T": lambda x: x.T,
    "matvec": lambda x: x @ VECTOR,
    "matmat": lambda x: x @ OTHER.T,
    "vecmat": lambda x: VECTOR[:3] @ x,
    "matmat_left": lambda x: OTHER.T @ x,
    "sparse_product": lambda x: x @ x.T,
    "sum": lambda x: x.sum(),
    "sum_rows": lambda x: x.sum(0),
    "arithmetic": lambda x: (2 * x + x) / 4 - x * OTHER,
    "with_dense": lambda x: OTHER - x,
    "product": lambda x: x * x,
    "power": lambda x: abs(-x) ** 3,
    "row": lambda x: x[2],
    "part": lambda x: x[1:, ::-1],
}


@pytest.mark.parametrize("name", FORMATS)
def test_as_numpy(name: str) -> None:
    cls = FORMATS[name]
    mat = cls.fromdense(MATRIX, nse=9)  # four places are unused
    assert repr(mat) == f"{cls.__name__}(float32[3, 4], nse=9)"
    np.testing.assert_array_equal(sparse.todense(mat), MATRIX)

    def results(mat: Any) -> list[Any]:
        return [sparse.todense(operation(mat)) for operation in OPERATIONS.values()]

    with dt.optimization_level("O0"):
        found = dt.jit(results)(mat)
    for operation, result in zip(OPERATIONS.items(), found, strict=True):
        expected = operation[1](MATRIX)
        np.testing.assert_allclose(result, expected, rtol=1e-5, err_msg=operation[0])
    assert type(mat + mat) is type(mat * 2) is type(mat[1:]) is cls
    assert type(mat @ mat.T) is cls
    assert type(dt.jit(lambda x: x)(mat)) is cls


@pytest.mark.parametrize("name", FORMATS)
def test_derivatives(name: str) -> None:
    mat = FORMATS[name].fromdense(MATRIX)

    def loss(mat: Any, x: Any) -> Any:
        return ((mat @ x) ** 2).sum()

    expected = dt.grad(loss, (0, 1))(jnp.asarray(MATRIX), jnp.asarray(VECTOR))
    (value, found) = sparse.value_and_grad(loss, (0, 1))(mat, VECTOR)
    assert float(value) == float(loss(MATRIX, VECTOR))
    assert type(found[0]) is type(mat)
    np.testing.assert_allclose(found[0].todense(), expected[0] * (MATRIX != 0), rtol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
    (tree, aux) = sparse.grad(lambda t: (loss(t["a"], VECTOR), 7), has_aux=True)({"a": mat})
    assert aux == 7
    np.testing.assert_allclose(tree["a"].todense(), found[0].todense())
    for jacobian in (sparse.jacfwd, sparse.jacrev):
        derivative = jacobian(lambda mat: mat @ VECTOR)(mat)
        full = dt.jacfwd(lambda mat: mat @ VECTOR)(jnp.asarray(MATRIX))
        assert (type(derivative), derivative.n_batch) == (sparse.BCOO, 1)
        np.testing.assert_allclose(derivative.todense(), full * (MATRIX != 0))
    batch = np.stack([VECTOR, 2 * VECTOR])
    found_each = dt.vmap(lambda x: mat @ x)(batch)
    np.testing.assert_allclose(found_each, batch @ MATRIX.T)


def test_products_do_not_see_what_unused_places_hold() -> None:
    """Neither results nor derivatives: nan stays where it is."""
    columns, indptr = np.array([1, 9, 0, 2]), np.array([0, 2, 2, 3])
    data = np.array([2.0, np.nan, 3.0, np.nan], np.float32)
    expected = np.zeros((3, 4), np.float32)
    expected[0, 1], expected[2, 0] = 2, 3
    for mat in (
        sparse.CSR((data, columns, indptr), shape=(3, 4)),
        sparse.BCSR((data, columns, indptr), shape=(3, 4)),
        sparse.BCSR((data, columns, indptr), shape=(3, 4)).to_bcoo(),
    ):
        for rhs in (OTHER.T, OTHER.T[:, 0]):
            np.testing.assert_array_equal(mat @ rhs, expected @ rhs)
            gradient = dt.grad(lambda x, mat=mat: (mat @ x).sum())(rhs)
            dense = dt.grad(lambda x: (expected @ x).sum())(rhs)
            np.testing.assert_array_equal(gradient, dense)


def test_many_elements() -> None:
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.random(300, 200, 0.05, "csr", "float32", rng)
    rhs = rng.standard_normal((200, 7)).astype(np.float32)
    expected = matrix @ rhs
    mats = [sparse.BCSR.from_scipy_sparse(matrix), sparse.BCOO.from_scipy_sparse(matrix)]
    mats += [mats[1].sort_indices(), sparse.CSR.from_bcoo(mats[1]), sparse.COO.from_bcoo(mats[1])]
    for mat in mats:
        np.testing.assert_allclose(mat @ rhs, expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(mat @ rhs[:, 0], expected[:, 0], rtol=1e-4, atol=1e-4)


def test_batches_of_compressed_rows() -> None:
    stack = np.stack([MATRIX, 2 * MATRIX[::-1]])
    mats = sparse.BCSR.fromdense(stack, n_batch=1)
    assert (mats.n_batch, mats.n_sparse, mats.n_dense) == (1, 2, 0)
    np.testing.assert_array_equal(mats.todense(), stack)
    np.testing.assert_array_equal(dt.vmap(lambda mat: mat @ VECTOR)(mats), stack @ VECTOR)
    _, rows = lax.scan(lambda carry, mat: (carry, mat @ VECTOR), 0, mats)
    np.testing.assert_array_equal(rows, stack @ VECTOR)
    wide = sparse.bcsr_broadcast_in_dim(mats, shape=(5, 2, 3, 4), broadcast_dimensions=(1, 2, 3))
    np.testing.assert_array_equal(wide.todense(), np.broadcast_to(stack, (5, 2, 3, 4)))
    joined = sparse.bcsr_concatenate([mats, mats], dimension=2)
    np.testing.assert_array_equal(joined.todense(), np.concatenate([stack, stack], 2))


@pytest.mark.parametrize("name", FORMATS)
def test_empty_and_eye(name: str) -> None:
    nothing = sparse.empty((2, 3), "int32", sparse_format=name)
    assert (type(nothing), nothing.nse, nothing.dtype) == (FORMATS[name], 0, np.dtype("int32"))
    np.testing.assert_array_equal(nothing.todense(), np.zeros((2, 3)))
    for k in (-4, -1, 0, 2, 5):
        ones = sparse.eye(3, 4, k=k, sparse_format=name)
        np.testing.assert_array_equal(ones.todense(), np.eye(3, 4, k))
        assert ones.nse == np.eye(3, 4, k).sum()


@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)])
def test_eye_and_random_arrays_in_layouts(layout: tuple[int, int]) -> None:
    n_batch, n_dense = layout
    found = sparse.eye(3, 4, k=1, n_batch=n_batch, n_dense=n_dense)
    np.testing.assert_array_equal(found.todense(), np.eye(3, 4, 1))
    mat = sparse.random_bcoo(
        dt.random.key(0), (2, 6, 5), n_batch=n_batch, n_dense=n_dense, nse=0.5, sorted_indices=True
    )
    volume = int(np.prod((2, 6, 5)[n_batch : 3 - n_dense]))
    assert (mat.shape, mat.nse, mat.n_batch) == ((2, 6, 5), -(-volume // 2), n_batch)
    assert mat.sum_duplicates(remove_zeros=False).nse == mat.nse  # positions differ
    drawn = sparse.random_bcoo(
        dt.random.key(1), (9,), nse=4, dtype="float16", generator=dt.random.normal
    )
    assert (drawn.dtype, drawn.nse, drawn.unique_indices) == (np.dtype("float16"), 4, True)
