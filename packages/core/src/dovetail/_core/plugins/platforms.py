"""Which platforms a process uses: what was asked for, and what is chosen when nothing was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dovetail._core.base.config import platforms

_INSTALL: Final[Mapping[str, str]] = {
    "cpu": 'pip install "dovetail-core[cpu]"',
    "cuda": 'pip install "dovetail-core[cuda]"',
    "gpu": 'pip install "dovetail-core[cuda]"',
    "tpu": 'pip install "dovetail-core[tpu]"',
}


@dataclass(frozen=True, slots=True)
class PlatformRequest:
    """Platforms that the user asked for.

    Attributes:
        names: platform names and aliases, the default first; empty when nothing was asked for.
        source: who asked, for messages.
    """

    names: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class PlatformChoice:
    """The platforms of this process and why they are these.

    Attributes:
        platforms: usable platforms, the default first.
        reason: why the first is the default, as one sentence.
        refused: why each other installed platform is not among them, by name.
    """

    platforms: tuple[str, ...]
    reason: str
    refused: Mapping[str, str] = field(default_factory=dict)


def parse_request(text: str, source: str) -> PlatformRequest:
    """Read a comma-separated list of platforms.

    Args:
        text: such as `"cuda,cpu"`; spaces around names and empty entries do not count.
        source: who asked, for messages.

    Returns:
        The request; a name that is listed twice counts once.
    """
    names = dict.fromkeys(name for name in (part.strip() for part in text.split(",")) if name)
    return PlatformRequest(tuple(names), source)


def configured_request() -> PlatformRequest:
    """What the option `platforms` asks for; empty when it asks for nothing.

    The option takes its value from `DOVETAIL_PLATFORMS`, or `JAX_PLATFORMS` when that is unset.
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


def install_hint(platform: str) -> str:
    """What to type to install a platform's backend; empty where the project has none for it."""
    command = _INSTALL.get(platform)
    return f"To install it: {command}" if command else ""
