"""`dovetail.lax` has the documented names, with the documented signatures.

`lax_manifest.json` lists them: of a function or class its parameters without annotations, of an
enumeration its members, of a primitive the name that jaxprs print, and that there are annotations.
Names of tokens, callbacks, collectives and placement on devices come with these.
"""

from __future__ import annotations

import enum
import inspect
import json
import types
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dovetail.core.trace.primitive import Primitive

MANIFEST: dict[str, dict[str, str]] = json.loads(
    Path(__file__).with_name("lax_manifest.json").read_text(encoding="utf-8")
)


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    return value.__name__ if isinstance(value, type) else repr(value)


def _signature(function: Any) -> str:
    """The parameters of a function, with defaults and without annotations."""
    written: list[str] = []
    starred = False
    last: Any = None
    for parameter in inspect.signature(function).parameters.values():
        kind = parameter.kind
        if last is kind.POSITIONAL_ONLY and kind is not kind.POSITIONAL_ONLY:
            written.append("/")
        if kind is kind.KEYWORD_ONLY and not starred:
            written.append("*")
        starred |= kind in (kind.KEYWORD_ONLY, kind.VAR_POSITIONAL)
        name = {kind.VAR_POSITIONAL: "*", kind.VAR_KEYWORD: "**"}.get(kind, "") + parameter.name
        given = parameter.default is not parameter.empty
        written.append(f"{name}={_default(parameter.default)}" if given else name)
        last = kind
    if last is not None and last is last.POSITIONAL_ONLY:
        written.append("/")
    return f"({', '.join(written)})"


def described(value: Any) -> str:
    """A public object in the form of the manifest."""
    if isinstance(value, Primitive):
        return f"primitive({value.name})"
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return f"enum({', '.join(f'{m.name}={m.value!r}' for m in value)})"
    if isinstance(value, types.GenericAlias | types.UnionType):
        return "annotation"
    return _signature(value)


@pytest.mark.parametrize("module", sorted(MANIFEST))
def test_every_name_exists_as_documented(module: str) -> None:
    loaded = import_module(module)
    wrong = []
    for name, documented in MANIFEST[module].items():
        value = getattr(loaded, name, None)
        found = "missing" if value is None else described(value)
        if found != documented:
            wrong.append(f"{name}: {found} instead of {documented}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("module", sorted(MANIFEST))
def test_nothing_else_is_public(module: str) -> None:
    """A new name is written down before it can be relied on."""
    loaded = import_module(module)
    names = {n for n in loaded.__all__ if not inspect.ismodule(getattr(loaded, n))}
    assert sorted(names - MANIFEST[module].keys()) == []


class Kind(enum.Enum):
    FIRST = 1


def test_forms_that_the_manifest_has() -> None:
    def function(a: int, /, b: str = "x", *rest: int, c: type = int, **others: Any) -> None:
        pass

    def keywords(a: int, *, b: Kind = Kind.FIRST) -> None:
        pass

    assert described(function) == "(a, /, b='x', *rest, c=int, **others)"
    assert described(keywords) == "(a, *, b=Kind.FIRST)"
    assert described(lambda a, /: a) == "(a, /)"
    assert described(Kind) == "enum(FIRST=1)"
