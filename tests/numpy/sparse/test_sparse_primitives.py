"""Every rule of every primitive on sparse arrays agrees with the others, on samples.

Samples have unused places, and positions that are there twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import numpy as jnp
from dovetail.experimental import sparse
from dovetail.experimental.sparse.layouts import SparseInfo
from dovetail.experimental.sparse.linalg import spsolve_p
from dovetail.experimental.sparse.matrix_rules import COOInfo
from dovetail.experimental.sparse.rows import csr_dot_p
from dovetail.extend import dtypes
from dovetail.testing.checks import CHECKS
from dovetail.testing.sample import Sample, across_dtypes, representative

RNG = np.random.default_rng(0)
DTYPES = ("float32", "int32", "complex64", "bfloat16")


def positions(batch: tuple[int, ...], sizes: tuple[int, ...], nse: int) -> np.ndarray:
    """Some positions, of which one is there twice, one is unused and one is negative."""
    found = np.stack([RNG.integers(0, n, (*batch, nse)) for n in sizes], -1).astype(np.int32)
    if nse > 3:
        found[..., 1, :] = found[..., 0, :]
        found[..., 2, -1] = sizes[-1]
        found[..., 3, 0] = -1
    return found


def numbers(*shape: int) -> np.ndarray:
    return RNG.integers(-3, 4, shape).astype(np.float32)


def fixed(x: np.ndarray, index: int) -> np.ndarray:
    """Another argument: positions stay in bounds where they are."""
    if x.dtype.kind in "iu":
        return x
    return np.roll(x.reshape(-1), index).reshape(x.shape)


def sample(*args: Any, linear: tuple[int, ...] = (), **params: Any) -> Sample:
    return Sample(
        args,
        params,
        linear=linear,
        vary=fixed,
        tolerance=16.0,
        signed_zeros=False,
        absolute=64.0,
    )


def stored(*args: Any, **params: Any) -> Sample:
    return sample(*args, **params).replace(differentiable=())


def in_dtypes(one: Sample, *floats: int) -> list[Sample]:
    return across_dtypes(one, DTYPES, *floats)


#: Shape, numbers of batch and dense dimensions, nse.
LAYOUTS = [
    ((3, 4), 0, 0, 6),
    ((2, 3, 4, 2), 1, 1, 5),
    ((4,), 0, 0, 5),
    ((3, 2), 0, 1, 5),
    ((2, 3), 1, 0, 4),
    ((3, 4), 0, 0, 0),
]


def arrays(shape: tuple[int, ...], n_batch: int, n_dense: int, nse: int) -> tuple[Any, Any]:
    end = len(shape) - n_dense
    batch, sizes, dense = shape[:n_batch], shape[n_batch:end], shape[end:]
    return numbers(*batch, nse, *dense), positions(batch, sizes, nse)


DATA, INDICES = arrays((3, 4), 0, 0, 6)
INDPTR = np.array([0, 2, 3, 5], np.int32)
COLUMNS = np.array([1, 3, 0, 4, 2, 1], np.int32)  # 4 is unused, and the last is in no row
INFO = SparseInfo((3, 4))
MATVEC = (((1,), (0,)), ((), ()))


def dot_samples() -> list[Sample]:
    found = []
    cases: list[tuple[int, tuple[int, ...], Any]] = [
        (0, (4, 2), MATVEC),
        (0, (4,), MATVEC),
        (0, (2, 3), (((0,), (1,)), ((), ()))),
        (0, (3, 5), (((), ()), ((0,), (0,)))),
        (1, (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
        (1, (3, 4), (((1, 2), (0, 1)), ((), ()))),
        (1, (2, 2), (((0, 3), (0, 1)), ((), ()))),
        (1, (5, 3), (((1,), (1,)), ((), ()))),
    ]
    for layout, rhs, dims in cases:
        data, indices = arrays(*LAYOUTS[layout])
        params = {
            "dimension_numbers": dims,
            "preferred_element_type": None,
            "lhs_spinfo": SparseInfo(LAYOUTS[layout][0]),
        }
        linear = (0,) if len(found) % 2 else (2,)
        found.append(sample(data, indices, numbers(*rhs), linear=linear, **params))
    found += in_dtypes(found[0], 0, 2)
    data = numbers(1, 5, 2)  # one batch stands for all
    _, indices = arrays(*LAYOUTS[1])
    params = {**found[4].params, "dimension_numbers": (((2,), (0,)), ((), ()))}
    found.append(sample(data, indices, numbers(4, 3), linear=(0,), **params))
    ordered = np.array([[0, 1], [1, 0], [1, 2], [2, 4], [3, 4]], np.int32)
    info = SparseInfo((3, 4), indices_sorted=True)
    by_rows = {**found[0].params, "lhs_spinfo": info}
    one = sample(numbers(5), ordered, numbers(4, 3), linear=(0,), **by_rows)
    return [*found, one, one.replace(linear=(2,))]


def spdot_samples() -> list[Sample]:
    params = {"preferred_element_type": None}
    found = []
    for lhs, rhs, dims in (
        ((3, 4), (4, 2), MATVEC),
        ((3, 4), (3, 5), (((0,), (0,)), ((), ()))),
        ((3, 4), (3, 4), (((0, 1), (0, 1)), ((), ()))),
        ((3, 4), (3, 5), (((), ()), ((0,), (0,)))),
        ((20, 30), (30, 40), MATVEC),
    ):
        operands = (*arrays(lhs, 0, 0, 5), *arrays(rhs, 0, 0, 4))
        infos = {"lhs_spinfo": SparseInfo(lhs), "rhs_spinfo": SparseInfo(rhs)}
        found.append(sample(*operands, dimension_numbers=dims, **infos, **params))
    batched = (*arrays((2, 3, 4), 1, 0, 5), *arrays((2, 4, 2), 1, 0, 4))
    infos = {"lhs_spinfo": SparseInfo((2, 3, 4)), "rhs_spinfo": SparseInfo((2, 4, 2))}
    dims = (((2,), (1,)), ((0,), (0,)))
    found.append(sample(*batched, dimension_numbers=dims, **infos, **params))
    return [s.replace(observe=dense_of(s)) for s in found]


def dense_of(one: Sample) -> Any:
    """The dense array of a sparse product: where its elements are is not compared."""
    lhs, rhs = one.params["lhs_spinfo"].shape, one.params["rhs_spinfo"].shape
    (lc, rc), (lb, rb) = one.params["dimension_numbers"]
    shape = [lhs[d] for d in lb]
    shape += [n for d, n in enumerate(lhs) if d not in (*lc, *lb)]
    shape += [n for d, n in enumerate(rhs) if d not in (*rc, *rb)]

    def observe(results: list[Any]) -> list[Any]:
        data, indices = results
        lead = data.ndim - (np.ndim(one.args[1]) - 1)  # those of a batch around it
        batch = tuple(data.shape[:lead])
        info = SparseInfo((*batch, *shape))
        if isinstance(data, np.ndarray) and isinstance(indices, np.ndarray):
            return [sparse.bcoo_todense_p.reference(data, indices, spinfo=info)]
        return [sparse.bcoo_todense_p.bind(data, indices, spinfo=info)]

    return observe


def placed(name: str) -> list[Sample]:
    """Samples of a primitive that rearranges places."""
    further: dict[str, Any] = {"bcoo_sum_duplicates": {"nse": 3}}
    found = []
    for layout in LAYOUTS:
        params = {"spinfo": SparseInfo(layout[0]), **further.get(name, {})}
        if name == "bcoo_transpose":
            n = len(layout[0])
            sizes = range(layout[1], n - layout[2])
            order = (*range(layout[1]), *reversed(sizes), *range(n - layout[2], n))
            params["permutation"] = order
        found.append(sample(*arrays(*layout), **params))
    found += in_dtypes(found[0], 0)
    if name == "bcoo_todense":
        return [one.replace(linear=(0,) * (one.args[0].dtype == np.float32)) for one in found]
    # Positions are not linear in elements.
    return [*found, found[1].replace(linear=(0,), observe=lambda results: results[:1])]


SPARSE = numbers(3, 4) * (RNG.random((3, 4)) < 0.6)
STACK = numbers(2, 3, 4, 2) * (RNG.random((2, 3, 4, 1)) < 0.5)
# Which elements are stored is no smooth function: the derivative has a test of its own.
FROMDENSE = {"nse": 8, "index_dtype": np.dtype(np.int32)}
COO = (DATA, INDICES[:, 0], INDICES[:, 1])
CSR = (DATA, COLUMNS, INDPTR)

SAMPLES: dict[Any, list[Sample]] = {
    sparse.bcoo_todense_p: placed("bcoo_todense"),
    sparse.bcoo_sort_indices_p: placed("bcoo_sort_indices"),
    sparse.bcoo_sum_duplicates_p: placed("bcoo_sum_duplicates"),
    sparse.bcoo_transpose_p: placed("bcoo_transpose"),
    sparse.bcoo_extract_p: [
        sample(arrays(*layout)[1], numbers(*layout[0]), linear=(1,), assume_unique=unique)
        for layout in LAYOUTS
        for unique in (True, False)
    ],
    sparse.bcoo_fromdense_p: [
        stored(SPARSE, n_batch=b, n_dense=d, **FROMDENSE) for b, d in ((0, 0), (1, 0), (0, 1))
    ]
    + [stored(STACK, n_batch=1, n_dense=1, **FROMDENSE)]
    + [stored(SPARSE, n_batch=0, n_dense=0, nse=2, index_dtype=np.dtype(np.int8))],
    sparse.bcoo_dot_general_p: dot_samples(),
    sparse.bcoo_dot_general_sampled_p: [
        sample(numbers(3, 4), numbers(4, 5), positions((), (3, 5), 6), dimension_numbers=MATVEC),
        sample(numbers(3, 4), numbers(4, 5), positions((), (3,), 6), dimension_numbers=MATVEC),
        sample(
            numbers(2, 3, 4),
            numbers(2, 5, 4),
            positions((2,), (3, 5), 6),
            dimension_numbers=(((2,), (2,)), ((0,), (0,))),
        ),
    ],
    sparse.bcoo_spdot_general_p: spdot_samples(),
    sparse.bcsr_todense_p: [sample(*CSR, linear=(0,), spinfo=INFO)],
    sparse.bcsr_extract_p: [sample(COLUMNS, INDPTR, numbers(3, 4), linear=(2,))],
    sparse.bcsr_fromdense_p: [
        stored(SPARSE, n_batch=0, n_dense=0, **FROMDENSE),
        stored(STACK, n_batch=1, n_dense=1, **FROMDENSE),
    ],
    sparse.bcsr_dot_general_p: [
        sample(
            *CSR,
            numbers(*rhs),
            linear=(linear,),
            dimension_numbers=dims,
            preferred_element_type=None,
            lhs_spinfo=INFO,
        )
        for rhs, dims in (((4, 2), MATVEC), ((4,), MATVEC), ((3, 2), (((0,), (0,)), ((), ()))))
        for linear in (0, 3)
    ],
    sparse.coo_todense_p: [sample(*COO, linear=(0,), spinfo=COOInfo((3, 4)))],
    sparse.csr_todense_p: [sample(*CSR, linear=(0,), shape=(3, 4))],
    sparse.coo_fromdense_p: [stored(SPARSE, **FROMDENSE)],
    sparse.csr_fromdense_p: [stored(SPARSE, **FROMDENSE)],
    csr_dot_p: [
        one
        for columns in (1, 3)
        for linear in (0, 3)
        for one in in_dtypes(
            sample(
                numbers(6),
                np.array([1, 3, 0, 0, 2, 1], np.int32),
                np.array([1, 2, 2, 5], np.int32),
                numbers(4, columns),
                linear=(linear,),
            ),
            0,
            3,
        )
    ],
    spsolve_p: [
        sample(
            np.array([4.0, 1.0, 3.0, 2.0, 5.0]),
            np.array([0, 2, 1, 0, 2], np.int32),
            np.array([0, 2, 3, 5], np.int32),
            np.array([1.0, 2.0, 3.0]),
            linear=(3,),
            tol=1e-6,
            reorder=1,
        ).replace(absolute=4096.0)
    ],
}
for kind, operands, more in (
    ("coo", COO, {"spinfo": COOInfo((3, 4))}),
    ("csr", CSR, {"shape": (3, 4)}),
):
    for name, tail in (("matvec", ()), ("matmat", (2,))):
        SAMPLES[getattr(sparse, f"{kind}_{name}_p")] = [
            sample(*operands, numbers(size, *tail), linear=(linear,), transpose=turned, **more)
            for turned, size in ((False, 4), (True, 3))
            for linear in (0, 3)
        ]

PUBLIC = [getattr(sparse, name) for name in sparse.__all__ if name.endswith("_p")]


def test_every_primitive_has_samples() -> None:
    assert set(PUBLIC) - set(SAMPLES) == {sparse.todense_p}  # its parameter is a tree: below


#: Most rules of these are those of the others, from which they are made.
DERIVED = {
    p for p in SAMPLES if str(p).startswith(("coo_", "csr_", "bcsr_")) and p is not csr_dot_p
}


@pytest.mark.parametrize("check", sorted(CHECKS))
@pytest.mark.parametrize("primitive", list(SAMPLES), ids=str)
def test_rules_agree(primitive: Any, check: str) -> None:
    samples = SAMPLES[primitive]
    if primitive in DERIVED or check in ("transformations_commute", "values_are_kept"):
        samples = representative(samples, 1)
    elif check in ("batch_is_loop", "jit_is_eager"):
        samples = representative(samples, 4)
    CHECKS[check](primitive, samples)


FROM_DENSE = [p for p in PUBLIC if str(p).endswith("fromdense")]


@pytest.mark.parametrize("primitive", FROM_DENSE, ids=str)
def test_the_derivative_of_what_is_stored(primitive: Any) -> None:
    """It is the tangent at the positions, whatever elements become 0."""
    params = SAMPLES[primitive][0].params
    matrix, tangent = jnp.asarray(SPARSE), jnp.asarray(numbers(3, 4))
    results, tangents = dt.jvp(lambda x: primitive.bind(x, **params), (matrix,), (tangent,))
    count = int((SPARSE != 0).sum())
    np.testing.assert_array_equal(results[0][:count], SPARSE[SPARSE != 0])
    np.testing.assert_array_equal(tangents[0][:count], np.asarray(tangent)[SPARSE != 0])
    assert not tangents[0][count:].any()


def test_the_tangent_of_positions_vanishes() -> None:
    mat = sparse.eye(3)
    _, tangent = dt.jvp(lambda data: mat.with_data(data).sort_indices(), (mat.data,), (mat.data,))
    assert tangent.indices.dtype == dtypes.float0
