"""Sphinx extension for links from pages to other files of the repository.

Pages link to files by relative paths, as they are read in a clone, and name files in backquotes.
The site holds copies of the files that are named so, as plain text.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import download_reference, pending_xref
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).parents[2]
CORE = ROOT / "packages" / "core" / "src" / "dovetail" / "_core"
FOLDER = "_repository"


class LinksToFiles(SphinxTransform):
    """Links that lead to files of the repository lead to their copies."""

    default_priority = 300

    def apply(self, **kwargs: Any) -> None:
        """Change the links and the names of files in one page."""
        page = Path(self.env.doc2path(self.env.docname))
        for link in list(self.document.findall(nodes.Element)):
            if isinstance(link, download_reference | pending_xref):
                self.change(page, link)
        if page.suffix == ".md":
            for literal in list(self.document.findall(nodes.literal)):
                self.link(page, literal)

    def change(self, page: Path, link: nodes.Element) -> None:
        """Let a link lead to the copy of its file; one in a heading becomes text."""
        if isinstance(link.parent, nodes.title):
            link.replace_self(link.children[0].children if link.children else [])
            return
        target = re.sub("#.*", "", link.get("reftarget", ""))
        if not target or link.get("refdomain") not in (None, "", "doc"):
            return
        path = Path(os.path.normpath(page.parent / target))
        if not path.exists() or not path.is_relative_to(ROOT) or self.is_page(path):
            return
        children = [child for part in link.children for child in part.children]
        if path.is_dir():
            link.replace_self(children)
        else:
            link.replace_self(self.reference(path, children))

    def link(self, page: Path, literal: nodes.literal) -> None:
        """Let the name of a file lead to its copy, or to its page if it is one."""
        name = literal.astext()
        inside = (nodes.reference, nodes.title, pending_xref, download_reference)
        if isinstance(literal.parent, inside) or not re.fullmatch(
            r"[\w./-]+\.(py|pyi|md|toml)", name
        ):
            return
        bases = [ROOT, page.parent, CORE, *sorted(ROOT.glob("packages/*/src"))]
        found = {path.resolve() for base in bases if (path := base / name).is_file()}
        if len(found) != 1 or found == {page}:
            return
        (path,) = found
        if self.is_page(path):
            docname = path.relative_to(self.env.srcdir).with_suffix("").as_posix()
            uri = self.app.builder.get_relative_uri(self.env.docname, docname)
            reference = nodes.reference("", "", literal.deepcopy(), refuri=uri, internal=True)
        else:
            reference = self.reference(path, [literal.deepcopy()])
        literal.replace_self(reference)

    def is_page(self, path: Path) -> bool:
        """Whether a file is a page of the site."""
        source = Path(self.env.srcdir)
        if not path.is_relative_to(source):
            return False
        return path.relative_to(source).with_suffix("").as_posix() in self.env.found_docs

    def reference(self, path: Path, children: list[nodes.Node]) -> nodes.reference:
        """A link to the copy of a file."""
        name = path.relative_to(ROOT).as_posix()
        files_of(self.env).setdefault(self.env.docname, set()).add(name)
        uri = "../" * self.env.docname.count("/") + copy_of(name)
        return nodes.reference("", "", *children, refuri=uri, internal=True)


def copy_of(name: str) -> str:
    """The copy of a file, given its path in the repository."""
    return f"{FOLDER}/{name}.txt"


def files_of(env: Any) -> dict[str, set[str]]:
    """The files that each page links to."""
    if not hasattr(env, "repository_files"):
        env.repository_files = {}
    found: dict[str, set[str]] = env.repository_files
    return found


def purge(app: Any, env: Any, docname: str) -> None:
    """Forget the links of a page that is read again."""
    files_of(env).pop(docname, None)


def merge(app: Any, env: Any, docnames: list[str], other: Any) -> None:
    """Take the links of pages that another process has read."""
    for docname in docnames:
        if docname in files_of(other):
            files_of(env)[docname] = files_of(other)[docname]


def copy_files(app: Any, exception: Exception | None) -> None:
    """Copy the files that pages link to."""
    for name in sorted(set().union(*files_of(app.env).values())) if exception is None else ():
        copy = Path(app.outdir) / copy_of(name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy)


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.add_transform(LinksToFiles)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    app.connect("build-finished", copy_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
