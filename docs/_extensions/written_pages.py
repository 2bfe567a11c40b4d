"""Pages that are written while the site is built, into folders that git ignores."""

from __future__ import annotations

from pathlib import Path


def write_pages(folder: Path, pages: dict[str, str]) -> None:
    """Make a folder hold these pages and no others; those that are as they should be stay.

    Args:
        folder: the folder.
        pages: the texts by names of files.
    """
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
