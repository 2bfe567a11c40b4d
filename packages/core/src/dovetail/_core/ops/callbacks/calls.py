"""Common parts of callbacks: the function, its call in a program, the runtime slot, batching."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import caches, dtypes, pytree
from dovetail._core.base.records import record
from dovetail._core.base.source import describe
from dovetail._core.basis.structural import batch_size, to_front
from dovetail._core.ir.avals import abstract_token, aval_of, physical_aval
from dovetail._core.ir.effects import HostEffect, debug_effect
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.ops.callbacks.failing import Failures
from dovetail._core.trace.divisions import Labels, gathered_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.transform.batch import batched_aval, unbatched_aval
from dovetail._core.transform.flattening import location_of, name_of
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: The name of the operation that calls Python, by platform: with whole values, and with parts.
_TARGETS: Final = {
    "cpu": "xla_ffi_python_cpu_callback",
    "cuda": "xla_ffi_python_gpu_callback",
    "rocm": "xla_ffi_python_gpu_callback",
}
#: The same where Python reads and writes the program's memory, which saves a copy of each value.
_IN_MEMORY: Final = {**_TARGETS, "cpu": "xla_buffer_python_cpu_callback"}
_PARTITIONED: Final = {
    platform: name.replace("_python_", "_partitioned_python_")
    for platform, name in _TARGETS.items()
}


@record(eq=False)
class FlatCallback:
    """A user's function as a parameter of a primitive.

    Equal if the functions are, so that equal functions share a compiled program.

    Attributes:
        callback_func: the function.
        in_tree: the structure of its arguments, ``(args, kwargs)``.
        out_tree: the structure that its result must have; None if the result is ignored.
        text: its name in messages, if not that of the function.
    """

    holds_function: ClassVar[bool] = True

    callback_func: Callable[..., Any]
    in_tree: Any
    out_tree: Any = None
    text: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FlatCallback) and (
            (self.callback_func is other.callback_func or self.callback_func == other.callback_func)
            and self.in_tree == other.in_tree
            and self.out_tree == other.out_tree
        )

    def __hash__(self) -> int:
        try:
            return hash(self.callback_func)
        except TypeError:
            return id(self.callback_func)

    def __repr__(self) -> str:
        return f"_FlatCallback(callback_func={self.callback_func}, in_tree={self.in_tree})"

    def called_on(self, leaves: Sequence[Any]) -> list[Any]:
        """The flat results of the function for flat arguments."""
        args, kwargs = pytree.unflatten(self.in_tree, leaves)
        return list(pytree.leaves(self.callback_func(*args, **kwargs)))

    @property
    def place(self) -> str:
        """The name of the function and where it is defined, for messages."""
        if self.text:
            return f"{self.text!r:.60}"
        where = location_of(self.callback_func)
        return f"{name_of(self.callback_func)}{f' ({where})' if where else ''}"


@record
class HostCall:
    """The description of a Python call in a program, for the runtime.

    Attributes:
        caller: the API function that created it.
        callback: the function.
        avals_in: avals of the arguments.
        avals_out: avals of the results.
        ordered: whether it takes and returns a token.
        where: the line in the user's code.
        device: the device that makes it, None for the first one of the program.
        failures: where its exceptions go in a program over several devices, else None.
        in_memory: whether it is given the memory of the program, also that of its results.
    """

    caller: str
    callback: FlatCallback
    avals_in: tuple[Any, ...]
    avals_out: tuple[Any, ...]
    ordered: bool
    where: str
    device: Any = None
    failures: Failures | None = None
    in_memory: bool = False

    def check_device(self, devices: Sequence[Any]) -> None:
        """Raise ValueError unless it is made by one of these, those of the program."""
        if self.device is not None and self.device not in devices:
            raise ValueError(
                f"sharding of {self.caller} says that {self.device} calls "
                f"{self.callback.place} (used at {self.where}), and the program runs on "
                f"{', '.join(map(str, devices))}; name one of these, or leave sharding out"
            )


class _Runtime:
    """The slot that the runtime fills in.

    Attributes:
        call: runs a host call now, from arrays to arrays.
    """

    __slots__ = ("call",)

    def __init__(self) -> None:
        self.call: Callable[[HostCall, Sequence[Any]], list[Any]] | None = None


_runtime: Final = _Runtime()


def set_host(call: Callable[[HostCall, Sequence[Any]], list[Any]]) -> None:
    """Install the function that runs callbacks eagerly; called once, by the runtime."""
    _runtime.call = call


def call_now(
    caller: str,
    callback: FlatCallback,
    args: Sequence[Any],
    outs: Sequence[Any],
    ordered: bool,
    sharding: Any = None,
) -> list[Any]:
    """Call a callback on arrays, outside programs."""
    assert _runtime.call is not None
    avals, device = tuple(map(aval_of, args)), _device_of(sharding)
    call = HostCall(caller, callback, avals, tuple(outs), ordered, describe(), device)
    return _runtime.call(call, args)


def check_device_sharding(sharding: Any, caller: str) -> None:
    """Raise unless the argument `sharding` of a callback is that of one device, or None."""
    if sharding is None:
        return
    if not hasattr(sharding, "device_set"):
        raise TypeError(
            f"{caller}: sharding must be a SingleDeviceSharding, which says which of the program's "
            f"devices calls the function, or None for the first one; got {sharding!r:.80}"
        )
    if hasattr(sharding, "mesh") or len(sharding.device_set) != 1:
        raise NotImplementedError(
            f"{caller}: one device calls the function, with whole values, and sharding must be "
            f"its SingleDeviceSharding; got {sharding!r:.200}. To call it on each device with its "
            "part, write the call in shard_map; to divide results, constrain them with "
            "lax.with_sharding_constraint"
        )


def _device_of(sharding: Any) -> Any:
    return None if sharding is None else next(iter(sharding.device_set))


def target_of(context: Builder, targets: Mapping[str, str]) -> tuple[str | None, str]:
    """The target by which a program calls Python, and the line in the user's code.

    Args:
        context: the builder.
        targets: names of targets, by platform.

    Returns:
        The name, or None if the platforms of the program have none in common, and the line.
    """
    names = {targets.get(platform) for platform in context.platforms}
    eqn = context.equation
    where = describe(None if eqn is None else eqn.traceback)
    return (names.pop() if len(names) == 1 else None), where


def packed(aval: Any) -> bool:
    """Whether several elements of such values share a byte of memory, which NumPy cannot view."""
    dtype = physical_aval(aval).dtype
    return bool(dtypes.whole_bytes(dtype) != dtype)


class Observation(Primitive):
    """Base of primitives without results, which ignore tangents."""

    multiple_results = True
    types_axes = True
    accepts_zeros = True
    has_effects = True
    calls_host = True

    def abstract(self, *avals: Any, **params: Any) -> Any:
        return []

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return gathered_labels(avals, results)

    def reference(self, *args: Any, **params: Any) -> Any:
        return []

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*primals, **params), []


def call_in_program(
    context: Builder,
    values: Sequence[Any],
    caller: str,
    callback: FlatCallback,
    effect: HostEffect | None,
    *,
    sharding: Any = None,
    partitioned: bool = False,
    avals: tuple[Sequence[Any], Sequence[Any]] | None = None,
) -> list[Any]:
    """The operation that calls a callback when the program runs.

    In a program over several devices one of them makes the call, with whole values.

    Args:
        context: the builder.
        values: the operands.
        caller: the API function.
        callback: the user's function.
        effect: the side effect, None for a pure function.
        sharding: that of the device that makes the call, None for the first one.
        partitioned: whether each device makes the call, with its parts.
        avals: types of the operands and of the results; by default those of the equation.

    Raises:
        NotImplementedError: the platform cannot call Python, or each device handles its part.
        ValueError: the program does not run on that device, or calls on each device have no order.
    """
    mesh = None if context.partitioning is None else context.partitioning.mesh
    partitioned = partitioned and mesh is not None and context.manual is None
    ordered = effect is not None and effect.ordered
    avals_in, avals_out = map(tuple, avals or (context.avals_in, context.avals_out))
    whole = _TARGETS
    # Tokens have no memory.
    if not ordered and context.partitioning is None and not any(map(packed, avals_in + avals_out)):
        whole = _IN_MEMORY
    target, where = target_of(context, _PARTITIONED if partitioned else whole)
    if target is None:
        raise NotImplementedError(
            f"{caller}: programs for {' and '.join(context.platforms)} cannot call Python "
            f"(used at {where}); a backend or an extension can give {caller!r} a lowering"
        )
    device = _device_of(sharding)
    failures = None if context.partitioning is None else Failures()
    in_memory = target == _IN_MEMORY["cpu"]
    call = HostCall(
        caller, callback, avals_in, avals_out, ordered, where, device, failures, in_memory
    )
    position = 0
    if device is not None and context.manual is not None:
        raise NotImplementedError(
            f"{caller}: inside shard_map each device calls {callback.place} (used at {where}) "
            "with its part; leave sharding out"
        )
    if device is not None and mesh is not None:
        devices = list(mesh.devices.flat)
        call.check_device(devices)
        position = devices.index(device)
    if partitioned and ordered:
        raise ValueError(
            f"{caller} with partitioned=True (used at {where}) is called by each device, and calls "
            "by several devices have no order; leave out ordered=True"
        )
    index = context.host_callback(call)
    operands, outs = list(values), list(avals_out)
    if ordered:
        operands.insert(0, context.token(effect))
        outs.insert(0, abstract_token)
    types = [context.types[aval] for aval in outs]
    options: dict[str, Any] = {
        "has_side_effect": effect is not None,
        "result_layouts": [tuple(range(getattr(t, "rank", 0)))[::-1] for t in types],
    }
    config = {"index": np.uint64(index)}
    automatic = context.automatic
    if automatic and effect is not None:
        assert context.manual is not None
        if outs or effect is not debug_effect:
            raise NotImplementedError(
                f"{caller} inside a shard_map along only some axes (used at {where}): the devices "
                f"along {', '.join(map(repr, automatic))} share a part, and each of them would "
                f"call {callback.place}; name all axes in axis_names of shard_map"
            )
        return context.manual_computation(
            lambda *parts: context.custom_call(target, parts, outs, config, **options),
            operands,
            avals_in,
            avals_out,
            mesh=context.manual.mesh,
            axes=frozenset(automatic),
            in_specs=[PartitionSpec()] * len(operands),
            out_specs=(),
        )
    if partitioned:
        return context.custom_call(target, operands, outs, config, **options)
    results = context.call_on_one_device(target, operands, outs, config, position, **options)
    if ordered:
        context.set_token(effect, results.pop(0))
    return results


@caches.lru_cache(maxsize=256)
def _element(
    primitive: Primitive, params: tuple[tuple[str, Any], ...], avals: tuple[Any, ...]
) -> ClosedJaxpr:
    """The jaxpr of one call; equal calls share the object, since it is part of a cache key."""
    call_params = dict(params)
    return stage(
        lambda *args: primitive.bind(*args, **call_params), avals, DebugInfo("vmap", primitive.name)
    )


def for_each(
    primitive: Primitive,
    args: Sequence[Any],
    dims: Sequence[int | None],
    params: dict[str, Any],
    unrolled: bool = False,
) -> tuple[list[Any], list[int | None]]:
    """A batching rule: apply the primitive to one element after another, in a loop.

    Args:
        primitive: the primitive.
        args: its operands.
        dims: their batch dimensions.
        params: its parameters.
        unrolled: whether to repeat the call in the program instead of a loop.
    """
    size = batch_size(args, dims)
    fixed = [x for x, d in zip(args, dims, strict=True) if d is None]
    mapped = [to_front(x, d, size) for x, d in zip(args, dims, strict=True) if d is not None]
    avals = [
        aval_of(x) if d is None else unbatched_aval(aval_of(x), d)
        for x, d in zip(args, dims, strict=True)
    ]
    order = [i for i, d in enumerate(dims) if d is None] + [
        i for i, d in enumerate(dims) if d is not None
    ]
    body = _reordered(_element(primitive, tuple(params.items()), tuple(avals)), tuple(order))
    from dovetail._core.ops.control.scan import scan_p  # deferred: seldom needed

    outs: list[Any] = scan_p.bind(
        *fixed,
        *mapped,
        jaxpr=body,
        length=size,
        reverse=False,
        num_consts=len(fixed),
        num_carry=0,
        unroll=max(size, 1) if unrolled else 1,
        linear=(False,) * len(args),
        _split_transpose=False,
    )
    return outs, [0] * len(outs)


@caches.lru_cache(maxsize=256)
def _reordered(closed: ClosedJaxpr, order: tuple[int, ...]) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    return closed.replace(jaxpr=jaxpr.replace(invars=[jaxpr.invars[i] for i in order]))


def batched_results(avals: Sequence[Any], size: int) -> tuple[Any, ...]:
    """The avals of results with a leading batch dimension."""
    return tuple([batched_aval(aval, size, 0) for aval in avals])
