"""The rules ``unused-update`` and ``unused-result``: what is computed and thrown away."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from dovetail._core.api.linting.bytecode import expression_at, is_dropped
from dovetail._core.api.linting.findings import Finding, where_is
from dovetail._core.api.linting.sites import Program, RawFrame, Site, raw_frames
from dovetail._core.base.source import is_internal
from dovetail._core.transform import jvp, linearize, transposition

__all__ = ["unused_results"]

_UPDATES: Final = ("scatter", "dynamic_update_slice")
_UPDATE: Final = re.compile(r"\.at\s*\[.*\]\s*\.\s*(?!get\b)(\w+)\s*\(", re.DOTALL)
#: Where values are computed for derivatives, which may need less than the function returns.
_DERIVING: Final = frozenset(module.__file__ for module in (jvp, linearize, transposition))


def unused_results(program: Program) -> Iterator[Finding]:
    """Updates that have no effect, and statements whose result nothing takes.

    One place in the user's code may be traced several times, as that of a function that is called
    from several; it is reported if nothing is ever used.
    """
    by_place: dict[RawFrame, list[Site]] = defaultdict(list)
    for site in program.sites():
        place = site.users_frame()
        if place is not None:
            by_place[place].append(site)
    for (code, offset), sites in by_place.items():
        last = sites[-1]
        if not all(map(_has_no_use, _of_last_kind(sites))) or any(s.eqn.effects for s in sites):
            continue
        is_update = last.eqn.primitive.name.startswith(_UPDATES)
        dropped = is_dropped(code, offset)
        if dropped:
            is_update = is_update or bool(_UPDATE.search(expression_at(code, offset)))
        elif not is_update or any(map(_is_for_derivative, sites)):
            continue
        where, function = where_is(last.frame())
        aval = last.eqn.outvars[0].aval.short_name() if last.eqn.outvars else ""
        if is_update:
            target = program.argument(last.eqn.invars[0], last.body)
            method = _UPDATE.search(expression_at(code, offset))
            name = target or "x"
            advice = f": {name} = {name}.at[...].{method.group(1)}(...)" if method else ""
            yield Finding(
                "unused-update",
                where,
                function,
                f"the updated array, {aval}, is not used: arrays do not change, so that this has "
                "no effect",
                f"Assign what it returns{advice}" if dropped else "Use what it returns",
                target,
            )
        else:
            yield Finding(
                "unused-result",
                where,
                function,
                f"the result of this statement, {aval} of {last.eqn.primitive.name}, is not used: "
                "operations do not change their operands, so that this has no effect",
                "Assign the result, or leave out the statement",
            )


def _of_last_kind(sites: list[Site]) -> list[Site]:
    """The sites of the primitive with which the work at a place ends."""
    return [site for site in sites if site.eqn.primitive is sites[-1].eqn.primitive]


def _has_no_use(site: Site) -> bool:
    return site.body.used.isdisjoint(site.eqn.outvars)


def _is_for_derivative(site: Site) -> bool:
    return site.body.derived or any(
        code.co_filename in _DERIVING
        for code, _ in raw_frames(site.eqn)
        if is_internal(code.co_filename)
    )
