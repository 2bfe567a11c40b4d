"""The plug-in of pytest by which a backend is tested.

    pytest --pyargs dovetail.testing.suites --dovetail-platform=acme --dovetail-report=report.json

The options:

``--dovetail-platform``
    the platform whose first device runs the programs; the default platform if it is left out.
``--dovetail-level``
    ``essential`` (25 primitives, under two minutes on a CPU) or ``complete``.
``--dovetail-report``
    a file for the results as JSON: what was tested with which versions, and for each primitive and
    check the outcome, the seconds it took, and the message of a failure.

Samples in dtypes that the backend does not list among its capabilities (``float64``, ``complex``)
are left out, and those of the primitives ``eig`` and ``schur``, which StableHLO cannot express,
where it does not list these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dovetail.testing.levels import LEVELS


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("dovetail", "conformance of dovetail's backends")
    group.addoption("--dovetail-platform", metavar="NAME", help="the platform to test")
    group.addoption("--dovetail-level", choices=LEVELS, default="complete", help="how much to test")
    group.addoption(
        "--dovetail-report", metavar="FILE", type=Path, help="write the results as JSON"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect results where a report is asked for."""
    path = config.getoption("--dovetail-report")
    if path is not None:
        config.pluginmanager.register(_Report(path, config), "dovetail-report")


@pytest.fixture
def dovetail_capabilities(request: pytest.FixtureRequest) -> Iterator[frozenset[str]]:
    """What the backend under test can do; its first device computes everything meanwhile."""
    import dovetail  # deferred: most runs of pytest need none of it
    from dovetail.extend import manager  # deferred: like dovetail

    platform = request.config.getoption("--dovetail-platform") or dovetail.default_backend()
    with dovetail.default_device(dovetail.devices(platform)[0]):
        yield manager().require(platform).info.capabilities


class _Report:
    """The outcomes of the suites' tests."""

    def __init__(self, path: Path, config: pytest.Config) -> None:
        self.path = path
        self.config = config
        self.results: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the outcome of a test, or of a step before it that failed."""
        if "test_primitives.py" not in report.nodeid or (
            report.when != "call" and report.outcome == "passed"
        ):
            return
        self.results.append(
            {
                "test": report.nodeid.rpartition("::")[2],
                **dict(report.user_properties),
                "outcome": report.outcome,
                "seconds": round(report.duration, 3),
                "message": report.longreprtext if report.outcome == "failed" else "",
            }
        )

    def pytest_sessionfinish(self) -> None:
        """Write the report."""
        from importlib.metadata import version  # deferred: only for a report

        import dovetail  # deferred: most runs of pytest need none of it

        platform = self.config.getoption("--dovetail-platform") or dovetail.default_backend()
        outcomes = [result["outcome"] for result in self.results]
        report = {
            "platform": platform,
            "device": repr(dovetail.devices(platform)[0]),
            "level": self.config.getoption("--dovetail-level"),
            "versions": {name: version(name) for name in ("dovetail", "jaxlib", "numpy")},
            "summary": {name: outcomes.count(name) for name in ("passed", "failed", "skipped")},
            "results": self.results,
        }
        self.path.write_text(json.dumps(report, indent=1) + "\n")
