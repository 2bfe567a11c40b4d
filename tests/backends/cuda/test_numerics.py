"""What the lowerings make of the kernels' results, with kernels played by NumPy and LAPACK.

No GPU is needed: the rules run on the CPU, with their calls replaced by functions of the memory
that the kernels would see, laid out as the calls say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.linalg.lapack

import dovetail as dt
from dovetail import lax
from dovetail._core.base.config import threefry_gpu_kernel_lowering
from dovetail._core.ops.random import threefry_reference
from dovetail._core.ops.random.threefry import threefry2x32_p
from dovetail.extend import ShapedArray, manager, primitives
from dovetail_cuda.lowerings import LOWERINGS, eigen, kernels, linalg, random, tridiagonal

pytestmark = pytest.mark.tables

DTYPES = ["float32", "float64", "complex64", "complex128"]
TOLERANCES = {"float32": 2e-4, "float64": 1e-11, "complex64": 2e-4, "complex128": 1e-11}
BAD = 96.0  # the first element of a matrix that an iteration fails for, and the last one is 3
Matrix = np.ndarray[Any, Any]
calls: list[str] = []


# ------------------------------------------------------------------------------------ the kernels
#
# Each takes and gives matrices as a library for column-major memory sees them.


def _routine(name: str, like: Matrix) -> Callable[..., Any]:
    (found,) = scipy.linalg.lapack.get_lapack_funcs([name], [like])
    return found  # type: ignore[no-any-return]


def _kind(real: str, complex_: str, like: Matrix) -> Callable[..., Any]:
    return _routine(complex_ if like.dtype.kind == "c" else real, like)


def _fails(a: Matrix) -> bool:
    assert np.isfinite(a).all(), "iterations must not see such matrices"
    return bool(len(a) > 1 and a[0, 0] == BAD / 3 * a[-1, -1])


def potrf(a: Matrix, *, lower: bool) -> Any:
    return _routine("potrf", a)(a, lower=lower, clean=False)


def getrf(a: Matrix) -> Any:
    packed, pivots, info = _routine("getrf", a)(a)
    return packed, pivots + 1, info


def pivots_to_permutation(pivots: Matrix, *, size: int) -> Any:
    order = np.arange(size, dtype=np.int32)
    for here, there in enumerate(pivots):
        order[[here, there]] = order[[there, here]]
    return (order,)


def geqrf(a: Matrix) -> Any:
    return _routine("geqrf", a)(a)[:2]


def geqp3(a: Matrix, first: Matrix, *, magma: str) -> Any:
    assert not first.any()
    assert magma == "auto"
    packed, order, taus, *_ = _routine("geqp3", a)(a)
    return packed, order, taus


def orgqr(a: Matrix, taus: Matrix) -> Any:
    return (_kind("orgqr", "ungqr", a)(a, taus)[0],)


def ormqr(a: Matrix, taus: Matrix, c: Matrix, *, left: bool, transpose: bool) -> Any:
    way = ("C" if a.dtype.kind == "c" else "T") if transpose else "N"
    routine = _kind("ormqr", "unmqr", a)
    return (routine("L" if left else "R", way, a[:, : taus.size], taus, c, 64 * max(c.shape))[0],)


def syevd(a: Matrix, *, lower: bool, algorithm: np.uint8) -> Any:
    values, vectors = np.linalg.eigh(a, "L" if lower else "U")
    return vectors, values, int(_fails(a))


def gesvd(a: Matrix, *, full_matrices: bool, compute_uv: bool, transposed: bool) -> Any:
    assert a.shape[0] >= a.shape[1], "cuSOLVER takes no others"
    u, s, vh = np.linalg.svd(a, full_matrices)
    if not compute_uv:
        u = vh = np.zeros((), a.dtype)
    return np.zeros_like(a), s, u, vh, int(_fails(a))


def gesvdj(a: Matrix, *, full_matrices: bool, compute_uv: bool) -> Any:
    if min(a.shape) <= 32:
        assert full_matrices, "the kernel for batches knows no others"
    return gesvdp(a, full_matrices=full_matrices, compute_uv=compute_uv)


def gesvdp(a: Matrix, *, full_matrices: bool, compute_uv: bool) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices)
    return np.zeros_like(a), s, u, vh.conj().T, int(_fails(a))


def geev(a: Matrix, *, left: bool, right: bool) -> Any:
    assert not left, "cuSOLVER finds none"
    *values, _, vectors, info = _routine("geev", a)(a, compute_vl=0, compute_vr=1)
    found = values[0] + 1j * values[1] if len(values) == 2 else values[0]
    return np.zeros_like(a), found, np.zeros_like(a), vectors, info or int(_fails(a))


def hybrid(a: Matrix, *, left: bool, right: bool, magma: str) -> Any:
    found, of_left, of_right = scipy.linalg.eig(a, left=True, right=True)
    values = (found.real, found.imag) if a.dtype.kind != "c" else (found,)
    return *values, of_left, of_right, int(_fails(a))


def sytrd(a: Matrix, *, lower: bool) -> Any:
    packed, *others, info = _kind("sytrd", "hetrd", a)(a, lower=lower)
    rubbish = np.full_like(packed, 99)
    keep = np.tril if lower else np.triu
    return keep(packed) + (rubbish - keep(rubbish)), *others, info


def gtsv2(dl: Matrix, d: Matrix, du: Matrix, b: Matrix) -> Any:
    assert len(d) >= 3, "cuSPARSE takes no others"
    read = b + 0 * (dl[0] + du[-1])  # what is outside of the matrix, too
    return (np.linalg.solve(np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1), read),)


def perturbed(dl: Matrix, d: Matrix, du: Matrix, b: Matrix) -> Any:
    return (np.linalg.solve(np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1), b),)


def cholesky_update(r: Matrix, w: Matrix) -> Any:
    """Knows rows where the others know columns, so that what it sees is the factor's transpose."""
    factor = np.tril(r)
    updated = np.linalg.cholesky(factor @ factor.T + np.outer(w, w))
    return updated + np.triu(np.full_like(r, 99), 1), np.zeros_like(w)


