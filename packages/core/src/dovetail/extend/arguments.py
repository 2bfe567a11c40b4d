"""From what users pass to what primitives take.

A function of an API checks its arguments first, with messages that name the function and the
argument; then it binds primitives, or calls functions of `dovetail.extend.unchecked`:

    from dovetail import lax
    from dovetail.extend.arguments import checked_operand, scalar_literal
    from dovetail.extend.avals import aval_of

    def doubled(x):
        x = checked_operand(x, "doubled")
        return lax.mul_p.bind(x, scalar_literal(2, aval_of(x).dtype))

Operands that are scalars of the host come back as a `Literal`, which primitives take and which
users do not see.
"""

from __future__ import annotations

from dovetail._core.base.source import describe as user_line
from dovetail._core.base.source import warn as warn_user
from dovetail._core.basis.operands import literal as scalar_literal
from dovetail._core.basis.operands import operand as checked_operand
from dovetail._core.ir.jaxpr import Literal as Literal
from dovetail._core.ops.shape.dimensions import refuse_sharding as refuse_sharding

__all__ = [
    "Literal",
    "checked_operand",
    "refuse_sharding",
    "scalar_literal",
    "user_line",
    "warn_user",
]
