"""Layouts of values inside compiled functions."""

from __future__ import annotations

from dovetail._core.base import pytree
from dovetail._core.base.typing import PyTree
from dovetail._core.basis.operands import as_operand
from dovetail._core.ops.calls.layout_constraint import ordered
from dovetail._core.runtime.devices.layout import Layout

__all__ = ["with_layout_constraint"]


def with_layout_constraint(x: PyTree, layouts: PyTree) -> PyTree:
    """Keep values inside a compiled function in a given order in memory.

    It changes no value. Outside of compiled functions it does nothing, since arrays are in the
    device's own order.

    Args:
        x: an array, or a tree of arrays.
        layouts: a `Layout`, or a tree of them that is a prefix of `x`.

    Returns:
        `x`, with the same values.

    Raises:
        TypeError: a leaf of `layouts` is not a `Layout`, or one of `x` not an array.
        ValueError: a layout has another number of dimensions than its array.
        NotImplementedError: a layout says how elements are tiled or packed.

    Differs:
        Arrays that leave a compiled function are in the device's own order. In JAX a result, or an
        array outside of compiled functions, gets the layout itself.

        >>> from dovetail.experimental.layout import Layout, with_layout_constraint
        >>> f = dt.jit(lambda x: with_layout_constraint(2 * x, Layout((1, 0))))
        >>> f(jnp.ones((2, 3))).format.layout.major_to_minor
        (0, 1)

    Example:
        >>> from dovetail.experimental.layout import Layout, with_layout_constraint
        >>> @dt.jit
        ... def f(x):
        ...     columns = with_layout_constraint(jnp.sin(x), Layout((1, 0)))
        ...     return columns.sum(0)
        >>> f(jnp.zeros((2, 3)))
        Array([0., 0., 0.], dtype=float32)
    """
    name = "with_layout_constraint"
    leaves, tree = pytree.flatten_with_path(x)
    asked = pytree.flatten_up_to_prefix(f"layouts of {name}", layouts, tree)
    results = []
    for (path, leaf), layout in zip(leaves, asked, strict=True):
        what = f"x{pytree.keystr(path)}"
        if not isinstance(layout, Layout):
            raise TypeError(f"{name} takes a Layout for {what}, got {layout!r:.80}")
        results.append(ordered(as_operand(leaf, name, what), layout, name, what))
    return tree.unflatten(results)
