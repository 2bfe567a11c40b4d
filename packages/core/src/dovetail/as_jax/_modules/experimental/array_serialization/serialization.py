"""The module `jax.experimental.array_serialization.serialization`."""

from dovetail._core.alias.array_storage import (
    GlobalAsyncCheckpointManager as GlobalAsyncCheckpointManager,
)
from dovetail._core.alias.array_storage import (
    GlobalAsyncCheckpointManagerBase as GlobalAsyncCheckpointManagerBase,
)
from dovetail._core.alias.array_storage import async_deserialize as async_deserialize
from dovetail._core.alias.array_storage import async_serialize as async_serialize
from dovetail._core.alias.array_storage import get_tensorstore_spec as get_tensorstore_spec
from dovetail._core.alias.array_storage import is_remote_storage as is_remote_storage
from dovetail._core.alias.array_storage import run_deserialization as run_deserialization
from dovetail._core.alias.array_storage import run_serialization as run_serialization
