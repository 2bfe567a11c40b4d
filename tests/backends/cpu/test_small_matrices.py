"""Kernels for small matrices: their results beside NumPy's, and beside LAPACK's by their signs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.extend.matrices import geqrf_p
from dovetail_cpu.kernel_library import library

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)

DTYPES = ("float32", "float64")
SHAPES = [(1, 1), (2, 40, 3, 5), (3, 5, 3), (17, 31), (2, 40, 33, 8), (3, 64, 64), (1, 7), (7, 1)]

# Columns and rows around those of a panel and of a block of reflections.
BLOCKED = [(16, 16), (17, 16), (2, 49, 49), (130, 97), (40, 33, 20), (20, 300), (300, 65)]
BLOCKED += [(120, 112), (150, 113)]

by_dtype = pytest.mark.parametrize("dtype", DTYPES)
by_shape = pytest.mark.parametrize("shape", SHAPES)


def drawn(dtype: str, *shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def both(function: Any, *operands: Any) -> tuple[Any, Any]:
    """The results of a function by kernels, and by LAPACK; the programs tell which."""
    found = []
    for kernels in (True, False):
        with dt.cpu_kernels(kernels), dt.enable_x64(True):
            jitted = dt.jit(lambda *xs: function(*xs))
            text = jitted.lower(*operands).as_text()
            assert ("dovetail_" in text) == kernels, text
            found.append(dt.tree.map(np.asarray, jitted(*operands)))
    return found[0], found[1]


def close(found: Any, expected: Any, dtype: str, scale: float = 1.0) -> None:
    assert found.dtype == expected.dtype
    bound = 200 * scale * np.finfo(dtype).eps
    np.testing.assert_allclose(found, expected, rtol=bound, atol=bound * np.abs(expected).max())


@by_dtype
@pytest.mark.parametrize("shape", [*SHAPES, *BLOCKED, (2, 3, 100, 70), (65, 90), (20, 200, 40)])
def test_lu(dtype: str, shape: tuple[int, ...]) -> None:
    x = drawn(dtype, *shape)
    (packed, pivots, order), (_, others, orders) = both(lax.linalg.lu, x)
    np.testing.assert_array_equal(pivots, others)
    np.testing.assert_array_equal(order, orders)
    least = min(shape[-2:])
    lower = np.tril(packed[..., :least], -1) + np.eye(shape[-2], least, dtype=dtype)
    product = lower @ np.triu(packed[..., :least, :])
    close(product, np.take_along_axis(x, order[..., None], axis=-2), dtype)


@by_dtype
@pytest.mark.parametrize("size", [5, 40, 100])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_nan_is_no_pivot_while_there_are_numbers(dtype: str, size: int, place: str) -> None:
    """It stays in its row, wherever that is, which comes last."""
    row = {"first": 0, "middle": size // 2, "last": size - 1}[place]
    x = drawn(dtype, size, size)
    x[row, 0] = np.nan
    (packed, _, order), _ = both(lax.linalg.lu, x)
    assert order[-1] == row
    assert np.isnan(packed[-1]).all()
    lower = np.tril(packed, -1)[:-1, :-1] + np.eye(size - 1, dtype=dtype)
    close(lower @ np.triu(packed)[:-1], x[order[:-1]], dtype)


@by_dtype
@pytest.mark.parametrize("shape", [*SHAPES, *BLOCKED])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(dtype: str, shape: tuple[int, ...], mode: str) -> None:
    x = drawn(dtype, *shape)
    (q, r), (q_of_lapack, r_of_lapack) = both(lambda x: jnp.linalg.qr(x, mode=mode), x)
    close(q @ r, x, dtype)
    close(
        q.swapaxes(-1, -2) @ q,
        np.broadcast_to(np.eye(q.shape[-1], dtype=dtype), q.shape[:-2] + (q.shape[-1],) * 2),
        dtype,
    )
    np.testing.assert_array_equal(
        np.sign(np.diagonal(r, 0, -2, -1)), np.sign(np.diagonal(r_of_lapack, 0, -2, -1))
    )
    assert q.shape == q_of_lapack.shape
    assert not np.tril(r, -1).any()


@by_dtype
@pytest.mark.parametrize("shape", BLOCKED)
@pytest.mark.parametrize("columns", [1, 5, 70])
@pytest.mark.parametrize("transpose", [False, True])
def test_reflections(dtype: str, shape: tuple[int, ...], columns: int, transpose: bool) -> None:
    a, c = drawn(dtype, *shape), drawn(dtype, *shape[:-1], columns)

    def reflected(a: Any, c: Any) -> Any:
        packed, taus = geqrf_p.bind(a)
        packed = packed[..., : shape[-2]]
        return lax.linalg.ormqr(packed, taus, c, transpose=transpose), packed, taus

    for found, expected in zip(*both(reflected, a, c), strict=True):
        close(found, expected, dtype, 5)


@by_dtype
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 11, 16, 17, 33, 64, 65, 100, 191, 256])
def test_cholesky(dtype: str, size: int) -> None:
    # Of up to 16 rows there are whole vectors of matrices, and some more.
    x = drawn(dtype, 2, 21 if size <= 16 else 2, size, size)
    x = x @ x.swapaxes(-1, -2) + size * np.eye(size, dtype=dtype)
    root, of_lapack = both(jnp.linalg.cholesky, x)
    close(root @ root.swapaxes(-1, -2), x, dtype)
    close(root, of_lapack, dtype)
    assert not np.triu(root, 1).any()


@by_dtype
@pytest.mark.parametrize("shape", [(3, 3), (40, 5, 5), (2, 64, 64), (130, 130)])
def test_cholesky_of_the_mean_of_both_triangles(dtype: str, shape: tuple[int, ...]) -> None:
    x = drawn(dtype, *shape)
    x = x + 4 * shape[-1] ** 0.5 * np.eye(shape[-1], dtype=dtype)
    root, of_lapack = both(jnp.linalg.cholesky, x)
    close(root, of_lapack, dtype)
    close(root @ root.swapaxes(-1, -2), (x + x.swapaxes(-1, -2)) / 2, dtype)
    lower, of_lapack = both(lambda x: lax.linalg.cholesky(x, symmetrize_input=False), x)
    close(lower, of_lapack, dtype)
    mean, _ = both(
        lambda x: jnp.stack([jnp.linalg.cholesky(x), (x + jnp.matrix_transpose(x)) / 2]), x
    )
    close(mean[0], root, dtype)  # Where the mean has other uses, too.


@by_dtype
@pytest.mark.parametrize("size", [97, 300, 421])
def test_cholesky_of_one_matrix_is_divided_among_threads(dtype: str, size: int) -> None:
    x = drawn(dtype, size, size)
    x = x @ x.T + size * np.eye(size, dtype=dtype)
    root, of_lapack = both(jnp.linalg.cholesky, x)
    close(root, of_lapack, dtype)
    assert not np.triu(root, 1).any()


@by_dtype
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
@pytest.mark.parametrize(("count", "size"), [(4, 5), (17, 5), (17, 16), (4, 64), (2, 130)])
def test_one_matrix_without_a_root_is_nan(dtype: str, bad: float, count: int, size: int) -> None:
    x = np.tile(np.eye(size, dtype=dtype), (count, 1, 1))
    x[1, 3, 3] = bad
    root, of_lapack = both(jnp.linalg.cholesky, x)
    np.testing.assert_array_equal(root, of_lapack)
    assert np.isnan(root[1]).any()
    others = np.arange(count) != 1
    np.testing.assert_array_equal(root[others], x[others])


@by_dtype
@pytest.mark.parametrize(
    ("size", "columns"),
    [
        (1, 1),
        (5, 3),
        (40, 1),
        (64, 1),
        (17, 64),
        (64, 5),
        (30, 43),
        (103, 1),
        (65, 2),
        (100, 33),
        (131, 100),
        (257, 17),
    ],
)
def test_triangular_solve(dtype: str, size: int, columns: int) -> None:
    a = drawn(dtype, 3, size, size) / size + np.eye(size, dtype=dtype)
    b = drawn(dtype, 3, size, columns)
    kinds = list(itertools.product([True, False], repeat=3))

    def solve(a: Any, b: Any) -> Any:
        return [
            lax.linalg.triangular_solve(
                a, b, left_side=True, lower=lower, transpose_a=transposed, unit_diagonal=unit
            )
            for lower, transposed, unit in kinds
        ]

    found, of_lapack = both(solve, a, b)
    for x, of_lapack_x, (lower, transposed, unit) in zip(found, of_lapack, kinds, strict=True):
        used = np.tril(a) if lower else np.triu(a)
        if unit:
            used = used * (1 - np.eye(size, dtype=dtype)) + np.eye(size, dtype=dtype)
        close((used.swapaxes(-1, -2) if transposed else used) @ x, b, dtype)
        close(x, of_lapack_x, dtype, 5)


@by_dtype
@pytest.mark.parametrize(("size", "columns"), [(16, 1), (37, 1), (37, 3), (150, 40)])
def test_triangular_solve_leaves_the_other_triangle(dtype: str, size: int, columns: int) -> None:
    """Neither what is there nor an infinite number reaches what was solved for before."""
    a = drawn(dtype, size, size) / size + np.eye(size, dtype=dtype)
    b = drawn(dtype, size, columns)
    for lower, transposed in itertools.product([True, False], repeat=2):
        last = size - 1 if lower != transposed else 0
        a[last, last] = 0
        used = np.tril(a) if lower else np.triu(a)
        other = np.tril(np.full_like(a, np.nan), -1)
        found = [
            np.asarray(
                lax.linalg.triangular_solve(
                    x, b, left_side=True, lower=lower, transpose_a=transposed
                )
            )
            for x in (used, used + (other.T if lower else other))
        ]
        np.testing.assert_array_equal(*found)
        assert np.isinf(found[0][last]).all()
        assert np.isfinite(np.delete(found[0], last, 0)).all()
        a[last, last] = 1


@by_dtype
def test_triangular_solves_of_one_matrix_are_divided_among_threads(dtype: str) -> None:
    a = drawn(dtype, 400, 400) / 400 + np.eye(400, dtype=dtype)
    b = drawn(dtype, 400, 150)
    for lower in (True, False):
        found, of_lapack = both(
            lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=lower),  # noqa: B023
            a,
            b,
        )
        close((np.tril(a) if lower else np.triu(a)) @ found, b, dtype)
        close(found, of_lapack, dtype, 5)


@by_dtype
@pytest.mark.parametrize("size", [60, 65, 130, 300])
@pytest.mark.parametrize("columns", [63, 64, 150])
@pytest.mark.parametrize("transposed", [False, True])
def test_columns_that_begin_with_zeros(
    dtype: str, size: int, columns: int, transposed: bool
) -> None:
    """They are solved for from their first other number on, whatever is beside them."""
    draw = np.random.default_rng(size + columns)
    a = drawn(dtype, 2, size, size) / size
    starts = draw.choice([0, 1, 63, 64, 128, size - 1, size], (2, columns))
    b = drawn(dtype, 2, size, columns)
    before = np.arange(size)[:, None] < starts[:, None]
    b[before] = 0
    others = draw.permutation(columns)

    def solve(a: Any, b: Any) -> Any:
        return [
            lax.linalg.triangular_solve(
                a,
                x,
                left_side=True,
                lower=not transposed,
                transpose_a=transposed,
                unit_diagonal=True,
            )
            for x in (b, b[..., others])
        ]

    (found, permuted), (of_lapack, _) = both(solve, a, b)
    np.testing.assert_array_equal(found[..., others], permuted)
    close(found, of_lapack, dtype, 5)
    assert not found[before].any()


@by_dtype
@pytest.mark.parametrize("size", [4, 40])
def test_what_has_no_inverse(dtype: str, size: int) -> None:
    x = np.zeros((3, size, size), dtype)
    x[1] = np.eye(size)
    (packed, pivots, _), of_lapack = both(lax.linalg.lu, x)
    np.testing.assert_array_equal(packed, of_lapack[0])
    np.testing.assert_array_equal(pivots, of_lapack[1])
    found, expected = both(jnp.linalg.det, x)
    np.testing.assert_array_equal(found, expected)
    (q, r), (q_of_lapack, r_of_lapack) = both(jnp.linalg.qr, x)
    np.testing.assert_array_equal(q, q_of_lapack)
    np.testing.assert_array_equal(r, r_of_lapack)


@by_dtype
def test_very_large_and_very_small_numbers(dtype: str) -> None:
    for scale in (np.finfo(dtype).max / 100, np.finfo(dtype).tiny * np.finfo(dtype).eps ** -1.2):
        for shape in ((2, 6, 6), (90, 60)):
            x = (drawn(dtype, *shape) * scale).astype(dtype)
            (q, r), _ = both(jnp.linalg.qr, x)
            close(q @ (r / scale), x / np.asarray(scale, dtype), dtype)


@by_dtype
def test_columns_of_zeros_and_of_far_apart_sizes(dtype: str) -> None:
    x = drawn(dtype, 60, 40)
    x[:, 3] = 0
    x[:, 7] *= np.finfo(dtype).tiny * 1e5
    x[20:, 20:] = 0
    (q, r), _ = both(jnp.linalg.qr, x)
    close(q @ r, x, dtype)
    close(q.T @ q, np.eye(40, dtype=dtype), dtype)


@by_dtype
def test_transformations(dtype: str) -> None:
    x = drawn(dtype, 5, 4, 4)
    with dt.enable_x64(True):
        for function in (jnp.linalg.inv, jnp.linalg.det, lambda x: jnp.linalg.qr(x)[1]):
            one_by_one = np.stack([np.asarray(function(matrix)) for matrix in x])
            close(np.asarray(dt.vmap(function)(x)), one_by_one, dtype)
            found, expected = both(dt.grad(lambda x: jnp.sum(jnp.sin(function(x)))), x)  # noqa: B023
            close(found, expected, dtype, 100)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    "function",
    [
        jnp.linalg.eigvals,
        lambda x: jnp.linalg.eigvalsh(x + jnp.conj(jnp.matrix_transpose(x))),
        lambda x: jnp.linalg.svd(x, compute_uv=False),
        lambda x: jnp.linalg.svd(x[..., :4], full_matrices=False)[0],
    ],
)
def test_what_lapack_iterates_on(dtype: str, function: Any) -> None:
    x = (drawn("float64", 5, 6, 6) * (1 + (0.5j if dtype.startswith("c") else 0))).astype(dtype)
    x[1, 2, 3], x[4, 0, 0] = np.nan, -np.inf
    x[2], x[3] = x[2] * 1e-30, x[3] * 1e30
    found, expected = both(function, x)
    assert np.isnan(found[[1, 4]]).all()
    for one, other in zip(found[[0, 2, 3]], expected[[0, 2, 3]], strict=True):
        close(one, other, dtype)
