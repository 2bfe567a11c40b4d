"""Layout of text that breaks into lines only where it does not fit.

A document is a string, a list of documents, or one of the nodes below. A `Group` is written on one
line if it fits there; otherwise its own breaks, not those of groups inside it, become new lines.
"""

from __future__ import annotations

from typing import Any, Final

from dovetail._core.base.records import record

__all__ = ["KEYWORD", "TYPE", "Break", "Colored", "Comment", "Document", "Group", "Nest", "render"]

Document = Any


@record
class Break:
    """A new line if the group around it is broken, else `text`."""

    text: str = " "


@record
class Group:
    """A document written on one line if it fits."""

    content: Document


@record
class Nest:
    """A document indented further where it breaks into lines."""

    indent: int
    content: Document


@record
class Color:
    """Terminal codes that start a colour and end it."""

    start: str
    end: str


KEYWORD: Final = Color("\x1b[34;1m", "\x1b[39;22m")
TYPE: Final = Color("\x1b[35m", "\x1b[39m")


@record
class Colored:
    """Text in a colour, where colours are used."""

    text: str
    color: Color


@record
class Comment:
    """A remark to the right of the line that it belongs to."""

    text: str


def _fits(document: Document, room: int) -> bool:
    """Whether a document on one line fits into `room` columns."""
    todo = [document]
    while todo:
        if room < 0:
            return False
        node = todo.pop()
        kind = type(node)
        if kind is str:
            if "\n" in node:
                return False
            room -= len(node)
        elif kind is list:
            # More parts than columns cannot fit, whatever they are.
            if len(node) > 4 * room + 64:
                return False
            todo.extend(reversed(node))
        elif kind is Break or kind is Colored:
            room -= len(node.text)
        elif kind is Group or kind is Nest:
            todo.append(node.content)
    return room >= 0


class _Writer:
    """Collects lines, colours and comments."""

    __slots__ = ("color", "colors", "column", "comments", "lines", "pieces")

    def __init__(self, colors: bool) -> None:
        self.colors = colors
        self.color: Color | None = None
        self.column = 0
        self.pieces: list[str] = []
        self.lines: list[tuple[str, int, list[str]]] = []
        self.comments: list[str] = []

    def write(self, text: str, color: Color | None = None) -> None:
        if not text:
            return
        if self.colors and color is not self.color:
            if self.color is not None:
                self.pieces.append(self.color.end)
            if color is not None:
                self.pieces.append(color.start)
            self.color = color
        self.pieces.append(text)
        self.column += len(text)

    def new_line(self, indent: int) -> None:
        self.end_line()
        self.pieces.append(" " * indent)
        self.column = indent

    def end_line(self) -> None:
        self.lines.append(("".join(self.pieces), self.column, self.comments))
        self.pieces, self.comments = [], []

    def finish(self) -> str:
        if self.color is not None:
            self.pieces.append(self.color.end)
        self.end_line()
        edge = max(width for _, width, _ in self.lines)
        written = []
        for line, width, comments in self.lines:
            if not comments:
                written.append(line)
                continue
            written.append(f"{line}{' ' * (edge - width)} # {comments[0]}")
            written.extend(f"{' ' * edge} # {comment}" for comment in comments[1:])
        return "\n".join(written)


def render(document: Document, *, width: int = 80, use_color: bool = False) -> str:
    """Write a document.

    Args:
        document: the document.
        width: how many columns a line should not exceed.
        use_color: whether to write terminal codes for colours.
    """
    writer = _Writer(use_color)
    todo: list[tuple[int, bool, Document]] = [(0, True, document)]
    while todo:
        indent, broken, node = todo.pop()
        kind = type(node)
        if kind is str:
            writer.write(node)
        elif kind is list:
            todo.extend([(indent, broken, part) for part in reversed(node)])
        elif kind is Break:
            if broken:
                writer.new_line(indent)
            else:
                writer.write(node.text)
        elif kind is Colored:
            writer.write(node.text, node.color)
        elif kind is Group:
            breaks = broken and not _fits(node.content, width - writer.column)
            todo.append((indent, breaks, node.content))
        elif kind is Nest:
            todo.append((indent + node.indent, broken, node.content))
        else:
            writer.comments.append(node.text)
    return writer.finish()
