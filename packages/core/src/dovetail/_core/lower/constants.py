"""Constants of a program: small ones are embedded in it, large ones become arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dovetail._core.base import dtypes
from dovetail._core.ir.avals import AbstractToken, aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, Jaxpr
from dovetail._core.ir.walk import jaxprs_and_closed_jaxprs

__all__ = ["LargeConstants"]


def _is_large(value: Any, threshold: int) -> bool:
    aval = aval_of(value)
    if type(aval) is AbstractToken:
        return True  # a token: the program waits for it
    dtype = aval.dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        return True  # NumPy cannot read the data of keys
    size: int = aval.size * dtype.itemsize
    return size > threshold


class LargeConstants:
    """The large constants that each jaxpr of a program needs, including those of nested jaxprs.

    Args:
        closed: the program.
        threshold: size in bytes above which a constant is large.
    """

    __slots__ = ("_alive", "_needed")

    def __init__(self, closed: ClosedJaxpr, threshold: int) -> None:
        own: dict[int, list[Any]] = {}
        inner: dict[int, list[ClosedJaxpr]] = {}
        order: list[ClosedJaxpr] = []
        todo = [closed]
        while todo:
            current = todo.pop()
            if id(current) in own:
                continue
            own[id(current)] = [c for c in current.consts if _is_large(c, threshold)]
            inner[id(current)] = list(_directly_inside(current.jaxpr))
            order.append(current)
            todo.extend(inner[id(current)])
        self._alive = order
        self._needed: dict[int, list[Any]] = {}
        if any(own.values()):
            self._needed = _transitive(closed, own, inner)

    def values(self, closed: ClosedJaxpr) -> list[Any]:
        """The large constants that a jaxpr of the program needs."""
        return self._needed.get(id(closed), [])


def _directly_inside(jaxpr: Jaxpr) -> Iterator[ClosedJaxpr]:
    for eqn in jaxpr.eqns:
        if eqn.params:
            for nested in jaxprs_and_closed_jaxprs(eqn.params):
                if type(nested) is ClosedJaxpr:
                    yield nested
                else:
                    yield from _directly_inside(nested)  # type: ignore[arg-type]


def _transitive(
    top: ClosedJaxpr, own: dict[int, list[Any]], inner: dict[int, list[ClosedJaxpr]]
) -> dict[int, list[Any]]:
    needed: dict[int, list[Any]] = {}
    todo = [(top, False)]
    while todo:
        current, children_done = todo.pop()
        if id(current) in needed:
            continue
        children = inner[id(current)]
        if not children_done:
            todo.append((current, True))
            todo.extend((child, False) for child in children if id(child) not in needed)
            continue
        merged = {id(c): c for c in own[id(current)]}
        for child in children:
            merged.update((id(c), c) for c in needed[id(child)])
        needed[id(current)] = list(merged.values())
    return needed
