"""Mistakes with sparse arrays: what is wrong, with which argument, and what to write."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import numpy as jnp
from dovetail.experimental import sparse
from dovetail.experimental.sparse import BCOO, BCSR, COO, CSC, CSR
from dovetail.experimental.sparse.linalg import lobpcg_standard, spsolve

ONES = jnp.ones((2, 3))
NUMBERS = (((1,), (0,)), ((), ()))


def mat() -> Any:
    return BCOO.fromdense(ONES)


TABLE: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: BCOO((jnp.ones(3), jnp.zeros((2, 2), int)), shape=(2, 3)),
        ValueError,
        "must have the shape (2), got (3,)",
    ),
    (
        lambda: BCOO((jnp.ones(2), jnp.zeros(2, int)), shape=(2, 3)),
        ValueError,
        "(*batch, nse, n_sparse)",
    ),
    (
        lambda: BCOO((jnp.ones(2), jnp.zeros((2, 3), int)), shape=(2, 3)),
        ValueError,
        "more than there are",
    ),
    (
        lambda: BCOO((jnp.ones(2), jnp.zeros((2, 2))), shape=(2, 3)),
        TypeError,
        "must be integers, got float32",
    ),
    (
        lambda: BCOO((jnp.ones((2, 2)), jnp.zeros((5, 2, 1), int)), shape=(2, 3)),
        ValueError,
        "batch dimensions of indices",
    ),
    (
        lambda: BCSR((jnp.ones(2), jnp.zeros(2, int), jnp.zeros(2, int)), shape=(2, 3)),
        ValueError,
        "indptr must have one element more",
    ),
    (
        lambda: COO((jnp.ones(2), jnp.zeros(2, int), jnp.zeros(3, int)), shape=(2, 3)),
        ValueError,
        "vectors of one length",
    ),
    (
        lambda: CSR((jnp.ones(2), jnp.zeros(2, int), jnp.zeros(2, int)), shape=(2, 3)),
        ValueError,
        "one of length 3",
    ),
    (
        lambda: CSC((jnp.ones(2), jnp.zeros(2, int), jnp.zeros(2, int)), shape=(2, 3)),
        ValueError,
        "one of length 4",
    ),
    (
        lambda: CSR((jnp.ones(2), jnp.zeros(2, int), jnp.zeros(2, int)), shape=(2, 3, 4)),
        ValueError,
        "two dimensions",
    ),
    (lambda: BCOO.fromdense(ONES, n_batch=2, n_dense=1), ValueError, "n_batch and n_dense"),
    (lambda: BCOO.fromdense(ONES, nse=-1), ValueError, "nse must not be negative"),
    (lambda: BCOO.fromdense(ONES, index_dtype=float), TypeError, "one of integers"),
    (
        lambda: BCOO.fromdense(jnp.ones(300), index_dtype="int8"),
        OverflowError,
        "does not hold positions up to 300",
    ),
    (lambda: BCOO.fromdense(mat()), TypeError, "takes a dense array, got BCOO"),
    (lambda: dt.jit(BCOO.fromdense)(ONES), dt.errors.ConcretizationTypeError, "nse"),
    (lambda: BCSR.fromdense(jnp.ones(3)), ValueError, "two sparse dimensions must be left"),
    (lambda: BCSR.from_bcoo(BCOO.fromdense(jnp.ones(3))), ValueError, "n_sparse=1"),
    (
        lambda: BCOO.from_scipy_sparse(np.ones((2, 3))),
        TypeError,
        "BCOO.fromdense takes a dense one",
    ),
    (lambda: dt.jit(lambda m: m.sum_duplicates())(mat()), ValueError, "nse must be given"),
    (
        lambda: BCOO.fromdense(jnp.eye(3)).update_layout(n_batch=1, n_dense=1),
        sparse.SparseEfficiencyError,
        "increasing n_dense from 0 to 1",
    ),
    (lambda: mat().update_layout(n_batch=3), ValueError, "exceed the 2 dimensions"),
    (lambda: mat().update_layout(on_inefficient="no"), ValueError, "'error', 'warn' or None"),
    (lambda: mat().transpose((1, 1)), ValueError, "axes"),
    (lambda: mat().reshape(5), TypeError, "has 6 elements"),
    (
        lambda: mat() @ jnp.ones(4),
        TypeError,
        "contracting dimensions must have the same sizes, got (3,) of lhs",
    ),
    (lambda: mat() @ 2.0, ValueError, "at least one dimension"),
    (lambda: mat() + jnp.ones(5), ValueError, "do not broadcast"),
    (lambda: mat() > 0, NotImplementedError, "a comparison of a sparse array is dense"),
    (lambda: 1 / mat(), NotImplementedError, "a quotient by a sparse array"),
    (lambda: mat() + 1, NotImplementedError, "use sparse.todense(mat)"),
    (lambda: bool(mat()), ValueError, "ambiguous"),
    (lambda: np.asarray(mat()), TypeError, "use mat.todense()"),
    (lambda: jnp.sin(mat()), TypeError, ""),
    (lambda: hash(mat()), TypeError, "unhashable"),
    (lambda: len(BCOO.fromdense(jnp.float32(1))), TypeError, "without dimensions"),
    (lambda: sparse.bcoo_todense(ONES), TypeError, "requires mat to be a BCOO array, got Array"),
    (lambda: sparse.bcsr_todense(mat()), TypeError, "requires mat to be a BCSR array, got BCOO"),
    (lambda: sparse.coo_todense(mat()), TypeError, "requires mat to be a COO matrix, got BCOO"),
    (
        lambda: sparse.csr_matvec(CSR.fromdense(ONES), jnp.ones(2)),
        ValueError,
        "takes a vector whose first dimension is 3, got the shape (2,)",
    ),
    (
        lambda: sparse.coo_matmat(COO.fromdense(ONES), jnp.ones(3), transpose=True),
        ValueError,
        "the transpose of a matrix of shape (2, 3) takes a matrix",
    ),
    (
        lambda: sparse.bcoo_dot_general(mat(), ONES, dimension_numbers=((0,), (0,))),
        TypeError,
        "dimension_numbers must be",
    ),
    (
        lambda: sparse.bcoo_dot_general(mat(), ONES, dimension_numbers=NUMBERS, precision="high"),
        NotImplementedError,
        "precision",
    ),
    (lambda: sparse.bcoo_concatenate([], dimension=0), ValueError, "at least one"),
    (
        lambda: sparse.bcoo_concatenate([mat(), mat().T], dimension=0),
        ValueError,
        "alike but for dimension 0",
    ),
    (lambda: sparse.bcoo_squeeze(mat(), dimensions=(0,)), ValueError, "has not the size 1"),
    (
        lambda: sparse.bcoo_slice(mat(), start_indices=(0, 2), limit_indices=(2, 1)),
        TypeError,
        "0 <= start <= limit <= size",
    ),
    (lambda: sparse.bcoo_dynamic_slice(mat(), (0, 0), (3, 3)), TypeError, "must not exceed"),
    (
        lambda: sparse.bcoo_broadcast_in_dim(mat(), shape=(2, 4), broadcast_dimensions=(0, 1)),
        ValueError,
        "does not go to the shape (2, 4)",
    ),
    (
        lambda: sparse.bcoo_extract(mat(), ONES.T),
        ValueError,
        "must have the shape of sparr, (2, 3)",
    ),
    (
        lambda: sparse.bcoo_multiply_dense(mat(), jnp.ones((4, 2, 3))),
        ValueError,
        "must broadcast to the shape (2, 3)",
    ),
    (
        lambda: sparse.empty((2, 3), sparse_format="dok"),
        ValueError,
        "'bcsr', 'bcoo', 'coo', 'csr', 'csc', got 'dok'",
    ),
    (
        lambda: sparse.empty((2, 3, 4), sparse_format="csr"),
        ValueError,
        "CSR must have two dimensions",
    ),
    (lambda: sparse.eye(3, sparse_format="coo", n_batch=1), TypeError, "has no argument 'n_batch'"),
    (
        lambda: sparse.random_bcoo(dt.random.key(0), (3, 4), nse=40),
        ValueError,
        "nse must be from 0 to 12",
    ),
    (lambda: sparse.grad(lambda m: m.todense().sum())(mat().astype(int)), TypeError, "int32"),
    (lambda: sparse.jacfwd(lambda m: m * 2)(mat()), TypeError, "returns a sparse array"),
    (
        lambda: dt.vmap(lambda m: m.todense())(mat()),
        ValueError,
        "in_axes of vmap of <lambda> is 0 for a BCOO array of shape (2, 3) with n_batch=0",
    ),
    (
        lambda: dt.vmap(lambda x: BCOO.fromdense(x, nse=2), out_axes=1)(ONES),
        ValueError,
        "out_axes of vmap of <lambda> is 1 for a BCOO array of shape (3,)",
    ),
    (
        lambda: spsolve(jnp.ones(2), jnp.array([0, 1]), jnp.array([0, 1, 2]), jnp.ones(3)),
        ValueError,
        "one element more than b",
    ),
    (
        lambda: spsolve(jnp.ones(2), jnp.array([0, 1]), jnp.array([0, 1, 2]), jnp.ones(2) * 1j),
        ValueError,
        "one floating or complex dtype",
    ),
    (
        lambda: spsolve(
            jnp.ones(2), jnp.array([0, 1]), jnp.array([0, 1, 2]), jnp.ones(2), reorder=7
        ),
        ValueError,
        "reorder must be one of",
    ),
    (lambda: lobpcg_standard(jnp.eye(50), jnp.ones((50, 20))), ValueError, "fewer than n / 5"),
    (
        lambda: lobpcg_standard(jnp.ones((50, 4)), jnp.ones((50, 3))),
        ValueError,
        "A must have the shape (50, 50)",
    ),
]


@pytest.mark.parametrize("row", range(len(TABLE)))
def test_message(row: int) -> None:
    mistake, kind, message = TABLE[row]
    with pytest.raises(kind) as caught:
        mistake()
    assert message in str(caught.value)


def test_a_layout_that_takes_more_memory_is_warned_of() -> None:
    diagonal = BCOO.fromdense(jnp.eye(3))
    with pytest.warns(sparse.SparseEfficiencyWarning, match="increasing n_dense from 0 to 1"):
        diagonal.update_layout(n_dense=1, on_inefficient="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = diagonal.update_layout(n_dense=1, on_inefficient=None)
    np.testing.assert_array_equal(found.todense(), np.eye(3))
    assert issubclass(sparse.CuSparseEfficiencyWarning, sparse.SparseEfficiencyWarning)
    assert issubclass(sparse.SparseEfficiencyError, ValueError)
