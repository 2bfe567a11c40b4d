"""`while_loop` and its primitive."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar

from dovetail._core.base.flags import merge, partition
from dovetail._core.basis.structural import batch_size, to_front
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.effects import input_output
from dovetail._core.ir.jaxpr import (
    ClosedJaxpr,
    Effects,
    JaxprEqn,
    no_effects,
    ordered_effects,
)
from dovetail._core.ir.manual_axis_type import ManualAxisType
from dovetail._core.ir.walk import Reduction, Wanted, drop_unused
from dovetail._core.ops.checks.checking import batch_with_checks, has_checks
from dovetail._core.ops.checks.error import avals_of, merged, settled, union
from dovetail._core.ops.control.bodies import (
    Body,
    Derive,
    carried_avals,
    instantiated_terms,
    tangents_of_body,
    terms_of_body,
)
from dovetail._core.ops.control.branches import chosen
from dovetail._core.ops.control.divisions import while_jaxprs_for
from dovetail._core.ops.random.keys import clone
from dovetail._core.ops.reduction.reductions import reduce_or
from dovetail._core.trace.manual_axes import joined
from dovetail._core.trace.primitive import Primitive
from dovetail._core.transform.derived import (
    batch_of,
    dependence_of,
    derived_info,
    forwarding_of,
    function_of,
    hoist_consts,
    reference_of,
    remembered,
    varying,
    with_order,
)
from dovetail._core.transform.key_reuse import holds_keys
from dovetail._core.transform.stage import stage
from dovetail._core.transform.taylor import by_order, nonzero_in, terms_of, up_to

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

T = TypeVar("T")


class WhileParams(NamedTuple):
    """The parameters of a while loop.

    Attributes:
        cond_jaxpr: the condition, from constants and carry to a bool.
        body_jaxpr: the body, from constants and carry to carry.
        cond_nconsts: the number of leading operands that are constants of the condition.
        body_nconsts: the number of operands after these that are constants of the body.
    """

    cond_jaxpr: ClosedJaxpr
    body_jaxpr: ClosedJaxpr
    cond_nconsts: int
    body_nconsts: int

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Constants of the condition, constants of the body, and the carry."""
        first, second = self.cond_nconsts, self.cond_nconsts + self.body_nconsts
        return list(values[:first]), list(values[first:second]), list(values[second:])

    def unchanged(self) -> list[bool]:
        """Which parts of the carry the body returns as it got them."""
        sources = forwarding_of(self.body_jaxpr)
        return [source == i for i, source in enumerate(sources, self.body_nconsts)]


def bind_while(
    condition: ClosedJaxpr,
    cond_consts: Sequence[Any],
    body: ClosedJaxpr,
    body_consts: Sequence[Any],
    carry: Sequence[Any],
    primitive: Primitive | None = None,
    **bound: Any,
) -> list[Any]:
    """Bind a loop; the constants of the jaxprs become leading operands.

    Args:
        condition: the condition.
        cond_consts: its constants.
        body: the body.
        body_consts: its constants.
        carry: the first values of what is carried.
        primitive: the primitive, `while_p` if None.
        bound: further parameters of it.
    """
    cond_jaxpr, cond_captured = hoist_consts(condition)
    body_jaxpr, body_captured = hoist_consts(body)
    results: list[Any] = (primitive or while_p).bind(
        *cond_captured,
        *cond_consts,
        *body_captured,
        *body_consts,
        *carry,
        cond_jaxpr=cond_jaxpr,
        body_jaxpr=body_jaxpr,
        cond_nconsts=len(cond_captured) + len(cond_consts),
        body_nconsts=len(body_captured) + len(body_consts),
        **bound,
    )
    return results


