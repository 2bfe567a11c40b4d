"""What a signal handler raises, at whichever instruction, leaves nothing behind in the process.

`nox -s interrupts` sets `DOVETAIL_TESTING_INTERRUPTS` to the number of instructions tried in each
pattern; 0 stands for all of them.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental import checkify
from dovetail.ref import new_ref

sys.path.insert(0, str(Path(__file__).parent))
from interrupting import Interrupt, check_process, handle, interrupted_at

_TRIED: Final = int(os.environ.get("DOVETAIL_TESTING_INTERRUPTS", "25"))
_SIGNALS: Final = int(os.environ.get("DOVETAIL_TESTING_SIGNALS", "100"))
_X: Final = jnp.asarray(np.arange(1, 4, dtype=np.float32))

# A file that is open where the interrupt comes is closed with the frame.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

Call = Callable[[], Any]
PATTERNS: Final[dict[str, Callable[[], Call]]] = {}
# These are compiled anew each time; the others find their programs.
COMPILED: Final = ("compile", "disk_cache", "conditional", "loop", "reference", "callback")


def pattern(make: Callable[[], Call]) -> Callable[[], Call]:
    """Add a pattern: returns a call that has not been made before, as often as it is asked."""
    PATTERNS[make.__name__] = make
    return make


@pattern
def trace() -> Call:
    f = dt.jit(lambda x: jnp.sum(jnp.sin(x) * x))
    return lambda: f(_X)


@pattern
def compile() -> Call:
    f = dt.jit(lambda x: jnp.sum(jnp.cos(x) * x))
    return lambda: f(_X)


@pattern
def disk_cache() -> Call:
    f = dt.jit(lambda x: jnp.prod(jnp.sin(x) + x))

    def call() -> Any:
        with dt.config.option("persistent_cache_min_compile_time_secs")(0.0):
            return f(_X)

    return call


@pattern
def lower() -> Call:
    f = dt.jit(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x))
    return lambda: f(_X) if f.lower(_X).as_text() else None


@pattern
def dispatch() -> Call:
    return lambda: jnp.tanh(_X[None, :, None])[:, ::2] @ jnp.ones((3, 1, 2))


@pattern
def gradient() -> Call:
    f = dt.value_and_grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))
    return lambda: f(_X)


@pattern
def pulled_back() -> Call:
    return lambda: dt.vjp(lambda x: jnp.exp(x) * x, _X)[1](_X)


@pattern
def derivative_of_vmap() -> Call:
    f = dt.vmap(dt.grad(lambda x: jnp.sin(x) * x))
    return lambda: dt.jvp(f, (_X,), (_X,))


@pattern
def hessian() -> Call:
    f = dt.jit(dt.hessian(lambda x: jnp.sum(x**3)))
    return lambda: f(_X)


@pattern
def scan() -> Call:
    f = dt.grad(lambda x: lax.scan(lambda c, a: (c * a, c + a), x[0], x)[0])
    return lambda: f(_X)


@pattern
def conditional() -> Call:
    f = dt.grad(lambda x: lax.cond(jnp.sum(x) > 0, lambda x: jnp.sum(x * x), jnp.sum, x))
    return lambda: f(_X)


@pattern
def loop() -> Call:
    return lambda: lax.while_loop(lambda c: c[0] < 5.0, lambda c: c + 1, _X)


@pattern
def custom_rules() -> Call:
    @dt.custom_vjp
    def backward(x: Any) -> Any:
        return jnp.sin(x)

    backward.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (jnp.cos(x) * ct,))

    @dt.custom_jvp
    def forward(x: Any) -> Any:
        return jnp.sin(x)

    forward.defjvp(lambda p, t: (forward(*p), jnp.cos(p[0]) * t[0]))
    f = dt.grad(lambda x: jnp.sum(backward(x) * forward(x)))
    return lambda: f(_X)


@pattern
def rematerialization() -> Call:
    f = dt.grad(dt.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.sin(x)))))
    return lambda: f(_X)


@pattern
def checks() -> Call:
    f = checkify.checkify(dt.jit(lambda x: jnp.log(x) / x[0]), errors=checkify.float_checks)
    return lambda: f(_X)[1]


@pattern
def callback() -> Call:
    shape = dt.ShapeDtypeStruct((3,), np.float32)
    f = dt.jit(lambda x: dt.pure_callback(lambda v: np.asarray(jnp.asarray(v) * 2), shape, x))
    return lambda: f(_X)


@pattern
def reference() -> Call:
    ref = new_ref(jnp.zeros(3))

    @dt.jit
    def f(x: Any) -> Any:
        ref[...] = x * 2
        return ref[...] + x

    return lambda: f(_X)


@pattern
def key_reuse() -> Call:
    f = dt.jit(lambda key: dt.random.uniform(key, (3,)))

    def call() -> Any:
        with dt.debug_key_reuse(True):
            return f(dt.random.key(0))

    return call


@pattern
def scopes() -> Call:
    @dt.jit
    def f(x: Any) -> Any:
        with dt.named_scope("outer"), dt.ensure_compile_time_eval():
            return x * int(jnp.sum(jnp.arange(3)))

    def call() -> Any:
        with dt.enable_x64(True), dt.debug_nans(True), dt.transfer_guard("allow"):
            return f(_X)

    return call


@pattern
def caught_inside() -> Call:
    """A traced function goes on after an interrupt in a transformation that it uses."""

    @dt.jit
    def f(x: Any) -> Any:
        try:
            y = dt.vmap(lambda t: dt.grad(jnp.sin)(t) * 2)(x)
        except Interrupt:
            y = 2 * jnp.cos(x)
        return y + dt.jvp(jnp.sin, (x,), (x,))[1]

    return lambda: f(_X)


def _values(result: Any) -> Any:
    return dt.tree_util.tree_map(np.asarray, result)


@pytest.mark.parametrize("name", PATTERNS)
def test_interrupted_anywhere(name: str) -> None:
    make = PATTERNS[name]
    check_process()
    expected = _values(make()())
    if name in COMPILED:
        dt.clear_caches()
    _, total = interrupted_at(make(), 0)
    numbers = range(1, total + 1)
    if 0 < _TRIED < total:
        numbers = sorted(random.Random(name).sample(numbers, _TRIED))
    interrupted = 0
    for number in numbers:
        if name in COMPILED:
            dt.clear_caches()
        call = make()
        was, _ = interrupted_at(call, number)
        interrupted += was
        try:
            check_process()
            for _ in range(2):
                dt.tree_util.tree_map(
                    lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-5),
                    _values(call()),
                    expected,
                )
            check_process()
        except BaseException as error:
            error.add_note(f"after an interrupt at instruction {number} of {total}")
            raise
    assert interrupted


@pytest.fixture
def random_signals() -> Iterator[Callable[[Call, float], bool]]:
    """Calls a function with a signal on its way that raises; returns whether it came in time."""
    previous = signal.signal(signal.SIGALRM, handle)

    def call(function: Call, seconds: float) -> bool:
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                function()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupt:
            return True
        return False

    yield call
    signal.signal(signal.SIGALRM, previous)


def test_signals_at_random_times(random_signals: Callable[[Call, float], bool]) -> None:
    check_process()
    generator = random.Random(0)
    expected = {name: _values(make()()) for name, make in PATTERNS.items()}
    came = 0
    for number in range(_SIGNALS):
        name = generator.choice(list(PATTERNS))
        if name in COMPILED:
            dt.clear_caches()
        call = PATTERNS[name]()
        came += random_signals(call, generator.expovariate(1 / 0.01))
        try:
            check_process()
            dt.tree_util.tree_map(
                lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-5),
                _values(call()),
                expected[name],
            )
        except BaseException as error:
            error.add_note(f"in round {number}, of {name}")
            raise
    assert came
