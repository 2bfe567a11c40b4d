"""Sums of squares and exponentials of differences, as in variances and `logsumexp`, and softmax.

XLA's loops for them have vectors of half the width, and no more than one sum for each row.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final, NamedTuple

from dovetail.extend import LoweringTable, ShapedArray
from dovetail.extend.core import primitives
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernel_library, kernels
from dovetail_cpu.lowerings import window_kernels
from dovetail_cpu.lowerings.worth import FEW_STEPS, are_short, suits_kernel

TABLE: Final = LoweringTable()

#: Functions of the kernel.
SQUARE, EXPONENTIAL = range(2)
#: The operation of the kernel of reductions, which `reduction` imports this module for.
_MAXIMUM: Final = 0
#: Of fewer numbers, vectors of the kernel could not be filled.
LEAST: Final = 16
_OPERATIONS: Final = {"stablehlo.multiply": SQUARE, "stablehlo.exponential": EXPONENTIAL}
#: The dtypes that each function takes.
_DTYPES: Final = {SQUARE: ("float32", "float64"), EXPONENTIAL: ("float32",)}


class Differences(NamedTuple):
    """A function of differences between an array and another, or a number for each sum."""

    function: int
    minuend: Any
    subtrahend: Any
    is_whole: bool


def found_in(x: Any, aval: Any, axes: tuple[int, ...]) -> Differences | None:
    """The differences of which a value is a function, which is to be summed along axes."""
    owner = x.owner
    function = _OPERATIONS.get(getattr(owner, "name", ""))
    if function is None or dtype_name(aval.dtype) not in _DTYPES[function]:
        return None
    operands = list(owner.operands)
    if any(operand != operands[0] for operand in operands):
        return None
    difference = operands[0].owner
    if getattr(difference, "name", "") != "stablehlo.subtract":
        return None
    minuend, subtrahend = difference.operands
    spread = spread_along(subtrahend, aval.shape, axes)
    if spread is not None:
        return Differences(function, minuend, spread, False)
    whole = function == SQUARE and axes == tuple(range(axes[0], aval.ndim))
    return Differences(function, minuend, subtrahend, True) if whole else None


def spread_along(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """What a value of a shape repeats along axes: one number for all elements along them."""
    owner = x.owner
    if getattr(owner, "name", "") != "stablehlo.broadcast_in_dim":
        return None
    (source,) = owner.operands
    placed = zip(owner.attributes["broadcast_dimensions"], source.type.shape, strict=True)
    kept = {axis for axis, size in placed if size > 1}
    wanted = {axis for axis, size in enumerate(shape) if size > 1 and axis not in axes}
    return source if kept == wanted else None


def suits(context: Any, aval: Any, axes: tuple[int, ...]) -> bool:
    """Whether axes are neighbours, and such an array is worth the call of a kernel."""
    if not axes or axes != tuple(range(axes[0], axes[-1] + 1)) or not suits_kernel(context, aval):
        return False
    steps, side = prod(aval.shape[i] for i in axes), prod(aval.shape[axes[-1] + 1 :])
    if side > 1:
        return bool(side >= LEAST and steps >= FEW_STEPS)
    return bool(steps >= LEAST and not are_short(aval, axes[0]))


def sums(context: Any, found: Differences, aval: Any, axes: tuple[int, ...]) -> Any:
    """The sums along axes, by the kernel."""
    (out,) = context.avals_out
    subtrahend = found.subtrahend
    if not found.is_whole:
        subtrahend = context.reshape(subtrahend, ShapedArray(out.shape, aval.dtype))
    (result,) = kernels.call(
        context,
        kernels.SUMS_OF_DIFFERENCES,
        [found.minuend, subtrahend],
        [out],
        batch_dims=axes[0],
        function=found.function,
        count=len(axes),
        after=aval.ndim - 1 - axes[-1],
    )
    return result


def with_sums(context: Any, x: Any) -> Any:
    """The exponentials of differences together with the sums of them, if both are used."""
    (aval,), name = context.avals_in, getattr(x.owner, "name", "")
    if name != "stablehlo.subtract" or dtype_name(aval.dtype) not in _DTYPES[EXPONENTIAL]:
        return NotImplemented
    uses = context.uses()
    summed = [eqn.params["axes"] for eqn in uses if eqn.primitive is primitives.reduce_sum_p]
    if len(uses) == 1 or len(summed) != 1 or not suits(context, aval, summed[0]):
        return NotImplemented
    (axes,) = summed
    minuend, subtrahend = x.owner.operands
    spread = spread_along(subtrahend, aval.shape, axes)
    if spread is None or is_of_products(minuend):
        return NotImplemented
    others = tuple(size for axis, size in enumerate(aval.shape) if axis not in axes)
    out = ShapedArray(others, aval.dtype)
    powers, _ = kernels.call(
        context,
        kernels.EXPONENTIALS_AND_SUMS,
        [minuend, context.reshape(spread, out)],
        [aval.update(weak_type=False), out],
        axes[0],
        count=len(axes),
        after=aval.ndim - 1 - axes[-1],
    )
    return powers


def sums_beside(x: Any, aval: Any, axes: tuple[int, ...]) -> Any:
    """The sums that were computed with exponentials."""
    if kernel_of(x) != kernels.EXPONENTIALS_AND_SUMS or axes_of(x, aval.ndim) != axes:
        return NotImplemented
    return x.owner.results[1]


@TABLE.rule("div")
def div(context: Any, x: Any, y: Any) -> Any:
    """The softmax of what exponentials of the differences from the largest are divided by.

    Sums of windows are divided by their kernel, too.
    """
    means = window_kernels.divided(context, x, y)
    if means is not NotImplemented:
        return means
    if kernel_of(x) != kernels.EXPONENTIALS_AND_SUMS or root(y) != x.owner.results[1]:
        return NotImplemented
    (aval, _), (out,) = context.avals_in, context.avals_out
    axes, (minuend, shift) = axes_of(x, aval.ndim), x.owner.operands
    if spread_along(y, aval.shape, axes) is None or not is_largest(root(shift), minuend, axes):
        return NotImplemented
    (result,) = kernels.call(
        context,
        kernels.SOFTMAX,
        [minuend],
        [out],
        axes[0],
        # What nothing else uses is overwritten: large new arrays take long to be given pages.
        aliases={0: 0} if hasattr(minuend.owner, "name") else {},
        count=len(axes),
        after=aval.ndim - 1 - axes[-1],
    )
    return result


def is_of_products(x: Any) -> bool:
    """Whether a value is a matrix product, perhaps scaled, of which XLA takes the softmax best.

    With AVX-512 it has a library compute attention without a mask: the products, the softmax and
    its product. Else that is a kernel.
    """
    if not kernel_library.has_long_vectors():
        return False
    while getattr(x.owner, "name", "") in ("stablehlo.multiply", "stablehlo.divide"):
        x, factor = x.owner.operands
        if getattr(root(factor).owner, "name", "") != "stablehlo.constant":
            return False
    return getattr(x.owner, "name", "") == "stablehlo.dot_general"


def root(x: Any) -> Any:
    """The value that another one has the elements of, each repeated or in another shape."""
    while getattr(x.owner, "name", "") in ("stablehlo.broadcast_in_dim", "stablehlo.reshape"):
        (x,) = x.owner.operands
    return x


def kernel_of(x: Any) -> str:
    """The name of the kernel whose result a value is, or an empty one."""
    if getattr(x.owner, "name", "") != "stablehlo.custom_call":
        return ""
    return str(x.owner.attributes["call_target_name"].value)


def attribute(x: Any, name: str) -> int:
    """An integer or truth that a kernel was told."""
    return int(x.owner.attributes["backend_config"][name].value)


def axes_of(x: Any, rank: int) -> tuple[int, ...]:
    """The axes along which a kernel reduces an array."""
    end = rank - attribute(x, "after")
    return tuple(range(end - attribute(x, "count"), end))


def is_largest(best: Any, x: Any, axes: tuple[int, ...]) -> bool:
    """Whether a value is the largest of another along axes."""
    name = getattr(best.owner, "name", "")
    if name not in ("stablehlo.custom_call", "stablehlo.reduce") or best.owner.operands[0] != x:
        return False
    if name == "stablehlo.custom_call":
        return (
            kernel_of(best) == kernels.REDUCE
            and attribute(best, "operation") == _MAXIMUM
            and axes_of(best, x.type.rank) == axes
        )
    return is_reduction(best, "maximum", axes)


def is_reduction(x: Any, operation: str, axes: tuple[int, ...]) -> bool:
    """Whether a value is a reduction along axes by such an operation."""
    if getattr(x.owner, "name", "") != "stablehlo.reduce":
        return False
    (block,) = x.owner.regions[0].blocks
    names = [each.operation.name for each in block]
    return (
        names == [f"stablehlo.{operation}", "stablehlo.return"]
        and tuple(x.owner.attributes["dimensions"]) == axes
    )
