"""Operations on the bits of integers."""

from __future__ import annotations

from typing import Any

from dovetail import lax
from dovetail.core.base import dtypes
from dovetail.numpy.arguments import array_like, promoted_pair, require_kind
from dovetail.numpy.compiled import compiled
from dovetail.numpy.ufuncs import universal

_BITS = "integers and booleans"


@universal(2, -1)
@compiled
def bitwise_and(x1: Any, x2: Any, /) -> Any:
    """The bits that two integers share; the logical and of booleans.

    Args:
        x1: array or scalar of integers or booleans.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype.

    Raises:
        TypeError: the operands are floats or complex numbers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bitwise_and(jnp.arange(4), 2))
        [0 0 2 2]
    """
    x, y = promoted_pair("bitwise_and", x1, x2)
    require_kind("bitwise_and", x, "biu", _BITS)
    return lax.and_p.bind(x, y)


@universal(2, 0)
@compiled
def bitwise_or(x1: Any, x2: Any, /) -> Any:
    """The bits that are set in at least one of two integers; the logical or of booleans.

    Args:
        x1: array or scalar of integers or booleans.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype.

    Raises:
        TypeError: the operands are floats or complex numbers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bitwise_or(jnp.arange(4), 2))
        [2 3 2 3]
    """
    x, y = promoted_pair("bitwise_or", x1, x2)
    require_kind("bitwise_or", x, "biu", _BITS)
    return lax.or_p.bind(x, y)


@universal(2, 0)
@compiled
def bitwise_xor(x1: Any, x2: Any, /) -> Any:
    """The bits that are set in exactly one of two integers; the exclusive or of booleans.

    Args:
        x1: array or scalar of integers or booleans.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype.

    Raises:
        TypeError: the operands are floats or complex numbers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bitwise_xor(jnp.arange(4), 2))
        [2 3 0 1]
    """
    x, y = promoted_pair("bitwise_xor", x1, x2)
    require_kind("bitwise_xor", x, "biu", _BITS)
    return lax.xor_p.bind(x, y)


@compiled
def left_shift(x1: Any, x2: Any, /) -> Any:
    """Integers with their bits moved up: multiplied by powers of two.

    Args:
        x1: array or scalar of integers.
        x2: array or scalar that broadcasts with `x1`: how many places; a shift by the width or more
            gives 0.

    Returns:
        An array of the common shape and dtype.

    Raises:
        TypeError: the operands are floats or complex numbers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.left_shift(jnp.arange(4), 2))
        [ 0  4  8 12]
    """
    x, y = promoted_pair("left_shift", x1, x2)
    require_kind("left_shift", x, "iu", "integers")
    return lax.shift_left_p.bind(x, y)


@compiled
def right_shift(x1: Any, x2: Any, /) -> Any:
    """Integers with their bits moved down: divided by powers of two and rounded down.

    Args:
        x1: array or scalar of integers; the sign of negative ones is kept.
        x2: array or scalar that broadcasts with `x1`: how many places.

    Returns:
        An array of the common shape and dtype.

    Raises:
        TypeError: the operands are not integers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.right_shift(jnp.array([-8, 8, 9]), 2))
        [-2  2  2]
    """
    x, y = promoted_pair("right_shift", x1, x2)
    require_kind("right_shift", x, "iu", "integers")
    if dtypes.kind_of(x.dtype) == "u":
        return lax.shift_right_logical(x, y)
    return lax.shift_right_arithmetic(x, y)


@compiled
def bitwise_not(x: Any, /) -> Any:
    """Integers with every bit inverted; the logical not of booleans.

    Args:
        x: array or scalar of integers or booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: the operand is float or complex.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bitwise_not(jnp.arange(3)), jnp.bitwise_not(jnp.array(True)))
        [-1 -2 -3] False
    """
    x = array_like(x, "bitwise_not")
    require_kind("bitwise_not", x, "biu", _BITS)
    return lax.not_p.bind(x)


@compiled
def bitwise_count(x: Any, /) -> Any:
    """How many bits of the magnitude of each integer are set.

    Args:
        x: array or scalar of integers or booleans.

    Returns:
        A uint8 array of the shape of `x`.

    Raises:
        TypeError: the operand holds neither.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bitwise_count(jnp.array([0, 7, -8])))
        [0 3 1]
    """
    x = array_like(x, "bitwise_count")
    require_kind("bitwise_count", x, "biu", "integers and booleans")
    if dtypes.kind_of(x.dtype) == "b":
        return lax.convert_element_type(x, "uint8")
    magnitude = lax.abs(x) if dtypes.kind_of(x.dtype) == "i" else x
    return lax.convert_element_type(lax.population_count(magnitude), "uint8")
