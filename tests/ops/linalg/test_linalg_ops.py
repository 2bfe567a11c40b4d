"""Linear algebra beyond the samples: what users call, both lowerings, LAPACK itself."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail.extend import manager
from dovetail.lax import linalg
from dovetail.testing.checks import CHECKS
from dovetail.testing.samples import all_samples, defined_primitives

NDArray = np.ndarray[Any, Any]

OF_THE_CPU = (
    "cholesky",
    "geqp3",
    "geqrf",
    "householder_product",
    "lu",
    "ormqr",
    "qr",
    "triangular_solve",
    "tridiagonal_solve",
)


@pytest.fixture
def without_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are lowered as for a platform without rules of its own for linear algebra."""
    rules = {k: v for k, v in manager().lowerings("cpu").items() if k not in OF_THE_CPU}
    monkeypatch.setitem(manager()._lowerings, "cpu", rules)


@pytest.mark.usefixtures("without_lapack")
@pytest.mark.parametrize("name", OF_THE_CPU)
def test_the_lowering_for_any_platform_agrees(name: str) -> None:
    CHECKS["lowering_agrees"](defined_primitives()[name], all_samples()[name])


@pytest.fixture(params=["lapack", "any platform"])
def both_lowerings(request: pytest.FixtureRequest) -> None:
    """Both ways of lowering, one after the other."""
    if request.param != "lapack":
        request.getfixturevalue("without_lapack")


def test_which_lowering_is_which(request: pytest.FixtureRequest) -> None:
    x = np.eye(2, dtype=np.complex64)
    assert "lapack_cpotrf_ffi" in dt.jit(lambda x: linalg.cholesky(x)).lower(x).as_text()
    request.getfixturevalue("without_lapack")
    assert "custom_call" not in dt.jit(lambda x: linalg.cholesky(x)).lower(x).as_text()


# Products of factors. Matrices are larger than those of samples.


def matrices(*shape: int, dtype: Any = np.float64) -> NDArray:
    generator = np.random.default_rng(sum(shape))
    x = generator.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * generator.normal(size=shape)
    return np.asarray(x).astype(dtype)


def adjoint(x: NDArray) -> NDArray:
    return x.conj().swapaxes(-1, -2)


def compiled(function: Callable[..., Any], *args: Any) -> Any:
    """Results as NumPy arrays, of a program that is lowered anew."""
    return dt.tree.map(np.asarray, dt.jit(lambda *x: function(*x))(*args))


def close(x: NDArray, y: NDArray) -> None:
    precision = np.finfo(x.dtype).eps * 40 * max(1, *x.shape)
    np.testing.assert_allclose(x, y, rtol=0, atol=precision * max(1, np.abs(y).max()))


DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.fixture(params=DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def dtype(request: pytest.FixtureRequest) -> Any:
    with dt.enable_x64(True):
        yield request.param


@pytest.mark.usefixtures("both_lowerings")
def test_cholesky(dtype: Any) -> None:
    x = matrices(2, 17, 17, dtype=dtype)
    x = x @ adjoint(x) + np.eye(17, dtype=dtype)
    root = compiled(linalg.cholesky, x)
    assert root.dtype == dtype
    assert (np.triu(root, 1) == 0).all()
    close(root @ adjoint(root), x)


@pytest.mark.usefixtures("both_lowerings")
@pytest.mark.parametrize("shape", [(2, 17, 17), (20, 9), (9, 20)], ids=str)
def test_lu(shape: tuple[int, ...], dtype: Any) -> None:
    x = matrices(*shape, dtype=dtype)
    packed, pivots, permutation = compiled(linalg.lu, x)
    rows, columns = shape[-2:]
    size = min(rows, columns)
    lower = np.tril(packed, -1)[..., :size] + np.eye(rows, size, dtype=dtype)
    assert (np.abs(lower) < 1.5).all()
    close(lower @ np.triu(packed)[..., :size, :], np.take_along_axis(x, permutation[..., None], -2))
    assert pivots.shape == (*shape[:-2], size)
    found = linalg.lu_pivots_to_permutation(pivots, rows)
    np.testing.assert_array_equal(np.asarray(found), permutation)


@pytest.mark.usefixtures("both_lowerings")
@pytest.mark.parametrize("shape", [(2, 17, 17), (20, 9), (9, 20)], ids=str)
@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("pivoting", [False, True])
def test_qr(shape: tuple[int, ...], full_matrices: bool, pivoting: bool) -> None:
    x = matrices(*shape, dtype=np.complex64)
    q, r, *order = compiled(
        lambda x: linalg.qr(x, full_matrices=full_matrices, pivoting=pivoting), x
    )
    inner = shape[-2] if full_matrices else min(shape[-2:])
    assert q.shape == (*shape[:-1], inner)
    assert (np.tril(r, -1) == 0).all()
    close(
        adjoint(q) @ q, np.broadcast_to(np.eye(inner, dtype=q.dtype), (*shape[:-2], inner, inner))
    )
    close(q @ r, np.take_along_axis(x, order[0][..., None, :], -1) if pivoting else x)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    assert (diagonal.imag == 0).all()
    if pivoting:
        assert (np.diff(np.abs(diagonal)) < 1e-5).all()


@pytest.mark.usefixtures("both_lowerings")
@pytest.mark.parametrize("transpose", [False, True])
def test_ormqr_multiplies_by_q(transpose: bool, dtype: Any) -> None:
    packed, taus = compiled(defined_primitives()["geqrf"].bind, matrices(2, 9, 5, dtype=dtype))
    wide = np.concatenate([packed, np.zeros((2, 9, 4), dtype)], -1)
    q = compiled(linalg.householder_product, wide, taus)
    matrix = adjoint(q) if transpose else q
    for left, c in (
        (True, matrices(2, 9, 3, dtype=dtype)),
        (False, matrices(2, 3, 9, dtype=dtype)),
    ):
        multiply = functools.partial(linalg.ormqr, left=left, transpose=transpose)
        close(compiled(multiply, packed, taus, c), matrix @ c if left else c @ matrix)


@pytest.mark.usefixtures("both_lowerings")
@pytest.mark.parametrize("perturb_singular", [False, True])
def test_tridiagonal_solve(perturb_singular: bool, dtype: Any) -> None:
    dl, d, du = (matrices(2, 30, n, dtype=dtype)[..., 0] for n in (1, 2, 3))
    matrix = np.zeros((2, 30, 30), dtype)
    index = np.arange(30)
    matrix[:, index, index] = d
    matrix[:, index[1:], index[:-1]] = dl[:, 1:]
    matrix[:, index[:-1], index[1:]] = du[:, :-1]
    want = matrices(2, 30, 3, dtype=dtype)
    got = compiled(
        lambda *x: linalg.tridiagonal_solve(*x, perturb_singular=perturb_singular),
        dl,
        d,
        du,
        matrix @ want,
    )
    precision = np.finfo(dtype).eps * 100 * np.linalg.cond(matrix).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=precision)


@pytest.mark.usefixtures("both_lowerings")
@pytest.mark.parametrize("scale", [0, 1e-3, 1, 1e3])
def test_zero_pivots_are_replaced(scale: float) -> None:
    ones = np.full((1, 2), scale, np.float32)
    b = np.array([[[1], [2]]], np.float32)
    (x,) = compiled(lambda *a: linalg.tridiagonal_solve(*a, perturb_singular=True), *[ones] * 3, b)
    eps = np.finfo(np.float32).eps
    if scale:
        np.testing.assert_allclose(x[:, 0] * scale, [-1 / eps, 1 / eps], rtol=1e-6)
    else:
        assert (np.isfinite(x) & (x > 1 / eps)).all()


# What is not in the primitives.


def test_vectors_as_right_hand_sides() -> None:
    a = np.tril(matrices(2, 4, 4, dtype=np.float32)) + 4 * np.eye(4, dtype=np.float32)
    b = matrices(2, 4, dtype=np.float32)
    left = linalg.triangular_solve(a, b, left_side=True, lower=True)
    close(np.asarray(left), np.linalg.solve(a, b[..., None])[..., 0])
    right = linalg.triangular_solve(a, b, lower=True)
    close(np.asarray(right), np.linalg.solve(a.swapaxes(-1, -2), b[..., None])[..., 0])


def test_conjugating_real_matrices_does_nothing() -> None:
    a, b = np.array([[2.0, 0], [1, 4]]), np.array([[2.0], [9]])
    jaxpr = dt.make_jaxpr(lambda a: linalg.triangular_solve(a, b, left_side=True, conjugate_a=True))
    assert "conjugate_a=False" in str(jaxpr(a))


def test_cholesky_reads_one_triangle_or_takes_the_mean() -> None:
    x = np.array([[4.0, 100], [2, 5]])
    want = [[2, 0], [1, 2]]
    assert linalg.cholesky(x, symmetrize_input=False).tolist() == want
    assert linalg.cholesky(np.array([[4, 0], [4.0, 5]])).tolist() == want
    assert linalg.cholesky(np.array([[4, 2], [2, 5]])).tolist() == want
    assert linalg.cholesky(np.eye(2, dtype=bool)).dtype == np.float32


