"""MLIR's Python bindings for the rest of the framework.

Their type stubs differ between versions of jaxlib, so MLIR's types are only names here, and are not
type-checked.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from jaxlib.mlir import ir as _ir
from jaxlib.mlir import passmanager as _passmanager

# The extensions behind `jaxlib.mlir.dialects`, whose modules of generated operation classes take
# 20 ms to import and are not needed: operations are created by name.
from jaxlib.mlir._mlir_libs import _chlo as _chlo_extension
from jaxlib.mlir._mlir_libs import _jax_mlir_ext as _extension
from jaxlib.mlir._mlir_libs import _mlirHlo as _mhlo_extension
from jaxlib.mlir._mlir_libs import _sdy as _sdy_extension
from jaxlib.mlir._mlir_libs import _stablehlo as _stablehlo_extension

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
    "ir",
    "mhlo",
    "passmanager",
    "sdy",
    "stablehlo",
]

ir: Any = _ir
passmanager: Any = _passmanager
extension: Any = _extension
chlo: Any = _chlo_extension
mhlo: Any = _mhlo_extension
sdy: Any = _sdy_extension
stablehlo: Any = _stablehlo_extension

Attribute: TypeAlias = Any
Block: TypeAlias = Any
Context: TypeAlias = Any
Location: TypeAlias = Any
Module: TypeAlias = Any
Operation: TypeAlias = Any
Type: TypeAlias = Any
Value: TypeAlias = Any
