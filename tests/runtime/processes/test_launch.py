"""`python -m dovetail launch` ends what it starts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from tests.runtime.processes.conftest import PATIENCE, PROGRAMS, children, surroundings

from dovetail.__main__ import main


def _is_there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


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
        workers = children({process.pid})
        below = workers | children(workers)
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


@pytest.mark.parametrize(("restarts", "status"), [(2, 0), (1, 5)])
def test_restarts(tmp_path, restarts, status):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, pathlib, sys, time\n"
        "path = pathlib.Path(__file__).with_name('starts')\n"
        "starts = len(path.read_text()) if path.exists() else 0\n"
        "if os.environ['DOVETAIL_PROCESS_ID'] == '1':\n"
        "    path.write_text('x' * (starts + 1))\n"
        "    print('start', starts + 1, os.environ['DOVETAIL_COORDINATOR_ADDRESS'])\n"
        "    sys.exit(4 + starts if starts < 2 else 0)\n"
        "while not path.exists() or len(path.read_text()) < 3:\n"
        "    time.sleep(0.05)\n"
    )
    words = ["launch", "-n", "2", "--restarts", str(restarts), str(program)]
    ended = subprocess.run(
        [sys.executable, "-m", "dovetail", *words],
        env=surroundings(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == status, ended.stdout
    told = re.findall("launch: (.*)", ended.stdout)
    assert told[0] == (
        "process 1 ended with status 4; the others are ended, and all are started again "
        f"({restarts} left)"
    )
    assert told[1].startswith("process 1 ended with status 5; the others are ended")
    assert len(told) == 2
    starts = dict(re.findall(r"\[1\] start (\d) (.*)", ended.stdout))
    assert set(starts) == set("123"[: restarts + 1])
    assert len(set(starts.values())) == len(starts), "each time with a coordinator of its own"


def test_mistakes(capsys):
    assert main(["launch", "-n", "2", "not_there.py"]) == 2
    assert "there is no file not_there.py" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["launch", "-n", "0", "not_there.py"])
    assert "0 is no number of 1 or more" in capsys.readouterr().err
