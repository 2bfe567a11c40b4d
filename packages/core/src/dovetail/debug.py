"""Looking at values while compiled programs run."""

from dovetail._core.api.linting.findings import Finding as Finding
from dovetail._core.api.linting.findings import LintReport as LintReport
from dovetail._core.api.sharding_pictures import (
    visualize_array_sharding as visualize_array_sharding,
)
from dovetail._core.api.sharding_pictures import visualize_sharding as visualize_sharding
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ir.effects import DebugEffect as DebugEffect
from dovetail._core.ir.effects import OrderedDebugEffect as OrderedDebugEffect
from dovetail._core.ops.callbacks.breakpoints import breakpoint as breakpoint
from dovetail._core.ops.callbacks.checks import check as check
from dovetail._core.ops.callbacks.debugging import callback as callback
from dovetail._core.ops.callbacks.debugging import log as log
from dovetail._core.ops.callbacks.debugging import print as print
from dovetail._core.ops.callbacks.inspections import (
    inspect_array_sharding as inspect_array_sharding,
)

__all__ = [
    "DebugEffect",
    "Finding",
    "LintReport",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "check",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]

_publish(globals())
