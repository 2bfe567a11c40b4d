"""The primitive `bounded_while`: a loop with a bound on its iterations, which has gradients.

For the derivative in reverse mode the loop keeps the carry at the start of each segment of a fixed
number of iterations, and how many iterations there were. The linear program runs through the
segments, and recomputes within each from its first carry: checkpointing on two levels with uniform
segments (K. M. Chandy and C. V. Ramamoorthy, "Rollback and recovery strategies for computer
programs", 1972; A. Griewank and A. Walther, "Evaluating Derivatives", 2nd edition, 2008, chapter
12), of which it does only as many as the loop has begun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dovetail._core.base.flags import Flags, merge, partition
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import (
    batch_size,
    broadcast_in_dim,
    instantiate_zeros,
    is_linear,
    not_linear,
    to_front,
)
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ir.effects import input_output
from dovetail._core.ir.jaxpr import ClosedJaxpr, JaxprEqn, Literal, no_effects, ordered_effects
from dovetail._core.ir.walk import Reduction, drop_unused, substitute
from dovetail._core.ops.checkpoint.remat import remat_p
from dovetail._core.ops.checks.checking import batch_with_checks, has_checks
from dovetail._core.ops.checks.error import settled, union
from dovetail._core.ops.control.bodies import Derive, tangents_of_body, terms_of_body
from dovetail._core.ops.control.branches import guarded, unused
from dovetail._core.ops.control.partial_scan import COUNT, partial_scan_p
from dovetail._core.ops.control.scan import ScanParams, stacked_aval, stacked_keys
from dovetail._core.ops.control.while_loop import (
    While,
    WhileParams,
    any_of,
    bind_while,
    checked_loop,
    derived_loop,
    reduced_loop,
    with_constants,
    with_own_keys,
)
from dovetail._core.ops.elementwise.arithmetic import add, div, mul, sub
from dovetail._core.ops.elementwise.comparison import lt
from dovetail._core.ops.elementwise.extrema import clamp
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.loops.progress import report_progress_p
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.trace.zeros import with_zeros
from dovetail._core.transform.batch import place_batch
from dovetail._core.transform.derived import (
    Batched,
    batch_of,
    dependence_of,
    derived_info,
    function_of,
    linearization_of,
    reference_of,
    remembered,
    with_order,
)
from dovetail._core.transform.partial_evaluation import apply_part
from dovetail._core.transform.stage import stage
from dovetail._core.transform.taylor import by_order, terms_of, up_to

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class Bound(NamedTuple):
    """What a bounded loop has besides the parameters of a while loop.

    Attributes:
        max_steps: the largest number of iterations.
        segment: the number of iterations from one kept state to the next.
        kept: for each part of the carry, whether its values at the start of segments are results.
    """

    max_steps: int
    segment: int
    kept: Flags

    @classmethod
    def of(cls, params: dict[str, Any]) -> tuple[WhileParams, Bound]:
        """The parameters of the while loop, and the others, from those of an equation."""
        fields = {name: params[name] for name in WhileParams._fields}
        return WhileParams(**fields), cls(*(params[name] for name in cls._fields))

    @property
    def segments(self) -> int:
        """The largest number of segments."""
        return -(-self.max_steps // self.segment)

    def keeping(self, kept: Sequence[bool]) -> Bound:
        """The same bound with other results."""
        return self._replace(kept=tuple(kept))

    def bind(self, *parts: Any) -> list[Any]:
        """Bind a loop, given by arguments of `bind_while`, with this bound."""
        condition, cond_consts, body, body_consts, carry = parts
        primitive, bound = bounded_while_p, self._asdict()
        return bind_while(condition, cond_consts, body, body_consts, carry, primitive, **bound)


class BoundedWhile(While):
    """Runs a body as long as a condition holds, a bounded number of times.

    Its results are the number of iterations, what is carried at the end, and of the parts of the
    carry that are kept the values at the start of each segment; zeros for those that never began.
    """

    name = "bounded_while"
    transposes_partly = True

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        loop, _ = Bound.of(params)
        return super().with_axes(avals, loop._asdict())

    def for_divisions(self, avals: Sequence[Any], params: Any) -> Any:
        loop, _ = Bound.of(params)
        return super().for_divisions(avals, loop._asdict())

    def abstract(self, *avals: Any, **params: Any) -> Any:
        loop, bound = Bound.of(params)
        carry = super().abstract(*avals, **loop._asdict())
        turns = loop.cond_jaxpr.out_avals[0].manual_axis_type
        kept, _ = partition(bound.kept, carry)
        count = make_aval((), COUNT).update(manual_axis_type=turns)
        return [count, *carry, *(stacked_aval(a, bound.segments) for a in kept)]

    def reference(self, *args: Any, **params: Any) -> Any:
        loop, bound = Bound.of(params)
        cond_consts, body_consts, carry = loop.split(args)
        first, _ = partition(bound.kept, carry)
        stacks = [np.zeros((bound.segments, *np.shape(x)), np.asarray(x).dtype) for x in first]
        count = 0
        while (
            count < bound.max_steps and (reference_of(loop.cond_jaxpr, [*cond_consts, *carry])[0])
        ):
            if count % bound.segment == 0:
                for stack, value in zip(stacks, partition(bound.kept, carry)[0], strict=True):
                    stack[count // bound.segment] = value
            carry = reference_of(loop.body_jaxpr, [*body_consts, *carry])
            count += 1
        return [np.asarray(count, COUNT), *carry, *stacks]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        loop, _ = Bound.of(params)
        terms = [[t] for t in tangents[loop.cond_nconsts :]]
        outs, out_tangents = _along(params, primals, terms, tangents_of_body)
        return outs, out_tangents

    def taylor(
        self, operands: Sequence[Any], results: Sequence[Any], **params: Any
    ) -> Callable[[int], Any]:
        loop, _ = Bound.of(params)

        def truncated(order: int) -> list[list[Any]]:
            terms = terms_of(operands[loop.cond_nconsts :], order)
            primals = [x[0] for x in operands]
            derivative = partial(terms_of_body, order=order)
            return _along(params, primals, terms, derivative, order)

        return up_to(truncated)

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], **params: Any
    ) -> tuple[Any, Callable[..., Any]]:
        loop, bound = Bound.of(params)
        consts, many = loop.body_nconsts, len(bound.kept)
        flags = list(nonzero[loop.cond_nconsts :])
        while True:
            carried = tuple(flags[consts:])
            found = linearization_of(loop.body_jaxpr, tuple(flags), carried).nonzero_out
            grown = [*flags[:consts], *(a or b for a, b in zip(carried, found, strict=True))]
            if grown == flags:
                break
            flags = grown
        dual = _with_tangents(loop.body_jaxpr, tuple(flags), consts)
        of_consts, of_carry = flags[:consts], flags[consts:]
        outs = self.bind(*primals, **params | {"kept": (True,) * many})
        count, last, stacks = outs[0], outs[1 : 1 + many], outs[1 + many :]
        results = [count, *last, *partition(bound.kept, stacks)[0]]
        _, body_consts, _ = loop.split(primals)
        kept, _ = partition(of_carry, bound.kept)
        replay = _Replay(
            dual,
            bound.keeping([*[False] * many, *kept]),
            consts + sum(of_consts),
            (*[False] * many, *[True] * sum(of_carry)),
        )
        places = replay.places(count)

        def tangent(*tangents: Any) -> list[Any]:
            given = list(map(instantiate_zeros, partition(flags, tangents[loop.cond_nconsts :])[0]))
            first = sum(of_consts)
            operands = replay.operands(
                places, [*body_consts, *given[:first]], given[first:], stacks
            )
            out = partial_scan_p.bind(*operands, **replay.params())
            of_last, of_stacks = out[: sum(of_carry)], out[sum(of_carry) :]
            of_kept, _ = partition(bound.kept, of_carry)
            return with_zeros((False, *of_carry, *of_kept), [*of_last, *of_stacks], results)

        return results, tangent

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Any:
        loop, bound = Bound.of(params)
        consts, many = loop.body_nconsts, len(bound.kept)
        cond_consts, body_consts, carry = loop.split(args)
        flags = [is_linear(a) for a in (*body_consts, *carry)]
        while True:
            after = dependence_of(loop.body_jaxpr, tuple(flags))
            grown = [*flags[:consts], *(a or b for a, b in zip(flags[consts:], after, strict=True))]
            if grown == flags:
                break
            flags = grown
        linear = flags[consts:]
        of_condition = (*(is_linear(a) for a in cond_consts), *linear)
        if any(dependence_of(loop.cond_jaxpr, of_condition)):
            raise not_linear("a loop whose condition depends on a tangent")
        known = [not lin for lin in linear]
        # What depends on no tangent runs first, and says how often the rest is to run.
        wanted = [True, *[False] * many, *[True] * sum(known)]
        count, *stacks = apply_part(self, args, params | {"kept": tuple(known)}, wanted)
        replay = _Replay(loop.body_jaxpr, bound, consts, tuple(linear))
        first, _ = partition(linear, carry)
        operands = replay.operands(replay.places(count), body_consts, first, stacks)
        of_last, _ = partition(linear, cotangent[1 : 1 + many])
        of_stacks, _ = partition(partition(bound.kept, linear)[0], cotangent[1 + many :])
        given = partial_scan_p.transpose([*of_last, *of_stacks], *operands, **replay.params())
        of_consts, of_carry = given[1 : 1 + consts], given[1 + consts : 1 + consts + sum(linear)]
        return [
            *[None] * loop.cond_nconsts,
            *of_consts,
            *merge(linear, of_carry, [None] * sum(known)),
        ]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        loop, bound = Bound.of(params)
        size = batch_size(args, dims)
        batched = _batched(loop, size, dims, counts=False)
        if batched.body is not None:
            outs = batched.bind(bound, loop, args, dims, size)
            of_last = [0 if b else None for b in batched.flags]
            of_stacks, _ = partition(bound.kept, [1 if b else None for b in batched.flags])
            return outs, [None, *of_last, *of_stacks]
        effects = self.effects(**params)
        if has_checks(effects):
            return batch_with_checks(self, args, dims, params)
        if input_output(effects):
            raise NotImplementedError(
                "vmap of lax.while_loop whose condition is mapped runs the body for all "
                "elements until the last one is done, and it has effects that would then "
                f"happen for all: {sorted(map(str, effects))}"
            )
        # Each element counts its own iterations, and stays as it is when its loop has ended.
        cond_consts, body_consts, carry = loop.split(args)
        of_cond, of_body, of_carry = loop.split(dims)
        own = _counting(loop.body_jaxpr, loop.cond_jaxpr, *loop[2:])
        counted = [make_literal(0, COUNT), *carry]
        args = [*cond_consts, *cond_consts, *body_consts, *counted]
        dims = [*of_cond, *of_cond, *of_body, None, *of_carry]
        batched = _batched(own, size, dims, counts=True)
        _, counts, *outs = batched.bind(bound.keeping([False, *bound.kept]), own, args, dims, size)
        many = len(bound.kept)
        last, stacks = outs[:many], outs[many:]
        flags = batched.flags[1:]
        numbers = iota_like(COUNT, (bound.segments, size), 0)
        before = mul(numbers, make_literal(bound.segment, COUNT))
        begun = lt(before, broadcast_in_dim(counts, (bound.segments, size), (1,)))
        of_stacks, _ = partition(bound.kept, [1 if b else None for b in flags])
        shown = []
        for stack, dim in zip(stacks, of_stacks, strict=True):
            stack = place_batch(stack, dim, size, 1)
            taken = broadcast_in_dim(begun, shape_of(stack), (0, 1))
            shown.append(select_n_p.bind(taken, unused(aval_of(stack)), stack))
        of_last = [0 if b else None for b in flags]
        return [counts, *last, *shown], [0, *of_last, *[1] * len(shown)]

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        loop, bound = Bound.of(params)
        cond_consts, body_consts, carry = loop.split(values)
        _, _, avals = loop.split(context.avals_in)
        effects = ordered_effects(self.effects(**params))
        many, place = len(carry), make_aval((), COUNT)
        proceeds = loop.cond_jaxpr.out_avals[0]
        stack_avals = context.avals_out[1 + many :]
        most = context.constant(bound.max_steps, place)

        def holds(now: Sequence[Any]) -> list[Any]:
            return context.inline_jaxpr(loop.cond_jaxpr, [*cond_consts, *now])

        def turn(count: Any, _: Any, *now: Any) -> list[Any]:
            after = context.inline_jaxpr(loop.body_jaxpr, [*body_consts, *now])
            return [context.add(count, context.constant(1, place), place), *holds(after), *after]

        def until(end: Any) -> Callable[..., Any]:
            def goes_on(count: Any, proceed: Any, *_: Any) -> Any:
                below = context.compare(count, end, "LT", place)
                return context.and_(proceed, below, proceeds)

            return goes_on

        def written(stack: Any, value: Any, aval: Any, row: Any) -> Any:
            zeros = [context.constant(0, place)] * (len(aval.shape) - 1)
            one = context.reshape(value, aval.update(shape=(1, *aval.shape[1:])))
            return context.dynamic_update_slice(stack, one, aval, [row, *zeros])

        def segment(row: Any, *state: Any) -> list[Any]:
            now = list(state[: 2 + many])
            kept, _ = partition(bound.kept, now[2:])
            rows = zip(state[2 + many :], kept, stack_avals, strict=True)
            stacks = [written(stack, value, aval, row) for stack, value, aval in rows]
            after = context.add(row, context.constant(1, place), place)
            if bound.segment == 1:
                return [after, *turn(*now), *stacks]
            end = context.mul(after, context.constant(bound.segment, place), place)
            end = context.min(end, most, place)
            now = context.while_loop(now, types, until(end), turn, effects)
            return [after, *now, *stacks]

        zero = context.constant(0, place)
        types = [place, proceeds, *avals]
        first = [zero, *holds(carry), *carry]
        if not stack_avals:
            count, _, *last = context.while_loop(first, types, until(most), turn, effects)
            return [count, *last]
        stacks = [context.constant(0, a) for a in stack_avals]
        goes_on = until(most)
        _, count, _, *last = context.while_loop(
            [zero, *first, *stacks],
            [place, *types, *stack_avals],
            lambda _, *state: goes_on(*state),
            segment,
            effects,
        )
        return [count, *last]

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        loop, bound = Bound.of(params)
        condition, of_condition = checks.checked(loop.cond_jaxpr)
        body, of_body = checks.checked(loop.body_jaxpr)
        error = union([of_condition, of_body])
        if condition is loop.cond_jaxpr and body is loop.body_jaxpr:
            return self.bind(*args, **params)
        cond_consts, body_consts, carry = loop.split(args)
        *found, proceed = function_of(condition)(*cond_consts, *carry)
        again, turn = checked_loop(body, of_body, condition, of_condition, loop.cond_nconsts)
        first = settled(of_condition.unflatten(found), error)
        count, *outs = bound.keeping([*[False] * (len(first) + 1), *bound.kept]).bind(
            again, [], turn, [*cond_consts, *body_consts], [*first, proceed, *carry]
        )
        checks.record(error, outs[: error.num_leaves])
        return [count, *outs[error.num_leaves + 1 :]]

    def dependencies(self, flags: Sequence[bool], **params: Any) -> Sequence[bool]:
        loop, bound = Bound.of(params)
        carry = super().dependencies(flags, **loop._asdict())
        of_cond, _, _ = loop.split(flags)
        turns = any(dependence_of(loop.cond_jaxpr, (*of_cond, *carry)))
        return [turns, *carry, *partition(bound.kept, carry)[0]]

    def forwarding(self, **params: Any) -> Sequence[int | None]:
        loop, bound = Bound.of(params)
        return [None, *super().forwarding(**loop._asdict()), *[None] * sum(bound.kept)]

    def follow_keys(self, tracker: Any, *operands: Any, **params: Any) -> Any:
        loop, bound = Bound.of(params)
        carry = super().follow_keys(tracker, *operands, **loop._asdict())
        kept, _ = partition(bound.kept, loop.body_jaxpr.in_avals[loop.body_nconsts :])
        return [None, *carry, *stacked_keys(kept, [], range(bound.segments))]

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        loop, bound = Bound.of(dict(eqn.params))
        many = len(bound.kept)
        used_stacks = merge(bound.kept, used[1 + many :], [False] * (many - sum(bound.kept)))
        wanted = [a or b for a, b in zip(used[1 : 1 + many], used_stacks, strict=True)]
        reduced = yield from reduced_loop(loop, wanted)
        eqn = drop_unused(eqn, used)
        count, carry, stacks = eqn.outvars[0], eqn.outvars[1 : 1 + many], eqn.outvars[1 + many :]
        stacks, _ = partition(used[1 + many :], stacks)
        if reduced is None:
            if all(used[1 + many :]):
                return eqn
            kept = bound.keeping(used_stacks)
            return eqn.replace(
                outvars=[count, *carry, *stacks], params={**loop._asdict(), **kept._asdict()}
            )
        kept = bound.keeping(partition(reduced.carried, used_stacks)[0])
        eqn = reduced.replaced(eqn, carry, **kept._asdict())
        return eqn.replace(outvars=[count, *eqn.outvars, *stacks])


bounded_while_p: Final = BoundedWhile()


def run_bounded(max_steps: int, segment: int) -> Callable[..., list[Any]]:
    """What binds a loop with a bound, from the arguments of `bind_while` to the last carry.

    Args:
        max_steps: the largest number of iterations.
        segment: the number of iterations from one kept state to the next.
    """

    def bind(
        condition: ClosedJaxpr,
        cond_consts: Sequence[Any],
        body: ClosedJaxpr,
        body_consts: Sequence[Any],
        carry: Sequence[Any],
    ) -> list[Any]:
        loop = WhileParams(condition, body, len(cond_consts), len(body_consts))
        operands = [*cond_consts, *body_consts, *carry]
        # What the body returns as it got it is not kept for each segment.
        still = loop.unchanged()
        if any(still):
            none = [()] * len(body.in_avals)
            loop, operands, _ = with_constants(loop, still, operands, none)
        of_cond, of_body, changing = loop.split(operands)
        bound = Bound(max_steps, segment, (False,) * len(changing))
        _, *last = bound.bind(loop.cond_jaxpr, of_cond, loop.body_jaxpr, of_body, changing)
        return merge(still, partition(still, carry)[0], last)

    return bind


def _along(
    params: dict[str, Any],
    primals: Sequence[Any],
    terms: Sequence[Sequence[Any]],
    derivative: Callable[[ClosedJaxpr], Derive],
    order: int = 1,
) -> list[list[Any]]:
    """The loop with a body of primals and their tangents, or Taylor coefficients.

    Args:
        params: the parameters of the loop.
        primals: its operands.
        terms: for each operand of the body, its tangent or all its coefficients.
        derivative: gives for the body what derives it.
        order: the number of coefficients.

    Returns:
        The results, and for each order their terms.
    """
    loop, bound = Bound.of(params)
    derived = derived_loop(loop, primals, terms, derivative)
    of_carry, many = derived.nonzero_out, len(bound.kept)
    of_kept, _ = partition(bound.kept, of_carry)
    of_terms = [k for k, flags in zip(bound.kept, of_carry, strict=True) for f in flags if f]
    bound = bound.keeping([*bound.kept, *of_terms])
    count, *rest = bound.bind(*derived.parts)
    last, stacks = rest[: len(bound.kept)], rest[len(bound.kept) :]
    outs = [
        *(count, *last[:many], *stacks[: len(of_kept)]),
        *(*last[many:], *stacks[len(of_kept) :]),
    ]
    return by_order(outs, [(False,) * order, *of_carry, *of_kept])


@remembered
def _with_tangents(body: ClosedJaxpr, flags: Flags, num_consts: int) -> ClosedJaxpr:
    """A body that also carries tangents, for a second computation.

    Args:
        body: the body.
        flags: which of its arguments have a tangent; each part of the carry has one in all
            iterations or in none.
        num_consts: the number of its constants.

    Returns:
        The body, from constants, their tangents, carry and its tangents to carry and its tangents.
    """
    derived = linearization_of(body, flags, flags[num_consts:])
    tangents, _ = partition(flags, [a.tangent() for a in body.in_avals])
    split, many = sum(flags[:num_consts]), len(body.out_avals)

    def turn(*args: Any) -> list[Any]:
        consts, rest = args[:num_consts], args[num_consts:]
        of_consts, rest = rest[:split], rest[split:]
        primals = [*consts, *rest[:many]]
        outs = function_of(derived.primal)(*primals)
        residuals = derived.residuals(primals, outs)
        after = function_of(derived.linear)(*residuals, *of_consts, *rest[many:])
        return [*outs[:many], *after]

    avals = [
        *body.in_avals[:num_consts],
        *tangents[:split],
        *body.in_avals[num_consts:],
        *tangents[split:],
    ]
    dual = stage(turn, avals, derived_info(body, "linearize"))
    return with_own_keys(_without_effects(dual))


def _without_effects(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program for a second computation, which does again to the host what it can do twice.

    Raises:
        NotImplementedError: it uses what the host returned the first time.
    """
    jaxpr = closed.jaxpr
    kept: list[JaxprEqn] = []
    told = [eqn for eqn in jaxpr.eqns if eqn.primitive is report_progress_p]
    counts: dict[Any, Any] = {eqn.outvars[0]: eqn.invars[0] for eqn in told}
    eqns = substitute([eqn for eqn in jaxpr.eqns if eqn not in told], counts)
    outvars = [counts.get(v, v) if type(v) is not Literal else v for v in jaxpr.outvars]
    needed = {v for v in outvars if type(v) is not Literal}
    for eqn in reversed(eqns):
        if needed.isdisjoint(eqn.outvars) and eqn.effects:
            continue
        if input_output(eqn.effects):
            raise NotImplementedError(
                f"lax.while_loop with max_steps has no gradient in reverse mode where its body "
                f"uses a result of {eqn.primitive.name}, since iterations are computed a second "
                "time; call it before the loop, or write the loop with lax.scan"
            )
        needed.update(v for v in eqn.invars if type(v) is not Literal)
        kept.append(eqn)
    if len(kept) == len(jaxpr.eqns):
        return closed
    effects = no_effects.union(*(eqn.effects for eqn in kept))
    replaced = jaxpr.replace(eqns=kept[::-1], outvars=outvars, effects=effects)
    return ClosedJaxpr(replaced, closed.consts)


