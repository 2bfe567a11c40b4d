"""The file of expected failures: what a backend is known not to support yet, with reasons.

    # comments and empty lines do not count
    test_rules_agree[erf_inv-*]               # the compiler loses digits in the tails
    crashes: test_large_programs*             # the driver ends the process above 2**20 operations

A pattern is matched against the part of a test's id after the file name. ``*`` stands for any
characters and ``?`` for one; brackets are literal, because ids are full of them. The tests run and
must fail: a test that passes is reported as a failure, and its line has to go. Tests on lines that
begin with ``crashes:`` are not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ExpectedFailure", "ExpectedFailuresError", "read_expected_failures"]

_CRASHES: Final = "crashes:"


class ExpectedFailuresError(ValueError):
    """An invalid line in a file of expected failures."""


@dataclass(frozen=True, slots=True)
class ExpectedFailure:
    """One line of the file.

    Attributes:
        pattern: matches the ids of the tests.
        reason: why they fail.
        crashes: whether they must not even be run.
        place: file and line, for messages.
    """

    pattern: str
    reason: str
    crashes: bool
    place: str

    def matches(self, test: str) -> bool:
        """Whether the pattern matches a test.

        Args:
            test: the part of its id after the file name.
        """
        parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in self.pattern)
        return re.fullmatch("".join(parts), test, re.DOTALL) is not None


def read_expected_failures(path: Path) -> list[ExpectedFailure]:
    """Read a file of expected failures.

    Raises:
        ExpectedFailuresError: a line has no reason, or a pattern occurs twice.
    """
    found: dict[str, ExpectedFailure] = {}
    for number, line in _lines(path):
        place = f"{path}:{number}"
        pattern, *reasons = re.split(r"\s#", line, maxsplit=1)
        reason = "".join(reasons).strip()
        crashes = pattern.startswith(_CRASHES)
        pattern = pattern.removeprefix(_CRASHES).strip()
        if not reason:
            raise ExpectedFailuresError(
                f"{place}: {pattern!r} has no reason; write it behind the pattern: "
                f"{pattern}  # why it fails"
            )
        if pattern in found:
            raise ExpectedFailuresError(
                f"{place}: {pattern!r} stands in {found[pattern].place} already"
            )
        found[pattern] = ExpectedFailure(pattern, reason, crashes, place)
    return list(found.values())


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ExpectedFailuresError(f"--dovetail-xfails={path}: {error.strerror}") from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()
