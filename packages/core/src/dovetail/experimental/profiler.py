"""What compilers take from profiles."""

from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.runtime.profiles.sessions import (
    get_profiled_instructions_proto as get_profiled_instructions_proto,
)

__all__ = ["get_profiled_instructions_proto"]

_publish(globals())
