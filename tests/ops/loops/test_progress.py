"""The keyword `progress` of loops: what is shown, by which loops, under which transformations."""

from __future__ import annotations

import io
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import export, lax
from dovetail._core.base import progress_bars
from dovetail._core.ops.loops import progress as reports
from dovetail.experimental import io_callback

Text = str | None


class Terminal(io.StringIO):
    """A standard error that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """What a file gets that the standard error goes to."""
    parts = []

    def read() -> str:
        dt.effects_barrier()
        parts.append(capsys.readouterr().err)
        return "".join(parts)

    return read


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> str:
    """What a terminal gets while something runs, without tqdm."""
    file = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", file)
        patch.setitem(sys.modules, "tqdm.auto", None)
        dt.block_until_ready(run())
        dt.effects_barrier()
    return file.getvalue()


def turn(x: Any, _: Any) -> Any:
    return jnp.sin(x) + 1, x


def _scan(x: Any, progress: Any) -> Any:
    return lax.scan(turn, x, jnp.ones(9), progress=progress)[0]


def _scan_backwards(x: Any, progress: Any) -> Any:
    return lax.scan(turn, x, None, 9, reverse=True, unroll=2, progress=progress)[0]


def _fori_loop(x: Any, progress: Any) -> Any:
    return lax.fori_loop(3, 12, lambda i, c: turn(c, i)[0], x, progress=progress)


def _fori_loop_to_a_bound(x: Any, progress: Any) -> Any:
    end = jnp.asarray(x * 0, int) + 9
    return lax.fori_loop(0, end, lambda i, c: turn(c, i)[0], x, progress=progress)


def _while_loop(x: Any, progress: Any, **bounds: Any) -> Any:
    return lax.while_loop(
        lambda s: s[0] < 9,
        lambda s: (s[0] + 1, turn(s[1], 0)[0]),
        (0, x),
        progress=progress,
        **bounds,
    )[1]


def _bounded_while(x: Any, progress: Any) -> Any:
    return _while_loop(x, progress, max_steps=20, checkpoints=3)


def _map(x: Any, progress: Any) -> Any:
    return lax.map(lambda y: turn(x * y, 0)[0], jnp.arange(9.0), progress=progress).sum()


def _map_of_parts(x: Any, progress: Any) -> Any:
    xs = jnp.arange(19.0)
    return lax.map(lambda y: turn(x * y, 0)[0], xs, batch_size=2, progress=progress).sum()


LOOPS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "scan": (_scan, "scan of turn: 100% ######################## 9/9 ["),
    "scan backwards": (_scan_backwards, "scan of turn: 100% ######################## 9/9 ["),
    "fori_loop": (_fori_loop, "fori_loop of <lambda>: 100% ######################## 9/9 ["),
    "fori_loop to a bound": (_fori_loop_to_a_bound, "######################## 9/9 ["),
    "while_loop": (_while_loop, "while_loop of <lambda>: 9 ["),
    "bounded while_loop": (_bounded_while, "45% ##########.............. 9 of at most 20 ["),
    "map": (_map, "map of <lambda>: 100% ######################## 9/9 ["),
    "map of parts": (_map_of_parts, "map of <lambda>: 100% ######################## 9/9 ["),
}
FORWARD = {"fori_loop to a bound", "while_loop"}
WAYS: dict[str, Any] = {
    "eager": lambda f: lambda x: f(x[0]),
    "jit": lambda f: dt.jit(lambda x: f(x[0])),
    "grad": lambda f: lambda x: dt.grad(f)(x[0]),
    "jvp": lambda f: lambda x: dt.jvp(f, (x[0],), (x[1],)),
    "vmap": dt.vmap,
    "jit of grad of vmap": lambda f: dt.jit(dt.grad(lambda x: dt.vmap(f)(x).sum())),
    "checkpoint": lambda f: lambda x: dt.grad(dt.checkpoint(f))(x[0]),
}
CASES = [
    (way, loop)
    for way in WAYS
    for loop in LOOPS
    if way in ("eager", "jit", "jvp", "vmap") or loop not in FORWARD
]


@pytest.mark.parametrize(("way", "loop"), CASES)
def test_one_bar_and_the_same_results(way: str, loop: str, shown: Callable[[], str]) -> None:
    function, last = LOOPS[loop]
    x = jnp.array([0.5, 1.5])
    expected = WAYS[way](lambda x: function(x, None))(x)
    assert shown() == ""
    actual = WAYS[way](lambda x: function(x, "text"))(x)
    dt.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-6), actual, expected)
    lines = shown().splitlines()
    assert last in lines[-1]
    assert sum(last in line for line in lines) == 1


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "while_loop", "bounded while_loop", "map"])
def test_without_jit(loop: str, shown: Callable[[], str]) -> None:
    function, last = LOOPS[loop]
    with dt.disable_jit():
        function(jnp.float32(0.5), "text")
    assert last in shown().splitlines()[-1]


def test_elements_that_are_left(shown: Callable[[], str]) -> None:
    def loop(n: Any) -> Any:
        return lax.while_loop(lambda i: i < n, lambda i: i + 1, 0, progress="text")

    assert dt.vmap(loop)(jnp.array([0, 2, 5])).tolist() == [0, 2, 5]
    first, last = shown().splitlines()
    assert ": 0, 3 of 3 elements [" in first
    assert "while_loop of <lambda>: 5 [" in last


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("loop", ["scan", "fori_loop", "while_loop", "map"])
def test_short_loops(loop: str, turns: int, shown: Callable[[], str]) -> None:
    loops: dict[str, Any] = {
        "scan": lambda: lax.scan(turn, 0.0, None, turns, progress="text")[0],
        "fori_loop": lambda: lax.fori_loop(0, turns, lambda i, c: c + 1.0, 0.0, progress="text"),
        "while_loop": lambda: lax.while_loop(
            lambda c: c < turns, lambda c: c + 1, 0, progress="text"
        ),
        "map": lambda: lax.map(jnp.sin, jnp.ones(turns), progress="text"),
    }
    dt.block_until_ready(loops[loop]())
    assert len(shown().splitlines()) == 2 * turns


@pytest.mark.parametrize("turns", [7, 1000, 12345])
def test_there_are_few_reports(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    monkeypatch.setattr(reports, "show", lambda *args, **_: counts.append(int(args[2])))
    scanned = lambda n: lax.scan(lambda c, _: (c + 1, None), 0, None, n, progress="text")[0]
    counted = lambda n: lax.while_loop(lambda c: c < n, lambda c: c + 1, 0, progress="text")
    for loop in (scanned, counted):
        counts.clear()
        dt.block_until_ready(loop(turns))
        dt.effects_barrier()
        assert counts == sorted(counts)
        assert counts[-1] == turns
        assert min(turns, 90) <= len(counts) <= 32 * 14  # rarer the longer the loop runs


def test_switched_off_without_a_trace(shown: Callable[[], str]) -> None:
    traces = []

    def step(c: Any, _: Any) -> Any:
        traces.append(1)
        return c + 1, None

    loop = dt.jit(lambda c: lax.scan(step, c, None, 9, progress="text")[0])
    loop(0.0).block_until_ready()
    before = shown()
    assert before
    count = len(traces)
    dt.config.update("progress_bars", False)
    try:
        with dt.no_tracing(True):
            assert float(loop(0.0)) == 9
        assert shown() == before
    finally:
        dt.config.update("progress_bars", True)
    loop(0.0).block_until_ready()
    assert len(shown()) > len(before)
    assert len(traces) == count


def test_the_first_process_shows_bars(shown: Callable[[], str]) -> None:
    progress_bars.show_here(False)
    try:
        _scan(0.5, "text").block_until_ready()
        assert shown() == ""
    finally:
        progress_bars.show_here(True)


def test_a_terminal_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    text = on_a_terminal(monkeypatch, lambda: _scan(0.5, "text"))
    assert text.startswith("\rscan of turn:   0% ........................ 0/9 [")
    assert text.count("\n") == 1
    assert text.endswith(" s]\n")


def test_bars_of_inner_loops_go_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def outer(c: Any, _: Any) -> Any:
        return lax.scan(turn, c, jnp.ones(3), progress="text")[0], None

    text = on_a_terminal(monkeypatch, lambda: lax.scan(outer, 0.5, None, 4, progress="text")[0])
    assert text.count("\n") == 1
    assert "scan of outer: 100% ######################## 4/4" in text.splitlines()[-1]
    assert "scan of turn: 100% ######################## 3/3" in text


def test_the_line_ends_where_the_loop_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def host(c: Any) -> Any:
        if c > 4:
            raise ValueError("five is too many")
        return np.float32(c + 1)

    def step(c: Any, _: Any) -> Any:
        return io_callback(host, dt.ShapeDtypeStruct((), np.float32), c), None

    def loop(turns: int) -> Any:
        return lax.scan(step, 0.0, None, turns, progress="text")[0]

    def failing() -> None:
        with pytest.raises(ValueError, match="five"):
            loop(9).block_until_ready()

    assert on_a_terminal(monkeypatch, failing).endswith(" s]\n")
    text = on_a_terminal(monkeypatch, lambda: loop(3))
    assert "100% ######################## 3/3" in text.splitlines()[-1]


def test_tqdm_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bar:
        made: list[Any] = []  # noqa: RUF012

        def __init__(self, **given: Any) -> None:
            self.given, self.n, self.seen, self.closed = given, 0, [0], False
            Bar.made.append(self)

        def set_postfix_str(self, text: str, refresh: bool) -> None:
            assert not refresh

        def refresh(self) -> None:
            self.seen.append(self.n)

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    _scan(0.5, "text").block_until_ready()
    dt.effects_barrier()
    (bar,) = Bar.made
    assert bar.given == {"desc": "scan of turn", "total": 9, "leave": True, "file": None}
    assert bar.seen[-1] == 9
    assert bar.closed


def test_a_standard_error_that_is_closed_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (None, io.StringIO()):
        if file is not None:
            file.close()
        monkeypatch.setattr(sys, "stderr", file)
        assert np.isfinite(_scan(0.5, "text"))
        dt.effects_barrier()


@pytest.mark.parametrize("given", ["bar", "", True, 1, ["text"]])
@pytest.mark.parametrize("loop", ["scan", "fori_loop", "fori_loop to a bound", "while_loop", "map"])
def test_other_values_are_refused(loop: str, given: Any) -> None:
    function, _ = LOOPS[loop]
    with pytest.raises(ValueError, match='progress must be "text", to show a bar, or None, got'):
        function(0.5, given)


def test_exported_programs_cannot_show_bars() -> None:
    with pytest.raises(ValueError, match="report_progress calls a Python function"):
        export.export(dt.jit(lambda x: _scan(x, "text")))(1.0)


def test_references_and_batches_of_bodies(shown: Callable[[], str]) -> None:
    rows = dt.new_ref(jnp.zeros(3))

    def write(c: Any, row: Any) -> Any:
        row[...] = c
        return c + 1, None

    lax.scan(write, 1.0, rows, progress="text")
    assert rows[...].tolist() == [1, 2, 3]
    assert "3/3" in shown()
