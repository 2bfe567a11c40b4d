"""What tests of pages share."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def run_page() -> Callable[[Path, str], int]:
    """Runs the examples of a page, given its text; returns how many there are."""

    def run(page: Path, text: str) -> int:
        test = doctest.DocTestParser().get_doctest(
            text.replace("```", ""), {"__name__": "__main__"}, page.name, str(page), 0
        )
        output: list[str] = []
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        result = doctest.DocTestRunner(optionflags=flags).run(test, out=output.append)
        assert result.failed == 0, "".join(output)
        return result.attempted

    return run
