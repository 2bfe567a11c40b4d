"""Samples of decompositions into values and vectors.

Vectors are not unique, so that matrices made of them are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.core.basis.structural import broadcast_in_dim
from dovetail.core.ir.avals import aval_of, shape_of
from dovetail.core.ops.arithmetic import add, mul
from dovetail.core.ops.complex import imag, real
from dovetail.core.ops.creation import iota_like
from dovetail.core.ops.linalg.eigen import EighImplementation
from dovetail.core.ops.linalg.eigen_matrices import scaled_columns
from dovetail.core.ops.linalg.matrices import INT32, adjoint, product
from dovetail.core.ops.sorting import sort_p, take_along
from dovetail.testing.sample import COMPLEXES, FLOATS, Sample, across_dtypes, rejected
from dovetail.testing.samples.shape import numbers

WIDE = (*FLOATS[:2], *COMPLEXES)
NARROW = ("float16", "bfloat16", "int32", "bool")

Arrays = list[Any]


def matrices(*shape: int) -> np.ndarray[Any, Any]:
    """Matrices without any structure, whose values differ."""
    x = numbers(*shape) / 4
    rows, columns = shape[-2:]
    return np.asarray(x + np.eye(rows, columns) * np.arange(columns)).astype(np.float32)


def complex_matrices(*shape: int) -> np.ndarray[Any, Any]:
    """The same, complex."""
    return (matrices(*shape) + 1j * matrices(*shape)[..., ::-1, :] / 2).astype(np.complex64)


def weighted(x: Any) -> Any:
    """Sums of projections on columns, each with another factor."""
    factors = np.arange(1, shape_of(x)[-1] + 1) ** 1.5
    return product(scaled_columns(x, spread(factors, x)), adjoint(x))


def spread(factors: Any, x: Any) -> Any:
    """Factors for the columns of stacked matrices, in their dtype."""
    shape = shape_of(x)
    return np.broadcast_to(factors, (*shape[:-2], shape[-1])).astype(aval_of(x).dtype)


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
    return [values, weighted(vectors), product(adjoint(vectors), vectors)]


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
    return Sample((x,), _eig(**params), absolute=1024, observe=_observe_eig, note=note)


JACOBI = EighImplementation.JACOBI
BROKEN = np.array([[1, 2], [np.nan, 3]], np.float32)

SAMPLES: dict[str, list[Sample]] = {
    "eigh": [
        *across_dtypes(_decomposed(matrices(4, 4)), WIDE),
        _decomposed(complex_matrices(3, 3), lower=False),
        _decomposed(matrices(2, 2, 3, 3), lower=False).replace(order=1),
        _decomposed(matrices(3, 3), algorithm=EighImplementation.QR, sort=False).replace(order=1),
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
}