class _Replay(NamedTuple):
    """A loop over the segments of a loop that has run, for the part of it that is linear.

    Attributes:
        body: the body of the loop that has run.
        bound: its bound.
        consts: the number of constants of the body.
        linear: which parts of the carry are linear; of the others the values at the start of each
            segment are known.
    """

    body: ClosedJaxpr
    bound: Bound
    consts: int
    linear: Flags

    def places(self, count: Any) -> list[Any]:
        """The number of segments, and the number of turns of each, if it is not always 1.

        Args:
            count: the number of turns of the loop.
        """
        segment = self.bound.segment
        if segment == 1:
            return [count]
        size = make_literal(segment, COUNT)
        begun = div(add(count, make_literal(segment - 1, COUNT)), size)
        before = mul(iota_like(COUNT, (self.bound.segments,), 0), size)
        return [begun, clamp(make_literal(0, COUNT), sub(count, before), size)]

    def operands(
        self, places: list[Any], consts: Sequence[Any], first: Sequence[Any], known: Sequence[Any]
    ) -> list[Any]:
        """The operands of the loop over segments.

        Args:
            places: the result of `places`.
            consts: the constants of the body.
            first: the first values of the linear parts of the carry.
            known: the kept values of the other parts.
        """
        return [places[0], *consts, *first, *known, *places[1:]]

    def params(self) -> dict[str, Any]:
        """The parameters of the loop over segments."""
        body = _segment(self.body, self.bound, self.consts, self.linear)
        many = sum(self.linear)
        loop = ScanParams(body, self.bound.segments, False, self.consts, many, 1, (), False)
        return loop.params(len(body.in_avals))


