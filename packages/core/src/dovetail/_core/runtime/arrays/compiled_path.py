"""What the compiled path knows of arrays, and small arrays that hold their values for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

from dovetail._core.base import config, events, native
from dovetail._core.base.bindings import _jax, get_traceback
from dovetail._core.base.interrupts import is_interrupt
from dovetail._core.base.tracebacks import boundary
from dovetail._core.base.wrapping import update_wrapper
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.array import (
    Array,
    DeletedArray,
    KeyArray,
    Retired,
    array_from_buffer,
)
from dovetail._core.runtime.arrays.donation import retire_donated
from dovetail._core.runtime.arrays.held_values import MOST_HELD, FreedValue, place_value
from dovetail._core.runtime.arrays.host import checked_ndarray
from dovetail._core.runtime.devices import process_ends
from dovetail._core.runtime.devices.host_functions import host_functions
from dovetail._core.runtime.devices.named_sharding import default_place
from dovetail._core.runtime.processes import group

__all__ = ["MOST_COPIED", "hold", "placed_by_default", "waits"]

F = TypeVar("F", bound=Callable[..., Any])

#: Bytes of the largest NumPy argument that the compiled path copies, and C++ transfers without
#: Python. Larger ones are copied once, to where they stay.
MOST_COPIED: Final = 2**18


def _private(value: Any) -> Any:
    """A NumPy value of any dtype as C++ may have it: converted, in memory of its own.

    Raises:
        OverflowError: an integer does not fit the canonical dtype.
        NonArrayArgumentError: the value is not an array.
    """
    array = checked_ndarray(value)
    if array.nbytes > MOST_COPIED:
        return value
    return array.copy() if np.may_share_memory(array, value) else array


def _waiting(wait: Callable[[Array], Array]) -> Callable[..., Array]:
    """What waits for an array where C++ has not, or has raised an exception."""

    @boundary
    def wait_again(array: Array, error: BaseException | None = None) -> Array:
        if error is not None and is_interrupt(error):
            raise error
        return wait(array)

    return update_wrapper(wait_again, wait)


if native.calls is not None:
    native.calls.configure(
        Array,
        KeyArray,
        DeletedArray,
        Retired,
        _jax.ArrayImpl,
        FreedValue,
        get_traceback,
        lambda value, action, delete: retire_donated([value], action, delete=delete),
        _private,
        MOST_COPIED,
        Array.__array__,
        events,
        place_value,
    )
    Array._buffer = native.calls.buffer_descriptor()
    Array.__array__ = native.calls.array_reader()  # type: ignore[method-assign]
    waiter = native.calls.array_waiter(_waiting(Array.block_until_ready))
    Array.block_until_ready = waiter  # type: ignore[method-assign]
    native.calls.configure_direct(
        config.trace_key,
        (
            (config.trace_state, None),
            (config.default_device, None),
            (config.default_mesh, None),
            (config.debug_nans, False),
            (config.debug_infs, False),
            (config.debug_key_reuse, False),
            (config.transfer_guard_host_to_device, None),
            (config.post_hook, None),
            (config.no_execution, False),
            (config.cpu_kernels, True),
        ),
    )
    process_ends.on_end(native.calls.be_careful)
    group.on_start(native.calls.be_careful)


def waits(function: F) -> F:
    """A public function that waits for what it is given: C does it for a single array."""
    if native.calls is None:
        return function
    waiter: F = update_wrapper(native.calls.Waiter(boundary(function)), function)
    waiter.__module__ = "dovetail"
    return waiter


def hold(value: Any, aval: Any) -> Array | None:
    """A small NumPy array of exactly this type as an array that holds a copy of it, if it can."""
    if type(value) is not np.ndarray or value.nbytes > MOST_HELD:
        return None
    array: Array | None = native.calls.hold(value, aval.weak_type) if host_functions() else None
    return array


def placed_by_default(value: np.ndarray[Any, Any], aval: Any) -> Array:
    """A NumPy array of exactly this type as an array where data go that are told of no devices."""
    held = hold(value, aval)
    if held is not None:
        return held
    return array_from_buffer(buffers.put(value, aval, *default_place()))
