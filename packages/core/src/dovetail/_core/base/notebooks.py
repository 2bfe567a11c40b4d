"""What notebooks show: HTML that is readable on light and dark pages."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

__all__ = ["boxed", "colored", "notebook", "table"]

#: Colours of the terminal's codes, in the middle between light and dark.
_COLORS: Final = {
    "31": "#c0392b",
    "32": "#2e8b57",
    "33": "#b8860b",
    "34": "#3b78c4",
    "35": "#a052a0",
    "36": "#2a9d9d",
}
_CODE: Final = r"\x1b\[([\d;]*)m"


def notebook() -> Callable[[dict[str, str]], object] | None:
    """What shows data in the notebook that this process runs; None if it runs none."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):  # nor has IPython in a terminal
        return None
    publish: Callable[[dict[str, str]], object] = shell.display_pub.publish
    return publish


def _escaped(text: str) -> str:
    from html import escape  # deferred: few processes are notebooks

    return escape(text)


def boxed(title: str, body: str) -> str:
    """A title above text, in which spaces and lines are kept."""
    return f"<div><b>{_escaped(title)}</b><pre>{_escaped(body)}</pre></div>"


def colored(text: str) -> str:
    """Text with the terminal's codes for colours, as HTML."""
    parts = re.split(_CODE, text)
    pieces = [_escaped(parts[0])]
    for codes, piece in zip(parts[1::2], parts[2::2], strict=True):
        styles = [f"color:{_COLORS[code]}" for code in codes.split(";") if code in _COLORS]
        styles += ["font-weight:bold"] * ("1" in codes.split(";"))
        shown = _escaped(piece)
        pieces.append(f'<span style="{";".join(styles)}">{shown}</span>' if styles else shown)
    return f"<pre>{''.join(pieces)}</pre>"


def table(rows: Sequence[Sequence[str]], sides: Sequence[str], below: str = "") -> str:
    """A table whose first row is its head.

    Args:
        rows: the texts of the cells.
        sides: for each column ``"left"`` or ``"right"``.
        below: a line below it.
    """

    def line(row: Sequence[str], kind: str) -> str:
        cells = [
            f'<{kind} style="text-align:{side}">{_escaped(cell)}</{kind}>'
            for cell, side in zip(row, sides, strict=True)
        ]
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(line(row, "td") for row in rows[1:])
    end = f"<p>{_escaped(below)}</p>" if below else ""
    return f"<table><thead>{line(rows[0], 'th')}</thead><tbody>{body}</tbody></table>{end}"
