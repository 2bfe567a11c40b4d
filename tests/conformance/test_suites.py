"""The suites that authors of backends run."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from dovetail.testing import Sample, across_dtypes
from dovetail.testing.levels import ESSENTIAL, LEVELS, in_order
from dovetail.testing.sample import ALL_DTYPES, supported
from dovetail.testing.samples import all_samples, defined_primitives


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs"]
    return subprocess.run(
        [*command, "dovetail.testing.suites", *options], capture_output=True, text=True
    )


def test_report(tmp_path):
    report = tmp_path / "report.json"
    answer = run(
        "--dovetail-platform=cpu",
        "--dovetail-level=essential",
        f"--dovetail-report={report}",
        f"--junitxml={tmp_path / 'junit.xml'}",
        "-k=neg and (abstract or jit)",
    )
    assert answer.returncode == 0, answer.stdout
    found = json.loads(report.read_text())
    assert found["platform"] == "cpu"
    assert found["level"] == "essential"
    assert found["summary"] == {"passed": 2, "failed": 0, "skipped": 0, "xfailed": 0}
    assert {(r["primitive"], r["check"], r["outcome"]) for r in found["results"]} == {
        ("neg", "abstract_agrees", "passed"),
        ("neg", "jit_is_eager", "passed"),
    }


def test_unknown_platform():
    answer = run("--dovetail-platform=acme", "-k=neg and abstract")
    assert answer.returncode == pytest.ExitCode.USAGE_ERROR
    assert "unknown platform 'acme'" in answer.stderr


def test_levels():
    assert len(ESSENTIAL) == len(set(ESSENTIAL)) == 25
    assert set(ESSENTIAL) <= set(all_samples())
    everything = in_order(sorted(all_samples()))
    assert everything[:25] == list(ESSENTIAL)
    assert sorted(everything) == sorted(all_samples())
    assert set(everything) <= set(defined_primitives())
    assert LEVELS == ("essential", "full")


@pytest.mark.parametrize(
    ("capabilities", "left_out"),
    [
        ({"float64", "complex"}, set()),
        ({"complex"}, {"float64", "complex128"}),
        ({"float64"}, {"complex64", "complex128"}),
        (set(), {"float64", "complex64", "complex128"}),
    ],
)
def test_samples_in_dtypes_of_capabilities(capabilities, left_out):
    samples = across_dtypes(Sample((np.ones(2), 3)), ALL_DTYPES, 0)
    kept = {s.args[0].dtype.name for s in supported(samples, frozenset(capabilities))}
    assert kept == {d.name for d in ALL_DTYPES} - left_out


def test_samples_that_need_an_ability():
    everything = frozenset({"float64", "complex"})
    needs = {name: {s.needs for s in samples} for name, samples in all_samples().items()}
    assert {name: n for name, n in needs.items() if n != {None}} == {
        "eig": {"eig"},
        "schur": {"schur"},
    }
    for name in ("eig", "schur"):
        samples = all_samples()[name]
        assert supported(samples, everything) == []
        assert len(supported(samples, everything | {name})) == len(samples)
