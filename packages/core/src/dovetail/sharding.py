"""Where the data of arrays lives: devices, meshes of them, and how arrays are divided over them."""

from dovetail._core.ir.abstract_mesh import AbstractDevice as AbstractDevice
from dovetail._core.ir.abstract_mesh import AbstractMesh as AbstractMesh
from dovetail._core.ir.abstract_mesh import AxisType as AxisType
from dovetail._core.ir.partition_spec import PartitionSpec as PartitionSpec
from dovetail._core.ir.partition_spec import UnreducedKind as UnreducedKind
from dovetail._core.runtime.devices.mesh import Mesh as Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding as NamedSharding
from dovetail._core.runtime.devices.sharding import Sharding as Sharding
from dovetail._core.runtime.devices.sharding import SingleDeviceSharding as SingleDeviceSharding

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "UnreducedKind",
]
