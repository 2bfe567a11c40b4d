"""ragged_dot and ragged_dot_general: what their functions take, and what they compute."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((20, 3)).astype(np.float32)
W = RANDOM.standard_normal((4, 3, 2)).astype(np.float32)
SIZES = np.array([5, 0, 12, 3])
NUMBERS = lax.RaggedDotDimensionNumbers([[[1], [1]], [[], []]], [0], [0])


def by_group(x: Any, w: Any, sizes: Any) -> Any:
    """The products of groups of rows, one after another."""
    out, row = np.zeros((len(x), w.shape[2]), np.float32), 0
    for size, weight in zip(sizes, w, strict=True):
        out[row : row + size] = x[row : row + size] @ weight
        row += size
    return out


@pytest.mark.parametrize(
    "sizes", [[5, 0, 12, 3], [20, 0, 0, 0], [0, 0, 0, 20], [1, 2, 3, 4], [0, 0, 0, 0]]
)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_products_of_groups(sizes: Any, dtype: str) -> None:
    got = lax.ragged_dot(X, W, np.array(sizes, dtype))
    np.testing.assert_allclose(np.asarray(got), by_group(X, W, sizes), rtol=1e-5, atol=1e-6)
    same = lax.ragged_dot_general(X, W, np.array(sizes, dtype), NUMBERS)
    assert same.tolist() == got.tolist()


@pytest.mark.parametrize(
    ("sizes", "same_as"),
    [([5, -3, 12, 3], [5, 0, 12, 3]), ([5, 0, 50, 3], [5, 0, 15, 0]), ([127] * 4, [20, 0, 0, 0])],
)
def test_sizes_that_do_not_fit(sizes: Any, same_as: Any) -> None:
    got = lax.ragged_dot(X, W, np.array(sizes, np.int8))
    np.testing.assert_allclose(np.asarray(got), by_group(X, W, same_as), rtol=1e-5, atol=1e-6)


def test_groups_do_not_see_each_other() -> None:
    x, w = X.copy(), W.copy()
    x[0], w[3] = np.nan, np.inf
    got = np.asarray(lax.ragged_dot(x, w, SIZES))
    assert np.isnan(got[0]).all()
    assert not np.isfinite(got[17:]).any()
    assert np.isfinite(got[1:17]).all()
    for_x, for_w = dt.grad(
        lambda x, w: lax.reduce_sum(lax.ragged_dot(x, w, SIZES)[1:17], (0, 1)), (0, 1)
    )(x, w)
    assert np.isfinite(np.asarray(for_x)[:17]).all()
    assert np.isfinite(np.asarray(for_w)[1:3]).all()


def test_each_product_is_made_once() -> None:
    """The work does not grow with the number of groups, nor is anything repeated for each."""
    rows, groups = 4096, 64
    x, w = np.zeros((rows, 32), np.float32), np.zeros((groups, 32, 16), np.float32)
    with dt.cpu_kernels(False):
        text = dt.jit(lax.ragged_dot).lower(x, w, np.zeros(groups, np.int32)).as_text()
    assert f"{groups}x{rows}" not in text
    (product,) = re.findall(r"dot_general.*: \(tensor<(\d+)x32xf32>", text)
    assert int(product) <= 128


def test_names_in_jaxprs() -> None:
    jaxpr = dt.make_jaxpr(lax.ragged_dot)(X, W, SIZES)
    printed = re.sub(r"\s+", " ", str(jaxpr))
    assert (
        "ragged_dot_general[ group_offset=None out_sharding=None precision=None "
        "preferred_element_type=None ragged_dot_dimension_numbers=RaggedDotDimensionNumbers("
        "dot_dimension_numbers=(((1,), (1,)), ((), ())), lhs_ragged_dimensions=(0,), "
        "rhs_group_dimensions=(0,)) ]"
    ) in printed
    both = dt.make_jaxpr(dt.vmap(lax.ragged_dot))(X[None], W[None], SIZES[None])
    assert [e.primitive.name for e in both.eqns] == ["ragged_dot_general"]
    gradient = dt.make_jaxpr(
        dt.grad(lambda x, w: lax.reduce_sum(lax.ragged_dot(x, w, SIZES), (0, 1)), (0, 1))
    )(X, W)
    assert [e.primitive.name for e in gradient.eqns].count("ragged_dot_general") <= 3


def test_precision_and_dtypes() -> None:
    text = dt.jit(lambda x: lax.ragged_dot(x, W, SIZES, precision="highest")).lower(X).as_text()
    assert "HIGHEST" in text
    text = dt.jit(lambda x: lax.ragged_dot(x, W, SIZES, "BF16_BF16_F32")).lower(X).as_text()
    assert "algorithm = <lhs_precision_type = bf16" in text
    narrow = X.astype("bfloat16"), W.astype("bfloat16")
    assert lax.ragged_dot(*narrow, SIZES).dtype == narrow[0].dtype
    assert lax.ragged_dot(*narrow, SIZES, preferred_element_type="float32").dtype == np.float32
    assert lax.ragged_dot(narrow[0], W, SIZES).dtype == np.float32
    for_x, for_w = dt.grad(
        lambda x, w: lax.reduce_sum(lax.ragged_dot(x, w, SIZES), (0, 1)), (0, 1)
    )(narrow[0], W)
    assert (for_x.dtype, for_w.dtype) == (narrow[0].dtype, W.dtype)


def test_sums_of_groups() -> None:
    numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    got = np.asarray(lax.ragged_dot_general(X, X, SIZES, numbers))
    parts = np.split(X, np.cumsum(SIZES)[:-1])
    want = np.stack([p.T @ p for p in parts])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_batches_are_contracted_as_without_groups() -> None:
    numbers = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), (0,), ())
    x = X.reshape(4, 5, 3)
    got = lax.ragged_dot_general(x, W, np.array([1, 3]), numbers)
    np.testing.assert_allclose(np.asarray(got), x @ W, rtol=1e-5, atol=1e-6)


def general(**changes: Any) -> Callable[[], Any]:
    numbers = {"contracting": ((1,), (1,)), "ragged": (0,), "groups": (0,)} | changes
    return lambda: lax.ragged_dot_general(
        X,
        W,
        SIZES,
        lax.RaggedDotDimensionNumbers(
            (numbers["contracting"], ((), ())), numbers["ragged"], numbers["groups"]
        ),
    )


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lax.ragged_dot(X[0], W, SIZES), TypeError, r"the shapes \(m, k\) and \(groups, k, n"),
    (lambda: lax.ragged_dot(X, W[0], SIZES), TypeError, "lax.ragged_dot_general takes others"),
    (lambda: lax.ragged_dot(X, W, SIZES[:2]), TypeError, "has 4 groups in dimension 0"),
    (lambda: lax.ragged_dot(X, W, SIZES[None]), TypeError, r"must have the shape \(4,\) for lhs"),
    (lambda: lax.ragged_dot(X, W, SIZES * 1.0), TypeError, "array of integers of rank 1"),
    (lambda: lax.ragged_dot(X, W, 20), TypeError, "array of integers of rank 1"),
    (lambda: lax.ragged_dot(X, W, [5, 0, 12, 3]), TypeError, "argument group_sizes to be an array"),
    (
        lambda: lax.ragged_dot(X, W, SIZES, group_offset=np.array([1])),
        NotImplementedError,
        "does not take group_offset",
    ),
    (lambda: lax.ragged_dot(X, W, SIZES, precision="all"), ValueError, "precision must be"),
    (
        lambda: lax.ragged_dot(X, W, SIZES, preferred_element_type="int32"),
        TypeError,
        "ragged_dot_general: products of float32 cannot be summed",
    ),
    (lambda: lax.ragged_dot_general(X, W, SIZES, None), TypeError, "RaggedDotDimensionNumbers"),
    (general(ragged=(0, 1)), TypeError, "must be one dimension of lhs"),
    (general(ragged=(2,)), TypeError, "must be one dimension of lhs"),
    (general(groups=()), TypeError, "must be one dimension of rhs where the ragged dimension"),
    (general(groups=(1,)), TypeError, "contracting"),
    (general(ragged=(1,)), TypeError, "must be empty where the ragged dimension of lhs is a contr"),
    (general(contracting=((0,), (1,))), TypeError, "must be empty"),
    (general(contracting=((1,), (2,))), TypeError, "contracting dimensions of equal sizes"),
    (general(contracting=3), TypeError, "dot_dimension_numbers must be"),
    (general(ragged=0), TypeError, "lhs_ragged_dimensions must be a sequence of integers"),
]


@pytest.mark.parametrize(("function", "error", "text"), ERRORS)
def test_errors(function: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        function()


def test_dimension_numbers_are_values() -> None:
    same = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    assert same == NUMBERS
    assert hash(same) == hash(NUMBERS)
    assert repr(same).startswith("RaggedDotDimensionNumbers(dot_dimension_numbers=(((1,), (1,))")
