"""Joining a group: process 0 starts the coordinator, and all register with it and with jaxlib."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import socket
import subprocess
import sys
from typing import Final

import jaxlib.version

from dovetail._core.base.bindings import _jax
from dovetail._core.base.progress_bars import show_here
from dovetail._core.plugins.process_group import ProcessGroup
from dovetail._core.runtime.processes import group
from dovetail._core.runtime.processes.channel import Channel, Introduction, connect
from dovetail._core.runtime.processes.clusters import Place
from dovetail._core.runtime.processes.coordinator import BEATS, Settings
from dovetail._core.runtime.processes.group import Membership, Timeouts

__all__ = ["OWN_MACHINE", "join"]

OWN_MACHINE: Final = ("localhost", "127.0.0.1", "::1", "[::1]")
"""The names by which a machine knows itself."""


def join(place: Place, timeouts: Timeouts) -> None:
    """Join a group; process 0 starts its coordinator.

    Args:
        place: where this process is in the group, everything filled in.
        timeouts: how long processes wait for each other.

    Raises:
        DistributedError: not all processes have come.
        RuntimeError: the coordinator cannot listen.
    """
    address, number, count = place.coordinator_address, place.process_id, place.num_processes
    assert address is not None
    assert number is not None
    assert count is not None
    if number == 0:
        _start_coordinator(place, timeouts)
    own = Introduction(
        number,
        count,
        f"process {number} (pid {os.getpid()} on {socket.gethostname()})",
        f"jaxlib {jaxlib.version.__version__}, Python {platform.python_version()[:4]}",
    )
    connection = connect(address, own, timeouts.start)
    hostname = _own_address(connection, address)
    client = _jax.get_distributed_runtime_client(
        address,
        number,
        init_timeout=timeouts.start,
        shutdown_timeout=timeouts.shutdown,
        heartbeat_timeout=BEATS * timeouts.heartbeat,
        shutdown_on_destruction=False,
        use_compression=True,
    )
    client.connect()
    ids = place.local_device_ids
    processes = ProcessGroup(number, count, client, hostname, ids, place.slice_index)
    channel = Channel(connection, number, timeouts.heartbeat)
    group.enter(Membership(processes, channel, timeouts))
    show_here(number == 0)


def _own_address(connection: socket.socket, coordinator: str) -> str:
    """The address at which the other processes reach this one."""
    used = str(connection.getsockname()[0])
    host = coordinator.rpartition(":")[0]
    if not used.startswith("127.") or host in OWN_MACHINE:
        return used
    # This machine knows its own name as one of itself alone, which is of no use to others.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent; it asks for the way out
            return str(probe.getsockname()[0])
        except OSError:
            return used


def _start_coordinator(place: Place, timeouts: Timeouts) -> None:
    assert place.coordinator_bind_address is not None
    assert place.num_processes is not None
    settings = Settings(
        place.coordinator_bind_address,
        place.num_processes,
        timeouts.start,
        timeouts.heartbeat,
        timeouts.shutdown,
    )
    code = (
        "import sys, json; sys.path[:] = json.loads(sys.argv.pop()); import runpy; "
        "runpy.run_module('dovetail._core.runtime.processes.coordinator', run_name='__main__', "
        "alter_sys=False)"
    )
    words = [json.dumps(dataclasses.asdict(settings)), json.dumps(list(map(str, sys.path)))]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # The log of jaxlib's service belongs to nobody.
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        start_new_session=True,
        text=True,
    )
    _coordinators.append(process)
    assert process.stdout is not None
    with process.stdout as told:
        text = told.readline().strip()
    if text != "listening":
        process.wait()
        reason = text or f"it ended with status {process.returncode}"
        raise RuntimeError(
            f"distributed.initialize: the coordinator cannot listen on {settings.bind} ({reason}): "
            "choose another port for coordinator_address, or give coordinator_bind_address"
        )


# Kept, since Python warns of a process that is still running when its object goes.
_coordinators: Final[list[subprocess.Popen[str]]] = []
