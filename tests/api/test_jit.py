"""jit: caching, static and donated arguments, devices, errors, the steps of compilation."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.runtime.programs.compilation import statistics
from dovetail.errors import CompilerOptionError, JaxRuntimeError


class Counter:
    """Counts how often a function is traced."""

    def __init__(self) -> None:
        self.traces = 0

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.traces += 1
            return function(*args, **kwargs)

        return counted


def test_traced_once_per_signature() -> None:
    count = Counter()
    f = dt.jit(count(lambda x: x + 1))
    for _ in range(3):
        f(np.ones(3, np.float32))
    assert count.traces == 1
    f(np.ones(4, np.float32))
    assert count.traces == 2
    f(np.ones(3, np.int32))
    assert count.traces == 3
    f(jnp.ones(3))
    assert count.traces == 3
    f(2.0)
    f(3.0)
    assert count.traces == 4


def test_structure_of_arguments_is_part_of_the_signature() -> None:
    count = Counter()
    f = dt.jit(count(lambda t: dt.tree.map(lambda x: x * 2, t)))
    assert float(f({"a": 1.0})["a"]) == 2.0
    assert float(f((1.0,))[0]) == 2.0
    assert f({"a": 2.0})["a"] == 4.0
    assert count.traces == 2
    assert f(None) is None


def test_results_are_those_of_the_function() -> None:
    f = lambda x, y=2.0, *rest, scale=1.0, **more: (x * y + sum(rest), scale, more)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1.0,), {}),
        ((1.0, 3.0), {}),
        ((1.0, 3.0, 4.0, 5.0), {"scale": 7.0}),
        ((1.0,), {"scale": 2.0, "b": 1.0, "a": 2.0}),
        ((1.0,), {"y": 9.0}),
    ]
    jitted = dt.jit(f)
    for args, kwargs in calls:
        for _ in range(2):
            expected, found = f(*args, **kwargs), jitted(*args, **kwargs)
            assert dt.tree.structure(expected) == dt.tree.structure(found)
            for a, b in zip(dt.tree.leaves(expected), dt.tree.leaves(found), strict=True):
                assert float(a) == float(b)


class TestStaticArguments:
    def test_numbers_and_names_imply_each_other(self) -> None:
        count = Counter()

        def power(x: Any, n: int) -> Any:
            count.traces += 1
            return x**n if n > 0 else x

        for options in ({"static_argnums": 1}, {"static_argnames": "n"}, {"static_argnums": -1}):
            f = dt.jit(power, **options)
            before = count.traces
            assert float(f(2.0, 3)) == 8.0
            assert float(f(2.0, n=3)) == 8.0
            assert float(f(3.0, 3)) == 27.0
            assert float(f(2.0, 2)) == 4.0
            assert count.traces - before <= 3
            f.clear_cache()

    def test_equality_and_hash_decide(self) -> None:
        class Setting:
            def __init__(self, value: int) -> None:
                self.value = value

            def __eq__(self, other: object) -> bool:
                return isinstance(other, Setting) and self.value == other.value

            def __hash__(self) -> int:
                return hash(self.value)

        count = Counter()
        f = dt.jit(count(lambda x, s: x * s.value), static_argnums=1)
        assert float(f(2.0, Setting(3))) == 6.0
        assert float(f(2.0, Setting(3))) == 6.0
        assert count.traces == 1
        assert float(f(2.0, Setting(4))) == 8.0

    def test_equal_values_of_different_types_differ(self) -> None:
        f = dt.jit(lambda x, n: x * (1 if type(n) is int else 2), static_argnums=1)
        assert [float(f(1.0, n)) for n in (1, 1.0, True, 1)] == [1.0, 2.0, 2.0, 1.0]

    def test_unhashable(self) -> None:
        f = dt.jit(lambda x, n: x, static_argnums=1)
        with pytest.raises(ValueError, match=r"[Nn]on-hashable static argument"):
            f(1.0, [1, 2])
        assert float(f(1.0, (1, 2))) == 1.0

    def test_functions_as_static_arguments(self) -> None:
        f = dt.jit(lambda g, x: g(x), static_argnums=0)
        np.testing.assert_allclose(f(jnp.sin, 0.5), np.sin(0.5), rtol=1e-6)
        np.testing.assert_allclose(f(jnp.cos, 0.5), np.cos(0.5), rtol=1e-6)


class TestDonation:
    def test_memory_is_reused_and_the_array_is_gone(self) -> None:
        f = dt.jit(lambda x, y: x + y, donate_argnums=0)
        x, y = jnp.ones((4, 4)), jnp.ones((4, 4))
        f(x, y)
        assert x.is_deleted()
        assert not y.is_deleted()
        with pytest.raises(RuntimeError, match=r"deleted|donated"):
            x + 1
        with pytest.raises(RuntimeError, match=r"deleted|donated"):
            np.asarray(x)
        with pytest.raises(RuntimeError, match=r"deleted|donated"):
            f(x, y)
        for _ in range(3):
            y = f(y, jnp.ones((4, 4)))
        assert float(y[0, 0]) == 4.0

    def test_unusable_donation_warns_and_names_the_argument(self) -> None:
        f = dt.jit(lambda x, y: jnp.sum(x) + jnp.sum(y), donate_argnums=(0,))
        with pytest.warns(UserWarning, match=r"donated buffers were not usable: f32\[2,3\] \(x\)"):
            f(jnp.ones((2, 3)), jnp.ones(3))

    def test_trees_and_names(self) -> None:
        state = {"a": jnp.ones(3), "b": jnp.ones(4)}
        f = dt.jit(lambda *, s: dt.tree.map(lambda v: v * 2, s), donate_argnames="s")
        f(s=state)
        assert all(v.is_deleted() for v in state.values())

    def test_host_values_are_not_affected(self) -> None:
        x = np.ones(3, np.float32)
        f = dt.jit(lambda v: v * 2, donate_argnums=0)
        f(x)
        f(x)
        np.testing.assert_array_equal(x, np.ones(3))

    def test_static_and_donated(self) -> None:
        with pytest.raises(ValueError, match="both"):
            dt.jit(lambda x: x, static_argnums=0, donate_argnums=0)


class TestStages:
    def test_all_of_them(self) -> None:
        f = dt.jit(lambda x, y: {"out": jnp.sin(x) @ y}, donate_argnums=0)
        x, y = np.ones((4, 4), np.float32), np.eye(4, dtype=np.float32)
        traced = f.trace(x, y)
        assert len(traced.jaxpr.eqns) == 2
        lowered = traced.lower()
        assert "stablehlo.sine" in lowered.as_text()
        assert "HloModule" in lowered.as_text("hlo")
        assert lowered.cost_analysis()["flops"] > 0
        assert lowered.donate_argnums == (0,)
        assert lowered.args_info[0][0].donated
        compiled = lowered.compile()
        assert compiled.cost_analysis()["flops"] > 0
        assert compiled.memory_analysis().argument_size_in_bytes == 128
        assert "HloModule" in compiled.as_text()
        struct = dt.ShapeDtypeStruct((4, 4), np.float32)
        assert lowered.out_info == {"out": struct}
        place = compiled.output_shardings["out"]
        assert compiled.out_info == {"out": struct.update(sharding=place)}
        np.testing.assert_allclose(compiled(x, y)["out"], np.sin(x), rtol=1e-6)
        assert f.eval_shape(x, y) == lowered.out_info
        with pytest.raises(ValueError, match="dialect"):
            lowered.as_text("rust")

    def test_abstract_arguments(self) -> None:
        struct = dt.ShapeDtypeStruct((3,), np.float32)
        compiled = dt.jit(lambda x, n: x * n, static_argnums=1).lower(struct, 3).compile()
        np.testing.assert_array_equal(compiled(np.ones(3, np.float32)), np.full(3, 3.0))

    def test_compiled_programs_check_their_arguments(self) -> None:
        compiled = dt.jit(lambda x: x + 1).lower(np.ones(3, np.float32)).compile()
        with pytest.raises(TypeError, match=r"takes f32\[3\] for its argument x, got f32\[4\]"):
            compiled(np.ones(4, np.float32))
        with pytest.raises(TypeError, match="structure"):
            compiled(1.0, 2.0)
        with pytest.raises(TypeError, match="cannot be transformed"):
            dt.grad(lambda x: jnp.sum(compiled(x)))(np.ones(3, np.float32))

    def test_unknown_compiler_option(self) -> None:
        with pytest.raises(CompilerOptionError, match="xla_no_such_flag") as caught:
            dt.jit(lambda x: x, compiler_options={"xla_no_such_flag": True})(1.0)
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, JaxRuntimeError)

    def test_clear_cache(self) -> None:
        count = Counter()
        f = dt.jit(count(lambda x: x))
        f(1.0)
        f.clear_cache()
        f(1.0)
        assert count.traces == 2


class TestNesting:
    def test_inner_functions_are_called_once_each_in_the_jaxpr(self) -> None:
        inner = dt.jit(lambda x: x * 2)
        jaxpr = dt.make_jaxpr(lambda x: inner(inner(x)))(1.0)
        assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["jit", "jit"]
        assert jaxpr.eqns[0].params["jaxpr"] is jaxpr.eqns[1].params["jaxpr"]

    def test_inline_functions_get_arrays(self) -> None:
        seen = []

        def function(x: Any, count: int, keyed: Any) -> Any:
            seen.append([(a.shape, a.dtype.name, a.weak_type) for a in (x, *keyed.values())])
            assert type(count) is int
            return x * count + keyed["a"]

        inner = dt.jit(function, inline=True, static_argnums=1)
        value = dt.jit(lambda x: inner(0.5, 3, keyed={"a": np.ones(2, np.int8)}) + x)(1.0)
        assert seen == [[((), "float32", True), ((2,), "int8", False)]]
        np.testing.assert_allclose(np.asarray(value), 3.5)

    def test_inline(self) -> None:
        inner = dt.jit(lambda x: x * 2, inline=True)
        jaxpr = dt.make_jaxpr(lambda x: inner(x))(1.0)
        assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["mul"]

    def test_captured_tracers_are_not_remembered(self) -> None:
        results = []

        @dt.jit
        def outer(x: Any) -> Any:
            inner = dt.jit(lambda y: x + y)
            return inner(1.0) + inner(2.0)

        results = [float(outer(np.float32(v))) for v in (1.0, 5.0)]
        assert results == [5.0, 13.0]

        captured: list[Any] = []
        shared = dt.jit(lambda y: captured[0] * y)

        def caller(x: Any) -> Any:
            captured[:] = [x]
            return shared(2.0)

        assert [float(dt.jit(lambda x: caller(x))(v)) for v in (3.0, 4.0)] == [6.0, 8.0]
        assert float(dt.grad(caller)(3.0)) == 2.0

    def test_deep(self) -> None:
        def nest(depth: int) -> Callable[[Any], Any]:
            if depth == 0:
                return lambda x: x + 1.0
            inner = nest(depth - 1)
            return dt.jit(lambda x: inner(x) * 1.0)

        assert float(dt.jit(nest(60))(1.0)) == 2.0


class TestMethods:
    def test_bound_to_pytrees(self) -> None:
        @dt.tree_util.register_pytree_node_class
        class Scale:
            def __init__(self, factor: Any) -> None:
                self.factor = factor

            @dt.jit
            def __call__(self, x: Any) -> Any:
                return self.factor * x

            def tree_flatten(self) -> Any:
                return (self.factor,), None

            @classmethod
            def tree_unflatten(cls, aux: Any, children: Any) -> Any:
                return cls(*children)

        assert float(Scale(3.0)(2.0)) == 6.0

    def test_other_objects_are_refused_by_name(self) -> None:
        class Model:
            @dt.jit
            def call(self, x: Any) -> Any:
                return x

        with pytest.raises(TypeError, match=r"Argument self of call is .*Model"):
            Model().call(3)


def test_decorator_forms() -> None:
    @partial(dt.jit, static_argnames=("n",))
    def f(x: Any, n: int) -> Any:
        return x * n

    @dt.jit(static_argnames=("n",))
    def g(x: Any, n: int) -> Any:
        """Documentation."""
        return x * n

    assert float(f(2.0, n=3)) == float(g(2.0, n=3)) == 6.0
    assert g.__name__ == "g"
    assert g.__doc__ == "Documentation."


def test_a_failed_call_can_be_repeated() -> None:
    fail = [True]

    @dt.jit
    def f(x: Any) -> Any:
        if fail[0]:
            raise RuntimeError("not yet")
        return x + 1

    with pytest.raises(RuntimeError, match="not yet"):
        f(1.0)
    fail[0] = False
    for _ in range(3):
        assert float(f(1.0)) == 2.0
    assert f._cache_size() == 1


def test_equal_programs_are_compiled_once() -> None:
    x = jnp.ones(5)
    dt.jit(lambda v: jnp.sin(v) * 7.25)(x)
    before = statistics()
    for _ in range(5):
        dt.jit(lambda v: jnp.sin(v) * 7.25)(x)
    after = statistics()
    assert after.compiled == before.compiled
    assert after.reused == before.reused + 5


def test_large_constants_become_arguments() -> None:
    big = jnp.arange(10_000.0)
    f = dt.jit(lambda x: x + big)
    assert len(f.lower(1.0).as_text()) < 5_000
    for _ in range(2):
        assert float(f(1.0)[-1]) == 10_000.0


def test_captured_numpy_arrays_are_copied() -> None:
    data = np.ones(3, np.float32)
    f = dt.jit(lambda x: x * data)
    f(1.0)
    data[:] = 5.0
    np.testing.assert_array_equal(f(1.0), np.ones(3))


def test_unused_arguments_are_dropped_unless_kept() -> None:
    f = lambda x, y: x * 2
    args = (np.ones(3, np.float32), np.ones((50, 50), np.float32))
    assert "50x50" not in dt.jit(f).lower(*args).as_text()
    assert "50x50" in dt.jit(f, keep_unused=True).lower(*args).as_text()
    for options in ({}, {"keep_unused": True}):
        for _ in range(2):
            np.testing.assert_array_equal(dt.jit(f, **options)(*args), np.full(3, 2.0))


def test_functions_are_released() -> None:
    def make() -> tuple[Any, Any]:
        payload = np.ones(10)
        function = lambda x: x + payload[0]
        jitted = dt.jit(function)
        jitted(1.0)
        return weakref.ref(function), jitted

    reference, jitted = make()
    assert reference() is not None
    del jitted
    gc.collect()
    assert reference() is None


def test_threads_share_one_compilation() -> None:
    f = dt.jit(lambda x: jnp.sum(jnp.sin(x) * 3.125))
    results: list[float] = []
    threads = [
        threading.Thread(target=lambda: results.append(float(f(jnp.ones(100))))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1
    assert len(results) == 8


def test_disable_jit() -> None:
    seen: list[type] = []
    f = dt.jit(lambda x: seen.append(type(x)) or x + 1)
    with dt.disable_jit():
        assert float(f(1.0)) == 2.0
    assert seen == [float]


def test_x64_is_part_of_the_signature() -> None:
    f = dt.jit(lambda x: x * 2)
    assert f(1.5).dtype == np.float32
    with dt.enable_x64(True):
        assert f(1.5).dtype == np.float64
    assert f(1.5).dtype == np.float32


def test_device_option() -> None:
    device = dt.devices()[0]
    out = dt.jit(lambda x: x + 1, device=device)(1.0)
    assert out.devices() == {device}
    assert out.committed
    assert dt.jit(lambda x: x + 1, backend="cpu")(1.0).devices() == {dt.devices("cpu")[0]}


def test_captured_arrays_are_copied_once() -> None:
    weights = np.arange(3000.0, dtype=np.float32)
    first, second = dt.jit(lambda x: x * weights), dt.jit(lambda x: x + weights)
    both = dt.jit(lambda x: first(x) + second(x) * weights)
    (constant,) = both.trace(1.0).jaxpr.consts
    for jitted in (first, second):
        assert jitted.trace(1.0).jaxpr.consts == [constant]
    assert constant is not weights
    assert not np.shares_memory(constant, weights)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "complex64", "bool", "bfloat16"])
def test_captured_arrays_that_change_are_copied_anew(dtype: str, order: Any) -> None:
    captured = np.zeros((2, 3), jnp.dtype(dtype), order=order)
    before = dt.jit(lambda x: captured)
    assert not np.asarray(before(1.0)).any()
    captured[1, 0] = 1
    assert not np.asarray(before(2.0)).any()
    np.testing.assert_array_equal(dt.jit(lambda x: captured)(1.0), captured)
    if captured.dtype.kind != "b":
        captured[1, 0] = -0.0  # equals zero, and other bits where it has a sign
        constant = dt.make_jaxpr(lambda x: captured)(1.0).consts[0]
        assert constant.tobytes() == captured.astype(constant.dtype).tobytes()


def test_functions_of_nothing() -> None:
    f = dt.jit(lambda: jnp.arange(3))
    for _ in range(2):
        np.testing.assert_array_equal(f(), [0, 1, 2])
    assert dt.jit(lambda: None)() is None
    assert dt.jit(lambda: ())() == ()


ERRORS: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    ("not callable", lambda: dt.jit(3), TypeError, "jit takes a function"),
    ("string", lambda: dt.jit(lambda x: x)("a"), TypeError, "Argument x of .* 'a'"),
    (
        "nested",
        lambda: dt.jit(lambda d: d)({"k": [1.0, "a"]}),
        TypeError,
        r"Argument d\['k'\]\[1\]",
    ),
    ("keyword", lambda: dt.jit(lambda *, x: x)(x=object()), TypeError, "Argument x of"),
    ("result", lambda: dt.jit(lambda x: {"k": "a"})(1.0), TypeError, r"str at \['k'\]"),
    ("argnums", lambda: dt.jit(lambda x: x, static_argnums=3), ValueError, "1 positional"),
    ("argnames", lambda: dt.jit(lambda x: x, static_argnames="y"), ValueError, "no argument 'y'"),
    ("argnums type", lambda: dt.jit(lambda x: x, static_argnums=1.5), TypeError, "integer"),
    ("argnames type", lambda: dt.jit(lambda x: x, static_argnames=[1]), TypeError, "string"),
    ("device", lambda: dt.jit(lambda x: x, device="gpu9"), TypeError, "device"),
    ("too many", lambda: dt.jit(lambda x: x)(1.0, 2.0), TypeError, "positional argument"),
    ("object array", lambda: dt.jit(lambda x: x)(np.array([None])), TypeError, "Argument x"),
    ("overflow", lambda: dt.jit(lambda x: x + 1)(2**40), OverflowError, "int"),
    (
        "overflow in a tree",
        lambda: dt.jit(lambda x, *, d: x)(1, d={"k": [1, 2**40]}),
        OverflowError,
        r"the argument d\['k'\]\[1\] of <lambda>: the Python integer 1099511627776",
    ),
    (
        "argnums of any number",
        lambda: dt.jit(lambda *xs: xs, static_argnums=-1),
        ValueError,
        "any number of positional arguments",
    ),
    ("platform", lambda: dt.jit(lambda x: x, backend="abacus"), RuntimeError, "abacus"),
]


@pytest.mark.parametrize(
    ("call", "error", "text"), [e[1:] for e in ERRORS], ids=[e[0] for e in ERRORS]
)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "name", ["block_until_ready", "delete", "device", "devices", "sharding", "__dlpack__"]
)
@pytest.mark.parametrize("transformation", [dt.jit, dt.vmap, dt.grad])
def test_what_arrays_alone_have(transformation: Any, name: str) -> None:
    def function(value: Any) -> None:
        assert not hasattr(value, name)
        assert not hasattr(type(value), name)
        getattr(value, name)

    with pytest.raises(AttributeError, match=f"{name} is there for arrays alone") as caught:
        transformation(function)(np.ones(3, np.float32))
    assert "value" in str(caught.value)
