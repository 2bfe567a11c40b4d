"""Samples of static and dynamic slices, and of padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.testing.sample import Sample
from dovetail.testing.samples.shape import SPECIAL, moved, numbers


def _slice(start: Any, limit: Any, strides: Any = None) -> dict[str, Any]:
    return {"start_indices": start, "limit_indices": limit, "strides": strides}


def _pad(*config: tuple[int, int, int]) -> dict[str, Any]:
    return {"padding_config": config}


def _at(*indices: int, dtype: Any = np.int32) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(i, dtype) for i in indices]


def _next(x: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
    """Other positions, some out of bounds, or other numbers, for other elements of a batch."""
    return np.asarray(x + np.asarray(index, x.dtype))


SAMPLES: dict[str, list[Sample]] = {
    "slice": [
        *moved(Sample((numbers(5, 6),), _slice((1, 0), (4, 6), (2, 3)), linear=(0,))),
        Sample((numbers(5, 6),), _slice((1, 2), (3, 5)), linear=(0,)),
        Sample((numbers(5),), _slice((2,), (2,)), linear=(0,), note="nothing"),
        Sample((numbers(7),), _slice((0,), (6,), (4,)), linear=(0,), note="not up to the end"),
        Sample((numbers(0, 2),), _slice((0, 1), (0, 2)), linear=(0,), note="empty"),
        Sample((np.float32(1),), _slice((), ()), linear=(0,)),
        Sample((numbers(3),), _slice((0,), (4,)), raises=TypeError, note="limit out of bounds"),
        Sample((numbers(3),), _slice((-1,), (3,)), raises=TypeError, note="negative start"),
        Sample((numbers(3),), _slice((2,), (1,)), raises=TypeError, note="limit before start"),
        Sample((numbers(3),), _slice((0,), (1,), (0,)), raises=TypeError, note="stride 0"),
        Sample((numbers(3),), _slice((0, 0), (1, 1)), raises=TypeError, note="other rank"),
    ],
    "pad": [
        *moved(Sample((numbers(2, 3), 1), _pad((1, 2, 0), (0, 1, 2)), linear=(0, 1))),
        Sample((numbers(4, 5), np.float32(2)), _pad((-1, 2, 1), (3, -2, 0)), linear=(0, 1)),
        Sample((numbers(4), np.float32(0)), _pad((-1, -2, 2)), linear=(0,)),
        Sample((numbers(4), np.float32(2)), _pad((-3, -1, 0)), linear=(1,), note="nothing left"),
        Sample((numbers(0, 2), np.float32(2)), _pad((1, 1, 3), (0, 0, 0)), linear=(0, 1)),
        Sample((numbers(1), np.float32(2)), _pad((0, 0, 3)), linear=(0, 1)),
        Sample((numbers(0, 3), np.float32(2)), _pad((1, -1, 0), (0, 0, 0)), linear=(0, 1)),
        Sample((numbers(2), np.float32(2)), _pad((3, -4, 0)), linear=(0, 1), note="all of it cut"),
        Sample((numbers(2), np.float32(2)), _pad((-4, 3, 1)), linear=(0, 1), note="all of it cut"),
        Sample((np.float32(1), np.float32(2)), _pad(), linear=(0, 1)),
        Sample((SPECIAL, np.float32(-0.0)), _pad((1, 1, 1)), differentiable=()),
        Sample((numbers(3), np.int32(0)), _pad((1, 1, 0)), raises=TypeError, note="dtypes"),
        Sample((numbers(3), numbers(1)), _pad((1, 1, 0)), raises=TypeError, note="no scalar"),
        Sample((numbers(3), np.float32(0)), _pad((0, 0, -1)), raises=ValueError),
        Sample((numbers(3), np.float32(0)), _pad((-2, -2, 0)), raises=ValueError),
        Sample((numbers(3), np.float32(0)), _pad(), raises=ValueError),
    ],
    "dynamic_slice": [
        *(
            s.replace(args=(s.args[0], *_at(1, 2)))
            for s in moved(
                Sample((numbers(4, 5),), {"slice_sizes": (2, 3)}, linear=(0,), vary=_next)
            )
        ),
        *(
            Sample((numbers(4), *_at(2, dtype=t)), {"slice_sizes": (2,)}, linear=(0,), vary=_next)
            for t in (np.int8, np.uint8, np.uint32, np.int64)
        ),
        Sample((numbers(4), *_at(9)), {"slice_sizes": (2,)}, linear=(0,), vary=_next, note="after"),
        Sample((numbers(4), *_at(-9)), {"slice_sizes": (2,)}, linear=(0,), note="before"),
        Sample((numbers(4), *_at(1)), {"slice_sizes": (0,)}, linear=(0,), note="nothing"),
        Sample((np.float32(1),), {"slice_sizes": ()}, linear=(0,)),
        Sample((numbers(4), *_at(0)), {"slice_sizes": (5,)}, raises=TypeError),
        Sample((numbers(4), *_at(0, 0)), {"slice_sizes": (1,)}, raises=TypeError),
        Sample((numbers(4), np.float32(0)), {"slice_sizes": (1,)}, raises=TypeError),
        Sample((numbers(4), np.zeros(1, int)), {"slice_sizes": (1,)}, raises=TypeError),
        Sample(
            (numbers(4, 4), np.int32(0), np.int64(0)), {"slice_sizes": (1, 1)}, raises=TypeError
        ),
    ],
    "dynamic_update_slice": [
        *(
            s.replace(args=(*s.args, *_at(1, 2)))
            for s in moved(Sample((numbers(4, 5), numbers(2, 3)), linear=(0, 1), vary=_next))
        ),
        Sample((numbers(4), numbers(2), *_at(9)), linear=(0, 1), vary=_next, note="after"),
        Sample((np.zeros(4), np.ones(2), *_at(-9, dtype=np.int64)), linear=(1,), note="before"),
        Sample((numbers(4), numbers(2), *_at(1, dtype=np.uint8)), linear=(0, 1), vary=_next),
        Sample((numbers(4), numbers(0), *_at(1)), linear=(0, 1), note="nothing"),
        Sample((np.float32(1), np.float32(2)), linear=(1,)),
        Sample((numbers(4), numbers(5), *_at(0)), raises=TypeError, note="too large"),
        Sample((numbers(4), np.float32(0), *_at(0)), raises=TypeError, note="other rank"),
        Sample((numbers(4), numbers(2, dtype=np.int32), *_at(0)), raises=TypeError),
        Sample((numbers(4), numbers(2)), raises=TypeError, note="no index"),
    ],
}
