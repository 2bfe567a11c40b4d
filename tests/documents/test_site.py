"""What the documentation site is made of; `nox -s docs` builds it and looks at it."""

from __future__ import annotations

import importlib
import re
import runpy
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import dovetail.numpy as jnp
from dovetail._core.base.error_codes import error_pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """The extension that writes the reference."""
    return _extension("reference")


@pytest.fixture(scope="module")
def pages(reference: ModuleType) -> dict[str, str]:
    """The pages of the reference."""
    found: dict[str, str] = reference.written()
    return found


def _extension(name: str) -> ModuleType:
    sys.path.insert(0, str(DOCS / "_extensions"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def test_every_public_name_has_one_place(reference: ModuleType) -> None:
    """If a name is on the last page, a part of another in `reference_groups` is to take it."""
    placed = Counter(
        f"{part.module}.{name}"
        for page, parts in reference.placed()
        for part, names in parts
        for name in names
        if page is not reference.LAST
    )
    public = {
        f"{module}.{name}"
        for module in reference.public_modules()
        for name in reference.public_names(module)
    }
    assert len(public) > 2000
    assert set(placed) == public
    assert max(placed.values()) == 1


def test_every_name_has_an_entry(reference: ModuleType, pages: dict[str, str]) -> None:
    for page, parts in reference.placed():
        entries = Counter(re.findall(r"^\.\. py:\w+:: (\w+)", pages[f"{page.name}.rst"], re.M))
        expected = Counter(name for _, names in parts for name in names)
        assert {name: entries[name] for name in expected} == dict(expected), page.name


def test_every_part_takes_a_name(reference: ModuleType) -> None:
    """Else it is about something that is there no more."""
    taken = {id(part) for _, parts in reference.placed() for part, _ in parts}
    containers = [
        part.title
        for pages in reference.GROUPS.values()
        for page in pages
        for part in page.parts
        if id(part) not in taken and part.title != "More"
    ]
    assert containers == []


@pytest.mark.parametrize(
    ("page", "entry"),
    [
        (
            "control-flow",
            ".. py:function:: while_loop(cond_fun: Callable[[Any], ArrayLike], "
            "body_fun: Callable[[Any], Any], init_val: PyTree",
        ),
        ("numpy-math", ".. py:function:: sin(x: ArrayLike, /) -> Array"),
        ("errors", ".. py:exception:: ConcretizationTypeError"),
    ],
)
def test_entries(pages: dict[str, str], page: str, entry: str) -> None:
    (line,) = re.findall(rf"^{re.escape(entry.partition('(')[0])}\b.*$", pages[f"{page}.rst"], re.M)
    assert line.startswith(entry)


def test_a_second_name_refers_to_the_first(pages: dict[str, str]) -> None:
    assert jnp.absolute is jnp.abs
    after = pages["numpy-math.rst"].partition(".. py:function:: absolute(")[2]
    assert "The same as `dovetail.numpy.abs`." in after.partition(".. py:")[0]


def test_every_code_of_errors_is_explained_once() -> None:
    texts = _extension("errors_by_code").written()
    headings = re.findall(r"^## (DT\d{4}): ", "\n".join(texts.values()), re.MULTILINE)
    assert sorted(headings) == sorted(error_pages())
    for name, text in texts.items():
        assert name == "index.md" or text.count("} failing") == text.count("} mended")
        assert "xx" not in name, "a topic in `TOPICS`"


def test_every_page_is_in_the_contents() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    contents = re.findall(r"```\{toctree\}\n(?::.*\n)*\n([^`]*)```", text)
    listed = {line for block in contents for line in block.split()}
    written = {
        path.relative_to(DOCS).with_suffix("").as_posix()
        for path in DOCS.rglob("*.md")
        if path.relative_to(DOCS).parts[0] not in ("errors", "reference", "gallery")
    }
    assert written - listed == {"index"}


@pytest.mark.parametrize(
    ("link", "is_broken"),
    [
        ("other.html", False),
        ("other.html#there", False),
        ("#here", False),
        ("", False),
        ("https://nowhere.invalid/page", False),
        ("picture.svg", False),
        ("absent.html", True),
        ("other.html#absent", True),
        ("#absent", True),
        ("../outside.html", True),
    ],
)
def test_links_are_checked(tmp_path: Path, link: str, is_broken: bool) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "outside.html").write_text("")
    (site / "picture.svg").write_text("")
    (site / "other.html").write_text('<p id="there">')
    (site / "index.html").write_text(f'<p id="here"><a href="{link}">text</a>')
    script = runpy.run_path(str(ROOT / "tests" / "site" / "check_links.py"))
    assert script["broken_links"](site) == ({link: ["index.html"]} if is_broken else {})
