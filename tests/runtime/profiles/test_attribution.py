"""How the time of a profile is divided: laws, and small cases worked out by hand."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dovetail._core.runtime.profiles.attribution import WORK, Span, attribute, outermost
from dovetail._core.runtime.profiles.sampling import NOWHERE, Line, users_line

A, B = Line("a.py", 1, "f"), Line("a.py", 2, "g")


def parts(spans: list[Span]) -> list[tuple[float, float, str, int]]:
    return [(s.start, s.end, s.work, s.line.line) for s in spans]


def test_what_is_timed_is_known() -> None:
    spans = [Span(2, 4, "trace", A), Span(3, 4, "compile", B), Span(5, 6, "wait", B)]
    found = attribute(0, 8, spans, [], [(1, A), (7, B)])
    assert parts(found) == [
        (0, 2, "python", 1),
        (2, 3, "trace", 1),
        (3, 4, "compile", 1),  # inside the trace that line 1 has asked for
        (4, 5, "python", 2),
        (5, 6, "wait", 2),
        (6, 8, "python", 2),
    ]


def test_lines_have_the_time_around_them() -> None:
    found = attribute(0, 4, [], [], [(1, A), (2, B), (3, B)])
    assert parts(found) == [(0, 1.5, "python", 1), (1.5, 2.5, "python", 2), (2.5, 4, "python", 2)]


def test_calls_of_programs_are_computing() -> None:
    found = attribute(0, 4, [], [(0.5, 1.5), (3.5, 4)], [(1, A), (3, A)])
    assert [s.work for s in found] == ["compute", "python"]


def test_a_profile_without_samples() -> None:
    assert parts(attribute(0, 1, [], [], [])) == [(0, 1, "python", 0)]
    assert str(NOWHERE) == "elsewhere"
    assert attribute(1, 1, [], [], []) == []


times = st.integers(0, 40).map(lambda quarters: quarters / 4)
pairs = st.tuples(times, times).map(sorted)


# A machine that does other things, too, is slow at no fault of the test.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(pairs, st.sampled_from(WORK), st.sampled_from([A, B])), max_size=8),
    st.lists(pairs, max_size=8),
    st.lists(st.tuples(times, st.sampled_from([A, B])), max_size=8),
    pairs,
)
def test_time_is_divided_without_rest(
    spans: Any, calls: Any, samples: Any, ends: list[float]
) -> None:
    start, end = ends
    timed = [Span(first, last, work, line) for (first, last), work, line in spans]
    whole = attribute(start, end, timed, outermost(map(tuple, calls)), sorted(samples))
    at = start
    for span in whole:
        assert span.start == at
        assert span.end > span.start
        at = span.end
    assert at == end


@given(st.lists(pairs, max_size=8))
def test_outermost(spans: list[list[float]]) -> None:
    found = outermost(map(tuple, spans))  # type: ignore[arg-type]
    assert all(a[1] <= b[0] for a, b in pairwise(found))
    for start, end in spans:
        covered = sum(max(0.0, min(b, end) - max(a, start)) for a, b in found)
        assert abs(covered - (end - start)) < 1e-9


def test_the_users_line() -> None:
    assert users_line(sys._getframe()).function == "test_the_users_line"
    assert users_line(None) is NOWHERE
