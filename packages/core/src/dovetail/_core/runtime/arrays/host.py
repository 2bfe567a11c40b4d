"""Converts host values to NumPy arrays that a device can take."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import NonArrayArgumentError
from dovetail._core.base.strictness import strictness
from dovetail._core.ir.avals import ShapedArray, as_array, make_aval, numpy_refusal
from dovetail._core.runtime.arrays.memory import placing

__all__ = ["checked_ndarray", "host_value", "numpy_aval"]

_PYTHON_SCALARS: Final = (bool, int, float, complex)
_canonicalize: Final = dtypes.canonicalize_dtype

# Dtypes, in native byte order, that are canonical whatever the options are.
_ALWAYS: Final = (
    *("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"),
    *("float16", "float32", "complex64"),
)
_CANONICAL: Final = frozenset(map(np.dtype, _ALWAYS))


def checked_ndarray(value: Any, what: str = "the value") -> np.ndarray[Any, Any]:
    """A NumPy array that a device can take: with a canonical dtype, in native byte order.

    Args:
        value: a NumPy array or scalar.
        what: a phrase for the value, for messages.

    Returns:
        ``value`` itself if it is such an array already, else a converted copy.

    Raises:
        NonArrayArgumentError: its dtype is neither numeric nor boolean, or it is masked.
        OverflowError: an integer does not fit the canonical dtype.
    """
    dtype = value.dtype
    if dtype in _CANONICAL and type(value) is np.ndarray:
        return value
    canonical = _canonicalize(dtype) if dtype.kind not in "OSUmM" else None
    if (
        type(value) is np.ndarray
        and canonical is not None
        and canonical is dtype
        and dtypes.kind_of(canonical)
    ):
        return value
    if dtype == dtypes.float0:
        raise NonArrayArgumentError(
            f"{what} has the dtype float0, which holds nothing and has no place on a device"
        )
    refusal = numpy_refusal(value, what)
    if refusal:
        raise refusal
    assert canonical is not None
    array = np.asarray(value)
    if array.dtype == canonical:
        # Equal but not identical: dtypes of ml_dtypes, views of NumPy's dtypes, or another byte
        # order.
        return array if array.dtype.isnative else array.astype(canonical)
    try:
        narrow: np.ndarray[Any, Any] = array.astype(canonical)
        overflows = (
            canonical.kind in "iu" and strictness().integers_fit and bool((narrow != array).any())
        )
    except MemoryError as error:
        aval = numpy_aval(array)
        raise placing(error, f"converting {what} from {array.dtype} to", aval) from None
    if overflows:
        raise _overflow(array, canonical, what)
    return narrow


def _overflow(array: np.ndarray[Any, Any], dtype: np.dtype[Any], what: str) -> OverflowError:
    first = array[array.astype(dtype) != array].flat[0]
    return OverflowError(
        f"{what} holds {first}, which does not fit {dtype}: 64-bit types are off, and "
        f"{array.dtype} becomes {dtype}. Switch them on with dovetail.config.update("
        f'"enable_x64", True), or convert with .astype({dtype.name!r}) if the upper bits are to '
        "be dropped"
    )


def host_value(value: Any, aval: Any, what: str = "the value") -> Any:
    """Convert a host value to a NumPy array for transfer.

    Args:
        value: a NumPy array or scalar, a Python scalar, or an object that converts itself to
            an array.
        aval: its abstract value.
        what: a phrase for the value, for messages.

    Raises:
        OverflowError: an integer does not fit the aval's dtype.
        NonArrayArgumentError: the value is not an array.
    """
    if isinstance(value, _PYTHON_SCALARS) and not isinstance(value, np.generic):
        dtype = aval.dtype
        try:
            return np.asarray(value, dtype)
        except OverflowError:
            raise OverflowError(
                f"{what} is the Python integer {value}, which does not fit {dtype}"
                + (
                    "; 64-bit types are off, switch them on with "
                    'dovetail.config.update("enable_x64", True)'
                    if dtype.itemsize < 8
                    else ""
                )
            ) from None
    if not isinstance(value, (np.ndarray, np.generic)):
        value = np.asarray(as_array(value))
    return checked_ndarray(value, what)


def numpy_aval(array: np.ndarray[Any, Any], weak_type: bool = False) -> ShapedArray:
    """The aval of an array returned by `checked_ndarray`."""
    return make_aval(array.shape, array.dtype, weak_type)
