"""Which platform is used: the request, the default, and what is said about it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path

import pytest

from dovetail._core.base import config
from dovetail._core.plugins.manager import PluginManager
from dovetail._core.runtime.devices import clients
from dovetail.errors import BackendUnavailableError
from dovetail.extend import BackendInfo, hookimpl


class Backend:
    """A backend in this process, with a chosen answer to the probe."""

    def __init__(self, platform, priority=0, probe="", aliases=()):
        self.info = BackendInfo(platform, (1, 0), priority, aliases)
        self.answer = probe
        self.probed = 0

    @hookimpl
    def dovetail_backend_info(self):
        return self.info

    @hookimpl
    def dovetail_probe(self, platform):
        self.probed += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def alone():
    """Makes a manager with given backends, and none that is installed."""

    def make(*backends):
        made = PluginManager(lambda group: [])
        for backend in backends:
            made.register(backend, f"plug-in {backend.info.platform}")
        return made

    return make


def test_the_default_has_the_highest_priority_of_those_that_can_run(alone):
    made = alone(
        Backend("slow", 0),
        Backend("fast", 200),
        Backend("best", 300, probe="there is no board."),
    )
    assert made.resolve_platforms() == ["fast", "slow"]
    choice = made.choose()
    assert "highest priority (200)" in choice.reason
    assert "best would come first but cannot run" in choice.reason
    assert choice.refused == {"best": "there is no board."}


@pytest.mark.parametrize("order", [("b", "a", "c"), ("c", "b", "a")])
def test_equal_priorities_go_by_name(alone, order):
    assert alone(*map(Backend, order)).resolve_platforms() == ["a", "b", "c"]


def test_a_backend_is_probed_once(alone):
    backend = Backend("a")
    made = alone(backend)
    for _ in range(3):
        made.resolve_platforms()
        made.require("a")
    assert backend.probed == 1


def test_first_party_priorities(manager):
    priorities = {b.platform: b.info.priority for b in manager.load_all() if b.info.priority >= 0}
    assert priorities == {"tpu": 300, "cuda": 200, "cpu": 0}


def test_a_request_restricts_and_orders(alone):
    made = alone(Backend("a", 1), Backend("b", 2), Backend("c", 3))
    assert made.resolve_platforms("a,c") == ["a", "c"]
    assert made.resolve_platforms(" b , a ,b,") == ["b", "a"]
    with config.platforms("a"):
        assert made.resolve_platforms() == ["a"]
        assert made.choose().reason == "the option platforms='a' names it first"
        with pytest.raises(BackendUnavailableError, match=r"leaves it out\. Add 'c' to the list"):
            made.require("c")
    assert made.require("c").platform == "c"


def test_a_request_loads_nothing_else(install, manager, source):
    install.backend("good", source("good", priority=5))
    install.backend("bad", "raise AssertionError('imported')")
    assert manager.resolve_platforms("good") == ["good"]
    assert manager.failures == ()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"DOVETAIL_PLATFORMS": "cpu"}, "DOVETAIL_PLATFORMS=cpu names it first"),
        ({"JAX_PLATFORMS": "cpu"}, "JAX_PLATFORMS=cpu names it first"),
        ({"DOVETAIL_PLATFORMS": "cpu", "JAX_PLATFORMS": "tpu"}, "DOVETAIL_PLATFORMS=cpu names"),
        ({"DOVETAIL_PLATFORMS": "", "JAX_PLATFORMS": "tpu"}, "highest priority (0)"),
        ({"DOVETAIL_PLATFORMS": "cuda,cpu"}, "DOVETAIL_PLATFORMS=cuda,cpu: platform 'cuda' cannot"),
        ({"JAX_PLATFORMS": "gpu"}, "JAX_PLATFORMS=gpu: platform 'cuda' cannot run"),
        ({"DOVETAIL_PLATFORMS": "gup"}, "unknown platform 'gup'"),
        ({"JAX_PLATFORM_NAME": "cpu"}, "the option platform_name='cpu' names it"),
    ],
)
def test_environment_variables(variables, expected):
    code = (
        "from dovetail._core.plugins.manager import manager\n"
        "try: print(manager().choose().reason)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**variables, "PATH": ""}
    )
    assert expected in answer.stdout, answer.stderr


def test_the_option_platform_name_chooses_the_default(alone):
    made = alone(Backend("a", 3), Backend("b", 2, aliases=("bee",)), Backend("c", 1, probe="no."))
    assert made.resolve_platforms() == ["a", "b"]
    for name in ("b", "bee"):
        with config.platform_name(name):
            assert made.resolve_platforms() == ["b", "a"]
            assert made.choose().reason == f"the option platform_name={name!r} names it"
            assert made.resolve_platforms("a,b") == ["b", "a"]
            with pytest.raises(BackendUnavailableError, match="among those in use, a: "):
                made.resolve_platforms("a")
    with config.platform_name("c"), pytest.raises(BackendUnavailableError, match=r"a, b: no\."):
        made.resolve_platforms()
    with config.platform_name("q"), pytest.raises(BackendUnavailableError, match="unknown platfo"):
        made.resolve_platforms()
    assert made.resolve_platforms() == ["a", "b"]


def test_an_explicit_request_never_falls_back(alone):
    made = alone(
        Backend("cpu"),
        Backend("absent", 5, probe="there is no board."),
        Backend("broken", 6, probe=OSError("driver 1 is too old")),
    )
    for asked, expected in {
        "absent": "platform 'absent' cannot run on this machine: there is no board.",
        "absent,cpu": "platforms='absent,cpu': platform 'absent' cannot run",
        "cpu,broken": "driver 1 is too old",
        "nowhere": "unknown platform 'nowhere'",
    }.items():
        with pytest.raises(BackendUnavailableError) as caught:
            made.resolve_platforms(asked)
        assert expected in str(caught.value)
        assert "Installed backends: absent (this process), broken" in str(caught.value)
    with pytest.raises(BackendUnavailableError, match="there is no board"):
        made.make_client("absent")


def test_the_runtime_does_not_fall_back_either():
    code = (
        "import dovetail\ntry: dovetail.devices('cuda')\nexcept Exception as e: print(type(e), e)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "BackendUnavailableError" in answer.stdout
    assert "platform 'cuda' cannot run on this machine" in answer.stdout


def test_a_default_that_avoids_something_broken_says_so_once(alone):
    made = alone(Backend("cpu"), Backend("broken", 6, probe=OSError("driver 1 is too old")))
    with pytest.warns(RuntimeWarning, match="driver 1 is too old; platform 'cpu' is the default"):
        assert made.resolve_platforms() == ["cpu"]
    made.register(Backend("other"), "plug-in other")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made.resolve_platforms() == ["cpu", "other"]


def test_missing_hardware_is_nothing_to_warn_of(alone):
    made = alone(Backend("cpu"), Backend("absent", 6, probe="there is no board."))
    assert made.resolve_platforms() == ["cpu"]
    assert made.failures == ()


def test_nothing_is_installed(alone):
    with pytest.raises(BackendUnavailableError) as caught:
        alone().resolve_platforms()
    assert "no backend is installed" in str(caught.value)
    assert 'pip install "dovetail-core[cpu]"' in str(caught.value)


def test_nothing_can_run(alone):
    made = alone(Backend("a", probe="no a."), Backend("b", probe="no b."))
    with pytest.raises(BackendUnavailableError) as caught:
        made.resolve_platforms()
    for text in ("a: no a.", "b: no b.", 'pip install "dovetail-core[cpu]"'):
        assert text in str(caught.value)


def test_aliases(alone):
    made = alone(
        Backend("cuda", 200, probe="no NVIDIA GPU.", aliases=("gpu",)),
        Backend("rocm", 100, aliases=("gpu",)),
        Backend("cpu"),
    )
    assert made.canonical("gpu") == "rocm", "the one that can run"
    assert made.resolve_platforms("gpu,cpu") == ["rocm", "cpu"]
    both = alone(Backend("rocm", 1, aliases=("gpu",)), Backend("cuda", 2, aliases=("gpu",)))
    assert both.canonical("gpu") == "cuda", "the higher priority"
    neither = alone(Backend("cuda", 200, probe="no NVIDIA GPU.", aliases=("gpu",)))
    with pytest.raises(BackendUnavailableError, match="no NVIDIA GPU"):
        neither.require("gpu")


@pytest.mark.parametrize(
    ("asked", "expected"),
    {
        "cpuu": "Did you mean 'cpu'?",
        "CPU": "Did you mean 'cpu'?",
        "tpu": 'To install it: pip install "dovetail-core[tpu]"',
        "gpu": 'To install it: pip install "dovetail-core[cuda]"',
        "": "unknown platform ''",
    }.items(),
)
def test_unknown_platforms(alone, asked, expected):
    with pytest.raises(BackendUnavailableError) as caught:
        alone(Backend("cpu")).require(asked)
    assert expected in str(caught.value)
    assert "Installed backends: cpu (this process)." in str(caught.value)


def test_a_backend_whose_hooks_have_names_of_their_own(alone):
    """pluggy finds hooks by `specname`, too."""

    class Plugin:
        @hookimpl(specname="dovetail_backend_info")
        def describe(self):
            return BackendInfo("other", (1, 0))

    made = alone()
    made.register(Plugin(), "another")
    assert made.load("other").info.platform == "other"


def test_registering_in_the_process(alone):
    made = alone(Backend("cpu"))
    with pytest.raises(ValueError, match="'cpu' is there already, from this process"):
        made.register(Backend("cpu"), "another")
    with pytest.raises(ValueError, match="a plug-in named 'plug-in cpu' is registered already"):
        made.register(Backend("other"), "plug-in cpu")
    made.register(Backend("other", 9), "another")
    assert made.resolve_platforms() == ["other", "cpu"]
    made.unregister("another")
    assert made.resolve_platforms() == ["cpu"]
    with pytest.raises(KeyError, match="no plug-in named 'another'"):
        made.unregister("another")
    with pytest.raises(TypeError, match="implements no hook"):
        made.register(object(), "nothing")
    late = Backend("late")
    late.info = BackendInfo("late", (9, 0))
    with pytest.raises(BackendUnavailableError, match=r"plug-in API 9\.0"):
        made.register(late, "late")
    assert made.backend_names() == ("cpu",), "what was refused leaves nothing behind"


def test_the_environment_is_set_only_where_it_is_unset(alone, monkeypatch):
    seen = {}

    class Wants(Backend):
        @hookimpl
        def dovetail_environment(self, platform):
            return {"ACME_ONE": "ours", "ACME_TWO": "ours"}

        @hookimpl
        def dovetail_make_client(self, platform, options):
            seen.update({name: os.environ[name] for name in ("ACME_ONE", "ACME_TWO")})
            raise RuntimeError("enough")

    monkeypatch.setenv("ACME_ONE", "theirs")
    monkeypatch.setenv("ACME_TWO", "x")
    monkeypatch.delenv("ACME_TWO")  # so that it is removed again afterwards
    with pytest.raises(BackendUnavailableError, match="enough"):
        alone(Wants("acme")).make_client("acme")
    assert seen == {"ACME_ONE": "theirs", "ACME_TWO": "ours"}


@pytest.mark.parametrize("entry", [Path("/absent"), b"/absent", None, []], ids=repr)
def test_what_python_ignores_on_its_path_is_ignored(monkeypatch, entry):
    monkeypatch.setattr(sys, "path", [entry, *sys.path])
    manager = PluginManager()
    assert "cpu" in manager.backend_names()
    assert manager.resolve_platforms()


# ------------------------------------------------------------------------- where clients come from

CLEARED = """
import gc, json, sys, threading, weakref
import numpy as np
import dovetail as dt
from dovetail._core.runtime.devices import clients
from dovetail.extend import manager

