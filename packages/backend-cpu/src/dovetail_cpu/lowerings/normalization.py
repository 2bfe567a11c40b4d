"""Layer norm, RMS norm and the logarithms of softmax along the last dimensions, in one kernel.

XLA reads an array once for each reduction, and once more to write the result, each time from
memory. The kernel goes through a row again while the nearest cache holds it.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray
from dovetail_cpu import kernels
from dovetail_cpu.lowerings import differences
from dovetail_cpu.lowerings.differences import kernel_of
from dovetail_cpu.lowerings.elementary import FLOAT32, constant_of, is_made_by, is_used_once
from dovetail_cpu.lowerings.reduction import SUM, is_stored
from dovetail_cpu.lowerings.worth import WORTH_A_KERNEL

_NUMBER: Final = ShapedArray((), FLOAT32)


class _Rows(NamedTuple):
    """What is normalized along axes, by the root of a sum over a divisor, and of what is added."""

    x: Any
    axes: tuple[int, ...]
    mean: Any
    """What is subtracted, one number for each row; None if nothing is."""
    divisor: Any
    epsilon: Any


def first(rules: LoweringTable) -> LoweringTable:
    """The rules, and before them those of this module."""
    own = {"add": _sum, "div": _quotient, "mul": _product, "sub": _difference}
    return LoweringTable([{**rules, **{name: _or(own[name], rules.get(name)) for name in own}}])


def _or(own: Any, rule: Any) -> Any:
    def lower(context: Any, x: Any, y: Any) -> Any:
        if _may_concern_rows(context.equation, x, y):
            found = own(context, x, y)
            if found is not NotImplemented:
                return found
        return NotImplemented if rule is None else rule(context, x, y)

    return lower if rule is None else functools.wraps(rule)(lower)


def _may_concern_rows(equation: Any, x: Any, y: Any) -> bool:
    """Whether one operand may be repeated: what all equations are asked, so it must be quick."""
    out = equation.outvars[0].aval
    if out.dtype != FLOAT32 or out.symbolic or out.size < WORTH_A_KERNEL:
        return False
    shapes = [var.aval.shape for var in equation.invars]
    if () in shapes:
        return False
    if shapes[0] != shapes[1] or out.size == out.shape[-1]:
        return True
    return is_made_by(y, "broadcast_in_dim") or any(
        is_made_by(value, "multiply") and is_made_by(value.owner.operands[0], "broadcast_in_dim")
        for value in (x, y)
    )


def _in_both_orders(context: Any, x: Any, y: Any) -> list[tuple[Any, Any, Any, Any]]:
    """Two operands, each with its variable."""
    first, second = context.equation.invars
    return [(x, y, first, second), (y, x, second, first)]


def _product(context: Any, x: Any, y: Any) -> Any:
    """Rows times the inverse roots of their variances, perhaps scaled before or afterwards."""
    for value, factor, var, of_factor in _in_both_orders(context, x, y):
        scaled = _with(context, value, factor, var, is_scale=True)
        if scaled is not NotImplemented:
            return scaled
        for root, scale in _factors(factor):
            found = _normalized(context, value, root, scale, of_factor, "rsqrt")
            if found is not NotImplemented:
                return found
    return NotImplemented


def _quotient(context: Any, x: Any, y: Any) -> Any:
    """Rows divided by the roots of their variances, perhaps scaled before."""
    return _normalized(context, x, y, None, context.equation.invars[1], "sqrt")


def _sum(context: Any, x: Any, y: Any) -> Any:
    """Normalized rows to which one row is added."""
    for value, term, var, _ in _in_both_orders(context, x, y):
        shifted = _with(context, value, term, var, is_scale=False)
        if shifted is not NotImplemented:
            return shifted
    return NotImplemented


def _difference(context: Any, x: Any, y: Any) -> Any:
    """The logarithm of the softmax along the last dimensions.

    It is the difference from the largest number, less the logarithm of the sum of exponentials.
    """
    (out,) = context.avals_out
    powers = _repeated(y, out.shape)
    if not is_made_by(powers, "log") or not is_made_by(x, "subtract"):
        return NotImplemented
    sums = _per_row(powers.owner.operands[0])
    minuend, shift = x.owner.operands
    if (
        kernel_of(sums) != kernels.SUMS_OF_DIFFERENCES
        or differences.attribute(sums, "function") != differences.EXPONENTIAL
        or sums.owner.operands[0] != minuend
        or not is_used_once(context, context.equation.invars[1])
    ):
        return NotImplemented
    axes = differences.axes_of(sums, out.ndim)
    largest = [_spread(shift, out.shape, axes), sums.owner.operands[1]]
    if (
        axes[-1] != out.ndim - 1
        or _spread(y, out.shape, axes) is None
        or not all(
            x is not None and differences.is_largest(_per_row(x), minuend, axes) for x in largest
        )
    ):
        return NotImplemented
    return kernels.call(context, kernels.LOG_SOFTMAX, [minuend], [out], axes[0], count=len(axes))


def _factors(factor: Any) -> list[tuple[Any, Any]]:
    """What a factor may be the product of: inverse roots, and one scale for all rows or None."""
    if not is_made_by(factor, "multiply"):
        return [(factor, None)]
    first, second = factor.owner.operands
    return [(first, second), (second, first)]


def _normalized(context: Any, value: Any, root: Any, scale: Any, var: Any, operation: str) -> Any:
    """Rows divided by roots, or multiplied by inverse ones; NotImplemented if they are others."""
    (out,) = context.avals_out
    variance = _under_root(_repeated(root, out.shape), operation)
    if variance is None or not is_used_once(context, var):
        return NotImplemented
    rows = _rows(variance, out)
    if (
        rows is None
        or _spread(root, out.shape, rows.axes) is None
        or not differences.suits(context, out, rows.axes)
        or not is_stored(rows.x, out)
    ):
        return NotImplemented
    if scale is None and not _is_data(value, rows, out.shape) and is_made_by(value, "multiply"):
        first, second = value.owner.operands
        value, scale = (first, second) if _is_data(first, rows, out.shape) else (second, first)
    given = [] if scale is None else [_row(scale, out, rows.axes)]
    if not _is_data(value, rows, out.shape) or any(x is None for x in given):
        return NotImplemented
    epsilon = context.constant(0, _NUMBER) if rows.epsilon is None else rows.epsilon
    numbers = [context.reshape(x, _NUMBER) for x in (rows.divisor, epsilon)]
    return _call(context, [rows.x, *numbers], given, len(rows.axes), rows.mean is not None, True)


def _call(
    context: Any, values: list[Any], given: list[Any], count: int, centered: bool, scaled: bool
) -> Any:
    (out,) = context.avals_out
    row = ShapedArray(out.shape[out.ndim - count :], FLOAT32)
    (result,) = kernels.call(
        context,
        kernels.NORMALIZE_ROWS,
        [*values, *(context.reshape(x, row) for x in given)],
        [out],
        0,
        centered=np.bool_(centered),
        scaled=np.bool_(scaled),
        count=count,
    )
    return result


def _with(context: Any, value: Any, other: Any, var: Any, is_scale: bool) -> Any:
    """Normalized rows, which nothing else uses, scaled or shifted alike."""
    (out,) = context.avals_out
    if kernel_of(value) != kernels.NORMALIZE_ROWS or not is_used_once(context, var):
        return NotImplemented
    count = differences.attribute(value, "count")
    values = list(value.owner.operands)
    given, values = values[_OPERANDS:], values[:_OPERANDS]
    row = _row(other, out, tuple(range(out.ndim - count, out.ndim)))
    scaled = bool(given) and bool(differences.attribute(value, "scaled"))
    if row is None or (given and is_scale) or len(given) > scaled:
        return NotImplemented
    centered = bool(differences.attribute(value, "centered"))
    return _call(context, values, [*given, row], count, centered, scaled or is_scale)


#: The array, the divisor and what is added to variances.
_OPERANDS: Final = 3


def _under_root(x: Any, operation: str) -> Any:
    """The value of whose root, or inverse root, another one is."""
    if is_made_by(x, operation):
        return x.owner.operands[0]
    if operation == "rsqrt" and is_made_by(x, "divide"):
        one, root = x.owner.operands
        if constant_of(one) == 1 and is_made_by(root, "sqrt"):
            return root.owner.operands[0]
    return None


def _rows(x: Any, out: Any) -> _Rows | None:
    """The rows of which a value is the variance or the mean square, perhaps with an addition."""
    terms: list[tuple[Any, Any]] = [(x, None)]
    if is_made_by(x, "add"):
        first, second = x.owner.operands
        terms = [(first, _number(second)), (second, _number(first))]
        terms = [(value, number) for value, number in terms if number is not None]
    for value, epsilon in terms:
        square = _per_row(value)
        if not is_made_by(square, "divide"):
            continue
        sums, divisor = square.owner.operands
        number = _number(divisor)
        found = None if number is None else _squares(_per_row(sums), out)
        if found is not None:
            return _Rows(*found, number, epsilon)
    return None


def _squares(sums: Any, out: Any) -> tuple[Any, tuple[int, ...], Any] | None:
    """The array of whose squares a value is the sums along the last axes; axes, and the mean."""
    kernel, last, mean = kernel_of(sums), out.ndim, None
    if kernel == kernels.SUMS_OF_DIFFERENCES:
        x, mean = sums.owner.operands
        axes = differences.axes_of(sums, last)
        if differences.attribute(sums, "function") != differences.SQUARE:
            return None
    elif kernel == kernels.SUM_OF_PRODUCTS:
        x, other = sums.owner.operands
        axes = tuple(range(sums.type.rank, last))
        if x != other:
            return None
    else:
        found = _reduced(sums)
        if found is None or not is_made_by(found[0], "multiply"):
            return None
        (x, other), axes = found[0].owner.operands, found[1]
        if x != other:
            return None
        if is_made_by(x, "subtract"):
            minuend, subtrahend = x.owner.operands
            spread = _spread(subtrahend, out.shape, axes)
            if spread is not None:
                x, mean = minuend, spread
    if tuple(x.type.shape) != out.shape or not axes or axes != tuple(range(axes[0], last)):
        return None
    if mean is None:
        return x, axes, None
    rows = prod(out.shape[: axes[0]])
    if prod(mean.type.shape) != rows or not _is_mean(mean, x, axes):
        return None
    return x, axes, mean


def _reduced(sums: Any) -> tuple[Any, tuple[int, ...]] | None:
    """What XLA or the kernel of reductions adds up to a value, and along which axes."""
    if kernel_of(sums) == kernels.REDUCE and differences.attribute(sums, "operation") == SUM:
        (x,) = sums.owner.operands
        return x, differences.axes_of(sums, x.type.rank)
    if not is_made_by(sums, "reduce"):
        return None
    x, axes = sums.owner.operands[0], tuple(sums.owner.attributes["dimensions"])
    return (x, axes) if differences.is_reduction(sums, "add", axes) else None


def _is_mean(mean: Any, x: Any, axes: tuple[int, ...]) -> bool:
    """Whether a value is the mean of an array along axes, one number for each row."""
    mean = _per_row(mean)
    if not is_made_by(mean, "divide"):
        return False
    sums, divisor = mean.owner.operands
    number = _number(divisor)
    count = None if number is None else constant_of(number)
    return _reduced(_per_row(sums)) == (x, axes) and count == prod(x.type.shape[i] for i in axes)


def _is_data(x: Any, rows: _Rows, shape: tuple[int, ...]) -> bool:
    """Whether a value is what the kernel computes of rows before it divides them."""
    if rows.mean is None:
        return bool(x == rows.x)
    if not is_made_by(x, "subtract") or x.owner.operands[0] != rows.x:
        return False
    spread = _spread(x.owner.operands[1], shape, rows.axes)
    return spread is not None and _is_mean(spread, rows.x, rows.axes)


def _row(x: Any, out: Any, axes: tuple[int, ...]) -> Any:
    """The one row that a value repeats, or is; None if it is anything else."""
    others = tuple(range(axes[0]))
    if prod(out.shape[: axes[0]]) == 1 and tuple(x.type.shape) == out.shape:
        return x
    source = _spread(x, out.shape, others)
    if source is None or prod(source.type.shape) != prod(out.shape[i] for i in axes):
        return None
    return source


def _spread(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """What a value repeats along axes of a shape, or is to be repeated along; None if it is not."""
    own = tuple(x.type.shape)
    if own == shape:
        return differences.spread_along(x, shape, axes)
    kept = {axis for axis, size in enumerate(own) if size > 1}
    wanted = {axis for axis, size in enumerate(shape) if size > 1 and axis not in axes}
    return x if len(own) == len(shape) and kept == wanted else None


def _repeated(x: Any, shape: tuple[int, ...]) -> Any:
    """What a value of a shape repeats, or is to be repeated to become one."""
    if tuple(x.type.shape) == shape and is_made_by(x, "broadcast_in_dim"):
        (x,) = x.owner.operands
    return _per_row(x)


def _per_row(x: Any) -> Any:
    """The value that has the same elements in the same order, in whatever shape."""
    while is_made_by(x, "broadcast_in_dim") or is_made_by(x, "reshape"):
        (source,) = x.owner.operands
        if prod(source.type.shape) != prod(x.type.shape):
            break
        x = source
    return x


def _number(x: Any) -> Any:
    """The number that all elements of a value are; None if they may differ."""
    x = differences.root(x)
    return x if prod(x.type.shape) == 1 else None
