"""Samples of reductions over windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dovetail._core.ir.avals import make_aval
from dovetail._core.ir.jaxpr import DebugInfo, Jaxpr
from dovetail._core.ops.elementwise.arithmetic import add, mul
from dovetail._core.ops.elementwise.bitwise import bitwise_and as and_
from dovetail._core.ops.elementwise.bitwise import bitwise_or as or_
from dovetail._core.ops.elementwise.bitwise import bitwise_xor as xor
from dovetail._core.ops.elementwise.comparison import ge_p, gt, le_p
from dovetail._core.ops.elementwise.extrema import max as larger
from dovetail._core.ops.elementwise.extrema import min as smaller
from dovetail._core.transform.stage import stage
from dovetail.testing.sample import (
    ALL_DTYPES,
    COMPLEXES,
    FLOATS,
    INTEGERS,
    Sample,
    across_dtypes,
    rejected,
)
from dovetail.testing.samples.shape import complex_numbers, numbers

SMALL = np.array([[1, 2, 3, 1, 2], [2, 1, 1, 3, 1], [3, 1, 2, 2, 1]])
TIES = np.array([[3.0, 1, 3, 3], [2, 2, 2, 2], [-0.0, 0.0, -1, 0], [-0.0, -1, 0, 0]], np.float32)
SPECIAL = np.array(
    [
        [1, np.nan, 3, np.nan, 0],
        [np.inf, 2, -np.inf, -np.inf, -np.inf],
        [np.inf, -np.inf, -np.inf, -np.inf, -np.inf],
    ],
    np.float32,
)


def _steps(dimensions: tuple[int, ...], strides: tuple[int, ...], *padding: Any) -> dict[str, Any]:
    return {
        "padding": padding or ((0, 0),) * len(dimensions),
        "window_dimensions": dimensions,
        "window_strides": strides,
    }


def _window(
    dimensions: tuple[int, ...],
    strides: tuple[int, ...],
    *padding: Any,
    base: tuple[int, ...] | None = None,
    window: tuple[int, ...] | None = None,
) -> dict[str, Any]:
    ones = (1,) * len(dimensions)
    dilations = {"base_dilation": base or ones, "window_dilation": window or ones}
    return dilations | _steps(dimensions, strides, *padding)


#: Arguments of `_steps` for arrays of shape (3, 5).
PLAIN: tuple[tuple[Any, ...], ...] = (
    ((2, 2), (1, 2)),
    ((2, 3), (2, 1), (0, 1), (1, 1)),
    ((1, 2), (3, 1), (2, 2), (3, 2)),
    ((2, 2), (1, 1), (-1, 1), (1, -2)),
    ((4, 2), (1, 1)),
)
#: Windows that are dilated, or over dilated arrays of shape (3, 5).
DILATED = (
    _window((2, 2), (1, 2), (0, 0), (1, 2), window=(2, 3)),
    _window((2, 3), (2, 1), (1, 0), (0, 2), base=(2, 3)),
    _window((3, 2), (1, 3), (2, 1), (-1, 2), base=(3, 2), window=(2, 3)),
)
#: Windows over (3, 5) of all kinds.
ALL = (*(_window(*arguments) for arguments in PLAIN), *DILATED)

WRONG = (
    _window((2,), (1,)),
    {**_window((2, 2), (1, 1)), "window_strides": (1,)},
    {**_window((2, 2), (1, 1)), "padding": ((0, 0),)},
    {**_window((2, 2), (1, 1)), "base_dilation": (1, 0)},
    {**_window((2, 2), (1, 1)), "window_dilation": (0, 1)},
    _window((0, 2), (1, 1)),
    _window((2, 2), (1, 0)),
)


def _reduction(
    dtypes: Iterable[Any], refused: Iterable[Any] = (), linear: tuple[int, ...] = ()
) -> list[Sample]:
    return [
        *across_dtypes(Sample((SMALL,), ALL[1], differentiable=() if not linear else None), dtypes),
        *(Sample((numbers(3, 5),), window, linear=linear) for window in ALL),
        Sample((numbers(2, 3, 4),), _window((1, 2, 3), (1, 1, 1)), linear=linear),
        Sample((numbers(20),), _window((9,), (1,), (8, 0)), linear=linear, note="cumulative"),
        Sample((numbers(40),), _window((13,), (2,), (3, 5), window=(2,)), linear=linear),
        Sample((np.float32(3),), _window((), ()), linear=linear, note="scalar"),
        Sample((SPECIAL,), ALL[1], differentiable=(), note="NaN and infinities"),
        Sample((numbers(0, 2),), _window((2, 1), (1, 1), (2, 1), (0, 0)), note="empty"),
        *(Sample((numbers(3, 5),), wrong, raises=TypeError) for wrong in WRONG),
        *rejected(Sample((SMALL,), ALL[1]), refused),
    ]


def _extreme() -> list[Sample]:
    return [
        # Where a window has no elements the result is infinite.
        *(
            s.replace(differentiable=())
            if s.params in (ALL[2], ALL[-1]) or s.note == "empty"
            else s
            for s in _reduction(ALL_DTYPES[:-2])
        ),
        Sample((TIES,), _window((2, 2), (1, 1)), differentiable=(), signed_zeros=False),
        Sample(
            (complex_numbers(numbers(3, 5), numbers(5, 3).T),),
            ALL[1],
            differentiable=(),
            note="complex",
        ),
    ]


def _jaxpr(function: Callable[..., Any], dtype: Any, count: int = 2) -> Jaxpr:
    aval = make_aval((), np.dtype(dtype))
    return stage(function, [aval] * count, DebugInfo("samples", "function")).jaxpr


def _function(function: Callable[..., Any], dtype: Any, count: int = 2) -> dict[str, Any]:
    return {"consts": (), "jaxpr": _jaxpr(function, dtype, count)}


def _product(x: Any, y: Any) -> Any:
    return [mul(x, y)]


def _composed(a: Any, b: Any, c: Any, d: Any) -> Any:
    """For two maps x -> a * x + b, which do not commute."""
    return [mul(a, c), add(mul(b, c), d)]


def _larger_size(x: Any, y: Any) -> Any:
    return [gt(mul(x, x), mul(y, y))]


def _general() -> list[Sample]:
    product = _function(_product, np.float64)
    return [
        *(
            Sample(
                (numbers(3, 5, dtype=np.float64), np.float64(1)),
                {**product, **window},
                batched=None if window is ALL[1] else (0,),
                order=2 if window is ALL[1] else 1,
            )
            for window in ALL
        ),
        *(
            Sample(
                (numbers(14, dtype=np.float64) / 4, np.float64(1)),
                {**product, **window},
                batched=(),
                order=1,
            )
            for window in (
                _window((7,), (1,), (3, 4)),
                _window((6,), (2,), (-1, 4), window=(2,)),
                _window((5,), (3,), (6, 7), base=(2,)),
            )
        ),
        Sample(
            (
                numbers(3, 5, dtype=np.float64),
                numbers(5, 3, dtype=np.float64).T,
                np.float64(1),
                np.float64(0),
            ),
            {**_function(_composed, np.float64, 4), **_window((2, 4), (1, 1), (0, 0), (2, 2))},
            batched=(0, 1),
        ),
        Sample((SMALL.astype(np.int8), np.int8(1)), {**_function(_product, np.int8), **ALL[1]}),
        # Values that are not neutral are combined once, and not with padding.
        *(
            Sample(
                (numbers(3, 5, dtype=np.float64), np.float64(2.5)),
                {**_function(lambda x, y, of=of: [of(x, y)], np.float64), **window},
                differentiable=None if of in (add, mul) else (),
            )
            for of in (add, mul, larger, smaller)
            for window in (ALL[1], *DILATED[1:])
        ),
        *(
            Sample(
                (SMALL.astype(np.int32), np.int32(5)),
                {**_function(lambda x, y, of=of: [of(x, y)], np.int32), **DILATED[1]},
            )
            for of in (add, mul, larger, smaller, and_, or_, xor)
        ),
        Sample(
            (numbers(100, dtype=np.float64), np.float64(3)),
            {
                **_function(lambda x, y: [add(x, y)], np.float64),
                **_window((90,), (1,), (89, 0)),
            },
            batched=(),
            order=1,
            note="cumulative",
        ),
        Sample((numbers(3, 5), np.float64(1)), {**product, **ALL[0]}, raises=TypeError),
        Sample((numbers(3, 5), numbers(3)), {**product, **ALL[0]}, raises=TypeError),
        Sample((np.zeros((3, 5)), np.float64(1)), {**product, **WRONG[0]}, raises=TypeError),
    ]


def _gathering() -> list[Sample]:
    ge, le = {"select_prim": ge_p}, {"select_prim": le_p}
    tangents = numbers(5, 3).T
    return [
        *across_dtypes(
            Sample((tangents, SMALL), {**ge, **ALL[1]}, differentiable=(0,)), ALL_DTYPES, 1
        ),
        *across_dtypes(
            Sample((tangents, numbers(3, 5)), {**ge, **ALL[1]}, differentiable=(0,), linear=(0,)),
            (*FLOATS, *COMPLEXES),
            0,
        ),
        Sample((SMALL, numbers(3, 5)), {**le, **ALL[1]}, differentiable=()),
        *(Sample((tangents, numbers(3, 5)), {**le, **window}, linear=(0,)) for window in ALL),
        *(
            Sample((tangents, SPECIAL), {**prim, **window}, differentiable=(0,), linear=(0,))
            for prim in (ge, le)
            for window in (ALL[1], ALL[-1])
        ),
        Sample((numbers(4, 4), TIES), {**ge, **_window((2, 2), (1, 1))}, differentiable=(0,)),
        Sample((numbers(4, 4), TIES), {**le, **_window((4, 3), (1, 1))}, differentiable=(0,)),
        Sample((np.float32(2), np.float32(3)), {**ge, **_window((), ())}, linear=(0,)),
        Sample(
            (numbers(0, 2), numbers(0, 2)),
            {**ge, **_window((2, 1), (1, 1), (2, 1), (0, 0))},
            linear=(0,),
            note="empty",
        ),
        Sample((tangents, numbers(5, 3)), {**ge, **ALL[0]}, raises=TypeError),
        Sample((tangents, numbers(3, 5)), {**ge, **WRONG[0]}, raises=TypeError),
        Sample((tangents, numbers(3, 5)), {"select_prim": gt.__name__, **ALL[0]}, raises=TypeError),
    ]


#: The number of elements in each window of `PLAIN`.
COUNTS = ((2, 2), (2, 5), (3, 9), (2, 3), (0, 4))


def _scattering() -> list[Sample]:
    ge, le = {"select_prim": ge_p}, {"select_prim": le_p}
    source = numbers(2, 5)
    steps = _steps(*PLAIN[1])
    return [
        *across_dtypes(
            Sample(
                (np.abs(source).astype(int), SMALL),
                {**ge, **steps},
                differentiable=(0,),
                linear=(0,),
            ),
            (*INTEGERS, *FLOATS, *COMPLEXES),
        ),
        *(
            Sample((numbers(*count), numbers(3, 5)), {**le, **_steps(*arguments)}, linear=(0,))
            for arguments, count in zip(PLAIN, COUNTS, strict=True)
        ),
        Sample((source, SPECIAL), {**ge, **steps}, differentiable=(0,), linear=(0,)),
        Sample((source, SPECIAL), {**le, **steps}, differentiable=(0,), linear=(0,)),
        Sample(
            (numbers(3, 3), TIES),
            {**ge, **_steps((2, 2), (1, 1))},
            differentiable=(0,),
            linear=(0,),
        ),
        Sample((np.float32(2), np.float32(3)), {**ge, **_steps((), ())}, linear=(0,)),
        Sample((numbers(0), numbers(0)), {**ge, **_steps((2,), (1,))}, linear=(0,), note="empty"),
        Sample(
            (numbers(2), numbers(0)),
            {**ge, **_steps((2,), (1,), (2, 1))},
            linear=(0,),
            note="empty",
        ),
        Sample((source, numbers(6, 5)), {**ge, **steps}, raises=TypeError),
        Sample((source.astype(np.float64), numbers(3, 5)), {**ge, **steps}, raises=TypeError),
        Sample((source, numbers(3, 5)), {**ge, **_steps((2,), (1,))}, raises=TypeError),
    ]


def _scattering_with_functions() -> list[Sample]:
    functions = {
        "scatter_consts": (),
        "scatter_jaxpr": _jaxpr(_product, np.float64),
        "select_consts": (),
        "select_jaxpr": _jaxpr(_larger_size, np.float64),
    }
    x = numbers(3, 5, dtype=np.float64) + 0.01
    return [
        *(
            Sample(
                (x, numbers(*count, dtype=np.float64), np.float64(3)),
                {**functions, **_steps(*arguments)},
                batched=None if arguments is PLAIN[1] else (0, 1),
                order=2 if arguments is PLAIN[1] else 1,
            )
            for arguments, count in zip(PLAIN, COUNTS, strict=True)
        ),
        Sample(
            (x, numbers(2, 5), np.float64(3)), {**functions, **_steps(*PLAIN[1])}, raises=TypeError
        ),
        Sample((x, x, np.float64(3)), {**functions, **_steps(*PLAIN[1])}, raises=TypeError),
        Sample((x, x, np.float32(3)), {**functions, **_steps(*PLAIN[1])}, raises=TypeError),
    ]


def _approximate() -> list[Sample]:
    def params(k: int, dimension: int, **more: Any) -> dict[str, Any]:
        return {
            "aggregate_to_topk": True,
            "is_max_k": True,
            "k": k,
            "recall_target": 0.95,
            "reduction_dimension": dimension,
            "reduction_input_size_override": -1,
            **more,
        }

    x = numbers(3, 5)
    return [
        *across_dtypes(Sample((x,), params(2, 1)), FLOATS),
        *across_dtypes(Sample((x,), params(2, 0, is_max_k=False)), FLOATS),
        Sample((SPECIAL,), params(5, 1), differentiable=()),
        Sample((-SPECIAL,), params(5, 1, is_max_k=False), differentiable=()),
        Sample((x,), params(2, 1, aggregate_to_topk=False, reduction_input_size_override=9)),
        Sample((numbers(0, 3),), params(1, 1), note="empty"),
        Sample((x.astype(int),), params(1, 1), raises=TypeError),
        *(
            Sample((x,), wrong, raises=ValueError)
            for wrong in (
                params(0, 1),
                params(4, 0),
                params(1, 2),
                params(1, 1, recall_target=0.0),
                params(1, 1, recall_target=1.5),
                params(1, 1, reduction_input_size_override=4),
            )
        ),
    ]


SAMPLES: dict[str, list[Sample]] = {
    "approx_top_k": _approximate(),
    "reduce_window": _general(),
    "reduce_window_sum": _reduction((*INTEGERS, *FLOATS, *COMPLEXES), (bool,), (0,)),
    "reduce_window_max": _extreme(),
    "reduce_window_min": _extreme(),
    "select_and_gather_add": _gathering(),
    "select_and_scatter_add": _scattering(),
    "select_and_scatter": _scattering_with_functions(),
}
