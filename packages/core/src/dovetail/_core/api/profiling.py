"""`profile`: where the time of a block went, by the user's lines."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dovetail._core.api.event_logs import EventLog
from dovetail._core.base.events import Event, Kind, add_listener, remove_listener
from dovetail._core.base.notebooks import table
from dovetail._core.base.records import record
from dovetail._core.base.restoring import Restoring
from dovetail._core.base.tracebacks import boundary, bounded
from dovetail._core.runtime.profiles.annotations import TraceAnnotation
from dovetail._core.runtime.profiles.attribution import WORK, Span, Work, attribute, outermost
from dovetail._core.runtime.profiles.sampling import Line, Sampler, users_line
from dovetail._core.runtime.profiles.sessions import ProfileOptions, ProfileSession
from dovetail._core.runtime.reports.tables import aligned

__all__ = ["LineTime", "Profile", "ProgramTime", "profile"]

#: The kind of work that an event is.
_WORK: Final[Mapping[Kind, Work]] = {
    "trace": "trace",
    "eager": "trace",
    "lower": "compile",
    "compile": "compile",
    "load": "compile",
    "transfer": "transfer",
    "wait": "wait",
}
_MARK: Final = "dovetail.profile"
_CALL: Final = "PjitFunction("
#: Lines and programs that are listed.
_LISTED: Final = 20


@record
class LineTime:
    """The time of one line of the user's code.

    Attributes:
        file: the path of the file; empty for time in which no line of the user's own code ran.
        line: the line, counted from 1.
        function: the name of the function, qualified by its class.
        seconds: how long the line took with each kind of work.
    """

    file: str
    line: int
    function: str
    seconds: Mapping[Work, float]

    @property
    def total(self) -> float:
        """How long the line took in all, in seconds."""
        return sum(self.seconds.values())

    @property
    def where(self) -> str:
        """The line in short, such as ``train.py:12 (loss)``."""
        return str(Line(self.file, self.line, self.function))


@record
class ProgramTime:
    """The calls of one compiled function or operation.

    Attributes:
        name: its name.
        calls: how often it was called.
        seconds: how long the calls took until they returned; what they compute may go on.
    """

    name: str
    calls: int
    seconds: float


@bounded
class Profile:
    """Where the time of a block went: what `dovetail.profile` gives.

    After the block it is a table when printed, and in notebooks; its attributes are the data.

    Attributes:
        seconds: how long the block took.
        lines: the lines that took longest first.
        programs: the compiled functions and operations that were called, likewise.
        events: what was traced, compiled, moved and waited for, with reasons.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.lines: Sequence[LineTime] = ()
        self.programs: Sequence[ProgramTime] = ()
        self.events = EventLog()
        self._spans: list[Span] = []
        self._calls: list[tuple[float, float, str]] = []
        self._began = 0.0
        self._session: ProfileSession | None = None

    def total(self) -> dict[Work, float]:
        """How long each kind of work took in all, in seconds."""
        return {work: sum(line.seconds.get(work, 0.0) for line in self.lines) for work in WORK}

    def _set(
        self, began: float, ended: float, spans: list[Span], calls: list[tuple[float, float, str]]
    ) -> None:
        """Work out what was recorded."""
        self._began, self.seconds, self._spans, self._calls = began, ended - began, spans, calls
        times: dict[Line, dict[Work, float]] = defaultdict(lambda: defaultdict(float))
        for span in spans:
            times[span.line][span.work] += span.end - span.start
        lines = [LineTime(*line, dict(seconds)) for line, seconds in times.items()]
        self.lines = sorted(lines, key=lambda line: -line.total)
        counts: dict[str, list[float]] = defaultdict(list)
        for start, end, name in calls:
            counts[name].append(end - start)
        programs = [ProgramTime(name, len(each), sum(each)) for name, each in counts.items()]
        self.programs = sorted(programs, key=lambda program: -program.seconds)

    def _rows(self) -> list[tuple[str, ...]]:
        total = self.total()
        shown = [work for work in WORK if total[work] > 0]
        rows = [("line", "ms", "%", *shown)]
        shares = [(line.where, line.seconds) for line in self.lines[:_LISTED]]
        rest = self.lines[_LISTED:]
        if rest:
            others = {work: sum(line.seconds.get(work, 0.0) for line in rest) for work in WORK}
            shares.append((f"{len(rest)} more lines", others))
        for where, seconds in (*shares, ("in all", total)):
            own = sum(seconds.values())
            share = f"{100 * own / self.seconds:.0f}" if self.seconds else ""
            rows.append((where, _ms(own), share, *(_ms(seconds.get(w, 0.0)) for w in shown)))
        return rows

    def _sides(self) -> list[str]:
        return ["left", *["right"] * (len(self._rows()[0]) - 1)]

    def __str__(self) -> str:
        if not self.seconds:
            return "a profile that has not ended"
        text = aligned(self._rows(), self._sides())
        if not self.programs:
            return text
        rows = [("program", "calls", "ms")]
        rows += [(p.name, str(p.calls), _ms(p.seconds)) for p in self.programs[:_LISTED]]
        more = len(self.programs) - _LISTED
        below = f"\nand {more} more" if more > 0 else ""
        return f"{text}\n\n{aligned(rows, ('left', 'right', 'right'))}{below}"

    def __repr__(self) -> str:
        return f"<Profile of {self.seconds:.3f} s, {len(self.lines)} lines>"

    def _repr_html_(self) -> str:
        return (
            table(self._rows(), self._sides()) if self.seconds else "a profile that has not ended"
        )

    def write_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline as JSON for chrome://tracing and ui.perfetto.dev.

        Args:
            path: the file.

        Raises:
            OSError: it cannot be written.
        """
        events = [
            _complete(str(s.line), s.work, s.start - self._began, s.end - s.start, 1, s.name)
            for s in self._spans
        ]
        events += [
            _complete(name, "call", start - self._began, end - start, 2, name)
            for start, end, name in self._calls
        ]
        names = ((1, "lines"), (2, "compiled calls"))
        events += [
            {"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": name}}
            for tid, name in names
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)

    def write_xplane(self, folder: str | os.PathLike[str]) -> None:
        """Write what jaxlib has recorded where TensorBoard and XProf look for it.

        Args:
            folder: their folder, as for `dovetail.profiler.trace`.

        Raises:
            RuntimeError: the block has not ended.
            OSError: the folder cannot be written to.
        """
        if self._session is None:
            raise RuntimeError("there is nothing to write: the profile has not ended")
        self._session.export_profile_data(folder)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f}"


def _complete(
    name: str, kind: str, start: float, seconds: float, thread: int, what: str
) -> dict[str, Any]:
    """An event of Chrome's format, whose times are in microseconds."""
    return {
        "ph": "X",
        "pid": 1,
        "tid": thread,
        "name": name,
        "cat": kind,
        "ts": start * 1e6,
        "dur": seconds * 1e6,
        "args": {"work": kind, "of": what},
    }


