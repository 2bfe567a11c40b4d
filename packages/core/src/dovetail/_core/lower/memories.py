"""The memories that the values of a program are in: those of its arguments, or asked for inside."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

from dovetail._core.base.errors import DeviceMismatchError
from dovetail._core.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from dovetail._core.ir.walk import all_jaxprs, jaxprs_in_params
from dovetail._core.ops.calls.placement import device_put_p
from dovetail._core.ops.checkpoint.naming import offload_p

__all__ = ["moves_between_memories", "with_memories"]

#: A kind of memory; None for that in which devices compute.
Memory = str | None

_COMPUTING: Final = "device"


def moves_between_memories(jaxpr: Jaxpr) -> bool:
    """Whether a program asks for memories."""
    return any(
        eqn.primitive is offload_p
        or (eqn.primitive is device_put_p and _memory_of(eqn) not in (None, _COMPUTING))
        for inner in all_jaxprs(jaxpr)
        for eqn in inner.eqns
    )


def _memory_of(eqn: JaxprEqn) -> Memory:
    """The memory that an equation of `device_put` asks for."""
    memory: Memory = getattr(eqn.params["device"], "memory_kind", None)
    return memory


def with_memories(
    closed: ClosedJaxpr, memories: Sequence[Memory], asked: Sequence[Memory]
) -> tuple[ClosedJaxpr, list[Memory]]:
    """A program that says of each value that moves to another memory where it comes from.

    What is computed is in the memory of its operands if they are all in one.

    Args:
        closed: the program.
        memories: those of its arguments; "any" for what may be computed with in all of them.
        asked: those that are asked for its results.

    Returns:
        The program, and the memories of its results.
    """
    jaxpr, results = _Pass().jaxpr(closed.jaxpr, list(memories))
    eqns, outvars = list(jaxpr.eqns), list(jaxpr.outvars)
    for number, (there, wanted) in enumerate(zip(results, asked, strict=True)):
        if wanted is not None and wanted != (there or _COMPUTING):
            moved = Var(outvars[number].aval)
            eqns.append(_move(outvars[number], moved, there or _COMPUTING, wanted))
            outvars[number] = moved
    results = [
        there if wanted is None else None if wanted == _COMPUTING else wanted
        for there, wanted in zip(results, asked, strict=True)
    ]
    if len(eqns) > len(jaxpr.eqns):
        jaxpr = jaxpr.replace(eqns=eqns, outvars=outvars)
    return (closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)), results


def _move(x: Any, moved: Var, source: str, target: str) -> JaxprEqn:
    return JaxprEqn([x], [moved], offload_p, {"src": source, "dst": target})


class _Pass:
    def __init__(self) -> None:
        self._done: dict[Any, tuple[Jaxpr, list[Memory]]] = {}

    def jaxpr(self, jaxpr: Jaxpr, memories: list[Memory]) -> tuple[Jaxpr, list[Memory]]:
        key = (jaxpr, tuple(memories))
        if key not in self._done:
            self._done[key] = self._resolved(jaxpr, memories)
        return self._done[key]

    def _resolved(self, jaxpr: Jaxpr, memories: list[Memory]) -> tuple[Jaxpr, list[Memory]]:
        where: dict[Any, Memory] = {
            v: there for v, there in zip(jaxpr.invars, memories, strict=True) if there != "any"
        }
        same: dict[Any, Any] = {}
        eqns = []
        for eqn in jaxpr.eqns:
            invars = [v if type(v) is Literal else same.get(v, v) for v in eqn.invars]
            found = {where[v] for v in invars if type(v) is not Literal and v in where}
            known, common = bool(found), found.pop() if len(found) == 1 else None
            if found and eqn.primitive is not device_put_p and not jaxprs_in_params(eqn.params):
                all_kinds = sorted({str(kind or _COMPUTING) for kind in (common, *found)})
                raise DeviceMismatchError(
                    f"{eqn.primitive.name} gets operands in the memories "
                    f"{' and '.join(all_kinds)} of "
                    "its devices; move them to one before, with dovetail.device_put(x, "
                    "dovetail.memory.Space.Device), for example"
                )
            made = eqn if invars == eqn.invars else eqn.replace(invars=invars)
            if eqn.primitive is offload_p:
                target = eqn.params["dst"]
                if eqn.params["src"] is None:
                    if target == (common or _COMPUTING):
                        same[eqn.outvars[0]] = invars[0]
                        continue
                    params = {"src": common or _COMPUTING, "dst": target}
                    made = made.replace(params=params)
                known, common = True, None if target == _COMPUTING else target
            results: list[Memory] = [common if known else "any"] * len(eqn.outvars)
            if eqn.primitive is device_put_p:
                target = _memory_of(eqn) or common or _COMPUTING
                results = [None if target == _COMPUTING else target]
                if target != (common or _COMPUTING):
                    (x,) = eqn.outvars
                    first = Var(x.aval)
                    eqns.append(made.replace(outvars=[first]))
                    made = _move(first, x, common or _COMPUTING, target)
            elif eqn.params:
                made, inner = self._inside(made, where)
                results = results if inner is None else inner
            pairs = zip(eqn.outvars, results, strict=True)
            where.update((v, there) for v, there in pairs if there != "any")
            eqns.append(made)
        outvars = [v if type(v) is Literal else same.get(v, v) for v in jaxpr.outvars]
        kinds: list[Memory] = [None if type(v) is Literal else where.get(v) for v in outvars]
        if len(eqns) == len(jaxpr.eqns) and all(map(operator.is_, eqns, jaxpr.eqns)):
            return jaxpr, kinds
        return jaxpr.replace(eqns=eqns, outvars=outvars), kinds

    def _inside(
        self, eqn: JaxprEqn, where: dict[Any, Memory]
    ) -> tuple[JaxprEqn, list[Memory] | None]:
        """An equation with the jaxprs in its parameters resolved, and what they say of results."""
        given = [None if type(v) is Literal else where.get(v, "any") for v in eqn.invars]
        changed: dict[str, Any] = {}
        found: list[list[Memory]] = []

        def resolved(inner: Any) -> Any:
            jaxpr = inner.jaxpr if type(inner) is ClosedJaxpr else inner
            extra = len(given) - len(jaxpr.invars)
            unknown: list[Memory] = ["any"] * len(jaxpr.invars)
            fitting = given[extra:] if extra in (0, 1) else unknown
            done, kinds = self.jaxpr(jaxpr, fitting)
            if len(kinds) == len(eqn.outvars):
                found.append(kinds)
            if done is jaxpr:
                return inner
            return ClosedJaxpr(done, inner.consts) if type(inner) is ClosedJaxpr else done

        for name, value in eqn.params.items():
            if isinstance(value, (Jaxpr, ClosedJaxpr)):
                new = resolved(value)
            elif isinstance(value, tuple) and any(
                isinstance(entry, (Jaxpr, ClosedJaxpr)) for entry in value
            ):
                new = tuple(
                    resolved(entry) if isinstance(entry, (Jaxpr, ClosedJaxpr)) else entry
                    for entry in value
                )
            else:
                continue
            if new is not value:
                changed[name] = new
        if changed:
            eqn = eqn.replace(params={**eqn.params, **changed})
        agreed = found[0] if found and all(kinds == found[0] for kinds in found) else None
        return eqn, agreed
