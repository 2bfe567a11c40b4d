"""Conditions, and choices between checked operands."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import Literal, array_like, broadcast_result, literal
from dovetail.extend.avals import aval_of

_BOOL: Final = np.dtype(bool)


def pick(condition: Any, where_true: Any, where_false: Any) -> Any:
    """Elements of one of two checked operands of one dtype; both broadcast."""
    shapes = [aval_of(v).shape for v in (condition, where_true, where_false)]
    shape = broadcast_result("where", shapes)
    cases = [spread(v, shape) for v in (where_false, where_true)]
    # A scalar condition chooses one of two whole arrays.
    which = spread(condition, shape) if shapes[0] or type(condition) is Literal else condition
    return lax.select_n_p.bind(which, *cases)


def literal_beside(number: float, x: Any) -> Any:
    """A number to combine with a checked operand, weakly typed if that is a weakly typed scalar.

    A weakly typed array takes the dtype of the number: the result has a dtype of its own.
    """
    aval = aval_of(x)
    return literal(number, aval.dtype, aval.weak_type and not aval.ndim)


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """A checked operand broadcast to a shape."""
    x_shape = aval_of(x).shape
    if x_shape == shape and type(x) is not Literal:
        return x
    missing = len(shape) - len(x_shape)
    return lax.broadcast_in_dim(x, shape, tuple(range(missing, len(shape))))


def as_condition(function: str, x: Any, argument: str = "condition") -> Any:
    """A checked operand as booleans: which elements are nonzero."""
    x = array_like(x, function, argument)
    return truth(x)


def as_mask(function: str, where: Any) -> Any:
    """The checked argument `where`: which elements to include.

    Raises:
        TypeError: it does not hold booleans.
    """
    mask = array_like(where, function, "where")
    if dtypes.kind_of(mask.dtype) != "b":
        raise TypeError(
            f"{function} requires where to hold booleans, got dtype {mask.dtype}; write where != 0"
        )
    return mask


def truth(x: Any) -> Any:
    """Which elements of a checked operand are nonzero."""
    dtype = aval_of(x).dtype
    if dtype == _BOOL:
        return x
    return lax.ne(x, literal(0, dtype))
