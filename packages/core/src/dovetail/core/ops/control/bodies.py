"""Users' functions as bodies of branches and loops: staging them, and checking what they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dovetail.core.base import dtypes, pytree
from dovetail.core.base.source import describe
from dovetail.core.basis.elementwise import convert_element_type
from dovetail.core.basis.operands import literal, operand
from dovetail.core.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Literal
from dovetail.core.transform.derived import close
from dovetail.core.transform.flattening import FlatFunction, location_of, name_of
from dovetail.core.transform.stage import stage


class Body(NamedTuple):
    """A staged function.

    Attributes:
        closed: its jaxpr, which has no constants: what it captured are its leading arguments.
        captured: the values of these.
        out_tree: the structure of its result.
    """

    closed: ClosedJaxpr
    captured: list[Any]
    out_tree: Any

    @property
    def out_avals(self) -> list[Any]:
        """The avals of the results."""
        return self.closed.out_avals


def stage_body(
    function: Callable[..., Any],
    caller: str,
    in_tree: Any,
    avals: Sequence[Any],
    names: Sequence[str],
    user: Callable[..., Any] | None = None,
) -> Body:
    """Record a function of pytrees.

    Args:
        function: the function.
        caller: the function of the API that it was given to.
        in_tree: the structure of its arguments, a tuple.
        avals: of their leaves.
        names: of their leaves.
        user: the user's function, where `function` is one around it.
    """
    user = function if user is None else user
    flat = FlatFunction(function, in_tree)
    info = DebugInfo(caller, name_of(user), location_of(user), tuple(names))
    closed, captured = close(stage(flat, avals, info))
    return Body(closed, captured, flat.out_tree)


def operands_of(tree: Any, caller: str, argument: str) -> tuple[list[Any], Any, list[str]]:
    """The leaves of an argument as operands, its structure, and names of the leaves."""
    pairs, definition = pytree.flatten_with_path(tree)
    names = [argument + pytree.keystr(path) for path, _ in pairs]
    leaves = [operand(x, caller, name) for (_, x), name in zip(pairs, names, strict=True)]
    return leaves, definition, names


def promoted(leaves: Sequence[Any], avals: Sequence[Any], outs: Sequence[Any]) -> list[Any] | None:
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
        return literal(leaf.val, dtype)
    return convert_element_type(leaf, dtype, weak)


def same_type(first: Any, second: Any) -> bool:
    """Whether two avals have one shape and dtype."""
    return bool(first.shape == second.shape and first.dtype == second.dtype)


def made_at(jaxpr: Jaxpr, number: int) -> str:
    """Where in the user's code a result is made, as a phrase with a leading space, or nothing."""
    var = jaxpr.outvars[number]
    for eqn in reversed(jaxpr.eqns):
        if any(v is var for v in eqn.outvars):
            return f" (made by {eqn.primitive.name} at {describe(eqn.traceback)})"
    return ""


def check_carry(
    caller: str,
    user: Callable[..., Any],
    names: Sequence[str],
    in_tree: Any,
    in_avals: Sequence[Any],
    out_tree: Any,
    body: Body,
) -> None:
    """Raise unless a body returns what it was given.

    Args:
        caller: the function of the API.
        user: the body.
        names: of the leaves of what is carried.
        in_tree: the structure of what is carried.
        in_avals: avals of its leaves.
        out_tree: the structure of what is returned.
        body: the staged function; what it carries are its first results.

    Raises:
        TypeError: structure, a shape or a dtype differs.
    """
    place = location_of(user)
    name = f"{name_of(user)}{f' ({place})' if place else ''}"
    if in_tree != out_tree:
        difference = pytree.structure_difference(in_tree, out_tree, "the argument", "the result")
        raise TypeError(
            f"{caller}: what {name} returns to be carried on must have the structure that it was "
            f"given:\n{difference}"
        )
    wrong = [
        f"\n  {leaf} was {before.short_name()} and is returned as {after.short_name()}"
        f"{_change(before, after)}{made_at(body.closed.jaxpr, i)}"
        for i, (leaf, before, after) in enumerate(
            zip(names, in_avals, body.out_avals, strict=False)
        )
        if not same_type(before, after)
    ]
    if wrong:
        raise TypeError(
            f"{caller}: what {name} returns to be carried on must have the shapes and dtypes that "
            f"it was given:{''.join(wrong)}\nGive a first value of the type that is returned, or "
            "convert the result, for example with .astype or .reshape"
        )


def _change(before: Any, after: Any) -> str:
    if before.shape == after.shape:
        return f": the dtype changes from {before.dtype} to {after.dtype}"
    if before.dtype == after.dtype:
        return f": the shape changes from {before.shape} to {after.shape}"
    return ": shape and dtype change"


def depends_on(jaxpr: Jaxpr, flags: Sequence[bool]) -> list[bool]:
    """For each result of a jaxpr, whether it depends on a flagged argument."""
    found: set[Any] = {v for v, flag in zip(jaxpr.invars, flags, strict=True) if flag}
    for eqn in jaxpr.eqns:
        if any(type(v) is not Literal and v in found for v in eqn.invars):
            found.update(eqn.outvars)
    return [type(v) is not Literal and v in found for v in jaxpr.outvars]
