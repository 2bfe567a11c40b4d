"""Bodies of branches and loops: stages user functions and checks their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.flags import Flags
from dovetail._core.base.source import describe
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, Literal
from dovetail._core.trace.mutable_references import Captured, Ref
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.derived import (
    Taylor,
    hoist_consts,
    jvp_of,
    taylor_of,
    with_order,
)
from dovetail._core.transform.flattening import FlatFunction, location_of, name_of
from dovetail._core.transform.interning import holds_functions, interned
from dovetail._core.transform.stage import stage
from dovetail._core.transform.traced_once import TracedOnce


class Body(NamedTuple):
    """A staged function.

    Attributes:
        closed: its jaxpr, without constants. It takes the captured values, the values of the
            mutable references that it changes, and its own arguments. It returns the final values
            of these references and its own results.
        captured: captured values, the last of them those of references that it only reads.
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
        """The origin of one of its own results, as a phrase with a leading space."""
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
        """Write the final values of references, and return its own results."""
        count = len(self.changed)
        for ref, value in zip(self.changed, outs[:count], strict=True):
            ref.write(value)
        return list(outs[count:])


#: Derives the body of a loop, given which arguments have terms, and which results must have them
#: even if they vanish.
Derive = Callable[[Flags, Flags], Taylor]


def tangents_of_body(closed: ClosedJaxpr) -> Derive:
    """Derives a body with tangents, each the single term of its primal."""

    def derive(nonzero: Flags, instantiate: Flags) -> Taylor:
        derived, nonzero_out = jvp_of(closed, nonzero, instantiate)
        return Taylor(derived, [(n,) for n in nonzero_out])

    return derive


def terms_of_body(closed: ClosedJaxpr, order: int) -> Derive:
    """Derives a body with Taylor coefficients up to an order: all or none for each value."""

    def derive(nonzero: Flags, instantiate: Flags) -> Taylor:
        every = (tuple([(n,) * order for n in flags]) for flags in (nonzero, instantiate))
        return taylor_of(closed, order, *every)

    return derive


def instantiated_terms(nonzero: Sequence[bool], terms: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The terms of operands as arrays; none for operands without a flag."""
    return [
        list(map(instantiate_zeros, operand_terms)) if n else []
        for n, operand_terms in zip(nonzero, terms, strict=True)
    ]


def current_values(refs: Sequence[Ref]) -> list[Any]:
    """The values of mutable references that are about to change."""
    return [ref.here(writing=True).value for ref in refs]


class Operands(NamedTuple):
    """A flattened pytree of operands.

    Attributes:
        leaves: the operands.
        tree: their structure.
        names: names of the leaves, such as ``init['w']``.
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
    kind: str | None = None,
) -> Body:
    """Stage a user's function, once for arguments of the same types.

    Args:
        caller: the API function that it was passed to.
        flat: the user's function.
        avals: avals of its arguments.
        names: names of its arguments.
        turn: a wrapper of `flat`, of flat arguments, which is staged instead.
        kind: what the wrapper does, if it does the same to each function. None if there is none, or
            the function is to be staged by each call.
    """
    if turn is not None and kind is None:
        return _staged(caller, flat, avals, names, turn)
    return _bodies.of(
        flat.function,
        (caller, kind, flat.in_tree, tuple(avals)),
        lambda: _staged(caller, flat, avals, names, turn),
        _may_stay,
    )


_bodies: Final[TracedOnce[Body]] = TracedOnce()


def _may_stay(body: Body) -> bool:
    return not (
        body.read
        or body.changed
        # A captured tracer belongs to one trace of the caller: the next call may capture another.
        or any(isinstance(value, Tracer) for value in body.captured)
        # The function could never be released: what such a jaxpr holds may refer to it.
        or holds_functions(body.closed.jaxpr)
    )


def _staged(
    caller: str,
    flat: FlatFunction,
    avals: Sequence[Any],
    names: Sequence[str],
    turn: Callable[..., list[Any]] | None,
) -> Body:
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
    kind: str | None = None,
    carried: Callable[[Any], Any] = lambda out_tree: out_tree,
) -> tuple[Operands, Body]:
    """Stage the body of a loop so that it returns the carry in the types that it takes.

    Args:
        caller: the API function.
        flat: the user's function.
        names: names of all staged arguments.
        carry: the carry of the user's function.
        own: carried operands of the loop itself, which come before these.
        elements: avals of the arguments after the carry.
        turn: a wrapper of `flat` from flat arguments, including `own`, to flat results; `flat`
            itself if None.
        kind: as for `stage_body`.
        carried: maps the structure of the result of the user's function to that of the carry.

    Returns:
        The initial carry, with its weakly typed numbers converted, and the body.

    Raises:
        TypeError: the function returns a carry of another type than it takes.
    """
    count = len(own)
    for _ in range(2):
        avals = carry.avals
        types = [*map(aval_of, own), *avals, *elements]
        body = stage_body(caller, flat, types, names, turn, kind)
        if carried(body.out_tree) != carry.tree:
            break
        leaves = _promoted(carry.leaves, avals, body.out_avals[count : count + len(avals)])
        carry = carry._replace(leaves=leaves)
        # The body stays as it is where its argument yields to other dtypes, but had the right one.
        if all(map(same_type, avals, carry.avals)):
            break
    _check_carry(caller, flat.function, carry, carried(body.out_tree), body, count)
    return carry, body


def carried_avals(before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """The avals of what a loop returns, by those that its body takes and returns.

    What the body returns with a dtype of its own has it, though the first value yielded to others.
    """
    return [
        a.strengthen() if a.weak_type and not b.weak_type else a
        for a, b in zip(before, after, strict=True)
    ]


def operands_of(tree: Any, caller: str, argument: str) -> Operands:
    """The leaves of an argument of an API function as operands."""
    pairs, definition = pytree.flatten_with_path(tree)
    names = [argument + pytree.keystr(path) for path, _ in pairs]
    leaves = [as_operand(x, caller, name) for (_, x), name in zip(pairs, names, strict=True)]
    return Operands(leaves, definition, names)


def _promoted(leaves: Sequence[Any], avals: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
    """The initial values of a loop, with weakly typed ones in the dtypes that the body returns.

    A Python number as initial value does not decide the dtype: ``0.0`` gives way to the float16
    that the body returns.
    """
    return [
        _converted(leaf, after.dtype)
        if before.weak_type
        and not (same_type(before, after) and after.weak_type)
        and not dtypes.is_extended(after.dtype)
        and before.shape == after.shape
        and dtypes.result_type(before, after) == after.dtype
        else leaf
        for leaf, before, after in zip(leaves, avals, outs, strict=True)
    ]


def _converted(leaf: Any, dtype: Any) -> Any:
    if type(leaf) is Literal:
        return make_literal(leaf.val, dtype)
    return convert_element_type(leaf, dtype)


def same_type(first: Any, second: Any) -> bool:
    """Whether two avals have the same shape and dtype."""
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
