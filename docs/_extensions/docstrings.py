"""Sphinx extension: docstrings as pages show them.

Docstrings are text in sections (`Args:`, `Returns:`, `Raises:`, `Differs:`, `Example:` and others),
with paragraphs, lists, doctests, and names in backquotes. Nothing else in them is markup. The
directive `docstring` makes nodes of one, which takes a fraction of the time of reStructuredText;
`names` makes a table of names with their first sentences.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util.docutils import SphinxDirective

TITLES = {"Args": "Arguments", "Differs": "Differs from JAX", "Examples": "Example"}
HEADING = re.compile(
    r"(Args|Attributes|Returns|Yields|Raises|Source|Method|References|Differs|Examples?):\s*$"
)
CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
ITEM = re.compile(r"(\*{0,2}[A-Za-z_][\w.]*(?:, \*{0,2}[A-Za-z_][\w.]*)*|\.\.\.):(?:\s+(.*))?$")
RULE = re.compile(r"=+( +=+)+$")
BULLET = re.compile(r"(-|\*|\d+\.)\s+")


class Docstring(SphinxDirective):
    """Its content is a docstring."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The nodes of the docstring."""
        return as_nodes(list(self.content))


class Names(SphinxDirective):
    """A table; each line holds a full name, the name to show, and a sentence, parted by |."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The table."""
        body = nodes.tbody()
        for line in self.content:
            full, shown, sentence = line.split("|", 2)
            link = pending_xref(
                "",
                nodes.literal(shown, shown),
                refdomain="py",
                reftype="obj",
                reftarget=full,
                refexplicit=True,
                refwarn=True,
                refdoc=self.env.docname,
            )
            cells = (nodes.paragraph("", "", link), nodes.paragraph("", "", *prose(sentence)))
            body += nodes.row("", *(nodes.entry("", cell) for cell in cells))
        widths = [nodes.colspec(colwidth=30), nodes.colspec(colwidth=70)]
        group = nodes.tgroup("", *widths, body, cols=2)
        return [nodes.table("", group, classes=["names"])]


def as_nodes(lines: list[str]) -> list[nodes.Node]:
    """The nodes of a docstring, of which these are the lines."""
    found: list[nodes.Node] = []
    fields = nodes.field_list()
    for heading, body in sections(lines):
        if not body:
            continue
        title = TITLES.get(heading, heading)
        if heading == "Differs":
            content = (nodes.title(title, title), *blocks(body))
            found.append(nodes.admonition("", *content, classes=["differs"]))
        elif not heading or title == "Example":
            found += blocks(body)
        else:
            if fields not in found:
                found.append(fields)
            content = nodes.field_body("", *described(body))
            fields += nodes.field("", nodes.field_name(title, title), content)
    return found


def sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The sections of a docstring: their headings, empty for what has none, and their lines."""
    heading = ""
    body: list[str] = []
    for line in lines:
        found = HEADING.match(line)
        ends = heading and line and not line.startswith(" ")
        if found or ends:
            yield heading, dedented(body)
            heading, body = (found[1], []) if found else ("", [line])
        else:
            body.append(line)
    yield heading, dedented(body)


def described(body: list[str]) -> list[nodes.Node]:
    """A section of names with descriptions as a list, and of others as blocks."""
    if not ITEM.match(body[0]):
        return blocks(body)
    listing = nodes.bullet_list(classes=["described"])
    for name, description in items(body):
        content = blocks(description)
        words = nodes.strong(name, name, classes=["name"])
        if content and isinstance(content[0], nodes.paragraph):
            content[0].insert(0, [words, nodes.Text(": ")])
        else:
            content.insert(0, nodes.paragraph("", "", words))
        listing += nodes.list_item("", *content)
    return [listing]


def items(body: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The names of a section, each with the lines that describe it."""
    name = ""
    description: list[str] = []
    for line in body:
        found = ITEM.match(line)
        if found:
            if name:
                yield name, [*description[:1], *dedented(description[1:])]
            name, description = found[1], [found[2] or ""]
        else:
            description.append(line)
    yield name, [*description[:1], *dedented(description[1:])]


