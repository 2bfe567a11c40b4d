"""Calls of LAPACK, which jaxlib provides as custom-call targets."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxlib import xla_client

from dovetail.extend.dtypes import dtype_name
from dovetail.extend.lowering import (
    divided_by_power_of_two,
    real_dtype,
    report_of,
    where_succeeded,
    with_finite,
)
from dovetail.extend.lowering import triangle as keep_triangle
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


def factorize(
    context: Any,
    routine: str,
    operands: Sequence[Any],
    outs: Sequence[Any],
    matrix: Any,
    *,
    aliases: Mapping[int, int],
    reports: bool = False,
    triangle: str = "",
    triangular: bool = False,
    finite: bool = False,
    scaled: bool = False,
    unused: Sequence[int] = (),
    **attributes: str | bool | int,
) -> list[Any]:
    """`lapack_call` of row-major matrices, with what stands around it: one kernel, if there is one.

    Args:
        context: the builder.
        routine: as for `lapack_call`.
        operands: as for `lapack_call`.
        outs: avals of the results.
        matrix: the aval of an operand that is a matrix; of the first one, if that is changed.
        aliases: as for `lapack_call`.
        reports: whether the routine has one more result, which is not 0 where it failed. Results
            that are not integers become NaN there.
        triangle: ``"L"`` or ``"U"``, if the rest of the first operand is to be zero.
        triangular: whether the results have that triangle even where they are NaN.
        finite: whether matrices with NaN or infinities are failures that the routine must not see.
        scaled: whether matrices are divided by the powers of two of their largest numbers.
        unused: numbers of results that have no meaning.
        attributes: as for `lapack_call`.

    Returns:
        The results; with `scaled`, the powers after them.
    """
    report = report_of(matrix)
    power = report.update(dtype=real_dtype(matrix.dtype))
    outs = list(outs)
    if kernels.usable(context):
        context.prepare(prepare_shared)
        rank = matrix.ndim
        by_rows = [i for i, out in enumerate(outs) if out.ndim == rank and i not in unused]
        results = kernels.call(
            context,
            kernels.LAPACK,
            operands,
            [*outs, *[report] * reports, *[power] * scaled],
            rank - 2,
            **{name: _attribute(value) for name, value in attributes.items()},
            handler=_target(outs, routine),
            operands_by_rows=sum(1 << i for i, x in enumerate(operands) if x.type.rank == rank),
            results_by_rows=sum(1 << i for i in by_rows),
            overwritten=[aliases.get(i, -1) for i in range(len(operands))],
            triangle=" LU".index(triangle or " "),
            triangular=int(triangular),
            finite=int(finite),
            scaled=int(scaled),
            reports=int(reports),
        )
        return [*results[: len(outs)], *results[len(outs) + reports :]]
    x, *others = operands
    if triangle and not triangular:
        x = keep_triangle(context, x, matrix, triangle == "L")
    powers, broken = [], None
    if scaled:
        x, found = divided_by_power_of_two(context, x, matrix)
        powers = [found]
    if finite:
        x, broken = with_finite(context, x, matrix)
    results = lapack_call(
        context, routine, [x, *others], [*outs, *[report] * reports], aliases=aliases, **attributes
    )
    if reports:
        *results, failed = results
        if broken is not None:
            failed = context.or_(failed, broken, report)
        numeric = [i for i, out in enumerate(outs) if out.dtype.kind != "i"]
        values, avals = [results[i] for i in numeric], [outs[i] for i in numeric]
        filled = where_succeeded(context, failed, report, values, avals)
        for i, value in zip(numeric, filled, strict=True):
            results[i] = value
    if triangular:
        results = [
            keep_triangle(context, value, out, triangle == "L")
            for value, out in zip(results, outs, strict=True)
        ]
    return [*results, *powers]


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
    return kernel_call(
        context, _target(outs, routine), operands, outs, aliases=aliases, **attributes
    )


def solve_transposed(context: Any, a: Any, b: Any, out: Any, **attributes: str) -> Any:
    """``trsm`` on the transposes of row-major matrices, which are column-major as they lie."""
    context.prepare(prepare_shared)
    return kernels.call(
        context,
        kernels.LAPACK,
        [a, b],
        [out],
        out.ndim - 2,
        **{name: _attribute(value) for name, value in attributes.items()},
        handler=_target([out], "trsm"),
        overwritten=[-1, 0],
        turned=1,
    )[0]


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


def _target(outs: Sequence[Any], routine: str) -> str:
    return f"lapack_{PREFIXES[dtype_name(outs[0].dtype)]}{routine}_ffi"


def _attribute(value: str | bool | int) -> Any:
    if isinstance(value, str):
        return np.uint8(ord(value))
    return value if isinstance(value, bool) else np.int32(value)


def _layout(rank: int, most: int) -> tuple[int, ...]:
    """Dimensions from the fastest varying; matrices are column-major."""
    order = tuple(range(rank))[::-1]
    return (rank - 2, rank - 1, *order[2:]) if rank == most and rank >= 2 else order
