"""The check that a jaxpr is well formed, which every transformation must preserve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from dovetail._core.base import source
from dovetail._core.base.errors import JaxprTypeError
from dovetail._core.ir.avals import ShapedArray, aval_of
from dovetail._core.ir.jaxpr import (
    ClosedJaxpr,
    DropVar,
    Effects,
    Jaxpr,
    JaxprEqn,
    Literal,
    no_effects,
)
from dovetail._core.ir.printer import NameTable, print_eqn
from dovetail._core.ir.walk import is_call, jaxprs_and_closed_jaxprs

__all__ = ["check_jaxpr"]

#: How many lines of an equation an error shows: enough to find it; a call can hold thousands.
_SHOWN_LINES: Final = 20


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Check a jaxpr and all jaxprs inside it.

    Every variable is bound exactly once, before it is used. The types of results are those that
    the primitives' abstract rules give for the operands, and effects are those that the primitives
    state. Constants and called jaxprs match their variables and operands.

    Args:
        jaxpr: the jaxpr.

    Raises:
        JaxprTypeError: it is not well formed; the message shows the equation and its source line.

    Example:
        >>> import numpy as np
        >>> from dovetail._core.ir.avals import ShapedArray
        >>> from dovetail._core.ir.jaxpr import Jaxpr, Var
        >>> x = Var(ShapedArray((3,), np.float32))
        >>> check_jaxpr(Jaxpr([], [x], [x], []))
        >>> check_jaxpr(Jaxpr([], [], [x], []))
        Traceback (most recent call last):
            ...
        dovetail.errors.JaxprTypeError: result number 0, a:f32[3], is not bound
    """
    seen: set[int] = set()
    todo: list[Jaxpr | ClosedJaxpr] = [jaxpr]
    while todo:
        current = todo.pop()
        if isinstance(current, ClosedJaxpr):
            _check_constants(current)
            current = current.jaxpr
        if id(current) in seen:
            continue
        seen.add(id(current))
        _check_one(current)
        for eqn in current.eqns:
            if eqn.params:
                todo.extend(jaxprs_and_closed_jaxprs(eqn.params))


def _check_constants(closed: ClosedJaxpr) -> None:
    for var, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        aval = aval_of(value)
        if not _same_type(var.aval, aval):
            raise JaxprTypeError(
                f"a constant of type {_show(aval)} is bound to a variable of type "
                f"{_show(var.aval)}{_of(closed.jaxpr)}"
            )


def _check_one(jaxpr: Jaxpr) -> None:
    bound: set[Any] = set()
    names = NameTable()

    def fail(eqn: JaxprEqn, problem: str) -> JaxprTypeError:
        return JaxprTypeError(
            f"{problem}\n  equation: {_beginning(print_eqn(eqn, names=names))}\n"
            f"  where:    {source.describe(eqn.traceback)}{_of(jaxpr)}"
        )

    for var in (*jaxpr.constvars, *jaxpr.invars):
        if var in bound:
            raise JaxprTypeError(
                f"the variable {names[var]}:{_show(var.aval)} is bound twice "
                f"among the constants and parameters{_of(jaxpr)}"
            )
        bound.add(var)
    effects: Effects = no_effects
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            if type(v) is Literal:
                if v.aval.shape:
                    raise fail(eqn, f"the literal {v} is not a scalar")
            elif v not in bound:
                raise fail(eqn, f"the variable {names[v]} is used before it is bound")
        for var in eqn.outvars:
            if type(var) is DropVar:
                continue
            if var in bound:
                raise fail(eqn, f"the variable {names[var]} is bound a second time")
            bound.add(var)
        problem = _problem_with(eqn)
        if problem is not None:
            raise fail(eqn, problem)
        if eqn.effects:
            effects = effects | eqn.effects
    if not effects <= jaxpr.effects:
        raise JaxprTypeError(
            f"equations have effects {_show_all(effects - jaxpr.effects)} that the jaxpr "
            f"does not declare{_of(jaxpr)}"
        )
    for number, v in enumerate(jaxpr.outvars):
        if type(v) is not Literal and v not in bound:
            raise JaxprTypeError(
                f"result number {number}, {names[v]}:{_show(v.aval)}, is not bound{_of(jaxpr)}"
            )


def _beginning(text: str) -> str:
    lines = text.split("\n")
    if len(lines) <= _SHOWN_LINES:
        return text
    return "\n".join([*lines[:_SHOWN_LINES], f"... ({len(lines) - _SHOWN_LINES} more lines)"])


def _problem_with(eqn: JaxprEqn) -> str | None:
    primitive = eqn.primitive
    avals = tuple([v.aval for v in eqn.invars])
    if is_call(eqn):
        called = eqn.params["jaxpr"]
        if not _same_types(avals, called.in_avals):
            return (
                f"the called jaxpr takes {_show_types(called.in_avals)}, "
                f"the operands are {_show_types(avals)}"
            )
    try:
        inferred = primitive.infer(avals, eqn.params)
        effects = primitive.effects(*avals, **eqn.params)
    except Exception as error:
        return f"the abstract rule refuses the operands: {type(error).__name__}: {error}"
    expected = list(inferred) if primitive.multiple_results else [inferred]
    present = [v.aval for v in eqn.outvars]
    if not _same_types(expected, present):
        return (
            f"the abstract rule gives {_show_types(expected)}, "
            f"the variables are {_show_types(present)}"
        )
    if effects != eqn.effects:
        return (
            f"the primitive has effects {_show_all(effects)}, the equation {_show_all(eqn.effects)}"
        )
    return None


def _same_types(first: Sequence[Any], second: Sequence[Any]) -> bool:
    return len(first) == len(second) and all(map(_same_type, first, second))


def _same_type(first: Any, second: Any) -> bool:
    """Equality of avals up to weak types, which do not affect what is computed."""
    if first is second:
        return True
    if isinstance(first, ShapedArray) and isinstance(second, ShapedArray):
        return first.shape == second.shape and bool(first.dtype == second.dtype)
    return bool(first == second)


def _show(aval: Any) -> str:
    text: str = aval.short_name()
    return text


def _show_types(avals: Iterable[Any]) -> str:
    return f"({', '.join(map(_show, avals))})"


def _show_all(effects: Effects) -> str:
    return f"{{{', '.join(sorted(map(str, effects)))}}}"


def _of(jaxpr: Jaxpr) -> str:
    info = jaxpr.debug_info
    if info is None:
        return ""
    where = f" at {info.location}" if info.location else ""
    return f"\n  in:       {info.function}{where}, traced for {info.traced_for}"
