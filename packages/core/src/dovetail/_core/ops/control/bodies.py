"""Users' functions as bodies of branches and loops: staging them, and checking what they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.flags import Flags
from dovetail._core.base.source import describe
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, Literal
from dovetail._core.trace.mutable_references import Captured, Ref
from dovetail._core.transform.derived import (
    Taylor,
    hoist_consts,
    jvp_of,
    taylor_of,
    with_order,
)
from dovetail._core.transform.flattening import FlatFunction, location_of, name_of
from dovetail._core.transform.interning import interned
from dovetail._core.transform.stage import stage


class Body(NamedTuple):
    """A staged function.

    Attributes:
        closed: its jaxpr, which has no constants. Its arguments are the values of what it has
            captured, those of the mutable references that it changes, and its own; its results are
            the last values of these references, and its own.
        captured: values; those of references that it only reads are the last ones.
        out_tree: the structure of its result.
        read: the references that it only reads.
        changed: the references that it changes.
    """

    closed: ClosedJaxpr
    captured: list[Any]
    out_tree: Any
    read: tuple[Ref, ...] = ()
    changed: tuple[Ref, ...] = ()

    @property
    def out_avals(self) -> list[Any]:
        """The avals of its own results."""
        return self.closed.out_avals[len(self.changed) :]

    def made_at(self, number: int) -> str:
        """How one of its own results comes about, as a phrase with a leading space."""
        jaxpr = self.closed.jaxpr
        var = jaxpr.outvars[len(self.changed) + number]
        if type(var) is Literal:
            return f" (the constant {var.val})"
        for eqn in reversed(jaxpr.eqns):
            if any(v is var for v in eqn.outvars):
                return f" (made by {eqn.primitive.name} at {describe(eqn.traceback)})"
        info = jaxpr.debug_info
        index = next(i for i, v in enumerate(jaxpr.invars) if v is var)
        names = info.argument_names if info is not None else None
        return f" (which is {names[index]})" if names is not None and index < len(names) else ""

    def held(self) -> list[Any]:
        """The values of the references that it changes."""
        return current_values(self.changed)

    def finish(self, outs: Sequence[Any]) -> list[Any]:
        """Write the last values of references, and return its own results."""
        count = len(self.changed)
        for ref, value in zip(self.changed, outs[:count], strict=True):
            ref.write(value)
        return list(outs[count:])


#: Derives the body of a loop: from the arguments that have terms, and the results that are to have
#: them even if they vanish.
Derive = Callable[[Flags, Flags], Taylor]


def tangents_of_body(closed: ClosedJaxpr) -> Derive:
    """Derives a body with tangents, each the one term of its primal."""

    def derive(nonzero: Flags, instantiate: Flags) -> Taylor:
        derived, nonzero_out = jvp_of(closed, nonzero, instantiate)
        return Taylor(derived, [(n,) for n in nonzero_out])

    return derive


def terms_of_body(closed: ClosedJaxpr, order: int) -> Derive:
    """Derives a body with Taylor coefficients up to an order, all of them where there is one."""

    def derive(nonzero: Flags, instantiate: Flags) -> Taylor:
        every = (tuple([(n,) * order for n in flags]) for flags in (nonzero, instantiate))
        return taylor_of(closed, order, *every)

    return derive


def instantiated_terms(nonzero: Sequence[bool], terms: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The terms of operands as values, none for those without a flag."""
    return [
        list(map(instantiate_zeros, found)) if n else []
        for n, found in zip(nonzero, terms, strict=True)
    ]


def current_values(refs: Sequence[Ref]) -> list[Any]:
    """The values of mutable references that are about to be changed."""
    return [ref.here(writing=True).value for ref in refs]


class Operands(NamedTuple):
    """A pytree of operands, taken apart.

    Attributes:
        leaves: the operands.
        tree: their structure.
        names: of the leaves, such as ``init['w']``.
    """

    leaves: list[Any]
    tree: Any
    names: list[str]

    @property
    def avals(self) -> list[Any]:
        """The avals of the leaves."""
        return [aval_of(x) for x in self.leaves]


def stage_body(
    caller: str,
    flat: FlatFunction,
    avals: Sequence[Any],
    names: Sequence[str],
    turn: Callable[..., list[Any]] | None = None,
) -> Body:
    """Record a user's function.

    Args:
        caller: the function of the API that it was given to.
        flat: the user's function.
        avals: of its arguments.
        names: of these.
        turn: a function of flat arguments around `flat`, which is recorded instead.
    """
    user = flat.function
    info = DebugInfo(caller, name_of(user), location_of(user), tuple(names))
    used = Captured()
    closed, captured = hoist_consts(stage(flat if turn is None else turn, avals, info, used))
    if not used.ref_states:
        return Body(interned(closed), captured, flat.out_tree)
    read, changed = used.parted()
    first = len(captured)
    numbers = range(first + len(avals), len(closed.in_avals))
    place = dict(zip(used.ref_states, numbers, strict=True))
    own = len(closed.out_avals) - len(changed)
    closed = with_order(
        closed,
        [
            *range(first),
            *(place[ref] for ref in (*read, *changed)),
            *range(first, first + len(avals)),
        ],
        [*range(own, own + len(changed)), *range(own)],
    )
    captured = [*captured, *(ref.here().value for ref in read)]
    return Body(interned(closed), captured, flat.out_tree, read, changed)


