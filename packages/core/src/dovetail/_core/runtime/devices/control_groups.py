"""Limits of the control groups that this process is in, of both kinds of hierarchy (Linux)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["memory_left", "memory_limits", "processor_limits"]

_ROOT: Final = Path("/sys/fs/cgroup")
_UNLIMITED: Final = 2**60


def memory_limits() -> list[int]:
    """Bytes that the groups may take."""
    return [limit for _, limit in _memory()]


def memory_left() -> tuple[int, int] | None:
    """Bytes that are left to the group with the fewest, and its limit; None if there is no limit.

    Pages of files that nobody has read lately do not count: the system drops them when it needs
    the memory.
    """
    pairs = []
    for folder, limit in _memory():
        use = _numbers_in(folder / "memory.current") or _numbers_in(
            folder / "memory.usage_in_bytes"
        )
        pairs += [(limit - number + _droppable(folder), limit) for number in use]
    return min(pairs, default=None)


def _droppable(folder: Path) -> int:
    try:
        lines = (folder / "memory.stat").read_text(encoding="utf-8").splitlines()
        sizes = {line.split()[0]: int(line.split()[1]) for line in lines}
    except (OSError, LookupError, ValueError):
        return 0
    return sizes.get("total_inactive_file", sizes.get("inactive_file", 0))


def _memory() -> list[tuple[Path, int]]:
    """The folders of the groups that have a limit, and that."""
    files = [folder / "memory.max" for folder in _folders("")]
    files += [folder / "memory.limit_in_bytes" for folder in _folders("memory")]
    limits = [(file.parent, number) for file in files for number in _numbers_in(file)]
    return [(folder, number) for folder, number in limits if number < _UNLIMITED]


def processor_limits() -> list[float]:
    """Processors that the groups may keep busy: a quota of time in each period."""
    pairs = [_numbers_in(folder / "cpu.max") for folder in _folders("")]
    pairs += [
        [*_numbers_in(folder / "cpu.cfs_quota_us"), *_numbers_in(folder / "cpu.cfs_period_us")]
        for folder in _folders("cpu")
    ]
    return [pair[0] / pair[1] for pair in pairs if len(pair) == 2 and min(pair) > 0]


def _folders(controller: str) -> Iterator[Path]:
    """The folders of this process's group and of those around it.

    Args:
        controller: a controller, which has a hierarchy of its own in version 1; empty for the one
            hierarchy of version 2.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    root = _ROOT / controller
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controller not in controllers.split(","):
            continue
        folder = root / group.lstrip("/")
        # In a container the group's path may be that outside of it; the root is its own then.
        for place in (folder, *folder.parents):
            if place == root.parent:
                break
            yield place


def _numbers_in(file: Path) -> list[int]:
    """The numbers of a file; none if it is not there, or says "max"."""
    try:
        return [int(word) for word in file.read_text(encoding="utf-8").split()]
    except (OSError, ValueError):
        return []
