"""Activation functions, applied element by element.

At a kink the derivative is that of the flat, or left, side: for `relu` at 0 it is 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axis,
    convert,
    inexact,
    inexact_pair,
    literal,
    promoted_pair,
    refuse_complex,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.arithmetic import multiply
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.numpy.conditions import pick
from dovetail.numpy.exponentials import logaddexp
from dovetail.typing import Array, ArrayLike


def _real(function: str, x: Any) -> Any:
    x = inexact(function, x)
    refuse_complex(function, x)
    return x


def _beside_float(function: str, x: Any) -> Any:
    """A real operand of a function that combines it with floats of Python."""
    x = array_like(x, function)
    if dtypes.kind_of(aval_of(x).dtype) in ("b", "i", "u"):
        return convert(x, dtypes.default_dtype("f"), weak=True)
    return _real(function, x)


def _beside_integer(function: str, x: Any) -> Any:
    """An operand of a function that combines it with integers of Python."""
    x = array_like(x, function)
    if dtypes.kind_of(aval_of(x).dtype) == "b":
        return convert(x, dtypes.default_dtype("i"), weak=True)
    return x


def _number(value: float, x: Any) -> Any:
    return literal(value, aval_of(x).dtype, weak_of(x))


def _parameter(function: str, name: str, given: Any, x: Any) -> tuple[Any, Any]:
    """A float operand and a parameter of the function, in a common dtype."""
    parameter = array_like(given, function, name)
    if aval_of(x).weak_type:
        parameter = _beside_float(function, parameter)
    return promoted_pair(function, x, parameter)


@compiled
def identity(x: ArrayLike) -> Array:
    """The elements unchanged.

    Args:
        x: array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.identity(jnp.array([-1., 2.])))
        [-1.  2.]
    """
    return value(array_like(x, "identity"))


@compiled
def relu(x: ArrayLike) -> Array:
    """The positive part: ``max(x, 0)``, with the derivative 0 at 0.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        An array of the shape and dtype of `x`.

    Differs:
        Complex numbers have no order, and are refused, as by the other functions that need one.

        >>> try:
        ...     dt.nn.relu(1j)
        ... except TypeError as error:
        ...     print(error)
        relu is defined for real numbers only, got dtype complex64; take x.real, ...

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.relu(jnp.array([-1., 0., 2.])))
        [0. 0. 2.]
    """
    x = _beside_integer("relu", x)
    refuse_complex("relu", x)
    zero = _number(0, x)
    # Not a maximum: its gradient at 0 would be split between both operands.
    return pick(lax.le(x, zero), zero, x)


@compiled
def relu6(x: ArrayLike) -> Array:
    """The positive part up to 6: ``min(max(x, 0), 6)``, with the derivative 0 at 0 and 6.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.relu6(jnp.array([-1., 2., 9.])))
        [0. 2. 6.]
    """
    x = _beside_float("relu6", x)
    six = _number(6, x)
    return pick(lax.ge(x, six), six, plain(relu)(x))


@compiled
def sigmoid(x: ArrayLike) -> Array:
    """The logistic function, ``1 / (1 + exp(-x))``.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.sigmoid(jnp.array([-jnp.inf, 0., jnp.inf])))
        [0.  0.5 1. ]
    """
    return lax.logistic(inexact("sigmoid", x))


@compiled
def softplus(x: ArrayLike) -> Array:
    """``log(1 + exp(x))``, a smooth `relu`, without overflow.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.nn
        >>> print(f"{dovetail.nn.softplus(0.):.4f} {dovetail.nn.softplus(1000.):.1f}")
        0.6931 1000.0
    """
    return plain(logaddexp)(x, literal(0, dtypes.default_dtype("i"), weak=True))


@compiled
def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, ``(x + 1)**2 / 4`` between -1 and 1, `x` above: a smooth `relu`.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.sparse_plus(jnp.array([-2., 0., 2.])))
        [0.   0.25 2.  ]
    """
    x = _beside_float("sparse_plus", x)
    one = _number(1, x)
    middle = lax.mul(_number(0.25, x), lax.square(lax.add(x, one)))
    below = lax.le(x, _number(-1, x))
    return pick(below, _number(0, x), pick(lax.ge(x, one), x, middle))


