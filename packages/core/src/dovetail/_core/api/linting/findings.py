"""What `lint` has found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from dovetail._core.base.counting import counted
from dovetail._core.base.notebooks import table
from dovetail._core.base.records import record
from dovetail._core.base.source import UserFrame

__all__ = ["Finding", "LintReport"]


@record
class Finding:
    """A costly or mistaken place in a program, found by `dovetail.lint`.

    Attributes:
        rule: the name of the rule, such as ``"unrolled-loop"``.
        where: the user's file and line, such as ``"/home/me/train.py:12"``.
        function: the name of the function there.
        message: what is wrong.
        remedy: what to write instead.
        argument: the path of the argument that it is about, such as ``"params['w']"``, or the name
            of a captured variable; None if it is about neither.
    """

    rule: str
    where: str
    function: str
    message: str
    remedy: str
    argument: str | None = None

    def __str__(self) -> str:
        return f"{self._place()}: {self.rule}\n  {self.message}.\n  {self.remedy}."

    def _place(self) -> str:
        return f"{self.where} ({self.function})" if self.function else self.where


class LintReport(Sequence[Finding]):
    """The findings of `dovetail.lint`, in the order of their lines: true if there are any.

    Args:
        name: the name of the function, which is an attribute, too.
        findings: the findings.
    """

    __slots__ = ("_findings", "name")

    def __init__(self, name: str, findings: Sequence[Finding]) -> None:
        self.name = name
        self._findings = tuple(findings)

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...
    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        return self._findings[index]

    def __str__(self) -> str:
        return "\n".join([self._summary(), *map(str, self)])

    def __repr__(self) -> str:
        return str(self)

    def _summary(self) -> str:
        return f"{self.name}: {counted(len(self), 'finding') if self else 'nothing found'}"

    def _repr_html_(self) -> str:
        rows = [("line", "rule", "what is wrong", "what to write instead")]
        rows += [(f._place(), f.rule, f.message, f.remedy) for f in self]
        return table(rows, ("left",) * 4, self._summary())


def where_is(frame: UserFrame | None) -> tuple[str, str]:
    """A place in the user's code as `Finding.where`, and the function there."""
    if frame is None:
        return "an unknown place", ""
    return f"{frame.file}:{frame.line}", frame.function
