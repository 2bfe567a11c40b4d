"""The formulas of products of sparse and dense arrays.

A product of dimensions that are stored is gathered, multiplied and scattered: for each stored
element the part of the dense operand that meets it, times the element, is added to the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.entries import (
    full_batch,
    gathered,
    inside,
    masked,
    scattered,
    wide_dtype,
)
from dovetail.experimental.sparse.layouts import Layout
from dovetail.extend.avals import aval_of

Shape = tuple[int, ...]
DotNumbers = tuple[tuple[Shape, Shape], tuple[Shape, Shape]]


def checked_numbers(
    what: str, numbers: Any, lhs_shape: Shape, rhs_shape: Shape
) -> tuple[DotNumbers, Shape]:
    """Dimension numbers of a product as tuples, and the shape of the result.

    Raises:
        TypeError: they do not fit the shapes.
    """
    try:
        (lc, rc), (lb, rb) = numbers
        lc, rc, lb, rb = (tuple(int(d) for d in dims) for dims in (lc, rc, lb, rb))
    except (TypeError, ValueError):
        raise TypeError(
            f"{what}: dimension_numbers must be ((lhs_contracting, rhs_contracting), (lhs_batch, "
            f"rhs_batch)), each a sequence of integers, got {numbers!r}"
        ) from None
    for name, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        if len(left) != len(right):
            raise TypeError(
                f"{what}: as many {name} dimensions are needed of one operand as of the other, got "
                f"{left} and {right}"
            )
    for name, dims, shape in (("lhs", (*lc, *lb), lhs_shape), ("rhs", (*rc, *rb), rhs_shape)):
        if len({*dims}) != len(dims) or not all(0 <= d < len(shape) for d in dims):
            raise TypeError(
                f"{what}: contracting and batch dimensions of {name} must be different dimensions "
                f"of its shape {shape}, got {dims}"
            )
    for name, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        sizes = tuple(lhs_shape[d] for d in left), tuple(rhs_shape[d] for d in right)
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"{what}: {name} dimensions must have the same sizes, got {sizes[0]} of lhs with "
                f"shape {lhs_shape} and {sizes[1]} of rhs with shape {rhs_shape}"
            )
    free = [n for d, n in enumerate(lhs_shape) if d not in (*lc, *lb)]
    free += [n for d, n in enumerate(rhs_shape) if d not in (*rc, *rb)]
    shape = (*(lhs_shape[d] for d in lb), *free)
    return ((lc, rc), (lb, rb)), shape


def free_dims(ndim: int, *taken: Shape) -> Shape:
    """The dimensions that are neither contracted nor of the batch."""
    gone = {d for dims in taken for d in dims}
    return tuple(d for d in range(ndim) if d not in gone)


def is_by_rows(layout: Layout, rhs: Any, numbers: DotNumbers, dtype: Any) -> bool:
    """Whether a product is one of a matrix and a dense matrix, row by row."""
    return (
        (layout.n_batch, layout.n_sparse, layout.n_dense) == (0, 2, 0)
        and aval_of(rhs).ndim == 2
        and numbers == (((1,), (0,)), ((), ()))
        and wide_dtype(dtype) == dtype
    )


def sparse_times_dense(
    layout: Layout, data: Any, indices: Any, rhs: Any, numbers: DotNumbers, dtype: Any
) -> Any:
    """`lax.dot_general` of a sparse array and a dense one.

    Args:
        layout: of the sparse array.
        data: its elements.
        indices: their positions.
        rhs: the dense array.
        numbers: which dimensions are contracted, and which are of the batch of the product.
        dtype: of the result.
    """
    (lc, rc), (lb, rb) = numbers
    n_batch, n_sparse = layout.n_batch, layout.n_sparse
    ndim, rhs_aval = len(layout.shape), aval_of(rhs)
    partner = dict(zip((*lc, *lb), (*rc, *rb), strict=True))
    sparse = range(n_batch, n_batch + n_sparse)
    contracted = [d for d in sparse if d in partner]
    free_sparse = [d for d in sparse if d not in lc]
    narrow = dtype
    wide = wide_dtype(dtype)
    data, rhs = data.astype(wide), rhs.astype(wide)

    # What an unused place holds, even nan, must meet no element, nor any cotangent.
    data = full_batch(masked(data, inside(indices, layout.sparse)), n_batch, layout.batch)
    if contracted:
        columns = indices[..., np.array([d - n_batch for d in contracted])]
        # The dimensions of rhs that meet those of the batch come first, then the contracted ones.
        shared = [d for d in range(n_batch) if d in partner]
        order = [partner[d] for d in (*shared, *contracted)]
        rest = free_dims(rhs_aval.ndim, tuple(order))
        rhs = jnp.transpose(rhs, (*order, *rest))
        columns = full_batch(columns, n_batch, layout.batch)
        lonely = [d for d in range(n_batch) if d not in partner]
        n_shared, n_contracted = len(shared), len(contracted)
        if lonely:
            # Batch dimensions that rhs has not: many more places of the same array.
            moved = (*shared, *lonely, n_batch, n_batch + 1)
            columns = jnp.transpose(columns, moved)
            lead = columns.shape[:n_shared]
            columns = columns.reshape(*lead, -1, n_contracted)
        dims = range(n_shared, n_shared + n_contracted)
        parts = gathered(rhs, columns, n_shared, dims)
        if lonely:
            sizes = [layout.shape[d] for d in lonely]
            parts = parts.reshape(*parts.shape[:n_shared], *sizes, -1, *parts.shape[n_shared + 1 :])
        rhs_labels = [*shared, *lonely, ndim, *(-1 - d for d in rest)]
    else:
        parts = rhs
        rhs_labels = [-1 - d for d in range(rhs_aval.ndim)]
        for left, right in partner.items():
            rhs_labels[right] = left
    for left, right in partner.items():
        # Dense dimensions that are contracted are the same label on both sides.
        rhs_labels = [left if label == -1 - right else label for label in rhs_labels]

    # Each dimension of lhs is its own label; ndim is that of places.
    dense = range(n_batch + n_sparse, ndim)
    data_labels = [*range(n_batch), ndim, *dense]
    rhs_free = [-1 - d for d in free_dims(rhs_aval.ndim, rc, rb)]
    kept_dense = [d for d in dense if d not in lc]
    places = [ndim] if free_sparse else []
    kept_batch = [d for d in range(n_batch) if places or d not in lc]
    out_labels = [*kept_batch, *places, *kept_dense, *rhs_free]
    product = _einsum(data, data_labels, parts, rhs_labels, out_labels)
    if free_sparse:
        columns = indices[..., np.array([d - n_batch for d in free_sparse])]
        columns = full_batch(columns, n_batch, layout.batch)
        shape = (
            *layout.batch,
            *(layout.shape[d] for d in free_sparse),
            *product.shape[n_batch + 1 :],
        )
        product = scattered(product, columns, shape, n_batch)
        gone = tuple(d for d in range(n_batch) if d in lc)
        product = jnp.sum(product, gone, dtype=product.dtype) if gone else product
    have = [d for d in range(n_batch) if d not in lc] + free_sparse + kept_dense + rhs_free
    want = [*lb, *free_dims(ndim, lc, lb), *rhs_free]
    return jnp.transpose(product, [have.index(label) for label in want]).astype(narrow)


def _einsum(
    x: Any, x_labels: Sequence[int], y: Any, y_labels: Sequence[int], out: Sequence[int]
) -> Any:
    """The sum of products, by labels of dimensions."""
    shared = [label for label in x_labels if label in y_labels]
    batch = [label for label in shared if label in out]
    gone = [label for label in shared if label not in out]
    # What only one operand has and the result has not is summed before.
    x, x_labels = _summed(x, x_labels, [*y_labels, *out])
    y, y_labels = _summed(y, y_labels, [*x_labels, *out])
    if not gone:
        return _spread(x, x_labels, out) * _spread(y, y_labels, out)
    numbers = (
        (_where(x_labels, gone), _where(y_labels, gone)),
        (_where(x_labels, batch), _where(y_labels, batch)),
    )
    result = lax.dot_general(x, y, numbers, precision=lax.Precision.HIGHEST)
    have = [*batch, *(label for label in x_labels if label not in shared)]
    have += [label for label in y_labels if label not in shared]
    return jnp.transpose(result, [have.index(label) for label in out])


def _spread(x: Any, labels: Sequence[int], out: Sequence[int]) -> Any:
    """An operand with the dimensions of the result, of size 1 where it has none."""
    x = jnp.transpose(x, [list(labels).index(label) for label in out if label in labels])
    sizes = dict(zip(labels, (aval_of(x).shape[i] for i in _ranks(labels, out)), strict=True))
    return x.reshape([sizes.get(label, 1) for label in out])


def _ranks(labels: Sequence[int], out: Sequence[int]) -> list[int]:
    kept = [label for label in out if label in labels]
    return [kept.index(label) for label in labels]


def _summed(x: Any, labels: Sequence[int], needed: Sequence[int]) -> tuple[Any, list[int]]:
    gone = tuple(i for i, label in enumerate(labels) if label not in needed)
    kept = [label for label in labels if label in needed]
    return (jnp.sum(x, gone, dtype=x.dtype) if gone else x), kept


def _where(labels: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
    return tuple(list(labels).index(label) for label in wanted)
