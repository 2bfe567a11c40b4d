"""Options: typed, readable from C++, global or scoped to a thread.

The value of an option comes from the first of these that is set: the thread (inside
``with option(value):``), the process (`config.update`), the environment variable
``DOVETAIL_<NAME>``, the variable ``JAX_<NAME>`` if JAX has the option, the default.
"""

from __future__ import annotations

import os
import sys
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from dovetail._core.base import bindings, native
from dovetail._core.base.errors import close_matches
from dovetail._core.base.option_kinds import Bool, Choice, Kind
from dovetail._core.base.restoring import Restoring, within
from dovetail._core.base.strictness import strictness

if typing.TYPE_CHECKING:
    from dovetail._core.base.unavailable_options import Unavailable

__all__ = ["Cell", "Option", "OptionScope", "Options", "check_environment", "config"]

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

_registry: Final[dict[str, Option[Any]]] = {}
_PREFIXES: Final = ("DOVETAIL_", "JAX_")
# Where a process is in a group, which `dovetail.distributed.initialize` reads.
_GROUP_VARIABLES: Final = frozenset(
    prefix + name
    for prefix in _PREFIXES
    for name in (
        "COORDINATOR_ADDRESS",
        "COORDINATOR_BIND_ADDRESS",
        "LOCAL_DEVICE_IDS",
        "NUM_PROCESSES",
        "PROCESS_ID",
    )
)
# What begins with these belongs to plug-ins and to the project's own tools.
_FOREIGN_PREFIXES: Final = (
    *("DOVETAIL_AS_JAX", "DOVETAIL_NATIVE"),
    *("DOVETAIL_PLUGIN_", "DOVETAIL_TESTING_"),
)


class _Missing:
    def __repr__(self) -> str:
        return "<no value>"


_MISSING: Any = _Missing()


