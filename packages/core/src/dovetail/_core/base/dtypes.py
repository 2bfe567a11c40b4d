"""Dtypes of NumPy and ml_dtypes, extended dtypes, 32-bit defaults and weak types."""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Self, cast

import ml_dtypes
import numpy as np

from dovetail._core.base import promotion, source
from dovetail._core.base.config import enable_x64, numpy_dtype_promotion
from dovetail._core.base.errors import DTypeError, NonArrayArgumentError, close_matches
from dovetail._core.base.extended_dtypes import ExtendedDType, extended, float0
from dovetail._core.base.extended_dtypes import prng_key as prng_key
from dovetail._core.base.promotion import TypePromotionError as TypePromotionError
from dovetail._core.base.strictness import strictness
from dovetail._core.base.tracebacks import bounded
from dovetail._core.base.typing import DTypeLike

__all__ = [
    "ExtendedDType",
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "check_user_dtype",
    "common_dtype",
    "default_dtype",
    "dtype_of",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "is_extended",
    "is_weakly_typed",
    "issubdtype",
    "itemsize_bits",
    "kind_of",
    "plain_dtype",
    "prng_key",
    "promote_types",
    "result_of_pair",
    "result_type",
    "scalar_type_of",
    "short_name",
    "why_not_of_arrays",
]

DType = np.dtype[Any]

bfloat16 = ml_dtypes.bfloat16
"""The scalar type of 16-bit floats with the exponent of float32."""

AnyDType = DType | ExtendedDType

_PYTHON_KINDS: dict[Any, str] = {bool: "b", int: "i", float: "f", complex: "c"}
_PYTHON_TYPES: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
kind_of = promotion.kind_of
# ml_dtypes has no annotations.
_finfo: Any = ml_dtypes.finfo
_iinfo: Any = ml_dtypes.iinfo


def is_extended(dtype: Any) -> bool:
    """Whether a dtype is extended, so that its elements are not numbers."""
    return isinstance(dtype, ExtendedDType)


def default_dtype(kind: str) -> DType:
    """The default dtype of a kind of number: 32 bits, or 64 with ``enable_x64``.

    Args:
        kind: ``"b"``, ``"i"``, ``"u"``, ``"f"`` or ``"c"``.

    Example:
        >>> from dovetail._core.base import dtypes
        >>> dtypes.default_dtype("f")
        dtype('float32')
    """
    return promotion.widest(kind)


def as_dtype(dtype: Any) -> AnyDType:
    """Like `numpy.dtype`, but in native byte order, and for extended dtypes too.

    Raises:
        TypeError: ``dtype`` is not a dtype.
    """
    if isinstance(dtype, ExtendedDType):
        return dtype
    if not isinstance(dtype, np.dtype):
        if isinstance(dtype, type):
            # np.dtype maps any class to the dtype of objects.
            if dtype not in _PYTHON_KINDS and not issubdtype_class(dtype, np.generic):
                inner = getattr(dtype, "dtype", None)
                if not isinstance(inner, np.dtype):
                    raise TypeError(f"the class {dtype.__qualname__} is not a dtype")
                dtype = inner
        else:
            inner = getattr(dtype, "dtype", None)
            if isinstance(inner, ExtendedDType):
                return inner
        try:
            dtype = np.dtype(dtype)
        except (TypeError, ValueError, SyntaxError) as error:
            raise DTypeError(f"{error}: {dtype!r:.80} is not a dtype") from None
    return dtype if dtype.isnative else cast("DType", dtype.newbyteorder("="))


def plain_dtype(dtype: Any) -> Any:
    """NumPy's own object for a dtype of which this is a copy, as an array has that was pickled."""
    if isinstance(dtype, np.dtype) and dtype.isbuiltin == 0:
        own = np.dtype(dtype.type)
        return own if own == dtype else dtype
    return dtype


