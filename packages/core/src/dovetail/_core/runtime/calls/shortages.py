"""What a program that does not fit into memory takes, and the lines that ask for it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.runtime_errors import OutOfMemoryError
from dovetail._core.base.source import describe
from dovetail._core.ir.avals import outer_aval, physical_aval
from dovetail._core.ir.jaxpr import Jaxpr
from dovetail._core.ir.walk import all_jaxprs
from dovetail._core.runtime.arrays import memory

if TYPE_CHECKING:
    from dovetail._core.runtime.programs.program import LoadedProgram

__all__ = ["explained_shortage", "watch"]

_LISTED: Final = 4
_ADVICE: Final = (
    "Compute it in parts (lax.map, lax.scan), donate arguments that are not used again "
    "(donate_argnums), keep fewer values for the backward pass (checkpoint), or delete arrays."
)


def explained_shortage(
    error: BaseException,
    name: str,
    jaxpr: Jaxpr,
    names: Sequence[str] = (),
    program: LoadedProgram | None = None,
) -> BaseException:
    """The error to raise where compiling or starting a program failed.

    Args:
        error: the error; returned itself if it is not about memory, or is explained already.
        name: the program's name.
        jaxpr: the program.
        names: names of its arguments.
        program: what was compiled; None if that is what failed.
    """
    if not memory.is_shortage(error) or isinstance(error, OutOfMemoryError):
        return error
    what = f"  for:   {'running' if program is not None else 'compiling'} {name}, at {describe()}"
    return memory.explained(
        error, [what, *_needs(program), *_largest(jaxpr, names), f"  {_ADVICE}"]
    )


def watch(name: str, jaxpr: Jaxpr, names: Sequence[str], program: LoadedProgram) -> None:
    """Remember a program that was started, which may fail later."""
    place = get_traceback()
    weak_program, weak_jaxpr = weakref.ref(program), weakref.ref(jaxpr)

    def facts(temporaries: int) -> list[str]:
        started, body = weak_program(), weak_jaxpr()
        stats = None if started is None else started.memory_needed()
        if body is None or stats is None or stats.temp_size_in_bytes != temporaries:
            return []
        what = f"  for:   running {name}, started at {describe(place)}"
        return [what, *_needs(started), *_largest(body, names), f"  {_ADVICE}"]

    memory.note_started(weak_program, facts)


def _needs(program: LoadedProgram | None) -> list[str]:
    stats = None if program is None else program.memory_needed()
    if stats is None:
        return []
    amounts = (
        (stats.argument_size_in_bytes, "arguments"),
        (stats.output_size_in_bytes, "results"),
        (stats.temp_size_in_bytes, "temporaries"),
    )
    listed = ", ".join(f"{memory.in_words(count)} of {what}" for count, what in amounts)
    return [f"  needs: {listed}"]


def _largest(jaxpr: Jaxpr, names: Sequence[str]) -> list[str]:
    """The largest values of a program, of which the compiler may make fewer."""
    found: list[tuple[int, str]] = []
    for number, var in enumerate(jaxpr.invars):
        what = f"the argument {names[number]}" if number < len(names) else f"argument {number}"
        found.append((_bytes(var.aval), f"{var.aval.short_name()}, {what}"))
    found += [
        (_bytes(var.aval), f"{var.aval.short_name()}, a captured constant")
        for var in jaxpr.constvars
    ]
    for inner in all_jaxprs(jaxpr):
        for eqn in inner.eqns:
            place = None
            for var in eqn.outvars:
                count = _bytes(var.aval)
                if count:
                    place = place or f"made by {eqn.primitive.name} at {describe(eqn.traceback)}"
                    found.append((count, f"{var.aval.short_name()}, {place}"))
    found.sort(key=lambda entry: -entry[0])
    lines = [f"    {memory.in_words(count)}: {text}" for count, text in found if count]
    distinct = list(dict.fromkeys(lines))[:_LISTED]
    return ["  largest values:", *distinct] if distinct else []


def _bytes(aval: Any) -> int:
    if not hasattr(aval, "shape"):
        return 0
    return memory.byte_count(physical_aval(outer_aval(aval)))
