"""The types of option values, in Python and in the environment."""

from __future__ import annotations

import enum
import os
import typing
from typing import Any, TypeVar

__all__ = [
    "Bool",
    "Choice",
    "CompilerEffortLevel",
    "DeviceName",
    "Effort",
    "Float",
    "Int",
    "Kind",
    "Pairs",
    "Platforms",
    "Text",
]

T = TypeVar("T")


class Kind(typing.Generic[T]):
    """The values that an option accepts, in Python and in the environment."""

    description: str = ""

    def parse(self, text: str) -> T:
        """Parse ``text`` from the environment; ValueError if it is invalid."""
        raise ValueError(text)

    def check(self, value: Any) -> T:
        """Convert a value to its stored form; TypeError or ValueError if it is not allowed."""
        raise TypeError(value)


class Bool(Kind[bool]):
    """True or false."""

    description = "True or False (in the environment: 1, true, yes, on, 0, false, no, off)"

    def parse(self, text: str) -> bool:
        lowered = text.strip().lower()
        if lowered in ("1", "true", "t", "yes", "y", "on"):
            return True
        if lowered in ("0", "false", "f", "no", "n", "off", ""):
            return False
        raise ValueError(text)

    def check(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if type(value).__name__ in ("bool_", "bool") or (type(value) is int and value in (0, 1)):
            return bool(value)
        raise TypeError(value)


class OptionalBool(Kind[bool | None]):
    """True, false, or None, which leaves the choice to the framework."""

    description = "None, True or False (in the environment: none, 1, true, yes, 0, false, no)"

    def parse(self, text: str) -> bool | None:
        return None if text.strip().lower() in ("", "none") else Bool().parse(text)

    def check(self, value: Any) -> bool | None:
        return None if value is None else Bool().check(value)


class Int(Kind[int]):
    """An integer in a range."""

    def __init__(
        self,
        description: str = "an integer",
        minimum: int | None = None,
        maximum: int | None = None,
        refused: int | None = None,
    ) -> None:
        self.description = description
        self.minimum = minimum
        self.maximum = maximum
        self.refused = refused

    def parse(self, text: str) -> int:
        return self.check(int(text.strip().replace("_", "")))

    def check(self, value: Any) -> int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(value)
        number = int(value.__index__())
        too_small = self.minimum is not None and number < self.minimum
        too_large = self.maximum is not None and number > self.maximum
        if too_small or too_large or number == self.refused:
            raise ValueError(value)
        return number


class Float(Kind[float]):
    """A number that is not negative."""

    description = "a number that is not negative"

    def parse(self, text: str) -> float:
        return self.check(float(text))

    def check(self, value: Any) -> float:
        if isinstance(value, bool) or not (
            hasattr(value, "__float__") or hasattr(value, "__index__")
        ):
            raise TypeError(value)
        if isinstance(value, str) or not float(value) >= 0:
            raise ValueError(value)
        return float(value)


class Choice(Kind[Any]):
    """One of several given values: strings, and maybe None."""

    def __init__(self, *choices: str | None) -> None:
        self.choices = choices
        self.description = "one of " + ", ".join(repr(choice) for choice in choices)

    def parse(self, text: str) -> Any:
        if None in self.choices and text.strip().lower() in ("", "none"):
            return None
        return self.check(text.strip())

    def check(self, value: Any) -> Any:
        if value is None or isinstance(value, str):
            if value in self.choices:
                return value
            raise ValueError(value)
        raise TypeError(value)


class CompilerEffortLevel(enum.Enum):
    """How much a compiler does, for the options `optimization_level` and `memory_fitting_level`.

    The values are XLA's.

    Example:
        >>> import dovetail as dt
        >>> with dt.optimization_level(dt.CompilerEffortLevel.O0):
        ...     dt.config.optimization_level
        'O0'
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


class Effort(Choice):
    """A `CompilerEffortLevel`, or its name, as which it is kept."""

    def __init__(self) -> None:
        super().__init__(*CompilerEffortLevel.__members__)

    def check(self, value: Any) -> Any:
        return super().check(value.name if isinstance(value, CompilerEffortLevel) else value)


class Text(Kind[str | None]):
    """A string or None."""

    description = "a string or None"

    def parse(self, text: str) -> str | None:
        return text or None

    def check(self, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, str | os.PathLike):
            return os.fspath(value)
        raise TypeError(value)


class Pairs(Kind[Any]):
    """Names with values, in one string."""

    description = 'names with values such as "name:value;name:value", or None'

    def parse(self, text: str) -> str | None:
        return self.check(text)

    def check(self, value: Any) -> str | None:
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise TypeError(value)
        self.pairs(value)
        return value

    @staticmethod
    def pairs(text: str | None) -> dict[str, bool | int | float | str]:
        """The values by name: numbers and booleans where they look like them."""
        result: dict[str, bool | int | float | str] = {}
        for entry in filter(None, (text or "").split(";")):
            name, colon, value = entry.partition(":")
            if not colon or not name.strip():
                raise ValueError(text)
            result[name.strip()] = _number_or_text(value.strip())
        return result


def _number_or_text(text: str) -> bool | int | float | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


class Names(Text):
    """A list of names, as a string."""

    description = 'a comma-separated list of names, such as "acme,other", or None'

    def check(self, value: Any) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise TypeError(value)
        names = [name.strip() for name in value.split(",")]
        if value.strip() and not all(names):
            raise ValueError(value)
        return ",".join(names) or None

    def parse(self, text: str) -> str | None:
        return self.check(text)


class Platforms(Names):
    """A list of platforms, as a string."""

    description = (
        'a comma-separated list of platforms, most wanted first, such as "cuda,cpu", or None'
    )


class DeviceName(Kind[Any]):
    """A device, or the name of a platform."""

    description = (
        'a device (from dovetail.devices()), the name of a platform such as "cpu", or None'
    )

    def parse(self, text: str) -> Any:
        return text.strip() or None

    def check(self, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        if any(hasattr(value, name) for name in ("device_kind", "device_set", "device_list")):
            hash(value)  # it becomes part of cache keys
            return value
        raise TypeError(value)
