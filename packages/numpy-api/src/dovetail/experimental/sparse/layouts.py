"""How the arrays of a sparse array fit together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dovetail.extend import dtypes

Shape = tuple[int, ...]


class SparseInfo(NamedTuple):
    """What is known of a sparse array besides its arrays.

    Attributes:
        shape: sizes of the dimensions.
        indices_sorted: whether the positions are in lexicographic order.
        unique_indices: whether no position is there twice.
    """

    shape: Shape
    indices_sorted: bool = False
    unique_indices: bool = False


class Description(NamedTuple):
    """What a tree keeps of a sparse array besides its leaves.

    Attributes:
        info: what is known of it.
        n_batch: the number of batch dimensions.
    """

    info: SparseInfo
    n_batch: int


def check_batch_axes(
    name: str, description: Description, axes: Sequence[int], what: str, added: bool
) -> None:
    """Refuse axes of `vmap` that are not batch dimensions of a sparse array.

    Args:
        name: of its class.
        description: of the array.
        axes: one for each leaf; hugely negative for none.
        what: a phrase for the axes.
        added: whether the axis is put in.
    """
    known = {axis for axis in axes if axis > -(1 << 31)}
    if not known:
        return
    n_batch = description.n_batch
    fitting = range(n_batch + 1) if added else range(n_batch)
    if len(known) > 1 or len(known) < len(set(axes)) or not known <= set(fitting):
        given = sorted(known)[0] if len(known) == 1 else "different ones for its arrays"
        allowed = f"0 to {fitting[-1]}" if len(fitting) > 1 else "0"
        advice = (
            f"it must be {allowed}, and one for all of its arrays"
            if fitting
            else "mat.update_layout(n_batch=1, on_inefficient=None) makes its first dimension one"
        )
        raise ValueError(
            f"{what} is {given} for a {name} array of shape {description.info.shape} with "
            f"n_batch={n_batch}, of which batch dimensions alone can be mapped: {advice}"
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """How many dimensions of a BCOO or BCSR array are stored in which way.

    Attributes:
        n_batch: leading dimensions that have positions of their own for each index.
        n_sparse: dimensions that positions are given for.
        n_dense: trailing dimensions that are stored whole.
        nse: stored elements.
        shape: sizes of all dimensions.
    """

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int
    shape: Shape

    @property
    def batch(self) -> Shape:
        """Sizes of the batch dimensions."""
        return self.shape[: self.n_batch]

    @property
    def sparse(self) -> Shape:
        """Sizes of the sparse dimensions."""
        return self.shape[self.n_batch : self.n_batch + self.n_sparse]

    @property
    def dense(self) -> Shape:
        """Sizes of the dense dimensions."""
        return self.shape[self.n_batch + self.n_sparse :]


def _fits_batch(part: Shape, batch: Shape) -> bool:
    return len(part) == len(batch) and all(
        n in (1, size) for n, size in zip(part, batch, strict=True)
    )


def require_positions(what: str, name: str, array: Any) -> None:
    """Refuse positions that are not integers."""
    if dtypes.kind_of(array.dtype) not in ("i", "u"):
        raise TypeError(f"{what}: {name} must be integers, got {array.dtype}")


def bcoo_layout(what: str, data: Any, indices: Any, shape: Shape) -> Layout:
    """The layout of a BCOO array.

    Args:
        what: name of the function or class, for messages.
        data: its elements, or their aval.
        indices: their positions, or their aval.
        shape: of the whole.

    Raises:
        ValueError: they do not fit together.
        TypeError: positions are not integers.
    """
    require_positions(what, "indices", indices)
    if len(indices.shape) < 2:
        raise ValueError(
            f"{what}: indices must have the shape (*batch, nse, n_sparse), got {indices.shape}"
        )
    n_batch, (nse, n_sparse) = len(indices.shape) - 2, indices.shape[-2:]
    n_dense = len(shape) - n_batch - n_sparse
    if n_dense < 0:
        raise ValueError(
            f"{what}: indices of shape {indices.shape} tell of {n_batch} batch and {n_sparse} "
            f"sparse dimensions, more than there are in the shape {shape}"
        )
    batch = shape[:n_batch]
    if not _fits_batch(indices.shape[:n_batch], batch):
        raise ValueError(
            f"{what}: the batch dimensions of indices of shape {indices.shape} must be 1 or those "
            f"of the shape {shape}"
        )
    expected = (nse, *shape[n_batch + n_sparse :])
    if not _fits_batch(data.shape[:n_batch], batch) or data.shape[n_batch:] != expected:
        wanted = ", ".join(map(str, (*batch, *expected)))
        raise ValueError(
            f"{what}: data for indices of shape {indices.shape} (nse={nse}, n_batch={n_batch}, "
            f"n_dense={n_dense}) and the shape {shape} must have the shape ({wanted}), got "
            f"{data.shape}"
        )
    return Layout(n_batch, n_sparse, n_dense, nse, shape)


def bcsr_layout(what: str, data: Any, indices: Any, indptr: Any, shape: Shape) -> Layout:
    """The layout of a BCSR array, as `bcoo_layout` for BCOO; it has two sparse dimensions."""
    require_positions(what, "indices", indices)
    require_positions(what, "indptr", indptr)
    n_batch = len(indices.shape) - 1
    n_dense = len(shape) - n_batch - 2
    if n_batch < 0 or n_dense < 0 or len(indptr.shape) != n_batch + 1:
        raise ValueError(
            f"{what}: indices of shape (*batch, nse) and indptr of shape (*batch, rows + 1) tell "
            f"of two sparse dimensions; got {indices.shape} and {indptr.shape} for the shape "
            f"{shape}"
        )
    batch, rows, nse = shape[:n_batch], shape[n_batch], indices.shape[-1]
    if indptr.shape[-1] != rows + 1:
        raise ValueError(
            f"{what}: indptr must have one element more than there are rows, {rows + 1} for the "
            f"shape {shape}, got the shape {indptr.shape}"
        )
    for name, part in (("indices", indices), ("indptr", indptr)):
        if not _fits_batch(part.shape[:n_batch], batch):
            raise ValueError(
                f"{what}: the batch dimensions of {name} of shape {part.shape} must be 1 or those "
                f"of the shape {shape}"
            )
    expected = (nse, *shape[n_batch + 2 :])
    if not _fits_batch(data.shape[:n_batch], batch) or data.shape[n_batch:] != expected:
        wanted = ", ".join(map(str, (*batch, *expected)))
        raise ValueError(
            f"{what}: data for indices of shape {indices.shape} and the shape {shape} must have "
            f"the shape ({wanted}), got {data.shape}"
        )
    return Layout(n_batch, 2, n_dense, nse, shape)


def position_dtype(dtype: Any, sizes: Shape) -> Any:
    """A dtype of positions that can also say that there is none, by the size itself.

    Args:
        dtype: the one to keep if it can.
        sizes: of the dimensions.
    """
    largest = max(sizes, default=0)
    if largest <= dtypes.iinfo(dtype).max:
        return dtype
    return np.dtype(np.int32 if largest < 2**31 else np.int64)


def index_dtype_for(what: str, index_dtype: Any, sizes: Shape) -> Any:
    """The dtype that a user asks positions to have, checked.

    Raises:
        TypeError: it is not one of integers.
        OverflowError: it cannot hold the positions.
    """
    dtype = dtypes.canonicalize_dtype(dtypes.as_dtype(index_dtype))
    if dtypes.kind_of(dtype) not in ("i", "u"):
        raise TypeError(f"{what}: index_dtype must be one of integers, got {dtype}")
    largest = max(sizes, default=0)
    if largest > dtypes.iinfo(dtype).max:
        raise OverflowError(
            f"{what}: index_dtype {dtype} does not hold positions up to {largest}, which stands "
            "for unused places; give a wider one"
        )
    return dtype


def with_shape(shape: Shape, n_tail: int, parts: list[Shape | None], n_batch: int) -> Shape:
    """The shape of a sparse array whose leaves may have got other batch dimensions.

    A transformation that maps over leaves, as `vmap` and `scan` do, takes batch dimensions from
    them or gives them some.

    Args:
        shape: what it was.
        n_tail: how many dimensions are not of the batch.
        parts: batch dimensions of the leaves.
        n_batch: how many there are.

    Returns:
        The shape with the batch dimensions of the leaves.
    """
    before = shape[: len(shape) - n_tail]
    sizes = []
    for i in range(n_batch):
        found = {part[i] for part in parts if part is not None} - {1}
        known = before[i] if len(before) == n_batch else 1
        sizes.append(found.pop() if len(found) == 1 else known)
    return (*sizes, *shape[len(shape) - n_tail :])
