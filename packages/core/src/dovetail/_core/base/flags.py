"""Partitions sequences by flags, and merges them again."""

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
        ys: the elements without a flag, in order; `itertools.repeat` to use one value for all.
    """
    with_flag, without = iter(xs), iter(ys)
    return [next(with_flag) if flag else next(without) for flag in flags]


def union_flags(flags: Iterable[Sequence[bool]]) -> Flags:
    """The elementwise "or" of several sequences of flags."""
    return tuple([any(same) for same in zip(*flags, strict=True)])