@compiled
def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 below -1, ``(x + 1) / 2`` between -1 and 1, 1 above: the derivative of `sparse_plus`.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.sparse_sigmoid(jnp.array([-2., 0., 2.])))
        [0.  0.5 1. ]
    """
    x = _beside_float("sparse_sigmoid", x)
    one = _number(1, x)
    limited = lax.max(lax.min(x, one), _number(-1, x))
    return lax.mul(_number(0.5, x), lax.add(limited, one))


@compiled
def soft_sign(x: ArrayLike) -> Array:
    """``x / (1 + abs(x))``.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Differs:
        Integers are floats before their magnitude is taken, so that the least one keeps its sign.

        >>> print(f"{dt.nn.soft_sign(jnp.int8(-128)):.2f}")
        -0.99

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.soft_sign(jnp.array([-1., 0., 3.])))
        [-0.5   0.    0.75]
    """
    x = inexact("soft_sign", _beside_integer("soft_sign", x))
    zero, one = _number(0, x), _number(1, x)
    if dtypes.kind_of(aval_of(x).dtype) == "c":
        return lax.div(x, lax.add(one, convert(lax.abs(x), aval_of(x).dtype, weak_of(x))))
    # Not abs: its derivative at 0 is 0, but that of this function is 1.
    magnitude = pick(lax.ge(x, zero), x, lax.neg(x))
    return lax.div(x, lax.add(one, magnitude))


@compiled
def silu(x: ArrayLike) -> Array:
    """``x * sigmoid(x)``, also known as swish.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.nn
        >>> print(f"{dovetail.nn.silu(1.):.4f}")
        0.7311
    """
    x = inexact("silu", x)
    return lax.mul(x, lax.logistic(x))


@compiled
def mish(x: ArrayLike) -> Array:
    """``x * tanh(softplus(x))``.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.nn
        >>> print(f"{dovetail.nn.mish(1.):.4f}")
        0.8651
    """
    x = inexact("mish", _beside_integer("mish", x))
    return lax.mul(x, lax.tanh(plain(softplus)(x)))


@compiled
def log_sigmoid(x: ArrayLike) -> Array:
    """The logarithm of `sigmoid`, without underflow.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Differs:
        Unsigned integers are floats before anything is subtracted from them, here and in
        `log_softmax`, `log1mexp` and `softmax`. In JAX the negative of an unsigned number is great.

        >>> print(f"{dt.nn.log_sigmoid(jnp.uint8(1)):.3f}")
        -0.313

    Example:
        >>> import dovetail.nn
        >>> print(f"{dovetail.nn.log_sigmoid(-1000.):.1f}")
        -1000.0
    """
    return lax.neg(plain(softplus)(lax.neg(inexact("log_sigmoid", x))))


@compiled
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """`x` for positive elements, ``alpha * (exp(x) - 1)`` for others.

    Args:
        x: array or scalar of a real dtype.
        alpha: scalar or array.

    Returns:
        A float array of the common shape.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.elu(jnp.array([-jnp.inf, 0., 2.])))
        [-1.  0.  2.]
    """
    x, a = _parameter("elu", "alpha", alpha, _beside_float("elu", x))
    zero = _number(0, x)
    positive = lax.gt(x, zero)
    # Keep large numbers away from the exponential: its derivative would be infinite.
    return pick(positive, x, lax.mul(*promoted_pair("elu", a, lax.expm1(pick(positive, zero, x)))))


@compiled
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """`x` for positive elements, ``alpha * (exp(x / alpha) - 1)`` for others.

    Args:
        x: array or scalar of a real dtype.
        alpha: scalar or array.

    Returns:
        A float array of the common shape.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.celu(jnp.array([-jnp.inf, 0., 2.]), alpha=0.5))
        [-0.5  0.   2. ]
    """
    x, a = _parameter("celu", "alpha", alpha, _beside_float("celu", x))
    zero = _number(0, x)
    positive = lax.gt(x, zero)
    safe = pick(positive, zero, x)
    return pick(positive, x, lax.mul(a, lax.expm1(lax.div(safe, a))))


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@compiled
def selu(x: ArrayLike) -> Array:
    """`elu` with constants that keep mean 0 and variance 1 from layer to layer.

    The constants are those of Klambauer et al., Self-Normalizing Neural Networks (2017).

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Example:
        >>> import dovetail.nn
        >>> print(f"{dovetail.nn.selu(1.):.4f}")
        1.0507
    """
    x = _beside_float("selu", x)
    return lax.mul(_number(_SELU_SCALE, x), plain(elu)(x, _number(_SELU_ALPHA, x)))


@compiled
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """`x` for nonnegative elements, ``negative_slope * x`` for others.

    Args:
        x: array or scalar of a real dtype.
        negative_slope: scalar or array.

    Returns:
        An array of the common shape and dtype.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.leaky_relu(jnp.array([-1., 2.]), 0.5))
        [-0.5  2. ]
    """
    x = array_like(x, "leaky_relu")
    slope = array_like(negative_slope, "leaky_relu", "negative_slope")
    if dtypes.kind_of(aval_of(slope).dtype) == "f":
        x = _beside_float("leaky_relu", x)
    x, slope = promoted_pair("leaky_relu", x, slope)
    refuse_complex("leaky_relu", x)
    return pick(lax.ge(x, _number(0, x)), x, plain(multiply)(slope, x))


@compiled
def hard_tanh(x: ArrayLike) -> Array:
    """The elements clipped to [-1, 1].

    Args:
        x: array or scalar of a real dtype.

    Returns:
        An array of the shape and dtype of `x`.

    Differs:
        Unsigned integers are never below -1.

        >>> print(dt.nn.hard_tanh(jnp.array([0, 1, 2], "uint8")))
        [0 1 1]

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.hard_tanh(jnp.array([-2., 0.5, 2.])))
        [-1.   0.5  1. ]
    """
    x = _beside_integer("hard_tanh", x)
    refuse_complex("hard_tanh", x)
    if dtypes.kind_of(aval_of(x).dtype) == "u":
        return lax.min(x, _number(1, x))
    return pick(
        lax.gt(x, _number(1, x)), _number(1, x), pick(lax.lt(x, _number(-1, x)), _number(-1, x), x)
    )


@compiled
def hard_sigmoid(x: ArrayLike) -> Array:
    """``relu6(x + 3) / 6``, a piecewise linear `sigmoid`.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.hard_sigmoid(jnp.array([-4., 0., 4.])))
        [0.  0.5 1. ]
    """
    x = _beside_float("hard_sigmoid", x)
    return lax.div(plain(relu6)(lax.add(x, _number(3, x))), _number(6, x))


@compiled
def hard_silu(x: ArrayLike) -> Array:
    """``x * hard_sigmoid(x)``, also known as hard swish.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.hard_silu(jnp.array([-4., 1.5, 4.])))
        [-0.     1.125  4.   ]
    """
    x = _beside_float("hard_silu", x)
    return lax.mul(x, plain(hard_sigmoid)(x))


@compiled
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """``(x + sqrt(x**2 + b)) / 2``, a smooth `relu`.

    Args:
        x: array or scalar.
        b: smoothness: scalar or array.

    Returns:
        A float or complex array of the common shape.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.squareplus(jnp.array([-1.5, 0., 1.5])))
        [0.5 1.  2. ]
    """
    x = array_like(x, "squareplus")
    if dtypes.kind_of(aval_of(x).dtype) == "b":
        x = convert(x, np.dtype("int32"))
    x, b = inexact_pair("squareplus", x, b, ("x", "b"))
    root = lax.sqrt(lax.add(lax.square(x), b))
    return lax.mul(lax.add(x, root), _number(0.5, x))


@compiled_with("approximate")
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """`x` times the standard normal distribution function: the Gaussian error linear unit.

    Args:
        x: array or scalar, of a real dtype unless `approximate`.
        approximate: whether to use ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``,
            from Hendrycks and Gimpel, Gaussian Error Linear Units (2016), instead of the error
            function.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.nn
        >>> print(f"{dovetail.nn.gelu(1.):.4f} {dovetail.nn.gelu(1., approximate=False):.4f}")
        0.8412 0.8413
    """
    x = inexact("gelu", x) if approximate else _real("gelu", x)
    # The result has a dtype of its own, also where the operand is weakly typed.
    x = convert(x, aval_of(x).dtype)
    half, one = _number(0.5, x), _number(1, x)
    if approximate:
        inner = lax.add(x, lax.mul(_number(0.044715, x), lax.integer_pow(x, 3)))
        share = lax.tanh(lax.mul(_number(math.sqrt(2 / math.pi), x), inner))
        return lax.mul(x, lax.mul(half, lax.add(one, share)))
    # The complementary error function stays precise for large negative numbers.
    share = lax.erfc(lax.mul(x, _number(-math.sqrt(0.5), x)))
    return lax.mul(lax.mul(half, x), share)


@compiled_with("axis")
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The gated linear unit: half of the elements times the `sigmoid` of the other half.

    Args:
        x: array whose size along the dimension is even.
        axis: dimension.

    Returns:
        A float or complex array of half the size along the dimension.

    Raises:
        ValueError: the size is odd.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.glu(jnp.array([1., 2., 0., jnp.inf])))
        [0.5 2. ]
    """
    x = value(inexact("glu", x))
    dimension = canonical_axis("glu", axis, aval_of(x).ndim)
    size = aval_of(x).shape[dimension]
    if size % 2:
        raise ValueError(f"glu needs an even size along axis {dimension}, got {size}")
    first, second = lax.split(x, (size // 2, size // 2), dimension)
    return lax.mul(first, lax.logistic(second))


@compiled
def log1mexp(x: ArrayLike) -> Array:
    """``log(1 - exp(-x))`` for positive elements, accurate near both ends.

    The two formulas and the point where they meet are from Maechler, Accurately Computing log(1 -
    exp(-|a|)) (2012).

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`: -inf at 0, nan below.

    Example:
        >>> import dovetail.nn
        >>> print(f"{dovetail.nn.log1mexp(1.):.4f}")
        -0.4587
    """
    x = _real("log1mexp", x)
    small = lax.lt(x, _number(math.log(2), x))
    one = _number(1, x)
    near = lax.log(lax.neg(lax.expm1(lax.neg(pick(small, x, one)))))
    far = lax.log1p(lax.neg(lax.exp(lax.neg(pick(small, one, x)))))
    return pick(small, near, far)
