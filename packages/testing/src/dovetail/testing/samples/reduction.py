"""Samples of reductions and of cumulative reductions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dovetail.testing.sample import (
    ALL_DTYPES,
    BOOLS,
    COMPLEXES,
    FLOATS,
    INTEGERS,
    Sample,
    across_dtypes,
    rejected,
)
from dovetail.testing.samples.shape import complex_numbers, numbers

NUMBERS = (*INTEGERS, *FLOATS, *COMPLEXES)
BIT_DTYPES = (*BOOLS, *INTEGERS)

#: Values whose sums and products each dtype can represent.
SMALL = np.array([[1, 2, 3, 1], [2, 1, 1, 3], [3, 1, 2, 2]])
NANS = np.array([[1, np.nan, 3], [np.inf, 2, -np.inf], [np.inf, -np.inf, 0]], np.float32)
TIES = np.array([[3.0, 1, 3, 2], [2, 2, 2, 2], [-0.0, 0.0, -1, 0]], np.float32)
ZEROS = np.array([[0.0, 2, 3], [0, 0, 1], [1, 2, 3]], np.float32)
OVERFLOWING = np.array([[1000.0, -1000, 1000], [-np.inf, -np.inf, 1], [np.inf, 1, -np.inf]])
LONG = np.sin(np.arange(1, 400, dtype=np.float32)).reshape(7, 57)


def _axes(*axes: int, **more: Any) -> dict[str, Any]:
    return {"axes": axes, **more}


def _errors(dtypes: Iterable[Any], **more: Any) -> list[Sample]:
    return [
        *rejected(Sample((SMALL,), _axes(0, **more)), dtypes),
        Sample((SMALL.astype(np.int32),), _axes(2, **more), raises=ValueError),
        Sample((SMALL.astype(np.int32),), _axes(0, 0, **more), raises=ValueError),
    ]


def _arithmetic(linear: tuple[int, ...] = (), **more: Any) -> list[Sample]:
    return [
        *across_dtypes(Sample((SMALL,), _axes(0, **more), linear=linear), NUMBERS),
        *across_dtypes(Sample((SMALL,), _axes(0, 1, **more), linear=linear), FLOATS),
        Sample((SMALL.reshape(2, 3, 2).astype(np.float32),), _axes(0, 2, **more), linear=linear),
        Sample((ZEROS,), _axes(1, **more), linear=linear, note="zeros"),
        Sample((NANS,), _axes(1, **more), differentiable=(), note="NaN and infinities"),
        Sample((numbers(3, 4),), _axes(**more), linear=linear, note="no axes"),
        Sample((np.float32(3),), _axes(**more), linear=linear, note="scalar"),
        Sample((numbers(0, 3),), _axes(0, **more), linear=linear, note="no elements"),
        Sample((numbers(0, 3),), _axes(1, **more), linear=linear, note="no results"),
        Sample((np.full(300, 100, np.int8),), _axes(0, **more), note="overflow"),
    ]


def _extreme() -> list[Sample]:
    return [
        *across_dtypes(Sample((SMALL,), _axes(0), differentiable=()), ALL_DTYPES),
        *across_dtypes(Sample((numbers(3, 4),), _axes(1)), (*FLOATS, *COMPLEXES)),
        Sample((numbers(2, 3, 2),), _axes(0, 2)),
        Sample((TIES,), _axes(1), differentiable=(), note="ties", signed_zeros=False),
        Sample((NANS,), _axes(1), differentiable=(), note="NaN and infinities"),
        Sample(
            (complex_numbers(NANS, NANS.T),),
            _axes(0),
            differentiable=(),
            batched=(),
            note="complex NaN",
        ),
        Sample((numbers(3, 4),), _axes(), note="no axes"),
        Sample((np.float32(3),), _axes(), note="scalar"),
        *across_dtypes(
            Sample((numbers(0, 3),), _axes(0), differentiable=(), note="no elements"),
            ALL_DTYPES[:-2],
        ),
        Sample((numbers(0, 3),), _axes(1), note="no results"),
        *_errors(()),
    ]


def _logical() -> list[Sample]:
    bits = np.array([[1, 3, 7], [5, 2, 6]])
    return [
        *across_dtypes(Sample((bits,), _axes(1)), BIT_DTYPES),
        Sample((bits > 2,), _axes(0, 1)),
        Sample((bits - 4,), _axes(0)),
        Sample((bits,), _axes(), note="no axes"),
        *across_dtypes(Sample((bits[:0],), _axes(0), note="no elements"), BIT_DTYPES[:4]),
        *_errors((np.float32, np.complex64)),
    ]


def _position() -> list[Sample]:
    return [
        *across_dtypes(
            Sample((TIES,), _axes(1, index_dtype=np.dtype(np.int32)), differentiable=()),
            ALL_DTYPES,
        ),
        *(
            Sample((numbers(3, 4),), _axes(0, index_dtype=np.dtype(t)))
            for t in (np.int8, np.uint8, np.int64)
        ),
        Sample((NANS,), _axes(1, index_dtype=np.dtype(np.int32)), note="NaN"),
        Sample((np.full(5, -np.inf),), _axes(0, index_dtype=np.dtype(np.int32))),
        Sample((np.full(5, np.inf),), _axes(0, index_dtype=np.dtype(np.int32))),
        Sample((LONG,), _axes(1, index_dtype=np.dtype(np.int32))),
        Sample((numbers(0, 3),), _axes(1, index_dtype=np.dtype(np.int32)), note="no results"),
        Sample((numbers(0, 3),), _axes(0, index_dtype=np.dtype(np.int32)), raises=ValueError),
        Sample((numbers(3),), _axes(1, index_dtype=np.dtype(np.int32)), raises=ValueError),
        Sample((numbers(3),), _axes(0, index_dtype=np.dtype(np.float32)), raises=TypeError),
    ]


def _along(axis: int, reverse: bool = False) -> dict[str, Any]:
    return {"axis": axis, "reverse": reverse}


def _cumulative(
    dtypes: Iterable[Any],
    linear: tuple[int, ...] = (),
    smooth: tuple[int, ...] | None = None,
    **more: Any,
) -> list[Sample]:
    return [
        *across_dtypes(
            Sample((SMALL,), _along(0), linear=linear, differentiable=smooth, **more), dtypes
        ),
        *(
            Sample((numbers(2, n),), _along(1, reverse), linear=linear, **more)
            for n, reverse in ((1, False), (5, False), (6, True))
        ),
        Sample((LONG,), _along(1), differentiable=(), batched=(), absolute=200),
        Sample((LONG,), _along(1, True), differentiable=(), batched=(), absolute=200),
        Sample((LONG.T,), _along(0), linear=linear, differentiable=(), absolute=200),
        Sample((NANS,), _along(1), differentiable=(), batched=(), note="NaN and infinities"),
        Sample((NANS,), _along(0, True), differentiable=(), note="NaN and infinities"),
        Sample((numbers(0, 3),), _along(0), linear=linear, note="empty"),
        Sample((numbers(3, 0),), _along(0), linear=linear, note="empty"),
        Sample((SMALL.astype(np.float32),), _along(2), raises=ValueError),
        Sample((SMALL > 1,), _along(0), raises=TypeError),
    ]


def _running_extreme() -> list[Sample]:
    ties = np.array([1 + 1j, 1 - 1j, 2 - 1j, 2 + 3j, 0.5, 2 + 3j, -1 + 2j, -1 - 2j])
    return [
        *_cumulative(NUMBERS, smooth=(), tolerance=0),
        *across_dtypes(Sample((ties,), _along(0), differentiable=()), COMPLEXES),
        Sample((np.tile(ties, (40, 1)),), _along(0), differentiable=(), batched=()),
        Sample((np.array([2 + 1j, 1 - 1j, 3 + 1j, 4 - 2j]),), _along(0)),
    ]


SAMPLES: dict[str, list[Sample]] = {
    "reduce_sum": [*_arithmetic((0,), out_sharding=None), *_errors((), out_sharding=None)],
    "reduce_prod": [*_arithmetic(), *_errors((bool,))],
    "reduce_max": _extreme(),
    "reduce_max_of_numbers": [s for s in _extreme() if "NaN" not in s.note],
    "reduce_min": _extreme(),
    "reduce_and": _logical(),
    "reduce_or": _logical(),
    "reduce_xor": _logical(),
    "argmax": _position(),
    "argmin": _position(),
    "cumsum": _cumulative(NUMBERS, (0,)),
    "cumprod": [*_cumulative(NUMBERS), Sample((ZEROS,), _along(1), note="zeros")],
    "cummax": _running_extreme(),
    "cummin": _running_extreme(),
    "cumlogsumexp": [
        *_cumulative((*FLOATS, *COMPLEXES), absolute=8),
        Sample((OVERFLOWING,), _along(1), differentiable=(), note="large numbers"),
    ],
    "linear_recurrence": [
        *across_dtypes(Sample((SMALL, SMALL[::-1]), _along(1), linear=(1,)), (*FLOATS, *COMPLEXES)),
        *(
            Sample((numbers(2, n) / 4, numbers(2, n)), _along(1, reverse), linear=(1,), absolute=8)
            for n, reverse in ((1, False), (5, False), (6, True))
        ),
        Sample((ZEROS, ZEROS.T), _along(0), linear=(1,), note="zeros"),
        Sample((numbers(0, 3), numbers(0, 3)), _along(0), linear=(1,), note="empty"),
        Sample((numbers(3), numbers(2)), _along(0), raises=TypeError),
        Sample((SMALL, SMALL), _along(0), raises=TypeError),
        Sample((numbers(3), numbers(3)), _along(1), raises=ValueError),
    ],
}
