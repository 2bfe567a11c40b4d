"""The operators of arrays and tracers; here those of arithmetic.

On arrays they are compiled; on tracers these functions themselves run, for every traced operation.
So the common cases come first: operands of one type, and an operand that is a Python number.
Comparisons (`comparisons`) and operators of bits (`bit_operators`) are loaded when they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from dovetail.extend import dtypes
from dovetail.extend.arguments import fits, literal
from dovetail.extend.avals import ArrayClass, array_conversion
from dovetail.extend.eager import unsupported_operands
from dovetail.extend.tracebacks import hide_frames
from dovetail.lax import add_p, div_p, mul_p, neg_p, sub_p
from dovetail.numpy import arithmetic
from dovetail.numpy.compiled import plain

if TYPE_CHECKING:
    from dovetail.extend.unchecked import AnyPrimitive

_KINDS: Final = "biufc"
_SCALAR_RANK: Final[dict[Any, int]] = {bool: 0, int: 1, float: 3, complex: 4}
_HOST: Final = (ArrayClass, bool, int, float, complex, np.ndarray, np.generic)


def _rank(dtype: Any) -> int:
    """The rank of a kind of numbers; scalars of the same or a lower kind take the array's dtype."""
    kind = dtypes.kind_of(dtype)
    return _KINDS.index(kind) if kind else -1


_ranks: Final[dict[Any, int]] = {}


def binary_operator(
    name: str,
    function: Callable[[Any, Any], Any],
    primitive: AnyPrimitive | None,
    kinds: str,
    by_value: bool = False,
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """An operator and its reflection.

    Args:
        name: the name without underscores.
        function: implementation for operands of any dtypes and shapes.
        primitive: implementation for operands of one dtype, of `kinds`, if it is a primitive.
        kinds: dtype kinds.
        by_value: whether a Python integer need not fit the dtype of the array, as in comparisons.
    """
    bind = None if primitive is None else primitive.bind
    allowed: dict[Any, bool] = {}

    def direct(dtype: Any) -> bool:
        is_direct = allowed.get(dtype)
        if is_direct is None:
            is_direct = allowed[dtype] = (
                bind is not None and (dtypes.kind_of(dtype) or "?") in kinds
            )
        return is_direct

    def scalar(x: Any, number: Any) -> Any:
        """A Python number in the dtype of the other operand; None if it does not take that."""
        aval = x.aval
        if aval.weak_type:
            return None
        dtype = aval.dtype
        rank = _ranks.get(dtype)
        if rank is None:
            rank = _ranks[dtype] = _rank(dtype)
        if 0 < rank >= _SCALAR_RANK[type(number)]:
            if by_value and type(number) is int and rank < 3 and not fits(number, dtype):
                return None
            return literal(number, dtype, function=name)
        return None

    def operator(self: Any, other: Any) -> Any:
        try:
            try:
                a, b = self.aval, other.aval
            except AttributeError:
                if type(other) in _SCALAR_RANK:
                    if direct(self.aval.dtype):
                        number = scalar(self, other)
                        if number is not None:
                            return bind(self, number)  # type: ignore[misc]
                    return function(self, other)
                if _is_operand(other):
                    return function(self, other)
                return unsupported_operands(name, (other,))
            if a is b and isinstance(other, ArrayClass) and direct(a.dtype):
                return bind(self, other)  # type: ignore[misc]
            return (
                function(self, other)
                if _is_operand(other)
                else unsupported_operands(name, (other,))
            )
        except Exception as error:
            hide_frames(error)  # of tracers out of place: no boundary is around them
            raise

    def reflected(self: Any, other: Any) -> Any:
        try:
            if type(other) in _SCALAR_RANK:
                if direct(self.aval.dtype):
                    number = scalar(self, other)
                    if number is not None:
                        return bind(number, self)  # type: ignore[misc]
                return function(other, self)
            if _is_operand(other):
                return function(other, self)
            return unsupported_operands(f"r{name}", (other,))
        except Exception as error:
            hide_frames(error)  # as above
            raise

    operator.__name__ = operator.__qualname__ = f"__{name}__"
    reflected.__name__ = reflected.__qualname__ = f"__r{name}__"
    operator.__doc__ = f"See `dovetail.numpy.{getattr(function, '__name__', name)}`."
    reflected.__doc__ = f"{operator.__doc__[:-1]}, with the operands exchanged."
    return operator, reflected


def _is_operand(other: Any) -> bool:
    # Objects that hand on the attributes of an array that they wrap have an aval, and their types
    # have none.
    return (
        isinstance(other, _HOST)
        or hasattr(type(other), "aval")
        or array_conversion(other) is not None
    )


def _power(x: Any, y: Any) -> Any:
    from dovetail.numpy.powers import power  # deferred: a first sum needs no powers

    return power(x, y)


def _matmul(x: Any, y: Any) -> Any:
    from dovetail.numpy.contraction import matmul  # deferred: loads the contractions

    return matmul(x, y)


def _positive(self: Any) -> Any:
    return self


def _negative(self: Any) -> Any:
    return (
        neg_p.bind(self)
        if dtypes.kind_of(self.dtype) in _FAST_NEG
        else arithmetic.negative._func(self)
    )


_FAST_NEG: Final = ("i", "u", "f", "c")


def _absolute(self: Any) -> Any:
    return plain(arithmetic.abs)(self)


def _round(self: Any, ndigits: int | None = None) -> Any:
    """Python's `round`: to an integer without `ndigits`."""
    from dovetail.numpy.rounding import round as rounded  # deferred: rarely used

    if ndigits is not None:
        return rounded(self, ndigits)
    result = rounded(self)
    whole = dtypes.kind_of(result.dtype) in ("i", "u", "f")
    return result.astype(dtypes.default_dtype("i")) if whole else result


_BINARY: Final[dict[str, tuple[Callable[[Any, Any], Any], AnyPrimitive | None, str]]] = {
    "add": (arithmetic.add._func, add_p, "iufc"),
    "sub": (arithmetic.subtract._func, sub_p, "iufc"),
    "mul": (arithmetic.multiply._func, mul_p, "biufc"),
    "truediv": (plain(arithmetic.true_divide), div_p, "fc"),
    "floordiv": (plain(arithmetic.floor_divide), None, ""),
    "mod": (plain(arithmetic.remainder), None, ""),
    "divmod": (plain(arithmetic.divmod), None, ""),
    "pow": (_power, None, ""),
    "matmul": (_matmul, None, ""),
}


def _table() -> dict[str, Callable[..., Any]]:
    table: dict[str, Callable[..., Any]] = {
        "__pos__": _positive,
        "__neg__": _negative,
        "__abs__": _absolute,
        "__round__": _round,
    }
    for name, (function, primitive, kinds) in _BINARY.items():
        both = binary_operator(name, function, primitive, kinds)
        table[f"__{name}__"], table[f"__r{name}__"] = both
    return table


OPERATORS: Final = _table()
