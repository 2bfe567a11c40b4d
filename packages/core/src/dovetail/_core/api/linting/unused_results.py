"""The rules ``unused-update`` and ``unused-result``: what is computed and thrown away."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from dovetail._core.api.linting.bytecode import expression_at, is_dropped
from dovetail._core.api.linting.findings import Finding, where_is
from dovetail._core.api.linting.sites import Program, RawFrame, Site, raw_frames, traceback_of
from dovetail._core.base.source import is_internal
from dovetail._core.ops.indexing.dynamic_slicing import DynamicUpdateSlice
from dovetail._core.ops.indexing.scatter import ScatterFamily
from dovetail._core.transform import jvp, linearize, transposition

__all__ = ["unused_results"]

_UPDATES: Final = (DynamicUpdateSlice, ScatterFamily)
#: What the names of functions that update arrays begin with.
_UPDATING: Final = ("scatter", "dynamic_update_")
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
        updates = [s for s in sites if isinstance(s.eqn.primitive, _UPDATES)]
        dropped = is_dropped(code, offset) and all(map(_is_dead, sites))
        unused = updates and all(map(_has_no_use, updates))
        if not dropped and (not unused or any(map(_is_for_derivative, updates))):
            continue
        text = expression_at(code, offset)
        method = _update_in(text)
        is_update = bool(method or (updates and not text))
        if not dropped and not is_update:
            continue
        last = updates[-1] if updates else sites[-1]
        where, function = where_is(last.frame())
        aval = last.eqn.outvars[0].aval.short_name() if last.eqn.outvars else ""
        if is_update:
            target = program.argument(last.eqn.invars[0], last.body)
            name = target or "x"
            advice = f": {name} = {name}{method}(...)" if method and method[0] == "." else ""
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


def _update_in(text: str) -> str | None:
    """The update that an expression is, such as ``.at[...].set``; None if it is none."""
    try:
        expression = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        return None
    match expression:
        case ast.Call(ast.Attribute(ast.Subscript(ast.Attribute(attr="at")), attr=method)):
            return None if method == "get" else f".at[...].{method}"
        case ast.Call(ast.Attribute(attr=name) | ast.Name(name)):
            return name if name.startswith(_UPDATING) else None
    return None


def _is_dead(site: Site) -> bool:
    return not site.eqn.effects and site.body.live.isdisjoint(site.eqn.outvars)


def _has_no_use(site: Site) -> bool:
    return site.body.used.isdisjoint(site.eqn.outvars)


def _is_for_derivative(site: Site) -> bool:
    return site.body.derived or any(
        code.co_filename in _DERIVING
        for code, _ in raw_frames(traceback_of(site.eqn))
        if is_internal(code.co_filename)
    )
