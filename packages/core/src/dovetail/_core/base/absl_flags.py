"""Options as flags of absl, which is no dependency: ``--jax_<name>``, ``--dovetail_<name>``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base.option_kinds import Bool
from dovetail._core.base.unavailable_options import UNAVAILABLE

if TYPE_CHECKING:
    from dovetail._core.base.options import Option

__all__ = ["define", "parse"]

_PREFIXES: Final = ("jax_", "dovetail_")


def _absl() -> tuple[Any, Any]:
    try:
        return import_module("absl.app"), import_module("absl.flags")
    except ImportError as error:
        raise ImportError(
            "options are read from flags by absl, which is not installed: pip install absl-py, or "
            "set them by config.update or by variables such as DOVETAIL_ENABLE_X64=1"
        ) from error


def _names(options: Mapping[str, Option[Any]]) -> Iterator[tuple[str, str]]:
    """The flags, each with the name of its option."""
    for name in (*options, *UNAVAILABLE):
        for prefix in _PREFIXES:
            yield prefix + name, name


def define(options: Mapping[str, Option[Any]]) -> None:
    """Define the flags that nobody has defined yet; what absl parses later sets the options.

    Args:
        options: all options, by name.

    Raises:
        ImportError: absl is not installed.
    """
    app, flags = _absl()
    defined = False
    for flag, name in _names(options):
        if flag in flags.FLAGS:
            continue
        defined = True
        option = options.get(name)
        # jax defines flags of the same names, perhaps later.
        if option is None:
            flags.DEFINE_string(flag, None, UNAVAILABLE[name].reason, allow_override=True)
        elif isinstance(option.kind, Bool):
            flags.DEFINE_boolean(flag, None, option.help, allow_override=True)
        else:
            text = f"{option.help} Takes {option.kind.description}."
            flags.DEFINE_string(flag, None, text, allow_override=True)
    if defined:
        app.call_after_init(lambda: _apply(options, flags.FLAGS))


def parse(options: Mapping[str, Option[Any]]) -> None:
    """Set the options that the process was started with flags for.

    Args:
        options: all options, by name.

    Raises:
        ImportError: absl is not installed.
        ValueError: a flag's value is not among those allowed.
        NotImplementedError: a flag asks for what dovetail does not have.
    """
    _, flags = _absl()
    starts = tuple([f"--{negation}{prefix}" for negation in ("", "no") for prefix in _PREFIXES])
    arguments = [argument for argument in sys.argv[1:] if argument.startswith(starts)]
    flags.FLAGS([sys.argv[0], *arguments])
    _apply(options, flags.FLAGS)


def _apply(options: Mapping[str, Option[Any]], flags: Any) -> None:
    for flag, name in _names(options):
        if not flags[flag].present:
            continue
        value = flags[flag].value
        option = options.get(name)
        if option is None:
            if not UNAVAILABLE[name].accepts_text(str(value)):
                raise NotImplementedError(f"--{flag}={value}: {UNAVAILABLE[name].reason}")
        elif not isinstance(value, str):
            option.set_global(value)
        else:
            try:
                parsed = option.kind.parse(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"the flag --{flag} is {value!r}, which is not {option.kind.description}"
                ) from None
            option.set_global(parsed)
