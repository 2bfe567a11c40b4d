"""The primitive `partial_scan`: a scan that ends after a number of iterations known at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.basis.structural import batch_size, is_linear, not_linear, to_front
from dovetail._core.ir.avals import make_aval
from dovetail._core.ir.jaxpr import ClosedJaxpr, JaxprEqn, ordered_effects
from dovetail._core.ir.walk import Reduction
from dovetail._core.ops.control.branches import guarded, unused
from dovetail._core.ops.control.scan import Scan, ScanParams, stepping
from dovetail._core.ops.elementwise.comparison import lt
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.reduction.reductions import reduce_max
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.transform.derived import (
    derived_info,
    function_of,
    remembered,
    varying,
)
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: The dtype of numbers of iterations.
COUNT: Final = np.dtype(np.int32)


class PartialScan(Scan):
    """A scan of the leading elements alone, as many as its first operand says.

    The others are not looked at, and take no time: rows of stacked results that belong to them are
    zeros. A loop that runs backwards starts with the last of the leading elements.
    """

    name = "partial_scan"

    def of_loop(self, turns: Any, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters with which the rules of a scan derive this loop."""
        return {**params, "primitive": self, "leading": (turns,)}

    def abstract(self, turns: Any, *avals: Any, **params: Any) -> Any:
        if turns.shape or turns.dtype != COUNT:
            raise TypeError(f"partial_scan: the number of turns must be an int32, got {turns}")
        return super().abstract(*avals, **params)

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        # Devices that leave the loop at different times have different values.
        turns = avals[0].manual_axis_type
        rest = [a.update(manual_axis_type=a.manual_axis_type | turns) for a in avals[1:]]
        wanted, changed = super().with_axes(rest, params)
        body = changed.get("jaxpr", params["jaxpr"])
        typed = varying(body, wanted, [turns] * len(body.out_avals))
        return [turns, *wanted], ({} if typed is params["jaxpr"] else {"jaxpr": typed})

    def for_divisions(self, avals: Sequence[Any], params: Mapping[str, Any]) -> Mapping[str, Any]:
        return super().for_divisions(avals[1:], params)

    def reference(self, turns: Any, *args: Any, **params: Any) -> Any:
        return super().reference(*args, **self.of_loop(turns, params))

    def taylor(
        self, operands: Sequence[Any], results: Sequence[Any], **params: Any
    ) -> Callable[[int], Any]:
        (turns, *_), *rest = operands
        return super().taylor(rest, results, **self.of_loop(turns, params))

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        return super().jvp(primals[1:], tangents[1:], **self.of_loop(primals[0], params))

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], **params: Any
    ) -> tuple[Any, Callable[..., Any]]:
        of_loop = self.of_loop(primals[0], params)
        outs, tangent = super().linearize(primals[1:], nonzero[1:], **of_loop)
        return outs, lambda _, *tangents: tangent(*tangents)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        turns, *rest = args
        if is_linear(turns):
            raise not_linear("a loop whose number of turns depends on a tangent")
        return [None, *super().transpose(cotangent, *rest, **self.of_loop(turns, params))]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        (turns, *operands), (of_turns, *places) = args, dims
        if of_turns is not None:
            # The loop runs as long as any element does, and elements that are done stay.
            loop = ScanParams.of(params)
            consts, carry, xs = loop.split(operands)
            of_consts, of_carry, of_xs = loop.split(places)
            last = reduce_max(to_front(turns, of_turns, batch_size(args, dims)), (0,))
            operands = [turns, *consts, *carry, iota_like(COUNT, (loop.length,), 0), *xs]
            places = [of_turns, *of_consts, *of_carry, None, *of_xs]
            body = _for_leading(loop.jaxpr, loop.num_consts, loop.num_carry)
            loop = loop._replace(jaxpr=body, num_consts=loop.num_consts + 1)
            turns, params = last, loop.params(len(operands))
        return super().batch(operands, places, **self.of_loop(turns, params))

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        loop = ScanParams.of(params)
        turns, *rest = values
        consts, carry, xs = loop.split(rest)
        _, carry_avals, xs_avals = loop.split(context.avals_in[1:])
        ys_avals = context.avals_out[loop.num_carry :]
        count, place = len(carry), make_aval((), COUNT)
        sliced = list(zip(xs, xs_avals, strict=True))
        step = stepping(context, loop, consts, sliced, ys_avals)
        one = context.constant(1, place)
        end = context.min(turns, context.constant(loop.length, place), place)

        def turn(number: Any, *carried: Any) -> list[Any]:
            after = context.add(number, one, place)
            index = context.sub(end, after, place) if loop.reverse else number
            state, written = step(index, carried[:count], carried[count:])
            return [after, *state, *written]

        _, *carried = context.while_loop(
            [context.constant(0, place), *carry, *(context.constant(0, a) for a in ys_avals)],
            [place, *carry_avals, *ys_avals],
            lambda number, *_: context.compare(number, end, "LT", place),
            turn,
            effects=ordered_effects(loop.jaxpr.effects),
        )
        return carried

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        return super().check(checks, *args[1:], **self.of_loop(args[0], params))

    def dependencies(self, flags: Sequence[bool], **params: Any) -> Sequence[bool]:
        if flags[0]:
            return [True] * len(params["jaxpr"].out_avals)
        return super().dependencies(flags[1:], **params)

    def forwarding(self, **params: Any) -> Sequence[int | None]:
        return [None if n is None else n + 1 for n in super().forwarding(**params)]

    def follow_keys(self, tracker: Any, *operands: Any, **params: Any) -> Any:
        return super().follow_keys(tracker, *operands[1:], **params)

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        turns, *rest = eqn.invars
        reduced = yield from super().dce(eqn.replace(invars=rest), used)
        return None if reduced is None else reduced.replace(invars=[turns, *reduced.invars])


partial_scan_p: Final = PartialScan()


@remembered
def _for_leading(closed: ClosedJaxpr, num_consts: int, num_carry: int) -> ClosedJaxpr:
    """A body for a number of turns, as first argument, and positions, as first elements.

    In later turns it carries what it was given, and returns zeros.
    """
    first = num_consts + num_carry

    def turn(turns: Any, *args: Any) -> list[Any]:
        before, (position, *elements) = args[:first], args[first:]
        runs = lt(position, turns)
        outs = function_of(closed)(*guarded(closed, runs, [*before, *elements]))
        stays = [*before[num_consts:], *map(unused, closed.out_avals[num_carry:])]
        return [
            old if new is old else select_n_p.bind(runs, old, new)
            for old, new in zip(stays, outs, strict=True)
        ]

    avals, count = closed.in_avals, make_aval((), COUNT)
    return stage(turn, [count, *avals[:first], count, *avals[first:]], derived_info(closed, "vmap"))
