"""Writes docs/differences-from-jax.md from the `Differs:` sections of docstrings.

python docs/write_differences.py

A section `Differs:` says where something differs from JAX on purpose: one or more statements, each
with an example behind it. In the examples `dt`, `jnp`, `lax` and `np` are imported. The docstring
of an option is the string behind its declaration. What JAX merely refuses is no difference.
"""

from __future__ import annotations

import ast
import inspect
import json
import pkgutil
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "docs" / "differences-from-jax.md"
LEFT_OUT = ROOT / "packages/core/src/dovetail/_core/base/left_out.json"
IMPORTS = {"dt": dt, "jnp": jnp, "lax": lax, "np": np}

HEAD = """# Differences from JAX

Dovetail does what JAX documents. Here is where it differs on purpose, by public module. What JAX
merely refuses is not listed. `python docs/write_differences.py` writes this file from the
`Differs:` sections of docstrings; a test runs every example, and fails when the file is not
current. The examples begin with

```python
import numpy as np
import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
```
"""

LEFT_OUT_HEAD = """
## Names that there are not

A test compares the names and arguments of JAX's documented API with those here. These are left out
on purpose; an `AttributeError` gives the reason, too. What JAX's options do that there are not
stands in [options.md](options.md).

| names | reason |
|---|---|
"""

# The order of the first modules; the others follow by name.
FIRST = (
    "dovetail",
    "dovetail.numpy",
    "dovetail.numpy.linalg",
    "dovetail.numpy.fft",
    "dovetail.nn",
    "dovetail.nn.initializers",
    "dovetail.ops",
    "dovetail.random",
    "dovetail.lax",
    "dovetail.lax.linalg",
)


@dataclass(frozen=True, slots=True)
class Item:
    """One difference.

    Attributes:
        statement: what differs, in one line.
        example: lines of a doctest that shows it.
    """

    statement: str
    example: str


@dataclass(frozen=True, slots=True)
class Section:
    """The `Differs:` section of one docstring.

    Attributes:
        path: the file.
        line: where the docstring begins.
        qualname: what it describes, as a name in the module.
        items: the differences.
    """

    path: Path
    line: int
    qualname: str
    items: tuple[Item, ...]

    @property
    def place(self) -> tuple[str, str]:
        """The module and the name in it."""
        source = next(parent for parent in self.path.parents if parent.name == "src")
        parts = self.path.relative_to(source).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts), self.qualname


def described(node: Any, prefix: str = "") -> Iterator[tuple[str, ast.expr]]:
    """The names in a module or class that have docstrings, and these."""
    name = ""
    for child in node.body:
        documents = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if documents and isinstance(child.value.value, str) and name:
            yield prefix + name, child.value
        name = ""
        if isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
            name = child.targets[0].id
        elif isinstance(child, ast.FunctionDef | ast.ClassDef):
            if ast.get_docstring(child) is not None:
                yield prefix + child.name, child.body[0].value  # type: ignore[attr-defined]
            if isinstance(child, ast.ClassDef):
                yield from described(child, f"{prefix}{child.name}.")


def items_of(docstring: str) -> tuple[Item, ...]:
    """The differences that a docstring tells; ValueError where one has no example."""
    if not docstring.startswith("Differs:"):  # as that of an option does, which is not indented
        docstring = inspect.cleandoc(docstring)
    _, heading, rest = f"\n{docstring}\n".partition("\nDiffers:\n")
    if not heading:
        return ()
    section = textwrap.dedent(re.split(r"\n(?=\S)", rest)[0]).strip()
    items = []
    statement = ""
    for block in re.split(r"\n\s*\n", section):
        if block.startswith(">>> "):
            if not statement:
                raise ValueError(f"an example without a statement:\n{block}")
            items.append(Item(statement, block))
            statement = ""
        elif statement:
            raise ValueError(f"a statement without an example: {statement}")
        else:
            statement = " ".join(block.split())
    if statement or not items:
        raise ValueError(f"a statement without an example: {statement}")
    return tuple(items)


