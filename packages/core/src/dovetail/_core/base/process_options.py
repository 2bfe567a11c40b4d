"""Options that act on the whole process: on jaxlib's guards, on loggers, on how backends start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from dovetail._core.base import events
from dovetail._core.base.bindings import guards, unset
from dovetail._core.base.option_kinds import Choice, Float, Int, Kind, Text
from dovetail._core.base.options import Option, OptionScope

__all__ = [
    "Guard",
    "LoggerOption",
    "ProcessOption",
    "StartupOption",
    "ThreadGuard",
    "TransferGuards",
    "debug",
    "debug_log_modules",
    "logging_level",
    "slow_compile_secs",
]

T = TypeVar("T")


class Guard(Option[Any]):
    """An option that jaxlib's own checks read, from an object for the process and one per thread.

    Args:
        name: the option's name.
        kind: the levels, or None.
        attribute: jaxlib's name for what is guarded.
        levels: jaxlib's enumeration of the levels.
        help: what it does.
        affects_calls: whether compiled calls must be kept apart by the level.
    """

    def __init__(
        self,
        name: str,
        kind: Choice,
        attribute: str,
        levels: Any,
        help: str,
        *,
        affects_calls: bool = False,
    ) -> None:
        super().__init__(name, kind, None, help, affects_calls=affects_calls)
        self._attribute = attribute
        self._levels = levels
        if self.value is not None:
            self._tell(guards.global_state(), self.value)

    def _tell(self, state: Any, value: Any) -> None:
        level = None if value in (None, unset) else getattr(self._levels, value.upper())
        setattr(state, self._attribute, level)

    def set_global(self, value: Any) -> None:
        """Set the level for every thread without one of its own."""
        super().set_global(value)
        self._tell(guards.global_state(), self.get_global())

    def set_local(self, value: Any) -> None:
        """Set the level for this thread."""
        super().set_local(value)
        self._tell(guards.thread_local_state(), value)


class TransferGuards(Option[Any]):
    """The option that sets the guards of all directions at once.

    Args:
        name: the option's name.
        kind: the levels, or None.
        guards: the guards of the directions.
        help: what it does.
    """

    def __init__(self, name: str, kind: Choice, guards: Sequence[Guard], help: str) -> None:
        super().__init__(name, kind, None, help)
        self._guards = tuple(guards)
        for guard in self._guards if self.value is not None else ():
            if guard.value is None:
                guard.set_global(self.value)

    def set_global(self, value: Any) -> None:
        """Set the level of all directions for every thread without one of its own."""
        super().set_global(value)
        for guard in self._guards:
            guard.set_global(value)

    def get_local(self) -> Any:
        """The levels of this thread: for all directions, then for each."""
        return (super().get_local(), *[guard.get_local() for guard in self._guards])

    def set_local(self, value: Any) -> None:
        """Set the levels for this thread: to one for all, or to what `get_local` returned."""
        own, *levels = value if type(value) is tuple else [value] * (1 + len(self._guards))
        super().set_local(own)
        for guard, level in zip(self._guards, levels, strict=True):
            guard.set_local(level)


class ThreadGuard(Option[bool]):
    """The option that lets one thread alone run programs of several processes."""

    def set_global(self, value: bool) -> None:
        """Guard the thread that calls this, or none."""
        super().set_global(value)
        guards.update_thread_guard_global_state(self.get_global())

    def set_local(self, value: Any) -> None:
        """Guard this thread, or go back to what holds for the process."""
        super().set_local(value)
        guards.update_thread_guard_global_state(bool(self.value))


class StartupOption(Option[T]):
    """An option that a backend reads when it starts, and that cannot change afterwards."""

    #: The platform that has started with it, or None.
    reader: str | None = None

    def set_global(self, value: T) -> None:
        """Set the value for the process.

        Raises:
            RuntimeError: the backend has started with another value.
        """
        settled = (self.get_global(), self.reader)
        if self.reader is not None and self.checked(value) not in settled:
            raise RuntimeError(
                f"the option {self.name!r} is read when the platform {self.reader!r} starts, which "
                f"it did with {self.get_global()!r}: update it before the first computation and "
                f"before the first look at devices, or set {self.environment[0]}"
            )
        super().set_global(value)


class ProcessOption(Option[T]):
    """An option that belongs to the whole process, and is read in other threads."""

    def __call__(self, new_val: Any = None) -> OptionScope[T]:
        """Raise, since there is no scope for a thread."""
        self.checked(new_val)
        raise TypeError(
            f"the option {self.name!r} is one of the whole process: "
            f"write dovetail.config.update({self.name!r}, {new_val!r})"
        )


class LoggerOption(ProcessOption[Any]):
    """An option that sets the levels of loggers, which belong to the whole process.

    Args:
        name: the option's name.
        kind: its values.
        default: the value that changes nothing.
        levels: makes of a value the level of each logger, by name.
        help: what it does.
    """

    def __init__(
        self,
        name: str,
        kind: Kind[Any],
        default: Any,
        levels: Callable[[Any], Mapping[str, str]],
        help: str,
    ) -> None:
        super().__init__(name, kind, default, help)
        self._levels = levels
        self._before: dict[str, int] = {}
        if self.value != default:
            self._tell()

    def set_global(self, value: Any) -> None:
        """Set the levels of loggers."""
        super().set_global(value)
        self._tell()

    def _tell(self) -> None:
        """Set the loggers' levels, and take back what an earlier value did."""
        import logging  # deferred: most processes leave the levels alone

        for name, level in self._before.items():
            logging.getLogger(name).setLevel(level)
        self._before.clear()
        for name, word in self._levels(self.value).items():
            logger = logging.getLogger(name)
            self._before[name] = logger.level
            logger.setLevel(word)
            if not logger.hasHandlers():  # Python's last resort writes warnings alone
                handler = logging.StreamHandler()
                handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
                logger.addHandler(handler)


logging_level = LoggerOption(
    "logging_level",
    Choice(None, "NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    "NOTSET",
    lambda level: {} if level in (None, "NOTSET") else {"dovetail": level},
    "The level of the loggers of dovetail.",
)
debug_log_modules = LoggerOption(
    "debug_log_modules",
    Text(),
    None,
    lambda names: {"dovetail" if n == "jax" else n: "DEBUG" for n in (names or "").split(",") if n},
    'Loggers that log everything, such as "dovetail" or "dovetail.cache_misses,dovetail.debug".',
)


class _EventLevel(ProcessOption[int]):
    """The option that prints events."""

    def __init__(self, name: str, kind: Kind[int], help: str) -> None:
        super().__init__(name, kind, 0, help, ours=True)
        if self.value:
            events.print_level(self.value)

    def set_global(self, value: Any) -> None:
        """Print events of this level and of those below."""
        super().set_global(value)
        events.print_level(self.get_global())


debug = _EventLevel(
    "debug",
    Int("a level from 0 to 4", minimum=0, maximum=4),
    "Print events to stderr, with reasons: at 1 compilations and donations that failed, at 2 also "
    "traces, eager programs and programs read from disk, at 3 also transfers and waits, at 4 all.",
)
slow_compile_secs = Option(
    "slow_compile_secs",
    Float(),
    10.0,
    "Tell, on stderr, when a program takes longer than this many seconds to compile, and which "
    "lines of code it is large by; 0 for never.",
    ours=True,
)
