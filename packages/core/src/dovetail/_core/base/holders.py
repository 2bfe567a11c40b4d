"""Finds what keeps an object alive: chains of references from something with a name in user code.

The reported chain is the shortest one that begins at a global of a module, an attribute of a class,
a default argument or the cache of a function, or a variable of a running function. The garbage
collector does not traverse running functions; their variables are read from their frames.

Types are compared directly, because ``isinstance`` may run code of the inspected objects.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from types import (
    AsyncGeneratorType,
    CellType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
    TracebackType,
)
from typing import Any, Final

from dovetail._core.base.records import record
from dovetail._core.base.source import is_internal, short_file

__all__ = ["Chain", "Holders"]

_LONGEST: Final = 24  # references: an attribute of an object is two, a variable of a closure three
_WIDEST: Final = 128  # objects per level of the search whose holders are looked up
_MOST_OBJECTS: Final = 1024
_AT_ONCE: Final = 32  # batch size: the collector compares every reference with each object

_HELPERS: Final = ("contextlib", "functools")  # internal as running code, but not as data
_TRANSPARENT: Final = (CellType, MappingProxyType, TracebackType)
_CACHED: Final = type(functools.cache(lambda: None))
_STOPPED_FRAMES: Final = {
    GeneratorType: "gi_frame",
    CoroutineType: "cr_frame",
    AsyncGeneratorType: "ag_frame",
}


@record
class Chain:
    """What keeps an object alive.

    Attributes:
        text: the chain in words, starting next to the object; empty if nothing is known.
        kind: the kind of holder: ``"cache"`` of a function, ``"closure"``, ``"generator"``,
            ``"traceback"``; empty for ordinary data.
    """

    text: str
    kind: str


class Holders:
    """Finds what keeps objects alive.

    Args:
        objects: the objects to examine.
        ignored: objects that do not count as holders.
        allowed: types of the framework's objects that may hold them.
    """

    def __init__(
        self,
        objects: Sequence[Any],
        ignored: Iterable[Any] = (),
        allowed: tuple[type, ...] = (),
    ) -> None:
        self._allowed = allowed
        self._limit = len(objects)
        self._seen: dict[int, Any] = {id(x): x for x in objects}
        self._holders: dict[int, list[int]] = {}
        self._ignored = {id(x) for x in (self._seen, objects, *ignored)}
        self._variables: dict[int, tuple[str, str]] = {}
        for name, value, place in self._running():
            self._variables.setdefault(id(value), (name, place))
        self._expand(list(self._seen))

    def chain(self, value: Any) -> Chain | None:
        """What keeps an object alive; None if only allowed holders do.

        Args:
            value: one of the objects.
        """
        self._limit = len(self._holders) + _MOST_OBJECTS
        allowed = False
        held_by: dict[int, int] = {}  # from a holder to the next object on the way to `value`
        level, last, found = [id(value)], id(value), None
        for _ in range(_LONGEST):
            known = [key for key in level if key in self._variables or self._has_name(key)]
            found = min(known, key=self._rank, default=None)
            if found is not None or not level:
                break
            self._expand(level[:_WIDEST])
            above = []
            for key in level:
                for holder in self._holders.get(key, ()):
                    if type(self._seen[holder]) in self._allowed:
                        allowed = True
                    elif holder != id(value) and holder not in held_by:
                        held_by[holder] = key
                        above.append(holder)
            level = sorted(above, key=self._rank)
            last = level[0] if level else last
        if allowed and found is None:
            return None
        key = position = last if found is None else found
        chain = [self._seen[key]]
        while position in held_by:
            position = held_by[position]
            chain.append(self._seen[position])
        described = _Description(chain, None if self._has_name(key) else self._variables.get(key))
        return Chain(described.text, described.kind)

    def _running(self) -> Iterator[tuple[str, Any, str]]:
        """Names and values of the variables of the user's running functions."""
        for innermost in sys._current_frames().values():
            frame: FrameType | None = innermost
            while frame is not None:
                code = frame.f_code
                # Reading f_locals has Python keep a copy with the frame, so nothing else is read.
                if code.co_name != "<module>" and not is_internal(code.co_filename):
                    variables = frame.f_locals
                    if type(variables) is dict:
                        self._ignored.add(id(variables))
                    place = f"{code.co_qualname}, running at {_file_of(code)}:{frame.f_lineno}"
                    for name, value in variables.items():
                        yield name, value, place
                frame = frame.f_back

    def _expand(self, keys: list[int]) -> None:
        """Find the holders of objects."""
        missing = [key for key in keys if key not in self._holders and not self._is_end(key)]
        for start in range(0, len(missing), _AT_ONCE):
            if len(self._holders) > self._limit:
                return
            found: dict[int, list[int]] = {key: [] for key in missing[start : start + _AT_ONCE]}
            self._holders.update(found)
            # Since Python 3.13 the tuple of arguments is among the referrers.
            objects = tuple([self._seen[key] for key in found])
            for holder in gc.get_referrers(*objects):
                if holder is objects or id(holder) in self._ignored:
                    continue
                if issubclass(type(holder), ModuleType):
                    continue
                for held in gc.get_referents(holder):
                    if id(held) in found:
                        self._seen[id(holder)] = holder
                        found[id(held)].append(id(holder))

    def _is_end(self, key: int) -> bool:
        """Whether the search ends at an object: a class, or the globals of a module."""
        value = self._seen[key]
        return issubclass(type(value), type) or (type(value) is dict and _is_namespace(value))

    def _has_name(self, key: int) -> bool:
        """Whether a user's object has a name of its own, independent of its holders."""
        value = self._seen[key]
        if self._is_end(key):
            return not _is_framework(value)
        if type(value) is FunctionType or type(value) is _CACHED:
            local = "<locals>" in getattr(value, "__qualname__", "")
            return not local and not _is_framework(value)
        return False

    def _rank(self, key: int) -> int:
        """The search order of holders at the same distance; lower comes first."""
        value = self._seen[key]
        if _is_framework(value):
            return 3
        if type(value) is FrameType:
            return 2
        return 1 if key in self._variables else 0


