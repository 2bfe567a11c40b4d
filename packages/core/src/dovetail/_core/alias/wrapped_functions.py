"""Functions with transformations of their arguments and results: `jax.extend.linear_util`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from dovetail._core.ir.jaxpr import DebugInfo


class WrappedFun:
    """A function that is called through transformations, of which some leave results beside.

    Args:
        f: the function.
        params: its keyword arguments.
        debug_info: what it is, for messages.
    """

    def __init__(
        self, f: Callable[..., Any], params: Mapping[str, Any], debug_info: DebugInfo | None
    ) -> None:
        self.f = f
        self.params = dict(params)
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", type(self.f).__name__)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.f(*args, **{**self.params, **kwargs})

    def wrap(self, function: Callable[..., Any]) -> WrappedFun:
        """The same with another function that calls it."""
        return WrappedFun(function, {}, self.debug_info)


def wrap_init(
    f: Callable[..., Any],
    params: Mapping[str, Any] | None = None,
    *,
    debug_info: DebugInfo | None = None,
) -> WrappedFun:
    """A function, ready for transformations.

    Args:
        f: the function.
        params: its keyword arguments.
        debug_info: what it is, for messages.
    """
    return WrappedFun(f, params or {}, debug_info)


class StoreException(Exception):
    """What a transformation leaves beside the results was read before the call, or left twice."""


class Store:
    """What a transformation leaves beside the results."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def store(self, value: Any) -> None:
        """Leave a value.

        Raises:
            StoreException: there is one.
        """
        if self._values:
            raise StoreException("the store is filled already: the function was called twice")
        self._values.append(value)

    @property
    def val(self) -> Any:
        """The value.

        Raises:
            StoreException: there is none yet.
        """
        if not self._values:
            raise StoreException("the store is empty: the function was not called yet")
        return self._values[0]


Transformation = Callable[..., WrappedFun]
WithAux = Callable[..., tuple[WrappedFun, Callable[[], Any]]]


def transformation2(gen: Callable[..., Any], *fixed: Any) -> Any:
    """A transformation from a function `gen(f, *settings, *args)`."""

    def transform(fun: WrappedFun, *settings: Any) -> WrappedFun:
        return fun.wrap(functools.partial(gen, fun.call_wrapped, *settings))

    return transform(*fixed) if fixed else functools.wraps(gen)(transform)


def transformation_with_aux2(gen: Callable[..., Any], *fixed: Any) -> Any:
    """A transformation from a function `gen(f, store, *settings, *args)`."""

    def transform(
        fun: WrappedFun, *settings: Any, use_eq_store: bool = False
    ) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store()
        function = functools.partial(gen, fun.call_wrapped, store, *settings)
        return fun.wrap(function), lambda: store.val

    return transform(*fixed) if fixed else functools.wraps(gen)(transform)


def transformation(gen: Callable[..., Any], *fixed: Any) -> Any:
    """A transformation from a generator `gen(*settings, *args)`.

    It yields a pair, arguments and keyword arguments of the function, is sent the result, and
    yields what is returned.
    """

    def run(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        steps = gen(*args, **kwargs)
        positional, keywords = next(steps)
        return steps.send(call(*positional, **keywords))

    return transformation2(run, *fixed) if fixed else functools.wraps(gen)(transformation2(run))


def transformation_with_aux(gen: Callable[..., Any], *fixed: Any) -> Any:
    """As `transformation`; it ends by yielding what is returned and what is left beside."""

    def run(call: Callable[..., Any], store: Store, *args: Any, **kwargs: Any) -> Any:
        steps = gen(*args, **kwargs)
        positional, keywords = next(steps)
        result, beside = steps.send(call(*positional, **keywords))
        store.store(beside)
        return result

    made = transformation_with_aux2(run)
    return made(*fixed) if fixed else functools.wraps(gen)(made)


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """What one of two transformations has left, and whether it was the first."""
    try:
        return True, aux1()
    except StoreException:
        return False, aux2()


def cache(call: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A function of a wrapped function, unchanged: there is nothing by which to remember it."""
    return call
