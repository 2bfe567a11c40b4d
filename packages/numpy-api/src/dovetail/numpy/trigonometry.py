"""Trigonometric and hyperbolic functions, and angles."""

from __future__ import annotations

from dovetail import lax
from dovetail.extend.arguments import float_pair, inexact, refuse_complex
from dovetail.numpy.compiled import elementwise
from dovetail.numpy.conditions import literal_beside
from dovetail.typing import Array, ArrayLike


@elementwise
def sin(x: ArrayLike, /) -> Array:
    """The sine of each element.

    Args:
        x: array or scalar: angles in radians.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.sin(jnp.array([0., jnp.pi / 2])))
        [0. 1.]
    """
    return lax.sin(inexact("sin", x))


@elementwise
def cos(x: ArrayLike, /) -> Array:
    """The cosine of each element.

    Args:
        x: array or scalar: angles in radians.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.cos(jnp.array([0., jnp.pi])))
        [ 1. -1.]
    """
    return lax.cos(inexact("cos", x))


@elementwise
def tan(x: ArrayLike, /) -> Array:
    """The tangent of each element.

    Args:
        x: array or scalar: angles in radians.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(f"{jnp.tan(1.):.4f}")
        1.5574
    """
    return lax.tan(inexact("tan", x))


@elementwise
def arcsin(x: ArrayLike, /) -> Array:
    """The angle whose sine is each element; nan for real numbers outside [-1, 1].

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`: radians in [-pi/2, pi/2].

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.arcsin(jnp.array([0., 1.])))
        [0.        1.5707964]
    """
    return lax.asin(inexact("arcsin", x))


@elementwise
def arccos(x: ArrayLike, /) -> Array:
    """The angle whose cosine is each element; nan for real numbers outside [-1, 1].

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`: radians in [0, pi].

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.arccos(jnp.array([1., 0.])))
        [0.        1.5707964]
    """
    return lax.acos(inexact("arccos", x))


@elementwise
def arctan(x: ArrayLike, /) -> Array:
    """The angle whose tangent is each element.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`: radians in [-pi/2, pi/2].

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.arctan(jnp.array([0., jnp.inf])))
        [0.        1.5707964]
    """
    return lax.atan(inexact("arctan", x))


@elementwise
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point with ordinate `x1` and abscissa `x2`.

    Args:
        x1: array or scalar of a real dtype.
        x2: array or scalar of a real dtype that broadcasts with `x1`.

    Returns:
        A float array of the common shape: radians in [-pi, pi].

    Raises:
        TypeError: an operand is complex; `dovetail.lax.atan2` takes complex numbers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.arctan2(jnp.array([0., 1.]), jnp.array([1., 0.])))
        [0.        1.5707964]
    """
    x, y = float_pair("arctan2", x1, x2)
    return lax.atan2(x, y)


@elementwise
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine of each element.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(f"{jnp.sinh(1.):.4f}")
        1.1752
    """
    return lax.sinh(inexact("sinh", x))


@elementwise
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine of each element.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(f"{jnp.cosh(1.):.4f}")
        1.5431
    """
    return lax.cosh(inexact("cosh", x))


@elementwise
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent of each element.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(f"{jnp.tanh(1.):.4f}")
        0.7616
    """
    return lax.tanh(inexact("tanh", x))


@elementwise
def arcsinh(x: ArrayLike, /) -> Array:
    """The inverse of the hyperbolic sine.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(f"{jnp.arcsinh(1.):.4f}")
        0.8814
    """
    return lax.asinh(inexact("arcsinh", x))


@elementwise
def arccosh(x: ArrayLike, /) -> Array:
    """The inverse of the hyperbolic cosine; nan for real numbers below 1.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(f"{jnp.arccosh(2.):.4f}")
        1.3170
    """
    return lax.acosh(inexact("arccosh", x))


@elementwise
def arctanh(x: ArrayLike, /) -> Array:
    """The inverse of the hyperbolic tangent; nan for real numbers outside [-1, 1].

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(f"{jnp.arctanh(0.5):.4f}")
        0.5493
    """
    return lax.atanh(inexact("arctanh", x))


@elementwise
def deg2rad(x: ArrayLike, /) -> Array:
    """Convert degrees to radians.

    Args:
        x: array or scalar of a real dtype: angles in degrees.

    Returns:
        A float array of the shape of `x`.

    Differs:
        Angles and the coordinates of points are real: complex numbers are refused, as in NumPy,
        here and by `rad2deg`, `arctan2` and `unwrap`.

        >>> try:
        ...     jnp.deg2rad(1j)
        ... except TypeError as error:
        ...     print(error)
        deg2rad is defined for real numbers only, got dtype complex64; ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.deg2rad(jnp.array([0., 180.])))
        [0.        3.1415927]
    """
    x = inexact("deg2rad", x)
    refuse_complex("deg2rad", x)
    return lax.mul(x, literal_beside(_RADIANS_PER_DEGREE, x))


@elementwise
def rad2deg(x: ArrayLike, /) -> Array:
    """Convert radians to degrees.

    Args:
        x: array or scalar of a real dtype: angles in radians.

    Returns:
        A float array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.rad2deg(jnp.array([0., jnp.pi])))
        [  0. 180.]
    """
    x = inexact("rad2deg", x)
    refuse_complex("rad2deg", x)
    return lax.div(x, literal_beside(_RADIANS_PER_DEGREE, x))


_RADIANS_PER_DEGREE = 0.017453292519943295
