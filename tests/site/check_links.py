"""Looks for links of the documentation site that lead nowhere.

python tests/site/check_links.py dist/docs

A link inside of the site leads to a file of it, and to an anchor there if it names one. Links to
other places are not followed.
"""

from __future__ import annotations

import posixpath
import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors and the links of one page.

    Attributes:
        anchors: what links may name after a `#`.
        links: what the page links to, and what it loads.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what an element tells."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.add(value)


def broken_links(site: Path) -> dict[str, list[str]]:
    """The links that lead nowhere, and the pages that hold them.

    Args:
        site: the folder of the site.
    """
    pages = {
        path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }
    broken: dict[str, list[str]] = defaultdict(list)
    for name, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = unquote(parts.path)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            target = target if path else name
            anchor = unquote(parts.fragment)
            if target not in pages:
                found = not target.startswith("..") and (site / target).is_file()
            else:
                found = anchor in pages[target].anchors
            if not found:
                broken[link].append(name)
    return dict(broken)


def main() -> int:
    """Print the links that lead nowhere; the exit code is 0 if there are none."""
    site = Path(sys.argv[1])
    broken = broken_links(site)
    for link, names in broken.items():
        print(f"{link} leads nowhere, on {', '.join(names[:5])}")
    count = len(list(site.rglob("*.html")))
    print(f"links of {count} pages: {len(broken)} lead nowhere")
    return 1 if broken or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