def syrk(a: Matrix, c: Matrix, alpha: Any, beta: Any, *, transpose: bool) -> Any:
    assert not transpose
    found = alpha * a.T @ a + (beta * c if beta else 0)
    return (np.triu(found) + np.tril(c, -1),)


def threefry(*words: Matrix) -> Any:
    return threefry_reference.threefry2x32(*words)


KERNELS: dict[str, Callable[..., Any]] = {
    "cu_cholesky_update_ffi": cholesky_update,
    "cu_lu_pivots_to_permutation": pivots_to_permutation,
    "cu_threefry2x32_ffi": threefry,
    "cu_tridiagonal_solve_perturbed": perturbed,
    "cuhybrid_eig_comp": hybrid,
    "cuhybrid_eig_real": hybrid,
    "cuhybrid_geqp3": geqp3,
    "cusolver_geev_ffi": geev,
    "cusolver_geqrf_ffi": geqrf,
    "cusolver_gesvd_ffi": gesvd,
    "cusolver_gesvdj_ffi": gesvdj,
    "cusolver_gesvdp_ffi": gesvdp,
    "cusolver_getrf_ffi": getrf,
    "cusolver_orgqr_ffi": orgqr,
    "cusolver_ormqr_ffi": ormqr,
    "cusolver_potrf_ffi": potrf,
    "cusolver_syevd_ffi": syevd,
    "cusolver_syrk_ffi": syrk,
    "cusolver_sytrd_ffi": sytrd,
    "cusparse_gtsv2_ffi": gtsv2,
}
# Such kernels take everything at once, and have no matrices.
ELEMENTWISE = {"cu_threefry2x32_ffi"}


# -------------------------------------------------------------------------- from values to memory


