"""Arguments of compiled programs: where the program runs, and transferring arguments there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dovetail._core.base import caches, dtypes, events
from dovetail._core.base.errors import DeviceMismatchError, ShapeError
from dovetail._core.base.runtime_errors import OutOfMemoryError
from dovetail._core.ir.abstract_mesh import AbstractMesh
from dovetail._core.ir.avals import aval_of, make_aval
from dovetail._core.ir.jaxpr import JaxprEqn, Literal
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.array import Array, KeyArray, array_from_buffer
from dovetail._core.runtime.arrays.host import checked_ndarray, host_value, numpy_aval
from dovetail._core.runtime.arrays.memory import named
from dovetail._core.runtime.arrays.text import short_type
from dovetail._core.runtime.arrays.tokens import Token
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.layout import AutoLayout, Format, in_own_order
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding, default_place
from dovetail._core.runtime.devices.placement import Placement
from dovetail._core.runtime.devices.sharding import (
    Sharding,
    SingleDeviceSharding,
    default_sharding,
    memory_kinds,
)
from dovetail._core.trace.current_mesh import current_mesh

__all__ = [
    "argument_buffer",
    "check_divisions",
    "committed_place",
    "from_foreign",
    "literal_value",
    "place_host_argument",
    "resolve_asked",
    "resolve_device",
    "resolve_place",
    "shardings_inside",
]


def argument_buffer(
    leaf: Any, sharding: Any, what: str | Callable[[int], str], number: int = 0
) -> Any:
    """The buffer of an argument on the program's device.

    Args:
        leaf: an array, a NumPy value, a Python scalar or a token.
        sharding: where the program runs.
        what: a phrase for the argument, for messages, or a function that returns it for ``number``.
        number: the argument's index.

    Raises:
        DeletedArrayError: the array was deleted or donated.
        NonArrayArgumentError: it is not an array.
        OverflowError: an integer does not fit its dtype.
    """
    kind = type(leaf)
    if kind is Array or kind is KeyArray:
        buffer = leaf._buffer
        if buffer.is_deleted():
            leaf._check()
        if buffer._sharding is sharding:
            return buffer
        if not events.listeners:
            return buffers.move(buffer, sharding, buffer._committed)
        name = what if isinstance(what, str) else what(number)
        with events.because(_moved(name, buffer, sharding)):
            return buffers.move(buffer, sharding, buffer._committed)
    if kind is Token:
        return argument_buffer(leaf.array, sharding, what, number)
    if kind is Literal:
        aval, leaf = leaf.aval, leaf.val
    else:
        aval = aval_of(leaf)
        if aval.dtype == dtypes.float0:  # programs represent float0, which has no data, by False
            aval = make_aval(aval.shape, np.dtype(bool))
            leaf = np.zeros(aval.shape, bool)
    phrase = what if isinstance(what, str) else what(number)
    try:
        value = host_value(leaf, aval, phrase)
        with events.because(_copied(phrase, leaf) if events.listeners else None):
            return buffers.put(value, aval, sharding)
    except OutOfMemoryError as error:
        raise named(error, phrase) from None


def place_host_argument(argument: Any, sharding: Any, layout: Any) -> Any:
    """Transfer an argument that is not an array on a warm call; called by the C++ jit.

    jaxlib's own transfer would share memory with the caller, and misread NumPy arrays that are not
    in native byte order. It calls this function instead if a layout is set for the argument; we set
    a `HostArgument`.
    """
    aval = layout.aval
    if type(argument) is np.ndarray and argument.dtype is aval.dtype:
        value = argument
    else:
        value = host_value(argument, aval, layout.describe())
        if value.dtype != aval.dtype:
            value = value.astype(aval.dtype)
    try:
        if not events.listeners:
            return buffers.put(value, aval, sharding)
        with events.because(_copied(layout.describe(), argument)):
            return buffers.put(value, aval, sharding)
    except OutOfMemoryError as error:
        raise named(error, layout.describe()) from None


def _copied(what: str, value: Any) -> events.Cause:
    """Why an argument is copied to a device."""
    kind = type(value).__name__
    remedy = "make it an array once, with dovetail.numpy.asarray(x) or dovetail.device_put(x)"
    if isinstance(value, bool | int | float | complex):
        remedy = ""
    reason = f"{what} is of type {kind}, and is copied in each call"
    return events.Cause(reason, remedy, _path(what))


def _path(what: str) -> str:
    """The argument's path in a phrase such as ``the argument params['w'] of step``."""
    return what.removeprefix("the argument ").rpartition(" of ")[0] or what


def _moved(what: str, buffer: Any, sharding: Any) -> events.Cause:
    """Why an array is moved to other devices."""
    before, after = str(buffer._sharding), str(sharding)
    return events.Cause(
        f"{what} is placed as {before}, and the program takes it as {after}",
        "place it once, with dovetail.device_put(x, sharding)",
        _path(what),
        before,
        after,
    )


