"""LAPACK for batches, whose parts go to several threads: beside the same matrices one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail_cpu import blas
from dovetail_cpu.kernel_library import library

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)

DTYPES = ("float32", "float64", "complex64", "complex128")
BATCHES = [(5,), (2, 3), (0,)]


def matrices(dtype: str, *shape: int) -> Any:
    generator = np.random.default_rng(sum(shape))
    x = generator.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * generator.normal(size=shape)
    return x.astype(dtype)


FUNCTIONS = {
    "cholesky": lambda x: lax.linalg.cholesky(x @ x.mT.conj() + 10 * jnp.eye(70, dtype=x.dtype)),
    "lu": lambda x: lax.linalg.lu(jnp.concatenate([x, 2 * x.mT], -1)),
    "qr": lambda x: lax.linalg.qr(jnp.concatenate([x, 2 * x.mT], -2), full_matrices=False),
    "qr with pivots": lambda x: lax.linalg.qr(x, pivoting=True),
    "eigh": lambda x: lax.linalg.eigh((x + x.mT.conj()) / 2),
    "eig": lambda x: lax.linalg.eig(x),
    "svd": lambda x: lax.linalg.svd(x[..., :30]),
    "singular values": lambda x: lax.linalg.svd(x, compute_uv=False),
    "schur": lambda x: lax.linalg.schur(x),
    "hessenberg": lambda x: lax.linalg.hessenberg(x),
    "tridiagonal": lambda x: lax.linalg.tridiagonal(x + x.mT.conj()),
    "triangular solve": lambda x: lax.linalg.triangular_solve(
        x + 9 * jnp.eye(70, dtype=x.dtype), x, left_side=False, lower=True
    ),
    "tridiagonal solve": lambda x: lax.linalg.tridiagonal_solve(
        x[..., 0], x[..., 1] + 9, x[..., 2], x
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches_are_their_matrices_one_by_one(name: str, dtype: str) -> None:
    # A kernel of ours factors real matrices of this size.
    own = name in ("cholesky", "eigh", "lu", "qr") and dtype.startswith("float")
    with dt.enable_x64(True):
        function = dt.jit(FUNCTIONS[name])
        for batch in BATCHES:
            x = matrices(dtype, *batch, 70, 70)
            if x.size and not own:
                assert f'"lapack_{dtype_letter(dtype)}' in function.lower(x).as_text()
            found = dt.tree.leaves(function(x))
            alone = [dt.tree.leaves(function(each)) for each in x.reshape(-1, 70, 70)]
            for i, result in enumerate(found):
                parts = np.reshape(result, (-1, *result.shape[len(batch) :]))
                for part, each in zip(parts, alone, strict=True):
                    assert part.dtype == each[i].dtype
                    bound = 1e3 * float(np.finfo(dtype).eps)
                    scale = np.abs(np.asarray(each[i])).max(initial=0)
                    np.testing.assert_allclose(part, each[i], rtol=bound, atol=bound * scale)


def dtype_letter(dtype: str) -> str:
    return {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}[dtype]


def test_failures_stay_with_their_matrices() -> None:
    good = np.eye(80, dtype=np.float32) * 4
    x = np.stack([good, -good, good, np.full_like(good, np.nan), good])
    found = np.asarray(jnp.linalg.cholesky(x))
    assert [bool(np.isfinite(each).all()) for each in found] == [True, False, True, False, True]
    np.testing.assert_array_equal(found[4], good / 2)
    values = np.asarray(jnp.linalg.eigvalsh(x))
    assert [bool(np.isfinite(each).all()) for each in values] == [True, True, True, False, True]


@pytest.mark.parametrize("shape", [(30, 30), (5, 30, 30), (400, 400), (2, 330, 330)])
def test_blas_has_its_threads_back(shape: tuple[int, ...]) -> None:
    jnp.linalg.cholesky(jnp.eye(70)).block_until_ready()  # has BLAS loaded
    before = blas.threads()
    x = jnp.asarray(matrices("complex64", *shape))
    x = x + x.mT.conj()
    values, vectors = jnp.linalg.eigh(x)
    np.testing.assert_allclose(vectors * values[..., None, :], x @ vectors, atol=2e-5 * shape[-1])
    assert blas.threads() == before


def test_gradients_and_vmap_of_batches() -> None:
    x = matrices("float32", 6, 20, 20)
    x = x + np.swapaxes(x, -1, -2)

    def energy(x: Any) -> Any:
        values, vectors = jnp.linalg.eigh(x)
        return (values**2).sum() + jnp.abs(vectors[..., 0]).sum()

    together = dt.jit(dt.vmap(dt.grad(energy)))(x)
    alone = np.stack([dt.jit(dt.grad(energy))(each) for each in x])
    np.testing.assert_allclose(together, alone, rtol=1e-3, atol=1e-3)


def test_factors_of_large_matrices_do_not_depend_on_threads(run: Callable[..., str]) -> None:
    """Threads take blocks of columns as they come; of a batch each takes matrices."""
    code = """
import hashlib, sys
import numpy as np
import dovetail as dt, dovetail.numpy as jnp
from dovetail import lax
dt.config.update("enable_x64", True)
digest = hashlib.sha256()
for shape in ((256, 256), (401, 401), (300, 700), (700, 300), (3, 260, 260), (64, 5000)):
    for dtype in (np.float32, np.float64):
        a = np.random.default_rng(0).normal(size=shape).astype(dtype)
        a[..., :, 7] = a[..., :, 6]
        for _ in range(5):
            lu, pivots, order = map(np.asarray, lax.linalg.lu(a))
            digest.update(lu.tobytes() + pivots.tobytes())
            lower, upper = np.tril(lu, -1), np.triu(lu)
            size = min(shape[-2:])
            product = upper[..., :size, :].copy()
            product = lower[..., :, :size] @ product
            product[..., :size, :] += upper[..., :size, :]
            exact = np.take_along_axis(a, order[..., None], -2)
            error = np.abs(product - exact).max() / np.finfo(dtype).eps
            assert error < 40 * max(shape), (shape, dtype, error)
print(digest.hexdigest())
"""
    found = {run(code, DOVETAIL_NUM_THREADS=threads) for threads in ("1", "2", "5")}
    assert len(found) == 1
