"""Complex numbers and their parts."""

from __future__ import annotations

import numpy as np
from dovetail import lax
from dovetail.errors import NonArrayArgumentError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, literal, value
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled_with, elementwise, plain
from dovetail.typing import Array, ArrayLike


@elementwise
def real(val: ArrayLike, /) -> Array:
    """The real part of each element.

    Args:
        val: array or scalar.

    Returns:
        An array of the shape of `val`; `val` itself if it is not complex.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.real(jnp.array([1 + 2j, 3.])))
        [1. 3.]
    """
    x = array_like(val, "real", "val")
    return lax.real(x) if dtypes.kind_of(x.dtype) == "c" else value(x)


@elementwise
def imag(val: ArrayLike, /) -> Array:
    """The imaginary part of each element; zeros if the array is not complex.

    Args:
        val: array or scalar.

    Returns:
        An array of the shape of `val`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.imag(jnp.array([1 + 2j, 3.])))
        [2. 0.]
    """
    x = array_like(val, "imag", "val")
    return lax.imag(x) if dtypes.kind_of(x.dtype) == "c" else lax.full_like(value(x), 0)


@elementwise
def conj(x: ArrayLike, /) -> Array:
    """The complex conjugate of each element; the array itself if it is not complex.

    Args:
        x: array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.conj(jnp.array([1 + 2j, 3.])))
        [1.-2.j 3.-0.j]
    """
    x = array_like(x, "conj")
    return lax.conj(x) if dtypes.kind_of(x.dtype) == "c" else value(x)


@compiled_with("deg")
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of each complex number, measured from the positive real axis.

    Args:
        z: array or scalar.
        deg: whether to return degrees instead of radians.

    Returns:
        A float array of the shape of `z`: radians in [-pi, pi], or degrees.

    Differs:
        That of a single real number has its dtype, as that of several has.

        >>> with dt.enable_x64(True):
        ...     print(jnp.angle(np.float32(1)).dtype)
        float32

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.angle(jnp.array([1j, -1.]), deg=True))
        [ 90. 180.]
    """
    z = array_like(z, "angle", "z")
    if dtypes.kind_of(z.dtype) == "c":
        result = lax.atan2(lax.imag(z), lax.real(z))
    else:
        if dtypes.kind_of(z.dtype) != "f":
            z = lax.convert_element_type(z, dtypes.default_dtype("f"))
        zero = lax.full_like(z, 0)
        result = lax.atan2(zero, z)
    return lax.mul(result, literal(57.29577951308232, result.dtype)) if deg else result


@elementwise
def iscomplex(x: ArrayLike) -> Array:
    """Test, element by element, for a nonzero imaginary part.

    Args:
        x: array or scalar.

    Returns:
        A boolean array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.iscomplex(jnp.array([1 + 2j, 3.])))
        [ True False]
    """
    part = plain(imag)(x)
    return lax.ne(part, literal(0, part.dtype))


@elementwise
def isreal(x: ArrayLike) -> Array:
    """Test, element by element, whether the imaginary part is absent or zero.

    Args:
        x: array or scalar.

    Returns:
        A boolean array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.isreal(jnp.array([1 + 2j, 3.])))
        [False  True]
    """
    part = plain(imag)(x)
    return lax.eq(part, literal(0, part.dtype))


def iscomplexobj(x: object) -> bool:
    """Check whether an array has a complex dtype, whatever its values.

    Args:
        x: array, scalar, dtype, or nested sequence of these; nothing else is complex.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.iscomplexobj(jnp.array([1j])), jnp.iscomplexobj(2.)
        (True, False)
    """
    if isinstance(x, (list, tuple)):
        return any(map(iscomplexobj, x))
    if x is None or isinstance(x, (str, bytes, int, float)):
        return False
    dtype = x if isinstance(x, np.dtype) else getattr(x, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtypes.kind_of(dtype) == "c"
    if isinstance(x, type):
        return issubclass(x, (complex, np.complexfloating))
    try:
        return dtypes.kind_of(aval_of(array_like(x, "iscomplexobj")).dtype) == "c"
    except NonArrayArgumentError:
        return False


def isrealobj(x: object) -> bool:
    """Check whether an array has a dtype that is not complex.

    Args:
        x: array, scalar, dtype, or nested sequence of these; anything else is not complex.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.isrealobj(jnp.array([1j])), jnp.isrealobj(2.)
        (False, True)
    """
    return not iscomplexobj(x)
