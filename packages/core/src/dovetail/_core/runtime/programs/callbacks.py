"""The host's side of callbacks: converting values both ways, checking results, explaining errors.

A callback runs on the thread that called the program, or on one of the runtime's threads. Its
computations must not wait for the calling program: see `config.callback_depth`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from threading import get_ident
from traceback import clear_frames
from typing import Any, Final, TypeVar

import numpy as np

from dovetail._core.base import config, dtypes, pytree
from dovetail._core.base.bindings import unset
from dovetail._core.base.errors import BackendUnavailableError
from dovetail._core.base.locks import shared_lock
from dovetail._core.base.restoring import Restoring
from dovetail._core.ir.avals import physical_aval
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.ops.callbacks.buffers import BufferCall
from dovetail._core.ops.callbacks.calls import HostCall, set_host
from dovetail._core.ops.callbacks.failing import answering
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.array import Array, KeyArray, wrap_as, wrap_value
from dovetail._core.runtime.arrays.failures import CallbackFailure, keep, original
from dovetail._core.runtime.arrays.transfer import array_from_value
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.placement import Placement
from dovetail._core.runtime.devices.sharding import SingleDeviceSharding
from dovetail._core.runtime.programs import effects
from dovetail._core.runtime.programs.arguments import literal_value, resolve_device
from dovetail._core.trace.state import evaluation_trace, use_trace

__all__ = ["on_host"]

Result = TypeVar("Result")

# NumPy computes in 64 bits where programs use 32.
_NARROW: Final = {
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
_lock: Final = shared_lock()
# The number of the callback that each thread is in.
_active: Final[dict[int, int]] = {}
_SCALARS: Final = {
    bool: np.bool_,
    int: np.integer,
    float: np.floating,
    complex: np.complexfloating,
}


def on_host(function: Callable[..., Any]) -> Callable[..., Any]:
    """The Python function that a program calls.

    Args:
        function: a `HostCall`, a `BufferCall`, or a function of NumPy arrays, which is returned
            unchanged.
    """
    if isinstance(function, HostCall):
        return _in_memory(function) if function.in_memory else _of_values(function)
    return _of_buffers(function) if isinstance(function, BufferCall) else function


def _of_values(call: HostCall) -> Callable[..., tuple[Any, ...]]:
    def run(*values: Any) -> tuple[Any, ...]:
        # A token is passed in and returned as None.
        tokens = (None,) if call.ordered else ()

        def compute(place: SingleDeviceSharding | None) -> tuple[Any, ...]:
            arrays = [
                _argument(value, aval, place)
                for value, aval in zip(values[len(tokens) :], call.avals_in, strict=True)
            ]
            return (*tokens, *_called(call, arrays))

        try:
            with answering(call.failures):
                return _outside_of_programs(compute)
        except CallbackFailure as error:
            if call.failures is None or not call.failures.add(original(error)):
                raise
            return (*tokens, *(_nothing(physical_aval(aval)) for aval in call.avals_out))

    return run


def _in_memory(call: HostCall) -> Callable[..., None]:
    count = len(call.avals_in)

    def run(_: Any, *memory: Any) -> None:
        # No view of memory may be left while other programs run, or in the frames of an exception.
        # jaxlib makes an object for each, at an address on the stack, and takes it for that of
        # whatever comes to lie there.
        def compute(place: SingleDeviceSharding | None) -> None:
            arrays = [
                _argument(buffers.private(np.asarray(given)), aval, place)
                for given, aval in zip(memory, call.avals_in, strict=False)
            ]
            for taken, value in zip(memory[count:], _called(call, arrays), strict=True):
                np.asarray(taken)[...] = value

        _outside_of_programs(compute)

    return run


def _nothing(aval: Any) -> np.ndarray[Any, Any]:
    """What stands for a result that there is not: other processes may go on with it for a while."""
    inexact = dtypes.issubdtype(aval.dtype, np.inexact)
    return np.full(aval.shape, np.nan if inexact else 0, aval.dtype)


def _of_buffers(call: BufferCall) -> Callable[..., None]:
    def run(context: Any, *buffers: Any) -> None:
        def compute(place: SingleDeviceSharding | None) -> None:
            try:
                call.on_buffers(context, buffers)
            except BaseException as error:
                _add_note(error, call)
                # Its frames may hold views of memory that is soon another's.
                clear_frames(error.__traceback__)
                raise

        try:
            with answering(call.failures):
                _outside_of_programs(compute)
        except CallbackFailure as error:
            if call.failures is None or not call.failures.add(original(error)):
                raise

    return run


def _outside_of_programs(compute: Callable[[SingleDeviceSharding | None], Result]) -> Result:
    """Call a function that may itself compute, passing it the device for callbacks."""
    try:
        with Restoring(config.callback_depth.get_local, _go_deeper, _set_depth):
            place = _host_place()
            with use_trace(evaluation_trace), _on_host_device(place):
                return compute(place)
    except BaseException as error:
        raise keep(error) from None


def _go_deeper() -> None:
    # A callback within a callback may run on another thread, so the number is process-wide.
    with _lock:
        number = max(_active.values(), default=0) + 1
        _active[get_ident()] = number
    config.callback_depth.set_local(number)


def _set_depth(before: Any) -> None:
    with _lock:
        if before is unset:
            _active.pop(get_ident(), None)
        else:
            _active[get_ident()] = before
    config.callback_depth.set_local(before)


def _call_now(call: HostCall, args: Sequence[Any]) -> list[Any]:
    """Make a callback's call directly, outside of any program."""
    if call.ordered:
        effects.wait_for_ordered()
    sharding, committed = resolve_device(args, call.caller)
    call.check_device(sharding._device_list)
    if isinstance(sharding, Placement):
        sharding = sharding._replicated
    place = _host_place()
    arrays = [_as_array(arg, aval, place) for arg, aval in zip(args, call.avals_in, strict=True)]
    results = _called(call, arrays)
    return [
        array_from_value(value, aval, sharding, committed)
        for value, aval in zip(results, call.avals_out, strict=True)
    ]


