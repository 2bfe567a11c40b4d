"""Interpolation of rotations: `Slerp`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail import numpy as jnp
from dovetail.extend.arguments import counted
from dovetail.extend.avals import Tracer
from dovetail.extend.tracebacks import bounded
from dovetail.scipy.spatial.transform.rotations import Rotation, floats
from dovetail.typing import Array, ArrayLike


@bounded
class Slerp(NamedTuple):
    """Rotations in between: from each to the next by the shortest way, at constant speed.

    Make one with `Slerp.init`. It is a tree, so it goes through every transformation.

    Attributes:
        times: of the rotations, shape ``(n,)``.
        timedelta: from each to the next.
        rotations: all but the last.
        rotvecs: rotation vectors from each to the next, in its own axes.

    Example:
        >>> from dovetail.scipy.spatial.transform import Rotation, Slerp
        >>> ends = Rotation.from_euler("z", jnp.array([0.0, 90.0]), degrees=True)
        >>> between = Slerp.init(jnp.array([0.0, 1.0]), ends)
        >>> between(jnp.array(0.5)).as_euler("xyz", degrees=True).round(2).tolist()
        [0.0, 0.0, 45.0]
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """Prepare the interpolation.

        Args:
            times: increasing, shape ``(n,)``.
            rotations: n rotations, at least two.

        Raises:
            TypeError: `rotations` are none.
            ValueError: there are too few, or not as many times, or times that do not increase (if
                they are known).
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(
                f"Slerp.init: rotations must be a Rotation, got {type(rotations).__name__}"
            )
        if rotations.quat.ndim != 2 or len(rotations) < 2:
            raise ValueError("Slerp.init: rotations must be a sequence of at least 2 rotations")
        x = floats("Slerp.init", "times", times)
        if x.shape != (len(rotations),):
            raise ValueError(
                f"Slerp.init: there are {len(rotations)} rotations, and times of shape {x.shape}"
            )
        if not isinstance(x, Tracer) and not (np.diff(np.asarray(x)) > 0).all():
            raise ValueError("Slerp.init: times must increase")
        before, after = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(x, jnp.diff(x), before, (before.inv() * after).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """Rotations at times; at those outside, the rotation at the end.

        Args:
            times: a number or an array of one dimension.

        Raises:
            ValueError: `times` has more dimensions.
        """
        x: Any = floats("Slerp", "times", times)
        if x.ndim > 1:
            raise ValueError(
                f"Slerp: times must be at most 1-dimensional, got {counted(x.ndim, 'dimension')}"
            )
        index = jnp.clip(
            jnp.searchsorted(self.times, x, side="right") - 1, 0, self.timedelta.shape[0] - 1
        )
        part = jnp.clip((x - self.times[index]) / self.timedelta[index], 0, 1)
        part = part.astype(self.rotvecs.dtype)[..., None]
        before = Rotation(self.rotations.quat[index])
        return before * Rotation.from_rotvec(part * self.rotvecs[index])
