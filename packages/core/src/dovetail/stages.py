"""The steps of compilation: `Traced`, `Lowered`, `Compiled`."""

from dovetail._core.api.stages import ArgInfo as ArgInfo
from dovetail._core.api.stages import Compiled as Compiled
from dovetail._core.api.stages import Lowered as Lowered
from dovetail._core.api.stages import Traced as Traced
from dovetail._core.api.stages import Wrapped as Wrapped

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"]
