"""`ffi_call`: native functions, called from programs through XLA's foreign function interface."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.counting import counted
from dovetail._core.base.records import record
from dovetail._core.base.source import describe
from dovetail._core.base.typing import ArrayLike
from dovetail._core.basis.structural import batch_size, to_front
from dovetail._core.ir.avals import AbstractToken, aval_of
from dovetail._core.ir.effects import io_effect
from dovetail._core.ir.jaxpr import Effects, no_effects
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.ir.shown_params import ShownParams, never
from dovetail._core.ops.callbacks.native_targets import RequiredTarget, is_batch_partitionable
from dovetail._core.ops.callbacks.values import (
    batched_by_method,
    check_vmap_method,
    flat_operands,
    promised_one,
)
from dovetail._core.trace.divisions import Labels, gathered_labels
from dovetail._core.trace.manual_axes import joined, wanted_types
from dovetail._core.trace.primitive import Primitive

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

_TYPED: Final = 4
"""The version of XLA's interface from which on calls have attributes."""

Order = tuple[int, ...]
"""The dimensions of an array, from the slowest to the fastest varying."""


class ConstantArray:
    """A NumPy array as a static argument, equal to others of the same content."""

    __slots__ = ("_key", "array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = np.array(array, order="C")
        self.array.flags.writeable = False
        self._key = (self.array.dtype, self.array.shape, self.array.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantArray) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self.array)


@record
class ConstantMapping:
    """A dictionary as a static argument.

    Attributes:
        entries: its names and values.
    """

    entries: tuple[tuple[str, Any], ...]


@record
class Constant:
    """A number as a static argument; numbers of different types differ.

    Attributes:
        kind: its type.
        number: the number.
    """

    kind: type
    number: Any

    def __repr__(self) -> str:
        return repr(self.number)


