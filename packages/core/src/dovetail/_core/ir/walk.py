"""Walks through jaxprs, and transformations of them that do not retrace.

An equation whose primitive has `is_call` does nothing but call the `ClosedJaxpr` in its parameter
``jaxpr``. All functions here iterate over calls and equations, so neither many equations nor deep
nesting exhausts the stack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from dovetail._core.base.caches import register
from dovetail._core.base.counting import counted
from dovetail._core.base.source import location_within
from dovetail._core.ir.jaxpr import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    no_effects,
)

__all__ = [
    "Reduction",
    "Wanted",
    "all_equations",
    "all_jaxprs",
    "call_depth",
    "count_equations",
    "dce",
    "dce_call",
    "dce_inside",
    "drop_unused",
    "eval_jaxpr",
    "free_variables",
    "inline_calls",
    "inline_single_calls",
    "is_call",
    "jaxpr_as_fun",
    "jaxprs_and_closed_jaxprs",
    "jaxprs_in_params",
    "rename",
    "subjaxprs",
    "substitute",
]


def is_call(eqn: JaxprEqn) -> bool:
    """Whether an equation does nothing but call the jaxpr in its parameter ``jaxpr``."""
    return eqn.primitive.is_call


# Finding jaxprs


def jaxprs_and_closed_jaxprs(params: Mapping[str, Any]) -> list[Jaxpr | ClosedJaxpr]:
    """The jaxprs among the parameters of an equation, also inside tuples and lists."""
    jaxprs: list[Jaxpr | ClosedJaxpr] = []
    for value in params.values():
        kind = type(value)
        if kind is ClosedJaxpr or kind is Jaxpr:
            jaxprs.append(value)
        elif kind is tuple or kind is list:
            _collect(value, jaxprs)
    return jaxprs


def _collect(values: Sequence[Any], found: list[Jaxpr | ClosedJaxpr]) -> None:
    for value in values:
        kind = type(value)
        if kind is int:
            continue
        if kind is tuple or kind is list:
            _collect(value, found)
        elif kind is ClosedJaxpr or kind is Jaxpr or isinstance(value, (Jaxpr, ClosedJaxpr)):
            found.append(value)
        elif isinstance(value, tuple):
            _collect(value, found)


def jaxprs_in_params(params: Mapping[str, Any]) -> list[Jaxpr]:
    """The jaxprs among the parameters of an equation; closed ones without their constants."""
    jaxprs = jaxprs_and_closed_jaxprs(params)
    return [x.jaxpr if isinstance(x, ClosedJaxpr) else x for x in jaxprs]


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The jaxprs in the parameters of a jaxpr's equations, one level down."""
    for eqn in jaxpr.eqns:
        if eqn.params:
            yield from jaxprs_in_params(eqn.params)


def all_jaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """A jaxpr and all jaxprs inside it at any depth, each object once, outer ones first."""
    seen: set[int] = set()
    todo = [jaxpr]
    while todo:
        current = todo.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        todo.extend(reversed(list(subjaxprs(current))))


def all_equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """The equations of a jaxpr and of all jaxprs inside it, each jaxpr object once."""
    for inner in all_jaxprs(jaxpr):
        yield from inner.eqns


def count_equations(jaxpr: Jaxpr | ClosedJaxpr) -> int:
    """The number of `all_equations`."""
    if isinstance(jaxpr, ClosedJaxpr):
        jaxpr = jaxpr.jaxpr
    return sum(len(inner.eqns) for inner in all_jaxprs(jaxpr))


def call_depth(jaxpr: Jaxpr) -> int:
    """How deep calls are nested: 0 for a jaxpr without calls."""
    depths: dict[int, int] = {}
    callees: dict[int, list[Jaxpr]] = {}
    todo = [jaxpr]
    while todo:
        current = todo[-1]
        key = id(current)
        if key not in callees:
            called = [e.params["jaxpr"] for e in current.eqns if is_call(e)]
            callees[key] = [closed.jaxpr for closed in called]
            todo.extend(c for c in callees[key] if id(c) not in depths)
            continue
        todo.pop()
        if key not in depths:
            depths[key] = max((depths[id(c)] + 1 for c in callees[key]), default=0)
    return depths[id(jaxpr)]