class While(Primitive):
    """Runs a body as long as a condition holds."""

    name = "while"
    multiple_results = True
    accepts_zeros = True
    has_effects = True
    is_control_flow = True
    generates_nan = False
    types_axes = True
    types_divisions = True

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        loop = WhileParams(**params)
        cond_avals, body_avals = loop.cond_jaxpr.in_avals, loop.body_jaxpr.in_avals
        of_cond, of_body, of_carry = loop.split(avals)
        consts = _together(of_cond, cond_avals)
        fixed = _together(of_body, body_avals)
        carry = _together(of_carry, body_avals[len(fixed) :])
        while True:
            condition = varying(loop.cond_jaxpr, [*consts, *carry])
            body = varying(loop.body_jaxpr, [*fixed, *carry])
            # Devices that leave the loop at different times have different values.
            turns = condition.out_avals[0].manual_axis_type
            after = [
                joined([a, turns, own.manual_axis_type])
                for a, own in zip(carry, body.out_avals, strict=False)
            ]
            if after == carry:
                break
            carry = after
        body = varying(body, [*fixed, *carry], carry)
        changed = {"cond_jaxpr": condition, "body_jaxpr": body}
        same = condition is loop.cond_jaxpr and body is loop.body_jaxpr
        return [*consts, *fixed, *carry], ({} if same else changed)

    def for_divisions(self, avals: Sequence[Any], params: Mapping[str, Any]) -> Mapping[str, Any]:
        loop = WhileParams(**params)
        return while_jaxprs_for(self.name, loop.cond_jaxpr, loop.body_jaxpr, *loop.split(avals))

    def abstract(self, *avals: Any, **params: Any) -> Any:
        loop = WhileParams(**params)
        cond_consts, body_consts, carry = loop.split(avals)
        for what, closed, expected in (
            ("condition", loop.cond_jaxpr, [*cond_consts, *carry]),
            ("body", loop.body_jaxpr, [*body_consts, *carry]),
        ):
            have = closed.in_avals
            if len(have) != len(expected) or any(
                a.shape != b.shape or a.dtype != b.dtype
                for a, b in zip(expected, have, strict=True)
            ):
                raise TypeError(f"while: the {what} takes {have}, got {expected}")
        outs = loop.body_jaxpr.out_avals
        if len(outs) != len(carry) or any(
            a.shape != b.shape or a.dtype != b.dtype for a, b in zip(carry, outs, strict=True)
        ):
            raise TypeError(f"while: the body carries {carry} to {outs}")
        return carried_avals(loop.body_jaxpr.in_avals[loop.body_nconsts :], outs)

    def reference(self, *args: Any, **params: Any) -> Any:
        loop = WhileParams(**params)
        cond_consts, body_consts, carry = loop.split(args)
        while reference_of(loop.cond_jaxpr, [*cond_consts, *carry])[0]:
            carry = reference_of(loop.body_jaxpr, [*body_consts, *carry])
        return carry

    def effects(self, *avals: Any, **params: Any) -> Effects:
        cond: Effects = params["cond_jaxpr"].jaxpr.effects
        body: Effects = params["body_jaxpr"].jaxpr.effects
        return cond | body

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        loop = WhileParams(**params)
        terms = [[t] for t in tangents[loop.cond_nconsts :]]
        outs, out_tangents = _along(loop, primals, terms, tangents_of_body)
        return outs, out_tangents

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], **params: Any
    ) -> tuple[Any, Callable[..., Any]]:
        # The number of iterations is unknown, so residuals cannot be stacked: the linear program
        # runs the whole loop again.
        outs = self.bind(*primals, **params)
        jaxprs = {name: with_own_keys(params[name]) for name in ("cond_jaxpr", "body_jaxpr")}

        def tangent(*tangents: Any) -> list[Any]:
            return list(self.jvp(primals, tangents, **params | jaxprs)[1])

        return outs, tangent

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> NoReturn:
        info = params["body_jaxpr"].jaxpr.debug_info
        place = f" ({info.location})" if info is not None and info.location else ""
        of = "" if info is None else f" (here of {info.function}{place})"
        raise ValueError(
            f"lax.while_loop, and lax.fori_loop whose bounds are known only at run time{of}, have "
            "no gradient in reverse mode: how often they run, and so how much memory the gradient "
            "needs, is not known when the program is made. Give lax.while_loop max_steps, a number "
            "of iterations that it never exceeds; or use lax.fori_loop with bounds that are Python "
            "integers, or lax.scan with a fixed length; or differentiate in forward mode, with jvp "
            "or jacfwd"
        )

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        loop = WhileParams(**params)
        size = batch_size(args, dims)
        cond_consts, body_consts, carry = loop.split(args)
        cond_dims, body_dims, carry_dims = loop.split(dims)
        flags = [d is not None for d in carry_dims]
        while True:
            at: list[int | None] = [0 if b else None for b in flags]
            condition, (of_condition,) = batch_of(loop.cond_jaxpr, size, (*cond_dims, *at))
            if of_condition is not None and has_checks(self.effects(**params)):
                return batch_with_checks(self, args, dims, params)
            if of_condition is not None and input_output(self.effects(**params)):
                raise NotImplementedError(
                    "vmap of lax.while_loop whose condition is mapped runs the body for all "
                    "elements until the last one is done, and it has effects that would then "
                    f"happen for all: {sorted(map(str, self.effects(**params)))}"
                )
            if of_condition is not None:
                # Elements whose loop has ended keep their values. What the body does not change is
                # the same for all.
                flags = [f or not k for f, k in zip(flags, loop.unchanged(), strict=True)]
                at = [0 if b else None for b in flags]
            body, after = batch_of(loop.body_jaxpr, size, (*body_dims, *at), tuple(flags))
            grown = [a or d is not None for a, d in zip(flags, after, strict=True)]
            if grown == flags:
                break
            flags = grown
        if of_condition is not None:
            condition = batch_of(loop.cond_jaxpr, size, (*cond_dims, *at)).jaxpr
            body = _while_any(condition, body, loop.cond_nconsts, loop.body_nconsts, flags)
            body_consts = [*cond_consts, *body_consts]
            condition = any_of(condition)
        outs = bind_while(
            condition,
            cond_consts,
            body,
            body_consts,
            [
                to_front(c, d, size) if b else c
                for c, d, b in zip(carry, carry_dims, flags, strict=True)
            ],
        )
        return outs, at

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        loop = WhileParams(**params)
        cond_consts, body_consts, carry = loop.split(values)
        _, _, avals = loop.split(context.avals_in)
        effects = ordered_effects(self.effects(**params))

        def holds(*now: Any) -> list[Any]:
            return context.inline_jaxpr(loop.cond_jaxpr, [*cond_consts, *now])

        def turn(*now: Any) -> list[Any]:
            return context.inline_jaxpr(loop.body_jaxpr, [*body_consts, *now])

        if not ordered_effects(loop.cond_jaxpr.effects):
            return context.while_loop(carry, avals, holds, turn, effects)

        # The condition of a loop cannot return a token, so it is computed before the loop and at
        # the end of each iteration.
        def turn_and_condition(_: Any, *now: Any) -> list[Any]:
            after = turn(*now)
            return [*holds(*after), *after]

        first = holds(*carry)
        _, *last = context.while_loop(
            [*first, *carry],
            [*loop.cond_jaxpr.out_avals, *avals],
            lambda proceed, *_: proceed,
            turn_and_condition,
            effects,
        )
        return last

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        loop = WhileParams(**params)
        condition, of_condition = checks.checked(loop.cond_jaxpr)
        body, of_body = checks.checked(loop.body_jaxpr)
        error = union([of_condition, of_body])
        if condition is loop.cond_jaxpr and body is loop.body_jaxpr:
            return self.bind(*args, **params)
        cond_consts, body_consts, carry = loop.split(args)
        *found, proceed = function_of(condition)(*cond_consts, *carry)
        again, turn = checked_loop(body, of_body, condition, of_condition, loop.cond_nconsts)
        first = settled(of_condition.unflatten(found), error)
        outs = bind_while(again, [], turn, [*cond_consts, *body_consts], [*first, proceed, *carry])
        checks.record(error, outs[: error.num_leaves])
        return outs[error.num_leaves + 1 :]

    def taylor(
        self, operands: Sequence[Any], results: Sequence[Any], **params: Any
    ) -> Callable[[int], Any]:
        loop = WhileParams(**params)

        def truncated(order: int) -> list[list[Any]]:
            terms = terms_of(operands[loop.cond_nconsts :], order)
            primals = [x[0] for x in operands]
            return _along(loop, primals, terms, lambda body: terms_of_body(body, order))

        return up_to(truncated)

    def dependencies(self, flags: Sequence[bool], **params: Any) -> Sequence[bool]:
        loop = WhileParams(**params)
        cond_flags, body_flags, carry = loop.split(flags)
        while True:
            if any(dependence_of(loop.cond_jaxpr, (*cond_flags, *carry))):
                return [True] * len(carry)
            after = dependence_of(loop.body_jaxpr, (*body_flags, *carry))
            grown = [a or b for a, b in zip(carry, after, strict=True)]
            if grown == carry:
                return carry
            carry = grown

    def forwarding(self, **params: Any) -> Sequence[int | None]:
        loop = WhileParams(**params)
        still = enumerate(loop.unchanged(), loop.cond_nconsts + loop.body_nconsts)
        return [i if same else None for i, same in still]

    def follow_keys(self, tracker: Any, *operands: Any, **params: Any) -> Any:
        # Two turns tell what all of them do with keys, unless the loop is known to end before.
        loop = WhileParams(**params)
        cond_consts, body_consts, carry = loop.split(operands)
        states = [carry]
        for follow in (tracker.follow, tracker.follow_again):
            (proceeds,) = tracker.follow(loop.cond_jaxpr, [*cond_consts, *states[-1]], known=True)
            if proceeds is not None and not proceeds:
                return states[-1]
            states.append(follow(loop.body_jaxpr, [*body_consts, *states[-1]]))
        return tracker.carried_on(
            lambda state: tracker.follow(loop.body_jaxpr, [*body_consts, *state]), states
        )

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        reduced = yield from reduced_loop(WhileParams(**eqn.params), used)
        eqn = drop_unused(eqn, used)
        return eqn if reduced is None else reduced.replaced(eqn, eqn.outvars)


