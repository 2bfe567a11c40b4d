"""The equations of a program with all that is around them, and their places in the user's code."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile
from types import CodeType
from typing import Any, Final

from dovetail._core.base import caches, tracebacks
from dovetail._core.base.records import record
from dovetail._core.base.source import Note, SourceLocation, UserFrame, is_internal, user_frames
from dovetail._core.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from dovetail._core.ir.walk import jaxprs_and_closed_jaxprs
from dovetail._core.ops import callbacks
from dovetail._core.ops.control.scan import scan_p
from dovetail._core.ops.control.while_loop import while_p
from dovetail._core.transform.stage import stage

__all__ = ["Body", "Program", "Site", "raw_frames", "traceback_of"]

#: What programs are traced for that transformations derive from others.
_DERIVED: Final = ("jvp", "linearize", "transpose")

#: Where functions of the framework are called through.
_WRAPPING: Final = (tracebacks.__file__, functools.__file__)

_CALLBACK_FUNCTIONS: Final = tuple(os.path.join(folder, "") for folder in callbacks.__path__)

RawFrame = tuple[CodeType, int]


@record(eq=False)
class Site:
    """An equation where it stands.

    Attributes:
        eqn: the equation.
        body: the jaxpr that it is part of.
    """

    eqn: JaxprEqn
    body: Body

    @property
    def notes(self) -> list[Note]:
        """What tools are told of the equation."""
        place = self.eqn.traceback
        return place.notes if type(place) is SourceLocation else []

    def frame(self) -> UserFrame | None:
        """The user's innermost frame: that of a call of a program, if it is the framework's own."""
        stacks = [site.eqn.traceback for site in self.around() if site.eqn.traceback is not None]
        for stack in stacks:
            frames = user_frames(stack, 1, within=stage.__code__)
            if frames:
                return frames[0]
        return next(iter(user_frames(stacks[-1]) if stacks else []), None)

    def called_file(self) -> str:
        """The file of the framework's function that the user calls here."""
        return next(filter(None, (called_file(traceback_of(s.eqn)) for s in self.around())), "")

    def around(self) -> Iterator[Site]:
        """The equation, and those that it is part of."""
        site: Site | None = self
        while site is not None:
            yield site
            site = site.body.caller

    def is_callback(self) -> bool:
        """Whether the user calls a function here that calls Python when the program runs."""
        return self.called_file().startswith(_CALLBACK_FUNCTIONS)

    def is_loop(self) -> bool:
        """Whether it runs its body several times; not where `vmap` calls Python several times."""
        eqn = self.eqn
        several = eqn.primitive is scan_p and eqn.params["length"] != 1
        return (several or eqn.primitive is while_p) and not self.is_callback()

    def users_frame(self) -> RawFrame | None:
        """Code and offset of the user's innermost frame below the function that was traced."""
        return users_frame(traceback_of(self.eqn))


@dataclass(frozen=True, eq=False)
class Body:
    """A jaxpr in a program.

    Attributes:
        jaxpr: the jaxpr.
        consts: the values of its constants.
        caller: the equation that it is part of; None if it is the program itself.
        in_loop: whether it is part of a loop.
        derived: whether a derivative is computed in it.
    """

    jaxpr: Jaxpr
    consts: Sequence[Any]
    caller: Site | None = None
    in_loop: bool = False
    derived: bool = False

    def sites(self) -> Iterator[Site]:
        """Its equations."""
        return (Site(eqn, self) for eqn in self.jaxpr.eqns)

    @cached_property
    def used(self) -> frozenset[Any]:
        """The variables that something uses."""
        atoms = [v for eqn in self.jaxpr.eqns for v in eqn.invars] + self.jaxpr.outvars
        return frozenset(v for v in atoms if type(v) is not Literal)

    @cached_property
    def live(self) -> frozenset[Any]:
        """The variables that its results and effects depend on."""
        live = set(self.jaxpr.outvars)
        for eqn in reversed(self.jaxpr.eqns):
            if eqn.effects or not live.isdisjoint(eqn.outvars):
                live.update(eqn.invars)
        return frozenset(v for v in live if type(v) is not Literal)

    def outer(self, var: Var) -> Atom | None:
        """What the caller passes for a parameter; None if that is not known."""
        if self.caller is None or var not in self.jaxpr.invars:
            return None
        # Branches and bodies of loops take the last operands, in their order.
        given = self.caller.eqn.invars
        place = len(given) - len(self.jaxpr.invars) + self.jaxpr.invars.index(var)
        if place < 0 or getattr(given[place].aval, "dtype", None) != var.aval.dtype:
            return None
        return given[place]


