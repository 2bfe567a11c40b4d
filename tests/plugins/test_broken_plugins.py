"""Plug-ins that end their process, hang or meddle: what becomes of it, and what is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from dovetail._core.plugins import attempts, trials
from dovetail._core.plugins.discovery import BACKENDS
from dovetail._core.plugins.surroundings import Surroundings

PLUGIN = """
from dovetail.extend import BackendInfo, hookimpl
{top}

@hookimpl
def dovetail_backend_info():
    {info}
    return BackendInfo("{platform}", (1, 0), -5)

@hookimpl
def dovetail_probe(platform):
    {probe}
    return {missing!r}

@hookimpl
def dovetail_environment(platform):
    {environment}
    return {{}}

@hookimpl
def dovetail_lowerings(platform):
    {lowerings}
    return {{}}

@hookimpl
def dovetail_compile_options(platform):
    {options}
    return {{}}

class Client:
    platform_version = "1"
    compile = copy = put = process_index = lambda *args: None

    def devices(self):
        {devices}
        return []

    local_devices = devices

@hookimpl
def dovetail_make_client(platform):
    {client}
    return Client()
"""
PLACES = ("top", "info", "probe", "environment", "lowerings", "options", "client", "devices")


def plugin(platform: str, missing: str = "", **lines: str) -> str:
    """Source of a backend with a line of code in some places."""
    return PLUGIN.format(
        **{**dict.fromkeys(PLACES, "pass"), "platform": platform, "missing": missing, **lines}
    )


SEGMENTATION_FAULT = "__import__('ctypes').string_at(0)"
ABORT = "__import__('os').abort()"
EXIT = "__import__('os')._exit(3)"
SLEEP = "__import__('time').sleep(1000)"
CHATTER = "import sys; sys.stderr.write('y' * 9_000_000 + '\\nthe last words\\n')"

# By what the plug-in does: where, the line, the phase, and what the reason holds.
ENDS = {
    "a segmentation fault at import": (
        "top",
        SEGMENTATION_FAULT,
        "import",
        'by SIGSEGV (Segmentation fault), in File "',
    ),
    "abort at import": ("top", ABORT, "import", "by SIGABRT"),
    "_exit at import": ("top", EXIT, "import", "with the exit code 3"),
    "_exit with success at import": (
        "top",
        "__import__('os')._exit(0)",
        "import",
        "with the exit code 0",
    ),
    "a signal to itself": (
        "top",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import",
        "by SIGKILL",
    ),
    "much output and abort": ("top", f"{CHATTER}; {ABORT}", "import", "by SIGABRT"),
    "an end in another thread": (
        "top",
        "import os, threading; t = threading.Thread(target=os.abort); t.start(); t.join()",
        "import",
        "by SIGABRT",
    ),
    "files that are all closed": (
        "top",
        "import os; os.closerange(0, 256)",
        "import",
        "with the exit code",
    ),
    "an interrupt of its own": ("top", "raise KeyboardInterrupt", "import", "by SIGINT"),
    "SystemExit at import": ("top", "raise SystemExit(0)", "import", "SystemExit: 0"),
    "GeneratorExit at import": ("top", "raise GeneratorExit", "import", "GeneratorExit"),
    "an exception of no kind": (
        "top",
        "raise type('Odd', (BaseException,), {})('x')",
        "import",
        "Odd: x",
    ),
    "endless recursion": (
        "top",
        "f = lambda: f(); f()",
        "import",
        "RecursionError: maximum recursion",
    ),
    "a segmentation fault in info": ("info", SEGMENTATION_FAULT, "info", "by SIGSEGV"),
    "_exit in info": ("info", EXIT, "info", "with the exit code 3"),
    "a segmentation fault in probe": ("probe", SEGMENTATION_FAULT, "probe", "by SIGSEGV"),
    "_exit in probe": ("probe", EXIT, "probe", "with the exit code 3"),
    "SystemExit in probe": ("probe", "raise SystemExit(2)", "probe", "SystemExit: 2"),
    "abort in environment": ("environment", ABORT, "environment", "by SIGABRT"),
    "abort in lowerings": ("lowerings", ABORT, "lowerings", "by SIGABRT"),
    "abort in compile options": ("options", ABORT, "compile options", "by SIGABRT"),
    "a segmentation fault in client": ("client", SEGMENTATION_FAULT, "client", "by SIGSEGV"),
    "abort in client": ("client", ABORT, "client", "by SIGABRT"),
    "_exit in client": ("client", EXIT, "client", "with the exit code 3"),
    "SystemExit in client": ("client", "raise SystemExit(1)", "client", "SystemExit: 1"),
    "abort in devices": ("devices", ABORT, "client", "by SIGABRT"),
}
HANGS = {
    "sleep at import": ("top", SLEEP, "import", "in <module>"),
    "a loop at import": ("top", "while True: pass", "import", "in <module>"),
    "a lock at import": (
        "top",
        "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
        "import",
        "in <module>",
    ),
    "native code that keeps the interpreter": (
        "top",
        "import ctypes; ctypes.PyDLL(None).sleep(1000)",
        "import",
        "in <module>",
    ),
    "a process that stops": (
        "top",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        "import",
        "did not return",
    ),
    "sleep in info": ("info", SLEEP, "info", "in dovetail_backend_info"),
    "sleep in probe": ("probe", SLEEP, "probe", "in dovetail_probe"),
    "sleep in environment": ("environment", SLEEP, "environment", "in dovetail_environment"),
    "sleep in lowerings": ("lowerings", SLEEP, "lowerings", "in dovetail_lowerings"),
    "sleep in client": ("client", SLEEP, "client", "in dovetail_make_client"),
}
# Plug-ins that answer, and do not let their process end well.
LATE = {
    "abort at exit": ("import atexit, os; atexit.register(os.abort)", "by SIGABRT"),
    "a thread that stays": (
        "import threading; threading.Thread(target=threading.Event().wait).start()",
        "did not return",
    ),
}


@pytest.fixture(scope="module")
def examined(tmp_path_factory, installer):
    """What the doctor says of plug-ins, by platform; every backend that is tried is one of them."""

    def examine(sources: dict[str, str], *words: str) -> dict:
        folder = tmp_path_factory.mktemp("site")
        install = installer(folder)
        for platform, source in sources.items():
            install.backend(platform, source)
        answer = _python("-m", "dovetail", "doctor", "--json", *words, folder=folder)
        assert answer.stderr == "" or answer.stderr.startswith("waiting for"), answer.stderr
        return json.loads(answer.stdout)

    return examine


def _python(*words, folder, **variables):
    environment = {**os.environ, "PYTHONPATH": _path(folder), **variables}
    for name in ("DOVETAIL_PLATFORMS", "JAX_PLATFORMS"):
        if name not in variables:
            environment.pop(name, None)
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environment, timeout=300
    )


def _path(folder):
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))


def _platforms(table):
    return {name: f"bad{number}" for number, name in enumerate(table)}


def _sources(table):
    names = _platforms(table)
    return {names[n]: plugin(names[n], **{place: line}) for n, (place, line, *_) in table.items()}


@pytest.fixture(scope="module")
def ended(examined):
    """The report on all of `ENDS` at once."""
    return examined(_sources(ENDS))


@pytest.fixture(scope="module")
def hung(tmp_path_factory, installer):
    """What came of all of `HANGS`, and of those that end late, at once: their failures, as text."""
    folder = tmp_path_factory.mktemp("site")
    install = installer(folder)
    sources = _sources(HANGS)
    for number, (line, _) in enumerate(LATE.values()):
        sources[f"late{number}"] = plugin(f"late{number}", top=line)
    for platform, source in sources.items():
        install.backend(platform, source)
    with pytest.MonkeyPatch.context() as context:
        context.syspath_prepend(str(folder))
        context.setattr(trials, "_AT_ONCE", len(sources))  # they wait
        results, _ = trials.run_trials([[(BACKENDS, name)] for name in sources], 4.0)
    return {
        name: [(phase, str(error)) for phase, error in trial.failures]
        for (_, name), trial in results.items()
    }


def _agrees(report, platform, phase, text):
    backends = {backend["platform"]: backend for backend in report["backends"]}
    assert backends["cpu"]["state"] == "ready", "the others work"
    assert report["default_platform"] == "cpu"
    backend = backends[platform]
    assert (backend["state"], backend["phase"]) == ("broken", phase)
    assert text in backend["reason"]
    assert any(
        problem.startswith(f"{platform} (from acme-{platform} 1.0) failed at {phase}")
        for problem in report["problems"]
    )


@pytest.mark.parametrize("what", ENDS)
def test_the_doctor_survives_what_ends_a_process(ended, what):
    _agrees(ended, _platforms(ENDS)[what], *ENDS[what][2:])


@pytest.mark.parametrize("what", HANGS)
def test_a_trial_does_not_last_for_ever(hung, what):
    expected, text = HANGS[what][2:]
    ((phase, error),) = hung[_platforms(HANGS)[what]]
    assert phase == expected
    assert error.startswith("it did not return within 4 seconds")
    assert text in error


@pytest.mark.parametrize("what", LATE)
def test_a_bad_end_is_a_failure(hung, what):
    phase, error = hung[f"late{list(LATE).index(what)}"][-1]
    assert phase == "exit"
    assert LATE[what][1] in error


def test_the_line_of_the_plugin_is_named(ended):
    platform = _platforms(ENDS)["a segmentation fault at import"]
    (reason,) = (b["reason"] for b in ended["backends"] if b["platform"] == platform)
    assert f'acme_{platform}.py", line 3 in <module>' in reason


def test_what_a_plugin_writes_is_shortened(ended):
    text = ended["output"][f"{_platforms(ENDS)['much output and abort']}, stderr"]
    assert text.endswith("the last words")
    assert "(of 9000016 bytes)" in text
    assert len(text) < 1000


def test_a_crash_among_plugins_that_share_a_process(monkeypatch, tmp_path, installer):
    """The others are tried again, each alone."""
    install = installer(tmp_path)
    install.backend("bad", plugin("bad", probe=ABORT))
    for platform in ("first", "last"):
        install.backend(platform, plugin(platform, missing="there is no board"))
    monkeypatch.syspath_prepend(str(tmp_path))
    batch = [(BACKENDS, name) for name in ("first", "bad", "last")]
    results, _ = trials.run_trials([batch])
    missing = {name: trial.known.get("missing") for (_, name), trial in results.items()}
    assert missing == {"first": "there is no board", "bad": None, "last": "there is no board"}
    ((phase, error),) = results[BACKENDS, "bad"].failures
    assert phase == "probe"
    assert str(error).startswith("it ended its process by SIGABRT (Aborted), in File ")


# ----------------------------------------------------------------------- what is left as it was

# By what is changed: the line, an expression that is the same before and after, what is told.
CHANGES = {
    "stdout": ("sys.stdout = open(os.devnull, 'w')", "id(sys.stdout)", "replaced sys.stdout"),
    "stderr": ("sys.stderr = None", "id(sys.stderr)", "replaced sys.stderr"),
    "stdout closed": ("sys.stdout.close()", "sys.stdout.closed", "closed sys.stdout"),
    "file of stdout": (
        "os.dup2(os.open(os.devnull, os.O_WRONLY), 1)",
        "os.fstat(1).st_ino",
        "redirected the file of sys.stdout",
    ),
    "numpy": (
        "sys.modules['numpy'] = type(sys)('numpy')",
        "id(__import__('numpy'))",
        "replaced or removed the modules numpy",
    ),
    "dovetail": (
        "sys.modules['dovetail.lax'] = type(sys)('lax')",
        "id(sys.modules['dovetail.lax']), id(dovetail.lax)",
        "replaced or removed the modules dovetail.lax",
    ),
    "a module taken away": (
        "del sys.modules['json']",
        "id(sys.modules['json'])",
        "replaced or removed the modules json",
    ),
    "a variable": ("os.environ['HOME'] = '/x'", "os.environ['HOME']", "variables HOME"),
    "a variable taken away": ("del os.environ['PATH']", "os.environ['PATH']", "variables PATH"),
    "a variable of XLA's": (
        "os.environ['XLA_FLAGS'] = '--xla_no_such_flag'",
        "os.environ.get('XLA_FLAGS')",
        "variables XLA_FLAGS",
    ),
    "the folder": ("os.chdir('/')", "os.getcwd()", "changed the current folder"),
    "filters of warnings": (
        "import warnings; warnings.simplefilter('ignore')",
        "[f[:2] for f in warnings.filters if f[3] is None]",
        "changed the filters of warnings",
    ),
    "filters taken away": (
        "import warnings; warnings.resetwarnings()",
        "[f[:2] for f in warnings.filters if f[3] is None]",
        "changed the filters of warnings",
    ),
    "the search path": (
        "sys.path.insert(0, '/acme')",
        "sys.path[0]",
        "changed the order of sys.path",
    ),
    "a signal": (
        "import signal; signal.signal(signal.SIGTERM, lambda *_: None)",
        "signal.getsignal(signal.SIGTERM)",
        "replaced the handler of the signal SIGTERM",
    ),
    "Ctrl-C": (
        "import signal; signal.signal(signal.SIGINT, print)",
        "id(signal.getsignal(signal.SIGINT))",
        "replaced the handler of the signal SIGINT",
    ),
    "the recursion limit": (
        "sys.setrecursionlimit(12345)",
        "sys.getrecursionlimit()",
        "changed the recursion limit",
    ),
    "the locale": (
        "import locale; locale.setlocale(locale.LC_ALL, 'C.UTF-8')",
        "locale.setlocale(locale.LC_ALL)",
        "changed the locale",
    ),
    "errors of NumPy": (
        "import numpy; numpy.seterr(all='raise')",
        "numpy.geterr()",
        "changed the handling of errors in NumPy",
    ),
    "the garbage collector": ("import gc; gc.disable()", "gc.isenabled()", "garbage collector"),
    "excepthook": ("sys.excepthook = print", "id(sys.excepthook)", "replaced sys.excepthook"),
    "options": (
        "import dovetail; dovetail.config.update('enable_x64', True)",
        "dovetail.config.enable_x64",
        "changed options of dovetail",
    ),
}
KEPT = {
    "a variable of its own": ("os.environ['ACME_HOME'] = '/acme'", "os.environ['ACME_HOME']"),
    "a folder at the end": ("sys.path.append('/acme')", "sys.path[-1]"),
    "a filter of its own": (
        "import warnings; warnings.filterwarnings('ignore', message='acme')",
        "[f[1].pattern for f in warnings.filters if f[1]][0]",
    ),
    "a module of its own": ("sys.modules['acme_lib'] = sys", "sys.modules['acme_lib'] is sys"),
}
MEDDLERS = """
import gc, json, locale, os, signal, sys, threading, warnings
import numpy
import dovetail, dovetail.lax
from dovetail._core.plugins.manager import manager

