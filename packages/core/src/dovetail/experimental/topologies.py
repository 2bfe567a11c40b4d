"""Ahead-of-time compilation for hardware that is not on this machine.

A machine without an accelerator can compile for one, to see the optimised program, its cost, and
whether it fits into memory.
"""

from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.runtime.devices.topologies import TopologyDescription as TopologyDescription
from dovetail._core.runtime.devices.topologies import get_attached_topology as get_attached_topology
from dovetail._core.runtime.devices.topologies import get_topology_desc as get_topology_desc
from dovetail._core.runtime.devices.topologies import make_mesh as make_mesh
from dovetail._core.runtime.reports.hardware import HARDWARE as HARDWARE
from dovetail._core.runtime.reports.hardware import Hardware as Hardware
from dovetail._core.runtime.reports.report import ArrayMemory as ArrayMemory
from dovetail._core.runtime.reports.report import Collective as Collective
from dovetail._core.runtime.reports.report import LineCost as LineCost
from dovetail._core.runtime.reports.report import Memory as Memory
from dovetail._core.runtime.reports.report import Report as Report
from dovetail._core.runtime.reports.report import Time as Time

__all__ = [
    "HARDWARE",
    "ArrayMemory",
    "Collective",
    "Hardware",
    "LineCost",
    "Memory",
    "Report",
    "Time",
    "TopologyDescription",
    "get_attached_topology",
    "get_topology_desc",
    "make_mesh",
]

_publish(globals())
