"""Symbolic zeros: tangents and cotangents that are known to vanish."""

from __future__ import annotations

from typing import Any

from dovetail.core.ir.avals import aval_of


class Zero:
    """A tangent or cotangent that is zero without being computed.

    Args:
        aval: the aval of the tangent.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    @classmethod
    def of(cls, primal: Any) -> Zero:
        """The zero tangent at a primal value."""
        return cls(aval_of(primal).tangent())

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tangent."""
        shape: tuple[int, ...] = self.aval.shape
        return shape

    @property
    def dtype(self) -> Any:
        """The dtype of the tangent."""
        return self.aval.dtype

    def __repr__(self) -> str:
        return f"Zero({self.aval.short_name()})"
