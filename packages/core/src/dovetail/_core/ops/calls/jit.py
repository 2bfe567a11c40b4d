"""The `jit` primitive: a call of a staged function, compiled as a unit of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dovetail._core.ir.jaxpr import ClosedJaxpr, JaxprEqn
from dovetail._core.ir.walk import Reduction, dce_inside
from dovetail._core.ops.calls.program_primitive import CallPrimitive
from dovetail._core.trace.primitive import Primitive
from dovetail._core.transform.derived import hoist_consts


class Jit(CallPrimitive):
    """A call of `jaxpr`, which has no constants: captured values are its leading arguments."""

    name = "jit"
    is_call = True

    def bind(self, *args: Any, jaxpr: ClosedJaxpr, name: str, **options: object) -> Any:
        """Apply the primitive in the current trace.

        Args:
            *args: the operands.
            jaxpr: the program.
            name: the name of the function.
            **options: what an equation of JAX says beside; it has no effect on a call within a
                program.
        """
        # By the class: a bound method takes C stack, of which Python 3.12 allows little.
        return Primitive.bind(self, *args, jaxpr=jaxpr, name=name)


jit_p: Final = Jit()


def call(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[Any]:
    """Call a staged function as a unit of its own; its constants become leading arguments."""
    jaxpr, constants = hoist_consts(closed)
    results: list[Any] = jit_p.bind(*constants, *args, jaxpr=jaxpr, name=name)
    return results


class RuleCall(CallPrimitive):
    """A call with custom rules; programs derived from its own are called by plain `jit`."""

    #: What its program passes on still has the rules of the call.
    forwarding = Primitive.forwarding

    def rebind(
        self, closed: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any], kept: Sequence[int]
    ) -> list[Any]:
        return call(closed, args, self.called(params))

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        # The rules return a value for every result.
        return dce_inside(eqn, used)

    def evaluate(self, *args: Any, **params: Any) -> Any:
        """The results; only the program is compiled, not the rules."""
        return jit_p.bind(*args, jaxpr=params[self.program], name=self.called(params))
