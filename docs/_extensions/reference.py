"""Sphinx extension that writes docs/reference: every public name, with signature and docstring.

The names are those that the packages list; `reference_groups` says on which page each stands.
Signatures and docstrings are read from the objects themselves.
"""

from __future__ import annotations

import ast
import enum
import functools
import importlib
import inspect
import re
import subprocess
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from reference_groups import GROUPS, LAST, Page, Part
from written_pages import write_pages

from dovetail import Array, numpy

HEAD = """API reference
=============

Every public name, by topic. In examples ``dt`` is ``dovetail``, ``jnp`` is ``dovetail.numpy``,
``lax`` is ``dovetail.lax`` and ``np`` is NumPy. A box such as this one stands where something is on
purpose not as in JAX; :doc:`a page <../differences-from-jax>` lists them all.

.. admonition:: Differs from JAX
   :class: differs

   What differs, with an example.

"""


def public_modules(package: str = "dovetail") -> Iterator[str]:
    """The modules whose names users write."""
    yield package
    contents = importlib.import_module(package)
    if package == "dovetail.experimental":  # its modules are imported one by one
        folders = [Path(folder) for folder in contents.__path__]
        files = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
        names = {path.stem for path in files if re.fullmatch(r"[a-z]\w*(\.py)?", path.name)}
    else:
        listed = getattr(contents, "__all__", ())
        names = {name for name in listed if isinstance(getattr(contents, name), types.ModuleType)}
    for name in sorted(names):
        yield from public_modules(f"{package}.{name}")
    if package == "dovetail":
        yield "dovetail.testing"


@functools.cache
def public_names(module: str) -> tuple[str, ...]:
    """The names of a public module that are no modules."""
    contents = importlib.import_module(module)
    listed = getattr(contents, "__all__", ())
    return tuple(
        name for name in listed if not isinstance(getattr(contents, name), types.ModuleType)
    )


@functools.cache
def defining_modules(module: str) -> dict[str, str]:
    """Where the names of a package are defined, as its stub tells."""
    stub = Path(importlib.import_module(module).__file__ or "").with_name("__init__.pyi")
    found: dict[str, str] = {}
    if stub.exists():
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found[alias.asname or alias.name] = node.module or ""
            elif isinstance(node, ast.Assign):
                assert isinstance(node.targets[0], ast.Name)
                assert isinstance(node.value, ast.Name)
                found[node.targets[0].id] = found[node.value.id]
    short = re.compile(rf"^(dovetail\._core|{re.escape(module)})\.")
    return {name: short.sub("", place) for name, place in found.items()}


def takes(part: Part, name: str) -> bool:
    """Whether a part of a page takes a name of its module, if no part before does."""
    if not part.names and not part.defined_in:
        return True
    if name in part.names.split():
        return True
    place = defining_modules(part.module).get(name, "")
    return not name.endswith("_p") and any(fnmatchcase(place, p) for p in part.defined_in.split())


def placed() -> list[tuple[Page, list[tuple[Part, list[str]]]]]:
    """All pages with their parts and the names of these.

    Raises:
        ValueError: a module is on no page.
    """
    left = {module: list(public_names(module)) for module in public_modules()}
    pages = []
    for page in (*(page for pages in GROUPS.values() for page in pages), LAST):
        parts = []
        for part in page.parts:
            names = [name for name in left[part.module] if takes(part, name)]
            left[part.module] = [name for name in left[part.module] if name not in names]
            if names:
                parts.append((part, names))
        if parts:
            pages.append((page, parts))
    missing = {module: names for module, names in left.items() if names}
    if missing:
        raise ValueError(f"docs/_extensions/reference_groups.py: no page takes {missing}")
    return pages


@dataclass
class Writer:
    """Writes entries, each object's documentation once.

    Attributes:
        known: full names of what was written, by the identities of the objects.
        kept: the objects, so that their identities stay theirs.
        modules: modules that were introduced.
    """

    known: dict[int, str] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)
    modules: set[str] = field(default_factory=set)

    def page(self, page: Page, parts: list[tuple[Part, list[str]]]) -> str:
        """The text of a page."""
        lines = [page.title, "=" * len(page.title), "", linked(page.text), ""]
        for part, names in parts:
            if part.title:
                lines += [part.title, "-" * len(part.title), ""]
            lines += self.introduction(part)
            entries = [self.entry(part.module, name) for name in sorted(names, key=str.lower)]
            lines += ["", ".. names::", ""]
            lines += [f"   {entry.full}|{entry.shown}|{entry.summary}" for entry in entries]
            for entry in entries:
                lines += entry.lines
        return "\n".join(lines) + "\n"

    def introduction(self, part: Part) -> list[str]:
        """What a module's docstring says, where the module is first met as a whole."""
        if part.module in self.modules:
            return [f".. py:currentmodule:: {part.module}", ""]
        self.modules.add(part.module)
        lines = [f".. py:module:: {part.module}", ""]
        if part.title == part.module:
            lines += documented(importlib.import_module(part.module).__doc__ or "")
        return lines

    def entry(self, module: str, name: str) -> Entry:
        """What is written about a name."""
        value = getattr(importlib.import_module(module), name)
        full = f"{module}.{name}"
        entry = Entry(full, name, value)
        if not is_plain(value):
            first = self.known[id(behind(value))]
            if first != full:
                entry.same_as = first
        return entry

    def know(self, names: Iterable[tuple[str, str]]) -> None:
        """Choose where objects are documented: the first time that they have their own name."""
        for module, name in names:
            value = getattr(importlib.import_module(module), name)
            if is_plain(value):
                continue
            value = behind(value)
            self.kept.append(value)
            known = self.known.setdefault(id(value), f"{module}.{name}")
            own = getattr(value, "__name__", name)
            if own == name and known.rpartition(".")[2] != name:
                self.known[id(value)] = f"{module}.{name}"


