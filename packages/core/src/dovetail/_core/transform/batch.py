"""Vectorization: each value may have a batch dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base import config
from dovetail._core.basis.structural import broadcast_batch, move_dimension
from dovetail._core.ir.avals import ShapedArray, aval_of
from dovetail._core.trace.named_axes import BatchAxis, NamedAxis, named_axes, uses_axis
from dovetail._core.trace.state import Trace, set_jit_key, state, use_trace
from dovetail._core.trace.tracer import Tracer

if TYPE_CHECKING:
    from dovetail._core.trace.custom_rules import CustomRuleCall
    from dovetail._core.trace.mutable_references import Ref, RefState
    from dovetail._core.trace.primitive import Primitive


#: For each value, its batch dimension, or None.
Dims = Sequence[int | None]


@lru_cache(maxsize=4096)
def unbatched_aval(aval: ShapedArray, dim: int) -> ShapedArray:
    """The aval without one dimension."""
    return aval.update(shape=aval.shape[:dim] + aval.shape[dim + 1 :])


def batched_aval(aval: ShapedArray, size: int, dim: int) -> ShapedArray:
    """The aval with one more dimension."""
    return aval.update(shape=(*aval.shape[:dim], size, *aval.shape[dim:]))


class BatchTracer(Tracer):
    """A value with a batch dimension."""

    __slots__ = ("dim", "value")

    def __init__(self, trace: BatchTrace, value: Any, dim: int) -> None:
        self._trace = trace
        self.aval = unbatched_aval(aval_of(value), dim)
        self.value = value
        self.dim = dim


class BatchTrace(Trace):
    """Applies the batching rule of every primitive that meets a batch dimension."""

    __slots__ = ("axis", "size")
    scope_name = "vmap"

    def __init__(self, parent: Trace, axis: BatchAxis) -> None:
        super().__init__(parent)
        self.size = axis.size
        self.axis = axis

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        values = []
        dims: list[int | None] = []
        batched = False
        for arg in args:
            if type(arg) is BatchTracer and arg._trace is self:
                values.append(arg.value)
                dims.append(arg.dim)
                batched = True
            else:
                values.append(arg)
                dims.append(None)
        parent = self.parent
        assert parent is not None
        previous, outer = state.trace, state.batch_axis
        axis = self.axis
        try:
            state.trace, state.batch_axis = parent, axis
            set_jit_key(parent.key)
            if not batched and (axis.name is None or not uses_axis(primitive, params, axis.name)):
                return parent.process(primitive, args, params)
            out, dim = primitive.batch(values, dims, **params)
        except (LookupError, AssertionError, AttributeError):
            # Rules take for granted what abstract evaluation checks of one element.
            primitive.infer(tuple(map(aval_of, args)), params)
            raise
        finally:
            state.trace, state.batch_axis = previous, outer
            set_jit_key(previous.key)
        if primitive.multiple_results:
            return [
                o if d is None else BatchTracer(self, o, d) for o, d in zip(out, dim, strict=True)
            ]
        return out if dim is None else BatchTracer(self, out, dim)

    def process_custom_rule(self, call: CustomRuleCall, args: Sequence[Any]) -> list[Any]:
        # Even if no argument has a batch dimension: the function may have captured a value that
        # has one.
        pairs = [self.split(arg) for arg in args]
        parent = self.parent
        assert parent is not None
        with use_trace(parent):
            batched = call.batched(self.run, self.size, [d for _, d in pairs])
            outs = parent.process_custom_rule(batched, [v for v, _ in pairs])
        assert batched.out_dims is not None
        return [
            o if d is None else BatchTracer(self, o, d)
            for o, d in zip(outs, batched.out_dims, strict=True)
        ]

    def cell_of(self, ref: Ref, writing: bool) -> RefState:
        if writing and ref.ref_state.trace is not self:
            raise ValueError(
                f"{ref.described()} cannot be written to by a function that vmap applies to "
                f"{self.size} elements, which would each leave another value in it: pass it as an "
                "argument with an axis for the elements (in_axes), or return the value"
            )
        return super().cell_of(ref, writing)

    def run(
        self, function: Callable[..., Sequence[Any]], values: Sequence[Any], dims: Dims
    ) -> tuple[list[Any], list[int | None]]:
        """`batch_flat` with this batch, in the current trace.

        While this trace is in progress, `function` runs in it, so that captured values of this
        trace have their batch dimension.
        """
        if self.finished:
            return batch_flat(function, values, dims, self.size, self.axis)
        parent, self.parent = self.parent, state.trace
        try:
            with use_trace(self), _names_of(self.axis):
                results = function(*_with_dims(self, values, dims))
        finally:
            self.parent = parent
        pairs = [self.split(r) for r in results]
        return [v for v, _ in pairs], [d for _, d in pairs]

    def split(self, value: Any) -> tuple[Any, int | None]:
        """The value and batch dimension of a result."""
        if type(value) is BatchTracer and value._trace is self:
            return value.value, value.dim
        return value, None

    def describe(self, tracer: Any) -> str:
        if isinstance(tracer.value, Tracer):
            return f"a vectorized value (vmap) of {tracer.value.origin()}"
        return f"a value vectorized by vmap over {self.size} elements"


def _with_dims(trace: BatchTrace, values: Sequence[Any], dims: Dims) -> list[Any]:
    return [v if d is None else BatchTracer(trace, v, d) for v, d in zip(values, dims, strict=True)]


def batch_flat(
    function: Callable[..., Sequence[Any]],
    values: Sequence[Any],
    dims: Sequence[int | None],
    size: int,
    axis: BatchAxis | None = None,
) -> tuple[list[Any], list[int | None]]:
    """Batched results of a function of flat arguments, and their batch dimensions.

    Args:
        function: the function of one element.
        values: its arguments.
        dims: their batch dimensions.
        size: the number of elements.
        axis: the axis that is mapped over; the one whose rule is running if None.
    """
    if axis is None:
        axis = state.batch_axis
        if axis is None or axis.size != size:
            axis = BatchAxis(None, size)
    trace = BatchTrace(state.trace, axis)
    arguments = _with_dims(trace, values, dims)
    try:
        with use_trace(trace), _names_of(axis):
            results = function(*arguments)
        pairs = [trace.split(r) for r in results]
    finally:
        trace.finished = True
    if config.check_tracer_leaks.value:
        from dovetail._core.trace.leaks import check_leaks  # deferred: rarely asked for

        del arguments, results
        check_leaks(trace)
    return [v for v, _ in pairs], [d for _, d in pairs]


def _names_of(axis: BatchAxis) -> AbstractContextManager[None]:
    """The scope in which collective operations can name the axis of a batch."""
    if axis.name is None:
        return _no_names
    return named_axes([NamedAxis(axis.name, axis.size)])


_no_names: Final = nullcontext()


def place_batch(value: Any, dim: int | None, size: int, destination: int) -> Any:
    """`value` with its batch dimension at `destination`; repeated if it has none."""
    if dim is None:
        return broadcast_batch(value, size, destination)
    return move_dimension(value, dim, destination)