@remembered
def _segment(body: ClosedJaxpr, bound: Bound, consts: int, linear: Flags) -> ClosedJaxpr:
    """One segment of a loop, as the body of a loop over segments."""
    info = derived_info(body, "linearize")
    known = linear.count(False)

    def run(*args: Any) -> list[Any]:
        fixed, carry = args[:consts], args[consts:]
        ours, others = carry[: len(linear) - known], carry[len(linear) - known :]
        state = merge(linear, ours, others)
        if bound.segment == 1:
            outs = function_of(body)(*fixed, *state)
        else:
            loop = ScanParams(body, bound.segment, False, consts, len(linear), 1, (), False)
            loop = loop._replace(primitive=partial_scan_p, leading=(args[-1],))
            outs = loop.bind(fixed, state, [], body)
        return partition(linear, outs)[0]

    def turn(*args: Any) -> list[Any]:
        # Of a segment nothing is kept, in derivatives of every order.
        params = {"prevent_cse": False, "differentiated": True, "policy": None}
        after = remat_p.rebind(program, args, params, ())
        kept, _ = partition(linear, bound.kept)
        return [*after, *partition(kept, args[consts : consts + len(kept)])[0]]

    ours, others = partition(linear, body.in_avals[consts:])
    turns = [] if bound.segment == 1 else [make_aval((), COUNT)]
    avals = [*body.in_avals[:consts], *ours, *others, *turns]
    program = stage(run, avals, info)
    return stage(turn, avals, info)


