"""Samples in which every bit counts: floats that use their full mantissas.

The other modules use small multiples of powers of two wherever that makes results exact; these are
the same in bfloat16. Here, one sample of each such primitive is redrawn, in 32-bit and 64-bit
floats, and in complex numbers if the primitive takes them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail._core.ops.contraction.dot_general import Precision
from dovetail.testing.sample import COMPLEXES, FLOATS, Sample
from dovetail.testing.samples import (
    barriers,
    contraction,
    convolution,
    elementwise,
    functions,
    indexing,
    linalg,
    naming,
    ragged_contraction,
    reduction,
    scaled_contraction,
    shape,
    slicing,
    sorting,
    windows,
)

NDArray = np.ndarray[Any, Any]
GIVEN: Final[dict[str, list[Sample]]] = {
    **barriers.SAMPLES,
    **contraction.SAMPLES,
    **convolution.SAMPLES,
    **elementwise.SAMPLES,
    **functions.SAMPLES,
    **indexing.SAMPLES,
    **linalg.SAMPLES,
    **naming.SAMPLES,
    **ragged_contraction.SAMPLES,
    **reduction.SAMPLES,
    **scaled_contraction.SAMPLES,
    **shape.SAMPLES,
    **slicing.SAMPLES,
    **sorting.SAMPLES,
    **windows.SAMPLES,
}
REALS: Final = FLOATS[:2]
HIGHEST: Final = (Precision.HIGHEST, Precision.HIGHEST)

#: Primitives whose results are some of their operands' elements.
MOVING: Final = (
    *("broadcast_in_dim", "reshape", "transpose", "squeeze", "rev", "tile", "concatenate", "stack"),
    *("split", "unstack", "slice", "pad", "dynamic_slice", "dynamic_update_slice", "gather"),
    *(
        "scatter",
        "scatter-max",
        "scatter-min",
        "order_statistics",
        "sort",
        "top_k",
        "approx_top_k",
        "name",
        "stage",
    ),
    *("reduce_max", "reduce_max_of_numbers", "reduce_min", "reduce_window_max"),
    *("reduce_window_min", "cummax", "cummin"),
    *("optimization_barrier", "select_and_gather_add"),
)

#: Primitives that compute, with the allowed error of cancelling sums in units of epsilon, as far as
#: the numbers of the sample, which are below one, make sums of more than one.
COMPUTING: Final = {
    "conv_general_dilated": 4,
    "cumprod": 0,
    "cumsum": 4,
    "dot_general": 4,
    "linear_recurrence": 4,
    "ragged_dot_general": 4,
    "reduce_prod": 0,
    "reduce_sum": 4,
    "reduce_window_sum": 8,
    "scaled_dot": 8,
    "scatter-add": 4,
    "scatter-mul": 0,
    "scatter-sub": 4,
    "select_and_scatter": 0,
    "select_and_scatter_add": 8,
    "symmetric_product": 8,
}

#: Primitives with integer results, which need more bits than the bfloat16, or the float32, that the
#: numbers could be mistaken for.
ROUNDING: Final = ("ceil", "floor", "round")
SIZES: Final = {FLOATS[0]: 1e4, FLOATS[1]: 1e9}

COMPARING: Final = ("eq", "ne", "ge", "gt", "le", "lt", "eq_to", "le_to", "lt_to")
CHOOSING: Final = ("argmax", "argmin")


def drawn(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> NDArray:
    """Numbers between -1 and 1 (of each part)."""
    generator = np.random.default_rng(seed)
    real = generator.uniform(-1, 1, shape)
    imag = generator.uniform(-1, 1, shape)
    return np.asarray(real + 1j * imag if dtype in COMPLEXES else real).astype(dtype)


def _inexact(sample: Sample) -> set[np.dtype[Any]]:
    return {a.dtype for a in sample.arrays()} & {*FLOATS, *COMPLEXES}


def redrawn(samples: list[Sample], absolute: float = 0.0, size: Any = None) -> list[Sample]:
    """The first sample with several numbers in 32 or 64 bits, in each dtype that has one.

    Args:
        samples: of one primitive.
        absolute: as in `Sample`.
        size: by dtype, the factor of the numbers.
    """
    valid = [s for s in samples if s.raises is None]
    dtypes = [d for d in (*REALS, *COMPLEXES) if any(_inexact(s) == {d} for s in valid)]
    first = next(
        s
        for s in valid
        if _inexact(s) and _inexact(s) <= {*REALS} and max(a.size for a in s.arrays()) > 1
    )
    programs = any("jaxpr" in name and value for name, value in first.params.items())
    if programs:
        dtypes = list(_inexact(first))  # in which the programs are written
    elif FLOATS[1] not in dtypes:
        dtypes.append(FLOATS[1])
    made = []
    for dtype in dtypes:
        args = tuple(
            drawn(a.shape, dtype, seed) * dtype.type(size[dtype] if size else 1)
            if a.dtype in FLOATS
            else a
            for seed, a in enumerate(first.arrays())
        )
        params = dict(first.params)
        if "precision" in params:
            params["precision"] = HIGHEST
        if params.get("preferred_element_type") is not None:
            params["preferred_element_type"] = dtype
        made.append(
            first.replace(
                args=tuple(map(np.asarray, args)),
                params=params,
                absolute=absolute,
                differentiable=(),
                linear=(),
                batched=(),
                note="full mantissas",
            )
        )
    return made


def neighbours() -> list[Sample]:
    """Two operands that are equal, or differ by one in the last place, in each direction."""
    made = []
    for dtype in REALS:
        x = drawn((6,), dtype, 0)
        to = np.array([2, 2, -2, -2, 0, 0], dtype)
        y = np.where(to == 0, x, np.nextafter(x, to))
        made.append(Sample((x, y), differentiable=(), batched=(), note="neighbours"))
    return made


def ranked(params: Any) -> list[Sample]:
    """Numbers that are each the next after another."""
    order = np.array([[3, 0, 5, 1], [2, 6, 4, 7], [1, 3, 2, 0]])
    return [
        Sample(
            ((1 + order * np.finfo(dtype).eps).astype(dtype),),
            params,
            differentiable=(),
            batched=(),
            note="neighbours",
        )
        for dtype in REALS
    ]


def converted() -> list[Sample]:
    """Conversions to the widest floats, of numbers that only these represent."""
    params = GIVEN["convert_element_type"][0].params
    integers = np.array([2**53 - 1, -(2**45) - 3])
    return [
        Sample(
            (x,),
            {**params, "new_dtype": np.dtype(dtype)},
            differentiable=(),
            batched=(),
            note="full mantissas",
        )
        for x, dtype in (
            (integers, "float64"),
            (drawn((3,), FLOATS[1], 0), "complex128"),
            (np.array([2**24 - 1, -(2**20) - 3]), "float32"),
        )
    ]


SAMPLES: dict[str, list[Sample]] = {
    **{name: [s.replace(tolerance=0) for s in redrawn(GIVEN[name])] for name in MOVING},
    **{name: redrawn(GIVEN[name], absolute) for name, absolute in COMPUTING.items()},
    **{name: redrawn(GIVEN[name], size=SIZES) for name in ROUNDING},
    **{name: neighbours() for name in COMPARING},
    **{name: ranked(GIVEN[name][0].params) for name in CHOOSING},
    "bitcast_convert_type": [
        s for s in redrawn(GIVEN["bitcast_convert_type"]) if s.args[0].dtype in REALS
    ],
    "convert_element_type": converted(),
    "iota": [
        Sample(
            (),
            {**GIVEN["iota"][0].params, "dtype": FLOATS[0], "shape": (300,), "dimension": 0},
            batched=(),
            note="more than bfloat16 counts to",
        )
    ],
}
