"""The native functions of small arrays, which eager calls use in place of programs."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from dovetail.extend import HostFunction
from dovetail_cpu import kernel_library


class _Entry(ctypes.Structure):
    """An entry of the table in `native/host_functions.cc`."""

    _fields_ = (
        ("primitive", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("most", ctypes.c_ssize_t),
    )


def host_functions() -> Mapping[tuple[str, str], HostFunction]:
    """The functions by primitive and dtype; none if no kernels were built."""
    file = kernel_library.library()
    if file is None:
        return {}
    table = ctypes.CDLL(str(file)).dovetail_host_functions
    table.restype = ctypes.POINTER(_Entry)
    count = ctypes.c_size_t()
    entries = table(ctypes.byref(count))[: count.value]
    return {
        (entry.primitive.decode(), entry.dtype.decode()): HostFunction(entry.function, entry.most)
        for entry in entries
    }
