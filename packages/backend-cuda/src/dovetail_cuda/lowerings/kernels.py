"""Calls of the kernels that the plug-in's wheel brings."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dovetail_cuda.capabilities import find_plugin

_lock: Final = threading.Lock()
_prepared = False


def prepare_lapack() -> None:
    """Let kernels that compute on the host find LAPACK.

    A program that runs one before that crashes the process. Where programs are lowered without
    being run the plug-in's wheel need not be there.
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
    **attributes: str | bool | np.uint8,
) -> list[Any]:
    """Call a kernel for each matrix of a batch.

    Args:
        context: the builder.
        target: the kernel's name.
        operands: values, whose batch dimensions come first.
        outs: avals of the results.
        matrices: how many dimensions what is a matrix has, those of the batch included. XLA is told
            to lay matrices out column by column, as NVIDIA's libraries have them, and all else
            row by row. Where that is not how they are, it transposes.
        aliases: number of an operand to the number of the result that is written over it.
        row_major: lay out matrices row by row as well.
        attributes: static arguments; their kinds are those that the kernel was compiled with.

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
    )


def _layout(rank: int, columns: int | None) -> tuple[int, ...]:
    """Dimensions from the fastest varying."""
    order = tuple(range(rank))[::-1]
    return (rank - 2, rank - 1, *order[2:]) if rank == columns else order
