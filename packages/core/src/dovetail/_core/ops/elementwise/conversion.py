"""The same numbers in another dtype, the same bits as another dtype, and identities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from dovetail._core.base import dtypes, pytree, source
from dovetail._core.base.errors import DTypeError
from dovetail._core.base.typing import Array, ArrayLike, DType, DTypeLike
from dovetail._core.basis.elementwise import Elementwise, convert_element_type_p, dtype_name
from dovetail._core.basis.families import NoGradient, Unary
from dovetail._core.basis.operands import as_operand as _operand
from dovetail._core.basis.structural import full, is_linear, move_dimension
from dovetail._core.ir.avals import (
    ShapedArray,
    array_conversion,
    as_array,
    aval_of,
    is_array_like,
    make_aval,
)
from dovetail._core.ops.shape.dimensions import integer
from dovetail._core.trace.divisions import Labels, divided_alike, first_alike
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.tracer import ArrayClass
from dovetail._core.trace.zeros import Zero

T = TypeVar("T")
ComplexWarning: Final = getattr(np, "exceptions", np).ComplexWarning


class BitcastConvertType(NoGradient):
    """The bits of an array as another dtype."""

    name = "bitcast_convert_type"
    generates_nan = False

    def abstract(self, x: Any, *, new_dtype: Any) -> Any:
        old, new = x.dtype, new_dtype
        if dtypes.kind_of(old) == "" or dtypes.kind_of(new) == "":
            raise DTypeError(
                f"bitcast_convert_type does not take {dtype_name(old)} to {dtype_name(new)}"
            )
        if old != new and (dtypes.kind_of(old) in "bc" or dtypes.kind_of(new) in "bc"):
            raise DTypeError(
                "bitcast_convert_type takes bool and complex dtypes to themselves only, "
                f"got {dtype_name(old)} and the new dtype {dtype_name(new)}"
            )
        old_bits, new_bits = dtypes.itemsize_bits(old), dtypes.itemsize_bits(new)
        if old_bits == new_bits:
            shape = x.shape
        elif old_bits > new_bits:
            shape = (*x.shape, old_bits // new_bits)
        else:
            if not x.shape or x.shape[-1] * old_bits != new_bits:
                raise ValueError(
                    f"bitcast_convert_type from {dtype_name(old)} to {dtype_name(new)} joins the "
                    f"{new_bits // old_bits} elements of the last dimension, but the shape is "
                    f"{x.shape}"
                )
            shape = x.shape[:-1]
        return make_aval(shape, new)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return first_alike(avals, results, "joins the bits along")

    def reference(self, x: Any, *, new_dtype: Any) -> Any:
        x = np.ascontiguousarray(x).reshape(np.shape(x))
        out = self.abstract(aval_of(x), new_dtype=new_dtype)
        return np.frombuffer(x.tobytes(), out.dtype).reshape(out.shape)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, new_dtype: Any
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        # A dimension is added or removed at the end.
        return self.bind(move_dimension(x, d, 0), new_dtype=new_dtype), 0

    def lower(self, context: Any, x: Any, *, new_dtype: Any) -> Any:
        return context.bitcast_convert(x, context.avals_out[0])


bitcast_convert_type_p: Final = BitcastConvertType()


class ReducePrecision(Unary):
    """Numbers rounded to a format with fewer bits, in the same dtype."""

    name, kinds = "reduce_precision", "f"
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)
    generates_nan = False

    def abstract(self, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
        if exponent_bits < 1 or mantissa_bits < 0:
            raise ValueError(
                "reduce_precision needs exponent_bits >= 1 and mantissa_bits >= 0, "
                f"got {exponent_bits} and {mantissa_bits}"
            )
        return super().abstract(x)

    @staticmethod
    def numpy(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
        """Rounded to even; infinite above the format's range, zero below its normal numbers."""
        wide = x.astype(np.float64)
        fraction, exponent = np.frexp(wide)
        scale = np.ldexp(1.0, min(mantissa_bits, 52) + 1)
        rounded = np.ldexp(np.rint(fraction * scale) / scale, exponent)
        bias = 2 ** (exponent_bits - 1) - 1
        largest = min(bias, 1023)
        with np.errstate(all="ignore"):
            limit = np.ldexp(2.0 - np.ldexp(1.0, -min(mantissa_bits, 52)), largest)
            rounded = np.where(np.abs(rounded) > limit, np.copysign(np.inf, wide), rounded)
            smallest = np.ldexp(1.0, max(1 - bias, -1022))
            rounded = np.where(np.abs(rounded) < smallest, np.copysign(0.0, wide), rounded)
        return np.where(np.isfinite(wide), rounded, wide)

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return self.bind(t, **params)

    def transpose(self, ct: Any, x: Any, **params: Any) -> Sequence[Any]:
        return (self.bind(ct, **params) if is_linear(x) else None,)

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        bits = {name: context.i32(params[name]) for name in ("exponent_bits", "mantissa_bits")}
        return context.op("reduce_precision", values, out, bits)


