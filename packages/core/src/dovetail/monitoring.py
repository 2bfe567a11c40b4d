"""Events of the framework and of libraries on it, told to functions that listen."""

from dovetail._core.api.event_logs import EventLog as EventLog
from dovetail._core.base.events import Cause as Cause
from dovetail._core.base.events import Event as Event
from dovetail._core.base.monitoring import clear_event_listeners as clear_event_listeners
from dovetail._core.base.monitoring import record_event as record_event
from dovetail._core.base.monitoring import record_event_duration_secs as record_event_duration_secs
from dovetail._core.base.monitoring import record_event_time_span as record_event_time_span
from dovetail._core.base.monitoring import record_scalar as record_scalar
from dovetail._core.base.monitoring import (
    register_event_duration_secs_listener as register_event_duration_secs_listener,
)
from dovetail._core.base.monitoring import register_event_listener as register_event_listener
from dovetail._core.base.monitoring import (
    register_event_time_span_listener as register_event_time_span_listener,
)
from dovetail._core.base.monitoring import register_scalar_listener as register_scalar_listener
from dovetail._core.base.monitoring import (
    unregister_event_duration_listener as unregister_event_duration_listener,
)
from dovetail._core.base.monitoring import unregister_event_listener as unregister_event_listener
from dovetail._core.base.monitoring import (
    unregister_event_time_span_listener as unregister_event_time_span_listener,
)
from dovetail._core.base.monitoring import unregister_scalar_listener as unregister_scalar_listener
from dovetail._core.base.tracebacks import publish as _publish

__all__ = [
    "Cause",
    "Event",
    "EventLog",
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]

_publish(globals())
