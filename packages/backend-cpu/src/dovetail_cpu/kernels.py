"""Native kernels: XLA's custom calls to what `native/` holds, where it was built.

A process loads the library that suits its processor once a program needs it.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jaxlib import xla_client

from dovetail_cpu import interrupts, kernel_library

ADD_TO_SELECTED: Final = "dovetail_add_to_selected"
ATTENTION: Final = "dovetail_attention"
COMPANY: Final = "dovetail_company"
COMPLEX_FROM_PRODUCTS: Final = "dovetail_complex_from_products"
COMPLEX_PARTS: Final = "dovetail_complex_parts"
CONVOLVE: Final = "dovetail_convolve"
CONVOLVE_INTEGERS: Final = "dovetail_convolve_integers"
CONVOLVE_NARROW: Final = "dovetail_convolve_narrow"
COPY_BOXES: Final = "dovetail_copy_boxes"
CUMULATIVE: Final = "dovetail_cumulative"
#: What computes 16-bit floats in float32.
_OF_NARROW_FLOATS: Final = (
    "acosh asinh atan atanh cbrt cosh erf erfc exp expm1 log log1p log2 logistic sinh tanh"
)
DISTANCES: Final = "dovetail_distances"
ELEMENTARY: Final = {
    (name, dtype): f"dovetail_{name}{suffix}"
    for dtype, suffix, names in (
        (
            "float32",
            "",
            "acos acosh asin asinh atan atan2 atanh cbrt cos cosh digamma erf erf_inv_fast erfc "
            "exp expm1 lgamma log log1p log2 logistic pow sin sinh tan tanh",
        ),
        ("float64", "_f64", "cos erf_inv_fast exp expm1 log log1p sin tanh"),
        *((narrow, "", _OF_NARROW_FLOATS) for narrow in ("bfloat16", "float16")),
    )
    for name in names.split()
}
EIGH: Final = {"float32": "dovetail_eigh_f32", "float64": "dovetail_eigh_f64"}
EXPONENTIALS_AND_SUMS: Final = "dovetail_exponentials_and_sums"
EXPRESSION: Final = "dovetail_expression"
EXTREME_POSITIONS: Final = "dovetail_extreme_positions"
FFT: Final = "dovetail_fft"
GATES: Final = {
    "dovetail_erfc": "dovetail_erfc_gate",
    "dovetail_logistic": "dovetail_logistic_gate",
}
"""By kernel what also multiplies its results."""
GRAM: Final = {"float32": "dovetail_gram_f32", "float64": "dovetail_gram_f64"}
KRONECKER: Final = "dovetail_kronecker"
LAPACK: Final = "dovetail_lapack"
LOG_OF_EXPONENTIALS: Final = "dovetail_logaddexp"
LOG_SOFTMAX: Final = "dovetail_log_softmax"
LINEAR_RECURRENCE: Final = "dovetail_linear_recurrence"
MATRIX_VECTOR: Final = {
    "float32": "dovetail_matrix_vector_f32",
    "float64": "dovetail_matrix_vector_f64",
}
MULTIPLY_NARROW: Final = "dovetail_multiply_narrow"
NORMALIZE_ROWS: Final = "dovetail_normalize_rows"
ORDER_STATISTICS: Final = "dovetail_order_statistics"
PARTING_POSITIONS: Final = "dovetail_parting_positions"
PIVOTS: Final = "dovetail_pivots"
PRODUCTS: Final = {
    "float32": "dovetail_products_f32",
    "float64": "dovetail_products_f64",
    "complex64": "dovetail_products_c64",
    "complex128": "dovetail_products_c128",
    "bfloat16": "dovetail_products_narrow",
    "float16": "dovetail_products_narrow",
}
REDUCE: Final = "dovetail_reduce"
REDUCE_WINDOWS: Final = "dovetail_reduce_windows"
REMAINDER: Final = "dovetail_remainder"
REPEAT: Final = "dovetail_repeat"
SCATTER: Final = "dovetail_scatter"
SEARCHSORTED: Final = "dovetail_searchsorted"
SHUFFLE: Final = "dovetail_shuffle"
SMALL_MATRICES: Final = ("cholesky", "lu", "qr", "reflections", "triangular_solve")
"""What there is for batches of small matrices, with a suffix for each dtype."""
LARGE_MATRICES: Final = ("large_lu", "large_qr", "large_reflections", "reflect")
"""The same for larger ones."""
SMALL_PRODUCTS: Final = {
    "float32": "dovetail_small_products_f32",
    "float64": "dovetail_small_products_f64",
}
SOFTMAX: Final = "dovetail_softmax"
SORT: Final = "dovetail_sort"
SUM_OF_PRODUCTS: Final = "dovetail_sum_of_products"
SUMS_OF_DIFFERENCES: Final = "dovetail_sums_of_differences"
TAKE_COLUMNS: Final = "dovetail_take_columns"
TAKE_ROWS: Final = "dovetail_take_rows"
THREEFRY_BITS: Final = "dovetail_threefry_bits"
THREEFRY_FOLD_IN: Final = "dovetail_threefry_fold_in"
THREEFRY_SPLIT: Final = "dovetail_threefry_split"
TOP_K: Final = "dovetail_top_k"
TRUE_POSITIONS: Final = "dovetail_true_positions"
VECTOR_PRODUCT: Final = {
    "float32": "dovetail_vector_product_f32",
    "float64": "dovetail_vector_product_f64",
}

_MATRICES: Final = (*SMALL_MATRICES, *LARGE_MATRICES)
_TARGETS: Final = (
    ADD_TO_SELECTED,
    ATTENTION,
    COMPANY,
    COMPLEX_FROM_PRODUCTS,
    COMPLEX_PARTS,
    CONVOLVE,
    CONVOLVE_INTEGERS,
    CONVOLVE_NARROW,
    COPY_BOXES,
    CUMULATIVE,
    DISTANCES,
    *EIGH.values(),
    *sorted(set(ELEMENTARY.values())),
    EXPONENTIALS_AND_SUMS,
    EXPRESSION,
    EXTREME_POSITIONS,
    FFT,
    *GATES.values(),
    *GRAM.values(),
    KRONECKER,
    LAPACK,
    LINEAR_RECURRENCE,
    LOG_OF_EXPONENTIALS,
    LOG_SOFTMAX,
    *MATRIX_VECTOR.values(),
    MULTIPLY_NARROW,
    NORMALIZE_ROWS,
    ORDER_STATISTICS,
    PARTING_POSITIONS,
    PIVOTS,
    *sorted(set(PRODUCTS.values())),
    REDUCE,
    REDUCE_WINDOWS,
    REMAINDER,
    REPEAT,
    SCATTER,
    SEARCHSORTED,
    SHUFFLE,
    *(f"dovetail_{name}_{suffix}" for name in _MATRICES for suffix in ("f32", "f64")),
    *SMALL_PRODUCTS.values(),
    SOFTMAX,
    SORT,
    SUM_OF_PRODUCTS,
    SUMS_OF_DIFFERENCES,
    TAKE_COLUMNS,
    TAKE_ROWS,
    THREEFRY_BITS,
    THREEFRY_FOLD_IN,
    THREEFRY_SPLIT,
    TOP_K,
    TRUE_POSITIONS,
    *VECTOR_PRODUCT.values(),
)
_OPTION: Final = "cpu_kernels"

_lock: Final = threading.RLock()
_loaded: ctypes.CDLL | None = None
_most_threads: int = sys.maxsize


def usable(context: Any) -> bool:
    """Whether a program may call kernels: they were built, and are not switched off."""
    return bool(context.option(_OPTION)) and kernel_library.library() is not None


def have_tiles() -> bool:
    """Whether the processor multiplies tiles of narrow numbers, and the system lets this process.

    Kernels were built. They compute the same without tiles, where a program is loaded.
    """
    return bool(prepare().dovetail_use_tiles(1))


def prepare() -> ctypes.CDLL:
    """Make the kernels callable from programs of this process.

    Returns:
        Their library.

    Raises:
        RuntimeError: they were not built here, but where the program was compiled; or from other
            sources.
    """
    global _loaded
    with _lock:
        if _loaded is not None:
            return _loaded
        file = kernel_library.library()
        if file is None:
            raise RuntimeError(
                "the program calls native kernels of dovetail-cpu, which are not installed here: "
                "install a wheel that has them, or compile the program with the option "
                "cpu_kernels off"
            )
        loaded = ctypes.CDLL(str(file))
        # A function of our own: what is declared of an attribute holds for all of the process.
        new = ctypes.pythonapi["PyCapsule_New"]
        new.restype = ctypes.py_object
        new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        for target in _TARGETS:
            if not hasattr(loaded, target):
                raise RuntimeError(
                    f"the native kernels in {file} are of another version of dovetail-cpu, and "
                    f"lack {target}: install dovetail-cpu again, which builds them"
                )
            address = ctypes.cast(getattr(loaded, target), ctypes.c_void_p)
            capsule = new(address, b"xla._CUSTOM_CALL_TARGET", None)
            xla_client.register_custom_call_target(target, capsule, platform="cpu", api_version=1)
        interrupts.end_kernels(loaded)
        _tell_most_threads(loaded)
        _loaded = loaded
        return loaded


def set_most_threads(count: int | None) -> None:
    """Let a kernel use so many threads at most; as many as there are if it is None.

    XLA's pool may have more, for callbacks.
    """
    global _most_threads
    with _lock:
        _most_threads = sys.maxsize if count is None else count
        if _loaded is not None:
            _tell_most_threads(_loaded)


def _tell_most_threads(library: ctypes.CDLL) -> None:
    library.dovetail_set_most_threads(ctypes.c_int64(_most_threads))


def call(
    context: Any,
    target: str,
    operands: Sequence[Any],
    outs: Sequence[Any],
    batch_dims: int,
    aliases: Mapping[int, int] = {},  # never changed
    **attributes: Any,
) -> list[Any]:
    """Call a kernel with row-major arrays, which it treats by their last dimensions.

    Args:
        context: the builder.
        target: one of the names above.
        operands: values.
        outs: avals of the results.
        batch_dims: how many leading dimensions all of them share.
        aliases: index of an operand to the index of the result that is written over it.
        attributes: static arguments: 64-bit integers, sequences of them, strings or NumPy scalars.
    """
    context.prepare(prepare)
    return context.custom_call(  # type: ignore[no-any-return]
        target,
        operands,
        outs,
        backend_config=attributes,
        operand_layouts=[tuple(range(value.type.rank))[::-1] for value in operands],
        result_layouts=[tuple(range(out.ndim))[::-1] for out in outs],
        aliases=aliases,
        batch_dims=batch_dims,
    )
