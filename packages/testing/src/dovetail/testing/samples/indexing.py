"""Samples of gather and the scatter family."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.ops.indexing.gather import (
    NAN,
    GatherDimensionNumbers,
    GatherScatterMode,
    default_fill,
)
from dovetail._core.ops.indexing.scatter import ScatterDimensionNumbers
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

NDArray = np.ndarray[Any, Any]

MODES = tuple(GatherScatterMode)
CLIP, FILL, PROMISE = MODES
F32 = np.float32
I32 = np.int32


def ramp(*shape: int, start: float = 1.0) -> NDArray:
    """Distinct numbers, none of them zero."""
    return np.arange(start, start + int(np.prod(shape)), dtype=F32).reshape(shape)


def reading(
    numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    mode: GatherScatterMode,
    fill: Any,
) -> dict[str, Any]:
    """Parameters of a gather."""
    return {
        "dimension_numbers": numbers,
        "fill_value": fill if mode is FILL else None,
        "indices_are_sorted": False,
        "mode": mode,
        "slice_sizes": slice_sizes,
        "unique_indices": False,
    }


def updating(
    numbers: GatherDimensionNumbers, mode: GatherScatterMode, unique: bool = False
) -> dict[str, Any]:
    """Parameters of a scatter; the jaxpr in them is for printing only."""
    return {
        "dimension_numbers": ScatterDimensionNumbers(*numbers),
        "indices_are_sorted": False,
        "mode": mode,
        "unique_indices": unique,
        "update_consts": (),
        "update_jaxpr": None,
    }


# Each case: shape of the operand, indices, dimension numbers, slice sizes. All combinations of
# dimensions; indices in bounds, out of bounds on both sides, and repeated.
Case = tuple[tuple[int, ...], NDArray, GatherDimensionNumbers, tuple[int, ...]]
ELEMENTS: Case = (
    (5,),
    np.array([[3], [0], [3], [7], [-2]], I32),
    GatherDimensionNumbers((), (0,), (0,)),
    (1,),
)
ROWS: Case = (
    (4, 3),
    np.array([[2], [0], [2], [4], [-1]], I32),
    GatherDimensionNumbers((1,), (0,), (0,)),
    (1, 3),
)
COLUMNS: Case = (
    (3, 4),
    np.array([[1], [3], [-3], [1]], I32),
    GatherDimensionNumbers((0,), (1,), (1,)),
    (3, 1),
)
POINTS: Case = (
    (3, 4),
    np.array([[[0, 1], [2, 3]], [[2, 3], [1, 4]], [[-1, 0], [0, 1]]], I32),
    GatherDimensionNumbers((), (0, 1), (0, 1)),
    (1, 1),
)
SWAPPED: Case = (
    (3, 4),
    np.array([[1, 0], [3, 2], [0, 3]], I32),
    GatherDimensionNumbers((), (0, 1), (1, 0)),
    (1, 1),
)
WINDOWS: Case = (
    (5, 4),
    np.array([[1], [2], [4], [0]], I32),
    GatherDimensionNumbers((0, 2), (), (0,)),
    (2, 4),
)
CORNERS: Case = (
    (4, 5),
    np.array([[1, 2], [0, 0], [3, 4], [2, 1]], I32),
    GatherDimensionNumbers((1, 2), (), (0, 1)),
    (2, 3),
)
ONE: Case = (
    (4, 3),
    np.array([2], I32),
    GatherDimensionNumbers((0,), (0,), (0,)),
    (1, 3),
)
WHOLE: Case = (
    (2, 3),
    np.zeros((0,), I32),
    GatherDimensionNumbers((0, 1), (), ()),
    (2, 3),
)
BATCHED: Case = (
    (3, 4, 2),
    np.array([[[1], [0], [1]], [[3], [4], [2]]], I32),
    GatherDimensionNumbers((2,), (1,), (1,), (0,), (1,)),
    (1, 1, 2),
)
BATCHED_TWICE: Case = (
    (2, 4, 3),
    np.array([[[1], [2]], [[3], [5]], [[0], [0]]], I32),
    GatherDimensionNumbers((), (1,), (1,), (0, 2), (1, 0)),
    (1, 1, 1),
)
NOTHING: Case = (
    (4,),
    np.zeros((0, 1), I32),
    GatherDimensionNumbers((), (0,), (0,)),
    (1,),
)
CASES = (
    ELEMENTS,
    ROWS,
    COLUMNS,
    POINTS,
    SWAPPED,
    WINDOWS,
    CORNERS,
    ONE,
    WHOLE,
    BATCHED,
    BATCHED_TWICE,
    NOTHING,
)
# Indices that are unique and in bounds, so both promises hold.
UNIQUE: tuple[Case, ...] = (
    ((5,), np.array([[3], [0], [4]], I32), GatherDimensionNumbers((), (0,), (0,)), (1,)),
    ((4, 3), np.array([[2], [0]], I32), GatherDimensionNumbers((1,), (0,), (0,)), (1, 3)),
    ((3, 4), np.array([[1], [3]], I32), GatherDimensionNumbers((0,), (1,), (1,)), (3, 1)),
    ((5, 4), np.array([[2], [0]], I32), GatherDimensionNumbers((0, 2), (), (0,)), (2, 4)),
    (
        (2, 4, 3),
        np.array([[[1], [2]], [[3], [0]], [[0], [1]]], I32),
        GatherDimensionNumbers((), (1,), (1,), (0, 2), (1, 0)),
        (1, 1, 1),
    ),
)


def moved(values: NDArray, number: int) -> NDArray:
    """The other elements of a batch: floats rotated, indices moved by one towards zero."""
    if values.dtype.kind in "iu" and values.ndim and values.shape[-1] <= 2:
        return np.where(values > 0, np.maximum(values - number, 0), values).astype(values.dtype)
    return np.roll(values.reshape(-1), number).reshape(values.shape)


def update_shape(case: Case) -> tuple[int, ...]:
    """The shape of updates for the slices that a gather reads."""
    shape, indices, numbers, sizes = case
    removed = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window = [sizes[d] for d in range(len(shape)) if d not in removed]
    batch = iter(indices.shape[:-1])
    offsets = iter(window)
    rank = indices.ndim - 1 + len(window)
    return tuple(next(offsets if d in numbers.offset_dims else batch) for d in range(rank))


def inside(case: Case) -> Case:
    """The case with its indices moved in bounds."""
    shape, indices, numbers, sizes = case
    limits = [shape[d] - sizes[d] for d in numbers.start_index_map]
    return shape, np.clip(indices, 0, np.array(limits, I32)), numbers, sizes


INDEX_DTYPES = across_dtypes(
    Sample((ramp(5), np.array([[3], [0], [9], [1]]))), INTEGERS, 1
)  # values that each of the dtypes holds
GATHERS = [
    *(
        Sample(
            (ramp(*case[0]), case[1]),
            # With another fill value it would be affine, not linear.
            reading(case[2], case[3], mode, 0),
            linear=(0,),
            vary=moved,
        )
        for case in CASES
        for mode in (CLIP, FILL)
    ),
    *(
        Sample(
            (ramp(*case[0]), case[1]),
            reading(case[2], case[3], PROMISE, None),
            linear=(0,),
            vary=moved,
        )
        for case in map(inside, CASES)
    ),
    *(
        # The result of a broken promise is not differentiated the way it is computed.
        Sample(
            (ramp(*case[0]), case[1]),
            reading(case[2], case[3], mode, NAN),
            differentiable=(),
            vary=moved,
        )
        for case in CASES
        for mode in (FILL, PROMISE)
    ),
    *(
        sample.replace(
            params=reading(ELEMENTS[2], ELEMENTS[3], mode, -1),
            differentiable=(),
            note="index dtype",
        )
        for sample in INDEX_DTYPES
        for mode in MODES
    ),
    *(
        sample.replace(
            params=reading(ROWS[2], ROWS[3], FILL, default_fill(sample.args[0].dtype)),
            differentiable=(),
        )
        for sample in across_dtypes(Sample((ramp(4, 3), ROWS[1]), vary=moved), ALL_DTYPES, 0)
    ),
    Sample(
        (ramp(300), np.array([[-1], [127], [-128], [5]], np.int8)),
        reading(ELEMENTS[2], (1,), CLIP, None),
        note="an index dtype that does not hold the size",
        batched=(0,),
    ),
    *(
        Sample(
            (ramp(5), np.array([[2**31 + 3], [2**32 - 1], [1]], np.uint32)),
            reading(ELEMENTS[2], (1,), mode, NAN),
            differentiable=(),
            note="unsigned indices beyond the signed ones",
            batched=(0,),
        )
        for mode in MODES
    ),
    *(
        Sample(
            (ramp(5, 2), np.array([[2**31 - 1], [-(2**31)], [3]], I32)),
            reading(GatherDimensionNumbers((1, 2), (), (0,)), (2, 2), mode, NAN),
            differentiable=(),
            note="extreme indices",
            batched=(0,),
        )
        for mode in MODES
    ),
    Sample(
        (ramp(5), np.array([[2**63 - 1], [-(2**63)], [3]], np.int64)),
        reading(ELEMENTS[2], (1,), FILL, NAN),
        differentiable=(),
        note="extreme indices",
        batched=(0,),
    ),
    Sample(
        (ramp(5), np.array([[1.0]], F32)), reading(ELEMENTS[2], (1,), CLIP, None), raises=TypeError
    ),
    Sample(
        (ramp(5), np.array([[1, 1]], I32)), reading(ELEMENTS[2], (1,), CLIP, None), raises=TypeError
    ),
    Sample((ramp(5), ELEMENTS[1]), reading(ELEMENTS[2], (2,), CLIP, None), raises=TypeError),
    Sample((ramp(5), ELEMENTS[1]), reading(ELEMENTS[2], (6,), CLIP, None), raises=TypeError),
    Sample((ramp(5), ELEMENTS[1]), reading(ELEMENTS[2], (), CLIP, None), raises=TypeError),
    Sample((ramp(5), np.array(1, I32)), reading(ELEMENTS[2], (1,), CLIP, None), raises=TypeError),
    Sample((ramp(4, 3), ELEMENTS[1]), reading(ELEMENTS[2], (1, 3), CLIP, None), raises=TypeError),
    Sample(
        (ramp(4, 3), ROWS[1]),
        reading(GatherDimensionNumbers((1,), (0,), (2,)), (1, 3), CLIP, None),
        raises=TypeError,
    ),
    Sample(
        (ramp(4, 3), ROWS[1]),
        reading(GatherDimensionNumbers((1,), (0,), (1,), (0,), (0,)), (1, 3), CLIP, None),
        raises=TypeError,
    ),
]


def scatters(
    linear: tuple[int, ...],
    unique_linear: tuple[int, ...],
    dtypes: Any,
    thorough: bool = False,
    **options: Any,
) -> list[Sample]:
    """Samples for every member of the scatter family.

    Args:
        linear: positions of arguments in which the member is linear.
        unique_linear: the same if indices are unique.
        dtypes: of operand and updates.
        thorough: whether to batch all of them; the members share the batching rule.
        **options: further fields of all samples.
    """
    made = []
    for mode in MODES:
        for case in map(inside, CASES) if mode is PROMISE else CASES:
            first = case is ELEMENTS or mode is FILL
            batched = None if first and (thorough or case[2].operand_batching_dims) else ()
            made.append(
                Sample(
                    (ramp(*case[0]), case[1], ramp(*update_shape(case), start=0.5)),
                    updating(case[2], mode),
                    linear=linear,
                    vary=moved,
                    batched=batched,
                    **(options | ({} if first or thorough else {"differentiable": ()})),
                )
            )
    made += [
        Sample(
            (ramp(*case[0]), case[1], ramp(*update_shape(case), start=0.5)),
            updating(case[2], PROMISE),
            vary=moved,
            batched=(),
            **(options | {"differentiable": ()}),
        )
        for case in CASES
    ]
    made += [
        Sample(
            (ramp(*case[0]), case[1], ramp(*update_shape(case), start=0.5)),
            updating(case[2], mode, unique=True),
            linear=unique_linear,
            batched=(0, 2) if thorough else (),
            note="unique indices",
            **options,
        )
        for case in UNIQUE
        for mode in (CLIP, FILL)
    ]
    made += across_dtypes(
        Sample(
            (ramp(4, 3), ROWS[1], ramp(5, 3, start=0)),
            updating(ROWS[2], FILL),
            vary=moved,
            batched=(),
            **options,
        ),
        dtypes,
        0,
        2,
    )
    # Derivatives do not depend on the following fields.
    options = options | {"differentiable": ()}
    made += across_dtypes(
        Sample(
            (ramp(5), np.array([[3], [0], [9], [1]]), ramp(4)),
            updating(ELEMENTS[2], FILL),
            note="index dtype",
            batched=(),
            **options,
        ),
        INTEGERS,
        1,
    )
    made += [
        Sample(
            (ramp(300), np.array([[-1], [127], [5]], np.int8), ramp(3)),
            updating(ELEMENTS[2], mode),
            note="an index dtype that does not hold the size",
            batched=(),
            **options,
        )
        for mode in MODES
    ]
    made += [
        Sample(
            (ramp(5, 2), np.array([[2**31 + 3], [2**32 - 1], [1]], np.uint32), ramp(3, 2, 2)),
            updating(GatherDimensionNumbers((1, 2), (), (0,)), mode),
            note="unsigned indices beyond the signed ones",
            batched=(),
            **options,
        )
        for mode in MODES
    ]
    made += [
        Sample(
            (ramp(5, 2), np.array([[2**31 - 1], [-(2**31)], [3]], I32), ramp(3, 2, 2)),
            updating(GatherDimensionNumbers((1, 2), (), (0,)), mode),
            note="extreme indices",
            batched=(),
            **options,
        )
        for mode in MODES
    ]
    made += [
        Sample(args, updating(numbers, CLIP), raises=TypeError)
        for args, numbers in (
            ((ramp(5), ELEMENTS[1], ramp(5).astype(np.float16)), ELEMENTS[2]),
            ((ramp(5), ELEMENTS[1].astype(F32), ramp(5)), ELEMENTS[2]),
            ((ramp(5), ELEMENTS[1], ramp(4)), ELEMENTS[2]),
            ((ramp(4, 3), ROWS[1], ramp(5, 4)), ROWS[2]),
            ((ramp(4, 3), ROWS[1], ramp(5)), ROWS[2]),
        )
    ]
    return made


ARITHMETIC = BOOLS + INTEGERS + FLOATS + COMPLEXES
SAMPLES = {
    "gather": GATHERS,
    "scatter": scatters((0, 2), (0, 2), ALL_DTYPES, thorough=True),
    "scatter-add": scatters((0, 2), (0, 2), ARITHMETIC),
    "scatter-sub": [
        *scatters((0, 2), (0, 2), INTEGERS + FLOATS + COMPLEXES),
        *rejected(
            Sample((ramp(5), ELEMENTS[1], ramp(5)), updating(ELEMENTS[2], CLIP)), BOOLS, 0, 2
        ),
    ],
    "scatter-mul": scatters((0,), (0,), ARITHMETIC, absolute=16.0),
    "scatter-min": scatters((), (), ALL_DTYPES),
    "scatter-max": scatters((), (), ALL_DTYPES),
}
