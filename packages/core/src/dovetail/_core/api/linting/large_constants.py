"""The rule ``large-constant``: arrays that a program has captured."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any, Final

import numpy as np

from dovetail._core.api.linting.findings import Finding, where_is
from dovetail._core.api.linting.sites import Body, Program, Site
from dovetail._core.base import pytree
from dovetail._core.ir.jaxpr import ClosedJaxpr, Var
from dovetail._core.ir.walk import jaxprs_and_closed_jaxprs
from dovetail._core.runtime.arrays.array import Array
from dovetail._core.runtime.arrays.memory import in_words
from dovetail._core.transform.stage import is_copy_of

__all__ = ["large_constants"]

_FEWEST_BYTES: Final = 1_000_000
_BUILT_IN: Final = frozenset({dict, list, tuple})


def large_constants(program: Program) -> Iterator[Finding]:
    """Captured arrays that make each program larger and slower to compile."""
    seen: set[int] = set()
    for body in program.bodies:
        for var, value in zip(body.jaxpr.constvars, body.consts, strict=False):
            size = getattr(value, "nbytes", 0)
            if size < _FEWEST_BYTES or id(value) in seen:
                continue
            seen.add(id(value))
            site = _first_use(var, body)
            name = _name_of(value, program, site)
            where, function = where_is(None if site is None else site.frame())
            what = f"{name}, " if name else ""
            yield Finding(
                "large-constant",
                where,
                function,
                f"the program has captured an array, {what}{var.aval.short_name()}, which is "
                f"{in_words(size)} in each program that is compiled, and never changes there",
                f"Pass {name or 'it'} as an argument",
                name,
            )


def _first_use(var: Var, body: Body) -> Site | None:
    """The first equation that computes with a variable, also within calls."""
    site = next((s for s in body.sites() if any(v is var for v in s.eqn.invars)), None)
    if site is None:
        return None
    for part in jaxprs_and_closed_jaxprs(site.eqn.params):
        jaxpr = part.jaxpr if isinstance(part, ClosedJaxpr) else part
        inner = Body(jaxpr, (), site)
        for parameter in jaxpr.invars:
            if inner.outer(parameter) is var:
                found = _first_use(parameter, inner)
                if found is not None:
                    return found
    return site


def _name_of(value: Any, program: Program, site: Site | None) -> str | None:
    """The variable of the user's that holds an array, with the path in it."""
    for name, held in _variables(program.function, site):
        if _is_made_of(value, held):
            return name
        if type(held) in _BUILT_IN:
            for path, leaf in pytree.leaves_with_path(held):
                if _is_made_of(value, leaf):
                    return name + pytree.keystr(path)
    return None


def _is_made_of(constant: Any, held: Any) -> bool:
    """Whether a constant is what a variable holds, or a copy on the device of an array of NumPy."""
    if is_copy_of(constant, held):
        return True
    return (
        isinstance(held, np.ndarray)
        and isinstance(constant, Array)
        and (held.shape, held.dtype) == (constant.shape, constant.dtype)
        and constant.is_fully_addressable
        and np.array_equal(np.asarray(constant), held)
    )


def _variables(function: Any, site: Site | None) -> Iterator[tuple[str, Any]]:
    """The variables that a function, or the code at a site, can see."""
    while True:
        if isinstance(function, functools.partial):
            for number, value in enumerate(function.args):
                yield f"args[{number}] of the partial", value
            yield from function.keywords.items()
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            break
    owner = getattr(function, "__self__", None)
    for name, value in getattr(owner, "__dict__", {}).items():
        yield f"self.{name}", value
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                yield name, cell.cell_contents
            except ValueError:  # not yet assigned
                continue
        yield from _globals_of(code, function.__globals__)
    if site is not None:
        frame = site.users_frame()
        if frame is not None:
            yield from _globals_of(frame[0], _module_of(frame[0]))


def _globals_of(code: CodeType, variables: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, variables[name]) for name in code.co_names if name in variables)


def _module_of(code: CodeType) -> dict[str, Any]:
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == code.co_filename:
            return vars(module)
    return {}
