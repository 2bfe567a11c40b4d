"""Initial values that do not depend on the shape of the weights."""

from __future__ import annotations

from typing import Any

from dovetail import numpy as jnp
from dovetail import random
from dovetail.nn.initializers.initializer import Initializer, make_initializer
from dovetail.typing import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike, Sharding


def zeros(
    key: KeyLike | None,
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Zeros.

    Args:
        key: not used.
        shape: shape of the result.
        dtype: dtype of the result; the default float dtype if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Example:
        >>> from dovetail.nn import initializers
        >>> print(initializers.zeros(None, (2,)))
        [0. 0.]
    """
    return jnp.zeros(shape, dtype, out_sharding=out_sharding)


def ones(
    key: KeyLike | None,
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Ones.

    Args:
        key: not used.
        shape: shape of the result.
        dtype: dtype of the result; the default float dtype if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Example:
        >>> from dovetail.nn import initializers
        >>> print(initializers.ones(None, (2,)))
        [1. 1.]
    """
    return jnp.ones(shape, dtype, out_sharding=out_sharding)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that gives a value.

    Args:
        value: scalar or array that broadcasts to the shapes that are asked for.
        dtype: dtype of results where none is asked for; the default float dtype if None.

    Returns:
        An initializer, which does not use its key.

    Raises:
        ValueError: raised by it where the value does not fit the shape, or a dtype is not inexact.

    Example:
        >>> from dovetail.nn import initializers
        >>> print(initializers.constant(-7)(None, (2,)))
        [-7. -7.]
    """
    return make_initializer(
        "constant",
        dtype,
        lambda key, shape, dtype, out_sharding: jnp.broadcast_to(
            jnp.asarray(value).astype(dtype), shape, out_sharding=out_sharding
        ),
    )


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws uniform numbers from 0 to `scale`.

    Args:
        scale: scalar: the upper end.
        dtype: dtype of results where none is asked for; the default float dtype if None.

    Returns:
        An initializer.

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> x = initializers.uniform(10.0)(random.key(0), (1000,))
        >>> abs(float(x.mean()) - 5) < 0.5
        True
    """

    def make(key: Any, shape: Any, dtype: Any, out_sharding: Any) -> Any:
        drawn = random.uniform(key, shape, dtype, out_sharding=out_sharding)
        return drawn * jnp.asarray(scale).astype(dtype)

    return make_initializer("uniform", dtype, make)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws normal numbers with mean 0.

    Args:
        stddev: scalar: their standard deviation.
        dtype: dtype of results where none is asked for; the default float dtype if None.

    Returns:
        An initializer.

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> x = initializers.normal(5.0)(random.key(0), (1000,))
        >>> abs(float(x.std()) - 5) < 0.5
        True
    """

    def make(key: Any, shape: Any, dtype: Any, out_sharding: Any) -> Any:
        drawn = random.normal(key, shape, dtype, out_sharding=out_sharding)
        return drawn * jnp.asarray(stddev).astype(dtype)

    return make_initializer("normal", dtype, make)


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:
    """An initializer that draws from the normal distribution within bounds.

    Args:
        stddev: scalar: the standard deviation that the numbers had without bounds.
        dtype: dtype of results where none is asked for; the default float dtype if None.
        lower: scalar: the lower bound, in standard deviations.
        upper: scalar: the upper bound, in standard deviations.

    Returns:
        An initializer, for floats.

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> x = initializers.truncated_normal(5.0)(random.key(0), (1000,))
        >>> bool((abs(x) < 10).all())
        True
    """

    def make(key: Any, shape: Any, dtype: Any, out_sharding: Any) -> Any:
        drawn = random.truncated_normal(key, lower, upper, shape, dtype, out_sharding=out_sharding)
        return drawn * jnp.asarray(stddev).astype(dtype)

    return make_initializer("truncated_normal", dtype, make)
