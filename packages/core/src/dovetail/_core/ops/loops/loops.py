"""Loops of known length: `scan`, `fori_loop` and `map`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar, overload

import numpy as np

from dovetail._core.base import config, dtypes, pytree
from dovetail._core.base.errors import ConcretizationTypeError
from dovetail._core.base.typing import Array, ArrayLike, IntLike, PyTree
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand, literal_like, make_literal
from dovetail._core.basis.structural import reshape
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ir.dimensions import as_size, max_dim
from dovetail._core.ir.jaxpr import DebugInfo
from dovetail._core.ops.control.bodies import (
    Body,
    Operands,
    named,
    operands_of,
    stage_body,
    stage_loop,
)
from dovetail._core.ops.control.partial_scan import COUNT
from dovetail._core.ops.control.scan import ScanParams
from dovetail._core.ops.control.while_loop import run_while
from dovetail._core.ops.elementwise.arithmetic import add, sub
from dovetail._core.ops.elementwise.comparison import lt
from dovetail._core.ops.loops.progress import Progress, progress_of, staging
from dovetail._core.ops.shape.dimensions import integer
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.slicing import slice_dimension
from dovetail._core.trace.mutable_references import Ref, refuse_parts
from dovetail._core.trace.named_axes import BatchAxis
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.batch import batch_flat, place_batch
from dovetail._core.transform.flattening import FlatFunction, check_callable, leaf_names
from dovetail._core.transform.interning import interned
from dovetail._core.transform.referencing import Lending
from dovetail._core.transform.stage import stage

#: The name of what a loop with progress carries itself.
_COUNTED: Final = ("the number of turns so far",)

C = TypeVar("C")
X = TypeVar("X")
Y = TypeVar("Y")


@overload
def scan(
    f: Callable[[Array, X], tuple[ArrayLike, Y]],
    init: ArrayLike,
    xs: X,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    progress: Literal["text"] | None = None,
) -> tuple[Array, Y]: ...
@overload
def scan(
    f: Callable[[C, X], tuple[C, Y]],
    init: C,
    xs: X,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    progress: Literal["text"] | None = None,
) -> tuple[C, Y]: ...
@overload
def scan(
    f: Callable[[Any, Any], tuple[C, Y]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    progress: Literal["text"] | None = None,
) -> tuple[C, Y]: ...
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    progress: Literal["text"] | None = None,
) -> tuple[PyTree, PyTree]:
    """Call a function for each slice along the leading axis of arrays, and carry a value along.

    The function is traced once, and the loop is one operation of the compiled program: compile time
    does not grow with the number of elements. It has derivatives of every order in both modes. For
    a gradient, the residuals of `f` are saved for every element, except for those that are the same
    for all. `dovetail.checkpoint` around `f` saves fewer.

    Args:
        f: maps the carry and an element of `xs` to the new carry, a tree of arrays with the same
            structure, shapes and dtypes, and a result for this element, a tree of arrays.
        init: the initial carry, a tree of arrays. A Python number in it takes the dtype that `f`
            returns.
        xs: a tree of arrays of the same size along axis 0; None if there are none. Of a mutable
            reference in it, each call of `f` gets a reference to its own element.
        length: the number of elements; needed only if `xs` has no arrays.
        reverse: whether to start with the last element.
        unroll: the number of calls of `f` per iteration of the compiled loop; True to unroll fully.
        _split_transpose: accepted for compatibility; gradients do not depend on it.
        progress: "text" to show on the standard error how far the loop is: by tqdm where that is
            installed, else in a line of its own. The program reports about a hundred times, and
            the option `progress_bars`, which is on, decides when it does whether that is shown:
            nothing is traced again. A gradient shows its first pass, and a batch one bar. The bar
            of a loop in another one goes away when it ends. Of several processes the first shows
            bars. As with all functions of the host, such a program cannot be exported, and a
            checkpointed function does not run the loop again but keeps what its gradient needs.

    Returns:
        The final carry, and the results for all elements, stacked along a new axis 0 in the order
        of `xs`.

    Raises:
        TypeError: `f` does not return a pair, or its carry has another type than `init`.
        ValueError: sizes along axis 0 differ from each other or from `length`, no length is known,
            or `progress` is another string.

    Differs:
        A function is traced anew where a variable that it names has changed, as it also is by
        `map`, `fori_loop`, `while_loop`, `cond`, `switch` and `checkpoint`. JAX goes on with what
        the variable held when it first traced the function.

        >>> rate = 2
        >>> double = lambda c, _: (c * rate, None)
        >>> print(lax.scan(double, 1, None, 3)[0])
        8
        >>> rate = 3
        >>> print(lax.scan(double, 1, None, 3)[0])
        27

        A weakly typed result of the function takes the type of a first value that is none.

        >>> print(lax.scan(lambda c, x: (2.0, x), jnp.float32(1), jnp.ones(2))[0].weak_type)
        False

        The result is a tuple also where the function returns another pair, such as a list.
        ``unroll=0``, and ``batch_size=0`` of `map`, are refused.

        >>> type(lax.scan(lambda c, x: [c, x], 0, jnp.ones(2)))
        <class 'tuple'>

        ``progress=`` is ours, as it is of `map`, `fori_loop` and `while_loop`.

        >>> import contextlib, io
        >>> with contextlib.redirect_stderr(io.StringIO()) as shown:
        ...     total, _ = lax.scan(lambda c, x: (c + x, None), 0.0, jnp.ones(3), progress="text")
        ...     _ = total.block_until_ready()
        >>> print(shown.getvalue().splitlines()[-1])
        scan of <lambda>: 100% ######################## 3/3 [... s]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> total, sums = lax.scan(lambda c, x: (c + x, c + x), 0, np.array([1, 2, 3]))
        >>> int(total), sums.tolist()
        (6, [1, 3, 6])
    """
    check_callable(f, "lax.scan")
    elements = operands_of(_values_of(xs, "lax.scan"), "lax.scan", "xs")
    length = _length(elements, "lax.scan", length)
    unroll = _unroll(unroll, length)
    carry = operands_of(init, "lax.scan", "init")
    shown = progress_of(progress, "lax.scan", f)
    if config.disable_jit.value and length:
        f = f if shown is None else shown.calling(f, length)
        return _step_by_step(f, init, xs, elements, length, bool(reverse))
    flat = FlatFunction(
        f, pytree.structure((init, pytree.unflatten(elements.tree, elements.leaves)))
    )
    lent = _lending(flat, carry.leaves, xs, "lax.scan")
    own, names, turn, kind = _counted(shown, flat, lent, leaf_names(f, (init, xs)), length)
    with staging(shown):
        carry, body = stage_loop(
            "lax.scan",
            flat,
            names,
            carry,
            own=own,
            elements=_elements(elements),
            turn=turn,
            kind=kind,
            carried=lambda out_tree: _parts_of_pair(f, out_tree)[0],
        )
    count = len(carry.leaves)
    first = [*own, *carry.leaves]
    outs = _scan(body, first, elements, length, reverse, unroll, _split_transpose)
    outs = _ended(shown, outs, own)
    ys_tree = _parts_of_pair(f, body.out_tree)[1]
    outs = _write_back(lent, outs, count + ys_tree.num_leaves)
    return pytree.unflatten(carry.tree, outs[:count]), pytree.unflatten(ys_tree, outs[count:])


def _counted(
    progress: Progress | None, flat: FlatFunction, lent: Any, names: tuple[str, ...], length: Any
) -> tuple[list[Any], tuple[str, ...], Callable[..., list[Any]] | None, str | None]:
    """What a loop carries itself, the names of its arguments, its turn, and that turn's kind.

    Args:
        progress: how its progress is shown, if at all.
        flat: the function.
        lent: the function, lent references, if there are any.
        names: names of the arguments of the function.
        length: the number of turns.
    """
    if progress is None:
        return [], names, lent, None
    turn = progress.counting(flat if lent is None else lent, length)
    kind = None if lent is not None else f"{progress.kind}, {length}"
    return [make_literal(0, COUNT)], (*_COUNTED, *names), turn, kind


def _ended(progress: Progress | None, outs: list[Any], own: Sequence[Any]) -> list[Any]:
    """The results of a loop but for what it carries itself, first the number of turns."""
    if progress is not None:
        progress.end(outs[0])
    return outs[len(own) :]


def _values_of(xs: Any, caller: str) -> Any:
    """A tree with values in place of its references."""
    if not any(type(leaf) is Ref for leaf in pytree.leaves(xs)):
        return xs
    refuse_parts(xs, caller)
    return pytree.map(lambda leaf: leaf.get() if type(leaf) is Ref else leaf, xs)


def _lending(
    flat: FlatFunction, carry: Sequence[Any], xs: Any, caller: str
) -> Callable[..., list[Any]] | None:
    """The function, lent references to its elements of the references in `xs`, if any are there.

    Its last results are what it leaves in those that it changes.
    """
    leaves = [*carry, *pytree.leaves(xs)]
    numbers = [i for i, leaf in enumerate(leaves) if type(leaf) is Ref]
    return (
        Lending(flat, leaves, numbers, f"{caller} of {named(flat.function)}") if numbers else None
    )


def _write_back(lent: Any, outs: list[Any], count: int) -> list[Any]:
    """Write what a loop leaves in references, and return its `count` results."""
    if lent is not None:
        for number, value in zip(lent.changed, outs[count:], strict=True):
            lent.leaves[number].write(value)
    return outs[:count]


def _elements(xs: Operands) -> list[Any]:
    return [a.update(shape=a.shape[1:]) for a in xs.avals]


def _scan(
    body: Body,
    carry: Sequence[Any],
    xs: Operands,
    length: int,
    reverse: Any = False,
    unroll: int = 1,
    split_transpose: Any = False,
) -> list[Any]:
    loop = ScanParams(
        body.closed,
        length,
        bool(reverse),
        len(body.captured),
        len(body.changed) + len(carry),
        unroll,
        (),
        bool(split_transpose),
    )
    carry = [*body.held(), *carry]
    return body.finish(loop.bind(body.captured, carry, xs.leaves, body.closed))


def _parts_of_pair(f: Callable[..., Any], out_tree: Any) -> list[Any]:
    """The structures of the two results of `f`: the carry, and the result for an element."""
    data = out_tree.node_data()
    kind = type(None) if data is None else data[0]
    parts: list[Any] = out_tree.children()
    if issubclass(kind, (tuple, list)) and len(parts) == 2:
        return parts
    what = "a leaf" if data is None else f"{kind.__name__}"
    raise TypeError(
        f"lax.scan: {named(f)} must return a pair (what is carried on, the result for this "
        f"element), got {what}"
        + (f" of length {len(parts)}" if issubclass(kind, (tuple, list)) else "")
    )


def _length(xs: Operands, caller: str, length: Any = None) -> int:
    if length is not None:
        try:
            length = as_size(length)
        except TypeError:
            if isinstance(length, Tracer):
                raise ConcretizationTypeError(
                    length,
                    f"the argument length of {caller}; where the number of turns is known only at "
                    "run time, use lax.fori_loop or lax.while_loop",
                ) from None
            raise TypeError(
                f"{caller}: length must be an integer known while tracing, got "
                f"{length!r:.80}; where the number of turns is known only at run time, use "
                "lax.fori_loop or lax.while_loop"
            ) from None
        if length < 0:
            raise ValueError(f"{caller}: length must not be negative, got {length}")
    given = length is not None
    for x, name in zip(xs.leaves, xs.names, strict=True):
        shape = shape_of(x)
        if not shape:
            raise ValueError(
                f"{caller}: {name} is a scalar; arrays in xs need a leading axis, whose elements "
                "the function is called for"
            )
        if length is not None and shape[0] != length:
            sizes = ", ".join(
                f"{n} of shape {shape_of(e)}" for e, n in zip(xs.leaves, xs.names, strict=True)
            )
            raise ValueError(
                f"{caller}: all arrays in xs must have the size {length} along axis 0"
                + (", which length says, got " if given else ", got ")
                + sizes
            )
        length = shape[0]
    if length is None:
        if caller == "lax.map":
            raise ValueError("lax.map: xs has no array, for whose elements f would be called")
        raise ValueError(f"{caller}: xs has no array, so length must be given")
    return as_size(length)


def _unroll(unroll: Any, length: int) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    try:
        number = operator.index(unroll)
    except TypeError:
        raise TypeError(f"unroll of a loop must be a bool or an integer, got {unroll!r}") from None
    if number < 1:
        raise ValueError(f"unroll of a loop must be a bool or a positive integer, got {unroll!r}")
    return number


def _step_by_step(
    f: Callable[..., Any], init: Any, xs: Any, elements: Operands, length: int, reverse: bool
) -> Any:
    """The loop in Python, for `disable_jit`."""
    carry = init
    results: list[Any] = []
    for i in reversed(range(length)) if reverse else range(length):
        parts = [
            x.at[i]
            if type(x) is Ref
            else reshape(slice_dimension(value, i, i + 1, 0), shape_of(value)[1:])
            for x, value in zip(pytree.leaves(xs), elements.leaves, strict=True)
        ]
        out = f(carry, pytree.unflatten(elements.tree, parts))
        _parts_of_pair(f, pytree.structure(out))  # raises unless it is a pair
        carry, y = out
        results.append(y)
    if reverse:
        results.reverse()

    def stack(*ys: Any) -> Any:
        ys = tuple(as_operand(y, "lax.scan", "result") for y in ys)
        return concatenate_p.bind(*(reshape(y, (1, *shape_of(y))) for y in ys), dimension=0)

    return carry, pytree.map(stack, *results)


@overload
def fori_loop(
    lower: IntLike,
    upper: IntLike,
    body_fun: Callable[[Any, Array], ArrayLike],
    init_val: ArrayLike,
    *,
    unroll: int | bool | None = None,
    progress: Literal["text"] | None = None,
) -> Array: ...
@overload
def fori_loop(
    lower: IntLike,
    upper: IntLike,
    body_fun: Callable[[Any, C], C],
    init_val: C,
    *,
    unroll: int | bool | None = None,
    progress: Literal["text"] | None = None,
) -> C: ...
@overload
def fori_loop(
    lower: IntLike,
    upper: IntLike,
    body_fun: Callable[[Any, Any], C],
    init_val: PyTree,
    *,
    unroll: int | bool | None = None,
    progress: Literal["text"] | None = None,
) -> C: ...
def fori_loop(
    lower: IntLike,
    upper: IntLike,
    body_fun: Callable[[Any, Any], Any],
    init_val: PyTree,
    *,
    unroll: int | bool | None = None,
    progress: Literal["text"] | None = None,
) -> PyTree:
    """Call a function for each integer of a range, and carry a value along.

    The function is traced once. If both bounds are concrete (Python integers or arrays), this is a
    `scan`, which has gradients; otherwise it is a `while_loop`, which has derivatives in forward
    mode only.

    Args:
        lower: the first integer, or a float that is whole.
        upper: the end of the range, exclusive; of the dtype of `lower`.
        body_fun: maps an integer and the carry to the new carry, a tree of arrays with the same
            structure, shapes and dtypes. The integer is weakly typed if both bounds are concrete,
            else it has their dtype.
        init_val: the initial carry, a tree of arrays. A Python number in it takes the dtype that
            `body_fun` returns.
        unroll: the number of calls per iteration of the compiled loop; True to unroll fully. More
            than one call needs concrete bounds.
        progress: "text" to show on the standard error how far the loop is, as `scan` does.

    Returns:
        The final carry; `init_val` if the range is empty.

    Raises:
        TypeError: a bound is not a scalar, the bounds have different dtypes, or `body_fun` returns
            another type than that of `init_val`.
        ValueError: a bound is known and not whole, the loop is unrolled, but the bounds are not
            concrete, or `progress` is another string.

    Differs:
        A loop that is called eagerly traces its body at every call, and finds what was compiled
        by the content of the body. JAX finds it by the identity of the function, and goes on
        with old values of globals, closures and attributes that have changed since.

        >>> step = {"size": 1}
        >>> def body(i, total):
        ...     return total + step["size"]
        >>> first = lax.fori_loop(0, 3, body, 0)
        >>> step["size"] = 10
        >>> print(first, lax.fori_loop(0, 3, body, 0))
        3 30

        A bound that is not whole is refused, where JAX drops its fraction in some cases.

        >>> lax.fori_loop(0.5, 3.0, lambda i, total: total + i, 0)
        Traceback (most recent call last):
            ...
        ValueError: lax.fori_loop: lower must be a whole number, got 0.5

    Example:
        >>> from dovetail import lax
        >>> int(lax.fori_loop(1, 5, lambda i, product: i * product, 1))
        24
    """
    check_callable(body_fun, "lax.fori_loop")
    bounds = [as_operand(b, "lax.fori_loop", n) for b, n in ((lower, "lower"), (upper, "upper"))]
    for bound, name in zip(bounds, ("lower", "upper"), strict=True):
        aval = aval_of(bound)
        if aval.shape or dtypes.kind_of(aval.dtype) not in ("b", "i", "u", "f"):
            raise TypeError(
                f"lax.fori_loop: {name} must be a scalar integer, got {aval.short_name()}"
            )
    first, last = aval_of(bounds[0]), aval_of(bounds[1])
    dtype = dtypes.result_type(*bounds)
    integers = {dtypes.kind_of(aval.dtype) in ("i", "u") for aval in (first, last)} == {True}
    if first.dtype != last.dtype and not (integers and (first.weak_type or last.weak_type)):
        raise TypeError(
            "lax.fori_loop: lower and upper must have one dtype, got "
            f"{first.short_name()} and {last.short_name()}"
        )
    known = [_known(lower, "lower"), _known(upper, "upper")]
    concrete = None not in known
    start, stop = [n or 0 for n in known]
    shown = progress_of(progress, "lax.fori_loop", body_fun)
    weak = first.weak_type and last.weak_type
    if concrete:
        limits = dtypes.iinfo(dtypes.default_dtype("i"))
        if all(limits.min <= n <= limits.max for n in (start, stop)):
            dtype, weak = dtypes.default_dtype("i"), True
    elif dtypes.kind_of(dtype) == "b":
        raise TypeError(f"lax.fori_loop: lower must be a scalar integer, got {first.short_name()}")
    if config.disable_jit.value and concrete:
        value: Any = init_val
        turn = body_fun if shown is None else shown.calling(body_fun, stop - start)
        for i in range(start, stop):
            value = turn(np.asarray(i, dtype)[()], value)
        return value

    index = (
        make_literal(start, dtype, weak)
        if concrete
        else convert_element_type(bounds[0], dtype, weak)
    )

    carry = operands_of(init_val, "lax.fori_loop", "init_val")
    flat = FlatFunction(body_fun, pytree.structure((0, init_val)))
    names = leaf_names(body_fun, (0, init_val))

    if concrete:

        def step(i: Any, *value: Any) -> list[Any]:
            return [add(i, literal_like(1, i)), *flat(i, *value)]

        length = max_dim(stop - start, 0)
        turns = 1 if unroll is None else _unroll(unroll, length)
        own, turn, kind = [index], step, "counted"
        if shown is not None:
            own, turn = [make_literal(0, COUNT), index], shown.counting(step, length)
            names, kind = (*_COUNTED, *names), f"{kind}, {shown.kind}, {length}"
        with staging(shown):
            carry, body = stage_loop(
                "lax.fori_loop", flat, names, carry, own=own, turn=turn, kind=kind
            )
        nothing = Operands([], None, [])
        outs = _scan(body, [*own, *carry.leaves], nothing, length, unroll=turns)
        return pytree.unflatten(carry.tree, _ended(shown, outs, own))
    if unroll is not None and (unroll is True or _unroll(unroll, 0) != 1):
        raise ValueError(
            "lax.fori_loop: unroll needs bounds that are known while tracing, got "
            f"lower={lower!r:.60} and upper={upper!r:.60}"
        )
    end = convert_element_type(bounds[1], dtype, weak)

    def advance(i: Any, end: Any, *value: Any) -> list[Any]:
        return [add(i, literal_like(1, i)), end, *flat(i, *value)]

    own, turn, kind = [index, end], advance, "up to a bound"
    names = (names[0], "upper", *names[1:])
    if shown is not None:
        reported = shown

        def turn(count: Any, total: Any, *args: Any) -> list[Any]:
            return [reported.counted(count, total), total, *advance(*args)]

        total = convert_element_type(sub(end, index), COUNT)
        own, kind = [make_literal(0, COUNT), total, *own], f"{kind}, {shown.kind}"
        names = (*_COUNTED, "the number of turns", *names)
    with staging(shown):
        carry, body = stage_loop("lax.fori_loop", flat, names, carry, own=own, turn=turn, kind=kind)
    leaves = [*own, *carry.leaves]
    at = len(own) - 2
    proceed = stage(
        lambda *now: [lt(now[at], now[at + 1])],
        [aval_of(x) for x in leaves],
        DebugInfo("lax.fori_loop", "the comparison with upper"),
    )
    outs = run_while(Body(interned(proceed), [], None), body, leaves)
    return pytree.unflatten(carry.tree, _ended(shown, outs, own))


def _known(bound: Any, name: str) -> int | None:
    """The integer that a bound of `fori_loop` is, if its value is known, else None.

    Raises:
        ValueError: it is a number that is not whole.
    """
    try:
        return as_size(bound)
    except TypeError:
        try:
            number = float(bound)
        except TypeError:
            return None
    if not number.is_integer():
        raise ValueError(f"lax.fori_loop: {name} must be a whole number, got {number}")
    return int(number)


def map(
    f: Callable[[X], Y],
    xs: X,
    *,
    batch_size: int | None = None,
    progress: Literal["text"] | None = None,
) -> Y:
    """Call a function for each slice along the leading axis of arrays, one after another.

    The result is that of `vmap`, with less memory (one element at a time) and more time.

    Args:
        f: a function from an element to a tree of arrays.
        xs: a tree of arrays of the same size along axis 0.
        batch_size: the number of elements to vectorize with `vmap` at a time; by default, one.
        progress: "text" to show on the standard error how far the loop is, as `scan` does.

    Returns:
        The results for all elements, stacked along a new axis 0.

    Raises:
        ValueError: sizes along axis 0 differ, `batch_size` is not positive, or `progress` is
            another string.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.map(lambda x: x * x, np.array([1, 2, 3])).tolist()
        [1, 4, 9]
    """
    check_callable(f, "lax.map")
    if batch_size is not None and integer(batch_size, "map", "batch_size") < 1:
        raise ValueError(f"lax.map: batch_size must be a positive integer, got {batch_size!r}")
    if batch_size is None:
        elements = operands_of(_values_of(xs, "lax.map"), "lax.map", "xs")
    else:
        elements = operands_of(xs, "lax.map", "xs")
    length = _length(elements, "lax.map")
    flat = FlatFunction(f, pytree.structure((pytree.unflatten(elements.tree, elements.leaves),)))
    names = leaf_names(f, (xs,))
    shown = progress_of(progress, "lax.map", f)
    if config.disable_jit.value and length:
        f = f if shown is None else shown.calling(f, length)
        _, each = _step_by_step(lambda _, x: ((), f(x)), (), xs, elements, length, False)
        return each
    if batch_size is None:
        lent = _lending(flat, [], xs, "lax.map")
        own, names, turn, kind = _counted(shown, flat, lent, names, length)
        avals = [*(aval_of(x) for x in own), *_elements(elements)]
        with staging(shown):
            body = stage_body("lax.map", flat, avals, names, turn, kind)
        outs = _ended(shown, _scan(body, own, elements, length), own)
        return pytree.unflatten(body.out_tree, _write_back(lent, outs, body.out_tree.num_leaves))

    def batched(*values: Any) -> list[Any]:
        size = shape_of(values[0])[0]
        outs, dims = batch_flat(flat, values, [0] * len(values), size, BatchAxis(None, size))
        return [place_batch(o, d, size, 0) for o, d in zip(outs, dims, strict=True)]

    def part(start: int, stop: int) -> list[Any]:
        return [slice_dimension(x, start, stop, 0) for x in elements.leaves]

    turns, rest = divmod(length, batch_size)
    whole = length - rest
    results = []
    if turns:
        shape = (turns, batch_size)
        groups = [reshape(x, (*shape, *shape_of(x)[1:])) for x in part(0, whole)]
        grouped = elements._replace(leaves=groups)
        own, names, turn, _ = _counted(shown, flat, batched, names, turns)
        avals = [*(aval_of(x) for x in own), *_elements(grouped)]
        with staging(shown):
            body = stage_body("lax.map", flat, avals, names, turn)
        outs = _ended(shown, _scan(body, own, grouped, turns), own)
        results.append([reshape(y, (whole, *shape_of(y)[2:])) for y in outs])
    if rest or not turns:
        results.append(batched(*part(whole, length)))
    joined = [
        parts[0] if len(parts) == 1 else concatenate_p.bind(*parts, dimension=0)
        for parts in zip(*results, strict=True)
    ]
    return pytree.unflatten(flat.out_tree, joined)
