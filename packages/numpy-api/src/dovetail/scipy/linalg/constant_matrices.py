"""Matrices that depend on their size alone. They are made on the host, in exact integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail.extend import dtypes
from dovetail.extend.arguments import host_array, integer, requested_dtype
from dovetail.scipy.linalg.matrix_operands import choice
from dovetail.typing import Array, DTypeLike

_KINDS = ("symmetric", "lower", "upper")
#: Rows up to which a matrix is made: more would take hours, and tens of gigabytes.
_MOST = 2**16


def _size(function: str, n: Any, least: int = 0) -> int:
    size = integer(function, "n", n)
    if size < least:
        raise ValueError(f"{function}: n must be {least} or more, got {size}")
    if size > _MOST:
        raise ValueError(f"{function}: n must be {_MOST} or less, got {size}")
    return size


def _rounded(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _matrix(elements: Any, shape: tuple[int, int], dtype: Any) -> Array:
    """A matrix of integers of Python, each rounded once, to an infinity beyond the dtype."""
    numbers = np.empty(math.prod(shape), np.float64)
    numbers[:] = [_rounded(e) for e in elements]
    with np.errstate(over="ignore"):
        return host_array(numbers.reshape(shape).astype(dtype))


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform of vectors.

    Args:
        n: its size.
        scale: None, or what the elements are divided by: "sqrtn" for the root of n, which makes the
            matrix unitary, or "n".
        dtype: a complex dtype; the default one if None.

    Returns:
        A matrix of shape ``(n, n)``: ``exp(-2j * pi * j * k / n)``, each element exact to an ulp.

    Raises:
        ValueError: `n` is negative or above 65536, or `scale` or `dtype` is not one of these.

    Example:
        >>> from dovetail.scipy import linalg
        >>> print(linalg.dft(2).real)
        [[ 1.  1.]
         [ 1. -1.]]
    """
    function = "scipy.linalg.dft"
    choice(function, "scale", scale, (None, "sqrtn", "n"))
    size = _size(function, n)
    wanted = requested_dtype(function, dtype) or dtypes.default_dtype("c")
    if dtypes.kind_of(wanted) != "c":
        raise ValueError(f"{function}: dtype must be complex, got {wanted}")
    angle = 2 * math.pi / max(size, 1)
    # Of the nearest multiple of a quarter turn, so that multiples of it are exact.
    roots = np.empty(size, np.complex128)
    for k in range(size):
        quarters = round(4 * k / size)
        rest = (k - quarters * size / 4) * angle
        roots[k] = complex(math.cos(rest), -math.sin(rest)) * (1, -1j, -1, 1j)[quarters % 4]
    numbers = np.arange(size)
    matrix = roots[np.outer(numbers, numbers) % max(size, 1)]
    if scale is not None:
        matrix = matrix / (math.sqrt(size) if scale == "sqrtn" else max(size, 1))
    return host_array(matrix.astype(wanted))


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """A matrix of ones and minus ones with orthogonal rows, by Sylvester's construction.

    Args:
        n: its size, a power of two.
        dtype: dtype of the elements: of numbers that may be negative.

    Returns:
        A matrix of shape ``(n, n)``.

    Raises:
        ValueError: `n` is not a power of two, or above 65536.
        TypeError: the dtype has no negative numbers.

    Differs:
        Unsigned dtypes are refused, in which minus one would be a large number.

        >>> from dovetail.scipy import linalg
        >>> try:
        ...     linalg.hadamard(2, "uint8")
        ... except TypeError as error:
        ...     print(error)
        scipy.linalg.hadamard: dtype must have negative numbers, got uint8

    Example:
        >>> from dovetail.scipy import linalg
        >>> print(linalg.hadamard(2))
        [[ 1  1]
         [ 1 -1]]
    """
    function = "scipy.linalg.hadamard"
    size = _size(function, n, 1)
    if size & (size - 1):
        raise ValueError(f"{function}: n must be a power of two, got {size}")
    wanted = requested_dtype(function, dtype) or dtypes.default_dtype("i")
    if dtypes.kind_of(wanted) in ("b", "u"):
        raise TypeError(f"{function}: dtype must have negative numbers, got {wanted}")
    matrix = np.ones((1, 1), np.int8)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return host_array(matrix.astype(wanted))


def helmert(n: int, full: bool = False) -> Array:
    """A matrix of orthonormal rows, each the difference of an element and the mean of those before.

    Args:
        n: number of columns.
        full: whether to add a first row of equal elements, which makes it square.

    Returns:
        A matrix of shape ``(n - 1, n)`` or ``(n, n)``, floating point.

    Raises:
        ValueError: `n` is not positive, or above 65536.

    Example:
        >>> from dovetail.scipy import linalg
        >>> print(linalg.helmert(2).round(4))
        [[ 0.7071 -0.7071]]
    """
    size = _size("scipy.linalg.helmert", n, 1)
    matrix = np.zeros((size, size))
    matrix[0] = 1 / math.sqrt(size)
    for k in range(1, size):
        matrix[k, :k] = 1 / math.sqrt(k * (k + 1))
        matrix[k, k] = -math.sqrt(k / (k + 1))
    return host_array((matrix if full else matrix[1:]).astype(dtypes.default_dtype("f")))


