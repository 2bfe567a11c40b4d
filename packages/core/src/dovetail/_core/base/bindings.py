"""The only module that deals with jaxlib's versions.

Everything else imports jaxlib's runtime objects from here, so that differences between versions
are handled in one place and a reader sees at a glance which private names the framework relies on.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

# XLA reads this once, when its library is loaded; without it every multi-device client logs to
# stderr.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import jaxlib.version
from jaxlib import _hlo as _hlo
from jaxlib import _jax as _jax
from jaxlib.weakref_lru_cache import weakref_lru_cache as weakref_lru_cache

__all__ = [
    "JAXLIB_VERSION",
    "NEWEST_TESTED",
    "OLDEST_PJRT",
    "OLDEST_SUPPORTED",
    "Config",
    "DLDataType",
    "DLTensor",
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "JaxRuntimeError",
    "PyTreeDef",
    "PyTreeRegistry",
    "SequenceKey",
    "Traceback",
    "_hlo",
    "_jax",
    "capsule_pointer",
    "check_version",
    "copy_to_host_async",
    "export_profile",
    "get_traceback",
    "guards",
    "host_copy",
    "immortalize",
    "is_unreadable",
    "jax_owns_jit_state",
    "load_pjrt_plugin",
    "new_capsule",
    "new_pytree_registry",
    "parse_version",
    "pjrt_struct_size",
    "reads_parts_alone",
    "result_handler",
    "trace_context",
    "unset",
    "weakref_lru_cache",
    "xla_client",
]

OLDEST_SUPPORTED = (0, 10, 2)
NEWEST_TESTED = (0, 12)


def parse_version(text: str) -> tuple[int, int, int]:
    """The first three numbers of a version: ``"0.12.0.1"`` gives ``(0, 12, 0)``."""
    numbers: list[int] = []
    for part in text.split(".")[:3]:
        digits = ""
        for character in part:
            if not character.isdigit():
                break
            digits += character
        numbers.append(int(digits or 0))
    numbers += [0] * (3 - len(numbers))
    return numbers[0], numbers[1], numbers[2]


def check_version(version: tuple[int, int, int]) -> None:
    """Reject a jaxlib that is too old, and warn about one that is newer than tested.

    Raises:
        ImportError: ``version`` is older than `OLDEST_SUPPORTED`.
    """
    shown = ".".join(map(str, version))
    oldest = ".".join(map(str, OLDEST_SUPPORTED))
    newest = ".".join(map(str, NEWEST_TESTED))
    if version < OLDEST_SUPPORTED:
        raise ImportError(
            f"dovetail needs jaxlib {oldest} or newer, and found jaxlib {shown}. "
            f"Install a supported one with: pip install 'jaxlib>={oldest}'"
        )
    if version[:2] > NEWEST_TESTED:
        warnings.warn(
            f"jaxlib {shown} is newer than {newest}.x, the newest that this version of dovetail "
            "was tested with; jaxlib's interfaces change between versions. If something fails, "
            f"install a newer dovetail or 'jaxlib<{NEWEST_TESTED[0]}.{NEWEST_TESTED[1] + 1}'.",
            RuntimeWarning,
            stacklevel=2,
        )


JAXLIB_VERSION: tuple[int, int, int] = parse_version(jaxlib.version.__version__)
"""The version of the jaxlib that was imported, e.g. ``(0, 10, 2)``."""

check_version(JAXLIB_VERSION)


def __getattr__(name: str) -> Any:
    """jaxlib's `xla_client` when it is first used: it loads `logging`, and takes 4 ms."""
    if name != "xla_client":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("jaxlib.xla_client")


T = TypeVar("T")

