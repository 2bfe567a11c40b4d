"""What all tests share: several CPU devices, a folder of their own for compiled programs, the rings
of tests, and a line about each folder as its tests are done.

The inner ring is marked `essential`. It is what `nox -s tests` runs, and a part of everything:

- of a test with parameters, as many cases as it takes for each value of each parameter to occur,
  but no more than `MOST_CASES`, spread over all of them;
- of laws, of tables and in the folders `THIN`, where much is asked of many functions in the same
  way, one test of `THIN_TESTS`, and `FEWEST_CASES` of it;
- the checks of every primitive but `OUTER_CHECKS`; `nox -s tests` asks them of one sample of each;
- one of `EXAMPLES` examples in the documentation;
- but not `OUTER`.

Of laws, tables and the folders `THIN`, `.ci/run` takes `FEWEST_CASES` of each test, spread in the
same way: where a parameter has more values, some of them wait for `nox -s tests-all`, which
`nox -s weekly` runs. So do the tests `WEEKLY`; of examples it takes one of `EXAMPLES_OF_A_CHANGE`.
What is left out is marked `exhaustive`.
What `.ci/run` tests with a second jaxlib, too, is marked `newest`: the inner ring without laws and
without the folders `OF_ANY_JAXLIB`, and `NEWEST_CHECKS` of every primitive.
"""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

MOST_CASES = 2
FEWEST_CASES = 1
THIN_TESTS = 4
EXAMPLES = 8
EXAMPLES_OF_A_CHANGE = 2
THIN = (
    "packages/testing/tests/",
    "tests/api/",
    "tests/numpy/",
    "tests/ops/",
    "tests/scipy/",
)
SAMPLED = "tests/property/test_primitives.py::test_rules_agree"
# What these find, most often another check of the same primitive finds, too.
OUTER_CHECKS = ("jit_is_eager", "transformations_commute", "values_are_kept")
# What XLA computes; others ask for what is traced.
NEWEST_CHECKS = ("jit_is_eager", "lowering_agrees")
# Of the kit, of the repository, and of what is done before anything is compiled.
OF_ANY_JAXLIB = (
    "packages/testing/tests/",
    "tests/architecture/",
    "tests/base/",
    "tests/differential/",
    "tests/errors/",
    "tests/fuzz/",
    "tests/ir/",
    "tests/packaging/",
    "tests/plugins/",
    "tests/soak/",
    "tests/trace/",
)
EXAMPLE = "test_example"
# Ten seconds or more for one test: guides install into environments of their own and run what they
# tell, the sweep traces every function with every dtype.
OUTER = (
    "packages/testing/tests/test_broken_backends.py::test_lost_bits_of_results_are_found",
    "packages/testing/tests/test_broken_backends.py::test_what_is_not_declared_is_not_asked_for",
    "tests/backends/cpu/test_chains.py::test_threads",
    "tests/backends/cpu/test_matrix_products.py::test_blocks_that_end_anywhere_on_one_thread",
    "tests/numpy/dtypes/test_dtypes.py::test_dtypes",
    "tests/packaging/test_guides.py::test_the_guide",
    "tests/packaging/test_wheels.py::test_the_command_that_installs_the_wheels",
    "tests/runtime/calls/test_compiled_calls.py::test_both_paths_give_the_same",
    "tests/runtime/processes/test_mismatches.py::test_another_count",
    "tests/runtime/processes/test_training_through_kills.py::test_the_coordinator_is_killed",
    "tests/runtime/processes/test_training_through_kills.py::test_two_kills",
)
# Half a minute each, to find what seldom changes; sessions of `nox -s weekly` do more of the same.
WEEKLY = (
    "packages/testing/tests/test_broken_backends.py::test_floats_of_32_bits_are_enough",
    "packages/testing/tests/test_broken_backends.py::test_lost_bits_of_operands_are_found",
    "tests/fuzz/test_fuzz.py::test_calls_find_nothing",
    "tests/runtime/interrupts/test_processes.py::test_calls_interrupted_anywhere",
    "tests/runtime/processes/test_training_through_kills.py::test_five_kills",
    "tests/soak/test_soak.py::test_patterns_leave_nothing_behind",
)
APART = ("aot", "coexistence")  # these have sessions of their own

DIRECTLY = "DOVETAIL_TESTING_DIRECT_CALLS"
DIRECT = ("tests/numpy/", "tests/ops/", "tests/property/", "tests/scipy/", "tests/transform/")

