"""The examples of docs/many-devices.md do what they show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "many-devices.md"


def test_the_examples(run_page: Callable[[Path, str], int]) -> None:
    assert run_page(PAGE, PAGE.read_text(encoding="utf-8")) > 20
