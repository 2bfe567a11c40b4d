"""Transfers: from the host to devices, between devices, and back."""

from __future__ import annotations

from typing import Any, Final, TypeVar, overload

import numpy as np

from dovetail._core.base import bindings, dtypes, pytree
from dovetail._core.base.errors import NonArrayArgumentError
from dovetail._core.base.runtime_errors import OutOfMemoryError
from dovetail._core.base.typing import ArrayLike, DeviceLike, PyTree
from dovetail._core.ir.avals import (
    ShapedArray,
    array_conversion,
    as_array,
    aval_of,
    make_aval,
)
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.ops.calls.placement import device_put_p
from dovetail._core.ops.checkpoint.naming import offload_p
from dovetail._core.runtime.arrays import buffers, guards
from dovetail._core.runtime.arrays.array import (
    Array,
    KeyArray,
    array_from_buffer,
    read_array,
    retire,
    wrap_as,
)
from dovetail._core.runtime.arrays.compiled_path import hold, waits
from dovetail._core.runtime.arrays.global_arrays import check_equal
from dovetail._core.runtime.arrays.held_values import held_value
from dovetail._core.runtime.arrays.host import checked_ndarray, host_value
from dovetail._core.runtime.arrays.memory import named
from dovetail._core.runtime.arrays.parts import is_local
from dovetail._core.runtime.devices import live_buffers
from dovetail._core.runtime.devices.layout import AutoLayout, Format
from dovetail._core.runtime.devices.memory_spaces import KINDS, Space, within
from dovetail._core.runtime.devices.named_sharding import over_current_mesh
from dovetail._core.runtime.devices.sharding import as_sharding, default_sharding
from dovetail._core.runtime.processes import group
from dovetail._core.trace.tracer import ArrayClass, Tracer

__all__ = [
    "array_from_numpy",
    "array_from_value",
    "block_until_ready",
    "copy_to_host_async",
    "device_get",
    "device_put",
    "live_arrays",
]

_put: Final = buffers.put

T = TypeVar("T")


def array_from_numpy(
    value: np.ndarray[Any, Any], sharding: Any = None, committed: bool = False
) -> Array:
    """Copy a NumPy array to a device; the NumPy array may be written to afterwards.

    Args:
        value: a NumPy array or scalar; 64-bit types become 32-bit ones unless ``enable_x64`` is on.
        sharding: where to place it; the default device if None.
        committed: whether the array is committed to the device.

    Raises:
        NonArrayArgumentError: its dtype is neither numeric nor boolean.
        OverflowError: an integer does not fit the canonical dtype.
    """
    value = checked_ndarray(value)
    if sharding is None:
        sharding = default_sharding()
    return array_from_buffer(_put(value, make_aval(value.shape, value.dtype), sharding, committed))


def array_from_value(
    value: Any, aval: ShapedArray, sharding: Any = None, committed: bool = False
) -> Array:
    """Copy a host value to an array with the given aval, including its weak type.

    Args:
        value: a NumPy array or scalar, or a Python scalar, of the aval's shape.
        aval: the abstract value.
        sharding: where to place it; the default device if None.
        committed: whether the array is committed to the device.
    """
    host = np.asarray(host_value(value, aval), aval.dtype)
    place = default_sharding() if sharding is None else sharding
    return array_from_buffer(_put(host, aval, place, committed))


# -----------------------------------------------------------------------------------------
# device_put


def _placed(leaf: Any, sharding: Any, donate: bool, may_alias: bool | None, what: str) -> Any:
    """Place a leaf on the device of a sharding, or leave it where it is (None)."""
    several = group.current() is not None and sharding is not None
    spread = several and type(sharding) is not Space and not is_local(sharding)
    if isinstance(leaf, Array) and not isinstance(leaf, Tracer):
        if sharding is None and may_alias is not False and held_value(leaf) is not None:
            return leaf
        buffer = leaf._buffer
        leaf._check()
        if type(sharding) is Space:
            sharding = within(buffer._sharding, sharding)
        if spread and is_local(buffer._sharding):
            check_equal(buffers.read(buffer), sharding, what)
        if sharding is None or (buffer._sharding is sharding and buffer._committed):
            return wrap_as(leaf, buffers.copy(buffer)) if may_alias is False else leaf
        share = may_alias is not False
        moved = buffers.move(buffer, sharding, True, donate=donate, share=share)
        if buffer._sharding is sharding:
            if may_alias is False:
                moved = buffers.rewrap(buffers.copy(buffer), buffer.aval, sharding, True)
        elif donate:
            buffers.wait(moved)
            retire(leaf, "donated to device_put")
            buffer.delete()
        return wrap_as(leaf, moved)
    if type(leaf) is Literal:
        leaf, aval = leaf.val, leaf.aval
    else:
        if buffers.is_buffer(leaf):
            leaf = np.asarray(leaf)  # another framework's array
        elif isinstance(leaf, (str, bytes)) or not _can_be_array(leaf):
            raise NonArrayArgumentError(
                f"device_put takes arrays, NumPy values and numbers, and pytrees of them; {what} "
                f"is of type {type(leaf).__name__}"
            )
        elif not isinstance(leaf, _HOST_TYPES):
            leaf = np.asarray(as_array(leaf))
        if isinstance(leaf, (np.ndarray, np.generic)):
            if leaf.dtype == dtypes.float0:
                return leaf  # holds no data
            leaf = checked_ndarray(leaf, what)
        aval = aval_of(leaf)
    host = host_value(leaf, aval, what)
    held = hold(host, aval) if sharding is None else None
    if held is not None:
        return held
    place = default_sharding() if sharding is None else sharding
    if type(place) is Space:
        place = within(default_sharding(), place)
    if spread:
        check_equal(host, sharding, what)
    return array_from_buffer(_put(host, aval, place, sharding is not None))


