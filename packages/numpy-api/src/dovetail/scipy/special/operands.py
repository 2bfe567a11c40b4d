"""Operands of special functions: checked, in one dtype, and wide enough to compute with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    broadcast_ranks,
    convert,
    inexact,
    inexact_dtype,
    literal,
    refuse_complex,
    same_dtype,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.unchecked import broadcast_in_dim
from dovetail.numpy.compiled import compiled
from dovetail.numpy.conditions import pick

#: Dtypes in which functions are computed.
SINGLE, DOUBLE = np.dtype("float32"), np.dtype("float64")


def inexact_operands(function: str, **given: Any) -> list[Any]:
    """Operands by their names, as floats or complex numbers of one dtype, in shapes that broadcast.

    Raises:
        TypeError: an operand is no array or number, or has no numeric dtype.
        ValueError: the shapes do not broadcast.
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
    return [value(x) for x in broadcast_ranks(function, same_dtype(known, function))]


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
    narrow = dtypes.kind_of(dtype) == "f" and dtypes.itemsize_bits(dtype) < 32
    wide = SINGLE if narrow else dtype
    return convert(rule(*(value(convert(x, wide)) for x in operands)), dtype, is_weak)


def in_double(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A function of float32 or float64 that is computed in float64.

    It is always one program, so that nothing outside of it has another dtype than its operands. It
    has no derivatives: they are given by a `custom_jvp` around it.
    """

    def run(*operands: Any) -> Any:
        dtype = aval_of(operands[0]).dtype
        return convert(rule(*(convert(x, DOUBLE) for x in operands)), dtype)

    run.__name__ = rule.__name__
    return compiled(run)


def where(condition: Any, where_true: Any, where_false: Any) -> Any:
    """Elements of one of two operands, of which one may be a number.

    Unlike that of `dovetail.numpy` it keeps float64 where programs have no dtypes of 64 bits.
    """
    like = where_false if isinstance(where_true, (int, float)) else where_true
    dtype = aval_of(like).dtype
    cases = (
        literal(x, dtype) if isinstance(x, (int, float)) else x for x in (where_true, where_false)
    )
    return pick(condition, *cases)


def filled(like: Any, number: float) -> Any:
    """A number as an array of the shape and dtype of another."""
    return broadcast_in_dim(literal(number, aval_of(like).dtype), aval_of(like).shape, ())
