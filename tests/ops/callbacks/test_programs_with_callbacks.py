"""Programs that call Python: their later calls, which C++ serves, and their life on disk."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.base.config import compilation_cache_dir
from dovetail._core.runtime.programs.compilation import statistics
from dovetail._core.runtime.programs.program import LoadedProgram
from dovetail.experimental import io_callback
from dovetail.experimental.buffer_callback import buffer_callback
from dovetail.sharding import AxisType, NamedSharding
from dovetail.sharding import PartitionSpec as P

pytestmark = pytest.mark.tables

Function = Callable[[Any], Any]
Kind = Callable[[Function, Any], Any]

X = np.arange(3, dtype=np.float32)
F3 = dt.ShapeDtypeStruct((3,), np.float32)


def _type(x: Any) -> Any:
    return dt.ShapeDtypeStruct(x.shape, x.dtype)


def _pure(function: Function, x: Any) -> Any:
    return dt.pure_callback(function, _type(x), x, vmap_method="sequential")


def _io(function: Function, x: Any) -> Any:
    return io_callback(function, _type(x), x)


def _ordered(function: Function, x: Any) -> Any:
    return io_callback(function, _type(x), x, ordered=True)


def _memory(function: Function, x: Any) -> Any:
    def write(_: Any, out: Any, value: Any) -> None:
        np.asarray(out)[...] = function(np.asarray(value))

    return buffer_callback(write, _type(x), vmap_method="sequential")(x)


def _debug(function: Function, x: Any) -> Any:
    dt.debug.callback(lambda x: [function(x), None][1], x)
    return x + 1


def _debug_ordered(function: Function, x: Any) -> Any:
    dt.debug.callback(lambda x: [function(x), None][1], x, ordered=True)
    return x + 1


#: All kinds of callbacks; the function adds 1.
KINDS: dict[str, Kind] = {
    "pure": _pure,
    "io": _io,
    "ordered": _ordered,
    "memory": _memory,
    "debug": _debug,
    "debug, ordered": _debug_ordered,
}
SEEN_BY_THE_HOST = {"io", "ordered", "debug", "debug, ordered"}


def _scan(call: Function) -> Function:
    return lambda x: lax.scan(lambda c, _: (call(c), None), x, None, length=3)[0]


def _while(call: Function) -> Function:
    return lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, call(c[1])), (0, x))[1]


def _branch(call: Function) -> Function:
    return lambda x: lax.cond(x.sum() > -1e9, call, lambda x: x - 100, x)


def _grad(call: Function) -> Function:
    def loss(x: Any) -> Any:
        return (call(lax.stop_gradient(x)) * x).sum()

    return lambda x: dt.grad(loss)(x)


def _vmap(call: Function) -> Function:
    return lambda x: dt.vmap(call)(jnp.stack([x, x]))[1]


#: Programs, with what they add to X and how often they call Python.
PROGRAMS: dict[str, tuple[Callable[[Function], Function], int, int]] = {
    "straight": (lambda call: call, 1, 1),
    "twice": (lambda call: lambda x: call(call(x)), 2, 2),
    "grad": (_grad, 1, 1),
    "scan": (_scan, 3, 3),
    "while": (_while, 3, 3),
    "branch": (_branch, 1, 1),
    "vmap": (_vmap, 1, 2),
}
CASES = [
    (kind, program)
    for kind in KINDS
    for program in PROGRAMS
    if not (program == "vmap" and "ordered" in kind)
]
cases = pytest.mark.parametrize(("kind", "program"), CASES)


class Counting:
    """Adds 1 to arrays, counts calls, and raises while it is told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: Exception | None = None

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return np.asarray(x) + np.float32(1)


def _made(kind: str, program: str) -> tuple[Counting, Function, int, int]:
    function = Counting()
    make, added, calls = PROGRAMS[program]
    return function, dt.jit(make(lambda x: KINDS[kind](function, x))), added, calls


def _run(compiled: Function, x: Any) -> Any:
    """The result, once all effects have happened."""
    try:
        return np.asarray(compiled(x))
    finally:
        dt.effects_barrier()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with compilation_cache_dir(str(tmp_path / "programs")):
        yield tmp_path / "programs"


@cases
def test_first_and_later_calls(kind: str, program: str) -> None:
    function, compiled, added, calls = _made(kind, program)
    for number in range(4):
        x = X + np.float32(number)
        np.testing.assert_array_equal(_run(compiled, x), x + np.float32(added))
        assert function.calls == (number + 1) * calls


