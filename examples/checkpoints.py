"""Checkpoints of arrays over the devices of several processes, in a folder that all of them see.

    step-00000120/process-3.json         what process 3 has written, with checksums
                  3-0.npy, 3-1.npy ...   its parts of the arrays

Each part is written once, by one of the processes that hold it. A checkpoint gets its name when all
have written, so that what is unfinished is never read. It is good if its parts make up whole arrays
and have the checksums that they were written with. It can be restored on other devices, divided in
another way.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.sharding import Mesh, NamedSharding
from dovetail.sharding import PartitionSpec as P

Place = tuple[tuple[int, int], ...]
"""Where a part is in its array: start and end for each dimension."""


class BadCheckpointError(Exception):
    """A checkpoint is not what was written."""


def largest(mesh: Mesh, number: int) -> int:
    """The largest of the numbers that the processes of a mesh have; waits for all of them."""
    own = np.full(mesh.local_mesh.size, number, np.int32)
    sharding = NamedSharding(mesh, P(mesh.axis_names))
    return int(dt.make_array_from_process_local_data(sharding, own).max())


def steps(folder: Path) -> list[int]:
    """The numbers of the checkpoints in a folder, the newest first."""
    return sorted((int(path.name[5:]) for path in folder.glob("step-*")), reverse=True)


def save(folder: Path, step: int, state: Any, mesh: Mesh, keep: int = 3) -> None:
    """Write a checkpoint; all processes of the mesh call it.

    Args:
        folder: where the checkpoints are.
        step: its number.
        state: a tree of arrays over the mesh.
        mesh: the devices.
        keep: how many checkpoints there are to be at most.
    """
    number = dt.process_index()
    # Those who were killed at this very step have left a folder behind.
    unfinished = folder / f"unfinished-{largest(mesh, secrets.randbits(31))}"
    unfinished.mkdir(parents=True, exist_ok=True)
    parts = []
    for path, array in dt.tree.leaves_with_path(state):
        for shard in array.addressable_shards:
            if shard.replica_id == 0:
                file, content = f"{number}-{len(parts)}.npy", io.BytesIO()
                np.save(content, np.asarray(shard.data))
                write(unfinished / file, content.getvalue())
                about = {
                    "array": dt.tree_util.keystr(path),
                    "shape": array.shape,
                    "place": place_of(shard.index, array.shape),
                    "sha256": hashlib.sha256(content.getvalue()).hexdigest(),
                }
                parts.append({"file": file, **about})
    write(unfinished / f"process-{number}.json", json.dumps(parts).encode())
    largest(mesh, 0)  # all have written
    if number == min(device.process_index for device in mesh.devices.flat):
        name = folder / f"step-{step:08}"
        shutil.rmtree(name, ignore_errors=True)  # a bad one, or it would not be written again
        unfinished.rename(name)
        sync(folder)
        for old in steps(folder)[keep:]:
            shutil.rmtree(folder / f"step-{old:08}")
        for left in folder.glob("unfinished-*"):
            shutil.rmtree(left)
    largest(mesh, 0)  # it has its name


def restore(folder: Path, like: Any, mesh: Mesh) -> tuple[int, Any] | None:
    """Read the newest good checkpoint; all processes of the mesh call it.

    Args:
        folder: where the checkpoints are.
        like: a tree of `dovetail.ShapeDtypeStruct` with the shardings that the arrays are to have.
        mesh: the devices.

    Returns:
        Its number and the tree of arrays; None if there is none.
    """
    below = np.iinfo(np.int32).max
    while True:
        step = largest(mesh, max((s for s in steps(folder) if s < below), default=-1))
        if step < 0:
            return None
        parts: dict[str, list[tuple[Place, np.ndarray]]] = {}
        try:
            parts = read(folder / f"step-{step:08}", like)
        except BadCheckpointError as error:
            print(f"checkpoint {step} is bad: {error}; the one before it is taken", flush=True)
        if largest(mesh, int(not parts)) == 0:
            break
        below = step

    def array(path: Any, struct: Any) -> Any:
        found = parts[dt.tree_util.keystr(path)]

        def part(index: tuple[slice, ...]) -> np.ndarray:
            return joined(found, place_of(index, struct.shape), struct.dtype)

        return dt.make_array_from_callback(struct.shape, struct.sharding, part)

    return step, dt.tree.map_with_path(array, like)


def read(checkpoint: Path, like: Any) -> dict[str, list[tuple[Place, np.ndarray]]]:
    """The parts of a checkpoint, by the arrays that they belong to.

    Raises:
        BadCheckpointError: it is not what was written, or has other arrays than the tree.
    """
    parts: dict[str, list[tuple[Place, np.ndarray]]] = {}
    shapes = {dt.tree_util.keystr(path): s.shape for path, s in dt.tree.leaves_with_path(like)}
    try:
        for index in checkpoint.glob("process-*.json"):
            for about in json.loads(index.read_bytes()):
                content = (checkpoint / about["file"]).read_bytes()
                if hashlib.sha256(content).hexdigest() != about["sha256"]:
                    raise BadCheckpointError(f"{about['file']} has another checksum")
                if tuple(about["shape"]) != shapes.get(about["array"]):
                    raise BadCheckpointError(f"it has another array{about['array']}")
                place = tuple((start, end) for start, end in about["place"])
                parts.setdefault(about["array"], []).append((place, np.load(io.BytesIO(content))))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BadCheckpointError(f"{type(error).__name__}: {error}") from error
    for name, shape in shapes.items():
        if sum(data.size for _, data in parts.get(name, ())) != np.prod(shape, dtype=int):
            raise BadCheckpointError(f"parts of array{name} are missing")
    return parts


def place_of(index: tuple[slice, ...], shape: tuple[int, ...]) -> Place:
    return tuple(s.indices(size)[:2] for s, size in zip(index, shape, strict=True))


def joined(parts: list[tuple[Place, np.ndarray]], place: Place, dtype: Any) -> np.ndarray:
    """What parts of an array hold of one place in it."""
    whole = np.empty([end - start for start, end in place], dtype)
    for there, data in parts:
        both = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(place, there, strict=True)]
        if all(start < end for start, end in both):
            to = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(both, place, strict=True))
            of = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(both, there, strict=True))
            whole[to] = data[of]
    return whole


def write(path: Path, content: bytes) -> None:
    """Write a file, and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
