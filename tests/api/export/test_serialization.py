"""Exported programs as bytes: what is kept, what is refused."""

from __future__ import annotations

import collections
import contextlib
import copy
import pickle
import random
import re
import subprocess
import sys
import typing
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import export
from dovetail._core.base import config
from dovetail.sharding import AxisType, NamedSharding, PartitionSpec

pytest.importorskip("flatbuffers", reason="the extra `export` brings it")

S = dt.ShapeDtypeStruct
X = np.arange(12, dtype=np.float32).reshape(3, 4)
FIELDS = (
    "fun_name",
    "in_tree",
    "out_tree",
    "platforms",
    "nr_devices",
    "disabled_safety_checks",
    "mlir_module_serialized",
    "calling_convention_version",
    "module_kept_var_idx",
    "uses_global_constants",
    "_in_named_shardings",
    "_out_named_shardings",
    "in_shardings_hlo",
    "out_shardings_hlo",
)


class Point(typing.NamedTuple):
    x: Any
    y: Any


export.register_namedtuple_serialization(Point, serialized_name="tests.Point")


@dt.tree_util.register_pytree_node_class
class Scaled:
    def __init__(self, x: Any, unit: str) -> None:
        self.x, self.unit = x, unit

    def tree_flatten(self) -> Any:
        return (self.x,), self.unit

    @classmethod
    def tree_unflatten(cls, unit: str, children: Any) -> Any:
        return cls(*children, unit)


export.register_pytree_node_serialization(
    Scaled,
    serialized_name="tests.Scaled",
    serialize_auxdata=str.encode,
    deserialize_auxdata=bytes.decode,
)


def exported(function: Any, *args: Any, **options: Any) -> Any:
    return export.export(dt.jit(function), **options)(*args)


def read_again(program: Any, vjp_order: int = 0) -> Any:
    return export.deserialize(program.serialize(vjp_order=vjp_order))


def assert_same(first: Any, second: Any) -> None:
    for name in FIELDS:
        assert getattr(first, name) == getattr(second, name), name
    for ours, theirs in ((first.in_avals, second.in_avals), (first.out_avals, second.out_avals)):
        assert [str(aval) for aval in ours] == [str(aval) for aval in theirs]


