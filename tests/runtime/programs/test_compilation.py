"""The table of executables, compile options, statistics, logs."""

from __future__ import annotations

import logging
import re
import threading
import time

import numpy as np
import pytest

import dovetail as dt
from dovetail._core.base import config
from dovetail._core.runtime.programs import compilation
from dovetail.extend import hookimpl, manager
from dovetail_cpu.runtime import TILES_ARE_SLOW


@pytest.fixture(autouse=True)
def no_disk():
    with config.enable_compilation_cache(False):
        yield


@pytest.fixture
def compiled():
    """Counts compilations from here on."""
    before = compilation.statistics().compiled
    return lambda: compilation.statistics().compiled - before


def test_equal_programs_are_compiled_once(compiled):
    x = dt.device_put(np.float32(3))
    for _ in range(4):
        assert dt.jit(lambda v: dt.lax.add(v, 17.25))(x).item() == 20.25
    assert compiled() == 1
    assert compilation.statistics().reused >= 3
    assert dt.jit(lambda v: dt.lax.add(v, 17.5))(x).item() == 20.5
    assert compiled() == 2


def test_device_and_options_tell_apart(compiled):
    def f(v):
        return dt.lax.add(v, 18.25)

    x = np.float32(1)
    dt.jit(f)(x)
    dt.jit(f, device=dt.devices()[1])(x)
    dt.jit(f, compiler_options={"xla_cpu_enable_fast_math": True})(x)
    assert compiled() == 3


@pytest.mark.parametrize(
    ("level", "effort", "overrides"),
    [("UNKNOWN", 0, []), ("O0", 9, [0]), ("O1", 19, [1]), ("O3", 39, [3])],
)
def test_optimization_level(level, effort, overrides):
    with dt.optimization_level(level):
        options, _ = compilation.compile_options("cpu", dt.devices()[:1])
        assert options.executable_build_options.optimization_level == effort
        assert options.env_option_overrides == [
            ("xla_backend_optimization_level", number) for number in overrides
        ]
        assert float(dt.jit(lambda v: dt.lax.sin(v))(np.float32(0.5))) == pytest.approx(0.479426)
    asked = compilation.compile_options("cpu", dt.devices()[:1], {"optimization_level": 29})[0]
    with dt.optimization_level(level):
        again = compilation.compile_options("cpu", dt.devices()[:1], {"optimization_level": 29})[0]
    assert asked is again  # what a function asks for comes before what a process asks for


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        # The program is elementwise.
        ({}, {"xla_cpu_disable_tiled_emitter": ""} if TILES_ARE_SLOW else {}),
        ({"xla_backend_extra_options": "xla_a=1,xla_b"}, {"xla_a": "1", "xla_b": ""}),
        ({"xla_backend_extra_options": ""}, {}),
        ({"xla_backend_extra_options": "xla_c=" + 300 * "x"}, {"xla_c": 300 * "x"}),
    ],
)
def test_options_without_a_name_of_their_own_reach_the_compiler(tmp_path, asked, found):
    dump = {"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_text": True}
    dt.jit(lambda v: dt.lax.add(v, v), compiler_options=asked | dump)(np.float32(1))
    (path,) = tmp_path.glob("*debug_options")
    table = re.findall(
        r'xla_backend_extra_options: \{\s*key: "(.*)"\s*value: "(.*)"', path.read_text()
    )
    assert dict(table) == found


def test_transposed_elements_are_compiled_in_tiles(tmp_path):
    dump = {"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_text": True}
    dt.jit(lambda v: dt.lax.transpose(v, (1, 0)), compiler_options=dump)(np.ones((2, 3)))
    (path,) = tmp_path.glob("*debug_options")
    assert "tiled" not in path.read_text()


def test_options_of_llvm_are_refused():
    with pytest.raises(ValueError, match=r"begin with 'xla_'.*got 'O5'"):
        dt.jit(lambda v: v, compiler_options={"xla_backend_extra_options": "xla_a,O5"})(1.0)


def test_programs_of_other_levels_are_others(compiled):
    f = dt.jit(lambda v: dt.lax.add(v, 21.25))
    for level in ("UNKNOWN", "O0", "UNKNOWN", "O0"):
        with dt.optimization_level(level):
            assert np.asarray(f(np.float32(1))) == 22.25
    assert compiled() == 2


def test_clear_caches_forgets(compiled):
    f = dt.jit(lambda v: dt.lax.add(v, 19.25))
    f(np.float32(1))
    assert compiled() == 1
    dt.clear_caches()
    f(np.float32(1))
    assert compiled() == 2
    f.clear_cache()
    f(np.float32(1))
    assert compiled() == 2  # the program in memory is found by its content


