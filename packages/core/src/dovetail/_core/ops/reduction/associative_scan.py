"""Cumulative operations with a user-defined function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dovetail._core.base import config, pytree
from dovetail._core.base.errors import InconclusiveDimensionOperation
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ir.dimensions import is_symbolic_dim
from dovetail._core.ops.calls.jit import call
from dovetail._core.ops.shape.dimensions import canonical_dimension, inserted, replaced
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.reshaping import reverse as reversed_along
from dovetail._core.ops.shape.slicing import slice_dimension
from dovetail._core.trace.state import evaluation_trace, state
from dovetail._core.transform.derived import hoist_consts
from dovetail._core.transform.flattening import check_callable, debug_info, name_of
from dovetail._core.transform.interning import interned
from dovetail._core.transform.stage import stage

T = TypeVar("T")

#: From earlier and later elements, as flat lists, to combined ones.
Combine = Callable[[list[Any], list[Any]], list[Any]]


def associative_scan(fn: Callable[[T, T], T], elems: T, reverse: bool = False, axis: int = 0) -> T:
    """Combine all elements up to each position along an axis with a function.

    The function is called about ``2 * log2(n)`` times on many elements at once, and about ``2 * n``
    elements are combined. An eager call compiles everything as one program.

    Args:
        fn: a function of two trees of arrays like `elems`, with fewer elements along the axis, to a
            third. It combines elements one by one, and has to be associative: ``fn(a, fn(b, c))``
            equals ``fn(fn(a, b), c)``. Elements of its first argument precede those of its second.
        elems: a tree of arrays with the same size along `axis`.
        reverse: go from the last element to the first.
        axis: the dimension to scan; a negative one counts from the end of the first array.

    Returns:
        A tree like `elems`: at each position, the combination of the elements up to it; with
        `reverse`, of those from it on, last one first.

    Raises:
        TypeError: `fn` is not a function, or does not return arrays like its arguments.
        ValueError: the axis is out of bounds, there are no arrays, or sizes along the axis differ.

    Differs:
        It is one program also when called eagerly.

        >>> print(lax.associative_scan(jnp.add, jnp.arange(4)))
        [0 1 3 6]

        Results are never weakly typed, however many elements there are.

        >>> print(lax.associative_scan(jnp.add, jnp.full(1, 1.0)).weak_type)
        False

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.associative_scan(lax.add, np.array([1, 2, 3, 4])).tolist()
        [1, 3, 6, 10]
        >>> a, b = np.array([2, 3, 1]), np.array([1, 1, 1])  # y -> a * y + b, one after another
        >>> then = lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1])
        >>> lax.associative_scan(then, (a, b))[1].tolist()
        [1, 4, 5]
    """
    check_callable(fn, "lax.associative_scan")
    pairs, tree = pytree.flatten_with_path(elems)
    if not pairs:
        raise ValueError("lax.associative_scan: elems holds no array")
    names = ["elems" + pytree.keystr(path) for path, _ in pairs]
    arrays = [
        as_operand(x, "lax.associative_scan", name)
        for (_, x), name in zip(pairs, names, strict=True)
    ]
    # The result has dtypes of its own, also where the elements are weakly typed.
    arrays = [convert_element_type(x, aval_of(x).dtype) for x in arrays]
    axis = canonical_dimension(axis, len(shape_of(arrays[0])), "associative_scan")
    shapes = list(map(shape_of, arrays))
    for name, shape in zip(names, shapes, strict=True):
        if len(shape) <= axis or shape[axis] != shapes[0][axis]:
            raise ValueError(
                f"lax.associative_scan: arrays must have the same size along axis {axis}, got "
                f"{names[0]} of shape {shapes[0]} and {name} of shape {shape}"
            )

    def combine(first: list[Any], second: list[Any]) -> list[Any]:
        out = fn(pytree.unflatten(tree, first), pytree.unflatten(tree, second))
        results, out_tree = pytree.flatten(out)
        if out_tree != tree:
            raise TypeError(
                f"lax.associative_scan: {name_of(fn)} must return a tree like its arguments, "
                f"{tree}, got {out_tree}"
            )
        values = []
        for name, given, result in zip(names, first, results, strict=True):
            value = as_operand(
                result, "lax.associative_scan", f"result of {name_of(fn)} for {name}"
            )
            want, have = aval_of(given), aval_of(value)
            if have.shape != want.shape or have.dtype != want.dtype:
                raise TypeError(
                    f"lax.associative_scan: {name_of(fn)} must return arrays like its arguments: "
                    f"for {name} it was given {want.short_name()} and returned {have.short_name()}"
                )
            values.append(value)
        return values

    def scan(*xs: Any) -> list[Any]:
        dimensions = (axis,) if reverse else ()
        outs = _scan([reversed_along(x, dimensions) for x in xs], combine, axis)
        return [reversed_along(y, dimensions) for y in outs]

    if state.trace is not evaluation_trace or config.disable_jit.value:
        outs = scan(*arrays)
    else:
        info = debug_info("associative_scan", fn)
        closed, captured = hoist_consts(stage(scan, list(map(aval_of, arrays)), info))
        outs = call(interned(closed), [*captured, *arrays], "associative_scan")
    result: T = pytree.unflatten(tree, outs)
    return result


def _scan(xs: Sequence[Any], combine: Combine, axis: int) -> list[Any]:
    size = shape_of(xs[0])[axis]
    if is_symbolic_dim(size):
        raise InconclusiveDimensionOperation(
            f"lax.associative_scan goes along a dimension of the symbolic size {size}, and the "
            "program that it becomes depends on the size; use lax.scan, or lax.cumsum and the like"
        )
    if size < 2:
        return list(xs)

    def part(arrays: Sequence[Any], start: int, limit: int, step: int = 1) -> list[Any]:
        return [slice_dimension(x, start, limit, axis, step) for x in arrays]

    paired = size - size % 2
    # Results at the positions 1, 3, 5, ...
    odd = _scan(combine(part(xs, 0, paired, 2), part(xs, 1, paired, 2)), combine, axis)
    even = part(xs, 0, 1)
    if size > 2:
        later = combine(part(odd, 0, (size - 1) // 2), part(xs, 2, size, 2))
        even = [_joined([e, x], axis) for e, x in zip(even, later, strict=True)]
    return [_interleaved(e, o, axis) for e, o in zip(even, odd, strict=True)]


def _joined(xs: Sequence[Any], axis: int) -> Any:
    return concatenate_p.bind(*xs, dimension=axis)


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """The elements of `even`, which may have one more, and `odd`, alternating."""
    shape = shape_of(odd)
    half, extra = shape[axis], shape_of(even)[axis] - shape[axis]
    columns = [
        structural.reshape(slice_dimension(x, 0, half, axis), inserted(shape, axis + 1, 1))
        for x in (even, odd)
    ]
    mixed = structural.reshape(_joined(columns, axis + 1), replaced(shape, axis, 2 * half))
    return _joined([mixed, slice_dimension(even, half, half + 1, axis)], axis) if extra else mixed
