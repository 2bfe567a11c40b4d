"""The example that trains in spite of kills, and its checkpoints."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.processes.conftest import PATIENCE, children, surroundings

import dovetail as dt
from dovetail.sharding import NamedSharding
from dovetail.sharding import PartitionSpec as P

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def checkpoints(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    import checkpoints

    yield checkpoints
    del sys.modules["checkpoints"]


def _train(kills, steps):
    """How many processes have trained from which steps on, in words."""
    words = ["--kills", str(kills), "--steps", str(steps), "--patience", str(2 * PATIENCE)]
    command = [sys.executable, str(EXAMPLES / "train_through_kills.py"), *words]
    ended = subprocess.run(
        command,
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert f"kill {kills}: process" in ended.stdout
    assert "those of undisturbed training, bit for bit" in ended.stdout
    starts = re.findall(r"(\d processes train from step \d+) on", ended.stdout)
    undisturbed, first, *later = starts
    assert undisturbed == "2 processes train from step 0"
    assert first == "3 processes train from step 0"
    return later


def test_two_kills():
    assert any(re.match("[12] processes train from step [1-9]", text) for text in _train(2, 120))


def test_five_kills():
    assert any(re.match("4 processes train from step [1-9]", text) for text in _train(5, 600))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_coordinator_is_killed(tmp_path):
    """jaxlib ends all processes then; they are started again, and go on."""
    words = ["launch", "-n", "2", "--restarts", "1", str(EXAMPLES / "train_through_kills.py")]
    words += ["--folder", str(tmp_path), "--steps", "2000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "dovetail", *words],
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        until = time.monotonic() + PATIENCE
        while not list(tmp_path.glob("step-*")) and time.monotonic() < until:
            time.sleep(0.01)
        (coordinator,) = children(children({process.pid}))
        os.kill(coordinator, signal.SIGKILL)
        text, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0, text
    assert "the others are ended, and all are started again (1 left)" in text
    assert re.search("2 processes train from step [1-9]", text), text
    assert (tmp_path / "step-00002000").exists()


VALUES = {"rows": np.arange(24.0, dtype=np.float32).reshape(8, 3), "one": np.float32(7)}


def state_on(mesh, spec):
    """The values over a mesh; its types, with the shardings."""
    placed = {
        "rows": dt.device_put(VALUES["rows"], NamedSharding(mesh, spec)),
        "one": dt.device_put(VALUES["one"], NamedSharding(mesh, P())),
    }
    return placed, dt.tree.map(
        lambda x: dt.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), placed
    )


def test_restoring_on_other_devices(tmp_path, checkpoints):
    four = dt.make_mesh((4,), ("x",))
    state, _ = state_on(four, P("x"))
    assert checkpoints.restore(tmp_path, {}, four) is None
    (tmp_path / "unfinished-1").mkdir()
    for step in (1, 20, 300, 4000):
        checkpoints.save(tmp_path, step, state, four)
    assert checkpoints.steps(tmp_path) == [4000, 300, 20], "the oldest is gone"
    assert not list(tmp_path.glob("unfinished-*"))
    files = sorted(path.name for path in (tmp_path / "step-00004000").iterdir())
    assert files == [*(f"0-{n}.npy" for n in range(5)), "process-0.json"], "each part is there once"
    for shape, names, spec in [
        ((1,), ("x",), P()),
        ((2, 2), ("x", "y"), P("y", None)),
        ((2,), ("z",), P("z")),
        ((4,), ("z",), P()),
    ]:
        mesh = dt.make_mesh(shape, names, devices=dt.devices()[: int(np.prod(shape))])
        _, like = state_on(mesh, spec)
        step, found = checkpoints.restore(tmp_path, like, mesh)
        assert step == 4000
        for name, value in VALUES.items():
            assert found[name].sharding == like[name].sharding
            np.testing.assert_array_equal(found[name], value)


def torn(newest):
    path = newest / "0-1.npy"
    path.write_bytes(path.read_bytes()[:-5])


def changed(newest):
    path = newest / "0-2.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def shorter(newest):
    """A process's list, with one part less."""
    path = newest / "process-0.json"
    path.write_text(json.dumps(json.loads(path.read_text())[:-1]))


def torn_list(newest):
    path = newest / "process-0.json"
    path.write_text(path.read_text()[:-20])


def other_shape(newest):
    path = newest / "process-0.json"
    path.write_text(path.read_text().replace("[8, 3]", "[9, 3]"))


DAMAGE = {
    "torn": (torn, "0-1.npy has another checksum"),
    "changed": (changed, "0-2.npy has another checksum"),
    "missing": (lambda newest: (newest / "0-0.npy").unlink(), "FileNotFoundError: .*0-0.npy"),
    "missing list": (lambda newest: (newest / "process-0.json").unlink(), "are missing"),
    "shorter list": (shorter, r"parts of array\['rows'\] are missing"),
    "torn list": (torn_list, "JSONDecodeError"),
    "another shape": (other_shape, r"has another array\['rows'\]"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_bad_checkpoints(tmp_path, checkpoints, capsys, name):
    damage, text = DAMAGE[name]
    mesh = dt.make_mesh((4,), ("x",))
    state, like = state_on(mesh, P("x"))
    for step in (1, 2):
        checkpoints.save(tmp_path, step, state, mesh)
    damage(tmp_path / "step-00000002")
    step, found = checkpoints.restore(tmp_path, like, mesh)
    assert step == 1
    np.testing.assert_array_equal(found["rows"], VALUES["rows"])
    assert re.search(f"checkpoint 2 is bad: .*{text}.*; the one before", capsys.readouterr().out)
    checkpoints.save(tmp_path, 2, state, mesh)  # it is written anew
    assert checkpoints.restore(tmp_path, like, mesh)[0] == 2
    damage(tmp_path / "step-00000001")
    damage(tmp_path / "step-00000002")
    assert checkpoints.restore(tmp_path, like, mesh) is None
