"""Shardings in types: how operations divide their results, what is ambiguous, and the values.

The types and the errors of most rows are those that JAX 0.12 gives; the rest is told in the
docstrings (`Differs`) and in docs/design/runtime.md.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.nn
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import ShardingTypeError
from dovetail.extend import Primitive
from dovetail.extend.divisions import labels_along
from dovetail.sharding import AxisType, NamedSharding
from dovetail.sharding import PartitionSpec as P

MESH = dt.make_mesh((2, 2), ("x", "y"))


def _array(shape: tuple[int, ...], *spec: Any, dtype: Any = np.float32) -> Any:
    value = (np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)
    return dt.device_put(value if dtype == np.int32 else value / 7, NamedSharding(MESH, P(*spec)))


A = _array((8, 4), "x")
B = _array((8, 4), None, "y")
C = _array((8, 4), "x", "y")
D = _array((8, 4), "y")
E = _array((8, 4), ("x", "y"))
W = _array((4, 6))
WX = _array((4, 6), "x")
WY = _array((4, 6), None, "y")
K = _array((8, 4), None, "x")
M = _array((2, 3, 3), "x")
I = _array((8,), "x", dtype=np.int32)  # noqa: E741
IMAGE = _array((8, 3, 8, 8), "x")
ROWS = _array((1, 3, 8, 8), None, None, "x")
KERNEL = _array((4, 3, 2, 2))


RULELESS = Primitive("test_explicit_types_ruleless")  # of somebody who knows of no divisions
RULELESS.define("abstract", lambda x: x)


#: name: (function, operands, the types of the results).
TYPES: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "one operand": (jnp.sin, (A,), "float32[8@x,4]"),
    "a scalar": (lambda a: a + 1, (A,), "float32[8@x,4]"),
    "another axis each": (lambda a, b: a + b, (A, B), "float32[8@x,4@y]"),
    "one that is whole": (lambda a: a * np.ones((8, 4), np.float32), (A,), "float32[8@x,4]"),
    "numpy broadcasting": (lambda a: a + jnp.ones(4), (A,), "float32[8@x,4]"),
    "where": (lambda a: jnp.where(a > 0.5, a, 0.0), (A,), "float32[8@x,4]"),
    "astype": (lambda a: a.astype("int32"), (A,), "int32[8@x,4]"),
    "two axes": (jnp.cos, (E,), "float32[8@(x,y),4]"),
    "sum over what is divided": (lambda a: a.sum(0), (A,), "float32[4]"),
    "sum over the rest": (lambda a: a.sum(1), (A,), "float32[8@x]"),
    "sum": (jnp.sum, (C,), "float32[]"),
    "mean, keepdims": (lambda a: a.mean(1, keepdims=True), (A,), "float32[8@x,1]"),
    "argmax": (lambda a: a.argmax(1), (A,), "int32[8@x]"),
    "max": (lambda a: a.max(0), (A,), "float32[4]"),
    "any": (lambda a: (a > 0).any(1), (A,), "bool[8@x]"),
    "transpose": (jnp.transpose, (C,), "float32[4@y,8@x]"),
    "new dimension": (lambda a: a[None], (A,), "float32[1,8@x,4]"),
    "squeeze": (lambda a: a[:, None].squeeze(1), (A,), "float32[8@x,4]"),
    "merge": (lambda a: a.reshape(32), (A,), "float32[32@x]"),
    "merge two": (lambda a: a.reshape(32), (C,), "float32[32@(x,y)]"),
    "split": (lambda a: a.reshape(4, 2, 4), (A,), "float32[4@x,2,4]"),
    "split over two": (lambda a: a.reshape(2, 4, 4), (E,), "float32[2@x,4@y,4]"),
    "split the rest": (lambda a: a.reshape(8, 2, 2), (C,), "float32[8@x,2@y,2]"),
    "broadcast_to": (lambda a: jnp.broadcast_to(a, (3, 8, 4)), (A,), "float32[3,8@x,4]"),
    "flip": (lambda a: jnp.flip(a, 0), (A,), "float32[8@x,4]"),
    "concatenate": (lambda a: jnp.concatenate([a, a]), (A,), "float32[16@x,4]"),
    "stack": (lambda a: jnp.stack([a, a]), (A,), "float32[2,8@x,4]"),
    "split apart": (lambda a: jnp.split(a, 2, 1)[0], (A,), "float32[8@x,2]"),
    "tile": (lambda a: jnp.tile(a, (1, 2)), (A,), "float32[8@x,8]"),
    "pad": (lambda a: jnp.pad(a, ((0, 0), (1, 1))), (A,), "float32[8@x,6]"),
    "slice of the rest": (lambda a: a[:, :2], (A,), "float32[8@x,2]"),
    "slice": (lambda a: a[:4], (A,), "float32[4@x,4]"),
    "a row": (lambda a: a[0], (A,), "float32[4]"),
    "the last element": (lambda c: c[-1, -1], (C,), "float32[]"),
    "roll": (lambda a: jnp.roll(a, 3, 0), (A,), "float32[8@x,4]"),
    "an element of the rest": (lambda a: a[:, 1], (A,), "float32[8@x]"),
    "gather of the rest": (lambda a: a[:, np.array([3, 0])], (A,), "float32[8@x,2]"),
    "rows by an index": (lambda w, i: w[i], (_array((7, 3)), I), "float32[8@x,3]"),
    "take_along_axis": (
        lambda a, i: jnp.take_along_axis(a, i[:, None] % 4, 1),
        (A, I),
        "float32[8@x,1]",
    ),
    "set": (lambda a: a.at[:, 0].set(1.0), (A,), "float32[8@x,4]"),
    "dynamic_slice": (lambda a: lax.dynamic_slice(a, (0, 1), (8, 2)), (A,), "float32[8@x,2]"),
    "dynamic_update_slice": (
        lambda a: lax.dynamic_update_slice(a, a[:, :1], (0, 1)),
        (A,),
        "float32[8@x,4]",
    ),
    "sort": (lambda a: jnp.sort(a, 1), (A,), "float32[8@x,4]"),
    "top_k": (lambda a: lax.top_k(a, 2)[1], (A,), "int32[8@x,2]"),
    "cumsum": (lambda a: jnp.cumsum(a, 1), (A,), "float32[8@x,4]"),
    "softmax": (lambda a: dt.nn.softmax(a, 0), (A,), "float32[8@x,4]"),
    "one_hot": (lambda i: dt.nn.one_hot(i, 4), (I,), "float32[8@x,4]"),
    "dot, free": (jnp.dot, (A, W), "float32[8@x,6]"),
    "dot, both free": (jnp.dot, (A, WY), "float32[8@x,6@y]"),
    "dot, one summed": (jnp.dot, (K, W), "float32[8,6]"),
    "dot, the other summed": (jnp.dot, (A, WX), "float32[8@x,6]"),
    "dot, batch": (jnp.matmul, (M, M), "float32[2@x,3,3]"),
    "einsum": (lambda a, b: jnp.einsum("bi,bj->bij", a, b), (A, A), "float32[8@x,4,4]"),
    "convolution": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME"),
        (IMAGE, KERNEL),
        "float32[8@x,4,8,8]",
    ),
    "convolution over parts": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), ((1, 0), (0, 0)), (1, 1), (1, 2)),
        (ROWS, KERNEL),
        "float32[1,4,8@x,6]",
    ),
    "convolution of parts, valid": (
        lambda x: lax.conv_general_dilated(x, np.ones((4, 3, 3, 3), np.float32), (1, 1), "VALID"),
        (ROWS,),
        "float32[1,4,6@x,6]",
    ),
    "reduce_window over parts": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 3), (1, 1, 1, 1), "SAME"),
        (ROWS,),
        "float32[1,3,8@x,8]",
    ),
    "max pooling over parts": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
        (ROWS,),
        "float32[1,3,4@x,4]",
    ),
    "grad of max pooling over parts": (
        dt.grad(
            lambda x: lax.reduce_window(
                jnp.sin(x), -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
            ).sum()
        ),
        (ROWS,),
        "float32[1,3,8@x,8]",
    ),
    "reduce_window": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
        (IMAGE,),
        "float32[8@x,3,4,4]",
    ),
    "fft": (lambda a: jnp.fft.fft(a).real, (A,), "float32[8@x,4]"),
    "fft over parts": (lambda a: jnp.fft.fft2(a).imag, (A,), "float32[8@x,4]"),
    "cholesky": (
        lambda m: jnp.linalg.cholesky(m @ m.swapaxes(1, 2) + jnp.eye(3)),
        (M,),
        "float32[2@x,3,3]",
    ),
    "solve": (lambda m: jnp.linalg.solve(m + 9 * jnp.eye(3), m), (M,), "float32[2@x,3,3]"),
    "jit": (dt.jit(lambda a: dt.jit(jnp.sin)(a)), (A,), "float32[8@x,4]"),
    "vmap": (dt.vmap(lambda r: (r * r).sum()), (A,), "float32[8@x]"),
    "vmap of jit": (dt.vmap(dt.jit(lambda r: r * 2)), (A,), "float32[8@x,4]"),
    "vmap of a product": (dt.vmap(jnp.dot, (0, None)), (A, WY), "float32[8@x,6@y]"),
    "scan": (
        lambda a: lax.scan(lambda s, r: (s + r, s), jnp.zeros(8), a.T)[1],
        (A,),
        "float32[4,8@x]",
    ),
    "fori_loop": (lambda a: lax.fori_loop(0, 3, lambda i, s: s * 2 + i, a), (A,), "float32[8@x,4]"),
    "while_loop": (
        lambda a: lax.while_loop(lambda s: s.sum() < 99, lambda s: s * 2, a),
        (A,),
        "float32[8@x,4]",
    ),
    "cond": (
        lambda a: lax.cond(a.sum() > 0, lambda a: a * 2, jnp.zeros_like, a),
        (A,),
        "float32[8@x,4]",
    ),
    "shard_map": (
        dt.shard_map(lambda a: a * lax.psum(a, "x"), mesh=MESH, in_specs=P("x"), out_specs=P("x")),
        (A,),
        "float32[8@x,4]",
    ),
    "debug.callback": (
        lambda a: (dt.debug.callback(lambda x: None, a), a + 1)[1],
        (A,),
        "float32[8@x,4]",
    ),
    "optimization_barrier": (
        lambda a: lax.optimization_barrier((a, a.T))[1],
        (A,),
        "float32[4,8@x]",
    ),
    # Derivatives: a cotangent is divided as the primal is, whatever the product would say.
    "grad": (dt.grad(lambda a: jnp.sin(a).sum()), (A,), "float32[8@x,4]"),
    "grad of weights": (dt.grad(lambda w, a: jnp.tanh(a @ w).sum()), (W, A), "float32[4,6]"),
    "grad of divided weights": (
        dt.grad(lambda w, a: jnp.tanh(a @ w).sum()),
        (WY, A),
        "float32[4,6@y]",
    ),
    "grad of data": (dt.grad(lambda a, w: jnp.tanh(a @ w).sum()), (A, WY), "float32[8@x,4]"),
    "grad of grad": (
        dt.grad(lambda w, a: (dt.grad(lambda w: jnp.tanh(a @ w).sum())(w) ** 2).sum()),
        (WY, A),
        "float32[4,6@y]",
    ),
    "jvp": (lambda a: dt.jvp(jnp.sin, (a,), (a,))[1], (A,), "float32[8@x,4]"),
    "grad of scan": (
        dt.grad(
            lambda w, a: lax.scan(lambda s, _: (jnp.sin(s @ w), None), a, None, length=2)[0].sum()
        ),
        (_array((4, 4), None, "y"), A),
        "float32[4,4@y]",
    ),
    "grad of cond": (
        dt.grad(lambda a: lax.cond(a.sum() > 0, jnp.sin, jnp.zeros_like, a).sum()),
        (A,),
        "float32[8@x,4]",
    ),
    "grad of checkpoint": (
        dt.grad(lambda w, a: dt.checkpoint(lambda w: jnp.tanh(a @ w))(w).sum()),
        (WY, A),
        "float32[4,6@y]",
    ),
    "grad of rows": (dt.grad(lambda w, i: w[i].sum()), (_array((7, 3)), I), "float32[7,3]"),
    "grad of a convolution": (
        dt.grad(lambda k, x: (lax.conv_general_dilated(x, k, (1, 1), "SAME") ** 2).sum()),
        (KERNEL, IMAGE),
        "float32[4,3,2,2]",
    ),
    "jacobian": (dt.jacrev(lambda r: jnp.sin(r)), (_array((4,), "x"),), "float32[4,4@x]"),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_and_values(name: str) -> None:
    """The type is as expected, traced and of the array; the values are those without a mesh."""
    function, operands, expected = TYPES[name]
    assert str(dt.make_jaxpr(function)(*operands).out_avals[0]) == expected
    compiled = dt.jit(function)
    result = compiled(*operands)
    assert str(dt.typeof(result)) == expected
    plain = compiled(*map(np.asarray, operands))
    assert "@" not in str(dt.typeof(plain)) or name == "shard_map"
    np.testing.assert_allclose(result, plain, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", sorted(TYPES.keys() - {"shard_map"})[::3])
def test_meshes_of_one_device(name: str) -> None:
    """Results have the types that were inferred, though there is nothing to divide."""
    one = dt.make_mesh((1, 1), ("x", "y"), devices=dt.devices()[:1])
    function, operands, _ = TYPES[name]
    placed = [dt.device_put(np.asarray(x), x.sharding.update(mesh=one)) for x in operands]
    compiled = dt.jit(function)
    inferred = str(dt.make_jaxpr(function)(*placed).out_avals[0])
    for _ in range(2):
        assert str(dt.typeof(compiled(*placed))) == inferred
    assert "@" in inferred or "@" not in TYPES[name][2]


@pytest.mark.parametrize(
    "name", ["another axis each", "merge", "dot, both free", "scan", "grad of weights", "solve"]
)
def test_types_of_arrays_that_are_computed_at_once(name: str) -> None:
    function, operands, expected = TYPES[name]
    for _ in range(2):  # the second call runs no Python
        assert str(dt.typeof(function(*operands))) == expected


#: name: (function, operands, parts of the message).
AMBIGUOUS: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "different axes": (
        lambda a, d: a + d,
        (A, D),
        r"add: dimension 0 of operand 0, float32\[8@x,4\].* 'x', and dimension 0 of operand 1.*'y'"
        r".*reshard\(x, P\('x', None\)\) of operand 1",
    ),
    "more axes": (lambda a, e: a * e, (A, E), "mul: dimension 0 .*the axes 'x', 'y'"),
    "concatenate": (lambda a, d: jnp.concatenate([a, d], 1), (A, D), "concatenate: dimension 0"),
    "product": (jnp.dot, (K, WX), r"dot_general: both .*ambiguous.*out_sharding=P\(\.\.\.\)"),
    "an axis twice": (
        jnp.dot,
        (A, _array((4, 8), None, "x")),
        "dot_general: two dimensions of the result would be divided over the axis 'x'",
    ),
    "batches": (jnp.matmul, (M, _array((2, 3, 3), "y")), "dot_general: dimension 0 of operand 0"),
    "reshape": (
        lambda b: b.reshape(32),
        (B,),
        r"reshape: its operand is float32\[8,4@y\], divided along dimension 1 over the axis 'y'"
        r".*reshard\(x, P\(None, None\)\)",
    ),
    "a part of a dimension": (lambda a: a[:3], (A,), r"shape \(3, 4\) cannot be divided so"),
    "half of a spectrum": (jnp.fft.rfft, (C,), r"shape \(8, 3\) cannot be divided so"),
    "gather": (lambda a: a[np.array([1, 5])], (A,), "gather: .*takes slices at positions along"),
    "scatter": (lambda a: a.at[3].set(0.0), (A,), "scatter: .*updates slices at positions of"),
    "sort": (lambda a: jnp.sort(a, 0), (A,), "sort: .*sorts along that dimension"),
    "cumsum": (lambda a: jnp.cumsum(a, 0), (A,), "cumsum: .*accumulates along"),
    "top_k": (lambda a: lax.top_k(a.T, 2), (A,), "top_k: .*looks for the largest along"),
    "scan": (
        lambda a: lax.scan(lambda s, r: (s + r, s), jnp.zeros(4), a),
        (A,),
        "scan: operand 1 .*takes one row after another along",
    ),
    "a loop": (
        lambda c, a: lax.fori_loop(0, 2, lambda i, s: s.T, c),
        (_array((4, 4), "x"), A),
        "value 1 that is carried is",
    ),
    "branches": (
        lambda a: lax.cond(a.sum() > 0, lambda a: a, lambda a: dt.reshard(a, P("y")), a),
        (A,),
        "cond: result 0 of the branches",
    ),
    "groups": (
        lambda a: lax.ragged_dot(a, jnp.ones((2, 4, 3)), np.array([4, 4], np.int32)),
        (A,),
        "ragged_dot_general: operand 0 .*takes groups along that dimension",
    ),
    "no rule": (
        RULELESS.bind,
        (A,),
        r"test_explicit_types_ruleless: it does not say how .*its operand is float32\[8@x,4\]",
    ),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_is_ambiguous(name: str) -> None:
    function, operands, message = AMBIGUOUS[name]
    for way in (function, dt.jit(function)):
        with dt.set_mesh(MESH), pytest.raises(ShardingTypeError, match=message):
            way(*operands)


#: name: (function, operands, the type of the result); the mesh is set.
ASKED: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "dot, whole": (lambda a, b: jnp.dot(a, b, out_sharding=P()), (K, WX), "float32[8,6]"),
    "dot": (lambda a, b: jnp.dot(a, b, out_sharding=P("x")), (K, WX), "float32[8@x,6]"),
    "matmul": (lambda a, b: jnp.matmul(a, b, out_sharding=P("y")), (K, WX), "float32[8@y,6]"),
    "matmul of stacks": (
        lambda m: jnp.matmul(m, m, out_sharding=P("y")),
        (M,),
        "float32[2@y,3,3]",
    ),
    "dot_general": (
        lambda a, b: lax.dot_general(
            a, b, (((1,), (0,)), ((), ())), out_sharding=NamedSharding(MESH, P(None, "y"))
        ),
        (K, WX),
        "float32[8,6@y]",
    ),
    "grad of dot": (
        dt.grad(dt.jit(lambda a, b: (jnp.dot(a, b, out_sharding=P("x")) ** 2).sum())),
        (K, WX),
        "float32[8,4@x]",
    ),
    "vmap of dot": (
        dt.vmap(lambda a, b: jnp.dot(a, b, out_sharding=P()), (0, None)),
        (K, WX),
        "float32[8,6]",
    ),
    "reshape": (lambda b: jnp.reshape(b, 32, out_sharding=P("y")), (B,), "float32[32@y]"),
    "lax.reshape": (
        lambda b: lax.reshape(b, (4, 8), out_sharding=P(None, "x")),
        (B,),
        "float32[4,8@x]",
    ),
    "broadcast_to": (
        lambda w: jnp.broadcast_to(w, (2, 4, 6), out_sharding=P("x")),
        (W,),
        "float32[2@x,4,6]",
    ),
    "get": (
        lambda a: jnp.asarray(a).at[np.array([1, 2])].get(out_sharding=P("y")),
        (A,),
        "float32[2@y,4]",
    ),
    "set": (
        lambda a: jnp.asarray(a).at[0].set(1.0, out_sharding=P("x")),
        (A,),
        "float32[8@x,4]",
    ),
    "zeros": (lambda: jnp.zeros((8, 4), out_sharding=P("x")), (), "float32[8@x,4]"),
    "full": (lambda: jnp.full(8, 2.5, out_sharding=P("y")), (), "float32[8@y]"),
    "arange": (lambda: jnp.arange(8, out_sharding=P("x")), (), "int32[8@x]"),
}


@pytest.mark.parametrize("name", ASKED)
def test_out_sharding(name: str) -> None:
    function, operands, expected = ASKED[name]
    with dt.set_mesh(MESH):
        results = [function(*operands), dt.jit(function)(*operands)]
        plain = function(*(jnp.asarray(np.asarray(x)) for x in operands))
    for result in results:
        assert str(dt.typeof(result)) == expected
        np.testing.assert_allclose(result, plain, rtol=2e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.dot(K, WX, out_sharding="x"), TypeError, "dot: out_sharding must be a Part"),
        (lambda: jnp.zeros(4, out_sharding="x"), TypeError, "zeros: out_sharding must be a Part"),
        (lambda: jnp.dot(K, WX, out_sharding=P("z")), ValueError, "has no axis 'z'"),
        (lambda: jnp.zeros(3, out_sharding=P("x")), ValueError, "Pad it to 4"),
        (lambda: jnp.dot(K, WX, out_sharding=P("x", "x")), ValueError, "each axis once"),
        (lambda: jnp.dot(K, WX, out_sharding=P(None, None, "x")), ValueError, "has 2 dimensions"),
        (
            lambda: jnp.dot(K, np.ones((4, 3), np.float32), out_sharding=P(None, "x")),
            ValueError,
            "3 is no multiple of 2",
        ),
    ],
)
def test_out_sharding_that_cannot_be(call: Any, error: Any, message: str) -> None:
    with dt.set_mesh(MESH), pytest.raises(error, match=message):
        call()


def test_out_sharding_needs_a_mesh() -> None:
    with pytest.raises(ValueError, match="there is no current mesh: set one"):
        jnp.dot(K, WX, out_sharding=P("x"))
    mesh = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
    with dt.set_mesh(mesh):
        result = jnp.dot(np.ones((8, 4)), np.ones((4, 6)), out_sharding=P("x"))
    assert (result.sharding.spec, str(dt.typeof(result))) == (P("x"), "float32[8,6]")


def test_a_derivative_settles_nothing_for_programs() -> None:
    """What is given up in a backward pass is an error where a program says it."""

    def product(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, (((0,), (0,)), ((), ())))

    for _ in range(2):
        dt.grad(lambda w: (A @ w).sum())(W)
        with pytest.raises(ShardingTypeError, match="ambiguous"):
            product(A, _array((8, 6), "x"))


def test_primitives_of_others_have_the_rule() -> None:
    each_row = Primitive("test_explicit_types_each_row")
    each_row.define("abstract", lambda x: x)
    each_row.define("lower", lambda context, x: context.op("stablehlo.negate", [x], x.type))
    each_row.define("labels", lambda avals, results: labels_along(avals, results, 1, "sees all of"))
    found = each_row.bind(A)
    assert str(dt.typeof(found)) == "float32[8@x,4]"
    np.testing.assert_array_equal(found, -A)
    with pytest.raises(ShardingTypeError, match="dimension 1 over the axis 'x', and it sees all"):
        each_row.bind(K)


def test_gradients_without_a_current_mesh() -> None:
    """Where no array says which devices the mesh has, a gradient is on one of them."""
    found = dt.grad(lambda a: (a @ np.ones((4, 3), np.float32)).sum())(A)
    np.testing.assert_array_equal(found, np.full((8, 4), 3))
    found = dt.jit(dt.grad(lambda a: (a @ np.ones((4, 3), np.float32)).sum()))(A)
    assert str(dt.typeof(found)) == "float32[8@x,4]"


def test_meshes_that_differ() -> None:
    other = dt.device_put(np.asarray(A), NamedSharding(dt.make_mesh((4,), ("z",)), P("z")))
    for function in (jnp.add, dt.jit(jnp.add)):
        with pytest.raises(ShardingTypeError, match=r"different meshes, 'x': 2, 'y': 2 and 'z': 4"):
            function(A, other)


def test_typeof() -> None:
    aval = dt.typeof(C)
    assert str(aval) == "float32[8@x,4@y]"
    assert aval.sharding == NamedSharding(MESH.abstract_mesh, P("x", "y"))
    assert pickle.loads(pickle.dumps(aval)) is aval
    assert copy.deepcopy(aval) is aval
    undivided = dt.typeof(jnp.ones(3)).sharding
    assert undivided == NamedSharding(dt.sharding.AbstractMesh((), ()), P(None))
    assert undivided.is_fully_replicated
    assert dt.reshard(jnp.ones(3), undivided).shape == (3,)
    like = dt.jit(lambda x: jnp.zeros(3, out_sharding=dt.typeof(x).sharding))
    assert like(jnp.ones(3)).sum() == 0
    with dt.set_mesh(MESH):
        assert dt.typeof(jnp.ones(3)).sharding.spec == P(None)
    assert "a:f32[8@x,4]" in str(dt.make_jaxpr(jnp.sin)(A))


@pytest.mark.parametrize("kind", [AxisType.Auto, (AxisType.Explicit, AxisType.Auto)])
def test_types_speak_of_explicit_axes_alone(kind: Any) -> None:
    kinds = kind if isinstance(kind, tuple) else (kind, kind)
    mesh = dt.make_mesh((2, 2), ("x", "y"), axis_types=kinds)
    x = dt.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x", "y")))
    expected = "float32[8@x,4]" if isinstance(kind, tuple) else "float32[8,4]"
    assert str(dt.typeof(x)) == str(dt.typeof(jnp.sin(x))) == expected
    np.testing.assert_array_equal(x.reshape(32), np.ones(32))
    np.testing.assert_array_equal(x @ x.T, np.full((8, 8), 4)) if kind is AxisType.Auto else None


def test_reshard() -> None:
    with dt.set_mesh(MESH):
        for function in (lambda a: dt.reshard(a, P(None, "x")), lambda a: dt.reshard(a, P())):
            for way in (function, dt.jit(function), dt.vmap(dt.jit(lambda r: r), 1, 1)):
                np.testing.assert_array_equal(way(A), A)
        assert str(dt.typeof(dt.jit(lambda a: dt.reshard(a, P(None, "x")))(A))) == "float32[8,4@x]"
        assert str(dt.typeof(dt.reshard(A, P()))) == "float32[8,4]"
        back = dt.grad(lambda a: (dt.reshard(a, P(None, "x")) ** 2).sum())(A)
        assert str(dt.typeof(back)) == "float32[8@x,4]"
        assert str(dt.typeof(dt.jit(lambda: dt.reshard(jnp.arange(8.0), P("x")))())) == (
            "float32[8@x]"
        )
        row = dt.vmap(lambda r: dt.reshard(r, P("y")))(A)
        assert str(dt.typeof(row)) == "float32[8,4@y]" or str(dt.typeof(row)) == "float32[8@x,4@y]"


def test_jit_boundaries() -> None:
    rows = NamedSharding(MESH, P("x"))
    host = np.ones((8, 4), np.float32)
    assert str(dt.typeof(dt.jit(lambda x: x * 2, in_shardings=rows)(host))) == "float32[8@x,4]"
    columns = NamedSharding(MESH, P(None, "y"))
    assert dt.jit(lambda x: x * 2, out_shardings=columns)(A).sharding is columns
    described = dt.ShapeDtypeStruct((8, 4), "float32", sharding=rows)
    assert dt.eval_shape(jnp.transpose, described).sharding.spec == P(None, "x")
    compiled = dt.jit(jnp.transpose).lower(described).compile()
    assert compiled.output_shardings.spec == P(None, "x")
    np.testing.assert_array_equal(compiled(A), np.asarray(A).T)
    text = dt.jit(jnp.sin).lower(A).as_text()
    assert 'sharding_constraint %0 <@mesh, [{"x"}, {}]>' in text


def test_empty_arrays_are_not_divided() -> None:
    x = dt.device_put(np.zeros((0, 4), np.float32), NamedSharding(MESH, P("x")))
    assert jnp.sin(x).shape == (0, 4)
    assert np.asarray(dt.jit(lambda x: x.sum(1))(x)).shape == (0,)


def test_custom_rules_are_programs_too() -> None:
    @dt.custom_vjp
    def product(x: Any, w: Any) -> Any:
        return x @ w

    def backward(saved: Any, ct: Any) -> Any:
        x, w = saved
        return ct @ w.T, dt.reshard(x, P()).T @ dt.reshard(ct, P())

    product.defvjp(lambda x, w: (product(x, w), (x, w)), backward)
    with dt.set_mesh(MESH):
        for way in (lambda f: f, dt.jit):
            by_x, by_w = way(dt.grad(lambda x, w: product(x, w).sum(), argnums=(0, 1)))(A, W)
            assert str(dt.typeof(by_x)) == "float32[8@x,4]"
            assert str(dt.typeof(by_w)) == "float32[4,6]"
            np.testing.assert_allclose(by_w, np.asarray(A).T @ np.ones((8, 6)), rtol=1e-5)
