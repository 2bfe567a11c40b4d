"""Counts in messages."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, one: str, several: str = "") -> str:
    """A count with what is counted, such as ``1 entry`` or ``3 entries``.

    Args:
        count: the count.
        one: the noun in the singular.
        several: its plural; by default with an "s" at the end.
    """
    return f"{count} {one if count == 1 else several or one + 's'}"