def inline_single_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Inline the jaxprs that only one equation calls."""
    uses: Counter[int] = Counter()
    for eqn in all_equations(closed.jaxpr):
        if is_call(eqn):
            uses[id(eqn.params["jaxpr"].jaxpr)] += 1
    return inline_calls(closed, lambda eqn: uses[id(eqn.params["jaxpr"].jaxpr)] == 1)


def free_variables(jaxpr: Jaxpr) -> list[Var]:
    """Variables that a jaxpr uses but does not bind, in order of first use."""
    bound: set[Any] = {*jaxpr.constvars, *jaxpr.invars}
    free: dict[Any, None] = {}
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            if type(v) is not Literal and v not in bound:
                free[v] = None
        bound.update(eqn.outvars)
    for v in jaxpr.outvars:
        if type(v) is not Literal and v not in bound:
            free[v] = None
    return list(free)


# Substitution


def substitute(eqns: Iterable[JaxprEqn], replacements: Mapping[Any, Atom]) -> list[JaxprEqn]:
    """Equations with the variables that they use replaced, but not those that they bind."""
    replaced = []
    for eqn in eqns:
        invars = [v if type(v) is Literal else replacements.get(v, v) for v in eqn.invars]
        same = all(a is b for a, b in zip(invars, eqn.invars, strict=True))
        replaced.append(eqn if same else eqn.replace(invars=invars))
    return replaced


def rename(jaxpr: Jaxpr) -> Jaxpr:
    """The same jaxpr with fresh variables, which no other jaxpr shares."""
    new: dict[Any, Atom] = {}

    def fresh(v: Var) -> Var:
        var = new[v] = type(v)(v.aval)
        return var

    def renamed(v: Atom) -> Atom:
        return v if type(v) is Literal else new.get(v, v)

    constvars = [fresh(v) for v in jaxpr.constvars]
    invars = [fresh(v) for v in jaxpr.invars]
    eqns = [
        eqn.replace(
            invars=[renamed(v) for v in eqn.invars], outvars=[fresh(v) for v in eqn.outvars]
        )
        for eqn in jaxpr.eqns
    ]
    return jaxpr.replace(
        constvars=constvars,
        invars=invars,
        outvars=[renamed(v) for v in jaxpr.outvars],
        eqns=eqns,
    )


# Dead code


class Wanted(NamedTuple):
    """A rule's request: a jaxpr in the parameters of its equation, without dead code.

    Attributes:
        closed: the jaxpr.
        used: which of its results are used; the others are removed.
        kept: which of its parameters stay even if nothing uses them; none by default.
    """

    closed: ClosedJaxpr
    used: tuple[bool, ...]
    kept: tuple[bool, ...] | None = None

    @classmethod
    def all_of(cls, closed: ClosedJaxpr) -> Wanted:
        """A jaxpr with all its results and parameters."""
        jaxpr = closed.jaxpr
        return cls(closed, (True,) * len(jaxpr.outvars), (True,) * len(jaxpr.invars))


#: The reduced jaxpr, or the same one if nothing can be removed, and which parameters it still has.
Reply = tuple[ClosedJaxpr, list[bool]]
#: A rule while it runs: it yields requests and returns what remains of an equation, None for
#: nothing. So bodies of any depth are reduced without recursion, and shared ones only once.
Reduction = Generator[Wanted, Reply, JaxprEqn | None]


def dce(
    jaxpr: Jaxpr,
    used_outputs: Sequence[bool] | None = None,
    instantiate: bool | Sequence[bool] = False,
) -> tuple[Jaxpr, list[bool]]:
    """Remove equations without effects whose results nothing uses.

    Calls, branches and loops lose unused results and the operands that only those need. A jaxpr
    called several times in the same way stays one object. Unused results that remain become
    `DropVar`s.

    Args:
        jaxpr: the jaxpr; it is not changed, and is returned itself if nothing can be removed.
        used_outputs: which results are wanted; all by default. The others are removed.
        instantiate: which parameters to keep even if they are unused; one bool for all.

    Returns:
        The jaxpr with the wanted results and the needed parameters, and which parameters these are.
        Its constvars are all kept.
    """
    wanted = (True,) * len(jaxpr.outvars) if used_outputs is None else tuple(used_outputs)
    if len(wanted) != len(jaxpr.outvars):
        raise ValueError(
            f"used_outputs has {counted(len(wanted), 'entry', 'entries')}, the jaxpr has "
            f"{counted(len(jaxpr.outvars), 'result')}"
        )
    reduced, used = _run(jaxpr, wanted)
    kept = [
        u or keep
        for u, keep in zip(
            used,
            [instantiate] * len(used) if isinstance(instantiate, bool) else instantiate,
            strict=True,
        )
    ]
    return _with_parameters(reduced, kept), kept


def _with_parameters(jaxpr: Jaxpr, kept: Sequence[bool]) -> Jaxpr:
    if all(kept):
        return jaxpr
    debug = jaxpr.debug_info
    if debug is not None and debug.argument_names is not None:
        names = [n for n, k in zip(debug.argument_names, kept, strict=False) if k]
        debug = replace(debug, argument_names=tuple(names))
    return jaxpr.replace(
        invars=[v for v, k in zip(jaxpr.invars, kept, strict=True) if k], debug_info=debug
    )


_Key = tuple[Jaxpr, tuple[bool, ...]]
#: A jaxpr without dead code, with all its parameters, and which of these it uses.
_Found = tuple[Jaxpr, tuple[bool, ...]]
#: Jaxprs known to have no dead code at any depth, and which of their parameters they use.
_clean: Final[WeakKeyDictionary[Jaxpr, tuple[bool, ...]]] = WeakKeyDictionary()
register(_clean.clear)


def _run(jaxpr: Jaxpr, used_outputs: tuple[bool, ...]) -> _Found:
    """Run `_dce_body` on a jaxpr and on those that rules request, with an explicit stack."""
    done: dict[_Key, _Found] = {}
    replies: dict[tuple[ClosedJaxpr, tuple[bool, ...], tuple[bool, ...]], Reply] = {}
    stack: list[tuple[_Key, Generator[Wanted, Reply, _Found]]] = []
    asked: list[Wanted] = []
    wanted: Wanted | None = None
    key: _Key = (jaxpr, used_outputs)
    while True:
        result = done.get(key)
        if result is None and key[0] in _clean and all(key[1]):
            result = key[0], _clean[key[0]]
        if result is not None:
            if wanted is None:
                return result
            reply: Any = _replied(wanted, *result, replies)
        else:
            stack.append((key, _dce_body(*key)))
            if wanted is not None:
                asked.append(wanted)
            reply = None
        try:
            wanted = stack[-1][1].send(reply)
            key = (wanted.closed.jaxpr, wanted.used)
        except StopIteration as stop:
            key, _ = stack.pop()
            reduced, used = done[key] = stop.value
            _clean[reduced] = used
            wanted = asked.pop() if asked else None


def _replied(
    wanted: Wanted,
    reduced: Jaxpr,
    used: tuple[bool, ...],
    replies: dict[tuple[ClosedJaxpr, tuple[bool, ...], tuple[bool, ...]], Reply],
) -> Reply:
    closed = wanted.closed
    kept = used
    if wanted.kept is not None:
        kept = tuple([u or k for u, k in zip(used, wanted.kept, strict=True)])
    if reduced is closed.jaxpr and all(kept):
        return closed, list(kept)
    key = (closed, wanted.used, kept)
    reply = replies.get(key)
    if reply is None:
        pruned = _with_parameters(reduced, kept)
        _clean[pruned] = tuple([u for u, k in zip(used, kept, strict=True) if k])
        reply = replies[key] = ClosedJaxpr(pruned, closed.consts), list(kept)
    return reply


def _dce_body(jaxpr: Jaxpr, used_outputs: tuple[bool, ...]) -> Generator[Wanted, Reply, _Found]:
    outvars = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    live: set[Any] = {v for v in outvars if type(v) is not Literal}
    live_eqns: list[JaxprEqn] = []
    changed = len(outvars) != len(jaxpr.outvars)
    for eqn in reversed(jaxpr.eqns):
        results = eqn.outvars
        primitive = eqn.primitive
        reduced: JaxprEqn | None = eqn
        if len(results) == 1 and not primitive.has_dce:
            if results[0] not in live and not eqn.effects:
                reduced = None
        else:
            used = [v in live for v in results]
            if not any(used) and not eqn.effects:
                reduced = None
            elif primitive.has_dce:
                reduced = yield from primitive.dce(eqn, used)
            else:
                reduced = drop_unused(eqn, used)
        if reduced is not eqn:
            changed = True
            if reduced is None:
                continue
        live.update(reduced.invars)  # literals too: they are no equation's result
        live_eqns.append(reduced)
    used_inputs = tuple([v in live for v in jaxpr.invars])
    if not changed:
        return jaxpr, used_inputs
    live_eqns.reverse()
    effects = no_effects.union(*[e.effects for e in live_eqns]) if jaxpr.effects else no_effects
    return jaxpr.replace(outvars=outvars, eqns=live_eqns, effects=effects), used_inputs


def dce_call(eqn: JaxprEqn, used: list[bool]) -> Reduction:
    """The rule `dce` of calls of the parameter ``jaxpr``."""
    closed: ClosedJaxpr = eqn.params["jaxpr"]
    reduced, kept = yield Wanted(closed, tuple(used))
    if reduced is closed:
        return eqn
    return eqn.replace(
        invars=[v for v, k in zip(eqn.invars, kept, strict=True) if k],
        outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
        params={**eqn.params, "jaxpr": reduced},
        effects=reduced.jaxpr.effects if eqn.effects else no_effects,
    )


def dce_inside(eqn: JaxprEqn, used: list[bool]) -> Reduction:
    """The rule `dce` of primitives whose jaxprs keep all their results and arguments."""
    params = {}
    for name, value in eqn.params.items():
        params[name] = yield from _dce_of_value(value)
    if any(params[name] is not value for name, value in eqn.params.items()):
        eqn = eqn.replace(params=params)
    return drop_unused(eqn, used)


def _dce_of_value(value: Any) -> Generator[Wanted, Reply, Any]:
    if type(value) is ClosedJaxpr:
        return (yield Wanted.all_of(value))[0]
    if not isinstance(value, tuple):
        return value
    values: list[Any] = []
    for item in value:
        reduced = yield from _dce_of_value(item)
        values.append(reduced)
    if all(a is b for a, b in zip(values, value, strict=True)):
        return value
    return type(value)(*values) if hasattr(value, "_fields") else tuple(values)


def drop_unused(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    """The equation with `DropVar`s for unused results."""
    if all(u or type(v) is DropVar for u, v in zip(used, eqn.outvars, strict=True)):
        return eqn
    return eqn.replace(
        outvars=[v if u else DropVar(v.aval) for v, u in zip(eqn.outvars, used, strict=True)]
    )


# Evaluation


def eval_jaxpr(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    *args: Any,
    before: Callable[[JaxprEqn], None] | None = None,
) -> list[Any]:
    """Apply the equations of a jaxpr in the current trace.

    Each value is released after its last use, so that the memory of arrays can be reused.

    Args:
        jaxpr: the jaxpr.
        consts: values of its constvars.
        args: values of its parameters.
        before: called with each equation before it is applied.

    Returns:
        Its results.

    Raises:
        TypeError: the numbers of values and variables differ.
    """
    if len(consts) != len(jaxpr.constvars) or len(args) != len(jaxpr.invars):
        raise TypeError(
            f"the jaxpr takes {counted(len(jaxpr.constvars), 'constant')} and "
            f"{counted(len(jaxpr.invars), 'argument')}; {len(consts)} and {len(args)} were given"
        )
    last = last_uses(jaxpr)
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    del consts, args
    for eqn, ended in zip(jaxpr.eqns, last, strict=True):
        if before is not None:
            before(eqn)
        values = [v if type(v) is Literal else env[v] for v in eqn.invars]
        results = eqn.primitive.bind(*values, **eqn.params)
        del values
        if eqn.primitive.multiple_results:
            env.update(
                (v, result)
                for v, result in zip(eqn.outvars, results, strict=True)
                if type(v) is not DropVar
            )
        elif type(eqn.outvars[0]) is not DropVar:
            env[eqn.outvars[0]] = results
        del results
        for v in ended:
            del env[v]
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]


def last_uses(jaxpr: Jaxpr) -> list[list[Any]]:
    """For each equation, the variables that nothing uses after it."""
    needed: set[Any] = {v for v in jaxpr.outvars if type(v) is not Literal}
    last: list[list[Any]] = []
    for eqn in reversed(jaxpr.eqns):
        ended: list[Any] = [v for v in eqn.outvars if v not in needed and type(v) is not DropVar]
        for v in eqn.invars:
            if type(v) is not Literal and v not in needed:
                needed.add(v)
                ended.append(v)
        last.append(ended)
    last.reverse()
    return last


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A jaxpr as a function of flat arguments.

    Args:
        closed: the jaxpr with its constants.

    Returns:
        A function from the values of the parameters to the list of results.
    """

    def function(*args: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)

    info = closed.jaxpr.debug_info
    if info is not None:
        function.__name__ = function.__qualname__ = info.function
    return function


