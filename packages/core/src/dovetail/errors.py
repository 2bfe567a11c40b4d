"""The errors that the framework raises, beyond Python's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dovetail._core.base import errors as _errors
from dovetail._core.base.errors import BackendUnavailableError as BackendUnavailableError
from dovetail._core.base.errors import CompilationCacheWarning as CompilationCacheWarning
from dovetail._core.base.errors import ConcretizationTypeError as ConcretizationTypeError
from dovetail._core.base.errors import DeletedArrayError as DeletedArrayError
from dovetail._core.base.errors import DeviceMismatchError as DeviceMismatchError
from dovetail._core.base.errors import DTypeError as DTypeError
from dovetail._core.base.errors import (
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
)
from dovetail._core.base.errors import IndexShapeError as IndexShapeError
from dovetail._core.base.errors import JAXIndexError as JAXIndexError
from dovetail._core.base.errors import JaxprTypeError as JaxprTypeError
from dovetail._core.base.errors import JAXTypeError as JAXTypeError
from dovetail._core.base.errors import KeyReuseError as KeyReuseError
from dovetail._core.base.errors import MissingRuleError as MissingRuleError
from dovetail._core.base.errors import NonArrayArgumentError as NonArrayArgumentError
from dovetail._core.base.errors import NonConcreteBooleanIndexError as NonConcreteBooleanIndexError
from dovetail._core.base.errors import NoValueError as NoValueError
from dovetail._core.base.errors import ShapeError as ShapeError
from dovetail._core.base.errors import TracerArrayConversionError as TracerArrayConversionError
from dovetail._core.base.errors import TracerAttributeError as TracerAttributeError
from dovetail._core.base.errors import TracerBoolConversionError as TracerBoolConversionError
from dovetail._core.base.errors import TracerIntegerConversionError as TracerIntegerConversionError
from dovetail._core.base.errors import UnexpectedTracerError as UnexpectedTracerError

if TYPE_CHECKING:
    from dovetail._core.base.bindings import JaxRuntimeError as JaxRuntimeError

__all__ = [
    "BackendUnavailableError",
    "CompilationCacheWarning",
    "ConcretizationTypeError",
    "DTypeError",
    "DeletedArrayError",
    "DeviceMismatchError",
    "InconclusiveDimensionOperation",
    "IndexShapeError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "MissingRuleError",
    "NoValueError",
    "NonArrayArgumentError",
    "NonConcreteBooleanIndexError",
    "ShapeError",
    "TracerArrayConversionError",
    "TracerAttributeError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]


def __getattr__(name: str) -> Any:
    return getattr(_errors, name)
