"""Symbolic zeros: tangents and cotangents known to vanish; and cotangents that nobody needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dovetail._core.base.flags import Flags
from dovetail._core.ir.avals import aval_of


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

    from_primal_value = of

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


def without_zeros(tangents: Sequence[Any]) -> tuple[Flags, list[Any]]:
    """Which tangents or cotangents are not symbolic zeros, and a list of those."""
    nonzero = tuple([type(t) is not Zero for t in tangents])
    return nonzero, [t for t in tangents if type(t) is not Zero]


def with_zeros(nonzero: Iterable[bool], given: Iterable[Any], primals: Iterable[Any]) -> list[Any]:
    """Tangents of all primals: those in `given`, and a `Zero` for each of the others.

    Args:
        nonzero: for each primal, whether `given` has its tangent.
        given: the nonzero tangents, in order.
        primals: the values.
    """
    left = iter(given)
    return [next(left) if n else Zero.of(p) for n, p in zip(nonzero, primals, strict=True)]


class Unwanted:
    """Stands for a linear operand of a transposition rule whose cotangent is not needed.

    Only primitives with `transposes_partly` get it.

    Args:
        aval: the aval of the operand.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval


def wanted_among(args: Sequence[Any]) -> Flags | None:
    """Which arguments of a transposition rule are not `Unwanted`; None if all are wanted."""
    wanted = tuple([type(a) is not Unwanted for a in args])
    return None if all(wanted) else wanted
