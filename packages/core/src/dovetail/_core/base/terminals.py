"""What the terminal shows, or the notebook."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["notebook", "shows_color"]


def shows_color() -> bool:
    """Whether the output goes to a terminal with colours."""
    environment = os.environ
    if environment.get("FORCE_COLOR"):
        return True
    plain = environment.get("NO_COLOR") or environment.get("TERM", "dumb") == "dumb"
    return sys.stdout.isatty() and not plain


def notebook() -> Callable[[dict[str, str]], object] | None:
    """What shows data in the notebook that this process runs; None if it runs none."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):  # nor has IPython in a terminal
        return None
    publish: Callable[[dict[str, str]], object] = shell.display_pub.publish
    return publish
