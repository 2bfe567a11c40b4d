"""The metadata of a distribution `jax` that is not there."""

from __future__ import annotations

from importlib.metadata import Distribution
from os import PathLike
from pathlib import Path
from typing import Any


class Metadata(Distribution):
    """What programs ask for: name and version.

    Args:
        version: the version.
    """

    def __init__(self, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: jax\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        """The text of a file of the metadata; None if there is none of that name."""
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Any:
        """The path itself: there are no files."""
        return Path(path)
