"""`dt.profile` and its command."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.base import events

F = np.float32


def work(x: Any) -> Any:
    total = dt.jit(lambda x: (jnp.sin(x) @ x).sum())(x)
    for _ in range(40):
        total = total + float(total)
    np.asarray(jnp.asarray(np.ones((500, 500), F)))
    until = time.perf_counter() + 0.05
    while time.perf_counter() < until:
        pass
    return total


def test_time_is_divided_among_lines() -> None:
    x = jnp.ones((200, 200))
    with dt.profile(interval=0.001) as p:
        work(x)
    total = p.total()
    assert sum(total.values()) == pytest.approx(p.seconds)
    assert total["trace"] > 0
    assert total["compile"] > 0
    assert total["transfer"] > 0
    assert total["python"] > 0.03
    lines = [line for line in p.lines if line.file == __file__]
    assert sum(line.total for line in lines) >= 0.9 * p.seconds
    assert {line.function for line in lines} >= {"work"}
    traced = {line.line for line in lines if line.seconds.get("trace", 0) > 0}
    assert work.__code__.co_firstlineno + 1 in traced
    calls = {program.name: program.calls for program in p.programs}
    assert calls["add"] == 40
    assert calls["<lambda>"] == 1
    assert p.events.of("trace", name="<lambda>")
    text = str(p)
    assert "test_profile.py" in text
    assert "in all" in text
    assert "program" in text
    assert "<table>" in p._repr_html_()
    assert "lines" in repr(p)


def test_other_threads_are_left_out() -> None:
    def other() -> None:
        dt.jit(lambda x: x * 71)(F(1))

    with dt.profile() as p:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert p.total()["trace"] == 0
    assert not p.events.of("trace")


def test_files(tmp_path: Path) -> None:
    with dt.profile() as p:
        work(jnp.ones((20, 20)))
    p.write_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    lines = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["tid"] == 1]
    assert sum(e["dur"] for e in lines) == pytest.approx(p.seconds * 1e6)
    assert {e["cat"] for e in lines} >= {"python", "trace", "compile"}
    p.write_xplane(tmp_path)
    assert list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))


def test_a_block_that_raises() -> None:
    block = dt.profile()
    with pytest.raises(ZeroDivisionError), block as p:
        _ = 1 / 0
    assert p.seconds > 0
    assert events.listeners == ()
    assert not [t for t in threading.enumerate() if t.name == "dovetail profile"]


def test_two_at_once() -> None:
    before = sys.getswitchinterval()
    with dt.profile() as outer:
        with pytest.raises(RuntimeError, match="already been started"), dt.profile():
            pass
        with pytest.raises(RuntimeError, match="already been started"):
            dt.profiler.start_trace("/nowhere")
    assert outer.seconds > 0
    assert sys.getswitchinterval() == before
    with dt.profile() as again:
        pass
    assert "in all" in str(again)


def test_wrong_uses() -> None:
    for interval in (0, -1, "fast", float("nan")):
        with pytest.raises(ValueError, match="interval is a number of seconds"):
            dt.profile(interval=interval)  # type: ignore[arg-type]
    p = dt.profiler.Profile()
    assert str(p) == "a profile that has not ended"
    with pytest.raises(RuntimeError, match="has not ended"):
        p.write_xplane("/nowhere")


PROGRAM = """
import sys
import dovetail as dt
print(sys.argv[1:], __name__)
dt.jit(lambda x: x * 3)(1.0)
{end}
"""

ENDS = {
    "": (0, ""),
    "sys.exit(3)": (3, ""),
    "sys.exit('no more')": (1, "no more"),
    "1 / 0": (1, "ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_command(end: str, tmp_path: Path) -> None:
    code, words = ENDS[end]
    program, chrome = tmp_path / "program.py", tmp_path / "trace.json"
    program.write_text(PROGRAM.format(end=end))
    command = [sys.executable, "-m", "dovetail", "profile", "--chrome", str(chrome), str(program)]
    result = subprocess.run([*command, "-n", "3"], capture_output=True, text=True)
    assert result.returncode == code, result.stderr
    assert result.stdout == "['-n', '3'] __main__\n"
    assert words in result.stderr
    assert "program.py:5 (<module>)" in result.stderr
    assert "runpy" not in result.stderr
    assert json.loads(chrome.read_text())["traceEvents"]


def test_a_program_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    from dovetail.__main__ import main

    assert main(["profile", "not_there.py"]) == 2
    assert "there is no file not_there.py" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["profile", "--interval", "0", "program.py"])