# Inlining


def inline_calls(
    closed: ClosedJaxpr,
    should_inline: Callable[[JaxprEqn], bool] = lambda eqn: True,
    is_call: Callable[[JaxprEqn], bool] = is_call,
) -> ClosedJaxpr:
    """Replace calls with the equations of the jaxprs that they call, at any depth of calls.

    Args:
        closed: the jaxpr; it is not changed. Calls inside other parameters, such as the body of a
            loop, stay.
        should_inline: whether to inline a call.
        is_call: what counts as a call of the parameter ``jaxpr``.

    Returns:
        The jaxpr; the constants of called jaxprs become its own.
    """
    top = closed.jaxpr
    if not any(is_call(eqn) and should_inline(eqn) for eqn in top.eqns):
        return closed
    constvars, consts = list(top.constvars), list(closed.consts)
    by_value: dict[int, Var] = {id(c): v for c, v in zip(consts, constvars, strict=True)}
    eqns: list[JaxprEqn] = []

    def constant(var: Var, value: Any) -> Var:
        constvar = by_value.get(id(value))
        if constvar is None:
            constvar = by_value[id(value)] = Var(var.aval)
            constvars.append(constvar)
            consts.append(value)
        return constvar

    # Each frame: the remaining equations, the atoms that variables stand for, the call whose
    # results are bound at the end, and its place.
    outer: dict[Any, Atom] = {}
    frames: list[tuple[Iterator[JaxprEqn], dict[Any, Atom], JaxprEqn | None, Any]] = [
        (iter(top.eqns), outer, None, None)
    ]
    while frames:
        rest, names, call, around = frames[-1]
        for eqn in rest:
            place = location_within(around, eqn.traceback)
            operands = [v if type(v) is Literal else names.get(v, v) for v in eqn.invars]
            if is_call(eqn) and should_inline(eqn):
                body: ClosedJaxpr = eqn.params["jaxpr"]
                inner: dict[Any, Atom] = dict(zip(body.jaxpr.invars, operands, strict=True))
                for v, value in zip(body.jaxpr.constvars, body.consts, strict=True):
                    inner[v] = constant(v, value)
                frames.append((iter(body.jaxpr.eqns), inner, eqn, place))
                break
            results = eqn.outvars
            if call is not None:
                results = [type(v)(v.aval) for v in eqn.outvars]
                names.update(zip(eqn.outvars, results, strict=True))
            eqns.append(JaxprEqn(operands, results, eqn.primitive, eqn.params, eqn.effects, place))
        else:
            frames.pop()
            if call is not None:
                returned = call.params["jaxpr"].jaxpr.outvars
                frames[-1][1].update(
                    (v, r if type(r) is Literal else names.get(r, r))
                    for v, r in zip(call.outvars, returned, strict=True)
                )
    jaxpr = top.replace(
        constvars=constvars,
        outvars=[v if type(v) is Literal else outer.get(v, v) for v in top.outvars],
        eqns=eqns,
    )
    return ClosedJaxpr(jaxpr, consts)
