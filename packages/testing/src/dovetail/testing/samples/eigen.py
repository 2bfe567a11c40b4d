"""Samples of decompositions into values and vectors.

Vectors are not unique, so matrices computed from them are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.basis.structural import broadcast_in_dim
from dovetail._core.ir.avals import shape_of
from dovetail._core.ops.elementwise.arithmetic import add, mul
from dovetail._core.ops.elementwise.complex import imag, real
from dovetail._core.ops.indexing.sorting import sort_p, take_along
from dovetail._core.ops.linalg.eigen import EighImplementation
from dovetail._core.ops.linalg.eigen_matrices import diagonal, scaled_columns
from dovetail._core.ops.linalg.matrices import (
    INT32,
    is_complex,
    matrix_adjoint,
    part,
    product,
    triangular_part,
)
from dovetail._core.ops.linalg.svd import SvdAlgorithm
from dovetail._core.ops.shape.creation import iota_like
from dovetail.testing.sample import COMPLEXES, FLOATS, Sample, across_dtypes, rejected
from dovetail.testing.samples.shape import numbers

WIDE = (*FLOATS[:2], *COMPLEXES)
NARROW = ("float16", "bfloat16", "int32", "bool")

Arrays = list[Any]


def matrices(*shape: int) -> np.ndarray[Any, Any]:
    """Matrices without any structure, with distinct values."""
    x = numbers(*shape) / 4
    rows, columns = shape[-2:]
    return np.asarray(x + np.eye(rows, columns) * np.arange(columns)).astype(np.float32)


def complex_matrices(*shape: int) -> np.ndarray[Any, Any]:
    """The same, complex."""
    return (matrices(*shape) + 1j * matrices(*shape)[..., ::-1, :] / 2).astype(np.complex64)


def weights_on(x: Any) -> Any:
    """Columns scaled by different factors."""
    shape = shape_of(x)
    factors = np.arange(1, shape[-1] + 1) ** 1.5
    return scaled_columns(x, np.broadcast_to(factors, (*shape[:-2], shape[-1])))


def weighted(x: Any) -> Any:
    """Sums of projections on columns, each with a different factor."""
    return product(weights_on(x), matrix_adjoint(x))


def _eigh(
    lower: bool = True,
    subset: tuple[int, int] | None = None,
    algorithm: EighImplementation | None = None,
    sort: bool = True,
) -> dict[str, Any]:
    return {
        "lower": lower,
        "sort_eigenvalues": sort,
        "subset_by_index": subset,
        "algorithm": algorithm,
    }


def _observe_eigh(results: Arrays) -> Arrays:
    vectors, values = results
    return [values, weighted(vectors), product(matrix_adjoint(vectors), vectors)]


def _decomposed(x: Any, note: str = "", **params: Any) -> Sample:
    return Sample((x,), _eigh(**params), absolute=256, observe=_observe_eigh, note=note)


def _eig(left: bool = True, right: bool = True) -> dict[str, Any]:
    return {
        "compute_left_eigenvectors": left,
        "compute_right_eigenvectors": right,
        "enable_eigvec_derivs": left or right,
        "implementation": None,
    }


def _observe_eig(results: Arrays) -> Arrays:
    values, *vectors = results
    last = len(shape_of(values)) - 1
    key = add(real(values), mul(imag(values), 0.7))
    positions = iota_like(INT32, shape_of(values), last)
    _, values, order = sort_p.bind(
        key, values, positions, dimension=last, is_stable=True, num_keys=1
    )
    found = [values]
    for x in vectors:
        order_of_columns = broadcast_in_dim(order, shape_of(x), (*range(last), last + 1))
        found.append(weighted(take_along(x, order_of_columns, last + 1)))
    return found


def _general(x: Any, note: str = "", **params: Any) -> Sample:
    return Sample((x,), _eig(**params), absolute=1024, observe=_observe_eig, needs="eig", note=note)


def _svd(
    full: bool = False,
    vectors: bool = True,
    subset: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> dict[str, Any]:
    return {
        "full_matrices": full,
        "compute_uv": vectors,
        "subset_by_index": subset,
        "algorithm": algorithm,
    }


def _observe_svd(results: Arrays) -> Arrays:
    if len(results) == 1:
        return results
    s, u, vh = results
    count = shape_of(s)[-1]
    pairs = product(weights_on(part(u, columns=count)), part(vh, rows=count))
    found = [s, pairs, product(matrix_adjoint(u), u), product(vh, matrix_adjoint(vh))]
    for vectors in (u, matrix_adjoint(vh)):
        own = part(vectors, columns=count)
        # The added ones are compared together.
        others = part(vectors, columns=slice(count, shape_of(vectors)[-1]))
        found += [weighted(own), product(others, matrix_adjoint(others))]
    return found


def _singular(x: Any, note: str = "", **params: Any) -> Sample:
    # Derivatives need vectors, with which the values are found by another algorithm.
    rounded = 0.0 if params.get("vectors", True) else 1e-5
    return Sample(
        (x,),
        _svd(**params),
        absolute=256,
        observe=_observe_svd,
        derivative_value=rounded,
        note=note,
    )


def _qdwh(
    is_hermitian: bool = False, max_iterations: int = 10, eps: float | None = None
) -> dict[str, Any]:
    return {"is_hermitian": is_hermitian, "max_iterations": max_iterations, "eps": eps}


def _observe_qdwh(results: Arrays) -> Arrays:
    u, h, _, converged = results
    return [u, h, converged]


def _polar(x: Any, note: str = "", **params: Any) -> Sample:
    return Sample((x,), _qdwh(**params), absolute=128, observe=_observe_qdwh, note=note)


def _schur(vectors: bool = True) -> dict[str, Any]:
    return {
        "compute_schur_vectors": vectors,
        "sort_eig_vals": False,
        "select_callable": None,
    }


def _observe_schur(results: Arrays) -> Arrays:
    form = results[0]
    values = diagonal(form)
    if is_complex(form):
        values = add(real(values), mul(imag(values), 0.7))
    below = triangular_part(form, offset=-2 + is_complex(form))
    (values,) = sort_p.bind(values, dimension=len(shape_of(values)) - 1, is_stable=True, num_keys=1)
    if len(results) == 1:
        return [below, values]
    vectors = results[1]
    whole = product(product(vectors, form), matrix_adjoint(vectors))
    return [below, whole, product(matrix_adjoint(vectors), vectors)]


def _triangular(x: Any, note: str = "", **params: Any) -> Sample:
    return Sample(
        (x,),
        _schur(**params),
        differentiable=(),
        absolute=512,
        observe=_observe_schur,
        needs="schur",
        note=note,
    )


def _reduced(x: Any, note: str = "", **params: Any) -> Sample:
    return Sample((x,), params, differentiable=(), absolute=128, note=note, signed_zeros=False)


JACOBI = EighImplementation.JACOBI
BROKEN = np.array([[1, 2], [np.nan, 3]], np.float32)

SAMPLES: dict[str, list[Sample]] = {
    "eigh": [
        *across_dtypes(_decomposed(matrices(4, 4)), WIDE),
        _decomposed(complex_matrices(3, 3), lower=False),
        _decomposed(matrices(2, 2, 3, 3), lower=False).replace(order=1),
        _decomposed(matrices(3, 3), sort=False).replace(order=1),
        _decomposed(complex_matrices(4, 4), subset=(1, 3)).replace(order=1),
        _decomposed(matrices(2, 5, 5), algorithm=JACOBI).replace(differentiable=()),
        *[
            s.replace(differentiable=(), batched=())
            for s in (
                _decomposed(complex_matrices(3, 3), lower=False, algorithm=JACOBI),
                _decomposed(matrices(4, 4), subset=(0, 1), algorithm=JACOBI),
            )
        ],
        _decomposed(matrices(3, 3), subset=(2, 2), note="none"),
        *[
            s.replace(differentiable=(), batched=())
            for algorithm in (None, JACOBI)
            for s in (
                _decomposed(np.zeros((3, 3)), algorithm=algorithm, note="zero"),
                _decomposed(np.eye(4) * 1e30, algorithm=algorithm, note="large"),
                _decomposed(BROKEN, algorithm=algorithm, note="NaN"),
                _decomposed(BROKEN, algorithm=algorithm, lower=False, note="NaN not read"),
                _decomposed(complex_matrices(1, 1), algorithm=algorithm, note="one"),
                _decomposed(np.zeros((0, 0)), algorithm=algorithm, note="empty"),
                _decomposed(np.zeros((2, 0, 0)), algorithm=algorithm, note="empty"),
                _decomposed(np.zeros((0, 3, 3)), algorithm=algorithm, note="empty batch"),
            )
        ],
        *rejected(_decomposed(matrices(3, 3)), NARROW),
        _decomposed(matrices(3, 4)).replace(raises=ValueError),
        _decomposed(numbers(3)).replace(raises=TypeError),
        _decomposed(matrices(3, 3), subset=(2, 4)).replace(raises=ValueError),
        _decomposed(matrices(3, 3), subset=(2, 1)).replace(raises=ValueError),
        _decomposed(matrices(3, 3), subset=(-1, 1)).replace(raises=ValueError),
    ],
    "eig": [
        *across_dtypes(_general(matrices(3, 3)), WIDE),
        _general(complex_matrices(4, 4)),
        _general(matrices(2, 3, 3), left=False).replace(order=1),
        _general(matrices(4, 4), right=False).replace(order=1),
        _general(matrices(4, 4), left=False, right=False),
        *[
            s.replace(differentiable=(), batched=())
            for s in (
                _general(np.zeros((3, 3)), left=False, right=False, note="zero"),
                _general(BROKEN, note="NaN"),
                _general(matrices(1, 1), note="one"),
                _general(np.zeros((0, 0)), note="empty"),
                _general(np.zeros((2, 0, 0)), note="empty"),
                _general(np.zeros((0, 3, 3)), note="empty batch"),
            )
        ],
        *rejected(_general(matrices(3, 3)), NARROW),
        _general(matrices(3, 4)).replace(raises=ValueError),
        _general(numbers(3)).replace(raises=TypeError),
    ],
    "svd": [
        *across_dtypes(_singular(matrices(3, 3)), WIDE),
        _singular(matrices(4, 2)),
        _singular(matrices(2, 4)).replace(order=1),
        *[
            _singular(complex_matrices(*shape), full=full).replace(order=1)
            for shape in ((3, 3), (4, 2), (2, 4))
            for full in (False, True)
        ],
        _singular(matrices(2, 4, 2), full=True),
        _singular(matrices(3, 2), vectors=False),
        _singular(complex_matrices(2, 3), vectors=False, full=True).replace(order=1),
        _singular(matrices(3, 4), subset=(1, 3)).replace(order=1),
        _singular(matrices(4, 3), subset=(0, 1), vectors=False).replace(order=1),
        _singular(matrices(2, 5, 4), algorithm=SvdAlgorithm.POLAR).replace(differentiable=()),
        *[
            s.replace(differentiable=(), batched=())
            for s in (
                _singular(complex_matrices(2, 4), full=True, algorithm=SvdAlgorithm.JACOBI),
                _singular(matrices(4, 3), subset=(0, 2), algorithm=SvdAlgorithm.POLAR),
                _singular(matrices(3, 4), vectors=False, algorithm=SvdAlgorithm.POLAR),
                _singular(np.ones((3, 2)), vectors=False, note="singular"),
                _singular(BROKEN, note="NaN"),
                _singular(BROKEN, algorithm=SvdAlgorithm.POLAR, note="NaN"),
                _singular(np.full((5, 5), np.inf, np.float32), note="infinite"),
                *[
                    _singular(np.zeros(shape), full=full, note="empty")
                    for shape in ((0, 0), (0, 3), (2, 3, 0), (0, 3, 2))
                    for full in (False, True)
                ],
                _singular(np.zeros((0, 3)), vectors=False, note="empty"),
            )
        ],
        *rejected(_singular(matrices(3, 3)), NARROW),
        _singular(numbers(3)).replace(raises=TypeError),
        _singular(matrices(3, 3), subset=(2, 4)).replace(raises=ValueError),
        _singular(matrices(3, 3), subset=(0, 1), full=True).replace(raises=ValueError),
    ],
    "qdwh": [
        *across_dtypes(_polar(matrices(3, 3)).replace(order=1), WIDE),
        _polar(complex_matrices(3, 2)),
        _polar(matrices(2, 4, 3)),
        _polar(np.array([[2, 1], [1, -3]], np.float32), is_hermitian=True).replace(
            differentiable=(), batched=()
        ),
        *[
            s.replace(differentiable=(), batched=())
            for s in (
                _polar(matrices(3, 3), eps=1e-3, max_iterations=8),
                _polar(BROKEN, note="NaN").replace(observe=lambda results: results[:2]),
                _polar(np.zeros((0, 0)), note="empty"),
                _polar(np.zeros((3, 0)), note="empty"),
                _polar(np.zeros((0, 3, 3)), note="empty batch"),
            )
        ],
        *rejected(_polar(matrices(3, 3)), NARROW),
        _polar(numbers(3)).replace(raises=TypeError),
        _polar(matrices(2, 3)).replace(raises=ValueError),
        _polar(matrices(3, 2), is_hermitian=True).replace(raises=ValueError),
    ],
    "schur": [
        *across_dtypes(_triangular(matrices(3, 3)), WIDE),
        _triangular(complex_matrices(4, 4)),
        _triangular(matrices(2, 4, 4)),
        _triangular(matrices(3, 3), vectors=False),
        _triangular(complex_matrices(3, 3), vectors=False),
        *[
            s.replace(batched=())
            for s in (
                _triangular(BROKEN, note="NaN"),
                _triangular(matrices(1, 1), note="one"),
                _triangular(np.zeros((0, 0)), note="empty"),
                _triangular(np.zeros((0, 3, 3)), note="empty batch"),
            )
        ],
        *rejected(_triangular(matrices(3, 3)), NARROW),
        _triangular(matrices(3, 4)).replace(raises=ValueError),
        _triangular(numbers(3)).replace(raises=TypeError),
    ],
    "hessenberg": [
        *across_dtypes(_reduced(matrices(4, 4)), WIDE),
        _reduced(complex_matrices(5, 5)),
        _reduced(complex_matrices(2, 2)),
        _reduced(matrices(2, 2, 3, 3)),
        _reduced(np.triu(matrices(4, 4)), note="nothing to do"),
        _reduced(matrices(1, 1), note="one"),
        _reduced(np.zeros((0, 0)), note="empty"),
        _reduced(np.zeros((0, 3, 3)), note="empty batch"),
        *rejected(_reduced(matrices(3, 3)), NARROW),
        _reduced(matrices(3, 4)).replace(raises=ValueError),
        _reduced(numbers(3)).replace(raises=TypeError),
    ],
    "tridiagonal": [
        *across_dtypes(_reduced(matrices(4, 4), lower=True), WIDE),
        *[_reduced(complex_matrices(5, 5), lower=lower) for lower in (False, True)],
        _reduced(complex_matrices(2, 2), lower=False),
        _reduced(matrices(2, 2, 3, 3), lower=False),
        _reduced(np.eye(4, dtype=np.float32), lower=True, note="nothing to do"),
        _reduced(complex_matrices(1, 1), lower=True, note="one"),
        _reduced(np.zeros((0, 0)), lower=True, note="empty"),
        _reduced(np.zeros((0, 3, 3)), lower=False, note="empty batch"),
        *rejected(_reduced(matrices(3, 3), lower=True), NARROW),
        _reduced(matrices(3, 4), lower=True).replace(raises=ValueError),
        _reduced(numbers(3), lower=True).replace(raises=TypeError),
    ],
}
