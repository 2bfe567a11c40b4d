"""Samples of sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.testing.sample import ALL_DTYPES, BOOLS, FLOATS, INTEGERS, Sample, across_dtypes
from dovetail.testing.samples.shape import complex_numbers, numbers

TIES = np.array([[3, 1, 3, 2, 1], [0, 0, 5, 5, 0]])
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, -np.nan, 1.0, -0.0, 0.0], np.float32)
LONG = np.sin(np.arange(1, 400, dtype=np.float32) * 7)


def _sort(dimension: int, num_keys: int = 1, is_stable: bool = True) -> dict[str, Any]:
    return {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}


def _top(k: int, axis: int) -> dict[str, Any]:
    return {"k": k, "axis": axis}


def _positions(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


def _lower_ends(x: np.ndarray[Any, Any], number: int) -> np.ndarray[Any, Any]:
    """Another array, sorted as the given one is: its first elements are the very first."""
    return np.where(np.arange(x.shape[-1]) < number + 1, x[..., :1], x)


SAMPLES: dict[str, list[Sample]] = {
    "searchsorted": [
        *[
            sample
            for side in ("left", "right")
            for sample in (
                *across_dtypes(
                    Sample((np.sort(TIES), TIES[:, :3]), {"side": side}, vary=_lower_ends),
                    ALL_DTYPES,
                ),
                Sample((np.sort(SPECIAL), SPECIAL), {"side": side}, vary=_lower_ends),
                Sample((np.sort(LONG), np.tile(LONG, 3)), {"side": side}, batched=()),
            )
        ],
        Sample((np.sort(numbers(3, 4)), numbers(3, 0)), {"side": "left"}, vary=_lower_ends),
        Sample((numbers(0), numbers(2)), {"side": "left"}, raises=ValueError),
        Sample((numbers(2), numbers(2)), {"side": "middle"}, raises=ValueError),
        Sample((numbers(2, 3), numbers(3)), {"side": "left"}, raises=ValueError),
        Sample((numbers(2), TIES[0]), {"side": "left"}, raises=TypeError),
    ],
    "sort": [
        *across_dtypes(
            Sample((TIES, _positions(2, 5)), _sort(1), differentiable=()), ALL_DTYPES, 0
        ),
        Sample((numbers(3, 4),), _sort(0), order=1),
        Sample((numbers(7),), _sort(0, is_stable=False)),
        Sample((numbers(5), numbers(5) ** 2, _positions(5)), _sort(0)),
        Sample((TIES[0], -numbers(5), _positions(5)), _sort(0, 2)),
        Sample((TIES[1] / 2, TIES[0] / 2, _positions(5)), _sort(0, 3), differentiable=()),
        Sample((SPECIAL, _positions(9)), _sort(0), differentiable=(), note="special values"),
        Sample((SPECIAL,), _sort(0), differentiable=(), note="special values alone"),
        Sample(
            (complex_numbers(SPECIAL, SPECIAL[::-1]), _positions(9)), _sort(0), differentiable=()
        ),
        Sample((LONG, _positions(399)), _sort(0), differentiable=(), batched=()),
        Sample((numbers(3, 0),), _sort(1), note="empty"),
        Sample((numbers(0, 3),), _sort(1), note="empty"),
        Sample((numbers(1),), _sort(0), note="one"),
        Sample((numbers(3), numbers(2)), _sort(0), raises=TypeError),
        Sample((numbers(3),), _sort(1), raises=ValueError),
        Sample((numbers(3),), _sort(0, 2), raises=ValueError),
        Sample((numbers(3),), _sort(0, 0), raises=ValueError),
    ],
    "order_statistics": [
        Sample((numbers(3, 4), np.array([2, 2, 0], np.int32)), {}, order=1),
        *across_dtypes(
            Sample((TIES, np.array([3, 0], np.int32)), {}, differentiable=(), batched=(0,)),
            (*BOOLS, *INTEGERS, *FLOATS),
            0,
        ),
        Sample((numbers(2, 3), np.array([[0, 2], [1, 1]], np.int32)), {}),
        Sample((numbers(5), np.array([-1, 4, 7], np.int32)), {}, note="out of bounds"),
        Sample((SPECIAL, np.arange(9, dtype=np.int32)), {}, differentiable=(), note="special"),
        Sample((LONG, np.array([200, 7], np.int32)), {}, differentiable=(), batched=()),
        Sample((numbers(0, 3), np.array([1], np.int32)), {}, note="empty"),
        Sample((numbers(3), np.zeros(0, np.int32)), {}, note="none"),
        Sample((numbers(0), np.array([1], np.int32)), {}, raises=ValueError),
        Sample((numbers(2, 3), np.zeros((3, 1), np.int32)), {}, raises=ValueError),
        Sample((numbers(3), np.array([1.0])), {}, raises=TypeError),
        Sample((numbers(3) + 1j, np.array([1], np.int32)), {}, raises=TypeError),
    ],
    "top_k": [
        *across_dtypes(
            Sample((TIES,), _top(3, 1), differentiable=()), (*BOOLS, *INTEGERS, *FLOATS)
        ),
        Sample((numbers(3, 4),), _top(2, 0)),
        Sample((numbers(2, 3, 4),), _top(2, 1)),
        Sample((numbers(5),), _top(5, 0)),
        Sample((numbers(5),), _top(0, 0), note="none"),
        Sample((SPECIAL,), _top(9, 0), differentiable=(), note="special values"),
        Sample((LONG,), _top(20, 0), differentiable=(), batched=()),
        Sample((numbers(0, 3),), _top(2, 1), note="empty"),
        Sample((numbers(3),), _top(4, 0), raises=ValueError),
        Sample((numbers(3),), _top(-1, 0), raises=ValueError),
        Sample((numbers(3),), _top(1, 1), raises=ValueError),
        Sample((numbers(3) + 1j,), _top(1, 0), raises=TypeError),
    ],
    "true_positions": [
        *[Sample((TIES > 1,), {"size": size}) for size in (0, 1, 3, 5, 7)],
        *[Sample((np.full(9, value),), {"size": 4}) for value in (False, True)],
        Sample((LONG > 0.5,), {"size": 150}, batched=()),
        Sample((np.zeros((2, 0), bool),), {"size": 2}, note="empty"),
        Sample((np.zeros((0, 2), bool),), {"size": 2}, note="empty"),
        Sample((numbers(3) > 0,), {"size": -1}, raises=ValueError),
        Sample((np.array(True),), {"size": 1}, raises=ValueError),
        Sample((numbers(3),), {"size": 1}, raises=TypeError),
    ],
}
