"""Vectorization: each value may carry one more dimension."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dovetail.core.base import config
from dovetail.core.basis.structural import broadcast_batch, move_dimension
from dovetail.core.ir.avals import ShapedArray, aval_of
from dovetail.core.trace.state import Trace, set_trace, state, use_trace
from dovetail.core.trace.tracer import Tracer

if TYPE_CHECKING:
    from dovetail.core.trace.primitive import Primitive


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

    __slots__ = ("axis_name", "size")

    def __init__(self, parent: Trace, size: int, axis_name: Hashable | None) -> None:
        super().__init__(parent)
        self.size = size
        self.axis_name = axis_name

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
        previous = state.trace
        set_trace(parent)
        try:
            if not batched:
                return parent.process(primitive, args, params)
            out, dim = primitive.batch(values, dims, **params)
        finally:
            set_trace(previous)
        if primitive.multiple_results:
            return [
                o if d is None else BatchTracer(self, o, d) for o, d in zip(out, dim, strict=True)
            ]
        return out if dim is None else BatchTracer(self, out, dim)

    def split(self, value: Any) -> tuple[Any, int | None]:
        """The value and batch dimension of a result."""
        if type(value) is BatchTracer and value._trace is self:
            return value.value, value.dim
        return value, None

    def describe(self, tracer: Any) -> str:
        if isinstance(tracer.value, Tracer):
            return f"a vectorized value (vmap) of {tracer.value.origin()}"
        return f"a value vectorized by vmap over {self.size} elements"


def batch_flat(
    function: Callable[..., Sequence[Any]],
    values: Sequence[Any],
    dims: Sequence[int | None],
    size: int,
    axis_name: Hashable | None = None,
) -> tuple[list[Any], list[int | None]]:
    """Results of a function of flat arguments for each element of a batch, and their batch
    dimensions."""
    trace = BatchTrace(state.trace, size, axis_name)
    arguments = [
        v if d is None else BatchTracer(trace, v, d) for v, d in zip(values, dims, strict=True)
    ]
    try:
        with use_trace(trace):
            results = function(*arguments)
        pairs = [trace.split(r) for r in results]
    finally:
        trace.finished = True
    if config.check_tracer_leaks.value:
        from dovetail.core.trace.leaks import check_leaks  # deferred: rarely asked for

        del arguments, results
        check_leaks(trace)
    return [v for v, _ in pairs], [d for _, d in pairs]


def place_batch(value: Any, dim: int | None, size: int, destination: int) -> Any:
    """`value` with its batch dimension at `destination`, repeated where it has none."""
    if dim is None:
        return broadcast_batch(value, size, destination)
    return move_dimension(value, dim, destination)
