"""Values that functions depend on beside their arguments, set for a block."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Generic, TypeVar

from dovetail._core.base.options import Cell
from dovetail._core.base.restoring import Restoring

__all__ = ["UserContext", "make_user_context", "user_contexts"]

T = TypeVar("T", bound=Hashable)

_made: list[UserContext[Hashable]] = []


class UserContext(Generic[T]):
    """A value that functions may read while they are traced; `make_user_context` makes one."""

    __slots__ = ("_cell",)

    def __init__(self, default: T) -> None:
        self._cell: Cell[T] = Cell(
            "user_context", default, include_in_jit_key=True, include_in_trace_context=True
        )

    @property
    def value(self) -> T:
        """The value in this thread: that of the innermost block, else that of the process."""
        return self._cell.value

    def get_global(self) -> T:
        """The value of the process."""
        return self._cell.get_global()

    def set_global(self, value: T) -> None:
        """Set the value for every thread that is in no block.

        Args:
            value: the value, which can be hashed.
        """
        hash(value)
        self._cell.set_global(value)

    def __call__(self, value: T) -> Restoring[None]:
        """A block in which it has another value, for this thread.

        Args:
            value: the value, which can be hashed.
        """
        hash(value)
        cell = self._cell
        return Restoring(cell.get_local, partial(cell.set_local, value), cell.set_local)

    def __repr__(self) -> str:
        return f"<user context = {self.value!r}>"


def make_user_context(default_value: T = None) -> UserContext[T]:  # type: ignore[assignment]
    """Make a value of one's own that jitted functions depend on, like an option.

    A jitted function that was traced with one value is traced again with another. Make it at the
    top level of a module: it is kept for the life of the process.

    Args:
        default_value: the value outside of all blocks, which can be hashed.

    Returns:
        An object with the attribute `value`, which is called with a value for ``with``.

    Raises:
        TypeError: a value cannot be hashed.

    Example:
        >>> import dovetail as dt
        >>> scale = dt.make_user_context(2)
        >>> f = dt.jit(lambda x: x * scale.value)
        >>> with scale(5):
        ...     print(f(1))
        5
        >>> print(f(1))
        2
    """
    hash(default_value)
    context = UserContext(default_value)
    _made.append(context)  # type: ignore[arg-type]
    return context


def user_contexts() -> int:
    """How many have been made; their values are the last ones of the key of traces."""
    return len(_made)
