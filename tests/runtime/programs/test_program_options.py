"""Options that say what becomes of programs: whether they run, where they are written, how hard
compilers try."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import config, lax
from dovetail._core.runtime.programs import compilation

X = jnp.arange(3.0)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = dict(config.values)
    yield
    for name, value in before.items():
        config.update(name, value)


# ------------------------------------------------------------------------------- no_execution

double = dt.jit(lambda x: x * 2)
compiled = dt.jit(lambda x: x * 3).lower(X).compile()

RUNS: dict[str, Callable[[], Any]] = {
    "a call that is known": lambda: double(X),
    "a new call": lambda: dt.jit(lambda x: x * 5)(X),
    "an operator": lambda: X + X,
    "a primitive": lambda: lax.sin(X),
    "a function": lambda: jnp.sum(X),
    "an element": lambda: X[0],
    "a compiled program": lambda: compiled(X),
    "a gradient": lambda: dt.grad(lambda x: jnp.sum(x * x))(X),
    "a loop": lambda: lax.fori_loop(0, 3, lambda i, x: x + i, X),
}
RUNS_NOT: dict[str, Callable[[], Any]] = {
    "tracing": lambda: dt.make_jaxpr(double)(X),
    "shapes": lambda: dt.eval_shape(double, X),
    "compilation": lambda: dt.jit(lambda x: x * 7).lower(X).compile(),
    "a transfer": lambda: dt.device_put(np.ones(3)),
    "reading": lambda: dt.device_get(X),
    "printing": lambda: str(X),
}


@pytest.mark.parametrize("name", RUNS)
def test_no_execution_refuses_to_run(name: str) -> None:
    RUNS[name]()
    for _ in range(2):
        with dt.no_execution(True), pytest.raises(RuntimeError, match="option no_execution"):
            RUNS[name]()
        RUNS[name]()


@pytest.mark.parametrize("name", RUNS_NOT)
def test_no_execution_allows_the_rest(name: str) -> None:
    with dt.no_execution(True):
        RUNS_NOT[name]()


# --------------------------------------------------------------------------------- dump_ir_to


def test_programs_are_dumped(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "dumps"
    with config.option("dump_ir_to")(str(folder)):
        dt.jit(lambda weights: weights * 17.5)(X)
    [file] = folder.iterdir()
    assert re.fullmatch(r"dovetail_ir\d+_jit__lambda__compile\.mlir", file.name)
    text = file.read_text()
    assert "stablehlo.multiply" in text
    assert "test_program_options.py" in text
    dt.jit(lambda weights: weights * 18.5)(X)
    assert list(folder.iterdir()) == [file]


def test_dumps_without_lines_and_into_the_folder_of_a_test_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sponge = config.option("dump_ir_to")("sponge")
    with sponge, pytest.raises(ValueError, match="TEST_UNDECLARED_OUTPUTS_DIR"):
        dt.jit(lambda weights: weights * 19.5)(X)
    monkeypatch.setenv("TEST_UNDECLARED_OUTPUTS_DIR", str(tmp_path))
    with sponge, config.option("include_debug_info_in_dumps")(False):
        dt.jit(lambda weights: weights * 20.5)(X)
    [file] = tmp_path.iterdir()
    assert "stablehlo.multiply" in file.read_text()
    assert "test_program_options.py" not in file.read_text()


# ------------------------------------------------------------------------------------ locations


def lines(**options: Any) -> int:
    """How many lines of this file the text of a program names."""

    def innermost(x: Any) -> Any:
        return lax.sin(x)

    def middle(x: Any) -> Any:
        return innermost(x)

    for name, value in options.items():
        config.update(name, value)
    text = dt.jit(lambda x: middle(x)).lower(X).as_text(debug_info=True)
    return len(set(re.findall(r'test_program_options\.py":(\d+)', text)))


def test_locations_have_as_many_lines_as_asked_for() -> None:
    full = lines()
    assert full >= 4
    assert lines(traceback_in_locations_limit=2) < full
    assert lines(traceback_in_locations_limit=-1) >= full
    few = lines(traceback_in_locations_limit=1)
    assert lines(traceback_in_locations_limit=10, include_full_tracebacks_in_locations=False) == few


# -------------------------------------------------------------------------- memory_fitting_level


@pytest.mark.parametrize(
    ("level", "number"), [("UNKNOWN", 0), ("O0", 9), ("O1", 19), ("O2", 29), ("O3", 39)]
)
def test_the_level_of_fitting_memory_reaches_the_compiler(level: str, number: int) -> None:
    with config.option("memory_fitting_level")(level):
        options, _ = compilation.compile_options("cpu", dt.devices()[:1])
        assert options.executable_build_options.memory_fitting_level == number
        assert dt.jit(lambda x: x + 1)(X).tolist() == [1, 2, 3]


def test_levels_of_fitting_memory_live_side_by_side() -> None:
    traces = []

    @dt.jit
    def counted(x: Any) -> Any:
        traces.append(x)
        return x + 1

    option = config.option("memory_fitting_level")
    for level in ("O0", "O2", "O0", "O2"):
        with option(level):
            counted(X)
    assert len(traces) == 2
