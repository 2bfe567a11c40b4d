"""The standard printed form of jaxprs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base import source
from dovetail._core.base.limits import deeper
from dovetail._core.base.records import record
from dovetail._core.ir.jaxpr import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
)
from dovetail._core.ir.layout import (
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
from dovetail._core.ir.shown_params import always, is_given
from dovetail._core.ir.walk import is_call, jaxprs_and_closed_jaxprs

__all__ = ["NameTable", "print_eqn", "print_jaxpr"]

_WIDTH: Final = 80
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
#: A jaxpr with more equations than this is written separately from the equation that uses it.
_INLINE_LIMIT: Final = 10

#: The greatest nesting depth written inline: deeper jaxprs would run off the page and exhaust the
#: stack.
_DEPTH_LIMIT: Final = 30


#: Parameters that many primitives have, shown only if they are given.
_SHOWN_IF_GIVEN: Final = frozenset({"accuracy"})


class NameTable(dict[Any, str]):
    """Names of variables, assigned in the order of first use: a to z, ba, bb, ..."""

    __slots__ = ("_count", "taken")

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
        self.taken: set[str] = set()

    def __missing__(self, var: Any) -> str:
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


@record
class _Options:
    source_info: bool = False
    print_shapes: bool = True
    name_stack: bool = False
    use_color: bool = False


@deeper()
def print_jaxpr(
    jaxpr: Jaxpr | ClosedJaxpr,
    *,
    source_info: bool = False,
    print_shapes: bool = True,
    name_stack: bool = False,
    use_color: bool = False,
) -> str:
    """The standard printed form of a jaxpr.

    Large jaxprs, and those that several equations use, are written first, each under a name.

    Args:
        jaxpr: the jaxpr.
        source_info: write the place in the user's code to the right of each equation.
        print_shapes: write the types of variables.
        name_stack: write the calls around each equation to its right.
        use_color: write terminal codes for colours.

    Example:
        >>> from dovetail import lax, make_jaxpr
        >>> print(make_jaxpr(lax.sin)(1.0))
        { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    options = _Options(source_info, print_shapes, name_stack, use_color)
    document = _Printer(options).program(jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr)
    return render(document, width=_WIDTH, use_color=use_color)


def print_eqn(eqn: JaxprEqn, *, names: NameTable | None = None, **options: bool) -> str:
    """The standard printed form of an equation.

    Args:
        eqn: the equation.
        names: names of variables; new ones by default.
        options: those of `print_jaxpr`.
    """
    chosen = _Options(**options)
    document = _Printer(chosen, names).equation(eqn)
    return render(document, width=_WIDTH, use_color=chosen.use_color)


class _Printer:
    """Turns jaxprs into documents, and names variables on the way."""

    def __init__(self, options: _Options, names: NameTable | None = None) -> None:
        self.options = options
        self.names = NameTable() if names is None else names
        #: Names of the jaxprs that are written first.
        self.apart: dict[int, str] = {}
        #: The indent of the present line if all enclosing groups are broken.
        self.indent = 0
        self.calls: list[str] = []
        #: Results that nothing uses; they are written as ``_``.
        self.unused: set[Any] = set()

    def program(self, jaxpr: Jaxpr) -> Document:
        """A jaxpr, preceded by the inner jaxprs that are written separately."""
        parts: list[Document] = []
        for name, inner in self.choose_apart(jaxpr):
            parts += [f"let {name} = ", self.jaxpr(inner), " in", Break()]
        parts.append(self.jaxpr(jaxpr))
        return parts

    def choose_apart(self, jaxpr: Jaxpr) -> list[tuple[str, Jaxpr]]:
        """Give names to the jaxprs that are used more than once, and to large ones."""
        uses: Counter[int] = Counter()
        candidates: dict[int, tuple[str, Jaxpr]] = {}
        inside: dict[int, list[int]] = {}
        depths: dict[int, int] = {}
        todo = deque([(jaxpr, 1)])
        while todo:
            current, depth = todo.popleft()
            children = inside[id(current)] = []
            for eqn in current.eqns:
                if not eqn.params:
                    continue
                for value in jaxprs_and_closed_jaxprs(eqn.params):
                    inner = value.jaxpr if isinstance(value, ClosedJaxpr) else value
                    uses[id(inner)] += 1
                    children.append(id(inner))
                    if id(inner) not in candidates:
                        name = str(eqn.params.get("name", "jaxpr")).strip("<>")
                        candidates[id(inner)] = (name, inner)
                        depths[id(inner)] = depth
                        todo.append((inner, depth % _DEPTH_LIMIT + 1))
        # Whatever a repeated jaxpr contains is repeated too.
        repeated = [key for key, count in uses.items() if count > 1]
        seen = set(repeated)
        while repeated:
            new = [key for key in inside[repeated.pop()] if key not in seen]
            seen.update(new)
            repeated.extend(new)
        chosen = []
        for key, (name, inner) in candidates.items():
            if key in seen or len(inner.eqns) > _INLINE_LIMIT or depths[key] == _DEPTH_LIMIT:
                unique, number = name, 0
                while unique in self.names.taken:
                    number += 1
                    unique = f"{name}{number}"
                self.names.taken.add(unique)
                self.apart[key] = unique
                chosen.append((unique, inner))
        return chosen

    def jaxpr(self, jaxpr: Jaxpr) -> Document:
        """A jaxpr: ``{ lambda constants; parameters. let equations in (results,) }``."""
        head = [
            "{ ",
            Colored("lambda ", KEYWORD),
            Nest(2, self.binders(jaxpr.constvars)),
            "; ",
            Nest(2, self.binders(jaxpr.invars)),
            ". ",
            Colored("let", KEYWORD),
        ]
        self.indent += 4
        around, self.unused = self.unused, _unused_results(jaxpr)
        equations: list[Document] = [Break()]
        for eqn in jaxpr.eqns:
            equations += [self.equation(eqn), Break("; ")]
        if jaxpr.eqns:
            equations.pop()
        self.unused = around
        self.indent -= 4
        results: list[Document] = ["("]
        for v in jaxpr.outvars:
            results += [self.atom(v), ",", _filling_break]
        if len(jaxpr.outvars) == 1:
            results.pop()
        elif jaxpr.outvars:
            del results[-2:]
        foot = [Break(), Colored("in ", KEYWORD), Nest(2, results), ") }"]
        return Group(Nest(2, [*head, Nest(2, equations), *foot]))

    def binders(self, variables: Sequence[Var]) -> Document:
        """Variables with their types."""
        shapes = self.options.print_shapes
        parts: list[Document] = []
        for v in variables:
            parts += [_filling_break, self.bound(v)]
            if shapes:
                parts.append(Colored(":" + v.aval.short_name(), TYPE))
        return parts[1:]

    def bound(self, v: Var) -> str:
        """The name of a variable where it is bound."""
        return "_" if v in self.unused else self.names[v]

    def atom(self, v: Atom) -> str:
        """A variable by its name, a literal by its value and type."""
        if type(v) is Literal:
            return f"{_literal_text(v.val)}:{v.aval.short_name()}"
        return self.names[v]

    def equation(self, eqn: JaxprEqn) -> Document:
        """An equation: ``results = primitive[parameters] operands``."""
        name = eqn.primitive.name
        call = eqn.params.get("jaxpr") if is_call(eqn) else None
        if call is not None:
            self.share_names(eqn, call.jaxpr)
        options = self.options
        if not eqn.params and not (options.source_info or options.name_stack or options.use_color):
            # Most equations are so simple and short that they need no layout.
            text = self.plain_equation(eqn)
            if self.indent + len(text) <= _WIDTH:
                return text
        parts: list[Document] = []
        if eqn.outvars:
            parts += [Nest(2, self.binders(eqn.outvars)), " = "]
        parts.append(name)
        parts += [Comment(text) for text in self.comments(eqn)]
        if eqn.params:
            self.calls.append(f"{name}({eqn.params.get('name', '')})" if call else name)
            parts.append(self.params(eqn))
            self.calls.pop()
        operands: list[Document] = []
        for v in eqn.invars:
            operands += [_filling_break, self.atom(v)]
        # The first operand stays on the line of the primitive.
        return [*parts, " ", Nest(2, operands[1:])]

    def plain_equation(self, eqn: JaxprEqn) -> str:
        """An equation without parameters on one line."""
        names = self.names
        if self.options.print_shapes:
            results = [f"{self.bound(v)}:{v.aval.short_name()}" for v in eqn.outvars]
        else:
            results = [self.bound(v) for v in eqn.outvars]
        operands = [self.atom(v) if type(v) is Literal else names[v] for v in eqn.invars]
        left = f"{' '.join(results)} = " if results else ""
        return f"{left}{eqn.primitive.name} {' '.join(operands)}"

    def params(self, eqn: JaxprEqn) -> Document:
        """``[name=value ...]``, one per line if they do not fit."""
        shown_params = eqn.primitive.shown_params
        shown: list[Document] = []
        self.indent += 2
        for key in sorted(eqn.params, key=_name_first):
            value = eqn.params[key]
            by_default = is_given if key in _SHOWN_IF_GIVEN else always
            if shown_params.get(key, by_default)(value):
                shown += [Break(), f"{key}=", self.value(value, key)]
        self.indent -= 2
        if not shown:
            return ""
        return Group(["[", Nest(2, [Break(""), *shown[1:]]), Break(""), "]"])

    def share_names(self, eqn: JaxprEqn, called: Jaxpr) -> None:
        """Name variables of a called jaxpr after the operands and results that they stand for."""
        if id(called) in self.apart:
            return
        used: set[str] = set()
        for inner, outer in (
            # Malformed jaxprs are printed too, above all in the error that reports them.
            *zip(called.invars, eqn.invars, strict=False),
            *zip(called.outvars, eqn.outvars, strict=False),
        ):
            if type(inner) is Literal or type(outer) is Literal or inner in self.names:
                continue
            if type(outer) is DropVar or outer in self.unused:
                continue
            name = self.names[outer]
            if name not in used:
                used.add(name)
                self.names[inner] = name

    def value(self, value: Any, key: str = "") -> Document:
        """The value of a parameter."""
        if key == "dimension_numbers" and type(value) is tuple:
            # The dimensions of a contraction: pairs of lists of numbers.
            return str(tuple(tuple(list(dims) for dims in pair) for pair in value))
        if isinstance(value, ClosedJaxpr):
            value = value.jaxpr
        if isinstance(value, Jaxpr):
            if id(value) in self.apart:
                return self.apart[id(value)]
            return self.jaxpr(value) if len(self.calls) <= _DEPTH_LIMIT else "{ lambda ... }"
        if type(value) in (tuple, list) and any(isinstance(v, _JAXPRS) for v in value):
            self.indent += 2
            inside = [part for v in value for part in (Break(), self.value(v))]
            self.indent -= 2
            return Group(["(", Nest(2, [Break(""), *inside[1:]]), Break(""), ")"])
        return _parameter_text(value)

    def comments(self, eqn: JaxprEqn) -> list[str]:
        """The comments to the right of an equation."""
        texts = []
        if self.options.name_stack:
            scopes = eqn.traceback.prefix if type(eqn.traceback) is source.SourceLocation else ""
            texts.append("/".join([*self.calls, scopes + eqn.primitive.name]))
        if self.options.source_info:
            frame = source.user_frame(eqn.traceback) if eqn.traceback is not None else None
            texts.append(
                "an unknown place"
                if frame is None
                else f"{frame.place}"
                + (f":{frame.column}" if frame.column is not None else "")
                + f" ({frame.function})"
            )
        return texts


#: Breaks by itself: what follows fills each line before the next one starts.
_filling_break: Final = Group(Break())
_JAXPRS: Final = (Jaxpr, ClosedJaxpr)


def _unused_results(jaxpr: Jaxpr) -> set[Any]:
    used: set[Any] = {v for v in jaxpr.outvars if type(v) is not Literal}
    for eqn in jaxpr.eqns:
        used.update([v for v in eqn.invars if type(v) is not Literal])
    return {v for eqn in jaxpr.eqns for v in eqn.outvars if v not in used}


def _name_first(key: str) -> tuple[bool, str]:
    return (key != "name", key)


def _literal_text(value: Any) -> str:
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        return str(value.item())
    return str(value)


def _parameter_text(value: Any) -> str:
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
        return str(value.__name__)
    return str(value)
