"""Functions that look like those that they wrap."""

from __future__ import annotations

from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS, WRAPPER_UPDATES
from typing import Any, TypeVar

__all__ = ["update_wrapper", "wraps"]

F = TypeVar("F", bound=Callable[..., Any])


def update_wrapper(wrapper: F, wrapped: Callable[..., Any]) -> F:
    """As `functools.update_wrapper`, for callables of any kind.

    An object with ``__call__`` may have attributes that a function cannot have, such as a
    ``__name__`` that is no string: these are left out.
    """
    for name in WRAPPER_ASSIGNMENTS:
        try:
            setattr(wrapper, name, getattr(wrapped, name))
        except (AttributeError, TypeError):
            continue
    for kept in WRAPPER_UPDATES:
        getattr(wrapper, kept).update(getattr(wrapped, kept, {}))
    wrapper.__wrapped__ = wrapped  # type: ignore[attr-defined]
    return wrapper


def wraps(wrapped: Callable[..., Any]) -> Callable[[F], F]:
    """As `functools.wraps`, for callables of any kind."""
    return lambda wrapper: update_wrapper(wrapper, wrapped)