class HostArgument:
    """What a warm call needs to know about an argument that is not an array.

    Args:
        aval: the argument's aval.
        describe: returns a phrase for an argument by its index, for messages.
        number: the argument's index.
    """

    __slots__ = ("_describe", "aval", "number")

    def __init__(self, aval: Any, describe: Callable[[int], str] | None, number: int) -> None:
        self.aval = aval
        self._describe = describe
        self.number = number

    def describe(self) -> str:
        """A phrase for the argument."""
        return f"argument {self.number}" if self._describe is None else self._describe(self.number)


def resolve_device(
    leaves: Sequence[Any],
    function: str,
    describe: Callable[[int], str] | None = None,
    *,
    mixed: bool = False,
) -> tuple[Any, bool]:
    """Where a program runs: on the devices its arguments are committed to, or the default ones.

    Args:
        leaves: the flat arguments.
        function: the function's name, for the message.
        describe: returns a phrase for an argument by its index, for the message.
        mixed: whether arguments may be in different memories of the device.

    Returns:
        The sharding, and whether the results are committed.

    Raises:
        DeviceMismatchError: arguments are committed to different devices, or to others than those
            of the mesh that is set.
        DeletedArrayError: an argument was deleted or donated.
    """
    place = committed_place(leaves, function, describe, mixed=mixed)
    default, on_mesh = default_place()
    if place is None:
        return (Placement([None] * len(leaves), None, default) if on_mesh else default), on_mesh
    if on_mesh and place._device_list != default._device_list:
        raise _beside_the_mesh(leaves, default, function, describe)
    return place, True


def committed_place(
    leaves: Sequence[Any],
    function: str,
    describe: Callable[[int], str] | None = None,
    *,
    mixed: bool = False,
) -> Any:
    """Where the arguments of a program are committed to; None if none is.

    `resolve_device` says what the arguments are, and what is raised.
    """
    common: Any = None
    first = -1
    for number, leaf in enumerate(leaves):
        kind = type(leaf)
        if kind is Array or kind is KeyArray:
            buffer = leaf._buffer
            if buffer._committed:
                place = on_its_device(buffer._sharding)
                if common is None:
                    common, first = place, number
                elif place is not common and _are_apart(place, common, mixed):
                    raise _mismatch(leaves, (first, number), function, describe)
    if common is None:
        return None
    return _place_of(leaves, common)


def _beside_the_mesh(
    leaves: Sequence[Any],
    default: Any,
    function: str,
    describe: Callable[[int], str] | None,
) -> DeviceMismatchError:
    places = list(map(_committed_place, leaves))
    number = next(n for n, place in enumerate(places) if place is not None)
    name = f"argument {number}" if describe is None else describe(number)
    return DeviceMismatchError(
        f"{function} got {name} ({short_type(leaves[number].aval)}), which is committed to other "
        f"devices than those of the mesh that is set: its sharding is {places[number]}, and "
        f"programs run on {default.mesh}. Move it with dovetail.device_put(x, PartitionSpec()), or "
        "compute with it under dovetail.set_mesh(None)"
    )


class AskedPlaces(NamedTuple):
    """The shardings that a program asks for.

    Attributes:
        arguments: one for each argument, or None.
        results: one for each result, or None.
        inside: those of values inside the program.
    """

    arguments: Sequence[Any]
    results: Sequence[Any]
    inside: Sequence[Any]


def shardings_inside(equations: Iterable[JaxprEqn]) -> tuple[Any, ...]:
    """The shardings over devices that equations ask for, each once."""
    found: dict[Any, None] = {}
    for equation in equations:
        parameter = equation.primitive.sharding_parameter
        if parameter and equation.params.get(parameter) is not None:
            # Types name no devices: those of the current mesh are meant, if it is such a mesh.
            divided = equation.params[parameter]
            current: Any = current_mesh()
            if isinstance(current, Mesh) and current.shape_tuple == divided.mesh.shape_tuple:
                found[NamedSharding(current, PartitionSpec())] = None
            continue
        parameter = equation.primitive.device_parameter
        given = equation.params[parameter] if parameter else None
        if isinstance(given, Mesh):
            given = NamedSharding(given, PartitionSpec())
        if isinstance(getattr(given, "mesh", None), Mesh):
            found[given] = None
    return tuple(found)


