"""Switching the alias on."""

from __future__ import annotations

import os
import sys
from typing import Final

from dovetail._core.alias.finder import AliasFinder
from dovetail._core.base.strictness import relax

#: The version of JAX whose documented API is followed.
FOLLOWED_VERSION: Final = "0.12.0"
VARIABLE: Final = "DOVETAIL_AS_JAX"


def version() -> str:
    """The version that `jax` says it has."""
    found = [f.version for f in sys.meta_path if isinstance(f, AliasFinder)]
    return found[0] if found else FOLLOWED_VERSION


def activate() -> None:
    """Let `import jax` give dovetail, in this process and those that it starts.

    Importing `dovetail.as_jax` does so. What `jax.__version__` and the metadata say is the version
    whose API is followed, or what the variable `DOVETAIL_AS_JAX_VERSION` says.

    Raises:
        ImportError: JAX itself was imported before.

    Example:
        >>> activate()  # doctest: +SKIP
    """
    if any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        return
    if "jax" in sys.modules:
        raise ImportError(
            "jax itself was imported before dovetail.as_jax, and one process cannot have both "
            "under that name: import dovetail.as_jax first, or run "
            "python -m dovetail.as_jax program.py"
        )
    relax()
    version = os.environ.get(f"{VARIABLE}_VERSION") or FOLLOWED_VERSION
    sys.meta_path.insert(0, AliasFinder(version))
    os.environ[VARIABLE] = "1"
