"""Eigenvalues, singular values, Schur and polar decompositions beyond the samples: what users call,
larger matrices, both ways of lowering, and what cannot be computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail.extend import manager
from dovetail.lax.linalg import EighImplementation, EigImplementation, SvdAlgorithm
from dovetail.testing.checks import CHECKS
from dovetail.testing.numerics import directional_derivative, far
from dovetail.testing.samples import all_samples, defined_primitives

NDArray = np.ndarray[Any, Any]
linalg = lax.linalg

DTYPES = ("float32", "float64", "complex64", "complex128")
JACOBI = EighImplementation.JACOBI
ALGORITHMS = (None, SvdAlgorithm.QR, SvdAlgorithm.POLAR, SvdAlgorithm.JACOBI)
#: Rules of the CPU that other platforms lack.
OF_THE_CPU = (
    "cholesky",
    "eig",
    "eigh",
    "geqp3",
    "geqrf",
    "hessenberg",
    "householder_product",
    "lu",
    "qr",
    "schur",
    "svd",
    "triangular_solve",
    "tridiagonal",
)


@pytest.fixture
def without_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are lowered as for a platform without rules of its own for linear algebra."""
    rules = {k: v for k, v in manager().lowerings("cpu").items() if k not in OF_THE_CPU}
    monkeypatch.setitem(manager()._lowerings, "cpu", rules)


@pytest.mark.usefixtures("without_lapack")
@pytest.mark.parametrize("name", ["eigh", "hessenberg", "qdwh", "svd", "tridiagonal"])
def test_the_lowering_for_any_platform_agrees(name: str) -> None:
    """On every fifth sample; compiling them takes long."""
    CHECKS["lowering_agrees"](defined_primitives()[name], all_samples()[name][::5])


# Matrices, larger than those of samples, and properties of their decompositions


def matrices(*shape: int, dtype: Any = np.float64, seed: int = 0) -> NDArray:
    generator = np.random.default_rng((seed, *shape))
    x = generator.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * generator.normal(size=shape)
    return np.asarray(x).astype(dtype)


def adjoint(x: NDArray) -> NDArray:
    return x.conj().swapaxes(-1, -2)


def hermitian(*shape: int, dtype: Any = np.float64) -> NDArray:
    x = matrices(*shape, dtype=dtype)
    return np.asarray((x + adjoint(x)) / 2).astype(dtype)


