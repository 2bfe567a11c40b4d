"""Programs for backends that read equations: jaxprs without StableHLO."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail._core.base.records import record
from dovetail._core.basis.structural import full
from dovetail._core.ir.avals import AbstractToken, outer_aval, physical_aval
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, Effects, Jaxpr, no_effects
from dovetail._core.ir.walk import eval_jaxpr, jaxprs_in_params
from dovetail._core.lower.donation import Donation
from dovetail._core.ops.calls.tokens import create_token_p
from dovetail._core.ops.random.keys import KeyDType, unwrap, wrap
from dovetail._core.trace.primitive import Primitive
from dovetail._core.transform.stage import stage

__all__ = ["EquationProgram", "equation_program"]


@record
class EquationProgram:
    """A program as equations, and what is needed to call it.

    It takes the constants, then the kept arguments, and returns the results, all of them arrays of
    numbers: random keys are wrapped and unwrapped inside. The backend performs its effects, such as
    calling Python, while it runs the program.

    Attributes:
        name: name of the program, such as ``jit_f``.
        equations: a closed jaxpr without constants.
        platforms: the platform that it is for.
        kept: for each argument of the function, whether it is an argument of the program.
        hoisted: values of the constants, which are the leading arguments.
        in_avals: avals of the kept arguments.
        out_avals: avals of the results.
        donation: how donated arguments are used.
    """

    name: str
    equations: ClosedJaxpr
    platforms: tuple[str, ...]
    kept: tuple[bool, ...]
    hoisted: tuple[Any, ...]
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    donation: Donation

    @property
    def module(self) -> ClosedJaxpr:
        """The equations."""
        return self.equations

    @property
    def effects(self) -> Effects:
        """Side effects that the runtime must wait for: none."""
        return no_effects

    @property
    def host_callbacks(self) -> tuple[Any, ...]:
        """Callbacks to pass to the compiler: none."""
        return ()

    @property
    def result_memories(self) -> tuple[str | None, ...]:
        """The kinds of memory that results are in: those of their devices."""
        return ()

    @property
    def inspections(self) -> tuple[Callable[[Any], object], ...]:
        """Functions to call when the program is compiled: none."""
        return ()

    @property
    def preparations(self) -> tuple[Callable[[], object], ...]:
        """Functions that every process calls before it loads the program: none."""
        return ()

    @property
    def partitioned(self) -> tuple[Any, ...]:
        """Calls whose division over devices the compiler asks for: none."""
        return ()

    @property
    def divisible(self) -> frozenset[str]:
        """Calls that the compiler divides along their batch dimensions: none."""
        return frozenset()

    @property
    def calls_host(self) -> bool:
        """Whether it calls Python functions, which exist only in this process."""
        return any(primitive.calls_host for primitive in self._primitives())

    @property
    def storable(self) -> bool:
        """Whether it can be kept on disk: no, since it may hold functions of the user."""
        return False

    @property
    def cacheable(self) -> bool:
        """Whether it can be cached by key: no, for the same reason."""
        return False

    def key(self) -> bytes:
        """A key that is unique in this process; it must not be used in a disk cache."""
        return f"equations {id(self)}".encode()

    def names_key(self) -> bytes:
        """The same: no two programs are shared."""
        return self.key()

    @property
    def donated(self) -> tuple[int, ...]:
        """Indices of the program's donated arguments."""
        return self.donation.positions(self.kept, len(self.hoisted))

    def text(self, debug_info: bool = False) -> str:
        """The equations as text.

        Args:
            debug_info: whether to write source locations as well.
        """
        return self.equations.pretty_print(source_info=debug_info)

    def operations(self) -> frozenset[str]:
        """The names of the primitives in the program."""
        return frozenset(primitive.name for primitive in self._primitives())

    def shapes(self) -> frozenset[tuple[int, ...]]:
        """The shapes of the program's arrays."""
        jaxprs = self._jaxprs()
        values = [v for jaxpr in jaxprs for v in (*jaxpr.constvars, *jaxpr.invars)]
        values += [v for jaxpr in jaxprs for eqn in jaxpr.eqns for v in eqn.outvars]
        return frozenset(v.aval.shape for v in values if not isinstance(v.aval, AbstractToken))

    def _primitives(self) -> set[Primitive]:
        return {eqn.primitive for jaxpr in self._jaxprs() for eqn in jaxpr.eqns}

    def _jaxprs(self) -> list[Jaxpr]:
        """The program and all that are in it."""
        found: list[Jaxpr] = []
        todo, seen = [self.equations.jaxpr], set()
        while todo:
            jaxpr = todo.pop()
            if id(jaxpr) in seen:
                continue
            seen.add(id(jaxpr))
            found.append(jaxpr)
            for eqn in jaxpr.eqns:
                todo.extend(jaxprs_in_params(eqn.params))
        return found


def equation_program(
    closed: ClosedJaxpr,
    *,
    name: str,
    platform: str,
    kept: tuple[bool, ...],
    donation: Donation,
) -> EquationProgram:
    """The program of a jaxpr for a backend that reads equations.

    Args:
        closed: the jaxpr, after dead code elimination.
        name: name of the program.
        platform: the platform that it is for.
        kept: for each argument of the function, whether it is an argument of the jaxpr.
        donation: how the function's donated arguments are used.
    """
    jaxpr = closed.jaxpr
    return EquationProgram(
        name=name,
        equations=_of_numbers(jaxpr),
        platforms=(platform,),
        kept=kept,
        hoisted=tuple(closed.consts),
        in_avals=tuple([v.aval for v in jaxpr.invars]),
        out_avals=tuple([v.aval for v in jaxpr.outvars]),
        donation=donation,
    )


def _of_numbers(jaxpr: Jaxpr) -> ClosedJaxpr:
    """The jaxpr with constants as leading arguments, and numbers in place of keys and tokens."""
    invars = [*jaxpr.constvars, *jaxpr.invars]
    opened = jaxpr.replace(constvars=[], invars=invars)
    outer = [outer_aval(v.aval) for v in invars]
    physical = list(map(physical_aval, outer))
    avals = [v.aval for v in (*invars, *jaxpr.outvars)]
    if all(physical_aval(outer_aval(aval)) is aval for aval in avals):
        return ClosedJaxpr(opened, [])

    def function(*values: Any) -> list[Any]:
        inner = [_inner(x, v.aval) for x, v in zip(values, invars, strict=True)]
        return list(map(_outer, eval_jaxpr(opened, [], *inner)))

    return stage(function, physical, jaxpr.debug_info or DebugInfo("jit", ""))


def _inner(value: Any, aval: Any) -> Any:
    if type(aval) is AbstractToken:
        return create_token_p.bind()
    return wrap(value, aval.dtype.implementation) if isinstance(aval.dtype, KeyDType) else value


def _outer(value: Any) -> Any:
    aval = getattr(value, "aval", None)
    if type(aval) is AbstractToken:
        return full((0,), False, np.dtype(bool))
    return unwrap(value) if isinstance(getattr(aval, "dtype", None), KeyDType) else value