if TYPE_CHECKING:
    from jaxlib import xla_client as xla_client

    class Config(Generic[T]):
        """A value with a global and a thread-local level, held in C++.

        With ``include_in_jit_key=True`` it is part of the key of every call of a C++ jit function;
        with ``include_in_trace_context=True`` it is part of `trace_context`. Objects are never
        unregistered, so they must only be created at import.
        """

        def __init__(
            self,
            name: str,
            value: T,
            *,
            include_in_jit_key: bool = False,
            include_in_trace_context: bool = False,
        ) -> None: ...
        @property
        def value(self) -> T: ...
        @property
        def name(self) -> str: ...
        def get_local(self) -> Any: ...
        def get_global(self) -> T: ...
        def set_local(self, value: Any) -> None: ...
        def set_global(self, value: T) -> None: ...

    class PyTreeDef:
        """The structure of a tree: its node types and their static data, without the leaves."""

        num_leaves: int
        num_nodes: int

        def unflatten(self, leaves: Any, /) -> Any: ...
        def flatten_up_to(self, tree: Any) -> list[Any]: ...
        def children(self) -> list[PyTreeDef]: ...
        def node_data(self) -> tuple[type, Any] | None: ...
        def compose(self, inner: PyTreeDef, /) -> PyTreeDef: ...
        def walk(
            self,
            f_node: Callable[[Any, Any], Any],
            f_leaf: Callable[[Any], Any] | None,
            leaves: Any,
            /,
        ) -> Any: ...
        def from_iterable_tree(self, tree: Any, /) -> Any: ...
        @staticmethod
        def from_node_data_and_children(
            registry: PyTreeRegistry, node_data: tuple[type, Any] | None, children: Any
        ) -> PyTreeDef: ...

    class PyTreeRegistry:
        """The node types, and how they are flattened and unflattened."""

        __name__: str

        def __init__(
            self,
            *,
            enable_none: bool,
            enable_tuple: bool,
            enable_namedtuple: bool,
            enable_list: bool,
            enable_dict: bool,
        ) -> None: ...
        def flatten(
            self, tree: Any, leaf_predicate: Callable[[Any], bool] | None = None
        ) -> tuple[list[Any], PyTreeDef]: ...
        def flatten_with_path(
            self, tree: Any, leaf_predicate: Callable[[Any, Any], bool] | None = None
        ) -> tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]: ...
        def flatten_one_level(self, tree: Any) -> tuple[Any, Any] | None: ...
        def flatten_one_level_with_keys(self, tree: Any) -> tuple[Any, Any] | None: ...
        def is_node(self, kind: type) -> bool: ...
        def register_node(
            self,
            kind: type,
            to_iterable: Callable[[Any], Any],
            from_iterable: Callable[[Any, Any], Any],
            to_iterable_with_keys: Callable[[Any], Any] | None = None,
        ) -> None: ...
        def register_dataclass_node(
            self, kind: type, data_fields: Sequence[str], meta_fields: Sequence[str], /
        ) -> None: ...

    class SequenceKey:
        """The position of a child in a tuple or list."""

        idx: int

        def __init__(self, idx: int) -> None: ...

    class DictKey:
        """The key of a child in a dictionary."""

        key: Any

        def __init__(self, key: Any) -> None: ...

    class GetAttrKey:
        """The attribute in which an object holds a child."""

        name: str

        def __init__(self, name: str) -> None: ...

    class FlattenedIndexKey:
        """The position of a child in a node whose type provides no keys."""

        key: int

        def __init__(self, key: int) -> None: ...

    class Traceback:
        """A captured stack: code objects and offsets, resolved to lines on demand."""

        @staticmethod
        def get_traceback() -> Traceback: ...
        def raw_frames(self) -> tuple[list[Any], list[int]]: ...

    class JaxRuntimeError(RuntimeError):
        """An error reported by XLA or a device; `error_code_string` names its kind."""

        error_code_string: str
        error_message: str

else:
    Config = _jax.config.Config
    PyTreeDef = _jax.pytree.PyTreeDef
    PyTreeRegistry = _jax.pytree.PyTreeRegistry
    SequenceKey = _jax.pytree.SequenceKey
    DictKey = _jax.pytree.DictKey
    GetAttrKey = _jax.pytree.GetAttrKey
    FlattenedIndexKey = _jax.pytree.FlattenedIndexKey
    Traceback = _jax.Traceback
    JaxRuntimeError = _jax.JaxRuntimeError

unset: Any = _jax.config.unset
"""What `Config.get_local` gives, and `Config.set_local` takes, for a thread without a value."""

get_traceback: Callable[[], Traceback] = Traceback.get_traceback
"""Capture the stack of the caller: well under a microsecond, no line is looked up."""

guards: Any = _jax.guard_lib
"""What C++ refuses or logs: transfers, arrays that the garbage collector frees, threads."""

