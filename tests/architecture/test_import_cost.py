"""`import dovetail` costs next to nothing and loads nothing of weight."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

HEAVY = (
    "importlib.metadata",
    "inspect",
    "jax",
    "jaxlib",
    "ml_dtypes",
    "numpy",
    "pkgutil",
    "pluggy",
    "re",
    "typing",
)


def _run(code):
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def _cpu_seconds(code, repeats=9):
    """The least CPU time of a few fresh processes: load on the machine only ever adds."""
    seconds = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


def test_import_loads_nothing_heavy():
    loaded = _run(
        "import sys; before = set(sys.modules); import dovetail; after = set(sys.modules);"
        "import json; print(json.dumps(sorted(after - before)))"
    )
    names = set(json.loads(loaded))
    assert {name for name in names if name in HEAVY} == set()
    ours = {name for name in names if name.startswith("dovetail")}
    assert ours == {"dovetail", "dovetail._lazy_names"}


@pytest.mark.parametrize(("given", "found"), [(None, "22"), ("26", "26")])
def test_threads_of_openblas_soon_sleep_unless_the_user_says_how_long(
    monkeypatch: pytest.MonkeyPatch, given: str | None, found: str
) -> None:
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    if given is not None:
        monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", given)
    code = "import os, sys, dovetail; print(os.environ['OPENBLAS_THREAD_TIMEOUT'])"
    assert _run(code).strip() == found


def test_import_takes_at_most_20_milliseconds():
    bare = _cpu_seconds("pass")
    ours = _cpu_seconds("import dovetail")
    assert ours - bare <= 0.020, f"{(ours - bare) * 1e3:.1f} ms"


def test_a_computation_never_loads_jax_or_metadata():
    loaded = _run(
        "import sys, dovetail.numpy as jnp; assert (jnp.ones(3) + 1)[0] == 2;"
        "print([m for m in ('jax', 'importlib.metadata', 'scipy') if m in sys.modules])"
    )
    assert loaded.strip() == "[]"
