"""Calls of the kernels in the plug-in's wheel."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dovetail_cuda.capabilities import find_plugin

_lock: Final = threading.RLock()
_prepared = False


def prepare_lapack() -> None:
    """Let kernels that compute on the host find LAPACK.

    A program that runs one earlier crashes the process. If programs are lowered without being run,
    the plug-in's wheel need not be installed.
    """
    global _prepared
    with _lock:
        if _prepared:
            return
        plugin = find_plugin()
        if plugin is not None:
            importlib.import_module(f"{plugin.kernels}._hybrid").initialize()
        _prepared = True


def kernel_call(
    context: Any,
    target: str,
    operands: Sequence[Any],
    outs: Sequence[Any],
    *,
    matrices: int,
    aliases: Mapping[int, int] = {},  # never changed
    row_major: bool = False,
    batch_dims: int | None = None,
    **attributes: str | bool | np.uint8,
) -> list[Any]:
    """Call a kernel for each matrix of a batch.

    Args:
        context: the builder.
        target: the kernel's name.
        operands: values; batch dimensions come first.
        outs: avals of the results.
        matrices: the number of dimensions of a matrix, batch dimensions included. XLA is told to
            use a column-major layout for matrices, like NVIDIA's libraries, and row-major for all
            else. It transposes where the layout differs.
        aliases: from the number of an operand to the number of the result that overwrites it.
        row_major: whether matrices are row-major as well.
        batch_dims: the number of batch dimensions, along which programs over several devices are
            divided; by default all but the two of a matrix.
        attributes: static arguments, of the kinds that the kernel was compiled with.

    Returns:
        The results.
    """
    columns = None if row_major else matrices
    return context.custom_call(  # type: ignore[no-any-return]
        target,
        operands,
        outs,
        backend_config=attributes,
        operand_layouts=[_layout(value.type.rank, columns) for value in operands],
        result_layouts=[_layout(out.ndim, columns) for out in outs],
        aliases=aliases,
        batch_dims=matrices - 2 if batch_dims is None else batch_dims,
    )


def _layout(rank: int, columns: int | None) -> tuple[int, ...]:
    """Dimensions from the fastest varying."""
    order = tuple(range(rank))[::-1]
    return (rank - 2, rank - 1, *order[2:]) if rank == columns else order
