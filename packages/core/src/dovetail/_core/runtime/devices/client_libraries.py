"""The identity of a client's library file, which is part of the key of its programs.

Two versions of a PJRT plug-in may report the same version text.
"""

from __future__ import annotations

import weakref
from typing import Any, Final

__all__ = ["library_text", "note_library"]

_made: Final[weakref.WeakKeyDictionary[Any, tuple[str, str]]] = weakref.WeakKeyDictionary()


def note_library(client: Any, version: str, more: str) -> None:
    """Record the identity of a client's library.

    Args:
        client: a client of jaxlib's.
        version: the part that is the same wherever the library is installed.
        more: the part that varies between machines: the file's time, and the client's options.
    """
    _made[client] = (version, more)


def library_text(client: Any, *, exact: bool) -> str:
    """The identity of a client's library.

    Args:
        client: a client of jaxlib's.
        exact: whether to include the part that varies between machines.

    Returns:
        The text; empty for a client whose library is jaxlib itself, or is unknown.
    """
    version, more = _made.get(client, ("", ""))
    return f"{version} {more}".strip() if exact else version
