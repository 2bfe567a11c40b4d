"""Comparison of numbers, and derivatives by finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail._core.base import dtypes
from dovetail.testing.sample import COMPLEXES, FLOATS

NDArray = np.ndarray[Any, Any]


def is_inexact(x: Any) -> bool:
    """Whether an array is floating point or complex."""
    return bool(x.dtype in FLOATS or x.dtype in COMPLEXES)


def widened(x: Any) -> NDArray:
    """`x` with 64-bit parts if it is floating point or complex."""
    x = np.asarray(x)
    if x.dtype in COMPLEXES:
        return np.asarray(x.astype(np.complex128))
    return np.asarray(x.astype(np.float64)) if x.dtype in FLOATS else np.asarray(x)


def difference(
    got: Any,
    want: Any,
    tolerance: float,
    absolute: float = 0.0,
    signed_zeros: bool = True,
) -> str:
    """The difference of two arrays, in words; an empty string if they agree.

    Args:
        got: computed array.
        want: expected array.
        tolerance: allowed error in units in the last place of the expected element (of its modulus,
            for complex numbers). Results below the smallest normal number may be flushed to zero.
        absolute: allowed error in units of the dtype's epsilon.
        signed_zeros: whether 0.0 and -0.0 differ.
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"got {got.dtype}{list(got.shape)}, want {want.dtype}{list(want.shape)}"
    if not got.size:
        return ""
    if not is_inexact(got):
        wrong = got != want
        return _first(wrong, got, want) if wrong.any() else ""
    if got.dtype in COMPLEXES:
        wrong = _wrong_complex(got, want, tolerance, absolute)
    else:
        wrong = _wrong_real(got, want, tolerance, absolute)
        if signed_zeros:
            g, w = got.astype(np.float64), want.astype(np.float64)
            wrong |= (w == 0) & (g == 0) & (np.signbit(g) != np.signbit(w))
    return _first(wrong, got, want) if wrong.any() else ""


def _wrong_real(got: NDArray, want: NDArray, tolerance: float, absolute: float) -> NDArray:
    info = dtypes.finfo(got.dtype)
    eps, tiny = float(info.eps), float(info.smallest_normal)
    g, w = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(g) & np.isfinite(w)
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(w)
        unit = np.maximum(np.ldexp(eps, exponent - 1), tiny * eps)
        allowed = tolerance * unit + absolute * eps + np.where(np.abs(w) < tiny, tiny, 0.0)
        close = np.abs(g - w) <= allowed
    same = (g == w) | (np.isnan(g) & np.isnan(w))
    result: NDArray = ~np.where(finite, close, same)
    return result


def _wrong_complex(got: NDArray, want: NDArray, tolerance: float, absolute: float) -> NDArray:
    eps = float(np.finfo(got.dtype).eps)
    tiny = float(np.finfo(got.dtype).smallest_normal)
    g, w = got.astype(np.complex128), want.astype(np.complex128)
    finite = np.isfinite(g) & np.isfinite(w)
    with np.errstate(all="ignore"):
        close = np.abs(g - w) <= tolerance * eps * np.abs(w) + absolute * eps + 2 * tiny
        same = np.ones(g.shape, bool)
        for a, b in ((g.real, w.real), (g.imag, w.imag)):
            near = np.abs(a - b) <= tolerance * eps * np.abs(b) + tiny
            same &= (a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(b) & near)
    result: NDArray = ~np.where(finite, close, same)
    return result


def _first(wrong: NDArray, got: NDArray, want: NDArray) -> str:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {got.size} elements are wrong, the first at {list(index)}: "
        f"got {got[index]!r}, want {want[index]!r}"
    )


def far(got: Any, want: Any, tolerance: float) -> str:
    """The difference of two arrays beyond `tolerance` times the largest element, in words."""
    got, want = widened(got), widened(want)
    if got.shape != want.shape:
        return f"got shape {got.shape}, want {want.shape}"
    if not got.size:
        return ""
    scale = max(1.0, float(np.abs(want).max()))
    wrong = ~(np.abs(got - want) <= tolerance * scale)
    return _first(wrong, got, want) if wrong.any() else ""


def directional_derivative(
    function: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    direction: Sequence[Any],
    step: float = 1e-3,
) -> list[NDArray]:
    """Derivatives of the results of `function` along a direction, by central differences.

    Two step sizes are combined (Richardson extrapolation), which makes the error fourth order in
    `step`.

    Args:
        function: from as many arrays as there are `args` to a sequence of arrays.
        args: the point at which to differentiate; in 64 bits where they are moved.
        direction: for each argument an array of its shape, or None if it is fixed.
        step: the larger of the step sizes.

    Example:
        >>> d, = directional_derivative(lambda x: [x**3], [np.array(2.0)], [np.array(1.0)])
        >>> round(float(d), 9)
        12.0
    """

    def moved(distance: float) -> Sequence[Any]:
        return function(
            *(a if d is None else a + distance * d for a, d in zip(args, direction, strict=True))
        )

    def central(size: float) -> list[NDArray]:
        ahead, behind = moved(size), moved(-size)
        return [(widened(a) - widened(b)) / (2 * size) for a, b in zip(ahead, behind, strict=True)]

    return [
        np.asarray((4 * half - full) / 3)
        for half, full in zip(central(step / 2), central(step), strict=True)
    ]


def random_like(x: Any, generator: np.random.Generator) -> NDArray:
    """Numbers between 0.5 and 1 of either sign, of the shape and dtype of `x`."""

    def draw() -> NDArray:
        sign = generator.choice([-1.0, 1.0], x.shape)
        return np.asarray(sign * generator.uniform(0.5, 1.0, x.shape))

    drawn = draw() + 1j * draw() if x.dtype in COMPLEXES else draw()
    return np.asarray(drawn).astype(x.dtype)


def inner(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """The real part of the sum of all products: the pairing of cotangents with tangents."""
    return float(sum(np.sum(widened(x) * widened(y)).real for x, y in zip(xs, ys, strict=True)))
