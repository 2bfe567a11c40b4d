"""Packages whose names are loaded when they are first used.

The one list of such a package's names is the stub beside it, `__init__.pyi`, which type checkers
read, and which is read here too. It is therefore part of the program, and is in the wheels.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the name is enough for type checkers; importing typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy_names(
    package: str, *own: str, for_users: bool = True
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package whose stub lists its names.

    The stub holds lines of the forms ``from module import name as name``,
    ``from package import submodule as submodule`` for modules of the package, and
    ``other = name`` for another name of the same. (Type checkers take names that are imported in
    any other way for private.) Each name is imported when it is first used, and kept.
    ``__all__`` is made of all that have no underscore in front.

    Args:
        package: the package's `__name__`.
        *own: names defined in the package itself that ``__all__`` holds too.
        for_users: whether tracebacks of what its functions raise end at the line that calls them.

    Returns:
        Two functions, to be bound to ``__getattr__, __dir__`` in the package.

    Example:
        >>> import dovetail.lax
        >>> dovetail.lax.__getattr__("add") is dovetail.lax.add, "add" in dovetail.lax.__all__
        (True, True)
    """
    namespace = vars(sys.modules[package])
    table: dict[str, tuple[str, str]] = {}

    def names() -> dict[str, tuple[str, str]]:
        """Public name to the module that it is in and its name there."""
        if not table:
            stub = os.path.join(os.path.dirname(namespace["__file__"]), "__init__.pyi")
            found = _entries(namespace["__loader__"].get_data(stub).decode())
            public = [name for name in found if not name.startswith("_")]
            namespace["__all__"] = sorted((*public, *own))
            table.update(found)  # last: other threads take a table with entries for complete
        return table

    def load(name: str) -> Any:
        found = names().get(name)
        if found is None:
            if name == "__all__":
                return namespace["__all__"]
            from dovetail._core.base import tracebacks  # deferred: rarely needed

            try:
                tracebacks.unknown_name(package, name, names())
            except (AttributeError, ImportError) as error:
                tracebacks.hide_frames(error)
                raise
        module, attribute = found
        is_submodule = module == package
        if is_submodule:
            module = f"{package}.{attribute}"
        if sys.is_finalizing() and module not in sys.modules:
            raise RuntimeError(
                f"{package}.{name} was not used before the interpreter began to exit, and nothing "
                "can be imported any more: use it once before, or compute in a function that is "
                "registered with atexit"
            )
        from importlib import import_module  # deferred: the next thing loads more

        value: Any = import_module(module)
        if not is_submodule:
            value = getattr(value, attribute)
            if for_users and type(value) is type(lazy_names):
                from dovetail._core.base.tracebacks import published  # deferred: as above

                value = published(value, package, name)
        namespace[name] = value
        return value

    def directory() -> list[str]:
        names()
        return sorted({*namespace["__all__"], *filter(_is_special, namespace)})

    return load, directory


def _is_special(name: str) -> bool:
    return name.startswith("__")


def _entries(stub: str) -> dict[str, tuple[str, str]]:
    """The modules of the names that a stub lists, and the names that they have there."""
    words = stub[stub.index("\nfrom ") :].split()
    found = {}
    module = ""
    for position, word in enumerate(words):
        if word == "from":
            module = words[position + 1]
        elif word == "as":
            found[words[position + 1].rstrip(",")] = module, words[position - 1]
        elif word == "=":
            found[words[position - 1]] = found[words[position + 1]]
    return found
