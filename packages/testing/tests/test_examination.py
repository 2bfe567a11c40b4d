"""The contract's tests: what they find out about a plug-in in other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.extend import manager
from dovetail.testing.examination import examine, hooks_of
from dovetail.testing.suites import test_contract

EXAMPLE = Path(__file__).parents[3] / "examples" / "backend-numpy" / "src"

#: Hooks under names of their own, which pluggy allows; lines are put in their places by `written`.
PLUGIN = """
from dovetail.extend import BackendInfo, hookimpl
{imports}
CAPABILITIES = {capabilities}

@hookimpl
def dovetail_backend_info():
    {describe}
    return BackendInfo("odd", (1, 1), -5, (), "odd", frozenset(CAPABILITIES), programs="jaxpr")

@hookimpl(specname="dovetail_probe")
def look(platform):
    {probe}
    return ""

@hookimpl(specname="dovetail_make_client")
def connect(platform, options):
    {client}
    from dovetail_backend_numpy.runtime import Client
    return Client(options)
"""

KEPT = {"imports": "", "capabilities": "()", "describe": "", "probe": "", "client": ""}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes a plug-in as an installed distribution, in a folder that is named `tests`."""

    def write(**lines: str) -> None:
        site = tmp_path / "tests" / "site"
        package, metadata = site / "odd_backend", site / "odd_backend-1.0.dist-info"
        for folder in (package, metadata):
            folder.mkdir(parents=True)
        (package / "__init__.py").touch()
        (site / "odd_driver.py").touch()
        (package / "plugin.py").write_text(PLUGIN.format(**{**KEPT, **lines}))
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-backend\n")
        entry = "[dovetail.backends]\nodd = odd_backend.plugin\n"
        (metadata / "entry_points.txt").write_text(entry)
        for folder in (EXAMPLE, site):
            monkeypatch.syspath_prepend(folder)

    return write


def contract(folder: Path) -> dict[str, Any]:
    """The results of the suite that are not as they should be, by test."""
    report = folder / "report.json"
    words = ["-q", "-p", "no:cacheprovider", "--pyargs", "dovetail.testing.suites.test_contract"]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--dovetail-platform=odd"]
        + [f"--dovetail-report={report}"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert report.exists(), answer.stdout + answer.stderr
    results = json.loads(report.read_text())["results"]
    assert len(results) > 15
    return {r["test"]: r["message"] for r in results if r["outcome"] != "passed"}


CONTRACTS = {
    "kept": ({}, {}),
    "loud": ({"client": "print('the driver\\nsays hello')"}, {}),
    "broken": (
        {
            "imports": "import dovetail._core.base.errors",
            "capabilities": "{'spmd'}",
            "probe": "import odd_driver",
        },
        {
            "test_plugin_imports_only_what_is_promised": "imports dovetail._core.base.errors",
            "test_several_devices_are_those_of_pjrt": "the capability 'spmd'",
            "test_probe_is_pure": "dovetail_probe imports odd_driver.",
        },
    ),
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_contracts(written, tmp_path, name):
    lines, expected = CONTRACTS[name]
    written(**lines)
    found = contract(tmp_path)
    assert found.keys() == expected.keys(), found
    for test, message in expected.items():
        assert message in found[test]


#: What a hook may not do, and what is said of it.
DEEDS = {
    "__import__('threading').Thread(target=print).start()": "starts a thread",
    "__import__('_thread').start_new_thread(print, ())": "starts a thread",
    "__import__('time').sleep(0.001)": "waits",
    "__import__('os').symlink('a', 'link')": "makes a link",
    "__import__('os').link('file', 'link')": "makes a link",
    "__import__('os').truncate('file', 0)": "changes a file",
    "__import__('os').chmod('file', 0o600)": "changes a file",
    "__import__('os').utime('file')": "changes a file",
    "__import__('os').rmdir('folder')": "removes a folder",
    "__import__('os').chdir('folder')": "changes the folder",
    "__import__('os').kill(0, 0)": "sends a signal",
    "__import__('shutil').copymode('file', 'folder')": "changes files",
    "__import__('sqlite3').connect(':memory:')": "opens a database",
    "open('file', 'a')": "writes to 'file'",
}


@pytest.mark.parametrize("hook", ["describe", "probe"])
def test_deeds(written, tmp_path, monkeypatch, hook):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    each = f"for line in {list(DEEDS)}:"
    # One after the other, whether or not they succeed.
    written(**{hook: f"{each}\n        try: eval(line)\n        except OSError: pass"})
    phases = examine("odd_backend.plugin", "odd")
    phase = phases.described if hook == "describe" else phases.probed
    assert phase.error == ""
    for line, deed in DEEDS.items():
        assert any(found.startswith(deed) for found in phase.deeds), f"{line}: {phase.deeds}"
    assert phases.imported.deeds == []


def test_answers_of_hooks_by_other_names(written):
    written()
    phases = examine("odd_backend.plugin", "odd")
    assert phases.described.answers[0].startswith("BackendInfo: ")
    assert phases.probed.answers == ["str: ''"] * 2


def test_a_function_without_the_marker_is_no_hook():
    class Plugin:
        def dovetail_make_client(self, platform, options):
            """Not marked."""

    assert hooks_of(Plugin()).dovetail_make_client.get_hookimpls() == []


WAITING = {
    "describe": "^dovetail_backend_info did not return within 1 seconds",
    "probe": "in look",
    "imports": "in <module>",
}


@pytest.mark.parametrize("where", WAITING)
def test_what_does_not_return_is_named(written, where):
    written(**{where: "__import__('threading').Event().wait()"})
    with pytest.raises(TimeoutError, match=WAITING[where]):
        examine("odd_backend.plugin", "odd", patience=1)


def test_a_client_that_does_not_return_ends_the_session(written, monkeypatch):
    """What waits in a process of the doctor's would wait in this one, too."""
    written(client="__import__('time').sleep(60)")
    monkeypatch.setattr(test_contract, "PATIENCE", 5.0)
    session = SimpleNamespace(shouldfail=False)
    plugin = SimpleNamespace(platform="odd", origin="odd-backend")
    with pytest.raises(AssertionError, match=r"did not return within 4.5 seconds, .* in connect"):
        test_contract.test_doctor_lists_the_platform_as_ready(
            plugin, SimpleNamespace(session=session)
        )
    assert "did not return" in session.shouldfail


def test_a_doctor_that_does_not_return_ends_the_session(monkeypatch):
    def late(*words):
        raise TimeoutError("the doctor did not return")

    monkeypatch.setattr(test_contract, "run_module", late)
    session = SimpleNamespace(shouldfail=False)
    plugin, request = manager().load("cpu"), SimpleNamespace(session=session)
    with pytest.raises(TimeoutError):
        test_contract.test_doctor_lists_the_platform_as_ready(plugin, request)
    assert session.shouldfail == "the doctor: the doctor did not return"


def test_a_process_that_ends(written):
    written(imports="__import__('os')._exit(3)")
    with pytest.raises(RuntimeError, match=r"importing odd_backend.plugin ended the process"):
        examine("odd_backend.plugin", "odd")