def placed_now(x: Any, device: Any, may_alias: bool | None) -> Any:
    """The value of the primitive `device_put`, outside compiled programs."""
    return _placed(x, device, False, may_alias, "the value")


_HOST_TYPES: Final = (bool, int, float, complex, np.ndarray, np.generic)


def _can_be_array(value: Any) -> bool:
    return (
        isinstance(value, _HOST_TYPES)
        or any(hasattr(value, name) for name in ("__array__", "__array_interface__"))
        or array_conversion(value) is not None
    )


def _spread(prefix: Any, tree: Any, argument: str) -> list[Any]:
    """One value per leaf of a tree, from a single value or a prefix of the tree."""
    return pytree.flatten_up_to_prefix(f"{argument} of device_put", prefix, tree)


def _place(given: Any, argument: str) -> Any:
    """Convert a device, a sharding or a format to a sharding; None stays None.

    Raises:
        NotImplementedError: it is a format with an unsupported layout.
    """
    if type(given) is Format:
        if isinstance(given.layout, AutoLayout):
            raise ValueError(
                f"device_put: Layout.AUTO leaves the layout to a compiler, and no program is "
                f"compiled here; leave it out: {argument}=Format(sharding=...)"
            )
        if given.layout is not None and not given.layout.is_default:
            raise NotImplementedError(
                f"device_put places arrays in row-major order alone, got {given.layout}; leave the "
                f"layout out: {argument}=Format(sharding=...)"
            )
        given = given.sharding
    if type(given) is Space:
        return None if given is Space.Any else given
    if given is None:
        return None
    return as_sharding(over_current_mesh(given, f"{argument} of device_put"), argument)


@overload
def device_put(
    x: ArrayLike,
    device: DeviceLike | Format | Space | None = None,
    *,
    src: DeviceLike | Format | Space | None = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Array: ...
@overload
def device_put(
    x: T,
    device: PyTree = None,
    *,
    src: PyTree = None,
    donate: PyTree = False,
    may_alias: PyTree = None,
) -> T: ...
def device_put(
    x: PyTree,
    device: PyTree = None,
    *,
    src: PyTree = None,
    donate: PyTree = False,
    may_alias: PyTree = None,
) -> PyTree:
    """Place data on a device.

    With ``device``, the result is committed to it: computations run there, and cannot be combined
    with data committed to another device. Without it, arrays stay where they are, and host values
    go to the default device, uncommitted. NumPy arrays are copied: writing to them later does not
    change the result.

    Differs:
        Where memory does not suffice, for data or for a program, the error is a MemoryError, too.
        It names the argument or the program, the line and the largest values. JAX's gives the
        number of bytes alone.

        >>> try:
        ...     dt.device_put({"b": 1, "w": np.broadcast_to(np.float32(1), (2**45,))})
        ... except MemoryError as error:
        ...     print(str(error).splitlines()[1].strip())
        value: x['w'] of device_put

    Args:
        x: an array, a NumPy value, a number, or a pytree of them.
        device: a device (from `dovetail.devices`), a sharding, a `PartitionSpec` over the current
            mesh, a `Format`, a memory (from `dovetail.memory.Space`) of the devices that have the
            data, or a tree of them that is a prefix of ``x``.
        src: where ``x`` is, in the form of ``device``; derivatives are transferred back there. By
            default ``x`` itself determines it.
        donate: whether the memory of an array that moves may be freed; a bool, or a tree of them.
        may_alias: False to copy to new memory even if ``x`` is on the device already.

    Returns:
        ``x`` with its leaves as arrays.

    Raises:
        NonArrayArgumentError: a leaf is neither an array nor a number.
        OverflowError: an integer does not fit its dtype.
        OutOfMemoryError: there is not enough memory.
        ValueError: a tree of devices does not match ``x``.
        TypeError: ``device`` is not a device, a sharding or a format.
        NotImplementedError: it is a format with a layout other than row-major order.

    Example:
        >>> import dovetail
        >>> x = dovetail.device_put(1, dovetail.devices()[0])
        >>> x, x.committed
        (Array(1, dtype=int32, weak_type=True), True)
    """
    leaves, tree = pytree.flatten(x)
    count = len(leaves)
    places = [_place(p, "device") for p in _spread(device, tree, "device")]
    sources = [_place(p, "src") for p in _spread(src, tree, "src")]
    donations = _spread(donate, tree, "donate")
    aliases = _spread(may_alias, tree, "may_alias")
    results = []
    with guards.explicit():
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Tracer):
                if type(places[i]) is Space:
                    leaf = offload_p.bind(leaf, src=None, dst=KINDS[places[i]])
                elif places[i] is not None:
                    source = None if type(sources[i]) is Space else sources[i]
                    leaf = device_put_p.bind(
                        leaf, device=places[i], src=source, may_alias=aliases[i]
                    )
                results.append(leaf)
            else:
                what = "x" if count == 1 else _Path(x, i)
                try:
                    placed = _placed(leaf, places[i], bool(donations[i]), aliases[i], str(what))
                except OutOfMemoryError as error:
                    raise named(error, f"{what} of device_put") from None
                results.append(placed)
    return tree.unflatten(results)


