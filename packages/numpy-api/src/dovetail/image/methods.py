"""Methods of resampling, and how much each pixel weighs at a distance.

A kernel is a function of the distance from a sample to a pixel, in pixels.
"""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

import dovetail.numpy as jnp


class ResizeMethod(enum.Enum):
    """How the pixels of another grid are found.

    `NEAREST` takes the pixel nearest to each sample. `LINEAR` weighs pixels by a triangle, `CUBIC`
    by the cubic of R. G. Keys, Cubic convolution interpolation for digital image processing, IEEE
    Trans. ASSP 29 (1981), with a = -1/2, `LANCZOS3` and `LANCZOS5` by ``sinc(x) sinc(x / r)`` for
    the radii r of 3 and 5 pixels. `CUBIC_PYTORCH` is `CUBIC` with antialiasing; without, it has a =
    -3/4 and repeats the pixels at the edges, as PyTorch does. `AREA` is the mean over the area of
    the new pixel.

    Example:
        >>> from dovetail.image import ResizeMethod
        >>> print(ResizeMethod.from_string("bicubic"))
        ResizeMethod.CUBIC
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name.

        Args:
            s: ``"nearest"``; ``"linear"``, ``"bilinear"``, ``"trilinear"`` or ``"triangle"``;
                ``"cubic"``, ``"bicubic"`` or ``"tricubic"``; ``"lanczos3"``; ``"lanczos5"``;
                ``"cubic-pytorch"`` or ``"bicubic-pytorch"``; ``"area"``.

        Raises:
            ValueError: there is no such method.
        """
        method = _NAMES.get(s) if isinstance(s, str) else None
        if method is None:
            raise ValueError(f"unknown method of resizing {s!r}; there are {', '.join(_NAMES)}")
        return method


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}

_REACHES = {
    ResizeMethod.LINEAR: 1,
    ResizeMethod.CUBIC: 2,
    ResizeMethod.CUBIC_PYTORCH: 2,
    ResizeMethod.LANCZOS3: 3,
    ResizeMethod.LANCZOS5: 5,
}


def method_of(function: str, method: Any) -> ResizeMethod:
    """A checked argument `method`.

    Raises:
        TypeError: it is neither a name nor a method.
        ValueError: there is no such method.
    """
    if isinstance(method, ResizeMethod):
        return method
    if not isinstance(method, str):
        raise TypeError(
            f"{function}: method must be a name or a ResizeMethod, got {type(method).__name__}"
        )
    return ResizeMethod.from_string(method)


def namespace_of(array: Any) -> Any:
    """NumPy for its own arrays, whose weights are constants of a program."""
    return np if isinstance(array, np.ndarray) else jnp


def reach_of(method: ResizeMethod) -> int:
    """How far from a sample pixels have a weight, in pixels; of an area it depends on its size."""
    return _REACHES[method]


def kernel_weight(method: ResizeMethod, distance: Any) -> Any:
    """The kernel of a method."""
    xp = namespace_of(distance)
    x = abs(distance)
    if method is ResizeMethod.LINEAR:
        return xp.maximum(1 - x, 0)
    if method in (ResizeMethod.CUBIC, ResizeMethod.CUBIC_PYTORCH):
        return cubic(x, -0.5)
    radius = 3 if method is ResizeMethod.LANCZOS3 else 5
    # Far from 0 it is cut off, and there 1 stands for it: an infinite distance has no sine.
    near = x < radius
    x = xp.where(near & (x > 1e-3), x, 1)
    full = xp.sin(math.pi * x) * xp.sin(math.pi / radius * x) * (radius / (math.pi * x) ** 2)
    # The first terms of both series, for the quotient of two zeros.
    small = xp.square(xp.where(near, distance, 0))
    series = 1 - small * (math.pi**2 / 6 * (1 + 1 / radius**2))
    inside = xp.where(abs(distance) > 1e-3, full, series)
    return xp.where(near, inside, 0)


def cubic(x: Any, a: float) -> Any:
    """The cubic of Keys of a distance that is not negative."""
    xp = namespace_of(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    x = xp.minimum(x, 2)
    far = a * (x - 1) * xp.square(x - 2)
    return xp.where(x < 1, near, far)


def overlap(distance: Any, width: Any) -> Any:
    """How much of a pixel an interval of that width has, whose centre is at that distance."""
    xp = namespace_of(distance)
    half = width / 2
    return xp.maximum(xp.minimum(distance + half, 0.5) - xp.maximum(distance - half, -0.5), 0)
