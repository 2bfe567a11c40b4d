"""`sparsify`: functions of dense arrays on sparse ones, with branches, loops and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental import sparse

MATRIX = np.array([[0, 1, 0], [2, 0, -3]], np.float32)
IMAGE = np.zeros((2, 4, 5, 6), np.float32)
IMAGE[[0, 1, 1], [0, 1, 3], [2, 0, 4], [1, 5, 3]] = [1, 2, 3]
KERNEL = np.random.default_rng(0).standard_normal((6, 2, 3, 2)).astype(np.float32)


@dt.custom_jvp
def doubled(x: Any) -> Any:
    return 2 * x


@doubled.defjvp
def _doubled_jvp(primals: Any, tangents: Any) -> Any:
    return doubled(*primals), 2 * tangents[0]


SPARSE: dict[str, Callable[[Any], Any]] = {
    "functions": lambda x: jnp.sin(x) * jnp.tanh(x) + jnp.sqrt(abs(x)) - jnp.expm1(x),
    "scalars": lambda x: jnp.maximum(x, 0.0) + jnp.clip(x, -1, 1) + abs(x) ** 2.5 + x**3,
    "conversion": lambda x: x.astype("int32"),
    "shapes": lambda x: jnp.expand_dims(x.T.reshape(2, 3), 1).squeeze(1)[::-1],
    "joined": lambda x: jnp.concatenate([x, 2 * x], 1),
    "stacked": lambda x: jnp.stack([x, -x]),
    "parts": lambda x: jnp.split(x, 3, axis=1),
    "padding": lambda x: jnp.pad(x, ((1, 2), (0, 1))),
    "rows": lambda x: x[jnp.array([1, 0, 1])],
    "dynamic": lambda x: lax.dynamic_slice(x, (0, 1), (1, 2)),
    "repeated": lambda x: jnp.broadcast_to(x, (4, 2, 3)),
    "products": lambda x: x @ x.T,
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x),
    "jit": dt.jit(lambda x: 2 * x),
    "checkpoint": dt.checkpoint(lambda x: jnp.sin(2 * x)),
    "custom_rule": doubled,
    "custom_rule_in_jit": dt.jit(doubled),
    "vmap": dt.vmap(lambda x: 2 * x),
    "grad": dt.grad(lambda x: (x * x).sum()),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x)),
    "while_of_value": lambda x: lax.while_loop(lambda c: abs(c).sum() < 50, lambda c: c * 2, x),
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x),
    "scan": lambda x: lax.scan(lambda c, i: (c * 2, c.T), x, jnp.arange(3)),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda c: c * 2, lambda c: c + c.T.T, x),
    "cond_layouts": lambda x: lax.cond(x.sum() < 9, lambda c: c[0][None], lambda c: c[1:], x),
}
DENSE: dict[str, Callable[[Any], Any]] = {
    "todense": lambda x: jnp.cos(sparse.todense(x)),
    "sum": jnp.sum,
    "mean": jnp.mean,
    "norm": jnp.linalg.norm,
    "with_dense": lambda x: x @ jnp.ones(3) + 1,
    "difference": lambda x: MATRIX - x,
    "tensordot": lambda x: jnp.tensordot(x, MATRIX.T, 1),
    "cond_dense": lambda x: lax.cond(x.sum() > 0, lambda c: c * 2, lambda c: c + MATRIX, x),
    "while_dense": lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + abs(MATRIX), x),
}


def _is_sparse(x: Any) -> bool:
    return isinstance(x, sparse.JAXSparse)


def _same(found: Any, expected: Any) -> None:
    leaves = dt.tree.leaves(found, is_leaf=_is_sparse)
    for got, wanted in zip(leaves, dt.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(sparse.todense(got), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [*SPARSE, *DENSE])
def test_as_dense(name: str) -> None:
    function = {**SPARSE, **DENSE}[name]
    mat = sparse.BCOO.fromdense(MATRIX, nse=5)
    found = dt.jit(sparse.sparsify(function))(mat)
    _same(found, function(jnp.asarray(MATRIX)))
    kinds = [_is_sparse(x) for x in dt.tree.leaves(found, is_leaf=_is_sparse)]
    assert kinds[-1] == (name in SPARSE)


def test_called_with_trees_and_other_formats() -> None:
    tree = {"a": sparse.BCSR.fromdense(MATRIX), "b": MATRIX.T}
    found = sparse.sparsify(lambda t, scale: (t["a"] * scale, t["a"] @ t["b"]))(tree, scale=2)
    _same(found, (2 * MATRIX, MATRIX @ MATRIX.T))
    assert type(found[0]) is sparse.BCOO


def test_a_loop_over_a_batch() -> None:
    mats = sparse.BCOO.fromdense(np.stack([MATRIX, 2 * MATRIX]), n_batch=1)
    total = sparse.sparsify(lambda xs: lax.scan(lambda c, x: (c + x.sum(), x.T), 0.0, xs))(mats)
    _same(total, (3 * MATRIX.sum(), np.stack([MATRIX.T, 2 * MATRIX.T])))


@pytest.mark.parametrize(
    ("n_batch", "options"),
    [
        (0, {"padding": [(1, 2), (0, 1)], "feature_group_count": 2, "rhs_dilation": (2, 1)}),
        (1, {"padding": "SAME", "batch_group_count": 2}),
    ],
)
def test_convolution(n_batch: int, options: dict[str, Any]) -> None:
    image = IMAGE if "feature_group_count" in options else IMAGE[:, :2]
    mat = sparse.BCOO.fromdense(image, n_batch=n_batch)
    arguments = {"window_strides": (2, 1), **options}
    found = sparse.bcoo_conv_general_dilated(mat, KERNEL, **arguments)
    expected = lax.conv_general_dilated(image, KERNEL, **arguments)
    np.testing.assert_allclose(found.todense(), expected, rtol=1e-4, atol=1e-5)


def test_what_stands_for_a_sparse_array() -> None:
    seen = []
    sparse.sparsify(lambda x: seen.append((type(x), x.shape, repr(x))))(sparse.eye(2))
    shown = "SparseTracer(BCOO(float32[2, 2], nse=2))"
    assert seen == [(sparse.SparseTracer, (2, 2), shown)]


ERRORS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "comparison": (lambda x: x == x, "would store what is not stored now"),
    "cosine": (jnp.cos, "would store what is not stored now"),
    "quotient": (lambda x: 1 / x, "a quotient by a sparse array is dense"),
    "power": (lambda x: x**-1, "a sparse array to the power -1 is dense"),
    "maximum": (lambda x: jnp.maximum(x, 1.0), "max, which is not known to be 0"),
    "wider": (lambda x: x + 1, "the sum of a sparse array of shape (2, 3) and a dense one of"),
    "no_rule": (jnp.cumsum, "sparsify has no rule for the primitive cumsum of BCOO(float32[6]"),
    "mixed": (lambda x: jnp.concatenate([x, MATRIX]), "sparse arrays or dense ones, not both"),
    "loop": (lambda x: lax.scan(lambda c, y: (c, y), 0, x), "must be a batch dimension"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    function, message = ERRORS[name]
    with pytest.raises(NotImplementedError) as caught:
        sparse.sparsify(function)(sparse.BCOO.fromdense(MATRIX))
    assert message in str(caught.value)


def test_a_loop_that_stores_more_at_each_step() -> None:
    function = lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + c[::-1][::-1], x)
    with pytest.raises(ValueError, match="carries has 3 places, and 6 after a step"):
        sparse.sparsify(function)(sparse.BCOO.fromdense(MATRIX))
