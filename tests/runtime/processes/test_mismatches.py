"""Processes that call other programs than the others are named, not waited for."""

from __future__ import annotations

import pytest
from tests.runtime.processes.conftest import outputs

from dovetail._core.runtime.processes.mismatches import Report, mismatches


def test_another_count(start):
    first, second = outputs(start("astray.py", 2, devices=2))
    text = (
        r"process 1 waits for call 4 over devices 0, 1, 2048, 2049, the program "
        r"jit__lambda_(f32[8@x,8])"
    )
    place = "process 0, which has made 3, waits at distributed.shutdown()"
    assert f"RuntimeWarning: distributed.shutdown: {text}" in first
    assert f"error (0,) {text}" in second
    assert place in first
    assert place in second


def calls(state, *names, count=None, devices="0, 1"):
    """The report of a process that has called programs; in all so many."""
    made = {"members": [0, 1], "count": count or len(names), "state": state, "recent": names}
    return Report({devices: made}, 0, 0)


AT_SHUTDOWN = {1: ("distributed.shutdown()", frozenset({0}))}
ELSEWHERE = {1: ("sync_global_devices('x')", frozenset({2}))}
OTHER_ORDER = "call 8 over devices 0, 1 is g in process 0, and f in process 1"
CASES = {
    "both compute": ({0: calls("busy", "f", "g"), 1: calls("busy", "f", "g")}, {}, []),
    "one is ahead": ({0: calls("busy", "f", "g"), 1: calls("busy", "f")}, AT_SHUTDOWN, []),
    "another order": (
        {0: calls("busy", "f", "g", "f", count=9), 1: calls("busy", "f", "f", count=8)},
        {},
        [(0, 1, OTHER_ORDER), (1, 0, "call 8 over devices 0, 1 is f in process 1, and g in")],
    ),
    "calls that nobody remembers": (
        {0: calls("busy", "f", count=9), 1: calls("busy", "g", count=4)},
        {},
        [],
    ),
    "fewer calls": (
        {0: calls("busy", "f", "g"), 1: calls("idle", "f")},
        AT_SHUTDOWN,
        [(0, 1, "process 0 waits for call 2 over devices 0, 1, g, and process 1, which has made ")],
    ),
    "no calls": (
        {0: calls("busy", "f"), 1: Report({}, 0, 0)},
        AT_SHUTDOWN,
        [(0, 1, "process 0 waits for call 1 over devices 0, 1, f, and process 1, which has made ")],
    ),
    "fewer, whose results are dropped": (
        {0: calls("busy", "f", "g"), 1: calls("unknown", "f")},
        AT_SHUTDOWN,
        [],
    ),
    "fewer, which waits for another": (
        {0: calls("busy", "f", "g"), 1: calls("idle", "f")},
        ELSEWHERE,
        [],
    ),
    "fewer, which waits for nobody": ({0: calls("busy", "f", "g"), 1: calls("idle", "f")}, {}, []),
    "one that does not wait": ({0: calls("busy", "f", "g")}, {}, []),
    "on other devices": (
        {0: calls("busy", "f"), 1: calls("busy", "g", devices="1, 0")},
        {},
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_a_mismatch(name):
    reports, waiting, expected = CASES[name]
    found = list(mismatches(reports, waiting))
    assert len(found) == len(expected)
    for (number, other, text), (*numbers, start) in zip(found, expected, strict=True):
        assert [number, other] == numbers
        assert text.startswith(start)
