"""Functions as ONNX models: control flow, indices, calls, options, sizes that vary, refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import exporters, image, lax, nn, random
from dovetail.extend.random_keys import is_key

X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
TWO = np.int32(2)


def doubled_by_rule() -> Callable[..., Any]:
    function = dt.custom_vjp(lambda x: x * 2)
    function.defvjp(lambda x: (function(x), None), lambda _, ct: (ct * 2,))
    return function


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scan": (lambda x: lax.scan(lambda h, y: (h + y, h * y), jnp.zeros(3), x), (X,)),
    "scan backwards": (
        lambda x: lax.scan(lambda h, y: (h + y, h * y), jnp.zeros(3), x, reverse=True),
        (X,),
    ),
    "scan of nothing": (lambda x: lax.scan(lambda h, y: (h + y, y), x[0], x[:0]), (X,)),
    "scan without arrays": (
        lambda x: lax.scan(lambda h, _: (h * 2, h), x, None, length=3, reverse=True),
        (X,),
    ),
    "scan within a scan": (
        lambda x: lax.scan(
            lambda h, y: (lax.scan(lambda a, b: (a + b, a), h, y)[0], h), jnp.float32(0), x
        ),
        (X,),
    ),
    "while": (lambda x: lax.while_loop(lambda h: h.sum() < 30, lambda h: h + 1, x), (X,)),
    "while that ends at once": (
        lambda x: lax.while_loop(lambda h: h.sum() > 1e9, lambda h: h + 1, x),
        (X,),
    ),
    "a state that is swapped": (
        lambda x: lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[2], s[1]), (jnp.int32(0), x, -x)
        ),
        (X,),
    ),
    "fori_loop": (lambda x, n: lax.fori_loop(0, n, lambda i, h: h * 1.5 + i, x), (X, TWO)),
    "cond": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), (X,)),
    "switch": (lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x), (X, TWO)),
    "switch out of range": (
        lambda x: [lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x) for i in (jnp.int32(-4), 9)],
        (X,),
    ),
    "a branch that gives what it is given": (
        lambda x: lax.cond(x[0, 0] > 9, lambda y: (y, y), lambda y: (y, -y), x),
        (X,),
    ),
    "a branch with a loop": (
        lambda x: lax.cond(
            x.sum() < 1e9, lambda y: lax.fori_loop(0, 3, lambda i, h: h + i, y), lambda y: y, x
        ),
        (X,),
    ),
    "map": (lambda x: lax.map(jnp.sort, x), (X,)),
    "jit and checkpoint": (lambda x: dt.jit(dt.checkpoint(lambda y: jnp.sin(y) * 2))(x), (X,)),
    "custom_vjp": (lambda x: doubled_by_rule()(x), (X,)),
    "custom_jvp": (lambda x: nn.relu(x) + nn.silu(x), (X,)),
    "a resized image": (
        lambda x: image.resize(x, (60, 3), "linear"),
        (np.arange(120, dtype=np.float32).reshape(40, 3),),
    ),
    "custom_linear_solve": (
        lambda x: lax.custom_linear_solve(lambda y: 2 * y, x, lambda mv, b: b / 2, symmetric=True),
        (X,),
    ),
    "custom_root": (
        lambda x: lax.custom_root(
            lambda y: y - x, x, lambda f, y: y - f(y), lambda g, y: y / g(1.0)
        ),
        (X,),
    ),
    "platform_dependent": (lambda x: lax.platform_dependent(x, default=lambda y: y + 1), (X,)),
    "index": (lambda x, i: x[i], (X, TWO)),
    "a negative index": (lambda x, i: (x[i], x[-1, ::-2]), (X, -TWO)),
    "indices": (lambda x, i: x[i, 1:], (X, np.array([0, -1, 2], np.int32))),
    "take": (lambda x, i: jnp.take(x, i, axis=1), (X, np.array([0, -1, 20], np.int32))),
    "take_along_axis": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 0), 0), (X,)),
    "a mask": (lambda x: jnp.where(x > 0, x, 0.1 * x), (X,)),
    "set": (lambda x, i: jnp.asarray(x).at[i, 1:].set(7.0), (X, TWO)),
    "add twice": (lambda x: jnp.asarray(x).at[jnp.array([0, 0, 2])].add(1.0), (X,)),
    "max out of bounds": (lambda x: jnp.asarray(x).at[jnp.array([1, 9])].max(1.0), (X,)),
    "dynamic_update_slice": (
        lambda x, i: lax.dynamic_update_slice(x, jnp.ones((2, 2), "float32"), (i, i)),
        (X, TWO),
    ),
    "einsum": (lambda x: jnp.einsum("ij,kj,k->i", x, x, x[:, 0]), (X,)),
    "attention": (
        lambda x: nn.dot_product_attention(x[None, :, None], x[None, :, None], x[None, :, None]),
        (X,),
    ),
    "sorting": (lambda x: (jnp.argsort(x, 0), jnp.median(x), lax.top_k(x, 2)), (X,)),
    "searchsorted": (lambda x: jnp.searchsorted(jnp.sort(x[:, 0]), x[:, 1]), (X,)),
    "cumulative": (lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 0)), (X,)),
    "a transposed convolution": (
        lambda x: lax.conv_transpose(
            x[None, ..., None], jnp.ones((2, 2, 1, 4), "float32"), (2, 3), "SAME"
        ),
        (X,),
    ),
    "pooling": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME"),
        (X,),
    ),
    "activations": (
        lambda x: (nn.gelu(x), nn.gelu(x, approximate=False), nn.softplus(x), nn.elu(x)),
        (X,),
    ),
    "softmax": (lambda x: (nn.softmax(x), nn.log_softmax(x, 0), nn.logsumexp(x)), (X,)),
    "statistics": (lambda x: (x.mean(0), x.var(1), jnp.linalg.norm(x)), (X,)),
    "a gradient": (lambda x: dt.grad(lambda y: jnp.tanh(y @ y.T).sum())(x), (X,)),
    "bits of a key of numbers": (
        lambda k: lax.bitcast_convert_type(k >> 9 | np.uint32(0x3F800000), np.float32) - 1,
        (np.array([0, 2**32 - 1, 12345], np.uint32),),
    ),
    "an argument that nothing uses": (lambda x, y: x + 1, (X, X)),
    "an argument as it is": (lambda x: (x, x), (X,)),
    "constants": (lambda x: (jnp.zeros(2), 3, x), (X,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, same) -> None:
    function, arguments = PROGRAMS[name]
    same(function, *arguments)


KEY = random.key(1)
RANDOM: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "uniform": (lambda key: random.uniform(key, (5,)), (KEY,)),
    "a key of numbers": (lambda key: random.bits(key, (5,)), (random.PRNGKey(2),)),
    "normal": (lambda key: random.normal(key, (3, 2)), (KEY,)),
    "a key inside": (lambda x: x + random.normal(random.key(3), x.shape), (X,)),
    "keys in order": (
        lambda key: [random.randint(k, (4,), 0, 10) for k in random.split(key)],
        (KEY,),
    ),
    "keys of an array": (lambda i: random.bits(random.split(KEY, 4)[i]), (TWO,)),
    "a loop that carries a key": (
        lambda key: lax.scan(
            lambda k, _: (random.split(k)[0], random.uniform(k)), key, None, length=4
        ),
        (KEY,),
    ),
    "keys of a loop": (lambda key: lax.map(random.bits, random.split(key, 3)), (KEY,)),
    "a choice of keys": (
        lambda key, x: lax.cond(x[0, 0] > 0, lambda: random.split(key)[0], lambda: key),
        (KEY, X),
    ),
    "keys compared": (lambda key: random.split(key, 2) == key, (KEY,)),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_the_same(name: str, outputs) -> None:
    """Keys are inputs and outputs by their numbers."""

    def numbers(x: Any) -> Any:
        return np.asarray(random.key_data(x) if is_key(x) else x)

    function, arguments = RANDOM[name]
    program = exporters.export("onnx", function, *arguments)
    onnx.checker.check_model(program.model, full_check=True)
    got = outputs(program, [numbers(x) for x in dt.tree.leaves(arguments)])
    with dt.optimization_level("O0"):
        want = dt.tree.leaves(dt.jit(function)(*arguments))
    for mine, own in zip(got, map(numbers, want), strict=True):
        assert mine.dtype == own.dtype
        np.testing.assert_allclose(mine, own, rtol=1e-6)


def test_dropout_of_a_batch(outputs) -> None:
    def dropout(key: Any, x: Any) -> Any:
        return jnp.where(random.bernoulli(key, 0.5, x.shape), x * 2, 0.0)

    program = exporters.export("onnx", dropout, KEY, X, dynamic_axes={1: {0: "batch"}})
    for size in (1, 5, 8):
        x = np.ones((size, 3), np.float32)
        (got,) = outputs(program, [np.asarray(random.key_data(KEY)), x])
        np.testing.assert_array_equal(got, dropout(KEY, x))


SPECIAL = np.array(
    [[1, np.nan, 2], [np.inf, 0, 1], [-np.inf, 0, 1], [-np.inf] * 3, [3e38, -3e38, 0]], np.float32
)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_is_one_operator(axis: int, same) -> None:
    program = same(lambda x: nn.softmax(x, axis), SPECIAL)
    assert [node.op_type for node in program.model.graph.node] == ["Softmax", "Identity"]
    gradient = same(lambda x: dt.grad(lambda y: (nn.softmax(y, axis) ** 2).sum())(x), X)
    assert "Softmax" in [node.op_type for node in gradient.model.graph.node]


NO_SOFTMAX: dict[str, Callable[..., Any]] = {
    "another sum": lambda x: (y := jnp.exp(x - x.max(1, keepdims=True))) / y.sum(0, keepdims=True),
    "another maximum": lambda x: (y := jnp.exp(x - x.max(0))) / y.sum(1, keepdims=True),
    "a maximum of all": lambda x: (y := jnp.exp(x - x.max())) / y.sum(),
    "a minimum": lambda x: (y := jnp.exp(x - x.min(1, keepdims=True))) / y.sum(1, keepdims=True),
    "a sum of others": lambda x: jnp.exp(x - x.max(0)) / jnp.exp(x + 1 - x.max(0)).sum(0),
    "no difference": lambda x: (y := jnp.exp(x)) / y.sum(0),
    "a sum as a column": lambda x: (y := jnp.exp(x[:3] - x[:3].max(0))) / y.sum(0)[:, None],
}


@pytest.mark.parametrize("name", NO_SOFTMAX)
def test_what_is_no_softmax(name: str, same) -> None:
    program = same(NO_SOFTMAX[name], X)
    assert "Softmax" not in [node.op_type for node in program.model.graph.node]


def test_what_is_captured_is_a_constant(same) -> None:
    weight = jnp.asarray(X[:3])
    program = same(lambda x: x @ weight, X)
    (tensor,) = program.model.graph.initializer
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), X[:3])


def test_operators_know_the_lines_that_they_come_from() -> None:
    program = exporters.export("onnx", lambda x: jnp.sin(x) * 2, X)
    nodes = [node for node in program.model.graph.node if node.op_type == "Sin"]
    (place,) = [node.doc_string for node in nodes]
    assert re.match(r"test_onnx_programs.py:\d+ \(test_operators_know_the_lines", place)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats(dtype: str, same) -> None:
    def network(x: Any) -> Any:
        y = x.astype(dtype)
        z = nn.softmax(jnp.tanh(y @ y.T), -1)
        return (jnp.sum(z * 3, 0) / jnp.max(y)).astype("float32")

    # Where XLA leaves out a rounding between operations, the model has it.
    same(network, X, tolerance=2e-2)


def test_64_bits(same) -> None:
    with dt.enable_x64(True):
        x = X.astype(np.float64)
        program = same(lambda x, i: jnp.tanh(x @ x.T)[i], x, np.array([1, 2]), tolerance=1e-14)
    types = [value.type.tensor_type.elem_type for value in program.model.graph.input]
    assert types == [onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64]


# ------------------------------------------------------------------------------------- options


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23])
def test_opset(opset: int, same) -> None:
    def function(x: Any) -> Any:
        y = lax.scan(lambda h, row: (h + row, jnp.isfinite(h)), jnp.zeros(3), x)[0]
        return nn.relu(y) @ x.T, jnp.any(x > 1), x.astype("bfloat16").astype("float32").max()

    program = same(function, X, opset=opset)
    (imported,) = program.model.opset_import
    assert imported.version == opset


def test_bits_of_floats_need_a_new_opset() -> None:
    function = lambda x: lax.bitcast_convert_type(x, np.int32)
    with pytest.raises(NotImplementedError, match="pass opset=26"):
        exporters.export("onnx", function, X)
    if onnx.defs.onnx_opset_version() >= 26:
        program = exporters.export("onnx", function, X, opset=26)
        assert [node.op_type for node in program.model.graph.node] == ["BitCast", "Identity"]


def test_names() -> None:
    params = {"w": X, "layers": [X[0], X[1]]}
    function = lambda params, x: {"y": params["w"] + x, "z": [x]}
    program = exporters.export("onnx", function, params, X)
    assert program.input_names == ("params.layers.0", "params.layers.1", "params.w", "x")
    assert program.output_names == ("result.y", "result.z.0")
    named = exporters.export(
        "onnx", function, params, X, input_names=[*"abcd"], output_names=["y", "z"]
    )
    assert (named.input_names, named.output_names) == (tuple("abcd"), ("y", "z"))
    assert [value.name for value in named.model.graph.input] == [*"abcd"]


def test_names_are_distinct_from_those_of_values_inside(same) -> None:
    same(lambda sin_0, constant_1: jnp.sin(sin_0) * 2 + constant_1, X, X)


def test_an_argument_called_as_a_result(same) -> None:
    program = same(lambda result: result + 1, X)
    assert (program.input_names, program.output_names) == (("result",), ("result.1",))


def test_save(tmp_path: Path) -> None:
    program = exporters.export("onnx", jnp.sin, X)
    program.save(tmp_path / "sin.onnx")
    assert onnx.load(tmp_path / "sin.onnx") == program.model
    assert program.model.producer_name == "dovetail"


# ------------------------------------------------------------------------------ sizes that vary

VARYING: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x: jnp.sin(x) * 2,
    "broadcasts": lambda x: x + jnp.ones_like(x) + jnp.arange(x.shape[0])[:, None],
    "reshapes": lambda x: (x.reshape(-1), x.reshape(3, -1), x.T.reshape(-1, 1)),
    "means": lambda x: (x.mean(), x.mean(0), x.var(0), x.sum() * (1 / x.size)),
    "products": lambda x: (x @ x.T).reshape(-1),
    "concatenations": lambda x: jnp.concatenate([x, x, x[:1]]),
    "padding": lambda x: jnp.pad(x, ((1, 2), (0, 0))),
    "reversal": lambda x: x[::-1],
    "the last row": lambda x: x[-1],
    "all but the last row": lambda x: x[:-1],
    "rows": lambda x: x[jnp.array([0, 1])],
    "sorting": lambda x: jnp.sort(x, 0),
    "sums of all before": lambda x: jnp.cumsum(x, 0),
    "a scan": lambda x: lax.scan(lambda h, y: (h + y, h), jnp.zeros(3), x),
    "a map": lambda x: lax.map(lambda row: row @ row, x),
    "a causal mask": lambda x: jnp.tril(x @ x.T),
    "one_hot": lambda x: nn.one_hot(jnp.argmax(x, -1), 3),
    "vmap": dt.vmap(lambda row: jnp.outer(row, row)),
    "updates": lambda x: x.at[0].set(0.0),
}


@pytest.mark.parametrize("name", VARYING)
def test_a_size_that_varies(name: str, same) -> None:
    others = [
        (np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32),) for n in (2, 9, 70)
    ]
    same(VARYING[name], X, others=others, dynamic_axes={0: {0: "batch"}}, tolerance=2e-5)


def test_two_sizes_that_vary(same) -> None:
    function = lambda x, y: (x[:, None] * y).reshape(-1, x.shape[-1]).mean(0)
    others = [(X[:m], X[:n]) for m, n in ((1, 2), (3, 1), (5, 4))]
    axes = {"x": {0: "rows"}, 1: {-2: "columns"}}
    program = same(function, X, X, others=others, dynamic_axes=axes)
    names = [value.type.tensor_type.shape.dim[0].dim_param for value in program.model.graph.input]
    assert names == ["rows", "columns"]


def test_one_size_of_two_inputs(same) -> None:
    axes = {0: {0: "batch"}, 1: {0: "batch"}}
    same(lambda x, y: x + y, X, X, others=[(X[:2], X[:2])], dynamic_axes=axes)


# ------------------------------------------------------------------------------------- refusals

MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "an old opset": (
        lambda: exporters.export("onnx", jnp.sin, X, opset=17),
        ValueError,
        "opset=17: from 18 to",
    ),
    "no opset": (
        lambda: exporters.export("onnx", jnp.sin, X, opset="new"),
        TypeError,
        "opset must be an integer, got 'new'",
    ),
    "an unknown option": (
        lambda: exporters.export("onnx", jnp.sin, X, opsett=21),
        TypeError,
        "the exporter of 'onnx' has no option 'opsett'; did you mean 'opset'?",
    ),
    "too few names": (
        lambda: exporters.export("onnx", jnp.add, X, X, input_names=["a"]),
        ValueError,
        "input_names has 1 names for 2: ",
    ),
    "a name twice": (
        lambda: exporters.export("onnx", jnp.add, X, X, input_names=["a", "a"]),
        ValueError,
        "input_names has a name twice: a, a",
    ),
    "names that are none": (
        lambda: exporters.export("onnx", jnp.sin, X, output_names="y"),
        TypeError,
        "output_names must be a list of names, got 'y'",
    ),
    "one name for both": (
        lambda: exporters.export("onnx", jnp.sin, X, input_names=["a"], output_names=["a"]),
        ValueError,
        "an input and an output have one name: a",
    ),
    "axes by nothing": (
        lambda: exporters.export("onnx", jnp.sin, X, dynamic_axes=["batch"]),
        TypeError,
        "dynamic_axes must be such as",
    ),
    "axes without numbers": (
        lambda: exporters.export("onnx", jnp.sin, X, dynamic_axes={0: "batch"}),
        TypeError,
        r"dynamic_axes\[0\] must be such as",
    ),
    "an axis that is not there": (
        lambda: exporters.export("onnx", lambda x: x, X, dynamic_axes={0: {2: "batch"}}),
        ValueError,
        r"names dimension 2, and the input x has the shape \(5, 3\)",
    ),
    "an input that is not there": (
        lambda: exporters.export("onnx", lambda x: x, X, dynamic_axes={"y": {0: "batch"}}),
        ValueError,
        "dynamic_axes names the input 'y'; there are x",
    ),
    "an argument that is not there": (
        lambda: exporters.export("onnx", lambda x: x, X, dynamic_axes={1: {0: "batch"}}),
        ValueError,
        "dynamic_axes has the key 1: the number of an argument, below 1",
    ),
    "a name for two sizes": (
        lambda: exporters.export("onnx", lambda x: x, X, dynamic_axes={0: {0: "n", 1: "n"}}),
        ValueError,
        "the name 'n' to sizes that differ here: 3, 5",
    ),
    "a size that the program needs": (
        lambda: exporters.export("onnx", lambda x: x @ X.T[0:3], X, dynamic_axes={0: {1: "n"}}),
        NotImplementedError,
        "cannot have dynamic_axes: for n=67 it raises",
    ),
    "another program for another size": (
        lambda: exporters.export(
            "onnx",
            lambda x: jnp.sin(x) if len(x) < 70 else jnp.cos(x),
            X,
            dynamic_axes={0: {0: "n"}},
        ),
        NotImplementedError,
        r"what the program does at test_onnx_programs.py:\d+ \(.*\) depends on n",
    ),
    "half of a size": (
        lambda: exporters.export("onnx", lambda x: x[: len(x) // 2], X, dynamic_axes={0: {0: "n"}}),
        NotImplementedError,
        r"the number 33, which is no polynomial of sizes and at .* depends on n",
    ),
    "an array of that size": (
        lambda: exporters.export(
            "onnx", lambda x: x + np.arange(len(x))[:, None], X, dynamic_axes={0: {0: "n"}}
        ),
        NotImplementedError,
        r"an array that is known while tracing at .* depends on n",
    ),
    "complex numbers": (
        lambda: exporters.export("onnx", lambda z: z, X + 1j),
        NotImplementedError,
        "its argument z: ONNX has no operators on complex64",
    ),
    "a key of another generator": (
        lambda: exporters.export("onnx", random.bits, random.key(0, impl="rbg")),
        NotImplementedError,
        "rng_bit_generator: ONNX has no such random bits: use keys of threefry2x32\n",
    ),
    "several devices": (
        lambda: exporters.export(
            "onnx",
            dt.shard_map(
                lambda x: x * 2,
                mesh=dt.make_mesh((1,), ("a",)),
                in_specs=dt.sharding.PartitionSpec(),
                out_specs=dt.sharding.PartitionSpec(),
            ),
            X,
        ),
        NotImplementedError,
        "shard_map: a model runs on one device",
    ),
    "a callback": (
        lambda: exporters.export("onnx", lambda x: dt.debug.print("{}", x) or x, X),
        NotImplementedError,
        "debug_print: a model calls no Python",
    ),
    "a mutable reference": (
        lambda: exporters.export("onnx", lambda r: r[...], dt.new_ref(jnp.ones(3))),
        TypeError,
        "Argument r of export of <lambda> must be an array, got the mutable reference",
    ),
    "no result": (
        lambda: exporters.export("onnx", lambda x: None, X),
        NotImplementedError,
        "<lambda> returns no array",
    ),
    "not an array": (
        lambda: exporters.export("onnx", lambda x: x, "text"),
        TypeError,
        "Argument x of export of <lambda> is 'text'",
    ),
    "no function": (lambda: exporters.export("onnx", X), TypeError, "takes a function"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    wrong, kind, text = MISTAKES[name]
    with pytest.raises(kind, match=text):
        wrong()


def test_everything_in_the_way_is_told_at_once() -> None:
    def inner(x: Any) -> Any:
        return jnp.linalg.eigh(x @ x.T)[0]

    def function(x: Any) -> Any:
        y = lax.cond(x.sum() > 0, inner, lambda x: jnp.linalg.cholesky(x @ x.T)[0], x)
        z = dt.jit(jnp.fft.fft)(y)
        return z.real + lax.lgamma(y) + lax.lgamma(2 * y)

    with pytest.raises(NotImplementedError) as caught:
        exporters.export("onnx", function, X)
    lines = str(caught.value).splitlines()
    assert lines[0] == "function cannot be written as an ONNX model of opset 21:"
    told = {line.strip().partition(":")[0] for line in lines[1::2]}
    assert told >= {"eigh", "cholesky", "fft", "lgamma"}
    places = [line.strip() for line in lines[2::2]]
    assert all(re.match(r"at test_onnx_programs.py:\d+ \(", place) for place in places)
    (both,) = [p for line, p in zip(lines[1::2], places, strict=True) if "lgamma" in line]
    assert both.count("test_onnx_programs.py") == 1, "one line, though it is there twice"
