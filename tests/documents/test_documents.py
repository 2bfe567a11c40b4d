"""What the documents name exists, and they keep the size and the form that they promise."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "packages" / "core" / "src" / "dovetail" / "_core"
DESIGN = ROOT / "docs" / "design.md"

#: Documents that say where things are.
MAPS = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        DESIGN,
        *ROOT.glob("docs/design/*.md"),
        *ROOT.glob("packages/backend-*/DESIGN.md"),
    ]
)

#: Folders that commands make.
MADE = ("dist/", ".nox/", ".venv/")

#: Groups of entry points, which look like modules.
GROUPS = ("dovetail.backends", "dovetail.exporters", "dovetail.extensions", "dovetail.handles")


def _documents() -> list[Path]:
    """Every tracked document."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listing.stdout.splitlines() if (path := ROOT / name).is_file()]


def _label(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _prose(document: Path) -> Iterator[tuple[int, str]]:
    """The lines of a document outside of blocks of code, with their numbers."""
    inside = False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def _quoted(document: Path) -> Iterator[str]:
    """What stands in backquotes, also over the end of a line."""
    text = "\n".join(line for _, line in _prose(document))
    yield from re.findall(r"(?<!`)`([^`]+)`(?!`)", text)


def _found(name: str, document: Path) -> list[Path]:
    """The files and folders that a name in a document means."""
    bases = [ROOT, document.parent, *ROOT.glob("packages/*/src"), CORE]
    bases += ROOT.glob("packages/*/src/dovetail")
    return list(chain.from_iterable(base.glob(name.rstrip("/")) for base in bases))


def _is_path(name: str) -> bool:
    looks = re.fullmatch(r"[\w.*/-]+", name) and not name.startswith(("/", *MADE))
    return bool(looks) and ("/" in name or bool(re.search(r"\w\.(py|pyi|md|txt|toml|json)$", name)))


def _defined(path: Path) -> set[str]:
    """The names that a module defines, those of methods with their classes, those of primitives."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{n.name}" for n in node.body if isinstance(n, ast.FunctionDef)}
            names |= set(re.findall(r"^name = '(\w+)'$", ast.unparse(node.body), re.MULTILINE))
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("document", MAPS, ids=_label)
def test_files_and_folders_exist(document: Path) -> None:
    names = [name for name in _quoted(document) if _is_path(name)]
    assert [name for name in names if not _found(name, document)] == []


@pytest.mark.parametrize("document", MAPS, ids=_label)
def test_modules_exist(document: Path) -> None:
    for quoted in _quoted(document):
        name = quoted.partition("(")[0]
        if not re.fullmatch(r"dovetail(_cpu|_cuda|_onnx|_tpu)?(\.\w+)*", name) or name in GROUPS:
            continue
        if name == "dovetail.as_jax":  # importing it changes the process
            assert importlib.util.find_spec(name) is not None
            continue
        parts = name.split(".")
        value = importlib.import_module(parts[0])
        for end, part in enumerate(parts[1:], 2):
            if not hasattr(value, part):
                importlib.import_module(".".join(parts[:end]))
            value = getattr(value, part)


@pytest.mark.parametrize("document", MAPS, ids=_label)
def test_functions_stand_in_the_files_that_are_named_with_them(document: Path) -> None:
    text = "\n".join(line for _, line in _prose(document))
    named = re.findall(r"`([A-Za-z_][\w.]*)`(?:\s+\(|\s+in\s+)`([^`]+\.py)`", text)
    missing = [
        (name, file)
        for name, file in named
        if name not in set().union(*map(_defined, _found(file, document)))
    ]
    assert missing == []


def test_the_walks_name_functions() -> None:
    """So that the test above has something to find."""
    text = DESIGN.read_text(encoding="utf-8")
    walks = text.partition("## 5. Four walks")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\*\*", walks, re.MULTILINE)) == 4
    assert len(re.findall(r"` \(`[^`]+\.py`\)|`\s+\(`", walks)) >= 20


def _anchors(document: Path) -> set[str]:
    """What links may name of a document: its headings, as they are shown on the web."""
    headings = (line.lstrip("# ") for _, line in _prose(document) if line.startswith("#"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", _documents(), ids=_label)
def test_links_lead_somewhere(document: Path) -> None:
    for _, line in _prose(document):
        for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", line):
            if re.match(r"https?:", link):
                continue
            target = document.parent / link if link else document
            assert target.exists(), link
            assert not anchor or anchor in _anchors(target), f"{link}#{anchor}"


@pytest.mark.parametrize(
    "document",
    # What benchmarks write is one line for each finding.
    [path for path in _documents() if path.parent.name != "benchmarks" or path.name == "README.md"],
    ids=_label,
)
def test_lines_wrap(document: Path) -> None:
    """At 120; tables and single long words, such as links, cannot."""
    long = [
        number
        for number, line in _prose(document)
        if len(line) > 120 and not line.startswith("|") and " " in line.strip()
    ]
    assert long == []


def test_the_map_is_short() -> None:
    assert len(DESIGN.read_text(encoding="utf-8").splitlines()) <= 250


def test_the_glossary_is_short() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    section = text.partition("## 4. Glossary")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert 30 <= len(rows) <= 40
    assert all(line.count("|") == 4 for line in rows)


def test_every_decision_has_a_reason_or_says_what_it_is() -> None:
    """A decision is followed by its reason, or by a paragraph that tells more."""
    for document in ROOT.glob("docs/design/*.md"):
        text = document.read_text(encoding="utf-8")
        assert text.count("**Decision.**") >= 1, document
        assert _label(document) in DESIGN.read_text(encoding="utf-8"), document
