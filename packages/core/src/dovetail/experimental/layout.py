"""Memory layouts of arrays on devices."""

from dovetail._core.api.layouts import with_layout_constraint as with_layout_constraint
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.runtime.devices.layout import Format as Format
from dovetail._core.runtime.devices.layout import Layout as Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]

_publish(globals())
