"""Which platforms a process uses: those requested, or a default choice."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from dovetail._core.base.config import platform_name, platforms
from dovetail._core.base.errors import BackendUnavailableError
from dovetail._core.base.records import record

_INSTALL: Final[Mapping[str, str]] = {
    "cpu": 'pip install "dovetail-core[cpu]"',
    "cuda": 'pip install "dovetail-core[cuda]"',
    "gpu": 'pip install "dovetail-core[cuda]"',
    "tpu": 'pip install "dovetail-core[tpu]"',
}


@record
class PlatformRequest:
    """Platforms that the user requested.

    Attributes:
        names: platform names and aliases, the default first; empty if nothing was requested.
        source: where the request comes from, for messages.
    """

    names: tuple[str, ...] = ()
    source: str = ""


@record
class PlatformChoice:
    """The platforms of this process and the reasons for them.

    Attributes:
        platforms: usable platforms, the default first.
        reason: why the first is the default, as one sentence.
        refused: why each other installed platform is not used, by name.
    """

    platforms: tuple[str, ...]
    reason: str
    refused: Mapping[str, str] = field(default_factory=dict)


def parse_request(text: str, source: str) -> PlatformRequest:
    """Read a comma-separated list of platforms.

    Args:
        text: such as `"cuda,cpu"`; spaces around names and empty entries are ignored.
        source: where the request comes from, for messages.

    Returns:
        The request, without duplicate names.
    """
    names = dict.fromkeys(name for name in (part.strip() for part in text.split(",")) if name)
    return PlatformRequest(tuple(names), source)


def configured_request() -> PlatformRequest:
    """The platforms requested by the option `platforms`; empty if there are none.

    The option takes its value from `DOVETAIL_PLATFORMS`, or from `JAX_PLATFORMS` if that is unset.
    """
    names = platforms.value
    if not names:
        return PlatformRequest()
    for variable in platforms.environment:
        text = os.environ.get(variable)
        if text is not None:
            if parse_request(text, "").names == parse_request(names, "").names:
                return parse_request(names, f"{variable}={text}")
            break
    return parse_request(names, f"the option platforms={names!r}")


def with_default(choice: PlatformChoice, platform: str) -> PlatformChoice:
    """The same platforms, with the one first that the option `platform_name` names.

    Args:
        choice: the platforms.
        platform: the platform's own name.

    Raises:
        BackendUnavailableError: it is not among them.
    """
    if platform not in choice.platforms:
        raise BackendUnavailableError(
            f"the option platform_name={platform_name.value!r}: the platform is not among those in "
            f"use, {', '.join(choice.platforms)}"
            + (f": {choice.refused[platform]}" if platform in choice.refused else "")
        )
    others = tuple([name for name in choice.platforms if name != platform])
    reason = f"the option platform_name={platform_name.value!r} names it"
    return PlatformChoice((platform, *others), reason, choice.refused)


def install_hint(platform: str) -> str:
    """The command that installs a platform's backend; empty if the project has none for it."""
    command = _INSTALL.get(platform)
    return f"To install it: {command}" if command else ""
