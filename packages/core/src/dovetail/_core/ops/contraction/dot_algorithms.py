"""Algorithms of contractions: the dtypes that operands are rounded to and sums use.

Source of the algorithms and their names: the StableHLO specification, `dot_general`.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import ml_dtypes
import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.basis.elementwise import dtype_name

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder
    from dovetail._core.ir.avals import ShapedArray


class DotAlgorithm(NamedTuple):
    """A full specification of how a backend computes a contraction of floats.

    Compilation fails if the backend lacks the algorithm; `DotAlgorithmPreset` has the ones that
    backends are built for. Integers and complex numbers are multiplied as usual.

    Args:
        lhs_precision_type: the dtype to which elements of the left operand are rounded.
        rhs_precision_type: the same for the right operand.
        accumulation_type: the dtype of the sums.
        lhs_component_count: the number of parts, of `lhs_precision_type`, that an element of the
            left operand is split into.
        rhs_component_count: the same for the right operand.
        num_primitive_operations: how many products of parts make up one product.
        allow_imprecise_accumulation: whether intermediate sums may have fewer bits than
            `accumulation_type`.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x = np.ones((2, 2), np.float32)
        >>> single = lax.DotAlgorithm(np.float32, np.float32, np.float32)
        >>> lax.dot(x, x, precision=single).tolist()
        [[2.0, 2.0], [2.0, 2.0]]
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """The algorithms that backends have for contractions of floats.

    A name says what the operands are rounded to and the dtype of the sums. A suffix such as ``X3``
    says how many products of parts make up one product. `DEFAULT` leaves the choice to the backend.
    Operands of other dtypes are converted; integers and complex numbers are multiplied as usual.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x = np.ones((2, 2), np.float32)
        >>> lax.dot(x, x, precision=lax.DotAlgorithmPreset.F32_F32_F32).tolist()
        [[2.0, 2.0], [2.0, 2.0]]
        >>> lax.dot(x, x, precision="F32_F32_F32").tolist()
        [[2.0, 2.0], [2.0, 2.0]]
    """

    DEFAULT = 1
    ANY_F8_ANY_F8_F32 = 2
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 3
    ANY_F8_ANY_F8_ANY = 4
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 5
    F16_F16_F16 = 6
    F16_F16_F32 = 7
    BF16_BF16_BF16 = 8
    BF16_BF16_F32 = 9
    BF16_BF16_F32_X3 = 10
    BF16_BF16_F32_X6 = 11
    BF16_BF16_F32_X9 = 12
    TF32_TF32_F32 = 13
    TF32_TF32_F32_X3 = 14
    F32_F32_F32 = 15
    F64_F64_F64 = 16

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """Dtypes of the left operand that need no conversion; None for any."""
        return _PRESETS[self].stored

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """Dtypes of the right operand that need no conversion; None for any."""
        return _PRESETS[self].stored

    @property
    def accumulation_type(self) -> Any:
        """The dtype of the sums; None if the backend or the result decides."""
        return _PRESETS[self].accumulation


class _Preset(NamedTuple):
    stored: tuple[Any, ...] | None = None
    precision: Any = None
    accumulation: Any = None
    products: int = 1
    imprecise: bool = False


_P = DotAlgorithmPreset
_F16, _BF16, _F32, _F64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64
_PRESETS: Final[dict[DotAlgorithmPreset, _Preset]] = {
    _P.DEFAULT: _Preset(),
    _P.ANY_F8_ANY_F8_F32: _Preset(accumulation=_F32),
    _P.ANY_F8_ANY_F8_F32_FAST_ACCUM: _Preset(accumulation=_F32, imprecise=True),
    _P.ANY_F8_ANY_F8_ANY: _Preset(),
    _P.ANY_F8_ANY_F8_ANY_FAST_ACCUM: _Preset(imprecise=True),
    _P.F16_F16_F16: _Preset((_F16,), _F16, _F16),
    _P.F16_F16_F32: _Preset((_F16,), _F16, _F32),
    _P.BF16_BF16_BF16: _Preset((_BF16, _F32), _BF16, _BF16),
    _P.BF16_BF16_F32: _Preset((_BF16, _F32), _BF16, _F32),
    _P.BF16_BF16_F32_X3: _Preset((_F32,), _BF16, _F32, 3),
    _P.BF16_BF16_F32_X6: _Preset((_F32,), _BF16, _F32, 6),
    _P.BF16_BF16_F32_X9: _Preset((_F32,), _BF16, _F32, 9),
    _P.TF32_TF32_F32: _Preset((_F32,), "tf32", _F32),
    _P.TF32_TF32_F32_X3: _Preset((_F32,), "tf32", _F32, 3),
    _P.F32_F32_F32: _Preset((_F32,), _F32, _F32),
    _P.F64_F64_F64: _Preset((_F64,), _F64, _F64),
}

_TYPES: Final = ("lhs_precision_type", "rhs_precision_type", "accumulation_type")

#: Presets by name, as users may pass them.
ALGORITHM_NAMES: Final = {p.name: p for p in _P if p is not _P.DEFAULT}


def checked_algorithm(algorithm: DotAlgorithm) -> DotAlgorithm:
    """An algorithm with its dtypes in canonical form.

    Raises:
        TypeError: one of them is not a floating point dtype.
        ValueError: a count is not positive.
    """
    canonical = {
        f: dtypes.check_user_dtype(getattr(algorithm, f), "lax.DotAlgorithm") for f in _TYPES
    }
    for field, dtype in canonical.items():
        if dtypes.kind_of(dtype) != "f":
            raise TypeError(f"lax.DotAlgorithm: {field} must be a dtype of floats, got {dtype}")
    counts = algorithm[3:6]
    if not all(isinstance(n, int) and n > 0 for n in counts):
        raise ValueError(f"lax.DotAlgorithm: the counts must be positive integers, got {counts}")
    return algorithm._replace(**canonical)


