"""Named dtypes, and functions that inspect dtypes.

`dovetail.numpy.float32` and the like are accepted wherever a dtype is, compare equal to NumPy's
type of that name, and make an array of that dtype when called.
"""

from __future__ import annotations

from typing import Any, Literal

import ml_dtypes

import numpy as np
from dovetail.extend import dtypes
from dovetail.extend.dtypes import finfo as finfo
from dovetail.extend.dtypes import iinfo as iinfo
from dovetail.extend.dtypes import promote_types as promote_types
from dovetail.extend.tracebacks import boundary
from dovetail.typing import ArrayLike, DType, DTypeLike


class ScalarType(type):
    """The class of scalar types."""

    dtype: np.dtype[Any]

    @boundary
    def __call__(cls, x: Any = 0) -> Any:
        """Create an array of the dtype.

        Args:
            x: array, scalar, or nested sequence.
        """
        from dovetail.numpy.creation import array  # deferred: loads the runtime

        return array(x, dtype=cls.dtype)

    def __eq__(cls, other: object) -> bool:
        if cls is other:
            return True
        if other is None:  # which stands for float64 to NumPy
            return False
        try:
            return bool(cls.dtype == np.dtype(other))  # type: ignore[call-overload]
        except (TypeError, ValueError, SyntaxError):  # the latter two for text
            return False

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"dovetail.numpy.{cls.__name__}"


def _scalar_type(name: str, numpy_type: Any) -> ScalarType:
    dtype = np.dtype(numpy_type)
    documentation = f"Arrays of {dtype.name}: the dtype, and a function that makes an array of it."
    return ScalarType(
        name,
        (),
        {"dtype": dtype, "__module__": __name__, "__doc__": documentation, "__slots__": ()},
    )


bool_ = _scalar_type("bool_", np.bool_)
int8 = _scalar_type("int8", np.int8)
int16 = _scalar_type("int16", np.int16)
int32 = _scalar_type("int32", np.int32)
int64 = _scalar_type("int64", np.int64)
uint8 = _scalar_type("uint8", np.uint8)
uint16 = _scalar_type("uint16", np.uint16)
uint32 = _scalar_type("uint32", np.uint32)
uint64 = _scalar_type("uint64", np.uint64)
float16 = _scalar_type("float16", np.float16)
float32 = _scalar_type("float32", np.float32)
float64 = _scalar_type("float64", np.float64)
complex64 = _scalar_type("complex64", np.complex64)
complex128 = _scalar_type("complex128", np.complex128)
bfloat16 = _scalar_type("bfloat16", ml_dtypes.bfloat16)
int2 = _scalar_type("int2", ml_dtypes.int2)
int4 = _scalar_type("int4", ml_dtypes.int4)
uint2 = _scalar_type("uint2", ml_dtypes.uint2)
uint4 = _scalar_type("uint4", ml_dtypes.uint4)
float8_e3m4 = _scalar_type("float8_e3m4", ml_dtypes.float8_e3m4)
float8_e4m3 = _scalar_type("float8_e4m3", ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = _scalar_type("float8_e4m3b11fnuz", ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = _scalar_type("float8_e4m3fn", ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = _scalar_type("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = _scalar_type("float8_e5m2", ml_dtypes.float8_e5m2)
float8_e5m2fnuz = _scalar_type("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = _scalar_type("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu)
float6_e2m3fn = _scalar_type("float6_e2m3fn", ml_dtypes.float6_e2m3fn)
float6_e3m2fn = _scalar_type("float6_e3m2fn", ml_dtypes.float6_e3m2fn)
float4_e2m1fn = _scalar_type("float4_e2m1fn", ml_dtypes.float4_e2m1fn)

# The oldest supported release of ml_dtypes has no single-bit dtypes.
if hasattr(ml_dtypes, "int1"):
    int1 = _scalar_type("int1", ml_dtypes.int1)
    uint1 = _scalar_type("uint1", ml_dtypes.uint1)

# NumPy's other names. The default integers are named int_ and uint on all platforms.
single, double = float32, float64
csingle, cdouble = complex64, complex128
float_, complex_ = float64, complex128
int_, uint = int64, uint64

generic = np.generic
number = np.number
integer = np.integer
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
inexact = np.inexact
floating = np.floating
complexfloating = np.complexfloating
flexible = np.flexible
character = np.character
object_ = np.object_
dtype = np.dtype
ComplexWarning = np.exceptions.ComplexWarning


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Check whether a dtype equals another one, or is of its kind.

    Args:
        arg1: a dtype, or a kind such as ``dovetail.numpy.integer``.
        arg2: likewise.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.issubdtype(jnp.bfloat16, jnp.floating), jnp.issubdtype("int8", jnp.int32)
        (True, False)
    """
    return dtypes.issubdtype(arg1, arg2)


def result_type(*args: ArrayLike | DTypeLike) -> DType:
    """The dtype of the result of an operation on values.

    `explain_dtype` says why. Unlike in NumPy, Python numbers and other weakly typed values yield to
    the dtypes of arrays.

    Args:
        *args: arrays, numbers and dtypes, at least one.

    Returns:
        A dtype.

    Raises:
        DTypeError: arrays cannot have one of the dtypes.
        TypePromotionError: they do not combine.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.result_type(jnp.ones(2, "float16"), 2.5), jnp.result_type("int8", "uint8")
        (dtype('float16'), dtype('int16'))
    """
    return dtypes.result_type(*args)


def can_cast(
    from_: DTypeLike,
    to: DTypeLike,
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "safe",
) -> bool:
    """Check whether values of one dtype may be cast to another under a rule.

    Args:
        from_: dtype, or array.
        to: dtype.
        casting: "no", "equiv", "safe", "same_kind" or "unsafe".

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.can_cast("int8", "float32"), jnp.can_cast("float32", "int8")
        (True, False)
    """
    source = getattr(from_, "dtype", from_)
    here: Any = dtypes.as_dtype(source)
    target: Any = dtypes.as_dtype(to)
    if not isinstance(casting, str):
        raise TypeError(f"can_cast: casting must be a string, got {casting!r:.80}")
    return bool(np.can_cast(here, target, casting=casting))


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Check whether a dtype is of a kind, or of one of several kinds.

    Args:
        dtype: the dtype.
        kind: a dtype, "bool", "signed integer", "unsigned integer", "integral", "real floating",
            "complex floating", "numeric", or a tuple of these.

    Raises:
        ValueError: the kind is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.isdtype(jnp.float32, "real floating"), jnp.isdtype(jnp.int8, ("bool", jnp.int8))
        (True, True)
    """
    found: Any = dtypes.as_dtype(dtype)
    found_kind = dtypes.kind_of(found)
    for option in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(option, str) and option in _KINDS:
            if found_kind in _KINDS[option]:
                return True
        elif found == _as_kind(option):
            return True
    return False


def _as_kind(option: Any) -> Any:
    try:
        return dtypes.as_dtype(option)
    except TypeError:
        if not isinstance(option, str):
            raise
        raise ValueError(
            f"isdtype: kind must be a dtype or one of {', '.join(_KINDS)}, got {option!r}"
        ) from None


_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("b",),
    "signed integer": ("i",),
    "unsigned integer": ("u",),
    "integral": ("i", "u"),
    "real floating": ("f",),
    "complex floating": ("c",),
    "numeric": ("i", "u", "f", "c"),
}