def issubdtype_class(a: Any, b: Any) -> bool:
    """`issubclass` that returns False instead of raising if ``a`` is not a class."""
    return isinstance(a, type) and issubclass(a, b)


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that arrays use for the given one: 32 bits unless 64-bit types are switched on.

    Args:
        dtype: anything that NumPy takes as a dtype.
        allow_extended_dtype: whether to accept extended dtypes, which are returned unchanged.

    Example:
        >>> import dovetail.dtypes
        >>> dovetail.dtypes.canonicalize_dtype("float64")
        dtype('float32')
    """
    try:
        return _canonicalized(dtype, enable_x64.value, allow_extended_dtype)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _canonicalized.__wrapped__(dtype, enable_x64.value, allow_extended_dtype)


@functools.lru_cache(maxsize=1024, typed=True)
def _canonicalized(dtype: Any, x64: bool, allow_extended: bool) -> Any:
    if isinstance(dtype, ExtendedDType):
        if not allow_extended:
            raise ValueError(
                f"a dtype of numbers is needed, and {dtype} is none; it is held as "
                f"{dtype.physical(())[1]}"
            )
        return dtype
    exact = as_dtype(dtype)
    return exact if x64 or isinstance(exact, ExtendedDType) else promotion.narrowed(exact)


def refuse_array(dtype: Any, function_name: str, argument: str = "dtype") -> None:
    """Raise for an array in place of a dtype.

    Raises:
        DTypeError: it is one.
    """
    if isinstance(dtype, np.ndarray) or hasattr(dtype, "aval"):
        raise DTypeError(
            f"{function_name}: the argument {argument} is an array; for the dtype of an array x "
            f"write {argument}=x.dtype"
        )


def _meant(dtype: Any) -> str:
    """What to write instead of something that is no dtype."""
    if isinstance(dtype, int):
        return "give several sizes, or several axes, as one tuple, such as (2, 3)"
    if isinstance(dtype, str):
        kinds = (promotion.FLOATS, promotion.SIGNED, promotion.UNSIGNED, promotion.COMPLEX)
        names = ["bool", *(known.name for kind in kinds for known in kind)]
        near = close_matches(dtype.rpartition(".")[2], names)
        return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
    return ""


def check_user_dtype(dtype: Any, function_name: str) -> Any:
    """Canonicalize a dtype that a user requested, with a warning if that changes it.

    Python's own types stand for the defaults and cause no warning.

    Args:
        dtype: the value of the argument ``dtype``.
        function_name: the function that it was passed to.

    Raises:
        TypeError: it is not a dtype, or not one that arrays can have.
    """
    refuse_array(dtype, function_name)
    try:
        asked = as_dtype(dtype)
    except TypeError as error:
        advice = _meant(dtype)
        raise TypeError(
            f"{function_name}: dtype {dtype!r} is not a dtype: {advice or error}"
        ) from None
    if isinstance(asked, ExtendedDType) or asked == float0:
        return asked
    if not promotion.kind_of(asked):
        raise TypeError(f"{function_name}: {why_not_of_arrays(asked)}")
    canonical = canonicalize_dtype(asked)
    if canonical != asked and not (isinstance(dtype, type) and dtype in _PYTHON_KINDS):
        source.warn(
            f"{function_name}: the dtype {asked} was asked for, and the result is {canonical}, "
            f"because 64-bit types are off. Ask for {canonical}, or switch them on with "
            'dovetail.config.update("enable_x64", True) or DOVETAIL_ENABLE_X64=1.'
        )
    return canonical


def _is_of_arrays(dtype: Any) -> bool:
    """Whether arrays can have a canonical dtype."""
    return isinstance(dtype, ExtendedDType) or bool(promotion.kind_of(dtype)) or dtype == float0


def why_not_of_arrays(dtype: Any) -> str:
    """The message about a dtype of NumPy or ml_dtypes that arrays cannot have."""
    if hasattr(ml_dtypes, np.dtype(dtype).name):
        return f"XLA computes with no numbers of dtype {dtype}; convert them on the host"
    return f"arrays hold numbers and booleans; the dtype {dtype} is neither"


def dtype_of(value: Any) -> Any:
    """The dtype of a value as an array.

    Args:
        value: a Python number, a NumPy array or scalar, an array or tracer, or anything else with
            an attribute ``aval`` or ``dtype``.

    Returns:
        The unchanged dtype of an array or tracer; for anything else, the canonical dtype.

    Raises:
        OverflowError: a Python integer does not fit the default integer type.
        NonArrayArgumentError: the value is not an array and cannot become one.

    Example:
        >>> import numpy as np
        >>> from dovetail._core.base import dtypes
        >>> dtypes.dtype_of(1.0), dtypes.dtype_of(np.arange(3, dtype="uint8"))
        (dtype('float32'), dtype('uint8'))
    """
    kind = _PYTHON_KINDS.get(type(value))
    if kind is not None:
        if kind == "i":
            check_python_int(value)
        return promotion.widest(kind)
    aval = getattr(value, "aval", None)
    if aval is not None:
        return aval.dtype
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        # Subclasses of Python's number types, such as IntEnum.
        for base, base_kind in _PYTHON_KINDS.items():
            if isinstance(value, base):
                if base is int:
                    check_python_int(value)
                return promotion.widest(base_kind)
        raise NonArrayArgumentError(
            f"a value of type {type(value).__name__} is no array and has no dtype: {_short(value)}"
        )
    if isinstance(dtype, ExtendedDType):
        return dtype
    canonical = canonicalize_dtype(dtype)
    if not _is_of_arrays(canonical):
        raise NonArrayArgumentError(f"{why_not_of_arrays(dtype)}: {_short(value)}")
    return canonical


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def check_python_int(value: int) -> None:
    """Raise if a Python integer does not fit the default integer type.

    Raises:
        OverflowError: it does not fit; the message says what to write instead.
    """
    if -0x80000000 <= value <= 0x7FFFFFFF:
        return
    if enable_x64.value:
        if -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
            return
        raise OverflowError(
            f"the Python integer {value} does not fit int64. Write np.uint64({value}) if it "
            f"fits that, or float({value}) for a float"
        )
    if not -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        instead = f"float({value}) for a float; it does not fit int64 either"
    else:
        unsigned = f"np.uint32({value}), " if 0 <= value <= 0xFFFFFFFF else ""
        instead = (
            f"{unsigned}float({value}) for a float, or switch 64-bit types on with "
            'dovetail.config.update("enable_x64", True)'
        )
    raise OverflowError(
        f"the Python integer {value} does not fit int32, the default integer type. Write {instead}"
    )


def check_holds(largest: int, dtype: Any, function: str, instead: str = "") -> None:
    """Raise if an integer dtype cannot hold the largest position or count that may result.

    Args:
        largest: the largest number.
        dtype: the integer dtype of the result.
        function: the function that returns it, for the message.
        instead: what to do where no other dtype can be had.

    Raises:
        OverflowError: it does not fit; the message says what to do.
    """
    if (largest < 2**31 and dtype.itemsize >= 4) or largest <= iinfo(dtype).max:
        return
    if not strictness().integers_fit:
        return
    if not instead:
        is_widest = dtype == default_dtype("i") and not enable_x64.value
        instead = (
            'switch 64-bit types on with dovetail.config.update("enable_x64", True)'
            if is_widest
            else "ask for a wider dtype"
        )
    raise OverflowError(f"{function}: {dtype} does not hold {largest}, which may result; {instead}")


def holds(dtype: Any, other: Any) -> bool:
    """Whether an integer dtype can represent every value of another one."""
    mine, others = iinfo(dtype), iinfo(other)
    return bool(mine.min <= others.min and others.max <= mine.max)


def check_fits(value: int, dtype: Any, function: str) -> None:
    """Raise if an integer dtype cannot hold a Python integer that is combined with it.

    Args:
        value: the integer.
        dtype: the integer dtype of an array.
        function: the function that combines them, for the message.

    Raises:
        OverflowError: it does not fit; the message says what to write instead.
    """
    limits = iinfo(dtype)
    if limits.min <= value <= limits.max:
        return
    check_python_int(value)
    raise OverflowError(
        f"{function}: the Python integer {value} does not fit {np.dtype(dtype)}, the dtype of "
        "the array; convert the array to a wider dtype first, or write the number that is meant, "
        f"such as {_same_bits(value, limits)} for the same bits"
    )


def _same_bits(value: int, limits: Any) -> int:
    bits = int(limits.bits)
    same = value % (1 << bits)
    return same - (1 << bits) if same > limits.max else same


def fitted(value: int, dtype: Any, function: str) -> int:
    """A Python integer as an operand beside an array of an integer dtype.

    Args:
        value: the integer.
        dtype: the dtype of the array.
        function: the function that combines them, for the message.

    Returns:
        The integer. Under a policy that lets integers be cut, one of the same bits that fits.

    Raises:
        OverflowError: it does not fit; the message says what to write instead.
    """
    limits = iinfo(dtype)
    if limits.min <= value <= limits.max:
        return value
    if strictness().integers_fit:
        check_fits(value, dtype, function)
    check_python_int(value)
    return _same_bits(value, limits)


def is_weakly_typed(value: Any) -> bool:
    """Whether the dtype of a value gives way to other dtypes, as for a Python number.

    Example:
        >>> import numpy as np
        >>> from dovetail._core.base import dtypes
        >>> dtypes.is_weakly_typed(1), dtypes.is_weakly_typed(np.float32(1))
        (True, False)
    """
    if type(value) in _PYTHON_KINDS:
        return True
    aval = getattr(value, "aval", None)
    if aval is not None:
        return bool(getattr(aval, "weak_type", False))
    if getattr(value, "dtype", None) is None:
        return isinstance(value, bool | int | float | complex)
    return bool(getattr(value, "weak_type", False))


_pairs: dict[tuple[Any, bool, Any, bool, bool, str], tuple[DType, bool]] = {}


def result_of_pair(dtype_a: Any, weak_a: bool, dtype_b: Any, weak_b: bool) -> tuple[DType, bool]:
    """The dtype of the result of an operation on two values, and whether it is weak.

    Args:
        dtype_a: the dtype of one.
        weak_a: whether it is weak.
        dtype_b: the dtype of the other.
        weak_b: whether it is weak.

    Raises:
        TypePromotionError: the two do not combine.

    Example:
        >>> import numpy as np
        >>> from dovetail._core.base import dtypes
        >>> dtypes.result_of_pair(np.dtype("int8"), False, np.dtype("int32"), True)
        (dtype('int8'), False)
    """
    key = (dtype_a, weak_a, dtype_b, weak_b, enable_x64.value, numpy_dtype_promotion.value)
    try:
        return _pairs[key]
    except KeyError:
        result = _pairs[key] = promotion.join(((dtype_a, weak_a), (dtype_b, weak_b)))
        return result


def common_dtype(*dtypes: Any) -> DType:
    """The dtype that canonical dtypes are promoted to, whatever ``numpy_dtype_promotion`` is.

    For what the user did not leave to promotion: dtypes that were asked for, and those that a
    function chooses itself.

    Raises:
        TypePromotionError: they do not combine.

    Example:
        >>> import numpy as np
        >>> from dovetail._core.base import dtypes
        >>> dtypes.common_dtype(np.dtype("int8"), np.dtype("uint8"))
        dtype('int16')
    """
    return promotion.join([(dtype, False) for dtype in dtypes], "standard")[0]


def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """The dtype that two dtypes are promoted to.

    Python's own types ``int``, ``float`` and ``complex`` stand for weak types.

    Args:
        a: a dtype.
        b: a dtype.

    Raises:
        TypePromotionError: the two do not combine.

    Example:
        >>> from dovetail._core.base import dtypes
        >>> dtypes.promote_types("int8", "uint8"), dtypes.promote_types("bfloat16", float)
        (dtype('int16'), dtype(bfloat16))
    """
    return result_of_pair(*_dtype_and_weakness(a), *_dtype_and_weakness(b))[0]


def _dtype_and_weakness(argument: Any) -> tuple[Any, bool]:
    """The dtype and weakness of a value or a dtype."""
    aval = getattr(argument, "aval", None)
    if aval is not None:
        return aval.dtype, bool(getattr(aval, "weak_type", False))
    kind = _PYTHON_KINDS.get(type(argument))
    if kind is not None:
        # Only the type matters here, so a large integer need not fit.
        return promotion.widest(kind), kind != "b"
    if argument is None:
        return promotion.widest("f"), False
    if isinstance(argument, type) and argument in _PYTHON_KINDS:
        return promotion.widest(_PYTHON_KINDS[argument]), argument is not bool
    if isinstance(argument, str | np.dtype | type | ExtendedDType):
        dtype = canonicalize_dtype(argument, allow_extended_dtype=True)
        if not _is_of_arrays(dtype):
            raise DTypeError(why_not_of_arrays(dtype))
        return dtype, False
    return dtype_of(argument), is_weakly_typed(argument)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of the result of an operation on some values.

    Args:
        *args: values and dtypes, at least one.
        return_weak_type_flag: give a pair, of the dtype and whether it is weak.

    Raises:
        DTypeError: arrays cannot have one of the dtypes.
        TypePromotionError: they do not combine.

    Example:
        >>> import numpy as np
        >>> import dovetail.dtypes
        >>> dovetail.dtypes.result_type(np.ones(3, "float16"), 2.5)
        dtype('float16')
        >>> dovetail.dtypes.result_type(1, 2.5, return_weak_type_flag=True)
        (dtype('float32'), True)
    """
    if not args:
        raise ValueError("result_type: at least one value or dtype is needed")
    dtype, weak = promotion.join([_dtype_and_weakness(argument) for argument in args])
    return (dtype, weak) if return_weak_type_flag else dtype