# Set before dovetail is imported; processes that tests start inherit them.
os.environ.setdefault("DOVETAIL_NUM_CPU_DEVICES", "4")
# Tests of what is drawn use one key for all; those of this option turn it on.
os.environ.setdefault("DOVETAIL_DEBUG_KEY_REUSE", "0")
# Tests of small compiled functions are to test programs. `.ci/run` runs one ring without them, as
# users do, where what is computed is what counts.
os.environ.setdefault("DOVETAIL_DIRECT_CALLS", "eager")
if "DOVETAIL_COMPILATION_CACHE_DIR" not in os.environ:
    folder = tempfile.mkdtemp(prefix="dovetail-tests-")
    os.environ["DOVETAIL_COMPILATION_CACHE_DIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


@pytest.fixture(scope="session")
def told_differences() -> set[str]:
    """The headings of docs/differences-from-jax.md, as "module: name"."""
    text = (Path(__file__).parents[1] / "docs" / "differences-from-jax.md").read_text("utf-8")
    told, module = set(), ""
    for level, title in re.findall(r"^(##|###) (.*)$", text, re.MULTILINE):
        if level == "##":
            module = title
        else:
            told.add(f"{module}: {title.split('`')[1]}")
    return told


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


@pytest.fixture(autouse=True)
def small_functions(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compute small functions under jit without programs, if the environment says so."""
    if DIRECTLY not in os.environ or not request.node.nodeid.startswith(DIRECT):
        yield
    else:
        import dovetail  # deferred: as above

        with dovetail.direct_calls("all"):
            yield


@pytest.fixture(autouse=True)
def same_clients() -> Iterator[None]:
    """Refuse a test, or an example, that drops the clients which later tests have arrays of."""
    clients = sys.modules.get("dovetail._core.runtime.devices.clients")
    before = {} if clients is None else dict(clients._clients)
    yield
    after = before if clients is None else clients._clients
    lost = [name for name, client in before.items() if after.get(name) is not client]
    assert not lost, f"clear_backends in a process of its own, please: the clients of {lost} went"


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


def _values(item: pytest.Item) -> set[tuple[str, Any]]:
    """The values of a test's parameters."""
    callspec = getattr(item, "callspec", None)
    return {(name, repr(value)) for name, value in callspec.params.items()} if callspec else set()


def _covering(cases: list[pytest.Item], most: int) -> list[pytest.Item]:
    """Cases in which each value of each parameter occurs, or as many as may be."""
    # In an order that follows no parameter, and is the same in each process.
    seen: set[tuple[str, Any]] = set()
    chosen = []
    for item in sorted(cases, key=lambda item: zlib.crc32(item.nodeid.encode())):
        values = _values(item)
        if len(chosen) < most and not values <= seen:
            seen |= values
            chosen.append(item)
    return chosen or cases[:1]


def _one_of(count: int, name: str) -> bool:
    """Whether a name is one of so many, in an order that follows nothing."""
    return zlib.crc32(name.encode()) % count == 0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the inner ring, and those that a change need not pass."""
    tests = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    for name, cases in tests.items():
        if any(map(cases[0].get_closest_marker, APART)):
            continue
        function = name.rpartition("::")[2]
        asked_widely = any(map(cases[0].get_closest_marker, ("laws", "tables")))
        thin = asked_widely or name.startswith(THIN)
        if name in OUTER or name in WEEKLY:
            chosen = []
        elif function == EXAMPLE:
            chosen = [item for item in cases if _one_of(EXAMPLES, item.nodeid)]
        elif name == SAMPLED:
            outer = {("check", repr(check)) for check in OUTER_CHECKS}
            chosen = [item for item in cases if not outer & _values(item)]
        elif thin and not _one_of(THIN_TESTS, name):
            chosen = []
        else:
            chosen = _covering(cases, FEWEST_CASES if thin else MOST_CASES)
        taken = cases
        if name in WEEKLY:
            taken = []
        elif function == EXAMPLE:
            of_a_change = [i for i in cases if _one_of(EXAMPLES_OF_A_CHANGE, i.nodeid)]
            taken = [*chosen, *of_a_change]
        elif thin:
            taken = [*chosen, *_covering(cases, FEWEST_CASES)]
        newest = chosen
        if name == SAMPLED:
            asked = {("check", repr(check)) for check in NEWEST_CHECKS}
            newest = [item for item in cases if asked & _values(item)]
        elif cases[0].get_closest_marker("laws") or name.startswith(OF_ANY_JAXLIB):
            newest = []
        _mark(chosen, "essential")
        _mark(newest, "newest")
        kept = {*map(id, taken)}
        _mark([item for item in cases if id(item) not in kept], "exhaustive")


def _mark(items: Iterable[pytest.Item], name: str) -> None:
    for item in items:
        item.add_marker(name)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for those who wait."""
    parser.addoption(
        "--by-folder", action="store_true", help="a line about each folder of tests, not dots"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Tell of folders in the process that gathers what the others report."""
    if config.getoption("--by-folder") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(ByFolder(config), "by-folder")


class ByFolder:
    """A line for each folder when its tests are done, and now and then how far one is.

    Two processes work at the tests, so that the names which pytest itself shows are out of order.
    """

    SECONDS = 15

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._expected: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._told = time.monotonic()

    def _expect(self, tests: Iterable[str]) -> None:
        self._expected = Counter(_folder(test) for test in tests)
        self._told = time.monotonic()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._expect(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        if (
            report.skipped
            or (report.passed and report.when != "call")
            or hasattr(report, "wasxfail")
        ):
            return None
        word = "FAILED" if report.failed else ""
        return report.outcome, "", word  # counted at the end, and shown with its folder

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = _folder(report.nodeid)
        if report.failed:
            self._failed[folder] += 1
            self._write(f"FAILED {report.nodeid}", red=True)
        if report.when != "teardown":
            return
        self._done[folder] += 1
        if self._done[folder] == self._expected[folder]:
            self._tell(folder)
        elif time.monotonic() - self._told > self.SECONDS:
            self._tell(report.nodeid.partition("::")[0], folder)

    def _tell(self, place: str, folder: str = "") -> None:
        done, expected = sum(self._done.values()), sum(self._expected.values())
        count = f"{self._done[folder]} of {self._expected[folder]}" if folder else ""
        failed = self._failed[folder or place]
        line = (
            f"[{100 * done // max(expected, 1):3d} %] {place:40} {count or self._done[place]} tests"
        )
        self._write(line + (f", {failed} failed" if failed else ""), red=bool(failed))
        self._told = time.monotonic()

    def _write(self, line: str, **style: bool) -> None:
        reporter: Any = self._config.pluginmanager.getplugin("terminalreporter")
        reporter.ensure_newline()
        reporter.write_line(line, **style)


def _folder(nodeid: str) -> str:
    return nodeid.partition("::")[0].rpartition("/")[0]
