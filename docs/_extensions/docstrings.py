"""Docstrings as reStructuredText.

Docstrings are text in sections (`Args:`, `Returns:`, `Raises:`, `Differs:`, `Example:` and others),
with paragraphs, lists, doctests, and names in backquotes. Nothing else in them is markup, so
that everything else is escaped.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

TITLES = {
    "Args": "Arguments",
    "Attributes": "Attributes",
    "Returns": "Returns",
    "Yields": "Yields",
    "Raises": "Raises",
    "Source": "Source",
    "Method": "Method",
    "References": "References",
}
HEADING = re.compile(r"(Args|Attributes|Returns|Yields|Raises|Source|Method|References):\s*$")
BOX = re.compile(r"(Differs|Examples?):\s*$")
CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
ITEM = re.compile(r"(\*{0,2}[A-Za-z_][\w.]*(?:, \*{0,2}[A-Za-z_][\w.]*)*|\.\.\.):(?:\s+(.*))?$")
BULLET = re.compile(r"(-|\*|\d+\.)\s+")


def as_rst(docstring: str) -> list[str]:
    """The lines of a docstring as reStructuredText."""
    lines: list[str] = []
    for title, body in sections(inspect.cleandoc(docstring)):
        if not body:
            continue
        if title is None:
            lines += blocks(body)
        elif title == "Differs":
            lines += [".. admonition:: Differs from JAX", "   :class: differs", ""]
            lines += indented(blocks(body))
        elif title.startswith("Example"):
            lines += [".. rubric:: Example", "   :class: example", "", *blocks(body)]
        else:
            lines += [f":{TITLES[title]}:", *indented(fields(body)), ""]
    return lines


def summary(docstring: str) -> str:
    """The first sentence of a docstring, as reStructuredText."""
    paragraph = " ".join(inspect.cleandoc(docstring).partition("\n\n")[0].split())
    found = re.match(r"(.+?(?<!e\.g)(?<!i\.e)\.)(\s|$)", paragraph)
    return prose(found[1] if found else paragraph)


def sections(docstring: str) -> Iterator[tuple[str | None, list[str]]]:
    """The sections of a docstring: their headings, None for what has none, and their lines."""
    title: str | None = None
    body: list[str] = []
    for line in docstring.splitlines():
        found = HEADING.match(line) or BOX.match(line)
        ends = title is not None and line and not line.startswith(" ")
        if found or ends:
            yield title, textwrap.dedent("\n".join(body)).strip("\n").splitlines()
            title, body = (found[1], []) if found else (None, [line])
        else:
            body.append(line)
    yield title, textwrap.dedent("\n".join(body)).strip("\n").splitlines()


def fields(body: list[str]) -> list[str]:
    """A section of names with descriptions as a list, and of others as paragraphs."""
    if not ITEM.match(body[0]):
        return blocks(body)
    lines: list[str] = []
    for name, description in items(body):
        bold = ", ".join(f"**{escaped(word)}**" for word in name.split(", "))
        first, *rest = blocks(description) or [""]
        lines += [f"- {bold}: {first}", *indented(rest, 2)]
    return [*lines, ""]


def items(body: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The names of a section, each with the lines that describe it."""
    name = ""
    description: list[str] = []
    for line in body:
        found = ITEM.match(line)
        if found:
            if name:
                yield name, joined(description)
            name, description = found[1], [found[2] or ""]
        else:
            description.append(line)
    yield name, joined(description)


def joined(description: list[str]) -> list[str]:
    """The lines behind a name, of which all but the first are indented."""
    first, *rest = description
    lines = [first, *textwrap.dedent("\n".join(rest)).splitlines()]
    return "\n".join(lines).strip("\n").splitlines()


def blocks(body: list[str]) -> list[str]:
    """Paragraphs, lists, doctests and indented lines."""
    lines: list[str] = []
    for block in re.split(r"\n[ \t]*\n", "\n".join(body).strip("\n")):
        rows = block.splitlines()
        if not rows:
            continue
        if rows[0].lstrip().startswith(">>>"):
            if lines[-2:] and lines[-1] == "" and lines[-2].startswith("   "):
                lines += indented(textwrap.dedent(block).splitlines())  # the example goes on
            else:
                lines += [".. code-block:: pycon", ""]
                lines += indented(textwrap.dedent(block).splitlines())
        elif all(row.startswith(" ") for row in rows):
            lines += [".. code-block:: text", "", *indented(textwrap.dedent(block).splitlines())]
        elif BULLET.match(rows[0]):
            lines += bullets(rows)
        else:
            lines += paragraph(rows)
        lines.append("")
    return lines


def paragraph(rows: list[str]) -> list[str]:
    """A paragraph, and the list or the indented lines that follow it without an empty line."""
    for number, row in enumerate(rows[1:], 1):
        if BULLET.match(row):
            return [prose(" ".join(rows[:number])), "", *bullets(rows[number:])]
        if row.startswith("    ") and rows[number - 1].rstrip().endswith(":"):
            body = textwrap.dedent("\n".join(rows[number:])).splitlines()
            return [prose(" ".join(rows[:number])), "", ".. code-block:: text", "", *indented(body)]
    return [re.sub("::$", ":", prose(" ".join(rows)))]


def bullets(rows: list[str]) -> list[str]:
    """A list, its items on one line each."""
    texts: list[str] = []
    for row in rows:
        if BULLET.match(row):
            texts.append(row)
        else:
            texts[-1] += " " + row.strip()
    lines = []
    for text in texts:
        mark = BULLET.match(text)
        assert mark is not None
        lines.append(mark[0].strip() + " " + re.sub("::$", ":", prose(text[mark.end() :])))
    return lines


def prose(text: str) -> str:
    """Text in which names in backquotes are code, on one line."""
    parts = []
    for number, part in enumerate(CODE.split(" ".join(text.split()))):
        if number % 2 == 0:
            parts.append(escaped(part))
            continue
        code = part.strip("`").strip()
        before = "\\ " if parts and parts[-1][-1:].strip() else ""
        parts.append(f"{before}``{code}``\\ ")
    return re.sub(r"\\ (?=\s|$)", "", "".join(parts))


def escaped(text: str) -> str:
    """Text without markup."""
    text = re.sub(r"([\\*|`])", r"\\\1", text)
    return re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)


def indented(lines: list[str], width: int = 3) -> list[str]:
    """The lines, further to the right."""
    return [" " * width + line if line else "" for line in lines]
