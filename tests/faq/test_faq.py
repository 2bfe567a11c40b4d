"""Claims of JAX's frequently asked questions, one test class for each heading, which it quotes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn
from dovetail._core.base.bindings import JAXLIB_VERSION
from dovetail.experimental import io_callback
from dovetail_cuda.runtime import client_options

HEADINGS = (
    "``jit`` changes the behavior of my function",
    "``jit`` changes the exact numerics of outputs",
    "``jit`` decorated function is very slow to compile",
    "How to use ``jit`` with methods?",
    "Controlling data and computation placement on devices",
    "Benchmarking JAX code",
    "Is JAX faster than NumPy?",
    "Different kinds of JAX values",
    "Buffer donation",
    "Gradients contain `NaN` where using ``where``",
    "Why are gradients zero for functions based on sort order?",
    "How can I convert a JAX Tracer to a NumPy array?",
    "Why do some CUDA libraries fail to load/initialize?",
)


class TestJitChangesTheBehaviorOfMyFunction:
    """``jit`` changes the behavior of my function"""

    def test_side_effects_and_globals_are_seen_once(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        state = {"y": 0}

        def impure(x: Any) -> Any:
            print("Inside:", state["y"])
            return x + state["y"]

        def run(function: Any) -> str:
            for state["y"] in range(3):
                print("Result:", function(state["y"]))
            return capsys.readouterr().out

        assert run(impure).split("\n")[:-1] == [
            line for y in range(3) for line in (f"Inside: {y}", f"Result: {2 * y}")
        ]
        assert run(dt.jit(impure)).split("\n")[:-1] == [
            "Inside: 0",
            "Result: 0",
            "Result: 1",
            "Result: 2",
        ]


class TestJitChangesTheExactNumericsOfOutputs:
    """``jit`` changes the exact numerics of outputs"""

    def test_rearranged_operations(self) -> None:
        f = lambda x: jnp.log(jnp.sqrt(x))
        np.testing.assert_allclose(f(jnp.pi), dt.jit(f)(jnp.pi), rtol=1e-6)

    def test_inverses_are_removed(self) -> None:
        f = lambda x: jnp.log(jnp.exp(x))
        assert float(f(100.0)) == np.inf
        # Newer versions of XLA:CPU leave the two operations as they are.
        expected = 100.0 if JAXLIB_VERSION < (0, 11, 0) else np.inf
        assert float(dt.jit(f)(100.0)) == expected


class TestJitDecoratedFunctionIsVerySlowToCompile:
    """``jit`` decorated function is very slow to compile"""

    def test_structured_control_flow_keeps_programs_short(self) -> None:
        def unrolled(x: Any, length: int) -> Any:
            for _ in range(length):
                x = jnp.sin(x) * 2.0
            return x

        def looped(x: Any, length: int) -> Any:
            return lax.scan(lambda x, _: (jnp.sin(x) * 2.0, None), x, length=length)[0]

        def lines(function: Any, length: int) -> int:
            return str(dt.make_jaxpr(partial(function, length=length))(1.0)).count("\n")

        assert lines(unrolled, 1000) > 1000
        assert lines(looped, 1000) == lines(looped, 10) < 15
        np.testing.assert_allclose(looped(1.0, 10), unrolled(1.0, 10), rtol=1e-6)
        assert float(dt.jit(looped, static_argnums=1)(1.0, 1000)) == float(looped(1.0, 1000))

    def test_jitted_functions_inside_of_a_python_loop(self) -> None:
        step = dt.jit(lambda x: jnp.sin(x) * 2.0)
        x = 1.0
        for _ in range(10):
            x = step(x)
        assert step._cache_size() == 2  # for a Python number, and for an array

    def test_padded_arrays_with_where(self) -> None:
        @dt.jit
        def mean(values: Any, count: Any) -> Any:
            kept = jnp.where(jnp.arange(values.size) < count, values, 0.0)
            return kept.sum() / count

        for count in (3, 5):
            padded = np.zeros(8, np.float32)
            padded[:count] = np.arange(count)
            assert float(mean(padded, count)) == np.arange(count).mean()
        assert mean._cache_size() == 1


class TestHowToUseJitWithMethods:
    """How to use ``jit`` with methods?"""

    def test_plain_self_is_refused(self) -> None:
        class CustomClass:
            def __init__(self, x: Any, mul: bool) -> None:
                self.x, self.mul = x, mul

            @dt.jit
            def calc(self, y: Any) -> Any:
                return self.x * y if self.mul else y

        with pytest.raises(TypeError, match=r"CustomClass.*not a valid array type"):
            CustomClass(2, True).calc(3)

    def test_strategy_1_helper_function(self) -> None:
        @partial(dt.jit, static_argnums=0)
        def _calc(mul: bool, x: Any, y: Any) -> Any:
            return x * y if mul else y

        assert str(_calc(True, 2, 3)) == "6"

    def test_strategy_2_static_self(self) -> None:
        class Broken:
            def __init__(self, x: Any, mul: bool) -> None:
                self.x, self.mul = x, mul

            @partial(dt.jit, static_argnums=0)
            def calc(self, y: Any) -> Any:
                return self.x * y if self.mul else y

        broken = Broken(2, True)
        assert str(broken.calc(3)) == "6"
        broken.mul = False
        assert str(broken.calc(3)) == "6"

        class Hashed(Broken):
            def __hash__(self) -> int:
                return hash((self.x, self.mul))

            def __eq__(self, other: object) -> bool:
                return isinstance(other, Hashed) and (self.x, self.mul) == (other.x, other.mul)

        assert str(Hashed(2, True).calc(3)) == "6"
        assert str(Hashed(2, False).calc(3)) == "3"

    def test_strategy_3_pytree(self) -> None:
        class CustomClass:
            def __init__(self, x: Any, mul: bool) -> None:
                self.x, self.mul = x, mul

            @dt.jit
            def calc(self, y: Any) -> Any:
                return self.x * y if self.mul else y

            def _tree_flatten(self) -> Any:
                return (self.x,), {"mul": self.mul}

            @classmethod
            def _tree_unflatten(cls, aux_data: Any, children: Any) -> Any:
                return cls(*children, **aux_data)

        dt.tree_util.register_pytree_node(
            CustomClass, CustomClass._tree_flatten, CustomClass._tree_unflatten
        )
        c = CustomClass(2, True)
        assert str(c.calc(3)) == "6"
        c.mul = False
        assert str(c.calc(3)) == "3"
        assert str(CustomClass(jnp.array(2), True).calc(3)) == "6"


_PLACEMENT = """
import numpy as np, dovetail as dt, dovetail.numpy as jnp
first, second, third = dt.devices()[:3]
x = jnp.ones(3)
assert x.devices() == {first} and not x.committed
assert not (x + 1).committed
y = dt.device_put(1, third)
assert y.devices() == {third} and y.committed
z = x * y
assert z.devices() == {third} and z.committed
assert dt.jit(lambda a, b: a + b)(x, y).devices() == {third}
assert dt.device_put(y).devices() == {third}
assert not dt.device_put(np.ones(2)).committed
w = dt.device_put(np.ones(3, np.float32), second)
for operation in (lambda: w + y, lambda: dt.jit(lambda a, b: a * b)(w, y)):
    try:
        operation()
    except ValueError as error:
        assert "committed to different devices" in str(error), error
    else:
        raise AssertionError("devices were mixed silently")
