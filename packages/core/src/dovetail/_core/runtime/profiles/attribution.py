"""Where the time of a profile went: to lines of the user's code, and to kinds of work."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, get_args

from dovetail._core.runtime.profiles.sampling import NOWHERE, Line

__all__ = ["WORK", "Span", "Work", "attribute", "outermost"]

Work = Literal["python", "compute", "wait", "trace", "compile", "transfer"]

#: The kinds of work.
WORK: Final[tuple[Work, ...]] = get_args(Work)


class Span(NamedTuple):
    """A stretch of time of one thread.

    Attributes:
        start: when it began, in seconds.
        end: when it ended.
        work: what was done.
        line: the user's line that asked for it.
        name: the function or array that it was done for.
    """

    start: float
    end: float
    work: Work
    line: Line
    name: str = ""


def outermost(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Stretches of time, in order, without those that lie in others."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not found or end > found[-1][1]:
            found.append((max(start, found[-1][1]) if found else start, end))
    return found


def _flat(spans: Iterable[Span]) -> list[Span]:
    """Stretches without overlaps: the work of the innermost, the line of the outermost."""
    flat: list[Span] = []
    around: list[Span] = []
    at = float("-inf")

    def advance(time: float) -> None:
        nonlocal at
        if around and time > at:
            flat.append(Span(at, time, around[-1].work, around[0].line, around[-1].name))
        at = max(at, time)

    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        while around and around[-1].end <= span.start:
            advance(around[-1].end)
            around.pop()
        advance(span.start)
        around.append(span)
    while around:
        advance(around[-1].end)
        around.pop()
    return flat


def attribute(
    start: float,
    end: float,
    spans: Iterable[Span],
    calls: Sequence[tuple[float, float]],
    samples: Sequence[tuple[float, Line]],
) -> list[Span]:
    """Divide the time of a thread among lines and kinds of work, without rest.

    What was timed is known. What lies between goes to the lines that were seen there: to the one
    that was seen nearest in time, as computing if a compiled program was being called just then.

    Args:
        start: when the profile began.
        end: when it ended.
        spans: what was timed.
        calls: the calls of compiled programs, in order, without overlaps.
        samples: when each line was seen, in order.

    Returns:
        Stretches from the start to the end, in order, each of which begins where another ends.
    """
    known = [
        span._replace(start=max(span.start, start), end=min(span.end, end)) for span in _flat(spans)
    ]
    known = [span for span in known if span.end > span.start]
    starts = [call[0] for call in calls]

    def seen(time: float, line: Line) -> tuple[Work, Line]:
        number = bisect_right(starts, time) - 1
        computes = number >= 0 and time < calls[number][1]
        return ("compute" if computes else "python", line)

    times = [time for time, _ in samples]
    whole: list[Span] = []

    def fill(first: float, last: float) -> None:
        """Divide the time between two stretches that are known."""
        at = first
        number = max(bisect_right(times, first) - 1, 0)
        while at < last:
            if not samples:
                whole.append(Span(at, last, "python", NOWHERE))
                return
            following = number + 1 < len(samples)
            border = (times[number] + times[number + 1]) / 2 if following else last
            until = min(border, last)
            if until > at:
                whole.append(Span(at, until, *seen(*samples[number])))
                at = until
            if not following:
                return
            number += 1

    at = start
    for span in known:
        fill(at, span.start)
        whole.append(span)
        at = span.end
    fill(at, end)
    return whole
