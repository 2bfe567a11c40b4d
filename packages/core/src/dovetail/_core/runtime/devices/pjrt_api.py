"""The C structures of a PJRT library that are read before jaxlib loads it.

jaxlib trusts what a library claims about itself, and the process crashes if that is wrong. The
checks here reject such a library with a clear error instead.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dovetail._core.base.bindings import OLDEST_PJRT, pjrt_struct_size
from dovetail._core.base.records import record

__all__ = [
    "GPU_EXTENSION",
    "PROFILER_EXTENSION",
    "Api",
    "PjrtError",
    "capsule_address",
    "open_library",
    "register_handler",
]

_MAGIC: Final = (
    b"\x7fELF",
    b"MZ",  # Windows
    b"\xcf\xfa\xed\xfe",  # macOS, one processor
    b"\xca\xfe\xba\xbe",  # macOS, several
)
_ELF_64: Final = b"\x7fELF\x02\x01"
_LOADED: Final = 1  # ELF's type for a segment that is mapped into memory
_HEADER_SIZE: Final = 40  # up to and including the version, where the functions begin
_FFI_EXTENSION: Final = 5
GPU_EXTENSION: Final = 0
PROFILER_EXTENSION: Final = 1


class PjrtError(RuntimeError):
    """A PJRT plug-in cannot be used; the message says which, why, and what to do.

    Args:
        message: the text of the error.
    """


class _Header(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("version_size", ctypes.c_size_t),
        ("version_extension", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("error_destroy", ctypes.c_void_p),
        ("error_message", ctypes.c_void_p),
        ("error_code", ctypes.c_void_p),
        ("plugin_initialize", ctypes.c_void_p),
    )


class _Extension(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("next", ctypes.c_void_p),
    )


class _Error(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("message", ctypes.c_void_p),
        ("message_size", ctypes.c_size_t),
    )


class _FfiHandler(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("handler", ctypes.c_void_p),
        ("platform", ctypes.c_char_p),
        ("platform_size", ctypes.c_size_t),
        ("traits", ctypes.c_uint32),
    )


class _GpuHandler(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("api_version", ctypes.c_int),
        ("instantiate", ctypes.c_void_p),
        ("prepare", ctypes.c_void_p),
        ("initialize", ctypes.c_void_p),
        ("execute", ctypes.c_void_p),
        ("traits", ctypes.c_uint32),
    )


STAGES: Final = ("instantiate", "prepare", "initialize", "execute")
"""The stages of a call at which a handler can have code of its own, in order."""


@record
class Api:
    """The `PJRT_Api` of an open library, checked.

    Attributes:
        address: its address.
        version: the version of the C API that the library claims.
        library: the library's path, for messages.
    """

    address: int
    version: tuple[int, int]
    library: str

    def extensions(self) -> dict[int, int]:
        """Addresses of the library's extensions of the C API, by extension type."""
        addresses: dict[int, int] = {}
        address = _Header.from_address(self.address).extension_start
        while address and address not in addresses.values():
            extension = _Extension.from_address(address)
            addresses[extension.kind] = address
            address = extension.next
        return addresses

    def call(self, function: int, arguments: ctypes.Structure) -> None:
        """Call a function of the C API that returns an error or nothing.

        Raises:
            PjrtError: the function returned an error; the message is the library's.
        """
        answer = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(function)(
            ctypes.addressof(arguments)
        )
        if not answer:
            return
        header = _Header.from_address(self.address)
        error = _Error(ctypes.sizeof(_Error), None, answer, None, 0)
        tell = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        tell(header.error_message)(ctypes.addressof(error))
        text = ctypes.string_at(error.message, error.message_size).decode(errors="replace")
        error.struct_size = _Error.message.offset  # destroying takes only the first fields
        tell(header.error_destroy)(ctypes.addressof(error))
        raise PjrtError(text)


_open: Final[dict[str, Any]] = {}


def open_library(path: Path) -> Api:
    """Open a shared library and check that jaxlib can use its `PJRT_Api`.

    Args:
        path: the library.

    Raises:
        PjrtError: it does not exist, is not a shared library or not a PJRT plug-in, or has an
            unsupported version.
    """
    _check_file(path)
    try:
        library = _open[str(path)] = _open.get(str(path)) or ctypes.CDLL(str(path))
    except OSError as error:
        raise PjrtError(
            f"{path} cannot be opened: {error}; install the library that it misses, or the right "
            "version of the plug-in for this machine"
        ) from error
    try:
        get_api = library.GetPjrtApi
    except AttributeError:
        raise PjrtError(
            f"{path} is a shared library, but no PJRT plug-in: it has no function GetPjrtApi"
        ) from None
    get_api.restype = ctypes.c_void_p
    address = get_api()
    if not address:
        raise PjrtError(
            f"{path}: GetPjrtApi returned nothing, which is how a plug-in says that it cannot "
            "start; look at what it wrote to stderr"
        )
    return _checked(address, path)


