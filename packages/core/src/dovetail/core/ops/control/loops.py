"""Loops of a known length as users write them: `scan`, `fori_loop` and `map`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from dovetail.core.base import config, dtypes, pytree
from dovetail.core.basis.elementwise import convert_element_type, dtype_kind
from dovetail.core.basis.operands import literal, literal_like
from dovetail.core.basis.operands import operand as as_operand
from dovetail.core.basis.structural import reshape
from dovetail.core.ir.avals import aval_of, shape_of
from dovetail.core.ops.arithmetic import add
from dovetail.core.ops.comparison import lt
from dovetail.core.ops.control.bodies import check_carry, operands_of, promoted, stage_body
from dovetail.core.ops.control.scan import Loop
from dovetail.core.ops.control.while_loop import while_loop
from dovetail.core.ops.joining import concatenate_p
from dovetail.core.ops.slicing import slice_dimension
from dovetail.core.transform.batch import batch_flat, place_batch
from dovetail.core.transform.flattening import FlatFunction, check_callable, leaf_names, name_of

C = TypeVar("C")
X = TypeVar("X")
Y = TypeVar("Y")


def scan(
    f: Callable[[C, X], tuple[C, Y]],
    init: C,
    xs: X = None,  # type: ignore[assignment]
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[C, Y]:
    """Call a function for each element along the leading axis of arrays, carrying a value along.

    The function is traced once, and the loop is one operation of the compiled program: it takes no
    more time to compile for more elements. It has derivatives of every order in both modes. For a
    gradient, of what `f` computes the values that its derivative needs are kept for every element,
    but for those that are the same for all. `dovetail.checkpoint` around `f` keeps less.

    Args:
        f: from what is carried and an element of `xs` to what is carried, a tree of arrays with the
            same structure, shapes and dtypes, and a result for this element, a tree of arrays.
        init: what is carried at first, a tree of arrays. A Python number in it takes the dtype that
            `f` returns.
        xs: a tree of arrays of the same size along axis 0; None where there are no elements.
        length: the number of elements; needed only where `xs` has no arrays.
        reverse: begin with the last element.
        unroll: how many calls of `f` the compiled loop has in each turn; True for no loop at all.
        _split_transpose: accepted for compatibility; gradients do not depend on it.

    Returns:
        What is carried at the end, and the results for all elements, stacked along a new axis 0 in
        the order of `xs`.

    Raises:
        TypeError: `f` returns no pair, or carries on something else than it was given.
        ValueError: sizes along axis 0 differ from each other or from `length`, or there is none.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> total, sums = lax.scan(lambda c, x: (c + x, c + x), 0, np.array([1, 2, 3]))
        >>> int(total), sums.tolist()
        (6, [1, 3, 6])
    """
    check_callable(f, "lax.scan")
    elements, xs_tree, xs_names = operands_of(xs, "lax.scan", "xs")
    length = _length(elements, xs_names, length)
    unroll = _unroll(unroll, length)
    leaves, tree, names = operands_of(init, "lax.scan", "init")
    if config.disable_jit.value:
        stepped: tuple[C, Y] = _step_by_step(f, init, elements, xs_tree, length, bool(reverse))
        return stepped

    def pair(carry: Any, x: Any) -> Any:
        out = f(carry, x)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(
                f"lax.scan: {name_of(f)} must return a pair (what is carried on, the result for "
                f"this element), got {type(out).__name__}"
                + (f" of length {len(out)}" if isinstance(out, (tuple, list)) else "")
            )
        return tuple(out)

    element_avals = [a.update(shape=a.shape[1:]) for a in [aval_of(x) for x in elements]]
    example = (init, pytree.unflatten(xs_tree, elements))
    arguments = pytree.structure(example)
    for _ in range(2):
        avals = [aval_of(x) for x in leaves]
        body = stage_body(
            pair, "lax.scan", arguments, [*avals, *element_avals], leaf_names(f, example), f
        )
        carried, ys_tree = body.out_tree.children()
        if carried != tree:
            break
        changed = promoted(leaves, avals, body.out_avals[: len(leaves)])
        if changed is None:
            break
        leaves = changed
    check_carry("lax.scan", f, names, tree, avals, carried, body)
    loop = Loop(
        body.closed,
        length,
        bool(reverse),
        len(body.captured),
        len(leaves),
        unroll,
        (),
        bool(_split_transpose),
    )
    outs = loop.bind(body.captured, leaves, elements, body.closed)
    return (
        pytree.unflatten(tree, outs[: len(leaves)]),
        pytree.unflatten(ys_tree, outs[len(leaves) :]),
    )


def _length(elements: list[Any], names: list[str], length: Any) -> int:
    if length is not None:
        try:
            length = operator.index(length)
        except TypeError:
            raise TypeError(
                f"lax.scan: length must be an integer known while tracing, got {length!r:.80}"
            ) from None
        if length < 0:
            raise ValueError(f"lax.scan: length must not be negative, got {length}")
    for x, name in zip(elements, names, strict=True):
        shape = shape_of(x)
        if not shape:
            raise ValueError(
                f"lax.scan: {name} is a scalar; arrays in xs need a leading axis, whose elements "
                "the function is called for"
            )
        if length is not None and shape[0] != length:
            sizes = ", ".join(
                f"{n} of shape {shape_of(e)}" for e, n in zip(elements, names, strict=True)
            )
            raise ValueError(
                f"lax.scan: all arrays in xs must have the size {length} along axis 0, got {sizes}"
            )
        length = shape[0]
    if length is None:
        raise ValueError("lax.scan: xs has no array, so length must be given")
    return int(length)


def _unroll(unroll: Any, length: int) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    try:
        number = operator.index(unroll)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"unroll of a loop must be a bool or a positive integer, got {unroll!r}")
    return number


def _step_by_step(
    f: Callable[..., Any], init: Any, elements: list[Any], tree: Any, length: int, reverse: bool
) -> Any:
    """The loop in Python, for `disable_jit`."""
    carry = init
    results: list[Any] = []
    if not length:
        raise ValueError("lax.scan: a loop without elements cannot run under disable_jit")
    for i in reversed(range(length)) if reverse else range(length):
        parts = [reshape(slice_dimension(x, i, i + 1, 0), shape_of(x)[1:]) for x in elements]
        carry, y = f(carry, pytree.unflatten(tree, parts))
        results.append(y)
    if reverse:
        results.reverse()

    def stack(*ys: Any) -> Any:
        ys = tuple(as_operand(y, "lax.scan", "result") for y in ys)
        return concatenate_p.bind(*(reshape(y, (1, *shape_of(y))) for y in ys), dimension=0)

    return carry, pytree.map(stack, *results)


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, C], C],
    init_val: C,
    *,
    unroll: int | bool | None = None,
) -> C:
    """Call a function for each integer of a range, carrying a value along.

    The function is traced once. Where both bounds are Python integers (or the values of arrays that
    are known) this is a `scan`, which has gradients; otherwise it is a `while_loop`, which has
    derivatives in forward mode alone.

    Args:
        lower: the first integer.
        upper: the integer before which the loop ends.
        body_fun: from an integer and what is carried to what is carried, a tree of arrays with the
            same structure, shapes and dtypes.
        init_val: what is carried at first, a tree of arrays. A Python number in it takes the dtype
            that `body_fun` returns.
        unroll: how many calls the compiled loop has in each turn; True for no loop at all. For
            known bounds only.

    Returns:
        What is carried at the end; `init_val` where the range is empty.

    Raises:
        TypeError: a bound is no scalar integer, both have different dtypes, or `body_fun` returns
            something else than it was given.
        ValueError: `unroll` is given for bounds that are not known.

    Example:
        >>> from dovetail import lax
        >>> int(lax.fori_loop(1, 5, lambda i, product: i * product, 1))
        24
    """
    check_callable(body_fun, "lax.fori_loop")
    bounds = [as_operand(b, "lax.fori_loop", n) for b, n in ((lower, "lower"), (upper, "upper"))]
    for bound, name in zip(bounds, ("lower", "upper"), strict=True):
        aval = aval_of(bound)
        if aval.shape or dtype_kind(aval.dtype) not in ("i", "u"):
            raise TypeError(
                f"lax.fori_loop: {name} must be a scalar integer, got {aval.short_name()}"
            )
    first, last = aval_of(bounds[0]), aval_of(bounds[1])
    dtype = dtypes.result_type(*bounds)
    if first.dtype != last.dtype and not (first.weak_type or last.weak_type):
        raise TypeError(
            "lax.fori_loop: lower and upper must have one dtype, got "
            f"{first.short_name()} and {last.short_name()}"
        )
    try:
        start, stop = operator.index(lower), operator.index(upper)
    except TypeError:
        known = False
    else:
        known = True
    if config.disable_jit.value and known:
        value: Any = init_val
        for i in range(start, stop):
            value = body_fun(np.asarray(i, dtype)[()], value)
        return value  # type: ignore[no-any-return]

    weak = first.weak_type and last.weak_type
    index = literal(start, dtype, weak) if known else convert_element_type(bounds[0], dtype, weak)

    if known:

        def step(carried: Any, _: Any) -> Any:
            i, value = carried
            return (add(i, literal_like(1, i)), body_fun(i, value)), None

        count = max(stop - start, 0)
        turns = 1 if unroll is None else unroll
        (_, result), _ = scan(step, (index, init_val), None, count, unroll=turns)
        return result
    if unroll is not None:
        raise ValueError(
            "lax.fori_loop: unroll needs bounds that are known while tracing, got "
            f"lower={lower!r:.60} and upper={upper!r:.60}"
        )
    end = convert_element_type(bounds[1], dtype, weak)

    def proceed(carried: Any) -> Any:
        return lt(carried[0], carried[1])

    def advance(carried: Any) -> Any:
        i, end, value = carried
        return add(i, literal_like(1, i)), end, body_fun(i, value)

    return while_loop(proceed, advance, (index, end, init_val))[2]


def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y:
    """Call a function for each element along the leading axis of arrays, one after another.

    It gives what `vmap` gives, with the memory of one element at a time, and in more time.

    Args:
        f: from an element to a tree of arrays.
        xs: a tree of arrays of the same size along axis 0.
        batch_size: how many elements `vmap` takes at a time; one by default.

    Returns:
        The results for all elements, stacked along a new axis 0.

    Raises:
        ValueError: sizes along axis 0 differ, or `batch_size` is not positive.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.map(lambda x: x * x, np.array([1, 2, 3])).tolist()
        [1, 4, 9]
    """
    check_callable(f, "lax.map")
    if batch_size is None:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    if type(batch_size) is not int or batch_size < 1:
        raise ValueError(f"lax.map: batch_size must be a positive integer, got {batch_size!r}")
    leaves, tree, names = operands_of(xs, "lax.map", "xs")
    length = _length(leaves, names, None)

    def batched(elements: Any) -> Any:
        values, definition = pytree.flatten((elements,))
        size = shape_of(values[0])[0]
        flat = FlatFunction(f, definition)
        outs, dims = batch_flat(flat, values, [0] * len(values), size)
        placed = [place_batch(o, d, size, 0) for o, d in zip(outs, dims, strict=True)]
        return pytree.unflatten(flat.out_tree, placed)

    whole = length - length % batch_size

    def part(x: Any, start: int, stop: int) -> Any:
        return slice_dimension(x, start, stop, 0)

    if not whole:
        only: Y = batched(pytree.unflatten(tree, leaves))
        return only
    groups = [
        reshape(part(x, 0, whole), (whole // batch_size, batch_size, *shape_of(x)[1:]))
        for x in leaves
    ]
    _, stacked = scan(lambda _, x: ((), batched(x)), (), pytree.unflatten(tree, groups))
    results: Y = pytree.map(lambda y: reshape(y, (whole, *shape_of(y)[2:])), stacked)
    if whole == length:
        return results
    rest = batched(pytree.unflatten(tree, [part(x, whole, length) for x in leaves]))
    joined: Y = pytree.map(lambda a, b: concatenate_p.bind(a, b, dimension=0), results, rest)
    return joined