def _is_namespace(value: dict[Any, Any]) -> bool:
    """Whether a dict holds the globals of a module."""
    name = value.get("__name__")
    if type(name) is not str:
        return False
    return "__builtins__" in value or vars(sys.modules.get(name, _NO_MODULE)) is value


_NO_MODULE: Final = ModuleType("none")


def _is_framework(value: Any) -> bool:
    """Whether an object is part of the framework, so that its name means nothing to a user."""
    code = _code_of(value)
    if code is not None:
        return is_internal(code.co_filename)
    if type(value) is dict:
        module = value["__name__"] if _is_namespace(value) else ""
    else:
        module = (value if issubclass(type(value), type) else type(value)).__module__
    file = getattr(sys.modules.get(str(module)), "__file__", None)
    return file is not None and module not in _HELPERS and is_internal(file)


def _code_of(value: Any) -> CodeType | None:
    while type(value) is _CACHED:
        value = value.__wrapped__
    if type(value) is FrameType:
        return value.f_code
    return value.__code__ if type(value) is FunctionType else None


def _file_of(code: CodeType) -> str:
    return short_file(code.co_filename)


def _name_of(function: Any) -> str:
    code = _code_of(function)
    name = getattr(function, "__qualname__", type(function).__name__)
    return name if code is None else f"{name} ({_file_of(code)}:{code.co_firstlineno})"