sys.path.insert(0, sys.argv[1])
import dovetail_backend_numpy.plugin
manager().register(dovetail_backend_numpy.plugin, "example")

said = {}
for platform in sys.argv[2:]:
    x = dt.device_put(np.arange(3, dtype=np.float32), dt.devices(platform)[0])
    clients.clear_backends()
    y = x + 1
    said[platform] = [x.platform(), y.platform(), y.tolist()]
    assert dt.devices(platform)[0] is not x.device, "the client is another"
    client = weakref.ref(x.device.client)
    del x, y
    clients.clear_backends()
    gc.collect()
    # A sharding of jaxlib's lets go of no device that is not jaxlib's own.
    assert client() is None or platform == "numpy", "nobody holds the client"
    assert len(clients._origins) == (client() is not None), "nor is it remembered"
print(json.dumps(said))
"""


def test_arrays_from_before_clear_backends_keep_their_platform(answer_of, xla_cpu):
    example = Path(__file__).parents[2] / "examples" / "backend-numpy" / "src"
    platforms = ["cpu", "xla_cpu_pjrt", "numpy"]
    said = answer_of(CLEARED, str(example), *platforms)
    assert said == {name: [name, name, [1.0, 2.0, 3.0]] for name in platforms}


class Plain:
    """A client as most are."""


class Equal(Plain):
    """A client that equals others and has no hash."""

    def __eq__(self, other):
        return isinstance(other, Equal)


class Slotted:
    """A client that no weak reference can be had of."""

    __slots__ = ()


@pytest.mark.parametrize(("kind", "kept"), [(Plain, 0), (Equal, 0), (Slotted, 2)])
def test_where_clients_come_from(monkeypatch, kind, kept):
    origins = {}
    monkeypatch.setattr(clients, "_origins", origins)
    running, described, unknown = kind(), kind(), kind()
    clients._note(running, "acme")
    clients.add_topology(described, "board", "'small'")
    assert [clients.platform_of(one) for one in (running, described)] == ["acme", "board"]
    assert [clients.is_compile_only(one) for one in (running, described)] == [False, True]
    assert clients.platform_of(unknown) == "unknown"
    del running, described
    gc.collect()
    assert len(origins) == kept


def test_platforms_are_told_while_clients_are_made(monkeypatch):
    """A thread once met a table that changed while it was read."""
    for table in ("_origins", "_clients", "_failures"):
        monkeypatch.setattr(clients, table, {})
    monkeypatch.setattr(clients, "manager", lambda: types.SimpleNamespace(make_client=make))
    stopped = threading.Event()
    errors = []

    def make(platform, options, processes):
        return Plain()

    def ask():
        try:
            while not stopped.is_set():
                assert clients.platform_of(Plain()) == "unknown"
        except Exception as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=ask) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        for number in range(500):
            client = clients._client(f"acme{number}")
            assert clients.platform_of(client) == f"acme{number}"
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert errors == []


def test_a_client_that_serves_two_platforms_keeps_the_first(monkeypatch):
    client = Plain()
    made = types.SimpleNamespace(make_client=lambda *arguments: client)
    for table in ("_origins", "_clients", "_failures"):
        monkeypatch.setattr(clients, table, {})
    monkeypatch.setattr(clients, "manager", lambda: made)
    for platform in ("acme", "board"):
        assert clients._client(platform) is client
        assert clients.platform_of(client) == "acme"
    clients._clients.pop("acme")  # as when its plug-in has gone
    clients._clients.pop("board")
    assert clients._client("board") is client
    assert clients.platform_of(client) == "board"


def test_disabled_plugins_are_not_imported(install, manager, source):
    install.backend("bad", "raise AssertionError('imported')")
    install("acme-more", {"more": "acme_more"}, {"acme_more": "1/0"}, group="dovetail.extensions")
    with config.disabled_plugins("bad,acme-more"):
        assert "bad" not in manager.backend_names()
        assert manager.resolve_platforms()[0] == "cpu"
        assert manager.disabled_backends() == {"bad": "acme-bad 1.0"}
        manager.load_extensions()
        with pytest.raises(BackendUnavailableError, match="'bad' is left out by the option disab"):
            manager.require("bad")
    assert manager.failures == ()
    assert "bad" in manager.backend_names()
    with pytest.warns(RuntimeWarning, match="AssertionError: imported"):
        manager.resolve_platforms()
