"""Search along a direction for a point with the strong Wolfe conditions.

J. Nocedal, S. J. Wright, Numerical Optimization, 2nd ed., algorithms 3.5 and 3.6, as one loop with
one evaluation of the function in it. Near a minimum, where values differ by their rounding alone,
slopes decide: W. W. Hager, H. Zhang, SIAM J. Optim. 16 (2005), 170, the approximate conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dovetail import lax
from dovetail import numpy as jnp

_DECREASE = 1e-4
_CURVATURE = 0.9

_BRACKET, _ZOOM, _FOUND = 0, 1, 2


class Point(NamedTuple):
    """A point on the line: its distance, value, slope and gradient."""

    at: Any
    value: Any
    slope: Any
    gradient: Any


class Found(NamedTuple):
    """Where a search ended.

    Attributes:
        point: the best point.
        status: 0 if it is lower than the start, 3 if no lower point was found between two others,
            5 if the function went on to fall.
        calls: evaluations of the function.
    """

    point: Point
    status: Any
    calls: Any


class _Search(NamedTuple):
    stage: Any
    low: Point
    high: Point
    trial: Any
    calls: Any


def _chosen(which: Any, x: Point, y: Point) -> Point:
    return Point(*(jnp.where(which, a, b) for a, b in zip(x, y, strict=True)))


def _between(low: Point, high: Point) -> Any:
    """The minimum of the cubic through two points (3.59), kept off the ends."""
    width = high.at - low.at
    d1 = low.slope + high.slope - 3 * (high.value - low.value) / width
    root = jnp.sqrt(jnp.maximum(d1 * d1 - low.slope * high.slope, 0))
    d2 = jnp.where(width < 0, -root, root)
    part = 1 - (high.slope + d2 - d1) / (high.slope - low.slope + 2 * d2)
    part = jnp.where(jnp.isfinite(part), jnp.clip(part, 0.1, 0.9), 0.5)
    return low.at + part * width


def search(along: Callable[[Any], Point], start: Point, first: Any, most: Any) -> Found:
    """Find a lower point with a slope that is smaller.

    Args:
        along: the point at a distance.
        start: the point at distance 0, whose slope is negative.
        first: the distance to begin with.
        most: the largest number of evaluations.
    """
    rounding = 4 * jnp.finfo(start.value.dtype).eps * jnp.abs(start.value)

    def going(state: _Search) -> Any:
        return (state.stage != _FOUND) & (state.calls < most)

    def step(state: _Search) -> _Search:
        point = along(state.trial)
        finite = jnp.isfinite(point.value) & jnp.isfinite(point.slope)
        high = ~finite | (point.value > start.value + _DECREASE * point.at * start.slope)
        zooms = state.stage == _ZOOM
        high |= (point.value >= state.low.value) & (zooms | (state.calls > 0))
        flat = jnp.abs(point.slope) <= -_CURVATURE * start.slope
        # Values that cannot be told from that of the start are as good as lower ones.
        nearly = (point.value <= start.value + rounding) & (
            point.slope <= (2 * _DECREASE - 1) * start.slope
        )
        found = finite & flat & (~high | nearly)
        # In both stages the low point is the best so far; the high one is across a minimum.
        turned = ~high & jnp.where(
            zooms, point.slope * (state.high.at - state.low.at) >= 0, point.slope >= 0
        )
        new_low = _chosen(found | ~high, point, state.low)
        new_high = _chosen(high, point, _chosen(turned, state.low, state.high))
        stage = jnp.where(found, _FOUND, jnp.where(zooms | high | turned, _ZOOM, _BRACKET))
        trial = jnp.where(stage == _ZOOM, _between(new_low, new_high), 2 * point.at)
        return _Search(stage.astype("int32"), new_low, new_high, trial, state.calls + 1)

    zero = jnp.zeros((), "int32")
    stage, low, _, _, calls = lax.while_loop(
        going, step, _Search(zero + _BRACKET, start, start, first, zero)
    )
    none = jnp.where(low.at > 0, 0, 3)
    status = jnp.where(stage == _FOUND, 0, jnp.where(stage == _BRACKET, 5, none))
    return Found(low, status.astype("int32"), calls)
