"""Samples of `conv_general_dilated`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.ops.contraction.dot_general import Precision
from dovetail._core.ops.windows.convolution import ConvDimensionNumbers
from dovetail.testing.sample import ALL_DTYPES, Sample, across_dtypes
from dovetail.testing.samples.shape import numbers


def _conv(rank: int = 1, **changes: Any) -> dict[str, Any]:
    order = tuple(range(rank + 2))
    return {
        "window_strides": (1,) * rank,
        "padding": ((0, 0),) * rank,
        "lhs_dilation": (1,) * rank,
        "rhs_dilation": (1,) * rank,
        "dimension_numbers": ConvDimensionNumbers(order, order, order),
        "feature_group_count": 1,
        "batch_group_count": 1,
        "precision": None,
        "preferred_element_type": None,
        "out_sharding": None,
        **changes,
    }


def _both(sample: Sample) -> list[Sample]:
    """A sample, linear in the input and in the kernel."""
    return [sample.replace(linear=(0,)), sample.replace(linear=(1,), batched=())]


def _refused(lhs: Any, rhs: Any, error: type[Exception], note: str, **changes: Any) -> Sample:
    return Sample((lhs, rhs), _conv(lhs.ndim - 2, **changes), raises=error, note=note)


def _summed(dtype: Any, preferred: Any) -> Sample:
    return Sample(
        (SMALL_X.astype(dtype), SMALL_K.astype(dtype)),
        _conv(preferred_element_type=np.dtype(preferred)),
        differentiable=(),
        batched=(),
        note=f"summed in {preferred}",
    )


SMALL_X = np.array([[[1, 2, 0, 3], [2, 1, 1, 0]]])
SMALL_K = np.array([[[1, 0], [2, 1]], [[0, 1], [1, 1]], [[1, 2], [0, 0]]])
X, K = numbers(2, 3, 5), numbers(4, 3, 2)
CHANNELS_LAST = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
MIXED = ConvDimensionNumbers((2, 0, 1, 3), (1, 3, 2, 0), (3, 1, 0, 2))
EVERYTHING = {
    "window_strides": (2, 1),
    "padding": ((2, -1), (0, 3)),
    "lhs_dilation": (2, 3),
    "rhs_dilation": (1, 2),
}

SAMPLES: dict[str, list[Sample]] = {
    "conv_general_dilated": [
        *across_dtypes(Sample((SMALL_X, SMALL_K), _conv()), ALL_DTYPES),
        *_both(Sample((X, K), _conv(), absolute=64)),
        *_both(
            Sample(
                (X + 1j * X[::-1], K - 2j * K),
                _conv(window_strides=(2,), padding=((1, 1),)),
                batched=(),
                absolute=256,
            )
        ),
        *_both(
            Sample(
                (numbers(2, 5, 4, 2), numbers(3, 2, 2, 3)),
                _conv(2, dimension_numbers=CHANNELS_LAST, **EVERYTHING),
                absolute=128,
                note="channels last",
            )
        ),
        *_both(
            Sample(
                (numbers(2, 5, 2, 4), numbers(2, 6, 3, 1)),
                _conv(2, dimension_numbers=MIXED, feature_group_count=2, **EVERYTHING),
                absolute=128,
                note="groups of features",
            )
        ),
        *_both(
            Sample(
                (numbers(2, 5, 4, 4), numbers(2, 6, 3, 2)),
                _conv(2, dimension_numbers=MIXED, batch_group_count=2, **EVERYTHING),
                absolute=128,
                note="groups of the batch",
            )
        ),
        *_both(
            Sample(
                (numbers(1, 3, 6, 5), numbers(3, 1, 3, 2)),
                _conv(2, padding=((1, 1), (1, 0)), feature_group_count=3),
                absolute=64,
                note="depthwise",
            )
        ),
        *_both(
            Sample(
                (numbers(3, 2, 6), numbers(3, 2, 4)),
                _conv(padding=((3, 2),), batch_group_count=3),
                absolute=64,
                note="depthwise kernel's gradient",
            )
        ),
        *_both(
            Sample(
                (numbers(1, 1, 9), numbers(1, 1, 9)),
                _conv(padding=((8, 8),)),
                batched=(),
                absolute=256,
                note="one feature",
            )
        ),
        *_both(
            Sample(
                (numbers(1, 2, 3, 2, 3), numbers(2, 2, 2, 2, 1)),
                _conv(3, padding=((1, 0), (0, 1), (0, 0))),
                batched=(),
                absolute=64,
            )
        ),
        *_both(Sample((numbers(2, 3), numbers(4, 3)), _conv(0), absolute=64)),
        *_both(
            Sample(
                (X, numbers(4, 3, 7)), _conv(), batched=(), note="a kernel larger than the input"
            )
        ),
        *_both(
            Sample(
                (numbers(2, 3, 0), K),
                _conv(padding=((2, 1),)),
                batched=(),
                note="nothing but padding",
            )
        ),
        *_both(Sample((X, numbers(4, 3, 0)), _conv(), note="a kernel without places")),
        *_both(Sample((numbers(2, 0, 5), numbers(4, 0, 2)), _conv(), note="no features")),
        Sample((numbers(0, 3, 5), K), _conv(), linear=(0,), note="no batch"),
        Sample((X, numbers(0, 3, 2)), _conv(), linear=(1,), note="no output features"),
        Sample(
            (X, K), _conv(padding=((-2, -3),)), linear=(0,), batched=(), note="everything removed"
        ),
        Sample(
            (X, K),
            _conv(precision=(Precision.HIGHEST, Precision.HIGH)),
            linear=(0,),
            batched=(),
            absolute=64,
        ),
        *across_dtypes(
            Sample((np.ones((1, 2, 300)), np.ones((1, 2, 300))), _conv(), batched=()),
            ["float16", "bfloat16"],
        ),
        _summed("int8", "int32"),
        _summed("uint8", "int32"),
        _summed("bool", "int32"),
        _summed("int32", "float32"),
        _summed("bfloat16", "float32"),
        _summed("complex64", "complex128"),
        Sample(
            (X, K),
            _conv(preferred_element_type=np.dtype(np.float64)),
            linear=(0,),
            batched=(),
            absolute=64,
        ),
        _refused(X, K[0], TypeError, "other ranks"),
        _refused(X, K.astype(np.float64), TypeError, "other dtypes"),
        _refused(X, numbers(4, 2, 2), ValueError, "other features"),
        _refused(X, K, TypeError, "narrower", preferred_element_type=np.dtype(np.float16)),
        _refused(X, K, TypeError, "integers", preferred_element_type=np.dtype(np.int32)),
        _refused(X, K, ValueError, "strides", window_strides=(1, 1)),
        _refused(X, K, ValueError, "no stride", window_strides=(0,)),
        _refused(X, K, ValueError, "no dilation", lhs_dilation=(0,)),
        _refused(X, K, ValueError, "no dilation", rhs_dilation=(-1,)),
        _refused(X, K, ValueError, "padding", padding=()),
        _refused(X, K, ValueError, "removes too much", padding=((-3, -3),)),
        _refused(X, K, ValueError, "no groups", feature_group_count=0),
        _refused(X, K, ValueError, "features not divided", feature_group_count=2),
        _refused(X, K, ValueError, "batch not divided", batch_group_count=4),
        _refused(
            numbers(2, 4, 5),
            numbers(4, 2, 2),
            ValueError,
            "both",
            feature_group_count=2,
            batch_group_count=2,
        ),
        _refused(
            X,
            K,
            TypeError,
            "a dimension named twice",
            dimension_numbers=ConvDimensionNumbers((0, 1, 1), (0, 1, 2), (0, 1, 2)),
        ),
        _refused(np.array(1.0), np.array(1.0), TypeError, "rank 0"),
    ],
}
