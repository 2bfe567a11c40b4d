"""Exported programs: what they say of themselves, how they are called, what is refused."""

from __future__ import annotations

import collections
import re
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import export, lax
from dovetail.extend import Primitive
from dovetail.sharding import AxisType, NamedSharding, PartitionSpec

S = dt.ShapeDtypeStruct
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def exported(function: Any, *args: Any, **options: Any) -> Any:
    return export.export(dt.jit(function), **options)(*args)


def test_fields():
    def scaled(x, *, by):
        return {"out": x * by, "sum": x.sum()}

    program = export.export(dt.jit(scaled))(X, by=jnp.int32(2))
    assert program.fun_name == "scaled"
    assert str(program) == "Exported(fun_name=scaled, ...)"
    assert [aval.str_short() for aval in program.in_avals] == ["f32[3,4]", "i32[]"]
    assert [aval.str_short() for aval in program.out_avals] == ["f32[3,4]", "f32[]"]
    assert program.in_tree == dt.tree.structure(((0,), {"by": 0}))
    assert program.out_tree == dt.tree.structure({"out": 0, "sum": 0})
    assert program.platforms == ("cpu",) == (export.default_export_platform(),)
    assert program.nr_devices == 1
    assert program.module_kept_var_idx == (0, 1)
    assert program.in_shardings_hlo == (None, None) == program.out_shardings_hlo
    assert program.ordered_effects == program.unordered_effects == ()
    assert not program.uses_global_constants
    assert program.disabled_safety_checks == ()
    assert program.mlir_module_serialized.startswith(b"ML\xefR\rStableHLO_v")
    assert "stablehlo.multiply" in program.mlir_module()
    least = export.minimum_supported_calling_convention_version
    most = export.maximum_supported_calling_convention_version
    assert least <= program.calling_convention_version <= most
    found = program.call(X, by=jnp.int32(3))
    np.testing.assert_array_equal(found["out"], X * 3)


FUNCTIONS = {
    "elementwise": (lambda x: jnp.sin(x) * 2, np.float32),
    "integers": (lambda x: x // 2 + 1, np.int32),
    "bool": (lambda x: ~x, np.bool_),
    "complex": (lambda x: jnp.abs(x) + x.imag, np.complex64),
    "bfloat16": (lambda x: x.sum(0), jnp.bfloat16),
    "float8": (lambda x: x.astype(np.float32).sum(), jnp.float8_e5m2),
    "constants": (lambda x: x @ jnp.asarray(X.T) + np.arange(3), np.float32),
    "loop": (lambda x: lax.scan(lambda c, r: (c + r.sum(), c), 0.0, x), np.float32),
    "unused": (lambda x: jnp.ones(3), np.float32),
    "the argument": (lambda x: x, np.float32),
    "nothing": (lambda x: (), np.float32),
    "large constant": (lambda x: x.sum() + np.arange(5000, dtype=np.float32), np.float32),
    "jit": (lambda x: dt.jit(jnp.tanh)(x) + dt.jit(jnp.tanh)(x), np.float32),
    "linear algebra": (lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)), np.float32),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_are_those_of_the_function(name):
    function, dtype = FUNCTIONS[name]
    x = jnp.asarray(X).astype(dtype)
    program = exported(function, x)
    for call in (program.call, dt.jit(program.call)):
        found, expected = (dt.tree.leaves(f(x)) for f in (call, dt.jit(function)))
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            np.testing.assert_allclose(
                np.asarray(a, np.complex64), np.asarray(b, np.complex64), rtol=1e-5
            )


def test_random_keys_are_arguments_results_and_constants():
    key = dt.random.key(3)
    program = exported(lambda k: (dt.random.split(k), dt.random.uniform(key, (2,))), key)
    keys, numbers = program.call(key)
    np.testing.assert_array_equal(
        dt.random.key_data(keys), dt.random.key_data(dt.random.split(key))
    )
    np.testing.assert_array_equal(numbers, dt.random.uniform(key, (2,)))


def test_calls_inside_of_exported_functions():
    a, b = export.symbolic_shape("a, b")
    inner = exported(lambda x: x * x.shape[0], S((a, b), "float32"))
    outer = exported(lambda x: inner.call(x) + inner.call(x.T).T, S((7, a), "float32"))
    x = np.ones((7, 3), np.float32)
    np.testing.assert_array_equal(outer.call(x), np.full((7, 3), 10.0))


