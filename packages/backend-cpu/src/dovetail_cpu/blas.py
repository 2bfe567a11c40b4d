"""The threads of the BLAS that LAPACK is built on: those of the library that SciPy was linked with.

jaxlib calls the LAPACK of SciPy, whose BLAS has threads of its own. They do not add to those of
XLA's pool, which wait meanwhile, but their number is that of the processors.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Final

# By the names of OpenBLAS in SciPy's wheels, of other builds of OpenBLAS, and of MKL.
_FUNCTIONS: Final = (
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
)
# Modules of SciPy through which jaxlib finds LAPACK; their libraries are those that it calls.
_LINKED: Final = ("scipy.linalg.cython_lapack", "scipy.linalg._flapack")

_most: int | None = None


def set_most_threads(count: int) -> None:
    """Let LAPACK use so many threads at most, once `limit_threads` is called."""
    global _most
    _most = count


def limit_threads() -> None:
    """Lower the number of BLAS's threads, if it is more; other libraries are left as they are.

    To be called after SciPy's modules have been loaded. A number that was chosen by the variables
    of BLAS, or by the user, stays if it is less.
    """
    found = functions()
    if _most is not None and found is not None and found[0]() > _most:
        found[1](_most)


def threads() -> int | None:
    """How many threads BLAS uses at most; None if it is not known, or not loaded."""
    found = functions()
    return None if found is None else int(found[0]())


def functions() -> tuple[Any, Any] | None:
    """The functions that read and write the number of threads, if they are there."""
    for module in _LINKED:
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is None:
            continue
        library = ctypes.CDLL(file)  # looks in what it was linked with, too
        for reader, writer in _FUNCTIONS:
            if hasattr(library, reader) and hasattr(library, writer):
                return getattr(library, reader), getattr(library, writer)
    return None
