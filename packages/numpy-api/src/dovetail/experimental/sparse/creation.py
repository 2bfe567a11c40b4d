"""Sparse arrays without a dense one: `empty`, `eye`, `random_bcoo`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail import numpy as jnp
from dovetail import random, vmap
from dovetail.experimental.sparse.bcoo import BCOO
from dovetail.experimental.sparse.bcoo_elements import counts, split_shape
from dovetail.experimental.sparse.bcoo_order import bcoo_sort_indices
from dovetail.experimental.sparse.bcsr import BCSR
from dovetail.experimental.sparse.formats import JAXSparse
from dovetail.experimental.sparse.layouts import SparseInfo, index_dtype_for
from dovetail.experimental.sparse.matrices import COO, CSC, CSR
from dovetail.extend import dtypes
from dovetail.extend.arguments import canonical_shape, integer
from dovetail.typing import Array, DTypeLike

_FORMATS: dict[str, Any] = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


def _format(what: str, name: Any) -> Any:
    found = _FORMATS.get(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(
            f"{what}: sparse_format must be one of {', '.join(map(repr, _FORMATS))}, got {name!r}"
        )
    return found


def _dtype(dtype: Any) -> Any:
    return dtypes.canonicalize_dtype(dtypes.as_dtype(float if dtype is None else dtype))


def _options(what: str, kind: str, given: dict[str, Any], batched: bool) -> dict[str, int]:
    """The further arguments of a format: numbers of dimensions and of places."""
    allowed = ("n_batch", "n_dense", "nse") if batched else ()
    for name in given:
        if name not in allowed:
            raise TypeError(f"{what} with sparse_format={kind!r} has no argument {name!r}")
    return {name: integer(what, name, number) for name, number in given.items()}


def _unused(
    what: str, shape: Any, dtype: Any, index_dtype: Any, n_batch: int, n_dense: int, nse: int
) -> BCOO:
    """A BCOO array whose places are unused."""
    n_batch, n_dense = counts(what, len(shape), n_batch, n_dense)
    if nse < 0:
        raise ValueError(f"{what}: nse must not be negative, got {nse}")
    batch, sparse, dense = split_shape(shape, n_batch, n_dense)
    positions = index_dtype_for(what, index_dtype, sparse)
    data = jnp.zeros((*batch, nse, *dense), dtype)
    unused = np.broadcast_to(np.array(sparse, positions), (*batch, nse, len(sparse)))
    return BCOO.made(data, jnp.asarray(unused), SparseInfo(shape, True, True))


def empty(
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: int,
) -> JAXSparse:
    """A sparse array that is 0.

    Args:
        shape: sizes of its dimensions.
        dtype: of its elements.
        index_dtype: of the positions.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        **kwds: `n_batch`, `n_dense` and `nse`, the number of unused places, of BCOO and BCSR.

    Raises:
        ValueError: there is no such format, or the shape does not fit it.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.empty((2, 3), nse=4)
        BCOO(float32[2, 3], nse=4)
    """
    kind = _format("empty", sparse_format)
    sizes = canonical_shape("empty", shape)
    options = _options("empty", sparse_format, kwds, kind in (BCOO, BCSR))
    given = {"n_batch": 0, "n_dense": 0, "nse": 0, **options}
    if kind not in (BCOO, BCSR) and len(sizes) != 2:
        raise ValueError(f"empty: {kind.__name__} must have two dimensions, got the shape {sizes}")
    made = _unused("empty", sizes, _dtype(dtype), index_dtype, **given)
    result: JAXSparse = made if kind is BCOO else kind.from_bcoo(made)
    return result


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: int,
) -> JAXSparse:
    """A sparse matrix with ones on a diagonal.

    Args:
        N: number of rows.
        M: number of columns, by default `N`.
        k: which diagonal; positive ones are above the main one.
        dtype: of its elements.
        index_dtype: of the positions.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        **kwds: `n_batch` and `n_dense` of BCOO and BCSR.

    Raises:
        ValueError: there is no such format.

    Differs:
        There are matrices of the format "bcsr", which is a KeyError in JAX.

        >>> from dovetail.experimental import sparse
        >>> sparse.eye(3, sparse_format="bcsr")
        BCSR(float32[3, 3], nse=3)

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.eye(2, 3, k=1).todense()
        Array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    kind = _format("eye", sparse_format)
    shape = canonical_shape("eye", (N, N if M is None else M))
    n_rows, n_columns = shape
    offset = integer("eye", "k", k)
    first_row, first_column = max(-offset, 0), max(offset, 0)
    count = max(min(n_rows - first_row, n_columns - first_column), 0)
    options = _options("eye", sparse_format, kwds, kind in (BCOO, BCSR))
    if "nse" in options:
        raise TypeError("eye has no argument 'nse': it has as many places as ones")
    positions = index_dtype_for("eye", index_dtype, shape)
    diagonal = np.arange(count, dtype=positions)[:, None]
    first = np.array([first_row, first_column], positions)
    data = jnp.ones(count, _dtype(dtype))
    made = BCOO.made(data, jnp.asarray(diagonal + first), SparseInfo(shape, True, True))
    if options:
        made = made.update_layout(**options, on_inefficient=None)
    result: JAXSparse = made if kind is BCOO else kind.from_bcoo(made)
    return result


