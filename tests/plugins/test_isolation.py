"""A plug-in that fails is kept with the phase it failed at, and harms nobody."""

from __future__ import annotations

import subprocess
import sys
import threading
import types

import pytest

from dovetail.errors import BackendUnavailableError
from dovetail.extend import ArrayMethods, BackendInfo, PluginFailure, hookimpl

BROKEN = {
    # phase and exception, then the source of a module of the backend `bad`
    "a module that is not there": ("import", ModuleNotFoundError, "import a_driver_not_there"),
    "a module that exits": ("import", SystemExit, "import sys; sys.exit(3)"),
    "a syntax error": ("import", SyntaxError, "def ("),
    "no hook at all": ("register", TypeError, "x = 1"),
    "an unknown hook": (
        "register",
        TypeError,
        "from dovetail.extend import hookimpl\n@hookimpl\ndef dovetail_porbe(platform): ...\n",
    ),
    "an argument that the hook does not have": (
        "register",
        Exception,
        "from dovetail.extend import hookimpl\n"
        "@hookimpl\ndef dovetail_make_client(platform, surprise): ...\n",
    ),
    "a hook without its mark": (
        "register",
        TypeError,
        "from dovetail.extend import *\n"
        "@hookimpl\ndef dovetail_probe(): return ''\n"
        "def dovetail_backend_info(): return BackendInfo('bad', (1, 0))\n",
    ),
    "no description": (
        "info",
        TypeError,
        "from dovetail.extend import *\n@hookimpl\ndef dovetail_probe(): return ''\n",
    ),
    "a description of another kind": (
        "info",
        TypeError,
        "from dovetail.extend import *\n@hookimpl\ndef dovetail_backend_info(): return 'bad'\n",
    ),
    "a description that exits": (
        "info",
        SystemExit,
        "from dovetail.extend import *\n"
        "@hookimpl\ndef dovetail_backend_info(): raise SystemExit(1)\n",
    ),
    "the name of another platform": (
        "info",
        ValueError,
        "from dovetail.extend import *\n"
        "@hookimpl\ndef dovetail_backend_info(): return BackendInfo('good', (1, 0))\n",
    ),
    "a version that is no version": (
        "info",
        TypeError,
        "from dovetail.extend import *\n"
        "@hookimpl\ndef dovetail_backend_info(): return BackendInfo('bad', '1.0')\n",
    ),
    "a later major version": (
        "version",
        BackendUnavailableError,
        "from dovetail.extend import *\n"
        "@hookimpl\ndef dovetail_backend_info(): return BackendInfo('bad', (2, 0))\n",
    ),
    "a later minor version": (
        "version",
        BackendUnavailableError,
        "from dovetail.extend import *\n"
        "@hookimpl\ndef dovetail_backend_info(): return BackendInfo('bad', (1, 99))\n",
    ),
    "an earlier major version": (
        "version",
        BackendUnavailableError,
        "from dovetail.extend import *\n"
        "@hookimpl\ndef dovetail_backend_info(): return BackendInfo('bad', (0, 9))\n",
    ),
}


@pytest.mark.parametrize(("phase", "error", "text"), BROKEN.values(), ids=BROKEN)
def test_loading(install, manager, phase, error, text):
    install.backend("bad", text)
    assert manager.load("bad") is None
    (failure,) = manager.failures
    assert (failure.name, failure.distribution, failure.phase) == ("bad", "acme-bad 1.0", phase)
    assert isinstance(failure.error, error)
    assert manager.load("bad") is None, "and it is not tried again"
    assert len(manager.failures) == 1
    assert manager.load("cpu") is not None
    with pytest.raises(BackendUnavailableError) as caught:
        manager.require("bad")
    message = str(caught.value)
    assert f"platform 'bad' cannot be used: bad (from acme-bad 1.0) failed at {phase}" in message
    assert "Update or reinstall acme-bad" in message
    assert caught.value.__cause__ is failure.error


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "an unknown hook": "there is no hook dovetail_porbe; did you mean dovetail_probe?",
        "a hook without its mark": "write @hookimpl above it",
        "no description": "implements no dovetail_backend_info",
        "a later minor version": "plug-in API 1.99 and this dovetail has 1.4: update dovetail",
        "an earlier major version": "update the backend",
    }.items(),
)
def test_messages_say_what_to_write(install, manager, name, expected):
    install.backend("bad", BROKEN[name][2])
    assert manager.load("bad") is None
    assert expected in str(manager.failures[-1])


