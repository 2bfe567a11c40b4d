"""Sequences and flags: taking elements apart by whether something holds for them, and merging."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")
#: For each argument or result, whether something holds for it.
Flags = tuple[bool, ...]


def partition(flags: Iterable[bool], xs: Iterable[T]) -> tuple[list[T], list[T]]:
    """The elements with a flag, and those without.

    Args:
        flags: one for each element.
        xs: the elements.
    """
    parts: tuple[list[T], list[T]] = ([], [])
    for flag, x in zip(flags, xs, strict=True):
        parts[not flag].append(x)
    return parts


def merge(flags: Iterable[bool], xs: Iterable[T], ys: Iterable[U]) -> list[T | U]:
    """The inverse of `partition`.

    Args:
        flags: for each element of the result, whether it comes from `xs`.
        xs: the elements with a flag, in order.
        ys: those without; for one value that stands for all of them, an `itertools.repeat`.
    """
    with_flag, without = iter(xs), iter(ys)
    return [next(with_flag) if flag else next(without) for flag in flags]


def union_flags(flags: Iterable[Sequence[bool]]) -> Flags:
    """What holds for a position in one sequence at least."""
    return tuple([any(same) for same in zip(*flags, strict=True)])
