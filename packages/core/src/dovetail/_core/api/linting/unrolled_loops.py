"""The rule ``unrolled-loop``: a loop of Python whose turns are all part of the program.

Each turn records the same primitives from the same instructions, the user's and those of the
framework below. Loops of the framework do so, too, so that only what none of them is around counts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from dovetail._core.api.linting.bytecode import Loop, loops_at
from dovetail._core.api.linting.findings import Finding
from dovetail._core.api.linting.sites import Body, Program, raw_frames, traceback_of
from dovetail._core.base import caches
from dovetail._core.base.source import is_internal
from dovetail._core.ir.jaxpr import JaxprEqn, Literal

__all__ = ["unrolled_loops"]

_FEWEST_TURNS: Final = 8


def unrolled_loops(program: Program) -> Iterator[Finding]:
    """Loops of Python with many turns alike, which `lax.scan` and its like would trace once."""
    counts: dict[Loop, tuple[int, int, str]] = {}
    for body in program.bodies:
        for loop, found in _loops_in(body).items():
            counts[loop] = max(found, counts.get(loop, found))
    for loop, (turns, equations, names) in counts.items():
        yield Finding(
            "unrolled-loop",
            f"{loop.file}:{loop.line}",
            loop.function,
            f"this loop of Python is traced turn by turn: {turns} times the same operations "
            f"({names}), {equations} equations in all, each of which is compiled",
            "Write lax.scan or lax.fori_loop, or dovetail.vmap if turns do not depend on each "
            "other: they trace the body once",
        )


class _Unrolled:
    """What a body has of a loop.

    Attributes:
        equations: how many equations.
        bound: the equations that were recorded in it, by their numbers in the body; not those that
            are derived from them, which have the same stacks.
        alike: the numbers of those that each turn records alike, unless they are in a loop within.
        outer: the loops around it, innermost first.
    """

    def __init__(self, outer: tuple[Loop, ...]) -> None:
        self.equations = 0
        self.bound: dict[int, JaxprEqn] = {}
        self.alike: dict[Any, list[int]] = defaultdict(list)
        self.outer = outer

    @property
    def turns(self) -> int:
        """How often the same is recorded."""
        return max(map(len, self.alike.values()), default=0)

    def names(self) -> str:
        """What is recorded in each turn."""
        turns = self.turns
        names = [key[1].name for key, numbers in self.alike.items() if len(numbers) == turns]
        shown = list(dict.fromkeys(names))
        return ", ".join(shown[:4]) + (", ..." if len(shown) > 4 else "")

    def is_joined(self, origins: Mapping[Any, Any]) -> bool:
        """Whether turns use each other's results, or arrays in common.

        Otherwise each computes with arrays of its own, as of the leaves of a tree: what would be
        needed to make a compiled loop of it are other data, and not another loop.

        Args:
            origins: the variables that others are parts of.
        """
        turns = self.turns
        starts = next(numbers for numbers in self.alike.values() if len(numbers) == turns)
        longest = max(later - earlier for earlier, later in pairwise(starts))
        # What is further away is derived from the loop, in another order: the backward pass.
        turn_of = {
            number: bisect_right(starts, number)
            for number in self.bound
            if number < starts[-1] + longest
        }
        made: dict[Any, int] = {
            v: turn for number, turn in turn_of.items() for v in self.bound[number].outvars
        }
        operands = [
            (turn, v)
            for number, turn in turn_of.items()
            for v in self.bound[number].invars
            if type(v) is not Literal
        ]
        arrays = [(turn, v) for turn, v in operands if getattr(v.aval, "shape", ())]
        first: dict[Any, int] = {}
        for turn, v in arrays or operands:
            origin = v
            while origin not in made and origin in origins:
                origin = origins[origin]
            if first.setdefault(origin, made.get(origin, turn)) != turn:
                return True
        return False


def _loops_in(body: Body) -> dict[Loop, tuple[int, int, str]]:
    """For each loop that a body has unrolled, turns, equations, and what the turns do."""
    unrolled: dict[Loop, _Unrolled] = {}
    origins: dict[Any, Any] = {}
    seen: set[int] = set()
    for number, eqn in enumerate(body.jaxpr.eqns):
        if eqn.primitive.moves_first and type(eqn.invars[0]) is not Literal:
            origins.update(dict.fromkeys(eqn.outvars, eqn.invars[0]))
        traceback = traceback_of(eqn)
        loops, clear = _user_loops(traceback)
        if not loops:
            continue
        # What is derived from an equation has its very stack; those of turns are only equal.
        is_new = id(traceback) not in seen
        seen.add(id(traceback))
        for place, loop in enumerate(loops):
            known = unrolled.get(loop)
            if known is None:
                known = unrolled[loop] = _Unrolled(loops[place + 1 :])
            known.equations += 1
            if is_new:
                known.bound[number] = eqn
        if clear and is_new:
            # Turns with other shapes cannot be those of a compiled loop.
            shapes = tuple([getattr(v.aval, "shape", None) for v in (*eqn.invars, *eqn.outvars)])
            unrolled[loops[0]].alike[traceback, eqn.primitive, shapes].append(number)
    found = {}
    for loop, known in unrolled.items():
        # In a loop within a loop, each turn of the outer one counts all turns of the inner.
        around = next((turns for outer in known.outer if (turns := unrolled[outer].turns)), 1)
        turns = known.turns // around
        if turns >= _FEWEST_TURNS and known.is_joined(origins):
            found[loop] = (turns, known.equations, known.names())
    return found


@lru_cache(maxsize=8192)
def _user_loops(traceback: Any) -> tuple[tuple[Loop, ...], bool]:
    """The user's loops around an equation, innermost first.

    Also, whether none of the framework's is inside of the innermost one.
    """
    loops: list[Loop] = []
    clear = True
    for code, offset in raw_frames(traceback):
        around = loops_at(code, offset)
        if not around:
            continue
        if not is_internal(code.co_filename):
            loops += around
        elif not loops:
            clear = False
    return tuple(loops), clear


caches.register(_user_loops.cache_clear)
