"""What backends are told of the processes, and what those are told that take one alone."""

from __future__ import annotations

import json
import socket
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest

import dovetail_cpu.connections
import dovetail_cpu.runtime
import dovetail_cuda.runtime
from dovetail._core.plugins.manager import PluginManager
from dovetail._core.runtime.devices import pjrt
from dovetail.errors import BackendUnavailableError
from dovetail.extend import BackendInfo, ProcessGroup, hookimpl


class _Store(dict):
    """The key-value store of the processes."""

    key_value_set = dict.__setitem__

    def key_value_dir_get(self, folder):
        return [(key, value) for key, value in self.items() if key.startswith(folder + "/")]


STORE = _Store()
GROUP = ProcessGroup(1, 4, STORE, "10.0.0.2", local_device_ids=(1,), slice_index=2)


@pytest.fixture
def xla_client(monkeypatch):
    """jaxlib's functions, which note what they are called with."""
    calls = {}

    def note(name):
        return lambda *args, **options: calls.setdefault(name, (args, options)) and name

    fake = SimpleNamespace(
        calls=calls,
        make_c_api_client=note("client"),
        make_cpu_client=note("client"),
        make_gloo_tcp_collectives=note("gloo"),
        make_mpi_collectives=lambda: SimpleNamespace(Init=note("Init"), Finalize=note("Finalize")),
    )
    for module in (dovetail_cpu.runtime, pjrt):
        monkeypatch.setattr(module, "xla_client", fake)
    for module in (dovetail_cpu.runtime, dovetail_cpu.connections):
        monkeypatch.setattr(module, "_jax", fake)
    # The process has one client, and what is made here is none.
    company = SimpleNamespace(invite=note("invite"), dismiss=note("dismiss"))
    monkeypatch.setattr(dovetail_cpu.runtime, "company", company)
    return fake


def test_cuda(xla_client, monkeypatch):
    plugin = pjrt.PjrtPlugin("dovetail_cuda", Path(__file__), (0, 81), None, None)
    monkeypatch.setattr(pjrt.PjrtPlugin, "_check_stablehlo", lambda self, client: None)
    monkeypatch.setattr(pjrt, "note_library", lambda *facts: None)
    monkeypatch.setattr(dovetail_cuda.runtime, "load", lambda: (None, plugin))
    monkeypatch.setattr(dovetail_cuda.runtime.libraries, "problem", lambda plugin: "")
    dovetail_cuda.runtime.make_client({"visible_devices": "all", "preallocate": False}, GROUP)
    (name, options, store), _ = xla_client.calls["client"]
    expected = {"node_id": 1, "num_nodes": 4, "partition_index": 2, "visible_devices": [1]}
    assert (name, store) == ("dovetail_cuda", STORE)
    assert options | expected | {"preallocate": False} == options

    xla_client.calls.clear()
    dovetail_cuda.runtime.make_client({"visible_devices": "0,3"}, GROUP)
    assert xla_client.calls["client"][0][1]["visible_devices"] == [0, 3], "the user's own are used"
    xla_client.calls.clear()
    dovetail_cuda.runtime.make_client({})
    (_, options, store), _ = xla_client.calls["client"]
    assert store is None
    assert not options.keys() & {"node_id", "num_nodes", "visible_devices"}


@pytest.mark.parametrize("kind", ["gloo", "mpi", "none", None])
def test_cpu(xla_client, monkeypatch, kind):
    ends = []
    monkeypatch.setattr(dovetail_cpu.runtime.atexit, "register", ends.append)
    options = {"collectives": kind, "global_topology_timeout": 7, "num_devices": 2}
    dovetail_cpu.runtime.make_client(options, GROUP)
    _, given = xla_client.calls["client"]
    collectives = given.pop("collectives")
    assert given == {
        "asynchronous": True,
        "num_devices": 2,
        "distributed_client": STORE,
        "node_id": 1,
        "num_nodes": 4,
        "get_local_topology_timeout_minutes": 2,
        "get_global_topology_timeout_minutes": 7,
    }
    if kind == "gloo":
        assert xla_client.calls["gloo"] == ((STORE,), {"hostname": "10.0.0.2"})
    assert (collectives is None) == (kind in ("none", None))
    assert bool(GROUP.disconnectors) == (kind == "gloo")
    GROUP.disconnectors.clear()
    assert ("Init" in xla_client.calls) == (kind == "mpi") == bool(ends)


