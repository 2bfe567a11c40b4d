"""Operands of special functions: checked, in one dtype, and wide enough to compute with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail import custom_jvp, jit, jvp
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    broadcast_ranks,
    broadcast_result,
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
from dovetail.numpy.conditions import pick, spread

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
    narrow = dtypes.kind_of(dtype) == "f" and dtypes.itemsize_bits(dtype) < 32
    wide = SINGLE if narrow else dtype
    return convert(rule(*(value(convert(x, wide)) for x in operands)), dtype, is_weak)


def in_double(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A function of float32 or float64 that is computed in float64, and complex likewise.

    It is always one program, so that nothing outside of it has another dtype than its operands. It
    has no derivatives: they are given by a `custom_jvp` around it.
    """

    def run(*operands: Any) -> Any:
        dtype = aval_of(operands[0]).dtype
        wide = np.dtype("complex128") if dtypes.kind_of(dtype) == "c" else DOUBLE
        return convert(rule(*(convert(x, wide) for x in operands)), dtype)

    run.__name__ = rule.__name__
    # Not `compiled`, which is inlined by an eager vmap.
    return jit(run)


@functools.cache
def differentiable_in_double(rule: Callable[..., Any]) -> Any:
    """`in_double` with derivatives of every order, each of them computed in float64.

    Args:
        rule: function whose own derivatives are right; its operands have one shape.
    """
    program = in_double(rule)

    @custom_jvp
    def function(*operands: Any) -> Any:
        return program(*operands)

    @function.defjvp
    def derivative(primals: Any, tangents: Any) -> Any:
        total: Any = 0
        for i, tangent in enumerate(tangents):
            slope = differentiable_in_double(_partial_derivative(rule, i))
            total = total + tangent * slope(*primals)
        return function(*primals), total

    return function


@functools.cache
def _partial_derivative(rule: Callable[..., Any], position: int) -> Callable[..., Any]:
    def derivative(*operands: Any) -> Any:
        directions = tuple(filled(x, i == position) for i, x in enumerate(operands))
        return jvp(rule, operands, directions)[1]

    return derivative


def where(condition: Any, where_true: Any, where_false: Any) -> Any:
    """Elements of one of two operands, of which one may be a number.

    Unlike that of `dovetail.numpy` it keeps float64 where programs have no dtypes of 64 bits.
    """
    like = where_false if isinstance(where_true, (int, float, complex)) else where_true
    dtype = aval_of(like).dtype
    cases = (
        literal(x, dtype) if isinstance(x, (int, float, complex)) else x
        for x in (where_true, where_false)
    )
    return pick(condition, *cases)


def filled(like: Any, number: float) -> Any:
    """A number as an array of the shape and dtype of another."""
    return broadcast_in_dim(literal(number, aval_of(like).dtype), aval_of(like).shape, ())
