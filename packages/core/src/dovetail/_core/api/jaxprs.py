"""Tools for those who walk, build and interpret jaxprs: the functions of `dovetail.extend.core`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base import config
from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.errors import ConcretizationTypeError
from dovetail._core.base.restoring import Restoring
from dovetail._core.ir import walk
from dovetail._core.ir.avals import AbstractValue, ShapedArray, is_array_like
from dovetail._core.ir.jaxpr import (
    Atom,
    Effects,
    Jaxpr,
    JaxprEqn,
    SourceInfo,
    Var,
    no_effects,
)
from dovetail._core.trace.primitive import Primitive as _Primitive
from dovetail._core.trace.primitive import RuntimePrimitive
from dovetail._core.trace.state import Trace, evaluation_trace, set_jit_key, state
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.batch import BatchTrace, batched_aval, unbatched_aval
from dovetail._core.transform.stage import StageTrace

array_types: Final = frozenset({np.ndarray, np.generic})
"""Types of values that primitives take as arrays."""


class _AllPrimitives(type):
    """The class of a class of which all primitives are instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        # Of a class derived from it, only its own.
        is_all = cls.__mro__[1] is RuntimePrimitive
        return isinstance(instance, _Primitive) if is_all else super().__instancecheck__(instance)


class Primitive(RuntimePrimitive, metaclass=_AllPrimitives):
    """A primitive of one's own, built from functions; and what all primitives are instances of.

    Args: those of `dovetail.extend.Primitive`.

    Example:
        >>> from dovetail.extend.core import Primitive, primitives
        >>> isinstance(primitives.add_p, Primitive)
        True
    """

    is_ported = True


class TraceTag:
    """A mark by which a transformation of one's own tells its tracers from others'."""

    __slots__ = ("__weakref__",)


class OpaqueTraceState:
    """The traces that were in progress at some moment, to be compared."""

    __slots__ = ("_axes", "_trace")

    def __init__(self) -> None:
        self._trace = state.trace
        self._axes = config.named_axes.value

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is OpaqueTraceState
            and self._trace is other._trace
            and self._axes == other._axes
        )

    def __hash__(self) -> int:
        return hash(id(self._trace))


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """What is being traced now, to be compared with what is traced at another moment.

    Args:
        convention: accepted for JAX's sake; has no effect.

    Example:
        >>> import dovetail as dt
        >>> before = get_opaque_trace_state()
        >>> inside = []
        >>> _ = dt.jit(lambda x: inside.append(get_opaque_trace_state()) or x)(1.0)
        >>> before == get_opaque_trace_state(), before == inside[0]
        (True, False)
    """
    return OpaqueTraceState()


def find_top_trace(values: Sequence[Any]) -> Trace:
    """The current trace.

    Args:
        values: accepted for JAX's sake; which values there are makes no difference.
    """
    return state.trace


class set_current_trace(Restoring[Trace | None]):
    """A scope in which another trace processes primitives.

    Args:
        trace: the trace; None for that of eager evaluation.
        check_leaks: accepted for JAX's sake; the option `check_tracer_leaks` finds tracers that
            are left over.
    """

    __slots__ = ()

    def __init__(self, trace: Trace | None, check_leaks: bool = False) -> None:
        chosen = evaluation_trace if trace is None else trace
        super().__init__(lambda: state.trace, lambda: _make_current(chosen), _make_current)


