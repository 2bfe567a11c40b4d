"""How a process finds its group: arguments, variables and clusters, and what goes wrong."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
import types

import pytest
from tests.runtime.processes.conftest import free_port, outputs, surroundings

import dovetail as dt
from dovetail._core.runtime.processes import clusters
from dovetail._core.runtime.processes.clusters import Place

initialize = dt.distributed.initialize


@pytest.fixture
def no_client(monkeypatch):
    monkeypatch.setattr("dovetail._core.runtime.devices.clients._clients", {})
    for name in ("COORDINATOR_ADDRESS", "NUM_PROCESSES", "PROCESS_ID"):
        monkeypatch.delenv(f"DOVETAIL_{name}", raising=False)


MISTAKES = {
    "nothing": ({}, ValueError, "coordinator_address and num_processes and process_id must be"),
    "some": (
        {"coordinator_address": "localhost:1", "process_id": 0},
        ValueError,
        "num_processes must be given.*DOVETAIL_NUM_PROCESSES",
    ),
    "out of range": (
        {"coordinator_address": "localhost:1", "num_processes": 2, "process_id": 2},
        ValueError,
        "process_id=2 is out of range: with num_processes=2 the numbers are 0 to 1",
    ),
    "negative": ({"process_id": -1}, ValueError, "process_id must be 0 or more, got -1"),
    "no port": ({"coordinator_address": "host"}, ValueError, "a host and a port.*got 'host'"),
    "no text": ({"coordinator_address": 3}, TypeError, "coordinator_address must be a str"),
    "no int": ({"num_processes": 2.0}, TypeError, "num_processes must be an int, got 2.0"),
    "no time": ({"initialization_timeout": 0}, ValueError, "initialization_timeout must be 1 or"),
    "no devices": ({"local_device_ids": ()}, ValueError, "local_device_ids is empty"),
    "method": (
        {"cluster_detection_method": "slrum"},
        ValueError,
        "must be one of 'slurm', .*got 'slrum'; did you mean 'slurm'",
    ),
    "no slurm": (
        {"cluster_detection_method": "slurm"},
        RuntimeError,
        "was asked for, and this process was not started by it: SLURM_JOB_ID",
    ),
    "encrypted": ({"mtls_key_file": "key"}, NotImplementedError, "mtls_key_file must be left out"),
    "both": ({"slice_index": 0, "partition_index": 0}, ValueError, "its old name, not both"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(no_client, name):
    arguments, kind, text = MISTAKES[name]
    with pytest.raises(kind, match=text):
        initialize(**arguments)
    assert not dt.distributed.is_initialized()


def test_after_a_client_was_made():
    dt.devices()
    with pytest.raises(RuntimeError, match=r"before anything is .*'cpu' has started already"):
        initialize("localhost:1", 1, 0)


def test_a_coordinator_that_waits_for_nobody(no_client):
    """As one whose group is complete: jaxlib's service has its port then, and says no line."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(1)
                connection.sendall(b"\0\0\n")

        other = threading.Thread(target=answer)
        other.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(dt.errors.DistributedError, match=r"all of its group have come already"):
            initialize(address, 2, 1, initialization_timeout=5)
        other.join()


def test_without_a_coordinator(no_client):
    begun = time.monotonic()
    with pytest.raises(dt.errors.DistributedError, match=r"no coordinator answers .* within 1 s"):
        initialize(f"localhost:{free_port()}", 2, 1, initialization_timeout=1)
    assert time.monotonic() - begun < 10


HELLO = """
import sys, dovetail as dt
address, count, number, seconds = sys.argv[1], *map(int, sys.argv[2:])
try:
    dt.distributed.initialize(address, count, number, initialization_timeout=seconds)
    print("joined", len(dt.devices()))
    dt.distributed.initialize(address, count, number)
except RuntimeError as error:
    print(type(error).__name__, error)
"""


