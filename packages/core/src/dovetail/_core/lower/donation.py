"""Matches donated arguments with results that reuse their memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from dovetail._core.base.records import record
from dovetail._core.ir.avals import physical_aval

__all__ = ["Donation", "match_donations"]


@record
class Donation:
    """How donated arguments are used.

    Attributes:
        aliases: index of an argument to the index of the result that reuses its memory.
        donors: arguments whose memory the compiler may use for a result of the same size.
        unused: donated arguments whose memory fits no result.
    """

    aliases: dict[int, int]
    donors: tuple[int, ...] = ()
    unused: tuple[int, ...] = ()

    def renumbered(self, kept: Sequence[bool], donated: Sequence[bool] | None) -> Donation:
        """Convert to indices of all arguments, before unused ones were dropped.

        Args:
            kept: for each of all arguments, whether it was kept.
            donated: for each of all arguments, whether it was donated.
        """
        if donated is None:
            return self
        numbers = [i for i, keep in enumerate(kept) if keep]
        dropped = [i for i, keep in enumerate(kept) if donated[i] and not keep]
        return Donation(
            {numbers[i]: result for i, result in self.aliases.items()},
            tuple(numbers[i] for i in self.donors),
            tuple(sorted([*dropped, *(numbers[i] for i in self.unused)])),
        )

    def positions(self, kept: Sequence[bool], leading: int) -> tuple[int, ...]:
        """Indices of a program's donated arguments.

        Args:
            kept: for each argument of the function, whether it is an argument of the program.
            leading: the number of the program's arguments before these.
        """
        places = list(itertools.accumulate(map(int, kept), initial=leading))
        numbers = sorted((*self.aliases, *self.donors))
        return tuple(places[number] for number in numbers if kept[number])


def match_donations(
    avals_in: Sequence[Any], avals_out: Sequence[Any], donated: Sequence[bool]
) -> Donation:
    """Pair donated arguments, in order, with results of the same shape and dtype."""
    if not any(donated):
        return Donation({})
    free: dict[Any, list[int]] = {}
    for number, aval in reversed(list(enumerate(avals_out))):
        free.setdefault((aval.shape, aval.dtype), []).append(number)
    aliases: dict[int, int] = {}
    rest: list[int] = []
    for number, (aval, is_donated) in enumerate(zip(avals_in, donated, strict=True)):
        if is_donated:
            results = free.get((aval.shape, aval.dtype))
            if results:
                aliases[number] = results.pop()
            else:
                rest.append(number)
    taken = set(aliases.values())
    sizes = [_bytes(a) for number, a in enumerate(avals_out) if number not in taken]
    donors = []
    unused = []
    for number in rest:
        size = _bytes(avals_in[number])
        if size in sizes:
            sizes.remove(size)
            donors.append(number)
        else:
            unused.append(number)
    return Donation(aliases, tuple(donors), tuple(unused))


def _bytes(aval: Any) -> int:
    physical = physical_aval(aval)
    size: int = physical.size * physical.dtype.itemsize
    return size