def results(function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[NDArray]:
    """The results of one program, with 64-bit types."""
    with dt.enable_x64(True):
        outs = dt.jit(lambda *a: function(*a, **kwargs))(*args)
    return [np.asarray(o) for o in (outs if isinstance(outs, list | tuple) else [outs])]


def assert_near(got: Any, want: Any, like: NDArray, factor: float = 30) -> None:
    """Equal up to so many units in the last place of the largest element, per row."""
    eps = float(np.finfo(like.dtype).eps)
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    if got.size:
        scale = max(float(np.abs(want).max()), float(np.abs(got).max()), 1e-300)
        allowed = factor * eps * max(*like.shape[-2:], 4) * scale
        assert float(np.abs(got - want).max()) <= allowed


def assert_orthonormal(x: NDArray) -> None:
    identity = np.broadcast_to(np.eye(x.shape[-1]), (*x.shape[:-2], x.shape[-1], x.shape[-1]))
    assert_near(adjoint(x) @ x, identity, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("implementation", [None, JACOBI], ids=str)
def test_eigh(dtype: str, implementation: Any) -> None:
    for shape in ((2, 3, 5, 5), (30, 30)):
        x = hermitian(*shape, dtype=dtype)
        v, w = results(linalg.eigh, x, implementation=implementation)
        assert v.dtype == dtype
        assert w.dtype == np.finfo(dtype).dtype
        assert_near((v * w[..., None, :]) @ adjoint(v), x, x)
        assert_orthonormal(v)
        assert (np.diff(w) >= 0).all()
        assert_near(w, np.linalg.eigvalsh(x.astype(np.complex128)), x)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_svd(dtype: str, algorithm: Any) -> None:
    shapes = ((9, 4), (2, 3, 2, 5), (1, 1), (30, 20))
    anywhere = algorithm in (SvdAlgorithm.POLAR, SvdAlgorithm.JACOBI)
    for shape in shapes[: 1 if anywhere else None]:
        x = matrices(*shape, dtype=dtype)
        *_, rows, columns = shape
        rank = min(rows, columns)
        want = np.linalg.svd(x.astype(np.complex128), compute_uv=False)
        for full in (False, True):
            u, s, vh = results(linalg.svd, x, full_matrices=full, algorithm=algorithm)
            assert u.shape[-2:] == (rows, rows if full else rank)
            assert vh.shape[-2:] == (columns if full else rank, columns)
            assert_near((u[..., :rank] * s[..., None, :]) @ vh[..., :rank, :], x, x)
            assert_orthonormal(u)
            assert_orthonormal(adjoint(vh))
            assert (np.diff(s) <= 0).all()
            assert_near(s, want, x)
        (alone,) = results(linalg.svd, x, compute_uv=False, algorithm=algorithm)
        assert_near(alone, want, x)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("columns", [1, 4, 20])
def test_vectors_have_the_signs_of_numpy(rows: int, columns: int, dtype: str) -> None:
    x = matrices(2, rows, columns, dtype=dtype)
    for full in (False, True):
        for got, want in zip(
            results(linalg.svd, x, full_matrices=full), np.linalg.svd(x, full), strict=True
        ):
            np.testing.assert_allclose(got, want, atol=1e-9)
        mode: Any = "complete" if full else "reduced"
        for got, want in zip(
            results(linalg.qr, x, full_matrices=full), np.linalg.qr(x, mode), strict=True
        ):
            np.testing.assert_allclose(got, want, atol=1e-9)
    if rows <= columns:
        square = hermitian(2, rows, rows, dtype=dtype)
        np.testing.assert_allclose(
            results(linalg.eigh, square)[0], np.linalg.eigh(square)[1], atol=1e-9
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(dtype: str) -> None:
    for shape in ((1, 1), (2, 2), (7, 7), (2, 3, 5, 5)):
        x = matrices(*shape, dtype=dtype)
        w, left, right = results(linalg.eig, x)
        assert w.dtype == left.dtype == right.dtype == np.result_type(dtype, np.complex64)
        assert_near(x @ right, right * w[..., None, :], x)
        assert_near(adjoint(left) @ x, w[..., :, None] * adjoint(left), x)
        for vectors in (left, right):
            assert_near(np.linalg.norm(vectors, axis=-2), np.ones(w.shape), x)
            largest = np.abs(vectors).argmax(-2)[..., None, :]
            assert_near(np.take_along_axis(vectors, largest, -2).imag, 0 * largest, x)
        (alone,) = results(
            linalg.eig, x, compute_left_eigenvectors=False, compute_right_eigenvectors=False
        )

        for value in alone.ravel():
            assert np.abs(w - value).min() < 1e-3


def test_eig_of_rotations_has_complex_pairs() -> None:
    angle = 0.3
    x = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    w, *_ = results(linalg.eig, x)
    np.testing.assert_allclose(np.sort(w.imag), [-np.sin(angle), np.sin(angle)], rtol=1e-12)
    assert w[0] == w[1].conj()


@pytest.mark.parametrize("dtype", DTYPES)
def test_schur(dtype: str) -> None:
    for shape in ((1, 1), (6, 6), (2, 3, 5, 5)):
        x = matrices(*shape, dtype=dtype)
        t, z = results(linalg.schur, x)
        assert_near(z @ t @ adjoint(z), x, x)
        assert_orthonormal(z)
        assert not np.tril(t, -1 if np.dtype(dtype).kind == "c" else -2).any()
        (alone,) = results(linalg.schur, x, compute_schur_vectors=False)
        assert_near(alone, t, x)
        # Neighbours below the diagonal of a real form belong to complex pairs, which do not touch.
        under = np.diagonal(t, -1, -2, -1) != 0
        assert not (under[..., 1:] & under[..., :-1]).any()


def reflections(packed: NDArray, taus: NDArray) -> NDArray:
    """The orthogonal matrix of a reduction of which the lower triangle was packed."""
    (inner,) = results(linalg.householder_product, packed[..., 1:, :-1], taus)
    size = packed.shape[-1]
    q = np.zeros_like(packed)
    q[..., 0, 0] = 1
    q[..., 1:, 1:] = inner
    return q if size > 1 else np.ones_like(packed)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("platform", ["cpu", "any"])
def test_reductions(dtype: str, platform: str, request: pytest.FixtureRequest) -> None:
    if platform == "any":
        request.getfixturevalue("without_lapack")
    for shape in ((2, 2), (2, 3, 6, 6)):
        x = matrices(*shape, dtype=dtype)
        packed, taus = results(linalg.hessenberg, x)
        q, h = reflections(packed, taus), np.triu(packed, -1)
        assert_orthonormal(q)
        assert_near(q @ h @ adjoint(q), x, x)

        x = hermitian(*shape, dtype=dtype)
        packed, d, e, taus = results(linalg.tridiagonal, np.tril(x))
        q = reflections(packed, taus)
        for turned in (False, True):
            t = np.zeros_like(x)
            inside = np.arange(shape[-1])
            t[..., inside, inside] = d
            t[..., inside[1:], inside[:-1]] = t[..., inside[:-1], inside[1:]] = e
            assert_orthonormal(q)
            assert_near(q @ t @ adjoint(q), x, x)
            if not turned:
                # From the other triangle: the same, read backwards.
                backwards = x[..., ::-1, ::-1]
                packed, d, e, taus = results(linalg.tridiagonal, np.triu(x), lower=False)
                d, e = d[..., ::-1], e[..., ::-1]
                q = reflections(packed[..., ::-1, ::-1], taus[..., ::-1])
                x = backwards


# Matrices that are hard


HARD = np.stack(
    [
        np.zeros((4, 4)),
        np.eye(4),
        np.ones((4, 4)),
        np.diag([1.0, 1.0, 0.0, 0.0]),
        np.diag([3.0, -3.0, 3.0, -3.0]),
        np.diag([1.0, 1e-4, 1e-8, 1e-12]) + 1e-14,
        np.diag(np.arange(4.0)) + 1e-7,
        np.kron(np.eye(2), np.array([[2.0, 1.0], [1.0, 2.0]])),
        np.eye(4)[::-1],
        hermitian(4, 4) * 1e18,
        hermitian(4, 4) * 1e-18,
    ]
)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_hard_matrices(dtype: str) -> None:
    """Singular ones, equal values, small and large numbers."""
    x = HARD.astype(dtype)

    def near(products: NDArray) -> None:
        for got, want in zip(products, x, strict=True):
            assert_near(got, want, want)

    for implementation in (None, JACOBI):
        v, w = results(linalg.eigh, x, implementation=implementation)
        near((v * w[:, None]) @ adjoint(v))
        assert_orthonormal(v)
    for algorithm in ALGORITHMS:
        u, s, vh = results(linalg.svd, x, algorithm=algorithm)
        near((u * s[:, None]) @ vh)
        assert_orthonormal(u)
        assert_orthonormal(adjoint(vh))
        assert (s >= 0).all()
    w, _, right = results(linalg.eig, x)
    for matrix, values, vectors in zip(x, w, right, strict=True):
        assert_near(matrix @ vectors, vectors * values, matrix)
    u, h, _, converged = results(linalg.qdwh, x)
    assert converged.all()
    near(u @ h)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_nan_and_infinities_make_nan_and_nothing_else(value: float, dtype: str) -> None:
    """Of a batch only the matrices that hold them; LAPACK would not always come to an end."""
    for size in (1, 5, 24):
        for place in {(0, 0), (size - 1, 0), (size - 1, size - 1)}:
            x = np.stack([hermitian(size, size, dtype=dtype)] * 3)
            x[(1, *place)] = value
            for function in (
                lambda x: linalg.eigh(x, symmetrize_input=False),
                linalg.eig,
                linalg.svd,
                lambda x: linalg.svd(x, compute_uv=False),
                linalg.schur,
            ):
                for out in results(function, x):
                    assert np.isnan(out[1]).all()
                    assert np.isfinite(out[[0, 2]]).all()


@pytest.mark.parametrize("implementation", [None, JACOBI], ids=str)
def test_eigh_reads_one_triangle(implementation: Any) -> None:
    x = hermitian(5, 5, dtype=np.complex128)
    want = np.linalg.eigvalsh(x)
    for lower in (True, False):
        half = np.tril(x) if lower else np.triu(x)
        half[np.triu_indices(5, 1) if lower else np.tril_indices(5, -1)] = np.nan
        _, w = results(
            linalg.eigh, half, lower=lower, symmetrize_input=False, implementation=implementation
        )
        assert_near(w, want, x)


def test_eigh_takes_the_hermitian_part() -> None:
    x = matrices(4, 4, dtype=np.complex128)
    _, w = results(linalg.eigh, x)
    assert_near(w, np.linalg.eigvalsh((x + adjoint(x)) / 2), x)


@pytest.mark.parametrize("implementation", [None, JACOBI], ids=str)
def test_parts_of_the_spectrum(implementation: Any) -> None:
    x = hermitian(6, 6)
    v, w = results(linalg.eigh, x, implementation=implementation)
    for start, stop in ((0, 6), (0, 1), (2, 5), (5, 6), (3, 3)):
        part, values = results(
            linalg.eigh, x, subset_by_index=(start, stop), implementation=implementation
        )
        np.testing.assert_array_equal(values, w[start:stop])
        np.testing.assert_array_equal(part, v[:, start:stop])
    x = matrices(6, 4)
    u, s, vh = results(linalg.svd, x, full_matrices=False)
    for start, stop in ((0, 4), (1, 3), (2, 2)):
        parts = results(linalg.svd, x, full_matrices=False, subset_by_index=(start, stop))
        for got, want in zip(parts, (u[:, start:stop], s[start:stop], vh[start:stop]), strict=True):
            np.testing.assert_array_equal(got, want)


# Derivatives. The checks on samples compare what does not depend on signs and phases.


def tangents(function: Callable[..., Any], x: NDArray, t: NDArray) -> list[NDArray]:
    def moved(x: Any, t: Any) -> Any:
        return dt.jvp(lambda x: list(function(x)), (x,), (t,))[1]

    return results(moved, x, t)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    ("left", "right"), [(True, True), (True, False), (False, True)], ids=["both", "left", "right"]
)
def test_changes_of_eigenvectors_as_lapack_scales_them(dtype: str, left: bool, right: bool) -> None:
    """Vectors of length one with a real largest element, so that their phases are known."""

    def function(x: Any) -> Any:
        return linalg.eig(
            x,
            compute_left_eigenvectors=left,
            compute_right_eigenvectors=right,
            enable_eigvec_derivs=True,
        )

    x, t = matrices(4, 4, dtype=dtype), matrices(4, 4, dtype=dtype, seed=1)
    wants = directional_derivative(lambda x: results(function, x), [x], [t], 1e-4)
    for got, want in zip(tangents(function, x, t), wants, strict=True):
        assert not far(got, want, 1e-6)


@pytest.mark.parametrize(
    "function",
    [
        linalg.eigh,
        lambda x: linalg.eigh(x, subset_by_index=(1, 3)),
        linalg.svd,
        lambda x: linalg.svd(x[:, :2], full_matrices=False),
        lambda x: linalg.svd(x[:2], full_matrices=False, subset_by_index=(0, 1)),
        lambda x: linalg.qdwh(x)[:2],
        lambda x: linalg.qdwh(x, dynamic_shape=(3, 2))[:2],
    ],
    ids=["eigh", "eigh part", "svd", "svd tall", "svd wide", "qdwh", "qdwh cut"],
)
def test_changes_of_real_vectors(function: Callable[..., Any]) -> None:
    """Of real matrices vectors have signs, which small changes do not turn."""
    x, t = matrices(4, 4), matrices(4, 4, seed=1)
    wants = directional_derivative(lambda x: results(function, x), [x], [t], 1e-4)
    for got, want in zip(tangents(function, x, t), wants, strict=True):
        assert not far(got, want, 1e-6)


@pytest.mark.parametrize(
    "total",
    [
        lambda x: linalg.eigh(x)[1],
        lambda x: lax.real(
            linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
        ),
        lambda x: linalg.svd(x)[1],
        lambda x: linalg.svd(x, compute_uv=False),
    ],
    ids=["eigh", "eig", "svd", "values alone"],
)
def test_sums_of_equal_values_can_be_differentiated(total: Callable[..., Any]) -> None:
    (gradient,) = results(dt.grad(lambda x: lax.reduce_sum(total(x), (0,))), np.eye(3) * 2.0)
    np.testing.assert_allclose(gradient, np.eye(3), atol=1e-12)


def test_vectors_of_equal_values_have_no_derivative() -> None:
    x, t = np.eye(3), hermitian(3, 3)
    for function in (linalg.eigh, linalg.svd):
        assert any(np.isnan(out).any() for out in tangents(function, x, t))


def test_gradient_of_eigh_is_symmetric_or_of_the_triangle() -> None:
    x = hermitian(3, 3)

    def largest(x: Any, **kwargs: Any) -> Any:
        return lax.index_in_dim(linalg.eigh(x, **kwargs)[1], 2, keepdims=False)

    v = np.linalg.eigh(x)[1][:, 2]
    outer = np.outer(v, v)
    (whole,) = results(dt.grad(largest), x)
    np.testing.assert_allclose(whole, outer, atol=1e-12)
    (lower,) = results(dt.grad(lambda x: largest(x, symmetrize_input=False)), x)
    np.testing.assert_allclose(lower, np.tril(outer) + np.tril(outer, -1), atol=1e-12)
    (upper,) = results(dt.grad(lambda x: largest(x, symmetrize_input=False, lower=False)), x)
    np.testing.assert_allclose(upper, lower.T, atol=1e-12)


def test_eigenvectors_are_differentiated_on_demand() -> None:
    x = matrices(3, 3)
    with pytest.raises(NotImplementedError, match=r"eig: .* pass enable_eigvec_derivs=True"):
        dt.jvp(linalg.eig, (x,), (x,))
    with pytest.raises(NotImplementedError, match="'schur' has no 'jvp' rule: its factors"):
        dt.jvp(linalg.schur, (x,), (x,))
    with pytest.raises(NotImplementedError, match="'hessenberg' has no 'jvp' rule"):
        dt.grad(lambda x: lax.reduce_sum(linalg.hessenberg(x)[1], (0,)))(x)


# The polar decomposition


def test_polar_of_a_batch_counts_for_each_matrix() -> None:
    x = np.stack([np.eye(3), np.diag([1.0, 1e-3, 1e-13]), np.full((3, 3), np.nan)])
    u, h, steps, converged = results(linalg.qdwh, x)
    assert steps.shape == converged.shape == (3,)
    assert steps.dtype == np.int32
    assert converged.tolist() == [True, True, False]
    assert (steps <= 10).all()
    assert_near(u[:2] @ h[:2], x[:2], x[:2])
    assert_orthonormal(u[:2])
    assert np.isnan(u[2]).all()
    alone = [results(linalg.qdwh, matrix) for matrix in x[:2]]
    assert [int(found[2]) for found in alone] == steps[:2].tolist()
    mapped = results(dt.vmap(linalg.qdwh), x)
    assert_near(mapped[0][:2], u[:2], x[:2])


def test_polar_of_a_part_whose_size_is_known_later() -> None:
    x = matrices(5, 4)
    whole = [np.zeros((5, 4)), np.zeros((4, 4))]
    for rows, columns in ((5, 4), (3, 2), (4, 1), (0, 0)):
        u, s, vh = np.linalg.svd(x[:rows, :columns], full_matrices=False)
        wants = [w.copy() for w in whole]
        wants[0][:rows, :columns] = u @ vh
        wants[1][:columns, :columns] = (vh.T * s) @ vh
        fixed = results(linalg.qdwh, x, dynamic_shape=(rows, columns))
        traced = results(
            lambda x, m, n: linalg.qdwh(x, dynamic_shape=(m, n)),
            x,
            np.int32(rows),
            np.int64(columns),
        )
        for found in (fixed, traced):
            for got, want in zip(found[:2], wants, strict=True):
                assert_near(got, want, x)


def test_polar_stops_when_told_to() -> None:
    x = matrices(4, 4)
    for most in (0, 1, 3):
        _, _, steps, converged = results(linalg.qdwh, x, max_iterations=most)
        assert (int(steps), bool(converged)) == (most, False)
    _, _, steps, converged = results(linalg.qdwh, np.eye(3), eps=0.5)
    assert converged
    assert steps <= 3


def test_polar_of_hermitian_matrices_is_hermitian() -> None:
    x = hermitian(5, 5, dtype=np.complex128)
    u, h, *_ = results(linalg.qdwh, x, is_hermitian=True)
    np.testing.assert_array_equal(u, adjoint(u))
    assert_near(u @ h, x, x)


# Arguments


def test_integers_are_converted_where_a_mean_is_taken() -> None:
    for dtype in ("int32", "uint8", "bool"):
        x = np.array([[2, 1], [1, 2]]).astype(dtype)
        assert linalg.eigh(x)[1].dtype == np.float32
        for function in (linalg.eig, linalg.svd, linalg.schur, linalg.hessenberg, linalg.qdwh):
            with pytest.raises(TypeError, match=f"does not accept dtype {dtype}"):
                function(x)


@pytest.mark.parametrize("name", ["eigh", "eig", "svd", "schur", "hessenberg", "qdwh"])
def test_operands_that_are_refused(name: str) -> None:
    function = getattr(linalg, name)
    for wrong in ([[1.0]], "x", None):
        with pytest.raises(TypeError, match=f"lax.linalg.{name} requires its argument"):
            function(wrong)
    for wrong in (1.0, np.ones(3)):
        with pytest.raises(TypeError, match=f"{name}: . must be a matrix"):
            function(wrong)
    with pytest.raises(TypeError, match=f"{name} does not accept dtype float16"):
        function(np.ones((2, 2), np.float16))
    if name not in ("svd", "qdwh"):
        with pytest.raises(ValueError, match=f"{name}: the matrices in . must be square"):
            function(np.ones((2, 3)))


X = np.eye(3, dtype=np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: linalg.eigh(X, implementation="qr"), TypeError, "EighImplementation or None"),
        (lambda: linalg.eig(X, implementation="lapack"), TypeError, "EigImplementation or None"),
        (lambda: linalg.svd(X, algorithm="QR"), TypeError, "SvdAlgorithm or None, got 'QR'"),
        (lambda: linalg.eigh(X, subset_by_index=(1, 4)), ValueError, "0 <= start <= end <= 3"),
        (lambda: linalg.eigh(X, subset_by_index=(2, 1)), ValueError, r"got \(2, 1\)"),
        (lambda: linalg.eigh(X, subset_by_index=(1,)), ValueError, "must be a pair"),
        (lambda: linalg.eigh(X, subset_by_index=2), TypeError, "sequence of integers"),
        (lambda: linalg.svd(X, subset_by_index=(0, 1)), ValueError, "exclude each other"),
        (lambda: linalg.svd(X, subset_by_index=(0, 0.5)), TypeError, "sequence of integers"),
        (lambda: linalg.qdwh(X[:2]), ValueError, "at least as many rows as columns"),
        (lambda: linalg.qdwh(X[:, :2], is_hermitian=True), ValueError, "must be square"),
        (lambda: linalg.qdwh(X, max_iterations=-1), ValueError, "must not be negative"),
        (lambda: linalg.qdwh(X, max_iterations=1.5), TypeError, "sequence of integers"),
        (lambda: linalg.qdwh(X, eps=0.0), ValueError, "between 0 and 1"),
        (lambda: linalg.qdwh(X, dynamic_shape=3), TypeError, "pair of integers, got 3"),
        (lambda: linalg.qdwh(X, dynamic_shape=(1.0, 2)), TypeError, r"got f32\[\]"),
        (lambda: linalg.schur(X, sort_eig_vals=True), NotImplementedError, "sort_eig_vals=True"),
        (
            lambda: linalg.eigh(X, implementation=EighImplementation.QDWH),
            NotImplementedError,
            "eigh by QDWH cannot be computed on platform 'cpu': leave implementation out",
        ),
        (
            lambda: linalg.eig(X, implementation=EigImplementation.CUSOLVER),
            NotImplementedError,
            "eig by CUSOLVER cannot be computed on platform 'cpu'",
        ),
    ],
)
def test_bad_arguments(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("without_lapack")
def test_what_other_platforms_cannot_compute_says_so() -> None:
    for function, message in (
        (linalg.eig, "eig cannot be computed on platform 'cpu': it needs LAPACK"),
        (linalg.schur, "schur cannot be computed on platform 'cpu': it needs LAPACK"),
        (
            lambda x: linalg.eigh(x, implementation=EighImplementation.QR),
            "eigh by QR cannot be computed .* EighImplementation.JACOBI",
        ),
        (
            lambda x: linalg.svd(x, algorithm=SvdAlgorithm.QR),
            "svd by QR cannot be computed .* SvdAlgorithm.POLAR",
        ),
    ):
        with pytest.raises(NotImplementedError, match=message):
            dt.jit(lambda x, function=function: function(x)).lower(X)


def test_an_older_argument_warns() -> None:
    with pytest.warns(DeprecationWarning, match="use_magma is deprecated"):
        linalg.eig(X, use_magma=False)
    with (
        pytest.warns(DeprecationWarning, match="use_magma is deprecated"),
        pytest.raises(NotImplementedError, match="eig by MAGMA"),
    ):
        linalg.eig(X, use_magma=True)


def test_jaxprs() -> None:
    """Names, parameters and their values are printed as JAX prints them."""
    for function, lines in (
        (
            linalg.eigh,
            "eigh[ algorithm=None lower=True sort_eigenvalues=True subset_by_index=None ]",
        ),
        (
            lambda x: linalg.eig(x, implementation=EigImplementation.LAPACK),
            "eig[ compute_left_eigenvectors=True compute_right_eigenvectors=True "
            "enable_eigvec_derivs=False implementation=EigImplementation.LAPACK ]",
        ),
        (
            lambda x: linalg.svd(x, full_matrices=False, algorithm=SvdAlgorithm.JACOBI),
            "svd[ algorithm=SvdAlgorithm.JACOBI compute_uv=True full_matrices=False "
            "subset_by_index=None ]",
        ),
        (
            linalg.schur,
            "schur[ compute_schur_vectors=True select_callable=None sort_eig_vals=False ]",
        ),
        (linalg.hessenberg, "b:f32[3,3] c:f32[2] = hessenberg a"),
        (linalg.tridiagonal, "tridiagonal[lower=True] a"),
    ):
        shown = " ".join(str(dt.make_jaxpr(function)(X)).split())
        assert lines in shown


def test_all_of_the_spectrum_is_no_part_of_it() -> None:
    for function in (
        lambda x: linalg.eigh(x, subset_by_index=(0, 3)),
        lambda x: linalg.svd(x, full_matrices=True, subset_by_index=(0, 3)),
    ):
        assert "subset_by_index=None" in str(dt.make_jaxpr(function)(X))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)])
def test_every_algorithm_takes_nothing(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    results = [
        *(lax.linalg.eigh(x, implementation=i)[1] for i in EighImplementation),
        *(lax.linalg.eig(x, implementation=i)[0] for i in EigImplementation),
        *(lax.linalg.svd(x, algorithm=a)[1] for a in SvdAlgorithm),
    ]
    assert {r.shape for r in results} == {shape[:-1]}


@pytest.mark.parametrize("algorithm", EighImplementation)
def test_every_algorithm_chooses_nothing(algorithm: EighImplementation) -> None:
    x = np.eye(3, dtype=np.float32)
    vectors, values = lax.linalg.eigh(x, implementation=algorithm, subset_by_index=(1, 1))
    assert (vectors.shape, values.shape) == ((3, 0), (0,))
