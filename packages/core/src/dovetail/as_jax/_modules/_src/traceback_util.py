"""The module `jax._src.traceback_util`."""

from collections.abc import Callable as _Callable
from typing import TypeVar as _TypeVar

from dovetail._core.base.source import add_internal_folder as register_exclusion

_F = _TypeVar("_F", bound=_Callable[..., object])


def api_boundary(function: _F, **options: object) -> _F:
    """The function itself: tracebacks need no boundaries here."""
    return function
