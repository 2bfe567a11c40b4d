"""Which devices talk to each other in a collective operation, and along which axes of a mesh."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.runtime.reports.hlo_text import Instruction

__all__ = ["across_slices", "axes_of_groups", "groups_of", "in_all_slices", "pairs_of"]

Groups = tuple[tuple[int, ...], ...]

_IOTA: Final = re.compile(r"\[([\d,]*)\]<=\[([\d,]*)\](?:T\(([\d,]*)\))?")
_MESH: Final = re.compile(r"@?mesh\[([^\]]*)\]([^{]*)\{([^}]*)\}")
_AXIS: Final = re.compile(r"'((?:[^'\\]|\\.)*)'(?::\((\d+)\)(\d+))?(?:=(\d+))?")


def groups_of(instruction: Instruction, count: int) -> Groups | None:
    """The groups of devices of a collective operation, as places in the program's device list.

    Args:
        instruction: the operation.
        count: the number of devices; all of them are the group if the operation names none.

    Returns:
        The groups; None if they are written in a form that is not known.
    """
    everyone = (tuple(range(count)),)
    bare = instruction.bare
    start = bare.find("replica_groups=")
    if start < 0:
        return everyone
    text = bare[start + len("replica_groups=") :]
    if text.startswith("{}"):
        return everyone
    if text.startswith("{{"):
        listed = text[1 : text.index("}}") + 1]
        groups = tuple(
            tuple(map(int, re.findall(r"\d+", group)))
            for group in re.findall(r"\{[^{}]*\}", listed)
        )
        return groups if all(groups) else None
    iota = _IOTA.match(text)
    if iota:
        return _rows(_from_iota(iota))
    return _along_mesh(text)


def _numbers(text: str | None) -> list[int]:
    return [int(number) for number in (text or "").split(",") if number]


def _rows(array: np.ndarray[Any, Any]) -> Groups:
    return tuple(tuple(int(number) for number in row) for row in array)


def _from_iota(match: re.Match[str]) -> np.ndarray[Any, Any]:
    shape, dims, order = (_numbers(text) for text in match.groups())
    numbers = np.arange(math.prod(dims)).reshape(dims)
    return (numbers.transpose(order) if order else numbers).reshape(shape)


def _along_mesh(text: str) -> Groups | None:
    """Groups that are written as axes of a mesh: ``mesh['a'=4,'b'=2] {'b'}``."""
    match = _MESH.match(text)
    if match is None:
        return None
    sizes = {name: int(size) for name, _, _, size in _AXIS.findall(match.group(1)) if size}
    devices = np.arange(math.prod(sizes.values()))
    between = match.group(2)
    if "device_ids" in between:
        iota = _IOTA.search(between)
        listed = re.search(r"\(([\d,\s]+)\)", between)
        if iota:
            devices = _from_iota(iota).reshape(-1)
        elif listed:
            devices = np.array(_numbers(re.sub(r"\s", "", listed.group(1))))
        else:
            return None
    # An axis is cut where a part of it, ``'a':(2)4``, begins and ends.
    wanted: dict[str, list[tuple[int, int]]] = {}
    for name, before, size, _ in _AXIS.findall(match.group(3)):
        if name not in sizes:
            return None
        part = (int(before), int(size)) if before else (1, sizes[name])
        wanted.setdefault(name, []).append(part)
    dims: list[int] = []
    chosen: list[int] = []
    for name, whole in sizes.items():
        at = 1
        for before, size in sorted(wanted.get(name, [])):
            if before % at or whole % (before * size):
                return None
            dims.append(before // at)
            chosen.append(len(dims))
            dims.append(size)
            at = before * size
        dims.append(whole // at)
    if math.prod(dims) != devices.size:
        return None
    rest = [number for number in range(len(dims)) if number not in chosen]
    grid = devices.reshape(dims).transpose(rest + chosen)
    return _rows(grid.reshape(-1, math.prod(dims[number] for number in chosen)))


def pairs_of(instruction: Instruction) -> Groups:
    """The pairs of sender and receiver of a permutation."""
    found = re.search(r"source_target_pairs=\{((?:\{[^{}]*\},?)*)\}", instruction.bare)
    listed = re.findall(r"\{(\d+),\s*(\d+)\}", found.group(1)) if found else []
    return tuple((int(source), int(target)) for source, target in listed)


def _by_slice(devices: Sequence[Any]) -> list[list[int]]:
    """For each slice, the places of its devices."""
    slices: dict[Any, list[int]] = {}
    for place, device in enumerate(devices):
        slices.setdefault(getattr(device, "slice_index", None), []).append(place)
    return list(slices.values())


def in_all_slices(groups: Groups, partitions: int, devices: Sequence[Any]) -> Groups:
    """Groups that are written for one slice of TPUs, for the devices of all slices.

    Args:
        groups: the groups.
        partitions: the number of devices that the program counts.
        devices: the devices of the program.
    """
    slices = _by_slice(devices)
    if partitions == len(devices) or any(len(places) != partitions for places in slices):
        return groups
    return tuple(tuple(places[n] for n in group) for places in slices for group in groups)


def across_slices(devices: Sequence[Any]) -> Groups | None:
    """The groups of devices that have the same place in all slices; None if there are none."""
    slices = _by_slice(devices)
    if len({len(places) for places in slices}) != 1:
        return None
    return tuple(zip(*slices, strict=True))


def axes_of_groups(
    groups: Groups, axes: Sequence[tuple[Hashable, int]]
) -> tuple[tuple[Hashable, ...], bool]:
    """The axes of a mesh that groups of its devices run over.

    Args:
        groups: the groups, as places in the list of the mesh's devices.
        axes: names and sizes of the axes.

    Returns:
        The names of the axes along which the devices of a group differ; and whether the groups run
        over all of these axes.
    """
    sizes = [size for _, size in axes]
    differ = [False] * len(sizes)
    for group in groups:
        places = np.array(np.unravel_index(group, sizes)).reshape(len(sizes), -1)
        for axis, along in enumerate(places):
            differ[axis] |= bool((along != along[0]).any())
    length = math.prod(size for size, own in zip(sizes, differ, strict=True) if own)
    names = tuple(name for (name, _), own in zip(axes, differ, strict=True) if own)
    return names, all(len(group) == length for group in groups)