@cases
def test_what_callbacks_raise(kind: str, program: str) -> None:
    function, compiled, added, _ = _made(kind, program)
    wanted = X + np.float32(added)
    for number in range(6):
        # The first call, and such as C++ serves, before one that succeeds and after it.
        function.error = LookupError(f"no row {number}") if number in (0, 2, 3, 5) else None
        if function.error is None:
            np.testing.assert_array_equal(_run(compiled, X), wanted)
            continue
        with pytest.raises(LookupError, match=f"no row {number}") as caught:
            _run(compiled, X)
        assert caught.value is function.error
        (note,) = caught.value.__notes__
        assert "test_programs_with_callbacks.py" in note
        assert "was given at test_programs_with_callbacks.py:" in note


@cases
def test_programs_on_disk_call_the_functions_of_those_who_load_them(
    kind: str, program: str, folder: Path
) -> None:
    made = [_made(kind, program) for _ in range(2)]
    counts = []
    for function, compiled, added, calls in made:
        before = statistics()
        np.testing.assert_array_equal(_run(compiled, X), X + np.float32(added))
        after = statistics()
        counts.append((after.compiled - before.compiled, after.loaded - before.loaded))
        assert function.calls == calls
    assert counts == [(1, 0), (0, 1)]
    gc.collect()
    # What was loaded fails as what was compiled, and neither calls the function of the other.
    function, compiled, added, _ = made[1]
    function.error = LookupError("a new function")
    with pytest.raises(LookupError, match="a new function"):
        _run(compiled, X)
    function.error = None
    for _, compiled, added, _ in made:
        np.testing.assert_array_equal(_run(compiled, X), X + np.float32(added))
    assert made[0][0].calls == 2 * made[0][3]


