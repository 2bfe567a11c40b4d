"""Primitives that carry a program: calls, checkpointed functions, functions with custom rules.

To add one, derive from `CallPrimitive` if its derivatives and batches are simply those of its
program, from `OperationPrimitive` if they are the program itself and no call, otherwise from
`ProgramPrimitive`, which leaves these rules to the subclass, and define

- `program`: the parameter that holds the program, a `ClosedJaxpr` without constants that takes the
  operands and returns the results;
- `rebind`, if the default is wrong: how to bind the primitive with another program (for tangents,
  cotangents, a batch or checks) instead of its own;
- `for_operands`, if a parameter has an entry for each operand: its value for other operands.

All rules follow from these. A subclass that differs in one overrides it and says why. To derive a
rule from other rules instead, reset it to that of `Primitive` (`linearize = Primitive.linearize`:
`jvp` is split). A call with a lowering of its own overrides `lower`, and is complete::

    class Traced(CallPrimitive):
        name = "traced_call"

        def lower(self, context, *values, jaxpr, label):
            return context.inline_jaxpr(jaxpr, values)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from dovetail._core.base.flags import partition
from dovetail._core.basis.structural import batch_size, is_linear
from dovetail._core.ir.jaxpr import ClosedJaxpr, Effects, JaxprEqn, no_effects
from dovetail._core.ir.walk import Reduction, Wanted, dce_inside
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero, wanted_among, with_zeros, without_zeros
from dovetail._core.transform.batch import batch_flat
from dovetail._core.transform.derived import (
    batch_of,
    dependence_of,
    divided,
    forwarding_of,
    function_of,
    hoist_consts,
    jvp_of,
    linearization_of,
    reference_of,
    taylor_of_call,
    transposition_of,
    varying,
)
from dovetail._core.transform.jvp import jvp_flat

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class ProgramPrimitive(Primitive):
    """A primitive that returns the results of a program in its parameters.

    This class holds the rules that do not depend on derivatives and batches. Dead code elimination
    keeps all results, since rules of subclasses return a value for each.

    Attributes:
        program: the name of the parameter that holds the program.
    """

    multiple_results = True
    accepts_zeros = True
    transposes_partly = True
    has_effects = True
    generates_nan = False
    types_axes = True
    types_divisions = True
    program: ClassVar[str] = "jaxpr"

    def rebind(
        self, closed: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any], kept: Sequence[int]
    ) -> list[Any]:
        """Bind the primitive with another program.

        Args:
            closed: the program; its constants become leading operands.
            args: its arguments.
            params: the parameters of the original equation.
            kept: the operands of that equation that the leading arguments are; the others are new.
        """
        jaxpr, constants = hoist_consts(closed)
        params = self.for_operands(params, len(constants), kept, len(args) - len(kept))
        results: list[Any] = self.bind(*constants, *args, **{**params, self.program: jaxpr})
        return results

    def for_operands(
        self, params: dict[str, Any], constants: int, kept: Sequence[int], new: int
    ) -> dict[str, Any]:
        """The parameters for other operands.

        Args:
            params: those for the present operands.
            constants: how many new operands come first, the constants of a program.
            kept: which of the present operands follow.
            new: how many new operands come last.
        """
        return params

    def called(self, params: dict[str, Any]) -> str:
        """The name of the function in lowered programs."""
        name: str = params.get("name", self.name)
        return name

    def abstract(self, *avals: Any, **params: Any) -> Any:
        closed: ClosedJaxpr = params[self.program]
        expected = closed.in_avals
        # Comparing equal lists is fast: their avals are nearly always the same objects.
        if list(avals) != expected and (
            len(avals) != len(expected)
            or any(
                a.shape != e.shape or a.dtype != e.dtype
                for a, e in zip(avals, expected, strict=True)
            )
        ):
            what = f"{self.name} of {params['name']}" if "name" in params else self.name
            raise TypeError(f"{what} takes {expected}, got {list(avals)}")
        return closed.out_avals

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        closed: ClosedJaxpr = params[self.program]
        wanted = [
            a.manual_axis_type | own.manual_axis_type
            for a, own in zip(avals, closed.in_avals, strict=False)
        ]
        program = varying(closed, wanted)
        return wanted, ({} if program is closed else {self.program: program})

    def for_divisions(self, avals: Sequence[Any], params: Mapping[str, Any]) -> Mapping[str, Any]:
        closed: ClosedJaxpr = params[self.program]
        program = divided(closed, [a.division for a in avals])
        return {} if program is closed else {self.program: program}

    def reference(self, *args: Any, **params: Any) -> Any:
        return reference_of(params[self.program], args)

    def effects(self, *avals: Any, **params: Any) -> Effects:
        effects: Effects = params[self.program].jaxpr.effects
        return effects

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        return context.call_jaxpr(params[self.program], values, self.called(params))

    def dependencies(self, flags: Sequence[bool], **params: Any) -> Sequence[bool]:
        return dependence_of(params[self.program], tuple(flags))

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        return dce_inside(eqn, used)

    def follow_keys(self, tracker: Any, *operands: Any, **params: Any) -> Any:
        return tracker.follow(params[self.program], operands)


class OperationPrimitive(ProgramPrimitive):
    """A program that a backend or the compiler may take as one operation, which is never split.

    Under differentiation and vmap it is the program.
    """

    has_effects = False
    dependencies = Primitive.dependencies

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        outs = self.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return outs, [Zero.of(o) for o in outs]
        return outs, jvp_flat(function_of(params[self.program]), primals, tangents)[1]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return batch_flat(function_of(params[self.program]), args, dims, batch_size(args, dims))

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        closed = params[self.program]
        if checks.checked(closed)[0] is closed:
            return self.bind(*args, **params)
        return checks.evaluate(closed, args)


class CallPrimitive(ProgramPrimitive):
    """A primitive whose transformation is the same call of the transformed program."""

    def for_derivatives(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of calls that compute tangents or cotangents alone."""
        return params

    def forwarding(self, **params: Any) -> Sequence[int | None]:
        return forwarding_of(params[self.program])

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        nonzero, nonzero_tangents = without_zeros(tangents)
        derived, nonzero_out = jvp_of(params[self.program], nonzero)
        results = self.rebind(derived, [*primals, *nonzero_tangents], params, range(len(primals)))
        outs = results[: len(nonzero_out)]
        return outs, with_zeros(nonzero_out, results[len(outs) :], outs)

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], **params: Any
    ) -> tuple[Any, Callable[..., Any]]:
        split = linearization_of(params[self.program], tuple(nonzero))
        results = self.rebind(split.primal, primals, params, range(len(primals)))
        outs = results[: len(split.nonzero_out)]
        residuals = split.residuals(primals, results)

        def tangent(*tangents: Any) -> list[Any]:
            nonzero_tangents, _ = partition(nonzero, tangents)
            out_tangents = self.rebind(
                split.linear, [*residuals, *nonzero_tangents], self.for_derivatives(params), ()
            )
            return with_zeros(split.nonzero_out, out_tangents, outs)

        return outs, tangent

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        linear = tuple(map(is_linear, args))
        nonzero_cts, cts = without_zeros(cotangent)
        derived = transposition_of(
            params[self.program], linear, nonzero_cts, None, wanted_among(args)
        )
        nonlinear = [i for i, is_lin in enumerate(linear) if not is_lin]
        operands = [args[i] for i in nonlinear]
        derivatives = self.for_derivatives(params)
        results = self.rebind(derived.jaxpr, [*operands, *cts], derivatives, nonlinear)
        return derived.cotangents(linear, results)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        derived, out_dims = batch_of(params[self.program], batch_size(args, dims), tuple(dims))
        return self.rebind(derived, args, params, range(len(args))), out_dims

    def taylor(
        self, operands: Sequence[Any], results: Sequence[Any], **params: Any
    ) -> Callable[[int], Any]:
        kept = range(len(operands))
        return taylor_of_call(
            params[self.program],
            operands,
            lambda derived, args: self.rebind(derived, args, params, kept),
        )

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        checked, error = checks.checked(params[self.program])
        outs = self.rebind(checked, args, params, range(len(args)))
        checks.record(error, outs[: error.num_leaves])
        return outs[error.num_leaves :]

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        closed: ClosedJaxpr = eqn.params[self.program]
        reduced, kept = yield Wanted(closed, tuple(used))
        if reduced is closed:
            return eqn
        numbers = [i for i, keep in enumerate(kept) if keep]
        params = self.for_operands({**eqn.params, self.program: reduced}, 0, numbers, 0)
        return eqn.replace(
            invars=[eqn.invars[i] for i in numbers],
            outvars=partition(used, eqn.outvars)[0],
            params=params,
            effects=reduced.jaxpr.effects if eqn.effects else no_effects,
        )
