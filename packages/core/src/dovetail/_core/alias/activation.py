"""Switching the alias on."""

from __future__ import annotations

import os
import sys
from typing import Final

from dovetail._core.alias.finder import AliasFinder

#: The version of JAX whose documented API is followed.
FOLLOWED_VERSION: Final = "0.12.0"
VARIABLE: Final = "DOVETAIL_AS_JAX"


def activate(version: str | None = None) -> None:
    """Let `import jax` give dovetail, in this process and those that it starts.

    Importing `dovetail.as_jax` does so, too.

    Args:
        version: what `jax.__version__` and the metadata say. By default the variable
            `DOVETAIL_AS_JAX_VERSION`, or the version whose API is followed.

    Raises:
        ImportError: JAX itself was imported before.
        ValueError: the alias is on with another version.

    Example:
        >>> activate("0.11.2")  # doctest: +SKIP
    """
    wanted = version or os.environ.get(f"{VARIABLE}_VERSION") or FOLLOWED_VERSION
    for finder in sys.meta_path:
        if isinstance(finder, AliasFinder):
            if version is not None and finder.version != version:
                raise ValueError(
                    f"dovetail stands in for jax {finder.version} already, and cannot become "
                    f"{version}: call activate(version) first, or set {VARIABLE}_VERSION"
                )
            return
    if "jax" in sys.modules:
        raise ImportError(
            "jax itself was imported before dovetail.as_jax, and one process cannot have both "
            "under that name: import dovetail.as_jax first, or run python -m dovetail.as_jax program.py"
        )
    sys.meta_path.insert(0, AliasFinder(wanted))
    os.environ[VARIABLE] = "1"
