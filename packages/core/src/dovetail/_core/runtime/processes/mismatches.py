"""Processes whose devices wait for each other for ever, since they have called other programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Mismatch", "Report", "mismatches"]


@dataclass(slots=True)
class Report:
    """What a process that waits has told the coordinator.

    Attributes:
        calls: for the devices of each mesh, the processes that have them, how many programs were
            called, the latest of these, and whether the process's devices are busy.
        since: when this was so first.
        until: when it is too old.
    """

    calls: Mapping[str, Any]
    since: float
    until: float


class Mismatch(NamedTuple):
    """Two processes, of which the first waits for the second for ever.

    Attributes:
        number: the number of the first.
        other: the number of the second.
        text: what each of them does.
    """

    number: int
    other: int
    text: str


def mismatches(
    reports: Mapping[int, Report], waiting: Mapping[int, tuple[str, frozenset[int]]]
) -> Iterator[Mismatch]:
    """Find them.

    Args:
        reports: what processes have told that have waited for some time, by their numbers.
        waiting: for those that wait for others at a place, the place in words, and the numbers of
            those that have not come.
    """
    for number, report in reports.items():
        for devices, own in report.calls.items():
            if own["state"] != "busy":
                continue
            for other in own["members"]:
                if other != number and other in reports:
                    their = reports[other].calls.get(devices, {"count": 0, "state": "idle"})
                    text = _difference(number, own, other, their, waiting.get(other))
                    if text:
                        over = f" over devices {devices}" if len(devices) < 100 else ""
                        yield Mismatch(number, other, text.replace(" over them", over))


def _difference(
    number: int, own: Any, other: int, their: Any, place: tuple[str, frozenset[int]] | None
) -> str:
    if their["state"] == "busy":
        ours, theirs = map(_numbered, (own, their))
        for call in sorted(ours.keys() & theirs.keys()):
            if ours[call] != theirs[call]:
                return (
                    f"call {call} over them is {ours[call]} in process {number}, and "
                    f"{theirs[call]} in process {other}"
                )
    elif (
        their["state"] == "idle"
        and their["count"] < own["count"]
        and place is not None
        and number in place[1]
    ):
        awaited = _numbered(own).get(their["count"] + 1, "a program")
        return (
            f"process {number} waits for call {their['count'] + 1} over them, {awaited}, and "
            f"process {other}, which has made {their['count']}, waits at {place[0]}"
        )
    return ""


def _numbered(calls: Any) -> dict[int, str]:
    first = calls["count"] - len(calls["recent"]) + 1
    return dict(enumerate(calls["recent"], first))
