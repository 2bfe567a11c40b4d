"""The primitive `scan`: a loop over the leading dimension of arrays, forwards or backwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from dovetail._core.base.flags import Flags, merge, partition
from dovetail._core.basis.elementwise import add_tangents
from dovetail._core.basis.manual_axes import preduced_p, pvary_p
from dovetail._core.basis.structural import (
    batch_size,
    instantiate_zeros,
    is_linear,
    move_dimension,
    to_front,
)
from dovetail._core.ir.avals import ShapedArray, make_aval
from dovetail._core.ir.dimensions import is_symbolic_dim
from dovetail._core.ir.jaxpr import (
    ClosedJaxpr,
    Effects,
    Jaxpr,
    JaxprEqn,
    no_effects,
    ordered_effects,
)
from dovetail._core.ir.manual_axis_type import ManualAxisType, invarying
from dovetail._core.ir.shown_params import ShownParams
from dovetail._core.ir.walk import Reduction, Wanted, drop_unused, eval_jaxpr
from dovetail._core.ops.checks.error import avals_of, init_error, merged, settled
from dovetail._core.ops.control.bodies import (
    Derive,
    carried_avals,
    instantiated_terms,
    tangents_of_body,
    terms_of_body,
)
from dovetail._core.ops.control.divisions import scan_body_for
from dovetail._core.ops.control.scan_residuals import residual_plan
from dovetail._core.ops.shape.creation import position_dtype
from dovetail._core.trace.manual_axes import types_of
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero, wanted_among, with_zeros, without_zeros
from dovetail._core.transform.derived import (
    batch_of,
    dependence_of,
    derived_info,
    forwarding_of,
    function_of,
    hoist_consts,
    linearization_of,
    reference_of,
    remembered,
    transposition_of,
    varying,
    with_order,
)
from dovetail._core.transform.key_reuse import holds_keys
from dovetail._core.transform.partial_evaluation import apply_part
from dovetail._core.transform.stage import stage
from dovetail._core.transform.taylor import by_order, nonzero_in, terms_of, up_to

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class ScanParams(NamedTuple):
    """The parameters of a scan.

    Attributes:
        jaxpr: the body, from constants, carry and elements to carry and elements.
        length: the number of iterations.
        reverse: whether it starts with the last elements.
        num_consts: the number of leading arguments that are loop-invariant.
        num_carry: the number of arguments that are carried.
        unroll: the number of calls of the body per iteration of the compiled loop.
        linear: for each operand, whether the scan is known to be linear in it.
        _split_transpose: a hint for the gradient of the loop.
        primitive: which primitive it is.
        leading: the operands of the loop that come before the constants.
    """

    jaxpr: ClosedJaxpr
    length: int
    reverse: bool
    num_consts: int
    num_carry: int
    unroll: int
    linear: Flags
    split_transpose: bool
    primitive: Primitive | None = None
    leading: tuple[Any, ...] = ()

    @classmethod
    def of(cls, params: dict[str, Any]) -> ScanParams:
        """The parameters of an equation."""
        fields = dict(params)
        return cls(split_transpose=fields.pop("_split_transpose"), **fields)

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Constants, carry, and the arrays that are sliced."""
        first, second = self.num_consts, self.num_consts + self.num_carry
        return list(values[:first]), list(values[first:second]), list(values[second:])

    def bind(
        self, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], body: ClosedJaxpr
    ) -> list[Any]:
        """The same scan with another body and other operands."""
        jaxpr, captured = hoist_consts(body)
        operands = [*captured, *consts, *carry, *xs]
        loop = self._replace(
            jaxpr=jaxpr, num_consts=len(captured) + len(consts), num_carry=len(carry)
        )
        primitive = self.primitive or scan_p
        results: list[Any] = primitive.bind(*self.leading, *operands, **loop.params(len(operands)))
        return results

    def params(self, count: int) -> dict[str, Any]:
        """The parameters of an equation with `count` operands."""
        fields = self._asdict()
        del fields["primitive"], fields["leading"]
        fields["_split_transpose"] = fields.pop("split_transpose")
        return fields | {"linear": (False,) * count}


