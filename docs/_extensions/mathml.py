"""Sphinx extension: formulas as MathML, which browsers show by themselves.

MathJax, which Sphinx would use, is loaded from a server of others each time that a page is opened.
"""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def formula(node: nodes.Node, as_block: bool) -> str:
    """A formula as MathML; where it cannot be read, a warning and the text."""
    text = node.astext()
    try:
        return str(latex2mathml.tex2mathml(text, as_block=as_block))
    except MathError as error:
        logger.warning("formula %r: %s", text, error, location=node)
        return f"<code>{html.escape(text)}</code>"


def visit_math(writer: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    writer.body.append(formula(node, as_block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula that stands by itself."""
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(formula(node, as_block=True))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Define the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
