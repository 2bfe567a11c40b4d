"""A pytest plug-in for suites of others: what is expected to fail must fail, and all is counted.

    pytest -p dovetail.as_jax -p expected_outcomes --expected FILE --counts FILE TESTS

The file is one of expected failures as the conformance kit has them. Patterns are matched against
whole ids, and lines that begin with ``jax:`` are of tests that fail with JAX, too.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from dovetail.testing.expected_failures import ExpectedFailure, read_expected_failures

WITH_JAX_TOO = "jax:"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    parser.addoption("--expected", type=Path, help="the file of expected failures")
    parser.addoption("--counts", type=Path, help="where to write how many tests did what")


def read(path: Path) -> dict[ExpectedFailure, bool]:
    """Expected failures, and whether each fails with JAX, too."""
    text = path.read_text(encoding="utf-8")
    with_jax = set(re.findall(rf"^{WITH_JAX_TOO}\s*(.*?)\s+#", text, re.MULTILINE))
    with tempfile.NamedTemporaryFile("w", suffix=path.name, encoding="utf-8") as plain:
        plain.write(re.sub(rf"^{WITH_JAX_TOO}\s*", "", text, flags=re.MULTILINE))
        plain.flush()
        return {f: f.pattern in with_jax for f in read_expected_failures(Path(plain.name))}


class Outcomes:
    """Marks tests, and counts what they do."""

    def __init__(self, config: pytest.Config) -> None:
        path = config.getoption("--expected")
        self.expected = {} if path is None or not path.exists() else read(path)
        self.counts: Counter[str] = Counter()
        self.used: set[ExpectedFailure] = set()
        self.with_jax: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark what is expected to fail."""
        for item in items:
            for failure, with_jax in self.expected.items():
                if failure.matches(item.nodeid):
                    self.used.add(failure)
                    if with_jax:
                        self.with_jax.add(item.nodeid)
                    item.add_marker(
                        pytest.mark.xfail(
                            reason=failure.reason, strict=True, run=not failure.crashes
                        )
                    )
                    break

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one test."""
        if hasattr(report, "wasxfail") and report.skipped:
            self.counts["expected"] += 1
            self.counts["expected with jax"] += report.nodeid in self.with_jax
        elif report.failed:
            self.counts["failed"] += 1
        elif report.when == "call" and report.passed:
            self.counts["passed"] += 1
        elif report.skipped:
            self.counts["skipped"] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the counts, and the lines that no test matched."""
        unused = sorted(f.pattern for f in self.expected if f not in self.used)
        path = session.config.getoption("--counts")
        if path is not None:
            path.write_text(json.dumps({**self.counts, "unused": unused}), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plug-in's state."""
    config.pluginmanager.register(Outcomes(config), "expected-outcomes")
