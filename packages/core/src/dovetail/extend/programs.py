"""Jaxprs as exporters and other interpreters read them.

An equation has ``primitive.name``, ``invars`` and ``outvars`` with an ``aval`` each, and
``params``; an operand is a `Var`, or a `Literal` with its value in ``val``. `bodies` gives the
jaxprs inside an equation, `numbers_of` what is done with random keys as arithmetic, and
`inline_calls` puts the equations of called functions in place of the calls:

    from dovetail.extend.programs import all_equations, inline_calls, place_of

    for eqn in inline_calls(closed).eqns:
        print(eqn.primitive.name, [v.aval for v in eqn.invars], place_of(eqn))
"""

from dovetail._core.api.programs import bodies as bodies
from dovetail._core.api.programs import numbers_of as numbers_of
from dovetail._core.api.programs import place_of as place_of
from dovetail._core.ir.walk import all_equations as all_equations
from dovetail._core.ir.walk import inline_calls as inline_calls

__all__ = ["all_equations", "bodies", "inline_calls", "numbers_of", "place_of"]