class _Batched(NamedTuple):
    """A loop for all elements of a batch.

    Attributes:
        condition: its condition.
        body: its body; None if the condition is mapped, and elements do not count their turns.
        flags: which parts of the carry are mapped.
    """

    condition: Batched
    body: Batched | None
    flags: list[bool]

    def bind(
        self, bound: Bound, loop: WhileParams, args: Sequence[Any], dims: Any, size: int
    ) -> list[Any]:
        """Run the loop as long as its condition holds for any element."""
        cond_consts, body_consts, carry = loop.split(args)
        _, _, places = loop.split(dims)
        assert self.body is not None
        first = [
            to_front(c, d, size) if b else c
            for c, d, b in zip(carry, places, self.flags, strict=True)
        ]
        mapped = self.condition.out_dims[0] is not None
        condition = any_of(self.condition.jaxpr) if mapped else self.condition.jaxpr
        return bound.bind(condition, cond_consts, self.body.jaxpr, body_consts, first)


def _batched(loop: WhileParams, size: int, dims: Sequence[int | None], counts: bool) -> _Batched:
    of_cond, of_body, of_carry = loop.split(dims)
    flags = [d is not None for d in of_carry]
    while True:
        at: list[int | None] = [0 if b else None for b in flags]
        condition = batch_of(loop.cond_jaxpr, size, (*of_cond, *at))
        if condition.out_dims[0] is not None and not counts:
            return _Batched(condition, None, flags)
        body = batch_of(loop.body_jaxpr, size, (*of_body, *at), tuple(flags))
        grown = [a or b for a, b in zip(flags, body.batched, strict=True)]
        if grown == flags:
            return _Batched(condition, body, flags)
        flags = grown


