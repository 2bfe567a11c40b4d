"""Compiling for hardware that is not there.

A machine without an accelerator compiles for one: to see what a program becomes, what it costs, and
whether it fits into memory.
"""

from __future__ import annotations

from dovetail._core.runtime.devices.topologies import TopologyDescription as TopologyDescription
from dovetail._core.runtime.devices.topologies import get_topology_desc as get_topology_desc

__all__ = ["TopologyDescription", "get_topology_desc"]
