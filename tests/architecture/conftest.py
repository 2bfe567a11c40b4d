"""The source tree as the architecture tests see it: parsed modules and their imports."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Import:
    """One imported module, and how it is imported."""

    module: str
    line: int
    end_line: int
    in_function: bool
    for_types_only: bool


@dataclass(frozen=True)
class Module:
    """One source file of a package."""

    name: str
    path: Path

    @cached_property
    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse("\n".join(self.lines), str(self.path))

    @property
    def label(self) -> str:
        return str(self.path.relative_to(ROOT))


@dataclass(frozen=True)
class SourceTree:
    """Every module under packages/, by dotted name."""

    modules: dict[str, Module]
    _imports: dict[str, list[Import]] = field(default_factory=dict)

    def imports(self, module: Module) -> list[Import]:
        """What a module imports; `from a import b` counts as `a.b` where that is a module."""
        if module.name not in self._imports:
            found = self._visit(module.tree, in_function=False, for_types_only=False)
            self._imports[module.name] = list(found)
        return self._imports[module.name]

    def _visit(self, node: ast.AST, *, in_function: bool, for_types_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                continue  # in which nothing is imported
            if isinstance(child, ast.Import | ast.ImportFrom):
                for name in self._targets(child):
                    end = child.end_lineno or child.lineno
                    yield Import(name, child.lineno, end, in_function, for_types_only)
            else:
                function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                types = isinstance(child, ast.If) and _names_type_checking(child.test)
                yield from self._visit(
                    child,
                    in_function=in_function or function,
                    for_types_only=for_types_only or types,
                )

    def _targets(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            return
        assert node.module is not None, "relative imports are banned by ruff"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in self.modules else node.module


def _names_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _dotted(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def source_tree() -> SourceTree:
    """Every module of the eight distributions."""
    modules = {}
    for source in sorted(ROOT.glob("packages/*/src")):
        for path in sorted(source.rglob("*.py")):
            name = _dotted(path, source)
            modules[name] = Module(name, path)
    return SourceTree(modules)


@pytest.fixture(scope="session")
def tracked_files() -> list[Path]:
    """Files that git tracks or would track, relative to the repository."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listing.stdout.splitlines() if (path := ROOT / name).is_file()]
