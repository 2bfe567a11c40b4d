"""Calls of LAPACK, which jaxlib holds as targets of custom calls."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxlib import xla_client

PREFIXES: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}

_lock: Final = threading.Lock()
_prepared = False


def prepare() -> None:
    """Make LAPACK callable from programs of this process.

    A program that calls it before that crashes the process. Lowering rules do this, which are run
    also for a program that is then found in the cache on disk.
    """
    global _prepared
    with _lock:
        if _prepared:
            return
        from jaxlib.cpu import _lapack  # deferred: most programs call no LAPACK

        for name, target in _lapack.registrations().items():
            xla_client.register_custom_call_target(name, target, platform="cpu", api_version=1)
        _lapack.initialize()
        _prepared = True


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

    Batch dimensions come first, in all operands and results; what has most dimensions is a matrix,
    and XLA is told to lay it out column by column. LAPACK refuses matrices without elements, so
    callers treat them apart.

    Args:
        context: the builder.
        routine: name without the letter for the dtype, such as ``"getrf"``. Routines whose name
            depends on more than that (``orgqr``, ``ungqr``) are named in full.
        operands: values.
        outs: avals of the results. The dtype of the first says which letter is put before the name;
            results called info are int32, one for each matrix.
        aliases: number of an operand to the number of the result that is written over it.
        attributes: static arguments. A string of one character is what LAPACK calls an option, an
            int has 32 bits.

    Returns:
        The results.
    """
    target = f"lapack_{PREFIXES[outs[0].dtype.name]}{routine}_ffi"
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
    prepare()
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
    )


def _attribute(value: str | bool | int) -> Any:
    if isinstance(value, str):
        return np.uint8(ord(value))
    return value if isinstance(value, bool) else np.int32(value)


def _layout(rank: int, most: int) -> tuple[int, ...]:
    """Dimensions from the fastest varying; those of matrices, column by column."""
    order = tuple(range(rank))[::-1]
    return (rank - 2, rank - 1, *order[2:]) if rank == most and rank >= 2 else order


def where_succeeded(
    context: Any, info: Any, info_aval: Any, values: Sequence[Any], avals: Sequence[Any]
) -> list[Any]:
    """Results of LAPACK with NaN in those that it reports a failure for.

    Args:
        context: the builder.
        info: what LAPACK reports for each matrix; 0 is success.
        info_aval: its aval, of the batch dimensions.
        values: floating point or complex, with the batch dimensions first.
        avals: their avals.
    """
    good = context.compare(info, context.constant(0, info_aval), "EQ", info_aval)
    results = []
    for value, aval in zip(values, avals, strict=True):
        mask = aval.update(dtype=np.dtype(bool))
        spread = context.broadcast_in_dim(good, mask, tuple(range(info_aval.ndim)))
        nan = np.nan if aval.dtype.kind != "c" else complex(np.nan, np.nan)
        results.append(context.select(spread, value, context.constant(nan, aval), aval))
    return results


def transposed(aval: Any) -> Any:
    """The aval of transposed matrices."""
    shape = aval.shape
    return aval.update(shape=(*shape[:-2], shape[-1], shape[-2]))


def transpose(context: Any, x: Any, aval: Any) -> Any:
    """The transposes of matrices; LAPACK reads them without a copy."""
    rank = aval.ndim
    order = (*range(rank - 2), rank - 1, rank - 2)
    return context.transpose(x, transposed(aval), order)


def triangle(context: Any, x: Any, aval: Any, lower: bool = True) -> Any:
    """The lower triangles of matrices, or the upper ones, with zeros beyond the diagonals."""
    flat = aval.update(shape=aval.shape[-2:], dtype=np.dtype(np.int32))
    direction = "GE" if lower else "LE"
    inside = context.compare(context.iota(flat, 0), context.iota(flat, 1), direction, flat)
    mask = aval.update(dtype=np.dtype(bool))
    inside = context.broadcast_in_dim(inside, mask, (aval.ndim - 2, aval.ndim - 1))
    return context.select(inside, x, context.constant(0, aval), aval)