def memory(array: Matrix, layout: Sequence[int]) -> Matrix:
    """The elements as they lie in memory."""
    return np.ascontiguousarray(array.transpose(tuple(layout)[::-1])).ravel()


def value(elements: Matrix, shape: Sequence[int], layout: Sequence[int]) -> Matrix:
    """What lies in memory, as XLA takes it."""
    order = tuple(layout)[::-1]
    return elements.reshape([shape[i] for i in order]).transpose(np.argsort(order))


def seen(elements: Matrix, shape: Sequence[int], batch: Sequence[int], turned: bool) -> Matrix:
    """The vectors or column-major matrices that a kernel finds in memory, one after another; a
    number is the same for all."""
    own = shape[len(batch) :]
    count = int(np.prod(batch))
    if not shape:
        return np.broadcast_to(elements, (count,))
    if len(own) < 2:
        return elements.reshape(count, *own)
    rows, columns = own[::-1] if turned else own
    return elements.reshape(count, columns, rows).swapaxes(1, 2)


def played(
    target: str,
    operands: Sequence[Matrix],
    outs: Sequence[ShapedArray],
    matrices: int,
    row_major: bool,
    attributes: dict[str, Any],
) -> tuple[Matrix, ...]:
    """The results of a kernel."""
    calls.append(target)
    columns = None if row_major else matrices
    layouts = [kernels._layout(out.ndim, columns) for out in outs]
    given = [memory(x, kernels._layout(x.ndim, columns)) for x in operands]
    if target in ELEMENTWISE:
        results: list[Any] = list(KERNELS[target](*given))
    else:
        batch = tuple(operands[0].shape[: matrices - 2])
        turned = row_major or bool(attributes.get("transposed"))
        views = [seen(g, x.shape, batch, turned) for g, x in zip(given, operands, strict=True)]
        if target == "cu_lu_pivots_to_permutation":
            attributes = {"size": outs[0].shape[-1]}
        each = [
            KERNELS[target](*[v[i] for v in views], **attributes)
            for i in range(int(np.prod(batch)))
        ]
        results = []
        for number, out in enumerate(outs):
            found = [np.asarray(e[number], out.dtype) for e in each]
            lead = out.shape[: len(batch)] == batch and out.ndim >= len(batch)
            own = out.shape[len(batch) :] if lead else ()
            shape = own[::-1] if turned and len(own) == 2 else own
            if not lead:  # one number that stands for vectors which are not computed
                results.append(found[0].reshape(-1))
                continue
            assert all(f.shape == tuple(shape) for f in found), (target, number, shape)
            results.append(np.concatenate([f.T.ravel() for f in found]))
    return tuple(
        np.asarray(value(r, out.shape, layout), out.dtype, order="C")
        for r, out, layout in zip(results, outs, layouts, strict=True)
    )


def play(
    context: Any,
    target: str,
    operands: Sequence[Any],
    outs: Sequence[Any],
    *,
    matrices: int,
    aliases: Any = (),
    row_major: bool = False,
    batch_dims: int | None = None,
    **attributes: Any,
) -> list[Any]:
    """In place of `kernel_call`."""
    batch = matrices - 2 if batch_dims is None else batch_dims
    shapes = [*(tuple(v.type.shape) for v in operands), *(out.shape for out in outs)]
    assert len({shape[:batch] for shape in shapes}) == 1  # several devices may share the calls
    for operand, result in dict(aliases).items():
        assert tuple(operands[operand].type.shape) == outs[result].shape
    avals = [
        ShapedArray(tuple(v.type.shape), np.dtype(_dtype_of(str(v.type.element_type))))
        for v in operands
    ]
    outs = list(outs)

    def on_host(*arrays: Any) -> tuple[Matrix, ...]:
        return played(
            target, [np.asarray(a) for a in arrays], outs, matrices, row_major, attributes
        )

    types = [dt.ShapeDtypeStruct(out.shape, out.dtype) for out in outs]
    return context.lower_function(  # type: ignore[no-any-return]
        lambda *args: dt.pure_callback(on_host, tuple(types), *args), avals
    )(*operands)


