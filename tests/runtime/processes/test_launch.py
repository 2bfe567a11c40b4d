"""`python -m dovetail launch` ends what it starts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from tests.runtime.processes.conftest import PATIENCE, PROGRAMS, surroundings

from dovetail.__main__ import main


def _is_there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _children_of_all(pids: set[int]) -> set[int]:
    """These processes, and coordinators that they have started: sessions of their own."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent in pids:
            found.add(int(name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("how", "status"),
    [("raise", 1), (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
)
def test_nothing_is_left(how, status):
    arguments = [how] if how == "raise" else []
    command = [sys.executable, "-m", "dovetail", "launch", "-n", "2", str(PROGRAMS / "forever.py")]
    process = subprocess.Popen(
        [*command, *arguments],
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        lines: list[str] = []
        while sum("waiting" in line for line in lines) < 2:
            lines.append(process.stdout.readline())
            assert lines[-1], lines
        workers = _children_of_all({process.pid})
        below = workers | _children_of_all(workers)
        if isinstance(how, signal.Signals):
            process.send_signal(how)
        assert process.wait(PATIENCE) == status
        if how == "raise":
            text = "".join(lines) + process.stdout.read()
            assert "[1] ValueError: enough" in text
            assert "runpy" not in text
            assert "launch: process 1 ended with status 1; the others are ended" in text
        until = time.monotonic() + 15
        # A killed launch ends its processes; what these have started is their own to end.
        own = workers if how == signal.SIGKILL else below
        while any(map(_is_there, own)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not [pid for pid in own if _is_there(pid)]
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
        for line in lines:
            child = re.search(r"waiting (\d+)", line)
            if child is not None and _is_there(int(child[1])):
                os.kill(int(child[1]), signal.SIGKILL)


def test_mistakes(capsys):
    assert main(["launch", "-n", "2", "not_there.py"]) == 2
    assert "there is no file not_there.py" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["launch", "-n", "0", "not_there.py"])
    assert "0 is no number of 1 or more" in capsys.readouterr().err