class _Path:
    """The path of a leaf in a tree, computed only if a message needs it."""

    __slots__ = ("number", "tree")

    def __init__(self, tree: Any, number: int) -> None:
        self.tree = tree
        self.number = number

    def __str__(self) -> str:
        return "x" + pytree.keystr(pytree.flatten_with_path(self.tree)[0][self.number][0])


# ------------------------------------------------------------------------------------------- the
# host


@overload
def device_get(x: Array) -> np.ndarray[Any, Any]: ...
@overload
def device_get(x: PyTree) -> PyTree: ...
def device_get(x: PyTree) -> PyTree:
    """Copy data to the host.

    All arrays of a tree are transferred at the same time.

    Args:
        x: a pytree; leaves that are not arrays, and traced values, are returned unchanged.

    Returns:
        ``x`` with its arrays as read-only NumPy arrays; `numpy.array` makes a writable copy.

    Raises:
        JaxRuntimeError: the computation of a value failed.

    Example:
        >>> import dovetail
        >>> dovetail.device_get({"a": dovetail.device_put(1.5), "b": "text"})
        {'a': array(1.5, dtype=float32), 'b': 'text'}
    """
    leaves, tree = pytree.flatten(x)
    if not guards.is_idle():
        with guards.explicit("explicit_device_get"):
            return tree.unflatten(_fetched(leaves))
    return tree.unflatten(_fetched(leaves))


def _fetched(leaves: list[Any]) -> list[Any]:
    if len(leaves) > 1:
        copy_to_host_async(leaves)
    return [_on_host(leaf) for leaf in leaves]


def _on_host(leaf: Any) -> Any:
    if type(leaf) is Array:
        return read_array(leaf)
    if isinstance(leaf, (KeyArray, Tracer)):
        return leaf  # the host has no form for keys
    if isinstance(leaf, ArrayClass) or hasattr(leaf, "__dovetail_array__"):
        return np.asarray(as_array(leaf))
    return leaf


def copy_to_host_async(x: T) -> T:
    """Start copying the arrays of a tree to the host, so that reading them later is faster.

    Args:
        x: a pytree; leaves that are not arrays are skipped.

    Returns:
        ``x`` itself.
    """
    for leaf in pytree.leaves(x):
        if (type(leaf) is Array or type(leaf) is KeyArray) and held_value(leaf) is None:
            leaf._check()
            bindings.copy_to_host_async(leaf._buffer)
    return x


@waits
def block_until_ready(x: T) -> T:
    """Wait until all arrays of a tree are computed.

    Args:
        x: a pytree; leaves that are not arrays are skipped, unless they have a method of this name,
            which is called.

    Returns:
        ``x`` itself.

    Raises:
        JaxRuntimeError: the computation of one of them failed.

    Example:
        >>> import dovetail
        >>> dovetail.block_until_ready([dovetail.device_put(1), "text"])
        [Array(1, dtype=int32, weak_type=True), 'text']
    """
    if type(x) is Array:
        array: Any = x
        array.block_until_ready()
        return x
    ready = []
    for leaf in pytree.leaves(x):
        if type(leaf) is Array or type(leaf) is KeyArray:
            if held_value(leaf) is None:
                leaf._check()
                ready.append(leaf._buffer)
        elif not isinstance(leaf, Tracer):
            wait = getattr(leaf, "block_until_ready", None)
            if wait is not None:
                wait()
    if ready:
        buffers.block_until_ready(ready)
    return x


def live_arrays(platform: str | None = None) -> list[Array]:
    """The live arrays, as new objects around their buffers.

    Args:
        platform: the platform; all platforms in use if None.

    Returns:
        The arrays; arrays of random keys appear as their underlying numbers.
    """
    return [
        array_from_buffer(buffer)
        for buffer in live_buffers.everything(platform)
        if not buffer.is_deleted() and isinstance(buffer.aval, ShapedArray)
    ]
