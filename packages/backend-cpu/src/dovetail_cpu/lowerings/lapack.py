"""Calls of LAPACK, which jaxlib provides as custom-call targets."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxlib import xla_client

from dovetail_cpu import blas, kernels

PREFIXES: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}

_lock: Final = threading.RLock()
_prepared = False
_shared = False


def prepare() -> None:
    """Make LAPACK callable from programs of this process.

    A program that calls it earlier crashes the process.
    """
    global _prepared
    with _lock:
        if _prepared:
            return
        from jaxlib.cpu import _lapack  # deferred: most programs call no LAPACK

        for name, target in _lapack.registrations().items():
            xla_client.register_custom_call_target(name, target, platform="cpu", api_version=1)
        _lapack.initialize()
        blas.limit_threads()
        _prepared = True


def prepare_shared() -> None:
    """`prepare`, and let the kernel that divides batches among threads call LAPACK."""
    global _shared
    with _lock:
        if _shared:
            return
        prepare()
        loaded = kernels.prepare()
        from jaxlib.cpu import _lapack  # deferred: most programs call no LAPACK

        # A function of our own: what is declared of an attribute holds for all of the process.
        pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
        pointer.restype = ctypes.c_void_p
        pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
        add = loaded.dovetail_lapack_handler
        add.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
        for name, capsule in _lapack.registrations().items():
            add(name.encode(), pointer(capsule, b"xla._CUSTOM_CALL_TARGET"))
        functions = blas.functions()
        if functions is not None:
            loaded.dovetail_lapack_threads(*functions)
        _shared = True


def lapack_call(
    context: Any,
    routine: str,
    operands: Sequence[Any],
    outs: Sequence[Any],
    *,
    aliases: Mapping[int, int] = {},  # never changed
    **attributes: str | bool | int,
) -> list[Any]:
    """Call a routine of LAPACK for each matrix of a batch.

    Batch dimensions come first, in all operands and results. Arrays with the most dimensions are
    matrices, for which XLA is told to use a column-major layout. LAPACK refuses empty matrices, so
    callers treat them separately.

    Args:
        context: the builder.
        routine: its name without the dtype letter, such as ``"getrf"``. Routines whose name depends
            on more than that (``orgqr``, ``ungqr``) are named in full.
        operands: values.
        outs: avals of the results. The dtype of the first determines the letter; results called
            info are int32, one for each matrix.
        aliases: from the number of an operand to the number of the result that overwrites it.
        attributes: static arguments. A string of one character is an option of LAPACK, an int has
            32 bits.

    Returns:
        The results.
    """
    target = f"lapack_{PREFIXES[outs[0].dtype.name]}{routine}_ffi"
    if kernels.usable(context):
        context.prepare(prepare_shared)
        attributes["handler"] = target
        target = kernels.LAPACK
    return kernel_call(context, target, operands, outs, aliases=aliases, **attributes)


def kernel_call(
    context: Any,
    target: str,
    operands: Sequence[Any],
    outs: Sequence[Any],
    *,
    aliases: Mapping[int, int] = {},  # never changed
    **attributes: str | bool | int,
) -> list[Any]:
    """`lapack_call` by the full name of a target."""
    context.prepare(prepare)
    ranks = [value.type.rank for value in operands]
    rank = max(ranks)
    return context.custom_call(  # type: ignore[no-any-return]
        target,
        operands,
        outs,
        backend_config={name: _attribute(value) for name, value in attributes.items()},
        operand_layouts=[_layout(r, rank) for r in ranks],
        result_layouts=[_layout(out.ndim, rank) for out in outs],
        aliases=aliases,
        batch_dims=rank - 2,
    )


def _attribute(value: str | bool | int) -> Any:
    if isinstance(value, str):
        return np.uint8(ord(value)) if len(value) == 1 else value
    return value if isinstance(value, bool) else np.int32(value)


def _layout(rank: int, most: int) -> tuple[int, ...]:
    """Dimensions from the fastest varying; matrices are column-major."""
    order = tuple(range(rank))[::-1]
    return (rank - 2, rank - 1, *order[2:]) if rank == most and rank >= 2 else order
