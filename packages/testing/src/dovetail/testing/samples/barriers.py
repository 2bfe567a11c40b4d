"""Samples of barriers and sinks."""

from __future__ import annotations

import numpy as np

from dovetail.testing.sample import ALL_DTYPES, Sample, across_dtypes
from dovetail.testing.samples.random import key_samples, keys
from dovetail.testing.samples.shape import numbers

SAMPLES: dict[str, list[Sample]] = {
    "optimization_barrier": [
        Sample((numbers(2, 3), np.arange(3), numbers())),
        Sample(
            tuple(np.ones((2, 0), dtype) for dtype in ALL_DTYPES), differentiable=(), batched=()
        ),
        Sample((numbers(2), numbers()), linear=(0, 1), batched=()),
        Sample((numbers(2), numbers()), linear=(1,), batched=()),
        Sample((np.ones(2, "float8_e4m3fn"), keys(2)), differentiable=(), batched=()),
    ],
    "stage": [
        *across_dtypes(Sample((np.ones((2, 0)),), batched=()), ALL_DTYPES),
        Sample((numbers(2, 3),), linear=(0,)),
        key_samples(keys(3)),
    ],
    "dce_sink": [
        Sample((x,), {"prevent_mlir_dce": prevent}, differentiable=())
        for x in (numbers(2, 3), np.arange(3))
        for prevent in (False, True)
    ],
}
