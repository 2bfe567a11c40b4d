"""Eager evaluation, the C++ fast path, and its traps."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail import Array, lax
from dovetail._core.base.bindings import _jax
from dovetail._core.runtime.calls import fastpath
from dovetail._core.runtime.calls.dispatch import apply_primitive
from dovetail._core.runtime.programs import arguments, compilation
from dovetail.errors import DeviceMismatchError, NonArrayArgumentError
from dovetail.extend import Literal, Primitive
from dovetail.extend.arrays import array_from_buffer
from dovetail.extend.avals import make_aval
from dovetail.extend.eager import compile_eager
from dovetail.lax import add_p, mul_p


@pytest.fixture
def x():
    return dt.device_put(np.arange(3, dtype=np.float32))


class Counted:
    """A function of arrays that counts how often it is traced."""

    def __init__(self, function, **options):
        self.calls = 0
        self.function = function
        self.compiled = compile_eager(self.run, name="counted", **options)

    def run(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def assert_value(array, value, dtype=np.float32, weak_type=False):
    assert type(array) is Array
    np.testing.assert_array_equal(np.asarray(array), value)
    assert (array.dtype, array.weak_type) == (dtype, weak_type)


# -----------------------------------------------------------------------------------------
# primitives


def test_primitives(x):
    assert_value(add_p.bind(x, x), [0, 2, 4])
    assert_value(add_p.bind(x, np.float32([1, 1, 1])), [1, 2, 3])
    for value in (2.0, 3.0):
        weak = Literal(value, make_aval((), np.dtype(np.float32), True))
        strong = Literal(np.float32(value), make_aval((), np.dtype(np.float32)))
        assert_value(mul_p.bind(x, weak), np.arange(3) * value)
        assert_value(mul_p.bind(x, strong), np.arange(3) * value)
        assert_value(mul_p.bind(weak, weak), value * value, weak_type=True)


@pytest.mark.parametrize(
    ("literal", "dtype", "weak"),
    [
        (Literal(2, make_aval((), np.dtype(np.int32), True)), np.int32, True),
        (Literal(True, make_aval((), np.dtype(bool), True)), bool, True),
        (Literal(2.0, make_aval((), np.dtype(ml_dtypes.bfloat16), True)), ml_dtypes.bfloat16, True),
        (Literal(2, make_aval((), np.dtype(np.uint8))), np.uint8, False),
        (Literal(np.float16(2), make_aval((), np.dtype(np.float16))), np.float16, False),
    ],
)
def test_literals_keep_their_type(literal, dtype, weak):
    value = arguments.literal_value(literal)
    aval = value.aval if isinstance(value, Array) else arguments.aval_of(value)
    assert (aval.dtype, aval.weak_type) == (dtype, weak)


def test_several_results():
    two = Primitive("test_dispatch_two", multiple_results=True)
    two.define("abstract", lambda a, *, n: [a] * n)
    two.define("lower", lambda context, a, *, n: [a] * n)
    assert two.bind(dt.device_put(1), n=0) == []
    results = two.bind(dt.device_put(1), n=2)
    assert [r.item() for r in results] == [1, 1]
    assert two.bind(np.float32(3), n=1)[0].item() == 3


def test_parameters_are_told_apart_by_type():
    power = Primitive("test_dispatch_scale")
    power.define("abstract", lambda a, *, n: a)

    @power.define("lower")
    def lower(context, a, *, n):
        (out,) = context.avals_out
        return context.mul(a, context.constant(2.0 if type(n) is int else 5.0, out), out)

    assert power.bind(np.float32([1]), n=1).tolist() == [2]
    assert power.bind(np.float32([1]), n=True).tolist() == [5]
    assert power.bind(np.float32([1]), n=1.0).tolist() == [5]


def test_parameters_without_hash():
    primitive = Primitive("test_dispatch_unhashable")
    primitive.define("abstract", lambda a, *, table: a)
    primitive.define("lower", lambda context, a, *, table: a)
    for _ in range(2):
        assert primitive.bind(np.float32([1, 2]), table=[1, {2: 3}]).tolist() == [1, 2]


def test_errors_of_rules_pass_through(x):
    with pytest.raises(TypeError, match="float32"):
        add_p.bind(x, np.arange(3, dtype=np.int32))
    with pytest.raises(NonArrayArgumentError):
        apply_primitive(add_p, ["a", "b"], {})


# ---------------------------------------------------------------------------------- compile_eager


def test_a_function_is_traced_once_per_signature(x):
    f = Counted(lambda a, b: lax.mul(lax.add(a, a), b))
    for _ in range(3):
        assert_value(f.compiled(x, x), [0, 2, 8])
    assert f.calls == 1
    for value in (1.0, 2.0, 3.0):
        assert_value(f.compiled(x, value), np.arange(3) * 2 * value)
    assert f.calls == 2
    f.compiled(dt.device_put(np.ones(4, np.float32)), 1.0)
    assert f.calls == 3
    assert f.compiled._cache_size() == 3


def test_keywords_and_trees(x):
    f = Counted(lambda tree, *, scale, offset=None: {"out": [lax.mul(tree["a"], scale)], "n": None})
    for _ in range(2):
        out = f.compiled({"a": x}, scale=x)
        assert out["n"] is None
        assert_value(out["out"][0], [0, 1, 4])
    assert f.calls == 1
    f.compiled({"a": x}, scale=x, offset=x)
    assert f.calls == 2


def test_static_arguments(x):
    f = Counted(
        lambda a, n, *, sign=1: lax.mul(a, float(n * sign)),
        static_argnums=(1,),
        static_argnames=("sign",),
    )
    for _ in range(2):
        assert_value(f.compiled(x, 2), [0, 2, 4])
        assert_value(f.compiled(x, 3, sign=-1), [0, -3, -6])
    assert f.calls == 2
    with pytest.raises(TypeError, match=r"unhashable type: 'set'.*pass a number, a string"):
        f.compiled(x, {1})


def test_under_transformations_the_function_runs(x):
    f = Counted(lambda a: lax.mul(a, a))
    assert_value(f.compiled(x), [0, 1, 4])
    _, tangent = dt.jvp(f.compiled, (x,), (x,))
    assert_value(tangent, [0, 2, 8])
    assert_value(dt.vmap(f.compiled)(x), [0, 1, 4])
    assert_value(dt.jit(f.compiled)(x), [0, 1, 4])
    assert "mul" in str(dt.make_jaxpr(f.compiled)(x))
    assert f.calls == 5
    assert_value(f.compiled(x), [0, 1, 4])
    assert f.calls == 5


def test_disable_jit(x):
    f = Counted(lambda a: lax.mul(a, a))
    with dt.disable_jit():
        assert_value(f.compiled(x), [0, 1, 4])
        assert_value(f.compiled(x), [0, 1, 4])
    assert f.calls == 2


def test_an_error_does_not_pin_the_signature(x):
    broken = [True]

    def function(a):
        if broken[0]:
            raise RuntimeError("not now")
        return lax.add(a, a)

    f = Counted(function)
    with pytest.raises(RuntimeError, match="not now"):
        f.compiled(x)
    broken[0] = False
    assert_value(f.compiled(x), [0, 2, 4])
    f.compiled(x)
    assert f.calls == 2
    assert f.compiled._cache_size() == 1


def test_options_that_affect_tracing_are_part_of_the_key(x):
    f = Counted(lambda a: lax.add(a, a))
    f.compiled(1.5)
    with dt.enable_x64(True):
        for _ in range(2):
            assert_value(f.compiled(1.5), 3.0, np.float64, weak_type=True)
            assert_value(f.compiled(np.float64(0.1)), 0.2, np.float64)
    assert_value(f.compiled(1.5), 3.0, weak_type=True)
    assert_value(f.compiled(np.float64(1.5)), 3.0)


# ------------------------------------------------------------------------------------- operators


class HasAdd:
    """A class with operators of its own."""

    def __radd__(self, other):
        return "radd"

    def __add__(self, other):
        return "add"


@pytest.fixture
def operator_class(monkeypatch):
    """`Array` with an operator as the NumPy API installs them."""

    def add(a, b):
        return lax.add(a, lax.convert_element_type(b, a.dtype))

    monkeypatch.setattr(Array, "__add__", compile_eager(add, is_operator=True))
    monkeypatch.setattr(Array, "__radd__", compile_eager(lambda a, b: add(a, b), is_operator=True))
    monkeypatch.setattr(Array, "__eq__", compile_eager(lambda a, b: lax.eq(a, b), is_operator=True))


@pytest.mark.usefixtures("operator_class")
def test_operators_run_no_python(x):
    assert type(Array.__dict__["__add__"]).__name__ in ("Function", "PjitFunction")
    for _ in range(2):
        assert_value(x + x, [0, 2, 4])
        assert_value(x + 1, [1, 2, 3])
        assert_value(1 + x, [1, 2, 3])
        assert_value(x + np.float32([1, 2, 3]), [1, 3, 5])
        assert_value(np.float32([1, 2, 3]) + x, [1, 3, 5])
        assert_value(np.float32(1) + x, [1, 2, 3])


@pytest.mark.usefixtures("operator_class")
@pytest.mark.parametrize("other", ["text", [1, 2, 3], None, {"a": 1}, (1,), b"b", object()])
def test_other_operands_are_not_supported(x, other):
    for _ in range(2):
        with pytest.raises(TypeError, match="unsupported operand"):
            x + other
        with pytest.raises(TypeError, match=r"unsupported operand|concat"):
            other + x
        if isinstance(other, (list, tuple, dict)):
            with pytest.raises(TypeError, match="unsupported operand"):
                x == other  # noqa: B015  # the comparison itself raises
        else:
            assert (x == other) is False
    assert_value(x + x, [0, 2, 4])


@pytest.mark.usefixtures("operator_class")
def test_operators_of_other_classes(x):
    assert x + HasAdd() == "radd"
    assert HasAdd() + x == "add"


@pytest.mark.usefixtures("operator_class")
def test_operators_of_deleted_arrays(x):
    y = dt.device_put(np.ones(3, np.float32))
    assert_value(x + y, [1, 2, 3])
    y.delete()
    for use in (
        lambda: x + y,
        lambda: y + x,
        lambda: add_p.bind(x, y),
        lambda: dt.jit(lax.add)(x, y),
    ):
        with pytest.raises(dt.errors.DeletedArrayError, match=r"deleted by .* test_dispatch\.py"):
            use()


# ----------------------------------------------------------------------------------------- traps


def functions():
    return {
        "jit": dt.jit(lambda a, b: lax.add(a, b)),
        "eager": compile_eager(lambda a, b: lax.add(a, b)),
        "primitive": lambda a, b: add_p.bind(a, b),
    }


@pytest.mark.parametrize("kind", list(functions()))
def test_byte_order_on_a_warm_path(x, kind):
    f = functions()[kind]
    native = np.float32([1, 2, 3])
    for _ in range(2):
        assert_value(f(x, native), [1, 3, 5])
        assert_value(f(x, native.astype(">f4")), [1, 3, 5])
    first = functions()[kind]
    for _ in range(2):
        assert_value(first(x, native.astype(">f4")), [1, 3, 5])
        assert_value(first(x, native), [1, 3, 5])


@pytest.mark.parametrize("kind", list(functions()))
def test_byte_order_of_zero_dimensional_arrays(kind):
    f = functions()[kind]
    one = dt.device_put(np.float32(1))
    for value in (np.float32(2), np.array(2, ">f4"), np.float32(2), np.array(2, ">f4")):
        assert_value(f(one, value), 3)


@pytest.mark.parametrize("kind", ["jit", "eager"])
def test_64_bit_integers_on_a_warm_path(kind):
    f = functions()[kind]
    one = dt.device_put(np.int32(1))
    for _ in range(2):
        assert_value(f(one, np.int64(2)), 3, np.int32)
        assert_value(f(one, np.int32(2)), 3, np.int32)
        with pytest.raises(OverflowError, match=r"enable_x64"):
            f(one, np.int64(2**40))
    many = np.arange(3)
    for _ in range(2):
        assert_value(f(dt.device_put(many), many), [0, 2, 4], np.int32)
        with pytest.raises(OverflowError, match=str(2**35)):
            f(dt.device_put(many), many + 2**35)


@pytest.mark.parametrize("kind", ["jit", "eager"])
def test_python_integers_that_do_not_fit(kind):
    f = functions()[kind]
    with pytest.raises(OverflowError, match=str(2**40)):
        f(dt.device_put(1), 2**40)
    f(dt.device_put(1), 1)
    for _ in range(2):  # C++ transfers Python scalars on a warm path
        with pytest.raises(OverflowError, match=f"the argument b of <lambda>: .* {2**40}"):
            f(dt.device_put(1), 2**40)
    assert_value(f(dt.device_put(1), 1), 2, np.int32, weak_type=True)


@pytest.mark.parametrize("kind", ["jit", "eager"])
def test_later_writes_do_not_show(kind):
    f = {"jit": dt.jit(lambda a: a), "eager": compile_eager(lambda a: a)}[kind]
    memory = np.zeros(1 << 16, np.uint8)
    start = -memory.ctypes.data % 64
    value = memory[start : start + 40_000].view(np.float32)
    for _ in range(3):
        out = f(value)
        value[:] = 7
        assert np.asarray(out).max() == 0
        value[:] = 0


def foreign(value):
    """An array of another framework on jaxlib: a bare buffer with an aval of its own."""

    class Aval:
        shape, dtype, weak_type = value.shape, value.dtype, False

    device = dt.devices()[0]
    sharding = fastpath.default_sharding()
    return _jax.batched_device_put(Aval(), sharding, [value], [device], enable_x64=True)


@pytest.mark.parametrize("kind", ["jit", "eager"])
def test_arrays_of_another_framework(x, kind):
    f = functions()[kind]
    other = foreign(np.float32([1, 2, 3]))
    for _ in range(3):
        assert_value(f(x, other), [1, 3, 5])
    assert_value(f(x, x), [0, 2, 4])
    assert_value(dt.device_put(other), [1, 2, 3])


def test_without_the_switch_for_64_bits(x, monkeypatch):
    # As if jax had taken the switch over with another setting: no call with host values is served
    # by C++.
    monkeypatch.setattr(fastpath, "_cpp_sees_our_x64", lambda: False)
    f = Counted(lambda a, b: lax.add(a, b))
    with dt.direct_calls("none"):
        for _ in range(2):
            assert_value(f.compiled(x, 1.0), [1, 2, 3])
            assert_value(f.compiled(x, x), [0, 2, 4])
        assert f.compiled._cache_size() == 1


def test_debug_nans(x):
    f = dt.jit(lambda a: lax.div(a, a))
    assert np.isnan(np.asarray(f(x))[0])
    with dt.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        f(x)
    with dt.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        lax.div(np.float32(1), np.float32(0))
    assert np.isnan(np.asarray(f(x))[0])


# ------------------------------------------------------------------------------------------
# placement


@pytest.mark.parametrize("kind", list(functions()))
def test_results_follow_committed_data(kind):
    f = functions()[kind]
    devices = dt.devices()
    free = dt.device_put(np.float32(1))
    there = dt.device_put(np.float32(1), devices[2])
    for _ in range(2):
        out = f(free, free)
        assert (out.device, out.committed) == (devices[0], False)
        for a, b in ((free, there), (there, free), (there, there), (there, np.float32(1))):
            out = f(a, b)
            assert (out.device, out.committed, out.item()) == (devices[2], True, 2)
        with dt.default_device(devices[1]):
            out = f(free, free)
            assert (out.device, out.committed) == (devices[1], False)
            assert f(there, free).device is devices[2]


@pytest.mark.parametrize("kind", list(functions()))
def test_mixed_devices(kind):
    f = functions()[kind]
    a, b = (dt.device_put(np.float32([1, 2]), device) for device in dt.devices()[1:3])
    for _ in range(2):
        with pytest.raises(
            DeviceMismatchError, match=r"float32\[2\]\) is on .*id=1.*is on .*id=2.*device_put"
        ):
            f(a, b)
    assert f(a, a).device is dt.devices()[1]


def test_mismatch_names_the_arguments():
    a, b = (dt.device_put(np.float32(1), device) for device in dt.devices()[1:3])
    with pytest.raises(DeviceMismatchError, match=r"argument tree\['w'\].*argument other"):
        dt.jit(lambda tree, other: lax.add(tree["w"], other))({"w": a}, b)


# --------------------------------------------------------------------------------------------
# threads


def test_many_threads(x):
    f = Counted(lambda a, b: lax.mul(lax.add(a, b), b))
    errors = []

    def work(number):
        try:
            for i in range(50):
                value = dt.device_put(np.full(1 + (number + i) % 5, 2.0, np.float32))
                out = f.compiled(value, 3.0)
                np.testing.assert_array_equal(np.asarray(out), 15.0)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors
    assert not any(thread.is_alive() for thread in threads)


def test_constants_of_a_program():
    table = np.arange(5000, dtype=np.float32)
    key = dt.device_put(table)
    f = dt.jit(lambda a: lax.add(lax.mul(a, table), key))
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(np.float32(2))), 3 * table)
    there = dt.device_put(np.float32(1), dt.devices()[1])
    for _ in range(2):
        out = f(there)
        assert out.device is dt.devices()[1]
        np.testing.assert_array_equal(np.asarray(out), 2 * table)


def test_unused_arguments():
    f = dt.jit(lambda a, b, c: lax.add(a, c))
    for _ in range(3):
        assert f(np.float32(1), np.float32([1, 2]), dt.device_put(np.float32(2))).item() == 3


def test_a_loaded_program(x):
    from dovetail._core.runtime.programs.program import LoadedProgram

    compiled = dt.jit(lambda a, b: lax.add(a, b)).lower(x, x).compile()
    program = next(value for value in vars(compiled).values() if isinstance(value, LoadedProgram))
    assert "jit__lambda" in program.name
    assert program.device is dt.devices()[0]
    assert "add" in program.hlo_text(program.executable)
    assert program.cost_analysis()["flops"] == 3
    assert program.memory_analysis().argument_size_in_bytes == 24
    assert repr(program).startswith("<LoadedProgram jit__lambda")
    (out,) = program([x, np.float32([1, 1, 1])])
    assert_value(out, [1, 2, 3])
    assert compilation.statistics().compiled + compilation.statistics().loaded > 0
    assert array_from_buffer(out._buffer).tolist() == [1, 2, 3]
