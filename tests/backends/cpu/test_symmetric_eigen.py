"""The kernel for eigenvectors of symmetric matrices: decompositions of matrices that are hard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail_cpu.kernel_library import library

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)

NDArray = np.ndarray[Any, Any]

by_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])

# Batches with fewer and more matrices than lanes, and single ones around the sizes of parts.
SHAPES = [
    (2, 1, 1),
    (3, 2, 2),
    (17, 3, 3),
    (2, 9, 5, 5),
    (4, 12, 12),
    (33, 16, 16),
    (7, 31, 31),
    (70, 48, 48),
    (2, 25, 25),
    (150, 25, 25),
    (26, 26),
    (27, 27),
    (51, 51),
    (64, 64),
    (101, 101),
    (201, 201),
    (260, 260),
]


def drawn(dtype: str, *shape: int) -> NDArray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def symmetric(x: NDArray) -> NDArray:
    """The matrix whose lower triangle is that of another."""
    return np.asarray(np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2))


def found_for(x: NDArray, **options: Any) -> tuple[NDArray, NDArray]:
    """Eigenvectors and eigenvalues of the lower triangle, by the kernel; the program tells."""
    with dt.enable_x64(True):
        jitted = dt.jit(lambda x: lax.linalg.eigh(x, symmetrize_input=False, **options))
        assert "dovetail_eigh" in jitted.lower(x).as_text()
        vectors, values = jitted(x)
    return np.asarray(vectors), np.asarray(values)


def assert_decomposed(x: NDArray, vectors: NDArray, values: NDArray) -> None:
    """Errors in units in the last place of the largest eigenvalue: some 10 for most matrices."""
    assert vectors.dtype == values.dtype == x.dtype
    exact, v, w = (a.astype(np.float64) for a in (x, vectors, values))
    eps = float(np.finfo(x.dtype).eps)
    size = x.shape[-1]
    lengths = np.linalg.norm(exact, axis=(-2, -1))[..., None, None]
    bound = 20 * eps * np.maximum(lengths, np.finfo(x.dtype).tiny)
    assert (np.abs(exact @ v - v * w[..., None, :]) <= bound).all()
    assert np.abs(np.swapaxes(v, -1, -2) @ v - np.eye(size)).max() <= 60 * eps
    assert (np.diff(values, axis=-1) >= 0).all()
    assert (np.abs(np.linalg.eigvalsh(exact) - w) <= bound[..., 0]).all()


@by_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_triangle_is_used(dtype: str, shape: tuple[int, ...]) -> None:
    x = drawn(dtype, *shape)
    assert_decomposed(symmetric(x), *found_for(x))


def of_values(values: NDArray) -> NDArray:
    size = len(values)
    q = np.linalg.qr(drawn("float64", size, size))[0]
    return np.asarray((q * values) @ q.T)


def wilkinson(size: int) -> NDArray:
    """Eigenvalues in pairs that agree to many digits."""
    ones = np.ones(size - 1)
    return np.diag(np.abs(np.arange(size) - (size - 1) / 2)) + np.diag(ones, 1) + np.diag(ones, -1)


def glued(size: int) -> NDArray:
    """The same in blocks that are joined by small numbers."""
    x = np.zeros((size, size))
    for begin in range(0, size, 21):
        end = min(begin + 21, size)
        if end - begin > 1:
            x[begin:end, begin:end] = wilkinson(end - begin)
        if begin:
            x[begin, begin - 1] = x[begin - 1, begin] = 1e-7
    return x


HARD: dict[str, Callable[[int], NDArray]] = {
    "zeros": lambda n: np.zeros((n, n)),
    "identity": np.eye,
    "diagonal": lambda n: np.diag(drawn("float64", n)),
    "descending": lambda n: np.diag(np.arange(n, 0.0, -1)),
    "reversed identity": lambda n: np.eye(n)[::-1],
    "ones": lambda n: np.ones((n, n)),
    "rank one": lambda n: np.outer(np.arange(n) + 1.0, np.arange(n) + 1.0),
    "second differences": lambda n: 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1),
    "arrow": lambda n: np.diag(np.arange(n) + 1.0) + np.eye(1, n).T + np.eye(1, n),
    "Wilkinson": wilkinson,
    "glued": glued,
    "Hilbert": lambda n: 1 / (np.arange(n)[:, None] + np.arange(n) + 1.0),
    "two values": lambda n: of_values(np.where(np.arange(n) < n // 2, 1.0, -1.0)),
    "clusters": lambda n: of_values(np.where(np.arange(n) < n // 2, 1, 1 + 1e-12 * np.arange(n))),
    "all magnitudes": lambda n: of_values(10.0 ** -np.linspace(0, 14, n)),
    "nearly the identity": lambda n: np.eye(n) + 1e-9 * drawn("float64", n, n),
    "few nonzeros": lambda n: np.where(drawn("float64", n, n) > 1.5, 1.0, 0.0),
    "large": lambda n: 1e30 * drawn("float64", n, n),
    "small": lambda n: 1e-30 * drawn("float64", n, n),
    "blocks": lambda n: np.kron(np.eye((n + 1) // 2), [[0, 1], [1, 0]])[:n, :n],
}


@by_dtype
@pytest.mark.parametrize("shape", [(16, 6), (17, 21), (1, 29), (1, 130)], ids=str)
def test_hard_matrices(dtype: str, shape: tuple[int, int]) -> None:
    """By lanes, of which each has the matrix times another number, and one by one."""
    count, size = shape
    for name, make in HARD.items():
        x = np.stack([symmetric(make(size) * (1 + k)).astype(dtype) for k in range(count)])
        try:
            assert_decomposed(x, *found_for(x))
        except AssertionError as error:
            raise AssertionError(name) from error


@by_dtype
@pytest.mark.parametrize("size", [5, 20, 70])
def test_matrices_near_the_ends_of_the_range(dtype: str, size: int) -> None:
    info = np.finfo(dtype)
    x = symmetric(drawn(dtype, 9, size, size))  # More than lanes of float64.
    # Subnormal numbers may be taken for zero.
    for factor in (info.max / 64, info.tiny / info.eps):
        scaled = x / np.abs(x).max() * factor
        vectors, values = found_for(scaled.astype(dtype))
        unscaled = np.asarray(values / info.dtype.type(factor))
        assert_decomposed((scaled / factor).astype(dtype), vectors, unscaled)


@by_dtype
@pytest.mark.parametrize("shape", [(3, 4, 4), (20, 9, 9), (2, 40, 40)], ids=str)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_matrix_that_is_not_finite_is_nan_alone(
    dtype: str, shape: tuple[int, ...], bad: float
) -> None:
    x = drawn(dtype, *shape)
    x[1, -1, 0] = bad
    vectors, values = found_for(x)
    assert np.isnan(vectors[1]).all()
    assert np.isnan(values[1]).all()
    others = np.arange(shape[0]) != 1
    assert_decomposed(symmetric(x)[others], vectors[others], values[others])


@by_dtype
def test_some_of_the_vectors(dtype: str) -> None:
    x = symmetric(drawn(dtype, 3, 30, 30))
    vectors, values = found_for(x)
    some, of_some = found_for(x, subset_by_index=(4, 9))
    np.testing.assert_array_equal(some, vectors[..., 4:9])
    np.testing.assert_array_equal(of_some, values[..., 4:9])


@by_dtype
@pytest.mark.parametrize("shape", [(30, 7, 7), (90, 90)], ids=str)
def test_values_are_those_of_lapack(dtype: str, shape: tuple[int, ...]) -> None:
    x = drawn(dtype, *shape)
    found = []
    for kernels in (True, False):
        with dt.cpu_kernels(kernels), dt.enable_x64(True):
            found.append(np.asarray(dt.jit(lambda x: jnp.linalg.eigvalsh(x))(x)))
    bound = 30 * float(np.finfo(dtype).eps) * float(np.abs(found[1]).max())
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=bound)


@pytest.mark.parametrize("shape", [(9, 3, 3), (9, 16, 16), (9, 24, 24), (2, 30, 30), (150, 150)])
def test_vectors_have_the_signs_of_lapack(shape: tuple[int, ...]) -> None:
    """Of float64: of float32 LAPACK itself has other signs for a matrix and a multiple of it."""
    x = symmetric(drawn("float64", *shape))
    vectors, _ = found_for(x)
    np.testing.assert_allclose(vectors, np.linalg.eigh(x)[1], atol=1e-9)
