"""What the terminal shows."""

from __future__ import annotations

import os
import sys

__all__ = ["shows_color"]


def shows_color() -> bool:
    """Whether the output goes to a terminal with colours."""
    environment = os.environ
    if environment.get("FORCE_COLOR"):
        return True
    plain = environment.get("NO_COLOR") or environment.get("TERM", "dumb") == "dumb"
    return sys.stdout.isatty() and not plain
