"""Questions to the compiler about how it divides values over devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dovetail._core.base.bindings import _jax

__all__ = ["Inspection"]


class Inspection:
    """A question about a value of a program for several devices.

    The compiler answers by a call, once for each place of the value in the program.

    Args:
        callback: takes the sharding.
        ndim: the rank of the value.

    Attributes:
        found: the answers so far, in XLA's form.
    """

    __slots__ = ("__weakref__", "callback", "found", "ndim")

    def __init__(self, callback: Callable[[Any], object], ndim: int) -> None:
        self.callback = callback
        self.ndim = ndim
        self.found: list[Any] = []

    def __call__(self, tiling: Any) -> None:
        self.found.append(tiling)

    def encoded(self) -> bytes:
        """What an operation of the program holds, an address: the question has to be kept."""
        address: bytes = _jax.encode_inspect_sharding_callback(self)
        return address