@dataclass
class Entry:
    """What is written about a name.

    Attributes:
        full: the name with its module.
        shown: the name.
        value: the object.
        same_as: the full name under which the object was documented before.
    """

    full: str
    shown: str
    value: Any
    same_as: str = ""

    @property
    def docstring(self) -> str:
        """The docstring of the object itself, else of its class if it is one of ours."""
        value = self.value
        own = inspect.getdoc(value) if not is_plain(value) else None
        if isinstance(value, type) or callable(value) or own:
            return own or ""
        return inspect.getdoc(type(value)) or ""

    @property
    def summary(self) -> str:
        """One sentence."""
        if self.same_as:
            return f"The same as `{self.same_as}`."
        if is_plain(self.value) or not self.docstring:
            return value_of(self.value)
        return summary(self.docstring)

    @property
    def lines(self) -> list[str]:
        """A directive of Sphinx's domain for Python."""
        body: list[str] = []
        kind = kind_of(self.value)
        signature = ""
        if kind in ("function", "class", "exception"):
            signature = signature_of(self.value)
        if self.same_as:
            body = documented(self.summary)
        else:
            if kind == "data" and value_of(self.value):
                body += documented(value_of(self.value))
            if not is_plain(self.value):
                body += documented(self.docstring)
            if kind in ("class", "exception") and self.value.__module__.startswith("dovetail"):
                body += members(self.value)
        return ["", f".. py:{kind}:: {self.shown}{signature}", "", *indented(body), ""]


def summary(docstring: str) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join(inspect.cleandoc(docstring).partition("\n\n")[0].split())
    found = re.match(r"(.+?(?<!e\.g)(?<!i\.e)[.:])(\s|$)", paragraph)
    return (found[1] if found else paragraph).rstrip(":")


def behind(value: Any) -> Any:
    """The object that a boundary for tracebacks, or a name for another module, stands for."""
    return inspect.unwrap(value) if callable(value) and not isinstance(value, type) else value


def is_plain(value: Any) -> bool:
    """Whether a value is best described by itself."""
    plain = (bool, int, float, str, bytes, tuple, list, dict, frozenset, set, type(None))
    return isinstance(value, plain) or is_alias(value)


def is_alias(value: Any) -> bool:
    """Whether a value is another name for a type."""
    aliases = types.UnionType | types.GenericAlias
    return isinstance(value, aliases) or type(value).__module__ == "typing"


def kind_of(value: Any) -> str:
    """The directive for an object."""
    if isinstance(value, type):
        return "exception" if issubclass(value, BaseException) else "class"
    if is_alias(value) or not callable(value):
        return "data"
    return "function"


def value_of(value: Any) -> str:
    """A value as code, if it can be read."""
    if not is_plain(value):
        return ""
    text = re.sub(
        r"\b(dovetail\._core|numpy|typing|collections\.abc)\.([\w.]*\.)?", "", repr(value)
    )
    return "" if " at 0x" in text or len(text) > 300 else f"``{text}``"


