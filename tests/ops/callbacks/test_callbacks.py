"""pure_callback and io_callback: results, errors, order, and every transformation."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.runtime.arrays.failures import original
from dovetail._core.runtime.programs.compilation import statistics
from dovetail.errors import JaxRuntimeError
from dovetail.experimental import io_callback

F3 = dt.ShapeDtypeStruct((3,), np.float32)
F0 = dt.ShapeDtypeStruct((), np.float32)
X = np.arange(3, dtype=np.float32)

WAYS = {"eager": lambda f: f, "jit": dt.jit, "disabled": dt.disable_jit()}

METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
DTYPES = ["bool", "int4", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32"]
DTYPES += ["float8_e4m3fn", "complex64"]


def kind(ordered: bool) -> Any:
    """io_callback with an order or without."""

    def call(callback: Any, result: Any, *args: Any) -> Any:
        return io_callback(callback, result, *args, ordered=ordered)

    return call


CALLBACKS = {"pure": dt.pure_callback, "io": kind(False), "ordered": kind(True)}


@pytest.fixture(params=CALLBACKS)
def callback(request: pytest.FixtureRequest) -> Any:
    return CALLBACKS[request.param]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]


class TestResults:
    def test_the_function_runs_on_arrays_of_the_host(self, callback: Any, way: Any) -> None:
        seen: list[Any] = []

        def function(x: Any) -> Any:
            seen.append(x)
            return np.sin(x)

        compiled = way(lambda x: callback(function, F3, x) * 2)
        for _ in range(2):
            np.testing.assert_allclose(compiled(X), 2 * np.sin(X), rtol=1e-6)
        assert [type(x) for x in seen] == [dt.Array] * 2
        assert seen[0].devices() == {dt.devices("cpu")[0]}

    @pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0, 3)])
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_every_dtype_and_shape(self, dtype: str, shape: Any) -> None:
        x = jnp.ones(shape, dtype)
        result = dt.ShapeDtypeStruct(shape, x.dtype)
        for way in WAYS.values():
            out = way(lambda x, r=result: dt.pure_callback(lambda x: x, r, x))(x)
            assert (out.shape, out.dtype) == (shape, x.dtype)
            np.testing.assert_array_equal(np.asarray(out), np.asarray(x))

    def test_64_bits(self) -> None:
        with dt.enable_x64(True):
            x = jnp.arange(3, dtype="int64") + 2**40
            result = dt.ShapeDtypeStruct((3,), np.int64)
            out = dt.jit(lambda x: dt.pure_callback(lambda x: x + 1, result, x))(x)
            assert out.tolist() == [2**40 + 1, 2**40 + 2, 2**40 + 3]

    def test_trees_go_in_and_out(self, callback: Any, way: Any) -> None:
        result = {"a": F3, "b": [F0, ()]}

        def function(x: Any) -> Any:
            return {"a": x["p"][0] + 1, "b": [np.float32(5), ()]}

        out = way(lambda x: callback(function, result, {"p": (x, None)}))(X)
        assert out["a"].tolist() == [1, 2, 3]
        assert (float(out["b"][0]), out["b"][1]) == (5.0, ())

    def test_keyword_arguments(self) -> None:
        def function(x: Any, *, scale: Any) -> Any:
            return x * scale

        assert dt.pure_callback(function, F3, X, scale=2.0).tolist() == [0, 2, 4]
        assert dt.jit(lambda x: dt.pure_callback(function, F3, x, scale=3))(X).tolist() == [0, 3, 6]

    def test_keys_go_in(self) -> None:
        key = dt.random.key(3)
        bits = dt.ShapeDtypeStruct((2,), np.uint32)
        for way in (lambda f: f, dt.jit):
            out = way(lambda k: dt.pure_callback(lambda k: dt.random.key_data(k), bits, k))(key)
            assert out.tolist() == dt.random.key_data(key).tolist()

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (np.float64([0.5, 1, 2]), F3),
            (2.5, F0),
            (np.arange(3), dt.ShapeDtypeStruct((3,), np.int32)),
            (3, dt.ShapeDtypeStruct((), np.uint8)),
            (True, dt.ShapeDtypeStruct((), bool)),
            (1j, dt.ShapeDtypeStruct((), np.complex64)),
        ],
    )
    def test_what_numpy_makes_is_narrowed(self, value: Any, expected: Any, callback: Any) -> None:
        for way in (lambda f: f, dt.jit):
            out = way(lambda v=value, e=expected: callback(lambda: v, e))()
            assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
            assert out.tolist() == np.asarray(value).tolist()

    def test_one_program_serves_all_calls(self) -> None:
        traced = []

        @dt.jit
        def function(x: Any) -> Any:
            traced.append(1)
            return dt.pure_callback(np.negative, F3, x)

        assert [function(X + i)[0].tolist() for i in range(3)] == [0, -1, -2]
        assert traced == [1]


WRONG = [
    (lambda x: np.zeros(4, np.float32), TypeError, r"must be float32\[3\].*got float32\[4\]"),
    (lambda x: np.zeros(3, np.int32), TypeError, r"must be float32\[3\].*got int32\[3\]"),
    (lambda x: (x, x), TypeError, r"structure differs(.|\n)*tuple of length 2"),
    (lambda x: None, TypeError, r"structure differs(.|\n)*None"),
    (lambda x: "text", TypeError, r"must be float32\[3\]"),
    (lambda x: {}["missing"], KeyError, "missing"),
    (lambda x: 1 // 0, ZeroDivisionError, "division"),
    (lambda: 0, TypeError, "takes 0 positional arguments"),
]


class TestErrors:
    @pytest.mark.parametrize(("function", "error", "message"), WRONG)
    def test_what_is_wrong_is_said(
        self, function: Any, error: Any, message: str, callback: Any, way: Any
    ) -> None:
        compiled = way(lambda x: callback(function, F3, x))
        for _ in range(2):  # the second call takes another way through jaxlib
            with pytest.raises(error, match=message) as caught:
                np.asarray(compiled(X))
            notes = "".join(caught.value.__notes__)
            assert "test_callbacks.py" in notes
            assert "callback was given at" in notes
        # Nothing is left over for what comes later.
        assert float(io_callback(lambda: 1.0, F0, ordered=True)) == 1.0
        dt.effects_barrier()

    @pytest.mark.parametrize("size", [3, 1500])
    def test_a_failing_loop(self, size: int, callback: Any) -> None:
        def fail(x: Any) -> Any:
            raise LookupError("in the loop")

        x = jnp.ones((size, size))
        compiled = dt.jit(
            lambda x: lax.fori_loop(
                0, 2, lambda i, x: callback(fail, dt.ShapeDtypeStruct(x.shape, x.dtype), x), x
            )
        )
        for _ in range(2):
            with pytest.raises(LookupError, match="in the loop"):
                compiled(x).block_until_ready()
        dt.effects_barrier()

    def test_integers_that_do_not_fit(self) -> None:
        result = dt.ShapeDtypeStruct((), np.int32)
        with pytest.raises(OverflowError, match="not fit int32"):
            dt.jit(lambda: dt.pure_callback(lambda: np.int64(2**40), result))()

    @pytest.mark.parametrize(
        ("result", "error", "message"),
        [
            (3, TypeError, "must have a shape and a dtype"),
            (np.float32, TypeError, "must have a shape and a dtype"),
            ("f32", TypeError, "must have a shape and a dtype"),
            ({"a": 1.5}, TypeError, r"result_shape_dtypes\['a'\]"),
            (dt.ShapeDtypeStruct((), np.float64), ValueError, "64-bit types are off"),
            (dt.ShapeDtypeStruct((), dt.random.key(0).dtype), TypeError, "key_data"),
        ],
    )
    def test_what_is_promised_is_checked(
        self, result: Any, error: Any, message: str, callback: Any
    ) -> None:
        with pytest.raises(error, match=message):
            callback(lambda x: x, result, X)

    def test_arguments(self, callback: Any) -> None:
        with pytest.raises(TypeError, match=r"args\[0\]\['a'\]"):
            callback(lambda x: x, F3, {"a": "text"})
        with pytest.raises(TypeError, match="takes a function"):
            callback(3, F3, X)
        with pytest.raises(ValueError, match=r"vmap_method.*'expand_dims'.*'bogus'"):
            dt.pure_callback(lambda x: x, F3, X, vmap_method="bogus")

    def test_many_failures_are_not_all_kept(self) -> None:
        def fail(x: Any) -> Any:
            raise KeyError(int(x))

        compiled = dt.jit(lambda x: dt.pure_callback(fail, F0, x))
        for i in range(40):
            with pytest.raises(KeyError, match=str(i)):
                compiled(i)

    def test_the_process_ends_well(self) -> None:
        # What has not been waited for is printed, and what failed is said, before the end.
        code = (
            "import dovetail as dt, dovetail.numpy as jnp\n"
            "from dovetail import lax\n"
            "@dt.jit\n"
            "def f(x):\n"
            "    dt.debug.print('last {}', x[0, 0], ordered=True)\n"
            "    return lax.fori_loop(0, 3, lambda i, x: lax.sin(x) @ x, x)\n"
            "f(jnp.ones((300, 300))); f(jnp.zeros((300, 300)))\n"
        )
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "last 1.0\nlast 0.0\n", "")


class TestTransformations:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("compiled", [False, True])
    def test_vmap(self, method: str, compiled: bool) -> None:
        shapes: list[Any] = []

        def add(x: Any, y: Any) -> Any:
            shapes.append((x.shape, y.shape))
            if method == "legacy_vectorized":
                return np.asarray(x) + np.asarray(y)
            return np.broadcast_arrays(np.asarray(x) + np.asarray(y), x)[0]

        def function(x: Any, y: Any) -> Any:
            return dt.pure_callback(add, F0, x, y, vmap_method=method)

        mapped = dt.vmap(function, (0, None))
        out = (dt.jit(mapped) if compiled else mapped)(X, 1.0)
        assert out.tolist() == [1, 2, 3]
        assert (
            shapes
            == {
                "sequential": [((), ())] * 3,
                "sequential_unrolled": [((), ())] * 3,
                "expand_dims": [((3,), (1,))],
                "broadcast_all": [((3,), (3,))],
                "legacy_vectorized": [((3,), ())],
            }[method]
        )

    @pytest.mark.parametrize("method", METHODS)
    def test_vmap_of_vmap_is_a_loop(self, method: str) -> None:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)

        def function(x: Any) -> Any:
            return dt.pure_callback(lambda x: np.asarray(x) ** 2, F0, x, vmap_method=method)

        np.testing.assert_array_equal(dt.vmap(dt.vmap(function, 0), 0)(x), x**2)
        np.testing.assert_array_equal(dt.vmap(dt.vmap(function), in_axes=1, out_axes=1)(x), x**2)

    def test_vmap_without_a_method_is_refused(self) -> None:
        with pytest.raises(NotImplementedError, match=r"vmap_method.*'sequential'"):
            dt.vmap(lambda x: dt.pure_callback(lambda x: x, F0, x))(X)

    def test_mapped_calls_are_compiled_once(self) -> None:
        def identity(x: Any) -> Any:
            return x

        def run() -> None:
            dt.vmap(lambda x: dt.pure_callback(identity, F0, x, vmap_method="sequential"))(X)

        run()
        compiled = statistics().compiled
        run()
        assert statistics().compiled == compiled

    def test_io_callbacks_are_mapped_one_by_one(self) -> None:
        seen: list[float] = []

        def remember(x: Any) -> Any:
            seen.append(float(x))
            return x

        out = dt.vmap(lambda x: io_callback(remember, F0, x))(X)
        assert out.tolist() == sorted(seen) == [0, 1, 2]

    def test_ordered_io_callbacks_are_not_mapped(self) -> None:
        with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback"):
            dt.vmap(lambda x: io_callback(lambda x: x, F0, x, ordered=True))(X)

    @pytest.mark.parametrize("transform", ["grad", "jvp", "linearize", "vjp", "jit(grad)"])
    def test_derivatives_are_refused(self, transform: str, callback: Any) -> None:
        def function(x: Any) -> Any:
            return callback(np.sin, F0, x)

        runs = {
            "grad": lambda: dt.grad(function)(1.0),
            "jvp": lambda: dt.jvp(function, (1.0,), (1.0,)),
            "linearize": lambda: dt.linearize(function, 1.0),
            "vjp": lambda: dt.vjp(function, 1.0),
            "jit(grad)": lambda: dt.jit(dt.grad(dt.jit(function)))(1.0),
        }
        with pytest.raises(ValueError, match=r"no derivative.*custom_jvp or dovetail.custom_vjp"):
            runs[transform]()

    def test_what_is_not_differentiated_may_call(self, callback: Any) -> None:
        def function(x: Any) -> Any:
            return x * lax.stop_gradient(callback(np.sin, F0, lax.stop_gradient(x)))

        np.testing.assert_allclose(dt.grad(function)(1.0), np.sin(1.0), rtol=1e-6)

    def test_in_control_flow(self, callback: Any) -> None:
        def double(x: Any) -> Any:
            return callback(lambda x: np.asarray(x) * 2, F0, x)

        @dt.jit
        def function(x: Any) -> Any:
            y = lax.fori_loop(0, 3, lambda i, x: double(x), x)
            y = lax.cond(y > 0, double, lambda x: x, y)
            y, ys = lax.scan(lambda c, _: (double(c), c), y, None, length=2)
            return lax.while_loop(lambda x: x < 1000, double, y), ys

        out, ys = function(1.0)
        assert (float(out), ys.tolist()) == (1024.0, [16.0, 32.0])

    def test_effects_of_elements_that_do_not_ask_are_refused(self) -> None:
        for ordered in (False, True):

            def call(x: Any, ordered: bool = ordered) -> Any:
                return io_callback(lambda x: x, F0, x, ordered=ordered)

            with pytest.raises(NotImplementedError, match="effects that would then happen for all"):
                dt.vmap(lambda x: lax.cond(x > 0, call, lambda x: x, x))(X)
            with pytest.raises(NotImplementedError, match="it has effects that would then"):
                dt.vmap(lambda x: lax.while_loop(lambda y: y < x, call, 0.0))(X)

    def test_dead_code(self) -> None:
        seen: list[str] = []

        def note(name: str) -> Any:
            return lambda x: (seen.append(name), x)[1]

        @dt.jit
        def function(x: Any) -> Any:
            dt.pure_callback(note("pure"), F0, x)
            io_callback(note("io"), F0, x)
            io_callback(note("ordered"), F0, x, ordered=True)
            return x

        function(1.0)
        dt.effects_barrier()
        assert sorted(seen) == ["io", "ordered"]


class TestOrder:
    def test_within_and_across_programs(self) -> None:
        seen: list[int] = []

        def note(x: Any) -> None:
            seen.append(int(x))

        @dt.jit
        def small(x: Any) -> Any:
            io_callback(note, None, x, ordered=True)
            return x

        @dt.jit
        def large(x: Any, y: Any) -> Any:
            y = lax.fori_loop(0, 3, lambda i, y: lax.sin(y @ y), y)
            io_callback(note, None, x + jnp.int32(y[0, 0] * 0), ordered=True)
            io_callback(note, None, x + 1, ordered=True)
            return y

        y = jnp.ones((400, 400))
        expected = []
        for i in range(0, 40, 4):
            large(i, y)
            small(i + 2)
            io_callback(note, None, i + 3, ordered=True)
            expected += [i, i + 1, i + 2, i + 3]
        dt.effects_barrier()
        assert seen == expected

    def test_in_loops_and_branches(self) -> None:
        seen: list[int] = []

        def note(x: Any) -> None:
            seen.append(int(x))

        def turn(i: Any, x: Any) -> Any:
            io_callback(note, None, 10 * i, ordered=True)
            lax.cond(
                i % 2 == 0,
                lambda: io_callback(note, None, 10 * i + 1, ordered=True),
                lambda: None,
            )
            return x

        @dt.jit
        def function(x: Any) -> Any:
            io_callback(note, None, -1, ordered=True)
            x = lax.fori_loop(0, 3, turn, x)
            io_callback(note, None, 99, ordered=True)
            return x

        function(1.0)
        dt.effects_barrier()
        assert seen == [-1, 0, 1, 10, 20, 21, 99]

    def test_in_the_condition_of_a_loop(self) -> None:
        seen: list[str] = []

        def note(name: str) -> Any:
            return lambda x: seen.append(f"{name}{int(x)}")

        def condition(i: Any) -> Any:
            io_callback(note("c"), None, i, ordered=True)
            return i < 2

        def body(i: Any) -> Any:
            io_callback(note("b"), None, i, ordered=True)
            return i + 1

        assert int(dt.jit(lambda: lax.while_loop(condition, body, 0))()) == 2
        dt.effects_barrier()
        assert seen == ["c0", "b0", "c1", "b1", "c2"]

    def test_in_nested_calls(self) -> None:
        seen: list[int] = []

        @dt.jit
        def inner(x: Any) -> Any:
            io_callback(lambda x: seen.append(int(x)), None, x, ordered=True)
            return x + 1

        dt.jit(lambda x: inner(inner(inner(x))))(5)
        dt.effects_barrier()
        assert seen == [5, 6, 7]

    def test_threads(self) -> None:
        seen: list[int] = []

        @dt.jit
        def function(x: Any) -> Any:
            io_callback(lambda x: seen.append(int(x)), None, x, ordered=True)
            io_callback(lambda x: seen.append(int(x)), None, x, ordered=True)
            return x

        function(0)

        def run(start: int) -> None:
            for i in range(start, start + 20):
                function(i)

        threads = [threading.Thread(target=run, args=(100 * (t + 1),)) for t in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        dt.effects_barrier()
        assert seen[::2] == seen[1::2]
        assert len(seen) == 122


class TestCallbacksThatCompute:
    def test_eager_functions_and_programs(self, callback: Any) -> None:
        inner = dt.jit(lambda x: jnp.sin(x) @ x + 1)

        def compute(x: Any) -> Any:
            return inner(jnp.asarray(x) * 2) + x.sum()

        x = jnp.ones((40, 40))
        result = dt.ShapeDtypeStruct((40, 40), np.float32)
        out = dt.jit(lambda x: callback(compute, result, x) + 1)(x)
        np.testing.assert_allclose(out, np.asarray(compute(x)) + 1, rtol=1e-5)

    def test_a_program_that_calls_itself(self) -> None:
        @dt.jit
        def factorial(n: Any) -> Any:
            return dt.pure_callback(lambda n: n * factorial(n - 1) if n > 1 else n, F0, n)

        assert float(factorial(np.float32(6))) == 720.0
        assert float(factorial(np.float32(5))) == 120.0

    def test_a_program_that_calls_itself_on_the_threads_of_the_runtime(self) -> None:
        # Large enough not to run on the thread that calls; each level holds one thread.
        code = (
            "import dovetail as dt, dovetail.numpy as jnp\n"
            "from dovetail import lax\n"
            "type_of_x = dt.ShapeDtypeStruct((1500, 1500), jnp.float32)\n"
            "def callback(x):\n"
            "    return f(x + 1) if x[0, 0] < 2 else jnp.sqrt(x) ** 2 @ jnp.eye(1500)\n"
            "@dt.jit\n"
            "def f(x):\n"
            "    turn = lambda i, x: dt.pure_callback(callback, type_of_x, x)\n"
            "    return lax.fori_loop(0, 1, turn, x)\n"
            "print([round(float(f(jnp.zeros((1500, 1500)))[0, 0])) for _ in range(2)])\n"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=120,
            env=os.environ | {"PJRT_NPROC": "5"},
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "[2, 2]\n", "")

    def test_ordered_calls_in_ordered_calls(self) -> None:
        seen: list[str] = []

        @dt.jit
        def inner(x: Any) -> Any:
            io_callback(lambda x: seen.append("inner"), None, x, ordered=True)
            return x

        def outer(x: Any) -> None:
            float(inner(x))
            dt.effects_barrier()
            seen.append("outer")

        function = dt.jit(lambda x: (io_callback(outer, None, x, ordered=True), x)[1])
        function(1.0)
        function(1.0)
        dt.effects_barrier()
        assert seen == ["inner", "outer"] * 2

    def test_transformations(self) -> None:
        def slope(x: Any) -> Any:
            return dt.vmap(dt.grad(lambda x: x**3))(x)

        assert dt.jit(lambda x: dt.pure_callback(slope, F3, x))(X).tolist() == [0, 3, 12]


class TestPrograms:
    def test_the_jaxpr_is_that_of_jax(self) -> None:
        def callback(x: Any) -> Any:
            return x

        text = str(dt.make_jaxpr(lambda x: io_callback(callback, F3, x, ordered=True))(X))
        assert text == (
            "{ lambda ; a:f32[3]. let\n"
            "    b:f32[3] = io_callback[\n"
            f"      callback=_FlatCallback(callback_func={callback}, "
            "in_tree=PyTreeDef(((*,), {})))\n"
            "      ordered=True\n"
            "      result_avals=(ShapedArray(float32[3]),)\n"
            "      sharding=None\n"
            "    ] a\n"
            "  in (b,) }"
        )
        closed = dt.make_jaxpr(lambda x: dt.pure_callback(callback, F3, x))(X)
        assert [e.primitive.name for e in closed.eqns] == ["pure_callback"]
        assert list(closed.eqns[0].params) == [
            "callback",
            "result_avals",
            "sharding",
            "vmap_method",
        ]

    @pytest.mark.parametrize(("ordered", "name"), [(False, "IO"), (True, "OrderedIO")])
    def test_effects(self, ordered: bool, name: str) -> None:
        def call(x: Any) -> Any:
            return io_callback(lambda x: x, F0, x, ordered=ordered)

        for function in (
            call,
            dt.jit(call),
            lambda x: lax.cond(x > 0, call, lambda x: x, x),
            lambda x: lax.fori_loop(0, 2, lambda i, x: call(x), x),
            lambda x: lax.while_loop(lambda x: call(x) > 0, lambda x: x, x),
        ):
            assert [str(e) for e in dt.make_jaxpr(function)(1.0).effects] == [name]

    def test_donated_arguments(self, callback: Any) -> None:
        function = dt.jit(lambda x: callback(lambda x: np.asarray(x) + 1, F3, x), donate_argnums=0)
        x = jnp.asarray(X)
        for _ in range(3):
            x = function(x)
        assert x.tolist() == [3, 4, 5]

    def test_compiled_ahead_of_time(self, callback: Any) -> None:
        compiled = dt.jit(lambda x: callback(lambda x: np.asarray(x) + 1, F3, x)).lower(X).compile()
        assert [compiled(X).tolist() for _ in range(2)] == [[1, 2, 3]] * 2
        dt.effects_barrier()

    def test_programs_outlive_what_made_them(self) -> None:
        def make(number: int) -> Any:
            return dt.jit(lambda x: dt.pure_callback(lambda x: np.asarray(x) + number, F3, x))

        functions = [make(i) for i in range(4)]
        assert [f(X)[0].tolist() for f in functions] == [0, 1, 2, 3]
        assert [f(X)[0].tolist() for f in functions] == [0, 1, 2, 3]

    def test_other_platforms_say_that_they_cannot(self) -> None:
        staged = dt.jit(lambda x: dt.pure_callback(lambda x: x, F3, x)).trace(X)
        with pytest.raises(NotImplementedError, match="cannot call Python"):
            staged.lower(lowering_platforms=("tpu",))

    def test_other_failures_stay_what_they_are(self) -> None:
        error = JaxRuntimeError("something else")
        assert original(error) is error
