"""Samples of special functions, and of operations on numbers that few programs use."""

from __future__ import annotations

import numpy as np

from dovetail.testing.sample import COMPLEXES, FLOATS, INTEGERS, SIGNED, Sample, across_dtypes
from dovetail.testing.samples.elementwise import (
    COMPARED,
    EQUAL,
    NAN,
    SPECIAL,
    counts,
    extremes,
    integer_pairs,
    refused,
    turned,
    values,
)
from dovetail.testing.samples.functions import at, chosen, domain, far_out, integers

# Every special value, also -NaN, beside every other one.
_EACH = np.array([*SPECIAL, np.copysign(NAN, -1.0)])
ALL_PAIRS = across_dtypes(
    Sample((np.repeat(_EACH, _EACH.size), np.tile(_EACH, _EACH.size)), differentiable=()), FLOATS
)
ORDERED = COMPARED + ALL_PAIRS

COEFFICIENTS = tuple(np.array(c) for c in (1.5, -0.5, 0.25, 2.0))
SERIES = [
    *across_dtypes(Sample((values((4,), -1, 1), *COEFFICIENTS), {"unroll": None}), FLOATS),
    *across_dtypes(
        Sample((turned(values((4,), 0.5, 1)), *COEFFICIENTS), {"unroll": None}, tolerance=16),
        COMPLEXES,
    ),
    *(
        Sample((counts((5,), -9, 9).astype(d), *(np.array(n, d) for n in (3, 5, 7))), _p)
        for d in (*SIGNED, INTEGERS[-1])
        for _p in [{"unroll": None}]
    ),
    *(
        Sample((values((2, 3), -1, 1), *COEFFICIENTS), {"unroll": n}, batched=(0, 2))
        for n in (1, 2, 3, 9)
    ),
    *(
        Sample(
            (values((2, 3), -1, 1), values((2, 1), 1, 2), np.array(2.0), values((1, 3), 1, 2, 1)),
            {"unroll": n},
            linear=(1, 2, 3),
        )
        for n in (None, 1)
    ),
    Sample((np.array(0.5), values((3,), 1, 2), np.array(2.0)), {"unroll": None}, linear=(1,)),
    Sample((np.array(0.5), np.array(3.0)), {"unroll": None}, linear=(1,)),
    Sample((np.ones((0,), np.float32), np.float32(1), np.float32(2)), {"unroll": None}),
    Sample((np.ones(2),), {"unroll": None}, raises=TypeError),
    Sample((np.ones(2), np.ones(2, np.float32)), {"unroll": None}, raises=TypeError),
    Sample((np.ones(2), np.ones(3)), {"unroll": None}, raises=TypeError),
    Sample((np.array([True]), np.array([True])), {"unroll": None}, raises=TypeError),
]

SAMPLES: dict[str, list[Sample]] = {
    "eq_to": EQUAL + ALL_PAIRS + refused("biufc", 2),
    "le_to": ORDERED + refused("biuf", 2),
    "lt_to": ORDERED + refused("biuf", 2),
    "mulhi": integer_pairs(INTEGERS)
    + [Sample((counts((2, 3), -99, 99), np.array(2**40))), Sample((np.int32(7), extremes("int32")))]
    + [Sample((np.ones((0,), np.uint8), np.uint8(3)))]
    + refused("iu", 2),
    "log2": domain(0.1, 3)
    + far_out(-30, 30)
    + at(*(2.0**n for n in range(-14, 16)), 0.70710678, 0.99, 1.01, special=(), tolerance=1)
    + chosen(),
    "one_minus_square": [s for s in domain(-0.9, 0.9) + far_out(-30, 0) if s.raises is None]
    + at(1.0, -1.0, 0.9999, -1.001)
    + integers()
    + refused("iufc"),
    "polynomial": SERIES,
}
