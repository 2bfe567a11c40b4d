"""Functions with custom rules that read mutable references.

A staged call takes the values of the references that its function reads as arguments, before its
own. Its rules run later, perhaps in another trace: until they return, the references have these
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.trace.mutable_references import Ref, RefState
from dovetail._core.trace.state import evaluation_trace
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.derived import with_order
from dovetail._core.transform.referencing import stage_using_references


def stage_reading(
    function: Callable[..., Sequence[Any]], avals: Sequence[Any], info: DebugInfo
) -> tuple[ClosedJaxpr, tuple[Ref, ...]]:
    """Stage a function of flat arguments that may read references, not write to them.

    Args:
        function: the function.
        avals: the types of its arguments.
        info: what is staged, for messages.

    Returns:
        The jaxpr, which takes the values of the references before the arguments; the references.

    Raises:
        ValueError: the function writes to a reference.
    """
    closed, uses = stage_using_references(function, avals, info)
    for ref, changed in zip(uses.captured, uses.changed, strict=True):
        if changed:
            raise _refusal(ref, info.function, info.traced_for)
    if not uses:
        return closed, ()
    count, own = len(uses.captured), len(avals)
    order = [*range(own, own + count), *range(own)]
    return with_order(closed, order, range(len(closed.out_avals))), uses.captured


def _refusal(ref: Ref, function: str, traced_for: str) -> ValueError:
    return ValueError(
        f"{ref.described()} cannot be written to within {function}, a function with rules "
        f"({traced_for}) that is traced: the order of what it and its rules write would be "
        "unknown. Return the value, and write it outside"
    )


@contextmanager
def _with_values(refs: Sequence[Ref], values: Sequence[Any], function: str) -> Iterator[None]:
    """Let references have other values in the code that runs now, which may only read them."""
    outside = [(ref, ref._ref_state, ref._holder) for ref in refs]
    inside = [
        RefState(value._trace if isinstance(value, Tracer) else evaluation_trace, value, lent=True)
        for value in values
    ]
    for ref, ref_state in zip(refs, inside, strict=True):
        ref._ref_state, ref._holder = ref_state, ""
    try:
        yield
    finally:
        for ref, previous, holder in outside:
            ref._ref_state, ref._holder = previous, holder
    for ref, ref_state in zip(refs, inside, strict=True):
        if ref_state.changed:
            raise _refusal(ref, f"a rule of {function}", "custom rules")


def reading_rule(
    rule: Callable[[Sequence[Any], Sequence[Any]], Any], refs: Sequence[Ref], function: str
) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
    """A rule whose leading arguments are the values of references.

    Args:
        rule: takes the arguments, and for each its tangent, or whether it is perturbed.
        refs: the references.
        function: the user's function, for messages.
    """
    count = len(refs)

    def run(primals: Sequence[Any], varying: Sequence[Any]) -> Any:
        for ref, varies in zip(refs, varying, strict=False):
            if varies is not False and type(varies) is not Zero:
                raise ValueError(
                    f"{function} has a derivative rule of its own, and {ref.described()}, which it "
                    "reads, holds a value that is being differentiated: the rule says nothing "
                    "about its derivative. Pass the value, ref[...], as an argument"
                )
        with _with_values(refs, primals[:count], function):
            return rule(primals[count:], varying[count:])

    return run
