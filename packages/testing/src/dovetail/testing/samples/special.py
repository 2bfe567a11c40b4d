"""Samples of special functions, and of rarely used operations on numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.testing.sample import (
    COMPLEXES,
    FLOATS,
    INTEGERS,
    SIGNED,
    Sample,
    across_dtypes,
    rejected,
)
from dovetail.testing.samples.elementwise import (
    COMPARED,
    EQUAL,
    INF,
    NAN,
    SPECIAL,
    counts,
    extremes,
    integer_pairs,
    outside,
    refused,
    turned,
    values,
)
from dovetail.testing.samples.functions import at, chosen, domain, far_out, integers

# Every special value, -NaN included, beside every other one.
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

# Shapes and arguments of gamma distributions for each method of computation.
GAMMA_SHAPES = np.array([0.4, 0.6, 3.0, 4.5, 9.0, 12.5, 20.0, 40.0, 30.0, 0.05, 2.0, 20.0])
GAMMA_PLACES = np.array([0.3, 0.9, 1.2, 7.0, 10.0, 20.0, 18.0, 44.0, 80.0, 0.2, 30.0, 5.0])
BETA_SHAPES = np.array([0.4, 3.0, 4.5, 9.0, 0.5, 20.0, 60.0, 300.0, 0.05, 2.0])
BETA_OTHERS = np.array([0.6, 2.5, 30.0, 3.0, 5.0, 18.0, 200.0, 21.0, 0.3, 0.02])
BETA_PLACES = np.array([0.3, 0.8, 0.1, 0.7, 0.2, 0.5, 0.2, 0.95, 0.1, 0.999])
EVERY = np.array([0.0, -0.0, 1.0, 0.5, 1e-3, INF, -1.0, -INF, NAN])
UNIT = np.array([0.0, -0.0, 0.5, 1.0, 1e-30, -0.1, 1.1, NAN])


def distribution(*args: np.ndarray[Any, Any], second: tuple[int, ...]) -> list[Sample]:
    """A few samples of a function that takes long to compile: shapes, then an argument.

    Second derivatives are taken in the selected operands.
    """
    *shapes, place = args
    every = np.meshgrid(*[EVERY] * len(shapes), UNIT if len(shapes) > 1 else EVERY)
    small = Sample(tuple(a[:3] for a in args), differentiable=second, batched=(len(shapes),))
    mixed = (*(s[0] for s in shapes), place[:3])
    # Arguments of about one, because finite differences have steps of a fixed size.
    smooth = Sample(tuple(a[1:5] for a in args), order=1, batched=())
    return [
        small,
        *([smooth] if len(second) < len(args) else []),
        *across_dtypes(Sample(args, differentiable=(), batched=(), tolerance=16), FLOATS[1:2]),
        *across_dtypes(Sample(args, differentiable=(), batched=()), FLOATS[::2]),
        *across_dtypes(Sample(mixed, differentiable=(), batched=(0,)), FLOATS[3:]),
        *across_dtypes(
            Sample(tuple(e.ravel() for e in every), differentiable=(), batched=(), note="edges"),
            FLOATS[:1],
        ),
        Sample(tuple(np.ones((0,), np.float32) for _ in args), differentiable=(), batched=()),
        *rejected(Sample((np.ones(2),) * len(args)), outside("f")),
        Sample((np.ones(2, np.float32), *(np.ones(2) for _ in args[1:])), raises=TypeError),
        Sample((np.ones(2), *(np.ones(3) for _ in args[1:])), raises=TypeError),
    ]


def in_the_second(samples: list[Sample]) -> list[Sample]:
    """These samples, without derivative in the first operand."""
    return [s.replace(differentiable=(1,)) if s.order == 1 else s for s in samples]


# Orders and arguments of polygamma functions; those of zeta functions are greater by one.
ORDERS = np.array([1.0, 2.0, 3.0, 1.0, 4.0, 9.0, 1.0, 2.0, 12.0, 0.0])
ORDERED_PLACES = np.array([0.7, 2.5, 4.0, 6.0, 0.4, 3.0, 30.0, -0.7, 40.0, 2.5])

GAMMA = (GAMMA_SHAPES, GAMMA_PLACES)
BETA = (BETA_SHAPES, BETA_OTHERS, BETA_PLACES)

SAMPLES: dict[str, list[Sample]] = {
    "igamma": distribution(*GAMMA, second=(1,)),
    "igammac": distribution(*GAMMA, second=(1,)),
    "igamma_grad_a": in_the_second(distribution(*GAMMA, second=(1,))),
    "random_gamma_grad": in_the_second(distribution(*GAMMA, second=(1,))),
    "gamma_density": distribution(*GAMMA, second=(0, 1)),
    "regularized_incomplete_beta": [
        s.replace(differentiable=(2,)) if s.order == 1 else s
        for s in distribution(*BETA, second=(2,))
    ],
    "beta_density": distribution(*BETA, second=(0, 1, 2)),
    "bessel_i0e": domain(0.2, 3, "f") + domain(-30, -6, "f") + far_out(-30, 30),
    "bessel_i1e": domain(0.2, 3, "f") + domain(-30, -6, "f") + far_out(-30, 30) + at(7.99, 8.01),
    "polygamma": in_the_second(distribution(ORDERS, ORDERED_PLACES, second=(1,))),
    "zeta": in_the_second(distribution(np.maximum(ORDERS + 1, 2), ORDERED_PLACES, second=(1,))),
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