def hilbert(n: int) -> Array:
    """The Hilbert matrix, which is badly conditioned: ``1 / (i + j + 1)``.

    Args:
        n: its size.

    Returns:
        A matrix of shape ``(n, n)``, floating point.

    Raises:
        ValueError: `n` is negative or above 65536.

    Example:
        >>> from dovetail.scipy import linalg
        >>> print(linalg.hilbert(2).round(4))
        [[1.     0.5   ]
         [0.5    0.3333]]
    """
    numbers = np.arange(_size("scipy.linalg.hilbert", n))
    matrix = 1 / (numbers[:, None] + numbers + 1)
    return host_array(matrix.astype(dtypes.default_dtype("f")))


def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix, whose elements are integers.

    Source: Knuth, "The Art of Computer Programming", volume 1, exercise 1.2.3-45.

    Args:
        n: its size.

    Returns:
        A matrix of shape ``(n, n)``, floating point: exact integers, each rounded once
        (to infinity beyond the dtype).

    Raises:
        ValueError: `n` is negative or above 65536.

    Example:
        >>> from dovetail.scipy import linalg
        >>> print(linalg.invhilbert(2))
        [[ 4. -6.]
         [-6. 12.]]
    """
    size = _size("scipy.linalg.invhilbert", n)
    elements = (
        (-1) ** (i + j)
        * (i + j + 1)
        * math.comb(size + i, size - j - 1)
        * math.comb(size + j, size - i - 1)
        * math.comb(i + j, i) ** 2
        for i in range(size)
        for j in range(size)
    )
    return _matrix(elements, (size, size), dtypes.default_dtype("f"))


def _of_kind(function: str, n: Any, kind: Any) -> tuple[int, str]:
    kind = "symmetric" if kind is None else kind
    choice(function, "kind", kind, _KINDS)
    return _size(function, n), kind


def pascal(n: int, kind: str | None = None) -> Array:
    """A matrix of binomial coefficients.

    Args:
        n: its size.
        kind: "symmetric" (or None) for ``comb(i + j, i)``, "lower" for the triangular matrix of
            ``comb(i, j)``, "upper" for its transpose.

    Returns:
        A matrix of shape ``(n, n)``, floating point (SciPy's are integers): exact integers, each
        rounded once (to infinity beyond the dtype).

    Raises:
        ValueError: `n` is negative or above 65536, or `kind` is not one of these.

    Differs:
        The dtype is the default one; JAX's is float32 also where that is float64.

        >>> from dovetail.scipy import linalg
        >>> with dt.enable_x64(True):
        ...     print(linalg.pascal(2).dtype)
        float64

    Example:
        >>> from dovetail.scipy import linalg
        >>> print(linalg.pascal(3))
        [[1. 1. 1.]
         [1. 2. 3.]
         [1. 3. 6.]]
    """
    size, kind = _of_kind("scipy.linalg.pascal", n, kind)
    elements_of: dict[str, Callable[[int, int], int]] = {
        "symmetric": lambda i, j: math.comb(i + j, i),
        "lower": math.comb,
        "upper": lambda i, j: math.comb(j, i),
    }
    element = elements_of[kind]
    elements = (element(i, j) for i in range(size) for j in range(size))
    return _matrix(elements, (size, size), dtypes.default_dtype("f"))


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of a matrix of binomial coefficients, as of `pascal`.

    Args:
        n: its size.
        kind: "symmetric" (or None), "lower" or "upper".

    Returns:
        A matrix of shape ``(n, n)``, floating point (SciPy's are integers): exact integers, each
        rounded once (to infinity beyond the dtype).

    Raises:
        ValueError: `n` is negative or above 65536, or `kind` is not one of these.

    Example:
        >>> from dovetail.scipy import linalg
        >>> print(linalg.invpascal(3))
        [[ 3. -3.  1.]
         [-3.  5. -2.]
         [ 1. -2.  1.]]
    """
    size, kind = _of_kind("scipy.linalg.invpascal", n, kind)
    # The inverse of the lower matrix has the same magnitudes; that of the symmetric one, which is
    # the product of the lower and the upper matrix, is the product of their inverses.
    lower = [[(-1) ** (i + j) * math.comb(i, j) for j in range(size)] for i in range(size)]
    if kind == "symmetric":
        rows = [
            [sum(lower[k][i] * lower[k][j] for k in range(size)) for j in range(size)]
            for i in range(size)
        ]
    else:
        rows = lower if kind == "lower" else [list(row) for row in zip(*lower, strict=True)]
    return _matrix([e for row in rows for e in row], (size, size), dtypes.default_dtype("f"))
