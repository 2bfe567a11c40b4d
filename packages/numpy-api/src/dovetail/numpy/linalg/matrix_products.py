"""Powers of matrices, and products of several of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dovetail import lax
from dovetail.extend.arguments import array_like, array_sequence, integer, same_dtype, value
from dovetail.extend.avals import aval_of
from dovetail.extend.matrices import identity
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import spread
from dovetail.numpy.contraction import matmul
from dovetail.numpy.linalg.decompositions import checked_matrices, factored, rounded
from dovetail.numpy.linalg.solvers import inverse
from dovetail.typing import Array, ArrayLike


@compiled_with("n")
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Powers of square matrices.

    Args:
        a: matrices of shape ``(..., m, m)``.
        n: exponent, an integer; for a negative one, powers of the inverse.

    Returns:
        An array of the shape and dtype of `a`; of a float dtype for integers with a negative
        exponent.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: the matrices are not square.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5))
        [[1 5]
         [0 1]]
    """
    function = "linalg.matrix_power"
    exponent = integer(function, "n", n)
    x = checked_matrices(function, array_like(a, function, "a"), "a", square=True)
    x = value(x)
    if exponent < 0:
        x, dtype = factored(function, x)
        return rounded(_power(inverse(x), -exponent), dtype)
    return _power(x, exponent)


def _power(x: Any, exponent: int) -> Any:
    if not exponent:
        shape = aval_of(x).shape
        return spread(identity(shape[-1], shape[-1], aval_of(x).dtype), shape)
    power = None
    while True:
        if exponent % 2:
            power = x if power is None else plain(matmul)(power, x)
        exponent //= 2
        if not exponent:
            return power
        x = plain(matmul)(x, x)


@compiled_with("precision")
def multi_dot(
    arrays: Sequence[ArrayLike] | ArrayLike, *, precision: lax.PrecisionLike = None
) -> Array:
    """Multiply several matrices in the order that takes the fewest multiplications.

    Args:
        arrays: sequence of two or more arrays of rank 2; the first and the last may be vectors (a
            row, and a column).
        precision: accuracy of the products, as for `matmul`.

    Returns:
        An array of rank 2; vectors add no dimension.

    Raises:
        ValueError: there are fewer than two, a rank is wrong, or the sizes of neighbours do not
            match.

    Example:
        >>> import dovetail.numpy as jnp
        >>> a, b = jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1])
        >>> print(jnp.linalg.multi_dot([a, a, b]))
        [17 37]
    """
    function = "linalg.multi_dot"
    factors = array_sequence(arrays, function)
    if len(factors) < 2:
        raise ValueError(f"{function} needs two arrays or more, got {len(factors)}")
    factors = [value(x) for x in same_dtype(factors)]
    shapes = [aval_of(x).shape for x in factors]
    ends = (0, len(shapes) - 1)
    if any(len(s) != 2 and not (len(s) == 1 and i in ends) for i, s in enumerate(shapes)):
        raise ValueError(
            f"{function}: arrays must have two dimensions, the first and the last one or two, got "
            f"the shapes {shapes}"
        )
    # The sizes between factors; for vectors at the ends, the outer size is 1.
    sizes = [1 if len(shapes[0]) == 1 else shapes[0][0]]
    for i, shape in enumerate(shapes):
        if i and shape[0] != shapes[i - 1][-1]:
            raise ValueError(
                f"{function}: the last size of each array must be the first of the next one, got "
                f"the shapes {shapes}"
            )
        sizes.append(shape[-1] if i < ends[1] or len(shape) == 2 else 1)
    if len(shapes[0]) == 1:
        sizes[1] = shapes[0][0]
    return _in_order(factors, _best_splits(sizes), 0, ends[1], precision)


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of matrices of sizes ``sizes[i], sizes[i + 1]``.

    Source: Cormen and others, "Introduction to Algorithms", section 15.2.
    """
    count = len(sizes) - 1
    costs = {(i, i): 0 for i in range(count)}
    splits = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            best = math.inf
            for k in range(i, j):
                outer = sizes[i] * sizes[k + 1] * sizes[j + 1]
                cost = costs[i, k] + costs[k + 1, j] + outer
                if cost < best:
                    best, costs[i, j], splits[i, j] = cost, cost, k
    return splits


def _in_order(
    factors: list[Any], splits: dict[tuple[int, int], int], first: int, last: int, precision: Any
) -> Any:
    if first == last:
        return factors[first]
    split = splits[first, last]
    left = _in_order(factors, splits, first, split, precision)
    right = _in_order(factors, splits, split + 1, last, precision)
    return plain(matmul)(left, right, precision=precision)
