"""The rule ``float64-by-accident``: operands of 32 bits that a constant of 64 bits has widened.

Whether somebody has chosen 64 bits is followed through the program: arguments of 64 bits and
conversions that are written out are chosen. Constants of NumPy, and arrays made in the function,
have 64 bits by default.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail._core.api.arguments import promoted, promoted_pair, same_dtype
from dovetail._core.api.linting.bytecode import expression_at
from dovetail._core.api.linting.findings import Finding, where_is
from dovetail._core.api.linting.sites import Body, Program, RawFrame, Site, raw_frames, traceback_of
from dovetail._core.base import dtypes
from dovetail._core.base.source import is_internal
from dovetail._core.basis.elementwise import convert_element_type_p
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.ir.walk import jaxprs_and_closed_jaxprs

__all__ = ["widenings"]

_WIDE: Final = frozenset({np.dtype(np.float64), np.dtype(np.complex128)})
_PROMOTING: Final = frozenset(f.__code__ for f in (promoted, promoted_pair, same_dtype))
#: Words by which a user asks for 64 bits where an array is made.
_CHOICES: Final = ("float64", "complex128", "double", "f8")


class _Known(NamedTuple):
    """What is known of the variables of a body.

    Attributes:
        chosen: those of 64 bits that somebody has chosen.
        narrow: those of fewer bits that come from arguments, or from captured arrays.
    """

    chosen: set[Any]
    narrow: set[Any]


def widenings(program: Program) -> Iterator[Finding]:
    """Operations that widen floats of 32 bits or fewer because of a default of NumPy."""
    known: dict[int, _Known] = {}
    for body in program.bodies:
        chosen, narrow = known[id(body.jaxpr)] = _of_parameters(body, known)
        by_place: dict[RawFrame | None, list[Site]] = defaultdict(list)
        for site in body.sites():
            by_place[site.users_frame()].append(site)
        for site in body.sites():
            eqn = site.eqn
            if not narrow.isdisjoint(v for v in eqn.invars if type(v) is not Literal):
                narrow.update(filter(_is_narrow, eqn.outvars))
            if not any(map(_is_wide, eqn.outvars)):
                continue
            if _is_widening(site):
                partners = _partners(site, by_place[site.users_frame()])
                if partners and chosen.isdisjoint(partners) and eqn.invars[0] in narrow:
                    yield _finding(program, site, partners[0])
            elif not _passes_on(site, chosen) and not _is_chosen(site):
                continue
            chosen.update(filter(_is_wide, eqn.outvars))


def _of_parameters(body: Body, known: Mapping[int, _Known]) -> _Known:
    parameters = body.jaxpr.invars
    captured = set(filter(_is_narrow, body.jaxpr.constvars))
    if body.caller is None:
        return _Known(
            set(filter(_is_wide, parameters)), captured | set(filter(_is_narrow, parameters))
        )
    around = known[id(body.caller.body.jaxpr)]
    given = {v: outer for v in parameters if type(outer := body.outer(v)) is not Literal}
    # Where it is not known what is passed, somebody may have chosen it.
    return _Known(
        {v for v, o in given.items() if _is_wide(v) and (o is None or o in around.chosen)},
        captured | {v for v, o in given.items() if _is_narrow(v) and o in around.narrow},
    )


def _is_wide(atom: Any) -> bool:
    dtype = getattr(atom.aval, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype in _WIDE


def _is_narrow(atom: Any) -> bool:
    dtype = getattr(atom.aval, "dtype", None)
    is_float = isinstance(dtype, np.dtype) and dtypes.kind_of(dtype) in ("f", "c")
    return is_float and dtype not in _WIDE and not atom.aval.weak_type


def _is_widening(site: Site) -> bool:
    """Whether an equation converts an operand to the common dtype of several."""
    eqn = site.eqn
    if eqn.primitive is not convert_element_type_p or not _is_narrow(eqn.invars[0]):
        return False
    for code, _ in raw_frames(traceback_of(eqn)):
        if code in _PROMOTING:
            return True
        if not is_internal(code.co_filename):
            return False
    return False


def _passes_on(site: Site, chosen: set[Any]) -> bool:
    """Whether an equation computes with 64 bits that somebody has chosen."""
    operands = [v for v in site.eqn.invars if type(v) is not Literal]
    if jaxprs_and_closed_jaxprs(site.eqn.params):
        return any(_is_wide(v) or _is_narrow(v) for v in operands)
    return not chosen.isdisjoint(operands)


def _is_chosen(site: Site) -> bool:
    """Whether the user asks for 64 bits where an array of them is made."""
    if any(map(_is_wide, site.eqn.invars)) and any(type(v) is not Literal for v in site.eqn.invars):
        return False
    if any(map(_is_narrow, site.eqn.invars)):
        return True
    place = site.users_frame()
    return place is not None and any(word in expression_at(*place) for word in _CHOICES)


def _partners(site: Site, at_place: list[Site]) -> list[Any]:
    """The operands of 64 bits with which an operand is combined in the user's expression."""
    made = set(site.eqn.outvars)
    # What a function of the framework makes is no choice of the user's.
    own = {v for other in at_place for v in other.eqn.outvars}
    partners: list[Any] = []
    for other in at_place:
        if other is site or made.isdisjoint(v for v in other.eqn.invars if type(v) is not Literal):
            continue
        for atom in other.eqn.invars:
            if type(atom) is Literal:
                if _is_wide(atom) and not atom.aval.weak_type:
                    partners.append(atom)
            elif atom not in own and _is_wide(atom):
                partners.append(atom)
        made.update(other.eqn.outvars)
    return partners


def _finding(program: Program, site: Site, partner: Any) -> Finding:
    operand = site.eqn.invars[0]
    argument = program.argument(operand, site.body)
    where, function = where_is(site.frame())
    widened = f"{argument}, {operand.aval.short_name()}," if argument else operand.aval.short_name()
    return Finding(
        "float64-by-accident",
        where,
        function,
        f"{widened} becomes {site.eqn.outvars[0].aval.short_name()} here, since the other operand "
        f"is {_described(partner, site.body)}",
        "Write a number of Python, such as float(c), or an array of dtype float32 in its place; or "
        "convert with .astype if 64 bits are meant",
        argument,
    )


def _described(partner: Any, body: Body) -> str:
    if type(partner) is Literal:
        return f"the number {partner.val!r} of dtype {partner.aval.dtype}, not one of Python"
    name = partner.aval.short_name()
    for site in body.sites():
        if partner in site.eqn.outvars:
            frame = site.frame()
            return f"{name}, made at {frame}" if frame else name
    return f"a captured array, {name}"
