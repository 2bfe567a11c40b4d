"""Why something was traced or compiled: the log of ``explain_cache_misses``, and ``no_tracing``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from types import CodeType
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from dovetail._core.base import config, pytree, source
from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.tree_difference import Node, differences_between
from dovetail._core.transform.flattening import parameter_names

__all__ = ["Miss", "TraceSignature", "explain_miss", "log_compiled"]

_logger: Final = logging.getLogger("dovetail.cache_misses")


class TraceSignature(NamedTuple):
    """The key of a traced function: any change of it causes a new trace.

    Attributes:
        in_tree: the structure of its arguments.
        avals: the types of its array arguments.
        statics: its static arguments.
        options: how it is compiled.
        context: the values of the framework's options that affect tracing.
    """

    in_tree: Any
    avals: tuple[Any, ...]
    statics: Any
    options: Any
    context: tuple[Any, ...]


# The code of traced functions. A function that is redefined in a loop is a new object every time,
# but keeps its code.
_traced_code: Final[WeakSet[CodeType]] = WeakSet()


@dataclass(frozen=True, slots=True)
class Miss:
    """A call that missed the cache.

    Attributes:
        function: the name of the called function.
        where: the user's line.
        reason: why it missed, with the paths of the arguments, and what to change.
    """

    function: str
    where: str
    reason: str

    def log(self, seconds: float) -> None:
        """Log the miss with the time that the trace took."""
        _logger.warning(
            "tracing %s, called at %s, took %.1f ms: %s",
            self.function,
            self.where,
            seconds * 1e3,
            self.reason,
        )


def explain_miss(
    name: str,
    function: Any,
    signature: TraceSignature,
    known: Collection[TraceSignature],
) -> Miss | None:
    """Explain why a function has to be traced, if an option asks for it.

    Args:
        name: the function's name.
        function: the function.
        signature: the signature of this call.
        known: the signatures of earlier calls, the first of them first.

    Raises:
        RuntimeError: the option ``no_tracing`` is on.
    """
    if not (config.explain_cache_misses.value or config.no_tracing.value):
        return None
    code = getattr(function, "__code__", None)
    reason = _reason(function, signature, known, code in _traced_code if code else False)
    miss = Miss(name, source.describe(get_traceback()), reason)
    if config.no_tracing.value:
        raise RuntimeError(
            f"{name}, called at {miss.where}, would have to be traced, and the option no_tracing "
            f"forbids it: {reason}"
        )
    if code:
        _traced_code.add(code)
    return miss if config.explain_cache_misses.value else None


def log_compiled(
    name: str, what: str, device: Any, seconds: float, others: Iterable[Any] = ()
) -> None:
    """Log a new program if the option ``explain_cache_misses`` is on.

    Args:
        name: the name of the function or operation.
        what: what the program is for.
        device: where it runs.
        seconds: the time for lowering and compiling, or for reading it from the disk cache.
        others: where there were programs for the same.
    """
    if config.explain_cache_misses.value:
        where = source.describe(get_traceback())
        elsewhere = ", ".join(map(str, others))
        _logger.warning(
            "compiling %s, called at %s, took %.1f ms: there was no program for %s on %s%s",
            name,
            where,
            seconds * 1e3,
            what,
            device,
            f"; there was one for {elsewhere}. To avoid it, place the arguments where those of "
            "earlier calls were"
            if elsewhere
            else "",
        )


@dataclass(frozen=True, slots=True)
class _Change:
    """A difference between two calls.

    Attributes:
        weight: how large it is: 1 for a dtype or a value, 2 for a change of structure.
        text: returns a sentence that says what has changed.
        advice: how to avoid it.
    """

    weight: float
    text: Callable[[], str]
    advice: tuple[str, ...]


def _reason(
    function: Any, signature: TraceSignature, known: Collection[TraceSignature], seen: bool
) -> str:
    if not known:
        if seen:
            return (
                "it was made anew, and another function of the same code was traced before; define "
                "and jit it once, outside of the loop or function that makes it"
            )
        return "it was not called before (a function that is made anew is another function)"
    # The nearest has the fewest changes; among several, the latest.
    changes = min(
        (list(_changes(function, signature, other)) for other in reversed(list(known))),
        key=lambda changes: sum(change.weight for change in changes),
    )
    texts = "; ".join(change.text() for change in changes) or "what it got is not equal to itself"
    advice = "; ".join(dict.fromkeys(line for change in changes for line in change.advice))
    advice = advice or "pass static values and static data of trees that equal themselves"
    count = len(known)
    more = f" (nearest of {count} earlier signatures)" if count > 1 else ""
    return f"{texts}{more}. To avoid it, {advice}"


def _changes(function: Any, new: TraceSignature, old: TraceSignature) -> Iterator[_Change]:
    """All that differs between a call and an earlier one."""
    now, before = _Arguments(function, new), _Arguments(function, old)
    if new.in_tree != old.in_tree:
        yield from _changes_of_structure(now, before)
    for name, aval in now.avals.items():
        if name in before.avals and aval != before.avals[name]:
            yield _change_of_type(name, aval, before.avals[name])
    if new.statics != old.statics:
        yield from _changes_of_statics(new, old)
    yield from _changes_of_options(new, old)


class _Arguments:
    """The array arguments of a call, by name.

    Attributes:
        nodes: the structure of each argument.
        keywords: the arguments that were passed by keyword.
        avals: the aval of each leaf.
    """

    __slots__ = ("avals", "keywords", "nodes")

    def __init__(self, function: Any, signature: TraceSignature) -> None:
        args, kwargs = Node.of_definition(signature.in_tree).children()
        positional, keywords = args.children(), kwargs.children()
        static = {where for where, _, _ in signature.statics}
        numbers = [n for n in range(len(positional) + len(static)) if n not in static]
        numbers = numbers[: len(positional)]
        parameters = parameter_names(function, max(numbers, default=-1) + 1)
        self.nodes = {parameters[n]: node for n, node in zip(numbers, positional, strict=True)}
        named = {key.key: node for key, node in zip(kwargs.keys(), keywords, strict=True)}
        self.keywords = set(named)
        # A positional argument and one among `**kwargs` may have the same name.
        self.nodes.update({f"{k}=" if k in self.nodes else k: node for k, node in named.items()})
        leaves = [leaf for name, node in self.nodes.items() for leaf in _leaves(node, name)]
        self.avals = dict(zip(leaves, signature.avals, strict=True))


def _leaves(node: Node, name: str) -> Iterator[str]:
    """The names of the leaves of an argument."""
    if node.kind is None:
        yield name
    for key, child in zip(node.keys(), node.children(), strict=True):
        yield from _leaves(child, name + pytree.keystr((key,)))


def _changes_of_structure(now: _Arguments, before: _Arguments) -> Iterator[_Change]:
    advice = ("pass arguments of one structure, by position or by keyword in every call",)
    for name in dict.fromkeys((*now.nodes, *before.nodes)):
        if name not in before.nodes:
            yield _Change(2, partial("{} is passed; it was not".format, name), advice)
        elif name not in now.nodes:
            yield _Change(2, partial("{} is not passed; it was".format, name), advice)
        else:
            yield from _changes_of_argument(name, now, before, advice)


def _changes_of_argument(
    name: str, now: _Arguments, before: _Arguments, advice: tuple[str, ...]
) -> Iterator[_Change]:
    if (name in now.keywords) != (name in before.keywords):
        new, old = "keyword", "position"
        if name in before.keywords:
            new, old = old, new
        yield _Change(2, lambda: f"{name} is passed by {new}; it was passed by {old}", advice)
    for found in differences_between(now.nodes[name], before.nodes[name], prefix=False):
        yield _Change(
            2,
            partial(
                "{}{} is {}; it was {}".format,
                name,
                pytree.keystr(found.path),
                found.first,
                found.second,
            ),
            advice,
        )


def _change_of_type(name: str, new: Any, old: Any) -> _Change:
    weight, advice = 0.0, []
    if new.shape != old.shape:
        rank = len(new.shape) != len(old.shape)
        sizes = rank or sum(a != b for a, b in zip(new.shape, old.shape, strict=True))
        weight += 1 + min(sizes, 99) / 1000 + rank / 10
        advice.append("pad arrays to one shape, or to few")
    if new.dtype != old.dtype:
        weight += 1
        advice.append("convert arrays to one dtype before the call")
    if _weak(new) != _weak(old):
        weight += 1
        advice.append("pass an array in every call, or a Python scalar in every call")
    return _Change(
        weight or 1,
        lambda: f"{name} is {new.short_name()}{_weak(new)}; it was {old.short_name()}{_weak(old)}",
        tuple(advice) or ("pass arguments of one type in every call",),
    )


def _changes_of_statics(new: TraceSignature, old: TraceSignature) -> Iterator[_Change]:
    advice = ("make an argument that takes many values dynamic",)
    now = {where: (kind, value) for where, kind, value in new.statics}
    before = {where: (kind, value) for where, kind, value in old.statics}

    def said(where: Any) -> str:
        if where not in now:
            return f"the static argument {where!r} is not passed; it was {before[where][1]!r:.80}"
        kind, value = now[where]
        if where not in before:
            return f"the static argument {where!r} is {value!r:.80}; it was not passed"
        old_kind, old_value = before[where]
        types = ("", "") if kind is old_kind else (f" ({kind.__name__})", f" ({old_kind.__name__})")
        return (
            f"the static argument {where!r} is {value!r:.80}{types[0]}; it was "
            f"{old_value!r:.80}{types[1]}"
        )

    for where in dict.fromkeys((*now, *before)):
        if now.get(where) != before.get(where):
            yield _Change(1, partial(said, where), advice)


def _changes_of_options(new: TraceSignature, old: TraceSignature) -> Iterator[_Change]:
    if new.options != old.options:
        for field in fields(new.options):
            pair = getattr(new.options, field.name), getattr(old.options, field.name)
            if pair[0] != pair[1]:
                yield _Change(
                    1,
                    partial(
                        "the option {} of jit is {!r:.80}; it was {!r:.80}".format,
                        field.name,
                        *pair,
                    ),
                    ("keep one jitted function",),
                )
    if new.context == old.context:
        return
    names = config.names_in_trace_key()
    advice = ("set options once, before the first call",)
    if len(names) != len(new.context):  # jax is in the process, and its options are among them
        yield _Change(1, lambda: "an option that affects tracing has another value", advice)
        return
    for name, value, was in zip(names, new.context, old.context, strict=True):
        if value != was:
            said = partial("the option {} is {!r:.80}; it was {!r:.80}".format, name, value, was)
            yield _Change(1, said, advice)


def _weak(aval: Any) -> str:
    return " (weakly typed)" if getattr(aval, "weak_type", False) else ""
