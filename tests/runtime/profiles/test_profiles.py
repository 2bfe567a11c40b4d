"""dovetail.profiler: profiles of programs, of Python and of memory."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import profiler
from dovetail._core.base.bindings import JAXLIB_VERSION
from dovetail._core.runtime.profiles import perfetto, sessions


@pytest.fixture(autouse=True)
def nothing_recorded() -> Iterator[None]:
    """What is imported at the first use is no part of a profile, and each test ends its own."""
    work()
    yield
    for stop, error in ((profiler.stop_trace, RuntimeError), (profiler.stop_server, ValueError)):
        with pytest.raises(error):
            stop()


def work() -> None:
    jnp.sin(jnp.ones(3)).block_until_ready()


def named(data: Any) -> dict[str, list[Any]]:
    """The events of a profile, by name."""
    found: dict[str, list[Any]] = {}
    for plane in data.planes:
        for line in plane.lines:
            for event in line.events:
                found.setdefault(event.name, []).append(event)
    return found


def facts(event: Any) -> dict[str, str]:
    """What an event says besides its name."""
    with warnings.catch_warnings():
        # jaxlib makes a class at the first use, and ends the process if a warning is an error.
        warnings.filterwarnings("ignore", "builtin type event_stats")
        return {name: str(value) for name, value in event.stats}


def written(folder: Path) -> tuple[Path, set[str]]:
    """The folder of the one profile below a folder, and the ends of the names of its files."""
    (profile,) = (folder / "plugins" / "profile").iterdir()
    assert [path.name for path in folder.iterdir()] == ["plugins"]
    return profile, {path.name.partition(".")[2] for path in profile.iterdir()}


def test_files_are_where_viewers_look(tmp_path: Path) -> None:
    with profiler.trace(tmp_path / "new") as session:
        assert session.is_running
        with profiler.TraceAnnotation("here", size=3):
            work()
    assert not session.is_running
    profile, names = written(tmp_path / "new")
    assert names == {"xplane.pb", "trace.json.gz"}
    assert re.fullmatch(r"\d{4}(_\d\d){5}", profile.name)
    (plain,) = profile.glob("*.xplane.pb")
    data = profiler.ProfileData.from_file(str(plain))  # which owns its events
    events = named(data)
    (here,) = events["here"]
    assert here.duration_ns > 0
    assert facts(here)["size"] == "3"
    with gzip.open(next(profile.glob("*.trace.json.gz"))) as file:
        assert "here" in {event.get("name") for event in json.load(file)["traceEvents"]}


@pytest.mark.parametrize("as_path", [str, Path])
def test_started_and_stopped(as_path: Any, tmp_path: Path) -> None:
    session = profiler.start_trace(as_path(tmp_path))
    assert isinstance(session, profiler.ProfileSession)
    with pytest.raises(RuntimeError, match="already been started"):
        profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match="already been started"), profiler.trace():
        pass
    work()
    data = profiler.stop_trace()
    assert isinstance(data, profiler.ProfileData)
    assert data is session.profile_data
    assert isinstance(next(iter(data.planes)), profiler.ProfilePlane)
    assert written(tmp_path)[1] == {"xplane.pb", "trace.json.gz"}


def test_profiles_in_memory(tmp_path: Path) -> None:
    with profiler.trace() as session, profiler.StepTraceAnnotation("train", step_num=4):
        work()
    assert session.log_dir is None
    (step,) = named(session.profile_data)["train"]
    assert facts(step)["step_num"] == "4"
    profiler.export_profile_data(session, tmp_path, session_id="mine", create_perfetto_trace=True)
    profile, names = written(tmp_path)
    assert profile.name == "mine"
    assert names == {"xplane.pb", "trace.json.gz", "json.gz"}
    with gzip.open(profile / "perfetto_trace.json.gz") as file:
        events = json.load(file)["traceEvents"]
    assert all(events)
    assert "train" in {event["name"] for event in events}


def test_profiles_written_again(tmp_path: Path) -> None:
    with profiler.trace() as session:
        work()
    if JAXLIB_VERSION < (0, 12):
        with pytest.raises(NotImplementedError, match="give the session"):
            profiler.export_profile_data(session.profile_data, tmp_path)
        session.export_profile_data(tmp_path)
    else:
        profiler.export_profile_data(session.profile_data, tmp_path)
    assert written(tmp_path)[1] == {"xplane.pb", "trace.json.gz"}


def test_sessions_that_run_are_stopped_and_written(tmp_path: Path) -> None:
    session = profiler.ProfileSession()
    assert not session.is_running
    with pytest.raises(RuntimeError, match="not running"):
        session.stop()
    with pytest.raises(RuntimeError, match="no profile to write"):
        session.export_profile_data(tmp_path)
    assert session.start() is session
    profiler.export_profile_data(session, tmp_path)
    assert not session.is_running
    assert written(tmp_path)[1] == {"xplane.pb", "trace.json.gz"}


def test_options(tmp_path: Path) -> None:
    """Without Python's own calls there are far fewer events."""
    counts = []
    for level in (1, 0):
        options = profiler.ProfileOptions()
        options.python_tracer_level = level
        with profiler.trace(profiler_options=options) as session:
            for _ in range(50):
                json.dumps([1, 2])
        counts.append(sum(map(len, named(session.profile_data).values())))
    assert counts[1] < counts[0] / 5


