"""Native functions that programs may call: registered by name, for a platform."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from dovetail._core.base.bindings import JaxRuntimeError, new_capsule, xla_client
from dovetail._core.base.errors import BackendUnavailableError
from dovetail._core.ops.callbacks.native_targets import (
    NativeTarget,
    note_batch_partitionable,
    note_target,
)
from dovetail._core.plugins.manager import manager
from dovetail._core.runtime.devices.pjrt import loaded_plugins

__all__ = [
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]

_HOST: Final = ("cpu", "host")
_UNTYPED: Final = 0


def include_dir() -> str:
    """The folder with the headers that native code is compiled with.

    Example:
        >>> from pathlib import Path
        >>> from dovetail import ffi
        >>> (Path(ffi.include_dir()) / "xla/ffi/api/ffi.h").exists()
        True
    """
    return str(Path(cast("str", xla_client.__file__)).parent / "include")


def pycapsule(funcptr: Any) -> object:
    """Put the address of a native function into a capsule, as `register_ffi_target` takes it.

    Args:
        funcptr: a function of a library that `ctypes` has loaded, such as
            ``ctypes.CDLL("libacme.so").scale``, or its address.

    Returns:
        The capsule. The library must stay loaded, as those of `ctypes` do.

    Raises:
        TypeError: it is no function of `ctypes`, or it is none at all (NULL).

    Example:
        >>> import ctypes
        >>> from dovetail import ffi
        >>> capsule = ffi.pycapsule(ctypes.CDLL(None).malloc)
    """
    try:
        address = ctypes.cast(funcptr, ctypes.c_void_p).value
    except (ctypes.ArgumentError, TypeError):
        address = None
    if not address:
        raise TypeError(
            "pycapsule takes a function of a library that ctypes has loaded, such as "
            f'ctypes.CDLL("libacme.so").scale; got {funcptr!r:.80}'
        )
    return new_capsule(address, b"xla._CUSTOM_CALL_TARGET", None)


def register_ffi_target(
    name: str,
    fn: Any,
    platform: str = "cpu",
    api_version: int = 1,
    *,
    traits: int = 0,
) -> None:
    """Register a native function under a name, by which programs call it with `ffi_call`.

    It stays registered for the life of the process.

    Args:
        name: the name.
        fn: a capsule around a handler of XLA's foreign function interface, see `pycapsule`; or
            capsules by stage: ``"instantiate"``, ``"prepare"``, ``"initialize"``, ``"execute"``.
        platform: the platform that runs it, such as ``"cpu"`` or ``"CUDA"``. A backend on a PJRT
            library gets it when it starts, if it has not started yet.
        api_version: 1 for handlers; 0 for functions of plain pointers, on the CPU alone.
        traits: XLA's trait bits: 1 if it may become part of a GPU graph.

    Raises:
        TypeError: `fn` is no capsule and no dictionary of capsules.
        ValueError: XLA refuses it, for example since another function has the name.
        PjrtError: the backend's library refuses it.

    Example:
        >>> import ctypes
        >>> from dovetail import ffi
        >>> handler = ffi.pycapsule(ctypes.CDLL(None).malloc)  # of your own library
        >>> ffi.register_ffi_target("acme_scale", handler, platform="cpu", api_version=0)
    """
    if not isinstance(name, str) or not isinstance(platform, str):
        raise TypeError(
            f"register_ffi_target: name and platform are strings, got {name!r:.80} and "
            f"{platform!r:.80}"
        )
    for stage, capsule in (fn if isinstance(fn, Mapping) else {"execute": fn}).items():
        if type(capsule).__name__ != "PyCapsule":
            raise TypeError(
                f"register_ffi_target of {name!r}: {stage!r} is no capsule but {capsule!r:.80}; "
                "dovetail.ffi.pycapsule(library.function) makes one"
            )
    lower = platform.lower()
    if lower in _HOST:
        try:
            xla_client.register_custom_call_target(
                name,
                dict(fn) if isinstance(fn, Mapping) else fn,
                platform="cpu",
                api_version=api_version,
                traits=xla_client.CustomCallTargetTraits(traits),
            )
        except JaxRuntimeError as error:
            raise ValueError(f"register_ffi_target of {name!r}: {error}") from None
        note_target(NativeTarget(name, fn, "cpu", traits))
        return
    if api_version == _UNTYPED:
        raise ValueError(
            f"register_ffi_target of {name!r}: functions of api_version=0 are called on the CPU "
            f"alone, not on {platform!r}; write a handler of XLA's foreign function interface"
        )
    with suppress(BackendUnavailableError):  # its backend may be installed later
        lower = manager().canonical(lower)
    target = NativeTarget(name, fn, lower, traits)
    note_target(target)
    for plugin in loaded_plugins():
        if plugin.name == target.platform:
            plugin.take(target)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Say that a native function treats each element of a batch by itself.

    A call of it that is mapped by `dovetail.vmap`, with ``vmap_method="broadcast_all"``, is then
    divided over the devices of a program along the mapped dimensions.

    Args:
        name: the name under which it is registered.

    Example:
        >>> from dovetail import ffi
        >>> ffi.register_ffi_target_as_batch_partitionable("acme_scale")
    """
    note_batch_partitionable(name)


def register_ffi_type(
    name: str, type_registration: Mapping[str, Any], platform: str = "cpu"
) -> None:
    """Register the type of what handlers keep between their stages.

    Args:
        name: the name of the type.
        type_registration: ``"type_id"``, a capsule around the address of an ``XLA_FFI_TypeId``,
            which gets a number; and ``"type_info"``, one around that of an ``XLA_FFI_TypeInfo``.
        platform: the platform of the handlers, ``"cpu"``.

    Raises:
        TypeError: there is no such capsule.
        NotImplementedError: the platform is another one: a PJRT library registers the types of its
            own handlers.
    """
    if not isinstance(platform, str):
        raise TypeError(
            f"register_ffi_type of {name!r} takes the name of a platform, got {platform!r}"
        )
    if not isinstance(type_registration, Mapping):
        raise TypeError(
            f"register_ffi_type of {name!r} takes a dict of capsules, got {type_registration!r:.80}"
        )
    if platform.lower() not in _HOST:
        raise NotImplementedError(
            f"register_ffi_type of {name!r}: types are registered for the CPU; keep what the "
            f"stages of a handler for {platform!r} share in the library itself"
        )
    for key, capsule in type_registration.items():
        if key not in ("type_id", "type_info") or type(capsule).__name__ != "PyCapsule":
            raise TypeError(
                f"register_ffi_type of {name!r} takes capsules as 'type_id' and 'type_info', got "
                f"{key!r}: {capsule!r:.80}"
            )
    if "type_id" not in type_registration:
        raise TypeError(f"register_ffi_type of {name!r} lacks the capsule 'type_id'")
    try:
        xla_client.register_custom_type(name, dict(type_registration), "cpu")
    except JaxRuntimeError as error:
        raise ValueError(f"register_ffi_type of {name!r}: {error}") from None


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """`register_ffi_type` of a type of which only the number is asked for.

    Args:
        name: the name of the type.
        obj: a capsule around the address of an ``XLA_FFI_TypeId``.
        platform: as for `register_ffi_type`.
    """
    register_ffi_type(name, {"type_id": obj}, platform)
