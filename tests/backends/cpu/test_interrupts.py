"""Ctrl-C ends native kernels: in processes of their own, which interrupt themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from dovetail_cpu.kernel_library import library

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)

_START: Final = """
import os, signal, sys, threading, time
if sys.argv[1:] == ["one"]:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np
import dovetail as dt, dovetail.numpy as jnp
# A process that was started in the background of a shell ignores Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
few = jnp.arange(3000.0)[::-1]
values = jnp.asarray(np.random.default_rng(0).random(2_000_000, dtype=np.float32))

def sorts():
    return np.array_equal(jnp.sort(few), np.arange(3000.0))

def interrupt(after=0.3):
    sent.append(time.perf_counter() + after)
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()

def repeated(step, times=10_000):
    # For minutes, mostly in kernels; what is made before a signal is sent is compiled.
    return dt.jit(lambda x: dt.lax.fori_loop(0, times, lambda i, x: step(x), x))

assert sorts()
sent = []
"""

_INTERRUPTED: Final = """
function, argument = repeated(STEP), ARGUMENT
compiled = function.lower(argument).compile()
interrupt()
result = None
try:
    result = compiled(argument)
    WAIT
except KeyboardInterrupt as error:
    seconds = time.perf_counter() - sent[0]
    import traceback
    text = "".join(traceback.format_exception(error))
    assert "CANCELLED" not in text and "another exception" not in text, text
else:
    raise SystemExit("it was not interrupted")
assert seconds < 20, seconds
start = time.perf_counter()
assert sorts()
if result is not None:
    try:
        result.block_until_ready()
    except dt.errors.JaxRuntimeError as error:
        assert "interrupted by Ctrl-C" in str(error)
    else:
        raise SystemExit("a part of it was taken for all")
assert time.perf_counter() - start < 20
"""

_STEPS: Final = {
    "one row is sorted": ("lambda x: jnp.sort(-x)", "values"),
    "rows are sorted": ("lambda x: jnp.sort(-x)", "values.reshape(-1, 1000)"),
    "short rows are sorted": ("lambda x: jnp.sort(-x)", "values.reshape(-1, 10)"),
    "positions are sorted": ("lambda x: jnp.argsort(x)[::-1] * 1.0", "values"),
    "running sums": ("lambda x: jnp.cumsum(x) * 1e-6", "values"),
    "running sums of columns": (
        "lambda x: jnp.cumsum(x, axis=0) * 1e-3",
        "values.reshape(-1, 1000)",
    ),
    "a long transform": ("lambda x: jnp.fft.fft(x) * 1e-3", "values[:2**20] * (1 + 0j)"),
    "many transforms": (
        "lambda x: jnp.fft.fft(x) * 1e-1",
        "values[:2**20].reshape(-1, 256) * (1 + 0j)",
    ),
    "convolutions": (
        "lambda x: dt.lax.conv_general_dilated(x, jnp.ones((16, 16, 3, 3)), (1, 1), 'SAME') / 200",
        "values[:16 * 2**16].reshape(1, 16, 256, 256)",
    ),
    "medians": ("lambda x: jnp.median(x) + x[::-1]", "values"),
    "matrices": ("lambda x: jnp.linalg.cholesky(x + 4 * jnp.eye(8))", "values.reshape(-1, 8, 8)"),
}


def _interrupted(step: str, argument: str, wait: str = "result.block_until_ready()") -> str:
    code = _INTERRUPTED.replace("STEP", step).replace("ARGUMENT", argument)
    return _START + code.replace("WAIT", wait)


@pytest.mark.parametrize("processors", ["one", "all"])
@pytest.mark.parametrize("what", _STEPS)
def test_programs_of_kernels_end(what: str, processors: str, run: Callable[..., str]) -> None:
    run(_interrupted(*_STEPS[what]), processors)


@pytest.mark.parametrize(
    "wait", ["np.asarray(result)", "print(result)", "dt.block_until_ready([result, result])"]
)
def test_whatever_the_main_thread_waits_in(wait: str, run: Callable[..., str]) -> None:
    run(_interrupted("lambda x: jnp.sort(-x)", "values", wait))


def test_without_compiled_calls(run: Callable[..., str]) -> None:
    run(_interrupted("lambda x: jnp.sort(-x)", "values"), DOVETAIL_NATIVE="0")


_EAGER: Final = """
large = jnp.asarray(np.random.default_rng(0).random(30_000_000, dtype=np.float32))
for sort in (jnp.sort, lambda x: jnp.sort(x.reshape(-1, 1000))):
    for after in (0.1, 0.02):
        sort(large[:1000]), sort(large).block_until_ready()
        interrupt(after)
        try:
            for _ in range(100):
                sort(large).block_until_ready()
        except KeyboardInterrupt as error:
            import traceback
            text = "".join(traceback.format_exception(error))
            assert "CANCELLED" not in text and "another exception" not in text, text
        else:
            raise SystemExit("it was not interrupted")
        assert time.perf_counter() - sent[-1] < 20
        assert sorts()