class Program:
    """A function traced for its arguments.

    Args:
        function: the user's function.
        closed: the program.
        names: the names of its arguments.
    """

    def __init__(self, function: Any, closed: ClosedJaxpr, names: Sequence[str]) -> None:
        self.function = function
        self.closed = closed
        self.names = dict(zip(closed.jaxpr.invars, names, strict=False))
        self.bodies = list(_bodies(closed))

    def sites(self) -> Iterator[Site]:
        """All equations, those of bodies after those that they are part of."""
        for body in self.bodies:
            yield from body.sites()

    def argument(self, atom: Any, body: Body) -> str | None:
        """The path of the argument that a variable is; None if it is none."""
        while body.caller is not None:
            outer = body.outer(atom) if type(atom) is not Literal else None
            if outer is None:
                return None
            atom, body = outer, body.caller.body
        return None if type(atom) is Literal else self.names.get(atom)


def _bodies(closed: ClosedJaxpr) -> Iterator[Body]:
    """The bodies of a program, each jaxpr once, and once more if it is part of a loop, too."""
    todo = [Body(closed.jaxpr, closed.consts)]
    seen: set[tuple[int, bool]] = set()
    while todo:
        body = todo.pop()
        key = (id(body.jaxpr), body.in_loop)
        if key in seen:
            continue
        seen.add(key)
        yield body
        inner = []
        for site in body.sites():
            if not site.eqn.params:
                continue
            in_loop = body.in_loop or site.is_loop()
            for part in jaxprs_and_closed_jaxprs(site.eqn.params):
                jaxpr = part.jaxpr if isinstance(part, ClosedJaxpr) else part
                consts = part.consts if isinstance(part, ClosedJaxpr) else ()
                info = jaxpr.debug_info
                derived = body.derived or (info is not None and info.traced_for in _DERIVED)
                inner.append(Body(jaxpr, consts, site, in_loop, derived))
        todo.extend(reversed(inner))


def traceback_of(eqn: JaxprEqn) -> Any:
    """The stack of an equation, without the names of its scopes; None if there is none."""
    place = eqn.traceback
    return place.traceback if type(place) is SourceLocation else place


@lru_cache(maxsize=8192)
def raw_frames(traceback: Any) -> tuple[RawFrame, ...]:
    """The frames of a stack up to the function that was traced, innermost first."""
    if traceback is None:
        return ()
    frames = zip(*traceback.raw_frames(), strict=True)
    return tuple(takewhile(lambda frame: frame[0] is not stage.__code__, frames))


@lru_cache(maxsize=8192)
def users_frame(traceback: Any) -> RawFrame | None:
    """Code and offset of the user's innermost frame below the function that was traced."""
    return next((f for f in raw_frames(traceback) if not is_internal(f[0].co_filename)), None)


@lru_cache(maxsize=8192)
def called_file(traceback: Any) -> str:
    """The file of the framework's function that the user's innermost frame calls."""
    called = ""
    for code, _ in raw_frames(traceback):
        if not is_internal(code.co_filename):
            return called
        if code.co_filename not in _WRAPPING:
            called = code.co_filename
    return ""


caches.register(called_file.cache_clear)
caches.register(raw_frames.cache_clear)
caches.register(users_frame.cache_clear)
