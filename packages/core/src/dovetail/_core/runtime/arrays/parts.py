"""Arrays over several devices, taken apart without the package jax.

jaxlib takes them apart in two ways. Both look up jax's class of types of arrays, which imports an
installed jax; the way here does so once in a process, and keeps what it finds for good. It finds
a function of ours, which asks jax for its class once that is loaded. jaxlib also keeps the types
that it got, by shape and dtype, also for jax. Where a jax may still be loaded, it must see no shape
that jax could ask for: a program first gives the array many dimensions of size 1.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail._core.base import caches
from dovetail._core.base.bindings import _jax, result_handler
from dovetail._core.base.locks import shared_lock
from dovetail._core.ir.avals import make_aval
from dovetail._core.runtime.arrays import guards
from dovetail._core.runtime.devices.sharding import SingleDeviceSharding

__all__ = ["is_free", "is_local", "is_on_host", "parts_of"]

_COPY_DURING_CALL: Final = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
#: Dimensions that no array of jax has in front.
_WIDE: Final = (1,) * 13


class _Plan(NamedTuple):
    """How arrays of one type and sharding are taken apart.

    Attributes:
        sections: where the part of each device ends along the list of devices.
        places: the sharding of each part.
        finish: for each part, the function that gives it its type.
    """

    sections: list[int]
    places: list[Any]
    finish: list[Any]


@caches.lru_cache(maxsize=1024)
def _plan(aval: Any, sharding: Any) -> _Plan:
    kind = sharding.memory_kind
    places = [SingleDeviceSharding(device, kind) for device in sharding._device_list]
    part = aval.update(shape=sharding.shard_shape(aval.shape), weak_type=aval.weak_type)
    return _Plan(
        list(range(1, len(places) + 1)),
        places,
        [result_handler(part, place, True) for place in places],
    )


def is_local(sharding: Any) -> bool:
    """Whether all devices of a sharding are this process's."""
    return bool(sharding._internal_device_list.is_fully_addressable)


def is_on_host(sharding: Any) -> bool:
    """Whether devices compute in the host's memory, so that arrays can share it."""
    return bool(sharding._device.platform == "cpu")


def is_free(sharding: Any) -> bool:
    """Whether arrays under a sharding are taken apart without a copy."""
    return _may_be_seen(sharding._device)


def parts_of(buffer: Any, numbers: Sequence[int] | None = None) -> list[Any]:
    """Parts of a buffer over several devices of this process, which share its memory.

    Args:
        buffer: the buffer.
        numbers: which, by the places of their devices in the list of devices; all if None.

    Returns:
        The parts, committed.
    """
    aval, sharding = buffer.aval, buffer._sharding
    if not is_free(sharding):
        return _unseen_parts(buffer, numbers)
    plan = _plan(aval, sharding)
    found, finish = _split(buffer, plan), plan.finish
    # In lists, so that jaxlib makes them anew, with the shapes that they have.
    return [finish[n]([found[n]]) for n in (range(len(found)) if numbers is None else numbers)]


def _split(buffer: Any, plan: _Plan) -> list[Any]:
    from jaxlib import _pathways  # deferred: loads a library

    count = len(plan.places)
    found: list[list[Any]] = _pathways._split_by_mesh_axis(
        [buffer], [-1], [count], 0, plan.sections, [plan.places], False
    )
    return found[0]


# ------------------------------------------------------------------------------------ without jax


_lock: Final = shared_lock()
_shown: bool = False
_jax_is_installed: bool | None = None


def _may_be_seen(device: Any) -> bool:
    """Whether jaxlib may keep the types of parts: jax is loaded, or never will be."""
    global _jax_is_installed
    if not _shown:
        _show_type(device)
    if "jax.core" in sys.modules:
        return True
    if _jax_is_installed is None:
        _jax_is_installed = importlib.util.find_spec("jax") is not None
    return not _jax_is_installed


def _type_of_array(*args: Any, **kwargs: Any) -> Any:
    """What jaxlib calls in place of jax's class."""
    core = sys.modules.get("jax.core")
    found = None if core is None else getattr(core, "ShapedArray", None)
    return None if found in (None, _type_of_array) else found(*args, **kwargs)


def _show_type(device: Any) -> None:
    """Have jaxlib find the function above, unless jax is there."""
    global _shown
    with _lock:
        if _shown:
            return
        if "jax" not in sys.modules:
            package, core = ModuleType("jax"), ModuleType("jax.core")
            package.core = core  # type: ignore[attr-defined]
            core.ShapedArray = _type_of_array  # type: ignore[attr-defined]
            place, aval = SingleDeviceSharding(device), make_aval((*_WIDE, 1), np.dtype(np.int8))
            smallest, plan = _zeros(aval, place), _plan(aval, place)
            sys.modules["jax"], sys.modules["jax.core"] = package, core
            try:
                _split(smallest, plan)
            finally:
                del sys.modules["jax"], sys.modules["jax.core"]
        _shown = True


def _zeros(aval: Any, place: Any) -> Any:
    value = np.zeros(aval.shape, aval.dtype)
    with guards.suspended():
        return _jax.batched_device_put(
            aval, place, [value], place._device_list, True, False, _COPY_DURING_CALL, True
        )


def _unseen_parts(buffer: Any, numbers: Sequence[int] | None) -> list[Any]:
    """`parts_of` where jaxlib must not see the shape of the array: copies."""
    from dovetail._core.basis.structural import reshape_p  # deferred: rare
    from dovetail._core.runtime.arrays.array import array_from_buffer  # deferred: cycle
    from dovetail._core.trace.state import evaluation_trace  # deferred: rare

    def reshaped(buffer: Any, shape: tuple[int, ...]) -> Any:
        params = {"new_sizes": shape, "dimensions": None, "sharding": None}
        return evaluation_trace.process(reshape_p, [array_from_buffer(buffer)], params)._buffer

    aval, sharding = buffer.aval, buffer._sharding
    part = sharding.shard_shape(aval.shape)
    if not aval.size:
        own = aval.update(shape=part, weak_type=aval.weak_type)
        places = [SingleDeviceSharding(d, sharding.memory_kind) for d in sharding._device_list]
        chosen = places if numbers is None else [places[n] for n in numbers]
        return [_zeros(own, place) for place in chosen]
    wide = reshaped(buffer, (*_WIDE, *aval.shape))
    if wide._sharding.shard_shape(wide.aval.shape) != (*_WIDE, *part):
        raise AssertionError(f"{sharding} became {wide._sharding} as dimensions were added")
    plan = _plan(wide.aval, wide._sharding)
    found, finish = _split(wide, plan), plan.finish
    kept = range(len(found)) if numbers is None else numbers
    return [reshaped(finish[n]([found[n]]), part) for n in kept]
