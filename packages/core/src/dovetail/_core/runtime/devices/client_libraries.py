"""Which file a client's library is: part of what its programs are known by.

Two versions of a PJRT plug-in may give their clients the same version text.
"""

from __future__ import annotations

import weakref
from typing import Any, Final

__all__ = ["library_text", "note_library"]

_made: Final[weakref.WeakKeyDictionary[Any, tuple[str, str]]] = weakref.WeakKeyDictionary()


def note_library(client: Any, version: str, more: str) -> None:
    """Keep what tells the library of a client.

    Args:
        client: one of jaxlib's.
        version: what is the same wherever the library is installed.
        more: what differs from machine to machine: the file's time, and the client's options.
    """
    _made[client] = (version, more)


def library_text(client: Any, *, exact: bool) -> str:
    """What tells the library of a client.

    Args:
        client: one of jaxlib's.
        exact: whether to tell also what differs from machine to machine.

    Returns:
        The text; empty for a client whose library is jaxlib itself, or is not known.
    """
    version, more = _made.get(client, ("", ""))
    return f"{version} {more}".strip() if exact else version
