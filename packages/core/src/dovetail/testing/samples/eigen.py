"""Samples of decompositions into values and vectors.

Vectors are not unique, so that matrices made of them are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.core.ir.avals import aval_of, shape_of
from dovetail.core.ops.linalg.eigen import EighImplementation
from dovetail.core.ops.linalg.eigen_matrices import scaled_columns
from dovetail.core.ops.linalg.matrices import adjoint, product
from dovetail.testing.sample import COMPLEXES, FLOATS, Sample, across_dtypes, rejected
from dovetail.testing.samples.shape import numbers

WIDE = (*FLOATS[:2], *COMPLEXES)
NARROW = ("float16", "bfloat16", "int32", "bool")

Arrays = list[Any]


def matrices(*shape: int) -> np.ndarray[Any, Any]:
    """Matrices without any structure, whose values differ."""
    x = numbers(*shape) / 4
    return np.asarray(x + np.eye(*shape[-2:]) * np.arange(shape[-1])).astype(np.float32)


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
}