class take_current_trace(Restoring[Trace]):
    """A scope that gives the current trace, and evaluates eagerly what is bound in it.

    Example:
        >>> with take_current_trace() as trace:
        ...     type(trace).__name__
        'EvaluationTrace'
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(lambda: (state.trace, state.taken), _take, _give_back)


def _take() -> Trace:
    taken = state.taken = state.trace
    _make_current(evaluation_trace)
    return taken


def _give_back(saved: tuple[Trace, Trace | None]) -> None:
    trace, state.taken = saved
    _make_current(trace)


def _make_current(trace: Trace) -> None:
    state.trace = trace
    set_jit_key(trace.key)


def _traces() -> Iterator[Trace]:
    trace: Trace | None = state.trace
    while trace is not None:
        yield trace
        trace = trace.parent


def unsafe_am_i_under_a_jit() -> bool:
    """Whether a function is being staged."""
    return any(isinstance(trace, StageTrace) for trace in _traces())


def unsafe_am_i_under_a_vmap() -> bool:
    """Whether a function is being vectorized."""
    return any(isinstance(trace, BatchTrace) for trace in _traces())


def unsafe_get_axis_names() -> list[Any]:
    """The names of the axes that collective operations can use here."""
    return [axis.name for axis in config.named_axes.value]


def nonempty_axis_env() -> bool:
    """Whether there are axes that collective operations can use here."""
    return bool(config.named_axes.value)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one element of a batch.

    Args:
        size: how many elements the batch has.
        axis: the dimension of the batch; None if there is none.
        aval: the type of the batch.

    Raises:
        ValueError: the batch has another size.

    Example:
        >>> mapped_aval(3, 0, ShapedArray((3, 2), "float32"))
        ShapedArray(float32[2])
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval} has not the size {size}")
    return unbatched_aval(aval, axis)


def unmapped_aval(
    size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None
) -> ShapedArray:
    """The type of a batch of elements of a type.

    Args:
        size: how many elements.
        axis: the dimension of the batch; None for none.
        aval: the type of an element.
        explicit_mesh_axis: accepted for JAX's sake; has no effect.

    Example:
        >>> unmapped_aval(3, 0, ShapedArray((2,), "float32"))
        ShapedArray(float32[3,2])
    """
    return aval if axis is None else batched_aval(aval, size, axis)


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: _Primitive,
    params: Mapping[str, Any],
    effects: Effects = no_effects,
    source_info: SourceInfo | None = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation of a jaxpr.

    Args:
        invars: operands.
        outvars: results.
        primitive: the operation.
        params: its parameters.
        effects: its side effects.
        source_info: where it came from; this line by default.
        ctx: accepted for JAX's sake; what it holds there are parameters here.
    """
    traceback = get_traceback() if source_info is None else source_info.traceback
    return JaxprEqn(invars, outvars, primitive, params, effects, traceback)


def gensym() -> Callable[[AbstractValue], Var]:
    """A function that makes new variables.

    Example:
        >>> new = gensym()
        >>> new(ShapedArray((2,), "float32")).aval
        ShapedArray(float32[2])
    """
    return Var


def valid_jaxtype(x: Any) -> bool:
    """Whether primitives take a value: an array, a tracer, a NumPy value, a Python number.

    Example:
        >>> valid_jaxtype(1.0), valid_jaxtype("one")
        (True, False)
    """
    return is_array_like(x)


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """A value that is known while tracing.

    Args:
        force: what makes of it what is wanted, such as `int`; None for the value itself.
        val: the value.
        context: why it has to be known, for the message.

    Raises:
        ConcretizationTypeError: it is traced.
    """
    if isinstance(val, Tracer):
        known = val.concrete()
        if known is None or isinstance(known, Tracer):
            raise ConcretizationTypeError(val, context or "this use")
        val = known
    return val if force is None else force(val)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents at values of a dtype.

    Example:
        >>> primal_dtype_to_tangent_dtype(np.dtype("float32"))
        dtype('float32')
        >>> primal_dtype_to_tangent_dtype(np.dtype("int32"))
        dtype([('float0', 'V')])
    """
    return ShapedArray((), primal_dtype).tangent().dtype


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The jaxprs in the parameters of the equations of a jaxpr."""
    return walk.subjaxprs(jaxpr)


def jaxprs_in_params(params: Mapping[str, Any]) -> Iterator[Jaxpr]:
    """The jaxprs in the parameters of an equation."""
    return iter(walk.jaxprs_in_params(params))


class Token:
    """The value that orders the side effects of one program after another's.

    Args:
        buf: the array that is there when the program has ended.
    """

    __slots__ = ("_buf",)

    def __init__(self, buf: Any) -> None:
        self._buf = buf

    def block_until_ready(self) -> None:
        """Wait until the program has ended."""
        self._buf.block_until_ready()
