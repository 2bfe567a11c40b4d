"""The pytest plug-in that tests a backend.

    pytest --pyargs dovetail.testing.suites --dovetail-platform=acme --dovetail-report=report.json

The options:

``--dovetail-platform``
    the platform whose first device runs the programs; the default platform if omitted.
``--dovetail-level``
    ``essential`` (what a training step needs, under three minutes on a CPU) or ``full``.
``--dovetail-samples``
    the maximum number of samples of each primitive, of as many kinds as possible; all by default.
``--dovetail-xfails``
    a file of tests that are known to fail, with reasons, see `dovetail.testing.expected_failures`.
``--dovetail-report``
    a file for the results as JSON: what was tested with which versions, what the backend declares,
    and for each test the outcome, its duration in seconds, and the message of a failure.

Tests are skipped if they need a capability that the backend does not declare, as are samples in
dtypes that it does not have. `dovetail.testing.capabilities` has the list.

On a CPU, ``DOVETAIL_NUM_CPU_DEVICES=4`` in the environment creates four devices, so that the suite
of collectives and the tests of copies between devices run too.

Tests of programs that use dovetail get the fixture `assert_compiles` from here.

Every run of pytest in an environment with dovetail imports this module, so it imports nothing heavy
before it is needed.
"""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dovetail.testing.levels import LEVELS

if TYPE_CHECKING:
    from dovetail.monitoring import EventLog
    from dovetail.testing.backend import BackendUnderTest

_SUITES = Path(__file__).parent / "suites"
_BETWEEN_CLEARINGS = 100
_finished = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("dovetail", "conformance of dovetail's backends")
    group.addoption("--dovetail-platform", metavar="NAME", help="the platform to test")
    group.addoption("--dovetail-level", choices=LEVELS, default="full", help="how much to test")
    group.addoption(
        "--dovetail-samples",
        metavar="COUNT",
        type=int,
        help="at most this many samples of each primitive, of as many kinds as there are",
    )
    group.addoption(
        "--dovetail-xfails", metavar="FILE", type=Path, help="tests that are known to fail"
    )
    group.addoption(
        "--dovetail-report", metavar="FILE", type=Path, help="write the results as JSON"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and collect results if a report is requested."""
    config.addinivalue_line(
        "markers", "dovetail_needs(capability): skipped on backends that do not declare it"
    )
    config.addinivalue_line("markers", "dovetail_full: not part of the level essential")
    path = config.getoption("--dovetail-report")
    if path is not None:
        from dovetail.testing.report import Report  # deferred: most runs of pytest need no report

        if not path.parent.is_dir():
            raise pytest.UsageError(f"--dovetail-report={path}: there is no folder {path.parent}")
        config.pluginmanager.register(Report(path, config), "dovetail-report")


def suite_of(item: pytest.Item) -> str | None:
    """The suite that a test belongs to, even if a user's test module imports it."""
    # By file: pytest uses other module names if dovetail is spread over several folders.
    code = getattr(getattr(item, "function", None), "__code__", None)
    path = Path(code.co_filename) if code is not None else Path()
    return path.stem.removeprefix("test_") if path.parent == _SUITES else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Prepare the tests of the suites, before ``-k`` deselects some of them."""
    suites = {id(item): suite for item in items if (suite := suite_of(item)) is not None}
    if not suites:
        return
    from dovetail.testing.collection import prepare  # deferred: most runs of pytest need no suites

    prepare(config, items, suites)


@pytest.fixture
def dovetail_plugin(request: pytest.FixtureRequest) -> Any:
    """The plug-in under test, loaded but without a client: no driver is needed for it."""
    from dovetail.testing.collection import loaded_backend  # deferred: like `prepare`

    return loaded_backend(request.config)


@pytest.fixture
def dovetail_backend(request: pytest.FixtureRequest) -> Iterator[BackendUnderTest]:
    """The backend under test; its first device runs all computations meanwhile.

    64-bit types are kept if the backend has them, and products are multiplied exactly.
    """
    from dovetail.testing.collection import connected, missing_capability  # deferred: like above

    try:
        backend = connected(request.config)
    except pytest.fail.Exception as error:
        # All other tests would report the same.
        request.session.shouldfail = str(error)
        raise
    reason = missing_capability(request.node, backend)
    if reason:
        pytest.skip(reason)
    import dovetail  # deferred: like above
    from dovetail._core.base.config import enable_compilation_cache  # deferred: like above

    # A program from the disk cache would test a compiler that is no longer there. Without
    # `enable_x64`, Python's numbers become 32-bit arrays, which every backend has.
    with (
        dovetail.default_device(backend.device),
        dovetail.enable_x64("float64" in backend.capabilities),
        dovetail.default_matmul_precision("highest"),
        enable_compilation_cache(False),
    ):
        yield backend


@pytest.fixture
def assert_compiles() -> Callable[..., AbstractContextManager[EventLog]]:
    """A block that fails unless a number of programs is made in it.

    ``with assert_compiles(1): step(x)`` passes if `step` needs one program: whether a compiler
    makes it, the cache on disk has it, or an equal one is in memory, which depends on other tests.
    ``assert_compiles(0)`` says that nothing is compiled again. Operations outside of `jit` count
    with ``eager=True``. The block gives a log of all events, which is part of the failure.
    """
    from dovetail import events  # deferred: like above

    @contextmanager
    def block(count: int, *, eager: bool = False) -> Iterator[EventLog]:
        with events() as log:
            yield log
        made = [event for event in log.of("compile", "load", "reuse") if eager or not event.eager]
        if len(made) != count:
            listed = "".join(f"\n  {event}" for event in made) or " none"
            pytest.fail(f"{count} programs were expected, and {len(made)} were made:{listed}")

    return block


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Drop compiled programs now and then.

    Each maps its own pages. A process that keeps the programs of thousands of tests reaches Linux's
    limit on mappings (65,530), at which compilers abort.
    """
    if suite_of(item) is not None and next(_finished) % _BETWEEN_CLEARINGS == 0:
        sys.modules["dovetail"].clear_caches()
        gc.collect()