set_host(_call_now)


# -------------------------------------------------------------------------------------- arguments


def _host_place() -> SingleDeviceSharding | None:
    """Where callbacks compute: not on the program's device, which waits for them."""
    try:
        return SingleDeviceSharding(clients.local_devices(backend="cpu")[0])
    except BackendUnavailableError:
        return None


def _on_host_device(place: SingleDeviceSharding | None) -> contextlib.AbstractContextManager[Any]:
    if place is None or clients.default_backend() == "cpu":
        return contextlib.nullcontext()
    return config.default_device(place._device)


def _off_the_mesh() -> Restoring[None]:
    """A scope without a mesh to compute on, since its devices may wait for the callback."""
    cell = config.default_mesh
    return Restoring(cell.get_local, partial(cell.set_local, None), cell.set_local)


def _argument(value: Any, aval: Any, place: SingleDeviceSharding | None) -> Any:
    """An argument from a program, or a device's part of it, as an array on the host."""
    if place is None:
        return value
    key_dtype = aval.dtype if isinstance(aval.dtype, dtypes.ExtendedDType) else None
    own = physical_aval(aval).update(shape=value.shape, weak_type=False)
    return wrap_value(key_dtype, buffers.put_shared(value, own, place, False))


def _as_array(arg: Any, aval: Any, place: SingleDeviceSharding | None) -> Any:
    """An argument from outside of programs, as an array on the host."""
    if type(arg) is Literal:
        arg = literal_value(arg)
    if type(arg) is not Array and type(arg) is not KeyArray:
        return array_from_value(arg, aval, place)
    arg._check()
    if place is None or arg.platform() == "cpu":
        return arg
    return wrap_as(arg, buffers.move(arg._buffer, place, False))


# ---------------------------------------------------------------------------------------- results


def _called(call: HostCall, arrays: Sequence[Any]) -> list[Any]:
    """The checked results of a callback, as NumPy arrays."""
    try:
        args, kwargs = pytree.unflatten(call.callback.in_tree, arrays)
        with _off_the_mesh():
            result = call.callback.callback_func(*args, **kwargs)
        return [] if call.callback.out_tree is None else _checked(call, result)
    except BaseException as error:
        _add_note(error, call)
        raise


def _add_note(error: BaseException, call: HostCall | BufferCall) -> None:
    place = call.callback.place
    note = f"This was raised by {place}, which {call.caller} was given at {call.where}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _checked(call: HostCall, result: Any) -> list[Any]:
    leaves, tree = pytree.flatten(result)
    expected = call.callback.out_tree
    if tree != expected:
        difference = pytree.structure_difference(
            expected, tree, "result_shape_dtypes", "the result"
        )
        raise TypeError(
            f"{call.caller}: {call.callback.place} must return what result_shape_dtypes says, "
            f"and the structure differs:\n{difference}"
        )
    return [
        _result(call, leaf, aval, number)
        for number, (leaf, aval) in enumerate(zip(leaves, call.avals_out, strict=True))
    ]


def _path(call: HostCall, number: int) -> str:
    """Where a result is in the tree of results."""
    tree = call.callback.out_tree
    numbered = pytree.unflatten(tree, range(tree.num_leaves))
    return pytree.keystr(pytree.leaves_with_path(numbered)[number][0])


def _result(call: HostCall, leaf: Any, aval: Any, number: int) -> Any:
    """A result as a NumPy array of the promised type."""
    scalar = _SCALARS.get(type(leaf))
    if scalar is not None and not aval.shape and dtypes.issubdtype(aval.dtype, scalar):
        return np.asarray(leaf, aval.dtype)
    value = np.asarray(leaf)
    if value.shape == aval.shape:
        if value.dtype == aval.dtype:
            return value
        if _NARROW.get(value.dtype) == aval.dtype:
            narrow = value.astype(aval.dtype)
            if aval.dtype.kind not in "iu" or (narrow == value).all():
                return narrow
            raise OverflowError(
                f"{call.caller}: the result{_path(call, number)} of {call.callback.place} holds "
                f"integers that do not fit {aval.dtype}"
            )
    raise TypeError(
        f"{call.caller}: the result{_path(call, number)} of {call.callback.place} must be "
        f"{aval.dtype}[{','.join(map(str, aval.shape))}], as result_shape_dtypes says, got "
        f"{value.dtype}[{','.join(map(str, value.shape))}]; return numpy.asarray(x, "
        f"{str(aval.dtype)!r}) of the right shape, or change result_shape_dtypes"
    )
