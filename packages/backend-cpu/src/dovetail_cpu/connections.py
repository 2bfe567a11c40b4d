"""Gloo's connections to the other processes: found, so that they can be shut down.

A collective operation waits for its neighbours without end. When a process has died, those beside
it get an error, and everybody else would wait for these. jaxlib has no means to end that, and keeps
the connections open until the client goes. They are sockets of this process, which connect the port
that Gloo listens on with those of the others: shut down, each wait on them ends with an error. New
groups of devices get new connections.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

from jaxlib import _jax

from dovetail.extend import ProcessGroup

__all__ = ["make_gloo"]

_Address = tuple[str, int]

_FOLDER: Final = "dovetail/gloo"


def make_gloo(processes: ProcessGroup) -> tuple[Any, Callable[[], None]]:
    """Gloo for a client, and a function to be called once the client has been made."""
    before = set(_listening())
    made = _jax.make_gloo_tcp_collectives(processes.client, hostname=processes.hostname)
    listening = [list(address) for address in _listening() if address not in before]
    key = f"{_FOLDER}/{processes.process_index} {listening}"  # there may be several clients
    processes.client.key_value_set(key, json.dumps(listening))

    def note() -> None:
        # A client is made when all processes make theirs, so all have written by now.
        written = processes.client.key_value_dir_get(_FOLDER)
        addresses = {tuple(address) for _, text in written for address in json.loads(text)}
        processes.disconnectors.append(lambda: _shut_down(addresses))

    return made, note


def _shut_down(listening: set[Any]) -> None:
    """Shut down the connections of this process that one of these addresses is an end of."""
    for found in _sockets():
        with contextlib.suppress(OSError):
            if {_address(found.getsockname()), _address(found.getpeername())} & listening:
                found.shutdown(socket.SHUT_RDWR)


def _listening() -> Iterator[_Address]:
    for found in _sockets():
        with contextlib.suppress(OSError):
            if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield _address(found.getsockname())


def _sockets() -> Iterator[socket.socket]:
    """Copies of the TCP sockets of this process."""
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return
    for number in numbers:
        with contextlib.suppress(OSError):  # whoever has opened it may close it meanwhile
            copy = os.dup(number)
            try:
                found = socket.socket(fileno=copy)
            except OSError:
                os.close(copy)
                continue
            with found:
                if found.family in (socket.AF_INET, socket.AF_INET6):
                    yield found


def _address(name: Any) -> _Address:
    return str(name[0]).removeprefix("::ffff:"), int(name[1])
