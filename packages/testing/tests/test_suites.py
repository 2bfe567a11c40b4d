"""The suites that authors of backends run."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dovetail import device_put
from dovetail.extend import BackendInfo
from dovetail.testing import Sample, across_dtypes
from dovetail.testing.capabilities import CAPABILITIES, unknown_capabilities
from dovetail.testing.collection import SUITES
from dovetail.testing.coverage import TESTED_BY
from dovetail.testing.expected_failures import ExpectedFailure, read_expected_failures
from dovetail.testing.levels import ESSENTIAL, LEVELS, in_order
from dovetail.testing.sample import ALL_DTYPES, representative, supported
from dovetail.testing.samples import all_samples, defined_primitives

GUIDE = Path(__file__).parents[3] / "docs" / "write-a-backend.md"


def run(*options: str, suites: str = "dovetail.testing.suites") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs"]
    return subprocess.run([*command, suites, *options], capture_output=True, text=True)


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


def test_report_of_several_processes(tmp_path):
    report = tmp_path / "report.json"
    answer = run(
        "--dovetail-platform=cpu",
        f"--dovetail-report={report}",
        "-n2",
        "-k=tokens_order or refused or eig-jit_is_eager or all_gather",
    )
    assert answer.returncode == 0, answer.stdout
    found = json.loads(report.read_text())
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert found["device"].startswith("CpuDevice(id=0")
    assert "spmd" in found["capabilities"]
    assert {r["suite"] for r in found["results"]} == {
        *("collectives", "contract", "control_flow", "primitives")
    }
    assert found["suites"]["primitives"]["tests"] == 1
    assert set(found["versions"]) == {"dovetail-core", "jaxlib", "numpy", "ml_dtypes"}


KILLER = """
import os

def pytest_runtest_call(item):
    if item.name == "test_tokens_order":
        os._exit(3)
