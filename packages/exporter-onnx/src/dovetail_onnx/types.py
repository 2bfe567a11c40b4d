"""Element types: their names in ONNX, and in which of them an operator is computed.

The standard allows more than runtimes have. An operator on a type that is not in `COMPUTED_IN` is
computed in a wider one and the result converted back: integers modulo a power of two, and 16-bit
floats rounded once, come out the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import ml_dtypes
import numpy as np
import onnx

from dovetail.extend import ShapedArray
from dovetail.extend.random_keys import KeyDType
from dovetail_onnx.errors import Refusal

__all__ = [
    "BOOL",
    "F32",
    "F64",
    "I32",
    "I64",
    "U8",
    "digits_and_smallest",
    "is_float",
    "is_narrow",
    "numeric",
    "onnx_type",
    "stand_in",
]

DType = np.dtype[Any]

BOOL: Final[DType] = np.dtype(bool)
U8: Final[DType] = np.dtype(np.uint8)
I32: Final[DType] = np.dtype(np.int32)
I64: Final[DType] = np.dtype(np.int64)
U64: Final[DType] = np.dtype(np.uint64)
F16: Final[DType] = np.dtype(np.float16)
BF16: Final[DType] = np.dtype(ml_dtypes.bfloat16)
F32: Final[DType] = np.dtype(np.float32)
F64: Final[DType] = np.dtype(np.float64)

_CODES: Final[Mapping[DType, int]] = {
    BOOL: onnx.TensorProto.BOOL,
    **{
        np.dtype(name): getattr(onnx.TensorProto, name.upper())
        for name in (
            *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
            "float16",
        )
    },
    BF16: onnx.TensorProto.BFLOAT16,
    F32: onnx.TensorProto.FLOAT,
    F64: onnx.TensorProto.DOUBLE,
    np.dtype(ml_dtypes.float8_e4m3fn): onnx.TensorProto.FLOAT8E4M3FN,
    np.dtype(ml_dtypes.float8_e4m3fnuz): onnx.TensorProto.FLOAT8E4M3FNUZ,
    np.dtype(ml_dtypes.float8_e5m2): onnx.TensorProto.FLOAT8E5M2,
    np.dtype(ml_dtypes.float8_e5m2fnuz): onnx.TensorProto.FLOAT8E5M2FNUZ,
}

_FLOATS: Final = frozenset({F32, F64})
_WIDE: Final = frozenset({F32, F64, I32, I64})
_INTEGERS: Final = frozenset(np.dtype(f"{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64))
_NUMBERS: Final = _FLOATS | _INTEGERS
_ORDERED: Final = _WIDE | {np.dtype(np.int8), U8}
_MOVED: Final = _NUMBERS | {BOOL, F16}

_WITHOUT_HALF: Final = frozenset({"IsInf", "Range", "ScatterND reduced"})
"""Operators that are not in float16: ONNX has the others, and runtimes that lack one convert by
themselves."""

COMPUTED_IN: Final[Mapping[str, frozenset[DType]]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "Abs", "Equal"), _NUMBERS),
    **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual"), _NUMBERS),
    "Neg": _FLOATS | frozenset(np.dtype(f"int{n}") for n in (8, 16, 32, 64)),
    "Sign": _NUMBERS,
    "Pow": _WIDE,
    **dict.fromkeys(("Max", "Min"), _ORDERED | {np.dtype(np.uint32), U64}),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "ArgMax", "ArgMin"), _ORDERED),
    **dict.fromkeys(("ReduceSum", "ReduceProd", "CumSum", "Einsum"), _WIDE),
    "MatMul": _WIDE | {np.dtype(np.uint32), U64},
    "TopK": _ORDERED | {np.dtype(np.int16)},
    "Range": _WIDE | {np.dtype(np.int16)},
    "Where": _ORDERED | {np.dtype(np.uint32)},
    "Pad": _ORDERED | {BOOL, np.dtype(np.uint32), U64, BF16},
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), _INTEGERS),
    "BitShift": frozenset(np.dtype(f"uint{n}") for n in (8, 16, 32, 64)),
    **dict.fromkeys(("And", "Or", "Xor", "Not"), frozenset({BOOL})),
    **dict.fromkeys(("Expand", "Tile"), _MOVED - {F16}),
    **dict.fromkeys(
        (
            *("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Concat", "Split", "Slice"),
            *("Gather", "GatherND", "GatherElements", "ScatterND", "ScatterElements"),
        ),
        _MOVED | {BF16},
    ),
    "ScatterND reduced": _NUMBERS,
}
"""Types in which an operator is computed; every other float operator is, in 32 and 64 bits."""


def numeric(aval: Any) -> ShapedArray:
    """The type of a value in a model: random keys are arrays of their numbers.

    Args:
        aval: the aval of a variable.

    Raises:
        Refusal: it is no array.
    """
    if not isinstance(aval, ShapedArray):
        raise Refusal("ONNX has arrays alone")
    if isinstance(aval.dtype, KeyDType):
        return ShapedArray(*aval.dtype.physical(aval.shape))
    return aval


def onnx_type(dtype: Any) -> int:
    """ONNX's number of a dtype.

    Args:
        dtype: the dtype of an aval.

    Raises:
        Refusal: ONNX has no such type, or no operators on it.
    """
    code = _CODES.get(dtype)
    if code is None:
        if dtype.kind == "c":
            raise Refusal(
                f"ONNX has no operators on {dtype.name}: compute with real and imaginary parts"
            )
        raise Refusal(f"ONNX has no operators on {dtype.name}: convert to a wider type")
    return code


def is_narrow(dtype: DType) -> bool:
    """Whether a dtype is a float of 16 bits or fewer."""
    return dtype in (F16, BF16) or (is_float(dtype) and dtype.itemsize == 1)


def is_float(dtype: DType) -> bool:
    """Whether a dtype is one of floating-point numbers."""
    return dtype not in _INTEGERS and dtype != BOOL


def stand_in(operator: str, dtype: DType) -> DType:
    """The dtype in which an operator on a dtype is computed.

    Args:
        operator: the operator's name.
        dtype: the dtype of its operands.
    """
    known = COMPUTED_IN.get(operator, _FLOATS)
    if dtype in known:
        return dtype
    if dtype == F16 and operator not in _WITHOUT_HALF:
        return dtype
    if is_narrow(dtype):
        return F32
    if is_float(dtype):
        return dtype
    wider = [I32, I64] if dtype == BOOL or dtype.itemsize < 4 else [I64]
    if dtype == BOOL and U8 in known:
        wider = [U8]
    return next((candidate for candidate in wider if candidate in known), dtype)


def digits_and_smallest(dtype: DType) -> tuple[int, float]:
    """The number of bits of a float's fraction, and the smallest number with all of them."""
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return int(limits.nmant), float(limits.smallest_normal)
