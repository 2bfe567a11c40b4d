"""Linear algebra under SciPy's names: values, shapes, stacks, dtypes, derivatives, refusals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg as reference

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.scipy import linalg

pytestmark = pytest.mark.tables

RANDOM = np.random.default_rng(20)
A = RANDOM.normal(size=(2, 4, 4))
COMPLEX = A + 1j * RANDOM.normal(size=(2, 4, 4))
B = RANDOM.normal(size=(2, 4, 3))
TALL = RANDOM.normal(size=(2, 5, 3))
KINDS = {"float64": A, "complex128": COMPLEX}


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def positive(x: Any) -> Any:
    return x @ adjoint(x) + np.eye(x.shape[-1])


def close(actual: Any, expected: Any, tolerance: float = 1e-12) -> None:
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def each(function: Callable[..., Any], *stacks: Any) -> Any:
    """Results of SciPy for each matrix in a stack."""
    results = [function(*x) for x in zip(*stacks, strict=True)]
    if isinstance(results[0], tuple):
        return tuple(np.stack(r) for r in zip(*results, strict=True))
    return np.stack(results)


@pytest.fixture(autouse=True)
def _wide() -> Any:
    with dt.enable_x64(True):
        yield


# ---------------------------------------------------------------------------- equations and factors


@pytest.mark.parametrize(("kind", "lower"), [("float64", False), ("complex128", True)])
def test_cholesky_and_its_solutions(kind: str, lower: bool) -> None:
    a = positive(KINDS[kind])
    # Only one triangle may be read.
    triangle = np.tril(a) if lower else np.triu(a)
    factor = linalg.cholesky(triangle, lower=lower)
    close(factor, each(partial(reference.cholesky, lower=lower), a))
    packed, flag = linalg.cho_factor(triangle, lower=lower)
    close(packed, factor)
    assert flag is lower
    x = np.linalg.solve(a, B)
    close(linalg.cho_solve((packed, lower), B), x)
    close(linalg.cho_solve((packed, lower), B[0, :, 0]), np.linalg.solve(a, B[0, :, 0]))
    close(linalg.solve(triangle, B, lower=lower, assume_a="pos"), x)


@pytest.mark.parametrize("kind", ["complex128"])
def test_solutions_of_general_and_triangular_matrices(kind: str) -> None:
    a = KINDS[kind]
    for assume in ("gen", "sym", "her"):
        close(linalg.solve(a, B, assume_a=assume), np.linalg.solve(a, B))
    close(linalg.solve(a, B[0, :, 0]), np.linalg.solve(a, B[0, :, 0]))
    close(linalg.inv(a), np.linalg.inv(a))
    close(linalg.det(a), np.linalg.det(a))
    for lower, trans, unit in ((True, 0, True), (False, 1, False), (True, "C", False)):
        options: Any = {"trans": trans, "lower": lower, "unit_diagonal": unit}
        expected = each(partial(reference.solve_triangular, **options), a, B)
        close(linalg.solve_triangular(a, B, **options), expected, 1e-10)
    factors = linalg.lu_factor(a)
    for trans, operation in enumerate((lambda x: x, lambda x: np.swapaxes(x, 1, 2), adjoint)):
        close(linalg.lu_solve(factors, B, trans=trans), np.linalg.solve(operation(a), B))
    one = linalg.lu_factor(a[0])
    close(linalg.lu_solve(one, np.stack([B])), np.linalg.solve(a[0], np.stack([B])))


@pytest.mark.parametrize("x", [COMPLEX, TALL, np.swapaxes(TALL, 1, 2)], ids="abc")
def test_lu_qr_and_singular_values(x: Any) -> None:
    expected = each(reference.lu, x)
    for actual, wanted in zip(linalg.lu(x), expected, strict=True):
        close(actual, wanted)
    close(linalg.lu(x, permute_l=True)[0], expected[0] @ expected[1])
    packed, exchanged = linalg.lu_factor(x)
    wanted_packed, wanted_exchanged = each(reference.lu_factor, x)
    close(packed, wanted_packed)
    close(exchanged, wanted_exchanged)
    for mode in ("full", "economic", "r"):
        for pivoting in (False, True):
            wanted = each(partial(reference.qr, mode=mode, pivoting=pivoting), x)
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            results = linalg.qr(x, mode=mode, pivoting=pivoting)
            assert [r.shape for r in results] == [w.shape for w in wanted]
            r = results[-2 if pivoting else -1]
            # The signs of rows are free.
            close(abs(r), abs(wanted[-2 if pivoting else -1]))
            if mode != "r":
                order = results[-1] if pivoting else np.arange(x.shape[-1]) + 0 * x[:, 0].real
                columns = np.take_along_axis(x, np.asarray(order).astype(int)[:, None, :], 2)
                close(results[0] @ r, columns)
    u, s, vh = linalg.svd(x, full_matrices=False)
    close(np.asarray(u * s[:, None, :]) @ np.asarray(vh), x)
    close(linalg.svd(x, compute_uv=False), each(reference.svdvals, x))
    assert linalg.svd(x)[0].shape == (2, x.shape[1], x.shape[1])


@pytest.mark.parametrize("kind", ["complex128"])
def test_generalised_eigenvalues(kind: str) -> None:
    a, b = KINDS[kind] + adjoint(KINDS[kind]), positive(KINDS[kind][::-1])
    w, v = linalg.eigh(a)
    close(w, each(partial(reference.eigh, eigvals_only=True), a))
    close(a @ v, np.asarray(v * w[:, None, :]))
    for number in (1, 2, 3):
        w, v = (np.asarray(x) for x in linalg.eigh(a, b, type=number))
        wanted = each(partial(reference.eigh, eigvals_only=True, type=number), a, b)
        close(w, wanted, 1e-11)
        close(linalg.eigh(a, b, eigvals_only=True, type=number), w)
        left = {1: a, 2: a @ b, 3: b @ a}[number]
        right = b if number == 1 else np.eye(4)
        close(left @ v, right @ v * w[:, None, :], 1e-10)
        metric = np.linalg.inv(b) if number == 3 else b
        close(adjoint(v) @ metric @ v, np.stack([np.eye(4)] * 2), 1e-11)


@pytest.mark.laws
@pytest.mark.parametrize("kind", ["complex128"])
def test_polar_and_products_with_q(kind: str) -> None:
    square = KINDS[kind]
    tall = TALL + (1j * TALL[::-1] if kind == "complex128" else 0)
    wide = adjoint(tall)
    svd = [(tall, "left", "svd"), (wide, "right", "svd")]
    for x, side, method in ((square, "left", "qdwh"), (tall, "right", "qdwh"), *svd):
        expected = each(partial(reference.polar, side=side), x)
        for actual, wanted in zip(linalg.polar(x, side, method=method), expected, strict=True):
            close(actual, wanted, 1e-11)
    for x, conjugate in ((tall, True), (wide, False)):
        rows, count = x.shape[1], min(x.shape[1:])
        for mode, c in (("right", RANDOM.normal(size=(2, rows))), ("left", np.eye(count, 2))):
            got = linalg.qr_multiply(x, c, mode, True, conjugate)
            q, r, order = linalg.qr(x, mode="economic", pivoting=True)
            q = np.conj(q) if conjugate else np.asarray(q)
            close(got[0], c @ q if mode == "right" else q @ c)
            close(got[1], r)
            close(got[2], order)
            one = linalg.qr_multiply(x, c[0] if mode == "right" else c[:, 0], mode)[0]
            q = np.asarray(linalg.qr(x, mode="economic")[0])
            close(one, c[0] @ q if mode == "right" else q @ c[:, 0])


# ----------------------------------------------------------------------------- forms and functions


@pytest.mark.parametrize("kind", KINDS)
def test_schur_and_hessenberg_forms(kind: str) -> None:
    x = KINDS[kind]
    for output in ("real", "complex"):
        t, z = (np.asarray(v) for v in linalg.schur(x, output))
        close(z @ t @ adjoint(z), x)
        triangle = t if output == "real" and kind == "float64" else np.tril(t, -1)
        assert np.allclose(np.tril(triangle, -2), 0)
        assert np.iscomplexobj(t) == (output == "complex" or kind == "complex128")
    t, z = linalg.schur(x)
    for k in (slice(None), 0):
        triangular, vectors = (np.asarray(v) for v in linalg.rsf2csf(t[k], z[k]))
        close(vectors @ triangular @ adjoint(vectors), x[k] + 0j)
        assert (np.tril(triangular, -1) == 0).all()
        assert np.allclose(vectors @ adjoint(vectors), np.eye(4), rtol=0, atol=1e-13)
    h, q = (np.asarray(v) for v in linalg.hessenberg(x, calc_q=True))
    close(abs(h), abs(each(reference.hessenberg, x)))
    close(q @ h @ adjoint(q), x)
    close(linalg.hessenberg(x), h)
    for size in (1, 2):
        h, q = linalg.hessenberg(x[:, :size, :size], calc_q=True)
        close(np.asarray(q) @ np.asarray(h) @ adjoint(q), x[:, :size, :size])


@pytest.mark.parametrize(("kind", "triangular"), [("float64", False), ("complex128", True)])
def test_exponentials(kind: str, triangular: bool) -> None:
    x = KINDS[kind]
    sizes = np.array([1e-9, 0.3, 7.0, 40.0])[:, None, None]
    stack = sizes * x[0]
    expected = np.stack([reference.expm(np.triu(m) if triangular else m) for m in stack])
    got = linalg.expm(stack, upper_triangular=triangular)
    for actual, wanted in zip(got, expected, strict=True):
        close(actual / np.abs(wanted).max(), wanted / np.abs(wanted).max(), 3e-13)
    narrow = linalg.expm(stack[:3].astype("complex64" if kind == "complex128" else "float32"))
    wanted = np.stack([reference.expm(m) for m in stack[:3]])
    close(narrow, wanted, 3e-6)


@pytest.mark.laws
def test_limits_of_exponentials() -> None:
    rotation = np.array([[0.0, -1.0], [1.0, 0.0]])
    close(linalg.expm(1e5 * rotation), reference.expm(1e5 * rotation), 1e-9)
    assert np.isnan(linalg.expm(1e6 * rotation)).all()
    assert np.isnan(linalg.expm(100 * rotation, max_squarings=2)).all()
    close(linalg.expm(rotation, max_squarings=0), reference.expm(rotation))
    # One matrix of a stack does not change another.
    both = np.stack([rotation, np.full((2, 2), np.nan)])
    close(linalg.expm(both)[0], reference.expm(rotation))
    assert np.isnan(linalg.expm(both)[1]).all()
    assert linalg.expm(np.zeros((3, 0, 0))).shape == (3, 0, 0)
    assert linalg.expm(np.eye(2, dtype=np.float16)).dtype == np.float16


@pytest.mark.laws
@pytest.mark.parametrize("kind", ["complex128"])
def test_derivatives_of_exponentials(kind: str) -> None:
    x, change = 3 * KINDS[kind], KINDS[kind][::-1]
    expected = each(reference.expm_frechet, x, change)
    for method in ("SPS", "blockEnlarge"):
        results = linalg.expm_frechet(x, change, method=method)
        for actual, wanted in zip(results, expected, strict=True):
            close(actual, wanted, 1e-11)
    close(linalg.expm_frechet(x, change, compute_expm=False), expected[1], 1e-11)
    # The gradient: of the real part of the product with w it is the derivative towards w.
    w = x[::-1]
    gradient = dt.grad(lambda a: jnp.sum(jnp.real(jnp.conj(w) * linalg.expm(a))))(x)
    wanted = each(partial(reference.expm_frechet, compute_expm=False), adjoint(x), w)
    close(np.conj(gradient) if kind == "complex128" else gradient, wanted, 1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_square_roots_and_functions(kind: str) -> None:
    x = KINDS[kind]
    for m in (x, positive(x)) if kind == "complex128" else (x,):
        root = np.asarray(linalg.sqrtm(m))
        close(root, each(reference.sqrtm, m).astype(complex), 1e-11)
        close(root @ root, m.astype(complex), 1e-11)
        values, error = linalg.funm(m, jnp.exp, disp=False)
        close(values, each(reference.expm, m).astype(complex), 1e-10)
        assert error.shape == (2,)
        assert (np.asarray(error) < 1e-10).all()
    if kind == "complex128":
        return
    assert (np.asarray(linalg.sqrtm(np.zeros((2, 2)))) == 0).all()
    assert np.isnan(np.asarray(linalg.sqrtm(np.array([[0.0, 1.0], [0.0, 0.0]])))[0, 1])
    close(linalg.funm(3 * np.eye(2), jnp.exp), np.exp(3) * np.eye(2) + 0j)
    jordan, error = linalg.funm(np.array([[1.0, 1.0], [0.0, 1.0]]), jnp.exp, disp=False)
    assert np.isnan(np.asarray(jordan)[0, 1])
    assert np.isinf(error)


@pytest.mark.parametrize(("kind", "method"), [("float64", "schur"), ("complex128", "eigen")])
def test_sylvester(kind: str, method: str) -> None:
    a, b = KINDS[kind], TALL[:, :3, :3]
    expected = each(reference.solve_sylvester, a, b.astype(a.dtype), B.astype(a.dtype))
    close(linalg.solve_sylvester(a, b, B, method=method), expected, 1e-11)
    one = np.eye(2)
    assert np.isnan(linalg.solve_sylvester(one, -one, one, method=method)).all()
    # Changing the tolerance compiles nothing, and what is below it counts as zero.
    assert np.isnan(linalg.solve_sylvester(one, one, one, method=method, tol=3.0)).all()


S = positive(A[0])
DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda a: linalg.cholesky((a + jnp.conj(a.T)) / 2),
    "solve": lambda a: linalg.solve(a + jnp.conj(a.T), B[0], assume_a="pos"),
    "lu_solve": lambda a: linalg.lu_solve(linalg.lu_factor(a), B[0], trans=2),
    "cho_solve": lambda a: linalg.cho_solve(linalg.cho_factor((a + jnp.conj(a.T)) / 2), B[0]),
    "solve_triangular": lambda a: linalg.solve_triangular(a, B[0], trans=2),
    "lu": lambda a: linalg.lu(a)[2],
    "qr": lambda a: linalg.qr(a, mode="r", pivoting=True)[0],
    "eigh": lambda a: linalg.eigh(a, S, eigvals_only=True, type=2),
    "sqrtm": lambda a: linalg.sqrtm(a),
    "funm": lambda a: linalg.funm(a, jnp.sin),
    "sylvester": lambda a: linalg.solve_sylvester(a, a @ a, B[0] @ B[0].T),
    "sylvester by eigenvectors": lambda a: linalg.solve_sylvester(
        a, a @ a, B[0] @ B[0].T, method="eigen"
    ),
    "polar": lambda a: linalg.polar(a)[1],
    "tridiagonal": lambda a: linalg.eigh_tridiagonal(a[0], a[1, 1:], eigvals_only=True),
    "companion": lambda a: linalg.companion(a[0]),
    "toeplitz": lambda a: linalg.toeplitz(a[0], a[1]),
}


#: Functions in which real matrices take another way than complex ones.
REAL = ("sqrtm", "funm", "sylvester")
CASES = [(name, "complex128") for name in DERIVATIVES] + [(name, "float64") for name in REAL]


@pytest.mark.laws
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_derivatives(name: str, kind: str) -> None:
    """Forwards against differences, backwards against forwards, in a program."""
    f = DERIVATIVES[name]
    x, change = positive(KINDS[kind][0]), KINDS[kind][1]
    x = x + 0.1 * np.triu(KINDS[kind][0])
    h = 1e-5

    @dt.jit
    def program(x: Any, d: Any) -> Any:
        out, pull = dt.vjp(f, x)
        weights = jnp.cos(jnp.arange(out.size)).reshape(out.shape).astype(out.dtype)
        _, derivative = dt.jvp(f, (x,), (d,))
        both = dt.vmap(f)(jnp.stack([x + h * d, x - h * d]))
        return (both[0] - both[1]) / (2 * h), derivative, weights, pull(weights)[0]

    difference, derivative, weights, gradient = map(np.asarray, program(x, change))
    close(derivative, difference, 2e-7)
    # Functions with conjugates in them are linear in real and imaginary parts alone.
    close((gradient * change).sum().real, (weights * derivative).sum().real, 1e-9)


@pytest.mark.laws
@pytest.mark.parametrize("name", ["sqrtm", "expm", "funm"])
def test_second_derivatives_and_batches(name: str) -> None:
    x, change, h = positive(A[0]), A[1], 1e-5

    def f(a: Any) -> Any:
        return linalg.funm(a, jnp.exp) if name == "funm" else getattr(linalg, name)(a)

    def first(x: Any) -> Any:
        return dt.jvp(f, (x,), (change,))[1]

    @dt.jit
    def program(x: Any, stack: Any) -> Any:
        both = dt.vmap(first)(jnp.stack([x + h * change, x - h * change]))
        second = dt.jvp(first, (x,), (change,))[1]
        return second, (both[0] - both[1]) / (2 * h), dt.vmap(f)(stack), f(stack)

    second, difference, mapped, together = program(x, A)
    close(second, difference, 1e-6)
    close(mapped, together, 1e-12)


# ----------------------------------------------------------------------------------- special forms


V, W = RANDOM.integers(1, 9, (2, 5)), RANDOM.normal(size=(2, 4))
PLACED: dict[str, tuple[Any, ...]] = {
    "toeplitz": (V, W),
    "hankel": (V, W),
    "circulant": (V,),
    "companion": (V,),
    "fiedler": (W,),
    "fiedler_companion": (V,),
    "leslie": (V, W),
}


@pytest.mark.parametrize("name", PLACED)
def test_matrices_of_vectors(name: str) -> None:
    stacks = PLACED[name]
    theirs, ours = getattr(reference, name), getattr(linalg, name)
    close(ours(*stacks), each(theirs, *stacks))
    least = {"companion": 2, "fiedler_companion": 2, "leslie": 2}.get(name, 1)
    for size in (least, 4):
        one = tuple(s[0, : size - (name == "leslie" and k)] for k, s in enumerate(stacks))
        close(ours(*one), theirs(*one))
    if name in ("toeplitz", "hankel"):
        close(ours(V[0] * (1 + 2j)), theirs(V[0] * (1 + 2j)))
    assert ours(*(s.astype(np.float32) for s in stacks)).dtype == np.float32


def test_convolutions_and_blocks() -> None:
    for m, n in ((1, 4), (4, 5), (5, 2)):
        for mode in ("full", "same", "valid"):
            expected = reference.convolution_matrix(V[0, :m], n, mode)
            close(linalg.convolution_matrix(V[:, :m], n, mode)[0], expected)
    blocks = (V, 3, W[0], np.ones((0, 2)), np.ones((2, 0)))
    close(linalg.block_diag(*blocks), reference.block_diag(*blocks))
    assert linalg.block_diag().shape == (1, 0)
    assert linalg.block_diag(np.ones((1, 1), "int32"), np.ones((1, 1), "f")).dtype == np.float32


@pytest.mark.parametrize("n", [1, 2, 3, 8, 12])
def test_matrices_of_a_size(n: int) -> None:
    for scale in (None, "sqrtn", "n"):
        close(linalg.dft(n, scale), reference.dft(n, scale), 1e-13)
    assert linalg.dft(n, dtype="complex64").dtype == np.complex64
    close(linalg.helmert(n, full=True), reference.helmert(n, full=True), 1e-15)
    close(linalg.helmert(n), reference.helmert(n), 1e-15)
    for name in ("hilbert", "invhilbert"):
        close(getattr(linalg, name)(n), getattr(reference, name)(n), 1e-15)
    for name in ("pascal", "invpascal"):
        for kind in ("symmetric", "lower", "upper"):
            close(getattr(linalg, name)(n, kind), getattr(reference, name)(n, kind), 0)
        close(getattr(linalg, name)(n), getattr(reference, name)(n), 0)
    if n in (1, 2, 8):
        close(linalg.hadamard(n), reference.hadamard(n), 0)
        assert linalg.hadamard(n, "float32").dtype == np.float32


@pytest.mark.parametrize("kind", ["float64", "complex128", "float32", "int64"])
def test_tridiagonal_eigenvalues(kind: str) -> None:
    d, e = np.array([1.0, 3.0, 2.0, 5.0]), np.array([2.0, -1.0, 1.0])
    if kind == "complex128":
        e = e * (1 + 2j)
    matrix = np.diag(d) + np.diag(e, 1) + np.diag(np.conj(e), -1)
    wanted = np.linalg.eigvalsh(matrix)
    w, v = (np.asarray(x) for x in linalg.eigh_tridiagonal(d.astype(kind), e.astype(kind)))
    tolerance = 1e-13 if kind != "float32" else 1e-6
    close(w, wanted, tolerance)
    close(matrix @ v, v * w, 10 * tolerance)
    some: Any = {"select": "i", "select_range": (1, 2)}
    close(linalg.eigh_tridiagonal(d, e, eigvals_only=True, **some), wanted[1:3])
    assert linalg.eigh_tridiagonal(np.stack([d, d]), np.stack([e, e]), **some)[1].shape == (2, 4, 2)


# ---------------------------------------------------------------------------------------- refusals

REFUSED: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (ValueError, "cholesky", lambda: linalg.cholesky(TALL)),
    (ValueError, "cho_solve", lambda: linalg.cho_solve((A, True), np.ones(3))),
    (ValueError, "cho_solve", lambda: linalg.cho_solve((A, True), np.ones((2, 4)))),
    (TypeError, "cho_solve", lambda: linalg.cho_solve(A[0, 0], np.ones(3))),
    (ValueError, "assume_a", lambda: linalg.solve(A, B, assume_a="banded")),
    (ValueError, "trans", lambda: linalg.solve_triangular(A, B, trans=3)),
    (ValueError, "trans", lambda: linalg.lu_solve(linalg.lu_factor(A), B, trans=3)),
    (ValueError, "piv", lambda: linalg.lu_solve((A, np.ones(3, int)), B)),
    (ValueError, "mode", lambda: linalg.qr(A, mode="raw")),
    (ValueError, "lapack_driver", lambda: linalg.svd(A, lapack_driver="other")),
    (NotImplementedError, "eigvals", lambda: linalg.eigh(A, eigvals=(0, 1))),
    (ValueError, "type", lambda: linalg.eigh(A, A, type=4)),
    (ValueError, "a and b", lambda: linalg.eigh(A, A[:, :3, :3])),
    (ValueError, "expm", lambda: linalg.expm(TALL)),
    (ValueError, "max_squarings", lambda: linalg.expm(A, max_squarings=-1)),
    (ValueError, "expm_frechet", lambda: linalg.expm_frechet(A, TALL)),
    (ValueError, "method", lambda: linalg.expm_frechet(A, A, method="other")),
    (NotImplementedError, "blocksize", lambda: linalg.sqrtm(A, 2)),
    (ValueError, "sqrtm", lambda: linalg.sqrtm(TALL)),
    (TypeError, "func", lambda: linalg.funm(A, 3)),  # type: ignore[arg-type]
    (ValueError, "func", lambda: linalg.funm(A, jnp.sum)),
    (ValueError, "output", lambda: linalg.schur(A, "other")),
    (ValueError, "rsf2csf", lambda: linalg.rsf2csf(A, A[0])),
    (ValueError, "hessenberg", lambda: linalg.hessenberg(TALL)),
    (ValueError, "side", lambda: linalg.polar(A, "up")),
    (ValueError, "method", lambda: linalg.polar(A, method="other")),
    (NotImplementedError, "svd", lambda: linalg.polar(TALL, "left")),
    (ValueError, "mode", lambda: linalg.qr_multiply(A, A, "up")),
    (ValueError, "columns", lambda: linalg.qr_multiply(TALL, np.ones(3))),
    (ValueError, "rows", lambda: linalg.qr_multiply(TALL, np.ones(5), "left")),
    (ValueError, "method", lambda: linalg.solve_sylvester(A, A, A, method="other")),
    (ValueError, "rows of A", lambda: linalg.solve_sylvester(A, A, TALL)),
    (NotImplementedError, "select", lambda: linalg.eigh_tridiagonal(V[0], W[0], select="v")),
    (ValueError, "select_range", lambda: linalg.eigh_tridiagonal(V[0], W[0], select="i")),
    (ValueError, "one element less", lambda: linalg.eigh_tridiagonal(V[0], V[0])),
    (ValueError, "hankel", lambda: linalg.hankel(1)),
    (ValueError, "companion", lambda: linalg.companion(np.ones(1))),
    (ValueError, "fiedler_companion", lambda: linalg.fiedler_companion(np.ones(0))),
    (ValueError, "mode", lambda: linalg.convolution_matrix(V, 2, "other")),
    (ValueError, "n must", lambda: linalg.convolution_matrix(V, 0)),
    (ValueError, "n must", lambda: linalg.convolution_matrix(V, 2**40)),
    (ValueError, "leslie", lambda: linalg.leslie(V, V)),
    (ValueError, "two dimensions", lambda: linalg.block_diag(A)),
    (ValueError, "scale", lambda: linalg.dft(3, "other")),
    (ValueError, "dtype", lambda: linalg.dft(3, dtype="float32")),
    (ValueError, "power of two", lambda: linalg.hadamard(3)),
    (TypeError, "dtype", lambda: linalg.hadamard(2, bool)),
    (ValueError, "n must", lambda: linalg.helmert(0)),
    (ValueError, "n must", lambda: linalg.hilbert(-1)),
    (ValueError, "kind", lambda: linalg.pascal(3, "other")),
    *[
        (ValueError, "n must", lambda f=f: f(2**62))
        for f in (linalg.dft, linalg.hadamard, linalg.hilbert, linalg.invpascal, linalg.helmert)
    ],
    (TypeError, "select_range", lambda: linalg.eigh_tridiagonal(V, W, select_range=3)),
]


def test_refusals() -> None:
    for error, message, call in REFUSED:
        with pytest.raises(error, match=message):
            call()


@pytest.mark.laws
def test_narrow_dtypes_and_integers() -> None:
    whole = np.array([[4, 2], [2, 5]])
    for dtype in ("bfloat16", "int8"):
        x = jnp.asarray(whole, dtype)
        result = dtype if "float" in dtype else "float32"
        for y in (linalg.cholesky(x), linalg.expm(x), *linalg.lu(x), *linalg.eigh(x)):
            assert y.dtype == result, dtype
        assert linalg.schur(x, "complex")[0].dtype == np.complex64
        close(linalg.cholesky(x, lower=True).astype(float), np.array([[2, 0], [1, 2]]), 1e-6)
    for name in ("lu", "qr", "sqrtm", "expm", "hessenberg"):
        out = dt.tree.leaves(getattr(linalg, name)(np.ones((2, 0, 0))))
        assert all(v.shape[0] == 2 for v in out), name


@pytest.mark.parametrize("name", ["pascal", "invpascal", "invhilbert"])
def test_elements_beyond_the_range_are_infinite(name: str) -> None:
    function = getattr(linalg, name)
    wide = np.asarray(function(70))
    with dt.enable_x64(False), np.errstate(over="ignore"):
        narrow = np.asarray(function(70))
        assert np.isinf(narrow).any()
        np.testing.assert_array_equal(narrow, wide.astype(np.float32))
