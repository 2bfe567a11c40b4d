"""The values of `BackendInfo.capabilities`.

The kit skips the tests of capabilities that a backend does not declare. A name that is not in this
table counts as a typo, except that names beginning with ``x-`` are for the backend's own use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dovetail._core.base.errors import close_matches

__all__ = ["CAPABILITIES", "PRIVATE", "missing_text", "unknown_capabilities"]

#: The meaning of each capability, as the end of the sentence "the backend has ...".
CAPABILITIES: Final[dict[str, str]] = {
    "buffer_callbacks": "programs that give Python functions their own memory",
    "complex": "arrays of complex numbers (complex64; complex128 too where it has float64)",
    "donation": "memory that is free again, or taken for results, where an argument is donated",
    "eig": "a lowering of its own for the primitive eig, which StableHLO cannot express",
    "float64": "numbers of 64 bits, which `enable_x64` turns on: float64, and int64 and uint64",
    "host_callbacks": "programs that call Python functions while they run",
    "offload": "memory of another kind, to which a checkpoint's policy moves values",
    "processes": "devices that several processes share, and programs that run in all of them",
    "schur": "a lowering of its own for the primitive schur, which StableHLO cannot express",
    "serialization": "compiled programs that can be written as bytes and loaded again",
    "spmd": "programs that run on several devices at once and exchange data (PJRT libraries only)",
}

PRIVATE: Final = "x-"
"""What the names of a backend's own capabilities begin with."""


def unknown_capabilities(names: Iterable[str]) -> list[str]:
    """One sentence for each unknown name, with similar known names.

    Args:
        names: what a backend declares.

    Example:
        >>> unknown_capabilities(["float64", "x-turbo"])
        []
        >>> unknown_capabilities(["donations"])
        ["unknown capability 'donations': did you mean 'donation'?"]
    """
    said = []
    for name in sorted(names):
        if name in CAPABILITIES or name.startswith(PRIVATE):
            continue
        near = close_matches(name, CAPABILITIES)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(CAPABILITIES)}"
        said.append(f"unknown capability {name!r}: {hint}")
    return said


def missing_text(platform: str, name: str) -> str:
    """Why a test is skipped on a backend without a capability."""
    return (
        f"the backend {platform!r} does not declare the capability {name!r}: {CAPABILITIES[name]}"
    )
