"""Names for parts of programs, shown in compiled programs and profiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from dovetail._core.base.restoring import Restoring, within
from dovetail._core.base.tracebacks import bounded
from dovetail._core.trace.scopes import scope
from dovetail._core.transform.flattening import name_of

P = ParamSpec("P")
R = TypeVar("R")


@bounded
class named_scope(Restoring[None]):
    """Context manager and decorator that names the operations inside it.

    In compiled programs, the name precedes the names of operations (``jit(f)/name/sin``), so
    profiles show which part of a model an operation belongs to. Nested scopes give
    ``outer/inner/sin``. Operations that transformations derive keep the scopes, with the
    transformations around the name of the first scope begun inside them: ``jvp(name)/sin``,
    ``transpose(jvp(name))/mul`` in the backward pass, ``vmap(name)/sin``. A function compiled on
    its own has the names of the scopes inside it; scopes around a call of it precede the name of
    the call.

    Scopes do not change results. Operations called outside `jit` are programs of their own and do
    not show scopes.

    Args:
        name: the name. Slashes make nested scopes, an empty name makes none.

    Raises:
        TypeError: `name` is not a string.
        ValueError: `name` cannot be written in UTF-8.

    Example:
        >>> import dovetail as dt
        >>> from dovetail import lax
        >>> @dt.jit
        ... def layer(x):
        ...     with dt.named_scope("activation"):
        ...         return lax.tanh(x)
        >>> "jit(layer)/activation/tanh" in layer.lower(1.0).as_text(debug_info=True)
        True
    """

    __slots__ = ("_names",)

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            advice = "; write @named_scope('name') above the function" if callable(name) else ""
            raise TypeError(
                "named_scope takes a name, which is a string, and got "
                f"{type(name).__name__}: {name!r:.80}{advice}"
            )
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the name of a named_scope must be text in UTF-8: {error}") from None
        self._names = (str(name),) if name else ()
        super().__init__(*scope(self._names))

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Run every call of ``function`` in the scope."""
        return within(partial(Restoring, *scope(self._names)), function)


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Run the operations of a function in a `named_scope`.

    Args:
        fun: the function.
        name: the name of the scope; by default, that of the function.

    Returns:
        A function that behaves like `fun`.

    Raises:
        TypeError: `fun` is not callable, or `name` is not a string.

    Example:
        >>> import dovetail as dt
        >>> from dovetail import lax
        >>> f = dt.jit(lambda x: dt.named_call(lax.sin, name="wave")(x))
        >>> "wave/sin" in f.lower(1.0).as_text(debug_info=True)
        True
    """
    if not callable(fun):
        raise TypeError(f"named_call takes a function, and got {type(fun).__name__}: {fun!r:.80}")
    return named_scope(name_of(fun) if name is None else name)(fun)
