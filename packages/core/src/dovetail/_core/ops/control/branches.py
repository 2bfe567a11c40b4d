"""`cond` and `switch`, and their primitive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import MissingRuleError
from dovetail._core.base.flags import Flags, partition, union_flags
from dovetail._core.base.restoring import Restoring
from dovetail._core.base.source import Note
from dovetail._core.base.strictness import strictness
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import (
    batch_size,
    broadcast_in_dim,
    full,
    instantiate_zeros,
    is_linear,
    not_linear,
    to_front,
)
from dovetail._core.hlo.platform_choice import by_platform
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ir.effects import input_output
from dovetail._core.ir.jaxpr import (
    ClosedJaxpr,
    Effects,
    JaxprEqn,
    Literal,
    no_effects,
    ordered_effects,
)
from dovetail._core.ir.walk import Reduction, Wanted, count_equations
from dovetail._core.ops.checks.checking import batch_with_checks, has_checks
from dovetail._core.ops.checks.error import union
from dovetail._core.ops.control.bodies import (
    same_type,
)
from dovetail._core.ops.control.divisions import branches_for
from dovetail._core.ops.elementwise.comparison import ne
from dovetail._core.ops.elementwise.conversion import stop_gradient_p
from dovetail._core.ops.elementwise.extrema import clamp
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.random.keys import clone
from dovetail._core.trace.manual_axes import joined, types_of
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.scopes import scope
from dovetail._core.trace.zeros import Zero, wanted_among, with_zeros, without_zeros
from dovetail._core.transform.batch import batch_flat
from dovetail._core.transform.derived import (
    batch_of,
    dependence_of,
    derived_info,
    forwarding_of,
    function_of,
    hoist_consts,
    jvp_of,
    linearization_of,
    reference_of,
    remembered,
    taylor_of,
    transposition_of,
    varying,
    with_order,
)
from dovetail._core.transform.stage import stage
from dovetail._core.transform.taylor import by_order, nonzero_in, terms_of, up_to

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

_INDEX: Final = np.dtype(np.int32)
#: The name of the note on operations that select among branches which have all run; its facts are
#: the numbers of equations of the branches.
ALL_RUN: Final = "all branches run"
R = TypeVar("R")
S = TypeVar("S")
Branches = tuple[ClosedJaxpr, ...]
#: For each branch, its platforms, or None for all others.
Platforms = tuple[tuple[str, ...] | None, ...] | None


def _is_weak(results: Sequence[Any]) -> bool:
    """Whether a result is weakly typed, from the types that it has in the branches."""
    if strictness().branches_are_alike:
        return all(aval.weak_type for aval in results)
    return bool(results[0].weak_type)


class Cond(Primitive):
    """Runs one of several jaxprs, chosen by an index or by the platform."""

    name = "cond"
    multiple_results = True
    accepts_zeros = True
    transposes_partly = True
    has_effects = True
    generates_nan = False
    is_control_flow = types_axes = types_divisions = True

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        # Where devices choose differently, what a branch takes and returns varies: its transpose
        # must not have a collective operation, in which not all of them would take part.
        index, *operands = [aval.manual_axis_type for aval in avals]
        branches: Branches = params["branches"]
        ins = zip(operands, *(branch.in_avals for branch in branches), strict=False)
        taken = [joined([own, index, *types_of(same)]) for own, *same in ins]
        alike = [varying(branch, taken) for branch in branches]
        outs = zip(*(branch.out_avals for branch in alike), strict=False)
        given = [joined([index, *types_of(same)]) for same in outs]
        alike = [varying(branch, taken, given) for branch in alike]
        same = all(a is b for a, b in zip(alike, branches, strict=True))
        return [index, *taken], ({} if same else {"branches": tuple(alike)})

    def for_divisions(self, avals: Sequence[Any], params: Mapping[str, Any]) -> Mapping[str, Any]:
        return branches_for(self.name, params["branches"], avals[1:])

    def abstract(self, index: Any, *avals: Any, branches: Branches, **platforms: Any) -> Any:
        if index.shape or index.dtype != _INDEX:
            raise TypeError(f"cond: the index must be a scalar int32, got {index}")
        for branch in branches:
            have = branch.in_avals
            if len(have) != len(avals) or not all(map(same_type, avals, have)):
                raise TypeError(f"cond: a branch takes {have}, got {list(avals)}")
        outs = [branch.out_avals for branch in branches]
        if any(len(o) != len(outs[0]) or not all(map(same_type, o, outs[0])) for o in outs):
            raise TypeError(f"cond: branches return different types: {outs}")
        return [
            first.update(weak_type=_is_weak(same))
            for first, *same in zip(outs[0], *outs, strict=True)
        ]

    def rebind(
        self, branches: Sequence[ClosedJaxpr], args: Sequence[Any], params: Mapping[str, Any]
    ) -> list[Any]:
        """Bind with other jaxprs, whose constants become leading operands of all of them."""
        index, *operands = args
        parts = [hoist_consts(branch) for branch in branches]
        captured = list({id(value): value for _, values in parts for value in values}.values())
        closed = [jaxpr for jaxpr, _ in parts]
        if captured:
            number = {id(value): i for i, value in enumerate(captured)}
            avals = tuple(map(aval_of, captured))
            closed = [
                with_leading(jaxpr, tuple([number[id(value)] for value in values]), avals)
                for jaxpr, values in parts
            ]
        changed = {**params, "branches": tuple(closed)}
        results: list[Any] = self.bind(index, *captured, *operands, **changed)
        return results

    def reference(self, index: Any, *args: Any, branches: Branches, **platforms: Any) -> Any:
        return reference_of(branches[int(np.clip(index, 0, len(branches) - 1))], args)

    def effects(self, *avals: Any, branches: Branches, **platforms: Any) -> Effects:
        return no_effects.union(*(branch.jaxpr.effects for branch in branches))

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        nonzero, nonzero_tangents = without_zeros(tangents[1:])
        derived, nonzero_out = _jointly(params, lambda b, i: jvp_of(b, nonzero, i))
        outs = self.rebind([d.jaxpr for d in derived], [*primals, *nonzero_tangents], params)
        results = outs[: len(nonzero_out)]
        return results, with_zeros(nonzero_out, outs[len(results) :], results)

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], **params: Any
    ) -> tuple[Any, Callable[..., Any]]:
        index, *operands = primals
        _, *of_operands = nonzero
        flags = tuple(of_operands)
        parts, nonzero_out = _jointly(params, lambda b, i: linearization_of(b, flags, i))
        count = len(nonzero_out)
        slots, places = shared_slots([part.primal.out_avals[count:] for part in parts])
        primal = [
            pad_residuals(part.primal, count, tuple(slots), tuple(place))
            for part, place in zip(parts, places, strict=True)
        ]
        outs = self.rebind(primal, primals, params)
        results, branch_residuals = outs[:count], outs[count:]
        # Operands that a branch needs again are residuals, too; none is passed twice.
        needed = sorted({f for part in parts for f in part.forwarded if f is not None})
        residuals = [*(operands[i] for i in needed), *branch_residuals]
        linear = []
        for part, place in zip(parts, places, strict=True):
            slot = iter(place)
            numbers = [
                needed.index(f) if f is not None else len(needed) + next(slot)
                for f in part.forwarded
            ]
            avals = tuple(map(aval_of, residuals))
            linear.append(with_leading(part.linear, tuple(numbers), avals))

        def tangent(*tangents: Any) -> list[Any]:
            nonzero_tangents, _ = partition(of_operands, tangents[1:])
            out_tangents = self.rebind(linear, [index, *residuals, *nonzero_tangents], params)
            return with_zeros(nonzero_out, out_tangents, results)

        return results, tangent

    def transpose(self, cotangent: Any, index: Any, *args: Any, **params: Any) -> Sequence[Any]:
        if is_linear(index):
            raise not_linear("a branch whose predicate depends on a tangent")
        linear = tuple(map(is_linear, args))
        nonzero_cts, cts = without_zeros(cotangent)
        wanted = wanted_among(args)
        derived, _ = _jointly(
            params, lambda b, i: transposition_of(b, linear, nonzero_cts, i, wanted)
        )
        _, operands = partition(linear, args)
        results = self.rebind([d.jaxpr for d in derived], [index, *operands, *cts], params)
        return [None, *derived[0].cotangents(linear, results)]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        (index, *operands), (of_index, *of_operands) = args, dims
        if of_index is not None:
            branches = params["branches"]
            return self._batch_of_choices(index, of_index, operands, of_operands, size, branches)
        at = tuple(of_operands)
        derived, flags = _jointly(
            params, lambda b, i: batch_of(b, size, at, i), attrgetter("batched")
        )
        outs = self.rebind([d.jaxpr for d in derived], args, params)
        return outs, [0 if batched else None for batched in flags]

    def _batch_of_choices(
        self,
        index: Any,
        of_index: int,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        size: int,
        branches: Branches,
    ) -> tuple[Any, Any]:
        """Run all branches and select for each element, since elements choose differently."""
        effects = self.effects(branches=branches)
        if has_checks(effects):
            return batch_with_checks(
                self, [index, *operands], [of_index, *dims], {"branches": branches}
            )
        if ordered_effects(effects) or input_output(effects):
            raise NotImplementedError(
                "vmap of lax.cond or lax.switch whose predicate is mapped runs all branches, and "
                f"they have effects that would then happen for all: {sorted(map(str, effects))}"
            )
        passed = [None if n is None else n - 1 for n in self.forwarding(branches=branches)]
        index = to_front(index, of_index, size)
        if len(branches) > 2:
            index = clamp(make_literal(0, _INDEX), index, make_literal(len(branches) - 1, _INDEX))
        results = []
        # Each branch may use a key, since what it makes counts only where it is chosen.
        alternatives = [_alternatives(operands) for _ in branches]
        for i, (branch, own) in enumerate(zip(branches, alternatives, strict=True)):
            guarded = _guarded(branch, ne(index, make_literal(i, _INDEX)), own, dims, size)
            outs, out_dims = batch_flat(function_of(branch), *guarded, size)
            results.append(
                [
                    to_front(o, d, size) if operand is None else None
                    for o, d, operand in zip(outs, out_dims, passed, strict=True)
                ]
            )
        if len(branches) == 2:
            index = ne(index, make_literal(0, _INDEX))
        note = Note(ALL_RUN, tuple([count_equations(branch) for branch in branches]))
        with Restoring(*scope([note])):
            outs = [
                chosen(index, *cases) if operand is None else operands[operand]
                for operand, *cases in zip(passed, *results, strict=True)
            ]
        return (
            outs,
            [0 if operand is None else dims[operand] for operand in passed],
        )

    def lower(
        self,
        context: Builder,
        index: Any,
        *values: Any,
        branches: Branches,
        branches_platforms: Platforms = None,
    ) -> Any:
        effects = ordered_effects(self.effects(branches=branches))
        if branches_platforms is not None:
            # Other platforms may not support a branch, so it is lowered for its own only.
            def of_platform(platform: str) -> list[Any]:
                number = branch_of(platform, branches_platforms)
                if number is None:
                    raise MissingRuleError(
                        f"lax.platform_dependent has no branch for the platform {platform!r} "
                        f"(it has {platform_names(branches_platforms)}) and no default"
                    )
                return context.inline_jaxpr(branches[number], values)

            return by_platform(context, of_platform, context.avals_out, effects)
        return context.case(
            index,
            [partial(context.inline_jaxpr, branch, values) for branch in branches],
            context.avals_out,
            effects=effects,
        )

    def taylor(
        self, operands: Sequence[Any], results: Sequence[Any], **params: Any
    ) -> Callable[[int], Any]:
        branches: Branches = params["branches"]

        def truncated(order: int) -> list[list[Any]]:
            terms = terms_of(operands[1:], order)
            nonzero = nonzero_in(terms)
            flags = [taylor_of(branch, order, nonzero).nonzero_out for branch in branches]
            nonzero_out = tuple(map(union_flags, zip(*flags, strict=True)))
            jaxprs = [taylor_of(branch, order, nonzero, nonzero_out).jaxpr for branch in branches]
            nonzero_terms = [t for same in terms for t in same if type(t) is not Zero]
            outs = self.rebind(jaxprs, [*(x[0] for x in operands), *nonzero_terms], params)
            return by_order(outs, nonzero_out)

        return up_to(truncated)

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        branches: Branches = params["branches"]
        error = union([checks.checked(branch)[1] for branch in branches])
        outs = self.rebind([checks.checked(b, error)[0] for b in branches], args, params)
        checks.record(error, outs[: error.num_leaves])
        return outs[error.num_leaves :]

    def dependencies(
        self, flags: Sequence[bool], *, branches: Branches, **platforms: Any
    ) -> Sequence[bool]:
        of_index, *of_operands = flags
        if of_index:
            return [True] * len(branches[0].out_avals)
        return union_flags(dependence_of(branch, tuple(of_operands)) for branch in branches)

    def forwarding(self, *, branches: Branches, **platforms: Any) -> Sequence[int | None]:
        sources = [set(same) for same in zip(*map(forwarding_of, branches), strict=True)]
        return [None if len(same) > 1 or None in same else 1 + min(same) for same in sources]

    def follow_keys(
        self, tracker: Any, _: Any, *operands: Any, branches: Branches, **platforms: Any
    ) -> Any:
        return tracker.follow_one_of(branches, operands)

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        branches: Branches = eqn.params["branches"]
        needed = []
        for branch in branches:
            _, of_branch = yield Wanted(branch, tuple(used))
            needed.append(of_branch)
        live = union_flags(needed)
        reduced = []
        for branch in branches:
            closed, _ = yield Wanted(branch, tuple(used), live)
            reduced.append(closed)
        if all(a is b for a, b in zip(reduced, branches, strict=True)):
            return eqn
        index, *operands = eqn.invars
        effects = no_effects.union(*[branch.jaxpr.effects for branch in reduced])
        return eqn.replace(
            invars=[index, *partition(live, operands)[0]],
            outvars=partition(used, eqn.outvars)[0],
            params={**eqn.params, "branches": tuple(reduced)},
            effects=effects if eqn.effects else no_effects,
        )


cond_p: Final = Cond()


def branch_of(platform: str, platforms: Platforms) -> int | None:
    """The number of the branch that a platform runs, if there is one."""
    for number, names in enumerate(platforms or ()):
        if names is None or platform in names:
            return number
    return None


def platform_names(platforms: Platforms) -> str:
    """The platforms that branches are for."""
    return ", ".join(name for names in platforms or () for name in names or ()) or "none"


def _jointly(
    params: Mapping[str, Any],
    derive: Callable[[ClosedJaxpr, Flags | None], Any],
    flags_of: Callable[[Any], Sequence[bool]] = attrgetter("nonzero_out"),
) -> tuple[list[Any], Flags]:
    """Transform all branches so that all of them return the same results.

    Args:
        params: the parameters of the equation.
        derive: maps a branch, and the results that it must return in any case, to the transformed
            branch.
        flags_of: which results a transformed branch returns.

    Returns:
        The transformed branches, and which results all of them return.
    """
    branches: Branches = params["branches"]
    alone = [derive(branch, None) for branch in branches]
    flags = union_flags(map(flags_of, alone))
    return [
        derived if tuple(flags_of(derived)) == flags else derive(branch, flags)
        for branch, derived in zip(branches, alone, strict=True)
    ], flags


def with_leading(
    closed: ClosedJaxpr, numbers: tuple[int, ...], avals: tuple[Any, ...]
) -> ClosedJaxpr:
    """A jaxpr whose leading arguments are replaced by a larger list of arguments.

    Args:
        closed: the jaxpr.
        numbers: for each of its leading arguments, the index among the new ones.
        avals: avals of the new arguments.
    """
    place = {number: i for i, number in enumerate(numbers)}
    leading = [place.get(i, aval) for i, aval in enumerate(avals)]
    return with_order(closed, [*leading, *range(len(numbers), len(closed.in_avals))])


def shared_slots(computed: Sequence[Sequence[Any]]) -> tuple[list[Any], list[list[int]]]:
    """Allocate shared result slots for the residuals of all branches.

    Branches must return the same types, so each returns a value for the residuals of the others,
    too. Separate slots for every branch would add up their memory. Instead, a slot serves all
    branches with a residual of its type; of each type there are as many slots as the largest number
    in one branch. (Reusing memory across types would take operations that neither a compiler nor a
    reader of the program understands.) The linear program chooses its branch by the same index, so
    it finds its own residuals.

    Args:
        computed: for each branch, the avals of its residuals.

    Returns:
        The avals of the slots, and for each branch the slots of its residuals.
    """
    slots: list[Any] = []
    places = []
    for avals in computed:
        free = list(range(len(slots)))
        place = []
        for aval in avals:
            at = next((i for i in free if same_type(slots[i], aval)), None)
            if at is None:
                at = len(slots)
                slots.append(aval)
            else:
                free.remove(at)
            place.append(at)
        places.append(place)
    return slots, places


def unused(aval: Any) -> Any:
    """A value of a type, whatever it is."""
    if dtypes.is_extended(aval.dtype):
        return full(aval.shape, 0, aval.dtype)
    return instantiate_zeros(Zero(aval))


@remembered
def pad_residuals(
    closed: ClosedJaxpr, count: int, slots: tuple[Any, ...], place: tuple[int, ...]
) -> ClosedJaxpr:
    """A branch that returns its residuals in their slots, and zeros in the others."""

    def function(*args: Any) -> list[Any]:
        outs = function_of(closed)(*args)
        by_slot = dict(zip(place, outs[count:], strict=True))
        return [
            *outs[:count],
            *(by_slot[i] if i in by_slot else unused(aval) for i, aval in enumerate(slots)),
        ]

    return stage(function, closed.in_avals, derived_info(closed, "linearize"))


def _guarded(
    branch: ClosedJaxpr,
    elsewhere: Any,
    operands: Sequence[Any],
    dims: Sequence[int | None],
    size: int,
) -> tuple[list[Any], list[int | None]]:
    """The operands of a branch, with no derivative for elements that do not choose it.

    Where the branch does not apply, an infinite derivative times the zero cotangent of its result
    would otherwise be NaN.

    Args:
        branch: the branch.
        elsewhere: for each element of the batch, whether it chooses another branch.
        operands: the operands of all branches.
        dims: their batch dimensions.
        size: the size of the batch.

    Returns:
        The operands and their batch dimensions.
    """
    own: list[Any] = []
    places: list[int | None] = []
    for derived, x, dim in zip(_may_derive(branch), operands, dims, strict=True):
        if derived:
            x, dim = to_front(x, dim, size), 0
            x = chosen(elsewhere, x, stop_gradient_p.bind(x))
        own.append(x)
        places.append(dim)
    return own, places


def guarded(closed: ClosedJaxpr, runs: Any, operands: Sequence[Any]) -> list[Any]:
    """The operands of a body, with no derivative where its results are not taken.

    Args:
        closed: the body.
        runs: a scalar, whether its results are taken.
        operands: its operands.
    """
    return [
        select_n_p.bind(runs, stop_gradient_p.bind(x), x) if derived else x
        for derived, x in zip(_may_derive(closed), operands, strict=True)
    ]


def _may_derive(closed: ClosedJaxpr) -> list[bool]:
    """Which arguments of a jaxpr it uses, and may have a derivative in."""
    used = {v for eqn in closed.jaxpr.eqns for v in eqn.invars if type(v) is not Literal}
    return [
        var in used and dtypes.kind_of(var.aval.dtype) in ("f", "c") for var in closed.jaxpr.invars
    ]


def _alternatives(operands: Sequence[Any]) -> list[Any]:
    """The operands of a branch that runs beside others, with keys of its own."""
    own = {id(x): clone(x, alternative=True) for x in operands}
    return [own[id(x)] for x in operands]


def chosen(which: Any, *cases: Any) -> Any:
    """For each element of the batch, the case whose number `which` holds."""
    shape = shape_of(cases[0])
    if all(case is cases[0] for case in cases):
        return cases[0]
    return select_n_p.bind(broadcast_in_dim(which, shape, (0,)), *cases)
