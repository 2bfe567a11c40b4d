"""The compiled path of calls and the path in Python: the same results, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail._core.base import native

PROGRAM = Path(__file__).parent / "calls_of_both_paths.py"


def told(**variables: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_path_in_python():
    assert told(DOVETAIL_NATIVE="0").startswith("in Python")


@pytest.mark.skipif(native.calls is None, reason="dovetail-native is not installed")
def test_both_paths_give_the_same():
    path, *compiled = told().splitlines()
    other, *interpreted = told(DOVETAIL_NATIVE="0").splitlines()
    assert (path, other) == ("compiled", "in Python")
    assert len(compiled) > 60
    assert compiled == interpreted
