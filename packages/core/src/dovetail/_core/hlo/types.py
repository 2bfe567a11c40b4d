"""MLIR types of abstract values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.hlo.mlir import Type, ir, stablehlo
from dovetail._core.ir.avals import AbstractToken, ShapedArray, physical_aval
from dovetail._core.ir.dimensions import SymbolicDimension

__all__ = ["TypeTable", "physical_dimensions"]


def _signless(bits: int) -> Callable[[], Type]:
    return lambda: ir.IntegerType.get_signless(bits)


def _unsigned(bits: int) -> Callable[[], Type]:
    return lambda: ir.IntegerType.get_unsigned(bits)


def _makers() -> dict[np.dtype[Any], Callable[[], Type]]:
    makers: dict[Any, Callable[[], Type]] = {
        np.bool_: _signless(1),
        dtypes.float0: _signless(1),
        np.float16: ir.F16Type.get,
        np.float32: ir.F32Type.get,
        np.float64: ir.F64Type.get,
        np.complex64: lambda: ir.ComplexType.get(ir.F32Type.get()),
        np.complex128: lambda: ir.ComplexType.get(ir.F64Type.get()),
        ml_dtypes.bfloat16: ir.BF16Type.get,
    }
    for bits in (8, 16, 32, 64):
        makers[f"int{bits}"] = _signless(bits)
        makers[f"uint{bits}"] = _unsigned(bits)
    for bits in (2, 4):
        for prefix, make in (("int", _signless), ("uint", _unsigned)):
            narrow = getattr(ml_dtypes, f"{prefix}{bits}", None)
            if narrow is not None:
                makers[narrow] = make(bits)
    for name, type_name in (
        ("float4_e2m1fn", "Float4E2M1FNType"),
        ("float8_e3m4", "Float8E3M4Type"),
        ("float8_e4m3", "Float8E4M3Type"),
        ("float8_e4m3b11fnuz", "Float8E4M3B11FNUZType"),
        ("float8_e4m3fn", "Float8E4M3FNType"),
        ("float8_e4m3fnuz", "Float8E4M3FNUZType"),
        ("float8_e5m2", "Float8E5M2Type"),
        ("float8_e5m2fnuz", "Float8E5M2FNUZType"),
        ("float8_e8m0fnu", "Float8E8M0FNUType"),
    ):
        if hasattr(ml_dtypes, name) and hasattr(ir, type_name):
            makers[getattr(ml_dtypes, name)] = getattr(ir, type_name).get
    return {np.dtype(key): make for key, make in makers.items()}


_element_makers: Final = _makers()

#: Forty times the memory of the largest TPU pods.
_MOST_BYTES: Final = 1 << 56


def _check_size(aval: ShapedArray) -> None:
    """Reject an array that is too large for any machine.

    XLA ends the process if a product of dimensions, even of an empty array, or the total size of a
    few arrays overflows a signed 64-bit integer.
    """
    size = math.prod(n or 1 for n in aval.shape) * aval.dtype.itemsize
    most = (1 << 63) - 1 if 0 in aval.shape else _MOST_BYTES
    if size > most:
        large = f"{size:.1e}" if size.bit_length() < 1000 else f"2**{size.bit_length() - 1}"
        raise ValueError(
            f"an array {aval.short_name()} would take {large} bytes (dimensions of size 0 count "
            f"as 1), and the compiler takes arrays of {most:.1e} at most; make its shape smaller"
        )


def physical_dimensions(aval: Any) -> tuple[int, ...]:
    """The extra dimensions of an extended dtype's data, after those of the aval."""
    dtype = aval.dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        return dtype.physical(())[0]
    return ()


class TypeTable(dict[Any, Any]):
    """MLIR types by aval, created on first use in the context that is current then."""

    __slots__ = ("_elements",)

    def __init__(self) -> None:
        super().__init__()
        self._elements: dict[Any, Type] = {}

    def element(self, dtype: Any) -> Type:
        """The type of an element of a NumPy dtype.

        Raises:
            TypeError: there is no such type in StableHLO.
        """
        element = self._elements.get(dtype)
        if element is None:
            maker = _element_makers.get(np.dtype(dtype))
            if maker is None:
                raise TypeError(f"values of dtype {dtype} cannot be part of a compiled program")
            element = self._elements[dtype] = maker()
        return element

    def __missing__(self, aval: Any) -> Any:
        if isinstance(aval, ShapedArray):
            physical = physical_aval(aval)
            shape = physical.shape
            if physical.symbolic:
                unknown = ir.ShapedType.get_dynamic_size()
                shape = [unknown if type(n) is SymbolicDimension else n for n in shape]
            else:
                _check_size(physical)
            mlir_type = ir.RankedTensorType.get(shape, self.element(physical.dtype))
        elif isinstance(aval, AbstractToken):
            mlir_type = stablehlo.TokenType.get()
        elif isinstance(aval, ir.Type):
            return aval
        else:
            raise TypeError(
                "expected the aval of an array or an MLIR type, "
                f"got {type(aval).__name__}: {aval!r}"
            )
        self[aval] = mlir_type
        return mlir_type
