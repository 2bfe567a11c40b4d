"""The error of memory that does not suffice; apart from the others, since it derives from one of
jaxlib's."""

from __future__ import annotations

from typing import Final

from dovetail._core.base.bindings import JaxRuntimeError

__all__ = ["OutOfMemoryError"]

_CODE: Final = "RESOURCE_EXHAUSTED"


class OutOfMemoryError(JaxRuntimeError, MemoryError):
    """There is not enough memory for a program, for its results or for data.

    The text says for which, at which line of the user's code, what its largest values are and where
    they come from, and which arrays are alive besides.

    NumPy raises a MemoryError, and JAX a JaxRuntimeError: this is both.

    Differs:
        It is a MemoryError, too, and names the program, its largest values with their lines, and
        the arrays that are alive. JAX's error names the number of bytes alone.

        >>> try:
        ...     dt.jit(lambda x: jnp.broadcast_to(x, (2**45,)))(1.0)
        ... except MemoryError as error:
        ...     print(str(error).splitlines()[0])
        RESOURCE_EXHAUSTED: Out of memory allocating 140737488355328 bytes.

    Args:
        message: the text of the error.
    """

    error_code_string = _CODE


OutOfMemoryError.__module__ = "dovetail.errors"
