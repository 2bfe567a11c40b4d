"""The short form of what `nox -s soak` does for hours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from leaks import FEWEST, Growth
from patterns import PATTERNS
from soak import FOLDER, is_leak, measured, what_is_wrong
from writers import Outcome, kill_writers

SLOW = ("leaked tracers, caught",)


def test_patterns_leave_nothing_behind() -> None:
    """In few iterations, each with an array that is large enough to be seen where it stays."""
    names = [name for name in PATTERNS if name not in SLOW]
    assert len(names) >= 30
    found = measured(sys.executable, "dovetail", names, FEWEST, 0.1)
    assert [growth.name for growth in found] == names
    suspects = [growth.name for growth in found if is_leak(growth)]
    # Modules that were loaded in the meantime stay, and what leaks does so again.
    again = [measured(sys.executable, "dovetail", [name], 5 * FEWEST, 2.0)[0] for name in suspects]
    assert [growth for growth in again if is_leak(growth)] == []


@pytest.mark.parametrize(("megabytes", "objects"), [(30.0, 0), (0.0, 200)])
def test_leaks_are_seen(megabytes: float, objects: int) -> None:
    assert is_leak(Growth("planted", 100, megabytes, objects, 1.0))
    assert not is_leak(Growth("clean", 100, 0.5, 3, 1.0))


def test_threads_compute_what_is_right() -> None:
    words = [sys.executable, str(FOLDER / "threads.py"), "16", "2"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]


def test_killed_writers_leave_a_cache_that_serves(tmp_path: Path) -> None:
    outcome = kill_writers(tmp_path / "cache", 4)
    assert what_is_wrong(outcome) == []
    assert what_is_wrong(Outcome(4, (10, 20), (0, 30), 0, 0.1))
