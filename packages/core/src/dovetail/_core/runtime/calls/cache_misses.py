"""Why something was traced or compiled: for the log, for events, and for what forbids it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import fields
from functools import partial
from types import CodeType
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from dovetail._core.base import config, events, pytree, source
from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.events import Cause
from dovetail._core.base.records import record
from dovetail._core.base.tree_difference import Node, differences_between
from dovetail._core.transform.flattening import parameter_names

__all__ = [
    "TraceSignature",
    "cause_of_compilation",
    "cause_of_trace",
    "explain_miss",
    "log_compiled",
    "log_traced",
]


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


# The code of traced functions, by identity: that of two functions in two files may be equal. A
# function that is redefined in a loop is a new object every time, but keeps its code.
_traced_code: Final[WeakValueDictionary[int, CodeType]] = WeakValueDictionary()


def explain_miss(
    name: str,
    function: Any,
    signature: TraceSignature,
    known: Collection[TraceSignature],
    *,
    eager: bool = False,
) -> Cause | None:
    """Explain why a function has to be traced, if somebody wants to know.

    Args:
        name: the function's name.
        function: the function.
        signature: the signature of this call.
        known: the signatures of earlier calls, the first of them first.
        eager: whether it is an operation outside of `jit`.

    Raises:
        RuntimeError: the option ``no_tracing`` is on.
        RecompilationError: it is traced again, in a block of `no_recompiles`.
    """
    code = getattr(function, "__code__", None)
    seen = code is not None and _traced_code.get(id(code)) is code
    if code is not None and not config.no_tracing.value:
        _traced_code[id(code)] = code
    wanted = config.explain_cache_misses.value or config.no_tracing.value or events.happening()
    if not wanted:
        return None
    cause = cause_of_trace(function, signature, known, seen=seen, eager=eager)
    if config.no_tracing.value:
        raise RuntimeError(
            f"{name}, called at {source.describe(get_traceback())}, would have to be traced, and "
            f"the option no_tracing forbids it: {cause.text}"
        )
    if cause.again:
        events.announce(name, cause)
    return cause


def _warn(text: str, *values: Any) -> None:
    import logging  # deferred: seldom needed, and takes 3 ms

    logging.getLogger("dovetail.cache_misses").warning(text, *values)


def log_traced(name: str, cause: Cause | None, seconds: float) -> None:
    """Log a trace if the option ``explain_cache_misses`` is on.

    Args:
        name: the name of the function.
        cause: why it was traced.
        seconds: how long that took.
    """
    if cause is not None and config.explain_cache_misses.value:
        _warn(
            "tracing %s, called at %s, took %.1f ms: %s",
            name,
            source.describe(get_traceback()),
            seconds * 1e3,
            cause.text,
        )


def cause_of_compilation(
    name: str,
    what: str,
    device: Any,
    others: Iterable[Any] = (),
    *,
    eager: bool = False,
) -> Cause | None:
    """Explain why a program has to be compiled, if somebody wants to know.

    Args:
        name: the name of the function or operation.
        what: what the program is for.
        device: where it runs.
        others: where there were programs for the same.
        eager: whether it is an operation outside of `jit`.

    Raises:
        RecompilationError: it is compiled again, in a block of `no_recompiles`.
    """
    if not (config.explain_cache_misses.value or events.happening()):
        return None
    elsewhere = ", ".join(map(str, others))
    cause = Cause(
        f"there was no program for {what} on {device}"
        + (f"; there was one for {elsewhere}" if elsewhere else ""),
        "place the arguments where those of earlier calls were" if elsewhere else "",
        before=elsewhere,
        after=str(device),
        eager=eager,
        again=bool(elsewhere),
    )
    if cause.again:
        events.announce(name, cause)
    return cause


def log_compiled(name: str, cause: Cause | None, seconds: float) -> None:
    """Log a new program if the option ``explain_cache_misses`` is on.

    Args:
        name: the name of the function or operation.
        cause: why it was compiled.
        seconds: the time for lowering and compiling, or for reading it from the disk cache.
    """
    if cause is not None and config.explain_cache_misses.value:
        where = source.describe(get_traceback())
        _warn(
            "compiling %s, called at %s, took %.1f ms: %s", name, where, seconds * 1e3, cause.text
        )


@record
class _Change:
    """A difference between two calls.

    Attributes:
        weight: how large it is: 1 for a dtype or a value, 2 for a change of structure.
        argument: what has changed.
        values: returns what it is now and what it was.
        advice: how to avoid it.
    """

    weight: float
    argument: str
    values: Callable[[], tuple[str, str]]
    advice: tuple[str, ...]

    def text(self) -> str:
        """A sentence that says what has changed."""
        now, before = self.values()
        return f"{self.argument} is {now}; it was {before}"


def cause_of_trace(
    function: Any,
    signature: TraceSignature,
    known: Collection[TraceSignature],
    *,
    seen: bool = False,
    eager: bool = False,
) -> Cause:
    """Why a function was traced: what distinguishes the call from the nearest earlier one.

    Args:
        function: the function.
        signature: the signature of the call.
        known: the signatures of earlier calls, the first of them first.
        seen: whether another function of the same code was traced before.
        eager: whether it is an operation outside of `jit`.
    """
    if not known:
        if seen and not eager:
            return Cause(
                "it was made anew, and another function of the same code was traced before",
                "define and jit it once, outside of the loop or function that makes it",
                again=True,
            )
        made = "" if eager else " (a function that is made anew is another function)"
        return Cause(f"it was not called before{made}", eager=eager)
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
    argument = after = before = ""
    if changes:
        argument = changes[0].argument
        after, before = changes[0].values()
    return Cause(f"{texts}{more}", advice, argument, before, after, eager, True)


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
            yield _Change(2, name, lambda: ("passed", "not"), advice)
        elif name not in now.nodes:
            yield _Change(2, name, lambda: ("not passed", "passed"), advice)
        else:
            yield from _changes_of_argument(name, now, before, advice)


def _changes_of_argument(
    name: str, now: _Arguments, before: _Arguments, advice: tuple[str, ...]
) -> Iterator[_Change]:
    if (name in now.keywords) != (name in before.keywords):
        new, old = "keyword", "position"
        if name in before.keywords:
            new, old = old, new
        yield _Change(2, name, lambda: (f"passed by {new}", f"passed by {old}"), advice)
    for found in differences_between(now.nodes[name], before.nodes[name], prefix=False):
        where = name + pytree.keystr(found.path)
        yield _Change(2, where, partial(_texts, found.first, found.second), advice)


def _texts(now: object, before: object) -> tuple[str, str]:
    return str(now), str(before)


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
        name,
        lambda: (f"{new.short_name()}{_weak(new)}", f"{old.short_name()}{_weak(old)}"),
        tuple(advice) or ("pass arguments of one type in every call",),
    )


def _changes_of_statics(new: TraceSignature, old: TraceSignature) -> Iterator[_Change]:
    advice = ("make an argument that takes many values dynamic",)
    now = {where: (kind, value) for where, kind, value in new.statics}
    before = {where: (kind, value) for where, kind, value in old.statics}

    def said(where: Any) -> tuple[str, str]:
        if where not in now:
            return "not passed", f"{before[where][1]!r:.80}"
        kind, value = now[where]
        if where not in before:
            return f"{value!r:.80}", "not passed"
        old_kind, old_value = before[where]
        types = ("", "") if kind is old_kind else (f" ({kind.__name__})", f" ({old_kind.__name__})")
        return f"{value!r:.80}{types[0]}", f"{old_value!r:.80}{types[1]}"

    for where in dict.fromkeys((*now, *before)):
        if now.get(where) != before.get(where):
            yield _Change(1, f"the static argument {where!r}", partial(said, where), advice)


def _changes_of_options(new: TraceSignature, old: TraceSignature) -> Iterator[_Change]:
    if new.options != old.options:
        for field in fields(new.options):
            pair = getattr(new.options, field.name), getattr(old.options, field.name)
            if pair[0] != pair[1]:
                yield _Change(
                    1,
                    f"the option {field.name} of jit",
                    partial(_shown, *pair),
                    ("keep one jitted function",),
                )
    if new.context == old.context:
        return
    names = config.names_in_trace_key()
    advice = ("set options once, before the first call",)
    if len(names) != len(new.context):  # jax is in the process, and its options are among them
        what = "the value of an option that affects tracing"
        yield _Change(1, what, lambda: ("another", "the same in earlier calls"), advice)
        return
    for name, value, was in zip(names, new.context, old.context, strict=True):
        if value != was:
            yield _Change(1, f"the option {name}", partial(_shown, value, was), advice)


def _shown(now: object, before: object) -> tuple[str, str]:
    return f"{now!r:.80}", f"{before!r:.80}"


def _weak(aval: Any) -> str:
    return " (weakly typed)" if getattr(aval, "weak_type", False) else ""
