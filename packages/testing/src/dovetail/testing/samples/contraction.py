"""Samples of `dot_general`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.ops.contraction.dot_algorithms import DotAlgorithm, DotAlgorithmPreset
from dovetail._core.ops.contraction.dot_general import Precision
from dovetail.testing.sample import ALL_DTYPES, Sample, across_dtypes
from dovetail.testing.samples.shape import numbers


def _dot(
    contracting: tuple[tuple[int, ...], tuple[int, ...]],
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    *,
    precision: Any = None,
    preferred: Any = None,
) -> dict[str, Any]:
    return {
        "dimension_numbers": (contracting, batch),
        "precision": precision,
        "preferred_element_type": None if preferred is None else np.dtype(preferred),
        "out_sharding": None,
    }


MATRICES = _dot(((1,), (0,)))
X, Y = numbers(2, 3), numbers(3, 4)
WIDE = np.dtype("float64")
SMALL_X, SMALL_Y = np.array([[1, 2, 0], [3, 1, 2]]), np.array([[1, 0], [2, 1], [0, 3]])


def _mixed(x: Any, y: Any, preferred: Any = None, precision: Any = None) -> Sample:
    return Sample(
        (SMALL_X.astype(x), SMALL_Y.astype(y)),
        _dot(((1,), (0,)), preferred=preferred, precision=precision),
        differentiable=(),
        batched=(),
        note=f"{x} by {y}",
    )


SAMPLES: dict[str, list[Sample]] = {
    "dot_general": [
        *across_dtypes(Sample((SMALL_X, SMALL_Y), MATRICES), ALL_DTYPES),
        Sample((X, Y), MATRICES, linear=(0,), absolute=16),
        Sample((X, Y), MATRICES, linear=(1,), absolute=16),
        Sample((X + 1j * X[::-1], Y - 2j * Y), MATRICES, linear=(0,), absolute=64),
        Sample((X, Y), _dot(((0,), (0,))), raises=TypeError, note="other sizes"),
        Sample(
            (numbers(2, 3, 4), numbers(4, 5, 2)),
            _dot(((2,), (0,)), ((0,), (2,))),
            linear=(0,),
            absolute=64,
            note="batched",
        ),
        Sample(
            (numbers(4, 2, 3, 5), numbers(5, 2, 3)),
            _dot(((3, 1), (0, 1)), ((2,), (2,))),
            linear=(1,),
            absolute=64,
            note="two contracting",
        ),
        Sample(
            (numbers(3, 2, 5), numbers(2, 5, 4, 3)),
            _dot(((2, 0), (1, 3)), ((1,), (0,))),
            linear=(0,),
            absolute=64,
            note="contracting out of order",
        ),
        Sample((numbers(2), numbers(3)), _dot(((), ())), linear=(0,), note="outer"),
        Sample((numbers(3), numbers(3)), _dot(((0,), (0,))), linear=(1,), absolute=16),
        Sample((np.float32(2), np.float32(3)), _dot(((), ())), linear=(1,)),
        Sample((numbers(2, 3), numbers(2, 3)), _dot(((), ()), ((0, 1), (0, 1))), linear=(0,)),
        Sample((numbers(2, 0), numbers(0, 3)), MATRICES, linear=(0,), note="nothing to sum"),
        Sample((numbers(0, 2), numbers(2, 3)), MATRICES, linear=(0,), note="empty"),
        Sample(
            (X, Y),
            _dot(((1,), (0,)), precision=(Precision.HIGHEST, Precision.HIGH)),
            linear=(0,),
            batched=(),
            absolute=16,
        ),
        Sample(
            (np.ones((1, 600), np.float16), np.ones((600, 1), np.float16)), MATRICES, batched=()
        ),
        *across_dtypes(
            Sample((np.ones((1, 600)), np.ones((600, 1))), MATRICES, batched=(), note="long sum"),
            ["bfloat16"],
        ),
        _mixed("int8", "int8", "int32"),
        _mixed("uint8", "int8"),
        _mixed("bfloat16", "float32"),
        _mixed("bfloat16", "bfloat16", "float32"),
        _mixed("float16", "float16", "float32"),
        _mixed("int8", "float32"),
        _mixed("int32", "int32", "float32"),
        _mixed("bool", "bool", "int32"),
        _mixed("float32", "float32", "bfloat16"),
        _mixed("float32", "complex64"),
        _mixed("float32", "float32", "complex64"),
        _mixed("float8_e4m3fn", "float8_e5m2", "float32"),
        _mixed("float8_e5m2", "float8_e4m3fn"),
        _mixed("float8_e4m3fn", "float32"),
        _mixed("bfloat16", "float8_e4m3fn"),
        _mixed("int4", "float8_e4m3fn"),
        _mixed("int4", "int8"),
        *(
            _mixed(dtype, dtype, precision=precision)
            for dtype, precision in (
                ("float32", DotAlgorithmPreset.F32_F32_F32),
                ("bfloat16", DotAlgorithmPreset.BF16_BF16_F32),
                ("complex64", DotAlgorithmPreset.F32_F32_F32),
                ("float32", DotAlgorithm(WIDE, WIDE, WIDE)),
            )
        ),
        Sample(
            (X.astype("float64"), Y.astype("float64")),
            _dot(((1,), (0,)), precision=DotAlgorithmPreset.F64_F64_F64),
            linear=(0,),
            absolute=16,
        ),
        Sample(
            (X, Y),
            _dot(((1,), (0,)), preferred=np.float64),
            linear=(0,),
            batched=(),
            absolute=16,
        ),
        Sample((X, Y), _dot(((1,), (1,))), raises=TypeError, note="other sizes"),
        Sample((X, Y), _dot(((2,), (0,))), raises=TypeError, note="no such dimension"),
        Sample((X, Y), _dot(((-1,), (0,))), raises=TypeError, note="negative"),
        Sample((X, X), _dot(((1,), (1,)), ((1,), (1,))), raises=TypeError, note="used twice"),
        Sample((X, X), _dot(((1,), (1,)), ((0,), ())), raises=TypeError, note="not paired"),
        Sample((X, Y), _dot(((1,), (0,)), preferred=np.int32), raises=TypeError),
        Sample((SMALL_X, SMALL_Y), _dot(((1,), (0,)), preferred=np.int8), raises=TypeError),
    ],
}
