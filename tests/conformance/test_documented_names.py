"""Public modules have the documented names, with the documented signatures.

The manifests beside this file list them: of a function or class its parameters without annotations,
of an enumeration its members, of a primitive the name that jaxprs print, of a ufunc how many
arguments and results it has, of a constant its value, of a class or dtype of NumPy which one it is,
and that there are annotations and other objects.
Of `lax`, names of tokens, callbacks, collectives and placement on devices come with these.
"""

from __future__ import annotations

import enum
import inspect
import json
import math
import re
import types
import typing
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail._core.trace.primitive import Primitive

MANIFEST: dict[str, dict[str, str]] = {
    module: names
    for file in sorted(Path(__file__).parent.glob("*_manifest.json"))
    for module, names in json.loads(file.read_text(encoding="utf-8")).items()
}

#: What stands in a module besides, and why.
ADDED: dict[str, dict[str, str]] = {
    "dovetail.example_libraries.stax": {
        "Conv": "JAX has it, as a partial object, which lists of functions leave out",
        "Conv1DTranspose": "the same",
        "ConvTranspose": "the same",
    },
    "dovetail.numpy": {
        "explain_dtype": "says why a result has its dtype",
        "fix": "a name of NumPy's for trunc, which JAX has dropped",
    },
    "dovetail.scipy.special": {"lpmn_values": "JAX has it still, and its documentation no more"},
}

#: Keywords that functions have besides, as their docstrings say under `Differs`.
KEYWORDS: dict[str, set[str]] = {
    "dovetail.lax.fori_loop": {"progress"},
    "dovetail.lax.map": {"progress"},
    "dovetail.lax.scan": {"progress"},
    "dovetail.lax.while_loop": {"checkpoints", "max_steps", "progress"},
}


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, types.FunctionType):
        return f"<function {value.__qualname__}>"
    return value.__name__ if isinstance(value, type) else repr(value)


def _signature(function: Any, besides: Collection[str]) -> str:
    """The parameters of a function, with defaults and without annotations and private ones.

    Args:
        function: the function.
        besides: keywords that are left out.
    """
    written: list[str] = []
    starred = False
    last: Any = None
    for parameter in inspect.signature(function).parameters.values():
        kind = parameter.kind
        if kind is kind.KEYWORD_ONLY and (
            parameter.name.startswith("_") or parameter.name in besides
        ):
            continue
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


def described(value: Any, besides: Collection[str] = ()) -> str:
    """A public object in the form of the manifest."""
    if isinstance(value, Primitive):
        return f"primitive({value.name})"
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return f"enum({', '.join(f'{m.name}={m.value!r}' for m in value)})"
    if isinstance(value, types.GenericAlias | types.UnionType | typing.NewType):
        return "annotation"
    if value is None or isinstance(value, float):
        return repr(value)
    if isinstance(value, type) and isinstance(getattr(value, "dtype", None), np.dtype):
        return f"dtype({value.dtype.name})"
    if isinstance(value, type) and value.__module__.partition(".")[0] == "numpy":
        return f"numpy.{value.__name__}"
    if isinstance(value, type) and value.__name__ == "Array":
        return "the class of arrays"
    if hasattr(value, "nin") and not isinstance(value, type):
        return f"ufunc({value.nin}, {value.nout})"
    return _signature(value, besides) if callable(value) else "object"


def _comparable(description: str) -> str:
    """A description without the names of parameters that callers cannot name."""
    first, slash, rest = description.rpartition(", /")
    return re.sub(r"\w+(=|$|(?=, ))", r"_\1", first) + slash + rest


@pytest.mark.parametrize("module", sorted(MANIFEST))
def test_every_name_exists_as_documented(module: str) -> None:
    loaded = import_module(module)
    wrong = []
    for name, documented in MANIFEST[module].items():
        besides = KEYWORDS.get(f"{module}.{name}", ())
        found = described(getattr(loaded, name), besides) if hasattr(loaded, name) else "missing"
        if _comparable(found) != _comparable(documented):
            wrong.append(f"{name}: {found} instead of {documented}")
    assert not wrong, "\n".join(wrong)


def test_keywords_besides_are_there() -> None:
    for place, names in KEYWORDS.items():
        module, _, name = place.rpartition(".")
        function = getattr(import_module(module), name)
        assert names <= inspect.signature(function).parameters.keys()


@pytest.mark.parametrize("module", sorted(MANIFEST))
def test_nothing_else_is_public(module: str) -> None:
    """A new name is written down before it can be relied on."""
    loaded = import_module(module)
    names = {n for n in loaded.__all__ if not inspect.ismodule(getattr(loaded, n))}
    assert sorted(names - MANIFEST[module].keys() - ADDED.get(module, {}).keys()) == []


class Kind(enum.Enum):
    FIRST = 1


def test_forms_that_the_manifest_has() -> None:
    def function(a: int, /, b: str = "x", *rest: int, c: type = int, **others: Any) -> None:
        pass

    def defaults(a: Any = function) -> None:
        pass

    def keywords(a: int, *, b: Kind = Kind.FIRST, _c: int = 0) -> None:
        pass

    assert described(function) == "(a, /, b='x', *rest, c=int, **others)"
    assert described(defaults) == f"(a=<function {function.__qualname__}>)"
    assert described(keywords) == "(a, *, b=Kind.FIRST)"
    assert described(lambda a, /: a) == "(a, /)"
    assert described(Kind) == "enum(FIRST=1)"
    assert _comparable("(a=None, b, /, c)") == _comparable("(x=None, y, /, c)")
    assert _comparable("(a, /, b)") != _comparable("(a, /, c)")
    assert _comparable("(a=1, /)") != _comparable("(a, /)")
    assert described(np.add) == "ufunc(2, 1)"
    assert described(np.generic) == "numpy.generic"
    assert described(math.inf) == "inf"
    assert described(np.s_) == "object"
