"""What all tests share: several CPU devices, and a folder of their own for compiled programs."""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

import pytest

# Set before dovetail is imported; processes that tests start inherit them.
os.environ.setdefault("DOVETAIL_NUM_CPU_DEVICES", "4")
if "DOVETAIL_COMPILATION_CACHE_DIR" not in os.environ:
    folder = tempfile.mkdtemp(prefix="dovetail-tests-")
    os.environ["DOVETAIL_COMPILATION_CACHE_DIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def little_optimization(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile quickly where laws of transformations are tested, in which XLA has no part.

    The tests of lowerings, and all others, compile as users do.
    """
    if request.node.get_closest_marker("laws") is None:
        yield
    else:
        import dovetail  # deferred: the variables above must be set before

        with dovetail.optimization_level("O0"):
            yield


_finished = itertools.count(1)


@pytest.fixture(autouse=True)
def few_programs() -> Iterator[None]:
    """Let go of compiled programs now and then.

    Each maps pages of its own, and a process that keeps those of thousands of tests reaches the
    number of mappings that Linux allows (65,530), at which the compiler aborts. What remains is
    left out of later collections, which would otherwise take seconds: the tests themselves are
    most of it. Once in a while everything is looked through, for cycles that became garbage later.
    """
    yield
    finished = next(_finished)
    if finished % 100 == 0 and "dovetail" in sys.modules:
        if finished % 2000 == 0:
            gc.unfreeze()
        sys.modules["dovetail"].clear_caches()
        gc.collect()
        gc.freeze()