def _dtype_of(element: str) -> str:
    names = {
        "f32": "float32",
        "f64": "float64",
        "complex<f32>": "complex64",
        "complex<f64>": "complex128",
        "i32": "int32",
        "ui32": "uint32",
    }
    return names[element]


@pytest.fixture(autouse=True)
def rules_for_gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have programs for the CPU lowered by the rules for GPUs."""
    for module in (eigen, linalg, random, tridiagonal):
        monkeypatch.setattr(module, "kernel_call", play)
    for module in (eigen, linalg):
        monkeypatch.setattr(module, "prepare_lapack", lambda: None)
    usual = manager().lowerings("cpu")
    others = {name: rule for name, rule in usual.items() if name not in primitives_of_linalg()}
    table = {**others, **LOWERINGS}
    monkeypatch.setattr(type(manager()), "lowerings", lambda self, platform: table)
    calls.clear()
    yield
    dt.clear_caches()


def primitives_of_linalg() -> set[str]:
    return {
        name for name, found in primitives().items() if ".ops.linalg." in type(found).__module__
    }


def matrices(shape: Sequence[int], dtype: str, seed: int = 0) -> Matrix:
    generator = np.random.default_rng(seed)
    a = generator.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * generator.normal(size=shape)
    return a.astype(dtype)


def run(function: Callable[..., Any], *args: Matrix) -> list[Matrix]:
    with dt.enable_x64(True):
        found = dt.jit(lambda *xs: function(*xs))(*args)
        return [np.asarray(leaf) for leaf in dt.tree.leaves(found)]


def close(found: Matrix, expected: Matrix, factor: float = 1) -> None:
    tolerance = TOLERANCES[np.result_type(found.dtype, np.float32).name] * factor
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def adjoint(a: Matrix) -> Matrix:
    return a.swapaxes(-1, -2).conj()


# ------------------------------------------------------------------------------------------ tests

SHAPES = [(5, 3), (3, 5), (4, 4), (2, 5, 3), (2, 2, 3, 4)]
SQUARE = [(1, 1), (4, 4), (2, 4, 4), (2, 1, 5, 5)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_cholesky(shape: tuple[int, ...], dtype: str) -> None:
    a = matrices(shape, dtype)
    positive = a @ adjoint(a) + np.eye(shape[-1], dtype=dtype)
    lower = np.tril(positive) + 7 * np.triu(np.ones(shape[-2:]), 1).astype(dtype)  # not read
    (root,) = run(lambda x: lax.linalg.cholesky(x, symmetrize_input=False), lower)
    close(root, np.linalg.cholesky(positive))
    assert calls == ["cusolver_potrf_ffi"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_root_of_what_is_not_positive_is_nan(dtype: str) -> None:
    a = np.stack([np.eye(3), -np.eye(3)]).astype(dtype)
    (root,) = run(lambda x: lax.linalg.cholesky(x), a)
    np.testing.assert_array_equal(root[0], np.eye(3))
    assert np.isnan(root[1][np.tril_indices(3)]).all()
    assert not root[1][np.triu_indices(3, 1)].any()


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((1, 1), "float32", ["cu_cholesky_update_ffi"]),
        ((4, 4), "float32", ["cu_cholesky_update_ffi"]),
        ((5, 5), "float64", ["cu_cholesky_update_ffi"]),
        ((2, 4, 4), "float64", []),
        ((4, 4), "float16", []),
    ],
)
def test_updated_roots(shape: tuple[int, ...], dtype: str, expected: list[str]) -> None:
    r = np.abs(matrices(shape, dtype)) + np.eye(shape[-1], dtype=dtype)  # one triangle is not read
    w = matrices(shape[:-1], dtype)
    (found,) = run(lax.linalg.cholesky_update, r, w)
    factor = np.triu(primitives()["cholesky_update"].reference(r, w))  # but for rounding
    np.testing.assert_allclose(found, factor, rtol=5e-3 if dtype == "float16" else 2e-4)
    assert not np.tril(found, -1).any()
    assert calls == expected


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((4, 3), "float32", ["cusolver_syrk_ffi"]),
        ((3, 5), "float64", ["cusolver_syrk_ffi"]),
        ((2, 2, 4, 3), "float64", ["cusolver_syrk_ffi"]),
        ((4, 3), "float16", []),
    ],
)
@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (2.5, 0), (-1, 3)])
def test_products_with_the_own_transpose(
    shape: tuple[int, ...], dtype: str, expected: list[str], alpha: float, beta: float
) -> None:
    a, c = matrices(shape, dtype), matrices((*shape[:-1], shape[-2]), dtype, 1)
    if not beta:
        c = np.full_like(c, np.nan)  # not read
    (found,) = run(lambda *xs: lax.linalg.symmetric_product(*xs, alpha=alpha, beta=beta), a, c)
    want = primitives()["symmetric_product"].reference(a, c, alpha=alpha, beta=beta)
    tolerance = 1e-2 if dtype == "float16" else TOLERANCES[dtype]
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)
    assert calls == expected


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape: tuple[int, ...], dtype: str) -> None:
    a = matrices(shape, dtype)
    packed, pivots, order = run(lax.linalg.lu, a)
    size = min(shape[-2:])
    left = np.tril(packed[..., :size], -1) + np.eye(shape[-2], size, dtype=dtype)
    close(left @ np.triu(packed[..., :size, :]), np.take_along_axis(a, order[..., None], -2))
    expected = primitives()["lu_pivots_to_permutation"].reference(
        pivots, permutation_size=shape[-2]
    )
    np.testing.assert_array_equal(order, expected)
    assert pivots.min() >= 0
    assert pivots.max() < shape[-2]
    assert calls == ["cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"]


def test_a_singular_matrix_has_factors() -> None:
    packed, _, _ = run(lax.linalg.lu, np.ones((3, 3)))
    np.testing.assert_array_equal(packed, [[1, 1, 1], [1, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pivoting", [False, True])
def test_qr(shape: tuple[int, ...], dtype: str, pivoting: bool) -> None:
    a = matrices(shape, dtype)
    for full in (False, True):
        q, r, *order = run(
            lambda x, full=full: lax.linalg.qr(x, full_matrices=full, pivoting=pivoting), a
        )
        close(
            adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *q.shape[-1:] * 2))
        )
        close(q @ r, np.take_along_axis(a, order[0][..., None, :], -1) if pivoting else a)
        assert calls[:2] == [
            "cuhybrid_geqp3" if pivoting else "cusolver_geqrf_ffi",
            "cusolver_orgqr_ffi",
        ]
        calls.clear()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_products_with_reflections(dtype: str, left: bool, transpose: bool) -> None:
    a = matrices((2, 5, 3), dtype)
    packed, taus = run(lambda x: primitives()["geqrf"].bind(x), a)
    c = matrices((2, 5, 4) if left else (2, 4, 5), dtype, 1)
    (found,) = run(
        lambda *xs: lax.linalg.ormqr(*xs, left=left, transpose=transpose), packed, taus, c
    )
    expected = primitives()["ormqr"].reference(packed, taus, c, left=left, transpose=transpose)
    close(found, expected)
    assert calls[-1] == "cusolver_ormqr_ffi"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("lower", [False, True])
def test_eigh(shape: tuple[int, ...], dtype: str, lower: bool) -> None:
    a = matrices(shape, dtype)
    a = a + adjoint(a)
    other = np.triu if lower else np.tril
    given = a + other(np.full(shape, np.nan, a.dtype), 1 if lower else -1)
    vectors, values = run(
        lambda x: lax.linalg.eigh(x, lower=lower, symmetrize_input=False),
        np.where(np.isnan(other(np.full(shape[-2:], np.nan), 1 if lower else -1)), given, a),
    )
    close(a @ vectors, vectors * values[..., None, :], 10)
    close(values, np.linalg.eigvalsh(a), 10)
    assert calls == ["cusolver_syevd_ffi"]


def test_a_part_of_the_eigenvalues() -> None:
    a = matrices((2, 5, 5), "complex128")
    a = a + adjoint(a)
    vectors, values = run(lambda x: lax.linalg.eigh(x, subset_by_index=(1, 3)), a)
    close(values, np.linalg.eigvalsh(a)[:, 1:3], 10)
    close(a @ vectors, vectors * values[..., None, :], 10)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.linalg.eigh(x, symmetrize_input=False),
        lambda x: lax.linalg.svd(x),
        lambda x: lax.linalg.eig(x),
        lambda x: lax.linalg.eig(x, compute_left_eigenvectors=False),
    ],
)
@pytest.mark.parametrize("bad", [BAD, np.nan, np.inf])
def test_what_fails_is_nan(function: Callable[..., Any], bad: float) -> None:
    a = np.stack([np.eye(3) * [1, 2, 3]] * 3)
    a[1, 0, 0] = bad
    for found in run(function, a):
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2]]).all()


ALGORITHMS = [None, "QR", "JACOBI", "POLAR"]


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("shape", [(2, 5, 3), (3, 5), (2, 33, 40), (40, 2)])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_svd(shape: tuple[int, ...], dtype: str, algorithm: str | None) -> None:
    a = matrices(shape, dtype)
    chosen = None if algorithm is None else lax.linalg.SvdAlgorithm[algorithm]
    for full in (False, True):
        u, s, vh = run(
            lambda x, full=full: lax.linalg.svd(x, full_matrices=full, algorithm=chosen), a
        )
        size = min(shape[-2:])
        close((u[..., :size] * s[..., None, :]) @ vh[..., :size, :], a, 10)
        assert u.shape[-1] == (shape[-2] if full else size)
        assert vh.shape[-2] == (shape[-1] if full else size)
        close(s, np.linalg.svd(a)[1], 10)
    (alone,) = run(lambda x: lax.linalg.svd(x, compute_uv=False, algorithm=chosen), a)
    close(alone, s, 10)
    expected = {"QR": "gesvd", "POLAR": "gesvdp"}.get(algorithm or "", "gesvdj")
    assert set(calls) == {f"cusolver_{expected}_ffi"}


def test_large_matrices_are_not_rotated() -> None:
    a = matrices((1025, 2), "float32")
    u, s, vh = run(lambda x: lax.linalg.svd(x, full_matrices=False), a)
    close(u * s @ vh, a, 10)
    assert calls == ["cusolver_gesvd_ffi"]


def test_a_part_of_the_singular_values() -> None:
    a = matrices((5, 4), "complex128")
    found = run(lambda x: lax.linalg.svd(x, full_matrices=False, subset_by_index=(1, 3)), a)
    u, s, vh = run(lambda x: lax.linalg.svd(x, full_matrices=False), a)
    for part, whole in zip(found, (u[:, 1:3], s[1:3], vh[1:3]), strict=True):
        np.testing.assert_array_equal(part, whole)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "scale"), [((1, 1), 1.0), ((4, 4), 1e20), ((2, 4, 4), 1e-20), ((2, 1, 5, 5), 1.0)]
)
@pytest.mark.parametrize("left", [False, True])
def test_eig(shape: tuple[int, ...], dtype: str, scale: float, left: bool) -> None:
    a = matrices(shape, dtype, 3)
    values, *vectors = run(
        lambda x: lax.linalg.eig(x, compute_left_eigenvectors=left), (a * scale).astype(dtype)
    )
    values = values / values.dtype.type(scale)
    right = vectors[-1]
    close(a @ right, right * values[..., None, :], 20)
    close(np.linalg.norm(right, axis=-2), np.ones(right.shape[:-2] + right.shape[-1:]), 10)
    if left:
        close(adjoint(vectors[0]) @ a, values[..., None] * adjoint(vectors[0]), 20)
    real = np.dtype(dtype).kind == "f"
    by_host = "cuhybrid_eig_real" if real else "cuhybrid_eig_comp"
    assert calls == [by_host if left else "cusolver_geev_ffi"]


def test_conjugate_eigenvalues_side_by_side() -> None:
    blocks = [[[0, -1], [1, 0]], [[2]], [[1, -3], [3, 1]], [[5, -1], [1, 5]]]
    a = matrices((7, 7), "float64")
    a = a @ scipy.linalg.block_diag(*blocks) @ np.linalg.inv(a)
    values, vectors = run(lambda x: lax.linalg.eig(x, compute_left_eigenvectors=False), a)
    close(a @ vectors, vectors * values[None], 1000)
    assert sum(values.imag == 0) == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 2), (5, 5), (2, 4, 4)])
@pytest.mark.parametrize("lower", [False, True])
def test_tridiagonal(shape: tuple[int, ...], dtype: str, lower: bool) -> None:
    a = matrices(shape, dtype)
    a = a + adjoint(a)
    found = run(lambda x: lax.linalg.tridiagonal(x, lower=lower), a)
    with dt.enable_x64(True):
        expected = primitives()["tridiagonal"].reference(a, lower=lower)
    other = np.triu(np.ones(shape[-2:]), 1) if lower else np.tril(np.ones(shape[-2:]), -1)
    np.testing.assert_array_equal(found[0] * other, a * other)
    close(np.where(other, 0, found[0]), np.where(other, 0, expected[0]), 10)
    for part, own in zip(found[1:], expected[1:], strict=True):
        close(part, own, 10)
    assert calls == ["cusolver_sytrd_ffi"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "perturbed", "expected"),
    [
        ((5, 2), False, ["cusparse_gtsv2_ffi"]),
        ((2, 2), False, []),
        ((3, 5, 2), False, []),
        ((3, 5, 2), True, ["cu_tridiagonal_solve_perturbed"]),
        ((5, 1), True, ["cu_tridiagonal_solve_perturbed"]),
        ((2, 3), True, ["cu_tridiagonal_solve_perturbed"]),
    ],
)
def test_tridiagonal_solve(
    shape: tuple[int, ...], dtype: str, perturbed: bool, expected: list[str]
) -> None:
    diagonals = [matrices(shape[:-1], dtype, seed) for seed in range(3)]
    b = matrices(shape, dtype, 4)
    (found,) = run(
        lambda *xs: lax.linalg.tridiagonal_solve(*xs, perturb_singular=perturbed), *diagonals, b
    )
    close(found, primitives()["tridiagonal_solve"].reference(*diagonals, b), 50)
    assert calls == expected


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_threefry(shape: tuple[int, ...]) -> None:
    words = np.random.default_rng(0).integers(0, 2**32, (4, *shape), np.uint32)
    bind = threefry2x32_p.bind
    expected = [np.asarray(x) for x in threefry_reference.threefry2x32(*words)]
    for asked in (False, True):
        with threefry_gpu_kernel_lowering(asked):
            found = run(lambda *xs: bind(*xs), *words)
        for one, own in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, own)
        assert calls == ["cu_threefry2x32_ffi"] * asked


def test_scalar_words_of_a_key() -> None:
    with threefry_gpu_kernel_lowering(True):
        (found,) = run(
            lambda k: dt.random.bits(dt.random.wrap_key_data(k), (5,)), np.uint32([1, 2])
        )
    (expected,) = run(lambda k: dt.random.bits(dt.random.wrap_key_data(k), (5,)), np.uint32([1, 2]))
    np.testing.assert_array_equal(found, expected)


EMPTY: list[tuple[str, Callable[..., Any], list[tuple[int, ...]]]] = [
    ("cholesky", lax.linalg.cholesky, [(0, 0), (0, 3, 3), (2, 0, 0)]),
    ("cholesky_update", lambda r: lax.linalg.cholesky_update(r, r[..., 0, :]), [(0, 3, 3)]),
    (
        "symmetric_product",
        lambda a: lax.linalg.symmetric_product(a, np.zeros((*a.shape[:-1], a.shape[-2]), a.dtype)),
        [(0, 3), (3, 0), (0, 3, 3)],
    ),
    ("lu", lax.linalg.lu, [(0, 3), (3, 0), (0, 3, 3)]),
    ("qr", lax.linalg.qr, [(0, 3), (3, 0), (0, 3, 3)]),
    ("eigh", lax.linalg.eigh, [(0, 0), (0, 3, 3), (2, 0, 0)]),
    ("svd", lax.linalg.svd, [(0, 3), (3, 0), (0, 3, 3)]),
    ("eig", lax.linalg.eig, [(0, 0), (0, 3, 3), (2, 0, 0)]),
    ("tridiagonal", lax.linalg.tridiagonal, [(0, 3, 3), (1, 1)]),
]


@pytest.mark.parametrize(("name", "function", "shapes"), EMPTY)
def test_nothing_is_called_for_nothing(
    name: str, function: Callable[..., Any], shapes: list[tuple[int, ...]]
) -> None:
    for shape in shapes:
        run(function, matrices(shape, "float32"))
    assert calls == [], name


def test_gradients_go_through() -> None:
    a = matrices((3, 3), "float64")
    positive = a @ a.T + np.eye(3)

    def total(x: Any) -> Any:
        return lax.linalg.cholesky(x).sum() + lax.linalg.svd(x)[1].sum()

    with dt.enable_x64(True):
        found = np.asarray(dt.jit(dt.grad(total))(positive))
    assert np.isfinite(found).all()
    assert set(calls) == {"cusolver_potrf_ffi", "cusolver_gesvdj_ffi"}


@pytest.mark.parametrize("outside", [0.0, 1.5, np.nan, np.inf])
def test_what_lies_outside_of_a_tridiagonal_matrix_is_not_read(outside: float) -> None:
    dl, d, du, b = (matrices((5,), "float32", seed) for seed in range(4))
    expected = np.linalg.solve(np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1), b)
    dl[0] = du[-1] = outside
    (found,) = run(lax.linalg.tridiagonal_solve, dl, d, du, b[:, None])
    close(found[:, 0], expected, 100)
    assert calls == ["cusparse_gtsv2_ffi"]


INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def integers(shape: Sequence[int], dtype: str, seed: int) -> Matrix:
    """Integers of all sizes, so that sums drop upper bits."""
    limits = np.iinfo(dtype)
    generator = np.random.default_rng(seed)
    return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_convolutions_of_integers(dtype: str) -> None:
    x, kernel = integers((2, 3, 7), dtype, 0), integers((4, 3, 2), dtype, 1)
    (found,) = run(lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID"), x, kernel)
    with np.errstate(over="ignore"):
        windows = np.stack([x[:, :, i : i + 2] for i in range(6)], axis=2)
        products = windows[:, None].astype(dtype) * kernel[None, :, :, None]
        expected = products.sum((2, 4), dtype=dtype)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == dtype


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 16, 17, 33])
@pytest.mark.parametrize(
    ("left", "right"), [("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8")]
)
def test_products_of_small_integers(count: int, left: str, right: str) -> None:
    x, y = integers((2, 3, count), left, 0), integers((2, count, 2), right, 1)
    numbers = (((2,), (1,)), ((0,), (0,)))

    def product(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, numbers, preferred_element_type=np.int32)

    (found,) = run(product, x, y)
    np.testing.assert_array_equal(found, x.astype(np.int32) @ y.astype(np.int32))
