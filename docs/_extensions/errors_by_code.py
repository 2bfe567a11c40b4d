"""Sphinx extension that writes docs/errors: the pages of errors, by their codes.

The pages are those that `python -m dovetail explain` prints. Codes with the same first two digits
are about one thing and stand on one page.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from written_pages import write_pages

from dovetail._core.base.error_codes import ErrorPage, error_pages

TOPICS = {
    "DT01": "Shapes and dtypes",
    "DT02": "Indices and updates",
    "DT03": "Values that are traced",
    "DT04": "Functions under jit",
    "DT05": "Derivatives",
    "DT06": "Mapped functions",
    "DT07": "Loops and branches",
    "DT08": "Random numbers",
    "DT09": "Trees",
    "DT10": "Custom derivatives",
    "DT11": "Callbacks and references",
    "DT12": "Devices and meshes",
    "DT13": "Linear algebra",
}

PROGRAM = re.compile(r"^```python\n.*?^```$", re.MULTILINE | re.DOTALL)

HEAD = """# Errors by code

The last line of a message may hold a code, such as `DT0101 (python -m dovetail explain DT0101)`.
The command prints the page of that code, which stands here, too: why there is such an error, a
program that raises it, and the same program mended. Both are run by tests.
"""


def text_of(title: str, pages: list[ErrorPage]) -> str:
    """The page of the site that holds these pages."""
    parts = [f"# {title}\n"]
    for page in pages:
        heading, _, body = page.text.partition("\n")
        parts.append(f"({page.code})=\n#{heading}\n{with_marks(body)}")
    return "\n".join(parts)


def with_marks(body: str) -> str:
    """The text of a page whose first program is marked as failing, and the second as mended."""
    programs = iter(("failing", "mended"))
    return PROGRAM.sub(lambda found: f":::{{div}} {next(programs)}\n{found[0]}\n:::", body)


def written() -> dict[str, str]:
    """The pages of the site, by the names of their files."""
    by_topic: defaultdict[str, list[ErrorPage]] = defaultdict(list)
    for code, page in error_pages().items():
        by_topic[code[:4]].append(page)
    texts = {}
    rows = []
    for prefix, pages in by_topic.items():
        topic = TOPICS.get(prefix, f"{prefix}xx")
        name = topic.lower().replace(" ", "-")
        texts[f"{name}.md"] = text_of(topic, pages)
        rows.append(f"\n## [{topic}]({name}.md)\n\n| code | what is wrong |\n|---|---|\n")
        rows += [f"| [{page.code}](#{page.code}) | {page.title} |\n" for page in pages]
    names = "\n".join(name.removesuffix(".md") for name in texts)
    contents = f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"
    return {"index.md": HEAD + "".join(rows) + contents, **texts}


def setup(app: Any) -> dict[str, Any]:
    """Write the pages before Sphinx looks for them."""
    write_pages(Path(app.srcdir) / "errors", written())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
