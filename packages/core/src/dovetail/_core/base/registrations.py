"""What modules register when they are imported, and again if their first import failed."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["importing", "is_imported_again"]

Namespace = dict[str, Any]


def importing() -> Namespace | None:
    """The namespace of the innermost module whose code is running; None if there is none."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else frame.f_globals


def is_imported_again(first: Namespace | None, now: Namespace | None) -> bool:
    """Whether a module is being imported again: an exception has ended its first import.

    What that registered is replaced, since nothing else can have got hold of it.
    """
    return (
        first is not None
        and now is not None
        and first is not now
        and first.get("__name__") == now.get("__name__")
    )