TREES = {
    "nothing": (),
    "nested": ([(X,), {}, {"b": (), "a": None}], X),
    "ordered": (collections.OrderedDict(b=X, a=X[0]),),
    "named tuple": (Point(X, Point(X[0], 1.0)),),
    "custom": (Scaled(X, "m"), [Scaled(X, "")]),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_are_kept(name):
    args = TREES[name]
    program = exported(lambda *args: args, *args)
    again = read_again(program)
    assert_same(program, again)
    found = again.call(*args)
    assert dt.tree.structure(found) == dt.tree.structure(args)


DTYPES = [
    *("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "int4", "uint4"),
    *("float16", "bfloat16", "float32", "complex64"),
    *(name for name in dir(ml_dtypes) if name.startswith(("float8", "float4"))),
]


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_are_kept(name):
    x = jnp.zeros(2, getattr(ml_dtypes, name, name))
    program = exported(lambda x: x, x)
    again = read_again(program)
    assert_same(program, again)
    assert again.call(x).dtype == x.dtype


@pytest.mark.parametrize("name", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_keys_are_kept(name):
    key = dt.random.key(0, impl=name)
    again = read_again(exported(lambda k: k, key))
    assert again.call(key).dtype == key.dtype


def test_symbolic_sizes_are_kept():
    a, b = export.symbolic_shape("a, b", constraints=("a >= b",))
    program = exported(lambda x: x.sum(0) / x.shape[0], S((a, 2 * b + 1), "float32"))
    again = read_again(program, vjp_order=1)
    assert_same(program, again)
    x = np.ones((5, 7), np.float32)
    np.testing.assert_allclose(again.call(x), np.ones(7))
    np.testing.assert_allclose(dt.grad(lambda x: again.call(x).sum())(x), np.full((5, 7), 0.2))
    with pytest.raises(ValueError, match="a >= b does not hold"):  # what the program asserts
        again.call(np.ones((2, 7), np.float32))


def test_derivatives_are_kept_up_to_their_order():
    program = exported(jnp.sin, X)
    for order in range(3):
        again = read_again(program, order)
        for _ in range(order):
            assert again.has_vjp()
            again = again.vjp()
        assert not again.has_vjp()
    with pytest.raises(ValueError, match=r"serialize\(vjp_order=1\)"):
        dt.grad(lambda x: read_again(program).call(x).sum())(X)
    with pytest.raises(ValueError, match="vjp_order is a number"):
        program.serialize(vjp_order=-1)


def test_pickles_and_copies():
    program = exported(jnp.sin, X)
    again = pickle.loads(pickle.dumps(program))
    assert_same(program, again)
    assert not again.has_vjp()
    assert copy.deepcopy(program) is program


def test_options_and_devices_are_kept():
    mesh = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))
    place = NamedSharding(mesh, PartitionSpec(("x",), None))
    checks = [
        export.DisabledSafetyCheck.platform(),
        export.DisabledSafetyCheck.custom_call("kernel"),
    ]
    function = dt.jit(lambda x, y: x * 2, in_shardings=(place, None))
    program = export.export(function, platforms=["cpu", "tpu"], disabled_checks=checks)(
        S((4, 2), "float32"), X
    )
    again = read_again(program)
    assert again.platforms == ("cpu", "tpu")
    assert again.nr_devices == 4
    assert again.disabled_safety_checks == tuple(checks)
    kept = again._in_named_shardings[0]
    assert kept.spec == PartitionSpec("x", None)
    assert kept.mesh.shape_tuple == mesh.shape_tuple
    assert tuple(kept.mesh.axis_types) == tuple(mesh.axis_types)
    np.testing.assert_array_equal(
        again.call(dt.device_put(np.ones((4, 2), np.float32), place), X), 2
    )


def test_linear_algebra_and_constants_are_in_the_program():
    weights = jnp.asarray(np.arange(3000, dtype=np.float32))
    key = dt.random.key(1)

    def function(x):
        return jnp.linalg.inv(x @ x.T + jnp.eye(3)) + weights.sum() + dt.random.normal(key)

    np.testing.assert_allclose(
        read_again(exported(function, X)).call(X), function(X), rtol=1e-5, atol=1e-3
    )


WRONG_NODES = {
    "dovetail.export.register_namedtuple_serialization": collections.namedtuple("other", "x")(X),
    "dovetail.export.register_pytree_node_serialization": collections.defaultdict(int, a=X),
    "strings as keys": {1: X},
}


@pytest.mark.parametrize("message", WRONG_NODES)
def test_nodes_without_a_name_are_refused(message):
    program = exported(lambda tree: 1.0, WRONG_NODES[message])
    with pytest.raises(ValueError, match=re.escape(message)):
        program.serialize()


def test_errors_of_registrations():
    with pytest.raises(ValueError, match="has a name for serialization"):
        export.register_namedtuple_serialization(Point, serialized_name="tests.other")
    with pytest.raises(ValueError, match=r"the name 'tests\.Point' is that of Point"):
        export.register_namedtuple_serialization(
            collections.namedtuple("third", "x"), serialized_name="tests.Point"
        )
    with pytest.raises(ValueError, match="is no named tuple"):
        export.register_namedtuple_serialization(dict, serialized_name="tests.dict")
    with pytest.raises(ValueError, match="not registered as a tree node"):
        export.register_pytree_node_serialization(
            int, serialized_name="n", serialize_auxdata=bytes, deserialize_auxdata=bytes
        )


def test_unknown_nodes_are_named():
    blob = bytes(exported(lambda p: p.x, Point(X, X)).serialize())
    with pytest.raises(ValueError, match=r"named 'tests\.Poinz' when it was exported"):
        export.deserialize(blob.replace(b"tests.Point", b"tests.Poinz"))


def test_damaged_bytes_are_refused():
    blob = bytes(exported(jnp.sin, X).serialize(vjp_order=1))
    with pytest.raises(TypeError, match="deserialize takes bytes"):
        export.deserialize("text")
    for size in (0, 3, 4, 60, len(blob) // 2, len(blob) - 40):
        with pytest.raises(ValueError, match="no exported program"):
            export.deserialize(blob[:size])
    draw = random.Random(0)
    for _ in range(200):
        damaged = bytearray(blob)
        for _ in range(8):
            damaged[draw.randrange(len(blob))] = draw.randrange(256)
        with contextlib.suppress(ValueError):
            export.deserialize(damaged)


def test_other_versions_of_the_calling_convention_are_refused():
    program = exported(jnp.sin, X)
    object.__setattr__(program, "calling_convention_version", 8)
    with pytest.raises(ValueError, match="version 8 of the calling convention"):
        read_again(program)


def test_newest_stablehlo_on_request():
    def version(program: Any) -> tuple[int, ...]:
        text = program.mlir_module_serialized[4:40].split(b"\0")[0].decode().partition("_v")[2]
        return tuple(map(int, text.split(".")))

    with config.export_ignore_forward_compatibility(True):
        newest = version(exported(jnp.sin, X))
    assert version(exported(jnp.sin, X)) < newest


def test_a_missing_distribution_is_named():
    code = """
import sys
sys.modules["flatbuffers"] = None
import dovetail as dt, dovetail.numpy as jnp
from dovetail import export
program = export.export(dt.jit(jnp.sin))(1.0)
try:
    program.serialize()
except ImportError as error:
    print(error)
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert 'pip install "dovetail-core[export]"' in answer.stdout
