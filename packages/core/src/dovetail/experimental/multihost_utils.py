"""What processes that compute together exchange and wait for, after distributed.initialize."""

from dovetail._core.api.multihost import assert_equal as assert_equal
from dovetail._core.api.multihost import broadcast_one_to_all as broadcast_one_to_all
from dovetail._core.api.multihost import (
    global_array_to_host_local_array as global_array_to_host_local_array,
)
from dovetail._core.api.multihost import (
    host_local_array_to_global_array as host_local_array_to_global_array,
)
from dovetail._core.api.multihost import live_devices as live_devices
from dovetail._core.api.multihost import process_allgather as process_allgather
from dovetail._core.api.multihost import (
    reached_preemption_sync_point as reached_preemption_sync_point,
)
from dovetail._core.api.multihost import sync_global_devices as sync_global_devices
from dovetail._core.base.tracebacks import publish as _publish

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]

_publish(globals())
