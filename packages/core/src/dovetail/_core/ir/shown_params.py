"""Which parameters of an equation a printed jaxpr shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: By parameter name, a predicate that says whether a value is shown.
ShownParams = Mapping[str, Callable[[Any], bool]]


def always(value: Any) -> bool:
    """Shows every value."""
    return True


def is_given(value: Any) -> bool:
    """Shows a value that is not None."""
    return value is not None


def never(value: Any) -> bool:
    """Shows no value."""
    return False
