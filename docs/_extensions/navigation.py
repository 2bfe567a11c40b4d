"""Sphinx extension that makes the list of pages beside the text, and the list of names.

Sphinx makes the first anew for each page, of all headings of all pages, which takes most of the
time of a build. Here it is made of the titles alone. In the reference the second holds the names of
a page below its headings.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from sphinx.addnodes import toctree


def entries(env: Any, docname: str, seen: frozenset[str] = frozenset()) -> Iterator[Any]:
    """What the contents of a page list: captions, then triples of title, page and its entries."""
    for contents in contents_of(env).get(docname, ()):
        pages = [name for name in contents["pages"] if name in env.titles and name not in seen]
        if pages:
            yield contents["caption"]
        for name in pages:
            inner = list(entries(env, name, seen | {name}))
            yield env.titles[name].astext(), name, inner


def keep_contents(app: Any, doctree: Any) -> None:
    """Remember what the contents of a page list."""
    contents_of(app.env)[app.env.docname] = [
        {"caption": node.get("caption"), "pages": list(node["includefiles"])}
        for node in doctree.findall(toctree)
    ]


def contents_of(env: Any) -> dict[str, list[dict[str, Any]]]:
    """What the contents of each page list."""
    if not hasattr(env, "tocs_of_pages"):
        env.tocs_of_pages = {}
    found: dict[str, list[dict[str, Any]]] = env.tocs_of_pages
    return found


def merge(app: Any, env: Any, docnames: list[str], other: Any) -> None:
    """Take the contents of pages that another process has read."""
    for name in docnames:
        contents_of(env)[name] = contents_of(other).get(name, [])


def tree(app: Any, page: str, found: list[Any], level: int = 1) -> str:
    """The list of pages as HTML; the page that is shown, and those above it, are marked."""
    parts = []
    is_open = False
    for entry in found:
        if entry is None or isinstance(entry, str):
            parts.append("</ul>" * is_open)
            is_open = False
            if entry:
                caption = html.escape(entry)
                parts.append(f'<p class="caption"><span class="caption-text">{caption}</span></p>')
            continue
        title, name, inner = entry
        if not is_open:
            parts.append("<ul>")
            is_open = True
        is_current = " current" if holds(entry, page) else ""
        link = "#" if name == page else app.builder.get_relative_uri(page, name)
        below = tree(app, page, inner, level + 1) if inner else ""
        words = "current reference internal" if name == page else "reference internal"
        parts.append(
            f'<li class="toctree-l{level}{is_current}"><a class="{words}" href="{link}">'
            f"{html.escape(title)}</a>{below}</li>"
        )
    return "".join(parts) + "</ul>" * is_open


def holds(entry: Any, page: str) -> bool:
    """Whether an entry is a page or one above it."""
    _, name, inner = entry
    return name == page or any(holds(e, page) for e in inner if isinstance(e, tuple))


def names_by_page(env: Any) -> dict[str, list[tuple[str, str]]]:
    """The public names that each page documents, with their anchors; without members."""
    if not hasattr(env, "names_by_page"):
        found = defaultdict(list)
        for name, entry in env.domains.python_domain.objects.items():
            parts = name.rpartition(".")
            if entry.objtype not in ("module", "method", "property", "attribute"):
                found[entry.docname].append((parts[2], entry.node_id))
        env.names_by_page = dict(found)
    by_page: dict[str, list[tuple[str, str]]] = env.names_by_page
    return by_page


def change(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the theme the lists."""
    found = list(entries(app.env, app.config.root_doc))
    context["toctree"] = lambda **options: tree(app, page, found)
    names = names_by_page(app.env).get(page, ())
    if page.startswith("reference/") and context.get("toc"):
        text = doctree_order(context["body"], names)
        context["toc"] = with_names(context["toc"], text)


def doctree_order(body: str, names: Any) -> list[tuple[str, str, str]]:
    """Names with their anchors, in the order of the page, and the section that each is in."""
    anchors = {anchor: name for name, anchor in names}
    section = ""
    found = []
    for element, identity in re.findall(r'<(section|dt)\b[^>]*? id="([^"]+)"', body):
        if element == "section":
            section = identity
        elif identity in anchors:
            found.append((anchors[identity], identity, section))
    return found


def with_names(toc: str, names: list[tuple[str, str, str]]) -> str:
    """The list of headings, and below each heading the names that it is about."""
    by_section = defaultdict(list)
    for name, anchor, section in names:
        link = (
            f'<a class="reference internal" href="#{anchor}"><code>{html.escape(name)}</code></a>'
        )
        by_section[section].append(f"<li>{link}</li>")
    for section, items in by_section.items():
        heading = re.compile(
            rf'(<a class="reference internal" href="#{re.escape(section)}">.*?</a>)'
        )
        listing = f"<ul>{''.join(items)}</ul>"
        toc = heading.sub(lambda found: found[1] + listing, toc, count=1)  # noqa: B023 (called here)
    return toc


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("doctree-read", keep_contents)
    app.connect("env-merge-info", merge)
    app.connect("html-page-context", change, priority=400)  # before the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
