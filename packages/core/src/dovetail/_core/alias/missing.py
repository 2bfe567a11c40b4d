"""The names of JAX that a program asked for and that are not there."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Final

_asked: Final[Counter[str]] = Counter()


def missing_names() -> dict[str, int]:
    """The names below `jax` that were asked for and are not there, and how often each was.

    Libraries that look for a name with ``hasattr`` or in a ``try`` go on without it.

    Returns:
        Counts by full name, such as ``"jax.experimental.pallas"``.

    Example:
        >>> isinstance(missing_names(), dict)
        True
    """
    return dict(sorted(_asked.items()))


def note_missing(name: str) -> str:
    """Remember that a name was asked for; a sentence that says so."""
    _asked[name] += 1
    return f"{name} is not in dovetail, which stands in for jax here"


def print_report() -> None:
    """Print what was asked for and is not there."""
    lines = [f"  {name}  ({count})" for name, count in missing_names().items()]
    heading = "Names of jax that were asked for and are not in dovetail"
    text = "\n".join([f"{heading} (how often):", *lines]) if lines else f"{heading}: none."
    sys.stderr.write(text + "\n")
