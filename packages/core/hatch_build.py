"""Puts the file into the wheel by which `DOVETAIL_AS_JAX=1` takes effect when Python starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "dovetail_as_jax.pth"


class StartHook(BuildHookInterface):
    """Adds the file, to editable installations too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file."""
        kind = "force_include_editable" if version == "editable" else "force_include"
        build_data.setdefault(kind, {})[str(Path(self.root, NAME))] = NAME
