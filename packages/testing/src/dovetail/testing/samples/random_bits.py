"""Samples of the bit generators of backends."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.ops.random.random_bits import RandomAlgorithm
from dovetail.testing.sample import Sample
from dovetail.testing.samples.random import WORDS

STATE = np.array([0xDEADBEEF, 17, 5, 2**31], np.uint32)
#: The counter is at its maximum, with no room for another block.
FULL = np.array([2**32 - 1] * 4, np.uint32)


def other_state(x: Any, i: int) -> Any:
    """Another state."""
    return x + np.array(i * 7919, x.dtype)


def _bits(key: Any, shape: Any, dtype: Any, algorithm: RandomAlgorithm) -> Sample:
    params = {
        "shape": shape,
        "dtype": np.dtype(dtype),
        "algorithm": algorithm,
        "out_sharding": None,
    }
    batched = () if algorithm is RandomAlgorithm.RNG_DEFAULT else (0,)
    return Sample((key,), params, batched=batched, vary=other_state)


SAMPLES: dict[str, list[Sample]] = {
    "philox4x32": [
        Sample(tuple(np.roll(WORDS, i) for i in range(6)), batched=(0, 3)),
        Sample((np.uint32(1), np.uint32(2), *[WORDS] * 4), batched=(), note="one key"),
        Sample((WORDS[:3], WORDS[3:], *[np.uint32(7)] * 3, WORDS[:3]), batched=(), note="counter"),
        Sample((WORDS[:0],) * 6, batched=(0,), note="empty"),
        Sample((WORDS,) * 4, raises=TypeError, note="four words"),
        Sample((*[WORDS] * 5, WORDS.astype(np.int32)), raises=TypeError),
    ],
    "rng_bit_generator": [
        *(
            _bits(key, shape, dtype, algorithm)
            for algorithm in RandomAlgorithm
            for key, shape, dtype in (
                (STATE, (), "uint32"),
                (STATE, (9,), "uint8"),
                (FULL, (4, 3), "uint16"),
                (FULL, (3, 5, 3), "uint32"),
                (STATE, (1, 3, 2), "uint64"),
                (STATE.view(np.uint64), (3,), "uint64"),
                (FULL.view(np.uint64), (2, 0), "uint32"),
            )
        ),
        *(
            _bits(key, (2,), dtype, RandomAlgorithm.RNG_PHILOX).replace(raises=TypeError)
            for key, dtype in (
                (STATE, "int32"),
                (STATE, "float32"),
                (STATE[:2], "uint32"),
                (STATE[None], "uint32"),
                (STATE.astype(np.int32), "uint32"),
                (STATE.astype(np.uint64), "uint32"),
            )
        ),
    ],
}