def sections() -> list[Section]:
    """All differences that the source tells."""
    found = []
    for path in sorted(ROOT.glob("packages/*/src/**/*.py")):
        text = path.read_text(encoding="utf-8")
        if "Differs:\n" not in text:
            continue
        for qualname, node in described(ast.parse(text)):
            assert isinstance(node, ast.Constant)
            assert isinstance(node.value, str)
            try:
                items = items_of(node.value)
            except ValueError as error:
                raise ValueError(f"{path}:{node.lineno}: {error}") from None
            if items:
                found.append(Section(path, node.lineno, qualname, items))
    return found


def public_modules() -> list[str]:
    """The modules whose names users write, in the order of the file."""
    experimental = pkgutil.iter_modules(import_module("dovetail.experimental").__path__)
    found = set(listed_modules("dovetail"))
    for module in experimental:
        found.update(listed_modules(f"dovetail.experimental.{module.name}"))
    return [*FIRST, *sorted(found.difference(FIRST))]


def listed_modules(package: str) -> Iterator[str]:
    """A package, and the modules among its public names, with those among theirs."""
    yield package
    contents = import_module(package)
    for name in getattr(contents, "__all__", ()):
        if isinstance(getattr(contents, name), ModuleType) and name not in ("extend", "testing"):
            yield from listed_modules(f"{package}.{name}")


def place_of(value: Any) -> tuple[str, str] | None:
    """The module and the name there of a public object; None of what is no function or class."""
    if isinstance(value, ModuleType):
        return None
    if isinstance(value, dt.numpy.ufunc):
        value = getattr(value, "_call", None) or value.func
    if isinstance(value, property):
        value = value.fget
    if not isinstance(value, type):
        value = inspect.unwrap(value) if callable(value) else type(value)
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return (module, name) if isinstance(module, str) and isinstance(name, str) else None


def public_names() -> dict[tuple[str, str], tuple[str, str]]:
    """For each place of a definition the public module and name by which users know it."""
    names = {}
    for name in dt.config:
        shown = name if hasattr(dt, name) else f"config.{name}"
        for file in ("config", "startup_options"):
            names[f"dovetail._core.base.{file}", name] = "dovetail", shown
    for module in public_modules():
        contents = import_module(module)
        aliases = {}
        for name in dir(contents):
            place = None if name.startswith("_") else place_of(getattr(contents, name))
            if place is not None:
                (names if place[1] == name else aliases).setdefault(place, (module, name))
        for place, alias in aliases.items():
            names.setdefault(place, alias)
    matrix = jnp.zeros((1, 1))
    for name in dir(dt.Array):
        if name.startswith("_"):
            continue
        if isinstance(inspect.getattr_static(dt.Array, name), property):
            getattr(matrix, name)  # the function behind it takes its place at the first use
        place = place_of(inspect.getattr_static(dt.Array, name))
        if place is not None:
            names.setdefault(place, ("dovetail", f"Array.{name}"))
    return names


def written() -> str:
    """The text of the file."""
    names = public_names()
    by_module: dict[str, list[tuple[str, Section]]] = defaultdict(list)
    for section in sections():
        if section.place not in names:
            raise ValueError(
                f"{section.path}:{section.line}: {section.qualname} has no public name; "
                "say what differs where users look it up"
            )
        module, name = names[section.place]
        by_module[module].append((name, section))
    parts = [HEAD]
    for module in public_modules():
        if module not in by_module:
            continue
        parts.append(f"\n## {module}\n")
        for name, section in sorted(by_module[module], key=lambda pair: pair[0].lower()):
            link = section.path.relative_to(ROOT).as_posix()
            parts.append(f"\n### [`{name}`](../{link})\n")
            for item in section.items:
                statement = item.statement.replace("``", "`")
                parts.append("\n" + textwrap.fill(statement, 120, break_on_hyphens=False) + "\n")
                parts.append(f"\n```python\n{item.example}\n```\n")
    return "".join(parts) + left_out()


def left_out() -> str:
    """The names of JAX's that there are not, by their reasons."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for place, reasons in json.loads(LEFT_OUT.read_text(encoding="utf-8")).items():
        for name, reason in reasons.items():
            by_reason[reason].append(f"`{place}.{name}`")
    rows = [f"| {', '.join(names)} | {reason} |\n" for reason, names in by_reason.items()]
    return f"{LEFT_OUT_HEAD}{''.join(rows)}"


if __name__ == "__main__":
    OUTPUT.write_text(written(), encoding="utf-8")
