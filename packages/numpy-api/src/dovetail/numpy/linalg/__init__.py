"""Linear algebra.

The last two dimensions of an array are those of a matrix; the others are those of a stack of
matrices, each of which is treated alike. Where NumPy raises an error because a matrix is singular
or an iteration does not converge, results are infinite or nan.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail import lax
from dovetail.extend.arguments import array_like, canonical_axis, integer
from dovetail.extend.avals import aval_of
from dovetail.extend.tracebacks import publish as _publish
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.numpy.contraction import cross as cross_products
from dovetail.numpy.contraction import matmul as products
from dovetail.numpy.contraction import outer as all_products
from dovetail.numpy.contraction import tensordot as contraction
from dovetail.numpy.contraction import vecdot as vecdot
from dovetail.numpy.linalg.decompositions import cholesky as cholesky
from dovetail.numpy.linalg.decompositions import eig as eig
from dovetail.numpy.linalg.decompositions import eigh as eigh
from dovetail.numpy.linalg.decompositions import eigvals as eigvals
from dovetail.numpy.linalg.decompositions import eigvalsh as eigvalsh
from dovetail.numpy.linalg.decompositions import qr as qr
from dovetail.numpy.linalg.decompositions import svd as svd
from dovetail.numpy.linalg.decompositions import svdvals as svdvals
from dovetail.numpy.linalg.determinants import det as det
from dovetail.numpy.linalg.determinants import slogdet as slogdet
from dovetail.numpy.linalg.matrix_products import matrix_power as matrix_power
from dovetail.numpy.linalg.matrix_products import multi_dot as multi_dot
from dovetail.numpy.linalg.norms import cond as cond
from dovetail.numpy.linalg.norms import matrix_norm as matrix_norm
from dovetail.numpy.linalg.norms import norm as norm
from dovetail.numpy.linalg.norms import vector_norm as vector_norm
from dovetail.numpy.linalg.solvers import inv as inv
from dovetail.numpy.linalg.solvers import lstsq as lstsq
from dovetail.numpy.linalg.solvers import matrix_rank as matrix_rank
from dovetail.numpy.linalg.solvers import pinv as pinv
from dovetail.numpy.linalg.solvers import solve as solve
from dovetail.numpy.linalg.solvers import tensorinv as tensorinv
from dovetail.numpy.linalg.solvers import tensorsolve as tensorsolve
from dovetail.numpy.matrices import diagonal as diagonals
from dovetail.numpy.matrices import trace as traces
from dovetail.numpy.shapes import matrix_transpose as matrix_transpose
from dovetail.typing import Array, ArrayLike, DTypeLike, Sharding

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return __all__


@compiled_with("precision", "preferred_element_type")
def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The matrix product, ``x1 @ x2``, as in `dovetail.numpy.matmul`.

    Args:
        x1: array of rank 1 or more; matrices in its last two dimensions, or a vector (a row).
        x2: array of rank 1 or more; matrices in its last two dimensions, or a vector (a column).
        precision: accuracy of the products: None, "default", "high", "highest", or a pair of them.
        preferred_element_type: dtype of the result, in which the products are summed.

    Returns:
        An array of matrices; the leading dimensions are broadcast. Vectors add no dimension.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1])))
        [3 7]
    """
    return plain(products)(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


@compiled
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The outer product: each element of one vector times each of another.

    Unlike `dovetail.numpy.outer`, it accepts only vectors.

    Args:
        x1: array of rank 1.
        x2: array of rank 1.

    Returns:
        An array of shape ``(x1.size, x2.size)``.

    Raises:
        ValueError: an argument is not a vector.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4])))
        [[3 4]
         [6 8]]
    """
    x, y = array_like(x1, "linalg.outer", "x1"), array_like(x2, "linalg.outer", "x2")
    ranks = aval_of(x).ndim, aval_of(y).ndim
    if ranks != (1, 1):
        raise ValueError(
            f"linalg.outer takes vectors, got arrays of rank {ranks[0]} and {ranks[1]}; "
            "dovetail.numpy.outer flattens arrays first"
        )
    return plain(all_products)(x, y)


@compiled_with("axes", "precision", "preferred_element_type", "out_sharding")
def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Sums of products along several dimensions, as in `dovetail.numpy.tensordot`.

    Args:
        x1: array.
        x2: array.
        axes: a number n, for the last n dimensions of `x1` and the first n of `x2`; or a pair of
            sequences of dimensions.
        precision: accuracy of the products: None, "default", "high", "highest", or a pair of them.
        preferred_element_type: dtype of the result, in which the products are summed.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array with the remaining dimensions of `x1`, then those of `x2`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1))
        [[3. 3.]
         [3. 3.]]
    """
    return plain(contraction)(
        x1,
        x2,
        axes,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


@compiled_with("axis")
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross products of vectors with three components.

    Args:
        x1: array of vectors.
        x2: array of vectors, which broadcasts with `x1`.
        axis: the dimension that holds the components.

    Returns:
        An array of vectors.

    Raises:
        ValueError: vectors do not have three components, or `axis` is out of bounds.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])))
        [0 0 1]
    """
    function = "linalg.cross"
    x, y = array_like(x1, function, "x1"), array_like(x2, function, "x2")
    sizes = [aval_of(v).shape[canonical_axis(function, axis, aval_of(v).ndim)] for v in (x, y)]
    if sizes != [3, 3]:
        raise ValueError(
            f"{function} takes vectors with three components along axis {axis}, got {sizes[0]} and "
            f"{sizes[1]}; dovetail.numpy.cross takes two as well"
        )
    return plain(cross_products)(x, y, axis=axis)


@compiled_with("offset")
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Extract diagonals of matrices in the last two dimensions.

    Args:
        x: matrices of shape ``(..., m, n)``.
        offset: which diagonal: 0 is the main one, positive values are above it.

    Returns:
        An array of shape ``(..., k)``.

    Raises:
        ValueError: the rank of `x` is less than 2.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.diagonal(jnp.arange(8).reshape(2, 2, 2)))
        [[0 3]
         [4 7]]
    """
    matrices = array_like(x, "linalg.diagonal")
    if aval_of(matrices).ndim < 2:
        raise ValueError(
            f"linalg.diagonal needs an array of rank 2 or more, got rank {aval_of(matrices).ndim}"
        )
    return plain(diagonals)(matrices, integer("linalg.diagonal", "offset", offset), -2, -1)


@compiled_with("offset", "dtype")
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sum the diagonals of matrices in the last two dimensions.

    Args:
        x: matrices of shape ``(..., m, n)``.
        offset: which diagonal: 0 is the main one, positive values are above it.
        dtype: dtype of the result, in which the sum is computed.

    Returns:
        An array of shape ``(...)``.

    Raises:
        ValueError: the rank of `x` is less than 2.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.trace(jnp.arange(8).reshape(2, 2, 2)))
        [ 3 11]
    """
    matrices = array_like(x, "linalg.trace")
    if aval_of(matrices).ndim < 2:
        raise ValueError(
            f"linalg.trace needs an array of rank 2 or more, got rank {aval_of(matrices).ndim}"
        )
    return plain(traces)(matrices, integer("linalg.trace", "offset", offset), -2, -1, dtype)


_publish(globals())
