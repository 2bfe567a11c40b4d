"""The primitive `layout_constraint`: a value whose elements are in a given order in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base.counting import counted
from dovetail._core.basis.structural import SameValue
from dovetail._core.ir.avals import aval_of

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


def ordered(array: Any, layout: Any, function: str, what: str) -> Any:
    """A value whose elements are in the order of a layout.

    Args:
        array: the value.
        layout: the layout.
        function: the function that was given it, for messages.
        what: a phrase for the value.

    Raises:
        ValueError: the layout has another number of dimensions than the value.
        NotImplementedError: it says how elements are tiled or packed.
    """
    if layout.tiling or layout.sub_byte_element_size_in_bits:
        raise NotImplementedError(
            f"{function} orders dimensions; leave tiling and sub_byte_element_size_in_bits out of "
            f"{layout}"
        )
    shape = aval_of(array).shape
    if len(shape) != len(layout.major_to_minor):
        raise ValueError(
            f"{function}: {layout} orders {counted(len(layout.major_to_minor), 'dimension')}, and "
            f"{what} of shape {shape} has {len(shape)}"
        )
    return layout_constraint_p.bind(array, major_to_minor=layout.major_to_minor)
