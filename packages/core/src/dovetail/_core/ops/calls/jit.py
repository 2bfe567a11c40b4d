"""The `jit` primitive: a call of a staged function, compiled as a unit of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.basis.structural import batch_size, is_linear
from dovetail._core.ir.jaxpr import ClosedJaxpr, Effects, JaxprEqn
from dovetail._core.ir.walk import Reduction, dce_call
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero, wanted_among
from dovetail._core.transform.derived import (
    batch_of,
    dependence_of,
    hoist_consts,
    jvp_of,
    linearization_of,
    reference_of,
    taylor_of_call,
    transposition_of,
)

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class Jit(Primitive):
    """A call of `jaxpr`, which has no constants: what it captured are its leading arguments."""

    name = "jit"
    multiple_results = True
    accepts_zeros = True
    transposes_partly = True
    has_effects = True
    is_call = True
    generates_nan = False

    def abstract(self, *avals: Any, jaxpr: ClosedJaxpr, name: str) -> Any:
        expected = jaxpr.in_avals
        if len(avals) != len(expected) or any(
            a is not e and (a.shape != e.shape or a.dtype != e.dtype)
            for a, e in zip(avals, expected, strict=True)
        ):
            raise TypeError(f"jit of {name} takes {expected}, got {list(avals)}")
        return jaxpr.out_avals

    def reference(self, *args: Any, jaxpr: ClosedJaxpr, name: str) -> Any:
        return reference_of(jaxpr, args)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, name: str
    ) -> tuple[Any, Any]:
        nonzero = tuple(type(t) is not Zero for t in tangents)
        derived, nonzero_out = jvp_of(jaxpr, nonzero)
        results = call(derived, [*primals, *(t for t in tangents if type(t) is not Zero)], name)
        count = len(nonzero_out)
        outs, given = results[:count], iter(results[count:])
        return outs, [
            next(given) if v else Zero.of(o) for o, v in zip(outs, nonzero_out, strict=True)
        ]

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], *, jaxpr: ClosedJaxpr, name: str
    ) -> tuple[Any, Callable[..., Any]]:
        primal, linear, forwarded, nonzero_out = linearization_of(jaxpr, tuple(nonzero))
        results = call(primal, primals, name)
        count = len(nonzero_out)
        outs, computed = results[:count], iter(results[count:])
        residuals = [next(computed) if f is None else primals[f] for f in forwarded]

        def tangent(*tangents: Any) -> list[Any]:
            given = [t for t, n in zip(tangents, nonzero, strict=True) if n]
            varying = iter(self.bind(*residuals, *given, jaxpr=linear, name=name))
            return [
                next(varying) if v else Zero.of(o) for o, v in zip(outs, nonzero_out, strict=True)
            ]

        return outs, tangent

    def transpose(self, cotangent: Any, *args: Any, jaxpr: ClosedJaxpr, name: str) -> Sequence[Any]:
        linear = tuple(is_linear(a) for a in args)
        given = tuple(type(ct) is not Zero for ct in cotangent)
        derived, nonzero = transposition_of(jaxpr, linear, given, None, wanted_among(args))
        operands = [a for a, lin in zip(args, linear, strict=True) if not lin]
        cts = [ct for ct, g in zip(cotangent, given, strict=True) if g]
        results = iter(call(derived, [*operands, *cts], name))
        found = iter(next(results) if v else None for v in nonzero)
        return [next(found) if lin else None for lin in linear]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr, name: str
    ) -> tuple[Any, Any]:
        derived, out_dims = batch_of(jaxpr, batch_size(args, dims), tuple(dims))
        return call(derived, args, name), out_dims

    def lower(self, context: Builder, *values: Any, jaxpr: ClosedJaxpr, name: str) -> Any:
        return context.call_jaxpr(jaxpr, values, name)

    def taylor(
        self, operands: Sequence[Any], results: Sequence[Any], *, jaxpr: ClosedJaxpr, name: str
    ) -> Callable[[int], Any]:
        return taylor_of_call(jaxpr, operands, lambda derived, args: call(derived, args, name))

    def effects(self, *avals: Any, **params: Any) -> Effects:
        effects: Effects = params["jaxpr"].jaxpr.effects
        return effects

    def check(self, checks: Any, *args: Any, jaxpr: ClosedJaxpr, name: str) -> Any:
        checked, error = checks.checked(jaxpr)
        outs = call(checked, args, name)
        checks.found(error, outs[: error.num_leaves])
        return outs[error.num_leaves :]

    def dependencies(
        self, flags: Sequence[bool], *, jaxpr: ClosedJaxpr, name: str
    ) -> Sequence[bool]:
        found: list[bool] = dependence_of(jaxpr, tuple(flags))
        return found

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        return dce_call(eqn, used)


jit_p: Final = Jit()


def call(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[Any]:
    """Call a staged function as a unit of its own; its constants become leading arguments."""
    jaxpr, constants = hoist_consts(closed)
    results: list[Any] = jit_p.bind(*constants, *args, jaxpr=jaxpr, name=name)
    return results
