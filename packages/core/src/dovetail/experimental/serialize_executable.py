"""Compiled programs as bytes, for another process on the same kind of machine."""

from dovetail._core.api.serialization import deserialize_and_load as deserialize_and_load
from dovetail._core.api.serialization import serialize as serialize
from dovetail._core.base.tracebacks import publish as _publish

__all__ = ["deserialize_and_load", "serialize"]

_publish(globals())