def test_derivatives_in_reverse():
    a = export.symbolic_shape("a, b")
    program = exported(lambda x, i: (jnp.sin(x) * x.shape[0], i + 1), S(a, "float32"), jnp.int32(0))
    assert program.has_vjp()
    derivative = program.vjp()
    assert [str(aval.dtype) for aval in derivative.in_avals[2:]] == ["float32", "[('float0', 'V')]"]
    found = dt.grad(lambda x: program.call(x, 0)[0].sum())(X)
    np.testing.assert_allclose(found, 3 * np.cos(X), rtol=1e-5)
    second = dt.grad(lambda x: dt.grad(lambda y: program.call(y, 0)[0].sum())(x).sum())(X)
    np.testing.assert_allclose(second, -3 * np.sin(X), rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="jvp"):
        dt.jvp(lambda x: program.call(x, 0)[0], (X,), (X,))


def test_vmap_calls_one_by_one():
    program = exported(lambda x, y: (x @ y, y.sum()), S((3, 4), "float32"), S((4,), "float32"))
    xs = np.stack([X, X + 1])
    found, sums = dt.vmap(program.call, (0, None))(xs, X[0])
    np.testing.assert_array_equal(found, xs @ X[0])
    np.testing.assert_array_equal(sums, [X[0].sum()] * 2)
    slopes = dt.vmap(dt.grad(lambda x: program.call(x, X[0])[0].sum()))(xs)
    np.testing.assert_array_equal(slopes, np.broadcast_to(X[0], xs.shape))


def test_shards_of_several_devices_have_known_sizes():
    mesh = dt.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    specs = {"in_specs": PartitionSpec("x"), "out_specs": PartitionSpec("x")}

    @dt.jit
    def function(x):
        return dt.shard_map(lambda p: lax.psum(p, "x") + p.shape[0], mesh=mesh, **specs)(x)

    program = export.export(function)(S((8,), "float32"))
    x = dt.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, PartitionSpec("x")))
    np.testing.assert_array_equal(program.call(x), function(x))
    (n,) = export.symbolic_shape("n")
    (obstacle,) = export.report(function)(S((4 * n,), "float32"))
    assert obstacle.kind == "symbolic size"
    assert obstacle.primitive == "shard_map"


def test_shardings_over_a_mesh():
    mesh = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    rows = NamedSharding(mesh, PartitionSpec("x"))
    function = dt.jit(lambda x, y: x, in_shardings=(rows, None), out_shardings=rows)
    program = export.export(function)(S((4, 8), "float32"), X)
    other = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    first, second = program.in_shardings_jax(other)
    assert first.spec == PartitionSpec("x")
    assert first.mesh is other
    assert second is None
    assert program.out_shardings_jax(other)[0].spec == PartitionSpec("x")


def test_several_platforms():
    program = exported(
        lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x - 1),
        X,
        platforms=["tpu", "cpu", "cuda"],
    )
    assert program.platforms == ("tpu", "cpu", "cuda")
    assert program.uses_global_constants
    np.testing.assert_array_equal(program.call(X), X + 1)
    np.testing.assert_array_equal(dt.jit(program.call)(X), X + 1)


def test_platforms_that_it_is_not_for():
    program = exported(jnp.sin, X, platforms=["tpu"])
    with pytest.raises(ValueError, match="exported for tpu, and is called on cpu"):
        program.call(X)
    free = exported(
        jnp.sin, X, platforms=["tpu"], disabled_checks=[export.DisabledSafetyCheck.platform()]
    )
    np.testing.assert_allclose(free.call(X), np.sin(X), rtol=1e-5)


def test_several_devices():
    mesh = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    rows = NamedSharding(mesh, PartitionSpec("x"))
    columns = NamedSharding(mesh, PartitionSpec(None, "y"))
    x = np.ones((4, 8), np.float32)
    function = dt.jit(lambda x: jnp.sin(x) @ x.T, in_shardings=rows, out_shardings=columns)
    program = export.export(function)(S(x.shape, x.dtype))
    assert program.nr_devices == 4
    found = program.call(dt.device_put(x, rows))
    assert found.sharding.spec == PartitionSpec(None, "y")
    np.testing.assert_allclose(found, np.sin(x) @ x.T, rtol=1e-5)
    with pytest.raises(ValueError, match="exported for 4 devices, and is called in a program for"):
        program.call(x)


def test_errors_of_calls():
    a, b = export.symbolic_shape("a, b", constraints=("a >= b",))
    program = exported(lambda d, y: d["x"] @ y, {"x": S((a, b), "float32")}, S((b, 2), "float32"))
    x, y = np.ones((4, 3), np.float32), np.ones((3, 2), np.float32)
    program.call({"x": x}, y)
    cases = {
        "arguments of another structure": ({"x": x},),
        "args[0]['x'] of dtype float32, and is called with int32": ({"x": x.astype("int32")}, y),
        "args[1] of shape (b, 2), and is called with (3,)": ({"x": x}, y[:, 0]),
        "args[1].shape[0] is b": ({"x": x}, y[:2]),
        "args[1].shape[1] is 2": ({"x": x}, y[:, :1]),
        "the dimension variable b is at least 1": ({"x": x[:, :0]}, y[:0]),
        "a >= b": ({"x": x[:2]}, y),
    }
    for message, args in cases.items():
        with pytest.raises(ValueError, match=re.escape(message)):
            program.call(*args)