def profile(*, interval: float = 0.002) -> Restoring[Profile]:
    """Find out where the time of a block goes, by the lines of your own code.

    Each line's time is divided into Python, computing (calls of compiled programs), waiting for
    results, tracing, compiling (lowering, compiling, reading programs from disk) and transfers;
    their sum is the time of the block. Lines in libraries count for the line that called them.
    What is traced, compiled, moved and waited for is timed; between that, the line is looked at in
    intervals, and jaxlib's profile tells whether a program was being called.

    Programs compute while Python goes on. Where one is waited for, the line that waits has the
    time; a call on a CPU may compute at once.

    Args:
        interval: seconds between two looks at the line.

    Returns:
        A context manager, for the thread that enters it, that gives a `Profile`, which is filled
        when the block ends.

    Raises:
        RuntimeError: another profile is being recorded.
        ValueError: the interval is not positive.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> with dt.profile() as p:
        ...     total = float(dt.jit(lambda x: (x @ x).sum())(jnp.ones((64, 64))))
        >>> p.total()["compile"] > 0
        True
        >>> sum(p.total().values()) > 0.9 * p.seconds
        True
    """
    if not isinstance(interval, int | float) or not interval > 0:
        raise ValueError(f"interval is a number of seconds, more than 0; got {interval!r:.80}")
    recording = _Recording(float(interval))
    return Restoring(lambda: recording, boundary(recording.start), _Recording.stop)


class _Recording:
    """What records a profile, in the thread that starts it."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._sampler: Sampler | None = None

    def start(self) -> Profile:
        """Start to record."""
        options = ProfileOptions()
        options.host_tracer_level = 1
        options.python_tracer_level = 0
        self._profile = Profile()
        self._spans: list[Span] = []
        self._thread = threading.get_ident()
        self._session = ProfileSession(profiler_options=options).start()
        self._sampler = Sampler(self._interval)
        add_listener(self._hear)
        self._sampler.start()
        with TraceAnnotation(_MARK):
            self._mark = time.perf_counter()
        self._began = time.perf_counter()
        return self._profile

    def _hear(self, event: Event) -> None:
        if event.thread != self._thread:
            return
        self._profile.events.add(event)
        work = _WORK.get(event.kind)
        if work is not None:
            line = users_line(sys._getframe(1))
            self._spans.append(
                Span(event.start, event.start + event.seconds, work, line, event.name)
            )

    def stop(self) -> None:
        """Stop, and fill the profile; nothing if it was stopped."""
        ended = time.perf_counter()
        sampler, self._sampler = self._sampler, None
        if sampler is None:
            return
        remove_listener(self._hear)
        sampler.stop()
        data = self._session.stop() if self._session.is_running else None
        calls = _calls(data, self._mark)
        pairs = outermost((start, end) for start, end, _ in calls)
        spans = attribute(self._began, ended, self._spans, pairs, sampler.samples)
        self._profile._session = self._session
        self._profile._set(self._began, ended, spans, calls)


def _calls(data: Any, mark: float) -> list[tuple[float, float, str]]:
    """The calls of compiled functions in the thread that set the mark, by its clock.

    Args:
        data: jaxlib's profile.
        mark: the time of the mark.
    """
    plane = None if data is None else data.find_plane_with_name("/host:CPU")
    for line in plane.lines if plane is not None else ():
        events = list(line.events)
        marks = [event for event in events if event.name == _MARK]
        if not marks:
            continue
        shift = mark - marks[-1].start_ns / 1e9
        calls = []
        last = 0.0
        for event in events:
            # jaxlib notes each call twice, one inside the other.
            if event.name.startswith(_CALL) and event.start_ns >= last:
                last = event.start_ns + event.duration_ns
                name = event.name[len(_CALL) : -1]
                calls.append((event.start_ns / 1e9 + shift, last / 1e9 + shift, name))
        return calls
    return []
