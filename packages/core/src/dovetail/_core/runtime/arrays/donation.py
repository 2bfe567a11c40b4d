"""Donated arguments: clear errors when they are used again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import update_wrapper
from typing import Any, Final

from dovetail._core.base import pytree
from dovetail._core.base.bindings import JaxRuntimeError, get_traceback
from dovetail._core.base.errors import DeletedArrayError
from dovetail._core.runtime.arrays.array import Array, KeyArray, retire
from dovetail._core.transform.flattening import leaf_names

__all__ = ["donating", "raise_explained", "retire_donated"]

# XLA's wording when the first of the two arguments is donated, the second, and both.
_GIVEN_TWICE: Final = (
    "previously donated in the same call",
    "Attempt to donate a buffer which is also used by the same call",
    "Attempt to donate the same buffer twice",
)


def raise_explained(
    error: Exception, name: str, leaves: Sequence[Any], names: Callable[[], Sequence[str]]
) -> None:
    """Raise a clearer error if XLA's is about an array that a call both donates and uses.

    Args:
        error: XLA's error.
        name: the name of the called function.
        leaves: the leaves of its arguments.
        names: gives their names, such as ``params['w']``.

    Raises:
        JaxRuntimeError: XLA's error is about that.
    """
    if any(words in str(error) for words in _GIVEN_TWICE):
        pair = _sharing(leaves)
        which = ""
        if pair is not None:
            labels = names()
            which = f", as {labels[pair[0]]} and as {labels[pair[1]]}"
        raise JaxRuntimeError(
            f"{name} was given one array twice, or two that share memory{which}, and donates it: a "
            "donated array must not be used for another argument of the same call. Pass a copy "
            "for one of the two, with dovetail.numpy.copy(x)"
        ) from None


def _sharing(leaves: Sequence[Any]) -> tuple[int, int] | None:
    """The numbers of two arrays that are in one place in memory; None if none are found."""
    seen: dict[Any, int] = {}
    for number, leaf in enumerate(leaves):
        if not isinstance(leaf, Array) or not leaf.size:
            continue
        buffer = leaf._any_buffer()
        try:
            place = buffer.unsafe_buffer_pointer()
        except (RuntimeError, ValueError, AttributeError):
            place = id(buffer)  # it is deleted, on several devices, or of a backend in Python
        first = seen.setdefault(place, number)
        if first != number:
            return first, number
    return None


def retire_donated(values: Iterable[Any], action: str, *, delete: bool = False) -> None:
    """Mark the arrays that a call has donated, so that using them again raises a clear error.

    Args:
        values: the donated arguments, pytrees.
        action: what was done to them: ``"donated to step"``.
        delete: whether to delete all, as a call without a program has deleted none.
    """
    traceback = None
    for value in values:
        leaves = (value,) if type(value) is Array else pytree.leaves(value)
        for leaf in leaves:
            if type(leaf) is not Array and type(leaf) is not KeyArray:
                continue
            try:
                gone = delete or leaf._buffer.is_deleted()
            except DeletedArrayError:
                continue
            if gone:
                if traceback is None:
                    traceback = get_traceback()
                retire(leaf, action, traceback)
            if delete:
                leaf._any_buffer().delete()


def donating(
    compiled: Callable[..., Any],
    name: str,
    donate_argnums: Sequence[int],
    donate_argnames: Sequence[str] = (),
) -> Callable[..., Any]:
    """Wrap a function to mark the arrays that were donated to it.

    The C++ path runs no Python, so it cannot do that; the wrapper costs about a microsecond.

    Args:
        compiled: the function, from `pjit_function`.
        name: its name, for messages.
        donate_argnums: indices of the donated arguments.
        donate_argnames: names of the donated keyword arguments.
    """
    numbers, names = tuple(donate_argnums), tuple(donate_argnames)
    action = f"donated to {name}"

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            result = compiled(*args, **kwargs)
        except (JaxRuntimeError, ValueError) as error:
            leaves = pytree.leaves((args, dict(sorted(kwargs.items()))))
            raise_explained(error, name, leaves, lambda: leaf_names(compiled, args, kwargs))
            raise
        retire_donated([args[n] for n in numbers if n < len(args)], action)
        if names and kwargs:
            retire_donated([kwargs[n] for n in names if n in kwargs], action)
        return result

    return update_wrapper(call, compiled)
