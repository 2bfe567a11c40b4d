"""Sphinx extension: the directive `gallery`, cards of the other pages in the folder of a page.

A card has the title of a page, its first sentences, and the first picture that it draws.
"""

from __future__ import annotations

import posixpath
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective


class Cards(nodes.General, nodes.Element):
    """Stands for the cards until all pages are read."""


class Gallery(SphinxDirective):
    """Has neither arguments nor content."""

    def run(self) -> list[nodes.Node]:
        """A node for the cards."""
        self.env.note_reread()  # other pages may have changed
        return [Cards()]


class MakeCards(SphinxPostTransform):
    """Puts the cards in place."""

    default_priority = 3

    def run(self, **kwargs: Any) -> None:
        """Change one page."""
        for node in list(self.document.findall(Cards)):
            folder = posixpath.dirname(self.env.docname) + "/"
            names = sorted(n for n in self.env.found_docs if n.startswith(folder))
            cards = [self.card(name) for name in names if name != self.env.docname]
            node.replace_self(nodes.container("", *cards, classes=["gallery"]))

    def card(self, name: str) -> nodes.Node:
        """The card of a page."""
        page = self.env.get_doctree(name)
        uri = self.app.builder.get_relative_uri(self.env.docname, name)
        title = self.env.titles[name].astext()
        parts: list[nodes.Node] = []
        picture = next(page.findall(nodes.image), None)
        if picture is not None:
            words = {"uri": picture["uri"], "candidates": picture["candidates"], "alt": title}
            link = nodes.reference("", "", nodes.image("", **words), refuri=uri, internal=True)
            parts.append(link)
        heading = nodes.reference("", title, refuri=uri, internal=True)
        parts.append(nodes.paragraph("", "", heading, classes=["gallery-title"]))
        text = next(page.findall(nodes.paragraph), None)
        if text is not None:
            parts.append(nodes.paragraph("", text.astext()))
        return nodes.container("", *parts, classes=["gallery-card"])


def setup(app: Any) -> dict[str, Any]:
    """Define the directive."""
    app.add_node(Cards)
    app.add_directive("gallery", Gallery)
    app.add_post_transform(MakeCards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
