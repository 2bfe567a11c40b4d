"""Products of sparse matrices and dense ones, by the routine that jaxlib has.

It goes through a row at a time and adds whole rows of the dense matrix, where XLA's gather and
scatter write and read an array of all products: a million elements times 32 columns take 7 ms in
place of 320. For vectors it is slower than these.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np
from jaxlib import xla_client

from dovetail.extend import LoweringTable
from dovetail.extend.dtypes import dtype_name

TABLE: Final = LoweringTable()

_DTYPES: Final = frozenset({"float32", "float64", "complex64", "complex128", "int32"})
_INT32: Final = np.dtype(np.int32)

_lock: Final = threading.RLock()
_prepared = False


def _prepare() -> None:
    """Make the routine callable from programs of this process."""
    global _prepared
    with _lock:
        if _prepared:
            return
        from jaxlib.cpu import _sparse  # deferred: most programs have no sparse matrix

        for name, target in _sparse.registrations().items():
            xla_client.register_custom_call_target(name, target, platform="cpu", api_version=1)
        _prepared = True


@TABLE.rule("csr_dot")
def csr_dot(context: Any, data: Any, indices: Any, indptr: Any, rhs: Any) -> Any:
    """The product; NotImplemented for other dtypes, and where there is nothing to compute."""
    elements, columns, begins, dense = context.avals_in
    (out,) = context.avals_out
    if (
        dtype_name(elements.dtype) not in _DTYPES
        or {columns.dtype, begins.dtype} != {_INT32}
        or dense.shape[1] < 2
        or not elements.size * out.size * dense.size
    ):
        return NotImplemented
    context.prepare(_prepare)
    (result,) = context.custom_call(
        "cpu_csr_sparse_dense_ffi",
        [data, indptr, indices, rhs],
        [out],
        backend_config={},
        operand_layouts=[(0,), (0,), (0,), (1, 0)],
        result_layouts=[(1, 0)],
    )
    return result
