"""Samples of names."""

from __future__ import annotations

import numpy as np

from dovetail.testing.sample import ALL_DTYPES, Sample, across_dtypes
from dovetail.testing.samples.random import key_samples, keys
from dovetail.testing.samples.shape import numbers

SAMPLES: dict[str, list[Sample]] = {
    "name": [
        *across_dtypes(Sample((np.ones((2, 0)),), {"name": "a"}, batched=()), ALL_DTYPES),
        Sample((numbers(2, 3),), {"name": "a"}, linear=(0,)),
        key_samples(keys(3), name="a"),
    ],
}
