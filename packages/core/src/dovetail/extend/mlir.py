"""Programs as MLIR modules: portable artifacts, and shapes made static.

from dovetail.extend import mlir

artifact = mlir.serialize_portable_artifact(module, "1.16.0")
"""

from dovetail._core.hlo.portable import (
    deserialize_portable_artifact as deserialize_portable_artifact,
)
from dovetail._core.hlo.portable import hlo_to_stablehlo as hlo_to_stablehlo
from dovetail._core.hlo.portable import lower_with_sharding_in_types as lower_with_sharding_in_types
from dovetail._core.hlo.portable import refine_polymorphic_shapes as refine_polymorphic_shapes
from dovetail._core.hlo.portable import serialize_portable_artifact as serialize_portable_artifact

__all__ = [
    "deserialize_portable_artifact",
    "hlo_to_stablehlo",
    "lower_with_sharding_in_types",
    "refine_polymorphic_shapes",
    "serialize_portable_artifact",
]
