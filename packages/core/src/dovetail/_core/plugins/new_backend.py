"""Creates the distribution of a new backend, ready to install and to edit."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Final

__all__ = ["KINDS", "new_backend"]

KINDS: Final = ("equations", "pjrt")
"""What a new backend is made of: a runtime in Python that computes equations, or a PJRT library."""

_NAME: Final = re.compile(r"[a-z](?:[a-z0-9_]*[a-z0-9])?")
# The framework's own platforms and their aliases.
_TAKEN: Final = ("cpu", "cuda", "gpu", "rocm", "tpu")


def new_backend(name: str, folder: Path, kind: str = "equations") -> list[Path]:
    """Write the distribution ``dovetail-backend-<name>``.

    Args:
        name: the platform's name: lower-case letters, digits and underscores, starting with a
            letter and not ending with an underscore.
        folder: where the distribution's own folder is created.
        kind: one of `KINDS`.

    Returns:
        The files written, in order.

    Raises:
        ValueError: the name is invalid or taken, or there is no such kind.
        FileExistsError: the distribution's folder already exists.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            "a platform's name has lower-case letters, digits and underscores, begins with a "
            f"letter and does not end with an underscore, such as 'acme'; got {name!r}"
        )
    if name in _TAKEN:
        raise ValueError(f"{name!r} is a platform of dovetail's own: choose another name")
    if kind not in KINDS:
        raise ValueError(f"a new backend is one of {', '.join(KINDS)}; got {kind!r}")
    target = folder / f"dovetail-backend-{name}"
    if target.exists():
        raise FileExistsError(f"{target} is there already: remove it, or choose another name")
    words = {"name": name, "NAME": name.upper(), "version": _version()}
    written = []
    for template in sorted(_templates(kind), key=lambda path: path.name):
        file = template.name.removesuffix(".txt")
        inside = target / "src" / f"dovetail_backend_{name}" if file.endswith(".py") else target
        inside.mkdir(parents=True, exist_ok=True)
        text = Template(template.read_text(encoding="utf-8")).substitute(words)
        (inside / file).write_text(text, encoding="utf-8")
        written.append(inside / file)
    return written


def _templates(kind: str) -> list[Traversable]:
    """The templates of a kind; not as paths, since the distribution may be an archive."""
    folder = files("dovetail._core.plugins") / "templates" / kind
    return [entry for entry in folder.iterdir() if entry.name.endswith(".txt")]


def _version() -> str:
    from importlib.metadata import version  # deferred: 20 ms

    return version("dovetail-core")