trace_context: Callable[[], tuple[Any, ...]] = _jax.config.trace_context
"""The values of all `Config` objects made with ``include_in_trace_context``, in this process."""


def jax_owns_jit_state() -> bool:
    """Whether jax was imported and has set its own objects in the slots of the C++ jit."""
    return "jax._src.config" in sys.modules


def new_pytree_registry(name: str, module: str) -> PyTreeRegistry:
    """A new registry with None, tuples, named tuples, lists and dictionaries.

    Args:
        name: the attribute of ``module`` that holds the registry; pickled tree definitions find it
            by these two names.
        module: the dotted name of that module.
    """
    registry = PyTreeRegistry(
        enable_none=True,
        enable_tuple=True,
        enable_namedtuple=True,
        enable_list=True,
        enable_dict=True,
    )
    registry.__name__ = name
    registry.__module__ = module
    return registry


def result_handler(aval: Any, sharding: Any, committed: bool = False) -> Any:
    """A C++ function that sets the abstract value and sharding of a result's buffers.

    Args:
        aval: anything with ``shape``, ``dtype`` and ``weak_type``.
        sharding: a sharding object that C++ accepts.
        committed: whether results are committed to their devices.
    """
    if JAXLIB_VERSION < (0, 11, 0):
        # Otherwise older versions call a Python method that only jax defines.
        return _jax.array_result_handler(aval, sharding, committed, True)
    return _jax.array_result_handler(aval, sharding, committed)


class _DLDevice(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int), ("device_id", ctypes.c_int))


class DLDataType(ctypes.Structure):
    """The C structure of DLPack that describes a dtype."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(ctypes.Structure):
    """The C structure of DLPack that describes an array."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = ctypes.c_void_p
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


_add_reference = ctypes.pythonapi.Py_IncRef
_add_reference.restype = None
_add_reference.argtypes = [ctypes.py_object]


def immortalize(value: object) -> None:
    """Keep an object even when the interpreter is finalized."""
    _add_reference(value)