while_p: Final = While()


class ReducedLoop(NamedTuple):
    """A loop without dead code.

    Attributes:
        params: its parameters.
        operands: which operands are left.
        carried: which parts of the carry are left.
    """

    params: WhileParams
    operands: list[bool]
    carried: list[bool]

    def replaced(self, eqn: JaxprEqn, outvars: Sequence[Any], **bound: Any) -> JaxprEqn:
        """The equation of this loop.

        Args:
            eqn: the equation of the whole loop.
            outvars: the variables of its whole carry.
            bound: further parameters.
        """
        loop = self.params
        effects = loop.cond_jaxpr.jaxpr.effects | loop.body_jaxpr.jaxpr.effects
        return eqn.replace(
            invars=partition(self.operands, eqn.invars)[0],
            outvars=partition(self.carried, outvars)[0],
            params={**loop._asdict(), **bound},
            effects=effects if eqn.effects else no_effects,
        )


def reduced_loop(
    loop: WhileParams, used: Sequence[bool]
) -> Generator[Wanted, Any, ReducedLoop | None]:
    """A loop without what only unused parts of its carry need; None if that is nothing."""
    _, needed = yield Wanted(loop.cond_jaxpr, (True,))
    carried = [a or b for a, b in zip(used, needed[loop.cond_nconsts :], strict=True)]
    no_consts = (False,) * loop.body_nconsts
    while True:
        body, kept = yield Wanted(loop.body_jaxpr, tuple(carried), (*no_consts, *carried))
        if kept[loop.body_nconsts :] == carried:
            break
        carried = kept[loop.body_nconsts :]
    no_consts = (False,) * loop.cond_nconsts
    condition, of_cond = yield Wanted(loop.cond_jaxpr, (True,), (*no_consts, *carried))
    if condition is loop.cond_jaxpr and body is loop.body_jaxpr:
        return None
    of_cond = of_cond[: loop.cond_nconsts]
    params = WhileParams(condition, body, sum(of_cond), sum(kept[: loop.body_nconsts]))
    return ReducedLoop(params, [*of_cond, *kept], carried)


