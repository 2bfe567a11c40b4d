"""dovetail.monitoring: events, and functions that listen to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dovetail as dt
from dovetail import monitoring

#: Of each kind of event: what records one, its arguments, what registers and unregisters listeners.
KINDS = {
    "event": (
        monitoring.record_event,
        (),
        monitoring.register_event_listener,
        monitoring.unregister_event_listener,
    ),
    "duration": (
        monitoring.record_event_duration_secs,
        (1.5,),
        monitoring.register_event_duration_secs_listener,
        monitoring.unregister_event_duration_listener,
    ),
    "time span": (
        monitoring.record_event_time_span,
        (1.0, 2.0),
        monitoring.register_event_time_span_listener,
        monitoring.unregister_event_time_span_listener,
    ),
    "scalar": (
        monitoring.record_scalar,
        (3,),
        monitoring.register_scalar_listener,
        monitoring.unregister_scalar_listener,
    ),
}

COMPILE = "/jax/core/compile"
CACHE = "/jax/compilation_cache"
STEPS = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")


@pytest.fixture(autouse=True)
def nobody_listens() -> Iterator[None]:
    yield
    monitoring.clear_event_listeners()


@pytest.mark.parametrize("kind", KINDS)
def test_listeners(kind: str) -> None:
    record, values, register, unregister = KINDS[kind]
    heard: list[Any] = []

    def listen(event: str, *values: Any, **facts: Any) -> None:
        heard.append((event, values, facts))

    register(listen)
    register(listen)
    record("/acme", *values, size=3, text="x")
    assert heard == [("/acme", values, {"size": 3, "text": "x"})] * 2
    unregister(listen)
    record("/other", *values)
    assert heard[2:] == [("/other", values, {})]
    monitoring.clear_event_listeners()
    record("/acme", *values)
    assert len(heard) == 3
    with pytest.raises(ValueError, match="no listener that is registered"):
        unregister(listen)
    with pytest.raises(TypeError, match="a listener is a function, got 3"):
        register(3)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_are_apart(kind: str) -> None:
    heard: list[str] = []
    for name, (_, _, register, _) in KINDS.items():
        register(lambda *args, name=name, **facts: heard.append(name))
    record, values, _, _ = KINDS[kind]
    record("/acme", *values)
    assert heard == [kind]


def test_listeners_may_change_the_listeners() -> None:
    heard: list[str] = []

    def once(event: str, **facts: Any) -> None:
        heard.append(f"once {event}")
        monitoring.unregister_event_listener(once)
        monitoring.register_event_listener(later)

    def later(event: str, **facts: Any) -> None:
        heard.append(f"later {event}")

    monitoring.register_event_listener(once)
    monitoring.record_event("1")
    monitoring.record_event("2")
    assert heard == ["once 1", "later 2"]


def test_errors_of_listeners_are_raised() -> None:
    def fail(event: str, **facts: Any) -> None:
        raise KeyError(event)

    monitoring.register_event_listener(fail)
    with pytest.raises(KeyError, match="acme"):
        monitoring.record_event("acme")


@pytest.fixture
def heard() -> list[Any]:
    """All events, with their kind."""
    found: list[Any] = []
    for kind, (_, _, register, _) in KINDS.items():
        register(lambda event, *v, kind=kind, **f: found.append((kind, event, v, f)))
    return found


def test_steps_to_a_program(heard: list[Any], tmp_path: Path) -> None:
    """Each step tells when it begins, how long it takes, and when it began and ended."""

    def triple_and_more(x: Any) -> Any:
        return x * 3 + 41

    before = time.time()
    with dt.config.option("enable_compilation_cache")(False):
        dt.jit(triple_and_more)(2.0)
    after = time.time()
    names = ("triple_and_more", "jit(triple_and_more)", "jit(triple_and_more)")
    steps = [
        (kind, f"{COMPILE}/{step}", {"fun_name": name})
        for step, name in zip(STEPS, names, strict=True)
        for kind in ("scalar", "duration", "time span")
    ]
    assert [(kind, event, facts) for kind, event, _, facts in heard] == steps
    for kind, _, values, _ in heard:
        if kind == "duration":
            assert 0 < values[0] < after - before + 0.1
        else:
            assert list(values) == sorted(values)
            assert all(before <= value <= after + 0.1 for value in values)
    heard.clear()
    dt.jit(triple_and_more)
    assert heard == []


def test_compiled_ahead_of_time(heard: list[Any]) -> None:
    lowered = dt.jit(lambda x: x - 43).lower(2.0)
    assert [e.removeprefix(f"{COMPILE}/") for k, e, _, _ in heard if k == "duration"] == [
        *STEPS[:2]
    ]
    lowered.compile()
    assert STEPS[2] in {e.removeprefix(f"{COMPILE}/") for k, e, _, _ in heard if k == "duration"}


def test_the_cache_on_disk(heard: list[Any], tmp_path: Path) -> None:
    def of_cache() -> list[str]:
        names = [e.removeprefix(f"{CACHE}/") for _, e, _, _ in heard if e.startswith(CACHE)]
        heard.clear()
        return names

    with (
        dt.config.option("compilation_cache_dir")(str(tmp_path)),
        dt.config.option("enable_compilation_cache")(True),
    ):
        for expected in (
            ["compile_requests_use_cache", "cache_misses"],
            ["compile_requests_use_cache", "cache_retrieval_time_sec", "cache_hits"],
        ):
            dt.jit(lambda x: x * 47 - 1)(2.0)
            assert of_cache() == expected
            dt.clear_caches()


def test_no_events_of_failed_steps(heard: list[Any]) -> None:
    zero = 0
    with pytest.raises(ZeroDivisionError):
        dt.jit(lambda x: x + 1 // zero)(1.0)
    assert [kind for kind, *_ in heard] == ["scalar"]
