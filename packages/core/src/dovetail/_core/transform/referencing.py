"""Functions that capture mutable references or take them as arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.trace.mutable_references import (
    AbstractRef,
    Captured,
    Ref,
    RefState,
    last_values,
)
from dovetail._core.trace.state import evaluation_trace
from dovetail._core.transform.stage import stage


class RefEffects(NamedTuple):
    """What a staged function does with mutable references.

    Its arguments are the original ones, with values in place of references, followed by the values
    of captured references. Its results are the original ones, followed by the last values of the
    references that it changes.

    Attributes:
        arguments: numbers of the arguments that are references.
        captured: the references that are not arguments.
        changed: for each of `arguments`, then of `captured`, whether it is written to.
    """

    arguments: tuple[int, ...] = ()
    captured: tuple[Ref, ...] = ()
    changed: tuple[bool, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.arguments or self.captured)

    @property
    def stay(self) -> bool:
        """Whether the captured references belong to no transformation and so outlive this call."""
        return all(ref.ref_state.trace is evaluation_trace for ref in self.captured)

    def written(self, flags: Sequence[bool], flag: bool = True) -> tuple[bool, ...]:
        """Flags of the arguments and captured references, with `flag` for those written to.

        References that are only read get False.
        """
        extended = [*flags, *[False] * len(self.captured)]
        numbers = [*self.arguments, *range(len(flags), len(extended))]
        for number, changed in zip(numbers, self.changed, strict=True):
            extended[number] = changed and flag
        return tuple(extended)

    def references(
        self, leaves: Sequence[Any], name: str, names: Sequence[str]
    ) -> list[tuple[Ref, RefState]]:
        """All references, and their states for code that runs now.

        Args:
            leaves: the arguments.
            name: the name of the function.
            names: the names of the arguments.

        Raises:
            ValueError: a reference occurs twice, or cannot be used here.
        """
        refs = [*(leaves[i] for i in self.arguments), *self.captured]
        if len(set(refs)) != len(refs):
            twice = next(ref for ref in refs if refs.count(ref) > 1)
            labels = {leaves[i]: names[i] for i in self.arguments}
            also = (
                "also uses it from outside"
                if twice in self.captured
                else "gets it for another argument too"
            )
            raise ValueError(
                f"{twice.described()} is the argument {labels[twice]} of {name}, which {also}; two "
                "names for one place in memory would make the order of reads and writes "
                "unknown: pass each reference once"
            )
        return [(ref, ref.here(writing)) for ref, writing in zip(refs, self.changed, strict=True)]

    def operands(
        self, leaves: Sequence[Any], references: Sequence[tuple[Ref, RefState]]
    ) -> list[Any]:
        """The arguments of the jaxpr."""
        values = [ref_state.value for _, ref_state in references]
        operands = [*leaves, *values[len(self.arguments) :]]
        for number, value in zip(self.arguments, values, strict=False):
            operands[number] = value
        return operands

    def closed_over(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """The jaxpr with the values of captured references as constants."""
        jaxpr, count = closed.jaxpr, len(closed.in_avals) - len(self.captured)
        opened = jaxpr.replace(
            constvars=[*jaxpr.constvars, *jaxpr.invars[count:]], invars=jaxpr.invars[:count]
        )
        return ClosedJaxpr(opened, [*closed.consts, *(ref.get() for ref in self.captured)])

    def finish(self, outs: Sequence[Any], references: Sequence[tuple[Ref, RefState]]) -> list[Any]:
        """Write the last values, and return the results of the function itself."""
        count = len(outs) - sum(self.changed)
        last = iter(outs[count:])
        for (ref, ref_state), changed in zip(references, self.changed, strict=True):
            if changed:
                ref.write(next(last))
                ref_state.shared = False
        return list(outs[:count])


def inner(aval: Any) -> Any:
    """The aval of the value of a reference; any other aval unchanged."""
    return aval.inner_aval if type(aval) is AbstractRef else aval


def stage_using_references(
    function: Callable[..., Sequence[Any]], avals: Sequence[Any], info: DebugInfo
) -> tuple[ClosedJaxpr, RefEffects]:
    """Record a function of flat arguments, which may take and capture mutable references.

    Args:
        function: takes a tracer for each aval, and a reference for each `AbstractRef`.
        avals: avals of the arguments.
        info: what is being traced, for messages.
    """
    arguments = tuple([i for i, a in enumerate(avals) if type(a) is AbstractRef])
    captured = Captured()
    ref_states: list[RefState] = []

    def run(*tracers: Any) -> list[Any]:
        operands = list(tracers)
        for i in arguments:
            operands[i] = Ref.lent(tracers[i])
            ref_states.append(operands[i].ref_state)
        return [*function(*operands), *last_values(ref_states)]

    if arguments:
        closed = stage(run, list(map(inner, avals)), info, captured)
    else:
        closed = stage(function, avals, info, captured)
    ref_states += captured.ref_states.values()
    changed = tuple([ref_state.changed for ref_state in ref_states])
    return closed, RefEffects(arguments, tuple(captured.ref_states), changed)


class Lending:
    """A function that is lent references of its own in place of some of its arguments.

    Args:
        function: takes flat arguments.
        leaves: the arguments.
        numbers: the numbers of the arguments that are references to lend.
        name: what is done to which function, for messages.

    Attributes:
        changed: the numbers of the arguments that are written to, after a call.

    Raises:
        ValueError: a reference occurs twice among those to lend.
    """

    def __init__(
        self,
        function: Callable[..., Sequence[Any]],
        leaves: Sequence[Any],
        numbers: Sequence[int],
        name: str,
    ) -> None:
        self.function = function
        self.leaves = leaves
        self.numbers = numbers
        self.name = name
        self.changed: list[int] = []
        refs = [leaves[i] for i in numbers]
        if len(set(refs)) != len(refs):
            twice = next(ref for ref in refs if refs.count(ref) > 1)
            raise ValueError(
                f"{name} was passed {twice.described()} twice; two names for one place in memory "
                "would make the order of reads and writes unknown: pass it once"
            )

    def values(self) -> list[Any]:
        """The arguments, with values in place of the references that are lent."""
        values = list(self.leaves)
        for i in self.numbers:
            values[i] = values[i].get()
        return values

    def __call__(self, *values: Any) -> list[Any]:
        """The results, followed by the last values of the references that are written to."""
        operands = list(values)
        with ExitStack() as stack:
            for i in self.numbers:
                stack.enter_context(self.leaves[i].held(self.name))
                operands[i] = Ref.lent(values[i])
            outs = self.function(*operands)
        ref_states = [operands[i].ref_state for i in self.numbers]
        self.changed = [
            i for i, ref_state in zip(self.numbers, ref_states, strict=True) if ref_state.changed
        ]
        return [*outs, *last_values(ref_states)]

    @property
    def aux(self) -> Any:
        """The auxiliary result of the function."""
        return getattr(self.function, "aux", None)
