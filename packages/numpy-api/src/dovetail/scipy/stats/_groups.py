"""Equal elements that stand side by side in a sorted array, and the policies for nan."""

from __future__ import annotations

from typing import Any

from dovetail import lax
from dovetail.extend.arguments import array_like, canonical_axis, value
from dovetail.numpy.conditions import pick
from dovetail.numpy.shapes import reshape


def check_nan_policy(function: str, policy: Any) -> None:
    """Refuse every policy but that nan is propagated.

    Raises:
        NotImplementedError: nan is to be left out, or refused.
        ValueError: there is no such policy.
    """
    if not isinstance(policy, str) or policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"{function}: nan_policy must be 'propagate', 'omit' or 'raise', got {policy!r}"
        )
    if policy != "propagate":
        raise NotImplementedError(
            f"{function} does not take nan_policy={policy!r}: which elements are nan is not known "
            "when a function is traced; take them out before the call"
        )


def along_last(function: str, a: Any, axis: Any) -> tuple[Any, int | None]:
    """The array with the dimension moved to the end, and the dimension; all in one for None."""
    x = value(array_like(a, function, "a"))
    if axis is None or not x.ndim:
        if axis is not None:
            canonical_axis(function, axis, 1)
        return reshape(x, (-1,)), None
    place = canonical_axis(function, axis, x.ndim)
    return x.swapaxes(place, -1), place


def first_of_each(ordered: Any) -> Any:
    """Whether an element of a sorted array differs from the one before; nan equals nan."""
    before, after = ordered[..., :-1], ordered[..., 1:]
    differs = (before != after) & ~((before != before) & (after != after))
    return lax.pad(differs, True, [(0, 0, 0)] * (ordered.ndim - 1) + [(1, 0, 0)])


def bounds_of_each(first: Any) -> tuple[Any, Any]:
    """The first and the last place of the group that each element belongs to."""
    last_axis = first.ndim - 1
    size = first.shape[-1]
    places = lax.broadcasted_iota("int32", first.shape, last_axis)
    starts = lax.cummax(pick(first, places, lax.full_like(places, 0)), axis=last_axis)
    last = lax.pad(first[..., 1:], True, [(0, 0, 0)] * last_axis + [(0, 1, 0)])
    ends = pick(last, places, lax.full_like(places, size - 1))
    return starts, lax.cummin(ends, axis=last_axis, reverse=True)
