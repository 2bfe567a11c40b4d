"""Records: what `dataclass(frozen=True, slots=True)` makes, in a tenth of the time.

For each class `dataclasses` compiles the source text of its methods, which takes a millisecond: for
the classes that a process needs to start, a quarter of what the framework takes. Here methods are
closures over the names of the fields.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T", bound=type)


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def record(cls: T, /) -> T: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def record(*, eq: bool = True, kw_only: bool = False) -> Callable[[T], T]: ...


def record(cls: T | None = None, /, *, eq: bool = True, kw_only: bool = False) -> Any:
    """Make a frozen dataclass with slots of a class; a decorator.

    Args:
        cls: the class.
        eq: whether instances with equal fields are equal.
        kw_only: whether fields are given by keyword alone.
    """
    if cls is None:
        return lambda cls: _record(cls, eq, kw_only)
    return _record(cls, eq, kw_only)


def _record(cls: Any, eq: bool, kw_only: bool) -> Any:
    # Whatever inherits from a frozen dataclass has to be one.
    frozen = any(map(is_dataclass, cls.__bases__))
    made: Any = dataclass(
        init=False, repr=False, eq=False, frozen=frozen, slots=True, kw_only=kw_only
    )(cls)
    made.__dataclass_params__.frozen = True
    initializer = _initializer(made)
    methods = {
        "__init__": initializer,
        "__signature__": _LazySignature(initializer),
        "__repr__": _representer([field.name for field in fields(made) if field.repr]),
        "__setattr__": _refuse_assignment,
        "__delattr__": _refuse_deletion,
        "__getstate__": _state,
        "__setstate__": _set_state,
    }
    if eq:
        values = _values([field.name for field in fields(made) if field.compare])
        methods["__eq__"] = _comparer(values)
        methods["__hash__"] = lambda self: hash(values(self))
    for name, method in methods.items():
        if made.__dict__.get(name) is None:  # a class that defines __eq__ alone has __hash__ = None
            setattr(made, name, method)
    return made


def _initializer(cls: type) -> Callable[..., None]:
    own = fields(cls)
    count = len(own)
    order = [field.name for field in own if not field.kw_only]
    in_order = len(order) == count
    setters = [getattr(cls, field.name).__set__ for field in own]
    check = getattr(cls, "__post_init__", None)

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:
        if named or len(values) != count or not in_order:
            values, mistake = _arranged(own, order, values, named)
            if mistake:
                raise TypeError(f"{cls.__qualname__}.__init__() {mistake}")
        for set_value, value in zip(setters, values, strict=True):
            set_value(self, value)
        if check is not None:
            check(self)

    return __init__


def _arranged(
    own: tuple[Field[Any], ...],
    order: list[str],
    values: tuple[Any, ...],
    named: Mapping[str, Any],
) -> tuple[tuple[Any, ...], str]:
    """The value of each field; and what is wrong with the arguments, if anything is."""
    if len(values) > len(order):
        takes = f"{len(order) + 1} positional argument{'s' * bool(order)}"
        return (), f"takes {takes} but {len(values) + 1} were given"
    given = dict(zip(order, values, strict=False))
    for name in named:
        if name in given:
            return (), f"got multiple values for argument '{name}'"
    given.update(named)
    arranged, missing = [], []
    for each in own:
        if each.name in given:
            arranged.append(given.pop(each.name))
        elif each.default is not MISSING:
            arranged.append(each.default)
        elif each.default_factory is not MISSING:
            arranged.append(each.default_factory())
        else:
            missing.append(f"'{each.name}'")
    for name in given:
        return (), f"got an unexpected keyword argument '{name}'"
    if missing:
        plural = "s" * (len(missing) > 1)
        return (), f"missing {len(missing)} required argument{plural}: {', '.join(missing)}"
    return tuple(arranged), ""


class _LazySignature:
    """The signature of a record's class, made when somebody asks for it."""

    def __init__(self, initializer: Callable[..., None]) -> None:
        self._initializer = initializer

    def __get__(self, instance: object, cls: Any) -> inspect.Signature:
        if instance is not None or cls.__init__ is not self._initializer:
            raise AttributeError("__signature__")
        kinds = inspect.Parameter
        parameters = [
            kinds(
                each.name,
                kinds.KEYWORD_ONLY if each.kw_only else kinds.POSITIONAL_OR_KEYWORD,
                default=_shown_default(each),
                annotation=each.type,
            )
            for each in sorted(fields(cls), key=lambda field: bool(field.kw_only))
        ]
        return inspect.Signature(parameters)


def _shown_default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    return inspect.Parameter.empty


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns the values of fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _comparer(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:
        return (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )

    return __eq__


def _representer(names: list[str]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__


def _refuse_assignment(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