def test_gradients_of_cholesky_are_those_of_what_is_read() -> None:
    x = np.array([[4.0, 2], [2, 5]], np.float32)

    def gradient(symmetrize: bool) -> Any:
        def total(x: Any) -> Any:
            return lax.reduce_sum(linalg.cholesky(x, symmetrize_input=symmetrize), (0, 1))

        return dt.grad(total)(x)

    lower, both = np.asarray(gradient(False)), np.asarray(gradient(True))
    assert lower[0, 1] == 0
    np.testing.assert_allclose(both, (lower + lower.T) / 2, rtol=1e-6)


def test_symmetric_product() -> None:
    a, c = matrices(3, 2, dtype=np.float32), matrices(3, 3, dtype=np.float32)
    own = a @ a.T
    close(np.asarray(linalg.symmetric_product(a, np.full_like(c, np.nan))), own)
    close(np.asarray(linalg.symmetric_product(a, c, alpha=2, beta=3)), 2 * own + 3 * c)
    got = np.asarray(linalg.symmetric_product(a, c, beta=1, symmetrize_output=True))
    close(got, np.tril(own + c) + np.tril(own + c, -1).T)


def test_sixteen_bits_are_rounded_once() -> None:
    a = np.full((1, 4096), 0.0625, np.float16)
    assert linalg.symmetric_product(a, a[:, :1]).tolist() == [[16]]


@pytest.mark.parametrize("name", ["cholesky", "lu", "qr"])
def test_names_in_jaxprs(name: str) -> None:
    (*_, equation) = [
        e for e in dt.make_jaxpr(getattr(linalg, name))(np.eye(2)).eqns if e.primitive.name == name
    ]
    assert equation.primitive is getattr(linalg, f"{name}_p")


X = np.eye(2, dtype=np.float32)
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "list": (lambda: linalg.cholesky([[1.0]]), TypeError, "cholesky requires its argument x"),
    "half": (
        lambda: linalg.lu(X.astype(np.float16)),
        TypeError,
        "lu does not accept dtype float16",
    ),
    "size": (
        lambda: linalg.lu_pivots_to_permutation(np.zeros(2, np.int32), 2.5),
        TypeError,
        "permutation_size must be an integer, got 2.5",
    ),
    "alpha": (
        lambda: dt.jit(lambda s: linalg.symmetric_product(X, X, alpha=s))(2.0),
        TypeError,
        "alpha must be a number known when the program is made",
    ),
    "no batch": (
        lambda: linalg.triangular_solve(X, np.ones((3, 2, 2), np.float32)),
        TypeError,
        r"triangular_solve: b must have the batch dimensions \(\) of the first operand",
    ),
}


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS)
def test_errors(case: tuple[Callable[[], Any], type[Exception], str]) -> None:
    function, kind, message = case
    with pytest.raises(kind, match=message):
        function()


# LAPACK is made ready once, whoever asks first.

FACTOR_IN_THREADS = """
from concurrent.futures import ThreadPoolExecutor

import dovetail
import numpy as np
from dovetail import lax
from dovetail._core.runtime.programs import compilation

def factor(size):
    x = np.eye(size, dtype=np.float32) * 4
    root, packed = dovetail.jit(lambda x: (lax.linalg.cholesky(x), lax.linalg.lu(x)[0]))(x)
    assert (np.asarray(root) == x / 2).all() and (np.asarray(packed) == x).all()

with ThreadPoolExecutor(4) as pool:
    list(pool.map(factor, range(1, 9)))
done = compilation.statistics()
print(done.compiled, done.loaded)
"""


def test_lapack_in_fresh_processes_and_threads_with_a_cold_and_a_warm_cache(
    tmp_path: Path,
) -> None:
    folder = str(tmp_path / "programs")
    counts = []
    for _ in range(2):
        answer = subprocess.run(
            [sys.executable, "-W", "error", "-c", FACTOR_IN_THREADS],
            env={**os.environ, "DOVETAIL_COMPILATION_CACHE_DIR": folder},
            capture_output=True,
            text=True,
        )
        assert answer.returncode == 0, answer.stderr
        counts.append(tuple(map(int, answer.stdout.split())))
    (compiled, loaded), again = counts
    assert compiled >= 8
    assert loaded == 0
    assert again == (0, compiled)
