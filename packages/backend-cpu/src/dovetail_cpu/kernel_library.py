"""Where the native kernels are: one library for each instruction set, in a folder of their own."""

from __future__ import annotations

import functools
import importlib.util
import os
from pathlib import Path
from typing import Final

_FOLDER: Final = "dovetail_cpu_kernels"

#: What a CPU must have, by library, from the most demanding one. Other machines have one library.
X86_LEVELS: Final = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}),
)


@functools.cache
def library() -> Path | None:
    """The file of the kernels for this CPU; None if none were built."""
    found = importlib.util.find_spec(_FOLDER)
    if found is None or found.submodule_search_locations is None:
        return None
    folders = found.submodule_search_locations
    files = (Path(folder, f"{name}.so") for name in usable_libraries() for folder in folders)
    return next((file for file in files if file.exists()), None)


def usable_libraries() -> list[str]:
    """The names of the libraries that this processor can run, the best one first."""
    if os.uname().machine != "x86_64":
        return ["armv8-a"]
    features = cpu_features()
    return [name for i, (name, _) in enumerate(X86_LEVELS) if _has(features, i)]


def has_masks() -> bool:
    """Whether the processor stores parts of vectors as quickly as whole ones."""
    return os.uname().machine == "x86_64" and _has(cpu_features(), 0)


def has_long_vectors() -> bool:
    """Whether the kernels are those for AVX-512."""
    file = library()
    return file is not None and file.stem == X86_LEVELS[0][0]


def _has(features: frozenset[str], level: int) -> bool:
    return all(needed <= features for _, needed in X86_LEVELS[level:])


@functools.cache
def cpu_features() -> frozenset[str]:
    """The instruction sets of this processor, by the names of the system."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("flags"):
                return frozenset(line.partition(":")[2].split())
    return frozenset()