def stage_loop(
    caller: str,
    flat: FlatFunction,
    names: Sequence[str],
    carry: Operands,
    *,
    own: Sequence[Any] = (),
    elements: Sequence[Any] = (),
    turn: Callable[..., list[Any]] | None = None,
    carried: Callable[[Any], Any] = lambda out_tree: out_tree,
) -> tuple[Operands, Body]:
    """Record the body of a loop so that it returns what it carries in the types it was given.

    Args:
        caller: the function of the API.
        flat: the user's function.
        names: of all arguments that are recorded.
        carry: what the user's function carries on.
        own: operands that the loop itself carries on before these.
        elements: avals of the arguments that follow.
        turn: from flat arguments, those in `own` included, to flat results, around `flat`; `flat`
            itself if None.
        carried: from the structure of what the user's function returns to that of what is carried.

    Returns:
        What is carried at first, its weakly typed numbers converted, and the body.

    Raises:
        TypeError: the function returns something else than it was given.
    """
    count = len(own)
    for _ in range(2):
        avals = carry.avals
        body = stage_body(caller, flat, [*map(aval_of, own), *avals, *elements], names, turn)
        if carried(body.out_tree) != carry.tree:
            break
        leaves = _promoted(carry.leaves, avals, body.out_avals[count : count + len(avals)])
        if leaves is None:
            break
        carry = carry._replace(leaves=leaves)
    _check_carry(caller, flat.function, carry, carried(body.out_tree), body, count)
    return carry, body


def operands_of(tree: Any, caller: str, argument: str) -> Operands:
    """The leaves of an argument of the API as operands."""
    pairs, definition = pytree.flatten_with_path(tree)
    names = [argument + pytree.keystr(path) for path, _ in pairs]
    leaves = [as_operand(x, caller, name) for (_, x), name in zip(pairs, names, strict=True)]
    return Operands(leaves, definition, names)


def _promoted(leaves: Sequence[Any], avals: Sequence[Any], outs: Sequence[Any]) -> list[Any] | None:
    """Weakly typed first values of a loop with the dtypes that its body returns.

    A Python number as the first value does not decide about the dtype: ``0.0`` yields to the
    float16 that the body makes of it.

    Returns:
        The values, or None where nothing changes.
    """
    found = list(leaves)
    changed = False
    for i, (leaf, before, after) in enumerate(zip(leaves, avals, outs, strict=True)):
        if not before.weak_type or (same_type(before, after) and after.weak_type):
            continue
        if dtypes.is_extended(after.dtype) or before.shape != after.shape:
            continue
        weak = after.weak_type and before.dtype != after.dtype
        wanted = dtypes.result_type(before, after)
        if wanted == after.dtype:
            found[i] = _converted(leaf, after.dtype, weak)
            changed = True
    return found if changed else None


def _converted(leaf: Any, dtype: Any, weak: bool) -> Any:
    if type(leaf) is Literal and not weak:
        return make_literal(leaf.val, dtype)
    return convert_element_type(leaf, dtype, weak)


def same_type(first: Any, second: Any) -> bool:
    """Whether two avals have one shape and dtype."""
    return bool(first.shape == second.shape and first.dtype == second.dtype)


def named(function: Callable[..., Any]) -> str:
    """The name of a user's function and where it is defined."""
    place = location_of(function)
    return f"{name_of(function)}{f' ({place})' if place else ''}"


def _check_carry(
    caller: str, user: Callable[..., Any], carry: Operands, out_tree: Any, body: Body, own: int
) -> None:
    if carry.tree != out_tree:
        difference = pytree.structure_difference(carry.tree, out_tree, "the argument", "the result")
        raise TypeError(
            f"{caller}: what {named(user)} returns to be carried on must have the structure that "
            f"it was given:\n{difference}"
        )
    wrong = [
        f"\n  {name} was {before.short_name()} and is returned as {after.short_name()}"
        f"{_change(before, after)}{body.made_at(own + i)}"
        for i, (name, before, after) in enumerate(
            zip(carry.names, carry.avals, body.out_avals[own:], strict=False)
        )
        if not same_type(before, after)
    ]
    if wrong:
        raise TypeError(
            f"{caller}: what {named(user)} returns to be carried on must have the shapes and "
            f"dtypes that it was given:{''.join(wrong)}\nGive a first value of the type that is "
            "returned, or convert the result, for example with .astype or .reshape"
        )


def _change(before: Any, after: Any) -> str:
    if before.shape == after.shape:
        return f": the dtype changes from {before.dtype} to {after.dtype}"
    if before.dtype == after.dtype:
        return f": the shape changes from {before.shape} to {after.shape}"
    return ": shape and dtype change"
