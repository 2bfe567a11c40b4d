"""Arrays over devices in files of tensorstore: `jax.experimental.array_serialization`."""

from __future__ import annotations

import asyncio
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.runtime.arrays.array import Array
from dovetail._core.runtime.arrays.assembly import make_array_from_callback

Spec = dict[str, Any]

_REMOTE: Final = re.compile(r"(gs|s3)://([^/]*)/?(.*)")
_DRIVERS: Final = {"gs": "gcs", "s3": "s3"}


def _tensorstore() -> Any:
    """The library, which whoever stores arrays so has: `dovetail-core[storage]` brings it."""
    import tensorstore  # deferred: the extra "storage"

    return tensorstore


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str], *, ocdbt: bool = False, driver: str = "zarr"
) -> Spec:
    """Where tensorstore finds an array.

    Args:
        ckpt_path: an absolute path, or an address that begins with ``gs://`` or ``s3://``.
        ocdbt: whether the folder above the path is a database of arrays.
        driver: the format.

    Raises:
        ValueError: the path is relative.

    Example:
        >>> get_tensorstore_spec("/data/a")
        {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': '/data/a'}}
    """
    path = os.fspath(ckpt_path)
    remote = _REMOTE.fullmatch(path)
    if remote is None and not os.path.isabs(path):
        raise ValueError(f"an absolute path is needed, got {path!r}: use os.path.abspath")
    folder, name = os.path.split(path.rstrip("/"))
    kept = folder if ocdbt else path
    if remote is None:
        store = {"driver": "file", "path": kept}
    else:
        scheme, bucket, _ = remote.groups()
        inside = kept.removeprefix(f"{scheme}://{bucket}").strip("/")
        store = {"driver": _DRIVERS[scheme], "bucket": bucket, "path": inside}
    if ocdbt:
        return {"driver": driver, "kvstore": {"driver": "ocdbt", "base": store, "path": name}}
    return {"driver": driver, "kvstore": store}


def is_remote_storage(tspec: Spec | str) -> bool:
    """Whether an address, or a place of tensorstore's, is that of another machine."""
    if isinstance(tspec, str):
        return _REMOTE.match(tspec) is not None
    store = tspec.get("kvstore", {})
    return store.get("base", store).get("driver") in _DRIVERS.values()


async def async_serialize(arr_inp: Any, tensorstore_spec: Spec) -> None:
    """Write an array.

    Args:
        arr_inp: the array; each process writes the shards that are its own.
        tensorstore_spec: where.
    """
    store = await _tensorstore().open(
        tensorstore_spec,
        create=True,
        open=True,
        dtype=_tensorstore().dtype(arr_inp.dtype),
        shape=arr_inp.shape,
        chunk_layout=_tensorstore().ChunkLayout(chunk_shape=_shard_shape(arr_inp)),
    )
    if not isinstance(arr_inp, Array):
        await store.write(np.asarray(arr_inp))
        return
    own = [shard for shard in arr_inp.addressable_shards if shard.replica_id == 0]
    await asyncio.gather(*(store[s.index].write(np.asarray(s.data)) for s in own))


def _shard_shape(array: Any) -> Any:
    shape = array.sharding.shard_shape(array.shape) if isinstance(array, Array) else array.shape
    return [max(size, 1) for size in shape]


async def async_deserialize(
    in_type: Any,
    tensorstore_spec: Spec,
    global_shape: Sequence[int] | None = None,
    dtype: Any = None,
) -> Array:
    """Read an array.

    Args:
        in_type: the sharding of the result, or a `Format` or `ShapeDtypeStruct` that has one.
        tensorstore_spec: where it is.
        global_shape: the shape of the result, that of the stored array by default; a larger
            array has zeros behind it, a smaller one is its first part.
        dtype: the dtype of the result.
    """
    store = await _tensorstore().open(tensorstore_spec, open=True)
    wanted_shape = global_shape if global_shape is not None else getattr(in_type, "shape", None)
    shape = tuple(store.shape if wanted_shape is None else wanted_shape)
    wanted_dtype = dtype if dtype is not None else getattr(in_type, "dtype", None)
    kept = dtypes.canonicalize_dtype(
        store.dtype.numpy_dtype if wanted_dtype is None else wanted_dtype
    )

    def read(index: tuple[slice, ...]) -> Any:
        bounds = [part.indices(size)[:2] for part, size in zip(index, shape, strict=True)]
        result = np.zeros([stop - start for start, stop in bounds], kept)
        stored = tuple(
            slice(start, max(start, min(stop, size)))
            for (start, stop), size in zip(bounds, store.shape, strict=True)
        )
        values = store[stored].read().result()
        result[tuple(slice(size) for size in values.shape)] = values
        return result

    # Format and ShapeDtypeStruct have an attribute of this name, a sharding has none.
    return make_array_from_callback(shape, getattr(in_type, "sharding", in_type), read)


