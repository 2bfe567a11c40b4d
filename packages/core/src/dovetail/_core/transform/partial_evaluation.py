"""Partial evaluation: computes some results of an operation without the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail._core.base.flags import partition
from dovetail._core.basis.structural import instantiate_zeros, is_linear
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from dovetail._core.ir.walk import dce
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Unwanted, Zero


def apply_part(
    primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any], wanted: Sequence[bool]
) -> list[Any]:
    """Some of the results of an operation, computed without the others if possible.

    Args:
        primitive: the operation.
        args: its arguments; an aval or `Unwanted` for any on which these results do not depend.
        params: its parameters.
        wanted: for each result, whether to return it.
    """
    args = [a.aval if type(a) is Unwanted else a for a in args]
    avals = [a if is_linear(a) else aval_of(a) for a in args]
    invars = [a if type(a) is Literal else Var(aval) for a, aval in zip(args, avals, strict=True)]
    inferred, params = primitive.inferred(tuple(avals), params)
    outvars = [Var(aval) for aval in inferred]
    wanted_vars, _ = partition(wanted, outvars)
    (eqn,) = dce(Jaxpr([], [], wanted_vars, [JaxprEqn(invars, outvars, primitive, params)]))[0].eqns
    values = dict(zip(invars, args, strict=True))
    operands = [
        instantiate_zeros(Zero(a)) if is_linear(a) else a for a in (values[v] for v in eqn.invars)
    ]
    results = dict(zip(eqn.outvars, eqn.primitive.bind(*operands, **eqn.params), strict=True))
    return [results[v] for v in wanted_vars]
