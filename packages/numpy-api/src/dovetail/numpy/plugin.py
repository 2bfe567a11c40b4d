"""What arrays and tracers gain from this distribution: operators, methods, properties."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from dovetail.core.plugins.hookspecs import ArrayMethods, hookimpl

#: Methods that are functions of this package under the same name, and the modules that these are in.
_METHODS: Final = {
    "all": "reductions",
    "any": "reductions",
    "argmax": "searching",
    "argmin": "searching",
    "argsort": "sorting",
    "clip": "selection",
    "conj": "complex_numbers",
    "cumprod": "cumulative",
    "cumsum": "cumulative",
    "diagonal": "matrices",
    "dot": "contraction",
    "max": "reductions",
    "mean": "reductions",
    "min": "reductions",
    "nonzero": "searching",
    "prod": "reductions",
    "ptp": "reductions",
    "ravel": "shapes",
    "repeat": "joining",
    "round": "rounding",
    "searchsorted": "searching",
    "sort": "sorting",
    "squeeze": "shapes",
    "std": "reductions",
    "sum": "reductions",
    "swapaxes": "shapes",
    "take": "gathering",
    "trace": "matrices",
    "var": "reductions",
}


def _method(name: str, module: str) -> Callable[..., Any]:
    """A method that loads the module of its function when it is first called."""
    found: Callable[..., Any] | None = None

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal found
        if found is None:
            found = getattr(import_module(f"dovetail.numpy.{module}"), name)
        return found(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"See `dovetail.numpy.{name}`."
    return method


@hookimpl
def dovetail_array_methods() -> ArrayMethods:
    """The tables."""
    from dovetail.numpy import methods, operators  # deferred: load the functions behind them

    found = {name: _method(name, module) for name, module in _METHODS.items()}
    return ArrayMethods(
        operators=operators.OPERATORS,
        methods={**found, **methods.METHODS},
        properties=methods.PROPERTIES,
        compiled=operators.COMPILED,
    )
