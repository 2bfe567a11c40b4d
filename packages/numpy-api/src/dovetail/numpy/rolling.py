"""Elements moved along dimensions, and around their ends."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    canonical_axis,
    convert,
    integer,
    require_kind,
    weak_of,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.unchecked import broadcast_in_dim, slice_dimension
from dovetail.lax import concatenate_p
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.shapes import operand, ravel, reshaped
from dovetail.typing import Array, ArrayLike

Shape = tuple[int, ...]

#: Fewer elements are rolled along one dimension after the other, which compiles faster.
_MANY: Final = 2**17


def roll(
    a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | Sequence[int] | None = None
) -> Array:
    """Roll elements along dimensions; those shifted past the end reappear at the start.

    Args:
        a: array.
        shift: number of positions: an integer, one for each of `axis`, or an array of them.
        axis: dimension or dimensions; None to roll the flattened array.

    Returns:
        An array of the shape of `a`.

    Raises:
        TypeError: a shift is not an integer.
        ValueError: the numbers of shifts and dimensions differ.

    Differs:
        A shift that is no integer is refused, where JAX and NumPy drop its fraction.

        >>> jnp.roll(jnp.arange(3), 1.5)
        Traceback (most recent call last):
            ...
        TypeError: roll requires shift to be an integer, got float64 1.5; // divides integers

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.roll(jnp.arange(5), 2))
        [3 4 0 1 2]
    """
    x = operand(a, "roll")
    flat = axis is None
    sizes = (aval_of(x).size,) if flat else aval_of(x).shape
    if isinstance(axis, np.ndarray) and axis.ndim:
        axis = axis.tolist()
    axes = tuple(axis) if isinstance(axis, Sequence) else (0 if axis is None else axis,)
    axes = tuple(canonical_axis("roll", d, len(sizes)) for d in axes)
    if getattr(shift, "ndim", 0) > 1:
        raise ValueError(
            f"roll: shift must be a scalar or a vector, got shape {aval_of(shift).shape}"
        )
    if type(shift) is int:
        entries: list[Any] = [shift]
    elif isinstance(shift, (tuple, list)):
        entries = list(shift)
    elif isinstance(shift, Tracer) and shift.concrete() is None:
        require_kind("roll", shift, "biu", "integers as shift")
        entries = list(ravel(shift))
    else:
        entries = list(np.ravel(np.asarray(shift)))
    shifts = tuple(map(_shift, entries))
    if len(shifts) == 1:
        shifts *= len(axes)
    elif len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: shift {shift} and axis {axes} must have equal lengths")
    within = [s % (sizes[d] or 1) for s, d in zip(shifts, axes, strict=True)]
    return _roll(x, within, axes, flat)


def _shift(shift: Any) -> Any:
    if isinstance(shift, Tracer) and shift.concrete() is None and not shift.ndim:
        require_kind("roll", shift, "biu", "integers as shift")
        return convert(shift, dtypes.default_dtype("i"))
    return int(shift) if isinstance(shift, np.bool_) else integer("roll", "shift", shift)


@compiled_with("axes", "flat")
def _roll(x: Any, shifts: list[Any], axes: Shape, flat: bool) -> Any:
    """`x` rolled by shifts from 0 to the size; traced shifts are arguments of the program."""
    x_shape = aval_of(x).shape
    if flat:
        x = reshaped(x, (math.prod(x_shape),))
    known: dict[int, int] = {}
    for shift, axis in zip(shifts, axes, strict=True):
        count = aval_of(x).shape[axis]
        if type(shift) is not int or ((own := aval_of(x).division) and own.dims[axis]):
            twice = _twice(x, axis)
            x = lax.dynamic_slice_in_dim(twice, count - shift, count, axis)
        elif shift:
            known[axis] = (known.get(axis, 0) + shift) % count
    x = _rolled(x, {axis: shift for axis, shift in known.items() if shift})
    return reshaped(x, x_shape) if flat else x


def _twice(x: Any, axis: int) -> Any:
    shape = aval_of(x).shape
    if dtypes.kind_of(aval_of(x).dtype):
        return concatenate_p.bind(x, x, dimension=axis)
    # A key that is joined with itself is taken for a mistake, one that is repeated is not.
    others = [d + (d >= axis) for d in range(len(shape))]
    repeated = broadcast_in_dim(x, (*shape[:axis], 2, *shape[axis:]), tuple(others))
    return reshaped(repeated, (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]))


def _rolled(x: Any, shifts: dict[int, int]) -> Any:
    """`x` rolled along dimensions by shifts from 1 to before the size."""
    shape = aval_of(x).shape
    if not shifts:
        return x
    if len(shifts) > 1 and aval_of(x).size < _MANY:
        for axis, shift in shifts.items():
            x = _rolled(x, {axis: shift})
        return x
    if len(shape) == 1 or not dtypes.kind_of(aval_of(x).dtype):
        for axis, shift in shifts.items():
            rest = shape[axis] - shift
            last = slice_dimension(x, rest, shape[axis], axis)
            x = concatenate_p.bind(last, slice_dimension(x, 0, rest, axis), dimension=axis)
        return x
    # XLA chooses between the parts of a concatenation element by element, which takes five times as
    # long. It does not do so for vectors when two rolled ones are added.
    parts = list(itertools.product(*[(shape[d] - n, -n) for d, n in shifts.items()]))
    parts.sort(key=lambda sizes: -math.prod(map(abs, sizes)))  # the first is written with the zeros
    rolled = lax.full_like(x, 0)
    for sizes in parts:
        part, starts = x, [0] * len(shape)
        for (axis, shift), size in zip(shifts.items(), sizes, strict=True):
            start, end = (0, size) if size > 0 else (shape[axis] + size, shape[axis])
            part = slice_dimension(part, start, end, axis)
            starts[axis] = shift if size > 0 else 0
        rolled = lax.dynamic_update_slice(rolled, part, starts)
    return convert(rolled, aval_of(x).dtype, weak_of(x))