def resolve_asked(
    leaves: Sequence[Any],
    asked: AskedPlaces,
    function: str,
    describe: Callable[[int], str] | None = None,
) -> Any:
    """Where a program runs that asks for shardings.

    Args:
        leaves: the flat arguments, which may be abstract.
        asked: what it asks for.
        function: the function's name, for the message.
        describe: returns a phrase for an argument by its index, for the message.

    Raises:
        DeviceMismatchError: an argument is committed to another sharding than the one that is asked
            for, or shardings are on different devices.
    """
    shardings = []
    for number, (leaf, wanted) in enumerate(zip(leaves, asked.arguments, strict=True)):
        present = _committed_place(leaf)
        if wanted is not None:
            name = f"argument {number}" if describe is None else describe(number)
            shape = getattr(leaf, "shape", ())
            if present is not None and not present.is_equivalent_to(wanted, len(shape)):
                raise DeviceMismatchError(
                    f"{function} got {name} with the sharding {present}, and in_shardings asks for "
                    f"{wanted}. Move it with dovetail.device_put(x, sharding) before the call"
                )
        shardings.append(present if wanted is None else wanted)
    known = [s for s in (*shardings, *asked.results, *asked.inside) if s is not None]
    for other in known:
        if other._device_list != known[0]._device_list:
            raise DeviceMismatchError(
                f"{function} asks for shardings on different devices: {known[0]} and {other}"
            )
    if len(known[0]._device_list) == 1:
        return _on_one_device(shardings, asked.results, known)
    return Placement(shardings, asked.results, known[0])


def _on_one_device(shardings: Sequence[Any], results: Sequence[Any], known: Sequence[Any]) -> Any:
    """Where a program runs on one device: a placement on a mesh, or of data in several memories."""
    named = [s for s in known if isinstance(s, NamedSharding)]
    if named:
        return Placement(shardings, results or None, NamedSharding(named[0].mesh, PartitionSpec()))
    first = on_its_device(known[0])
    memory = _memory(first._device)
    if all(s.memory_kind == memory for s in known) or first._plugin_client is not None:
        return first
    own, asked = (
        [None if s is None else on_its_device(s) for s in places] for places in (shardings, results)
    )
    return Placement(own, asked or None, SingleDeviceSharding(first._device))


def check_divisions(leaves: Sequence[Any], describe: Callable[[int], str]) -> None:
    """Raise unless abstract arguments can be divided as their shardings say; arrays are.

    Args:
        leaves: the flat arguments.
        describe: returns a phrase for an argument by its index, for the message.

    Raises:
        ShapeError: one cannot.
    """
    for number, leaf in enumerate(leaves):
        place = None if isinstance(leaf, (Array, KeyArray)) else _committed_place(leaf)
        if place is None or len(place._device_list) == 1:
            continue
        try:
            place.shard_shape(leaf.shape)
        except ShapeError as error:
            raise ShapeError(f"{describe(number)}: {error}") from None


def misplaced(leaves: Sequence[Any], shardings: Sequence[Any]) -> int | None:
    """The number of the first argument that is committed to another sharding than the one given."""
    for number, (leaf, expected) in enumerate(zip(leaves, shardings, strict=True)):
        place = _committed_place(leaf)
        if place is not None and not place.is_equivalent_to(expected, len(leaf.shape)):
            return number
    return None


def on_its_device(place: Any) -> Any:
    """The sharding of the only device of a mesh; any other sharding itself."""
    if type(place) is SingleDeviceSharding or len(place._device_list) > 1:
        return place
    return SingleDeviceSharding(place._device, place.memory_kind)


def partitioning(place: Any, count: int) -> dict[str, Any]:
    """What lowering is told of a program's devices.

    Args:
        place: where it runs; None for one device.
        count: the number of its arguments.
    """
    if place is None:
        return {}
    if type(place) is SingleDeviceSharding:
        if place.memory_kind == _memory(place._device):
            return {}
        return {"arg_memories": [place.memory_kind] * count}
    arguments = [place._of_argument(number) for number in range(count)]
    asked = place.asked
    options: dict[str, Any] = {}
    memory = _memory(place._device)
    kinds = [s.memory_kind for s in arguments]
    wanted = [None if s is None else s.memory_kind for s in asked or ()]
    if any(kind not in (None, memory) for kind in (*kinds, *wanted)):
        given = place._shardings
        options["arg_memories"] = [
            "any" if own is None else None if own.memory_kind == memory else own.memory_kind
            for own in given
        ]
        options["result_memories"] = wanted or None
    if len(place._device_list) > 1:
        options["arg_shardings"] = arguments
        options["result_shardings"] = asked
        options["num_partitions"] = len(place._device_list)
        options["mesh"] = place._replicated.mesh
    return options


@caches.lru_cache(maxsize=4096)
def _memory(device: Any) -> str:
    """The kind of memory in which a device computes."""
    return memory_kinds(device)[0]