def scalar_type_of(x: Any) -> type:
    """Python's type for the numbers of an array or dtype: bool, int, float or complex.

    Example:
        >>> import numpy as np
        >>> import dovetail.dtypes
        >>> dovetail.dtypes.scalar_type_of(np.ones(2, "uint8"))
        <class 'int'>
    """
    dtype, _ = _dtype_and_weakness(x)
    kind = promotion.kind_of(dtype)
    if not kind:
        raise TypeError(f"scalar_type_of: {dtype} is not a dtype of numbers")
    return _PYTHON_TYPES[kind]


_ABSTRACT_OF_KIND: dict[str, Any] = {
    "b": np.bool_,
    "i": np.signedinteger,
    "u": np.unsignedinteger,
    "f": np.floating,
    "c": np.complexfloating,
}


def issubdtype(a: Any, b: Any) -> bool:
    """Whether a dtype equals another, or belongs to a kind.

    Args:
        a: a dtype, or a kind such as ``numpy.integer``.
        b: a dtype, or a kind such as ``numpy.floating``, `extended` or `prng_key`.

    Example:
        >>> import numpy as np
        >>> import dovetail.dtypes
        >>> dovetail.dtypes.issubdtype("bfloat16", np.floating)
        True
    """
    try:
        return _issubdtype(a, b)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _issubdtype.__wrapped__(a, b)


