"""Signs and absolute values."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.elementwise import mul as multiply
from dovetail._core.basis.elementwise import neg as negate
from dovetail._core.basis.families import Unary
from dovetail._core.basis.operands import as_operand, literal_like
from dovetail._core.basis.structural import broadcast_to
from dovetail._core.ir.avals import ShapedArray, aval_of, shape_of
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p
from dovetail._core.ops.elementwise.bitwise import or_p
from dovetail._core.ops.elementwise.comparison import eq_p, ge_p, gt_p, ne_p
from dovetail._core.ops.elementwise.complex import complex_p, conj, imag, real
from dovetail._core.ops.elementwise.operands import real_dtype
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.trace.zeros import Zero


class Sign(Unary):
    """-1, 0 or 1; for complex numbers z / abs(z)."""

    name, hlo, numpy = "sign", "sign", references.signed_complex
    generates_nan = False

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        if dtypes.kind_of(aval_of(x).dtype) != "c":
            return Zero.of(y)
        # d(z / |z|) = i y Im(conj(y) dz) / |z|, where y = z / |z|; zero at z = 0 by convention.
        modulus = abs_p.bind(x)
        zero = convert_element_type(eq_p.bind(modulus, literal_like(0, modulus)), modulus.dtype)
        turned = div_p.bind(imag(multiply(conj(y), t)), add_p.bind(modulus, zero))
        return multiply(y, complex_p.bind(literal_like(0, turned), turned))

    def formula(self, x: Any) -> Any:
        """For complex numbers, scaled down if large, to keep the modulus finite.

        If one part is infinite, the result points along its axis, like the limit.
        """
        a, b = self._on_axes(real(x), imag(x))
        bound = literal_like(np.finfo(aval_of(a).dtype).max / 2, a)
        large = or_p.bind(*(gt_p.bind(abs_p.bind(part), bound) for part in (a, b)))
        quarter, one = (broadcast_to(literal_like(v, a), shape_of(a)) for v in (0.25, 1))
        scale = select_n_p.bind(large, one, quarter)
        a, b = multiply(a, scale), multiply(b, scale)
        modulus = abs_p.bind(complex_p.bind(a, b))
        zero = convert_element_type(eq_p.bind(modulus, literal_like(0, modulus)), modulus.dtype)
        modulus = add_p.bind(modulus, zero)
        return complex_p.bind(div_p.bind(a, modulus), div_p.bind(b, modulus))

    @staticmethod
    def _on_axes(a: Any, b: Any) -> tuple[Any, Any]:
        """Real and imaginary parts; 1 or -1 and 0 where exactly one of them is infinite."""
        zero, infinity = (broadcast_to(literal_like(v, a), shape_of(a)) for v in (0, float("inf")))
        first, second = (eq_p.bind(abs_p.bind(part), infinity) for part in (a, b))
        single = ne_p.bind(first, second)
        on_axes = [
            select_n_p.bind(single, part, select_n_p.bind(infinite, zero, sign_p.bind(part)))
            for part, infinite in ((a, first), (b, second))
        ]
        return on_axes[0], on_axes[1]

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        (x,) = values
        if dtypes.kind_of(out.dtype) == "c":
            (result,) = context.lower_function(self.formula, [out])(x)
            return result
        if dtypes.kind_of(out.dtype) != "u":
            return context.op("sign", [x], out)
        nonzero = context.compare(x, context.constant(0, out), "NE", out)
        return context.op("convert", [nonzero], out)


sign_p: Final = Sign()


class Abs(Unary):
    """The absolute value; for complex numbers the real modulus."""

    name, hlo, numpy = "abs", "abs", references.wide(np.abs)
    kinds = "ifc"
    generates_nan = False

    def result_dtype(self, *avals: ShapedArray, **params: Any) -> Any:
        dtype = avals[0].dtype
        return real_dtype(dtype) if dtypes.kind_of(dtype) == "c" else dtype

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        if dtypes.kind_of(aval_of(x).dtype) != "c":
            return select_n_p.bind(ge_p.bind(x, literal_like(0, x)), negate(t), t)
        # Re(conj(z) dz) / |z|, zero at z = 0 by convention.
        return real(multiply(t, conj(sign_p.bind(x))))

    def corrected(self, x: Any, y: Any) -> Any:
        """The modulus; infinite where either part is, even if the other is NaN."""
        parts = (eq_p.bind(v, literal_like(np.inf, v)) for v in map(self.bind, (real(x), imag(x))))
        return select_n_p.bind(or_p.bind(*parts), y, broadcast_to(literal_like(np.inf, y), y.shape))

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        result = context.op("abs", values, out)
        aval = context.avals_in[0]
        if dtypes.kind_of(aval.dtype) != "c":
            return result
        whole = aval.update(shape=out.shape)
        (result,) = context.lower_function(self.corrected, [whole, out])(*values, result)
        return result


abs_p: Final = Abs()


# Public functions


def sign(x: ArrayLike) -> Array:
    """The elementwise sign: -1, 0 (with the sign of `x`) or 1; NaN for NaN.

    For complex numbers ``x / abs(x)``, and 0 for 0.

    Args:
        x: numbers, not booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool.

    Differs:
        Where one part of a complex number is infinite the sign is 1, -1, i or -i, as in NumPy.

        >>> print(lax.sign(jnp.array([complex(3, -np.inf)])))
        [0.-1.j]

        The sign of complex numbers has a derivative.

        >>> z, t = dt.jvp(lax.sign, (4j,), (1.0 + 0j,))
        >>> print(t)
        (0.25+0j)

    Example:
        >>> from dovetail import lax
        >>> float(lax.sign(-2.5))
        -1.0
    """
    return sign_p.bind(as_operand(x, "lax.sign"))


def abs(x: ArrayLike) -> Array:
    """The elementwise absolute value; the lowest integer maps to itself.

    Its derivative at zero is 1 by convention (0 for complex numbers).

    Args:
        x: signed integers, floating point or complex.

    Returns:
        An array of the shape and dtype of `x`; for complex numbers, of the dtype of their parts.

    Raises:
        TypeError: `x` is bool or unsigned.

    Example:
        >>> from dovetail import lax
        >>> float(lax.abs(3 + 4j))
        5.0
    """
    return abs_p.bind(as_operand(x, "lax.abs"))
