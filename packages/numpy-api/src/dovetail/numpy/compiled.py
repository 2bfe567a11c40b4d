"""Functions that run as one compiled program when called eagerly, and are inlined when traced."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from dovetail.extend.arguments import divided, placed
from dovetail.extend.avals import Tracer
from dovetail.extend.eager import compile_eager

F = TypeVar("F", bound=Callable[..., Any])

_static_numbers: Final[dict[Any, list[int]]] = {}


def compiled(function: F) -> F:
    """Make `function` a C++ callable: on a warm cache a call with arrays runs no Python.

    With tracers among the arguments, or during tracing, `function` itself is run.
    """
    return cast("F", compile_eager(function, name=function.__name__.lstrip("_")))


def elementwise(function: F) -> F:
    """`compiled` for functions whose results depend on operands element by element.

    Where the backend can compute them for small arrays, no program is made.
    """
    name = function.__name__.lstrip("_")
    return cast("F", compile_eager(function, name=name, elementwise=True))


def compiled_with(*static: str) -> Callable[[F], F]:
    """`compiled` for functions with static arguments.

    Args:
        *static: names of the arguments that are part of the program: axes, dtypes, flags.
    """

    def decorate(function: F) -> F:
        # Cheaper than inspect.signature, which matters for the load time of modules.
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        numbers = [i for i, name in enumerate(names) if name in static]
        program = compile_eager(
            function,
            name=function.__name__.lstrip("_"),
            static_argnums=numbers,
            static_argnames=static,
        )
        _static_numbers[program] = numbers
        return cast("F", program)

    return decorate


def divided_program(function: str, out_sharding: Any, program: F) -> F:
    """A function of `compiled_with` whose result is divided over devices by the program itself.

    So each device computes its part, and no device holds the whole.

    Args:
        function: the name of the user's function, for messages.
        out_sharding: a `PartitionSpec` over the current mesh, a `NamedSharding`, or None.
        program: the function, which is then called with positional arguments.
    """
    if out_sharding is None:
        return program

    def call(*args: Any) -> Any:
        result = _divided(function, program)(out_sharding, *args)
        if not isinstance(result, Tracer) and result.sharding.num_devices == 1:
            return placed(function, result, out_sharding)  # programs on one device know no meshes
        return result

    return cast("F", call)


@functools.cache
def _divided(function: str, program: Any) -> Any:
    inner = plain(program)

    def run(out_sharding: Any, *args: Any) -> Any:
        return divided(function, out_sharding, lambda: inner(*args))

    numbers = [0, *[1 + number for number in _static_numbers.get(program, ())]]
    return compile_eager(run, name=inner.__name__.lstrip("_"), static_argnums=numbers)


def plain(function: F) -> F:
    """The Python function behind a compiled one."""
    return cast("F", getattr(function, "__wrapped__", function))
