"""The examples of docs/export.md do what they show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "export.md"


def test_the_examples(run_page: Callable[[Path, str], int]) -> None:
    pytest.importorskip("flatbuffers", reason="the extra `export` brings it")
    assert run_page(PAGE, PAGE.read_text(encoding="utf-8")) > 10
