"""Functions of arrays with symbolic sizes: the exported program does at several sizes what they do.

Each is exported once, and called at sizes that make its program static.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import export, lax, nn
from dovetail.errors import InconclusiveDimensionOperation

#: Sizes to call most functions at, by turns, and sizes to call some at.
SIZES = ({"a": 4, "b": 6}, {"a": 2, "b": 3})
MORE_SIZES = ({"a": 1, "b": 1}, {"a": 5, "b": 2}, {"a": 3, "b": 17})
AT_MANY_SIZES = ("size", "pad", "first", "half", "cumsum", "scan", "convolution", "linspace")
FLOAT, INT = "float32", "int32"


def convolved(x: Any, kernel: Any, strides: Any = (1, 1), padding: Any = "SAME") -> Any:
    return lax.conv_general_dilated(
        x, kernel, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def pooled(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


#: Functions with the shapes of their arguments, and maybe constraints; `#` marks integers.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    # elementwise, and sizes as numbers
    "sin": (jnp.sin, "a, 3"),
    "broadcast": (lambda x, y: x + y, "a, b", "a, 1"),
    "size": (lambda x: x / x.shape[0] + x.size, "a, b"),
    "size to a power": (lambda x: x * x.shape[0] ** 0.5, "a"),
    "sizes in an array": (lambda x: jnp.array([x.shape[0], 2]), "a"),
    "sum over size": (lambda x: x.sum() / (x.shape[0] - 0.5), "a"),
    "bfloat16": (lambda x: jnp.sum(x.astype("bfloat16")), "a"),
    # shapes
    "reshape": (lambda x: x.reshape(x.shape[0], -1), "a, 2, b"),
    "reshape in two": (lambda x: x.reshape(2, -1), "2*a, 3"),
    "reshape by quotient": (lambda x: x.reshape(x.shape[0] // 2, 2, -1), "a, b", "mod(a, 2) == 0"),
    "transpose": (lambda x: x.T, "a, b"),
    "new axis": (lambda x: x[:, None] * jnp.arange(x.shape[0]), "a"),
    "tile": (lambda x: jnp.tile(x, (2, 1)), "a, b"),
    "repeat": (lambda x: jnp.repeat(x, 2, 0), "a, b"),
    "concatenate": (lambda x, y: jnp.concatenate([x, y, x]), "a, 3", "b, 3"),
    "stack": (lambda x: jnp.stack([x, x], 1), "a, b"),
    "split": (lambda x: jnp.split(x, 2), "2*a, 3"),
    "pad": (lambda x: jnp.pad(x, ((0, x.shape[0]), (1, 2))), "a, 3"),
    "roll": (lambda x: jnp.roll(x, 1, 0), "a, b"),
    "ones": (lambda x: jnp.ones(x.shape) + jnp.zeros_like(x), "a, b"),
    "eye": (lambda x: jnp.eye(x.shape[0], x.shape[1], 1), "a, b"),
    "tril": (jnp.tril, "a, b"),
    "diagonal": (jnp.diagonal, "a, a"),
    "arange": (lambda x: jnp.arange(1, x.shape[0], 2), "a"),
    "arange of floats": (lambda x: jnp.arange(1.0, 1 + x.shape[0]), "a"),
    "linspace": (lambda x: jnp.linspace(0, 1, x.shape[0]), "a"),
    # slices and positions
    "first": (lambda x: x[0], "a, b"),
    "last": (lambda x: x[-1], "a, b"),
    "all but one": (lambda x: x[1:] * x[:-1], "a", "a >= 2"),
    "few at the end": (lambda x: x[-3:], "a"),
    "half": (lambda x: x[: x.shape[0] // 2], "a, b"),
    "every other": (lambda x: x[::2], "a, 3"),
    "backwards": (lambda x: x[::-2], "a"),
    "out of bounds": (lambda x: x[3], "a"),
    "dynamic slice": (
        lambda x, i: lax.dynamic_slice(x, (i, 1), (x.shape[0] - 1, 2)),
        "a, 4",
        "#",
        "a >= 2",
    ),
    "position": (lambda x, i: x[i], "a, b", "#"),
    "gather": (lambda x, i: x[i], "a, 3", "#b"),
    "gather columns": (lambda x, i: x[:, i], "a, 5", "#b"),
    "gather pairs": (lambda x, i: x[jnp.arange(x.shape[0]), i], "a, 3", "#a"),
    "take along axis": (lambda x, i: jnp.take_along_axis(x, i, 1), "a, 3", "#a, 2"),
    "set": (lambda x: x.at[0].set(1.0).at[:, 1].mul(2.0), "a, 3"),
    "scatter": (lambda x, i, y: x.at[i].add(y), "a, 3", "#b", "b, 3"),
    "segments": (lambda x, i: dt.ops.segment_sum(x, i, num_segments=4), "a, 3", "#a"),
    "one hot": (lambda i: nn.one_hot(i, i.shape[0]), "#a"),
    "nonzero": (lambda x: jnp.nonzero(x > 0, size=3, fill_value=-1), "a"),
    # reductions, running ones, sorting
    "mean": (jnp.mean, "a, b"),
    "var": (lambda x: jnp.var(x, 0), "a, b"),
    "argmax": (lambda x: jnp.argmax(x, 0), "a, b"),
    "logsumexp": (lambda x: nn.logsumexp(x, 1), "a, b"),
    "median": (jnp.median, "a"),
    "cov": (jnp.cov, "a, b", "b >= 2"),
    "cumsum": (lambda x: jnp.cumsum(x, 1), "a, b"),
    "cumprod backwards": (lambda x: lax.cumprod(x, 0, reverse=True), "a, 2"),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 0), "a"),
    "sort": (lambda x: jnp.sort(x, 0), "a, b"),
    "argsort": (jnp.argsort, "a, b"),
    "top k": (lambda x: lax.top_k(x, 2), "a, b", "b >= 2"),
    "searchsorted": (lambda x, y: jnp.searchsorted(jnp.sort(x), y), "a", "b"),
    # contractions, windows, matrices
    "matmul": (jnp.matmul, "2, a, b", "b, 3"),
    "einsum": (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), "a, b, 3", "a, 3, b"),
    "attention": (
        lambda q, k: nn.dot_product_attention(q, k, k, is_causal=True),
        "a, b, 2, 4",
        "a, b, 2, 4",
    ),
    "convolution": (convolved, "a, b, 8, 3", "3, 3, 3, 4"),
    "convolution in steps": (
        lambda x, k: convolved(x, k, (2, 2)),
        "a, b, 8, 3",
        "3, 3, 3, 4",
        "b >= 3",
    ),
    "convolution inside": (
        lambda x, k: convolved(x, k, (2, 2), "VALID"),
        "a, b, b, 3",
        "3, 3, 3, 4",
        "b >= 3",
    ),
    "pool": (pooled, "a, 4, 4, 3"),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.mT + jnp.eye(2)), "a, 2, 2"),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), "a, 8"),
    # control flow
    "scan": (lambda x: lax.scan(lambda c, y: (c + y.sum(), c * y), 0.0, x), "a, b"),
    "scan of some length": (
        lambda x: lax.scan(lambda c, _: (c * 1.5, c.sum()), x, None, length=x.shape[0]),
        "a",
    ),
    "fori loop": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0), "a"),
    "while loop": (
        lambda x: lax.while_loop(lambda c: c.sum() < 50, lambda c: abs(c) * 2 + 1, x),
        "a",
    ),
    "cond": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), "a, b"),
    "map": (lambda x: lax.map(lambda row: row.sum(), x), "a, b"),
    "nested jit": (lambda x: dt.jit(lambda z: z + jnp.arange(z.shape[0]))(x), "a"),
    # random numbers
    "normal": (lambda x: dt.random.normal(dt.random.key(0), x.shape), "a, 3"),
    "permutation": (lambda x: dt.random.permutation(dt.random.key(1), x), "a"),
    "keys": (lambda x: dt.random.key_data(dt.random.split(dt.random.key(0), x.shape[0])), "a"),
    # transformations
    "vmap": (dt.vmap(jnp.dot, (0, 1)), "a, b", "b, a"),
    "vmap of cond": (dt.vmap(lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)), "a, b"),
    "vmap of gather": (dt.vmap(lambda x, i: x[i]), "a, 5", "#a"),
    "grad": (dt.grad(lambda x: (jnp.sin(x) @ x.T).sum() / x.shape[0]), "a, b"),
    "grad of scan": (
        dt.grad(lambda x: lax.scan(lambda c, y: (c * jnp.sin(y), c), 1.0, x)[0]),
        "a",
    ),
    "grad of gather": (dt.grad(lambda x, i: x[i].sum()), "a, 3", "#b"),
    "grad of slices": (dt.grad(lambda x: (x[1:] * x[:-1]).sum()), "a", "a >= 2"),
    "grad of cumprod": (dt.grad(lambda x: (jnp.cumprod(x) ** 2).sum()), "a"),
    "grad of softmax": (dt.grad(lambda x: (nn.softmax(x) ** 2).sum()), "a, b"),
    "grad of convolution": (
        dt.grad(lambda x, k: convolved(x, k).sum(), 1),
        "a, 4, 4, 3",
        "3, 3, 3, 4",
    ),
    "grad of pool": (dt.grad(lambda x: pooled(x).sum()), "a, 4, 4, 3"),
    "jvp of grad": (lambda x: dt.jvp(dt.grad(lambda x: jnp.sum(x**3)), (x,), (x,)), "a"),
    "checkpoint": (dt.grad(lambda x: dt.checkpoint(lambda y: jnp.sin(y) ** 2)(x).sum()), "a"),
}


def specifications(texts: tuple[str, ...]) -> list[Any]:
    constraints = [text for text in texts if "=" in text]
    scope = export.SymbolicScope(constraints)
    return [
        dt.ShapeDtypeStruct(
            export.symbolic_shape(text.lstrip("#"), scope=scope), INT if "#" in text else FLOAT
        )
        for text in texts
        if "=" not in text
    ]


def arguments(specs: list[Any], sizes: dict[str, int]) -> list[Any]:
    draw = np.random.default_rng(0)
    made = []
    for spec in specs:
        shape = [n.evaluate(sizes) if export.is_symbolic_dim(n) else n for n in spec.shape]
        values = draw.integers(0, 3, shape) if spec.dtype == INT else draw.normal(size=shape)
        made.append(np.asarray(values, spec.dtype))
    return made


@pytest.mark.parametrize("name", FUNCTIONS)
def test_exported_is_the_function(name):
    check(name, [SIZES[len(name) % 2]])


@pytest.mark.parametrize("name", AT_MANY_SIZES)
def test_exported_is_the_function_at_many_sizes(name):
    check(name, MORE_SIZES)


def check(name, all_sizes):
    function, *texts = FUNCTIONS[name]
    specs = specifications(tuple(texts))
    exported = export.export(dt.jit(function))(*specs)
    for sizes in all_sizes:
        args = arguments(specs, sizes)
        found = dt.tree.leaves(exported.call(*args))
        expected = dt.tree.leaves(dt.jit(function)(*args))
        for x, y in zip(found, expected, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_allclose(
                np.asarray(x, np.float64), np.asarray(y, np.float64), rtol=2e-4, atol=2e-4
            )


@pytest.mark.parametrize("x64", [False, True])
def test_sizes_as_values_have_the_default_integer_dtype(x64):
    with dt.enable_x64(x64):
        (a,) = export.symbolic_shape("a")
        struct = dt.ShapeDtypeStruct((a,), FLOAT)
        exported = export.export(dt.jit(lambda x: jnp.asarray(x.shape[0]) * 2))(struct)
        found = exported.call(np.ones(5, FLOAT))
    assert int(found) == 10
    assert found.dtype == ("int64" if x64 else "int32")


REFUSED = {
    "condition": (lambda x: x if x.shape[0] > 8 else 2 * x, "whether a > 8 depends"),
    "loop": (lambda x: sum(x[i] for i in range(x.shape[0])), "the size a of a dimension"),
    "number": (lambda x: x * float(x.shape[0]), "the size a of a dimension"),
    "associative scan": (lambda x: lax.associative_scan(jnp.add, x), "the symbolic size a"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_depends_on_a_size_while_tracing_is_refused(name):
    function, message = REFUSED[name]
    (a,) = export.symbolic_shape("a")
    with pytest.raises(InconclusiveDimensionOperation, match=message):
        export.export(dt.jit(function))(dt.ShapeDtypeStruct((a,), FLOAT))


def test_programs_of_symbolic_sizes_are_lowered_and_not_compiled():
    (a,) = export.symbolic_shape("a")
    struct = dt.ShapeDtypeStruct((a,), FLOAT)
    assert dt.eval_shape(jnp.cumsum, struct).shape == (a,)
    lowered = dt.jit(jnp.sort).lower(struct)
    assert "tensor<?xf32>" in lowered.as_text()
    with pytest.raises(InconclusiveDimensionOperation, match="sort takes arrays of symbolic sizes"):
        lowered.compile()


def test_sizes_outside_of_exported_functions_are_refused():
    (a,) = export.symbolic_shape("a")
    with pytest.raises(InconclusiveDimensionOperation, match="the dimension variable a has no"):
        jnp.sin(a)
