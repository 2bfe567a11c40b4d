"""Linear algebra against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(2, 4, 3)).astype(np.float32)
COMPLEX = (REAL + 1j * RNG.normal(size=REAL.shape)).astype(np.complex64)
SQUARE = RNG.normal(size=(2, 3, 3)).astype(np.float32)
DTYPES = ("bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64")


def adjoint(x: Any) -> Any:
    return x.swapaxes(-1, -2).conj()


POSITIVE = COMPLEX[:, :3] @ adjoint(COMPLEX[:, :3]) + np.eye(3, dtype=np.float32)
# No values of these differ by nearly nothing: derivatives of vectors are large there.
HERMITIAN = (SQUARE + adjoint(SQUARE) + np.diag([0, 5, -9])).astype(np.float32)


def wide(x: Any) -> Any:
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def close(actual: Any, expected: Any, tolerance: float = 2e-5) -> None:
    """Equal up to a part of the largest element."""
    assert actual.shape == np.shape(expected)
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(actual.dtype.name, tolerance)
    finite = np.abs(expected)[np.isfinite(expected)]
    scale = max(1.0, float(finite.max(initial=0)))
    np.testing.assert_allclose(wide(actual), wide(expected), tolerance, tolerance * scale)


def rebuilt(name: str, result: Any) -> Any:
    """The matrices from their factors."""
    if name == "cholesky":
        return result @ adjoint(result)
    if name == "qr":
        return result.Q @ result.R
    if name == "svd":
        size = result.S.shape[-1]
        return (result.U[..., :size] * result.S[..., None, :]) @ result.Vh[..., :size, :]
    w, v = result
    return (v * w[..., None, :]) @ np.linalg.inv(v)


FACTORS: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("cholesky", POSITIVE, {}),
    ("cholesky", POSITIVE.real, {"symmetrize_input": False}),
    ("qr", REAL, {}),
    ("qr", COMPLEX, {"mode": "complete"}),
    ("qr", adjoint(COMPLEX), {}),
    ("eigh", POSITIVE, {}),
    ("eigh", HERMITIAN, {"UPLO": "U", "symmetrize_input": False}),
    ("eig", SQUARE, {}),
    ("eig", COMPLEX[:, :3], {}),
    ("svd", REAL, {}),
    ("svd", adjoint(COMPLEX), {}),
    ("svd", COMPLEX, {"full_matrices": False}),
    ("svd", HERMITIAN, {"hermitian": True}),
)


@pytest.mark.parametrize(("name", "x", "options"), FACTORS, ids=lambda v: str(v)[:30])
def test_factors(name: str, x: Any, options: Any) -> None:
    function = getattr(jnp.linalg, name)
    result = function(x, **options)
    found = dt.tree.map(np.asarray, result)
    close(jnp.asarray(rebuilt(name, found)), x, 5e-5)
    if name != "cholesky":
        numpy_options = {} if "UPLO" in options else options
        expected = getattr(np.linalg, name)(x, **numpy_options)
        assert type(result).__name__ == type(expected).__name__
        assert result._fields == expected._fields
        assert [v.shape for v in result] == [v.shape for v in expected]
    for v in (found.Q if name == "qr" else None, *(found[::2] if name == "svd" else ())):
        if v is not None and v.shape[-1] <= v.shape[-2]:
            identity = np.broadcast_to(np.eye(v.shape[-1]), (*v.shape[:-2], *[v.shape[-1]] * 2))
            close(jnp.asarray(adjoint(v) @ v), identity)
    mapped = dt.eval_shape(dt.vmap(lambda v: function(v, **options)), x)
    assert [(v.shape, v.dtype) for v in dt.tree.leaves(mapped)] == [
        (v.shape, v.dtype) for v in dt.tree.leaves(result)
    ]


# Functions whose results are numbers that do not depend on a choice.
Case = tuple[Callable[[Any], Any], Callable[[Any], Any], Any]
VALUES: dict[str, Case] = {
    "cholesky": (jnp.linalg.cholesky, np.linalg.cholesky, POSITIVE),
    "cholesky upper": (
        lambda x: jnp.linalg.cholesky(x, upper=True),
        lambda x: adjoint(np.linalg.cholesky(x)),
        POSITIVE,
    ),
    "qr r": (lambda x: jnp.linalg.qr(x, "r"), lambda x: np.linalg.qr(x, "r"), COMPLEX),
    "qr raw": (
        lambda x: jnp.linalg.qr(x, "raw")[0],
        lambda x: np.linalg.qr(x, "raw")[0],
        COMPLEX,
    ),
    "eigvalsh": (jnp.linalg.eigvalsh, np.linalg.eigvalsh, POSITIVE),
    "eigvals": (
        lambda x: jnp.sort(jnp.linalg.eigvals(x)),
        lambda x: np.sort(np.linalg.eigvals(x)),
        SQUARE,
    ),
    "svdvals": (jnp.linalg.svdvals, lambda x: np.linalg.svd(x, compute_uv=False), COMPLEX),
    "svd hermitian": (
        lambda x: jnp.linalg.svd(x, compute_uv=False, hermitian=True),
        lambda x: np.linalg.svd(x, compute_uv=False, hermitian=True),
        HERMITIAN,
    ),
    "det 1": (jnp.linalg.det, np.linalg.det, COMPLEX[:, :1, :1]),
    "det 2": (jnp.linalg.det, np.linalg.det, COMPLEX[:, :2, :2]),
    "det 3": (jnp.linalg.det, np.linalg.det, COMPLEX[:, :3]),
    "det 5": (
        jnp.linalg.det,
        np.linalg.det,
        (COMPLEX @ adjoint(COMPLEX[:1]))[:, [2, 1, 0, 3]] + 2 * np.eye(4, dtype=np.float32),
    ),
    "slogdet": (
        lambda x: jnp.stack(jnp.linalg.slogdet(x)),
        lambda x: np.stack(np.linalg.slogdet(x)),
        COMPLEX[:, :3],
    ),
    "slogdet qr": (
        lambda x: jnp.stack(jnp.linalg.slogdet(x, method="qr")),
        lambda x: np.stack(np.linalg.slogdet(x)),
        COMPLEX[:, :3],
    ),
    "inv": (jnp.linalg.inv, np.linalg.inv, COMPLEX[:, :3]),
    "pinv": (jnp.linalg.pinv, np.linalg.pinv, COMPLEX),
    "pinv wide": (jnp.linalg.pinv, np.linalg.pinv, adjoint(COMPLEX)),
    "pinv hermitian": (
        lambda x: jnp.linalg.pinv(x, hermitian=True),
        lambda x: np.linalg.pinv(x, hermitian=True),
        HERMITIAN,
    ),
    "matrix_power": (
        lambda x: jnp.linalg.matrix_power(x, 5),
        lambda x: np.linalg.matrix_power(x, 5),
        COMPLEX[:, :3],
    ),
    "inverse power": (
        lambda x: jnp.linalg.matrix_power(x, -2),
        lambda x: np.linalg.matrix_power(x, -2),
        COMPLEX[:, :3],
    ),
    "matrix_norm 2": (
        lambda x: jnp.linalg.matrix_norm(x, ord=2),
        lambda x: np.linalg.norm(x, 2, axis=(-2, -1)),
        COMPLEX,
    ),
    "norm nuc": (
        lambda x: jnp.linalg.norm(x, "nuc", axis=(0, 2), keepdims=True),
        lambda x: np.linalg.norm(x, "nuc", axis=(0, 2), keepdims=True),
        COMPLEX,
    ),
    "cond": (jnp.linalg.cond, np.linalg.cond, COMPLEX),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    function, reference, x = VALUES[name]
    expected = reference(wide(x))
    result = function(x)
    assert result.dtype in (np.float32, np.complex64)
    assert not result.weak_type
    close(result, expected)
    if name in ("det 5", "slogdet qr", "inv", "pinv", "svd hermitian", "cond"):
        over = dt.vmap(function, out_axes=1 if name.startswith("slogdet") else 0)
        close(dt.jit(over)(x), expected)


# How results are made of a matrix, and their dtypes: as floats that the matrix becomes ("out"), as
# the parts of these ("real"), or another.
OUT: dict[str, tuple[Callable[[Any], Any], str]] = {
    "cholesky": (jnp.linalg.cholesky, "out"),
    "qr": (lambda x: jnp.linalg.qr(x).R, "out"),
    "qr raw": (lambda x: jnp.linalg.qr(x, "raw")[1], "out"),
    "eig": (lambda x: jnp.linalg.eig(x).eigenvectors, "complex64"),
    "eigh": (lambda x: jnp.linalg.eigh(x).eigenvectors, "out"),
    "eigvals": (jnp.linalg.eigvals, "complex64"),
    "eigvalsh": (jnp.linalg.eigvalsh, "real"),
    "svd": (lambda x: jnp.linalg.svd(x).Vh, "out"),
    "svdvals": (jnp.linalg.svdvals, "real"),
    "det": (jnp.linalg.det, "out"),
    "sign": (lambda x: jnp.linalg.slogdet(x)[0], "out"),
    "logabsdet": (lambda x: jnp.linalg.slogdet(x)[1], "real"),
    "inv": (jnp.linalg.inv, "out"),
    "pinv": (jnp.linalg.pinv, "out"),
    "solve": (lambda x: jnp.linalg.solve(x, x[0]), "out"),
    "lstsq": (lambda x: jnp.linalg.lstsq(x, x[0])[0], "out"),
    "lstsq residuals": (lambda x: jnp.linalg.lstsq(x, x[0])[1], "real"),
    "lstsq values": (lambda x: jnp.linalg.lstsq(x, x[0])[3], "real"),
    "norm": (lambda x: jnp.linalg.norm(x, 2), "real"),
    "cond": (lambda x: jnp.linalg.cond(x, 1), "real"),
    "tensorinv": (lambda x: jnp.linalg.tensorinv(x, 1), "out"),
    "tensorsolve": (lambda x: jnp.linalg.tensorsolve(x, x[0]), "out"),
    "power -1": (lambda x: jnp.linalg.matrix_power(x, -1), "out"),
    "power 2": (lambda x: jnp.linalg.matrix_power(x, 2), "same"),
    "power 0": (lambda x: jnp.linalg.matrix_power(x, 0), "same"),
    "multi_dot": (lambda x: jnp.linalg.multi_dot([x, x, x]), "same"),
    "rank": (jnp.linalg.matrix_rank, "int32"),
}


def in_dtype(values: Any, dtype: str) -> Any:
    return np.array(values).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_results(dtype: str) -> None:
    x = in_dtype([[1, 0], [1, 1]], dtype)
    out = dtype if dtype in ("float16", "bfloat16", "complex64") else "float32"
    real = "float32" if dtype == "complex64" else out
    for name, (function, kind) in OUT.items():
        wanted = {"out": out, "real": real, "same": dtype}.get(kind, kind)
        found = dt.eval_shape(function, x)
        assert found.dtype.name == wanted, name
        assert not found.weak_type, name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_numbers(dtype: str) -> None:
    x = in_dtype([[2, 1], [1, 3]], dtype)
    y = wide(x)
    close(jnp.linalg.inv(x), np.linalg.inv(y))
    close(jnp.linalg.det(x), np.linalg.det(y))
    close(jnp.linalg.eigvalsh(x), np.linalg.eigvalsh(y))
    close(jnp.linalg.norm(x, 2), np.linalg.norm(y, 2))
    np.testing.assert_array_equal(jnp.linalg.matrix_power(x, 3), np.linalg.matrix_power(y, 3))


def test_wide_dtypes() -> None:
    with dt.enable_x64(True):
        x = REAL[0, :3].astype(np.float64)
        assert jnp.linalg.inv(np.arange(1, 3).reshape(2, 1, 1)).dtype == np.float64
        for name in ("inv", "det", "eigvals", "pinv", "svdvals"):
            result = getattr(jnp.linalg, name)(x)
            assert result.dtype == ("complex128" if name == "eigvals" else "float64")
        np.testing.assert_allclose(jnp.linalg.inv(x), np.linalg.inv(x), rtol=1e-12)


EMPTY = (
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "pinv",
    "qr",
    "slogdet",
    "svd",
)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3)], ids=str)
@pytest.mark.parametrize("name", EMPTY)
def test_no_elements(name: str, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    results, expected = (
        found if isinstance(found, tuple) else (found,)
        for found in (getattr(module, name)(x) for module in (jnp.linalg, np.linalg))
    )
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_empty_results() -> None:
    none = np.zeros((0, 3), np.float32)
    assert jnp.linalg.pinv(none).shape == (3, 0)
    assert jnp.linalg.qr(none).Q.shape == (0, 0)
    assert jnp.linalg.svd(none).Vh.shape == (3, 3)
    assert jnp.linalg.matrix_rank(none).tolist() == 0
    assert jnp.linalg.matrix_rank(none.T, tol=0.5).tolist() == 0
    assert jnp.linalg.solve(none[:, :0], none).shape == (0, 3)
    assert jnp.linalg.solve(np.eye(3), np.zeros((3, 0))).shape == (3, 0)
    for ord in (1, 2, "nuc", np.inf):
        assert float(jnp.linalg.norm(none, ord)) == 0
    assert float(jnp.linalg.norm(none[:, 0], np.inf)) == 0
    x, residuals, rank, s = jnp.linalg.lstsq(none, np.zeros(0, np.float32))
    assert (x.tolist(), residuals.tolist(), int(rank), s.tolist()) == ([0, 0, 0], [0], 0, [])
    x, residuals, rank, s = jnp.linalg.lstsq(none.T, np.ones((3, 2), np.float32))
    assert (x.shape, residuals.tolist(), int(rank), s.shape) == ((0, 2), [3, 3], 0, (0,))


SHAPES_TO_SOLVE = (
    ((3, 3), (3,)),
    ((2, 3, 3), (3,)),
    ((2, 3, 3), (3, 4)),
    ((3, 3), (5, 3, 2)),
    ((1, 3, 3), (2, 2, 3, 2)),
    ((2, 3, 3), (5, 1, 3, 2)),
    ((1, 1, 3, 3), (3, 2)),
)


@pytest.mark.parametrize(("left", "right"), SHAPES_TO_SOLVE, ids=str)
def test_solve(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=left).astype(np.float32) + 2 * np.eye(3, dtype=np.float32)
    b = rng.normal(size=right).astype(np.float32)
    if len(right) == 1 or len(left) > 3:
        b = b + 1j * b[::-1]
    close(jnp.linalg.solve(a, b), np.linalg.solve(wide(a), wide(b)))
    mixed = jnp.linalg.solve(np.eye(3, dtype=np.int8), np.array([300, 1, 2]))
    close(mixed, [300, 1, 2])


@pytest.mark.parametrize(
    ("shape", "columns"), [((5, 3), ()), ((3, 5), (2,)), ((4, 4), (2,)), ((5, 3), (2,))], ids=str
)
def test_lstsq(shape: tuple[int, int], columns: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=shape).astype(np.float32)
    b = rng.normal(size=(shape[0], *columns)).astype(np.float32)
    x, residuals, rank, s = jnp.linalg.lstsq(a, b, numpy_resid=True)
    expected = np.linalg.lstsq(a, b, rcond=None)
    for one, other in zip((x, residuals, rank, s), expected, strict=True):
        close(one, other, 1e-4)
    sums = np.sum((b - a @ expected[0]) ** 2, axis=0).reshape(columns or (1,))
    close(jnp.linalg.lstsq(a, b)[1], sums, 1e-4)


@pytest.mark.parametrize("count", [2, 10])
def test_lstsq_keeps_nan_in_its_column(count: int) -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(size=(90, 40)).astype(np.float32)
    b = rng.normal(size=(90, count)).astype(np.float32)
    expected = np.linalg.lstsq(a, b, rcond=None)[0]
    for spoilt in (0, count - 1):
        with_nan = b.copy()
        with_nan[3, spoilt] = np.nan
        x = np.asarray(jnp.linalg.lstsq(a, with_nan)[0])
        assert np.isnan(x[:, spoilt]).all()
        close(np.delete(x, spoilt, 1), np.delete(expected, spoilt, 1), 1e-4)


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_lstsq_near_singular_matrices(scale: float) -> None:
    """Neither squares of small or large numbers nor one small singular value hide the rank."""
    rng, size = np.random.default_rng(3), 5
    vectors = np.linalg.qr(rng.normal(size=(8, size)))[0]
    others = np.linalg.qr(rng.normal(size=(size, size)))[0]
    b = rng.normal(size=8).astype(np.float32)
    for least in (1.0, 1e-2, 1e-4, 1e-9, 0.0):
        values = np.array([1, 1, 1, 1, least]) * scale
        a = ((vectors * values) @ others).astype(np.float32)
        x, _, rank, s = jnp.linalg.lstsq(a, b, 1e-3)
        expected, _, count, _ = np.linalg.lstsq(a.astype(float), b, 1e-3)
        assert rank == count
        assert dt.vmap(lambda a: jnp.linalg.lstsq(a, b, 1e-3)[2])(np.stack([a, a]))[1] == count
        close(np.asarray(x, float) * scale, expected * scale, 1e-3)
        close(s / scale, values / scale, 1e-5)
    both = np.stack([a, np.eye(8, size, dtype=np.float32)])
    found = dt.vmap(lambda a: jnp.linalg.lstsq(a, b)[0])(both)
    close(found[0], jnp.linalg.lstsq(a, b)[0], 1e-4)
    close(found[1], b[:size])


@pytest.mark.parametrize("rows", [2, 5])
def test_least_squares_cut_off(rows: int) -> None:
    a = (np.eye(rows, 2) * [1.0, 1e-3]).astype(np.float32)
    b = np.ones(rows, np.float32)
    for rcond, rank, x in ((1e-2, 1, [1, 0]), (-1, 2, [1, 1000]), (None, 2, [1, 1000])):
        found = jnp.linalg.lstsq(a, b, rcond)
        close(found[0], x)
        assert int(found[2]) == rank
    assert jnp.linalg.lstsq(a, b, 1e-2, numpy_resid=True)[1].shape == (0,)
    found = dt.jit(jnp.linalg.lstsq)(a, b, np.float32(1e-2))
    assert (found[0].tolist(), int(found[2])) == ([1, 0], 1)
    a[0, 1] = np.nan
    assert np.isnan(jnp.linalg.lstsq(a, b)[0]).all()
    with pytest.raises(dt.errors.ConcretizationTypeError, match="numpy_resid=True depends"):
        dt.jit(lambda a: jnp.linalg.lstsq(a, b, numpy_resid=True))(a)


def test_cut_offs() -> None:
    values = np.array([[1.0, 0.5, 1e-8], [1.0, 0.1, 0.01]], np.float32)
    x = values[:, :, None] * np.eye(3, dtype=np.float32)
    rank = jnp.linalg.matrix_rank
    assert rank(x).tolist() == [2, 3]
    assert rank(x, 0.2).tolist() == [2, 1]
    assert rank(2 * x, tol=np.array([0.5, 0.05])).tolist() == [2, 2]
    assert rank(-x, rtol=np.float32(0.05), hermitian=True).tolist() == [2, 2]
    assert [int(rank(v)) for v in (np.zeros(3), np.arange(3), 5.0, np.nan * np.eye(2))] == [
        0,
        1,
        1,
        0,
    ]
    close(jnp.linalg.pinv(x)[0], np.diag([1.0, 2.0, 0.0]))
    close(jnp.linalg.pinv(x, rtol=np.array([0.7, 0.05])), [np.diag([1, 0, 0]), np.diag([1, 10, 0])])
    close(jnp.linalg.pinv(x, rcond=0.2)[1], np.diag([1, 0, 0]))
    assert np.isnan(jnp.linalg.pinv(np.nan * x)).all()


@pytest.mark.parametrize("p", [None, 1, -2, "fro", "nuc", -np.inf])
def test_condition_numbers(p: Any) -> None:
    singular = np.zeros((2, 2), np.float32)
    x = np.stack([SQUARE[0, :2, :2], singular, np.diag([np.nan, 1.0])]).astype(np.float32)
    found = jnp.linalg.cond(x, p)
    close(found[0], np.linalg.cond(x[0], p))
    assert found[1:].tolist()[0] == np.inf
    assert np.isnan(found[2])


def test_triangles_that_are_read() -> None:
    x = np.array([[4.0, 1.0], [2.0, 3.0]], np.float32)
    lower, upper = np.tril(x) + np.tril(x, -1).T, np.triu(x) + np.triu(x, 1).T
    both = (x + x.T) / 2
    linalg = jnp.linalg
    for options, expected in (({}, both), ({"symmetrize_input": False}, lower)):
        close(linalg.cholesky(x, **options), np.linalg.cholesky(expected))
        close(linalg.eigvalsh(x, **options), np.linalg.eigvalsh(expected))
        close(linalg.eigh(x, **options)[0], np.linalg.eigvalsh(expected))
    close(linalg.cholesky(x, upper=True), np.linalg.cholesky(both).T)
    close(
        linalg.cholesky(x, upper=True, symmetrize_input=False),
        np.linalg.cholesky(upper).T,
    )
    close(linalg.eigvalsh(x, "U", symmetrize_input=False), np.linalg.eigvalsh(upper))
    close(linalg.eigh(x, "U")[0], np.linalg.eigvalsh(both))
    assert np.isnan(linalg.cholesky(-x)[0, 0])


def test_subsets_of_singular_values() -> None:
    s = np.linalg.svd(HERMITIAN, compute_uv=False)
    for hermitian in (False, True):
        options: dict[str, Any] = {"hermitian": hermitian, "subset_by_index": (1, 3)}
        u, found, vh = jnp.linalg.svd(HERMITIAN, full_matrices=False, **options)
        assert (u.shape, vh.shape) == ((2, 3, 2), (2, 2, 3))
        close(found, s[:, 1:])
        close(adjoint(u) @ HERMITIAN @ adjoint(vh), s[:, 1:, None] * np.eye(2))
        close(jnp.linalg.svd(HERMITIAN, compute_uv=False, **options), s[:, 1:])


def test_multi_dot() -> None:
    rng = np.random.default_rng(3)
    a, b, c, d = (rng.normal(size=s).astype(np.float32) for s in ((5, 2), (2, 7), (7, 3), (3, 4)))
    for factors in (
        [a, b],
        [a, b, c],
        (a, b, c, d),
        [a[0], b, c],
        [b, c, d[:, 0]],
        [b[0], c[:, 0]],
    ):
        close(jnp.linalg.multi_dot(factors), np.linalg.multi_dot([wide(x) for x in factors]))
    close(jnp.linalg.multi_dot(SQUARE), SQUARE[0] @ SQUARE[1])
    counts = str(dt.make_jaxpr(jnp.linalg.multi_dot)([a, b, c, d]))
    assert "f32[2,3]" in counts
    whole = jnp.linalg.multi_dot([np.eye(2, dtype=np.int8), np.eye(2, dtype=bool)])
    assert whole.dtype == np.int8


def test_tensors() -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(size=(4, 3, 2, 6)).astype(np.float32)
    close(jnp.linalg.tensorinv(a), np.linalg.tensorinv(a), 1e-3)
    close(
        jnp.linalg.tensorinv(a.reshape(12, 4, 3), ind=1),
        np.linalg.tensorinv(a.reshape(12, 4, 3), 1),
        1e-3,
    )
    b = rng.normal(size=(4, 3)).astype(np.float32)
    close(jnp.linalg.tensorsolve(a, b), np.linalg.tensorsolve(a, b), 1e-3)
    moved = np.moveaxis(a, 2, 0)
    close(
        jnp.linalg.tensorsolve(moved, b, axes=(0, 3)), np.linalg.tensorsolve(moved, b, (0, 3)), 1e-3
    )


def test_functions_that_look_at_the_last_dimensions() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    for offset in (0, -1, 2):
        expected = np.diagonal(x, offset, -2, -1)
        np.testing.assert_array_equal(jnp.linalg.diagonal(x, offset=offset), expected)
        np.testing.assert_array_equal(jnp.linalg.trace(x, offset=offset), expected.sum(-1))
    assert jnp.linalg.trace(x, dtype="float32").dtype == np.float32
    np.testing.assert_array_equal(jnp.linalg.outer(x[0, 0], x[0, 1]), np.outer(x[0, 0], x[0, 1]))
    np.testing.assert_array_equal(jnp.linalg.matmul(x, x[0].T), x @ x[0].T)
    np.testing.assert_array_equal(jnp.linalg.tensordot(x, x[0]), np.tensordot(x, x[0]))
    y = x.transpose(0, 2, 1)
    np.testing.assert_array_equal(jnp.linalg.cross(y, y[0] ** 2), np.cross(y, y[0] ** 2))
    np.testing.assert_array_equal(jnp.linalg.cross(x, x**2, axis=1), np.cross(x, x**2, axis=1))


def magnitudes(x: Any) -> Any:
    return (abs(x) ** 2 * np.arange(x.size).reshape(x.shape) ** 2).sum()


# Functions with real results, of `jnp.linalg` or `np.linalg` and an argument of any rank.
SCALARS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "cholesky": (lambda m, x: magnitudes(m.cholesky(x + adjoint(x))), POSITIVE),
    "qr": (lambda m, x: magnitudes(m.qr(x)[1]), COMPLEX),
    "eigh": (lambda m, x: magnitudes(m.eigh(x + adjoint(x))[1]), HERMITIAN),
    "eigvals": (lambda m, x: (m.eigvals(x) ** 3).sum().real, SQUARE),
    "svd": (lambda m, x: magnitudes(m.svd(x, full_matrices=False)[2]), COMPLEX),
    "svd hermitian": (
        lambda m, x: magnitudes(m.svd(x + adjoint(x), hermitian=True)[0]),
        HERMITIAN,
    ),
    "det": (lambda m, x: magnitudes(m.det(x)), COMPLEX[:, :3]),
    "slogdet": (
        lambda m, x: magnitudes(m.slogdet(x)[1]) + m.slogdet(x)[0].sum().imag,
        COMPLEX[:, :3],
    ),
    "inv": (lambda m, x: magnitudes(m.inv(x)), COMPLEX[:, :3]),
    "solve": (lambda m, x: magnitudes(m.solve(x, x[:, :, :2] ** 2)), COMPLEX[:, :3]),
    "solve one": (lambda m, x: magnitudes(m.solve(x[0], x)), REAL[:, :3]),
    "pinv": (lambda m, x: magnitudes(m.pinv(x)), COMPLEX),
    "pinv of orthogonal": (
        lambda m, x: magnitudes(m.pinv(x)),
        np.linalg.qr(adjoint(COMPLEX[0]))[0][None, :, :2],
    ),
    "lstsq": (lambda m, x: sum(magnitudes(m.lstsq(x[0], x[1])[i]) for i in (0, 1, 3)), REAL),
    "norm nuc": (lambda m, x: magnitudes(m.norm(x, "nuc", axis=(1, 2))), COMPLEX),
    "cond": (lambda m, x: magnitudes(m.cond(x)), COMPLEX),
    "matrix_power": (lambda m, x: magnitudes(m.matrix_power(x, -2)), SQUARE),
}


def wide_pair(x: Any) -> tuple[Any, Any]:
    """An argument in 64 bits, and a direction."""
    rng = np.random.default_rng(5)
    x = wide(x)
    v = rng.normal(size=x.shape)
    return x, v + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else v


@pytest.mark.parametrize("name", SCALARS)
def test_derivatives(name: str) -> None:
    function, x = SCALARS[name]
    x, v = wide_pair(x)
    above, below = (function(np.linalg, x + step * v) for step in (1e-6, -1e-6))
    with dt.enable_x64(True):
        gradient = dt.jit(dt.grad(lambda x: function(jnp.linalg, x)))(x)
    np.testing.assert_allclose(np.sum(gradient * v).real, (above - below) / 2e-6, rtol=1e-5)


def cofactors(x: Any) -> Any:
    out = np.zeros_like(x)
    for i, j in np.ndindex(x.shape):
        out[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
    return out


det_gradient = dt.jit(dt.grad(jnp.linalg.det))
det_gradient_change = dt.jit(lambda x, v: dt.jvp(dt.grad(jnp.linalg.det), (x,), (v,))[1])


@pytest.mark.parametrize("rank", [0, 2, 3, 4])
@pytest.mark.parametrize("size", [3, 4, 5])
def test_determinants_of_singular_matrices(size: int, rank: int) -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(size, size))
    if size == 4 and rank == 3:
        x = np.diag([1.0, 2.0, 0.0, 3.0])  # a pivot is zero that is not the last one
    elif size == 4 and rank == 2:
        x = np.eye(4, k=2)
    else:
        u, s, vh = np.linalg.svd(x)
        s[rank:] = 0
        x = (u * s) @ vh
    v = rng.normal(size=x.shape)
    with dt.enable_x64(True):
        np.testing.assert_allclose(det_gradient(x), cofactors(x), atol=1e-12)
        change = (cofactors(x + 1e-5 * v) - cofactors(x - 1e-5 * v)) / 2e-5
        np.testing.assert_allclose(det_gradient_change(x, v), change, atol=1e-6)


def test_higher_derivatives_of_determinants() -> None:
    v = np.random.default_rng(7).normal(size=(4, 4))
    with dt.enable_x64(True):
        # Of det(I + t v) the coefficients are those of the characteristic polynomial.
        functions: list[Any] = [lambda t: jnp.linalg.det(np.eye(4) + t * v)]
        for _ in range(3):
            functions.append(dt.jacfwd(functions[-1]))
        found = dt.jit(lambda t: [function(t) for function in functions])(0.0)
        expected = np.poly(v)[:4] * [1, -1, 2, -6]
        np.testing.assert_allclose(np.array(found), expected, rtol=1e-9)


def test_second_derivatives() -> None:
    functions: tuple[Callable[[Any], Any], ...] = (
        lambda x: jnp.linalg.solve(x, x[0]).sum() + jnp.linalg.slogdet(x)[1],
        lambda x: magnitudes(jnp.linalg.pinv(x)),
    )
    with dt.enable_x64(True):
        x, v = wide_pair(REAL[0, :3])
        for gradient in map(dt.grad, functions):
            both = dt.jit(lambda x, gradient=gradient: dt.jvp(gradient, (x,), (v,)))
            expected = (both(x + 1e-6 * v)[0] - both(x - 1e-6 * v)[0]) / 2e-6
            scale = abs(expected).max()
            np.testing.assert_allclose(both(x)[1], expected, rtol=1e-5, atol=1e-5 * scale)


def test_singular_matrices() -> None:
    """They give infinities and nan, and no errors."""
    x = np.ones((2, 2), np.float32)
    assert not np.isfinite(jnp.linalg.inv(x)).any()
    assert not np.isfinite(jnp.linalg.solve(x, np.ones(2, np.float32))).any()
    for method in ("lu", "qr"):
        sign, logarithm = jnp.linalg.slogdet(np.zeros((2, 2), np.complex64), method=method)
        assert (complex(sign), float(logarithm)) == (0, -np.inf)
    close(
        dt.grad(lambda v: jnp.linalg.pinv(v).sum())(np.ones((3, 3), np.float32)),
        np.full((3, 3), -1 / 9),
    )


MATRIX = np.ones((2, 3), np.float32)
VECTOR = np.ones(3, np.float32)
EYE = np.eye(3, dtype=np.float32)
OF_SQUARES = ("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet")
OF_MATRICES = ("cond", "pinv", "qr", "svd", "svdvals")


@pytest.mark.parametrize("name", OF_SQUARES + OF_MATRICES)
def test_arguments_that_are_no_matrices(name: str) -> None:
    function = getattr(jnp.linalg, name)
    with pytest.raises(ValueError, match=rf"linalg.{name}: \w must have two dimensions"):
        function(VECTOR)
    with pytest.raises(TypeError, match=rf"linalg.{name} requires its argument \w to be an array"):
        function([[1.0, 2.0], [3.0, 4.0]])
    if name in OF_SQUARES:
        with pytest.raises(ValueError, match=rf"linalg.{name}: the matrices in a must be square"):
            function(MATRIX)


ERRORS: tuple[tuple[Callable[[], Any], type[Exception], str], ...] = (
    (lambda: jnp.linalg.qr(EYE, "full"), ValueError, "mode must be one of reduced"),
    (lambda: jnp.linalg.eigh(EYE, "X"), ValueError, "UPLO must be None, 'L' or 'U', got 'X'"),
    (lambda: jnp.linalg.slogdet(EYE, method="svd"), ValueError, "method must be None"),
    (lambda: jnp.linalg.svd(EYE, subset_by_index=(0, 1)), ValueError, "pass full_matrices=False"),
    (lambda: jnp.linalg.svd(EYE, False, subset_by_index=(0, 9)), ValueError, "<= end <= 3"),
    (lambda: jnp.linalg.svd(EYE, False, True, True, (2, 1)), ValueError, "start <= end <= 3"),
    (lambda: jnp.linalg.svd(EYE, False, subset_by_index=3), ValueError, "must be a pair"),
    (lambda: jnp.linalg.svd(MATRIX, hermitian=True), ValueError, "must be square"),
    (lambda: jnp.linalg.cond(MATRIX, 1), ValueError, "linalg.cond: the matrices in x must be"),
    (lambda: jnp.linalg.cond(EYE, 3), ValueError, "ord 3 is not a norm of matrices"),
    (lambda: jnp.linalg.cond(EYE[:0]), ValueError, "not defined for empty matrices"),
    (lambda: jnp.linalg.pinv(EYE, 0.1, rcond=0.1), ValueError, "give one of them only"),
    (lambda: jnp.linalg.pinv(EYE, VECTOR), ValueError, "rtol must be a number or one for each"),
    (lambda: jnp.linalg.pinv(EYE, 1j), TypeError, "rtol must be a real number"),
    (lambda: jnp.linalg.matrix_rank(EYE, 0.1, tol=0.1), ValueError, "one of rtol and tol"),
    (lambda: jnp.linalg.solve(EYE, np.float32(1)), ValueError, "got a scalar"),
    (lambda: jnp.linalg.solve(EYE, np.ones(4)), ValueError, "b must have 3 rows"),
    (lambda: jnp.linalg.solve(SQUARE, MATRIX), ValueError, r"write b\[..., None\]"),
    (lambda: jnp.linalg.solve(MATRIX, VECTOR), ValueError, "matrices in a must be square"),
    (lambda: jnp.linalg.solve(SQUARE, np.ones((5, 3, 1))), TypeError, "incompatible shapes"),
    (lambda: jnp.linalg.lstsq(SQUARE, VECTOR), ValueError, "use dovetail.vmap"),
    (lambda: jnp.linalg.lstsq(EYE, np.ones(2)), ValueError, "as many rows"),
    (lambda: jnp.linalg.tensorinv(EYE, 0), ValueError, "ind must be positive, got 0"),
    (lambda: jnp.linalg.tensorinv(MATRIX, 1), ValueError, "choose another ind"),
    (lambda: jnp.linalg.tensorsolve(EYE, np.ones(2)), ValueError, "a must have the shape of b"),
    (lambda: jnp.linalg.tensorsolve(EYE, VECTOR, (3,)), ValueError, "axes 3 is out of bounds"),
    (lambda: jnp.linalg.matrix_power(EYE, 2.5), TypeError, "requires n to be an integer"),
    (lambda: jnp.linalg.matrix_power(MATRIX, 2), ValueError, "must be square"),
    (lambda: jnp.linalg.multi_dot([EYE]), ValueError, "two arrays or more, got 1"),
    (lambda: jnp.linalg.multi_dot([EYE, VECTOR, EYE]), ValueError, "must have two dimensions"),
    (lambda: jnp.linalg.multi_dot([EYE, MATRIX]), ValueError, "the last size of each array"),
    (lambda: jnp.linalg.multi_dot([[[1.0]], EYE]), TypeError, r"arrays\[0\]"),
    (lambda: jnp.linalg.outer(EYE, VECTOR), ValueError, "takes vectors, got arrays of rank 2"),
    (lambda: jnp.linalg.cross(MATRIX, MATRIX, axis=0), ValueError, "three components along axis 0"),
    (lambda: jnp.linalg.cross(VECTOR, VECTOR, axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda: jnp.linalg.diagonal(VECTOR), ValueError, "linalg.diagonal needs an array of rank 2"),
    (lambda: jnp.linalg.trace(VECTOR), ValueError, "linalg.trace needs an array of rank 2"),
    (lambda: jnp.linalg.norm(EYE[:0], -2), ValueError, "ord -2 is not defined for arrays without"),
    (lambda: jnp.linalg.norm(EYE, 2, axis=(1, -1)), ValueError, "duplicate value in axis"),
    (
        lambda: dt.grad(lambda x: jnp.abs(jnp.linalg.eig(x)[1]).sum())(EYE),
        NotImplementedError,
        "enable_eigvec_derivs=True",
    ),
)


@pytest.mark.parametrize("call", ERRORS, ids=lambda call: call[2])
def test_errors(call: tuple[Callable[[], Any], type[Exception], str]) -> None:
    function, error, match = call
    with pytest.raises(error, match=match):
        function()
