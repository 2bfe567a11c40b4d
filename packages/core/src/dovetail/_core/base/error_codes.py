"""Codes of errors, and the page that explains each.

The pages are Markdown files in the folder `error_pages`, named by their codes. A page says by a
regular expression which messages it is about, why such an error is raised, and shows a program that
fails, and the same program mended; tests run both.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from types import FrameType
from typing import Final

from dovetail._core.base.records import record

__all__ = ["ErrorPage", "add_code", "error_pages"]

_FOLDER: Final = os.path.join(os.path.dirname(__file__), "error_pages")
_HEAD: Final = r"(?s)<!-- message: (?P<message>.+?) -->\n\n# (?P<title>.+?)\n"
_PROGRAM: Final = r"(?ms)^```python\n(.*?)^```$"


@record
class ErrorPage:
    """The page of one code.

    Attributes:
        code: such as ``DT0101``.
        title: what went wrong, in a few words.
        message: matches the messages that the page is about.
        text: the page, as Markdown.
    """

    code: str
    title: str
    message: re.Pattern[str]
    text: str

    @property
    def failing(self) -> str:
        """The program that raises the error."""
        return self._programs()[0]

    @property
    def mended(self) -> str:
        """The program as it should be."""
        return self._programs()[1]

    def _programs(self) -> list[str]:
        return [found[1] for found in re.finditer(_PROGRAM, self.text)]


@functools.cache
def error_pages() -> dict[str, ErrorPage]:
    """All pages by their codes, in order."""
    found = {}
    for name in sorted(os.listdir(_FOLDER)):
        code, extension = os.path.splitext(name)
        if extension != ".md":
            continue
        with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
            text = file.read()
        head = re.match(_HEAD, text)
        if head is None:
            raise ValueError(f"{name}: its first lines are to be a message and a title")
        message = head["message"].replace("\n", "")  # it is wrapped between alternatives
        body = f"# {code}: {head['title']}\n{text[head.end() :]}"
        found[code] = ErrorPage(code, head["title"], re.compile(message), body)
    return found


def add_code(error: BaseException) -> None:
    """Add the code of an error to what is printed of it, as the last line, if it has one."""
    notes = getattr(error, "__notes__", [])
    for note in notes:
        if note.startswith("DT"):
            notes.append(notes.pop(notes.index(note)))  # others may have come since
            return
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith("<doctest "):
            return  # what is printed is compared, and the text is what its author knows
        frame = frame.f_back
    text = str(error)
    for page in error_pages().values():
        if page.message.search(text):
            error.add_note(f"{page.code} (python -m dovetail explain {page.code})")
            return
