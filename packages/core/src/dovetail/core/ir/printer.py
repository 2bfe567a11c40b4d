"""The standard printed form of jaxprs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dovetail.core.base import source
from dovetail.core.ir.jaxpr import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
)
from dovetail.core.ir.layout import (
    KEYWORD,
    TYPE,
    Break,
    Colored,
    Comment,
    Document,
    Group,
    Nest,
    render,
)
from dovetail.core.ir.walk import is_call, jaxprs_and_closed_jaxprs

__all__ = ["NameTable", "print_eqn", "print_jaxpr"]

_WIDTH: Final = 80
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_absent: Final = object()

#: Parameters that are not shown where they say nothing: by primitive, the value that is not shown.
_UNREMARKABLE: Final[dict[str, dict[str, Any]]] = {
    "jit": {"inline": False},
    "convert_element_type": {"sharding": None},
    "dot_general": {"precision": None, "preferred_element_type": None, "out_sharding": None},
    "broadcast_in_dim": {"broadcast_dimensions": (), "sharding": None},
}
#: Parameters that are never shown, because the type of the result says the same.
_IMPLIED: Final[dict[str, frozenset[str]]] = {"broadcast_in_dim": frozenset({"shape"})}


class NameTable(dict[Var, str]):
    """Names of variables, given in the order in which they are asked for: a to z, ba, bb, ..."""

    __slots__ = ("_count", "taken")

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
        self.taken: set[str] = set()

    def __missing__(self, var: Var) -> str:
        if type(var) is DropVar:
            return "_"
        name = self._next()
        while name in self.taken:
            name = self._next()
        self[var] = name
        return name

    def _next(self) -> str:
        number = self._count
        self._count += 1
        if number < 26:
            return _LETTERS[number]
        digits = ""
        while number:
            number, digit = divmod(number, 26)
            digits = _LETTERS[digit] + digits
        return digits


@dataclass(frozen=True, slots=True)
class _Options:
    source_info: bool = False
    print_shapes: bool = True
    name_stack: bool = False
    print_effects: bool = False


def print_jaxpr(
    jaxpr: Jaxpr | ClosedJaxpr,
    *,
    source_info: bool = False,
    print_shapes: bool = True,
    name_stack: bool = False,
    print_effects: bool = False,
    use_color: bool = False,
    width: int = _WIDTH,
) -> str:
    """The standard printed form of a jaxpr.

    Jaxprs that are used by several equations are written once, in front, under a name.

    Args:
        jaxpr: the jaxpr.
        source_info: write the place in the user's code to the right of each equation.
        print_shapes: write types of variables.
        name_stack: write the names under which profiles show each equation to the right of it.
        print_effects: write side effects to the right of each equation that has any.
        use_color: write terminal codes for colours.
        width: how many columns to use; a line is longer where it cannot be broken.

    Example:
        >>> from dovetail import make_jaxpr, lax
        >>> print(make_jaxpr(lax.sin)(1.0))
        { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    options = _Options(source_info, print_shapes, name_stack, print_effects)
    document = _Printer(options).program(jaxpr.jaxpr if type(jaxpr) is ClosedJaxpr else jaxpr)  # type: ignore[arg-type]
    return render(document, width=width, use_color=use_color)


def print_eqn(
    eqn: JaxprEqn, *, names: NameTable | None = None, use_color: bool = False, **options: Any
) -> str:
    """The standard printed form of an equation.

    Args:
        eqn: the equation.
        names: names of variables; new ones by default.
        use_color: write terminal codes for colours.
        options: `source_info`, `print_shapes`, `name_stack`, `print_effects` of `print_jaxpr`.
    """
    printer = _Printer(_Options(**options), names)
    return render(printer.equation(eqn), width=_WIDTH, use_color=use_color)


class _Printer:
    """Turns jaxprs into documents; names are given as documents are made."""

    def __init__(self, options: _Options, names: NameTable | None = None) -> None:
        self.options = options
        self.names = NameTable() if names is None else names
        self.shared: dict[int, str] = {}

    def program(self, jaxpr: Jaxpr) -> Document:
        """A jaxpr with the jaxprs that it uses several times in front."""
        parts: list[Document] = []
        for name, inner in self.name_shared(jaxpr):
            parts += [[_word("let"), f" {name} = ", self.jaxpr(inner), " ", _word("in")], "\n"]
        parts.append(self.jaxpr(jaxpr))
        return parts

    def name_shared(self, jaxpr: Jaxpr) -> list[tuple[str, Jaxpr]]:
        """Give names to the jaxprs that several equations use."""
        uses: Counter[int] = Counter()
        found: dict[int, tuple[str, Jaxpr]] = {}
        todo = [jaxpr]
        while todo:
            current = todo.pop()
            inside = []
            for eqn in current.eqns:
                if not eqn.params:
                    continue
                for value in jaxprs_and_closed_jaxprs(eqn.params):
                    inner = value.jaxpr if isinstance(value, ClosedJaxpr) else value
                    uses[id(inner)] += 1
                    if uses[id(inner)] == 1:
                        found[id(inner)] = (str(eqn.params.get("name", "jaxpr")), inner)
                        inside.append(inner)
            todo.extend(reversed(inside))
        named = []
        for key, (name, inner) in found.items():
            if uses[key] > 1:
                unique, number = name, 0
                while unique in self.names.taken:
                    number += 1
                    unique = f"{name}{number}"
                self.names.taken.add(unique)
                self.shared[key] = unique
                named.append((unique, inner))
        return named

    def jaxpr(self, jaxpr: Jaxpr) -> Document:
        """``{ lambda constants; parameters. let equations in (results,) }``"""
        head = [
            "{ ",
            _word("lambda "),
            self.binders(jaxpr.constvars),
            "; ",
            self.binders(jaxpr.invars),
            ". ",
        ]
        equations: list[Document] = []
        for eqn in jaxpr.eqns:
            equations += [Break("; "), self.equation(eqn)]
        results = ", ".join(map(self.atom, jaxpr.outvars))
        comma = "," if len(jaxpr.outvars) == 1 else ""
        return Group(
            Nest(
                2,
                [
                    *head,
                    _word("let"),
                    Nest(2, [Break(), *equations[1:]]),
                    Break(),
                    _word("in "),
                    f"({results}{comma}) }}",
                ],
            )
        )

    def binders(self, variables: Iterable[Var]) -> Document:
        """Variables with their types, continued on further lines where they do not fit."""
        parts: list[Document] = []
        for v in variables:
            name = self.names[v]
            parts.append(Group([Break(), name]) if parts else name)
            if self.options.print_shapes:
                parts.append(Colored(":" + v.aval.short_name(), TYPE))
        return Nest(2, parts)

    def atom(self, v: Atom) -> str:
        """A variable by its name, a literal by its value and type."""
        if type(v) is Literal:
            return f"{_literal_value(v)}:{v.aval.short_name()}"
        return self.names[v]  # type: ignore[index]

    def equation(self, eqn: JaxprEqn) -> Document:
        """``results = primitive[parameters] operands``"""
        parts: list[Document] = []
        if eqn.outvars:
            parts += [self.binders(eqn.outvars), " = "]
        parts.append(eqn.primitive.name)
        if eqn.params:
            parts.append(self.params(eqn))
        operands = [self.atom(v) for v in eqn.invars]
        parts.append(f" {' '.join(operands)}")
        parts += [Comment(text) for text in self.comments(eqn)]
        return parts

    def params(self, eqn: JaxprEqn) -> Document:
        """``[name=value ...]``, one to a line where they do not fit."""
        name = eqn.primitive.name
        unremarkable = _UNREMARKABLE.get(name, {})
        implied = _IMPLIED.get(name, frozenset())
        if is_call(eqn):
            self.share_names(eqn)
        shown: list[Document] = []
        for key in sorted(eqn.params, key=lambda key: (key != "name", key)):
            value = eqn.params[key]
            if key in implied or _equal(value, unremarkable.get(key, _absent)):
                continue
            shown += [Break(), f"{key}=", self.value(value)]
        if not shown:
            return ""
        return Group(["[", Nest(2, [Break(""), shown[1:]]), Break(""), "]"])

    def share_names(self, eqn: JaxprEqn) -> None:
        """Give a called jaxpr's variables the names of the operands and results that they are."""
        called: Jaxpr = eqn.params["jaxpr"].jaxpr
        if id(called) in self.shared:
            return
        used: set[str] = set()
        for inner, outer in (*zip(called.invars, eqn.invars), *zip(called.outvars, eqn.outvars)):
            if type(inner) is Literal or type(outer) in (Literal, DropVar) or inner in self.names:
                continue
            name = self.names[outer]  # type: ignore[index]
            if name not in used:
                used.add(name)
                self.names[inner] = name  # type: ignore[index]

    def value(self, value: Any) -> Document:
        """The value of a parameter."""
        if isinstance(value, ClosedJaxpr):
            value = value.jaxpr
        if isinstance(value, Jaxpr):
            return self.shared.get(id(value)) or self.jaxpr(value)
        if (
            type(value) in (tuple, list)
            and value
            and all(isinstance(v, (Jaxpr, ClosedJaxpr)) for v in value)
        ):
            inside = [part for v in value for part in (Break(), self.value(v))]
            return Group(["(", Nest(2, [Break(""), inside[1:]]), Break(""), ")"])
        return _parameter_text(value)

    def comments(self, eqn: JaxprEqn) -> list[str]:
        """What is written to the right of an equation."""
        said = []
        if self.options.source_info:
            said.append(source.describe(eqn.traceback))
        return said


def _word(text: str) -> Document:
    return Colored(text, KEYWORD)


def _equal(value: Any, other: Any) -> bool:
    return value is other or (type(value) is type(other) and bool(np.all(value == other)))


def _literal_value(literal: Literal) -> str:
    value = literal.val
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.item()
    return str(value)


def _parameter_text(value: Any) -> str:
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, type):
        return value.__name__
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value)


_ = (Callable, Sequence)
