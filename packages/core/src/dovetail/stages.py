"""The steps of compilation: `Traced`, `Lowered`, `Compiled`."""

from dovetail._core.api.call_caches import CacheInfo as CacheInfo
from dovetail._core.api.call_caches import Explanation as Explanation
from dovetail._core.api.call_caches import Signature as Signature
from dovetail._core.api.stages import ArgInfo as ArgInfo
from dovetail._core.api.stages import Compiled as Compiled
from dovetail._core.api.stages import Lowered as Lowered
from dovetail._core.api.stages import Traced as Traced
from dovetail._core.api.stages import Wrapped as Wrapped
from dovetail._core.base.tracebacks import publish as _publish

__all__ = [
    "ArgInfo",
    "CacheInfo",
    "Compiled",
    "Explanation",
    "Lowered",
    "Signature",
    "Traced",
    "Wrapped",
]

_publish(globals())
