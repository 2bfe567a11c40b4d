"""The lines where mistakes are expected."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def marked_lines() -> Callable[[Callable[..., Any]], list[str]]:
    """A function that gives file and number of each line of a program that ends with ``# here``."""

    def marked(program: Callable[..., Any]) -> list[str]:
        lines, first = inspect.getsourcelines(program)
        file = inspect.getsourcefile(program)
        numbers = [first + i for i, line in enumerate(lines) if line.rstrip().endswith("# here")]
        return [f"{file}:{number}" for number in numbers]

    return marked
