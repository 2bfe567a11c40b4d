"""Tokens outside of programs."""

from __future__ import annotations

from typing import ClassVar

from dovetail._core.ir.avals import AbstractToken, abstract_token
from dovetail._core.runtime.arrays.array import Array


class Token:
    """A value without data that is ready when the program that returned it has finished.

    Args:
        array: an empty array that is ready at the same time.
    """

    __slots__ = ("array",)

    aval: ClassVar[AbstractToken] = abstract_token

    def __init__(self, array: Array) -> None:
        self.array = array

    def block_until_ready(self) -> Token:
        """Wait until the program has finished.

        Raises:
            JaxRuntimeError: the program failed.
        """
        self.array.block_until_ready()
        return self

    def __repr__(self) -> str:
        return "Token()"
