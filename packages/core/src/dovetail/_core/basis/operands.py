"""Conversion of user arguments to operands of primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import NonArrayArgumentError
from dovetail._core.base.typing import Array
from dovetail._core.basis.structural import broadcast_in_dim_p, instantiate_zeros
from dovetail._core.ir.avals import (
    AbstractToken,
    ShapedArray,
    array_conversion,
    aval_of,
    is_array_like,
    make_aval,
    named_kind,
    numpy_refusal,
)
from dovetail._core.ir.dimensions import SymbolicDimension, dimension_value
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.trace.primitive import primitive
from dovetail._core.trace.tracer import ArrayClass

_SCALARS = (bool, int, float, complex)


def as_operand(x: Any, function: str, argument: str = "x") -> Array:
    """`x` as an operand of a primitive.

    Args:
        x: array, tracer, NumPy value or Python scalar.
        function: name of the user's function, for the message.
        argument: name of its argument, for the message.

    Returns:
        `x` itself, or a `Literal` for a host scalar. A Python integer too large for the default
        integer dtype gets the unsigned dtype of that width, if it fits.

    Raises:
        NonArrayArgumentError: `x` is none of these.
    """
    if isinstance(x, ArrayClass) or type(x) is Literal:
        return x  # type: ignore[return-value]
    if type(x) in _SCALARS:
        return Literal(x, _aval_of_scalar(x))  # type: ignore[return-value]
    if isinstance(x, (np.ndarray, np.generic)):
        refusal = numpy_refusal(x, f"{function}: the argument {argument}")
        if refusal:
            raise refusal
        if x.ndim == 0 and x.dtype != dtypes.float0:
            aval = aval_of(x)
            return Literal(np.asarray(x, aval.dtype)[()], aval)  # type: ignore[return-value]
        return np.asarray(x)  # type: ignore[return-value]
    if not is_array_like(x):
        convert = array_conversion(x)
        if convert is not None:
            return as_operand(convert(), function, argument)
        hint = (
            f"; write dovetail.numpy.asarray({argument}) first"
            if isinstance(x, (list, tuple))
            else ""
        )
        raise NonArrayArgumentError(
            f"{function} requires its argument {argument} to be an array or a scalar, got "
            f"{named_kind(x)}{hint}"
        )
    return x


def as_result(x: Any) -> Any:
    """A result of a transformation as users hold it: an array or tracer, also of a zero.

    A function that returns its argument may return a number of Python's, or a value of NumPy's.
    """
    if isinstance(x, ArrayClass):
        return x
    x = instantiate_zeros(x)
    if isinstance(x, ArrayClass) or type(aval_of(x)) is AbstractToken:
        return x
    if aval_of(x).dtype == dtypes.float0:
        return x
    operand = as_operand(x, "a transformed function", "result")
    shape = aval_of(operand).shape
    return broadcast_in_dim_p.bind(
        operand, shape=shape, broadcast_dimensions=tuple(range(len(shape))), sharding=None
    )


def number_of(number: Literal, dtype: Any, function: str, weak_type: bool = False) -> Any:
    """A weakly typed scalar in the dtype of the arrays that it is combined with.

    Raises:
        OverflowError: it is an integer that the dtype cannot hold.
    """
    value = number.val
    if type(value) is int and dtypes.kind_of(dtype) in ("i", "u"):
        value = dtypes.fitted(value, dtype, function)
    return make_literal(value, dtype, weak_type)


def _aval_of_scalar(x: Any) -> ShapedArray:
    if type(x) is int and x.bit_length() >= 32:
        unsigned = dtypes.default_dtype("u")
        if dtypes.iinfo(dtypes.default_dtype("i")).max < x <= dtypes.iinfo(unsigned).max:
            return make_aval((), unsigned, True)
    aval: ShapedArray = aval_of(x)
    return aval


def make_literal(value: Any, dtype: Any, weak_type: bool = False) -> Any:
    """A scalar constant of a dtype: a `Literal`, which can stand in for an array.

    Example:
        >>> make_literal(2, np.dtype("float32"))
        2.0:f32[]
    """
    if type(value) is SymbolicDimension:
        return primitive("convert_element_type").bind(
            dimension_value(value), new_dtype=dtype, weak_type=weak_type, sharding=None
        )
    if weak_type:
        return Literal(
            dtypes.scalar_type_of(np.zeros((), dtype))(value), make_aval((), dtype, True)
        )
    try:
        array = np.asarray(value, dtype)
    except TypeError:  # ml_dtypes takes no integers of more than 64 bits
        array = np.asarray(float(value), dtype)
    return Literal(array[()], make_aval((), dtype))


def literal_like(value: Any, like: Any) -> Any:
    """A scalar constant with the dtype and weak type of `like`."""
    aval = aval_of(like)
    return make_literal(value, aval.dtype, aval.weak_type)


def typed_like(value: Any, aval: Any) -> Any:
    """A Python number as a scalar of the expected dtype, if its kind promotes to that."""
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        kinds = "biufc"
        if not aval.shape and kinds.find(dtypes.kind_of(aval.dtype)) >= kinds.find(
            dtypes.kind_of(aval_of(value).dtype)
        ):
            return make_literal(value, aval.dtype, aval.weak_type)
    return value


def equal_dtypes(function: str, *args: Any) -> list[Any]:
    """Operands of one dtype: weakly typed scalars get the dtype of the others.

    Raises:
        TypeError: two operands have different dtypes.
    """
    names = "xyz" if len(args) <= 3 else [f"operand {i}" for i in range(len(args))]
    values: list[Any] = [
        as_operand(a, function, name) for a, name in zip(args, names, strict=False)
    ]
    avals = [aval_of(v) for v in values]
    first = avals[0]
    if all(a.dtype == first.dtype for a in avals):
        return values
    strong = {a.dtype for a in avals if not (a.weak_type and a.ndim == 0)}
    if len(strong) == 1:
        (dtype,) = strong
        weak = all(a.weak_type for a in avals)
        if isinstance(dtype, np.dtype) and (
            dtypes.result_type(
                *(v if a.weak_type else a.dtype for v, a in zip(values, avals, strict=True))
            )
            == dtype
        ):
            return [
                v
                if a.dtype == dtype
                else number_of(v, dtype, f"lax.{function}", weak)
                if type(v) is Literal
                else primitive("convert_element_type").bind(
                    v, new_dtype=dtype, weak_type=weak, sharding=None
                )
                for v, a in zip(values, avals, strict=True)
            ]
    raise TypeError(
        f"lax.{function} requires arguments of equal dtypes, got "
        f"{', '.join(str(a.dtype) for a in avals)}; convert with lax.convert_element_type, or use "
        "dovetail.numpy, which promotes"
    )
