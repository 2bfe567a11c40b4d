"""The rule ``unrolled-loop``: a loop of Python whose turns are all part of the program.

Each turn records the same primitives from the same instructions, the user's and those of the
framework below. Loops of the framework do so, too, so that only what none of them is around counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from dovetail._core.api.linting.bytecode import Loop, loops_at
from dovetail._core.api.linting.findings import Finding
from dovetail._core.api.linting.sites import Body, Program, raw_frames, traceback_of
from dovetail._core.base import caches
from dovetail._core.base.source import is_internal

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


def _loops_in(body: Body) -> dict[Loop, tuple[int, int, str]]:
    """For each loop that a body has unrolled, turns, equations, and what the turns do."""
    places: dict[Any, set[int]] = defaultdict(set)
    chains: dict[Any, tuple[Loop, ...]] = {}
    equations: dict[Loop, int] = defaultdict(int)
    primitives: dict[Loop, dict[str, int]] = defaultdict(dict)
    for eqn in body.jaxpr.eqns:
        traceback = traceback_of(eqn)
        loops, clear = _user_loops(traceback)
        if not loops:
            continue
        for loop in loops:
            equations[loop] += 1
        if not clear:
            continue
        # Turns with other shapes cannot be those of a compiled loop.
        shapes = tuple([getattr(v.aval, "shape", None) for v in (*eqn.invars, *eqn.outvars)])
        key = (traceback, eqn.primitive, shapes)
        # Stacks of turns are equal; what is derived from an equation has the same one.
        places[key].add(id(traceback))
        chains[key] = loops
    turns: dict[Loop, int] = defaultdict(int)
    for key, stacks in places.items():
        innermost = chains[key][0]
        turns[innermost] = max(turns[innermost], len(stacks))
        primitives[innermost][key[1].name] = max(
            primitives[innermost].get(key[1].name, 0), len(stacks)
        )
    found = {}
    for innermost, *outer in chains.values():
        # In a loop within a loop, each turn of the outer one counts all turns of the inner.
        around = next((turns[loop] for loop in outer if loop in turns), 1)
        own = turns[innermost] // max(around, 1)
        if own >= _FEWEST_TURNS:
            names = [n for n, c in primitives[innermost].items() if c == turns[innermost]]
            found[innermost] = (own, equations[innermost], _in_words(names))
    return found


def _in_words(names: list[str]) -> str:
    shown = names[:4]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "")


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
