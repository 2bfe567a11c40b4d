"""Native kernels: XLA's custom calls to what `native/` holds, where it was built.

The libraries are in a folder of their own, `dovetail_cpu_kernels`, one for each instruction set. A
process loads the one that suits its CPU, once a program needs it.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import platform
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jaxlib import xla_client

SORT: Final = "dovetail_sort"

_TARGETS: Final = (SORT,)
_FOLDER: Final = "dovetail_cpu_kernels"
_OPTION: Final = "cpu_kernels"

#: What a CPU must have, by library, from the most demanding one. Other machines have one library.
_X86_LEVELS: Final = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}),
    ("x86-64", set[str]()),
)

_lock: Final = threading.RLock()
_registered = False


def library() -> Path | None:
    """The file of the kernels for this CPU; None if none were built."""
    return _library()


@functools.cache
def _library() -> Path | None:
    found = importlib.util.find_spec(_FOLDER)
    if found is None or found.submodule_search_locations is None:
        return None
    names = ["armv8-a"]
    if platform.machine() == "x86_64":
        features = _cpu_features()
        names = [name for i, (name, _) in enumerate(_X86_LEVELS) if _has(features, i)]
    files = (Path(folder, f"{n}.so") for n in names for folder in found.submodule_search_locations)
    return next((file for file in files if file.exists()), None)


def _has(features: set[str], level: int) -> bool:
    return all(needed <= features for _, needed in _X86_LEVELS[level:])


def _cpu_features() -> set[str]:
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("flags"):
                return set(line.partition(":")[2].split())
    return set()


def usable(context: Any) -> bool:
    """Whether a program may call kernels: they were built, and are not switched off."""
    return bool(context.option(_OPTION)) and library() is not None


def prepare() -> None:
    """Make the kernels callable from programs of this process.

    Raises:
        RuntimeError: they were not built here, but where the program was compiled.
    """
    global _registered
    with _lock:
        if _registered:
            return
        file = library()
        if file is None:
            raise RuntimeError(
                "the program calls native kernels of dovetail-cpu, which are not installed here: "
                "install a wheel that has them, or compile the program with the option "
                "cpu_kernels off"
            )
        loaded = ctypes.CDLL(str(file))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        for target in _TARGETS:
            address = ctypes.cast(getattr(loaded, target), ctypes.c_void_p)
            capsule = new(address, b"xla._CUSTOM_CALL_TARGET", None)
            xla_client.register_custom_call_target(target, capsule, platform="cpu", api_version=1)
        _registered = True


def call(
    context: Any, target: str, operands: Sequence[Any], outs: Sequence[Any], **attributes: int
) -> list[Any]:
    """Call a kernel with row-major arrays.

    Args:
        context: the builder.
        target: one of the names above.
        operands: values.
        outs: avals of the results.
        attributes: static arguments, 64-bit integers.
    """
    context.prepare(prepare)
    return context.custom_call(  # type: ignore[no-any-return]
        target,
        operands,
        outs,
        backend_config=attributes,
        operand_layouts=[tuple(range(value.type.rank))[::-1] for value in operands],
        result_layouts=[tuple(range(out.ndim))[::-1] for out in outs],
    )
