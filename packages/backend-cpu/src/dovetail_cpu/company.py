"""Threads of XLA's pool that help calls that need no program.

Only a program reaches the pool. Where long calls follow each other, `native/company.cc` has one run
whose kernel lets threads look for work; it is compiled once it is wanted, by a thread of its own.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import threading
from collections import deque
from typing import Any, Final

from dovetail_cpu import kernel_library

_PROGRAM: Final = """
module @company {
  func.func public @main() -> tensor<i8> {
    %0 = stablehlo.custom_call @dovetail_company() {
      api_version = 4 : i32, backend_config = {}, has_side_effect = true
    } : () -> tensor<i8>
    return %0 : tensor<i8>
  }
}
"""
_Call: Final = ctypes.CFUNCTYPE(None)
_lock: Final = threading.Lock()
#: What C calls must not be freed while it runs: so the last ones are kept, too.
_kept: Final[deque[object]] = deque(maxlen=4)
#: The client whose threads help.
_clients: Final[list[Any]] = []


def invite(client: Any) -> None:
    """Let the threads of a client's pool help, and no longer those of another."""
    library = _library()
    if library is None:
        return
    with _lock:
        _clients[:] = [client]
        wanted = _Call(learn)
        _kept.append(wanted)
        library.dovetail_bring_company(None)
        library.dovetail_learn_company(wanted)


def dismiss() -> None:
    """Let no thread help from now on."""
    library = _library()
    if library is not None:
        library.dovetail_learn_company(None)
        library.dovetail_bring_company(None)
        _clients.clear()


@functools.cache
def _library() -> ctypes.CDLL | None:
    file = kernel_library.library()
    if file is None:
        return None
    atexit.register(dismiss)
    return ctypes.CDLL(str(file))


def learn() -> None:
    """Compile the program, and tell C what runs it. C calls this once, when it wants threads."""
    from jaxlib import xla_client  # deferred: there is a client, so it is loaded

    from dovetail_cpu import kernels  # deferred: loads jaxlib

    library = kernels.prepare()
    for client in _clients[:]:
        devices = xla_client.DeviceList((client.local_devices()[0],))
        program = client.compile_and_load(_PROGRAM, devices, xla_client.CompileOptions())
        # Functions of C alone: in one of Python's, it would handle signals, whose errors were lost.
        bring = _Call(functools.partial(program.execute_sharded, []))
        with _lock:
            if _clients == [client]:
                _kept.append(bring)
                library.dovetail_bring_company(bring)
