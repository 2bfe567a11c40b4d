"""Linear algebra beyond the samples: what users call, both lowerings, LAPACK itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.core.plugins.manager import manager
from dovetail.testing.checks import CHECKS
from dovetail.testing.samples import all_samples, defined_primitives

OF_THE_CPU = (
    "cholesky",
    "geqp3",
    "geqrf",
    "householder_product",
    "lu",
    "ormqr",
    "qr",
    "triangular_solve",
    "tridiagonal_solve",
)


@pytest.fixture
def without_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are lowered as for a platform without rules of its own for linear algebra."""
    rules = {k: v for k, v in manager().lowerings("cpu").items() if k not in OF_THE_CPU}
    monkeypatch.setitem(manager()._lowerings, "cpu", rules)


@pytest.mark.usefixtures("without_lapack")
@pytest.mark.parametrize("name", OF_THE_CPU)
def test_the_lowering_for_any_platform_agrees(name: str) -> None:
    CHECKS["lowering_agrees"](defined_primitives()[name], all_samples()[name])


FACTOR_IN_THREADS = """
from concurrent.futures import ThreadPoolExecutor

import dovetail
import numpy as np
from dovetail import lax
from dovetail.core.runtime import compilation

def factor(size):
    x = np.eye(size, dtype=np.float32) * 4
    root, packed = dovetail.jit(lambda x: (lax.linalg.cholesky(x), lax.linalg.lu(x)[0]))(x)
    assert (np.asarray(root) == x / 2).all() and (np.asarray(packed) == x).all()

with ThreadPoolExecutor(4) as pool:
    list(pool.map(factor, range(1, 9)))
done = compilation.statistics()
print(done.compiled, done.loaded)
"""


def test_lapack_in_fresh_processes_and_threads_with_a_cold_and_a_warm_cache(
    tmp_path: Path,
) -> None:
    folder = str(tmp_path / "programs")
    counts = []
    for _ in range(2):
        answer = subprocess.run(
            [sys.executable, "-W", "error", "-c", FACTOR_IN_THREADS],
            env={**os.environ, "DOVETAIL_COMPILATION_CACHE_DIR": folder},
            capture_output=True,
            text=True,
        )
        assert answer.returncode == 0, answer.stderr
        counts.append(tuple(map(int, answer.stdout.split())))
    (compiled, loaded), again = counts
    assert compiled >= 8
    assert loaded == 0
    assert again == (0, compiled)
