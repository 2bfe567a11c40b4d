"""Functions that are traced once for arguments of the same types."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dis import get_instructions
from enum import Enum
from functools import lru_cache, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, Generic, TypeVar
from weakref import ref

import numpy as np

from dovetail._core.base import caches, config
from dovetail._core.base.strictness import strictness

__all__ = ["TracedOnce"]

V = TypeVar("V")

_MAX_SIGNATURES: Final = 1024
#: A function with more variables than this, or whose variables lead to more, is always traced.
_MAX_VARIABLES: Final = 256
_CHANGEABLE: Final = (list, dict, set, bytearray, np.ndarray)
#: Packages whose objects stay what they are, but for these.
_CONSTANT: Final = frozenset(
    {"builtins", "dovetail", "dovetail_native", "functools", "jaxlib", "ml_dtypes", "numpy"}
)


class TracedOnce(Generic[V]):
    """What functions were traced to, while they live and their variables hold the same.

    The variables of a function are those that it names and does not set, with the elements of
    tuples, attributes of modules and classes, and variables of functions of the same file that they
    hold. If one holds another object than before, the function is traced anew. If one holds what
    may change and stay the same object, such as a list or an instance of a user's class, it always
    is. With the policy of JAX, no variable is looked at.
    """

    def __init__(self) -> None:
        self._tables = caches.ByFunction()

    def of(
        self,
        function: Callable[..., Any],
        signature: Hashable,
        trace: Callable[[], V],
        may_stay: Callable[[V], bool],
    ) -> V:
        """What a function was traced to, or is traced to now.

        Args:
            function: the user's function.
            signature: how it is called; the options that affect tracing are added here.
            trace: traces it.
            may_stay: whether later calls may use what it was traced to.
        """
        if config.check_tracer_leaks.value:
            return trace()
        key = (signature, config.trace_key())
        try:
            entries = self._tables.of(function)
            entry: tuple[V, list[Any]] | None = entries.get(key)
        except TypeError:  # the function or the signature has no hash
            return trace()
        variables = _variables(function)
        if entry is not None and variables is not None and _same(entry[1], variables):
            return entry[0]
        traced = trace()
        if variables is not None and may_stay(traced):
            if len(entries) >= _MAX_SIGNATURES:
                del entries[next(iter(entries))]
            entries[key] = traced, list(map(_held, variables))
        return traced


def _variables(function: Callable[..., Any]) -> list[Any] | None:
    """What the variables of a function hold; None if some of it may change unseen."""
    if not strictness().bodies_see_changes:
        return []
    if not isinstance(function, (FunctionType, partial)):
        return None
    whole: Any = function
    while isinstance(whole, partial):
        whole = whole.func
    file = whole.__code__.co_filename if type(whole) is FunctionType else None
    found: list[Any] = [function]
    seen = {id(function)}
    for holder in found:
        for value in _held_by(holder, file):
            if _may_change(value) or len(found) > _MAX_VARIABLES:
                return None
            if id(value) not in seen:
                seen.add(id(value))
                found.append(value)
    return found[1:]


def _may_change(value: Any) -> bool:
    """Whether something may change and stay the same object."""
    kind = type(value)
    if isinstance(value, _CHANGEABLE):
        return True
    if kind.__module__.partition(".")[0] in _CONSTANT or isinstance(value, (type, tuple, Enum)):
        return False
    return hasattr(value, "__dict__") or hasattr(kind, "__slots__")


def _held_by(holder: Any, file: str | None) -> Iterator[Any]:
    """What a tuple holds, or the variables of a function of the file."""
    if isinstance(holder, tuple):
        yield from holder
    elif type(holder) is partial:
        yield from (holder.func, *holder.args, *holder.keywords.values())
    elif type(holder) is FunctionType and holder.__code__.co_filename == file:
        yield from holder.__defaults__ or ()
        yield from (holder.__kwdefaults__ or {}).values()
        code = holder.__code__
        own = _set_in(code)
        cells = zip(code.co_freevars, holder.__closure__ or (), strict=True)
        yield from [_content(cell) for name, cell in cells if name not in own]
        names = [name for name in _names(code) if name not in own]
        values = [holder.__globals__[name] for name in names if name in holder.__globals__]
        yield from values
        for value in values:
            if isinstance(value, (ModuleType, type)):
                yield from [vars(value)[name] for name in names if name in vars(value)]


@lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[str, ...]:
    """The global variables and attributes that code names, with the functions inside it."""
    inside = [name for c in code.co_consts if isinstance(c, CodeType) for name in _names(c)]
    return tuple(dict.fromkeys((*code.co_names, *inside)))


@lru_cache(maxsize=1024)
def _set_in(code: CodeType) -> frozenset[str]:
    """The variables of other scopes that code sets, such as a counter."""
    inside = [name for c in code.co_consts if isinstance(c, CodeType) for name in _set_in(c)]
    setting = ("STORE_DEREF", "STORE_GLOBAL")
    return frozenset([*inside, *(i.argval for i in get_instructions(code) if i.opname in setting)])


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable is not set yet
        return None


def _held(value: Any) -> Any:
    """A value as it is kept, weakly if that can be: it may lead back to the function."""
    try:
        return ref(value)
    except TypeError:
        return value


def _same(kept: list[Any], variables: list[Any]) -> bool:
    return len(kept) == len(variables) and all(
        (k() if type(k) is ref else k) is v for k, v in zip(kept, variables, strict=True)
    )
