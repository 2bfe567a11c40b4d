"""What programs on the CPU backend may use."""

from __future__ import annotations

from typing import Final

CAPABILITIES: Final = frozenset(
    {
        "buffer_callbacks",
        "complex",
        "donation",
        "eig",
        "float64",
        "host_callbacks",
        "offload",
        "processes",
        "schur",
        "serialization",
        "spmd",
    }
)