def test_keyboard_interrupt_passes(install, manager):
    install.backend("bad", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        manager.load("bad")


LATER = {
    "probe raises": (
        "probe",
        "@hookimpl\ndef dovetail_probe(): raise OSError('driver 1 is too old')\n",
        "driver 1 is too old",
    ),
    "probe gives a number": ("probe", "@hookimpl\ndef dovetail_probe(): return 3\n", "returned 3"),
    "probe exits": ("probe", "@hookimpl\ndef dovetail_probe(): raise SystemExit('no')\n", "no"),
    "environment raises": (
        "environment",
        "@hookimpl\ndef dovetail_environment(): raise ValueError('no home')\n",
        "no home",
    ),
    "client raises": (
        "client",
        "@hookimpl\ndef dovetail_make_client(): raise RuntimeError('the board is busy')\n",
        "the board is busy",
    ),
    "client exits": ("client", "@hookimpl\ndef dovetail_make_client(): exit(4)\n", "SystemExit: 4"),
    "no client": ("client", "", "which is no Client: it lacks compile, copy, "),
    "a client without devices": (
        "client",
        "class C:\n    platform = platform_version = ''\n"
        "    compile = put = copy = local_devices = process_index = 0\n"
        "@hookimpl\ndef dovetail_make_client(): return C()\n",
        "it lacks devices",
    ),
    "a device without a hash": (
        "client",
        "class D:\n    __hash__ = None\n"
        "class C:\n    platform_version = ''\n    compile = copy = put = process_index = 0\n"
        "    def devices(self): return [D()]\n    local_devices = devices\n"
        "@hookimpl\ndef dovetail_make_client(): return C()\n",
        "cannot be hashed (unhashable type: 'D'): give D a __hash__ that goes with its __eq__, or",
    ),
}


@pytest.mark.parametrize(("phase", "more", "text"), LATER.values(), ids=LATER)
def test_starting(install, manager, source, phase, more, text):
    install.backend("bad", source("bad", more=more))
    assert manager.load("bad") is not None
    with pytest.raises(BackendUnavailableError) as caught:
        manager.make_client("bad")
    assert f"failed at {phase}" in str(caught.value)
    assert text in str(caught.value)
    assert manager.failures[-1].phase == phase
    assert manager.make_client("cpu").devices(), "the other backend works"


@pytest.mark.parametrize(
    ("phase", "more", "ask"),
    [
        ("lowerings", "dovetail_lowerings(): raise ValueError('x')", "lowerings"),
        ("lowerings", "dovetail_lowerings(): return {'sin': 3}", "lowerings"),
        ("lowerings", "dovetail_lowerings(): return 7", "lowerings"),
        ("compile options", "dovetail_compile_options(): raise ValueError('x')", "compile_options"),
        ("compile options", "dovetail_compile_options(): return 7", "compile_options"),
    ],
)
def test_a_broken_table_is_an_error_and_not_another_program(
    install, manager, source, phase, more, ask
):
    install.backend("bad", source("bad", more=f"@hookimpl\ndef {more}\n"))
    with pytest.raises(BackendUnavailableError, match=f"failed at {phase}"):
        getattr(manager, ask)("bad")


def test_a_client_that_fails_can_be_tried_again(manager):
    class Flaky:
        calls = 0

        @hookimpl
        def dovetail_backend_info(self):
            return BackendInfo("flaky", (1, 0))

        @hookimpl
        def dovetail_make_client(self, platform, options):
            self.calls += 1
            if self.calls == 1:
                raise ConnectionError("not yet")
            return manager.make_client("cpu")

    manager.register(Flaky(), "flaky plug-in")
    with pytest.raises(BackendUnavailableError, match="not yet"):
        manager.make_client("flaky")
    assert [failure.phase for failure in manager.failures] == ["client"]
    assert manager.make_client("flaky").devices()
    assert manager.failures == (), "what was mended is no failure"


def test_a_broken_extension_touches_no_other(install, manager):
    install("acme-bad", {"bad": "acme_bad"}, {"acme_bad": "1/0"}, group="dovetail.extensions")
    install(
        "acme-good",
        {"good": "acme_good"},
        {
            "acme_good": "from dovetail.extend import *\n@hookimpl\n"
            "def dovetail_array_methods(): return ArrayMethods(methods={'acme': abs})\n"
        },
        group="dovetail.extensions",
    )
    assert manager.array_methods().methods["acme"] is abs
    failures = {failure.name: failure for failure in manager.failures}
    assert failures["bad"].phase == "import"
    assert "good" not in failures


def test_two_extensions_that_define_one_method(manager):
    def extension(table):
        module = types.ModuleType("extension")

        def dovetail_array_methods():
            return table

        module.dovetail_array_methods = hookimpl(dovetail_array_methods)
        return module

    first = ArrayMethods(methods={"acme_one": abs}, compiled=frozenset({"acme_one"}))
    second = ArrayMethods(methods={"acme_one": len, "acme_two": len})
    manager.register(extension(first), "acme a")
    manager.register(extension(second), "acme b")
    merged = manager.array_methods()
    assert merged.methods["acme_one"] is abs
    assert "acme_two" not in merged.methods, "all of an extension's table or nothing"
    assert "acme_one" in merged.compiled
    assert "another extension defines for arrays acme_one already" in str(manager.failures[-1])


def test_failures_read_well():
    failure = PluginFailure("acme", "acme-tools 1.0", "client", OSError("line one\n  line two"))
    assert str(failure) == (
        "acme (from acme-tools 1.0) failed at client: OSError: line one line two"
    )
    assert str(PluginFailure("a", "", "import", SystemExit())) == "a failed at import: SystemExit"


def test_a_broken_plugin_does_not_break_the_process(install):
    install.backend("bad", "import sys; sys.exit('never')")
    code = (
        "import sys, warnings; sys.path.insert(0, sys.argv[1]); warnings.simplefilter('ignore')\n"
        "import dovetail; print(dovetail.devices()[0].platform)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(install.folder)], capture_output=True, text=True
    )
    assert (answer.returncode, answer.stdout.strip()) == (0, "cpu"), answer.stderr


def test_threads_import_a_plugin_once(install, manager, source):
    install.backend("slow", "import time; time.sleep(0.05)\n" + source("slow"))
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(manager.load("slow"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len(set(map(id, answers))) == 1
    assert answers[0].platform == "slow"
