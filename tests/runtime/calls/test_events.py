"""The stream of events: what is told, with which reason, and that it is all and nothing else."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.base import events as stream
from dovetail._core.plugins.manager import manager
from dovetail.errors import RecompilationError
from dovetail.extend import hookimpl
from dovetail.monitoring import Event

F = np.float32
MADE = ("compile", "load", "reuse")


@pytest.fixture(autouse=True)
def nobody_listens() -> Iterator[None]:
    yield
    assert stream.listeners == ()
    assert stream._garbage not in gc.callbacks


@pytest.fixture
def no_disk() -> Iterator[None]:
    with dt.config.option("enable_compilation_cache")(False):
        yield


class Spy:
    """An extension that sees every program that a compiler gets."""

    def __init__(self) -> None:
        self.names: list[str] = []

    @hookimpl(wrapper=True)
    def dovetail_compile(self, request: Any) -> Any:
        self.names.append(request.name)
        return (yield)


@pytest.fixture
def spy() -> Iterator[Spy]:
    found = Spy()
    manager().register(found, "spy of a test")
    yield found
    manager().unregister("spy of a test")


def fresh(text: str = "x * 2 + 1") -> Any:
    """A jitted function that no other test has called."""
    return dt.jit(eval(f"lambda x, y=0: {text}", {"jnp": jnp}))


# What is done, and the kinds of events that it causes: exactly these, but for garbage.
HAPPENINGS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "a first call": (lambda: fresh()(np.ones(3, F)), ["trace", "lower", "compile", "transfer"]),
    "shapes": (
        lambda: [f := fresh(), [f(jnp.ones(n)) for n in (3, 4, 3, 4)]],
        ["trace", "lower", "compile"] * 2,
    ),
    "an inner function": (
        lambda: dt.jit(lambda x: fresh("x - 7")(x))(jnp.ones(3)),
        ["trace", "trace", "lower", "compile"],
    ),
    "ahead of time": (
        lambda: fresh("x - 5").lower(F(1)).compile(),
        ["trace", "lower", "compile"],
    ),
    "an equal program": (
        lambda: [fresh("x - 6")(jnp.ones(3)), fresh("x - 6")(jnp.ones(3))],
        ["trace", "lower", "compile", "trace", "lower", "reuse"],
    ),
    "an operation": (lambda: jnp.hypot(jnp.ones(3), jnp.ones(3)), ["eager", "lower", "compile"]),
    "a primitive": (lambda: dt.lax.sin_p.bind(jnp.ones(3)), ["lower", "compile"]),
    "data": (lambda: dt.device_put(np.ones(3, F)), ["transfer"]),
    "nothing": (lambda: np.asarray(jnp.ones(3)).sum(), []),
}


@pytest.mark.parametrize("name", HAPPENINGS)
def test_what_is_told(name: str, no_disk: None, spy: Spy) -> None:
    happen, expected = HAPPENINGS[name]
    jnp.ones(3), jnp.ones(4)
    dt.clear_caches()
    jnp.ones(3), jnp.ones(4)
    before = len(spy.names)
    with dt.events() as log:
        happen()
    told = [event.kind for event in log if event.kind not in ("garbage", "wait")]
    if name not in ("a first call", "data"):  # arrays of the tests themselves
        told = [kind for kind in told if kind != "transfer"]
    assert told == expected
    assert len(log.of("compile")) == len(spy.names) - before
    for event in log:
        assert event.reason
        assert event.seconds >= 0
        assert event.kind == "garbage" or "test_events.py" in event.where
        assert event.name in str(event)


def test_reasons_have_parts() -> None:
    f = dt.jit(lambda params, x, n=2: params["w"] * x * n, static_argnames="n")
    w, v = jnp.ones(3), jnp.ones((2, 3))
    f({"w": w}, 1.0)
    with dt.events("trace") as log:
        f({"w": v}, 1.0)
        f({"w": w}, 1.0, n=3)
        f({"w": w}, x=1.0)
    assert [(e.argument, e.before, e.after) for e in log] == [
        ("params['w']", "f32[3]", "f32[2,3]"),
        ("the static argument 'n'", "not passed", "3"),
        ("x", "passed by position", "passed by keyword"),
    ]
    assert all(event.remedy and not event.eager for event in log)


def test_compilations_have_the_reason_of_their_trace(no_disk: None) -> None:
    f = fresh("x * 11")
    f(jnp.ones(3))
    with dt.events("trace", "lower", "compile") as log:
        f(jnp.ones((3, 3)))
    own = log.of(name="<lambda>")
    assert [event.kind for event in own] == ["trace", "lower", "compile"]
    assert {event.argument for event in own} == {"x"}


def test_another_device_is_a_reason() -> None:
    devices = dt.devices()
    f = fresh("x * 12")
    f(dt.device_put(F(1), devices[0]))
    with dt.events(*MADE) as log:
        f(dt.device_put(F(1), devices[1]))
    (event,) = log
    assert (event.before, event.after) == (str(devices[0]), str(devices[1]))


def test_arguments_of_the_host_are_told_in_each_call() -> None:
    f = fresh("x['a'] + y")
    x = {"a": np.ones(3, F)}
    f(x)
    with dt.events("transfer") as log:
        f(x)
        f(x)
    copied = [event for event in log if event.argument == "x['a']"]
    assert [event.nbytes for event in copied] == [12, 12]
    assert all("asarray" in event.remedy for event in copied)


def test_donations_that_fail() -> None:
    f = dt.jit(lambda p, x: x[:2], donate_argnums=(0, 1))
    with dt.events("donation") as log, pytest.warns(UserWarning, match="not usable"):
        f({"w": jnp.ones(5)}, jnp.ones(3))
    assert [event.argument for event in log] == ["p['w']", "x"]


def test_waiting() -> None:
    x = jnp.ones((600, 600))
    product = dt.jit(lambda x: x @ x @ x @ x @ x)
    product(x).block_until_ready()
    with dt.events("wait") as log:
        product(x).block_until_ready()
        dt.block_until_ready([product(x), product(x)])
        np.asarray(product(x))
    assert len(log) <= 3  # a fast machine has a result before it is asked for
    assert all(event.name == "f32[600,600]" for event in log)


def test_garbage() -> None:
    with dt.events("garbage") as log:
        gc.collect()
    assert log[-1].name == "generation 2"
    assert log[-1].reason.startswith("Python looked for garbage of generation 2, and freed ")


def test_the_cache_on_disk(tmp_path: Any) -> None:
    code = (
        "import dovetail as dt\n"
        "with dt.events('compile', 'load') as log: dt.jit(lambda x: x * 13)(1.0)\n"
        "print([e.kind for e in log])"
    )
    environment = {**os.environ, "DOVETAIL_COMPILATION_CACHE_DIR": str(tmp_path)}
    kinds = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert kinds == ["['compile']", "['load']"]


def test_all_threads_are_heard(no_disk: None) -> None:
    with dt.events("trace") as log:
        thread = threading.Thread(target=lambda: fresh("x - 14")(F(1)))
        thread.start()
        thread.join()
    (event,) = log.of("trace")
    assert event.thread != threading.get_ident()


def test_logs() -> None:
    with dt.events() as outer:
        with dt.events("trace") as inner:
            fresh("x - 15")(F(1))
        fresh("x - 16")(F(1))
    assert len(inner) == 1
    assert len(outer.of("trace")) == 2
    assert outer.counts()["trace"] == 2
    assert outer.seconds()["trace"] >= inner[0].seconds
    assert inner[0] == inner[:1][0]
    assert "it was not called before" in str(outer) or "made anew" in str(outer)
    assert "2 trace" in str(outer)
    assert str(outer).count("\n") == len(outer) + 1
    assert "<table>" in outer._repr_html_()
    assert str(type(inner)()) == "no events"
    with pytest.raises(ValueError, match="Did you mean 'compile'"):
        dt.events("compiles")  # type: ignore[arg-type]


def test_a_block_that_raises_hears_no_more() -> None:
    block = dt.events("trace")
    with pytest.raises(ZeroDivisionError), block:
        _ = 1 / 0
    fresh("x - 17")(F(1))
    with block as log:
        assert len(log) == 0


def test_one_block_twice() -> None:
    block = dt.events("trace")
    with block as first:
        fresh("x - 18")(F(1))
    with block as second:
        fresh("x - 19")(F(1))
    assert first is second
    assert len(first) == 2


# ---------------------------------------------------------------------------------------------
# no_recompiles


def remade() -> None:
    for _ in range(2):
        dt.jit(lambda x: x * 21)(F(1))


AGAIN: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], str]] = {
    "shape": (lambda f: f(jnp.ones(3)), lambda f: f(jnp.ones(4)), r"x is f32\[4\]; it was f32"),
    "dtype": (lambda f: f(F(1)), lambda f: f(np.int32(1)), r"x is i32\[\]; it was f32"),
    "option": (lambda f: f(F(1)), lambda f: dt.enable_x64(True)(f)(F(1)), "enable_x64 is True"),
    "made anew": (lambda f: None, lambda f: remade(), "define and jit it once"),
    "inside": (lambda f: f(F(1)), lambda f: dt.jit(lambda y: f(y))(jnp.ones(2)), "x is f32"),
}


@pytest.mark.parametrize("name", AGAIN)
def test_no_recompiles(name: str) -> None:
    first, again, reason = AGAIN[name]
    f = dt.jit(lambda x: x * 20)
    first(f)
    with dt.no_recompiles():
        first(f)
        with pytest.raises(RecompilationError, match=f"would have to be compiled.*{reason}"):
            again(f)
        first(f)
    again(f) if name != "made anew" else None


def test_a_first_call_is_no_recompilation() -> None:
    with dt.no_recompiles():
        fresh("x - 22")(F(1))


def test_eager_operations_count_if_asked_for() -> None:
    jnp.i0(jnp.ones(3))
    x = jnp.ones((7, 3))
    with dt.no_recompiles():
        jnp.i0(x)
    x = jnp.ones((7, 4))
    with dt.no_recompiles(eager=True), pytest.raises(RecompilationError, match="i0"):
        jnp.i0(x)


def test_other_threads_are_not_watched() -> None:
    f = fresh("x - 23")
    f(F(1))
    raised: list[BaseException] = []

    def call() -> None:
        try:
            f(jnp.ones(2))
        except BaseException as error:
            raised.append(error)

    with dt.no_recompiles():
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert raised == []


# ---------------------------------------------------------------------------------------------
# the option

LEVELS = {
    0: set(),
    1: {"compile"},
    2: {"compile", "trace"},
    3: {"compile", "trace", "transfer"},
    4: {"compile", "trace", "transfer", "lower"},
}


@pytest.mark.parametrize("level", LEVELS)
def test_printing(level: int, capsys: pytest.CaptureFixture[str], no_disk: None) -> None:
    dt.clear_caches()
    dt.config.update("debug", level)
    try:
        dt.jit(lambda x: x * (30 + level))(np.ones(3, F))
    finally:
        dt.config.update("debug", 0)
    lines = capsys.readouterr().err.splitlines()
    kinds = {line.split()[1] for line in lines if line.startswith("dovetail: ")}
    assert kinds - {"wait", "garbage", "eager"} == LEVELS[level]
    dt.jit(lambda x: x * 40)(F(1))
    assert capsys.readouterr().err == ""


def test_an_event_is_described() -> None:
    assert {kind for added in stream._LEVELS for kind in added} == set(stream.KINDS)
    assert all(f'``"{kind}"``' in (Event.__doc__ or "") for kind in stream.KINDS)


# ---------------------------------------------------------------------------------------------
# the fixture


def test_assert_compiles(assert_compiles: Any) -> None:
    f = fresh("x - 50")
    x, y = jnp.ones(3), jnp.ones(4)
    with assert_compiles(1) as log:
        f(x)
        f(x)
    assert len(log.of("trace")) == 1
    with assert_compiles(0):
        f(x)
    with assert_compiles(2):
        f(y)
        fresh("x - 51")(y)
    failed = pytest.fail.Exception
    with pytest.raises(failed, match=r"1 .* expected, and 0 were made"), assert_compiles(1):
        f(x)
    with pytest.raises(failed, match=r"x is f32\[2,2\]; it was"), assert_compiles(0):
        f(jnp.ones((2, 2)))
    with pytest.raises(ZeroDivisionError), assert_compiles(5):
        _ = 1 / 0


def test_assert_compiles_counts_operations_if_asked(assert_compiles: Any) -> None:
    x = jnp.ones((11, 3))
    with assert_compiles(0):
        jnp.expm1(x)
    x = jnp.ones((11, 4))
    with assert_compiles(1, eager=True):
        jnp.expm1(x)
