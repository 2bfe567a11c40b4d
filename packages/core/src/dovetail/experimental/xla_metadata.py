"""What a program tells XLA about its operations."""

from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ops.calls.xla_metadata import fuse_limit as fuse_limit
from dovetail._core.ops.calls.xla_metadata import must_fuse_call as must_fuse_call
from dovetail._core.ops.calls.xla_metadata import set_xla_metadata as set_xla_metadata
from dovetail._core.ops.calls.xla_metadata import xla_metadata_call as xla_metadata_call
from dovetail._core.ops.calls.xla_metadata import xla_metadata_call2 as xla_metadata_call2

__all__ = [
    "fuse_limit",
    "must_fuse_call",
    "set_xla_metadata",
    "xla_metadata_call",
    "xla_metadata_call2",
]

_publish(globals())