def run_serialization(arrays: Sequence[Any], tensorstore_specs: Sequence[Spec]) -> None:
    """Write arrays, each where its specification says."""

    async def run() -> None:
        pairs = zip(arrays, tensorstore_specs, strict=True)
        await asyncio.gather(*(async_serialize(array, spec) for array, spec in pairs))

    asyncio.run(run())


def run_deserialization(
    shardings: Sequence[Any],
    tensorstore_specs: Sequence[Spec],
    global_shapes: Sequence[Any] | None = None,
    dtypes: Sequence[Any] | None = None,
) -> list[Array]:
    """Read arrays, with their shardings, from where the specifications say."""
    count = len(tensorstore_specs)
    shapes = [None] * count if global_shapes is None else global_shapes
    kinds = [None] * count if dtypes is None else dtypes

    async def run() -> list[Array]:
        given = zip(shardings, tensorstore_specs, shapes, kinds, strict=True)
        return await asyncio.gather(*(async_deserialize(*each) for each in given))

    return asyncio.run(run())


class GlobalAsyncCheckpointManagerBase(ABC):
    """What writes arrays while the program goes on."""

    @abstractmethod
    def check_for_errors(self) -> None:
        """Raise what writing raised."""

    @abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until all is written."""

    @abstractmethod
    def serialize(
        self,
        arrays: Sequence[Any],
        tensorstore_specs: Sequence[Spec],
        *,
        on_commit_callback: Callable[[], None] | None = None,
    ) -> None:
        """Begin to write arrays."""

    @abstractmethod
    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[Spec],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
    ) -> list[Array]:
        """Read arrays."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """Writes arrays in a thread of its own.

    Args:
        timeout_secs: accepted for JAX's sake; has no effect.
    """

    def __init__(self, timeout_secs: int = 300) -> None:
        self._thread = ThreadPoolExecutor(1, "arrays to files")
        self._written: Future[None] | None = None

    def check_for_errors(self) -> None:
        """Raise what writing raised, if it has ended."""
        if self._written is not None and self._written.done():
            self.wait_until_finished()

    def wait_until_finished(self) -> None:
        """Wait until all is written; raise what that raised."""
        written, self._written = self._written, None
        if written is not None:
            written.result()

    def serialize(
        self,
        arrays: Sequence[Any],
        tensorstore_specs: Sequence[Spec],
        *,
        on_commit_callback: Callable[[], None] | None = None,
    ) -> None:
        """Begin to write arrays, when those before are written.

        Args:
            arrays: the arrays, which must not be donated until they are written.
            tensorstore_specs: where each goes.
            on_commit_callback: called when all are written.
        """
        self.wait_until_finished()

        def write() -> None:
            run_serialization(arrays, tensorstore_specs)
            if on_commit_callback is not None:
                on_commit_callback()

        self._written = self._thread.submit(write)

    def serialize_with_paths(
        self,
        arrays: Sequence[Any],
        paths: Sequence[str],
        *,
        on_commit_callback: Callable[[], None] | None = None,
    ) -> None:
        """The same, to files."""
        specs = [get_tensorstore_spec(path) for path in paths]
        self.serialize(arrays, specs, on_commit_callback=on_commit_callback)

    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[Spec],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Array]:
        """Read arrays, when what is being written is.

        Args:
            shardings: those of the results.
            tensorstore_specs: where the arrays are.
            global_shapes: the shapes of the results; by default, of the arrays.
            dtypes: the same for dtypes.
            concurrent_gb: accepted for JAX's sake; has no effect.
        """
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes)

    def deserialize_with_paths(
        self,
        shardings: Sequence[Any],
        paths: Sequence[str],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Array]:
        """The same, from files."""
        specs = [get_tensorstore_spec(path) for path in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes)
