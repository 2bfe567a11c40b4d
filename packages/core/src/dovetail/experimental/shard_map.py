"""The older form of `dovetail.shard_map`."""

from dovetail._core.api.mapping import experimental_shard_map as shard_map
from dovetail._core.base.tracebacks import publish as _publish

__all__ = ["shard_map"]

_publish(globals())