class OptionScope(Restoring[None], typing.Generic[T]):
    """Sets an option for one thread, as a context manager or a decorator."""

    __slots__ = ("_option", "_value")

    def __init__(self, option: Option[T], value: T) -> None:
        super().__init__(option.get_local, partial(option.set_local, value), option.set_local)
        self._option = option
        self._value = value

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Run every call of ``function`` with the option at this value."""
        return within(partial(OptionScope, self._option, self._value), function)

    def __repr__(self) -> str:
        return f"{self._option.name}({self._value!r})"


# C++ refers to all cells for ever and owns none. An interrupt may end the import that makes them.
_cells: Final[list[Any]] = []

if typing.TYPE_CHECKING:

    class Cell(bindings.Config[T], typing.Generic[T]):
        """The C++ object that holds the values."""

else:

    class Cell(bindings.Config):
        def __init__(self, *args, **kwargs):
            _cells.append(self)
            super().__init__(*args, **kwargs)

        # The C++ class cannot have `Generic` as a second base.
        def __class_getitem__(cls, _):
            return cls

    if native.calls is not None:
        native.calls.watch_options(Cell)


class Option(Cell[T]):
    """An option: its name, kind, default, help and value.

    Reading ``option.value`` is one attribute access in C++. Calling an option, ``option(value)``,
    returns a scope for the current thread that is a context manager and a decorator.
    """

    kind: Kind[T]
    default: T
    help: str
    affects_tracing: bool
    environment: tuple[str, ...]

    def __init__(
        self,
        name: str,
        kind: Kind[T],
        default: T,
        help: str,
        *,
        affects_tracing: bool = False,
        affects_calls: bool = False,
        ours: bool = False,
        under_pytest: T | None = None,
    ) -> None:
        """Declare an option.

        Args:
            name: its name, which is JAX's, without a prefix, unless it is `ours`.
            kind: the values that it takes.
            default: its value where nothing else is said.
            help: what it does, in a sentence or two.
            affects_tracing: whether programs depend on it.
            affects_calls: whether calls of compiled programs do, which C++ then keeps apart.
            ours: whether JAX has no such option, so that no ``JAX_`` variable sets it.
            under_pytest: its value in tests, where nothing else is said: pytest sets a variable
                that says it is there, which processes that tests start inherit.
        """
        start = default
        in_tests = "PYTEST_VERSION" in os.environ and strictness().stricter_in_tests
        if under_pytest is not None and in_tests:
            start = under_pytest
        variables = tuple([prefix + name.upper() for prefix in _PREFIXES[: 1 if ours else 2]])
        super().__init__(
            name,
            _from_environment(variables, kind, start),
            include_in_jit_key=affects_tracing or affects_calls,
            include_in_trace_context=affects_tracing,
        )
        self.kind = kind
        self.default = default
        self.help = help
        self.affects_tracing = affects_tracing
        self.environment = variables
        self.__doc__ = help
        self.__module__ = "dovetail._core.base.config"  # where pickle finds it, by its name
        _registry[name] = self

    def checked(self, value: Any) -> T:
        """Convert ``value`` to its stored form.

        Raises:
            TypeError: it has the wrong type.
            ValueError: it is not among the allowed values.
        """
        try:
            return self.kind.check(value)
        except (TypeError, ValueError) as error:
            close = ""
            if isinstance(value, str) and isinstance(self.kind, Choice):
                names = [choice for choice in self.kind.choices if choice is not None]
                matches = close_matches(value, names, 1)
                close = f" Did you mean {matches[0]!r}?" if matches else ""
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"the option {self.name!r} takes {self.kind.description}; "
                f"got {value!r} of type {type(value).__name__}.{close}"
            ) from None

    def set_global(self, value: T) -> None:
        """Set the value for every thread without a value of its own."""
        super().set_global(self.checked(value))

    def __call__(self, new_val: T = _MISSING) -> OptionScope[T]:
        """A scope in which the option has ``new_val`` for the current thread.

        Args:
            new_val: the value; without it, a boolean option is switched on.

        Returns:
            A context manager, which is also a decorator.

        Example:
            >>> from dovetail._core.base.config import enable_x64
            >>> with enable_x64(True):
            ...     enable_x64.value
            True
            >>> @enable_x64(True)
            ... def widest():
            ...     return enable_x64.value
            >>> widest(), enable_x64.value
            (True, False)
        """
        if new_val is _MISSING:
            if not isinstance(self.kind, Bool):
                raise TypeError(
                    f"{self.name}() needs a value: {self.kind.description}. "
                    f"Write for example: with dovetail.{self.name}({self.default!r}): ..."
                )
            return OptionScope(self, True)  # type: ignore[arg-type]
        return OptionScope(self, self.checked(new_val))

    def __repr__(self) -> str:
        return f"<option {self.name} = {self.value!r}>"

    def __reduce__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        raise TypeError(
            f"the option {self.name} is an object, which is neither true nor false; "
            f"read dovetail.config.{self.name}"
        )


def _from_environment(variables: tuple[str, ...], kind: Kind[T], default: T) -> T:
    """The value of the first variable that is set, else the default."""
    for variable in variables:
        text = os.environ.get(variable)
        if text is None:
            continue
        try:
            return kind.parse(text)
        except (TypeError, ValueError):
            raise ValueError(
                f"the environment variable {variable} is {text!r}, which is not {kind.description}"
            ) from None
    return default


def check_environment() -> None:
    """Look for variables that would otherwise be ignored: called once, after all options are made.

    An unknown ``DOVETAIL_`` variable gives a warning, all of them one together. A variable that
    asks for what dovetail does not have is an error if it begins with ``DOVETAIL_``; if it begins
    with ``JAX_``, it may be meant for another program, and is part of the warning.

    Raises:
        NotImplementedError: a ``DOVETAIL_`` variable asks for what there is not.
    """
    known = {variable for option in _registry.values() for variable in option.environment}
    known |= _GROUP_VARIABLES
    problems = []
    for variable, text in os.environ.items():
        if not variable.startswith(_PREFIXES) or variable in known:
            continue
        prefix, _, name = variable.partition("_")
        unavailable = _unavailable(name.lower())
        if unavailable is not None:
            if not unavailable.accepts_text(text):
                problem = f"{variable}={text} has no effect: {unavailable.reason}"
                if prefix == "DOVETAIL":
                    raise NotImplementedError(problem)
                problems.append(problem)
        elif prefix == "DOVETAIL" and not variable.startswith(_FOREIGN_PREFIXES):
            names = [v.removeprefix("DOVETAIL_") for v in known if v.startswith("DOVETAIL_")]
            near = close_matches(name, names, 1)
            hint = f"; did you mean DOVETAIL_{near[0]}?" if near else ""
            problems.append(
                f"the environment variable {variable} is unknown and has no effect{hint}"
            )
    if problems:
        warnings.warn("\n".join(problems), RuntimeWarning, stacklevel=2)


def _canonical_name(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of an option is a string, got {name!r:.80}")
    return name[4:] if name.startswith("jax_") and name not in _registry else name


def _unavailable(name: str) -> Unavailable | None:
    """An option of JAX's that dovetail does not have."""
    from dovetail._core.base.unavailable_options import UNAVAILABLE  # deferred: rarely asked for

    return UNAVAILABLE.get(name)


def _value(name: str) -> Any:
    """The current value of an option, by any of its names.

    Raises:
        KeyError: there is no such option; the message suggests similar names.
    """
    canonical = _canonical_name(name)
    option = _registry.get(canonical)
    if option is not None:
        return option.value
    unavailable = _unavailable(canonical)
    if unavailable is None:
        raise KeyError(_unknown(name))
    return unavailable.default