@pytest.mark.parametrize(
    ("options", "processes", "asynchronous"),
    [
        ({"num_threads": 2}, None, False),
        ({"num_threads": 2, "num_devices": 1}, None, False),
        ({"num_threads": 2, "asynchronous": True}, None, True),
        ({"num_threads": 2, "num_devices": 2}, None, True),
        ({"num_threads": 2}, GROUP, True),
        ({"num_threads": 3}, None, True),
        ({"num_threads": 3, "asynchronous": False}, None, False),
        ({"num_threads": 1}, None, False),
        ({"num_threads": 1, "asynchronous": True}, None, False),
        ({"num_threads": 1}, GROUP, True),
    ],
)
def test_threads_that_a_program_is_worth_handing_to(
    xla_client, monkeypatch, options, processes, asynchronous
):
    runtime = dovetail_cpu.runtime
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(runtime.blas, "set_most_threads", lambda _: None)
    monkeypatch.setattr(runtime.kernels, "set_most_threads", lambda _: None)
    for name in ("_alone", "_threads"):
        monkeypatch.setattr(runtime, name, list(getattr(runtime, name)))
    runtime.make_client({"collectives": None, **options}, processes)
    assert xla_client.calls["client"][1]["asynchronous"] is asynchronous


def test_the_cpus_disconnect(xla_client):
    """Their connections end, those that others have accepted too; nobody else's do."""
    ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]

    def listens(client, hostname):
        ports.append(socket.create_server(("127.0.0.1", 0)))

    xla_client.make_gloo_tcp_collectives = listens
    others, foreign = (port.getsockname() for port in ports)
    STORE["dovetail/gloo/0"] = json.dumps([others])
    dovetail_cpu.runtime.make_client({}, GROUP)
    pairs = []
    for port in (ports[2], ports[0], ports[1]):
        pairs += [(socket.create_connection(port.getsockname()), port.accept()[0])]
    (disconnect,) = GROUP.disconnectors
    disconnect()
    for ours, theirs in pairs[:2]:
        assert (ours.recv(1), theirs.recv(1)) == (b"", b"")
    ours, theirs = pairs[2]
    ours.sendall(b"!")
    assert theirs.recv(1) == b"!", f"whoever listens at {foreign} is none of the group"
    socket.create_connection(ports[2].getsockname()).close()  # new connections can be made
    GROUP.disconnectors.clear()
    for each in (*ports, *chain(*pairs)):
        each.close()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"collectives": "smoke"},
            "must be .gloo., .mpi., .none. or None, got .smoke.",
        ),
        (
            {"local_topology_timeout": 0},
            "must be a number of minutes, got 0",
        ),
    ],
)
def test_cpu_options(xla_client, options, text):
    with pytest.raises(ValueError, match=text):
        dovetail_cpu.runtime.make_client(options, GROUP)
    assert dovetail_cpu.runtime.make_client(options) == "client", "they are of groups alone"


class _Backend:
    """A backend that may be one of several processes, and notes what it is told."""

    def __init__(self, *capabilities):
        self.capabilities = frozenset(capabilities)
        self.told = []

    @hookimpl
    def dovetail_backend_info(self):
        return BackendInfo("acme", (1, 2), capabilities=self.capabilities)

    @hookimpl
    def dovetail_make_client(self, processes):
        self.told.append(processes)
        from jaxlib import xla_client  # what this hook is for

        return xla_client.make_cpu_client()


def test_a_backend_is_told_of_its_group_or_refused():
    one, several = PluginManager(lambda group: []), PluginManager(lambda group: [])
    backend = _Backend("processes")
    several.register(backend, "acme")
    several.make_client("acme", {}, GROUP)
    several.make_client("acme")
    assert backend.told == [GROUP, None]

    backend = _Backend()
    one.register(backend, "acme")
    one.make_client("acme")
    with pytest.raises(BackendUnavailableError) as caught:
        one.make_client("acme", {}, GROUP)
    assert "the backend of the platform 'acme'" in str(caught.value)
    assert "does not compute in several processes, and this is process 1 of 4" in str(caught.value)
    assert backend.told == [None]
