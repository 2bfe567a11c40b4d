"""Profiles: what programs and Python spend time on, and what holds memory on devices."""

from dovetail._core.api.profiling import LineTime as LineTime
from dovetail._core.api.profiling import Profile as Profile
from dovetail._core.api.profiling import ProgramTime as ProgramTime
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.runtime.profiles.annotations import StepTraceAnnotation as StepTraceAnnotation
from dovetail._core.runtime.profiles.annotations import TraceAnnotation as TraceAnnotation
from dovetail._core.runtime.profiles.annotations import annotate_function as annotate_function
from dovetail._core.runtime.profiles.device_memory import (
    device_memory_profile as device_memory_profile,
)
from dovetail._core.runtime.profiles.device_memory import (
    save_device_memory_profile as save_device_memory_profile,
)
from dovetail._core.runtime.profiles.sessions import ProfileData as ProfileData
from dovetail._core.runtime.profiles.sessions import ProfileEvent as ProfileEvent
from dovetail._core.runtime.profiles.sessions import ProfileLine as ProfileLine
from dovetail._core.runtime.profiles.sessions import ProfileOptions as ProfileOptions
from dovetail._core.runtime.profiles.sessions import ProfilePlane as ProfilePlane
from dovetail._core.runtime.profiles.sessions import ProfileSession as ProfileSession
from dovetail._core.runtime.profiles.sessions import export_profile_data as export_profile_data
from dovetail._core.runtime.profiles.sessions import register_subprocess as register_subprocess
from dovetail._core.runtime.profiles.sessions import start_server as start_server
from dovetail._core.runtime.profiles.sessions import start_trace as start_trace
from dovetail._core.runtime.profiles.sessions import stop_server as stop_server
from dovetail._core.runtime.profiles.sessions import stop_trace as stop_trace
from dovetail._core.runtime.profiles.sessions import trace as trace

__all__ = [
    "LineTime",
    "Profile",
    "ProfileData",
    "ProfileEvent",
    "ProfileLine",
    "ProfileOptions",
    "ProfilePlane",
    "ProfileSession",
    "ProgramTime",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "export_profile_data",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

_publish(globals())
