"""Which results are written over which donated arguments."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dovetail._core.ir.avals import physical_aval

__all__ = ["Donation", "match_donations"]


@dataclass(frozen=True, slots=True)
class Donation:
    """What becomes of donated arguments.

    Attributes:
        aliases: number of an argument to the number of the result that takes its memory.
        donors: arguments whose memory the compiler may use for a result of the same size.
        unused: arguments that were donated for nothing: no result fits into their memory.
    """

    aliases: dict[int, int]
    donors: tuple[int, ...] = ()
    unused: tuple[int, ...] = ()

    def renumbered(self, kept: Sequence[bool], donated: Sequence[bool] | None) -> Donation:
        """The same for arguments counted before unused ones were dropped.

        Args:
            kept: for each of all arguments whether it is one of those counted here.
            donated: which of all arguments were donated.
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
        """Numbers of a program's arguments whose memory it takes.

        Args:
            kept: for each argument of the function, as they are counted here, whether it is one of
                the program.
            leading: how many arguments the program has before these.
        """
        places = list(itertools.accumulate(map(int, kept), initial=leading))
        numbers = sorted((*self.aliases, *self.donors))
        return tuple(places[number] for number in numbers if kept[number])


def match_donations(
    avals_in: Sequence[Any], avals_out: Sequence[Any], donated: Sequence[bool]
) -> Donation:
    """Pair donated arguments with results of the same shape and dtype, first come first served."""
    if not any(donated):
        return Donation({})
    free: dict[Any, list[int]] = {}
    for number, aval in reversed(list(enumerate(avals_out))):
        free.setdefault((aval.shape, aval.dtype), []).append(number)
    aliases: dict[int, int] = {}
    rest: list[int] = []
    for number, (aval, given) in enumerate(zip(avals_in, donated, strict=True)):
        if given:
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