def _view_through_dlpack(impl: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A read-only view of a single-device array whose dtype the buffer protocol lacks."""
    impl.block_until_ready()
    capsule = _jax.buffer_to_dlpack_managed_tensor(impl)
    tensor = DLTensor.from_address(capsule_pointer(capsule, b"dltensor"))
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size == 0:
        return _read_only(np.empty(shape, dtype))
    memory = (ctypes.c_char * size).from_address(tensor.data + tensor.byte_offset)
    # The view keeps the buffer alive through its base.
    memory._owner = (capsule, impl)  # type: ignore[attr-defined]
    view = np.frombuffer(memoryview(memory), dtype=dtype).reshape(shape)
    return _read_only(view)


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


_NARROWER_THAN_A_BYTE = frozenset(
    {"int4", "uint4", "int2", "uint2", "int1", "uint1", "float4_e2m1fn"}
)


def _host_copy_old(impl: Any) -> tuple[np.ndarray[Any, Any], bool]:
    """`host_copy` for jaxlib before 0.11, whose own call for it imports jax."""
    aval = impl.aval
    dtype = aval.dtype
    if len(impl._sharding._internal_device_list) > 1:
        return _replicated_here(impl), True
    if dtype.kind != "V" and dtype.isbuiltin == 1:
        value = np.asarray(impl)
        if value.dtype == dtype:
            return value, False
        # An array of objects: the memory is not the host's.
    elif impl.platform() == "cpu":
        if dtype.name in _NARROWER_THAN_A_BYTE:
            raise TypeError(
                f"jaxlib before 0.11 imports jax to read {dtype.name}; convert it first"
            )
        return _view_through_dlpack(impl, aval.shape, dtype), False
    return impl._single_device_array_to_np_array_did_copy()  # type: ignore[no-any-return]


def _replicated_here(impl: Any) -> np.ndarray[Any, Any]:
    """The value of an array over devices of several processes, if each holds all of it."""
    if not impl._sharding._to_xla_hlo_sharding(len(impl.aval.shape)).is_replicated():
        raise RuntimeError(
            "the array is spread over devices of other processes, so its value cannot be read "
            "in this one; read addressable_shards, or gather it first"
        )
    value, _ = impl._fully_replicated_shard()._single_device_array_to_np_array_did_copy()
    return _read_only(np.asarray(value))


def _host_copy_new(impl: Any) -> tuple[np.ndarray[Any, Any], bool]:
    return impl._to_np_array_did_copy()  # type: ignore[no-any-return]


host_copy: Callable[[Any], tuple[np.ndarray[Any, Any], bool]] = (
    _host_copy_new if hasattr(_jax.ArrayImpl, "_to_np_array_did_copy") else _host_copy_old
)
"""The value of a jaxlib array as a NumPy array, of every dtype; waits until it is computed.

The second result says whether it was copied; otherwise it is a read-only view of the buffer's
memory. No import of jax is caused, except on jaxlib before 0.11 for arrays over several processes,
and on devices with memory of their own. What `is_unreadable` names is refused.
"""

reads_parts_alone: bool = host_copy is _host_copy_old
"""Whether `host_copy` takes arrays on one device alone, unless they are of several processes."""


def is_unreadable(dtype: Any) -> bool:
    """Whether `host_copy` cannot read a dtype in this jaxlib, so that it must be converted."""
    # The type's name: NumPy imports a module to tell that of a dtype, which is late at exit.
    return host_copy is _host_copy_old and dtype.type.__name__ in _NARROWER_THAN_A_BYTE


def copy_to_host_async(impl: Any) -> None:
    """Start copying a jaxlib array to the host, so that a later `host_copy` is faster."""
    if not isinstance(impl, _jax.ArrayImpl):
        return  # a buffer of a backend written in Python, which has no asynchronous copy
    if hasattr(_jax, "batched_copy_to_host_async"):
        _jax.batched_copy_to_host_async([impl])
    elif impl.platform() != "cpu":  # there is nothing to copy on the CPU, by jaxlib's name
        impl._copy_single_device_array_to_host_async()


OLDEST_PJRT: tuple[int, int] = (0, 29)
"""The oldest version of the PJRT C API that every supported jaxlib takes; of the first number
every other one is refused."""

# Size of `PJRT_Api` in bytes from each minor version on. Only steps that a plug-in could miss are
# listed; in between, the size grows with each added function.
_PJRT_STRUCT_SIZES = {29: 776, 40: 816, 57: 848, 62: 920, 81: 984, 105: 1128, 116: 1144}


def pjrt_struct_size(minor: int) -> int:
    """The size in bytes of `PJRT_Api` that jaxlib assumes for a plug-in's version.

    jaxlib calls every function that the version should have, without checking the size that the
    plug-in states, and may so read past the end of the structure.

    Args:
        minor: the minor version that the plug-in claims. A version newer than jaxlib's has at least
            the functions that jaxlib knows.
    """
    return max(size for known, size in _PJRT_STRUCT_SIZES.items() if known <= minor)


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def load_pjrt_plugin(name: str, library: str, api: int) -> Any:
    """Make jaxlib load and initialise a PJRT plug-in, once per name and process.

    Args:
        name: the name under which clients are created.
        library: the path of its shared library.
        api: the address of the library's `PJRT_Api`.

    Returns:
        The capsule around that address, for jaxlib's other functions.
    """
    capsule = None
    if not _jax.pjrt_plugin_loaded(name):
        capsule = _jax.load_pjrt_plugin(name, library, c_api=None)
    if not _jax.pjrt_plugin_initialized(name):
        _jax.initialize_pjrt_plugin(name)
    if capsule is not None:
        return capsule
    # Other code in this process, such as jax, has loaded it before.
    if hasattr(_jax, "get_pjrt_plugin"):
        return _jax.get_pjrt_plugin(name)
    return new_capsule(api, b"pjrt_c_api", None)


def export_profile(profile: Any, folder: str) -> None:
    """Write a profile below a folder, under a name of its own.

    Args:
        profile: jaxlib's `ProfileData`.
        folder: the folder.

    Raises:
        NotImplementedError: jaxlib only writes what a session has recorded, as before 0.12.
    """
    from jaxlib import _profiler  # deferred: few processes make profiles

    if not hasattr(_profiler, "export_to_xprof"):
        raise NotImplementedError(
            "jaxlib before 0.12 does not write profiles that were read from files: give the "
            "session that recorded it, or copy the file"
        )
    _profiler.export_to_xprof(profile, folder)
