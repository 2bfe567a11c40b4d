"""The example in the README of dovetail-onnx."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dovetail import exporters

README = Path(__file__).parents[2] / "packages" / "exporter-onnx" / "README.md"


def test_the_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    (said,) = re.findall(r"output_names\)  # (.*)", code)
    assert capsys.readouterr().out.strip() == said
    assert (tmp_path / "network.onnx").stat().st_size > 0


def test_the_options_are_those_that_there_are() -> None:
    table = re.findall(r"^\| `(.*)` \|", README.read_text(encoding="utf-8"), re.MULTILINE)
    told = {name for row in table for name in row.split("`, `")}
    assert told == set(exporters.describe("onnx").options)