def test_a_profile_that_cannot_be_written(tmp_path: Path) -> None:
    """The error is the system's, and another profile can be recorded."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"), profiler.trace(tmp_path / "file"):
        work()
    with pytest.raises(KeyError), profiler.trace(tmp_path / "other"):
        raise KeyError
    assert written(tmp_path / "other")[1] == {"xplane.pb", "trace.json.gz"}


def test_annotated_functions() -> None:
    @profiler.annotate_function
    def load(x: int, *, y: int = 1) -> int:
        """Loads."""
        return x + y

    other = profiler.annotate_function(lambda x: x, name="other", size=2)
    with profiler.trace() as session:
        assert load(2, y=3) == 5
        assert other(1) == 1
    assert (load.__name__, load.__doc__) == ("load", "Loads.")
    events = named(session.profile_data)
    assert len(events["other"]) == 1
    assert any(name.endswith("load") for name in events)


def test_names_of_programs() -> None:
    """What a program does is on the timeline of the device."""

    @dt.jit
    def large(x: Any) -> Any:
        return x @ x

    x = jnp.ones((64, 64))
    large(x).block_until_ready()
    with profiler.trace() as session:
        large(x).block_until_ready()
    assert any("dot" in name or "large" in name for name in named(session.profile_data))


def test_memory_profiles(tmp_path: Path) -> None:
    kept = jnp.ones(1000)
    profile = gzip.decompress(profiler.device_memory_profile())
    assert b"buffer" in profile
    profiler.save_device_memory_profile(tmp_path / "memory.prof", backend="cpu")
    assert gzip.decompress((tmp_path / "memory.prof").read_bytes())
    with pytest.raises(dt.errors.BackendUnavailableError):
        profiler.device_memory_profile("abacus")
    assert kept.size == 1000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_server() -> None:
    port = free_port()
    assert profiler.start_server(port) is not None
    with pytest.raises(ValueError, match="Only one profiler server"):
        profiler.start_server(port)
    with socket.create_connection(("127.0.0.1", port), timeout=10):
        pass
    profiler.stop_server()
    for wrong in (0, 70000, "80", True, None):
        with pytest.raises(ValueError, match="from 1 to 65535"):
            profiler.start_server(wrong)  # type: ignore[arg-type]


SERVED = """
from dovetail import profiler
profiler.start_server({port}, requires_backend=False)
print("ready", flush=True)
input()
"""


def test_subprocesses() -> None:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-c", SERVED.format(port=port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        stop = profiler.register_subprocess(process.pid, port)
        stop()
        process.communicate("\n", timeout=20)
    with pytest.raises(ValueError, match="pid is that of this process"):
        profiler.register_subprocess(os.getpid(), 1)


def test_links_to_perfetto(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The viewer may read the profile, once."""
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        work()
    profile, _ = written(tmp_path)
    port = free_port()
    thread = threading.Thread(target=perfetto.serve_to_perfetto, args=(profile, port))
    thread.start()
    answers = []
    for path in ("/", "/perfetto_trace.json.gz"):
        for _ in range(100):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            try:
                connection.request("GET", path)
                answers.append(connection.getresponse())
                break
            except ConnectionRefusedError:
                threading.Event().wait(0.02)
    thread.join(10)
    assert not thread.is_alive()
    assert [answer.status for answer in answers] == [404, 200]
    assert answers[1].getheader("Access-Control-Allow-Origin") == "https://ui.perfetto.dev"
    assert gzip.decompress(answers[1].read())
    assert f"url=http://127.0.0.1:{port}/perfetto_trace.json.gz" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: profiler.start_trace(3), TypeError, "log_dir is the path"),
        (lambda: profiler.trace(profiler_options=3).__enter__(), TypeError, "ProfileOptions"),
        (lambda: profiler.export_profile_data(3, "x"), TypeError, "takes a profile"),
        (lambda: profiler.stop_trace(), RuntimeError, "No profile started"),
    ],
)
def test_mistakes(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("records", [False, True])
def test_libraries_are_asked_for_what_their_devices_do(
    records: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, if they have the extension for it."""
    plugin = SimpleNamespace(name="acme", records_profiles=records, capsule="the capsule")
    asked: list[Any] = []
    monkeypatch.setattr(sessions, "loaded_plugins", lambda: [plugin])
    monkeypatch.setattr(sessions, "_recording", set())
    monkeypatch.setattr(sessions._profiler, "register_plugin_profiler", asked.append)
    for _ in range(2):
        with profiler.trace():
            work()
    assert asked == ["the capsule"] * records
