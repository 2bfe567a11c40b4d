"""MLIR's Python bindings, as the rest of the framework uses them.

Their type stubs differ between versions of jaxlib, so objects of MLIR have names here, and no
checked types.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from jaxlib.mlir import ir as _ir
from jaxlib.mlir import passmanager as _passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext as _extension
from jaxlib.mlir.dialects import chlo as _chlo
from jaxlib.mlir.dialects import func as _func
from jaxlib.mlir.dialects import mhlo as _mhlo
from jaxlib.mlir.dialects import sdy as _sdy
from jaxlib.mlir.dialects import stablehlo as _stablehlo

__all__ = [
    "Attribute",
    "Block",
    "Context",
    "Location",
    "Module",
    "Operation",
    "Type",
    "Value",
    "chlo",
    "extension",
    "func",
    "ir",
    "mhlo",
    "passmanager",
    "sdy",
    "stablehlo",
]

ir: Any = _ir
passmanager: Any = _passmanager
extension: Any = _extension
chlo: Any = _chlo
func: Any = _func
mhlo: Any = _mhlo
sdy: Any = _sdy
stablehlo: Any = _stablehlo

Attribute: TypeAlias = Any
Block: TypeAlias = Any
Context: TypeAlias = Any
Location: TypeAlias = Any
Module: TypeAlias = Any
Operation: TypeAlias = Any
Type: TypeAlias = Any
Value: TypeAlias = Any
