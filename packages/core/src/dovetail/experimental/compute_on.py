"""Parts of programs that run elsewhere on a device."""

from dovetail._core.api.compute_on import compute_on as compute_on
from dovetail._core.base.tracebacks import publish as _publish

__all__ = ["compute_on"]

_publish(globals())
