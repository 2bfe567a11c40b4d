"""The steps of compilation: `Traced`, `Lowered`, `Compiled`."""

from __future__ import annotations

from dovetail.core.api.stages import ArgInfo as ArgInfo
from dovetail.core.api.stages import Compiled as Compiled
from dovetail.core.api.stages import Lowered as Lowered
from dovetail.core.api.stages import Traced as Traced
from dovetail.core.api.stages import Wrapped as Wrapped

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"]
