"""BCOO arrays do what dense arrays do, in every layout, with unused places and repeated positions.

Each operation is compared with NumPy's, called and compiled, and its derivative in the elements
with that of the dense operation at their positions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental import sparse
from dovetail.experimental.sparse import BCOO

SHAPE = (3, 4, 2)
SOME = [(0, 0), (1, 1), (0, 3)]
LAYOUTS = [(b, d) for b, d in itertools.product(range(4), repeat=2) if b + d <= 3]


def stored(n_batch: int, n_dense: int, dtype: str = "float32", shape: Any = SHAPE) -> BCOO:
    """An array with a repeated position, an unused place that holds nan, and a negative one."""
    rng = np.random.default_rng(10 * n_batch + n_dense)
    end = len(shape) - n_dense
    batch, sizes, dense = shape[:n_batch], shape[n_batch:end], shape[end:]
    nse = 5
    indices = np.zeros((*batch, nse, len(sizes)), np.int32)
    for i, size in enumerate(sizes):
        indices[..., i] = rng.integers(0, size, (*batch, nse))
    data = rng.integers(-4, 5, (*batch, nse, *dense)).astype(dtype)
    if sizes:
        indices[..., 1, :] = indices[..., 0, :]
        indices[..., 2, -1] = sizes[-1]
        indices[..., 3, 0] = -1
        if np.dtype(dtype).kind in "fc":
            data[(*[slice(None)] * n_batch, slice(2, 4))] = np.nan
    return BCOO((data, indices), shape=shape)


def dense_of(mat: Any) -> np.ndarray:
    """The dense array, by NumPy alone."""
    data, indices = np.asarray(mat.data), np.asarray(mat.indices)
    end = mat.ndim - mat.n_dense
    batch, sizes = mat.shape[: mat.n_batch], mat.shape[mat.n_batch : end]
    data = np.broadcast_to(data, (*batch, *data.shape[mat.n_batch :]))
    indices = np.broadcast_to(indices, (*batch, *indices.shape[mat.n_batch :]))
    result = np.zeros(mat.shape, data.dtype)
    for at in np.ndindex(*batch):
        for k in range(mat.nse):
            position = tuple(indices[(*at, k)])
            if all(0 <= i < n for i, n in zip(position, sizes, strict=True)):
                result[(*at, *position)] += data[(*at, k)]
    return result


def value_of(x: Any) -> np.ndarray:
    return dense_of(x) if isinstance(x, BCOO) else np.asarray(x)


def same(found: Any, expected: Any) -> None:
    got = value_of(found)
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


VECTOR = np.array([1.0, -2.0], np.float32)
RHS = np.random.default_rng(1).integers(-3, 4, (2, 5)).astype(np.float32)
LHS = np.random.default_rng(2).integers(-3, 4, (6, 4)).astype(np.float32)
STACK = np.random.default_rng(3).integers(-3, 4, (3, 2, 5)).astype(np.float32)
WHOLE = np.random.default_rng(4).integers(-3, 4, SHAPE).astype(np.float32)
ROWS = np.array([2, 0, 2])
COLUMNS = np.array([[1, 3], [0, 0]])

#: Functions that are the same for sparse arrays and for NumPy's.
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "todense": lambda x: x.todense() if isinstance(x, BCOO) else x,
    "neg": lambda x: -x,
    "pos": lambda x: +x,
    "abs": abs,
    "add": lambda x: x + x,
    "add_other": lambda x: x + x[::-1],
    "add_dense": lambda x: x + WHOLE,
    "dense_add": lambda x: WHOLE + x,
    "sub": lambda x: x - 2 * x,
    "sub_dense": lambda x: x - WHOLE,
    "dense_sub": lambda x: WHOLE - x,
    "mul": lambda x: x * 2.5,
    "mul_array": lambda x: np.float32(2.5) * x,
    "mul_vector": lambda x: x * VECTOR,
    "vector_mul": lambda x: VECTOR * x,
    "mul_column": lambda x: x * LHS[0][:, None],
    "mul_dense": lambda x: x * WHOLE,
    "mul_wider": lambda x: x * np.ones((2, 1, 1, 1), np.float32),
    "mul_sparse": lambda x: x * x[::-1],
    "div": lambda x: x / 4,
    "div_vector": lambda x: x / VECTOR,
    "power": lambda x: x**2,
    "matmul_vector": lambda x: x @ VECTOR,
    "matmul": lambda x: x @ RHS,
    "matmul_batch": lambda x: x @ STACK,
    "rmatmul": lambda x: LHS @ x,
    "matmul_sparse": lambda x: x @ x.transpose((0, 2, 1)),
    "T": lambda x: x.T,
    "transpose": lambda x: x.transpose((1, 0, 2)),
    "reshape": lambda x: x.reshape(4, 6),
    "reshape_tuple": lambda x: x.reshape((3, -1)),
    "flat": lambda x: x.reshape(-1),
    "sum": lambda x: x.sum(),
    "sum_first": lambda x: x.sum(0),
    "sum_last": lambda x: x.sum(axis=-1),
    "sum_some": lambda x: x.sum((0, 2)),
    "sum_kept": lambda x: x.sum(1, keepdims=True),
    "item": lambda x: x[1],
    "items": lambda x: x[1, -1],
    "element": lambda x: x[1, 2, 0],
    "part": lambda x: x[1:, ::2],
    "column": lambda x: x[..., 1],
    "reversed": lambda x: x[::-1, :, ::-1],
    "new": lambda x: x[None],
    "new_inside": lambda x: x[:, None],
    "rows": lambda x: x[ROWS],
    "columns": lambda x: x[:, COLUMNS],
    "both": lambda x: x[ROWS, COLUMNS[0].sum() - 2],
    "pairs": lambda x: x[ROWS, np.array([3, 1, 0])],
}
#: Of operations that do alike, one.
DIFFERENTIATED = (
    *("abs", "dense_sub", "mul_sparse", "div_vector", "rmatmul", "matmul_sparse", "T", "columns"),
    *("sum_some", "part"),
)
BATCHED = ("add", "mul_vector", "matmul", "T", "flat", "sum_last", "part", "rows", "reversed")


@pytest.mark.parametrize("name", OPERATIONS)
def test_as_numpy(name: str) -> None:
    operation = OPERATIONS[name]
    mats = [stored(*layout) for layout in SOME]
    with dt.optimization_level("O0"):
        results = dt.jit(lambda mats: [operation(mat) for mat in mats])(mats)
    for layout, mat, result in zip(SOME, mats, results, strict=True):
        try:
            same(result, operation(dense_of(mat)))
        except AssertionError as error:
            raise AssertionError(f"layout {layout}: {error}") from None


def test_calls_are_as_compiled() -> None:
    mat = stored(1, 0)
    for name in (
        "add",
        "mul_sparse",
        "matmul",
        "matmul_sparse",
        "T",
        "flat",
        "part",
        "rows",
        "sum",
    ):
        same(OPERATIONS[name](mat), OPERATIONS[name](dense_of(mat)))


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_the_derivative_is_that_of_the_dense_array(name: str) -> None:
    operation = OPERATIONS[name]

    def gradients(mats: list[BCOO]) -> Any:
        def total(datas: list[Any]) -> Any:
            made = [mat.with_data(data) for mat, data in zip(mats, datas, strict=True)]
            return sum((sparse.todense(operation(mat)) ** 2).sum() for mat in made)

        return dt.grad(total)([mat.data for mat in mats])

    def dense_total(whole: Any) -> Any:
        return (operation(whole) ** 2).sum()

    mats = [stored(0, 0), stored(1, 1)]
    with dt.optimization_level("O0"):
        found_each = dt.jit(gradients)(mats)
    for mat, found in zip(mats, found_each, strict=True):
        expected = dt.grad(dense_total)(jnp.asarray(dense_of(mat)))
        at = sparse.bcoo_extract(mat, expected, assume_unique=True).data
        np.testing.assert_allclose(found, at, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", BATCHED)
def test_a_batch_is_a_loop(name: str) -> None:
    operation = OPERATIONS[name]
    mat = stored(1, 0, shape=(3, *SHAPE))
    found = dt.jit(dt.vmap(lambda one: sparse.todense(operation(one))))(mat)
    for one, expected in zip(found, dense_of(mat), strict=True):
        same(one, operation(expected))


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float16", "complex64", "bool"])
def test_dtypes(dtype: str) -> None:
    whole = np.array([[0, 1, 0], [1, 0, 1]]).astype(jnp.dtype(dtype))
    mat = BCOO.fromdense(whole)
    assert mat.dtype == mat.todense().dtype == whole.dtype
    np.testing.assert_array_equal(mat.todense(), whole)
    np.testing.assert_array_equal(mat.T.todense(), whole.T)
    np.testing.assert_array_equal(mat.sum(0).todense(), jnp.asarray(whole).sum(0))
    assert mat.sum().dtype == jnp.asarray(whole).sum().dtype
    if dtype != "bool":
        product = mat @ whole.T
        assert product.dtype == whole.dtype
        np.testing.assert_array_equal(product, whole @ whole.T)
        assert (mat + mat).dtype == whole.dtype


def test_sums_of_narrow_floats_are_rounded_once() -> None:
    mat = BCOO((np.ones(1000, "float16"), np.zeros((1000, 1), int)), shape=(1,))
    tiny = mat.with_data(jnp.full(1000, 2.0**-10, "bfloat16"))
    assert float(tiny.todense()[0]) == 1000 * 2.0**-10 or abs(float(tiny.sum()) - 0.977) < 0.01


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_change_into_each_other(layout: tuple[int, int]) -> None:
    mat = stored(*layout)
    expected = dense_of(mat)
    relaid = dt.jit(
        lambda mat: [
            mat.update_layout(n_batch=b, n_dense=d, on_inefficient=None) for b, d in LAYOUTS
        ]
    )(mat)
    for (n_batch, n_dense), found in zip(LAYOUTS, relaid, strict=True):
        assert (found.n_batch, found.n_dense, found.shape) == (n_batch, n_dense, SHAPE)
        same(found, expected)
        assert not np.isnan(np.asarray(found.todense())).any()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_from_dense_and_back(layout: tuple[int, int]) -> None:
    n_batch, n_dense = layout
    whole = WHOLE * (np.abs(WHOLE) > 1)
    mat = BCOO.fromdense(whole, n_batch=n_batch, n_dense=n_dense)
    assert (mat.n_batch, mat.n_dense, mat.n_sparse) == (n_batch, n_dense, 3 - n_batch - n_dense)
    assert mat.indices_sorted
    assert mat.unique_indices
    np.testing.assert_array_equal(mat.todense(), whole)
    wide = dt.jit(lambda x: BCOO.fromdense(x, nse=30, n_batch=n_batch, n_dense=n_dense))(whole)
    assert wide.nse == 30
    np.testing.assert_array_equal(wide.todense(), whole)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_order_and_duplicates(layout: tuple[int, int]) -> None:
    mat = stored(*layout)
    expected = dense_of(mat)
    for found in (mat.sort_indices(), mat.sum_duplicates(), mat.sum_duplicates(nse=mat.nse)):
        same(found, expected)
        assert found.indices_sorted
        positions = np.asarray(found.indices)
        for at in np.ndindex(*positions.shape[:-2]):
            rows = [tuple(row) for row in positions[at]]
            assert rows == sorted(rows)
    if not mat.n_sparse:
        return
    summed = mat.sum_duplicates(remove_zeros=False)
    assert summed.unique_indices
    assert summed.nse == max(
        len({tuple(p) for p, u in zip(*pair, strict=True) if u})
        for pair in zip(
            np.asarray(mat.indices).reshape(-1, *mat.indices.shape[-2:]),
            np.asarray(mat.used).reshape(-1, mat.nse),
            strict=True,
        )
    )


def test_zeros_are_removed_or_kept() -> None:
    mat = BCOO(([1.0, 0.0, 3.0], [[2], [0], [2]]), shape=(4,))
    assert mat.sum_duplicates().nse == 1
    assert mat.sum_duplicates(remove_zeros=False).nse == 2
    np.testing.assert_array_equal(mat.sum_duplicates(nse=1).data, [4.0])


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_concatenation(dimension: int) -> None:
    for first, second in itertools.product([(0, 0), (1, 1)], repeat=2):
        mats = [stored(*first), stored(*second) * 2]
        found = sparse.bcoo_concatenate(mats, dimension=dimension)
        same(found, np.concatenate([dense_of(mat) for mat in mats], dimension))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_broadcasting(layout: tuple[int, int]) -> None:
    mat = stored(*layout, shape=(3, 1, 2))
    for shape, dims in (
        ((3, 4, 2), (0, 1, 2)),
        ((2, 3, 1, 5, 2), (1, 2, 4)),
        ((3, 1, 2, 2), (0, 1, 2)),
    ):
        found = sparse.bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=dims)
        same(found, lax.broadcast_in_dim(dense_of(mat), shape, dims))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dynamic_slices(layout: tuple[int, int]) -> None:
    mat = stored(*layout)
    starts, sizes = (1, 3, 0), (2, 2, 1)
    found = dt.jit(lambda mat, starts: sparse.bcoo_dynamic_slice(mat, starts, sizes))(mat, starts)
    same(found, lax.dynamic_slice(dense_of(mat), starts, sizes))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_squeezing_and_reversing(layout: tuple[int, int]) -> None:
    mat = stored(*layout, shape=(1, 4, 1))
    same(sparse.bcoo_squeeze(mat, dimensions=(0, 2)), dense_of(mat)[0, :, 0])
    same(sparse.bcoo_squeeze(mat, dimensions=(-1,)), dense_of(mat)[..., 0])
    same(sparse.bcoo_rev(mat, (1, 2)), dense_of(mat)[:, ::-1, ::-1])


def test_a_product_of_many_elements_does_not_pair_all_of_them() -> None:
    rng = np.random.default_rng(0)
    left = scipy.sparse.random(200, 300, 0.02, "coo", "float32", rng)
    right = scipy.sparse.random(300, 100, 0.03, "coo", "float32", rng)
    found = BCOO.from_scipy_sparse(left) @ BCOO.from_scipy_sparse(right)
    np.testing.assert_allclose(found.todense(), (left @ right).toarray(), rtol=1e-5)
    product = BCOO.from_scipy_sparse(left) * BCOO.from_scipy_sparse(left * 2)
    assert product.nse == left.nnz
    np.testing.assert_allclose(product.todense(), left.multiply(left * 2).toarray(), rtol=1e-6)


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_from_scipy(form: str) -> None:
    matrix = scipy.sparse.random(7, 5, 0.3, form, "float32", np.random.default_rng(0))
    for mat in (BCOO.from_scipy_sparse(matrix), BCOO.from_scipy_sparse(matrix, n_batch=1)):
        np.testing.assert_array_equal(mat.todense(), matrix.toarray())


def test_one_batch_of_positions_stands_for_all() -> None:
    data, indices = np.arange(6.0).reshape(3, 2), np.array([[[0], [2]]])
    mat = BCOO((data, indices), shape=(3, 4))
    expected = np.zeros((3, 4))
    expected[:, [0, 2]] = data
    same(mat, expected)
    for name in ("T", "sum_first", "sum_last", "item"):
        same(OPERATIONS[name](mat), OPERATIONS[name](expected))
    same(mat @ np.ones(4), expected @ np.ones(4))
    same(mat.sort_indices(), expected)
    same(mat[np.array([1, 0])], expected[[1, 0]])


def test_leaves_say_what_the_batch_is() -> None:
    mats = BCOO.fromdense(np.ones((4, 2, 3)), n_batch=1)
    total, parts = lax.scan(lambda s, mat: (s + mat.sum(), mat.T), 0.0, mats)
    assert float(total) == 24
    assert (parts.shape, parts.n_batch) == ((4, 3, 2), 1)
    first = dt.tree.map(lambda x: x[0], mats)
    assert first.shape == (2, 3)
    assert dt.vmap(lambda mat: mat)(mats).shape == (4, 2, 3)
    made = dt.vmap(lambda x: BCOO.fromdense(x, nse=2))(np.ones((4, 2, 3)))
    assert (made.shape, made.n_batch) == ((4, 2, 3), 1)


def test_trees() -> None:
    mat = BCOO.fromdense(np.eye(3))
    (paths, tree) = dt.tree.flatten_with_path({"a": mat})
    assert [dt.tree_util.keystr(path) for path, _ in paths] == ["['a'].data", "['a'].indices"]
    assert hash(tree) == hash(dt.tree.structure({"a": mat}))
    again = dt.tree.unflatten(tree, [leaf for _, leaf in paths])["a"]
    assert (again.shape, again.unique_indices, again.indices_sorted) == ((3, 3), True, True)
    axes = dt.tree.map(lambda x: 0, mat)
    assert repr(axes) == "BCOO(0, 0, shape=(3, 3))"
    assert repr(dt.eval_shape(lambda mat: mat.T, mat)) == "BCOO(float32[3, 3], nse=3)"
    assert repr(mat) == "BCOO(float32[3, 3], nse=3)"


def test_results_of_jit_are_sparse() -> None:
    mat = stored(1, 1)
    found = dt.jit(lambda mat, x: (mat, mat * x))(mat, 2.0)[1]
    same(found, 2 * dense_of(mat))
    assert repr(found) == "BCOO(float32[3, 4, 2], nse=5, n_batch=1, n_dense=1)"


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), ()])
def test_empty_shapes(shape: tuple[int, ...]) -> None:
    mat = BCOO.fromdense(np.zeros(shape, np.float32))
    np.testing.assert_array_equal(mat.todense(), np.zeros(shape))
    np.testing.assert_array_equal(mat.T.todense(), np.zeros(shape[::-1]))
    assert float(mat.sum()) == 0
    assert (mat + mat).shape == (mat.sort_indices().sum_duplicates() * 2).shape == shape
    if len(shape) == 2:
        np.testing.assert_array_equal(mat @ np.ones((shape[1], 2)), np.zeros((shape[0], 2)))
        assert (mat @ mat.T).shape == (shape[0], shape[0])
