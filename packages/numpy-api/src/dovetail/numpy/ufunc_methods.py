"""The methods of ufuncs: `reduce`, `accumulate`, `at`, `outer` and `reduceat`.

Most functions here take a ufunc and return a function of arrays, which the ufunc compiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from dovetail import ShapeDtypeStruct, eval_shape, lax
from dovetail.errors import DTypeError, ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    Literal,
    array_like,
    broadcast_result,
    canonical_axes,
    canonical_axis,
    convert,
    inexact,
    inexact_dtype,
    literal,
    requested_dtype,
    value,
    weak_of,
)
from dovetail.extend.avals import ArrayClass, aval_of, shape_of
from dovetail.extend.indexing import canonical_fill
from dovetail.numpy import cumulative, gathering, reductions, shapes
from dovetail.numpy.compiled import plain
from dovetail.numpy.conditions import as_mask, pick, spread, truth

Function = Callable[..., Any]

_SCATTERS: Final = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "maximum": "max",
    "minimum": "min",
}
#: Associative functions: their folds may be grouped in any way.
_ASSOCIATIVE: Final = frozenset(
    (
        *("add", "multiply", "maximum", "minimum", "logaddexp", "logaddexp2"),
        *("logical_and", "logical_or", "logical_xor"),
        *("bitwise_and", "bitwise_or", "bitwise_xor"),
    )
)


def _element(ufunc: Any, x: Any, dtype: Any) -> Any:
    """An operand in the dtype of a fold over it, for a function that is associative."""
    family = ufunc._family
    if family.startswith("logical"):
        x = truth(x)
    elif family.startswith("logaddexp"):
        x = inexact(ufunc.__name__, x if dtype is None else convert(x, dtype))
    elif dtype is not None:
        x = convert(x, dtype)
    elif family in ("add", "multiply", "subtract") and dtypes.kind_of(x.dtype) == "b":
        x = convert(x, dtypes.default_dtype("i"))
    return value(reductions.strong(x))


def _carried_dtype(ufunc: Any, x: Any, dtype: Any, method: str) -> Any:
    """The dtype of a fold over an operand: the one that a further step does not change.

    Raises:
        TypeError: there is none, or the function does not return a single array of elements.
    """
    item = ShapeDtypeStruct((), aval_of(x).dtype)
    carried = dtype or item.dtype
    for _ in range(4):
        output = eval_shape(plain(ufunc), ShapeDtypeStruct((), carried), item)
        shape = getattr(output, "shape", None)
        if shape != ():
            raise TypeError(
                f"{ufunc.__name__}.{method}: {ufunc.__name__} must return one scalar for two, and "
                f"returned {'an array of shape ' + str(shape) if shape else type(output).__name__}"
            )
        if dtype is not None or output.dtype == carried:
            return carried
        carried = output.dtype
    raise TypeError(
        f"{ufunc.__name__}.{method}: the dtype of {ufunc.__name__} changes with every step; give "
        "dtype to say what the result is"
    )


def _scalar(x: Any, function: str, argument: str) -> Any:
    """A checked operand of rank 0."""
    x = array_like(x, function, argument)
    if shape_of(x):
        raise ShapeError(
            f"{function}: {argument} must be a scalar, got an array of shape {shape_of(x)}"
        )
    return x


# ------------------------------------------------------------------------------------------ reduce


def reduce(ufunc: Any) -> Function:
    """The method `reduce`."""
    name = f"{ufunc.__name__}.reduce"
    fold = _REDUCTIONS.get(ufunc._family)

    def run(a: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any) -> Any:
        x = value(array_like(a, name, "a"))
        if not shape_of(x) and axis in (0, -1):
            axis = ()
        if where is not None:
            where = as_mask(name, where)
            common = broadcast_result(name, (shape_of(x), shape_of(where)), explicit=True)
            x, where = spread(x, common), spread(where, common)
        shape = shape_of(x)
        axes = canonical_axes(name, axis, len(shape))
        if initial is not None:
            initial = _scalar(initial, name, "initial")
        elif ufunc.identity is None and (where is not None or 0 in [shape[d] for d in axes]):
            what = "with where" if where is not None else "of no elements"
            raise ValueError(
                f"{name}: a fold {what} needs a scalar to start from, and {ufunc.__name__} has no "
                "identity; give initial"
            )
        target = requested_dtype(name, dtype)
        if fold is None:
            result = _fold(ufunc, x, axes, target, initial, where)
        else:
            result = fold(ufunc, x, axes, target, initial, where)
        return reductions.kept(result, shape, axes) if keepdims else result

    return run


def _fold(ufunc: Any, x: Any, axes: Any, dtype: Any, initial: Any, where: Any) -> Any:
    """A fold of any function, one element after another."""
    carried = _carried_dtype(ufunc, x, dtype, "reduce")
    rest = tuple(n for d, n in enumerate(shape_of(x)) if d not in axes)
    count = math.prod(shape_of(x)[d] for d in axes)

    def rows(v: Any) -> Any:
        front = plain(shapes.moveaxis)(v, axes, tuple(range(len(axes))))
        return shapes.reshaped(front, (count, *rest))

    items = rows(x if dtype is None else convert(x, dtype))
    mask = None if where is None else rows(where)
    if initial is None and (mask is not None or not count):
        initial = literal(ufunc.identity, carried)
    if initial is None:
        start, items = items[0], items[1:]
    else:
        start = initial
    start = spread(convert(start, carried), rest)
    function = plain(ufunc)

    def step(total: Any, row: Any) -> tuple[Any, None]:
        item, chosen = row if mask is not None else (row, None)
        new = lax.convert_element_type(function(total, item), carried)
        return (new if chosen is None else lax.select(chosen, new, total)), None

    return lax.scan(step, start, items if mask is None else (items, mask))[0]


def _by_sum(function: Any) -> Function:
    def fold(ufunc: Any, x: Any, axes: Any, dtype: Any, initial: Any, where: Any) -> Any:
        return plain(function)(x, axes, dtype, None, False, initial, where)

    return fold


def _by_extreme(function: Any) -> Function:
    def fold(ufunc: Any, x: Any, axes: Any, dtype: Any, initial: Any, where: Any) -> Any:
        x = x if dtype is None else convert(x, dtype)
        return plain(function)(x, axes, None, False, initial, where)

    return fold


def _by_truth(function: Any) -> Function:
    def fold(ufunc: Any, x: Any, axes: Any, dtype: Any, initial: Any, where: Any) -> Any:
        result = plain(function)(x, axes, where=where)
        if initial is not None:
            result = plain(ufunc)(initial, result)
        return result if dtype is None else convert(result, dtype)

    return fold


def _by_bits(primitive: Any) -> Function:
    def fold(ufunc: Any, x: Any, axes: Any, dtype: Any, initial: Any, where: Any) -> Any:
        logical = ufunc._family == "logical_xor"
        x = truth(x) if logical else _element(ufunc, x, dtype)
        kind = dtypes.kind_of(x.dtype)
        if kind not in ("b", "i", "u"):
            plain(ufunc)(x, x)  # raises for dtypes that it does not take
        if where is not None:
            identity = ufunc.identity
            if identity == -1 and kind != "i":
                identity = True if kind == "b" else int(dtypes.iinfo(x.dtype).max)
            x = pick(where, x, literal(identity, x.dtype))
        result = primitive.bind(x, axes=axes) if axes else x
        if initial is not None:
            initial = truth(initial) if logical else convert(initial, x.dtype)
            result = plain(ufunc)(initial, result)
        return convert(result, dtype) if logical and dtype is not None else result

    return fold


def _by_exponentials(ufunc: Any, x: Any, axes: Any, dtype: Any, initial: Any, where: Any) -> Any:
    """The logarithm of a sum of exponentials, relative to the largest exponent."""
    x = _element(ufunc, x, None)
    if dtypes.kind_of(x.dtype) == "c" or 0 in shape_of(x):
        return _fold(ufunc, x, axes, dtype, initial, where)
    if dtype is not None:
        x = convert(x, inexact_dtype(dtype))
    if where is not None:
        x = pick(where, x, literal(-math.inf, x.dtype))
    largest = lax.stop_gradient(lax.reduce_max(x, axes))
    about = pick(lax.is_finite(largest), largest, literal(0, x.dtype))
    differences = lax.sub(x, spread(reductions.kept(about, shape_of(x), axes), shape_of(x)))
    if ufunc._family == "logaddexp":
        result = lax.add(lax.log(lax.reduce_sum(lax.exp(differences), axes)), about)
    else:
        total = lax.log(lax.reduce_sum(lax.exp2(differences), axes))
        result = lax.add(lax.div(total, literal(math.log(2.0), x.dtype)), about)
    if initial is not None:
        result = plain(ufunc)(convert(initial, x.dtype), result)
    return result if dtype is None else convert(result, dtype)


def _by_difference(ufunc: Any, x: Any, axes: Any, dtype: Any, initial: Any, where: Any) -> Any:
    """The first element, or `initial`, minus the sum of the others."""
    x = _numbers(ufunc, x, dtype)
    if initial is None:
        x = _negated_but_first(x, axes)
    total = plain(reductions.sum)(x, axes, x.dtype, None, False, None, where)
    return total if initial is None else lax.sub(convert(initial, x.dtype), total)


def _numbers(ufunc: Any, x: Any, dtype: Any) -> Any:
    """An operand of a difference."""
    x = value(reductions.strong(x if dtype is None else convert(x, dtype)))
    if dtypes.kind_of(x.dtype) == "b":
        plain(ufunc)(x, x)  # raises, and suggests an alternative
    return x


def _negated_but_first(x: Any, axes: Any) -> Any:
    shape = shape_of(x)
    places = [lax.broadcasted_iota("int32", shape, d) for d in axes]
    if not places or 0 in shape:
        return x
    first = lax.eq(places[0], literal(0, places[0].dtype))
    for place in places[1:]:
        first = lax.bitwise_and(first, lax.eq(place, literal(0, place.dtype)))
    return pick(first, x, lax.neg(x))


_REDUCTIONS: Final[dict[str | None, Function]] = {
    "add": _by_sum(reductions.sum),
    "multiply": _by_sum(reductions.prod),
    "subtract": _by_difference,
    "maximum": _by_extreme(reductions.max),
    "minimum": _by_extreme(reductions.min),
    "logical_and": _by_truth(reductions.all),
    "logical_or": _by_truth(reductions.any),
    "logical_xor": _by_bits(lax.reduce_xor_p),
    "bitwise_and": _by_bits(lax.reduce_and_p),
    "bitwise_or": _by_bits(lax.reduce_or_p),
    "bitwise_xor": _by_bits(lax.reduce_xor_p),
    "logaddexp": _by_exponentials,
    "logaddexp2": _by_exponentials,
}


# -------------------------------------------------------------------------------------- accumulate


def accumulate(ufunc: Any) -> Function:
    """The method `accumulate`."""
    name = f"{ufunc.__name__}.accumulate"
    family = ufunc._family

    def run(a: Any, axis: Any, dtype: Any) -> Any:
        x = value(array_like(a, name, "a"))
        if axis is None:
            x, axis = shapes.reshaped(x, (aval_of(x).size,)), 0
        axis = canonical_axis(name, axis, len(shape_of(x)))
        target = requested_dtype(name, dtype)
        if family in ("add", "multiply"):
            running = cumulative.cumsum if family == "add" else cumulative.cumprod
            return plain(running)(x, axis, target)
        if family == "subtract":
            x = _numbers(ufunc, x, target)
            return plain(cumulative.cumsum)(_negated_but_first(x, (axis,)), axis, x.dtype)
        if family not in _ASSOCIATIVE:
            return _steps(ufunc, x, axis, target)
        x = _element(ufunc, x, target)
        if family in ("maximum", "minimum") and dtypes.kind_of(x.dtype) != "b":
            return (lax.cummax if family == "maximum" else lax.cummin)(x, axis=axis)
        if not aval_of(x).size:
            return x
        result = lax.associative_scan(plain(ufunc), x, axis=axis)
        return result if target is None else convert(result, target)

    return run


def _steps(ufunc: Any, x: Any, axis: int, dtype: Any) -> Any:
    """All steps of a fold of any function."""
    carried = _carried_dtype(ufunc, x, dtype, "accumulate")
    items = plain(shapes.moveaxis)(x if dtype is None else convert(x, dtype), axis, 0)
    if not shape_of(items)[0]:
        return convert(x, carried)
    function = plain(ufunc)

    def step(total: Any, item: Any) -> tuple[Any, Any]:
        new = lax.convert_element_type(function(total, item), carried)
        return new, new

    start = lax.convert_element_type(items[0], carried)
    _, rest = lax.scan(step, start, items[1:])
    return plain(shapes.moveaxis)(lax.concatenate([start[None], rest], 0), 0, axis)


# ---------------------------------------------------------------------------------------- reduceat


def reduceat(ufunc: Any) -> Function:
    """The method `reduceat`."""
    name = f"{ufunc.__name__}.reduceat"

    def run(a: Any, indices: Any, axis: Any, dtype: Any) -> Any:
        x = value(array_like(a, name, "a"))
        axis = canonical_axis(name, axis, len(shape_of(x)))
        items = plain(shapes.moveaxis)(x, axis, 0)
        starts = value(array_like(indices, name, "indices"))
        if dtypes.kind_of(starts.dtype) not in ("i", "u"):
            raise DTypeError(f"{name} requires indices to be integers, got dtype {starts.dtype}")
        if len(shape_of(starts)) != 1:
            raise ValueError(
                f"{name} requires indices to have one dimension, got shape {shape_of(starts)}"
            )
        size = shape_of(items)[0]
        if not size and shape_of(starts)[0]:
            raise IndexError(f"{name}: there are indices, and axis {axis} has no elements")
        starts, ends = _parts(starts, size)
        result = _fold_parts(ufunc, items, starts, ends, requested_dtype(name, dtype))
        valid = lax.lt(starts, literal(size, starts.dtype))
        valid = lax.broadcast_in_dim(valid, shape_of(result), (0,))
        weak = dtype is None and weak_of(x) and _keeps_type(ufunc, x)
        fill = literal(canonical_fill(None, result.dtype, name), result.dtype)
        result = convert(pick(valid, result, fill), result.dtype, weak)
        return plain(shapes.moveaxis)(result, 0, axis)

    return run


def _keeps_type(ufunc: Any, x: Any) -> bool:
    """Whether a function of weakly typed arrays has a result of their dtype, weakly typed, too."""
    item = ShapeDtypeStruct((1,), x.dtype, weak_type=True)
    result = eval_shape(plain(ufunc), item, item)
    return bool(result.weak_type and result.dtype == item.dtype)


def _parts(indices: Any, size: int) -> tuple[Any, Any]:
    """Where parts of a dimension start and end; those out of bounds start at its size."""
    least = literal(max(-size - 1, int(dtypes.iinfo(indices.dtype).min)), indices.dtype)
    most = literal(min(size, int(dtypes.iinfo(indices.dtype).max)), indices.dtype)
    index_dtype = dtypes.default_dtype("i")
    starts = lax.convert_element_type(lax.clamp(least, indices, most), index_dtype)
    zero, end = literal(0, index_dtype), literal(size, index_dtype)
    starts = pick(lax.lt(starts, zero), lax.add(starts, end), starts)
    starts = pick(lax.lt(starts, zero), end, starts)
    following = lax.concatenate([starts[1:], spread(end, (min(1, shape_of(starts)[0]),))], 0)
    ends = pick(lax.gt(following, starts), following, lax.add(starts, literal(1, index_dtype)))
    return starts, ends


def _fold_parts(ufunc: Any, items: Any, starts: Any, ends: Any, dtype: Any) -> Any:
    if ufunc._family == "subtract":
        items = _numbers(ufunc, items, dtype)
        first = _rows_at(items, starts)
        after = lax.add(starts, literal(1, starts.dtype))
        rest, some = _doubled(lax.add, items, after, ends)
        return pick(some, lax.sub(first, rest), first)
    if ufunc._family in _ASSOCIATIVE:
        items = _element(ufunc, items, dtype)
        result, _ = _doubled(plain(ufunc), items, starts, ends)
        return result if dtype is None else convert(result, dtype)
    carried = _carried_dtype(ufunc, items, dtype, "reduceat")
    items = items if dtype is None else convert(items, dtype)
    function = plain(ufunc)
    shape = (*shape_of(starts), *shape_of(items)[1:])

    def step(total: Any, numbered: Any) -> tuple[Any, None]:
        number, item = numbered
        new = lax.convert_element_type(function(total, item[None]), carried)
        item = spread(lax.convert_element_type(item, carried), shape)
        inside = lax.bitwise_and(lax.gt(number, starts), lax.lt(number, ends))
        total = lax.select(lax.broadcast_in_dim(inside, shape, (0,)), new, total)
        is_first = lax.broadcast_in_dim(lax.eq(starts, number), shape, (0,))
        return lax.select(is_first, item, total), None

    numbers = lax.iota(starts.dtype, shape_of(items)[0])
    return lax.scan(step, _rows_at(convert(items, carried), starts), (numbers, items))[0]


def _rows_at(items: Any, places: Any) -> Any:
    return plain(gathering.take)(items, places, 0, mode="clip")


def _doubled(function: Any, items: Any, starts: Any, ends: Any) -> tuple[Any, Any]:
    """Folds of an associative function over parts, which may overlap; and which parts are nonempty.

    Elements are folded in blocks of 1, 2, 4 ...; each part combines the blocks given by the bits of
    its length, from left to right: n log n steps for n elements, whatever the parts are.
    """
    size, one = shape_of(items)[0], literal(1, starts.dtype)
    total: Any = None
    some: Any = None
    shape = (*shape_of(starts), *shape_of(items)[1:])
    lengths = lax.max(lax.sub(ends, starts), literal(0, starts.dtype))
    width = 1
    while width <= size:
        block = _rows_at(items, starts)
        odd = lax.ne(lax.bitwise_and(lengths, one), literal(0, starts.dtype))
        is_taken = lax.broadcast_in_dim(odd, shape, (0,))
        if width == 1:
            total, some = block, is_taken
        else:
            folded = lax.convert_element_type(function(total, block), items.dtype)
            total = lax.select(is_taken, lax.select(some, folded, block), total)
            some = lax.bitwise_or(some, is_taken)
        starts = pick(odd, lax.add(starts, literal(width, starts.dtype)), starts)
        lengths = lax.shift_right_logical(lengths, one)
        if 2 * width <= size:
            pairs = function(items[:-width], items[width:])
            items = lax.convert_element_type(pairs, items.dtype)
        width *= 2
    return total, some


# --------------------------------------------------------------------------------------- the others


def outer(ufunc: Any) -> Function:
    """The method `outer`."""

    def run(a: Any, b: Any) -> Any:
        x = value(array_like(a, f"{ufunc.__name__}.outer", "A"))
        y = value(array_like(b, f"{ufunc.__name__}.outer", "B"))
        first, second = shape_of(x), shape_of(y)
        x = shapes.reshaped(x, first + (1,) * len(second))
        return plain(ufunc)(x, shapes.reshaped(y, (1,) * len(first) + second))

    return run


def updated(ufunc: Any, a: Any, indices: Any, b: Any, loop: Function) -> Any:
    """The result of the method `at`.

    Args:
        ufunc: the ufunc.
        a: array.
        indices: index of any form.
        b: the values to combine the elements with, or None.
        loop: the result of `update` for the ufunc.
    """
    name = f"{ufunc.__name__}.at"
    if not isinstance(a, ArrayClass):
        a = value(array_like(a, name, "a"))
    if b is not None:
        b = array_like(b, name, "b")
        b = b.val if type(b) is Literal else b
    method = _SCATTERS.get(ufunc._family)
    if method is not None:
        return getattr(a.at[indices], method)(b)
    if not all(map(_is_position, indices if isinstance(indices, tuple) else (indices,))):
        return loop(a, None, _places(a, indices), b)
    return loop(a, indices, None, b)


def _is_position(item: Any) -> bool:
    """Whether a part of an index can be an argument of a program."""
    if isinstance(item, (ArrayClass, np.ndarray, np.generic)):
        return dtypes.kind_of(item.dtype) in ("i", "u")
    return type(item) is int


def _places(x: Any, indices: Any) -> Any:
    """The flat positions of the indexed elements; out of bounds, the number of all elements."""
    size = aval_of(x).size
    numbers = shapes.reshaped(lax.iota(dtypes.default_dtype("i"), size), shape_of(x))
    return numbers.at[indices].get(mode="fill", fill_value=size)


def update(ufunc: Any) -> Function:
    """The loop behind `at`: elements of the flattened array change one by one."""
    name = f"{ufunc.__name__}.at"
    function = plain(ufunc)

    def run(x: Any, indices: Any, places: Any, b: Any) -> Any:
        if places is None:
            places = _places(x, indices)
        operands = (x,) if b is None else (x, b)
        scalars = [ShapeDtypeStruct((), aval_of(v).dtype) for v in operands]
        out_dtype = eval_shape(function, *scalars).dtype
        logical = dtypes.kind_of(out_dtype) == "b"
        carried = aval_of(x).dtype if logical else dtypes.promote_types(out_dtype, aval_of(x).dtype)
        values = None
        if b is not None:
            b = value(array_like(b, name, "b"))
            common = broadcast_result(name, (shape_of(b), shape_of(places)), explicit=True)
            if common != shape_of(places):
                raise ValueError(
                    f"{name}: b of shape {shape_of(b)} cannot be broadcast to the shape "
                    f"{shape_of(places)} of the indexed part"
                )
            values = shapes.reshaped(spread(b, shape_of(places)), (aval_of(places).size,))
        if not aval_of(x).size or not aval_of(places).size:
            return convert(x, carried)
        flat = convert(shapes.reshaped(x, (aval_of(x).size,)), carried)
        places = shapes.reshaped(places, (aval_of(places).size,))

        def step(total: Any, change: Any) -> tuple[Any, None]:
            place = change if values is None else change[0]
            old = total.at[place].get(mode="clip")
            new = function(old) if values is None else function(old, change[1])
            new = lax.convert_element_type(new, carried)
            return total.at[place].set(new, mode="drop"), None

        result, _ = lax.scan(step, flat, places if values is None else (places, values))
        return shapes.reshaped(result, shape_of(x))

    return run