class _Values(Mapping[str, Any]):
    """The current value of every option; names may begin with ``jax_``."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:
        return _value(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_registry)

    def __len__(self) -> int:
        return len(_registry)

    def __repr__(self) -> str:
        return repr(dict(self))


class Options:
    """All options: read one as an attribute, set one with `update`.

    Differs:
        An option can be looked up with its help and its default, and options have no prefix;
        `jax_` before a name is accepted.

        >>> option = dt.config.option("jax_enable_x64")
        >>> print(option.name, option.default)
        enable_x64 False

        `read` gives the value of every option, those with a scope of their own included.

        >>> with dt.enable_x64(True):
        ...     print(dt.config.read("jax_enable_x64"))
        True

    Example:
        >>> from dovetail._core.base.config import config
        >>> config.enable_x64
        False
        >>> config.update("numpy_rank_promotion", "warn")
        >>> config.numpy_rank_promotion, config.jax_numpy_rank_promotion
        ('warn', 'warn')
        >>> config.update("numpy_rank_promotion", "allow")
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.read(name)

    def __setattr__(self, name: str, value: object) -> None:
        plain = _canonical_name(name)
        if plain not in _registry:
            raise AttributeError(_unknown(name), name=name)
        block = f", or for one block: with dovetail.{plain}({value!r}): ..."
        raise AttributeError(
            f"options are not set by assignment; write config.update({name!r}, {value!r})"
            + block * hasattr(sys.modules["dovetail"], plain)
        )

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *_registry})

    def __iter__(self) -> Iterator[str]:
        return iter(_registry)

    def update(self, name: str, value: Any) -> None:
        """Set an option for the whole process.

        Args:
            name: the option's name, with or without the prefix ``jax_``.
            value: its new value.

        Raises:
            AttributeError: there is no such option; the message suggests similar names.
            TypeError: the value has the wrong type.
            ValueError: the value is not among those allowed.
            NotImplementedError: JAX has the option and dovetail has not, and the value is not its
                default; the message says what to do instead.
            RuntimeError: the option is read when a backend starts, and one has started.
        """
        option = _registry.get(_canonical_name(name))
        if option is not None:
            option.set_global(value)
            return
        unavailable = _unavailable(_canonical_name(name))
        if unavailable is None:
            raise AttributeError(_unknown(name), name=name)
        if not unavailable.accepts(value):
            raise NotImplementedError(
                f"the option {name!r} cannot be set to {value!r}: {unavailable.reason}"
            )

    def option(self, name: str) -> Option[Any]:
        """The option of that name, with its help, default and allowed values."""
        option = _registry.get(_canonical_name(name))
        if option is None:
            raise AttributeError(_unknown(name), name=name)
        return option

    def read(self, name: str) -> Any:
        """The current value of an option: of this thread, else of the process.

        Args:
            name: the option's name, with or without the prefix ``jax_``.

        Raises:
            AttributeError: there is no such option; the message suggests similar names.
        """
        try:
            return _value(name)
        except KeyError as error:
            raise AttributeError(*error.args, name=name) from None

    @property
    def values(self) -> Mapping[str, Any]:
        """The current value of every option, by name; ``values["jax_enable_x64"]`` works, too."""
        return _Values()

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit types are kept: the option `enable_x64`."""
        return bool(_registry["enable_x64"].value)

    def config_with_absl(self) -> None:
        """Define a flag of absl's for every option, which sets it when absl parses the flags.

        Flags are ``--jax_<name>``, as in JAX, and ``--dovetail_<name>``. Programs that call
        ``absl.app.run`` write this before it.

        Raises:
            ImportError: absl is not installed.

        Example:
            >>> import dovetail
            >>> from absl import app  # doctest: +SKIP
            >>> dovetail.config.config_with_absl()  # doctest: +SKIP
            >>> app.run(main)  # doctest: +SKIP
        """
        from dovetail._core.base import absl_flags  # deferred: few programs have such flags

        absl_flags.define(_registry)

    def parse_flags_with_absl(self) -> None:
        """Set options from the flags ``--jax_<name>`` and ``--dovetail_<name>`` of this process.

        Other flags are left to the program, which may parse them with absl as well.

        Raises:
            ImportError: absl is not installed.
            ValueError: a flag's value is not among those allowed.
        """
        from dovetail._core.base import absl_flags  # deferred: few programs have such flags

        absl_flags.define(_registry)
        absl_flags.parse(_registry)

    def __repr__(self) -> str:
        width = max(len(name) for name in _registry)
        lines = []
        for name, option in _registry.items():
            changed = "" if option.value == option.default else f"  (default {option.default!r})"
            lines.append(f"  {name:<{width}} = {option.value!r}{changed}")
        return "config:\n" + "\n".join(lines)


def _unknown(name: str) -> str:
    canonical = _canonical_name(name)
    matches = close_matches(canonical, _registry, 3)
    matches += [known for known in _registry if canonical in known and known not in matches]
    hint = f"; did you mean {' or '.join(map(repr, matches[:3]))}?" if matches else ""
    return f"there is no option {name!r}{hint or '; print(dovetail.config) lists them'}"


config = Options()
