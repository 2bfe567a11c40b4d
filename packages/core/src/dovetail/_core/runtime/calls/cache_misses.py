"""Why something was traced or compiled: the log of ``explain_cache_misses``, and ``no_tracing``."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from dovetail._core.base import config, source
from dovetail._core.base.bindings import get_traceback

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
    names: Sequence[str],
) -> Miss | None:
    """Explain why a function has to be traced, if an option asks for it.

    Args:
        name: the function's name.
        function: the function.
        signature: the signature of this call.
        known: the signatures of earlier calls.
        names: names of the array arguments.

    Raises:
        RuntimeError: the option ``no_tracing`` is on.
    """
    if not (config.explain_cache_misses.value or config.no_tracing.value):
        return None
    code = getattr(function, "__code__", None)
    reason = _reason(signature, known, names, code in _traced_code if code else False)
    miss = Miss(name, source.describe(get_traceback()), reason)
    if config.no_tracing.value:
        raise RuntimeError(
            f"{name}, called at {miss.where}, would have to be traced, and the option no_tracing "
            f"forbids it: {reason}"
        )
    if code:
        _traced_code.add(code)
    return miss if config.explain_cache_misses.value else None


def log_compiled(name: str, what: str, device: Any, seconds: float) -> None:
    """Log a new program if the option ``explain_cache_misses`` is on.

    Args:
        name: the name of the function or operation.
        what: what the program is for.
        device: where it runs.
        seconds: the time for lowering and compiling, or for reading it from the disk cache.
    """
    if config.explain_cache_misses.value:
        where = source.describe(get_traceback())
        _logger.warning(
            "compiling %s, called at %s, took %.1f ms: there was no program for %s on %s",
            name,
            where,
            seconds * 1e3,
            what,
            device,
        )


def _reason(
    signature: TraceSignature, known: Collection[TraceSignature], names: Sequence[str], seen: bool
) -> str:
    if not known:
        if seen:
            return (
                "it was made anew, and another function of the same code was traced before; define "
                "and jit it once, outside of the loop or function that makes it"
            )
        return "it was not called before (a function that is made anew is another function)"
    # The nearest agrees in the most fields and, among those, in the most arguments.
    nearest = max(known, key=lambda other: _agreement(signature, other))
    reasons: list[str] = []
    advice: list[str] = []
    if signature.in_tree != nearest.in_tree:
        reasons.append(
            f"the arguments are {signature.in_tree}; in an earlier call they were {nearest.in_tree}"
        )
        advice.append("pass arguments of one structure, by position or by keyword in every call")
    else:
        changed = [
            (name, new, old)
            for name, new, old in zip(names, signature.avals, nearest.avals, strict=True)
            if new != old
        ]
        reasons += [
            f"{name} is {new.short_name()}{_weak(new)}; it was {old.short_name()}{_weak(old)}"
            for name, new, old in changed
        ]
        advice += dict.fromkeys(_advice(new, old) for _, new, old in changed)
    if signature.statics != nearest.statics:
        before = {where: value for where, _, value in nearest.statics}
        for where, _, value in signature.statics:
            if where not in before or before[where] != value:
                was = f"; it was {before[where]!r:.80}" if where in before else ""
                reasons.append(f"the static argument {where!r} is {value!r:.80}{was}")
        advice.append("make an argument that takes many values dynamic")
    if signature.context != nearest.context:
        reasons.append("an option that affects tracing has another value")
        advice.append("set options once, before the first call")
    if not reasons:
        reasons.append("it is compiled with other options of jit")
        advice.append("keep one jitted function")
    count = len(known)
    more = f" (nearest of {count} earlier signatures)" if count > 1 else ""
    return f"{'; '.join(reasons)}{more}. To avoid it, {'; '.join(advice)}"


def _advice(new: Any, old: Any) -> str:
    if new.shape != old.shape:
        return "pad arrays to one shape, or to few"
    if new.dtype != old.dtype:
        return "convert arrays to one dtype before the call"
    return "pass an array in every call, or a Python scalar in every call"


def _agreement(one: TraceSignature, other: TraceSignature) -> tuple[int, int]:
    parts = sum(a == b for a, b in zip(one, other, strict=True))
    return parts, sum(a == b for a, b in zip(one.avals, other.avals, strict=False))


def _weak(aval: Any) -> str:
    return " (weakly typed)" if getattr(aval, "weak_type", False) else ""