def random_bcoo(
    key: Array,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = jnp.float64,
    indices_dtype: DTypeLike | None = None,
    nse: float | int = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Array] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """A BCOO array with random elements at random positions.

    Args:
        key: a random key.
        shape: sizes of its dimensions.
        dtype: of its elements.
        indices_dtype: of the positions, by default the integers that are default.
        nse: how many elements are stored for each index of the batch; below 1, the part of all.
        n_batch: how many leading dimensions are batch dimensions.
        n_dense: how many trailing dimensions are stored whole.
        unique_indices: whether no position is there twice.
        sorted_indices: whether positions are sorted.
        generator: draws the elements, as ``generator(key, shape=..., dtype=..., **kwds)``.
        **kwds: further arguments of `generator`.

    Raises:
        ValueError: `nse` is negative, or more than there are positions.

    Differs:
        Elements of the default dtype are float32 without a warning where there is no float64.
        The positions and elements that a key gives are others than in JAX.

        >>> from dovetail.experimental import sparse
        >>> sparse.random_bcoo(dt.random.key(0), (3, 4)).dtype
        dtype('float32')

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.random_bcoo(dt.random.key(0), (3, 4), nse=5)
        BCOO(float32[3, 4], nse=5)
    """
    what = "random_bcoo"
    sizes = canonical_shape(what, shape)
    n_batch, n_dense = counts(what, len(sizes), n_batch, n_dense)
    batch, sparse, dense = split_shape(sizes, n_batch, n_dense)
    total = math.prod(sparse)
    number = math.ceil(nse * total) if 0 < nse < 1 else nse
    if number != int(number) or not 0 <= number <= total:
        raise ValueError(
            f"{what}: nse must be from 0 to {total}, the number of positions, or a part of them "
            f"below 1; got {nse}"
        )
    count = int(number)
    default = dtypes.default_dtype("i") if indices_dtype is None else indices_dtype
    positions = index_dtype_for(what, default, sparse)
    of_positions, of_elements = random.split(key)

    def drawn(key: Any) -> Any:
        if unique_indices:
            flat = random.choice(key, total, (count,), replace=False)
        else:
            flat = random.randint(key, (count,), 0, max(total, 1))
        columns = jnp.unravel_index(flat, sparse)
        return jnp.stack(columns, -1).astype(positions)

    if not sparse:
        indices = jnp.zeros((*batch, count, 0), positions)
    else:
        keys = random.split(of_positions, math.prod(batch))
        indices = vmap(drawn)(keys).reshape(*batch, count, len(sparse))
    data = generator(of_elements, shape=(*batch, count, *dense), dtype=_dtype(dtype), **kwds)
    made = BCOO.made(data, indices, SparseInfo(sizes, False, bool(unique_indices)))
    return bcoo_sort_indices(made) if sorted_indices else made
