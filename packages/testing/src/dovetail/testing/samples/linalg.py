"""Samples of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.testing.sample import BOOLS, COMPLEXES, FLOATS, Sample, across_dtypes, rejected
from dovetail.testing.samples.shape import numbers

WIDE = (*FLOATS[:2], *COMPLEXES)


def triangular(*shape: int, complex_too: bool = False) -> np.ndarray[Any, Any]:
    """Well-conditioned matrices, with well-conditioned triangles."""
    size = shape[-1]
    diagonal = np.eye(size) * np.arange(2, size + 2)
    x: np.ndarray[Any, Any] = (numbers(*shape) / 16 + diagonal).astype(np.float32)
    return with_imaginary(x) if complex_too else x


def with_imaginary(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Complex numbers with real parts `x`."""
    return np.asarray(x + 1j * numbers(*x.shape)[..., ::-1] / 16).astype(np.complex64)


def scaled(x: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
    """Other elements of a batch: the matrix itself, scaled up."""
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
    """Well-conditioned matrices whose rows need exchanging, and whose columns differ in length."""
    x: np.ndarray[Any, Any] = numbers(*shape) / 4 + np.eye(*shape[-2:], dtype=np.float32) * 9
    x = x[..., ::-1, :] * np.arange(1, shape[-1] + 1, dtype=np.float32) / 4
    return with_imaginary(x) if complex_too else x


def factored(*args: Any, **changes: Any) -> Sample:
    """A sample whose results are sums of many terms."""
    given: dict[str, Any] = {"vary": scaled, "tolerance": 64, "absolute": 64, "signed_zeros": False}
    return Sample(args, **given | changes)


def _step(*args: Any, note: str = "") -> Sample:
    return factored(*args, differentiable=(), note=note)


def _multiply(left: bool = True, transpose: bool = False) -> dict[str, Any]:
    return {"left": left, "transpose": transpose}


def _multiplying(
    a: Any, c: Any, note: str = "", *, left: bool = True, transpose: bool = False
) -> Sample:
    taus = np.broadcast_to(TAUS, (*a.shape[:-2], 3))[..., : min(a.shape[-2:])]
    return factored(
        a, taus.astype(a.dtype), c, params=_multiply(left, transpose), linear=(2,), note=note
    )


def _qr(full_matrices: bool = True, pivoting: bool = False) -> dict[str, Any]:
    return {"full_matrices": full_matrices, "pivoting": pivoting, "use_magma": None}


def _scale(alpha: float = 1.0, beta: float = 0.0) -> dict[str, Any]:
    return {"alpha": alpha, "beta": beta}


def _tridiagonal(
    *shape: int,
    middle: float = 6,
    perturb_singular: bool = False,
    complex_too: bool = False,
    **changes: Any,
) -> Sample:
    """Diagonals with NaN in the elements that are not read, and right-hand sides."""
    vector = shape[:-1]
    dl, du = numbers(*vector) / 8, numbers(*vector)[..., ::-1] / 8 + 1
    d = np.full(vector, middle, np.float32)
    args = [with_imaginary(v) if complex_too else v for v in (dl, d, du, numbers(*shape))]
    args[0][..., :1] = args[2][..., -1:] = np.nan
    given: dict[str, Any] = {"params": {"perturb_singular": perturb_singular}, "linear": (3,)}
    return factored(*args, **given | changes)


V4 = np.ones(4, np.float32)
TAUS = np.array([0.5, 1.25, 2.0], np.float32)
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
    "geqrf": [
        *across_dtypes(_step(general(3, 3)), WIDE),
        _step(general(3, 3, complex_too=True)),
        _step(general(2, 4, 2)),
        _step(general(2, 4)),
        _step(np.zeros((3, 2)), note="zero"),
        _step(np.array([[-3.0, 1e300], [0, 4e300]]), note="nothing below"),
        _step(np.array([[3e-300j, 1], [4e-300, 2]]), note="small"),
        _step(np.zeros((3, 0)), note="empty"),
        _step(np.zeros((0, 2, 2)), note="empty batch"),
        *rejected(Sample((general(2, 2),)), (*FLOATS[2:], *BOOLS, np.int32)),
        Sample((numbers(3),), raises=TypeError),
    ],
    "geqp3": [
        *across_dtypes(_step(general(3, 3)), WIDE),
        _step(general(3, 3, complex_too=True)),
        _step(general(2, 4, 2)),
        _step(general(2, 4)),
        _step(np.zeros((3, 2)), note="zero"),
        _step(np.array([[1e-200, 1e200], [2e-200, 2e200]]), note="small and large"),
        _step(np.zeros((0, 2)), note="empty"),
        _step(np.zeros((0, 2, 2)), note="empty batch"),
        Sample((np.eye(2, dtype=int),), raises=TypeError),
        Sample((numbers(3),), raises=TypeError),
    ],
    "householder_product": [
        *across_dtypes(factored(general(3, 3), TAUS), WIDE),
        factored(general(3, 2, complex_too=True), with_imaginary(TAUS)[:2]),
        factored(general(2, 4, 3), np.stack([TAUS, -TAUS])[:, :2], order=1),
        factored(general(3, 3), 0 * TAUS, note="nothing to reflect"),
        factored(general(3, 2), TAUS[:0], order=1, note="no reflections"),
        factored(np.zeros((3, 0)), np.zeros(0), note="empty"),
        factored(np.zeros((0, 2, 2)), np.zeros((0, 2)), note="empty batch"),
        *rejected(Sample((general(2, 2), TAUS[:2])), (*FLOATS[2:], np.int32)),
        Sample((general(2, 2), TAUS[:2] + 0j), raises=TypeError),
        Sample((general(2, 3), TAUS[:2]), raises=ValueError),
        Sample((general(3, 2), TAUS), raises=ValueError),
        Sample((general(2, 3, 2), TAUS[:2]), raises=TypeError),
        Sample((numbers(3), TAUS), raises=TypeError),
    ],
    "ormqr": [
        *across_dtypes(_multiplying(general(3, 3), numbers(3, 2)), WIDE),
        *[
            _multiplying(
                general(3, 2, complex_too=kind),
                with_imaginary(c) if kind else c,
                left=left,
                transpose=transpose,
            ).replace(order=1, **({} if kind else {"differentiable": ()}))
            for left, c in ((True, numbers(3, 2)), (False, numbers(2, 3)))
            for transpose in (False, True)
            for kind in (False, True)
        ],
        _multiplying(general(2, 3, 4), numbers(2, 3, 1)).replace(order=1),
        _multiplying(np.zeros((3, 0)), np.ones((3, 2)), note="no reflections"),
        _multiplying(np.zeros((3, 2)), np.zeros((3, 0)), note="empty"),
        _multiplying(np.zeros((0, 2, 2)), np.zeros((0, 2, 2)), note="empty batch"),
        _multiplying(general(2, 2), numbers(2, 2) + 0j).replace(raises=TypeError),
        _multiplying(general(3, 2), numbers(2, 2)).replace(raises=ValueError),
        _multiplying(general(3, 2), numbers(2, 2), left=False).replace(raises=ValueError),
        _multiplying(general(3, 2), numbers(3)).replace(raises=TypeError),
        _multiplying(general(3, 2), numbers(2, 3, 2)).replace(raises=TypeError),
        Sample((general(3, 2), TAUS, numbers(3, 2)), _multiply(), raises=ValueError),
    ],
    "qr": [
        *across_dtypes(factored(general(3, 3), params=_qr()), FLOATS[:2]),
        # Signs jump where complex numbers happen to be real.
        *across_dtypes(factored(general(3, 3), params=_qr(), differentiable=()), COMPLEXES),
        factored(general(3, 3, complex_too=True), params=_qr(full_matrices=False)),
        *[
            factored(general(*shape), params=_qr(full, pivoting), order=1)
            for shape in ((4, 2), (2, 4))
            for full in (False, True)
            for pivoting in (False, True)
        ],
        factored(general(2, 2, 4, complex_too=True), params=_qr(pivoting=True), order=1),
        factored(general(2, 4, 2, complex_too=True), params=_qr(), order=1),
        factored(np.zeros((3, 2)), params=_qr(), differentiable=(), note="zero"),
        factored(np.zeros((0, 0)), params=_qr(), note="empty"),
        factored(np.zeros((3, 0)), params=_qr(pivoting=True), differentiable=(), note="empty"),
        factored(np.zeros((0, 3)), params=_qr(pivoting=True), note="empty"),
        factored(np.zeros((0, 3, 2)), params=_qr(full_matrices=False), note="empty batch"),
        *rejected(Sample((general(2, 2),), _qr()), (*FLOATS[2:], np.int32)),
        Sample((numbers(3),), _qr(), raises=TypeError),
    ],
    "symmetric_product": [
        *across_dtypes(
            factored(numbers(3, 2), numbers(3, 3), params=_scale(2.0, 0.5)),
            FLOATS,
        ),
        factored(numbers(2, 2, 3), numbers(2, 2, 2), params=_scale(1.0, 3.0), order=1),
        factored(numbers(2, 3), np.full((2, 2), np.nan, np.float32), params=_scale(), order=1),
        factored(numbers(2, 0), numbers(2, 2), params=_scale(1.0, 2.0), note="nothing to add"),
        factored(np.zeros((0, 2)), np.zeros((0, 0)), params=_scale(), note="empty"),
        *rejected(Sample((numbers(2, 2), numbers(2, 2)), _scale()), (*COMPLEXES, np.int32)),
        Sample((numbers(2, 3), numbers(3, 3)), _scale(), raises=ValueError),
        Sample((numbers(2, 3), numbers(2, 3)), _scale(), raises=ValueError),
        Sample((numbers(2, 2, 3), numbers(2, 2)), _scale(), raises=TypeError),
        Sample((numbers(2), numbers(2, 2)), _scale(), raises=TypeError),
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
    "tridiagonal_solve": [
        *across_dtypes(_tridiagonal(4, 2), WIDE),
        _tridiagonal(3, 2, complex_too=True),
        _tridiagonal(2, 3, 1, order=1),
        _tridiagonal(5, 1, perturb_singular=True, order=1),
        _tridiagonal(3, 2, perturb_singular=True, complex_too=True, order=1),
        _tridiagonal(4, 1, middle=0, order=1, note="rows are exchanged"),
        _tridiagonal(4, 1, middle=0, perturb_singular=True, order=1),
        _tridiagonal(3, 1, middle=0, differentiable=(), linear=(), note="singular"),
        _tridiagonal(1, 1, order=1, note="one"),
        _tridiagonal(0, 2, note="empty"),
        _tridiagonal(3, 0, note="nothing to solve"),
        _tridiagonal(0, 3, 2, note="empty batch"),
        *rejected(
            Sample((V4, V4, V4, numbers(4, 1)), {"perturb_singular": False}),
            (*FLOATS[2:], np.int32),
        ),
        Sample((V4, V4, V4, V4), {"perturb_singular": False}, raises=TypeError),
        Sample((V4[1:], V4, V4, numbers(4, 1)), {"perturb_singular": False}, raises=TypeError),
        Sample((V4, V4, V4, numbers(3, 1)), {"perturb_singular": False}, raises=TypeError),
        Sample((V4, V4, V4, numbers(4, 1) + 0j), {"perturb_singular": False}, raises=TypeError),
    ],
}