@pytest.mark.parametrize("kind", KINDS)
def test_who_serves_later_calls(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    executed = []
    execute = LoadedProgram.execute

    def watched(program: Any, *args: Any) -> Any:
        executed.append(program.name)
        return execute(program, *args)

    monkeypatch.setattr(LoadedProgram, "execute", watched)
    _, compiled, _, _ = _made(kind, "straight")
    placed = jnp.asarray(X)
    executed.clear()
    for _ in range(5):
        _run(compiled, placed)
    # Programs with effects give Python a token.
    assert len(executed) == (5 if kind in SEEN_BY_THE_HOST else 2)


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_that_are_kept_stay_what_they_are(kind: str) -> None:
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        # The memory that `buffer_callback` gives is the program's.
        kept.append(np.array(x) if kind == "memory" else x)
        return np.asarray(x) + 1

    compiled = dt.jit(_scan(lambda x: KINDS[kind](keep, x)))
    for size in (1, 3, 10_000):
        kept.clear()
        for number in range(3):
            _run(compiled, np.full(size, 10 * number, np.float32))
        assert [float(x[-1]) for x in kept] == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def _counted(make: Callable[[], Function], x: Any = X) -> tuple[Any, tuple[int, int]]:
    before = statistics()
    result = _run(make(), x)
    after = statistics()
    return result, (after.compiled - before.compiled, after.loaded - before.loaded)


class TestOnDisk:
    def test_functions_are_found_by_their_place(self, folder: Path) -> None:
        def make(first: Function, second: Function) -> Function:
            return dt.jit(lambda x: _pure(second, _pure(first, x)))

        def double(x: Any) -> Any:
            return np.asarray(x) * 2

        def decrement(x: Any) -> Any:
            return np.asarray(x) - 1

        assert _counted(lambda: make(double, decrement))[1] == (1, 0)
        result, counts = _counted(lambda: make(decrement, double))
        assert (result.tolist(), counts) == ([-2, 0, 2], (0, 1))

    def test_the_order_of_effects(self, folder: Path) -> None:
        def make(log: list[Any]) -> Function:
            def function(x: Any) -> Any:
                for number in range(4):
                    io_callback(lambda x, n=number: log.append(n), None, x, ordered=True)
                return x

            return dt.jit(function)

        for wanted in ((1, 0), (0, 1)):
            log: list[Any] = []
            compiled = make(log)
            assert _counted(lambda f=compiled: f)[1] == wanted
            _run(compiled, X)
            assert log == [0, 1, 2, 3] * 2

    def test_another_number_of_functions_is_another_program(self, folder: Path) -> None:
        def make(count: int, same: bool) -> Function:
            functions = [Counting() for _ in range(count)]
            if same:
                functions = functions[:1] * count

            def program(x: Any) -> Any:
                for function in functions:
                    x = x + _pure(function, X)
                return x

            return dt.jit(program)

        made = [make(1, False), make(2, False), make(3, False)]
        results = [_counted(lambda f=f: f) for f in made]
        assert [counts for _, counts in results] == [(1, 0)] * 3
        np.testing.assert_array_equal(results[2][0], X + 3 * (X + 1))

    def test_types_are_part_of_the_key(self, folder: Path) -> None:
        def make(dtype: Any) -> Function:
            result = dt.ShapeDtypeStruct((3,), dtype)
            return dt.jit(lambda x: dt.pure_callback(lambda x: np.asarray(x, dtype), result, x))

        for dtype in (np.float32, np.int32):
            result, counts = _counted(lambda t=dtype: make(t))
            assert (result.dtype, counts) == (dtype, (1, 0))

    def test_functions_live_as_long_as_programs(self, folder: Path) -> None:
        def make() -> tuple[Function, Any]:
            function = Counting()
            return dt.jit(lambda x: _pure(function, x)), weakref.ref(function)

        made = [make() for _ in range(2)]
        for _ in range(2):
            gc.collect()
            for compiled, _ in made:
                np.testing.assert_array_equal(_run(compiled, X), X + 1)
        references = [reference for _, reference in made]
        assert None not in [reference() for reference in references]
        made.clear()
        del compiled
        gc.collect()
        assert [reference() for reference in references] == [None, None]

    def test_texts_show_the_names_of_their_own_module(self, folder: Path) -> None:
        def make(name: str) -> Any:
            def function(x: Any) -> Any:
                with dt.named_scope(name):
                    return jnp.sin(_pure(Counting(), x))

            return dt.jit(function)

        for name, other in (("my_first_scope", "my_second_scope"),) * 2:
            text = make(name).lower(X).compile().as_text()
            assert name in text
            text = make(other).lower(X).compile().as_text()
            assert other in text
            assert name not in text

    @pytest.mark.parametrize("program", ["whole", "parts", "ordered"])
    def test_programs_over_several_devices(self, program: str, folder: Path) -> None:
        mesh = dt.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
        x = dt.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))

        def make(function: Function) -> Function:
            if program == "parts":
                divided = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x")}
                return dt.jit(dt.shard_map(lambda x: _pure(function, x), **divided))
            kind = _ordered if program == "ordered" else _pure
            return dt.jit(lambda x: kind(function, x))

        functions = [Counting() for _ in range(2)]
        for function, wanted in zip(functions, ((1, 0), (0, 1)), strict=True):
            compiled = make(function)
            result, counts = _counted(lambda f=compiled: f, x)
            np.testing.assert_array_equal(result, np.arange(8) + 1)
            assert (counts, function.calls) == (wanted, 4 if program == "parts" else 1)
        functions[1].error = LookupError("on a device")
        with pytest.raises(LookupError, match="on a device"):
            _run(compiled, x)

    def test_another_process(self, folder: Path) -> None:
        code = """
import sys
import numpy as np
import dovetail as dt
from dovetail._core.runtime.programs.compilation import statistics
factor = np.float32(sys.argv[1])
result = dt.ShapeDtypeStruct((3,), np.float32)
@dt.jit
def f(x):
    x = dt.pure_callback(lambda x: np.asarray(x) * factor, result, x)
    dt.debug.print("{}", x)
    return dt.lax.sin(x)
f(np.float32([1, 2, 3]))
dt.effects_barrier()
print(statistics().compiled)
"""
        outputs = []
        for factor in ("2", "5"):
            environment = {**os.environ, "DOVETAIL_COMPILATION_CACHE_DIR": str(folder)}
            done = subprocess.run(
                [sys.executable, "-W", "error", "-c", code, factor],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
                timeout=120,
            )
            outputs.append(done.stdout.splitlines())
        assert outputs[0][0] == "[2. 4. 6.]"
        assert outputs[1] == ["[ 5. 10. 15.]", "0"]


