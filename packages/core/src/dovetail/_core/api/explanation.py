"""Shows which rules a primitive has, and where they are defined."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from dovetail._core.base.errors import BackendUnavailableError, close_matches
from dovetail._core.plugins.manager import manager
from dovetail._core.trace.primitive import OPTIONAL_RULES, RULES, Primitive, primitives


def explain(name: str | Primitive) -> None:
    """Print the rules of a primitive, where they are defined, and overrides of its lowering.

    Args:
        name: a primitive, or its name as printed in jaxprs.

    Raises:
        KeyError: there is no such primitive; the message names the nearest ones.

    Example:
        >>> from dovetail.extend import explain
        >>> explain("neg")  # doctest: +ELLIPSIS
        neg: Neg, in ...
    """
    sys.stdout.write(explanation(name) + "\n")


def explanation(name: str | Primitive) -> str:
    """The text that `explain` prints."""
    primitive = name if isinstance(name, Primitive) else _find(name)
    kind = type(primitive)
    lines = [f"{primitive.name}: {kind.__name__}, in {_place(kind)}"]
    width = max(map(len, (*RULES, *OPTIONAL_RULES)))
    for rule in (*RULES, *OPTIONAL_RULES):
        if primitive.has_rule(rule):
            place = _place(getattr(primitive, rule))
        elif rule in OPTIONAL_RULES:
            continue
        else:
            reason = primitive.no_derivative if rule in ("jvp", "transpose") else ""
            place = f"none{': ' + reason if reason else ''}"
        lines.append(f"  {rule:<{width}}  {place}")
    for platform in manager().backend_names():
        try:
            override = manager().lowerings(platform).get(primitive.name)
        except BackendUnavailableError as error:
            lines.append(f"  {'lower':<{width}}  on {platform}: unknown, {error}")
            continue
        if override is not None:
            lines.append(f"  {'lower':<{width}}  on {platform}: {_place(override)}")
    return "\n".join(lines)


def _find(name: str) -> Primitive:
    by_name = primitives()
    if name not in by_name:
        by_name = all_primitives()
    if name in by_name:
        return by_name[name]
    near = close_matches(name, by_name, 3)
    raise KeyError(
        f"there is no primitive {name!r}"
        + (f"; did you mean {' or '.join(map(repr, near))}?" if near else "")
    )


def all_primitives() -> dict[str, Primitive]:
    """All primitives by name: those of the framework, of plug-ins and of users.

    The first call takes half a second, since it imports all modules that define primitives. A
    lowering rule finds its primitive at ``context.equation.primitive``.

    Example:
        >>> from dovetail.extend import primitives
        >>> primitives()["cumsum"].name
        'cumsum'
    """
    _define_all()
    return primitives()


@cache
def _define_all() -> None:
    """Import every operator family: a primitive exists once its module is imported."""
    for layer in ("basis", "transform", "ops"):
        package = import_module(f"dovetail._core.{layer}")
        for folder in map(Path, package.__path__):
            for path in sorted(folder.rglob("*.py")):
                parts = path.relative_to(folder).with_suffix("").parts
                import_module(".".join((package.__name__, *(p for p in parts if p != "__init__"))))


def _place(thing: type | Callable[..., Any]) -> str:
    """Module, line and name of a class or function."""
    name = getattr(thing, "__qualname__", repr(thing))
    module = getattr(thing, "__module__", "")
    try:
        line = inspect.getsourcelines(thing)[1]
    except (OSError, TypeError):
        return f"{module} ({name})"
    return f"{module}:{line}" if isinstance(thing, type) else f"{module}:{line} ({name})"
