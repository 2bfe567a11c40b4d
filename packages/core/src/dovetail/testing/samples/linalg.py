"""Samples of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.testing.sample import BOOLS, COMPLEXES, FLOATS, Sample, across_dtypes, rejected
from dovetail.testing.samples.shape import numbers

WIDE = (*FLOATS[:2], *COMPLEXES)


def triangular(*shape: int, complex_too: bool = False) -> np.ndarray[Any, Any]:
    """Well-conditioned matrices, the triangles of which are so too."""
    size = shape[-1]
    diagonal = np.eye(size) * np.arange(2, size + 2)
    x: np.ndarray[Any, Any] = (numbers(*shape) / 16 + diagonal).astype(np.float32)
    return with_imaginary(x) if complex_too else x


def with_imaginary(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Complex numbers with real parts `x`."""
    return np.asarray(x + 1j * numbers(*x.shape)[..., ::-1] / 16).astype(np.complex64)


def scaled(x: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
    """Other elements of a batch: the matrix itself, larger."""
    return np.asarray(x * (1 + index / 4)).astype(x.dtype)


def _solve(
    left_side: bool = True,
    lower: bool = True,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> dict[str, Any]:
    return {
        "left_side": left_side,
        "lower": lower,
        "transpose_a": transpose_a,
        "conjugate_a": conjugate_a,
        "unit_diagonal": unit_diagonal,
    }


def _solving(a: Any, b: Any, note: str = "", **flags: Any) -> Sample:
    return Sample(
        (a, b),
        _solve(**flags),
        linear=(1,),
        vary=scaled,
        tolerance=32,
        absolute=4,
        note=note,
    )


def positive(*shape: int, complex_too: bool = False) -> np.ndarray[Any, Any]:
    """Hermitian positive definite matrices."""
    x = triangular(*shape, complex_too=complex_too)
    return np.asarray(x @ x.conj().swapaxes(-1, -2)) / 4


def general(*shape: int, complex_too: bool = False) -> np.ndarray[Any, Any]:
    """Well-conditioned matrices in which rows are exchanged, and columns differ in length."""
    x: np.ndarray[Any, Any] = numbers(*shape) / 4 + np.eye(*shape[-2:], dtype=np.float32) * 9
    x = x[..., ::-1, :] * np.arange(1, shape[-1] + 1, dtype=np.float32) / 4
    return with_imaginary(x) if complex_too else x


def factored(*args: Any, **changes: Any) -> Sample:
    """A sample whose results are sums with many terms."""
    given: dict[str, Any] = {"vary": scaled, "tolerance": 64, "absolute": 64, "signed_zeros": False}
    return Sample(args, **given | changes)


_FLAGS = ("left_side", "lower", "transpose_a", "unit_diagonal")
C3, C32, C23 = (
    triangular(3, 3, complex_too=True),
    with_imaginary(numbers(3, 2)),
    with_imaginary(numbers(2, 3)),
)

NEGATIVE = np.stack([-np.eye(2), np.eye(2)])
SINGULAR = np.array([[1.0, 2.0, 4.0], [2.0, 4.0, 8.0], [4.0, 8.0, 16.0]])

SAMPLES: dict[str, list[Sample]] = {
    "cholesky": [
        *across_dtypes(factored(positive(3, 3), absolute=0), WIDE),
        factored(positive(3, 3, complex_too=True)),
        factored(positive(2, 1, 4, 4), order=1),
        factored(positive(1, 1), note="one"),
        factored(np.tril(positive(3, 3)) + 5, differentiable=(), note="not symmetric"),
        factored(NEGATIVE, differentiable=(), note="not positive"),
        factored(NEGATIVE + 0j, differentiable=(), note="not positive"),
        factored(np.zeros((2, 2)), differentiable=(), note="zero"),
        factored(np.zeros((0, 0)), note="empty"),
        factored(np.zeros((0, 2, 2)), note="empty batch"),
        *rejected(Sample((positive(2, 2),)), (*FLOATS[2:], *BOOLS, np.int32)),
        Sample((numbers(2, 3),), raises=ValueError),
        Sample((numbers(3),), raises=TypeError),
    ],
    "cholesky_update": [
        *across_dtypes(factored(np.triu(triangular(3, 3)), numbers(3)), FLOATS),
        factored(np.triu(triangular(2, 3, 3)), numbers(2, 3), order=1),
        factored(
            triangular(3, 3), np.array([0, 2, 0], np.float32), differentiable=(), note="zeros"
        ),
        factored(-np.eye(2, dtype=np.float32), numbers(2), note="negative"),
        factored(np.zeros((2, 2)), np.zeros(2), differentiable=(), note="zero"),
        factored(np.eye(2) * 1e-30, np.full(2, 1e30), differentiable=(), note="large"),
        factored(np.zeros((0, 0)), np.zeros(0), note="empty"),
        *rejected(Sample((np.eye(2), np.ones(2))), (*COMPLEXES, np.int32)),
        Sample((np.eye(2), np.ones(3)), raises=ValueError),
        Sample((np.ones((2, 3)), np.ones(3)), raises=ValueError),
        Sample((np.ones((2, 2, 2)), np.ones(2)), raises=TypeError),
        Sample((np.ones(2), np.ones(2)), raises=TypeError),
    ],
    "lu": [
        *across_dtypes(factored(general(3, 3)), WIDE),
        factored(general(3, 3, complex_too=True)),
        factored(general(2, 4, 2), order=1),
        factored(general(2, 4), order=1),
        factored(general(4, 2, complex_too=True), order=1),
        factored(general(2, 1, 3, 3), order=1),
        factored(general(1, 1), note="one"),
        factored(SINGULAR, differentiable=(), note="singular"),
        factored(np.zeros((2, 2)), differentiable=(), note="zero"),
        factored(np.zeros((0, 0)), note="empty"),
        factored(np.zeros((3, 0)), note="empty"),
        factored(np.zeros((2, 0, 3)), note="empty"),
        factored(np.zeros((0, 2, 2)), note="empty batch"),
        *rejected(Sample((general(2, 2),)), (*FLOATS[2:], *BOOLS, np.int32)),
        Sample((numbers(3),), raises=TypeError),
    ],
    "lu_pivots_to_permutation": [
        Sample((np.array([2, 1, 2], np.int32),), {"permutation_size": 3}),
        Sample((np.array([[4, 2, 2], [0, 1, 2]], np.int32),), {"permutation_size": 5}),
        Sample((np.zeros((0,), np.int32),), {"permutation_size": 2}, note="no pivots"),
        Sample((np.zeros((0, 2), np.int32),), {"permutation_size": 2}, note="empty batch"),
        Sample((np.zeros((2, 0), np.int32),), {"permutation_size": 0}, note="empty"),
        Sample((np.zeros((), np.int32),), {"permutation_size": 2}, raises=TypeError),
        Sample((np.zeros((3,), np.int64),), {"permutation_size": 3}, raises=TypeError),
        Sample((np.zeros((3,), np.int32),), {"permutation_size": 2}, raises=ValueError),
    ],
    "triangular_solve": [
        *across_dtypes(_solving(triangular(3, 3), numbers(3, 2)), FLOATS),
        *[
            _solving(
                triangular(3, 3),
                numbers(3, 2) if number & 1 else numbers(2, 3),
                "",
                **{flag: bool(number >> i & 1) for i, flag in enumerate(_FLAGS)},
            ).replace(order=1, batched=(), **({} if number % 3 == 1 else {"differentiable": ()}))
            for number in range(16)
        ],
        *[
            _solving(
                C3,
                C32 if left else C23,
                left_side=left,
                lower=left == transpose,
                transpose_a=transpose,
                conjugate_a=conjugate,
            ).replace(order=1, batched=(), **({} if left else {"differentiable": ()}))
            for left in (False, True)
            for transpose in (False, True)
            for conjugate in (False, True)
        ],
        _solving(triangular(2, 2, 3, 3), numbers(2, 2, 3, 2), lower=False),
        _solving(triangular(1, 1), numbers(1, 1), note="one"),
        _solving(np.zeros((0, 0)), np.zeros((0, 2)), note="empty"),
        _solving(np.eye(3), np.zeros((3, 0)), note="nothing to solve"),
        _solving(np.zeros((0, 3, 3)), np.zeros((0, 3, 2)), note="empty batch"),
        Sample((triangular(3, 3), numbers(2, 3)), _solve(), raises=ValueError),
        Sample((numbers(3, 2), numbers(3, 2)), _solve(), raises=ValueError),
        Sample((numbers(3), numbers(3, 2)), _solve(), raises=TypeError),
        Sample((triangular(2, 3, 3), numbers(3, 3, 2)), _solve(), raises=TypeError),
        Sample((triangular(3, 3), numbers(3, 2).astype(np.float64)), _solve(), raises=TypeError),
        Sample((np.eye(3, dtype=int), np.eye(3, dtype=int)), _solve(), raises=TypeError),
    ],
}