class AlgorithmDtypes(NamedTuple):
    """An algorithm resolved for operands of two dtypes.

    Attributes:
        lhs: dtype to which the left operand is converted.
        rhs: dtype to which the right operand is converted.
        out: the dtype of the sums.
        attribute: the algorithm as an attribute.
    """

    lhs: Any
    rhs: Any
    out: Any
    attribute: Any


def plan(
    context: Builder, algorithm: DotAlgorithm | DotAlgorithmPreset, lhs: Any, rhs: Any
) -> AlgorithmDtypes:
    """How to lower an algorithm for operands of these floating point dtypes.

    Raises:
        TypeError: the algorithm does not support the dtypes.
    """
    counts: list[Any]
    if isinstance(algorithm, DotAlgorithm):
        taken = [_stored(algorithm, dtype, side) for side, dtype in enumerate((lhs, rhs))]
        first, second, accumulation, *counts = algorithm
    else:
        preset = _PRESETS[algorithm]
        first = second = preset.precision
        if algorithm.name.startswith("ANY_F8"):
            first, second = lhs, rhs
            if not all(dtypes.itemsize_bits(d) == 8 for d in (lhs, rhs)):
                raise TypeError(
                    f"dot_general: the algorithm {algorithm} is for operands of 8-bit floats, got "
                    f"{dtype_name(lhs)} and {dtype_name(rhs)}; convert them, or choose another"
                )
        choices = [np.dtype(t) for t in preset.stored or (lhs, rhs)]
        taken = [d if d in choices else _nearest(d, choices) for d in (lhs, rhs)]
        accumulation = np.dtype(preset.accumulation or np.float32)
        counts = [1, 1, preset.products, preset.imprecise]
    types = [t if t == "tf32" else context.element_type(t) for t in (first, second, accumulation)]
    attribute = context.dot_algorithm(types[0], types[1], types[2], *counts)
    return AlgorithmDtypes(taken[0], taken[1], accumulation, attribute)


def for_cotangents(precision: Any, dtype: Any) -> Any:
    """The algorithm for the transpose of a contraction, with cotangents of this dtype.

    Cotangents are seldom 8-bit floats; algorithms for those then do not apply.
    """
    narrow = isinstance(precision, DotAlgorithmPreset) and precision.name.startswith("ANY_F8")
    return None if narrow and dtypes.itemsize_bits(dtype) != 8 else precision


def _stored(algorithm: DotAlgorithm, dtype: Any, side: int) -> Any:
    """The dtype of an operand as passed to a backend, which rounds or splits it itself."""
    precision, accumulation = algorithm[side], algorithm.accumulation_type
    if dtype in (precision, accumulation):
        return dtype
    split = algorithm[3 + side] > 1 or algorithm.num_primitive_operations > 1
    return accumulation if split else precision


def _nearest(dtype: Any, choices: list[Any]) -> Any:
    """The first of some dtypes that represents all values of `dtype`, or else the last."""
    return next((choice for choice in choices if _holds(choice, dtype)), choices[-1])


def _holds(wide: Any, narrow: Any) -> bool:
    """Whether one floating point dtype represents all values of another."""
    a, b = dtypes.finfo(wide), dtypes.finfo(narrow)
    return bool(a.nmant >= b.nmant and a.maxexp >= b.maxexp and a.minexp <= b.minexp)


def _is_narrow(dtype: Any) -> bool:
    """Whether a dtype is one that is never promoted implicitly."""
    kind, bits = dtypes.kind_of(dtype), dtypes.itemsize_bits(dtype)
    return kind != "" and bits <= (8 if kind == "f" else 4) and kind != "b"


def product_dtype(x: ShapedArray, y: ShapedArray) -> tuple[Any, bool]:
    """The dtype of the products of elements of two avals, and whether it is weak.

    Floats of at most 8 bits and 4-bit integers can be multiplied with each other and with all other
    dtypes, though they are not promoted elsewhere: the result has the dtype with the larger
    numbers.

    Raises:
        TypePromotionError: there is no such dtype.
    """
    try:
        return dtypes.result_of_pair(x.dtype, x.weak_type, y.dtype, y.weak_type)
    except dtypes.TypePromotionError:
        if not (_is_narrow(x.dtype) or _is_narrow(y.dtype)):
            # Products take any two dtypes, whatever numpy_dtype_promotion is.
            return dtypes.common_dtype(x.dtype, y.dtype), False
        sizes = [_magnitude(a.dtype) for a in (x, y)]
        if sizes[0] == sizes[1]:
            raise
        return (x if sizes[0] > sizes[1] else y).dtype, False


def _magnitude(dtype: Any) -> tuple[int, float]:
    kind = dtypes.kind_of(dtype) or "b"
    largest = dtypes.iinfo(dtype).max if kind in "iu" else dtypes.finfo(dtype).max
    return "uifc".index(kind), float(largest)


def factor_dtypes(x: Any, y: Any, product: Any) -> tuple[Any, Any]:
    """The dtypes of two operands as passed to a backend for multiplication.

    Two 8-bit floats stay as they are; others use the dtype of the product, or float32 if that would
    truncate them.
    """
    if x == y or not (_is_narrow(x) or _is_narrow(y)):
        return product, product
    if {dtypes.kind_of(x), dtypes.kind_of(y), dtypes.kind_of(product)} == {"f"}:
        if dtypes.itemsize_bits(x) == dtypes.itemsize_bits(y) == 8:
            return x, y
        if not (_holds(product, x) and _holds(product, y)):
            product = np.dtype(np.float32)
    return product, product