def test_errors_of_exports():
    a, b = export.symbolic_shape("a, b")
    with pytest.raises(ValueError, match="write export"):
        export.export(lambda x: x)(X)
    with pytest.raises(ValueError, match=r"no platform 'cdua'.*Did you mean 'cuda'"):
        exported(jnp.sin, X, platforms=["cdua"])
    with pytest.raises(TypeError, match="platforms is a sequence"):
        exported(jnp.sin, X, platforms="cpu")
    with pytest.raises(TypeError, match="disabled_checks holds"):
        exported(jnp.sin, X, disabled_checks=["platform"])
    with pytest.raises(ValueError, match=r"variables a, b are not determined .* x.shape\[0\]"):
        exported(jnp.sin, S((a * b,), "float32"))


def test_variables_of_linear_sizes_are_found():
    a, b = export.symbolic_shape("a, b")
    specs = S((2 * a + 1, a * b + b), "float32"), S((b,), "float32")
    program = exported(lambda x, y: x.sum() + a + 10 * b, *specs)
    assert float(program.call(np.zeros((7, 8), np.float32), np.zeros(2, np.float32))) == 23
    with pytest.raises(ValueError, match=r"args\[0\].shape\[0\] is 2\*a \+ 1"):
        program.call(np.zeros((6, 6), np.float32), np.zeros(2, np.float32))


def test_report_lists_all_obstacles_by_line():
    def function(x):
        dt.debug.print("{}", x)
        y = x if x.shape[0] > 8 else 2 * x
        y = y if 2 * x.shape[0] >= 9 else 2 * y
        z = jnp.sum(y)
        return dt.pure_callback(np.sin, z, z)

    x = S(export.symbolic_shape("n"), "float32")
    report = export.report(dt.jit(function))(x)
    line = function.__code__.co_firstlineno
    assert bool(report)
    assert len(report) == 4
    found = [(obstacle.kind, obstacle.where.partition(" ")[0]) for obstacle in report]
    assert found == [
        ("symbolic size", f"test_exporting.py:{line + 2}"),
        ("symbolic size", f"test_exporting.py:{line + 3}"),
        ("callback", f"test_exporting.py:{line + 1}"),
        ("callback", f"test_exporting.py:{line + 5}"),
    ]
    assert "function cannot be exported:" in str(report)
    assert "pure_callback calls a Python function" in str(report)
    assert not export.report(dt.jit(jnp.sin))(x)
    assert str(export.report(dt.jit(jnp.sin))(x)) == "sin can be exported for cpu"


def test_export_tells_all_obstacles():
    def function(x):
        dt.debug.print("{}", x)
        return dt.pure_callback(np.sin, x, x)

    with pytest.raises(ValueError, match=r"debug_print calls[\s\S]*pure_callback calls"):
        exported(function, X)


def test_missing_lowerings_and_references_are_obstacles():
    report = export.report(dt.jit(jnp.linalg.eigvals), platforms=["tpu"])(X[:, :3])
    assert [(o.kind, o.primitive) for o in report] == [("lowering", "eig")]
    ref = dt.new_ref(jnp.zeros(3))

    def function(x):
        ref[...] = x[:, 0]
        return x

    assert [o.kind for o in export.report(dt.jit(function))(X)] == ["reference"]


def test_custom_calls_must_be_stable():
    primitive = Primitive("call_of_an_unknown_kernel")
    primitive.define("abstract", lambda x: x)
    primitive.define(
        "lower",
        lambda context, x: context.custom_call("unknown_kernel", [x], context.avals_out)[0],
    )
    report = export.report(dt.jit(primitive.bind))(X)
    assert [o.kind for o in report] == ["custom call"]
    allowed = [export.DisabledSafetyCheck.custom_call("unknown_kernel")]
    program = exported(primitive.bind, X, disabled_checks=allowed)
    assert program.disabled_safety_checks == tuple(allowed)
    assert allowed[0].is_custom_call() == "unknown_kernel"


def test_structures_with_nodes_of_any_type_are_called():
    pair = collections.namedtuple("pair", "x y")
    program = exported(lambda p: pair(p.y, p.x), pair(X, X[0]))
    assert program.call(pair(X, X[0])).y.shape == (3, 4)
