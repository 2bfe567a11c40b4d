"""Samples of elementwise primitives whose operands may have several dtypes of one kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

INF, NAN = np.inf, np.nan
#: Values at which rules and lowerings fail most often.
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, INF, -INF, NAN)
#: Pairs of shapes; the second is broadcast to the first, or both to a common one.
PAIRS = (((), ()), ((0,), (0,)), ((3,), ()), ((), (2,)), ((2, 3), (1, 3)), ((2, 1), (1, 3)))


def values(shape: tuple[int, ...], low: float, high: float, seed: int = 0) -> Any:
    """Numbers spread over an open interval in no order, but the same in every run."""
    count = int(np.prod(shape, dtype=int))
    shift = 0.1 + 0.8 * ((0.3 + 0.618 * seed) % 1)
    spread = (np.arange(count) + shift) / max(count, 1)
    order = np.random.default_rng(seed).permutation(count)
    return np.asarray(low + (high - low) * spread[order]).reshape(shape)


def turned(x: Any, seed: int = 0) -> Any:
    """Complex numbers with these moduli, in all directions."""
    angles = np.random.default_rng(seed).uniform(0.2, 2 * np.pi, np.shape(x))
    return np.asarray(x * np.exp(1j * angles)).astype(np.complex128)


def counts(shape: tuple[int, ...], low: int, high: int, seed: int = 0) -> Any:
    """Integers from `low` to `high`, the same in every run."""
    return np.random.default_rng(seed).integers(low, high + 1, shape)


def extremes(dtype: Any) -> Any:
    """The lowest and highest integers of a dtype, and those around zero."""
    info = np.iinfo(dtype)
    around = [0, 1, 2, 7] + ([-1, -2, -7] if info.min else [info.max // 2])
    return np.array([info.min, info.min + 1, info.max, info.max - 1, *around], dtype)


def outside(kinds: str) -> tuple[Any, ...]:
    """The dtypes of 32 bits or fewer that are of none of the kinds (b, i, u, f, c)."""
    groups = {
        "b": BOOLS,
        "i": INTEGERS[2:3],
        "u": INTEGERS[4:5],
        "f": FLOATS[:1],
        "c": COMPLEXES[:1],
    }
    return tuple(d for kind, group in groups.items() if kind not in kinds for d in group)


def refused(kinds: str, operands: int = 1, **params: Any) -> list[Sample]:
    """Samples in each dtype that is not of the kinds."""
    one = Sample((np.ones(2),) * operands, params)
    mixed = [Sample((np.ones(2, np.float32), np.ones(2, np.int8)), params, raises=TypeError)]
    unequal = [Sample((np.ones(2, np.int32), np.ones(3, np.int32)), params, raises=TypeError)]
    return rejected(one, outside(kinds)) + (mixed + unequal if operands == 2 else [])


def pairs(
    dtypes: Iterable[Any], low: float, high: float, smooth: bool = True, **options: Any
) -> list[Sample]:
    """Two operands between `low` and `high`; the first dtype has all pairs of shapes."""
    first, *others = dtypes
    made = [
        sample
        for index, (left, right) in enumerate(PAIRS)
        for sample in across_dtypes(
            Sample(
                (values(left, low, high, index), values(right, low, high, index + 50)), **options
            ),
            [first],
        )
    ]
    both = Sample((values((5,), low, high, 1), values((5,), low, high, 2)), **options)
    made += across_dtypes(both, others)
    return made if smooth else [s.replace(differentiable=()) for s in made]


def integer_pairs(dtypes: Sequence[Any], **options: Any) -> list[Sample]:
    """All pairs of the extreme integers of each dtype."""
    return [
        Sample((np.repeat(e, len(e)), np.tile(e, len(e))), note="extremes", **options)
        for e in map(extremes, dtypes)
    ]


def special_pairs(dtypes: Iterable[Any] = FLOATS, **options: Any) -> list[Sample]:
    """All pairs of special values."""
    left, right = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    sample = Sample((left, right), differentiable=(), note="special values", **options)
    return across_dtypes(sample, dtypes)


def complex_pairs(**options: Any) -> list[Sample]:
    """Two complex operands, in both dtypes."""
    args = (turned(values((4,), 0.5, 2), 1), turned(values((4,), 0.5, 2, 5), 2))
    return across_dtypes(Sample(args, **options), COMPLEXES)


def linear(samples: Sequence[Sample], *positions: tuple[int, ...]) -> list[Sample]:
    """The samples; the differentiable ones are marked as linear in each set of positions."""
    made: list[Sample] = []
    for sample in samples:
        smooth = sample.raises is None and sample.differentiable_positions()
        wide = all(a.dtype in (*FLOATS[:2], *COMPLEXES) for a in sample.arrays())
        if smooth and wide:
            made += [
                sample.replace(linear=p, **({"differentiable": ()} if i else {}))
                for i, p in enumerate(positions)
            ]
        else:
            made.append(sample)
    return made


ARITHMETIC = (*FLOATS, *INTEGERS)
COMPARED = pairs(ALL_DTYPES[:-2][::-1], -4, 4, smooth=False)
COMPARED += integer_pairs(INTEGERS) + special_pairs()
EQUAL = [
    *COMPARED,
    *across_dtypes(
        Sample((np.array([1, 2j, NAN, 1 + 1j]), np.array([1, 2j, NAN, 1 - 1j])), differentiable=()),
        COMPLEXES,
    ),
]
LOGICAL = [
    *integer_pairs(INTEGERS),
    *(
        Sample(
            (np.array([True, True, False, False]), np.array([True, False, True, False])),
        ),
        Sample(
            (counts((2, 3), -9, 9), counts((1, 3), -9, 9, 1)),
        ),
        Sample(
            (np.int32(5), np.int32(6)),
        ),
        Sample(
            (np.ones((0,), np.uint8), np.uint8(3)),
        ),
    ),
]
SHIFTS = [
    *(
        Sample(
            (np.repeat(extremes(d), 6), np.tile(_d, len(extremes(d))).astype(d)), note="distances"
        )
        for d in INTEGERS
        for _d in [np.array([0, 1, 7, 8 * d.itemsize - 1, 8 * d.itemsize, 120])]
    ),
    Sample((np.array([5, -5], np.int32), np.array([-1, -31], np.int32)), note="negative distance"),
    Sample((counts((2, 3), -9, 9).astype(np.int32), np.int32(2))),
]

BINARY: dict[str, list[Sample]] = {
    "add": linear(pairs(ARITHMETIC, 1, 9) + complex_pairs(), (0, 1), (0,), (1,))
    + integer_pairs(INTEGERS)
    + special_pairs()
    + refused("iufc", 2),
    "add_any": linear(pairs(ARITHMETIC, 1, 9) + complex_pairs(), (0, 1))
    + integer_pairs(INTEGERS[:2])
    + refused("iufc", 2),
    "sub": linear(pairs(ARITHMETIC, 1, 9) + complex_pairs(), (0, 1), (0,), (1,))
    + integer_pairs(INTEGERS)
    + special_pairs()
    + refused("iufc", 2),
    "mul": linear(pairs(ARITHMETIC, 1, 9) + complex_pairs(), (0,), (1,))
    + integer_pairs(INTEGERS)
    + special_pairs()
    + refused("biufc", 2),
    "div": linear(pairs(ARITHMETIC, 1, 9) + complex_pairs(), (0,))
    + integer_pairs(INTEGERS)
    + special_pairs()
    + refused("iufc", 2),
    "rem": pairs(FLOATS, 1.1, 9.3)
    + pairs(INTEGERS, 1, 9)
    + integer_pairs(INTEGERS)
    + special_pairs()
    + refused("iuf", 2),
    "max": pairs((*FLOATS, *INTEGERS, *BOOLS), -9, 9)
    + integer_pairs(INTEGERS)
    + special_pairs(signed_zeros=False)
    + complex_pairs()
    + across_dtypes(
        Sample(
            (
                np.array([1 + 2j, complex(NAN, 0), 1, complex(1, NAN), 2, -1 + 1j]),
                np.array([1 + 3j, 1, complex(NAN, 0), 2, complex(1, 5), -1 + 1j]),
            ),
            differentiable=(),
            note="order of complex numbers",
        ),
        COMPLEXES,
    )
    + refused("biufc", 2),
    "pow": pairs(FLOATS, 0.3, 2.5)
    + complex_pairs(tolerance=16)
    + special_pairs(FLOATS[:2])
    + [
        Sample((np.array([-2.0, -1.5, 0.5, 3.0]), np.array([2, -3, 0, 5], d)), note="integer power")
        for d in (np.int8, np.int32, np.int64)
    ]
    + [
        Sample(
            (np.array([-2, 1.5, 0, 3], np.float32), np.array([2, 3, 0, 5], d)), differentiable=()
        )
        for d in INTEGERS
    ]
    + across_dtypes(Sample((values((4,), 0.5, 2), np.array([2, -3, 0, 5]))), FLOATS[2:], 0)
    + [Sample((turned(values((3,), 0.5, 2)), np.array([2, -1, 3], np.int32)), tolerance=16)]
    + [
        Sample(
            (
                np.array([-1, 1, 1.0000001], np.float32),
                np.array([2**24 + 1, 2**30, 2**24 + 1], np.int32),
            ),
            differentiable=(),
            note="large exponents",
        )
    ]
    + [Sample((np.ones(2, np.int32), np.ones(2, np.int32)), raises=TypeError)]
    + [Sample((np.ones(2, np.float32), np.ones(2, np.float16)), raises=TypeError)]
    + rejected(Sample((np.ones(2),) * 2), outside("fc")),
    "atan2": pairs(FLOATS, -2.1, 2)
    + complex_pairs(tolerance=16)
    + special_pairs()
    + refused("fc", 2),
    "nextafter": pairs(FLOATS, -9, 9) + special_pairs(signed_zeros=False) + refused("f", 2),
    "complex": linear(pairs(FLOATS[:2], -9, 9), (0, 1), (0,), (1,))
    + special_pairs(FLOATS[:2])
    + rejected(Sample((np.ones(2),) * 2), FLOATS[2:])
    + refused("f", 2),
    "eq": EQUAL + refused("biufc", 2),
    "ne": EQUAL + refused("biufc", 2),
    "lt": COMPARED + refused("biuf", 2),
    "le": COMPARED + refused("biuf", 2),
    "gt": COMPARED + refused("biuf", 2),
    "ge": COMPARED + refused("biuf", 2),
    "and": LOGICAL + refused("biu", 2),
    "or": LOGICAL + refused("biu", 2),
    "xor": LOGICAL + refused("biu", 2),
    "shift_left": SHIFTS + refused("iu", 2),
    "shift_right_logical": SHIFTS + refused("iu", 2),
    "shift_right_arithmetic": SHIFTS + refused("iu", 2),
}
BINARY["min"] = BINARY["max"]

CASES = (values((4,), -9, 9), values((4,), -9, 9, 1), values((4,), -9, 9, 2))
WHICH = np.array([True, False, False, True])
SELECTION: dict[str, list[Sample]] = {
    "select_n": [
        *across_dtypes(Sample((WHICH, *CASES[:2]), linear=(1, 2)), FLOATS[:2] + COMPLEXES, 1, 2),
        *across_dtypes(Sample((WHICH, *CASES[:2])), ALL_DTYPES, 1, 2),
        Sample((np.array([2, 0, 1, 2], np.int32), *CASES), linear=(1, 2, 3)),
        Sample((np.array([2, 0, 1, 2], np.int32), *CASES), linear=(2,), differentiable=()),
        Sample((np.array([-1, 5, 1, 2], np.int32), *CASES), note="out of range"),
        Sample((np.array(True), *CASES[:2]), note="scalar predicate"),
        Sample((np.array(1, np.int32), *CASES), note="scalar index"),
        Sample((np.array(False), np.float32(1), np.float32(2))),
        Sample((np.ones((0,), bool), np.ones(0, np.float32), np.ones(0, np.float32))),
        Sample((WHICH.reshape(2, 2), *(c.reshape(2, 2) for c in CASES[:2]))),
        Sample((np.array([0, 0, 0, 0], np.int32), CASES[0])),
        Sample((WHICH, CASES[0])),
        Sample((WHICH, *CASES), raises=TypeError, note="bool among three"),
        Sample((np.array([2, 0, 1, 255], np.uint8), *CASES), note="integers of one byte"),
        Sample((WHICH.astype(np.float32), *CASES), raises=TypeError),
        Sample((WHICH,), raises=ValueError),
        Sample((WHICH, CASES[0], CASES[1].astype(np.float32)), raises=TypeError),
        Sample((WHICH, CASES[0], CASES[1][:3]), raises=TypeError),
        Sample((WHICH[:3], CASES[0], CASES[1]), raises=TypeError),
    ],
    "clamp": [
        *across_dtypes(
            Sample((np.array(1.0), values((7,), 0, 6), np.array(4.1))), (*FLOATS, *INTEGERS, *BOOLS)
        ),
        Sample((values((5,), -2, 1), values((5,), -3, 4, 1), values((5,), 1, 3, 2))),
        Sample((np.array(-1.0), values((2, 3), -3, 4, 1), values((2, 3), 1, 3, 2))),
        Sample((np.array(0.0), np.array(0.5), np.array(1.0))),
        Sample((np.array(0.0), np.ones((0,)), np.array(1.0))),
        Sample(
            (np.float32(-1), np.array([NAN, INF, -INF, 0.5, -0.0], np.float32), np.float32(1)),
            differentiable=(),
        ),
        Sample(
            (np.float32(3), np.array([1, 2, 3, 4], np.float32), np.float32(2)),
            differentiable=(),
            note="crossed",
        ),
        *(Sample((e[0], e, e[2])) for e in map(extremes, INTEGERS)),
        *across_dtypes(
            Sample((np.array(1 + 1j), np.array([0.5j, 1.5 - 1j, 2 - 3j, 3 + 3j]), np.array(2.5))),
            COMPLEXES,
        ),
        Sample(
            (np.array(1 + 1j), np.array([1 - 1j, 1 + 1j, 1 + 2j, 2.5 - 3j]), np.array(2.5 + 0j)),
            differentiable=(),
            note="equal real parts",
        ),
        Sample((np.ones(3), np.ones(2), np.array(1.0)), raises=TypeError),
        Sample((np.array(0), np.ones(2), np.array(1.0)), raises=TypeError),
    ],
}

SAMPLES: dict[str, list[Sample]] = BINARY | SELECTION
