"""Errors of the compiler and of devices; apart from the others, since they derive from jaxlib's."""

from __future__ import annotations

from typing import Final

from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.base.strictness import strictness

__all__ = ["CompilerOptionError", "OutOfMemoryError", "raised_by_callback"]

_CODE: Final = "RESOURCE_EXHAUSTED"


class OutOfMemoryError(JaxRuntimeError, MemoryError):
    """There is not enough memory for a program, for its results or for data.

    The text says for which, at which line of the user's code, what its largest values are and where
    they come from, and which arrays are alive besides.

    NumPy raises a MemoryError, and JAX a JaxRuntimeError: this is both.

    Args:
        message: the text of the error.
    """

    error_code_string = _CODE


class CompilerOptionError(JaxRuntimeError, ValueError):
    """The compiler does not know an option, or does not take its value.

    JAX raises a JaxRuntimeError; this is a ValueError, too.

    Args:
        message: the text of the error.
    """

    error_code_string = "INVALID_ARGUMENT"


CompilerOptionError.__module__ = OutOfMemoryError.__module__ = "dovetail.errors"


def raised_by_callback(error: BaseException) -> BaseException:
    """What a program raises whose callback has raised an exception: that, or one with its text."""
    if strictness().callbacks_raise_their_own or not isinstance(error, Exception):
        return error
    import traceback  # deferred: such errors are rare, and it takes 0.5 ms

    text = "".join(traceback.format_exception(error)).rstrip()
    return JaxRuntimeError(f"INTERNAL: CpuCallback error calling callback: {text}")