"""


@pytest.mark.parametrize("processes", ["-n0", "-n1"])
def test_report_of_a_process_that_ends(tmp_path, monkeypatch, processes):
    """What ends a worker has failed; what ends the process itself leaves no report of old."""
    (tmp_path / "killer.py").write_text(KILLER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    report = tmp_path / "report.json"
    report.write_text("{}")
    answer = run(
        *("-p", "killer", processes, "--dovetail-platform=cpu", "-k=tokens_order or neg-jit"),
        f"--dovetail-report={report}",
    )
    if processes == "-n0":
        assert answer.returncode == 3, answer.stdout
        assert not report.exists()
        return
    assert answer.returncode == 1, answer.stdout
    found = {r["test"]: r for r in json.loads(report.read_text())["results"]}
    assert {test: (r["suite"], r["outcome"]) for test, r in found.items()} == {
        "test_tokens_order": ("control_flow", "failed"),
        "test_rules_agree[neg-jit_is_eager]": ("primitives", "passed"),
    }
    assert "crashed" in found["test_tokens_order"]["message"]


XFAILS = """
# what is known
test_tokens_*  # they have no order
test_rules_agree[neg-jit*]  # never was
crashes: test_cond?False? # ends the process
"""


def test_expected_failures(tmp_path):
    file, report = tmp_path / "xfails.txt", tmp_path / "report.json"
    file.write_text(XFAILS)
    answer = run(
        "--dovetail-platform=cpu",
        f"--dovetail-xfails={file}",
        f"--dovetail-report={report}",
        "-k=tokens_order or neg-jit or test_cond",
    )
    # What is expected to fail and passes has failed; what would end the process is not run.
    assert answer.returncode == 1, answer.stdout
    found = {r["test"]: r for r in json.loads(report.read_text())["results"]}
    assert {test: r["outcome"] for test, r in found.items()} == {
        "test_tokens_order": "failed",
        "test_rules_agree[neg-jit_is_eager]": "failed",
        "test_cond[False]": "xfailed",
        "test_cond[True]": "passed",
    }
    assert "they have no order" in found["test_tokens_order"]["message"]
    assert "ends the process" in found["test_cond[False]"]["message"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("test_cond", "xfails.txt:1: 'test_cond' has no reason"),
        ("test_cond #", "xfails.txt:1: 'test_cond' has no reason"),
        ("a # b\n\na # c", "xfails.txt:3: 'a' stands in"),
        ("test_condo*  # typing", "xfails.txt:1: no test is named test_condo*"),
        (None, "No such file"),
    ],
)
def test_wrong_files_of_expected_failures(tmp_path, text, message):
    file = tmp_path / "xfails.txt"
    if text is not None:
        file.write_text(text)
    answer = run("--dovetail-platform=cpu", f"--dovetail-xfails={file}", "-k=tokens_order")
    assert answer.returncode == pytest.ExitCode.USAGE_ERROR, answer.stdout
    assert message in answer.stderr


@pytest.mark.parametrize("between", ["  # ", "\t# ", "\t\t#", " #"])
def test_reasons_stand_behind_white_space(tmp_path, between):
    file = tmp_path / "xfails.txt"
    file.write_text(f"crashes: test_a[x#1]{between}it has #1 # and #2 \n")
    (found,) = read_expected_failures(file)
    assert (found.pattern, found.reason) == ("test_a[x#1]", "it has #1 # and #2")
    assert found.crashes


def test_a_report_into_a_folder_that_is_not_there(tmp_path):
    path = tmp_path / "none" / "report.json"
    answer = run("--dovetail-platform=cpu", f"--dovetail-report={path}", "-k=tokens_order")
    assert answer.returncode == pytest.ExitCode.USAGE_ERROR, answer.stdout
    assert f"there is no folder {path.parent}" in answer.stderr


@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_without_devices_the_contract_alone_is_tested(tmp_path, monkeypatch, processes):
    library = tmp_path / "library.so"
    library.write_text("no library")
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", f"widget:{library}")
    answer = run("--dovetail-platform=widget", processes)
    assert answer.returncode != 0
    assert f"{library} is no shared library" in answer.stdout
    assert " passed" in answer.stdout
    assert answer.stdout.count("ERROR ") <= 4, answer.stdout


def test_patterns():
    failure = ExpectedFailure("test_x[a-*?]", "", False, "")
    assert failure.matches("test_x[a-bc]")
    assert not failure.matches("test_x[a-]")
    assert not failure.matches("test_xa-b")


def test_every_primitive_is_covered():
    """A primitive has samples, or there is a test in a suite that is named here."""
    assert device_put  # its primitive is that of the runtime
    missing = set(defined_primitives()) - set(all_samples()) - set(TESTED_BY)
    assert not missing, f"name the tests of {sorted(missing)} in dovetail.testing.coverage"
    assert set(TESTED_BY) <= set(defined_primitives())
    assert not set(TESTED_BY) & set(all_samples())
    for name, place in TESTED_BY.items():
        suite, _, test = place.partition("::")
        module = import_module(f"dovetail.testing.suites.test_{suite}")
        assert callable(getattr(module, test, None)), f"{name}: there is no {place}"


def test_capabilities_are_documented():
    text = BackendInfo.__doc__ or ""
    assert [name for name in CAPABILITIES if f'"{name}"' not in text] == []
    _, _, rest = GUIDE.read_text(encoding="utf-8").partition("| capability | the backend has |\n")
    table = [line.split("|")[1] for line in rest.partition("\n\n")[0].splitlines()[1:]]
    assert re.findall(r"`(\w+)`", "".join(table)) == sorted(CAPABILITIES)
    assert unknown_capabilities(["float64", "x-anything"]) == []
    assert unknown_capabilities(["float46"]) == [
        "unknown capability 'float46': did you mean 'float64'?"
    ]
    assert "there are " in unknown_capabilities(["zzz"])[0]


def test_the_plugin_costs_other_projects_nothing(tmp_path):
    """pytest imports it wherever dovetail is installed."""
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n"
        "def test_modules():\n"
        "    assert 'dovetail.testing.plugin' in sys.modules\n"
        "    heavy = {'numpy', 'jaxlib', 'ml_dtypes', 'dovetail._core'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "."]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_every_test_says_what_a_backend_must_do():
    for path in sorted(SUITES.glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                assert ast.get_docstring(node), f"{path.name}: {node.name} has no docstring"


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


def test_some_samples_are_of_as_many_kinds_as_there_are():
    samples = all_samples()["add"]
    chosen = representative(samples, 6)
    assert len(chosen) == 6
    assert all(any(sample is other for other in samples) for sample in chosen)
    assert chosen[0].linear
    assert any(sample.raises for sample in chosen)
    assert {sample.arrays()[0].dtype.kind for sample in chosen} >= {"f", "c", "i"}
    assert [id(sample) for sample in representative(samples, 2)] == [id(s) for s in chosen[:2]]
    everything = representative(samples, len(samples) + 1)
    assert sorted(map(id, everything)) == sorted(map(id, samples))


def test_a_primitive_is_asked_on_as_many_samples_as_the_option_says(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "from dovetail.testing import checks\n"
        "counted = lambda primitive, samples, capabilities: print('COUNT', len(samples))\n"
        "checks.CHECKS['lowering_agrees'] = counted\n"
    )
    words = [str(tmp_path), "--pyargs", "dovetail.testing.suites.test_primitives", "-s", "-q"]
    words += ["-k", "[add-lowering_agrees", "--dovetail-samples=3", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert "COUNT 3" in done.stdout, done.stdout + done.stderr
