"""Random orthogonal matrices as initial values."""

from __future__ import annotations

import functools
import math
from typing import Any

from dovetail import numpy as jnp
from dovetail import random
from dovetail.errors import ShapeError
from dovetail.extend.arguments import canonical_axes
from dovetail.nn.initializers.initializer import Initializer, make_initializer
from dovetail.typing import ArrayLike, DTypeLike


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """An initializer of uniformly random orthogonal or unitary matrices.

    Args:
        scale: scalar: a factor.
        column_axis: the dimension that counts the columns; all others count the rows.
        dtype: dtype of results where none is asked for; the default float dtype if None.

    Returns:
        An initializer, for shapes of two dimensions at least: the columns, or, where there are more
        of these, the rows are orthogonal.

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> q = initializers.orthogonal()(random.key(0), (3, 3))
        >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
        True
    """
    return make_initializer(
        "orthogonal", dtype, functools.partial(_orthogonal, "orthogonal", scale, column_axis)
    )


def _orthogonal(
    function: str, scale: Any, column_axis: int, key: Any, shape: Any, dtype: Any, _: Any = None
) -> Any:
    if len(shape) < 2:
        raise ShapeError(
            f"initializers.{function} needs two dimensions at least, got shape {shape}"
        )
    (axis,) = canonical_axes(f"initializers.{function}", column_axis, len(shape), "column_axis")
    columns = shape[axis]
    others = (*shape[:axis], *shape[axis + 1 :])
    drawn = random.orthogonal(key, math.prod(others), (), dtype, columns)
    return jnp.moveaxis(drawn.reshape((*others, columns)), -1, axis) * jnp.asarray(scale, dtype)


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """An initializer of convolutions that are orthogonal: a matrix in the middle, else zeros.

    Args:
        scale: scalar: a factor.
        column_axis: the dimension of the matrix that counts the columns, 0 or 1, or -2 or -1.
        dtype: dtype of results where none is asked for; the default float dtype if None.

    Returns:
        An initializer, for shapes ``(*window, channels in, channels out)`` of one to three
        dimensions of the window, with no fewer channels out than in.

    Source:
        L. Xiao et al., Dynamical isometry and a mean field theory of CNNs, ICML 2018.

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> x = initializers.delta_orthogonal()(random.key(0), (3, 3, 2, 4))
        >>> int((x != 0).sum())
        8
    """

    def make(key: Any, shape: Any, dtype: Any, _: Any) -> Any:
        if len(shape) not in (3, 4, 5):
            raise ShapeError(
                f"initializers.delta_orthogonal needs three to five dimensions, got shape {shape}"
            )
        *window, ins, outs = shape
        if outs < ins:
            raise ShapeError(
                "initializers.delta_orthogonal needs no fewer channels out than in, got shape "
                f"{shape}"
            )
        matrix = _orthogonal("delta_orthogonal", scale, column_axis, key, (ins, outs), dtype)
        middle = tuple([(n - 1) // 2 for n in window])
        return jnp.zeros(shape, dtype).at[middle].set(matrix)

    return make_initializer("delta_orthogonal", dtype, make)