class TestLaterCalls:
    def test_threads(self) -> None:
        meeting = threading.Barrier(2, timeout=60)
        together = [False]

        def meet(x: Any) -> Any:
            if together[0]:
                meeting.wait()
            return np.asarray(x) + 1

        compiled = dt.jit(lambda x: _pure(meet, x))
        placed = [jnp.asarray(X + i) for i in range(2)]
        for x in placed:
            _run(compiled, x)
        together[0] = True  # each call waits for the other
        results: dict[int, Any] = {}

        def call(number: int) -> None:
            results[number] = _run(compiled, placed[number])

        threads = [threading.Thread(target=call, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for number in range(2):
            np.testing.assert_array_equal(results[number], X + number + 1)

    def test_errors_of_threads_are_their_own(self) -> None:
        def check(x: Any) -> Any:
            raise LookupError(f"of {int(x[0])}")

        compiled = dt.jit(lambda x: _pure(check, x))
        wrong = []

        def call(number: int) -> None:
            for _ in range(20):
                try:
                    compiled(X + np.float32(number)).block_until_ready()
                except LookupError as error:
                    if str(error) != f"of {number}":
                        wrong.append(str(error))
                else:
                    wrong.append("nothing")

        threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert wrong == []

    def test_a_callback_calls_its_own_program(self) -> None:
        def countdown(x: Any) -> Any:
            x = np.asarray(x)
            return x if x <= 0 else np.asarray(compiled(x - 1)) + 1

        compiled = dt.jit(lambda x: _pure(countdown, x))
        for _ in range(3):
            assert float(compiled(np.float32(4))) == 4

    def test_signatures_apart(self) -> None:
        function = Counting()
        compiled = dt.jit(
            lambda x, calls: _pure(function, x) if calls else x + 2, static_argnames="calls"
        )
        for _ in range(3):
            for x in (X, jnp.asarray(X), 1.5, np.float32(3), jnp.ones((2, 2))):
                np.testing.assert_allclose(compiled(x, calls=True), np.add(x, 1))
                np.testing.assert_allclose(compiled(x, calls=False), np.add(x, 2))

    def test_transformations_of_what_has_run(self) -> None:
        compiled = dt.jit(lambda x: _pure(Counting(), lax.stop_gradient(x)) * x)
        for _ in range(3):
            np.testing.assert_array_equal(compiled(X), (X + 1) * X)
            np.testing.assert_array_equal(dt.grad(lambda x: compiled(x).sum())(X), X + 1)
            np.testing.assert_array_equal(dt.vmap(compiled)(X[None])[0], (X + 1) * X)
            np.testing.assert_array_equal(dt.jit(lambda x: compiled(x) + 1)(X), (X + 1) * X + 1)

    def test_donated_arguments(self) -> None:
        function = Counting()
        compiled = dt.jit(lambda x: _pure(function, x) + 1, donate_argnums=0)
        for _ in range(3):
            x = jnp.asarray(X)
            np.testing.assert_array_equal(compiled(x), X + 2)
            assert x.is_deleted()
        function.error = LookupError("not now")
        with pytest.raises(LookupError, match="not now"):
            np.asarray(compiled(jnp.asarray(X)))

    def test_without_jit_and_without_caches(self) -> None:
        function = Counting()
        compiled = dt.jit(lambda x: _pure(function, x))
        for number in range(4):
            np.testing.assert_array_equal(compiled(X), X + 1)
            with dt.disable_jit():
                np.testing.assert_array_equal(compiled(X), X + 1)
            if number == 1:
                compiled.clear_cache()
            if number == 2:
                dt.clear_caches()
        assert function.calls == 8

    def test_errors_of_jaxlib_stay_what_they_are(self) -> None:
        compiled = dt.jit(lambda x, y: _pure(Counting(), x) + y, donate_argnums=0)
        compiled(jnp.asarray(X), X)
        x = jnp.asarray(X)
        with pytest.raises(RuntimeError, match="given one array twice"):
            compiled(x, x)
        compiled(x, X) if not x.is_deleted() else None
        gone = jnp.asarray(X)
        gone.delete()
        with pytest.raises(RuntimeError, match="deleted"):
            compiled(gone, X)


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"])
def test_numbers_of_less_than_a_byte(dtype: str) -> None:
    x = jnp.asarray(np.arange(6).reshape(2, 3) % 2, dtype)
    compiled = dt.jit(lambda x: _pure(lambda x: x, x))
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(x))
    with pytest.raises(TypeError, match=f"an argument is of {dtype}"):
        dt.jit(lambda x: _memory(lambda x: x, x))(x)
    with pytest.raises(TypeError, match=f"a result is of {dtype}"):
        buffer_callback(lambda _, out: None, _type(x))()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (4, 5)])
@pytest.mark.parametrize("kind", KINDS)
def test_shapes(kind: str, shape: tuple[int, ...]) -> None:
    function = Counting()
    compiled = dt.jit(lambda x: KINDS[kind](function, x))
    x = np.ones(shape, np.float32)
    for number in range(2):
        np.testing.assert_array_equal(_run(compiled, x), x + 1)
        if kind in SEEN_BY_THE_HOST:
            assert function.calls == number + 1
