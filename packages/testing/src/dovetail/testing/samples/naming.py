"""Samples of names and of orders in memory."""

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
    "xla_metadata_value": [
        *across_dtypes(
            Sample((np.ones((2, 0)),), {"xla_metadata_kvs": (("a", "b"),)}, batched=()), ALL_DTYPES
        ),
        *across_dtypes(
            Sample((np.full((2, 3), 1 / 3),), {"xla_metadata_kvs": (("a", "b"),)}),
            ("float32", "float64"),
        ),
        Sample((numbers(2, 3),), {"xla_metadata_kvs": (("a", "1"), ("b", ""))}, linear=(0,)),
        key_samples(keys(3), xla_metadata_kvs=(("a", "b"),)),
    ],
    "layout_constraint": [
        *across_dtypes(
            Sample((np.ones((2, 0)),), {"major_to_minor": (1, 0)}, batched=()), ALL_DTYPES
        ),
        *across_dtypes(
            Sample((np.full((2, 3), 1 / 3),), {"major_to_minor": (1, 0)}), ("float32", "float64")
        ),
        Sample((numbers(2, 3),), {"major_to_minor": (1, 0)}, linear=(0,)),
        Sample((numbers(2, 3, 4),), {"major_to_minor": (1, 2, 0)}, linear=(0,)),
        key_samples(keys(3), major_to_minor=(0,)),
    ],
}
