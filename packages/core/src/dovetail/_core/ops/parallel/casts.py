"""Casts of values along the axes of a mesh, as users call them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from dovetail._core.base import pytree
from dovetail._core.base.typing import PyTree
from dovetail._core.basis.manual_axes import (
    cast_to,
    in_order,
    preduced_p,
    vary_unreduced_cast_p,
)
from dovetail._core.basis.operands import as_operand, as_result
from dovetail._core.ir.avals import aval_of
from dovetail._core.ops.parallel.collective import typed_axes
from dovetail._core.trace.named_axes import lookup

AxisName = Hashable


def pcast(x: PyTree, axis_name: AxisName, *, to: str) -> PyTree:
    """Let types say something else of a value along axes of a mesh.

    It computes nothing, but says what a sum over devices is taken of, and when:

    - Varying: each device may have a value of its own. Where a value that all devices share becomes
      varying, the derivative is a sum, since their cotangents add up. Operations do it themselves
      where their operands need it.
    - Unreduced (``{U:x}``): what each device has is its part of a sum. `psum` and `psum_scatter`
      add it up. Until then it can be computed with what is linear.
    - Reduced (``{R:x}``): all devices have the same, and the cotangent is unreduced, so that it is
      added up where the value became reduced, and not where it is used first. The cotangent of an
      unreduced value is reduced in turn.

    Args:
        x: an array, or a pytree of arrays, inside `dovetail.shard_map`.
        axis_name: the axis of the mesh, or a tuple of them.
        to: ``"varying"``; ``"unreduced"`` for what is varying; or ``"reduced"`` for what is the
            same on all devices.

    Returns:
        `x`, with other types.

    Raises:
        NameError: there is no such axis.
        ValueError: `to` is something else, or there is no such cast of what `x` is.

    Differs:
        What varies already is cast to ``"varying"`` as it is. An operation of what is reduced and
        of what is the same on all devices takes the latter as reduced; JAX asks for a cast. A
        result is unreduced or reduced wherever operands are; some operations of JAX forget it. A
        product of matrices, a slice or a gather may be taken of what is unreduced.

        >>> from dovetail.sharding import PartitionSpec as P
        >>> mesh = dt.make_mesh((1,), ("x",))
        >>> def f(x):
        ...     parts = lax.pcast(x, "x", to="unreduced")
        ...     print(dt.typeof(2.0 * parts @ jnp.ones((2, 3))))
        ...     return lax.psum(parts, "x")
        >>> print(dt.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P())(jnp.ones(2)))
        float32[3]{U:x}
        [1. 1.]

    Example:
        >>> from dovetail.sharding import PartitionSpec as P
        >>> mesh = dt.make_mesh((1,), ("x",))
        >>> f = lambda x: dt.typeof(lax.pcast(x, "x", to="varying"))
        >>> g = dt.shard_map(lambda x: print(f(x)) or x, mesh=mesh, in_specs=P(), out_specs=P())
        >>> print(g(jnp.ones(2)))
        float32[2]{V:x}
        [1. 1.]
    """
    sources = {"varying": ("invarying", "varying", "reduced"), "unreduced": ("varying",)}
    sources["reduced"] = ("invarying",)
    if not isinstance(to, str) or to not in sources:
        raise ValueError(f"lax.pcast: to is 'varying', 'unreduced' or 'reduced', got {to!r}")
    manual = typed_axes(lookup(axis_name, "lax.pcast"))

    def cast(operand: Any) -> Any:
        aval = aval_of(operand)
        own = aval.manual_axis_type
        for name in manual:
            kind = own.along(name)
            if kind not in sources[to]:
                raise ValueError(
                    f"lax.pcast: {aval.short_name()} is {kind} along {name!r}, and there is no "
                    f"cast from that to {to!r}; {_instead(kind, to, name)}"
                )
        if not manual:
            return operand
        if to == "varying":
            varying = own.become("varying", manual)
            return cast_to(operand, varying)
        primitive = preduced_p if to == "reduced" else vary_unreduced_cast_p
        return primitive.bind(operand, axes=in_order(manual))

    return pytree.map(lambda leaf: as_result(cast(as_operand(leaf, "lax.pcast"))), x)


def _instead(kind: str, to: str, name: AxisName) -> str:
    """What to write where there is no cast."""
    if kind == to:
        return "leave it as it is"
    if kind == "unreduced":
        return f"add it up first, with lax.psum(x, {name!r})"
    if to == "unreduced":
        return (
            f"each device's value would count once: cast it with lax.pcast(x, {name!r}, "
            "to='varying') first if that is what you mean"
        )
    return f"a value that differs has to be added up first, with lax.psum(x, {name!r})"


def pvary(x: PyTree, axis_name: AxisName) -> PyTree:
    """`pcast` to ``"varying"``, by an earlier name.

    Args:
        x: an array, or a pytree of arrays, inside `dovetail.shard_map`.
        axis_name: the axis of the mesh, or a tuple of them.

    Returns:
        `x`, with other types.

    Raises:
        NameError: there is no such axis.

    Example:
        >>> print(dt.vmap(lambda x: lax.pvary(x, "i"), axis_name="i")(jnp.ones(2)))
        [1. 1.]
    """
    return pcast(x, axis_name, to="varying")