def blocks(body: list[str]) -> list[nodes.Node]:
    """Paragraphs, lists, doctests and indented lines."""
    found: list[nodes.Node] = []
    text = "\n".join(body).strip("\n")
    after_example = False
    for block in re.split(r"\n[ \t]*\n", text):
        rows = block.splitlines()
        if not rows:
            continue
        is_example = rows[0].lstrip().startswith(">>>")
        if is_example and after_example:
            earlier = found.pop().astext()
            found.append(code(f"{earlier}\n\n{textwrap.dedent(block)}", "pycon"))
        elif is_example:
            found.append(code(textwrap.dedent(block), "pycon"))
        elif all(row.startswith(" ") for row in rows):
            found.append(code(textwrap.dedent(block), "text"))
        elif RULE.match(rows[0]):
            found.append(table(rows))
        elif BULLET.match(rows[0]):
            found.append(bullets(rows))
        else:
            found += paragraph(rows)
        after_example = is_example
    return found


def paragraph(rows: list[str]) -> list[nodes.Node]:
    """A paragraph, and the list or the indented lines that follow it without an empty line."""
    for number, row in enumerate(rows[1:], 1):
        before = nodes.paragraph("", "", *prose(" ".join(rows[:number])))
        if BULLET.match(row):
            return [before, bullets(rows[number:])]
        if row.startswith("    ") and rows[number - 1].rstrip().endswith(":"):
            return [before, code(textwrap.dedent("\n".join(rows[number:])), "text")]
    return [nodes.paragraph("", "", *prose(" ".join(rows)))]


def bullets(rows: list[str]) -> nodes.Node:
    """A list."""
    texts: list[str] = []
    for row in rows:
        if BULLET.match(row):
            texts.append(BULLET.sub("", row, count=1))
        else:
            texts[-1] += " " + row.strip()
    numbered = rows[0][0].isdigit()
    listing = nodes.enumerated_list() if numbered else nodes.bullet_list()
    for text in texts:
        listing += nodes.list_item("", nodes.paragraph("", "", *prose(text)))
    return listing


def table(rows: list[str]) -> nodes.Node:
    """A table whose columns stand below rules of equal signs, as its heading does."""
    columns = [slice(*found.span()) for found in re.finditer("=+", rows[0])]
    columns[-1] = slice(columns[-1].start, None)
    parts: list[list[nodes.Node]] = [[]]
    for row in rows[1:]:
        if RULE.match(row):
            parts.append([])
            continue
        cells = (nodes.paragraph("", "", *prose(row[column])) for column in columns)
        parts[-1].append(nodes.row("", *(nodes.entry("", cell) for cell in cells)))
    head, body = (parts[0], parts[1]) if parts[1] else ([], parts[0])
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in columns), cols=len(columns))
    group += [nodes.thead("", *head)] if head else []
    group += nodes.tbody("", *body)
    return nodes.table("", group)


def prose(text: str) -> list[nodes.Node]:
    """Text in which names in backquotes are code."""
    found: list[nodes.Node] = []
    for number, part in enumerate(CODE.split(re.sub("::$", ":", " ".join(text.split())))):
        if number % 2:
            word = part.strip("`").strip()
            found.append(nodes.literal(word, word))
        elif part:
            found.append(nodes.Text(part))
    return found


def code(text: str, language: str) -> nodes.literal_block:
    """A block of code."""
    return nodes.literal_block(text, text, language=language)


def dedented(lines: list[str]) -> list[str]:
    """The lines without the space that all have on their left, and without empty ones around."""
    return textwrap.dedent("\n".join(lines)).strip("\n").splitlines()


def setup(app: Any) -> dict[str, Any]:
    """Define the directives."""
    app.add_directive("docstring", Docstring)
    app.add_directive("names", Names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