def resolve_place(
    leaves: Sequence[Any], function: str, describe: Callable[[int], str] | None = None
) -> Any:
    """`resolve_device` for arguments that may be abstract, with or without a sharding.

    Args:
        leaves: the flat arguments: arrays, or anything with a shape and a dtype.
        function: the function's name, for the message.
        describe: returns a phrase for an argument by its index, for the message.

    Returns:
        The sharding; None if neither an argument nor a mesh determines it.

    Raises:
        DeviceMismatchError: arguments are committed to different devices.
    """
    common: Any = None
    first = -1
    for number, leaf in enumerate(leaves):
        place = _committed_place(leaf)
        if place is None:
            continue
        place = on_its_device(place)
        if common is None:
            common, first = place, number
        elif place is not common and _are_apart(place, common, True):
            raise _mismatch(leaves, (first, number), function, describe)
    if common is not None:
        return _place_of(leaves, common)
    default, on_mesh = default_place()
    return Placement([None] * len(leaves), None, default) if on_mesh else None


def _place_of(leaves: Sequence[Any], common: Any) -> Any:
    """Where a program runs that has arguments on the devices of a sharding."""
    shardings = list(map(_committed_place, leaves))
    if len(common._device_list) > 1:
        return Placement(shardings)
    return _on_one_device(shardings, (), [s for s in shardings if s is not None])


def _are_apart(place: Any, other: Any, mixed: bool) -> bool:
    """Whether no program runs on both: it divides arguments in many ways, over the same devices."""
    same = place._device_list == other._device_list
    return not same or not (mixed or place.memory_kind == other.memory_kind)


def _committed_place(leaf: Any) -> Any:
    if type(leaf) is Array or type(leaf) is KeyArray:
        return leaf._buffer._sharding if leaf._buffer._committed else None
    if getattr(leaf, "committed", True) is False:  # a mutable reference
        return None
    sharding = getattr(leaf, "sharding", None)
    if type(sharding) is Format:
        automatic = isinstance(sharding.layout, AutoLayout)
        what = "the sharding of an argument"
        sharding = sharding.sharding if automatic else in_own_order(sharding, what)
    if isinstance(getattr(sharding, "mesh", None), AbstractMesh):
        return None  # it says how an array is divided, and not over which devices
    return sharding if isinstance(sharding, Sharding) else None


def _mismatch(
    leaves: Sequence[Any],
    numbers: tuple[int, int],
    function: str,
    describe: Callable[[int], str] | None,
) -> DeviceMismatchError:
    names = [f"argument {n}" if describe is None else describe(n) for n in numbers]
    places = [on_its_device(_committed_place(leaves[n])) for n in numbers]
    devices = [place._device for place in places]
    texts = [f"is on {clients.describe_device(device)}" for device in devices]
    compiled_for = any(map(clients.is_compile_only, devices))
    if any(len(place._device_list) > 1 for place in places):
        what = "different devices"
        texts = [f"has the sharding {place}" for place in places]
        advice = (
            "Move one of them with dovetail.device_put(x, y.sharding); a program runs on the same "
            "devices in the same order for all its arguments"
        )
    elif devices[0] is devices[1]:
        what = "different memories of one device"
        texts = [f"{text}, memory {p.memory_kind!r}" for text, p in zip(texts, places, strict=True)]
        advice = (
            "Move one of them with dovetail.device_put(x, x.sharding.with_memory_kind(kind))"
            if not compiled_for
            else "Give all of them shardings with one memory kind"
        )
    elif compiled_for:
        what = "different devices"
        advice = "Give all of them shardings on one device, or leave out those of all but one"
    else:
        what = "different devices"
        advice = (
            "Move one of them with dovetail.device_put(x, device), or make it without a device, so "
            "that it follows the others"
        )
    lines = [
        f"{name} ({short_type(getattr(leaves[n], 'aval', leaves[n]))}) {text}"
        for name, n, text in zip(names, numbers, texts, strict=True)
    ]
    return DeviceMismatchError(
        f"{function} got arguments that are committed to {what}: {lines[0]}, and {lines[1]}. "
        f"{advice}"
    )


def from_foreign(buffer: Any) -> Array:
    """Copy another framework's array, which is a bare buffer of jaxlib."""
    value = checked_ndarray(np.asarray(buffer), "the array of another framework")
    return array_from_buffer(buffers.put(value, numpy_aval(value), default_sharding()))


def literal_value(literal: Literal) -> Any:
    """A host value or an array with exactly the literal's aval."""
    value, aval = literal.val, literal.aval
    if aval.weak_type:
        unsigned = aval.dtype.kind == "u"  # Python scalars are signed; this value may be too large
        if not unsigned and not isinstance(value, np.generic) and aval_of(value) is aval:
            return value
        array = np.asarray(value, aval.dtype)
        return array_from_buffer(buffers.put(array, aval, default_sharding()))
    return np.asarray(value, aval.dtype)[()]
