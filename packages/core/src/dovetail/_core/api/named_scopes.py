"""Names for parts of programs, which compiled programs and profiles show."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType
from typing import ParamSpec, TypeVar

from dovetail._core.trace.scopes import enter_scope, leave_scope
from dovetail._core.transform.flattening import name_of

P = ParamSpec("P")
R = TypeVar("R")


class named_scope(ContextDecorator):
    """Context manager and decorator that names the operations inside it.

    The name stands before the names of operations in compiled programs (``jit(f)/name/sin``), so
    that profiles show to which part of a model an operation belongs. Scopes in scopes give
    ``outer/inner/sin``. What transformations derive from an operation keeps its scopes, with the
    transformations around the name of the first scope begun inside them: ``jvp(name)/sin``,
    ``transpose(jvp(name))/mul`` on the way back, ``vmap(name)/sin``. A function compiled on its own
    has the names of the scopes inside it; those around a call of it stand before the call.

    Results do not depend on scopes, and operations that are called outside of `jit`, which are
    programs of their own, do not show them.

    Args:
        name: the name. One with slashes stands for scopes in scopes, an empty one for none.

    Raises:
        TypeError: `name` is no string.
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

    # Nothing is kept here of who is inside: one object may be used again, inside itself too, and
    # by several threads.
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

    def __enter__(self) -> None:
        enter_scope(self._names)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        leave_scope()


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """A function whose operations are in a `named_scope`.

    Args:
        fun: the function.
        name: the name of the scope; that of the function if None.

    Returns:
        A function that does what `fun` does.

    Raises:
        TypeError: `fun` is not callable, or `name` is no string.

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
