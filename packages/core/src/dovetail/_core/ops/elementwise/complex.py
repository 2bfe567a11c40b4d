"""Complex numbers and their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from dovetail._core.base.errors import DTypeError
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import dtype_name, neg
from dovetail._core.basis.families import Binary, Unary
from dovetail._core.basis.operands import as_operand, literal_like
from dovetail._core.basis.structural import instantiate_zeros, is_linear, sum_to
from dovetail._core.ir.avals import ShapedArray, aval_of
from dovetail._core.ops.elementwise.operands import complex_dtype, operands, real_dtype
from dovetail._core.trace.zeros import Zero


class Real(Unary):
    """The real part."""

    name, hlo, numpy, kinds = "real", "real", np.real, "c"
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)
    generates_nan = False

    def result_dtype(self, *avals: ShapedArray, **params: Any) -> Any:
        return real_dtype(avals[0].dtype)

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return self.bind(t)

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (complex_p.bind(ct, literal_like(0, ct)) if is_linear(x) else None,)


class Imag(Unary):
    """The imaginary part."""

    name, hlo, numpy, kinds = "imag", "imag", np.imag, "c"
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)
    generates_nan = False

    def result_dtype(self, *avals: ShapedArray, **params: Any) -> Any:
        return real_dtype(avals[0].dtype)

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return self.bind(t)

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        # Im(z) = Re(-i z): cotangents are paired with tangents by Re(ct z).
        return (complex_p.bind(literal_like(0, ct), neg(ct)) if is_linear(x) else None,)


real_p: Final = Real()
imag_p: Final = Imag()


class Complex(Binary):
    """Complex numbers from their parts."""

    name, hlo = "complex", "complex"
    linear_in: ClassVar[Sequence[slice]] = (slice(None),)
    kinds = "f"
    generates_nan = False

    @staticmethod
    def numpy(x: Any, y: Any) -> Any:
        """Built part by part, to keep infinite parts as they are."""
        x, y = np.broadcast_arrays(x, y)
        out = np.empty(x.shape, complex_dtype(x.dtype))
        out.real, out.imag = x, y
        return out

    def result_dtype(self, *avals: ShapedArray, **params: Any) -> Any:
        dtype = avals[0].dtype
        if dtype not in (np.float32, np.float64):
            raise DTypeError(
                f"complex does not accept dtype {dtype_name(dtype)}; it takes float32 and float64"
            )
        return complex_dtype(dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        if all(type(t) is Zero for t in tangents):
            return out, Zero.of(out)
        return out, self.bind(*map(instantiate_zeros, tangents))

    def transpose(self, ct: Any, x: Any, y: Any) -> Sequence[Any]:
        return (
            sum_to(real(ct), x.shape) if is_linear(x) else None,
            sum_to(neg(imag(ct)), y.shape) if is_linear(y) else None,
        )


complex_p: Final = Complex()


class Conj(Unary):
    """The complex conjugate; real numbers become complex."""

    name, kinds = "conj", "fc"
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)
    generates_nan = False

    def result_dtype(self, *avals: ShapedArray, **params: Any) -> Any:
        dtype = avals[0].dtype
        if dtype in (np.complex64, np.complex128):
            return dtype
        if dtype not in (np.float32, np.float64):
            raise DTypeError(
                f"conj does not accept dtype {dtype_name(dtype)}; it takes float32, float64 and "
                "complex"
            )
        return complex_dtype(dtype)

    def abstract(self, x: Any, *, input_dtype: Any) -> Any:
        return super().abstract(x)

    def reference(self, x: Any, *, input_dtype: Any) -> Any:
        return np.conj(x).astype(self.abstract(aval_of(x), input_dtype=input_dtype).dtype)

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return self.bind(t, **params)

    def transpose(self, ct: Any, x: Any, *, input_dtype: Any) -> Sequence[Any]:
        if not is_linear(x):
            return (None,)
        if x.dtype == ct.dtype:
            return (self.bind(ct, input_dtype=ct.dtype),)
        return (real(ct),)

    def emit(self, context: Any, *values: Any, out: ShapedArray, input_dtype: Any = None) -> Any:
        (x,) = values
        part = out.update(dtype=real_dtype(out.dtype))
        if context.avals_in[0].dtype != out.dtype:
            return context.complex(x, context.constant(0, part), out)
        negative = context.neg(context.imag(x, part), part)
        return context.complex(context.real(x, part), negative, out)


conj_p: Final = Conj()


# Public functions


def real(x: ArrayLike) -> Array:
    """The real part of each element.

    Args:
        x: complex numbers.

    Returns:
        An array of the shape of `x` and the dtype of its parts.

    Raises:
        TypeError: `x` is not complex.

    Example:
        >>> from dovetail import lax
        >>> float(lax.real(3 + 4j))
        3.0
    """
    return real_p.bind(as_operand(x, "lax.real"))


def imag(x: ArrayLike) -> Array:
    """The imaginary part of each element.

    Args:
        x: complex numbers.

    Returns:
        An array of the shape of `x` and the dtype of its parts.

    Raises:
        TypeError: `x` is not complex.

    Example:
        >>> from dovetail import lax
        >>> float(lax.imag(3 + 4j))
        4.0
    """
    return imag_p.bind(as_operand(x, "lax.imag"))


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """Complex numbers ``x + i y`` from their parts.

    Args:
        x: real parts, float32 or float64.
        y: imaginary parts, of the same dtype; the same shape, or a scalar.

    Returns:
        An array of complex64 or complex128.

    Raises:
        TypeError: dtypes differ, or are neither float32 nor float64.

    Example:
        >>> from dovetail import lax
        >>> lax.complex(3.0, 4.0).item()
        (3+4j)
    """
    return complex_p.bind(*operands("complex", x, y))


def conj(x: ArrayLike) -> Array:
    """The complex conjugate of each element.

    Args:
        x: complex numbers, or float32 or float64 ones, which are returned as complex numbers.

    Returns:
        An array of complex numbers of the shape of `x`.

    Raises:
        TypeError: `x` has another dtype.

    Example:
        >>> from dovetail import lax
        >>> lax.conj(3 + 4j).item()
        (3-4j)
    """
    x = as_operand(x, "lax.conj")
    return conj_p.bind(x, input_dtype=aval_of(x).dtype)
