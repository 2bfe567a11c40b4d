"""Calls of the kernels that the plug-in's wheel brings, and what is done around them."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dovetail_cuda.capabilities import find_plugin

_lock: Final = threading.Lock()
_prepared = False

BOOL: Final = np.dtype(bool)
INT32: Final = np.dtype(np.int32)


def prepare_lapack() -> None:
    """Let kernels that compute on the host find LAPACK.

    A program that runs one before that crashes the process. Rules do this, which are run also for
    a program that is then found in the cache on disk. Where programs are lowered without being run
    the plug-in's wheel need not be there.
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


def info_of(aval: Any) -> Any:
    """The aval of what a kernel reports for each of the matrices of `aval`: 0 is success."""
    return aval.update(shape=aval.shape[:-2], dtype=INT32)


def where_succeeded(
    context: Any, info: Any, info_aval: Any, values: Sequence[Any], avals: Sequence[Any]
) -> list[Any]:
    """Results with NaN in those that a kernel reports a failure for.

    Args:
        context: the builder.
        info: what is reported for each matrix.
        info_aval: its aval, of the batch dimensions.
        values: floating point or complex, with the batch dimensions first.
        avals: their avals.
    """
    good = context.compare(info, context.constant(0, info_aval), "EQ", info_aval)
    results = []
    for value, aval in zip(values, avals, strict=True):
        mask = aval.update(dtype=BOOL)
        spread = context.broadcast_in_dim(good, mask, tuple(range(info_aval.ndim)))
        nan = np.nan if aval.dtype.kind != "c" else complex(np.nan, np.nan)
        results.append(context.select(spread, value, context.constant(nan, aval), aval))
    return results


def parts_of(context: Any, x: Any, aval: Any) -> tuple[list[Any], Any]:
    """Real and imaginary parts, and their aval; of a real array itself alone."""
    if aval.dtype.kind != "c":
        return [x], aval
    single = aval.update(dtype=real_dtype(aval.dtype))
    return [context.real(x, single), context.imag(x, single)], single


def real_dtype(dtype: Any) -> Any:
    """The dtype of the parts of a number."""
    return np.dtype(np.finfo(dtype).dtype)


def whole(context: Any, x: Any, aval: Any) -> tuple[Any, Any]:
    """Matrices with zeros instead of those that have NaN or infinities, and which those are.

    Iterations are not documented to end for such matrices, or to report them.

    Returns:
        The matrices, and for each of them 1 where it is replaced, otherwise 0.
    """
    rank, info = aval.ndim, info_of(aval)
    parts, single = parts_of(context, x, aval)
    zero, none = context.constant(0.0, single), context.constant(0, info)
    scalar, totals = single.update(shape=()), single.update(shape=aval.shape[:-2])
    broken = none
    for part in parts:
        # Zero times a number is zero unless it is NaN or infinite.
        (total,) = context.reduce(
            [context.mul(part, zero, single)],
            [context.constant(0.0, scalar)],
            (rank - 2, rank - 1),
            [totals],
            lambda a, b: [context.add(a, b, scalar)],
        )
        odd = context.compare(total, total, "NE", totals)
        broken = context.select(odd, context.constant(1, info), broken, info)
    good = context.compare(broken, none, "EQ", info)
    mask = context.broadcast_in_dim(good, aval.update(dtype=BOOL), tuple(range(rank - 2)))
    return context.select(mask, x, context.constant(0, aval), aval), broken


def transposed(aval: Any) -> Any:
    """The aval of transposed matrices."""
    shape = aval.shape
    return aval.update(shape=(*shape[:-2], shape[-1], shape[-2]))


def adjoint(context: Any, x: Any, aval: Any) -> Any:
    """The adjoints of matrices."""
    rank = aval.ndim
    turned = transposed(aval)
    x = context.transpose(x, turned, (*range(rank - 2), rank - 1, rank - 2))
    if aval.dtype.kind != "c":
        return x
    (real, imag), single = parts_of(context, x, turned)
    return context.complex(real, context.neg(imag, single), turned)


def triangle(context: Any, x: Any, aval: Any, lower: bool = True, other: Any = None) -> Any:
    """The lower triangles of matrices, or the upper ones, with diagonals.

    Args:
        context: the builder.
        x: the matrices.
        aval: their aval.
        lower: which triangles.
        other: what stands elsewhere, of the same aval; zeros by default.
    """
    flat = aval.update(shape=aval.shape[-2:], dtype=INT32)
    direction = "GE" if lower else "LE"
    inside = context.compare(context.iota(flat, 0), context.iota(flat, 1), direction, flat)
    mask = aval.update(dtype=BOOL)
    inside = context.broadcast_in_dim(inside, mask, (aval.ndim - 2, aval.ndim - 1))
    return context.select(inside, x, context.constant(0, aval) if other is None else other, aval)


def columns_of(context: Any, x: Any, out: Any, start: int) -> Any:
    """The part of vectors, or of the columns of matrices, that starts at `start`."""
    first = (*[0] * (out.ndim - 1), start)
    return context.slice(x, out, first, [n + i for n, i in zip(out.shape, first, strict=True)])


def rows_of(context: Any, x: Any, out: Any, start: int) -> Any:
    """The part of the rows of matrices that starts at `start`."""
    first = (*[0] * (out.ndim - 2), start, 0)
    return context.slice(x, out, first, [n + i for n, i in zip(out.shape, first, strict=True)])