written = os.dup(1)
answers = {}
for platform, expression in json.loads(sys.argv[1]).items():
    before = "" if platform.startswith("keeps") else repr(eval(expression))
    count = len(manager().meddling)
    backend = manager().load(platform)
    told = [str(meddling) for meddling in manager().meddling[count:]]
    answers[platform] = [before, repr(eval(expression)), told, backend is not None]
print("still here")
sys.stdout.flush()
os.write(written, json.dumps(answers).encode() + b"\\n")
"""


@pytest.fixture(scope="module")
def meddlers(tmp_path_factory, installer):
    """The answers of one process in which each plug-in of the tables was loaded."""
    folder = tmp_path_factory.mktemp("site")
    install = installer(folder)
    expressions = {}
    for prefix, table in (("changes", CHANGES), ("keeps", KEPT)):
        for number, (line, expression, *_) in enumerate(table.values()):
            name = f"{prefix}{number}"
            install.backend(name, plugin(name, top=f"import os, sys; {line}"))
            expressions[name] = expression
    answer = _python(
        "-c", MEDDLERS, json.dumps(expressions), folder=folder, XDG_CACHE_HOME=str(folder)
    )
    assert answer.returncode == 0, answer.stderr
    said, line = answer.stdout.splitlines()
    assert said == "still here"
    return json.loads(line)


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_plugin_changes_is_put_back(meddlers, what):
    before, after, told, loaded = meddlers[f"changes{list(CHANGES).index(what)}"]
    assert before == after
    assert loaded
    assert any(CHANGES[what][2] in text for text in told), told


@pytest.mark.parametrize("what", KEPT)
def test_what_is_a_plugins_own_stays(meddlers, what):
    _, after, told, _ = meddlers[f"keeps{list(KEPT).index(what)}"]
    assert "acme" in after or after == "True"
    assert told == []


def test_what_other_threads_may_have_changed_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    try:
        surroundings = Surroundings()
        os.chdir("/")
        monkeypatch.setitem(sys.modules, "json", sys)
        changes = list(surroundings.restore())
        surroundings.close()
    finally:
        event.set()
        thread.join()
    assert changes == [("replaced or removed the modules json", True)]
    assert os.getcwd() == "/"
    assert sys.modules["json"] is json


def test_the_doctor_shows_what_was_put_back(examined):
    report = examined(
        {
            "closes": plugin("closes", "no board", top="import sys; sys.stdout.close()"),
            "moves": plugin("moves", "no board", top="import os; os.chdir('/')"),
            "talks": plugin("talks", "no board", top="print('I am here')"),
        }
    )
    assert (
        "closes (from acme-closes 1.0) closed sys.stdout at import; that was undone"
        in (report["problems"])
    )
    assert (
        "moves (from acme-moves 1.0) changed the current folder at import; that was undone"
        in (report["notes"])
    )
    assert report["output"]["talks, stdout"] == "I am here"


# ------------------------------------------------------------------------- notes for later starts

COMPUTE = "import dovetail; print(dovetail.devices()[0].platform)"


@pytest.fixture
def computed(tmp_path, installer):
    """Computes in a process in which a backend is installed that is the default; its source."""
    installer(tmp_path).backend("bad", "")

    def compute(source: str, **variables: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "acme_bad.py").write_text(source.replace("-5", "5"))
        cache = str(tmp_path / "cache")
        return _python("-c", COMPUTE, folder=tmp_path, XDG_CACHE_HOME=cache, **variables)

    return compute


@pytest.mark.parametrize(
    ("place", "phase"), [("info", "info"), ("probe", "probe"), ("client", "client")]
)
def test_the_next_start_says_where_the_last_one_ended(computed, place, phase):
    source = plugin("bad", **{place: ABORT})
    computed(source)
    second = computed(source)
    assert second.returncode == -signal.SIGABRT, "it is tried again"
    assert f"plug-in bad (from acme-bad 1.0) ended at '{phase}'" in second.stderr


def test_the_next_starts_name_the_plugin_that_ended_the_last_one(computed, tmp_path):
    source = plugin("bad", top=SEGMENTATION_FAULT)
    first, second, third = (computed(source) for _ in range(3))
    assert first.returncode == second.returncode == third.returncode == -signal.SIGSEGV
    assert "RuntimeWarning" not in first.stderr
    assert "plug-in bad (from acme-bad 1.0) ended at 'import' of this plug-in: " in second.stderr
    assert "may have crashed it" in second.stderr
    assert "as 2 did since it worked" in third.stderr
    for name, value in {"DOVETAIL_DISABLED_PLUGINS": "bad", "DOVETAIL_PLATFORMS": "cpu"}.items():
        assert name in third.stderr
        cured = computed(source, **{name: value})
        assert (cured.returncode, cured.stdout, cured.stderr) == (0, "cpu\n", "")
    mended = [computed(plugin("bad", "there is no board")) for _ in range(2)]
    assert [answer.stdout for answer in mended] == ["cpu\n"] * 2
    assert "as 3 did" in mended[0].stderr
    assert mended[1].stderr == "", "it worked"
    assert os.listdir(tmp_path / "cache" / "dovetail" / "plug-ins") == []


def test_a_plugin_that_is_waited_for_is_named(tmp_path, installer):
    installer(tmp_path).backend("slow", plugin("slow", top=SLEEP))
    environment = {
        **os.environ,
        "PYTHONPATH": _path(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "DOVETAIL_SLOW_PLUGIN_SECONDS": "0.1",
    }
    environment.pop("DOVETAIL_PLATFORMS", None)
    with subprocess.Popen(
        [sys.executable, "-c", COMPUTE], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stderr.readline()
        other = _python(
            "-c",
            "from dovetail._core.plugins.attempts import earlier\n"
            "print(earlier('slow', 'acme-slow 1.0').times)",
            folder=tmp_path,
            XDG_CACHE_HOME=str(tmp_path / "cache"),
        )
        process.kill()
    assert "waiting for 0.1 s for the plug-in slow (from acme-slow 1.0), at 'import'" in line
    assert "DOVETAIL_DISABLED_PLUGINS=slow" in line
    assert other.stdout == "0\n", "a process that runs has not ended"


def test_plain_use_of_the_cpu_writes_no_notes(tmp_path):
    code = COMPUTE + (
        "; import sys; print(*[m for m in sys.modules if m.startswith('dovetail._core.plugins.')])"
    )
    answer = _python(
        "-c", code, folder=tmp_path, XDG_CACHE_HOME=str(tmp_path), DOVETAIL_PLATFORMS="cpu"
    )
    assert answer.stdout.startswith("cpu\n"), answer.stderr
    assert not {"attempts", "surroundings", "trials", "doctor"} & {
        name.rpartition(".")[2] for name in answer.stdout.split()
    }
    assert not (tmp_path / "dovetail" / "plug-ins").exists()


def test_notes_that_cannot_be_written_are_left_out(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert attempts.begin("acme", "acme 1.0", "import", 1) is None
    attempts.end(None)
    assert attempts.earlier("acme", "acme 1.0").times == 0


def test_a_note_holds_for_one_plugin_of_one_environment(monkeypatch):
    attempt = attempts.begin("acme", "acme 1.0", "client", 1)
    assert attempts.earlier("acme", "acme 1.0").times == 0, "its process is alive"
    os.close(attempt.file)
    assert attempts.earlier("other", "acme 1.0").times == 0
    with monkeypatch.context() as context:
        context.setattr(sys, "prefix", "/elsewhere")
        assert attempts.earlier("acme", "acme 1.0").times == 0
    assert attempts.earlier("acme", "acme 1.0") == ("client", 1)
    assert attempts.earlier("acme", "acme 1.0").times == 0, "it is told once"


@pytest.mark.parametrize("text", ["", "import", "import\nx\n", "\xff" * 300])
def test_a_damaged_note_is_removed(text):
    attempt = attempts.begin("acme", "acme 1.0", "import", 1)
    os.close(attempt.file)
    with open(attempt.path, "w", encoding="latin-1") as file:
        file.write(text)
    assert attempts.earlier("acme", "acme 1.0").times == 0
    assert not os.path.exists(attempt.path)
