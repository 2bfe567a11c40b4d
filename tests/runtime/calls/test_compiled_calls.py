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


def test_both_paths_give_the_same():
    path, *interpreted = told(DOVETAIL_NATIVE="0").splitlines()
    assert path == "in Python"
    assert len(interpreted) > 60
    if native.calls is None:
        pytest.skip("dovetail-native is not installed: its path was not tried")
    path, *compiled = told().splitlines()
    assert path == "compiled"
    assert compiled == interpreted
