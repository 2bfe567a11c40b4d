"""The values of dimension variables, from the sizes of arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dovetail._core.base.records import record
from dovetail._core.ir.avals import AbstractToken
from dovetail._core.ir.dimensions import Scope, Size, SymbolicDimension, as_size

__all__ = ["Check", "SizeOf", "Solution", "scope_of", "sizes_of", "solve"]


@record
class SizeOf:
    """A dimension of an argument.

    Attributes:
        place: a phrase for it, such as ``args[0].shape[1]``.
        expected: the size that a program was made for.
        actual: the size that an argument has.
    """

    place: str
    expected: Size
    actual: Size


@record
class Check:
    """What has to hold of the sizes of arguments.

    Attributes:
        left: a size.
        relation: ``"=="`` or ``">="``.
        right: a size.
        what: what it means, for messages.
    """

    left: Size
    relation: str
    right: Size
    what: str

    def holds(self) -> bool | None:
        """Whether it does; None if that depends on dimension variables."""
        difference = self.left - self.right
        if type(difference) is SymbolicDimension:
            return None
        return difference == 0 if self.relation == "==" else difference >= 0


@record
class Solution:
    """The values of the variables, and what has to hold for them to fit.

    Attributes:
        values: by variable, in terms of the actual sizes.
        checks: what to check.
        specifications: the sizes that were asked for, for messages.
    """

    values: dict[str, Size]
    checks: tuple[Check, ...]
    specifications: str

    def message(self, check: Check) -> str:
        """What to say where a check fails."""
        found = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        return (
            f"the shapes of the arguments do not fit those that the program was exported for: "
            f"{check.what}. The program takes {self.specifications}; the arguments give {found}"
        )


def scope_of(avals: Iterable[Any]) -> Scope | None:
    """The scope of the symbolic sizes of some avals; None if there are none."""
    for aval in avals:
        if type(aval) is AbstractToken:  # has no shape
            continue
        for size in getattr(aval, "shape", ()):
            if type(size) is SymbolicDimension:
                return size.scope
    return None


def sizes_of(avals: Sequence[Any], names: Sequence[str], shapes: Sequence[Any]) -> list[SizeOf]:
    """The dimensions of arguments, with their actual sizes."""
    return [
        SizeOf(f"{name}.shape[{number}]", expected, as_size(actual))
        for aval, name, shape in zip(avals, names, shapes, strict=True)
        for number, (expected, actual) in enumerate(zip(aval.shape, shape, strict=True))
    ]


def solve(sizes: Sequence[SizeOf]) -> Solution:
    """Find the variables by which the expected sizes become the actual ones.

    Each must stand somewhere in an expression without products in which no other variable is
    unknown.

    Args:
        sizes: the dimensions of all arguments.

    Raises:
        ValueError: a variable is not determined.
    """
    symbolic = [s for s in sizes if type(s.expected) is SymbolicDimension]
    names = sorted({n for s in symbolic for n in s.expected.variables()})  # type: ignore[union-attr]
    values: dict[str, Size] = {}
    pending = symbolic
    while pending:
        later = [s for s in pending if not _determine(s, values)]
        if len(later) == len(pending):
            break
        pending = later
    missing = [name for name in names if name not in values]
    if missing:
        raise ValueError(
            f"the dimension variables {', '.join(missing)} are not determined by the sizes "
            f"{', '.join(f'{s.place} = {s.expected}' for s in pending)}: give each variable a "
            "dimension that is linear in it, such as 'a' or '2*a + 1', where all others are known"
        )
    checks = [Check(values[n], ">=", 1, f"the dimension variable {n} is at least 1") for n in names]
    for s in sizes:
        expected = s.expected
        if type(expected) is SymbolicDimension:
            expected = expected.evaluate(values)
        if type(expected) is SymbolicDimension and expected == s.actual:
            continue
        checks.append(Check(s.actual, "==", expected, f"{s.place} is {s.expected}"))
    first = symbolic[0].expected if symbolic else 0
    constraints = [] if isinstance(first, int) else first.scope.constraints
    checks += [
        Check(
            constraint.evaluate(values),
            ">=",
            0,
            constraint.scope.written.get(constraint, f"{constraint} >= 0"),
        )
        for constraint in constraints
        if constraint.variables() <= values.keys()
    ]
    listed = [f"{s.place} = {s.expected}" for s in sizes]
    return Solution(values, tuple(checks), ", ".join(listed))


def _determine(size: SizeOf, values: dict[str, Size]) -> bool:
    """Find a variable from the size of one dimension; whether nothing is left to be found in it."""
    assert type(size.expected) is SymbolicDimension
    unknown = [name for name in size.expected.variables() if name not in values]
    if not unknown:
        return True
    if len(unknown) > 1:
        return False
    (name,) = unknown
    factor, rest = 0, 0
    for monomial, coefficient in size.expected.terms:
        part = SymbolicDimension(((monomial, coefficient),), size.expected.scope)
        if name not in part.variables():
            rest = rest + part.evaluate(values)
        elif monomial == ((name, 1),):
            factor = coefficient
        else:
            return False
    values[name] = (size.actual - rest) // factor
    return True
