"""Where dovetail keeps what later processes of the user read."""

from __future__ import annotations

import os
import sys

__all__ = ["user_folder"]


def user_folder() -> str:
    """The folder of dovetail inside the user's cache folder; it need not exist.

    Raises:
        RuntimeError: the user has no home folder.
    """
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or _in_home("AppData", "Local")
    elif sys.platform == "darwin":
        base = _in_home("Library", "Caches")
    else:
        # The XDG specification says that relative paths are to be ignored.
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            base = _in_home(".cache")
    return os.path.join(base, "dovetail")


def _in_home(*parts: str) -> str:
    home = os.path.expanduser("~")
    if home == "~":
        raise RuntimeError("the user has no home folder")
    return os.path.join(home, *parts)