def _constant(value: Any, where: str) -> Hashable:
    """A static argument of a call in a form that can be compared."""
    if isinstance(value, np.ndarray):
        return ConstantArray(value)
    if isinstance(value, Mapping):
        names = [name for name in value if not isinstance(name, str)]
        if names:
            raise TypeError(f"{where}: the names in a dictionary are strings, got {names[0]!r}")
        return ConstantMapping(
            tuple([(n, _constant(v, f"{where}[{n!r}]")) for n, v in sorted(value.items())])
        )
    if isinstance(value, tuple):
        return tuple([_constant(v, f"{where}[{i}]") for i, v in enumerate(value)])
    known = isinstance(value, bool | int | float | str | bytes | np.bool_ | np.number)
    if not known or isinstance(value, np.complexfloating):
        raise TypeError(
            f"{where}: a static argument of native code is a bool, int, float or str, a value or "
            "array of NumPy's, or a tuple or dictionary of these; got "
            f"{value!r:.80} of type {type(value).__name__}"
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError(
            f"{where}: native code takes an int as int64, and {value} is too large; write "
            "numpy.uint64(...) or a float"
        )
    return Constant(type(value), value)


def _attribute(context: Any, value: Any) -> Any:
    """A static argument as an attribute of an operation."""
    if isinstance(value, ConstantArray):
        return context.attribute(value.array)
    if isinstance(value, ConstantMapping):
        return context.dictionary({name: _attribute(context, v) for name, v in value.entries})
    if isinstance(value, tuple):
        return context.array([_attribute(context, v) for v in value])
    return context.attribute(value.number)


class FfiCall(Primitive):
    """Calls a native function, which is otherwise opaque."""

    name = "ffi_call"
    multiple_results = True
    types_axes = True
    has_effects = True
    no_derivative = "nothing is known of a native function but its results"
    shown_params: ClassVar[ShownParams] = {"batch_dims": never}

    def abstract(self, *avals: Any, result_avals: tuple[Any, ...], **params: Any) -> Any:
        together = joined(wanted_types(self.name, avals, ()))
        return [
            out
            if isinstance(out, AbstractToken)
            else out.update(manual_axis_type=out.manual_axis_type | together)
            for out in result_avals
        ]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return gathered_labels(avals, results)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> NoReturn:
        raise ValueError(
            f"ffi_call has no derivative: dovetail cannot see into {params['target_name']!r} "
            f"(called at {describe()}). Give the function that calls it a rule with "
            "dovetail.custom_jvp or dovetail.custom_vjp, or pass its arguments through "
            "dovetail.lax.stop_gradient"
        )

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        method = params["vmap_method"]
        callee = repr(params["target_name"])
        if method is None or method.startswith("sequential"):
            return batched_by_method(self, args, dims, params, callee)
        # What is written over has the shape of the result.
        size = batch_size(args, dims)
        written = {number for number, _ in params["input_output_aliases"]}
        args = [
            to_front(x, d, size) if number in written else x
            for number, (x, d) in enumerate(zip(args, dims, strict=True))
        ]
        dims = [0 if number in written else d for number, d in enumerate(dims)]
        kept = method == "legacy_vectorized"
        params = params | {
            "batch_dims": params["batch_dims"] + 1 if method == "broadcast_all" else 0,
            "input_layouts": tuple(
                [
                    layout if kept and d is None else _with_batch(layout)
                    for layout, d in zip(params["input_layouts"], dims, strict=True)
                ]
            ),
            "output_layouts": tuple(map(_with_batch, params["output_layouts"])),
        }
        return batched_by_method(self, args, dims, params, callee)

    def lower(
        self,
        context: Builder,
        *values: Any,
        target_name: str,
        attributes: tuple[tuple[str, Any], ...],
        custom_call_api_version: int,
        has_side_effect: bool,
        input_layouts: tuple[Order, ...],
        output_layouts: tuple[Order, ...],
        input_output_aliases: tuple[tuple[int, int], ...],
        legacy_backend_config: str | None,
        batch_dims: int,
        **params: Any,
    ) -> Any:
        for platform in context.platforms:
            context.require(RequiredTarget(target_name, platform))
        config: Any = {name: _attribute(context, value) for name, value in attributes}
        if custom_call_api_version < _TYPED:
            config = legacy_backend_config or ""
        divided = is_batch_partitionable(target_name) and not has_side_effect
        avals_in, avals_out = list(context.avals_in), list(context.avals_out)

        def call(*operands: Any) -> Any:
            return context.custom_call(
                target_name,
                operands,
                avals_out,
                config,
                has_side_effect=has_side_effect,
                operand_layouts=[layout[::-1] for layout in input_layouts],
                result_layouts=[layout[::-1] for layout in output_layouts],
                aliases=dict(input_output_aliases),
                api_version=custom_call_api_version,
                batch_dims=batch_dims if divided else 0,
            )

        manual, automatic = context.manual, context.automatic
        free = manual is not None and not automatic
        if not has_side_effect or context.partitioning is None or free:
            return call(*values)
        # The partitioner refuses calls with side effects; here it has nothing to divide.
        mesh = tuple(context.partitioning.mesh.shape.items()) if manual is None else manual.mesh
        return context.manual_computation(
            call,
            values,
            avals_in,
            avals_out,
            mesh=mesh,
            axes=frozenset(automatic or [name for name, _ in mesh]),
            in_specs=[PartitionSpec()] * len(avals_in),
            out_specs=[PartitionSpec()] * len(avals_out),
        )

    def effects(self, *avals: Any, has_side_effect: bool, **params: Any) -> Effects:
        return frozenset({io_effect}) if has_side_effect else no_effects


ffi_call_p: Final = FfiCall()


def _with_batch(layout: Order) -> Order:
    return (0, *[d + 1 for d in layout])


def _ranks(avals: Sequence[Any]) -> list[int]:
    return [0 if isinstance(aval, AbstractToken) else aval.ndim for aval in avals]


def _orders(layouts: Any, avals: Sequence[Any], what: str) -> tuple[Order, ...]:
    """The order of dimensions of each array; row-major where nothing else is said."""
    ranks = _ranks(avals)
    if layouts is None:
        layouts = [None] * len(ranks)
    if isinstance(layouts, str) or not isinstance(layouts, Sequence):
        raise TypeError(f"{what} is a sequence with a layout for each array, got {layouts!r:.80}")
    if len(layouts) != len(ranks):
        raise ValueError(
            f"{what} has {counted(len(layouts), 'layout')} for {counted(len(ranks), 'array')}; "
            "give one for each, None for row-major order"
        )
    return tuple(
        [
            _order(layout, rank, f"{what}[{i}]")
            for i, (layout, rank) in enumerate(zip(layouts, ranks, strict=True))
        ]
    )


def _order(layout: Any, rank: int, where: str) -> Order:
    if layout is None:
        return tuple(range(rank))
    order = getattr(layout, "major_to_minor", layout)
    if not isinstance(order, Sequence) or sorted(order) != list(range(rank)):
        raise ValueError(
            f"{where}: a layout of an array of {rank} dimensions names each of them once, from the "
            f"slowest to the fastest varying, such as {tuple(range(rank))} for row-major order; "
            f"got {layout!r:.80}"
        )
    return tuple(order)


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """Make a function of arrays that calls native code, in programs and outside of them.

    The native code is a handler of XLA's foreign function interface, registered under a name by
    `register_ffi_target`; docs/write-a-kernel.md shows one. It gets the memory of the arguments and
    of the results.

    Args:
        target_name: the name.
        result_shape_dtypes: an object with ``shape`` and ``dtype``, such as
            `dovetail.ShapeDtypeStruct`, or a sequence of them for several results;
            `dovetail.ffi.abstract_token` for a token.
        has_side_effect: whether to call it even if its results are unused.
        vmap_method: how to vectorize under `dovetail.vmap`, as for `dovetail.pure_callback`.
        input_layouts: for each argument the order of its elements in memory: a `Layout`, or its
            dimensions from the slowest to the fastest varying; None for row-major order.
        output_layouts: the same for the results; one layout if there is one result.
        input_output_aliases: maps the index of an argument to that of the result that starts with
            its value, in the same memory if nothing else needs it.
        custom_call_api_version: the version of XLA's interface by which the function was written;
            4 for handlers, older ones for functions of plain pointers.
        legacy_backend_config: text for a function of an older version.

    Returns:
        A function of arrays, and of static arguments by keyword: bools, ints (int64), floats
        (float64), strings, values and arrays of NumPy's (of exactly their dtype), and tuples and
        dictionaries of these. It returns an array, or a list of arrays if `result_shape_dtypes` is
        a sequence.

    Raises:
        TypeError: a result type has no shape or dtype, or a static argument is none of these.
        ValueError: an argument does not fit the others, or the function is differentiated.
        NotImplementedError: the function is mapped, but has no `vmap_method`.
        RuntimeError: nothing is registered under the name when a program is compiled.

    By default each device of a program over several calls it with whole values; in
    `dovetail.shard_map` with its part.

    Differs:
        A mapped call of a target that is registered as batch partitionable is divided over devices,
        with ``vmap_method="broadcast_all"``. A call with side effects works in programs over
        several devices.

        >>> from dovetail import ffi
        >>> call = ffi.ffi_call("acme", dt.ShapeDtypeStruct((2,), np.float32), has_side_effect=True)
        >>> print("has_side_effect = true" in dt.jit(call).lower(jnp.ones(2)).as_text())
        True

    Example:
        >>> import numpy as np
        >>> import dovetail as dt
        >>> from dovetail import ffi
        >>> result = dt.ShapeDtypeStruct((3,), np.float32)
        >>> scaled = lambda x: ffi.ffi_call("acme_scale", result)(x, factor=np.float32(2))
        >>> print(dt.make_jaxpr(scaled)(np.ones(3, np.float32)).eqns[0].primitive)
        ffi_call
    """
    if not isinstance(target_name, str):
        raise TypeError(f"ffi_call: target_name is a string, got {target_name!r:.80}")
    check_vmap_method(vmap_method, "ffi_call")
    single = not isinstance(result_shape_dtypes, list | tuple)
    promises = [result_shape_dtypes] if single else result_shape_dtypes
    avals = tuple(
        [
            p
            if isinstance(p, AbstractToken)
            else promised_one(p, "ffi_call", "" if single else f"[{i}]")
            for i, p in enumerate(promises)
        ]
    )
    if single and output_layouts is not None:
        output_layouts = [output_layouts]
    result_layouts = _orders(output_layouts, avals, "ffi_call: output_layouts")
    aliases = tuple(sorted((input_output_aliases or {}).items()))
    if legacy_backend_config is not None and custom_call_api_version >= _TYPED:
        raise ValueError(
            "ffi_call: legacy_backend_config is for custom_call_api_version < 4, got "
            f"{custom_call_api_version}; give static arguments by keyword instead"
        )

    def call(*args: ArrayLike, **attributes: Any) -> Any:
        leaves, _ = flat_operands(tuple(args), {}, "ffi_call")
        if len(leaves) != len(args):
            raise TypeError(
                f"ffi_call: the {counted(len(args), 'argument')} hold "
                f"{counted(len(leaves), 'array')}; native code takes arrays, not trees of them"
            )
        if attributes and custom_call_api_version < _TYPED:
            raise ValueError(
                f"ffi_call: functions of custom_call_api_version={custom_call_api_version} take no "
                f"static arguments, got {', '.join(attributes)}; write them into "
                "legacy_backend_config"
            )
        avals_in = list(map(aval_of, leaves))
        for number, aval in enumerate(avals_in):
            if not isinstance(aval, AbstractToken) and dtypes.is_extended(aval.dtype):
                raise TypeError(
                    f"ffi_call: args[{number}] is of {aval.dtype}, whose memory says nothing to "
                    "native code; pass its numbers (dovetail.random.key_data)"
                )
        in_layouts = _orders(input_layouts, avals_in, "ffi_call: input_layouts")
        _check_aliases(aliases, (avals_in, in_layouts), (avals, result_layouts))
        outs = ffi_call_p.bind(
            *leaves,
            attributes=tuple(
                [(n, _constant(v, f"ffi_call: {n}")) for n, v in sorted(attributes.items())]
            ),
            batch_dims=0,
            custom_call_api_version=int(custom_call_api_version),
            has_side_effect=bool(has_side_effect),
            input_layouts=in_layouts,
            input_output_aliases=aliases,
            legacy_backend_config=legacy_backend_config,
            output_layouts=result_layouts,
            result_avals=avals,
            target_name=target_name,
            vmap_method=vmap_method,
        )
        return outs[0] if single else outs

    return call


def _check_aliases(
    aliases: Sequence[tuple[int, int]],
    inputs: tuple[Sequence[Any], Sequence[Order]],
    outputs: tuple[Sequence[Any], Sequence[Order]],
) -> None:
    for number, out in aliases:
        if not (0 <= number < len(inputs[0]) and 0 <= out < len(outputs[0])):
            raise ValueError(
                f"ffi_call: input_output_aliases has {number}: {out}, with "
                f"{counted(len(inputs[0]), 'argument')} and {counted(len(outputs[0]), 'result')}, "
                "counted from 0"
            )
        given, wanted = [
            (a[i].short_name(), o[i]) for i, (a, o) in ((number, inputs), (out, outputs))
        ]
        if given != wanted:
            raise ValueError(
                f"ffi_call: argument {number} and result {out}, which are to have one memory, "
                f"differ: {given[0]} in the order {given[1]} and {wanted[0]} in the order "
                f"{wanted[1]}"
            )
    if len({out for _, out in aliases}) < len(aliases):
        raise ValueError(
            f"ffi_call: input_output_aliases {dict(aliases)} has one result for several arguments"
        )


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """Make a function that writes a call of native code into a program that is being lowered.

    Args:
        call_target_name: the name under which the native function is registered.
        operand_layouts: as `input_layouts` of `ffi_call`.
        result_layouts: as `output_layouts` of `ffi_call`, for each result.
        backend_config: static arguments that all calls have, or text for functions of an older
            version.
        skip_ffi_layout_processing: whether to leave the layouts to the compiler.
        **lowering_args: `has_side_effect`, `api_version`, `operand_output_aliases` and
            `extra_attributes` of the operation.

    Returns:
        A function of the builder that lowering rules get, of the values of the operands, and of
        further static arguments by keyword. It returns the operation.

    Raises:
        TypeError: there is no such argument of an operation.

    Example:
        >>> from dovetail import ffi
        >>> build = ffi.build_ffi_lowering_function("acme_scale", has_side_effect=True)
        >>> callable(build)
        True
    """
    unknown = lowering_args.keys() - {
        "api_version",
        "extra_attributes",
        "has_side_effect",
        "operand_output_aliases",
    }
    if unknown:
        raise TypeError(
            f"the lowering of {call_target_name!r} takes has_side_effect, api_version, "
            "operand_output_aliases and extra_attributes of the operation, not "
            f"{', '.join(sorted(unknown))}"
        )
    version = int(lowering_args.get("api_version", _TYPED))

    def build(context: Any, *operands: Any, **attributes: Any) -> Any:
        layouts: dict[str, Any] = {}
        if not skip_ffi_layout_processing:
            what = f"the lowering of {call_target_name!r}"
            taken = _orders(operand_layouts, context.avals_in, f"{what}: operand_layouts")
            given = _orders(result_layouts, context.avals_out, f"{what}: result_layouts")
            layouts = {
                "operand_layouts": [order[::-1] for order in taken],
                "result_layouts": [order[::-1] for order in given],
            }
        config: Any = backend_config
        if not isinstance(config, str):
            config = {**(config or {}), **attributes}
        elif attributes:
            raise TypeError(
                f"the lowering of {call_target_name!r} has text as backend_config, and takes no "
                f"static arguments: {', '.join(attributes)}"
            )
        for platform in context.platforms:
            context.require(RequiredTarget(call_target_name, platform))
        return context.custom_call_operation(
            call_target_name,
            operands,
            context.avals_out,
            config,
            has_side_effect=bool(lowering_args.get("has_side_effect", False)),
            aliases=lowering_args.get("operand_output_aliases") or {},
            api_version=version,
            attributes=lowering_args.get("extra_attributes"),
            **layouts,
        )

    return build


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., list[Any]]:
    """Make a lowering rule that calls native code, for a primitive or a table of lowerings.

    Args:
        call_target_name: as for `build_ffi_lowering_function`.
        operand_layouts: the same.
        result_layouts: the same.
        backend_config: the same.
        skip_ffi_layout_processing: the same.
        **lowering_args: the same.

    Returns:
        A function of the builder, of the operands, and of the parameters of the primitive, which
        are the static arguments of the call. It returns the results.

    Example:
        >>> from dovetail.extend import LoweringTable
        >>> from dovetail import ffi
        >>> table = LoweringTable()
        >>> rule = table.rule("cumsum")(ffi.ffi_lowering("acme_cumsum"))
    """
    build = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )
    return lambda context, *operands, **params: list(build(context, *operands, **params).results)
