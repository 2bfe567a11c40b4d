"""Samples of elementwise primitives of one operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.ops.elementwise.functions import AccuracyMode, Tolerance
from dovetail._core.ops.elementwise.rounding import RoundingMethod
from dovetail.testing.sample import (
    ALL_DTYPES,
    BOOLS,
    COMPLEXES,
    FLOATS,
    INTEGERS,
    SIGNED,
    Sample,
    across_dtypes,
)
from dovetail.testing.samples.elementwise import (
    INF,
    NAN,
    SPECIAL,
    extremes,
    linear,
    refused,
    turned,
    values,
)

SHAPES = ((), (0,), (3,), (2, 3))


def domain(
    low: float, high: float, kinds: str = "fc", complex_tolerance: float = 8.0, **options: Any
) -> list[Sample]:
    """Operands between `low` and `high`, in several shapes and all dtypes of the kinds."""
    made = [
        sample
        for index, shape in enumerate(SHAPES)
        for sample in across_dtypes(
            Sample((values(shape, low, high, index),), **options), FLOATS[:1]
        )
    ]
    made += across_dtypes(Sample((values((9,), low, high),), **options), FLOATS[1:])
    if "c" in kinds:
        size = max(abs(low), abs(high))
        points = turned(values((6,), 0.1 * size, 0.95 * size, 3))
        tolerant = {**options, "tolerance": complex_tolerance}
        made += across_dtypes(Sample((points,), **tolerant), COMPLEXES)
        made.append(Sample((turned(values((2, 2), 0.1, 0.9, 4)),), **tolerant))
    return made + refused(kinds, 1, **options.get("params", {}))


def at(*points: float, special: Sequence[float] = SPECIAL, **options: Any) -> list[Sample]:
    """Special values and the points, in all floating point dtypes that represent the points."""
    every = np.array([*special, *points])
    made = []
    for dtype in FLOATS:
        with np.errstate(all="ignore"):
            held = every.astype(dtype)
        small = float(dtypes.finfo(dtype).smallest_normal)
        fine = ~(np.isinf(held.astype(float)) & np.isfinite(every))
        fine &= (np.abs(every) >= small) | (every == 0) | np.isnan(every)
        made.append(Sample((held[fine],), differentiable=(), note="special values", **options))
    return made


def far_out(low: float, high: float, **options: Any) -> list[Sample]:
    """Operands of all magnitudes between powers of ten, of both signs, where dtypes allow it."""
    sizes = 10.0 ** np.linspace(low, high, 41)
    return at(*sizes, *-sizes, **options)


def integers(**options: Any) -> list[Sample]:
    """The extreme integers of each dtype."""
    return [Sample((extremes(d),), note="extremes", **options) for d in INTEGERS]


def chosen() -> list[Sample]:
    """A sample for each choice of accuracy, and an invalid one."""
    x = values((3,), 0.3, 0.9).astype(np.float32)
    good = (AccuracyMode.HIGHEST, AccuracyMode.DEFAULT, Tolerance(ulps=4))
    wrong = Sample((x,), {"accuracy": "high"}, raises=TypeError)
    return [*(Sample((x,), {"accuracy": a}, differentiable=()) for a in good), wrong]


WHOLE = (-3.0, -2.5, -1.5, -0.7, 0.2, 0.49999997, 0.5, 1.5, 2.5, 1e6 + 0.5, 1e7, 3e9)

FUNCTIONS: dict[str, list[Sample]] = {
    "sin": domain(-7, 7) + far_out(-30, 5),
    "cos": domain(-7, 7) + far_out(-30, 5),
    "tan": domain(-1.4, 1.4) + far_out(-30, 3),
    "asin": domain(-0.97, 0.97) + far_out(-30, 0),
    "acos": domain(-0.97, 0.97) + far_out(-30, 0),
    "atan": domain(-0.97, 0.97) + far_out(-30, 30),
    "sinh": domain(-3, 3) + far_out(-30, 2.5),
    "cosh": domain(-3, 3) + far_out(-30, 2.5),
    "tanh": domain(-3, 3, tolerance=8) + far_out(-30, 2.5, tolerance=8),
    "asinh": domain(-3, 3) + far_out(-30, 30),
    "acosh": domain(1.1, 3) + far_out(-2, 30) + at(1.0000001, 1.001),
    "atanh": domain(-0.95, 0.95) + far_out(-30, 0) + at(0.4116158919, -0.99999, 0.999),
    "exp": domain(-3, 3) + far_out(-30, 2.8),
    "exp2": domain(-3, 3) + far_out(-30, 2.8) + at(10, -10, 126, -126, 1023, 1024.5, 127.5),
    "expm1": domain(-3, 3) + far_out(-30, 2.8),
    "log": domain(0.1, 3) + far_out(-30, 30),
    "log1p": domain(-0.9, 3, complex_tolerance=16) + far_out(-30, 30) + at(-0.38002364),
    "logistic": domain(-3, 3) + far_out(-30, 2.8),
    "sqrt": domain(0.1, 3) + far_out(-30, 30),
    "rsqrt": domain(0.1, 3) + far_out(-30, 30),
    "cbrt": domain(0.1, 3, "f") + far_out(-30, 30),
    "erf": domain(-2, 2, "f") + far_out(-30, 1),
    "erfc": domain(-2, 2, "f") + far_out(-30, 1.5) + at(8.7, 4.95, 26.5, 9.1),
    "erf_inv": domain(-0.95, 0.95, "f") + far_out(-30, 0) + at(0.99999, -0.999999, 0.5),
    "lgamma": domain(0.3, 12, "f", tolerance=8)
    + at(1, 2, 1.00001, 1.99999, 2.49, 2.51, 7.9, 8.1, special=(), tolerance=8)
    + at(170, 1e10, 1e30, 1e-3, 1e-20, special=(0.0, -0.0, INF, -INF, NAN, -1), tolerance=8)
    + at(-0.5, -1e-3, special=(-2.5,), tolerance=8, absolute=4)
    + at(-3.7, -20.25, -100.5, special=(), tolerance=8, absolute=200),
    "digamma": domain(0.3, 12, "f", tolerance=8)
    + at(1, 2, 1.4616321, 1.46163, 2.01, 9.9, 10.1, 170, 1e10, 1e-3, 1e-20, tolerance=8)
    + at(-0.5, -3.7, -20.25, -1e-3, tolerance=8, absolute=200),
}

for _name in (
    *("sin", "cos", "tan", "tanh", "exp", "exp2", "expm1", "log", "log1p", "logistic"),
    *("sqrt", "rsqrt", "cbrt", "erfc"),
):
    FUNCTIONS[_name] += chosen()

# On the axes, where one part of the result is zero however large the other is.
AXES = np.array([complex(a, b) for a in (0.0, -0.0) for b in (INF, -INF, 2.0, 0.0, -0.0)])
for _name, _points in (("sin", AXES), ("cos", AXES), ("sinh", AXES.imag + 1j * AXES.real)):
    FUNCTIONS[_name] += across_dtypes(Sample((_points,), differentiable=(), note="axes"), COMPLEXES)

COMPLEX_PARTS = [
    *across_dtypes(Sample((turned(values((4,), 0.5, 2)),)), COMPLEXES),
    Sample((np.complex64(3 - 4j),)),
    Sample((np.ones((0, 2), np.complex64),)),
    Sample((turned(values((2, 3), 0.5, 2)),)),
    Sample(
        (np.array([complex(INF, NAN), complex(NAN, -INF), complex(-0.0, -0.0), complex(1, INF)]),),
        differentiable=(),
    ),
]


def conjugates() -> list[Sample]:
    """Complex operands, and real ones."""
    made = [
        s.replace(params={"input_dtype": s.arrays()[0].dtype}) for s in linear(COMPLEX_PARTS, (0,))
    ]
    made += [
        s.replace(params={"input_dtype": s.arrays()[0].dtype})
        for s in linear(across_dtypes(Sample((values((4,), -3, 3),)), FLOATS[:2]), (0,))
    ]
    return made + [
        Sample((np.ones(2, d),), {"input_dtype": d}, raises=TypeError)
        for d in (*INTEGERS[:1], *BOOLS, *FLOATS[2:])
    ]


NUMBERS = domain(-9, 9) + far_out(-30, 30) + integers()
POWERS = [
    sample
    for y in (-3, -1, 0, 1, 2, 3, 7)
    for sample in (
        *across_dtypes(Sample((values((4,), 0.5, 2),), {"y": y}, tolerance=8), FLOATS[:2]),
        *across_dtypes(Sample((values((4,), 0.8, 1.2),), {"y": y}, tolerance=8), FLOATS[2:]),
        *across_dtypes(Sample((turned(values((4,), 0.5, 2)),), {"y": y}, tolerance=16), COMPLEXES),
    )
]

SIMPLE: dict[str, list[Sample]] = {
    "neg": linear([s for s in NUMBERS if s.raises is None], (0,)) + refused("iufc"),
    "abs": [s for s in domain(0.5, 9) + far_out(-30, 30) if s.raises is None]
    + [Sample((-values((4,), 0.5, 9),))]
    + [Sample((extremes(d),)) for d in SIGNED]
    + across_dtypes(Sample((np.array([0j, 3 + 4j, -5j]),), differentiable=()), COMPLEXES)
    + refused("ifc"),
    "sign": [s for s in NUMBERS if s.raises is None]
    + across_dtypes(Sample((np.array([0j, 3 + 4j, -5j]),), differentiable=()), COMPLEXES)
    + refused("iufc"),
    "square": [s for s in NUMBERS if s.raises is None] + refused("iufc"),
    "integer_pow": POWERS
    + [Sample((extremes(d),), {"y": y}) for d in INTEGERS for y in (0, 1, 3, 200)]
    + at(params={"y": 2})
    + at(params={"y": -1})
    + [Sample((np.array([2], np.int32),), {"y": -1}, raises=TypeError)]
    + refused("iufc", 1, y=2),
    "real": linear(COMPLEX_PARTS, (0,)) + refused("c"),
    "imag": linear(COMPLEX_PARTS, (0,)) + refused("c"),
    "conj": conjugates(),
    "is_finite": [s.replace(differentiable=()) for s in domain(-9, 9, "f") + at()],
    "floor": domain(-4.8, 5.1, "f") + at(*WHOLE),
    "ceil": domain(-4.8, 5.1, "f") + at(*WHOLE),
    "round": [
        s.replace(params={"rounding_method": m})
        for m in RoundingMethod
        for s in domain(-4.8, 5.1, "f") + at(*WHOLE)
    ],
    "not": integers()
    + [Sample((np.array([True, False]),)), Sample((np.int8(5),))]
    + refused("biu"),
    "population_count": integers() + [Sample((np.int32(5),))] + refused("iu"),
    "clz": integers() + [Sample((np.int32(5),))] + refused("iu"),
    "reduce_precision": [
        s.replace(params={"exponent_bits": e, "mantissa_bits": m}, differentiable=())
        for e, m in ((8, 7), (5, 10), (4, 3), (8, 23), (5, 2))
        for s in domain(-9, 9, "f") + at(1e-3, 6e-5, 65504, 65519, 65520, 1e6, 1.001, 300, 0.0157)
    ]
    + [
        Sample((values((3,), -9, 9),), {"exponent_bits": 11, "mantissa_bits": 52}, linear=(0,)),
        Sample((np.ones(2),), {"exponent_bits": 0, "mantissa_bits": 3}, raises=ValueError),
    ],
    "copy": linear(across_dtypes(Sample((values((2, 3), 0, 9),)), ALL_DTYPES), (0,))
    + [Sample((np.float32(2),)), Sample((np.ones((0,), np.int8),))],
    "stop_gradient": [
        s.replace(differentiable=())
        for s in across_dtypes(Sample((values((2, 3), 0, 9),)), ALL_DTYPES)
    ],
}


def conversions() -> list[Sample]:
    """From each dtype to each other."""
    made = []
    for old in ALL_DTYPES:
        for new in ALL_DTYPES:
            params = {"new_dtype": new, "weak_type": False, "sharding": None}
            held = np.array([0, 1, 3, 9, 100]).astype(old)
            smooth = old in FLOATS[1:2] + COMPLEXES and new == np.float64
            smooth |= old == new == np.complex128
            made.append(
                Sample(
                    (held,),
                    params,
                    differentiable=None if smooth else (),
                    linear=(0,) if smooth else (),
                )
            )
    wide = {"weak_type": False, "sharding": None}
    made += [
        Sample(
            (np.array([-2.75, -0.5, 0.5, 2.75, 1e6]),),
            {"new_dtype": np.dtype(np.int32), **wide},
            differentiable=(),
            note="fractions",
        ),
        Sample(
            (np.array([300, -1, -129, 70000], np.int32),),
            {"new_dtype": np.dtype(np.uint8), **wide},
            note="integers wrap",
        ),
        Sample(
            (np.array([1 / 3, 1e-40, 3.5e38, -1e300, 1 + 2**-24, INF, NAN]),),
            {"new_dtype": np.dtype(np.float32), **wide},
            differentiable=(),
            note="rounding",
        ),
    ]
    return made


def reinterpretations() -> list[Sample]:
    """Bitcasts to dtypes of the same width, wider and narrower ones."""
    x = np.array([1.5, -0.0, NAN, 3e38], np.float32)
    return [
        Sample((x,), {"new_dtype": np.dtype(np.int32)}, differentiable=()),
        Sample((x,), {"new_dtype": np.dtype(np.uint8)}, differentiable=()),
        Sample((x,), {"new_dtype": np.dtype(np.float32)}, differentiable=()),
        Sample((x.view(np.uint16).reshape(4, 2),), {"new_dtype": np.dtype(np.float32)}),
        Sample(
            (np.array([1.5, -2], np.float64),),
            {"new_dtype": np.dtype(np.uint64)},
            differentiable=(),
        ),
        Sample((np.float64(1.5),), {"new_dtype": np.dtype(np.int16)}, differentiable=()),
        Sample((np.array([True]),), {"new_dtype": np.dtype(bool)}),
        Sample(
            (np.array([1j], np.complex64),),
            {"new_dtype": np.dtype(np.complex64)},
            differentiable=(),
        ),
        Sample((np.array([True]),), {"new_dtype": np.dtype(np.int8)}, raises=TypeError),
        Sample(
            (np.array([1j], np.complex64),), {"new_dtype": np.dtype(np.float32)}, raises=TypeError
        ),
        Sample((np.zeros(3, np.uint8),), {"new_dtype": np.dtype(np.float32)}, raises=ValueError),
    ]


SAMPLES: dict[str, list[Sample]] = {
    **FUNCTIONS,
    **SIMPLE,
    "convert_element_type": conversions(),
    "bitcast_convert_type": reinterpretations(),
}
