"""Jaxprs as those read them who write them in another form."""

from __future__ import annotations

from typing import Any

from dovetail._core.api.vectorization import vmap
from dovetail._core.base.source import user_frame
from dovetail._core.ir.avals import ShapedArray, physical_aval
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, JaxprEqn
from dovetail._core.ir.walk import jaxprs_and_closed_jaxprs
from dovetail._core.ops.elementwise.comparison import eq_p, ne_p
from dovetail._core.ops.random.keys import KeyDType, KeyPrimitive
from dovetail._core.ops.reduction.reductions import reduce_and_p, reduce_or_p
from dovetail._core.transform.stage import stage

__all__ = ["bodies", "numbers_of", "place_of"]


def bodies(eqn: JaxprEqn) -> dict[str, list[ClosedJaxpr]]:
    """The jaxprs in the parameters of an equation: bodies of loops, branches, called functions.

    Args:
        eqn: the equation.

    Returns:
        The jaxprs of each parameter that holds any, by the parameter's name.

    Example:
        >>> import dovetail as dt
        >>> closed = dt.make_jaxpr(dt.jit(lambda x: x * 2.0))(1.0)
        >>> list(bodies(closed.eqns[0]))
        ['jaxpr']
    """
    found = {}
    for name, value in eqn.params.items():
        inner = jaxprs_and_closed_jaxprs({name: value})
        if inner:
            found[name] = [x if isinstance(x, ClosedJaxpr) else ClosedJaxpr(x, ()) for x in inner]
    return found


def place_of(eqn: JaxprEqn) -> str:
    """The user's line that an equation comes from, such as ``model.py:12 (loss)``.

    Args:
        eqn: the equation.

    Example:
        >>> import dovetail as dt
        >>> from dovetail import lax
        >>> place_of(dt.make_jaxpr(lax.sin)(1.0).eqns[0]) != ""
        True
    """
    traceback = eqn.source_info.traceback
    frame = None if traceback is None else user_frame(traceback)
    return "an unknown place" if frame is None else str(frame)


def numbers_of(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """An equation on random keys, as a jaxpr of the numbers that keys are made of.

    A key is a vector of uint32 (``dtype.physical(shape)`` is the shape and dtype of an array of
    keys). Threefry, for one, is sums, shifts and exclusive ors of them.

    Args:
        eqn: the equation.

    Returns:
        A jaxpr with numbers in place of keys; None if the equation has no keys, or has bodies, in
        which each equation is to be asked for.

    Example:
        >>> import dovetail as dt
        >>> from dovetail import random
        >>> closed = dt.make_jaxpr(random.split)(random.key(0))
        >>> numbers_of(closed.eqns[0]).in_avals
        [ShapedArray(uint32[2])]
    """
    avals = [v.aval for v in eqn.invars]
    keys = [_is_key(aval) for aval in avals]
    if not any(keys) and not any(_is_key(v.aval) for v in eqn.outvars):
        return None
    if bodies(eqn):
        return None
    primitive, params = eqn.primitive, eqn.params

    def function(*numbers: Any) -> list[Any]:
        if isinstance(primitive, KeyPrimitive):
            return [primitive.raw(*numbers, avals=avals, **params)]
        # What moves keys moves each of their numbers.
        axes = tuple([-1 if key else None for key in keys])
        moved = vmap(lambda *xs: primitive.bind(*xs, **params), in_axes=axes, out_axes=-1)(*numbers)
        if primitive in (eq_p, ne_p):
            reduction = reduce_and_p if primitive is eq_p else reduce_or_p
            moved = reduction.bind(moved, axes=(eqn.outvars[0].aval.ndim,))
        return list(moved) if primitive.multiple_results else [moved]

    info = DebugInfo("numbers", primitive.name)
    return stage(function, [physical_aval(aval) for aval in avals], info)


def _is_key(aval: Any) -> bool:
    return type(aval) is ShapedArray and isinstance(aval.dtype, KeyDType)
