"""Differences on purpose, and predicates about differences by what is told of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from comparison import Difference


@dataclass(frozen=True, slots=True)
class Known:
    """A difference on purpose."""

    reason: str
    where: str | None
    applies: Callable[[Difference], bool]


def elements(told: str) -> list[str]:
    """The elements that differ, as far as they are told: eight of each array."""
    return [element for text in re.findall(r"\] \[(.+?)\]", told) for element in text.split(", ")]


def pairs(functions: str, applies: Callable[[str, str], bool]) -> Callable[[Difference], bool]:
    """Differences in value, of functions, where each pair of elements that differ is such a one."""

    def all_apply(difference: Difference) -> bool:
        ours, theirs = elements(difference.ours), elements(difference.theirs)
        return (
            difference.field == "value"
            and re.fullmatch(functions, difference.function) is not None
            and len(ours) == len(theirs) > 0
            and all(map(applies, ours, theirs))
        )

    return all_apply


def is_special(element: str) -> bool:
    """Whether an element is infinite or nan."""
    return "inf" in element or "nan" in element


def is_zero(element: str) -> bool:
    """Whether an element is a zero of either sign."""
    return element.lstrip("-") in ("0", "0.0", "0j", "(-0+0j)", "(-0-0j)")


def are_apart(one: str, other: str, distance: float) -> bool:
    """Whether two real elements are further apart than a distance."""
    return abs(float(one) - float(other)) > distance


def is_rounded(one: str, other: str) -> bool:
    """Whether two elements are the same number but for rounding to float32."""
    return math.isclose(abs(complex(one)), abs(complex(other)), rel_tol=1e-5)


def is_one_less(one: str, other: str) -> bool:
    """Whether a real element is one less than the other, but for rounding to eight bits."""
    return math.isclose(float(one) + 1, float(other), rel_tol=0.05)


def is_moved(difference: Difference) -> bool:
    """Whether all that differ have the same sum but for rounding, where all are told: so have
    counts when one is counted elsewhere, and shares of a gradient.
    """
    ours, theirs = elements(difference.ours), elements(difference.theirs)
    if len(ours) >= 8:
        return True
    sums = sum(map(float, ours)), sum(map(float, theirs))
    return len(ours) == len(theirs) and math.isclose(*sums, rel_tol=0.05, abs_tol=1e-5)


def is_reordered(difference: Difference) -> bool:
    """Whether the same numbers come in another order, where all that differ are told."""
    ours, theirs = elements(difference.ours), elements(difference.theirs)
    if len(ours) >= 8 or sorted(ours) == sorted(theirs):
        return True
    if "j" in "".join(ours + theirs):
        return False
    one, other = (np.sort([*map(float, each)]) for each in (ours, theirs))
    return bool(np.allclose(one, other, rtol=1e-5, equal_nan=True))


def not_finite(told: str) -> bool:
    """Whether the elements that are told are infinite or nan, each of them."""
    found = elements(told)
    return bool(found) and all(map(is_special, found))


def of(
    fields: str,
    functions: str,
    ours: str = "",
    theirs: str = "",
    call: str = "",
    dtypes: str = "",
) -> Callable[..., bool]:
    """Differences in one of some fields, whose function, outcomes, call and dtypes of operands
    match patterns.
    """

    def applies(difference: Difference) -> bool:
        return (
            difference.field in fields.split("|")
            and re.fullmatch(functions, difference.function) is not None
            and re.search(ours, difference.ours) is not None
            and re.search(theirs, difference.theirs) is not None
            and re.search(call, difference.call) is not None
            and re.search(dtypes, difference.dtypes) is not None
        )

    return applies
