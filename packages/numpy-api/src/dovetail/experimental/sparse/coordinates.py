"""Sparse arrays by the positions of their elements: what BCOO arrays are, without their methods.

Functions on BCOO arrays take this class, and make results of the class that they were given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from dovetail import numpy as jnp
from dovetail.experimental.sparse.entries import full_batch, inside
from dovetail.experimental.sparse.formats import JAXSparse
from dovetail.experimental.sparse.layouts import (
    Description,
    Layout,
    SparseInfo,
    bcoo_layout,
    check_batch_axes,
    with_shape,
)
from dovetail.extend.arguments import array_like, value
from dovetail.extend.avals import ArrayClass, aval_of
from dovetail.extend.batching import register_batched_node
from dovetail.extend.tracebacks import bounded
from dovetail.typing import Array


def is_array(x: Any) -> bool:
    """Whether something has a shape and a dtype, unlike what trees may hold in its place."""
    return isinstance(x, (ArrayClass, np.ndarray, np.generic))


@bounded
class Coordinates(JAXSparse):
    """Elements and their positions, with batch dimensions in front and dense ones behind.

    Args:
        args: the elements, of shape (*batch, nse, *dense), and their positions, integers of shape
            (*batch, nse, n_sparse). Batch dimensions of one of them may be 1.
        shape: sizes of all dimensions.
        indices_sorted: a promise that positions are in lexicographic order.
        unique_indices: a promise that no position is there twice.
    """

    _parts = ("data", "indices")

    #: The number of batch dimensions before something else took the place of the leaves.
    _n_batch: int = 0

    indices: Array
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        name = type(self).__name__
        parts = [
            value(array_like(jnp.asarray(x), name, part))
            for x, part in zip(args, self._parts, strict=True)
        ]
        super().__init__(parts, shape=shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        bcoo_layout(name, self.data, self.indices, self.shape)

    @classmethod
    def made(cls, data: Any, indices: Any, info: SparseInfo) -> Self:
        """One of parts that fit together."""
        mat = object.__new__(cls)
        mat.data, mat.indices = data, indices
        mat.shape, mat.indices_sorted, mat.unique_indices = info
        return mat

    def like(
        self,
        data: Any,
        indices: Any,
        shape: Sequence[int],
        *,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Self:
        """One of the same class."""
        return self.made(data, indices, SparseInfo(tuple(shape), indices_sorted, unique_indices))

    def with_data(self, data: Any) -> Self:
        """Other elements at the same positions."""
        return self.made(data, self.indices, self.info)

    @property
    def info(self) -> SparseInfo:
        """What is known besides the arrays."""
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def layout(self) -> Layout:
        """How many dimensions there are of each kind."""
        return bcoo_layout(
            type(self).__name__, aval_of(self.data), aval_of(self.indices), self.shape
        )

    @property
    def used(self) -> Any:
        """Which places are used, of shape (*batch, nse)."""
        first = self.n_batch
        return inside(self.indices, self.shape[first : first + self.n_sparse])

    def _description(self) -> Description:
        indices = self.indices
        known = is_array(indices) or hasattr(indices, "shape")
        return Description(self.info, max(len(indices.shape) - 2, 0) if known else self._n_batch)

    def spread(self) -> Self:
        """The array with leaves of full size along all batch dimensions."""
        if not (is_array(self.data) and is_array(self.indices) and self.n_batch):
            return self
        layout = self.layout
        data, indices = (
            full_batch(x, layout.n_batch, layout.batch) for x in (self.data, self.indices)
        )
        return self.made(data, indices, self.info)

    def check_axes(self, what: str, added: bool) -> None:
        """Refuse axes of `vmap`, which stand in the place of leaves, that are not of the batch."""
        axes: list[Any] = [self.data, self.indices]
        check_batch_axes(
            type(self).__name__, Description(self.info, self._n_batch), axes, what, added
        )

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence[Any]) -> Self:
        """The inverse of `tree_flatten`; batch dimensions of the leaves become those of the array.

        Transformations that map over the leaves take batch dimensions away or add some.
        """
        data, indices = children
        info, n_before = aux_data
        if is_array(data) and is_array(indices) and indices.ndim >= 2:
            n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
            n_dense = data.ndim - 1 - n_batch
            if 0 <= n_dense <= len(info.shape) - n_sparse:
                parts: list[Any] = [data.shape[:n_batch], indices.shape[:n_batch]]
                shape = with_shape(info.shape, n_sparse + n_dense, parts, n_batch)
                if shape != info.shape:
                    info = info._replace(shape=shape)
        mat = cls.made(data, indices, info)
        mat._n_batch = n_before
        return mat

    @property
    def nse(self) -> int:
        """The number of stored elements for each index of the batch."""
        return int(self.indices.shape[-2])

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return len(self.indices.shape) - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return int(self.indices.shape[-1])

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return self.ndim - self.n_batch - self.n_sparse

    def _further(self) -> str:
        return "".join(
            f", {name}={count}"
            for name, count in (("n_batch", self.n_batch), ("n_dense", self.n_dense))
            if count
        )


register_batched_node(Coordinates)
