"""Operands of special functions: checked, in one dtype, and wide enough to compute with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    broadcast_ranks,
    broadcast_result,
    convert,
    inexact,
    inexact_dtype,
    refuse_complex,
    same_dtype,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.averages import computed_in
from dovetail.numpy.conditions import spread

SINGLE, DOUBLE = np.dtype("float32"), np.dtype("float64")


def of_one_dtype(function: str, **given: Any) -> list[Any]:
    """Operands by their names, as floats or complex numbers of one dtype.

    Raises:
        TypeError: an operand is no array or number, or has no numeric dtype.
    """
    known = [array_like(x, function, name) for name, x in given.items()]
    if len(known) == 1:
        return [value(inexact(function, known[0], next(iter(given))))]
    if not any(dtypes.kind_of(aval_of(x).dtype) in ("f", "c") for x in known):
        # Integers become floats first: 300 would not fit the uint8 it is combined with.
        dtype, weak = dtypes.result_type(
            *(x if aval_of(x).weak_type else aval_of(x).dtype for x in known),
            return_weak_type_flag=True,
        )
        weak = weak and dtypes.kind_of(dtype) != "b"
        known = [convert(x, inexact_dtype(dtype), weak) for x in known]
    return [value(x) for x in same_dtype(known, function)]


def inexact_operands(function: str, **given: Any) -> list[Any]:
    """`of_one_dtype` in shapes that broadcast.

    Raises:
        TypeError: an operand is no array or number, or has no numeric dtype.
        ValueError: the shapes do not broadcast.
    """
    return [value(x) for x in broadcast_ranks(function, of_one_dtype(function, **given))]


def of_one_shape(operands: Sequence[Any]) -> list[Any]:
    """Operands broadcast to their common shape."""
    shape = broadcast_result("broadcast", [aval_of(x).shape for x in operands])
    return [spread(x, shape) for x in operands]


def real_operands(function: str, **given: Any) -> list[Any]:
    """`inexact_operands` that are real.

    Raises:
        TypeError: an operand is complex, or no array or number.
    """
    operands = inexact_operands(function, **given)
    for x in operands:
        refuse_complex(function, x)
    return operands


def computed(rule: Callable[..., Any], operands: Sequence[Any], *, weak: bool = True) -> Any:
    """What a rule gives, computed in float32 at least, in the dtype of its operands.

    Args:
        rule: function of arrays of one dtype, float32 or float64 where they are real.
        operands: operands of one dtype.
        weak: whether the result of weakly typed operands is weakly typed.
    """
    dtype = aval_of(operands[0]).dtype
    is_weak = weak and all(weak_of(x) for x in operands)
    wide = [value(convert(x, computed_in(dtype))) for x in operands]
    return convert(rule(*wide), dtype, is_weak)
