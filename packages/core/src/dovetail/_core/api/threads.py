"""`set_num_threads` and `get_num_threads`: the threads of programs on the CPU."""

from __future__ import annotations

from dovetail._core.base.config import config
from dovetail._core.base.tracebacks import boundary
from dovetail._core.runtime.devices.threads import thread_count

__all__ = ["get_num_threads", "set_num_threads"]


@boundary
def set_num_threads(num_threads: int) -> None:
    """Say how many threads programs on the CPU compute with.

    It is what the option `num_threads`, or the variable ``DOVETAIL_NUM_THREADS``, does: XLA's pool
    has so many threads, and the BLAS that functions of linear algebra call uses no more. The pool
    is made when the CPU backend starts, which the first computation and the first look at devices
    do.

    Args:
        num_threads: the number; 0 for the default, as many as there are processors that the process
            may use: those of its affinity, and no more than the quota of its control group, which a
            container has, allows to be busy.

    Raises:
        TypeError: it is no integer.
        ValueError: it is negative.
        RuntimeError: the CPU backend has started with another number.

    Differs:
        JAX has no such function.

        >>> dt.set_num_threads(-1)
        Traceback (most recent call last):
            ...
        ValueError: the option 'num_threads' takes a number of threads, ...

    Example:
        >>> import dovetail
        >>> dovetail.set_num_threads(0)
    """
    config.update("num_threads", num_threads)


def get_num_threads() -> int:
    """How many threads programs on the CPU compute with, or will once the backend has started.

    Returns:
        What `set_num_threads` or the option `num_threads` says; else the value of XLA's variables
        ``PJRT_NPROC`` and ``NPROC``; else the number of processors that the process may use.

    Differs:
        JAX has no such function.

        >>> dt.get_num_threads() >= 1
        True

    Example:
        >>> import dovetail
        >>> dovetail.get_num_threads() >= 1
        True
    """
    return thread_count()
