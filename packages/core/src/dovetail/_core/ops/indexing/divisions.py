"""How the results of gathering and scattering are divided over the explicit axes of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail._core.trace.divisions import Labels

__all__ = ["gather_labels", "scatter_labels"]

_WHY = "takes slices at positions along"


def gather_labels(
    operand: Any, indices: Any, out: Any, numbers: Any, slice_sizes: Sequence[int]
) -> Labels:
    """Dimensions that are taken whole go together, and those of the indices.

    Args:
        operand: the aval of the operand.
        indices: the aval of the indices.
        out: the aval of the result.
        numbers: the dimension numbers.
        slice_sizes: the sizes of the slices.
    """
    batch = [("index", i) for i in range(indices.ndim - 1)]
    labels = _operand_labels(operand, numbers.operand_batching_dims, batch, numbers, slice_sizes)
    removed = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    kept = iter([own for d, own in enumerate(labels) if d not in removed])
    rest = iter(batch)
    result = [next(kept) if d in numbers.offset_dims else next(rest) for d in range(out.ndim)]
    return Labels([labels, [*batch, None]], [result], why=_WHY)


def scatter_labels(
    operand: Any, indices: Any, updates: Any, numbers: Any, sizes: Sequence[int]
) -> Labels:
    """The result is divided as the operand is.

    Args:
        operand: the aval of the operand.
        indices: the aval of the indices.
        updates: the aval of the updates.
        numbers: the dimension numbers.
        sizes: the sizes of the slices that are updated.
    """
    batch = [("index", i) for i in range(indices.ndim - 1)]
    labels = _operand_labels(operand, numbers.operand_batching_dims, batch, numbers, sizes)
    removed = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    kept = iter([own for d, own in enumerate(labels) if d not in removed])
    rest = iter(batch)
    update = [
        next(kept) if d in numbers.update_window_dims else next(rest) for d in range(updates.ndim)
    ]
    return Labels([labels, [*batch, None], update], [labels], why="updates slices at positions of")


def _operand_labels(
    operand: Any, batching: Sequence[int], batch: Sequence[Any], numbers: Any, sizes: Sequence[int]
) -> list[Any]:
    of = getattr(numbers, "start_indices_batching_dims", None)
    if of is None:
        of = numbers.scatter_indices_batching_dims
    goes_with = dict(zip(batching, of, strict=True))
    return [
        batch[goes_with[d]] if d in goes_with else ("operand", d) if sizes[d] == n else None
        for d, n in enumerate(operand.shape)
    ]