@functools.lru_cache(maxsize=1024, typed=True)
def _issubdtype(a: Any, b: Any) -> bool:
    if isinstance(a, ExtendedDType):
        if isinstance(b, ExtendedDType):
            return a == b
        if issubdtype_class(b, np.generic):
            return issubclass(a.type, b)
        as_dtype(b)  # which raises where it is none
        return False
    if isinstance(b, ExtendedDType):
        return False
    if issubdtype_class(b, extended) or issubdtype_class(a, extended):
        return issubdtype_class(a, np.generic) and issubclass(a, b)
    b_is_abstract = issubdtype_class(b, np.generic) and _is_abstract(b)
    if issubdtype_class(a, np.generic) and _is_abstract(a):
        return b_is_abstract and issubclass(a, b)
    dtype = as_dtype(a)
    if isinstance(dtype, ExtendedDType):  # of an array of keys
        return _issubdtype(dtype, b)
    if not b_is_abstract:
        return dtype == as_dtype(b)
    kind = promotion.kind_of(dtype)
    if not kind:
        return issubclass(dtype.type, b)
    return issubclass(_ABSTRACT_OF_KIND[kind], b)


def _is_abstract(scalar_type: type) -> bool:
    return scalar_type in _ABSTRACT


_ABSTRACT = frozenset(
    (
        np.generic,
        np.number,
        np.integer,
        np.signedinteger,
        np.unsignedinteger,
        np.inexact,
        np.floating,
        np.complexfloating,
        np.flexible,
        np.character,
    )
)