class _Description:
    """A chain of objects in words, as expressions that a user can read.

    Args:
        chain: the objects, from the outermost holder to the held object.
        variable: name and running function of the variable that holds the outermost holder, if
            that is how it is known.
    """

    def __init__(self, chain: Sequence[Any], variable: tuple[str, str] | None) -> None:
        self._chain = chain
        self._parts: list[str] = []
        self.kind = ""
        # The current part: its expression, the name that the expression begins with, where that
        # name is, and whether the rest of the expression is unknown.
        self._path = self._name = self._where = ""
        self._within = False
        self._attributes = False
        if variable is not None:
            self._begin(variable[0], f"a variable of {variable[1]}")
        position = 0
        while position + 1 < len(chain):
            position += self._step(position)
        self._end()

    @property
    def text(self) -> str:
        """The chain in words, starting next to the object."""
        return "  <-  ".join(self._parts[::-1])

    def _begin(self, name: str, where: str, kind: str = "") -> None:
        self._end()
        self._path = self._name = name
        self._where = where
        self._within = self._attributes = False
        self.kind = kind or self.kind

    def _end(self) -> None:
        if not self._path:
            return
        text = f"something within {self._path}" if self._within else self._path
        if self._where:
            exact = self._path == self._name and not self._within
            subject = "" if exact else f"where {self._name} is "
            text = f"{text}, {subject}{self._where}"
        self._parts.append(text)

    def _add(self, accessor: str | None) -> None:
        """Append an accessor to the expression; None if it is unknown."""
        if not self._path:
            self._begin(f"<{type(self._chain[0]).__name__}>", "")
        if accessor is None:
            self._within = True
        elif not self._within:
            self._path += accessor

    def _step(self, position: int) -> int:
        """Describe one step along the chain; return the number of objects to advance."""
        holder, held = self._chain[position : position + 2]
        last = self._chain[min(position + 2, len(self._chain) - 1)]
        attributes, self._attributes = self._attributes, False
        kind = type(holder)
        if kind is dict and position == 0 and _is_namespace(holder):
            self._begin(str(_key_of(holder, held)), f"a global of the module {holder['__name__']}")
        elif issubclass(kind, type) and position == 0:
            name = f"{holder.__module__}.{holder.__qualname__}"
            self._begin(holder.__name__, f"the class {name}")
            self._attributes = True
            if type(held) is dict:
                return 1
            self._add(None)
        elif kind is FunctionType and not _is_framework(holder):
            return self._step_into_function(holder, held, last)
        elif kind is _CACHED:
            where = f"a result in the cache of {_name_of(holder)}"
            self._begin(f"{holder.__name__}(...)", where, "cache")
            # Without a limit the results are in a dict.
            return 2 if holder.cache_parameters()["maxsize"] is None else 1
        elif kind in _STOPPED_FRAMES or kind is FrameType:
            self._step_into_frame(holder, held, last)
        elif _is_framework(holder) or kind is FunctionType:
            self._add(None)
        elif type(held) is dict and _dict_of(holder) is held:
            self._attributes = True
        elif issubclass(kind, dict):
            key = _key_of(holder, held)
            self._add(f".{key}" if attributes and type(key) is str else _index(key))
        elif issubclass(kind, (list, tuple, deque)):
            self._step_into_sequence(holder, held)
        elif kind not in _TRANSPARENT and type(held) is not TracebackType:
            self._add(_attribute_of(holder, held))
        return 1

    def _step_into_function(self, function: FunctionType, held: Any, last: Any) -> int:
        name = _name_of(function)
        if held is function.__closure__:
            cells = function.__closure__ or ()
            variables = zip(function.__code__.co_freevars, cells, strict=True)
            variable = next((v for v, cell in variables if cell is last), "a variable")
            where = f"a variable of an enclosing function that {name} uses"
            self._begin(variable, where, "closure")
            return 2
        if held is function.__defaults__ or held is function.__kwdefaults__:
            self._begin(_argument_of(function, last), f"a default argument of {name}")
            return 2
        if held is function.__dict__:
            if not self._path:
                self._begin(function.__name__, f"the function {name}")
            self._attributes = True
            return 1
        self._add(_attribute_of(function, held))
        return 1

    def _step_into_frame(self, holder: Any, held: Any, last: Any) -> None:
        attribute = _STOPPED_FRAMES.get(type(holder))
        frame = holder if attribute is None else getattr(holder, attribute)
        if frame is None or type(held) is FrameType:
            return
        if is_internal(frame.f_code.co_filename):
            self._add(None)
            self.kind = "traceback"
            return
        named = [n for n, value in frame.f_locals.items() if value is held or value is last]
        place = f"{frame.f_code.co_qualname} ({_file_of(frame.f_code)}:{frame.f_lineno})"
        if attribute is None:
            where, kind = f"a variable of {place}, which a traceback keeps", "traceback"
        else:
            where, kind = f"a variable of the {type(holder).__name__} {place}", "generator"
        self._begin(named[0] if named else "a value", where, kind)

    def _step_into_sequence(self, holder: Any, held: Any) -> None:
        index = next((i for i, value in enumerate(holder) if value is held), None)
        fields = getattr(type(holder), "_fields", ())
        if index is None:  # an attribute of a subclass
            self._add(_attribute_of(holder, held))
        elif issubclass(type(holder), tuple) and index < len(fields):
            self._add(f".{fields[index]}")
        else:
            self._add(f"[{index}]")


def _key_of(holder: dict[Any, Any], held: Any) -> Any:
    return next((key for key, value in dict.items(holder) if value is held), held)


def _index(key: Any) -> str | None:
    """The index expression for a key of a dict."""
    if type(key) in (str, int, float, bool, bytes, tuple, type(None)):
        return f"[{key!r:.60}]"
    return f"[<{type(key).__name__}>]"


def _argument_of(function: FunctionType, value: Any) -> str:
    """The name of the argument with a default value."""
    code = function.__code__
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount][-len(defaults) :]
    known = [*zip(names, defaults, strict=False), *(function.__kwdefaults__ or {}).items()]
    return next((name for name, default in known if default is value), "an argument")


def _dict_of(holder: Any) -> Any:
    """The dict with an object's attributes."""
    try:
        return object.__getattribute__(holder, "__dict__")
    except Exception:  # perhaps from a user's property; a message must not fail because of it
        return None


def _attribute_of(holder: Any, held: Any) -> str | None:
    """The attribute expression whose value is `held`; None if there is none."""
    attributes = _dict_of(holder)
    if type(attributes) is dict:
        for name, value in attributes.items():
            if value is held:
                return f".{name}"
    for cls in type(holder).__mro__:
        for name, descriptor in vars(cls).items():
            if type(descriptor) is MemberDescriptorType:
                try:
                    value = descriptor.__get__(holder, type(holder))
                except AttributeError:  # an empty slot
                    continue
                if value is held:
                    return f".{name}"
    return None
