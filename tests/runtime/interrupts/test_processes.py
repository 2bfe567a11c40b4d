"""Interrupts anywhere, and Ctrl-C while something takes long: in processes of their own.

What raises at every instruction also raises where no signal handler runs, such as the end of a
``with lock``: a process in which it was tried may be left with a lock that is held.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

_TRIED: Final = int(os.environ.get("DOVETAIL_TESTING_FIRST_USES", "6"))


def test_calls_interrupted_anywhere() -> None:
    """The tests of `interrupted_patterns.py`."""
    script = Path(__file__).with_name("interrupted_patterns.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(script)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-4000:]


def test_first_use_interrupted_anywhere() -> None:
    """A module whose import was interrupted is imported again, and is complete then."""
    script = Path(__file__).with_name("first_use.py")
    ran = subprocess.run(
        [sys.executable, str(script), str(_TRIED), "0"], capture_output=True, text=True
    )
    assert ran.stdout.endswith(" tried, 0 wrong\n"), ran.stdout + ran.stderr


_LONG: Final = {
    "eager calls": "y = x\nwhile True: y = y + 1",
    "a callback": (
        "def spin(v):\n    while True: time.sleep(0.01)\n"
        "dt.jit(lambda x: dt.pure_callback(spin, x, x))(x).block_until_ready()"
    ),
    "compiling": "compiled = lowered.compile()",
    "waiting": "products(large).block_until_ready()",
}
_PROGRAM: Final = """
import os, signal, threading, time
import dovetail as dt, dovetail.numpy as jnp
x = jnp.ones((8, 8))
(x + 1).sum()
def f(x):
    for i in range(400):
        x = jnp.sin(x @ x.T) + jnp.sort(x * i)
    return x
lowered = dt.jit(f).lower(x)
def many(x):
    for i in range(12):
        x = x @ x
    return x
large = jnp.zeros((3000, 3000))
products = dt.jit(many).lower(large).compile()
# A process that was started in the background of a shell ignores Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
sent = []
def send():
    time.sleep(0.5)
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=send, daemon=True).start()
try:
{body}
except KeyboardInterrupt:
    seconds = time.perf_counter() - sent[0]
    assert (x + 1).sum() == 128
    print(seconds, flush=True)
os._exit(0)  # it would wait for the compiler
"""


@pytest.mark.parametrize("what", _LONG)
def test_control_c_is_heard(what: str) -> None:
    """Within seconds, on a loaded machine; what it interrupts would take longer, or for ever."""
    if what == "waiting" and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("XLA computes on the main thread, and cannot be interrupted")
    body = "\n".join("    " + line for line in _LONG[what].splitlines())
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(body=body)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "DOVETAIL_ENABLE_COMPILATION_CACHE": "false"},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout, "it came to its end before it was interrupted"
    assert float(ran.stdout) < 5


_ENDING: Final = """
import atexit, os, signal, threading, time
import dovetail as dt, dovetail.numpy as jnp
atexit.register(lambda: print(dt.jit(lambda x: x * 5)(2.0)))
def f(x):
    for i in range(100):
        x = jnp.sin(x @ x + i)
    return x
lowered = dt.jit(f).lower(jnp.ones((8, 8)))
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    lowered.compile()
    time.sleep(3)  # on a machine that compiles it sooner
except KeyboardInterrupt:
    pass
"""


def test_a_process_ends_after_an_interrupted_compilation() -> None:
    """The compiler, which goes on, and calls while the process ends are not in its way."""
    ran = subprocess.run([sys.executable, "-c", _ENDING], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "10.0\n"), ran.stderr