def signature_of(value: Any) -> str:
    """The signature of a callable, without annotations that say nothing to users."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "" if isinstance(value, type) else "()"
    if isinstance(value, type):
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    text = formatted(signature)
    says_nothing = text in ("()", "(*args: Any, **kwargs: Any)")
    return "" if isinstance(value, type) and says_nothing else text


def formatted(signature: inspect.Signature, skip_first: bool = False) -> str:
    """A signature as Sphinx reads it."""
    parameters = list(signature.parameters.values())[int(skip_first) :]
    words = []
    kinds = inspect.Parameter
    starred = False
    for number, parameter in enumerate(parameters):
        if parameter.kind is kinds.KEYWORD_ONLY and not starred:
            words.append("*")
            starred = True
        prefix = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        starred |= prefix == "*"
        word = prefix + parameter.name
        annotation = annotation_of(parameter.annotation)
        word += f": {annotation}" if annotation else ""
        if parameter.default is not kinds.empty:
            equals = " = " if annotation else "="
            word += f"{equals}{default_of(parameter.default)}"
        words.append(word)
        following = parameters[number + 1 :]
        if parameter.kind is kinds.POSITIONAL_ONLY and not (
            following and following[0].kind is kinds.POSITIONAL_ONLY
        ):
            words.append("/")
    returned = annotation_of(signature.return_annotation)
    return f"({', '.join(words)})" + (f" -> {returned}" if returned else "")


def annotation_of(annotation: Any) -> str:
    """An annotation as text."""
    if annotation is inspect.Signature.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text)
    return text.replace("'", "") if is_expression(text) else ""


def default_of(value: Any) -> str:
    """A default as text."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, type):
        return value.__name__
    text = repr(value)
    if callable(value) and hasattr(value, "__name__"):
        text = value.__name__
    return text if is_expression(text) and len(text) < 60 else "..."


def is_expression(text: str) -> bool:
    """Whether Python can read a text."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return "\n" not in text


def members(owner: type) -> list[str]:
    """The public methods and properties of a class, and the members of an enumeration."""
    lines: list[str] = []
    if issubclass(owner, enum.Enum):
        for member in owner:
            lines += [f".. py:attribute:: {member.name}", f"   :value: {member.value!r}", ""]
        return lines
    for name in sorted(dir(owner)):
        if name.startswith("_"):
            continue
        member = inspect.getattr_static(owner, name)
        holder = next((base for base in owner.__mro__ if name in vars(base)), owner)
        if not getattr(holder, "__module__", "").startswith("dovetail"):
            continue
        lines += member_lines(name, member)
    return lines


def member_lines(name: str, member: Any) -> list[str]:
    """What is written about a member of a class."""
    function = member
    kind, options = "method", []
    if isinstance(member, staticmethod | classmethod):
        options = [f"   :{type(member).__name__}:"]
        function = member.__func__
    elif isinstance(member, property | functools.cached_property) or not callable(member):
        kind = "property"
        function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    docstring = inspect.getdoc(function) if not is_plain(function) else None
    if not docstring or (kind == "property" and not callable(function)):
        return []
    signature = ""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        found = None
    if kind == "method" and found is not None:
        signature = formatted(found, skip_first=not isinstance(member, staticmethod))
    elif found is not None and annotation_of(found.return_annotation):
        options = [f"   :type: {annotation_of(found.return_annotation)}"]
    return [f".. py:{kind}:: {name}{signature}", *options, "", *indented(documented(docstring)), ""]


def documented(docstring: str) -> list[str]:
    """A directive that holds a docstring."""
    lines = inspect.cleandoc(docstring).splitlines()
    return [".. docstring::", "", *indented(lines), ""] if lines else []


def indented(lines: list[str]) -> list[str]:
    """The lines, further to the right."""
    return ["   " + line if line else "" for line in lines]


def linked(text: str) -> str:
    """A sentence of `reference_groups` as reStructuredText, which is Markdown there."""
    text = re.sub(r"`([^`]+)`", r"``\1``", text)
    return re.sub(r"\[([^]]+)\]\(([^)]+)\.md\)", r":doc:`\1 <\2>`", text)


def load_properties_of_arrays() -> None:
    """Let the functions of arrays that are loaded at the first use take their places."""
    matrix = numpy.zeros((1, 1))
    for name in dir(Array):
        if isinstance(inspect.getattr_static(Array, name), property) and name[0] != "_":
            getattr(matrix, name)


def written() -> dict[str, str]:
    """The pages of the site, by the names of their files."""
    load_properties_of_arrays()
    writer = Writer()
    found = placed()
    for _, parts in found:
        writer.know((part.module, name) for part, names in parts for name in names)
    texts = {f"{page.name}.rst": writer.page(page, parts) for page, parts in found}
    lines = [HEAD]
    names = {page.name for page, _ in found}
    for heading, pages in {**GROUPS, "Others": (LAST,)}.items():
        shown = [page for page in pages if page.name in names]
        if not shown:
            continue
        lines += [heading, "-" * len(heading), "", ".. list-table::", "   :widths: 35 65", ""]
        for page in shown:
            lines += [f"   * - :doc:`{page.title} <{page.name}>`", f"     - {linked(page.text)}"]
        contents = [f"   {page.name}" for page in shown]
        lines += ["", ".. toctree::", "   :hidden:", "", *contents, ""]
    return {"index.rst": "\n".join(lines), **texts}


def setup(app: Any) -> dict[str, Any]:
    """Write the pages before Sphinx looks for them.

    In a process of its own: Sphinx forks, and dovetail must not be in use then.
    """
    subprocess.run([sys.executable, __file__, str(Path(app.srcdir) / "reference")], check=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]), written())
