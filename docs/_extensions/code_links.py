"""Sphinx extension: names in backquotes lead to the reference.

`dt.jit`, `jnp.sum` or `lax.scan` in the text of any page is a link if there is such a public name;
in the reference a name without a module is one, too, unless an argument is called so. In roles such
as {py:func}`jnp.sum` the same short forms hold.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc, desc_parameter, desc_signature, pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

SHORT = {
    "dt": "dovetail",
    "jnp": "dovetail.numpy",
    "dovetail": "dovetail",
    **{
        name: f"dovetail.{name}"
        for name in (
            *("debug", "dtypes", "errors", "experimental", "export", "extend", "image", "lax"),
            *("memory", "monitoring", "nn", "ops", "profiler", "random", "scipy", "sharding"),
            *("stages", "tree", "tree_util"),
        )
    },
}
"""What the first word of a name stands for."""

TYPES = (
    *("dovetail", "dovetail.typing", "dovetail.sharding", "dovetail.stages", "dovetail.core"),
    *("dovetail.extend.core", "dovetail.extend", "dovetail.lax", "dovetail.export"),
    *("dovetail.experimental.sparse", "dovetail.tree_util", "dovetail.extend.arguments"),
)
"""Modules that an annotation without a module may mean, the first first."""

NAME = re.compile(r"@?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(\(.*\))?", re.DOTALL)


def full_name(name: str) -> str:
    """A dotted name with its module written out."""
    head, dot, rest = name.partition(".")
    return f"{SHORT[head]}{dot}{rest}" if head in SHORT else name


class LinksToNames(SphinxPostTransform):
    """Makes links of names."""

    default_priority = 20

    def run(self, **kwargs: Any) -> None:
        """Change one page."""
        for literal in list(self.document.findall(nodes.literal)):
            found = NAME.fullmatch(literal.astext())
            if found is None or isinstance(literal.parent, nodes.reference | pending_xref):
                continue
            for candidate in self.candidates(literal, found[1]):
                if candidate in self.env.domains.python_domain.objects:
                    literal.replace_self(self.reference(candidate, literal))
                    break

    def candidates(self, literal: nodes.literal, name: str) -> list[str]:
        """The full names that a name may stand for."""
        if "." in name:
            return [full_name(name)]
        if isinstance(literal.parent, nodes.title):
            return [f"{section_above(literal)}.{name}"]
        described = None
        parameters: set[str] = set()
        node: Any = literal.parent
        while node is not None:
            if isinstance(node, desc):
                described = described or node
                for parameter in node.findall(desc_parameter):
                    parameters.add(re.split(r"[:=]", parameter.astext())[0].strip("* "))
            node = node.parent
        if described is None or name in parameters:
            return []
        signature = next(described.findall(desc_signature))
        module = signature.get("module") or ""
        if f"{module}.{name}" in signature.get("ids", ()):
            return []  # of itself
        return [f"{module}.{name}", f"dovetail.{name}"]

    def reference(self, name: str, literal: nodes.literal) -> nodes.Node:
        """A link to the entry of a name."""
        entry = self.env.domains.python_domain.objects[name]
        builder, docname = self.app.builder, self.env.docname
        return make_refnode(
            builder, docname, entry.docname, entry.node_id, literal.deepcopy(), name
        )


def section_above(literal: nodes.Node) -> str:
    """The heading above the one that a name stands in."""
    section = literal.parent.parent.parent if literal.parent else None
    title = section.next_node(nodes.title) if isinstance(section, nodes.section) else None
    return title.astext() if title is not None else ""


class LinksToTypes(SphinxPostTransform):
    """Lets types in signatures lead to the reference; the others are text.

    Sphinx would take the end of any name for the name of a type, of which there are many.
    """

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        """Change one page."""
        objects = self.env.domains.python_domain.objects
        for signature in self.document.findall(desc_signature):
            for node in list(signature.findall(pending_xref)):
                target = node["reftarget"].rpartition(".")[2]
                full = next((f"{m}.{target}" for m in TYPES if f"{m}.{target}" in objects), None)
                children = [child.deepcopy() for child in node.children]
                if full is None:
                    node.replace_self(children)
                else:
                    entry, builder, here = objects[full], self.app.builder, self.env.docname
                    node.replace_self(
                        make_refnode(builder, here, entry.docname, entry.node_id, children, full)
                    )


def resolve(app: Any, env: Any, node: Any, contents: Any) -> Any:
    """What a role leads to whose name is short."""
    if node.get("refdomain") != "py":
        return None
    name = full_name(node["reftarget"])
    entry = env.domains.python_domain.objects.get(name)
    if entry is None:
        return None
    docname = node.get("refdoc", env.docname)
    return make_refnode(app.builder, docname, entry.docname, entry.node_id, contents, name)


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.add_post_transform(LinksToTypes)
    app.add_post_transform(LinksToNames)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
