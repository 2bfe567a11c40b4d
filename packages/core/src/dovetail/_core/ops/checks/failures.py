"""Kinds of failures that checks report, and the exceptions that describe them."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

import numpy as np

from dovetail._core.base import caches, dtypes, pytree
from dovetail._core.base.records import record


class JaxRuntimeError(ValueError):
    """A check failed: raised by `Error.throw`, and by a check outside `checkify`."""

    __module__ = "dovetail.experimental.checkify"  # where users know it; tracebacks show this


class JaxException(Exception):
    """A failed check. The subclasses are the categories of errors that `checkify` looks for.

    Attributes:
        place: the line of the user's code, such as ``train.py:12 (loss)``.
        raises: the type of the exception that is raised for it.
    """

    raises: type[Exception] = JaxRuntimeError

    def __init__(self, message: str, place: str) -> None:
        super().__init__(message)
        self.place = place

    @classmethod
    def of(cls, failure: Failure, values: Sequence[Any]) -> JaxException:
        """The exception for a failure, from the values recorded with it."""
        exception = cls(cls.describe(failure, values), failure.place)
        if failure.raises is not None:
            exception.raises = failure.raises
        return exception

    @classmethod
    def describe(cls, failure: Failure, values: Sequence[Any]) -> str:
        """The text of the exception."""
        return f"{failure.message} at {failure.place}"


class FailedCheckError(JaxException):
    """A call of `check` whose condition does not hold."""

    @classmethod
    def describe(cls, failure: Failure, values: Sequence[Any]) -> str:
        args, kwargs = pytree.unflatten(failure.tree, [_Shown(v) for v in values])
        text = failure.message.format(*args, **kwargs)
        return f"{text} (`check` failed at {failure.place})"


class NaNError(JaxException):
    """An operation whose result contains a nan."""


class InfError(JaxException):
    """An operation whose result contains an infinity; only for the option ``debug_infs``."""


class DivisionByZeroError(JaxException):
    """A division by zero."""


class OOBError(JaxException):
    """An index that is out of bounds."""

    @classmethod
    def describe(cls, failure: Failure, values: Sequence[Any]) -> str:
        shape, axes, windows = failure.details
        index, component = (int(v) for v in values)
        axis, window = axes[component], windows[component]
        what = f"index {index}" if window == 1 else f"a slice of size {window} from index {index}"
        return (
            f"out-of-bounds indexing for array of shape {shape}: {what} is out of bounds for axis "
            f"{axis} with size {shape[axis]}, at {failure.place}"
        )


class BatchedError(JaxException):
    """The failures of several elements of a batch.

    Attributes:
        errors: the exception of each element that failed, by its index.
    """

    def __init__(self, errors: dict[tuple[int, ...], JaxException]) -> None:
        lines = [
            f"at mapped index {', '.join(map(str, index))}: {error}"
            for index, error in errors.items()
        ]
        first = next(iter(errors.values()))
        super().__init__("\n".join(lines), first.place)
        self.raises = first.raises
        self.errors = errors


class _Shown:
    """A value in a message: arrays take format specifications element by element."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value if dtypes.is_extended(value.dtype) else np.asarray(value)

    def __format__(self, specification: str) -> str:
        if not specification:
            return str(self.value)
        if dtypes.is_extended(self.value.dtype):
            return format(self.value, specification)
        if not self.value.ndim:
            return format(self.value.item(), specification)

        def shown(element: Any) -> str:
            return format(element.item(), specification)

        return np.array2string(self.value, formatter={"all": shown})

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        if dtypes.is_extended(self.value.dtype):
            return repr(self.value)
        text = np.array2string(self.value, separator=", ", prefix="Array(")
        return f"Array({text}, dtype={self.value.dtype.name})"


@record
class Failure:
    """One kind of failure: a check at one place of a program.

    Attributes:
        category: the exception that describes it.
        message: its text, with fields for values if the category is `FailedCheckError`.
        place: the line of the user's code.
        tree: the structure of the values that are recorded when it happens.
        avals: avals of these values.
        details: further data for the text.
        raises: the type of the exception to raise; only `debug.check` has one.
    """

    category: type[JaxException]
    message: str
    place: str
    tree: Any = None
    avals: tuple[Any, ...] = ()
    details: Any = None
    raises: type[Exception] | None = None

    @property
    def code(self) -> int:
        """The number of this kind in programs; equal kinds have the same."""
        number = _codes.get(self)
        if number is None:
            number = _codes[self] = next(_numbers)
        return number

    def exception(self, values: Sequence[Any]) -> JaxException:
        """The exception, from the recorded values."""
        return self.category.of(self, values)


_codes: Final[dict[Failure, int]] = {}
_numbers: Final = count()
caches.register(_codes.clear)


def check_fields(caller: str, message: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise unless a message has a value for each of its fields.

    Raises:
        TypeError: the message is not a string.
        ValueError: a field has no value, or the message is not a format string.
    """
    if not isinstance(message, str):
        raise TypeError(f"{caller}: the message must be a string, got {type(message).__name__}")
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(message) if name is not None]
    except ValueError as error:
        raise ValueError(
            f"{caller}: the message {message!r} is no format string ({error}); write {{{{ and }}}} "
            "for braces that are part of the text"
        ) from None
    numbered = count()
    for field in fields:
        root = field.split(".")[0].split("[")[0] or str(next(numbered))
        if root.isdecimal() and int(root) >= len(args):
            raise ValueError(
                f"{caller}: the message {message!r} has a field for the value number {root}, and "
                f"{len(args)} are given by position"
            )
        if not root.isdecimal() and root not in kwargs:
            raise ValueError(
                f"{caller}: the message {message!r} has the field {{{field}}}, and no value of "
                f"that name is given; add {root}=..."
            )
