"""The default of arguments for which None is a valid value."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["UNSPECIFIED"]


class _Unspecified:
    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED: Final[Any] = _Unspecified()