reduce_precision_p: Final = ReducePrecision()


class Copy(Elementwise):
    """The same array, in its own memory."""

    name, kinds = "copy", "biufc"
    keeps_elements = True
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)
    generates_nan = False

    def check_dtypes(self, *avals: ShapedArray) -> None:
        """Every dtype can be copied."""

    def abstract(self, *avals: Any, **params: Any) -> Any:
        return avals[0]

    def reference(self, *args: Any, **params: Any) -> Any:
        return np.array(args[0])

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        return self.bind(x), t if type(t) is Zero else self.bind(t)

    def transpose(self, ct: Any, *args: Any, **params: Any) -> Sequence[Any]:
        return (ct if is_linear(args[0]) else None,)

    def lower(self, context: Any, *values: Any, **params: Any) -> Any:
        # A result that is also an argument is copied where the program returns it.
        return values[0]


copy_p: Final = Copy()


class StopGradient(Primitive):
    """The same array, with zero derivative."""

    name = "stop_gradient"
    keeps_elements = True
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)
    accepts_zeros = True
    generates_nan = False

    def abstract(self, x: Any) -> Any:
        return x

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def reference(self, x: Any) -> Any:
        return np.array(x)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        return out, Zero.of(out)

    def batch(self, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
        return self.bind(*args), dims[0]

    def lower(self, context: Any, *values: Any) -> Any:
        return values[0]


stop_gradient_p: Final = StopGradient()


# Public functions


def dtype(x: ArrayLike | DTypeLike) -> DType:
    """The dtype of a value as an array, or the dtype that a type or a name stands for.

    Args:
        x: an array, a number, a dtype, or a type or name for one.

    Returns:
        A dtype, of 32 bits where 64-bit types are off.

    Raises:
        TypeError: `x` has no dtype.
        ValueError: `x` is None.

    Example:
        >>> from dovetail import lax
        >>> lax.dtype(1.0), lax.dtype("int8")
        (dtype('float32'), dtype('int8'))
    """
    if x is None:
        raise ValueError("lax.dtype: None has no dtype")
    if isinstance(x, (type, str, np.dtype, dtypes.ExtendedDType)):
        return dtypes.check_user_dtype(x, "lax.dtype")
    return dtypes.dtype_of(x)


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The elements converted to another dtype.

    Floating point numbers lose their fraction on the way to integers. Unlike in NumPy, those out of
    range become the nearest representable integer, and NaN becomes 0. Integers out of range wrap
    around. Complex numbers lose their imaginary part, with a warning.

    Args:
        operand: any numbers or booleans.
        new_dtype: a dtype, or a type of Python numbers for the default dtype of that kind.

    Returns:
        An array of the shape of `operand`, of `new_dtype` (of 32 bits unless 64 are switched on),
        not weakly typed.

    Raises:
        TypeError: the dtypes differ and one of them is not numeric.

    Example:
        >>> from dovetail import lax
        >>> int(lax.convert_element_type(-2.75, int))
        -2
    """
    x = _operand(operand, "lax.convert_element_type", "operand")
    if new_dtype is None:
        raise ValueError("lax.convert_element_type: new_dtype must be a dtype, got None")
    dtypes.refuse_array(new_dtype, "lax.convert_element_type", "new_dtype")
    aval = aval_of(x)
    new = dtypes.canonicalize_dtype(new_dtype, allow_extended_dtype=True)
    if aval.dtype == new and not aval.weak_type and isinstance(x, ArrayClass):
        return x
    if aval.dtype == dtypes.float0:
        return full(aval.shape, 0, new)
    if dtypes.kind_of(aval.dtype) == "c" and dtypes.kind_of(new) in ("i", "u", "f"):
        source.warn("Casting complex values to real discards the imaginary part", ComplexWarning)
    return convert_element_type_p.bind(x, new_dtype=new, weak_type=False, sharding=None)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The same bits as another dtype.

    A dtype of fewer bits adds a dimension at the end, the least significant part first. One of more
    bits removes the last dimension.

    Args:
        operand: integers or floating point numbers.
        new_dtype: a dtype of integers or floating point numbers.

    Returns:
        An array of `new_dtype`.

    Raises:
        TypeError: a dtype is bool or complex, and they differ; or there is none.
        ValueError: the last dimension does not hold exactly the elements of one new element.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> hex(int(lax.bitcast_convert_type(np.float32(1.0), np.uint32)))
        '0x3f800000'
    """
    x = _operand(operand, "lax.bitcast_convert_type", "operand")
    dtypes.refuse_array(new_dtype, "lax.bitcast_convert_type", "new_dtype")
    if new_dtype is None:
        raise TypeError("lax.bitcast_convert_type requires a dtype as new_dtype, got None")
    return bitcast_convert_type_p.bind(x, new_dtype=dtypes.canonicalize_dtype(new_dtype))


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Numbers rounded to a floating point format with fewer bits, in the same dtype.

    Ties round to even. Numbers too large for the format become infinite; those below its smallest
    normal number become zero.

    Args:
        operand: floating point numbers.
        exponent_bits: of the format; at least 1.
        mantissa_bits: of the format, not counting the leading one; at least 0.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: `operand` is not floating point.
        ValueError: a number of bits is too small.

    Example:
        >>> from dovetail import lax
        >>> float(lax.reduce_precision(1.001, exponent_bits=5, mantissa_bits=3))
        1.0
    """
    return reduce_precision_p.bind(
        _operand(operand, "lax.reduce_precision", "operand"),
        exponent_bits=integer(exponent_bits, "reduce_precision", "exponent_bits"),
        mantissa_bits=integer(mantissa_bits, "reduce_precision", "mantissa_bits"),
    )


def stop_gradient(x: T) -> T:
    """`x`, as a constant to differentiation.

    Args:
        x: a tree of arrays; leaves that are not arrays are returned as they are.

    Returns:
        A tree like `x`; its derivative in `x` is zero.

    Differs:
        Integers, booleans and leaves that are no arrays are returned as they are, and nothing
        is bound for them.

        >>> lax.stop_gradient({"name": "relu", "size": 3})
        {'name': 'relu', 'size': 3}

    Example:
        >>> import dovetail
        >>> from dovetail import lax
        >>> float(dovetail.grad(lambda x: x * lax.stop_gradient(x))(3.0))
        3.0
    """

    def stop(leaf: Any) -> Any:
        if array_conversion(leaf) is not None and not is_array_like(leaf):
            leaf = as_array(leaf)  # it may hold what depends on an argument
        if not is_array_like(leaf) or dtypes.kind_of(aval_of(leaf).dtype) not in ("f", "c"):
            return leaf
        return stop_gradient_p.bind(_operand(leaf, "lax.stop_gradient"))

    stopped: T = pytree.map(stop, x)
    return stopped
