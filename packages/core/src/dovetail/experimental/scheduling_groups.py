"""Operations that XLA runs one after another, as one group."""

from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ops.calls.xla_metadata import scheduling_group as scheduling_group
from dovetail._core.ops.calls.xla_metadata import xla_metadata_call as xla_metadata_call

__all__ = ["scheduling_group", "xla_metadata_call"]

_publish(globals())
