"""Codes of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, inexact_dtype
from dovetail.extend.avals import aval_of
from dovetail.extend.tracebacks import publish as _publish
from dovetail.numpy.averages import computed_in, real_dtype
from dovetail.numpy.compiled import compiled
from dovetail.typing import Array, ArrayLike

__all__ = ["vq"]


def __dir__() -> list[str]:
    return __all__


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """For each observation which code is nearest, and how far it is.

    Args:
        obs: matrix with an observation in each row; or a vector of numbers.
        code_book: matrix with a code in each row, of as many columns; or a vector of numbers.
        check_finite: taken as in SciPy, without effect: numbers are not checked.

    Returns:
        The rows of codes (int32; the first of those equally near), and Euclidean distances (float).
        Where a distance is nan the code is the first such one.

    Raises:
        ValueError: the arrays are neither two matrices with as many columns nor two vectors, or
            there are no codes.

    Differs:
        The derivative of a distance of 0 is 0, not nan. Distances of 16-bit floats are computed in
        float32.

        >>> from dovetail.scipy.cluster.vq import vq
        >>> print(dt.grad(lambda x: vq(x, x)[1].sum())(jnp.eye(2)))
        [[0. 0.]
         [0. 0.]]

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.cluster.vq import vq
        >>> codes, distances = vq(jnp.array([[1., 1.], [4., 6.]]), jnp.array([[0., 0.], [1., 2.]]))
        >>> print(codes, distances)
        [1 1] [1. 5.]
    """
    name = "scipy.cluster.vq.vq"
    avals = [aval_of(array_like(x, name, n)) for x, n in ((obs, "obs"), (code_book, "code_book"))]
    for aval in avals:
        if dtypes.kind_of(aval.dtype) is None:
            raise TypeError(f"{name} does not accept the dtype {aval.dtype}")
    first, second = (aval.shape for aval in avals)
    if len(first) != len(second) or len(first) not in (1, 2) or first[1:] != second[1:]:
        raise ShapeError(
            f"{name} needs two matrices with as many columns, or two vectors, got {first} and "
            f"{second}"
        )
    if not second[0]:
        raise ValueError(f"{name} needs one code at least, got shape {second}")
    return _nearest(obs, code_book)


@compiled
def _nearest(obs: Any, code_book: Any) -> Any:
    x, y = jnp.asarray(obs), jnp.asarray(code_book)
    dtype = inexact_dtype(dtypes.result_type(x, y))
    work = computed_in(dtype)
    x, y = (v.astype(work) if v.ndim == 2 else v.astype(work)[:, None] for v in (x, y))
    fixed = lax.stop_gradient(x)[:, None] - lax.stop_gradient(y)
    codes = jnp.argmin(_squares(fixed), 1).astype(np.int32)
    squares = _squares(x - y[codes])
    # At 0 the derivative of the square root is infinite.
    positive = squares > 0
    root = jnp.sqrt(jnp.where(positive, squares, 1))
    distances = jnp.where(positive, root, squares)
    return codes, distances.astype(real_dtype(dtype))


def _squares(x: Any) -> Any:
    if dtypes.kind_of(x.dtype) == "c":
        return (jnp.square(x.real) + jnp.square(x.imag)).sum(-1)
    return jnp.square(x).sum(-1)


_publish(globals())
