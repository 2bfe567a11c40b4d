"""Reading parts of arrays: ``x[index]``, with every form of NumPy index.

An index is parsed into a list of items, one for each dimension of the array and each new dimension.
While tracing, static indices become slices. In eager mode the positions are arguments of a compiled
function, chosen only by the structure of the index, so another index of the same structure compiles
nothing.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from dovetail import index_mode
from dovetail.extend import dtypes
from dovetail.extend.avals import ArrayClass, Tracer, aval_of, shape_of
from dovetail.extend.dimensions import is_symbolic_dim, largest_known, surely_less
from dovetail.extend.eager import compile_eager, evaluation_trace, lru_cache, trace_state
from dovetail.extend.indexing import canonical_fill, check_static_indices, gather_slices
from dovetail.extend.unchecked import (
    add_dimensions,
    convert_element_type,
    full,
    reverse,
    squeeze_dimensions,
    static_slice,
)
from dovetail.lax import GatherScatterMode, dynamic_slice_p
from dovetail.numpy.indexing.codec import IndexCode, decode, encode
from dovetail.numpy.indexing.parsing import (
    HIGHEST,
    LOWEST,
    Along,
    At,
    Index,
    Span,
    empty_dimension,
    parse,
    span_of,
)
from dovetail.numpy.indexing.plan import Plan, index_dtype, normalized, typed_start

Shape = tuple[int, ...]


def take(
    x: Any,
    index: Index,
    *,
    mode: GatherScatterMode | None = None,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    """The part of `x` selected by a parsed index.

    Args:
        x: array or tracer.
        index: index parsed for its shape.
        mode: out-of-bounds behaviour; None promises that no position is, and clips.
        fill_value: a scalar for the mode "fill".
        indices_are_sorted: a promise about the arrays in the index.
        unique_indices: a promise about the arrays in the index.
    """
    shape = shape_of(x)
    filled = mode is GatherScatterMode.FILL_OR_DROP
    if not index.arrays and not (filled and _may_leave(index, shape)):
        return _take_basic(x, index, shape)
    plan = Plan(index, shape)
    if not index.arrays:
        indices_are_sorted = unique_indices = True
    aval = aval_of(x)
    dtype = aval.dtype
    for axis in plan.axes:
        if not plan.shape[axis] and 0 not in plan.batch_shape:
            if filled:
                fill = canonical_fill(fill_value, dtype, "x.at[...].get")
                return convert_element_type(
                    full(plan.out_shape, fill, dtype), dtype, aval.weak_type
                )
            raise empty_dimension(axis, shape)
    if 0 in plan.out_shape and isinstance(dtype, np.dtype):
        return convert_element_type(full(plan.out_shape, 0, dtype), dtype, aval.weak_type)
    if plan.fresh:
        x = add_dimensions(x, plan.fresh)
    out = gather_slices(
        x,
        plan.indices(),
        plan.numbers,
        plan.slice_sizes,
        mode=mode or GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=canonical_fill(fill_value, dtype, "x.at[...].get") if filled else None,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )
    if plan.flips:
        out = reverse(out, plan.flips)
    return add_dimensions(out, plan.new_dims) if plan.new_dims else out


def _may_leave(index: Index, shape: Shape) -> bool:
    """Whether a position of an index without arrays may be out of bounds."""
    axis = 0
    for item in index.items:
        if item is None:
            continue
        if type(item) is At and not _is_inside(item.value, shape[axis]):
            return True
        axis += 1
    return False


def _is_inside(position: Any, size: int) -> bool:
    known = type(position) is int or is_symbolic_dim(position)
    return known and surely_less(-1, position) and surely_less(position, size)


def _take_basic(x: Any, index: Index, shape: Shape) -> Any:
    """Only positions and spans: take a slice, then reverse, drop and add dimensions."""
    starts: list[Any] = []
    limits: list[int] = []
    steps: list[int] = []
    flipped: list[int] = []
    dropped: list[int] = []
    new: list[int] = []
    static = True
    out_rank = axis = 0
    for item in index.items:
        if item is None:
            new.append(out_rank)
            out_rank += 1
            continue
        if type(item) is At:
            start = item.value
            if type(start) is int:
                # A position out of bounds is left to run time, where checkify can find it.
                size = shape[axis]
                static = static and start >= 0 and surely_less(start, size)
                start = max(LOWEST, min(start, max(HIGHEST, largest_known([size]))))
            elif is_symbolic_dim(start):
                static = static and surely_less(-1, start) and surely_less(start, shape[axis])
            else:
                static = False
                start = normalized(start, shape[axis], item.wrapped, index_dtype(shape, (start,)))
            limits.append(1)
            steps.append(1)
            dropped.append(axis)
        else:
            assert type(item) is Span
            start = item.start
            static = static and (type(start) is int or is_symbolic_dim(start))
            limits.append((item.size - 1) * item.step + 1 if item.size else 0)
            steps.append(item.step)
            if item.flip:
                flipped.append(axis)
            out_rank += 1
        starts.append(start)
        axis += 1
    strides = None if all(s == 1 for s in steps) else tuple(steps)
    if static:
        ends = tuple([a + n for a, n in zip(starts, limits, strict=True)])
        x = static_slice(x, tuple(starts), ends, strides)
    else:
        dtype = index_dtype(shape, starts)
        typed = [typed_start(s, dtype) for s in starts]
        x = dynamic_slice_p.bind(x, *typed, slice_sizes=tuple(limits))
        x = static_slice(x, (0,) * len(limits), tuple(limits), strides)
    if flipped:
        x = reverse(x, tuple(flipped))
    if dropped:
        x = squeeze_dimensions(x, tuple(dropped))
    return add_dimensions(x, tuple(new)) if new else x


# ------------------------------------------------------------------------------------------ eager


def is_eager(x: Any) -> bool:
    """Whether an operation on `x` is evaluated immediately."""
    return trace_state.trace is evaluation_trace and not isinstance(x, Tracer)


def _first_element(x: Any, position: Any) -> Any:
    shape = shape_of(x)
    if not shape:
        raise IndexError("too many indices: the array is 0-dimensional, but 1 were indexed")
    if not shape[0]:
        raise empty_dimension(0, shape)
    return take(x, Index([At(position, True), *[Span(0, n) for n in shape[1:]]]))


def _with_array(x: Any, positions: Any) -> Any:
    return take(x, parse((positions,), shape_of(x)))


_element: Final = compile_eager(_first_element, name="getitem")
_elements: Final = compile_eager(_with_array, name="getitem")


@lru_cache(maxsize=4096)
def _getter(
    code: IndexCode,
    mode: GatherScatterMode | None = None,
    fill_value: Any = None,
    fill_type: type | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    # The type of the fill value is part of the key: 1 equals 1.0 and True.
    def getitem(x: Any, *positions: Any) -> Any:
        return take(
            x,
            decode(code, positions, shape_of(x)),
            mode=mode,
            fill_value=fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
        )

    return compile_eager(getitem, name="getitem")


@lru_cache(maxsize=4096)
def _slice_getter(size: int, step: int, flip: bool) -> Any:
    def getitem(x: Any, start: Any) -> Any:
        shape = shape_of(x)
        return take(x, Index([Span(start, size, step, flip), *[Span(0, n) for n in shape[1:]]]))

    return compile_eager(getitem, name="getitem")


def getitem(x: Any, index: Any) -> Any:
    """``x[index]``: the indexed part of an array.

    Positions out of bounds are clipped to the nearest one in bounds. NumPy raises an error, but
    whether a position is in bounds cannot be known when the program is compiled.
    `x.at[index].get(mode="fill")` returns a fill value instead; with the option
    ``index_mode="raise"`` they are errors.

    Args:
        x: array.
        index: integers, slices, None, Ellipsis, arrays of integers or booleans, and tuples of
            these.

    Returns:
        An array; never a view that could be written to.

    Raises:
        IndexError: there are too many indices, or one does not fit its dimension.
        TypeError: something in it cannot be an index.
        NonConcreteBooleanIndexError: a mask is traced, so the shape of the result is not known.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.arange(6).reshape(2, 3)
        >>> print(x[1], x[:, -1], x[jnp.array([0, 1]), 1], x[x > 3])
        [3 4 5] [2 5] [1 4] [4 5]
    """
    if index_mode.value == "raise":
        return _checked(x, index)
    if check_static_indices.value:
        _check_known(index, shape_of(x))
    if trace_state.trace is evaluation_trace and not isinstance(x, Tracer):
        kind = type(index)
        if kind is int:
            if index < 0:
                shape = x.aval.shape
                if shape:
                    index += shape[0]
            if LOWEST <= index <= HIGHEST:
                return _element(x, index)
        elif kind is slice:
            shape = x.aval.shape
            if shape:
                span = span_of(index, shape[0], 0)
                if span.step == 1 and span.size == shape[0] and not span.flip:
                    return x
                if span.start <= HIGHEST:
                    return _slice_getter(span.size, span.step, span.flip)(x, span.start)
        elif isinstance(index, ArrayClass) and dtypes.kind_of(index.dtype) in ("i", "u"):
            return _elements(x, index)
        elif isinstance(index, np.integer):
            return getitem(x, int(index))
        return _eager_get(x, index, True)
    return take(x, parse(index, shape_of(x)))


def _check_known(index: Any, shape: Any) -> None:
    """Raise IndexError if an integer of an index is out of bounds, as `check_static_indices` asks.

    Arrays of integers and slices are left alone.
    """
    axis = 0
    for item in parse(index, shape).items:
        if isinstance(item, At) and type(item.value) is int and not 0 <= item.value < shape[axis]:
            raise IndexError(
                f"an index is out of bounds for axis {axis} with size {shape[axis]} (the shape of "
                f"the array is {shape}): {index!r:.80}, where the option check_static_indices is on"
            )
        axis += item is not None and not (isinstance(item, Along) and item.fresh)


def _checked(x: Any, index: Any) -> Any:
    parsed = parse(index, shape_of(x))
    check(parsed, shape_of(x))
    return _eager_take(x, parsed) if is_eager(x) else take(x, parsed)


def check(index: Index, shape: Shape, mode: Any = None) -> None:
    """Ensure an error if a parsed index is out of bounds and ``index_mode="raise"`` requires one.

    Args:
        index: the index.
        shape: the shape that it was parsed for.
        mode: the mode given by the user, or None.
    """
    if mode is None and index_mode.value == "raise":
        from dovetail.numpy.indexing.checks import check_positions  # deferred: loads callbacks

        check_positions(index, shape)


def _eager_get(x: Any, index: Any, wrap: bool, *options: Any) -> Any:
    return _eager_take(x, parse(index, shape_of(x), wrap), *options)


def _eager_take(x: Any, parsed: Index, *options: Any) -> Any:
    code, positions = encode(parsed, shape_of(x))
    if not positions and not parsed.arrays and code.takes_all:
        return x
    return _getter(code, *options)(x, *positions)


def get(
    x: Any,
    index: Any,
    *,
    mode: str | GatherScatterMode | None,
    fill_value: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    wrap_negative_indices: bool,
) -> Any:
    """`x.at[index].get`, with its options checked."""
    parsed_mode = None if mode is None else GatherScatterMode.from_any(mode)
    if parsed_mode is GatherScatterMode.FILL_OR_DROP:
        fill_value = canonical_fill(fill_value, aval_of(x).dtype, "x.at[...].get")
    else:
        fill_value = None
    promises = bool(indices_are_sorted), bool(unique_indices)
    parsed = parse(index, shape_of(x), wrap_negative_indices)
    check(parsed, shape_of(x), mode)
    if is_eager(x):
        return _eager_take(x, parsed, parsed_mode, fill_value, type(fill_value), *promises)
    return take(
        x,
        parsed,
        mode=parsed_mode,
        fill_value=fill_value,
        indices_are_sorted=promises[0],
        unique_indices=promises[1],
    )
