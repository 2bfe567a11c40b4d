"""Samples of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.testing.sample import COMPLEXES, FLOATS, Sample, across_dtypes
from dovetail.testing.samples.shape import numbers

WIDE = (*FLOATS[:2], *COMPLEXES)


def triangular(*shape: int, complex_too: bool = False) -> np.ndarray[Any, Any]:
    """Well-conditioned matrices, the triangles of which are so too."""
    size = shape[-1]
    small = numbers(*shape) / 16
    if complex_too:
        small = small + 1j * numbers(*shape)[..., ::-1] / 16
    return np.asarray(small + np.eye(size) * np.arange(2, size + 2)).astype(
        np.complex64 if complex_too else np.float32
    )


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


_FLAGS = ("left_side", "lower", "transpose_a", "unit_diagonal")
C3, C32, C23 = (
    triangular(3, 3, complex_too=True),
    numbers(3, 2) + 1j * numbers(3, 2)[::-1],
    numbers(2, 3) + 1j * numbers(2, 3)[::-1],
)

SAMPLES: dict[str, list[Sample]] = {
    "triangular_solve": [
        *across_dtypes(_solving(triangular(3, 3), numbers(3, 2)), FLOATS),
        *[
            _solving(
                triangular(3, 3),
                numbers(3, 2) if number & 1 else numbers(2, 3),
                **{flag: bool(number >> i & 1) for i, flag in enumerate(_FLAGS)},
            ).replace(order=1)
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
            ).replace(differentiable=(0, 1) if left else ())
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
        Sample((numbers(3), numbers(3, 2)), _solve(), raises=ValueError),
        Sample((triangular(2, 3, 3), numbers(3, 3, 2)), _solve(), raises=ValueError),
        Sample((triangular(3, 3), numbers(3, 2).astype(np.float64)), _solve(), raises=TypeError),
        Sample((np.eye(3, dtype=int), np.eye(3, dtype=int)), _solve(), raises=TypeError),
    ],
}
