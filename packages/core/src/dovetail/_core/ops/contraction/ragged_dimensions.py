"""Which dimensions of a ragged contraction are contracted, and which is divided into groups."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from dovetail._core.base.tracebacks import bounded
from dovetail._core.ops.contraction.dot_general import (
    DimensionNumbers,
    Dims,
    canonical_dimension_numbers,
)
from dovetail._core.ops.shape.dimensions import integers


class RaggedMode(enum.Enum):
    """Which kind of dimension of the left operand is divided into groups."""

    FREE = "free"
    CONTRACTING = "contracting"
    BATCH = "batch"


@bounded
@dataclasses.dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """The dimensions that `ragged_dot_general` contracts, and the one divided into groups.

    Args:
        dot_dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, as
            `dot_general` takes them.
        lhs_ragged_dimensions: the one dimension of the left operand that is divided into groups.
        rhs_group_dimensions: the dimension of the right operand that counts the groups, if the
            ragged dimension is neither contracting nor batch; otherwise none.
    """

    dot_dimension_numbers: DimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        function = "RaggedDotDimensionNumbers"
        for field, value in (
            (
                "dot_dimension_numbers",
                canonical_dimension_numbers(
                    self.dot_dimension_numbers, function, "dot_dimension_numbers"
                ),
            ),
            (
                "lhs_ragged_dimensions",
                integers(self.lhs_ragged_dimensions, function, "lhs_ragged_dimensions"),
            ),
            (
                "rhs_group_dimensions",
                integers(self.rhs_group_dimensions, function, "rhs_group_dimensions"),
            ),
        ):
            object.__setattr__(self, field, value)

    @property
    def ragged(self) -> int:
        """The ragged dimension."""
        return self.lhs_ragged_dimensions[0]

    @property
    def mode(self) -> RaggedMode:
        """The kind of the ragged dimension."""
        (contracting, _), (batch, _) = self.dot_dimension_numbers
        if self.ragged in contracting:
            return RaggedMode.CONTRACTING
        return RaggedMode.BATCH if self.ragged in batch else RaggedMode.FREE

    @property
    def prefix(self) -> Dims:
        """The dimensions of the left operand whose indices may each have their own groups.

        They are its batch dimensions, and those before the ragged dimension of the same kind.
        """
        (contracting, _), (batch, _) = self.dot_dimension_numbers
        if self.mode is RaggedMode.BATCH:
            return batch[: batch.index(self.ragged)]
        if self.mode is RaggedMode.CONTRACTING:
            return (*batch, *contracting[: contracting.index(self.ragged)])
        taken = {*contracting, *batch}
        return (*batch, *[d for d in range(self.ragged) if d not in taken])

    def of_one_group(self) -> DimensionNumbers:
        """The dimension numbers of the contraction with one group's part of the right operand."""
        (xc, yc), (xb, yb) = self.dot_dimension_numbers
        if self.mode is not RaggedMode.FREE:
            return self.dot_dimension_numbers
        (group,) = self.rhs_group_dimensions
        yc, yb = (tuple([d - (d > group) for d in dims]) for dims in (yc, yb))
        return (xc, yc), (xb, yb)

    def batched(self, d: int | None, e: int | None) -> RaggedDotDimensionNumbers:
        """The numbers of operands with an added dimension: `d` of the left, `e` of the right.

        If both have one, it is the first batch dimension, otherwise it is a free dimension.
        """
        (xc, yc), (xb, yb) = self.dot_dimension_numbers
        ragged, group = self.lhs_ragged_dimensions, self.rhs_group_dimensions
        if d is not None:
            xc, xb, ragged = (tuple([i + (i >= d) for i in dims]) for dims in (xc, xb, ragged))
        if e is not None:
            yc, yb, group = (tuple([i + (i >= e) for i in dims]) for dims in (yc, yb, group))
        if d is not None and e is not None:
            xb, yb = (d, *xb), (e, *yb)
        return RaggedDotDimensionNumbers(((xc, yc), (xb, yb)), ragged, group)
