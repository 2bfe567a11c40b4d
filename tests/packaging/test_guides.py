"""The commands and the pieces of code in the guides for authors of plug-ins, done in order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from dovetail._core.plugins import new_backend as templates
from dovetail._core.plugins.new_backend import KINDS, new_backend

ROOT = Path(__file__).parents[2]
COMPILER = os.environ.get("CXX") or shutil.which("c++")
GUIDES = (
    "write-a-backend.md",
    "write-an-api.md",
    "write-an-exporter.md",
    pytest.param(
        "write-a-kernel.md",
        marks=pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler"),
    ),
)

pytestmark = pytest.mark.packaging


@dataclass(frozen=True)
class Block:
    """A block of code in the guide.

    Attributes:
        language: `sh`, `python`, `cpp`, `toml` or `text`.
        words: what stands behind the language.
        text: what is in it.
        line: its first line.
    """

    language: str
    words: tuple[str, ...]
    text: str
    line: int


def blocks(text: str) -> list[Block]:
    """The blocks, in order."""
    found = []
    for match in re.finditer(r"^```(\w*)([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text[: match.start()].count("\n") + 2
        found.append(Block(match[1], tuple(match[2].split()), match[3], line))
    return found


def environment(folder: Path) -> dict[str, str]:
    """An environment of its own that also sees what is installed beside these tests."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    beside = sysconfig.get_paths()["purelib"]
    (site / "beside.pth").write_text(f"import site; site.addsitedir({beside!r})\n")
    # The command `pytest` is in the environment of these tests, for another Python.
    script = folder / "bin" / "pytest"
    script.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m pytest -p no:cacheprovider "$@"\n')
    script.chmod(0o755)
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "DOVETAIL_"))}
    return {**variables, "PATH": f"{folder}/bin{os.pathsep}{os.environ['PATH']}"}


def shows(block: Block, output: str) -> None:
    """The lines of a block are in an output, in order; `...` stands for anything in a line."""
    rest = output
    for line in block.text.splitlines():
        pattern = r"\s+".join(
            ".*?" if word == "..." else re.escape(word) for word in line.split()
        ).replace(r"\s+.*?\s+", r"\s.*?\s*")
        found = re.search(rf"^.*{pattern}.*$", rest, re.MULTILINE)
        assert found, f"line {block.line}: the output has no line {line!r}:\n{output}"
        rest = rest[found.end() :]


@pytest.mark.parametrize("guide", GUIDES)
def test_the_guide(tmp_path, guide):
    variables = environment(tmp_path / "environment")
    folder = tmp_path / "work"
    folder.mkdir()
    originals: dict[Path, str] = {}
    output = ""
    done = {"sh": 0, "python": 0, "text": 0}
    for block in blocks((ROOT / "docs" / guide).read_text(encoding="utf-8")):
        where = f"{guide}:{block.line}"
        assert block.language in (*done, "cpp", "toml"), f"{where}: what language is it?"
        done[block.language] = done.get(block.language, 0) + 1
        verb, _, name = (block.words[0] if block.words else "").partition("=")
        if verb == "before":
            continue  # what the environment is made of
        if block.language == "sh":
            command = ["bash", "-euo", "pipefail", "-c", block.text]
            place = ROOT if verb == "example" else folder
            ran = subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True)
            output = ran.stdout + ran.stderr
            assert (ran.returncode != 0) == (verb == "fails"), f"{where}:\n{output}"
        elif verb in ("output", "doctor"):
            shows(block, output)
        elif verb == "file":
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(block.text, encoding="utf-8")
        else:
            assert verb in ("append", "replace"), f"{where}: what is to be done with it?"
            path = folder / name
            before = originals.setdefault(path, path.read_text(encoding="utf-8"))
            path.write_text(f"{before}\n\n{block.text}", encoding="utf-8")
    assert all(done.values()), done


def test_a_line_that_is_not_there_is_noticed():
    block = Block("text", ("output",), "a ... c\n  d\n", 1)
    shows(block, "x\na b b c\nd e\n")
    for output in ("a b\nd\n", "d\na b c\n", ""):
        with pytest.raises(AssertionError, match="the output has no line"):
            shows(block, output)


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        *((name, True) for name in ("a", "a1", "acme_2", "a__b")),
        *(
            (name, False)
            for name in ("a_", "_a", "acme__", "_", "2a", "a-b", "a.b", "A", "a\n", "")
        ),
    ],
)
def test_a_name_that_fits_is_a_distribution_s_name(tmp_path, name, fits):
    """By the standard it begins and ends with a letter or digit."""
    if fits:
        assert re.fullmatch(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?", f"dovetail-backend-{name}")
        assert new_backend(name, tmp_path)
    else:
        with pytest.raises(ValueError, match=r"begins with a letter and does not end with an und"):
            new_backend(name, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_templates_are_read_out_of_an_archive(tmp_path, monkeypatch, kind):
    archive = tmp_path / "core.zip"
    package = Path(templates.__file__).parent
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(package.rglob("templates/*/*")):
            file.write(path, path.relative_to(package))
    monkeypatch.setattr(templates, "files", lambda name: zipfile.Path(archive))
    (tmp_path / "archive").mkdir()
    made = templates.new_backend("acme", tmp_path / "archive", kind)
    monkeypatch.undo()
    (tmp_path / "folder").mkdir()
    expected = templates.new_backend("acme", tmp_path / "folder", kind)
    assert [path.name for path in made] == [path.name for path in expected]
    assert [path.read_text() for path in made] == [path.read_text() for path in expected]
