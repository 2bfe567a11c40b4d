"""Samples of the shape operations, of joining and splitting, and of `iota`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from dovetail.testing.sample import (
    COMPLEXES,
    FLOATS,
    INTEGERS,
    Sample,
    across_dtypes,
)

#: One dtype of each kind and width class, for operations that only move elements.
FEW_DTYPES = (
    *(np.dtype(name) for name in ("bool", "int8", "int32", "uint64", "float32", "complex64")),
    np.dtype(ml_dtypes.bfloat16),
)


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Small numbers in no order; the first hundred are distinct."""
    count = int(np.prod(shape, dtype=int))
    return ((np.arange(count) * 37 % 101 - 50) / 8).astype(dtype).reshape(shape)


def complex_numbers(real: Any, imag: Any) -> np.ndarray[Any, Any]:
    """Complex numbers with these parts; arithmetic would spread NaN and infinities."""
    out = np.empty(np.shape(real), np.complex64)
    out.real, out.imag = real, imag
    return out


def moved(sample: Sample) -> list[Sample]:
    """A sample in a few dtypes."""
    return across_dtypes(sample, FEW_DTYPES)


def _broadcast(shape: tuple[int, ...], dims: tuple[int, ...]) -> dict[str, Any]:
    return {"shape": shape, "broadcast_dimensions": dims, "sharding": None}


def _reshape(*sizes: int) -> dict[str, Any]:
    return {"new_sizes": sizes, "dimensions": None, "sharding": None}


def _iota(dtype: Any, shape: tuple[int, ...], dimension: int) -> dict[str, Any]:
    return {"dtype": np.dtype(dtype), "shape": shape, "dimension": dimension, "sharding": None}


SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5], np.float32)

