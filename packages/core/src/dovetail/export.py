"""Programs for other processes, machines and frameworks, for arrays of any size.

`export` makes an `Exported` of a function, `Exported.serialize` and `deserialize` write and read it
as bytes, which JAX reads and writes too, and `Exported.call` calls it. `symbolic_shape` makes
shapes whose sizes are known only when it is called. `report` lists what cannot be exported.
"""

from dovetail._core.api.export.artifacts import (
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
)
from dovetail._core.api.export.artifacts import (
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from dovetail._core.api.export.checks import DisabledSafetyCheck as DisabledSafetyCheck
from dovetail._core.api.export.exported import Exported as Exported
from dovetail._core.api.export.exported import default_export_platform as default_export_platform
from dovetail._core.api.export.exported import deserialize as deserialize
from dovetail._core.api.export.exported import export as export
from dovetail._core.api.export.exported import report as report
from dovetail._core.api.export.nodes import (
    register_namedtuple_serialization as register_namedtuple_serialization,
)
from dovetail._core.api.export.nodes import (
    register_pytree_node_serialization as register_pytree_node_serialization,
)
from dovetail._core.api.export.obstacles import Obstacle as Obstacle
from dovetail._core.api.export.obstacles import Report as Report
from dovetail._core.api.export.specifications import symbolic_args_specs as symbolic_args_specs
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ir.dimension_syntax import SymbolicScope as SymbolicScope
from dovetail._core.ir.dimension_syntax import symbolic_shape as symbolic_shape
from dovetail._core.ir.dimensions import is_symbolic_dim as is_symbolic_dim
from dovetail._core.ir.dimensions import symbolic_dim_bounds as symbolic_dim_bounds

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "Obstacle",
    "Report",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "report",
    "symbolic_args_specs",
    "symbolic_dim_bounds",
    "symbolic_shape",
]

_publish(globals())