class _Limits(type):
    """Makes the limits that NumPy and ml_dtypes give instances of `finfo` and `iinfo`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.kinds)  # type: ignore[attr-defined]


@bounded
class finfo(metaclass=_Limits):
    """The limits of a dtype of floats or complex numbers: ``eps``, ``max``, ``tiny``, ``bits`` ...

    What it gives are objects of NumPy or ml_dtypes, and instances of this class.

    Args:
        dtype: the dtype.

    Raises:
        ValueError: it is not a dtype of floats or complex numbers.

    Example:
        >>> import dovetail.dtypes
        >>> limits = dovetail.dtypes.finfo("bfloat16")
        >>> float(limits.eps), isinstance(limits, dovetail.dtypes.finfo)
        (0.0078125, True)
    """

    kinds: ClassVar[tuple[type, ...]] = (np.finfo, ml_dtypes.finfo)
    bits: int
    dtype: np.dtype[Any]
    eps: Any
    epsneg: Any
    iexp: int
    machep: int
    max: Any
    maxexp: int
    min: Any
    minexp: int
    negep: int
    nexp: int
    nmant: int
    precision: int
    resolution: Any
    smallest_normal: Any
    smallest_subnormal: Any
    tiny: Any

    def __new__(cls, dtype: DTypeLike) -> Self:
        resolved = _number_dtype("finfo", dtype)
        if promotion.kind_of(resolved) not in ("f", "c"):
            raise ValueError(f"finfo: {resolved} is not a dtype of floats; use iinfo for integers")
        limits: Self = _finfo(resolved)
        return limits


@bounded
class iinfo(metaclass=_Limits):
    """The limits of a dtype of integers: ``min``, ``max``, ``bits``.

    What it gives are objects of NumPy or ml_dtypes, and instances of this class.

    Args:
        int_type: the dtype.

    Raises:
        ValueError: it is not a dtype of integers.

    Example:
        >>> import dovetail.dtypes
        >>> limits = dovetail.dtypes.iinfo("int4")
        >>> limits.max, isinstance(limits, dovetail.dtypes.iinfo)
        (7, True)
    """

    kinds: ClassVar[tuple[type, ...]] = (np.iinfo, ml_dtypes.iinfo)
    bits: int
    dtype: np.dtype[Any]
    key: str
    kind: str
    max: int
    min: int

    def __new__(cls, int_type: DTypeLike) -> Self:
        resolved = _number_dtype("iinfo", int_type)
        if promotion.kind_of(resolved) not in ("i", "u"):
            raise ValueError(f"iinfo: {resolved} is not a dtype of integers; use finfo for floats")
        limits: Self = _iinfo(resolved)
        return limits


def _number_dtype(name: str, dtype: Any) -> DType:
    resolved = as_dtype(dtype)
    if isinstance(resolved, ExtendedDType):
        raise ValueError(f"{name}: {resolved} is not a dtype of numbers")
    return resolved


def whole_bytes(dtype: Any) -> Any:
    """A dtype of whole bytes that holds the same values; the dtype itself if it is one."""
    if dtype == np.bool_ or itemsize_bits(dtype) >= 8:
        return dtype
    return np.dtype({"i": "int8", "f": "float32"}.get(promotion.kind_of(dtype), "uint8"))


def itemsize_bits(dtype: Any) -> int:
    """The size of an element in bits, which may be less than a byte.

    Example:
        >>> import dovetail.dtypes
        >>> dovetail.dtypes.itemsize_bits("int4"), dovetail.dtypes.itemsize_bits("float32")
        (4, 32)
    """
    return _bits_of(as_dtype(dtype))


@functools.lru_cache(maxsize=256)
def _bits_of(resolved: Any) -> int:
    if isinstance(resolved, ExtendedDType):
        return 8 * resolved.itemsize
    kind = promotion.kind_of(resolved)
    if kind in ("i", "u"):
        return int(_iinfo(resolved).bits)
    if kind == "f":
        return int(_finfo(resolved).bits)
    return 8 * int(resolved.itemsize)


@functools.lru_cache(maxsize=256)
def short_name(dtype: Any) -> str:
    """A dtype's name as in jaxprs: ``f32``, ``i32``, ``bool``, ``bf16``, ``key<fry>``.

    Example:
        >>> from dovetail._core.base import dtypes
        >>> [dtypes.short_name(name) for name in ("float32", "uint8", "bool", "bfloat16")]
        ['f32', 'u8', 'bool', 'bf16']
    """
    resolved = as_dtype(dtype)
    if isinstance(resolved, ExtendedDType):
        return resolved.name
    if resolved == float0:
        return "float0"
    name = resolved.name
    for long, short in (
        ("bfloat", "bf"),
        ("float", "f"),
        ("uint", "u"),
        ("int", "i"),
        ("complex", "c"),
    ):
        if name.startswith(long):
            return short + name[len(long) :]
    return name