def test_statistics_and_log(caplog):
    before = compilation.statistics()
    with caplog.at_level(logging.WARNING, "dovetail"):
        dt.jit(lambda v: dt.lax.add(v, 20.25))(np.float32(1))
        assert not caplog.records
        with dt.log_compiles(True):
            dt.jit(lambda v: dt.lax.add(v, 21.25))(np.float32(1))
    after = compilation.statistics()
    assert after.compiled == before.compiled + 2
    assert after.compile_seconds > before.compile_seconds
    assert any("compiled jit__lambda" in record.getMessage() for record in caplog.records)


class SlowCompiler:
    """Wraps compilation: counts it, and takes its time."""

    def __init__(self, pause=0.0, fail=0):
        self.names = []
        self.pause = pause
        self.fail = fail

    @hookimpl(wrapper=True)
    def dovetail_compile(self, request):
        self.names.append(request.name)
        time.sleep(self.pause)
        if self.fail:
            self.fail -= 1
            raise RuntimeError("the compiler has a bad day")
        return (yield)


@pytest.fixture
def slow():
    plugin = SlowCompiler(0.2)
    manager().register(plugin, "slow compiler")
    yield plugin
    manager().unregister("slow compiler")


def run_together(count, function):
    errors, results = [], []

    def run(number):
        try:
            results.append(function(number))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return results, errors


def test_threads_wait_for_one_compilation(slow):
    x = dt.device_put(np.float32(1))

    def call(number):
        with config.enable_compilation_cache(False):
            return dt.jit(lambda v: dt.lax.add(v, 22.25))(x).item()

    results, errors = run_together(6, call)
    assert results == [23.25] * 6
    assert not errors
    assert len(slow.names) == 1


def test_a_failed_compilation_is_the_threads_own(slow):
    slow.fail = 1
    x = dt.device_put(np.float32(1))

    def call(number):
        with config.enable_compilation_cache(False):
            return dt.jit(lambda v: dt.lax.add(v, 23.25))(x).item()

    results, errors = run_together(4, call)
    assert results == [24.25] * 3
    assert [str(error) for error in errors] == ["the compiler has a bad day"]


def test_after_an_error_calls_become_fast_again(slow):
    slow.fail = 1
    x = dt.device_put(np.float32(1))
    f = dt.jit(lambda v: dt.lax.add(v, 24.25))
    with pytest.raises(RuntimeError, match="bad day"):
        f(x)
    assert f(x).item() == 25.25
    assert f._cache_size() == 1


def test_the_table_may_grow_while_it_is_looked_through():
    class Made:
        def locked(self):  # another thread adds an entry at this moment
            compilation._table.setdefault("added meanwhile", self)
            return False

        making = property(lambda self: self)

    compilation._table["a test"] = Made()
    compilation.clear()
    assert compilation._table.pop("added meanwhile")
    assert "a test" not in compilation._table


def test_the_table_is_bounded(monkeypatch):
    monkeypatch.setattr(compilation, "_MAX_EXECUTABLES", 3)
    for number in range(6):
        made = ([number], None)
        assert compilation._once(("a test", number), lambda made=made: made) == [number]
    kept = [key for key in compilation._table if key[0] == "a test"]
    assert kept == [("a test", number) for number in (3, 4, 5)]
    compilation.clear()
    assert not compilation._table


def test_compiling_inside_the_compiler_does_not_wait_for_itself():
    def inner():
        return ["inner"], None

    def outer():
        return compilation._once("a recursive key", inner), None

    assert compilation._once("a recursive key", outer) == ["inner"]
    compilation.clear()


def test_compilation_can_be_watched_and_forbidden(monkeypatch):
    asked = []

    def forbid(backend, *args, **kwargs):
        asked.append(backend.platform)
        raise RuntimeError("forbidden")

    f = dt.jit(lambda v: dt.lax.add(v, 27.125))
    with monkeypatch.context() as patch:
        patch.setattr(compilation, "backend_compile_and_load", forbid)
        with pytest.raises(RuntimeError, match="forbidden"):
            f(np.float32(1))
    assert asked == ["cpu"]
    assert f(np.float32(1)) == 28.125


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"xla_no_such_flag": True}, ValueError, "xla_no_such_flag"),
        ({"optimization_level": "high"}, TypeError, "optimization_level"),
        ({"xla_cpu_enable_fast_math": [1]}, TypeError, "xla_cpu_enable_fast_math"),
    ],
)
def test_wrong_options(options, error, message):
    with pytest.raises(error, match=message):
        dt.jit(lambda v: dt.lax.add(v, 26.25), compiler_options=options)(np.float32(1))


def test_options_reach_the_compiler():
    options, text = compilation.compile_options(
        "cpu", dt.devices()[1:2], {"xla_cpu_enable_fast_math": True, "optimization_level": 1}
    )
    assert options.executable_build_options.optimization_level == 1
    assert list(options.env_option_overrides) == [("xla_cpu_enable_fast_math", True)]
    assert isinstance(text, bytes)
    assert compilation.compile_options("cpu", dt.devices()[:1])[1] != text