with dt.default_device(second):
    assert jnp.ones(3).devices() == {second}
    assert (x + 1).devices() == {second}
assert jnp.ones(3).devices() == {first}
print("placed")
"""


class TestControllingDataAndComputationPlacement:
    """Controlling data and computation placement on devices"""

    def test_computation_follows_data(self) -> None:
        environment = os.environ | {"DOVETAIL_NUM_CPU_DEVICES": "3"}
        run = subprocess.run(
            [sys.executable, "-c", _PLACEMENT], env=environment, capture_output=True, text=True
        )
        assert run.stdout == "placed\n", run.stderr

    def test_platform_by_environment(self) -> None:
        for variable in ("DOVETAIL_PLATFORMS", "JAX_PLATFORMS"):
            run = subprocess.run(
                [sys.executable, "-c", "import dovetail as dt; print(dt.default_backend())"],
                env=os.environ | {variable: "cpu"},
                capture_output=True,
                text=True,
            )
            assert run.stdout == "cpu\n", run.stderr


class TestBenchmarking:
    """Benchmarking JAX code"""

    def test_asynchronous_dispatch_and_blocking(self) -> None:
        f = dt.jit(lambda x: x.T @ (x - x.mean(axis=0)))
        x = dt.device_put(np.ones((100, 100), np.float32))
        result = f(x).block_until_ready()
        assert result.is_ready()
        np.testing.assert_array_equal(result, np.zeros((100, 100)))

    def test_only_32_bit_dtypes_by_default(self) -> None:
        assert jnp.asarray(np.ones(3)).dtype == np.float32
        with dt.enable_x64(True):
            assert jnp.asarray(np.ones(3)).dtype == np.float64

    def test_built_in_functions_are_compiled_on_their_first_call(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        x = jnp.ones((3, 1700, 5))  # small arrays may need no program
        with dt.log_compiles(), caplog.at_level(logging.WARNING):
            jnp.tanh(x)
            first = len(caplog.records)
            jnp.tanh(x)
        assert first > 0
        assert len(caplog.records) == first


class TestIsJaxFasterThanNumPy:
    """Is JAX faster than NumPy?"""

    def test_the_same_function_is_evaluated_eagerly_or_compiled_asynchronously(self) -> None:
        def f(x: Any) -> Any:
            return x.T @ (x - x.mean(axis=0))

        x = np.random.default_rng(0).standard_normal((50, 50)).astype(np.float32)
        want = f(x)
        for function in (f, dt.jit(f)):
            got = function(jnp.asarray(x))
            assert hasattr(got, "block_until_ready")
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


class TestDifferentKindsOfValues:
    """Different kinds of JAX values"""

    def test_tracers_print_their_type(self, capsys: pytest.CaptureFixture[str]) -> None:
        def func(x: Any) -> Any:
            print(x, repr(x))
            return jnp.cos(x)

        assert float(dt.jit(func)(0.0)) == 1.0
        shown = capsys.readouterr().out
        assert shown.startswith("f32[] traced by jit, the argument x of func Traced<ShapedArray(")

    def test_shapes_of_tracers_are_regular_values(self) -> None:
        seen: list[Any] = []
        dt.jit(lambda x: seen.append(x.shape) or x)(np.ones((2, 3)))
        assert seen == [(2, 3)]

    def test_control_flow(self) -> None:
        def divide(x: Any, y: Any) -> Any:
            return x / y if y >= 1.0 else 0.0

        with pytest.raises(dt.errors.TracerBoolConversionError, match="static_argnums"):
            dt.jit(divide)(3.0, 2.0)
        assert float(dt.jit(divide, static_argnums=1)(3.0, 2.0)) == 1.5
        assert float(dt.grad(divide)(3.0, 2.0)) == 0.5
        for convert in (int, float):
            with pytest.raises(dt.errors.ConcretizationTypeError):
                dt.jit(lambda y, convert=convert: convert(y))(2.0)

    def test_abstract_and_concrete_tracers(self) -> None:
        def is_abstract(transformed: Any) -> bool:
            try:
                transformed()
            except dt.errors.TracerBoolConversionError:
                return True
            return False

        def f(x: Any) -> Any:
            return x * 2.0 if x > 0 else x

        for abstract in (
            lambda: dt.jit(f)(1.0),
            lambda: dt.vmap(f)(jnp.ones(2)),
            lambda: dt.make_jaxpr(f)(1.0),
            lambda: dt.jit(dt.grad(f))(1.0),
            lambda: lax.cond(True, f, f, 1.0),
            lambda: lax.while_loop(lambda x: x < 5.0, f, 1.0),
            lambda: lax.fori_loop(0, 3, lambda i, x: f(x), 1.0),
            lambda: lax.scan(lambda c, x: (f(c), x), 1.0, jnp.ones(3)),
        ):
            assert is_abstract(abstract)
        for concrete in (
            lambda: dt.grad(f)(1.0),
            lambda: dt.jvp(f, (1.0,), (1.0,)),
            lambda: dt.grad(dt.grad(f))(1.0),
        ):
            assert not is_abstract(concrete)


class TestBufferDonation:
    """Buffer donation"""

    def test_one_argument(self) -> None:
        x, y = dt.device_put(np.ones((2, 3))), dt.device_put(np.ones((2, 3)))
        dt.jit(lambda a, b: a + b, donate_argnums=(1,))(x, y)
        with pytest.raises(RuntimeError):
            y + 1
        assert float((x + 1)[0, 0]) == 2.0

    def test_tree(self) -> None:
        xs = [dt.device_put(np.ones((2, 3))), dt.device_put(np.ones((3, 4)))]
        dt.jit(lambda xs: [x + 1 for x in xs], donate_argnums=0)(xs)
        assert all(x.is_deleted() for x in xs)

    @pytest.mark.parametrize(("shape", "argnums"), [((2, 3), (0, 1)), ((1, 3), (1,))])
    def test_unusable(self, shape: tuple[int, ...], argnums: tuple[int, ...]) -> None:
        x, y = dt.device_put(np.ones((2, 3))), dt.device_put(np.ones(shape))
        with pytest.warns(UserWarning, match="Some donated buffers were not usable: f32"):
            dt.jit(lambda a, b: a + b, donate_argnums=argnums)(x, y)


class TestGradientsContainNaNWhereUsingWhere:
    """Gradients contain `NaN` where using ``where``"""

    def test_both_ways(self) -> None:
        my_log = lambda x: jnp.where(x > 0.0, jnp.log(x), 0.0)
        safe = lambda x: jnp.where(x > 0.0, jnp.log(jnp.where(x > 0.0, x, 1.0)), 0.0)
        assert float(my_log(0.0)) == 0.0
        assert np.isnan(dt.grad(my_log)(0.0))
        assert float(dt.grad(safe)(0.0)) == 0.0


class TestGradientsZeroForFunctionsBasedOnSortOrder:
    """Why are gradients zero for functions based on sort order?"""

    def test_step_and_sigmoid(self) -> None:
        x = jnp.array([-1.0, -0.5, 0.0, 0.5, 1.0])
        step = lambda x: (x > 0).astype(float)
        np.testing.assert_array_equal(dt.vmap(dt.grad(step))(x), np.zeros(5))
        g = dt.vmap(dt.grad(lambda x: nn.sigmoid(x)))
        found = g(jnp.array([-10.0, -1.0, 0.0, 1.0, 10.0]))
        np.testing.assert_allclose(found, [0.0, 0.2, 0.25, 0.2, 0.0], atol=5e-3)


class TestConvertATracerToANumPyArray:
    """How can I convert a JAX Tracer to a NumPy array?"""

    def test_it_is_impossible_and_says_what_to_do(self) -> None:
        with pytest.raises(dt.errors.TracerArrayConversionError) as error:
            dt.jit(lambda x: np.sin(x))(jnp.arange(5.0))
        text = str(error.value)
        assert "dovetail.numpy" in text
        assert f"{__file__}:" in text
        assert "the argument x" in text
        with pytest.raises(dt.errors.TracerIntegerConversionError, match="static_argnums"):
            dt.jit(lambda n: jnp.zeros(range(n)))(3)

    def test_values_at_run_time(self, capsys: pytest.CaptureFixture[str]) -> None:
        kept: list[Any] = []

        @dt.jit
        def f(x: Any) -> Any:
            dt.debug.print("x is {x}", x=x)
            written = io_callback(lambda x: kept.append(np.asarray(x).tolist()), None, x)
            assert written is None
            return dt.pure_callback(np.sin, dt.ShapeDtypeStruct(x.shape, x.dtype), x)

        np.testing.assert_allclose(f(jnp.arange(2.0)), np.sin([0.0, 1.0]), rtol=1e-6)
        dt.effects_barrier()
        assert capsys.readouterr().out == "x is [0. 1.]\n"
        assert kept == [[0.0, 1.0]]

    def test_leaked_tracers(self) -> None:
        leaked: list[Any] = []

        @dt.jit
        def f(x: Any) -> Any:
            leaked.append(jnp.sin(x))
            return x

        f(1.0)
        with pytest.raises(dt.errors.UnexpectedTracerError, match="operation sin at") as error:
            leaked[0] + 1
        assert __file__ in str(error.value)
        with (
            pytest.raises(dt.errors.UnexpectedTracerError, match="kept alive"),
            dt.checking_leaks(),
        ):
            dt.jit(lambda x: leaked.append(x) or x * 2)(3.0)


class TestCudaLibrariesFailToLoad:
    """Why do some CUDA libraries fail to load/initialize?"""

    def test_preallocation_can_be_reduced_or_switched_off(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_PREALLOCATE"):
            monkeypatch.delenv(name, raising=False)
        assert "memory_fraction" not in client_options({})  # the library's own default, 0.75
        monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5")
        monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        found = client_options({})
        assert found["memory_fraction"] == 0.5
        assert found["preallocate"] is False


def test_every_heading_has_a_class() -> None:
    classes = [c for name, c in globals().items() if name.startswith("Test")]
    assert sorted(c.__doc__ for c in classes) == sorted(HEADINGS)
