"""The table of options is what the options say."""

from __future__ import annotations

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / "write_options.py"


def test_the_table_of_options_is_current() -> None:
    script = runpy.run_path(str(SCRIPT))
    assert script["OUTPUT"].read_text(encoding="utf-8") == script["text"](), (
        "run: python docs/write_options.py"
    )