@remembered
def _counting(
    body: ClosedJaxpr, condition: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> WhileParams:
    """A loop for one element of a batch, which counts its turns and stays when it has ended.

    The count is carried first. Constants of its body are those of the condition and of the body.
    """
    consts, count = cond_nconsts + body_nconsts, make_aval((), COUNT)
    still = WhileParams(condition, body, cond_nconsts, body_nconsts).unchanged()

    def turn(*args: Any) -> list[Any]:
        steps, *carry = args[consts:]
        (runs,) = function_of(condition)(*args[:cond_nconsts], *carry)
        outs = function_of(body)(*guarded(body, runs, [*args[cond_nconsts:consts], *carry]))
        after = [
            old if same else select_n_p.bind(runs, old, new)
            for old, new, same in zip(carry, outs, still, strict=True)
        ]
        return [add(steps, convert_element_type(runs, COUNT)), *after]

    avals = [*condition.in_avals[:cond_nconsts], *body.in_avals[:body_nconsts]]
    carried = body.in_avals[body_nconsts:]
    turn_jaxpr = stage(turn, [*avals, count, *carried], derived_info(body, "vmap"))
    first = range(cond_nconsts)
    numbers = [*first, count, *range(cond_nconsts, len(condition.in_avals))]
    return WhileParams(with_order(condition, numbers), turn_jaxpr, cond_nconsts, consts)