class Scan(Primitive):
    """Runs a jaxpr for each element, and carries some of its results to the next."""

    name = "scan"
    multiple_results = True
    accepts_zeros = True
    transposes_partly = True
    has_effects = True
    is_control_flow = True
    generates_nan = False
    types_axes = True
    types_divisions = True
    shown_params: ClassVar[ShownParams] = {"linear": any, "_split_transpose": bool}

    def bind(self, *args: Any, ft_in: Any = None, **params: Any) -> Any:
        """Apply the primitive in the current trace.

        Args:
            *args: the operands.
            ft_in: constants, carry and elements, from interpreters, whose `params` do not count
                them and may have no hints.
            **params: the parameters.
        """
        if ft_in is not None:
            params.pop("ft_out", None)
            num_consts, num_carry = (len(group.vals) for group in ft_in.unpack()[:2])
            counts = {"num_consts": num_consts, "num_carry": num_carry}
            hints = {"linear": (False,) * len(args), "_split_transpose": False}
            params = {**hints, **params, **counts}
        # By the class: a bound method takes C stack, of which Python 3.12 allows little.
        return Primitive.bind(self, *args, **params)

    def abstract(self, *avals: Any, **params: Any) -> Any:
        loop = ScanParams.of(params)
        consts, carry, xs = loop.split(avals)
        expected = [
            *consts,
            *carry,
            *(x.update(shape=x.shape[1:]) for x in xs),
        ]
        have = loop.jaxpr.in_avals
        if len(expected) != len(have) or any(
            a.shape != b.shape or a.dtype != b.dtype for a, b in zip(expected, have, strict=True)
        ):
            raise TypeError(f"scan: the body takes {have}, got {expected}")
        if any(x.shape[0] != loop.length for x in xs):
            raise TypeError(f"scan: arrays {xs} do not have the length {loop.length}")
        outs = loop.jaxpr.out_avals
        carried, returned = loop.split(have)[1], outs[: loop.num_carry]
        if len(carried) != len(returned) or any(
            a.shape != b.shape or a.dtype != b.dtype for a, b in zip(carried, returned, strict=True)
        ):
            raise TypeError(f"scan: the body carries {carried} to {returned}")
        stacked = [stacked_aval(a, loop.length) for a in outs[loop.num_carry :]]
        return [*carried_avals(carried, returned), *stacked]

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        loop = ScanParams.of(params)
        own = types_of(loop.jaxpr.in_avals)
        wanted = [a | b for a, b in zip(types_of(avals), own, strict=False)]
        first, second = loop.num_consts, loop.num_consts + loop.num_carry
        while True:
            body = varying(loop.jaxpr, wanted)
            outs = types_of(body.out_avals[: loop.num_carry])
            carry = [a | b for a, b in zip(wanted[first:second], outs, strict=True)]
            if carry == wanted[first:second]:
                break
            wanted[first:second] = carry
        alike = _cast_by_uses(body.jaxpr, first)
        if alike != wanted[:first]:
            wanted[:first] = alike
            body = varying(body, wanted)
        rest = [invarying] * (len(body.out_avals) - loop.num_carry)
        body = varying(body, wanted, [*carry, *rest])
        return wanted, ({} if body is loop.jaxpr else {"jaxpr": body})

    def for_divisions(self, avals: Sequence[Any], params: Mapping[str, Any]) -> Mapping[str, Any]:
        loop = ScanParams.of(dict(params))
        return scan_body_for(self.name, loop.jaxpr, *loop.split(avals))

    def reference(self, *args: Any, **params: Any) -> Any:
        loop = ScanParams.of(params)
        consts, carry, xs = loop.split(args)
        outs = loop.jaxpr.out_avals[loop.num_carry :]
        ys = [np.zeros((loop.length, *a.shape), a.dtype) for a in outs]
        steps = range(min([loop.length, *map(int, loop.leading)]))
        for i in reversed(steps) if loop.reverse else steps:
            results = reference_of(loop.jaxpr, [*consts, *carry, *(np.asarray(x)[i] for x in xs)])
            carry = results[: loop.num_carry]
            for y, result in zip(ys, results[loop.num_carry :], strict=True):
                y[i] = result
        return [*carry, *ys]

    def effects(self, *avals: Any, **params: Any) -> Effects:
        effects: Effects = params["jaxpr"].jaxpr.effects
        return effects

    def taylor(
        self, operands: Sequence[Any], results: Sequence[Any], **params: Any
    ) -> Callable[[int], Any]:
        loop = ScanParams.of(params)

        def truncated(order: int) -> list[list[Any]]:
            derive = terms_of_body(loop.jaxpr, order)
            return _along(loop, [x[0] for x in operands], terms_of(operands, order), derive)

        return up_to(truncated)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        loop = ScanParams.of(params)
        terms = [[t] for t in tangents]
        outs, out_tangents = _along(loop, primals, terms, tangents_of_body(loop.jaxpr))
        return outs, out_tangents

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], **params: Any
    ) -> tuple[Any, Callable[..., Any]]:
        loop = ScanParams.of(params)
        flags = _carried_on(
            loop,
            nonzero,
            lambda flags, carried: linearization_of(loop.jaxpr, flags, carried).nonzero_out,
        )
        derived = linearization_of(loop.jaxpr, flags, _of_carry(loop, flags))
        plan = residual_plan(
            derived.primal, tuple(derived.forwarded), loop.num_consts, loop.num_carry
        )
        consts, carry, xs = loop.split(primals)
        outs = loop.bind(consts, carry, xs, plan.body)
        many = len(derived.nonzero_out)
        results, stacked = outs[:many], outs[many:]
        invariants = eval_jaxpr(
            plan.invariant.jaxpr, plan.invariant.consts, *[primals[i] for i in plan.needed]
        )
        sources = {"operand": primals, "invariant": invariants, "stacked": stacked, "result": outs}
        residuals = [sources[kind][number] for kind, number in plan.residuals]
        looped = [
            kind in ("stacked", "result") or _is_element(loop, kind, number)
            for kind, number in plan.residuals
        ]

        count = len(residuals)
        moving, fixed = partition(looped, range(count))
        body = with_order(derived.linear, [*fixed, *range(count, count + sum(flags)), *moving])
        of_consts, of_carry, _ = map(sum, loop.split(flags))
        stacks, constants = partition(looped, residuals)

        def tangent(*tangents: Any) -> list[Any]:
            in_tangents = list(map(instantiate_zeros, partition(flags, tangents)[0]))
            first, second = of_consts, of_consts + of_carry
            out_tangents = loop.bind(
                [*constants, *in_tangents[:first]],
                in_tangents[first:second],
                [*in_tangents[second:], *stacks],
                body,
            )
            return with_zeros(derived.nonzero_out, out_tangents, results)

        return results, tangent

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        # The transposed loop runs in the other direction, and each part changes sides. The carry
        # runs backwards: an iteration takes the cotangent of its outgoing carry and returns that of
        # its incoming carry. Stacked results become elements (each cotangent belongs to the
        # iteration that produced the result), and cotangents of elements become stacked results.
        # A constant is used by all iterations, so its cotangent is a sum: it is carried, too,
        # starting from zeros. Nonlinear values stay constants or elements. They are read in the
        # iteration that they belong to, since both loops index iterations by array position.
        loop = ScanParams.of(params)
        flags = _carried_on(
            loop,
            [is_linear(a) for a in args],
            lambda flags, _: dependence_of(loop.jaxpr, flags),
        )
        lin_consts, lin_carry, lin_xs = loop.split(flags)
        if not all(lin_carry):
            return _transpose_with_known_carry(loop, cotangent, args, flags)
        nonzero_cts, ct_ys = without_zeros(cotangent[loop.num_carry :])
        consts, carry, xs = loop.split(args)
        # An iteration passes on the whole carry, whichever cotangents are wanted in the end.
        wanted = wanted_among([*consts, *[None] * loop.num_carry, *xs])
        body, nonzero_consts, nonzero_xs = _backward(
            loop.jaxpr,
            tuple(flags),
            (*[True] * loop.num_carry, *nonzero_cts),
            loop.num_consts,
            loop.num_carry,
            wanted,
        )
        linear_consts, values = partition(lin_consts, consts)
        _, elements = partition(lin_xs, xs)
        summed, _ = partition(nonzero_consts, linear_consts)
        sums = [instantiate_zeros(Zero(c.cotangent())) for c in summed]
        cts = [instantiate_zeros(ct) for ct in cotangent[: loop.num_carry]]
        backward = loop._replace(reverse=not loop.reverse)
        operand_cts = backward.bind(values, [*sums, *cts], [*ct_ys, *elements], body)
        first, second = len(sums), len(sums) + len(cts)
        of_carry = zip(operand_cts[first:second], carry, strict=True)
        none = repeat(None)
        return [
            *merge(lin_consts, merge(nonzero_consts, operand_cts[:first], none), none),
            # An initial value may be nonlinear although its carry is linear.
            *(ct if is_linear(c) else None for ct, c in of_carry),
            *merge(lin_xs, merge(nonzero_xs, operand_cts[second:], none), none),
        ]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        loop = ScanParams.of(params)
        size = batch_size(args, dims)
        in_consts, in_carry, in_xs = loop.split(dims)
        fixed = tuple(in_consts), tuple(None if d is None else 0 for d in in_xs)
        batched = _carried_on(
            loop,
            [d is not None for d in dims],
            lambda flags, carried: (
                batch_of(loop.jaxpr, size, _dims(loop, fixed, flags), carried).batched
            ),
        )
        derived = batch_of(loop.jaxpr, size, _dims(loop, fixed, batched), _of_carry(loop, batched))
        consts, carry, xs = loop.split(args)
        _, batched_carry, _ = loop.split(batched)
        outs = loop.bind(
            consts,
            [
                to_front(c, d, size) if b else c
                for c, d, b in zip(carry, in_carry, batched_carry, strict=True)
            ],
            [x if d is None else move_dimension(x, d, 1) for x, d in zip(xs, in_xs, strict=True)],
            derived.jaxpr,
        )
        return outs, [
            *derived.out_dims[: loop.num_carry],
            *(None if d is None else 1 for d in derived.out_dims[loop.num_carry :]),
        ]

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        loop = ScanParams.of(params)
        avals = context.avals_in
        out_avals = context.avals_out
        consts, carry, xs = loop.split(values)
        _, carry_avals, xs_avals = loop.split(avals)
        ys_avals = out_avals[loop.num_carry :]
        place = make_aval((), position_dtype(loop.length))
        step = stepping(context, loop, consts, list(zip(xs, xs_avals, strict=True)), ys_avals)
        ys = [context.constant(0, a) for a in ys_avals]
        symbolic = is_symbolic_dim(loop.length)
        unroll = 1 if symbolic else min(loop.unroll, loop.length)
        turns = loop.length // unroll if unroll else 0
        several = symbolic or turns > 1

        def position(number: Any, offset: int) -> Any:
            """The array position of a step of an iteration."""
            if isinstance(number, int):
                at = number * unroll + offset
                return context.constant(loop.length - 1 - at if loop.reverse else at, place)
            if unroll > 1:
                number = context.mul(number, context.constant(unroll, place), place)
            if loop.reverse:
                last = context.integer(loop.length - 1 - offset, place)
                return context.sub(last, number, place)
            if offset:
                return context.add(number, context.constant(offset, place), place)
            return number

        if several:
            count = len(carry)
            end = context.integer(turns, place)

            def turn(number: Any, *carried: Any) -> list[Any]:
                state, written = list(carried[:count]), list(carried[count:])
                for offset in range(unroll):
                    state, written = step(position(number, offset), state, written)
                one = context.constant(1, place)
                return [context.add(number, one, place), *state, *written]

            _, *carried = context.while_loop(
                [context.constant(0, place), *carry, *ys],
                [place, *carry_avals, *ys_avals],
                lambda number, *_: context.compare(number, end, "LT", place),
                turn,
                effects=ordered_effects(loop.jaxpr.effects),
            )
            carry, ys = carried[:count], carried[count:]
        left = range(0) if symbolic else range(turns * unroll if several else 0, loop.length)
        for done in left:
            carry, ys = step(position(done // max(unroll, 1), done % max(unroll, 1)), carry, ys)
        return [*carry, *ys]

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        loop = ScanParams.of(params)
        checked, error = checks.checked(loop.jaxpr)
        consts, carry, xs = loop.split(args)
        if checked is loop.jaxpr:
            return loop.bind(consts, carry, xs, checked)
        body = _checked_body(checked, error, loop.num_consts)
        outs = loop.bind(consts, [*settled(init_error, error), *carry], xs, body)
        checks.record(error, outs[: error.num_leaves])
        return outs[error.num_leaves :]

    def dependencies(self, flags: Sequence[bool], **params: Any) -> Sequence[bool]:
        loop = ScanParams.of(params)
        every = _carried_on(loop, flags, lambda given, _: dependence_of(loop.jaxpr, given))
        dependences = dependence_of(loop.jaxpr, every)
        # With no iterations, the final carry is the initial one.
        return [*loop.split(every)[1], *dependences[loop.num_carry :]]

    def forwarding(self, **params: Any) -> Sequence[int | None]:
        loop = ScanParams.of(params)
        # A stacked result is no operand: it may come from a constant, or backwards.
        _, carried, stacked = loop.split([None] * loop.num_consts + forwarding_of(loop.jaxpr))
        still = enumerate(carried, loop.num_consts)
        return [*(i if source == i else None for i, source in still), *[None] * len(stacked)]

    def follow_keys(self, tracker: Any, *operands: Any, **params: Any) -> Any:
        # Two turns tell what all of them do with keys: with constants, the carry and elements.
        loop = ScanParams.of(params)
        consts, carry, xs = loop.split(operands)
        of_ys = loop.jaxpr.out_avals[loop.num_carry :]
        if not loop.length:
            return [*carry, *[None] * len(of_ys)]
        turns = range(loop.length)[:: -1 if loop.reverse else 1]
        elements = [[None if x is None else x[turn] for x in xs] for turn in turns[:2]]
        keys = [i for i, aval in enumerate(loop.split(loop.jaxpr.in_avals)[2]) if holds_keys(aval)]
        before = [tracker.used(elements[0][i]) for i in keys]
        outs = tracker.follow(loop.jaxpr, [*consts, *carry, *elements[0]])
        after, ys = outs[: loop.num_carry], [outs[loop.num_carry :]]
        if loop.length == 1:
            return [*after, *stacked_keys(of_ys, ys, turns)]
        earlier = after
        outs = tracker.follow_again(loop.jaxpr, [*consts, *earlier, *elements[1]])
        after = outs[: loop.num_carry]
        ys.append(outs[loop.num_carry :])
        for i, earlier_uses in zip(keys, before, strict=True):
            tracker.use_in_other_turns(elements[0][i], earlier_uses, xs[i][list(turns[2:])])
        if loop.length > 2:
            unknown = [None] * len(xs)
            after = tracker.carried_on(
                lambda state: tracker.follow(loop.jaxpr, [*consts, *state, *unknown])[
                    : loop.num_carry
                ],
                (earlier, after),
            )
        return [*after, *stacked_keys(of_ys, ys, turns)]

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        loop = ScanParams.of(dict(eqn.params))
        carried, ys = used[: loop.num_carry], used[loop.num_carry :]
        no_consts = [False] * loop.num_consts
        no_xs = [False] * (len(eqn.invars) - loop.num_consts - loop.num_carry)
        while True:
            # Whatever part of the carry an iteration needs, the previous one has to compute.
            wanted = Wanted(loop.jaxpr, (*carried, *ys), (*no_consts, *carried, *no_xs))
            body, kept = yield wanted
            _, after, _ = loop.split(kept)
            if after == carried:
                break
            carried = after
        eqn = drop_unused(eqn, used)
        if body is loop.jaxpr:
            return eqn
        invars, _ = partition(kept, eqn.invars)
        left, _ = partition((*carried, *ys), eqn.outvars)
        consts, _, _ = loop.split(kept)
        reduced = loop._replace(jaxpr=body, num_consts=sum(consts), num_carry=sum(carried))
        return eqn.replace(
            invars=invars,
            outvars=left,
            params=reduced.params(len(invars)),
            effects=body.jaxpr.effects if eqn.effects else no_effects,
        )


scan_p: Final = Scan()


def stacked_keys(
    avals: Sequence[ShapedArray], followed: Sequence[Sequence[Any]], turns: Sequence[int]
) -> list[Any]:
    """What stands in place of stacked results, whose first turns were followed: of keys, -1."""
    stacked: list[Any] = []
    for aval, *rows in zip(avals, *followed, strict=True):
        if not holds_keys(aval):
            stacked.append(None)
            continue
        numbers = np.full((len(turns), *aval.shape), -1, np.int64)
        for turn, row in zip(turns, rows, strict=False):
            numbers[turn] = row
        stacked.append(numbers)
    return stacked


def stacked_aval(aval: ShapedArray, length: int) -> ShapedArray:
    """The aval of values of a type, stacked along a new first dimension."""
    stacked = aval.update(shape=(length, *aval.shape))
    return stacked if aval.division is None else stacked.with_division(aval.division.inserted(0))


def _of_carry(loop: ScanParams, flags: Sequence[bool]) -> Flags:
    """Which results must have a tangent or batch dimension because the carry argument has one.

    Each part of the carry has one in all iterations or in none.
    """
    return (*loop.split(flags)[1], *[False] * (len(loop.jaxpr.out_avals) - loop.num_carry))


def _along(
    loop: ScanParams,
    primals: Sequence[Any],
    terms: Sequence[Sequence[Any]],
    derive: Derive,
) -> list[list[Any]]:
    """Scan a jaxpr of primals and their tangents, or Taylor coefficients.

    Args:
        loop: the parameters of the loop.
        primals: its operands.
        terms: for each operand, its tangent or all its coefficients.
        derive: derives the body.

    Returns:
        The results, and for each order their terms.
    """
    nonzero = _carried_on(
        loop,
        [any(flags) for flags in nonzero_in(terms)],
        lambda flags, carried: map(any, derive(flags, carried).nonzero_out),
    )
    derived, nonzero_out = derive(nonzero, _of_carry(loop, nonzero))
    terms = instantiated_terms(nonzero, terms)
    # Arguments and results of the derived jaxpr are first all primals, then all terms.
    count = len(primals)
    numbers = iter(range(count, count + sum(map(len, terms))))
    term_numbers = loop.split([[next(numbers) for _ in same] for same in terms])
    arguments = [
        number
        for ours, theirs in zip(loop.split(range(count)), term_numbers, strict=True)
        for number in (*ours, *(n for same in theirs for n in same))
    ]
    many, carry_count = len(nonzero_out), loop.num_carry
    carried = many + sum(map(sum, nonzero_out[:carry_count]))
    end = many + sum(map(sum, nonzero_out))
    order = [
        *range(carry_count),
        *range(many, carried),
        *range(carry_count, many),
        *range(carried, end),
    ]
    consts, carry, xs = (
        [*ours, *(t for same in theirs for t in same)]
        for ours, theirs in zip(loop.split(primals), loop.split(terms), strict=True)
    )
    outs = loop.bind(consts, carry, xs, with_order(derived, arguments, order))
    back = dict(zip(order, outs, strict=True))
    return by_order([back[i] for i in range(end)], nonzero_out)


def _carried_on(
    loop: ScanParams, flags: Sequence[bool], outputs: Callable[[Flags, Flags], Iterable[bool]]
) -> Flags:
    """The flags of operands, including parts of the carry that get a flag in later iterations.

    Args:
        loop: the parameters of the loop.
        flags: flags of the operands.
        outputs: maps flags of the arguments of the body, and of results that have one in any case,
            to flags of its results.
    """
    consts, carry, xs = loop.split(flags)
    while True:
        flags_in = (*consts, *carry, *xs)
        after = [
            before or out
            for before, out in zip(
                carry, outputs(flags_in, _of_carry(loop, flags_in)), strict=False
            )
        ]
        if after == carry:
            return flags_in
        carry = after


def _dims(
    loop: ScanParams, fixed: tuple[tuple[int | None, ...], ...], flags: Sequence[bool]
) -> tuple[int | None, ...]:
    """The batch dimensions of the arguments of the body."""
    consts, xs = fixed
    return (*consts, *(0 if batched else None for batched in loop.split(flags)[1]), *xs)


def _varying(axes: frozenset[Any]) -> ManualAxisType:
    return ManualAxisType(varying=axes)


def _reduced(axes: frozenset[Any]) -> ManualAxisType:
    return ManualAxisType(reduced=axes)


def _cast_by_uses(body: Jaxpr, count: int) -> list[ManualAxisType]:
    """What each constant of a loop is if it is cast before the loop as all of its uses cast it.

    Its cotangent is then summed over the devices once, not in each iteration.
    """
    wanted = types_of([v.aval for v in body.invars[:count]])
    if all(v.aval.manual_axis_type is invarying for v in (*body.invars, *body.outvars)):
        return wanted
    for number, v in enumerate(body.invars[:count]):
        users = [eqn for eqn in body.eqns if any(x is v for x in eqn.invars)]
        if not users or v in body.outvars:
            continue
        for primitive, kind in ((pvary_p, _varying), (preduced_p, _reduced)):
            if all(eqn.primitive is primitive for eqn in users):
                axes = frozenset.intersection(*(frozenset(e.params["axes"]) for e in users))
                wanted[number] |= kind(axes)
    return wanted


def stepping(
    context: Builder,
    loop: ScanParams,
    consts: Sequence[Any],
    xs: Sequence[tuple[Any, Any]],
    ys_avals: Sequence[Any],
) -> Callable[[Any, Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]:
    """One iteration of a lowered loop, from a position, the carry and stacked results.

    Args:
        context: where it is lowered.
        loop: the parameters of the loop.
        consts: its constants.
        xs: the arrays that it slices, with their avals.
        ys_avals: the avals of stacked results.
    """
    place = make_aval((), position_dtype(loop.length))

    def row(index: Any, aval: Any) -> tuple[list[Any], Any]:
        zeros = [context.constant(0, place)] * (len(aval.shape) - 1)
        return [index, *zeros], aval.update(shape=(1, *aval.shape[1:]))

    def element(x: Any, aval: Any, index: Any) -> Any:
        at, part = row(index, aval)
        taken = context.dynamic_slice(x, part, at)
        return context.reshape(taken, aval.update(shape=aval.shape[1:]))

    def written(y: Any, result: Any, aval: Any, index: Any) -> Any:
        at, part = row(index, aval)
        return context.dynamic_update_slice(y, context.reshape(result, part), aval, at)

    def step(index: Any, carry: Sequence[Any], ys: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        elements = [element(x, aval, index) for x, aval in xs]
        results = context.inline_jaxpr(loop.jaxpr, [*consts, *carry, *elements])
        made = zip(ys, results[loop.num_carry :], ys_avals, strict=True)
        return results[: loop.num_carry], [written(y, r, a, index) for y, r, a in made]

    return step


@remembered
def _checked_body(closed: ClosedJaxpr, error: Any, num_consts: int) -> ClosedJaxpr:
    """A body that also carries an error; `closed` returns its leaves as leading results."""
    after = num_consts + error.num_leaves

    def turn(*args: Any) -> list[Any]:
        outs = function_of(closed)(*args[:num_consts], *args[after:])
        before = error.unflatten(args[num_consts:after])
        error_so_far = merged(before, error.unflatten(outs[: error.num_leaves]))
        return [*settled(error_so_far, error), *outs[error.num_leaves :]]

    in_avals = closed.in_avals
    avals = [*in_avals[:num_consts], *avals_of(error), *in_avals[num_consts:]]
    return stage(turn, avals, derived_info(closed, "checkify"))


def _is_element(loop: ScanParams, kind: str, number: int) -> bool:
    return kind == "operand" and number >= loop.num_consts + loop.num_carry


@remembered
def _backward(
    closed: ClosedJaxpr,
    linear: Flags,
    nonzero_cts: Flags,
    num_consts: int,
    num_carry: int,
    wanted: Flags | None,
) -> tuple[ClosedJaxpr, list[bool], list[bool]]:
    """The body of the transposed loop.

    Args:
        closed: the body, linear in its whole carry.
        linear: the arguments in which it is linear.
        nonzero_cts: the results that have a cotangent, including the whole carry.
        num_consts: the number of loop-invariant arguments.
        num_carry: the number of arguments that are carried.
        wanted: the arguments whose cotangents are wanted.

    Returns:
        The jaxpr from values of constants, sums, cotangents of the carry, cotangents of results and
        values of elements, to sums, cotangents of the carry and cotangents of elements; and which
        linear constants and elements have a cotangent.
    """
    second = num_consts + num_carry
    linear_consts = sum(linear[:num_consts])
    linear_xs = sum(linear[second:])
    instantiate = (*[False] * linear_consts, *[True] * num_carry, *[False] * linear_xs)
    derived, nonzero = transposition_of(closed, linear, nonzero_cts, instantiate, wanted)
    nonzero_consts, nonzero_xs = nonzero[:linear_consts], nonzero[linear_consts + num_carry :]
    values = num_consts - linear_consts
    elements = len(linear) - second - linear_xs
    nonlinear = values + elements
    in_avals, out_avals = derived.in_avals, derived.out_avals
    count = sum(nonzero_consts)

    def turn(*args: Any) -> list[Any]:
        consts, rest = args[:values], args[values:]
        sums, rest = rest[:count], rest[count:]
        split = len(rest) - elements
        outs = function_of(derived)(*consts, *rest[split:], *rest[:split])
        added = [add_tangents(a, b) for a, b in zip(sums, outs, strict=False)]
        return [*added, *outs[count:]]

    avals = [
        *in_avals[:values],
        *out_avals[:count],
        *in_avals[nonlinear:],
        *in_avals[values:nonlinear],
    ]
    return stage(turn, avals, derived_info(closed, "transpose")), nonzero_consts, nonzero_xs


def _transpose_with_known_carry(
    loop: ScanParams, cotangent: Sequence[Any], args: Sequence[Any], linear: Sequence[bool]
) -> Sequence[Any]:
    """Transpose a loop that also carries values independent of its linear operands.

    A first loop computes these values for all iterations; they are elements of the loop that is
    then transposed.
    """
    jaxpr = loop.jaxpr.jaxpr
    first, second = loop.num_consts, loop.num_consts + loop.num_carry
    carried, known = partition(linear[first:second], range(loop.num_carry))
    stacking = jaxpr.replace(
        outvars=[*jaxpr.outvars[: loop.num_carry], *(jaxpr.invars[first + i] for i in known)]
    )
    params = loop._replace(jaxpr=ClosedJaxpr(stacking, [])).params(len(args))
    wanted = [False] * loop.num_carry + [True] * len(known)
    primitive = loop.primitive or scan_p
    stacked = apply_part(primitive, [*loop.leading, *args], params, wanted)

    order = [
        *range(first),
        *(first + i for i in carried),
        *range(second, len(args)),
        *(first + i for i in known),
    ]
    results = [*carried, *range(loop.num_carry, len(jaxpr.outvars))]
    rest = loop._replace(jaxpr=with_order(loop.jaxpr, order, results), num_carry=len(carried))
    operands_left = [*(args[i] for i in order[: len(args) - len(known)]), *stacked]
    of_loop = {"primitive": loop.primitive, "leading": loop.leading}
    cotangents = scan_p.transpose(
        [cotangent[i] for i in results], *operands_left, **rest.params(len(args)), **of_loop
    )
    by_number = dict(zip(order, cotangents, strict=True))
    return [by_number[i] for i in range(len(args))]
