"""Ahead-of-time compilation for hardware that is not on this machine.

A machine without an accelerator can compile for one, to see the optimised program, its cost, and
whether it fits into memory.
"""

from dovetail._core.runtime.devices.topologies import TopologyDescription as TopologyDescription
from dovetail._core.runtime.devices.topologies import get_attached_topology as get_attached_topology
from dovetail._core.runtime.devices.topologies import get_topology_desc as get_topology_desc
from dovetail._core.runtime.devices.topologies import make_mesh as make_mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]