"""


@pytest.mark.parametrize("processors", ["one", "all"])
def test_single_kernels_end(processors: str, run: Callable[..., str]) -> None:
    run(_START + _EAGER, processors)


_NOT_REMEMBERED: Final = """
for _ in range(20):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    except KeyboardInterrupt:
        pass
    assert sorts() and jnp.sort(values)[0] == values.min()
"""


def test_an_interrupt_while_no_kernel_runs_concerns_none(run: Callable[..., str]) -> None:
    run(_START + _NOT_REMEMBERED)


_OTHER_HANDLERS: Final = """
def noted(number, frame):
    seen.append(number)

function = repeated(lambda x: jnp.sort(-x), 20)
expected = np.asarray(function(values))
for handler in (noted, signal.SIG_IGN, noted):
    seen = []
    signal.signal(signal.SIGINT, handler)
    interrupt(0.05)
    np.testing.assert_array_equal(function(values), expected)
    time.sleep(0.2)
    assert len(seen) == (handler is noted)

# The first kernel after that notices that it may be interrupted again.
signal.signal(signal.SIGINT, signal.default_int_handler)
function = repeated(lambda x: jnp.sort(-x))
compiled = function.lower(values).compile()
interrupt(1)
try:
    compiled(values).block_until_ready()
except KeyboardInterrupt:
    assert time.perf_counter() - sent[-1] < 20
else:
    raise SystemExit("it was not interrupted")
assert sorts()
"""


@pytest.mark.parametrize("processors", ["one", "all"])
def test_kernels_end_only_where_an_interrupt_raises(
    processors: str, run: Callable[..., str]
) -> None:
    run(_START + _OTHER_HANDLERS, processors)


_OTHER_THREADS: Final = """
compiled = repeated(lambda x: jnp.sort(-x)).lower(values).compile()
errors, ended = [], threading.Event()

def wait():
    try:
        compiled(values).block_until_ready()
    except Exception as error:
        errors.append(error)
    ended.set()

threading.Thread(target=wait).start()
interrupt()
try:
    ended.wait()
    time.sleep(20)  # the thread is faster
except KeyboardInterrupt:
    pass
assert ended.wait(60)
assert isinstance(errors[0], dt.errors.JaxRuntimeError), errors
assert "interrupted by Ctrl-C" in str(errors[0])
assert sorts()
"""


def test_another_thread_gets_an_error(run: Callable[..., str]) -> None:
    run(_START + _OTHER_THREADS)


def test_every_kernel_is_registered_so_that_it_can_end() -> None:
    """What it throws would end the process otherwise."""
    native = Path(__file__).parents[3] / "packages" / "backend-cpu" / "native"
    sources = [*native.glob("*.cc"), *native.glob("*.h")]
    plain = [s.name for s in sources if "XLA_FFI_DEFINE_HANDLER" in s.read_text("utf-8")]
    assert plain == ["kernel.h"]
