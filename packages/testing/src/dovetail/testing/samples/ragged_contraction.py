"""Samples of `ragged_dot_general`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.ops.contraction.ragged_dimensions import RaggedDotDimensionNumbers
from dovetail.testing.sample import Sample, across_dtypes
from dovetail.testing.samples.shape import numbers


def ragged(
    contracting: tuple[tuple[int, ...], tuple[int, ...]],
    batch: tuple[tuple[int, ...], tuple[int, ...]],
    dimension: int,
    *groups: int,
    preferred: Any = None,
) -> dict[str, Any]:
    """Parameters for a ragged dimension of the left operand, and one of groups of the right."""
    return {
        "ragged_dot_dimension_numbers": RaggedDotDimensionNumbers(
            (contracting, batch), (dimension,), groups
        ),
        "precision": None,
        "preferred_element_type": None if preferred is None else np.dtype(preferred),
        "group_offset": None,
        "out_sharding": None,
    }


def sizes(*values: Any) -> Any:
    """Group sizes."""
    return np.array(values, np.int32)


MATRICES = ragged(((1,), (1,)), ((), ()), 0, 0)
SUMS = ragged(((1,), (0,)), ((), ()), 1)
#: [k, p, b, m, f] by [b, n, g, k]: dimensions before and after the ragged one.
FREE = ragged(((0,), (3,)), ((2,), (0,)), 3, 2)
#: [b, q, k, m, p] by [q, p, k, n, b]: pairs of contracting dimensions in their own order.
PAIRS = ragged(((4, 2, 1), (1, 2, 0)), ((0,), (4,)), 2)
X, Y = numbers(6, 3), numbers(3, 3, 2)
SMALL_X = np.array([[1, 2], [0, 1], [3, 1], [1, 1]])
SMALL_Y = np.array([[[1, 0], [2, 1]], [[0, 1], [3, 1]]])
FREE_X, FREE_Y = numbers(2, 2, 2, 3, 2), numbers(2, 2, 2, 2)
PAIRS_X, PAIRS_Y = numbers(2, 2, 3, 2, 2), numbers(2, 2, 3, 2, 2)


def both(args: Any, params: Any, **options: Any) -> list[Sample]:
    """Samples for the linearity in each of the operands."""
    first = Sample(args, params, linear=(0,), absolute=64, **options)
    return [first, first.replace(linear=(1,), differentiable=(), batched=())]


SAMPLES: dict[str, list[Sample]] = {
    "ragged_dot_general": [
        *across_dtypes(
            Sample((SMALL_X, SMALL_Y, sizes(1, 3)), MATRICES, differentiable=(), batched=()),
            ["bool", "int8", "uint32", "float16", "bfloat16", "complex64", "float8_e4m3fn"],
            0,
            1,
        ),
        *across_dtypes(
            Sample(
                (SMALL_X.T, SMALL_Y[0].repeat(2, 0), sizes(1, 3)),
                SUMS,
                differentiable=(),
                batched=(),
            ),
            ["bool", "int32", "bfloat16", "complex64"],
            0,
            1,
        ),
        *both((X, Y, sizes(1, 2, 2)), MATRICES, batched=(), note="a row in no group"),
        *both((X.T, X, sizes(1, 0, 4)), SUMS, note="an empty group"),
        *both((FREE_X, FREE_Y, sizes(1, 2)), FREE),
        *both((FREE_X, FREE_Y, sizes([[1, 2], [0, 2]], [[3, 3], [2, 1]])), FREE, note="own sizes"),
        *both((PAIRS_X, PAIRS_Y, sizes(2, 1)), PAIRS, batched=()),
        *both((PAIRS_X, PAIRS_Y, sizes([[1, 2], [2, 0]], [[3, 1], [0, 0]])), PAIRS, note="own"),
        *both((X[None], Y[:1], sizes(1, 1)), ragged(((2,), (1,)), ((0,), (0,)), 0), note="batch"),
        Sample(
            (X, Y, np.array([2, -1, 120], np.int8)),
            MATRICES,
            differentiable=(0,),
            batched=(0, 1),
            absolute=16,
            note="sizes that do not fit",
        ),
        *(
            Sample((numbers(300, 2), numbers(3, 2, 1), sizes(*s)), MATRICES, batched=(), absolute=9)
            for s in ((120, 0, 180), (290, 3, 4))
        ),
        Sample(
            (np.ones((1, 600), np.float16), np.ones((600, 1), np.float16), sizes(500, 90)),
            SUMS,
            batched=(),
            note="long sums",
        ),
        Sample(
            (X.astype("bfloat16"), Y.astype("bfloat16"), sizes(1, 2, 2)),
            ragged(((1,), (1,)), ((), ()), 0, 0, preferred="float32"),
            batched=(),
            absolute=16,
        ),
        Sample((X[:0], Y, sizes(1, 2, 2)), MATRICES, linear=(0,), note="no rows"),
        Sample((X, Y[:0], sizes()), MATRICES, linear=(0,), note="no groups"),
        Sample((X.T, X, sizes()), SUMS, linear=(1,), note="no groups"),
        Sample((X, Y, sizes(1, 2)), MATRICES, raises=TypeError, note="other groups"),
        Sample((X, Y, sizes([1, 2, 3])), MATRICES, raises=TypeError, note="sizes of rank 2"),
        Sample((X, Y, np.int32(1)), MATRICES, raises=TypeError, note="a number"),
        Sample((X, Y, np.ones(3)), MATRICES, raises=TypeError, note="sizes of floats"),
        Sample((X, Y.transpose(0, 2, 1), sizes(1, 2, 2)), MATRICES, raises=TypeError),
        *(
            Sample((X, Y, sizes(1, 2, 2)), ragged(((1,), (1,)), ((), ()), d, *g), raises=TypeError)
            for d, g in ((0, ()), (0, (0, 2)), (0, (1,)), (0, (3,)), (2, (0,)), (-1, (0,)))
        ),
        Sample((X, Y, sizes(1, 2, 2)), ragged(((1,), (1,)), ((), ()), 1, 0), raises=TypeError),
    ],
}
