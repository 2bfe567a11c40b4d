"""Shared by functions of floats and complex numbers: exact formulas, choice of accuracy."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.tracebacks import bounded
from dovetail._core.basis.elementwise import mul
from dovetail._core.basis.families import Unary
from dovetail._core.basis.operands import literal_like
from dovetail._core.ir.avals import ShapedArray
from dovetail._core.ops.elementwise.arithmetic import add_p
from dovetail._core.trace.zeros import Zero

FLOATS: Final = frozenset(map(np.dtype, (np.float16, dtypes.bfloat16, np.float32, np.float64)))
COMPLEX: Final = frozenset(map(np.dtype, (np.complex64, np.complex128)))


class AccuracyMode(enum.Enum):
    """A choice among a backend's implementations of a function.

    `HIGHEST` asks for the most exact, `DEFAULT` for the usual one.
    """

    HIGHEST = 1
    DEFAULT = 2

    def __repr__(self) -> str:
        return f"AccuracyMode.{self.name}"

    __str__ = __repr__


@bounded
class Tolerance:
    """Bounds on the error of a function; a backend takes the fastest implementation within them.

    Args:
        atol: the largest absolute error.
        rtol: the largest relative error.
        ulps: the largest error in units in the last place.

    Raises:
        ValueError: a bound is negative, or none is given.

    Example:
        >>> Tolerance(ulps=2)
        Tolerance(atol=0.0, rtol=0.0, ulps=2)
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if not all(isinstance(number, (int, float)) for number in (atol, rtol, ulps)):
            raise TypeError(f"tolerances must be numbers, got {atol=!r}, {rtol=!r}, {ulps=!r}")
        if atol < 0.0 or rtol < 0.0 or ulps < 0:
            raise ValueError(
                f"tolerances must not be negative, got atol={atol}, rtol={rtol}, ulps={ulps}"
            )
        if not (atol or rtol or ulps):
            raise ValueError("at least one of atol, rtol and ulps must be given")
        self.atol = atol
        self.rtol = rtol
        self.ulps = ulps

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tolerance):
            return NotImplemented
        return (self.atol, self.rtol, self.ulps) == (other.atol, other.rtol, other.ulps)

    def __hash__(self) -> int:
        return hash((self.atol, self.rtol, self.ulps))

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


Accuracy = Tolerance | AccuracyMode | None


class Function(Unary):
    """A function of floating point or complex numbers.

    If StableHLO's operation is not accurate to a few units in the last place on every backend, a
    member lowers to a formula made of other primitives. It lists the affected dtypes in
    `formula_dtypes` and overrides `formula`. If the operation is wrong for a few complex numbers
    only, the member overrides `corrected`.
    """

    kinds: ClassVar[str] = "fc"
    formula_dtypes: ClassVar[frozenset[Any]] = frozenset()

    def formula(self, x: Any) -> Any:
        """The function of an array (32 or 64 bits per part), made of other primitives."""
        self._missing("lower")

    def corrected(self, x: Any, y: Any) -> Any:
        """The function of complex numbers `x`, corrected from StableHLO's result."""
        return y

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        dtype = out.dtype
        if dtype in self.formula_dtypes:
            return self.emit_formula(context, values[0], out)
        if dtype.itemsize == 1:
            return _emit_wide(context, partial(self.bind, **params), values[0], out)
        accuracy = params.get("accuracy")
        asked = None if accuracy is None else _accuracy_attributes(context, self.hlo, accuracy)
        result = context.op(self.hlo, values, out, asked)
        if dtype.kind == "c":
            (result,) = context.lower_function(self.corrected, [out, out])(*values, result)
        return result

    def emit_formula(self, context: Any, x: Any, out: ShapedArray) -> Any:
        """Lower `formula`."""
        return _emit_wide(context, self.formula, x, out)


def _accuracy_attributes(context: Any, operation: str, accuracy: Tolerance | AccuracyMode) -> Any:
    if operation.startswith("chlo."):
        return None
    if isinstance(accuracy, Tolerance):
        bounds = {"atol": accuracy.atol, "rtol": accuracy.rtol, "ulps": accuracy.ulps}
        chosen = context.result_accuracy("TOLERANCE", **bounds)
    else:
        chosen = context.result_accuracy(accuracy.name)
    return {"result_accuracy": chosen}


def _emit_wide(context: Any, function: Callable[[Any], Any], x: Any, out: ShapedArray) -> Any:
    """Lower a function of one array; numbers of 16 bits or fewer are computed in float32."""
    wide = out.update(dtype=np.dtype(np.float32)) if out.dtype.itemsize <= 2 else out
    (result,) = context.lower_function(function, [wide])(context.convert(x, out, wide))
    return context.convert(result, wide, out)


class ElementaryFunction(Function):
    """A function whose accuracy can be chosen; its derivative does not depend on the choice."""

    def abstract(self, *avals: Any, accuracy: Accuracy = None) -> Any:
        if accuracy is not None and not isinstance(accuracy, (Tolerance, AccuracyMode)):
            raise TypeError(
                f"{self.name}: accuracy must be a lax.Tolerance, a lax.AccuracyMode or None, "
                f"got {accuracy!r}"
            )
        return super().abstract(*avals)

    def reference(self, *args: Any, accuracy: Accuracy = None) -> Any:
        return super().reference(*args)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, accuracy: Accuracy = None
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        y = self.bind(x, accuracy=accuracy)
        return y, Zero.of(y) if type(t) is Zero else self.tangent(t, x, y)

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return mul(t, self.derivative(x, y))


def horner(coefficients: Sequence[float], x: Any) -> Any:
    """A polynomial by Horner's rule, constant coefficient first, for formulas."""
    result: Any = literal_like(coefficients[-1], x)
    for coefficient in coefficients[-2::-1]:
        result = add_p.bind(mul(result, x), literal_like(coefficient, x))
    return result
