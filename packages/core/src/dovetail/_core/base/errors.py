"""The framework's errors, for core. Users know them by `dovetail.errors`, which defines them."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.errors import BackendUnavailableError as BackendUnavailableError
from dovetail.errors import CompilationCacheWarning as CompilationCacheWarning
from dovetail.errors import ConcretizationTypeError as ConcretizationTypeError
from dovetail.errors import DeletedArrayError as DeletedArrayError
from dovetail.errors import DeviceMismatchError as DeviceMismatchError
from dovetail.errors import DistributedError as DistributedError
from dovetail.errors import DTypeError as DTypeError
from dovetail.errors import ExporterUnavailableError as ExporterUnavailableError
from dovetail.errors import ForbiddenCollectiveError as ForbiddenCollectiveError
from dovetail.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from dovetail.errors import IndexShapeError as IndexShapeError
from dovetail.errors import JAXIndexError as JAXIndexError
from dovetail.errors import JaxprTypeError as JaxprTypeError
from dovetail.errors import JAXTypeError as JAXTypeError
from dovetail.errors import KeyReuseError as KeyReuseError
from dovetail.errors import MissingRuleError as MissingRuleError
from dovetail.errors import NonArrayArgumentError as NonArrayArgumentError
from dovetail.errors import NonConcreteBooleanIndexError as NonConcreteBooleanIndexError
from dovetail.errors import NoValueError as NoValueError
from dovetail.errors import RecompilationError as RecompilationError
from dovetail.errors import ShapeError as ShapeError
from dovetail.errors import ShardingTypeError as ShardingTypeError
from dovetail.errors import TracerArrayConversionError as TracerArrayConversionError
from dovetail.errors import TracerAttributeError as TracerAttributeError
from dovetail.errors import TracerBoolConversionError as TracerBoolConversionError
from dovetail.errors import TracerIntegerConversionError as TracerIntegerConversionError
from dovetail.errors import UnexpectedTracerError as UnexpectedTracerError
from dovetail.errors import UnknownNameError as UnknownNameError


def close_matches(word: str, known: Iterable[str], count: int = 1) -> list[str]:
    """The known names closest to a misspelt word, the likeliest first."""
    import difflib  # deferred: only needed for messages

    return difflib.get_close_matches(word, list(known), count)
