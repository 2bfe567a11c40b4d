"""The option ``index_mode="raise"``: errors for positions out of bounds.

Positions known when an index is applied are checked then; for others a check becomes part of the
program.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np
from dovetail import enable_x64, lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import user_line
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.checks import require
from dovetail.extend.eager import evaluation_trace, trace_state
from dovetail.extend.unchecked import make_literal
from dovetail.numpy.indexing.parsing import INT32, INT64, Along, At, Index, Shape
from dovetail.numpy.indexing.plan import normalized

_MESSAGE: Final = "index {index} is out of bounds for axis {axis} with size {size}"


def check_positions(index: Index, shape: Shape) -> None:
    """Ensure an error if a position of a parsed index is out of bounds.

    Args:
        index: the index.
        shape: the shape that it was parsed for.

    Raises:
        IndexError: a position is known to be out of bounds.
    """
    axis = 0
    for item in index.items:
        if item is None:
            continue
        if isinstance(item, At):
            _check(item.value, item.wrapped, axis, shape[axis])
        elif isinstance(item, Along):
            if item.fresh:
                continue
            _check(item.array, item.wrapped, axis, shape[axis])
        axis += 1


def _check(value: Any, wrapped: bool, axis: int, size: int) -> None:
    if type(value) is int:
        if not 0 <= value < size:
            # Negative positions have already been counted from the end.
            _refuse(value - size if value < 0 else value, axis, size)
    elif isinstance(value, Tracer) or trace_state.trace is not evaluation_trace:
        _check_in_program(value, wrapped, axis, size)
    else:
        places = np.asarray(value).ravel()
        outside = np.flatnonzero((places >= size) | (places < (0 if wrapped else -size)))
        if outside.size:
            position = int(places[outside[0]])
            host = isinstance(value, np.ndarray)
            _refuse(position - size if position < 0 and wrapped and host else position, axis, size)


def _refuse(position: int, axis: int, size: int) -> NoReturn:
    text = _MESSAGE.format(index=position, axis=axis, size=size)
    raise IndexError(f'{text}, and index_mode is "raise" (at {user_line()})')


def _check_in_program(value: Any, wrapped: bool, axis: int, size: int) -> None:
    aval = aval_of(value)
    if not aval.size:
        return
    dtype = INT64 if enable_x64.value else INT32
    places = normalized(lax.reshape(value, (aval.size,)), size, True, dtype)
    lowest = 0 if wrapped or dtypes.kind_of(aval.dtype) == "u" else -size
    outside = lax.bitwise_or(
        lax.lt(places, make_literal(lowest, dtype)), lax.ge(places, make_literal(size, dtype))
    )
    first = lax.argmax(outside, 0, np.dtype(np.int32))
    position = lax.dynamic_index_in_dim(places, first, keepdims=False)
    fits = lax.bitwise_not(lax.reduce_or(outside, (0,)))
    message = _MESSAGE.replace("{axis}", str(axis)).replace("{size}", str(size))
    require(fits, f'{message}, and index_mode is "raise"', (), {"index": position}, IndexError)
