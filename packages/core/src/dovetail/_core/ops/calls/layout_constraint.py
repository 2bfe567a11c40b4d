"""The primitive `layout_constraint`: a value whose elements are in a given order in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.basis.structural import SameValue

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class LayoutConstraint(SameValue):
    """The value itself, with its elements in an order that is asked of the compiler."""

    name = "layout_constraint"

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        major_to_minor: tuple[int, ...],
    ) -> tuple[Any, Any]:
        (d,) = dims
        assert d is not None
        order = (d, *(n + (n >= d) for n in major_to_minor))
        return self.bind(*args, major_to_minor=order), d

    def lower(self, context: Builder, x: Any, *, major_to_minor: tuple[int, ...]) -> Any:
        aval = context.physical(context.avals_in[0])
        order = (*major_to_minor, *range(len(major_to_minor), aval.ndim))
        layout = [order[::-1]]
        return context.custom_call(
            "LayoutConstraint",
            [x],
            [aval],
            backend_config="",
            operand_layouts=layout,
            result_layouts=layout,
            api_version=1,
        )


layout_constraint_p: Final = LayoutConstraint()
