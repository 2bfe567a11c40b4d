"""The names of `dovetail.sharding`: the one list of them, for type checkers and at run time."""

from dovetail._core.api.axis_modes import auto_axes as auto_axes
from dovetail._core.api.axis_modes import explicit_axes as explicit_axes
from dovetail._core.api.mapping import Infer as Infer
from dovetail._core.api.meshes import get_mesh as get_mesh
from dovetail._core.api.meshes import make_single_device_sharding as make_single_device_sharding
from dovetail._core.api.meshes import set_mesh as set_mesh
from dovetail._core.api.meshes import use_abstract_mesh as use_abstract_mesh
from dovetail._core.ir.abstract_mesh import AbstractDevice as AbstractDevice
from dovetail._core.ir.abstract_mesh import AbstractMesh as AbstractMesh
from dovetail._core.ir.abstract_mesh import AxisType as AxisType
from dovetail._core.ir.manual_axis_type import ManualAxisType as ManualAxisType
from dovetail._core.ir.partition_spec import PartitionSpec as PartitionSpec
from dovetail._core.ir.partition_spec import UnreducedKind as UnreducedKind
from dovetail._core.ops.calls.sharding_constraint import reshard as reshard
from dovetail._core.runtime.devices.mesh import Mesh as Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding as NamedSharding
from dovetail._core.runtime.devices.sharding import Sharding as Sharding
from dovetail._core.runtime.devices.sharding import SingleDeviceSharding as SingleDeviceSharding
from dovetail._core.trace.current_mesh import get_abstract_mesh as get_abstract_mesh
from dovetail._core.trace.forbidden_collectives import no_collectives as no_collectives
