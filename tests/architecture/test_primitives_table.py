"""docs/primitives.md says what primitives and backends have now."""

from __future__ import annotations

import runpy


def test_the_table_of_primitives_is_current(root):
    written = (root / "docs" / "primitives.md").read_text(encoding="utf-8")
    current = runpy.run_path(str(root / "docs" / "write_primitives.py"))["text"]()
    assert written == current, "run `python docs/write_primitives.py`"
    lines = [line for line in written.splitlines() if line.startswith("| [`")]
    assert len(lines) == len(set(lines)) > 200
    (scan,) = [line for line in lines if line.startswith("| [`scan`]")]
    assert "(../packages/core/src/dovetail/_core/ops/control/scan.py)" in scan
