"""Functions that say themselves how they are divided over devices."""

from dovetail._core.api.custom_partitioning import custom_partitioning as custom_partitioning
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ops.parallel.custom_partitioning import (
    custom_partitioning_p as custom_partitioning_p,
)
from dovetail._core.ops.parallel.sharding_rules import BATCHING as BATCHING
from dovetail._core.ops.parallel.sharding_rules import ArrayMapping as ArrayMapping
from dovetail._core.ops.parallel.sharding_rules import CompoundFactor as CompoundFactor
from dovetail._core.ops.parallel.sharding_rules import SdyShardingRule as SdyShardingRule

__all__ = [
    "BATCHING",
    "ArrayMapping",
    "CompoundFactor",
    "SdyShardingRule",
    "custom_partitioning",
    "custom_partitioning_p",
]

_publish(globals())
