"""Samples of `scaled_dot`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.testing.sample import Sample
from dovetail.testing.samples.shape import numbers


def _params(*numbers: Any, preferred: Any = "float32") -> dict[str, Any]:
    return {"dimension_numbers": numbers, "preferred_element_type": np.dtype(preferred)}


MATRICES = _params(((1,), (0,)), ((), ()))
X, Y = numbers(2, 4), numbers(4, 3)
BLOCKS, BLOCK = np.array([[2.0, 0.5], [1.0, 4.0]]), np.array([[1.0, 2.0, 0.25]])
NARROW = "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e8m0fnu"


def _of(*given: Any, **params: Any) -> Sample:
    arrays = zip((X * 8, Y * 8, BLOCKS, BLOCK), given, strict=True)
    return Sample(
        tuple(np.round(a, 2).astype(dtype) for a, dtype in arrays),
        MATRICES | params,
        differentiable=(),
        batched=(),
        absolute=16,
    )


SAMPLES: dict[str, list[Sample]] = {
    "scaled_dot": [
        Sample(
            (X, Y, BLOCKS, BLOCK),
            _params(((1,), (0,)), ((), ()), preferred="float64"),
            order=1,
            absolute=16,
        ),
        Sample(
            (numbers(3, 2, 4), numbers(2, 4, 3), numbers(1, 2, 2), numbers(2, 2, 3)),
            _params(((0, 2), (2, 1)), ((1,), (0,)), preferred="float64"),
            order=1,
            absolute=64,
        ),
        Sample((X[:, :0], Y[:0], BLOCKS[:, :0], BLOCK[:0]), MATRICES, note="nothing to sum"),
        _of(*NARROW),
        _of(*NARROW, preferred_element_type=np.dtype("bfloat16")),
        _of("float4_e2m1fn", "float4_e2m1fn", "float8_e4m3fn", "float8_e4m3fn"),
        _of("int8", "int4", "float16", "bfloat16"),
        _of("int32", "float16", "uint8", "float8_e8m0fnu"),
        _of("float64", "float8_e4m3fn", "float64", "float32"),
        _of("complex64", *NARROW[1:]).replace(raises=TypeError),
        _of("bool", *NARROW[1:]).replace(raises=TypeError),
        _of(*NARROW, preferred_element_type=np.dtype("int32")).replace(raises=TypeError),
        Sample((X, Y.T, BLOCKS, BLOCK), MATRICES, raises=TypeError),
        Sample((X, Y, BLOCKS[:, :1], BLOCKS), MATRICES, raises=TypeError, note="other columns"),
        Sample((X, Y, np.ones((2, 3)), BLOCK), MATRICES, raises=TypeError, note="3 for 4"),
        Sample((X, Y, np.ones((2, 8)), BLOCK), MATRICES, raises=TypeError, note="8 for 4"),
        Sample((X, Y, BLOCKS[0], BLOCK), MATRICES, raises=TypeError, note="rank"),
    ],
}