def _hello(address, *numbers):
    return subprocess.Popen(
        [sys.executable, "-c", HELLO, address, *map(str, numbers)],
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize(
    ("members", "texts"),
    [
        (
            [(1, 0, 30)],
            ["joined 1\nRuntimeError distributed.initialize was called before, and this is proc"],
        ),
        ([(3, 0, 2)], ["processes 1, 2 of 3 did not come within 2 s"]),
        (
            [(2, 0, 3), (3, 1, 3)],
            ["process 1 of 2 did not come within 3 s", "process 1 was given num_processes=3, and"],
        ),
    ],
    ids=["twice", "missing", "another count"],
)
def test_who_does_not_fit(members, texts):
    address = f"127.0.0.1:{free_port()}"
    processes = [_hello(address, *numbers) for numbers in members]
    for text, expected in zip(outputs(processes), texts, strict=True):
        assert expected in text


CLUSTERS = {
    "slurm": (
        {
            "SLURM_JOB_ID": "5000",
            "SLURM_STEP_NODELIST": "node[007-009,12],login1",
            "SLURM_PROCID": "3",
            "SLURM_NTASKS": "8",
            "SLURM_LOCALID": "1",
            "SLURM_STEP_TASKS_PER_NODE": "2(x4)",
        },
        Place("node007:62344", 8, 3, (1,)),
    ),
    "slurm, one process for each node": (
        {
            "SLURM_JOB_ID": "1",
            "SLURM_STEP_NODELIST": "a1,a2",
            "SLURM_PROCID": "0",
            "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_LOCALID": "0",
            "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
        },
        Place("a1:61441", 2, 0),
    ),
    "a shell of slurm": ({"SLURM_JOB_ID": "1"}, Place()),
    "ompi": (
        {
            "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
            "OMPI_COMM_WORLD_SIZE": "4",
            "OMPI_COMM_WORLD_RANK": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": "0",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        },
        Place(f"10.96.0.1:{61440 + (1531576320 >> 16) % 4096}", 4, 2, (0,)),
    ),
    "k8s": (
        {
            "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "JOB_COMPLETION_INDEX": "2",
            "JOB_COMPLETIONS": "4",
            "HOSTNAME": "train-2",
        },
        Place("train-0.train.default.svc.cluster.local:55527", 4, 2),
    ),
    "nothing": ({}, Place()),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_clusters(monkeypatch, name):
    environment, expected = CLUSTERS[name]
    monkeypatch.setattr(clusters.socket, "getfqdn", lambda: "train-2")
    assert clusters.detected(None, environment) == expected
    method = re.split("[ ,]", name)[0]
    if method in clusters.METHODS:
        assert clusters.detected(method, environment) == expected


def test_mpi_is_asked_by_name_alone(monkeypatch):
    world = types.SimpleNamespace(
        Get_rank=lambda: 1,
        Get_size=lambda: 4,
        bcast=lambda address, root: "host:1234",
        Split_type=lambda kind: types.SimpleNamespace(Get_rank=lambda: 1, Get_size=lambda: 2),
    )
    mpi = types.SimpleNamespace(COMM_WORLD=world, COMM_TYPE_SHARED=0)
    monkeypatch.setattr(clusters, "find_spec", lambda name: object())
    monkeypatch.setattr(clusters, "import_module", lambda name: mpi)
    assert clusters.detected(None, {}) == Place()
    assert clusters.detected("mpi4py", {}) == Place("host:1234", 4, 1, (1,))


def test_variables():
    names = ("COORDINATOR_ADDRESS", "NUM_PROCESSES", "PROCESS_ID", "LOCAL_DEVICE_IDS")
    values = ("host:1", "4", "2", "0,1")
    expected = Place("host:1", 4, 2, (0, 1))
    for prefix, other in (("DOVETAIL_", "JAX_"), ("JAX_", "OTHER_")):
        environment = {prefix + n: v for n, v in zip(names, values, strict=True)}
        environment |= {other + n: "9" for n in names}
        assert clusters.from_environment(environment) == expected
    with pytest.raises(ValueError, match="JAX_PROCESS_ID is 'one', which is no number"):
        clusters.from_environment({"JAX_PROCESS_ID": "one"})
