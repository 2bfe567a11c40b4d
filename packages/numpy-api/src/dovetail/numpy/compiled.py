"""Functions that run as one compiled program when called eagerly, and are inlined when traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from dovetail.extend.eager import compile_eager

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Make `function` a C++ callable: on a warm cache a call with arrays runs no Python.

    With tracers among the arguments, or during tracing, `function` itself is run.
    """
    return cast("F", compile_eager(function, name=function.__name__.lstrip("_")))


def compiled_with(*static: str) -> Callable[[F], F]:
    """`compiled` for functions with static arguments.

    Args:
        *static: names of the arguments that are part of the program: axes, dtypes, flags.
    """

    def decorate(function: F) -> F:
        # Cheaper than inspect.signature, which matters for the load time of modules.
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        numbers = [i for i, name in enumerate(names) if name in static]
        return cast(
            "F",
            compile_eager(
                function,
                name=function.__name__.lstrip("_"),
                static_argnums=numbers,
                static_argnames=static,
            ),
        )

    return decorate


def plain(function: F) -> F:
    """The Python function behind a compiled one."""
    return cast("F", getattr(function, "__wrapped__", function))