def _check_file(path: Path) -> None:
    if not path.exists():
        raise PjrtError(f"there is no file {path}: give the path of a PJRT plug-in's library")
    if not path.is_file():
        raise PjrtError(f"{path} is no file: give the path of the PJRT library in it")
    try:
        with path.open("rb") as file:
            start = file.read(4096)  # the program header table is near the beginning
    except OSError as error:
        raise PjrtError(f"{path} cannot be read: {error.strerror}") from error
    if not start.startswith(_MAGIC):
        raise PjrtError(f"{path} is no shared library: give the path of a PJRT plug-in's library")
    size, needed = path.stat().st_size, _needed_size(start)
    if size < needed:
        raise PjrtError(
            f"{path} has {size} bytes and should have {needed} at least: it was not copied or "
            "downloaded to its end; install it again"
        )


def _needed_size(start: bytes) -> int:
    """The minimum size of a Linux library, from its mapped segments; 0 for other kinds of files.

    If the file is shorter, the process crashes on the first access to a missing page.
    """
    if len(start) < 64 or not start.startswith(_ELF_64):
        return 0
    (table,) = struct.unpack_from("<Q", start, 32)
    size, count = struct.unpack_from("<HH", start, 54)
    ends = [0]
    for position in range(table, table + size * count, size or 1):
        if position + 40 <= len(start):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", start, position)
            ends.append(offset + length if kind == _LOADED else 0)
    return max(ends)


def _checked(address: int, path: Path) -> Api:
    """The `PJRT_Api` at the address that a library returned, checked."""
    size = ctypes.c_size_t.from_address(address).value
    if size < _HEADER_SIZE:
        raise PjrtError(
            f"{path}: its PJRT_Api says that it is {size} bytes long, which leaves no room for a "
            "version; the plug-in is damaged or was built against another interface"
        )
    header = _Header.from_address(address)
    major, minor = int(header.major), int(header.minor)
    version, oldest = f"{major}.{minor}", ".".join(map(str, OLDEST_PJRT))
    if major != OLDEST_PJRT[0]:
        raise PjrtError(
            f"{path} has version {version} of the PJRT C API, and jaxlib speaks "
            f"{OLDEST_PJRT[0]}.x: install a version of the plug-in for this jaxlib"
        )
    if minor < OLDEST_PJRT[1]:
        raise PjrtError(
            f"{path} has version {version} of the PJRT C API, and the oldest that jaxlib can use "
            f"is {oldest}: update the plug-in"
        )
    if size < pjrt_struct_size(minor):
        raise PjrtError(
            f"{path} claims version {version} of the PJRT C API, whose PJRT_Api has at least "
            f"{pjrt_struct_size(minor)} bytes, and gives {size}: the plug-in was built wrongly; "
            "install another version of it"
        )
    if not (header.error_destroy and header.error_message and header.plugin_initialize):
        raise PjrtError(
            f"{path}: its PJRT_Api lacks functions that every plug-in has, such as "
            "PJRT_Plugin_Initialize; the plug-in was built wrongly: install another version of it"
        )
    return Api(address, (major, minor), str(path))


# -------------------------------------------------------------------------------- custom calls


_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype = ctypes.c_char_p
_capsule_name.argtypes = [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def capsule_address(capsule: object) -> int:
    """The address in a capsule, whatever the capsule's name.

    Raises:
        TypeError: it is not a capsule.
    """
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(f"the handler of a custom call is a capsule, got {capsule!r}")
    return int(_capsule_pointer(capsule, _capsule_name(capsule)))


def register_handler(
    api: Api, name: str, stages: Mapping[str, int], platform: str, traits: int
) -> None:
    """Register the handler of a custom call with a plug-in.

    Args:
        api: the plug-in's C API.
        name: the call's target.
        stages: addresses of handlers of XLA's typed FFI, by stage (`STAGES`).
        platform: the platform's name inside the plug-in.
        traits: XLA's trait bits for the handler.

    Raises:
        PjrtError: the plug-in accepts no handlers, or rejects this one.
    """
    extensions = api.extensions()
    if set(stages) == {"execute"} and _FFI_EXTENSION in extensions:
        function = ctypes.c_void_p.from_address(extensions[_FFI_EXTENSION] + 40).value
        arguments: ctypes.Structure = _FfiHandler(
            _FfiHandler.traits.offset + 4,
            name.encode(),
            len(name.encode()),
            stages["execute"],
            platform.encode(),
            len(platform.encode()),
            traits,
        )
    elif GPU_EXTENSION in extensions:
        function = ctypes.c_void_p.from_address(extensions[GPU_EXTENSION] + 24).value
        arguments = _GpuHandler(
            _GpuHandler.traits.offset + 4,
            name.encode(),
            len(name.encode()),
            1,  # the typed FFI
            *(stages.get(stage) for stage in STAGES),
            traits,
        )
    else:
        kind = "" if set(stages) == {"execute"} else f" with the stages {', '.join(stages)}"
        raise PjrtError(f"{api.library} takes no handlers of custom calls{kind}")
    if not function:
        raise PjrtError(f"{api.library} takes no handlers of custom calls")
    try:
        api.call(function, arguments)
    except PjrtError as error:
        raise PjrtError(f"{api.library} refuses the custom call {name!r}: {error}") from None
