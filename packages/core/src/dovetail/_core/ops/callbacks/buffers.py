"""`buffer_callback`: Python functions that read and write the memory of programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.counting import counted
from dovetail._core.base.records import record
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.effects import io_effect
from dovetail._core.ir.jaxpr import Effects, no_effects
from dovetail._core.ops.callbacks.calls import FlatCallback, packed, target_of
from dovetail._core.ops.callbacks.failing import Failures
from dovetail._core.ops.callbacks.values import (
    ValueCallback,
    batched_by_method,
    check_vmap_method,
    flat_operands,
    promised,
)
from dovetail._core.transform.flattening import check_callable

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: The name of the operation that gives Python access to memory, by platform.
_TARGETS: Final = {
    "cpu": "xla_buffer_python_cpu_callback",
    "cuda": "xla_buffer_python_gpu_callback",
}
#: The same for calls that may become part of a GPU graph.
_GRAPH_TARGETS: Final = {**_TARGETS, "cuda": "xla_buffer_python_gpu_callback_cmd_buffer"}


@record
class BufferCall:
    """The description of a Python call on memory, for the runtime.

    Attributes:
        callback: the function; `out_tree` is the structure of its output buffers.
        where: the line in the user's code.
        failures: where its exceptions go in a program over several devices, else None.
    """

    caller: ClassVar[str] = "buffer_callback"

    callback: FlatCallback
    where: str
    failures: Failures | None = None

    def on_buffers(self, context: Any, buffers: Sequence[Any]) -> None:
        """Call the function.

        Args:
            context: information from the program about the call.
            buffers: first its arguments, then its results.
        """
        tree = self.callback.in_tree
        count = tree.num_leaves
        args, kwargs = tree.unflatten(buffers[:count])
        out = pytree.unflatten(self.callback.out_tree, buffers[count:])
        self.callback.callback_func(context, out, *args, **kwargs)


class BufferCallback(ValueCallback):
    """Gets its results from a Python function that writes them to memory."""

    name = "buffer_callback"
    has_effects = True
    way_out = "pass its arguments through dovetail.lax.stop_gradient"

    def reference(
        self,
        *args: Any,
        callback: FlatCallback,
        input_output_aliases: tuple[tuple[int, int], ...],
        result_avals: tuple[Any, ...],
        **params: Any,
    ) -> Any:
        outs = [np.zeros(aval.shape, aval.dtype) for aval in result_avals]
        for number, out in input_output_aliases:
            outs[out][...] = args[number]
        BufferCall(callback, "").on_buffers(None, [*args, *outs])
        return outs

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return batched_by_method(self, args, dims, params, params["callback"].place)

    def lower(
        self,
        context: Builder,
        *values: Any,
        callback: FlatCallback,
        has_side_effect: bool,
        input_output_aliases: tuple[tuple[int, int], ...],
        command_buffer_compatible: bool,
        **params: Any,
    ) -> Any:
        targets = _GRAPH_TARGETS if command_buffer_compatible else _TARGETS
        target, where = target_of(context, targets)
        if target is None:
            raise NotImplementedError(
                f"buffer_callback: programs for {' and '.join(context.platforms)} cannot give "
                f"Python their memory (used at {where}); dovetail.pure_callback gives it copies"
            )
        failures = None if context.partitioning is None else Failures()
        index = context.host_callback(BufferCall(callback, where, failures))
        row_major = [tuple(range(len(a.shape)))[::-1] for a in context.avals_in]
        if has_side_effect and context.partitioning is not None and context.manual is None:
            raise NotImplementedError(
                f"buffer_callback with has_side_effect=True (used at {where}): the program runs on "
                "several devices, and the compiler cannot leave the call to one of them; call it "
                "in shard_map, where each device makes it, or use io_callback"
            )
        return context.custom_call(
            target,
            values,
            context.avals_out,
            {"index": np.uint64(index)},
            has_side_effect=has_side_effect,
            operand_layouts=row_major,
            aliases=dict(input_output_aliases),
        )

    def effects(self, *avals: Any, has_side_effect: bool, **params: Any) -> Effects:
        return frozenset({io_effect}) if has_side_effect else no_effects


buffer_callback_p: Final = BufferCallback()


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """Make a function of arrays whose results a Python function writes to memory.

    This avoids the copies of `dovetail.pure_callback`: the Python function gets the memory of the
    program itself, which ``numpy.asarray`` views as an array. It must not hold on to it after the
    call.

    Args:
        callback: called as ``callback(context, out, *args, **kwargs)``, where `args` and `kwargs`
            are trees of buffers to be read, `out` is a tree of buffers to write to, with the
            structure of `result_shape_dtypes`, and ``context.stage`` is the current stage of the
            program. Its return value is ignored.
        result_shape_dtypes: a tree of objects with ``shape`` and ``dtype``, such as
            `dovetail.ShapeDtypeStruct`: the results.
        has_side_effect: whether to call it even if its results are unused. A program over several
            devices can then hold it only in `dovetail.shard_map`.
        vmap_method: as for `dovetail.pure_callback`.
        input_output_aliases: maps the index of an argument leaf to that of the result leaf that
            starts with its value, in the same memory if nothing else needs it.
        command_buffer_compatible: whether the call may become part of a GPU graph; makes no
            difference on the CPU.

    Returns:
        A function from trees of arrays to a tree of arrays.

    Raises:
        TypeError: `callback` is not a function, a result type has no shape or dtype, or a dtype is
            one of less than a byte.
        ValueError: `vmap_method` does not exist, the aliases do not fit, or the function is
            differentiated.
        NotImplementedError: the platform cannot give Python its memory, the function is mapped
            without a `vmap_method`, or it has side effects and several devices would call it.

    Each device of a program over several calls it with whole values, in `dovetail.shard_map` with
    its part.

    An exception in the Python function is raised where the results are first needed.

    Differs:
        Called eagerly it is a program too. It works on the CPU and on NVIDIA GPUs.

        >>> from dovetail.experimental.buffer_callback import buffer_callback
        >>> def fill(context, out):
        ...     np.asarray(out)[...] = 7
        >>> print(buffer_callback(fill, dt.ShapeDtypeStruct((2,), np.float32))())
        [7. 7.]

    Example:
        >>> import numpy as np
        >>> import dovetail as dt
        >>> from dovetail.experimental.buffer_callback import buffer_callback
        >>> def double(context, out, x):
        ...     np.multiply(np.asarray(x), 2, out=np.asarray(out))
        >>> doubled = buffer_callback(double, dt.ShapeDtypeStruct((3,), np.float32))
        >>> dt.jit(doubled)(np.float32([1, 2, 3]))
        Array([2., 4., 6.], dtype=float32)
    """
    check_callable(callback, "buffer_callback")
    check_vmap_method(vmap_method, "buffer_callback")
    avals, out_tree = promised(result_shape_dtypes, "buffer_callback")
    aliases = tuple(sorted((input_output_aliases or {}).items()))

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = flat_operands(args, kwargs, "buffer_callback")
        avals_in = list(map(aval_of, leaves))
        for aval in avals_in:
            if dtypes.is_extended(aval.dtype):
                raise TypeError(
                    f"buffer_callback: an argument is of {aval.dtype}, whose memory says nothing "
                    "to Python; pass its numbers (dovetail.random.key_data)"
                )
        for aval, what in [(a, "an argument") for a in avals_in] + [(a, "a result") for a in avals]:
            if packed(aval):
                raise TypeError(
                    f"buffer_callback: {what} is of {aval.dtype}, of which programs keep several "
                    "numbers in a byte, and NumPy one; convert it in the program, to int8 or "
                    "float32, or use dovetail.pure_callback"
                )
        _check_aliases(aliases, avals_in, avals)
        outs = buffer_callback_p.bind(
            *leaves,
            callback=FlatCallback(callback, in_tree, out_tree),
            command_buffer_compatible=bool(command_buffer_compatible),
            has_side_effect=bool(has_side_effect),
            input_output_aliases=aliases,
            result_avals=avals,
            vmap_method=vmap_method,
        )
        return pytree.unflatten(out_tree, outs)

    return call


def _check_aliases(
    aliases: Sequence[tuple[int, int]], avals_in: Sequence[Any], avals_out: Sequence[Any]
) -> None:
    for number, out in aliases:
        if not (0 <= number < len(avals_in) and 0 <= out < len(avals_out)):
            raise ValueError(
                f"buffer_callback: input_output_aliases has {number}: {out}, with "
                f"{counted(len(avals_in), 'argument')} and {counted(len(avals_out), 'result')}, "
                "counted from 0"
            )
        argument, promise = avals_in[number], avals_out[out]
        if argument.shape != promise.shape or argument.dtype != promise.dtype:
            raise ValueError(
                f"buffer_callback: argument {number} and result {out}, which are to have one "
                f"memory, differ: {argument.short_name()} and {promise.short_name()}"
            )
    if len({out for _, out in aliases}) < len(aliases):
        raise ValueError(
            f"buffer_callback: input_output_aliases {dict(aliases)} has one result for several "
            "arguments"
        )
