"""`python -m dovetail`: what it prints and how it exits."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import dovetail.__main__
from dovetail._core.plugins import doctor
from dovetail._core.plugins.manager import PluginManager
from dovetail.extend import BackendInfo, hookimpl


def _run(*words, folder=None, **variables):
    environment = {**os.environ, **variables}
    for name in ("DOVETAIL_PLATFORMS", "JAX_PLATFORMS"):
        if name not in variables:
            environment.pop(name, None)
    if folder is not None:
        paths = [str(folder), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return subprocess.run(
        [sys.executable, "-m", "dovetail", *words],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )


def _words(text):
    """A text without its columns, whose widths depend on what is installed."""
    return " ".join(text.split())


def test_without_words_it_helps(capsys):
    assert dovetail.__main__.main([]) == 0
    assert "doctor" in capsys.readouterr().out


def test_the_version(capsys):
    with pytest.raises(SystemExit) as caught:
        dovetail.__main__.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"dovetail {dovetail.__version__}\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["docter"], "unknown command 'docter': did you mean 'doctor'?"),
        (["new-backnd", "acme"], "unknown command 'new-backnd': did you mean 'new-backend'?"),
        (["zzz"], "unknown command 'zzz': choose from doctor, new-backend"),
        (["doctor", "--jason"], "unrecognized arguments: --jason"),
    ],
)
def test_unknown_words_are_refused(capsys, words, says):
    with pytest.raises(SystemExit) as caught:
        dovetail.__main__.main(words)
    assert caught.value.code == 2
    assert says in capsys.readouterr().err


def test_a_sound_installation():
    answer = _run("doctor")
    assert answer.returncode == 0, answer.stdout
    for text in (
        "cpu ready 0 dovetail-cpu",
        "cpu:0",
        "cuda cannot run here 200 dovetail-cuda",
        "Default platform: cpu",
        "highest priority (0)",
        "numpy dovetail-numpy",
        "Threads on the CPU: ",
        "Compilation cache: ",
        "No problems found.",
    ):
        assert text in _words(answer.stdout)
    assert answer.stderr == ""


def test_as_json():
    answer = _run("doctor", "--json")
    data = json.loads(answer.stdout)
    assert answer.returncode == data["exit_code"] == 0
    states = {b["platform"]: b["state"] for b in data["backends"] if b["priority"] >= 0}
    assert states == {"cpu": "ready", "cuda": "cannot run here", "tpu": "cannot run here"}
    assert data["default_platform"] == "cpu"
    assert set(data["versions"]) >= {"python", "dovetail-core", "jaxlib", "numpy"}
    assert data["problems"] == []


@pytest.mark.parametrize(
    ("phase", "more"),
    {
        "import": None,
        "probe": "@hookimpl\ndef dovetail_probe(): raise OSError('driver 1 is too old')\n",
        "lowerings": "@hookimpl\ndef dovetail_lowerings(): raise ValueError('no table')\n",
        "client": "@hookimpl\ndef dovetail_make_client(): raise OSError('the board is busy')\n",
    }.items(),
)
def test_something_broken(install, source, phase, more):
    install.backend("bad", "import absent_driver" if more is None else source("bad", more=more))
    answer = _run("doctor", folder=install.folder)
    assert answer.returncode == 1
    assert "bad broken" in _words(answer.stdout)
    assert f"bad: failed at {phase}: " in answer.stdout
    assert f"bad (from acme-bad 1.0) failed at {phase}" in answer.stdout.partition("Problems")[2]
    assert "cpu ready" in _words(answer.stdout)


def test_a_plugin_that_exits_does_not_end_the_doctor(install):
    install.backend("bad", "import sys; sys.exit(0)")
    answer = _run("doctor", folder=install.folder)
    assert answer.returncode == 1
    assert "SystemExit: 0" in answer.stdout


def test_what_is_left_out_is_not_loaded(install):
    install.backend("bad", "print('imported')")
    answer = _run("doctor", folder=install.folder, DOVETAIL_PLATFORMS="cpu")
    assert answer.returncode == 0
    assert "imported" not in answer.stdout
    assert "bad left out" in _words(answer.stdout)
    assert "DOVETAIL_PLATFORMS=cpu leaves it out" in answer.stdout
    assert "DOVETAIL_PLATFORMS=cpu names it first" in answer.stdout


@pytest.mark.parametrize("asked", ["cuda", "nowhere"])
def test_a_request_that_cannot_be_met(asked):
    answer = _run("doctor", DOVETAIL_PLATFORMS=asked)
    assert answer.returncode == 1
    assert "Default platform: none" in answer.stdout
    assert f"no default platform: DOVETAIL_PLATFORMS={asked}" in answer.stdout
    assert "cpu: not started: there is no default platform\n" in answer.stdout


def test_an_option_that_cannot_be_read():
    answer = _run("doctor", DOVETAIL_ENABLE_X64="perhaps")
    assert answer.returncode == 1
    assert "dovetail cannot start: ValueError" in answer.stdout
    assert "DOVETAIL_ENABLE_X64" in answer.stdout


def test_two_distributions_with_one_platform(install, source):
    install("zzz-cpu", {"cpu": "zzz_cpu"}, {"zzz_cpu": source("cpu")})
    answer = _run("doctor", folder=install.folder)
    assert answer.returncode == 1
    assert "zzz-cpu 1.0 and dovetail-cpu" in answer.stdout
    assert "cpu ready 0 dovetail-cpu" in _words(answer.stdout)


def test_a_distribution_that_calls_itself_by_our_name(install, source):
    install("Dovetail.Cpu", {"cpu": "evil_cpu"}, {"evil_cpu": source("cpu")}, version="9")
    answer = _run("doctor", folder=install.folder)
    assert answer.returncode == 1
    assert f"Dovetail.Cpu 9 in {install.folder} calls itself dovetail-cpu" in answer.stdout
    assert "cpu ready 0 dovetail-cpu" in _words(answer.stdout)


def test_plugins_that_are_left_out_by_name(install, source):
    install.backend("bad", "import os; os.abort()")
    answer = _run("doctor", folder=install.folder, DOVETAIL_DISABLED_PLUGINS="Acme_Bad,absent")
    assert answer.returncode == 0, answer.stdout
    assert "bad left out" in _words(answer.stdout)
    assert "bad: the option disabled_plugins='Acme_Bad,absent' leaves it out" in answer.stdout
    assert "the option disabled_plugins names 'absent', and no plug-in" in answer.stdout


@pytest.mark.parametrize("text", ["0", "-1", "nan", "x", "inf"])
def test_a_time_that_is_none(capsys, text):
    with pytest.raises(SystemExit):
        dovetail.__main__.main(["doctor", f"--timeout={text}"])
    assert "--timeout" in capsys.readouterr().err


def test_the_conformance_kit_is_named_where_it_is_installed(install):
    assert "dovetail-testing" in doctor.versions()
    install("dovetail-testing", {}, {}, version="0.0.1")
    report = doctor.examine(PluginManager())
    assert "dovetail-testing 0.0.1" in doctor.as_text(report).splitlines()[0]
    assert any("dovetail-testing 0.0.1 does not match dovetail-core" in p for p in report.problems)


def test_versions_that_do_not_match(install, source):
    install("dovetail-npu", {"npu": "npu_plugin"}, {"npu_plugin": source("npu")}, version="0.0.1")
    report = doctor.examine(PluginManager())
    assert any(
        "dovetail-npu 0.0.1 does not match dovetail-core" in text for text in report.problems
    )


def test_nothing_is_installed():
    report = doctor.examine(PluginManager(lambda group: []))
    assert report.exit_code == 1
    assert 'Backends: none is installed. pip install "dovetail-core[cpu]"' in doctor.as_text(report)


def test_a_machine_without_hardware_is_not_broken():
    class Absent:
        @hookimpl
        def dovetail_backend_info(self):
            return BackendInfo("absent", (1, 0), 5)

        @hookimpl
        def dovetail_probe(self):
            return "there is no board."

    manager = PluginManager()
    manager.register(Absent(), "absent plug-in")
    report = doctor.examine(manager)
    (backend,) = (b for b in report.backends if b.platform == "absent")
    assert (backend.state, backend.reason) == ("cannot run here", "there is no board.")
    assert report.exit_code == 0, report.problems


def test_a_client_that_cannot_list_its_devices(install, source):
    more = """
        from unittest.mock import Mock
        @hookimpl
        def dovetail_make_client():
            return Mock(devices=Mock(side_effect=OSError("the cable is out")))
        """
    install.backend("bad", source("bad", more=more))
    report = doctor.examine(PluginManager())
    assert "bad (from acme-bad 1.0) failed at client: OSError: the cable is out" in report.problems


def test_environment_info_for_bug_reports():
    code = "import dovetail; dovetail.print_environment_info()"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    for text in ("jaxlib: ", "default platform: cpu", "cpu devices: ", "compilation cache: "):
        assert text in answer.stdout


@pytest.mark.parametrize("asked", ["cuda", "abacus", "cuda,tpu"])
def test_platforms_that_cannot_be_had_break_no_other_backend(asked):
    data = json.loads(_run("doctor", "--json", DOVETAIL_PLATFORMS=asked).stdout)
    states = {backend["platform"]: backend["state"] for backend in data["backends"]}
    assert states["cpu"] == "left out"
    (problem,) = data["problems"]
    assert problem.startswith(f"no default platform: DOVETAIL_PLATFORMS={asked}")
