"""What users see of the stream of events: logs of it, and a block without recompilations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, overload

from dovetail._core.base.errors import RecompilationError, close_matches
from dovetail._core.base.events import (
    KINDS,
    Cause,
    Event,
    Kind,
    add_listener,
    remove_listener,
    watched,
)
from dovetail._core.base.notebooks import table
from dovetail._core.base.restoring import Restoring
from dovetail._core.base.source import describe
from dovetail._core.base.tracebacks import bounded
from dovetail._core.runtime.reports.tables import aligned

__all__ = ["EventLog", "events", "no_recompiles"]

_HEAD: Final = ("event", "of", "line", "ms", "reason")
_SIDES: Final = ("left", "left", "left", "right", "left")


@bounded
class EventLog(Sequence[Event]):
    """The events of a block, the first of them first: what `dovetail.events` gives.

    Printed, it is a table; in a notebook, one of HTML.

    Example:
        >>> import dovetail as dt
        >>> with dt.events() as log:
        ...     _ = dt.jit(lambda x: x + 1)(1.0)
        >>> [event.kind for event in log.of("trace", "lower")]
        ['trace', 'lower']
    """

    __slots__ = ("_events", "_kinds")

    def __init__(self, kinds: Iterable[Kind] = KINDS) -> None:
        self._kinds = frozenset(kinds)
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        """Add an event, if it is of a kind that is collected."""
        if event.kind in self._kinds:
            self._events.append(event)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        return self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(tuple(self._events))

    def of(self, *kinds: Kind, name: str | None = None, eager: bool | None = None) -> list[Event]:
        """Some of the events.

        Args:
            *kinds: their kinds; all if there are none.
            name: the function or operation that they are of; any if None.
            eager: whether an operation outside of `jit` asked for them; either way if None.
        """
        _check(kinds)
        return [
            event
            for event in self
            if (not kinds or event.kind in kinds)
            and (name is None or event.name == name)
            and (eager is None or event.eager is eager)
        ]

    def counts(self) -> dict[Kind, int]:
        """How many events there are of each kind that occurs."""
        found = Counter(event.kind for event in self)
        return {kind: found[kind] for kind in KINDS if found[kind]}

    def seconds(self) -> dict[Kind, float]:
        """How long the events of each kind took in all. A trace contains those of calls in it."""
        found: dict[Kind, float] = {}
        for event in self:
            found[event.kind] = found.get(event.kind, 0.0) + event.seconds
        return {kind: found[kind] for kind in KINDS if kind in found}

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            _HEAD,
            *(
                (e.kind, e.name, e.where, f"{e.milliseconds:.1f}", e.cause.text)
                for e in self._events
            ),
        ]

    def _total(self) -> str:
        seconds = self.seconds()
        parts = [f"{count} {kind} ({seconds[kind]:.3f} s)" for kind, count in self.counts().items()]
        return ", ".join(parts) or "no events"

    def __str__(self) -> str:
        return f"{aligned(self._rows(), _SIDES)}\n{self._total()}" if self else self._total()

    def __repr__(self) -> str:
        return f"<EventLog: {self._total()}>"

    def _repr_html_(self) -> str:
        return table(self._rows(), _SIDES, self._total())


def _check(kinds: Sequence[str]) -> None:
    for kind in kinds:
        if kind not in KINDS:
            near = close_matches(str(kind), KINDS)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{kind!r} is no kind of event; there are {', '.join(KINDS)}.{hint}")


def events(*kinds: Kind) -> Restoring[EventLog]:
    """A block whose events are collected: what was traced, compiled, moved, waited for, and why.

    Events of all threads are collected. Each has its kind, its reason, the argument that made the
    difference with what it was before and is now, the user's line, milliseconds, and what to write
    to avoid it. Calls that C++ serves from its cache cause no event; nor do Python's numbers, which
    it passes along. Nothing is paid for events outside of such a block.

    Args:
        *kinds: the kinds to collect, as in `dovetail.monitoring.Event`; all if there are none.

    Returns:
        A context manager that gives an `EventLog`, which grows while the block runs.

    Raises:
        ValueError: there is no such kind.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> step = dt.jit(lambda x: 2 * x)
        >>> x, y = jnp.ones(3), jnp.ones(4)
        >>> with dt.events("trace") as log:
        ...     _ = step(x), step(x), step(y)
        >>> [(event.argument, event.before, event.after) for event in log]
        [('', '', ''), ('x', 'f32[3]', 'f32[4]')]
        >>> log[1].remedy
        'pad arrays to one shape, or to few'
    """
    _check(kinds)
    log = EventLog(kinds or KINDS)

    def start() -> EventLog:
        add_listener(log.add)
        return log

    return Restoring(lambda: log.add, start, remove_listener)


def no_recompiles(*, eager: bool = False) -> Restoring[None]:
    """A block in which nothing may be traced or compiled again; the first time is allowed.

    A loop that is warm is put into such a block, so that an argument of another shape, or a
    function that is made anew in each step, is an error with a reason rather than a slow step.

    Args:
        eager: whether operations outside of `jit` count, too.

    Returns:
        A context manager, for this thread.

    Raises:
        RecompilationError: by what is called in the block: a function that was called before has to
            be traced or compiled again. It says why, and what to write.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> step = dt.jit(lambda x: 2 * x)
        >>> x, y = jnp.ones(3), jnp.ones(4)
        >>> with dt.no_recompiles():
        ...     _ = step(x), step(x)
        ...     step(y)
        Traceback (most recent call last):
            ...
        dovetail.errors.RecompilationError: <lambda>, called at ... compiled again: x is f32[4]; ...
    """

    def refuse(name: str, cause: Cause) -> None:
        if eager or not cause.eager:
            raise RecompilationError(
                f"{name}, called at {describe()} in a block of no_recompiles, would have to be "
                f"compiled again: {cause.text}"
            )

    return watched(refuse)
