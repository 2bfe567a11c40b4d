"""The results of the suites as JSON."""

from __future__ import annotations

import json
import os
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest

__all__ = ["OUTCOMES", "Report"]

OUTCOMES: Final = ("passed", "failed", "skipped", "xfailed")
"""How a test can end. One that is expected to fail and passes has failed."""

_KEY: Final = "dovetail_backend"
_SUITES: Final = (Path(__file__).parent / "suites").resolve()
_DISTRIBUTIONS: Final = ("dovetail-core", "jaxlib", "numpy", "ml_dtypes")


class Report:
    """Collects the outcomes of the suites' tests, and writes them once all have run.

    With pytest-xdist, the tests run in other processes. Those report what they know of the backend,
    so the process that writes the report needs no client of its own. A test that kills its process
    has failed.

    Args:
        path: where to write.
        config: of this run.
    """

    def __init__(self, path: Path, config: pytest.Config) -> None:
        self.path = path
        self.config = config
        self.results: dict[str, dict[str, Any]] = {}
        self.backend: dict[str, Any] = {}

    def pytest_sessionstart(self) -> None:
        """Remove an old report: if a test kills this process, there must be none."""
        if not hasattr(self.config, "workerinput"):
            self.path.unlink(missing_ok=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the outcome of a test, or of a failed step before or after it."""
        properties = dict(report.user_properties)
        if "suite" not in properties and report.outcome == "failed":
            # It killed its process, which could not say what it belongs to.
            properties.update(self._suite_of(report.nodeid))
        if "suite" not in properties:
            return
        if report.when != "call" and report.outcome == "passed":
            return
        outcome: str = report.outcome
        message = ""
        if hasattr(report, "wasxfail"):
            # pytest also counts a test that was not run as skipped.
            outcome = "xfailed" if report.outcome == "skipped" else "failed"
            message = report.wasxfail
        elif report.outcome == "failed":
            message = report.longreprtext
        elif report.outcome == "skipped" and isinstance(report.longrepr, tuple):
            message = report.longrepr[2].removeprefix("Skipped: ")
        known = self.results.get(report.nodeid)
        if known is not None and known["outcome"] == "failed":
            return  # the first failure says more than later ones
        self.results[report.nodeid] = {
            "test": report.nodeid.partition("::")[2],
            **properties,
            "outcome": outcome,
            "seconds": round(report.duration, 3),
            "message": message,
        }

    def _suite_of(self, nodeid: str) -> dict[str, str]:
        """The suite of a test in a suite's file; empty for any other test."""
        path = (self.config.rootpath / nodeid.partition("::")[0]).resolve()
        if path.parent != _SUITES:
            return {}
        return {"suite": path.stem.removeprefix("test_")}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report; in a worker of pytest-xdist, pass on what is known of the backend."""
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output[_KEY] = _backend(self.config)
            return
        backend = self.backend or _backend(self.config)
        outcomes = Counter(result["outcome"] for result in self.results.values())
        suites: dict[str, dict[str, Any]] = {}
        for result in self.results.values():
            suite = suites.setdefault(result["suite"], {"tests": 0, "seconds": 0.0})
            suite["tests"] += 1
            suite["seconds"] = round(suite["seconds"] + result["seconds"], 3)
        report = {
            **backend,
            "level": self.config.getoption("--dovetail-level"),
            "versions": {name: version(name) for name in _DISTRIBUTIONS},
            "summary": {name: outcomes[name] for name in OUTCOMES},
            "suites": suites,
            "results": list(self.results.values()),
        }
        # Concurrent readers of the file see all of it or nothing, never half.
        unfinished = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        os.replace(unfinished, self.path)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Collect what a worker of pytest-xdist knows of the backend."""
        told = getattr(node, "workeroutput", {}).get(_KEY)
        if told and (told["device"] or not self.backend):
            self.backend = told


def _backend(config: pytest.Config) -> dict[str, Any]:
    """What the report says about the backend."""
    from dovetail.testing.collection import (
        connected,
        loaded_backend,
        platform_of,
    )  # deferred: loads the backend, and this module is imported before any test is collected

    found: dict[str, Any] = {"platform": "", "device": "", "devices": 0, "capabilities": []}
    try:
        found["platform"] = platform_of(config)
        found["capabilities"] = sorted(loaded_backend(config).info.capabilities)
        backend = connected(config)
        found["device"] = repr(backend.device)
        found["devices"] = len(backend.devices)
    except (pytest.UsageError, pytest.fail.Exception):
        pass  # the tests have reported it
    return found