def _together(avals: Sequence[Any], others: Sequence[Any]) -> list[ManualAxisType]:
    """What values are along the manual axes of a mesh that are of both types."""
    return [a.manual_axis_type | b.manual_axis_type for a, b in zip(avals, others, strict=False)]


@remembered
def with_own_keys(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program, with clones of its keys: it uses on purpose those that were used before."""
    if not any(map(holds_keys, closed.in_avals)):
        return closed
    program = function_of(closed)
    return stage(
        lambda *args: program(*map(clone, args)), closed.in_avals, derived_info(closed, "jvp")
    )


def _along(
    loop: WhileParams,
    primals: Sequence[Any],
    terms: Sequence[Sequence[Any]],
    derivative: Callable[[ClosedJaxpr], Derive],
) -> list[list[Any]]:
    """Loop with a body of primals and their tangents, or Taylor coefficients.

    Args:
        loop: the loop.
        primals: its operands.
        terms: for each operand of the body, its tangent or all its coefficients.
        derivative: gives for the body what derives it.

    Returns:
        The results, and for each order their terms.
    """
    still = loop.unchanged()
    if any(still) and not all(still):
        # These are constants, and their derivatives are their own: they have gradients even where
        # the loop has none.
        fewer, operands, their_terms = with_constants(loop, still, primals, terms)
        _, _, carry = loop.split(primals)
        kept, _ = partition(
            still, zip(carry, *zip(*terms[loop.body_nconsts :], strict=True), strict=True)
        )
        changed = _along(fewer, operands, their_terms, derivative)
        return [merge(still, x, y) for x, y in zip(zip(*kept, strict=True), changed, strict=True)]
    derived = derived_loop(loop, primals, terms, derivative)
    return by_order(bind_while(*derived.parts), derived.nonzero_out)


class DerivedLoop(NamedTuple):
    """A loop of primals and their tangents, or Taylor coefficients.

    Attributes:
        parts: the arguments of `bind_while`; the carry is first all primals, then all terms.
        nonzero_out: for each part of the carry, which terms it has.
    """

    parts: tuple[Any, ...]
    nonzero_out: list[Any]


def derived_loop(
    loop: WhileParams,
    primals: Sequence[Any],
    terms: Sequence[Sequence[Any]],
    derivative: Callable[[ClosedJaxpr], Derive],
) -> DerivedLoop:
    """A loop that also carries terms, as of `_along`, of all that it carries."""
    derive = derivative(loop.body_jaxpr)
    flags = [any(same) for same in nonzero_in(terms)]
    while True:
        # Each part of the carry has terms in all iterations or in none.
        derived, nonzero_out = derive(tuple(flags), tuple(flags[loop.body_nconsts :]))
        grown = [*flags[: loop.body_nconsts], *map(any, nonzero_out)]
        if grown == flags:
            break
        flags = [a or b for a, b in zip(flags, grown, strict=True)]
    terms = instantiated_terms(flags, terms)
    cond_consts, body_consts, carry = loop.split(primals)
    consts, count = loop.body_nconsts, len(terms)
    of_consts = [t for same in terms[:consts] for t in same]
    of_carry = [t for same in terms[consts:] for t in same]
    split = count + len(of_consts)
    body = with_order(
        derived,
        [
            *range(consts),
            *range(count, split),
            *range(consts, count),
            *range(split, split + len(of_carry)),
        ],
    )
    avals = loop.body_jaxpr.in_avals[consts:]
    more = [a.tangent() for a, same in zip(avals, terms[consts:], strict=True) for _ in same]
    condition = with_order(loop.cond_jaxpr, [*range(len(loop.cond_jaxpr.in_avals)), *more])
    consts_and_terms, carried = [*body_consts, *of_consts], [*carry, *of_carry]
    return DerivedLoop((condition, cond_consts, body, consts_and_terms, carried), nonzero_out)


def with_constants(
    loop: WhileParams, still: Sequence[bool], primals: Sequence[Any], terms: Sequence[Any]
) -> tuple[WhileParams, list[Any], list[Any]]:
    """A loop with parts of its carry as constants, with its operands and their terms."""
    cond_consts, body_consts, carry = loop.split(primals)
    first, second = loop.cond_nconsts, loop.body_nconsts
    constant, changing = partition(still, range(len(carry)))
    order = [*constant, *changing]
    fewer = WhileParams(
        with_order(loop.cond_jaxpr, [*range(first), *(first + i for i in order)]),
        with_order(loop.body_jaxpr, [*range(second), *(second + i for i in order)], changing),
        first + len(constant),
        second + len(constant),
    )
    held = [carry[i] for i in constant]
    operands = [*cond_consts, *held, *body_consts, *held, *(carry[i] for i in changing)]
    return fewer, operands, [*terms[:second], *(terms[second + i] for i in order)]


@remembered
def any_of(condition: ClosedJaxpr) -> ClosedJaxpr:
    """Whether a batched condition holds for any element."""
    function = function_of(condition)
    return stage(
        lambda *args: [reduce_or(function(*args)[0], (0,))],
        condition.in_avals,
        derived_info(condition, "vmap"),
    )


def _while_any(
    condition: ClosedJaxpr,
    body: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
    batched: Sequence[bool],
) -> ClosedJaxpr:
    """A batched body that does not change elements whose condition is false.

    The parts of the carry that are not batched do not change at all.
    """
    holds, advance = function_of(condition), function_of(body)
    consts = cond_nconsts + body_nconsts

    def turn(*args: Any) -> list[Any]:
        cond_consts, body_consts, carry = (
            args[:cond_nconsts],
            args[cond_nconsts:consts],
            args[consts:],
        )
        (proceed,) = holds(*cond_consts, *carry)
        after = advance(*body_consts, *carry)
        return [
            chosen(proceed, old, new) if b else old
            for new, old, b in zip(after, carry, batched, strict=True)
        ]

    avals = [
        *condition.in_avals[:cond_nconsts],
        *body.in_avals[:body_nconsts],
        *body.in_avals[body_nconsts:],
    ]
    return stage(turn, avals, derived_info(body, "vmap"))


@remembered
def checked_loop(
    body: ClosedJaxpr, of_body: Any, condition: ClosedJaxpr, of_condition: Any, cond_nconsts: int
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Condition and body of a loop that also carries an error.

    A condition cannot return an error, so the body computes the condition for the next iteration;
    its value is carried after the error.

    Args:
        body: the body, with the leaves of an error as leading results.
        of_body: the structure of this error.
        condition: the condition, with the leaves of another error as leading results.
        of_condition: the structure of that error.
        cond_nconsts: the number of constants of the condition, which come before those of the body.
    """
    error = union([of_body, of_condition])
    count = error.num_leaves
    carried = len(body.out_avals) - of_body.num_leaves
    body_nconsts = len(body.in_avals) - carried
    consts = cond_nconsts + body_nconsts

    def turn(*args: Any) -> list[Any]:
        leaves, carry = args[consts : consts + count], args[consts + count + 1 :]
        outs = function_of(body)(*args[cond_nconsts:consts], *carry)
        in_body, after = outs[: of_body.num_leaves], outs[of_body.num_leaves :]
        *in_condition, proceed = function_of(condition)(*args[:cond_nconsts], *after)
        error_so_far = merged(error.unflatten(leaves), of_body.unflatten(in_body))
        error_so_far = merged(error_so_far, of_condition.unflatten(in_condition))
        return [*settled(error_so_far, error), proceed, *after]

    carry_avals = [*avals_of(error), *condition.out_avals[-1:], *body.in_avals[body_nconsts:]]
    const_avals = [*condition.in_avals[:cond_nconsts], *body.in_avals[:body_nconsts]]
    info = derived_info(body, "checkify")
    return (
        stage(lambda *carry: [carry[count]], carry_avals, info),
        stage(turn, [*const_avals, *carry_avals], info),
    )


def run_while(
    condition: Body,
    body: Body,
    carry: Sequence[Any],
    bind: Callable[..., list[Any]] = bind_while,
) -> list[Any]:
    """Run a loop whose body may change mutable references that both functions use.

    Args:
        condition: the condition.
        body: the body.
        carry: the first values of what is carried.
        bind: binds the loop, and returns what it carries at the end.
    """
    holds = condition.closed
    if not body.changed:
        return bind(holds, condition.captured, body.closed, body.captured, carry)
    # The condition reads from these what the body wrote in the previous iteration.
    first = len(condition.captured) - len(condition.read)
    kept = [
        *range(first),
        *(first + i for i, ref in enumerate(condition.read) if ref not in body.changed),
    ]
    read = {ref: first + i for i, ref in enumerate(condition.read)}
    changed_values = body.held()
    holds = with_order(
        holds,
        [
            *kept,
            *(
                read.get(ref, aval_of(x))
                for ref, x in zip(body.changed, changed_values, strict=True)
            ),
            *range(len(condition.captured), len(holds.in_avals)),
        ],
    )
    constants = [condition.captured[i] for i in kept]
    outs = bind(holds, constants, body.closed, body.captured, [*changed_values, *carry])
    return body.finish(outs)
