"""Why a compiled function was traced again: the log behind the option ``explain_cache_misses``."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from dovetail.core.base import source
from dovetail.core.base.bindings import get_traceback

__all__ = ["Signature", "explain"]

_logger: Final = logging.getLogger("dovetail.cache_misses")


class Signature(NamedTuple):
    """What a function is traced anew for.

    Attributes:
        in_tree: the structure of its arguments.
        avals: the types of its array arguments.
        statics: its static arguments.
        options: how it is compiled.
        context: the values of the options of the framework that affect tracing.
    """

    in_tree: Any
    avals: tuple[Any, ...]
    statics: Any
    options: Any
    context: tuple[Any, ...]


def explain(
    function: str, signature: Signature, known: Collection[Signature], names: Sequence[str]
) -> None:
    """Log why a function is traced.

    Args:
        function: its name.
        signature: that of the present call.
        known: those of earlier calls.
        names: names of the array arguments.
    """
    where = source.describe(get_traceback())
    reason = _reason(signature, known, names)
    _logger.warning("tracing %s, called at %s: %s", function, where, reason)


def _reason(signature: Signature, known: Collection[Signature], names: Sequence[str]) -> str:
    if not known:
        return "it was not called before (a function that is made anew is another function)"
    # The nearest is the one that agrees in most parts, and then in most arguments.
    nearest = max(known, key=lambda other: _agreement(signature, other))
    reasons = []
    if signature.in_tree != nearest.in_tree:
        reasons.append(
            f"the arguments are {signature.in_tree}; in an earlier call they were {nearest.in_tree}"
        )
    else:
        reasons += [
            f"{name} is {new.short_name()}{_weak(new)}; it was {old.short_name()}{_weak(old)}"
            for name, new, old in zip(names, signature.avals, nearest.avals, strict=True)
            if new != old
        ]
    if signature.statics != nearest.statics:
        before = {where: value for where, _, value in nearest.statics}
        for where, _, value in signature.statics:
            if where not in before or before[where] != value:
                was = f"; it was {before[where]!r:.80}" if where in before else ""
                reasons.append(f"the static argument {where!r} is {value!r:.80}{was}")
    if signature.context != nearest.context:
        reasons.append("an option that affects tracing has another value")
    if not reasons:
        reasons.append("it is compiled with other options of jit")
    count = len(known)
    more = f" (nearest of {count} earlier signatures)" if count > 1 else ""
    return "; ".join(reasons) + more


def _agreement(one: Signature, other: Signature) -> tuple[int, int]:
    parts = sum(a == b for a, b in zip(one, other, strict=True))
    return parts, sum(a == b for a, b in zip(one.avals, other.avals, strict=False))


def _weak(aval: Any) -> str:
    return " (weakly typed)" if getattr(aval, "weak_type", False) else ""
