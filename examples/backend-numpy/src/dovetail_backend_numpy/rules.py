"""Operations that this backend computes by rules of its own.

A primitive without one is computed by its `reference`, which is plain NumPy, written to be right
and not to be fast. A rule has the signature of the reference, and gives `NotImplemented` where it
leaves the case to that; `dovetail.extend.explain("dot_general")` shows where the reference is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

RULES: dict[str, Callable[..., Any]] = {}


def rule(primitive: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that makes a function the rule for the primitive of this name."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        RULES[primitive] = function
        return function

    return add


@rule("select_n")
def select_n(which: Any, *cases: Any) -> Any:
    """One of several arrays, element by element; `np.choose` takes no more than 32."""
    if len(cases) != 2:
        return NotImplemented
    return np.where(which, cases[1], cases[0])


@rule("dot_general")
def dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: Any,
    out_sharding: Any = None,
) -> Any:
    """A product of matrices where it is one: `matmul` calls BLAS."""
    (lhs_contracting, rhs_contracting), batch = dimension_numbers
    plain = lhs.ndim == rhs.ndim == 2 and batch == ((), ()) and len(lhs_contracting) == 1
    kinds = {lhs.dtype, rhs.dtype, np.dtype(preferred_element_type or lhs.dtype)}
    if not plain or len(kinds) > 1 or lhs.dtype.char not in "fdFD":
        return NotImplemented
    left = lhs if lhs_contracting[0] == 1 else lhs.T
    right = rhs if rhs_contracting[0] == 0 else rhs.T
    return np.matmul(left, right)
