"""Initial values whose variance is divided by a number of connections.

Source of the scales: X. Glorot and Y. Bengio, Understanding the difficulty of training deep
feedforward neural networks, AISTATS 2010; K. He et al., Delving deep into rectifiers, ICCV 2015;
Y. LeCun et al., Efficient BackProp, 1998.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from dovetail import lax, random
from dovetail import numpy as jnp
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import canonical_axes
from dovetail.extend.strictness import strictness
from dovetail.nn.initializers.initializer import Initializer, make_initializer
from dovetail.typing import ArrayLike, DTypeLike

Axes: TypeAlias = int | Sequence[int]
Mode: TypeAlias = Literal["fan_in", "fan_out", "fan_avg", "fan_geo_avg"]
Distribution: TypeAlias = Literal["truncated_normal", "normal", "uniform"]

_TWO_SIGMA = math.sqrt(1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2)))
"""The standard deviation of a normal number that is at most 2 in magnitude."""

_COMPLEX_TWO_SIGMA = math.sqrt(1 - 4 / (math.exp(4) - 1))
"""The same of a complex one, whose squared magnitude is exponential with mean 1."""


def _real(dtype: Any) -> Any:
    return dtypes.finfo(dtype).dtype


def variance_scaling(
    scale: ArrayLike,
    mode: Mode,
    distribution: Distribution,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """An initializer of weights whose variance is ``scale / n``, for a number `n` of connections.

    Dimensions that are not named are those of a convolution's window, and count for both sides.

    Args:
        scale: scalar: a factor, not negative.
        mode: what `n` is: ``"fan_in"`` (how many numbers each result depends on), ``"fan_out"``,
            ``"fan_avg"`` (their mean) or ``"fan_geo_avg"`` (their geometric mean).
        distribution: ``"normal"``, ``"truncated_normal"`` (within two standard deviations) or
            ``"uniform"`` (between two numbers of opposite sign; of complex numbers a disc).
        in_axis: dimensions of the weights that belong to what is given.
        out_axis: dimensions that belong to what results.
        batch_axis: dimensions over which there are separate weights.
        dtype: dtype of results where none is asked for; the default float dtype if None.

    Returns:
        An initializer.

    Raises:
        ValueError: `mode` or `distribution` is unknown; or, raised by the initializer, a shape does
            not have the dimensions, or one is named twice.

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> init = initializers.variance_scaling(2.0, "fan_in", "uniform")
        >>> x = init(random.key(0), (200, 50))
        >>> abs(float(x.var()) - 0.01) < 0.001
        True
    """
    return _scaled(
        "variance_scaling", scale, mode, distribution, in_axis, out_axis, batch_axis, dtype
    )


def _scaled(
    function: str,
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Axes,
    out_axis: Axes,
    batch_axis: Axes,
    dtype: Any,
) -> Initializer:
    for name, given, known in (("mode", mode, _MEANS), ("distribution", distribution, _DRAWS)):
        if not isinstance(given, str) or given not in known:
            raise ValueError(
                f"initializers.{function}: {name} must be one of {', '.join(map(repr, known))}, "
                f"got {given!r}"
            )

    def make(key: Any, shape: Any, dtype: Any, out_sharding: Any) -> Any:
        fan = _MEANS[mode](*_fans(function, shape, in_axis, out_axis, batch_axis))
        # Where there are no connections, there are no weights.
        deviation = jnp.sqrt(jnp.asarray(scale).astype(_real(dtype)) / (fan or 1))
        drawn = _DRAWS[distribution](key, shape, dtype, out_sharding)
        return drawn * deviation.astype(dtype)

    return make_initializer(function, dtype, make)


def _fans(
    function: str, shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """How many numbers a result depends on, and how many results depend on a number."""
    if len(shape) < 2 and (in_axis, out_axis) == (-2, -1):
        raise ShapeError(
            f"initializers.{function} needs weights with two dimensions at least, got shape "
            f"{shape}; name the dimensions by in_axis and out_axis"
        )
    given = {"in_axis": in_axis, "out_axis": out_axis, "batch_axis": batch_axis}
    axes = {
        name: canonical_axes(f"initializers.{function}", axis, len(shape), name)
        for name, axis in given.items()
    }
    named = [axis for group in axes.values() for axis in group]
    is_repeated = len(set(named)) < len(named)
    if is_repeated and strictness().axes_of_weights_differ:
        raise ValueError(
            f"initializers.{function}: in_axis, out_axis and batch_axis name a dimension twice: "
            f"{', '.join(f'{name}={axis}' for name, axis in given.items())}"
        )
    ins, outs = (math.prod(shape[i] for i in axes[name]) for name in ("in_axis", "out_axis"))
    if is_repeated:
        window: float = math.prod(shape) / (math.prod(shape[i] for i in named) or 1)
    else:
        window = math.prod(n for i, n in enumerate(shape) if i not in named)
    return ins * window, outs * window


_MEANS: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda ins, outs: ins,
    "fan_out": lambda ins, outs: outs,
    "fan_avg": lambda ins, outs: (ins + outs) / 2,
    "fan_geo_avg": lambda ins, outs: math.sqrt(ins * outs),
}


def _unit_uniform(key: Any, shape: Any, dtype: Any, out_sharding: Any) -> Any:
    if dtypes.kind_of(dtype) == "c":
        return _polar(key, shape, dtype, out_sharding, lambda u: lax.sqrt(2 * u))
    drawn = random.uniform(key, shape, dtype, -1, out_sharding=out_sharding)
    return drawn * jnp.asarray(math.sqrt(3), dtype)


def _unit_truncated(key: Any, shape: Any, dtype: Any, out_sharding: Any) -> Any:
    if dtypes.kind_of(dtype) == "c":
        most = -math.expm1(-4)
        drawn = _polar(key, shape, dtype, out_sharding, lambda u: lax.sqrt(-lax.log1p(-u * most)))
        return drawn / jnp.asarray(_COMPLEX_TWO_SIGMA, dtype)
    drawn = random.truncated_normal(key, -2, 2, shape, dtype, out_sharding=out_sharding)
    return drawn / jnp.asarray(_TWO_SIGMA, dtype)


def _polar(
    key: Any, shape: Any, dtype: Any, out_sharding: Any, radius: Callable[[Any], Any]
) -> Any:
    """Complex numbers of uniform angles, and radii that are a function of uniform numbers."""
    first, second = random.split(key)
    drawn, turned = (
        random.uniform(k, shape, _real(dtype), out_sharding=out_sharding) for k in (first, second)
    )
    length = radius(drawn)
    angle = 2 * math.pi * turned
    return lax.complex(length * lax.cos(angle), length * lax.sin(angle)).astype(dtype)


def _normal(key: Any, shape: Any, dtype: Any, out_sharding: Any) -> Any:
    return random.normal(key, shape, dtype, out_sharding=out_sharding)


_DRAWS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "truncated_normal": _unit_truncated,
    "normal": _normal,
    "uniform": _unit_uniform,
}


def glorot_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """`variance_scaling` with scale 1, ``"fan_avg"`` and uniform numbers.

    Args:
        in_axis: as of `variance_scaling`.
        out_axis: likewise.
        batch_axis: likewise.
        dtype: likewise.

    Returns:
        An initializer.

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> x = initializers.glorot_uniform()(random.key(0), (150, 50))
        >>> abs(float(x.var()) - 0.01) < 0.001
        True
    """
    return _scaled("glorot_uniform", 1, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """`variance_scaling` with scale 1, ``"fan_avg"`` and truncated normal numbers.

    Args:
        in_axis: as of `variance_scaling`.
        out_axis: likewise.
        batch_axis: likewise.
        dtype: likewise.

    Returns:
        An initializer.

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> x = initializers.glorot_normal()(random.key(0), (150, 50))
        >>> abs(float(x.var()) - 0.01) < 0.001
        True
    """
    words = (in_axis, out_axis, batch_axis, dtype)
    return _scaled("glorot_normal", 1, "fan_avg", "truncated_normal", *words)


def lecun_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """`variance_scaling` with scale 1, ``"fan_in"`` and uniform numbers.

    Args:
        in_axis: as of `variance_scaling`.
        out_axis: likewise.
        batch_axis: likewise.
        dtype: likewise.

    Returns:
        An initializer.

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> x = initializers.lecun_uniform()(random.key(0), (100, 50))
        >>> abs(float(x.var()) - 0.01) < 0.001
        True
    """
    return _scaled("lecun_uniform", 1, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """`variance_scaling` with scale 1, ``"fan_in"`` and truncated normal numbers.

    Args:
        in_axis: as of `variance_scaling`.
        out_axis: likewise.
        batch_axis: likewise.
        dtype: likewise.

    Returns:
        An initializer.

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> x = initializers.lecun_normal()(random.key(0), (100, 50))
        >>> abs(float(x.var()) - 0.01) < 0.001
        True
    """
    words = (in_axis, out_axis, batch_axis, dtype)
    return _scaled("lecun_normal", 1, "fan_in", "truncated_normal", *words)


def he_uniform(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """`variance_scaling` with scale 2, ``"fan_in"`` and uniform numbers.

    Args:
        in_axis: as of `variance_scaling`.
        out_axis: likewise.
        batch_axis: likewise.
        dtype: likewise.

    Returns:
        An initializer.

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> x = initializers.he_uniform()(random.key(0), (200, 50))
        >>> abs(float(x.var()) - 0.01) < 0.001
        True
    """
    return _scaled("he_uniform", 2, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(
    in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """`variance_scaling` with scale 2, ``"fan_in"`` and truncated normal numbers.

    Args:
        in_axis: as of `variance_scaling`.
        out_axis: likewise.
        batch_axis: likewise.
        dtype: likewise.

    Returns:
        An initializer.

    Differs:
        Truncated complex numbers have the variance that was asked for; in JAX it is 1.9 % greater.

        >>> from dovetail.nn import initializers
        >>> x = initializers.he_normal(dtype="complex64")(dt.random.key(0), (200, 500))
        >>> print(f"{100 * (x * x.conj()).real.mean():.2f}")
        1.00

    Example:
        >>> from dovetail import random
        >>> from dovetail.nn import initializers
        >>> x = initializers.he_normal()(random.key(0), (200, 50))
        >>> abs(float(x.var()) - 0.01) < 0.001
        True
    """
    words = (in_axis, out_axis, batch_axis, dtype)
    return _scaled("he_normal", 2, "fan_in", "truncated_normal", *words)