SAMPLES: dict[str, list[Sample]] = {
    "broadcast_in_dim": [
        *moved(Sample((numbers(3, 1),), _broadcast((2, 3, 4), (1, 2)), linear=(0,))),
        Sample((np.float32(2),), _broadcast((2, 3), ()), linear=(0,)),
        Sample((np.float32(2),), _broadcast((), ()), linear=(0,)),
        Sample((numbers(0, 3),), _broadcast((0, 2, 3), (0, 2)), linear=(0,), note="empty"),
        Sample((numbers(1),), _broadcast((0, 2), (1,)), linear=(0,), note="to nothing"),
        Sample((SPECIAL,), _broadcast((2, 6), (1,)), differentiable=(), note="special values"),
        Sample((numbers(3),), _broadcast((4,), (0,)), raises=TypeError, note="other size"),
        Sample((numbers(2, 3),), _broadcast((3, 2), (1, 0)), raises=TypeError, note="permuted"),
        Sample((numbers(2, 3),), _broadcast((2, 3), (0,)), raises=TypeError, note="too few"),
    ],
    "reshape": [
        *moved(Sample((numbers(2, 6),), _reshape(3, 4), linear=(0,))),
        Sample((np.float32(2),), _reshape(1, 1), linear=(0,)),
        Sample((numbers(1, 1),), _reshape(), linear=(0,)),
        Sample((numbers(0, 3),), _reshape(5, 0), linear=(0,), note="empty"),
        Sample((numbers(2, 3),), _reshape(5), raises=TypeError, note="other size"),
    ],
    "transpose": [
        *moved(Sample((numbers(2, 3, 4),), {"permutation": (2, 0, 1)}, linear=(0,))),
        Sample((np.float32(2),), {"permutation": ()}, linear=(0,)),
        Sample((numbers(0, 3),), {"permutation": (1, 0)}, linear=(0,), note="empty"),
        Sample((numbers(2, 3),), {"permutation": (0, 0)}, raises=TypeError),
        Sample((numbers(2, 3),), {"permutation": (0,)}, raises=TypeError),
    ],
    "squeeze": [
        *moved(Sample((numbers(1, 3, 1),), {"dimensions": (0, 2)}, linear=(0,))),
        Sample((numbers(2, 1, 3),), {"dimensions": (1,)}, linear=(0,)),
        Sample((numbers(1),), {"dimensions": (0,)}, linear=(0,)),
        Sample((numbers(0, 1),), {"dimensions": (1,)}, linear=(0,), note="empty"),
        Sample((numbers(2, 1),), {"dimensions": (0,)}, raises=ValueError, note="size 2"),
    ],
    "rev": [
        *moved(Sample((numbers(2, 3, 4),), {"dimensions": (0, 2)}, linear=(0,))),
        Sample((numbers(3),), {"dimensions": ()}, linear=(0,)),
        Sample((numbers(0, 3),), {"dimensions": (0, 1)}, linear=(0,), note="empty"),
        Sample((SPECIAL,), {"dimensions": (0,)}, differentiable=(), note="special values"),
    ],
    "tile": [
        *moved(Sample((numbers(2, 3),), {"reps": (2, 3)}, linear=(0,))),
        Sample((numbers(2, 3),), {"reps": (1, 1)}, linear=(0,)),
        Sample((numbers(2, 3),), {"reps": (0, 2)}, linear=(0,), note="none"),
        Sample((numbers(0, 3),), {"reps": (2, 2)}, linear=(0,), note="empty"),
        Sample((np.float32(2),), {"reps": ()}, linear=(0,)),
        Sample((numbers(2, 3),), {"reps": (2,)}, raises=ValueError),
        Sample((numbers(2),), {"reps": (-1,)}, raises=ValueError),
    ],
    "concatenate": [
        *moved(
            Sample(
                (numbers(2, 3), numbers(2, 1), numbers(2, 2)),
                {"dimension": 1},
                linear=(0, 1, 2),
            )
        ),
        Sample((numbers(2, 3), numbers(0, 3)), {"dimension": 0}, linear=(0, 1), note="empty"),
        Sample((np.zeros((2, 3)), numbers(2, 3, dtype=float)), {"dimension": 0}, linear=(1,)),
        Sample((numbers(3),), {"dimension": 0}, linear=(0,), note="one"),
        Sample((SPECIAL, -SPECIAL), {"dimension": 0}, differentiable=(), note="special values"),
        Sample((numbers(2, 3), numbers(3, 2)), {"dimension": 0}, raises=TypeError),
        Sample((numbers(2), numbers(2, 3)), {"dimension": 0}, raises=TypeError),
        Sample((numbers(2), numbers(2)), {"dimension": 1}, raises=TypeError),
        Sample((numbers(2), numbers(2, dtype=np.int32)), {"dimension": 0}, raises=TypeError),
    ],
    "stack": [
        *moved(Sample((numbers(2, 3), numbers(2, 3) + 1), {"axis": 1}, linear=(0, 1))),
        Sample((np.float32(1), np.float32(0)), {"axis": 0}, linear=(0,)),
        Sample((numbers(0, 2),), {"axis": 2}, linear=(0,), note="empty"),
        Sample((numbers(2), numbers(3)), {"axis": 0}, raises=ValueError),
        Sample((numbers(2), numbers(2)), {"axis": 2}, raises=ValueError),
        Sample((numbers(2), numbers(2, dtype=np.int32)), {"axis": 0}, raises=TypeError),
    ],
    "split": [
        *moved(Sample((numbers(5, 3),), {"sizes": (1, 4), "axis": 0}, linear=(0,))),
        Sample((numbers(2, 3),), {"sizes": (0, 2, 1), "axis": 1}, linear=(0,), note="empty part"),
        Sample((numbers(3),), {"sizes": (3,), "axis": 0}, linear=(0,), note="one"),
        Sample((numbers(3),), {"sizes": (1, 1), "axis": 0}, raises=ValueError),
        Sample((numbers(3),), {"sizes": (4, -1), "axis": 0}, raises=ValueError),
        Sample((numbers(3),), {"sizes": (3,), "axis": 1}, raises=ValueError),
    ],
    "unstack": [
        *moved(Sample((numbers(2, 3),), {"axis": 1}, linear=(0,))),
        Sample((numbers(3),), {"axis": 0}, linear=(0,)),
        Sample((numbers(2, 3),), {"axis": 2}, raises=ValueError),
    ],
    "iota": [
        *(Sample((), _iota(t, (2, 3), 1), batched=()) for t in (*INTEGERS, *FLOATS, *COMPLEXES)),
        Sample((), _iota(np.int32, (0,), 0), batched=(), note="empty"),
        Sample((), _iota(np.int8, (3, 1, 2), 0), batched=()),
        Sample((), _iota(bool, (3,), 0), raises=TypeError),
        Sample((), _iota(np.int32, (3,), 1), raises=ValueError),
    ],
}
