"""Context managers that undo what they did on every way out, at whichever instruction that begins.

A signal handler may raise anywhere, also at the first instruction of an ``__exit__``, which then
has restored nothing. The managers here survive that. Python looks up ``__exit__`` when a block is
entered, keeps the result on the stack of the frame, and drops it when the block is left in any way.
Here that result is an object of its own, to which nothing else refers; what happens when it is
dropped before it was called, or while it runs, is that a weak reference restores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar
from weakref import ref

__all__ = ["Restoring", "within"]

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class _Manager(type):
    # `contextlib.ExitStack` and `unittest` look the two up on the class, and call them with the
    # manager. Instances are not looked up here.
    __enter__ = property(lambda _: _enter_manager)
    __exit__ = property(lambda _: _leave_manager)


def _enter_manager(manager: Restoring[R]) -> R:
    return manager.__enter__()


def _leave_manager(manager: Restoring[Any], *error: object) -> None:
    manager.__exit__(*error)


class Restoring(Generic[R], metaclass=_Manager):
    """A context manager that saves a state, changes it, and restores it.

    Each function must be right to call at any time, again too: restoring what is restored does
    nothing. None of them may refer to the manager, or to a frame that does: an exception keeps the
    variables of the functions that it went through, and with them what they refer to.

    A manager may be entered again while it is entered, and by several threads.

    Args:
        save: returns what `restore` needs.
        change: makes the change; the block gets what it returns.
        restore: takes what `save` has returned.
    """

    __slots__ = ("__enter__", "__exit__")

    if TYPE_CHECKING:

        def __enter__(self) -> R: ...
        def __exit__(self, *error: object) -> None: ...

    def __init__(
        self, save: Callable[[], Any], change: Callable[[], R], restore: Callable[[Any], object]
    ) -> None:
        entries: list[_Entry] = []
        leave = partial(_leave, entries, restore)
        guard = ref(leave, partial(_restore_now, entries, restore))
        self.__exit__ = leave  # type: ignore[method-assign]
        self.__enter__ = partial(  # type: ignore[method-assign]
            _enter, entries, guard, save, change
        )


def within(make: Callable[[], Restoring[Any]], function: Callable[P, S]) -> Callable[P, S]:
    """`function`, each call of which runs within a manager of its own, made by `make`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> S:
        with make():
            return function(*args, **kwargs)

    return call


#: The weak reference, which lives while the block is entered; the thread; what was saved.
_Entry = tuple["ref[partial[None]]", int, Any]


def _enter(
    entries: list[_Entry],
    guard: ref[partial[None]],
    save: Callable[[], Any],
    change: Callable[[], R],
) -> R:
    entries.append((guard, get_ident(), save()))
    return change()


def _leave(entries: list[_Entry], restore: Callable[[Any], object], *error: object) -> None:
    position = -1
    if len(entries) > 1:
        thread = get_ident()
        while entries[position][1] != thread:
            position -= 1
    restore(entries[position][2])
    del entries[position]


def _restore_now(entries: list[_Entry], restore: Callable[[Any], object], _: object) -> None:
    """Restore in place of an ``__exit__`` that did not run to its end."""
    while entries:
        restore(entries.pop()[2])
