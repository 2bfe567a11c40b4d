"""Rotations in space: `Rotation`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from dovetail import numpy as jnp
from dovetail import random
from dovetail.extend import dtypes
from dovetail.extend.arguments import integer
from dovetail.extend.tracebacks import bounded
from dovetail.scipy.spatial.transform import quaternions
from dovetail.typing import Array, ArrayLike


def floats(caller: str, name: str, given: Any, *shape: int) -> Any:
    """An argument as an array of floats whose last dimensions are given.

    Raises:
        TypeError: it is no array of real numbers.
        ValueError: it has another shape.
    """
    x = jnp.asarray(given)
    kind = dtypes.kind_of(x.dtype)
    if kind not in ("b", "i", "u", "f"):
        raise TypeError(f"{caller}: {name} must be real numbers, got dtype {x.dtype}")
    if x.shape[x.ndim - len(shape) :] != shape or x.ndim < len(shape):
        wanted = ", ".join(map(str, shape))
        raise ValueError(f"{caller}: {name} must have the shape (..., {wanted}), got {x.shape}")
    return x if kind == "f" else x.astype(dtypes.default_dtype("f"))


def _axes(caller: str, seq: Any, least: int) -> str:
    """A checked sequence of axes.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(seq, str) or not least <= len(seq) <= 3:
        some = "three" if least == 3 else "one to three"
        raise ValueError(f"{caller}: seq must be a string of {some} axes, got {seq!r}")
    if set(seq) - set("xyz") and set(seq) - set("XYZ"):
        raise ValueError(
            f"{caller}: axes must be of 'xyz' (at rest) or of 'XYZ' (which turn), got {seq!r}"
        )
    if any(a == b for a, b in pairwise(seq)):
        raise ValueError(f"{caller}: consecutive axes must be different, got {seq!r}")
    return seq


@bounded
class Rotation(NamedTuple):
    """Rotations in space: one, or an array of them.

    It is a tree with one array, so it goes through every transformation.

    Attributes:
        quat: quaternions of length 1, scalar last, shape ``(4,)``, or ``(..., 4)`` for many. The
            constructors `from_quat` and its relatives see to the length.

    Differs:
        Shapes are checked, `identity` and `random` take a number of rotations, single rotations
        are concatenated with others, and are their own `mean`, as in SciPy.

        >>> from dovetail.scipy.spatial.transform import Rotation
        >>> Rotation.identity(2).as_quat().shape
        (2, 4)

    Example:
        >>> from dovetail.scipy.spatial.transform import Rotation
        >>> turn = Rotation.from_euler("z", 90, degrees=True)
        >>> turn.apply(jnp.array([1.0, 0.0, 0.0])).round(3).tolist()
        [0.0, 1.0, 0.0]
        >>> round(float((turn * turn).magnitude()), 3)
        3.142
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Rotations one after the other, as one object.

        Raises:
            TypeError: `rotations` is no sequence of them.
            ValueError: there are none.
        """
        if isinstance(rotations, Rotation):
            rotations = [rotations]
        if not isinstance(rotations, Iterable):
            raise TypeError(
                "Rotation.concatenate: rotations must be a sequence of rotations, got "
                f"{rotations!r:.80}"
            )
        rotations = list(rotations)
        for i, rotation in enumerate(rotations):
            if not isinstance(rotation, Rotation):
                raise TypeError(
                    f"Rotation.concatenate: rotations[{i}] must be a rotation, got {rotation!r:.80}"
                )
        if not rotations:
            raise ValueError("Rotation.concatenate needs at least one rotation")
        parts = [jnp.atleast_2d(r.quat) for r in rotations]
        return cls(jnp.concatenate(parts))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations about axes, one after the other.

        Args:
            seq: one to three of the axes ``xyz``, which are at rest, or ``XYZ``, which turn.
            angles: shape ``(..., len(seq))``; for one axis also a number, or shape ``(n,)``.
            degrees: whether the angles are in degrees.
        """
        seq = _axes("Rotation.from_euler", seq, 1)
        x = floats("Rotation.from_euler", "angles", angles)
        if len(seq) == 1 and (x.ndim < 2):
            x = x[..., None]
        x = floats("Rotation.from_euler", "angles", x, len(seq))
        return cls(quaternions.from_euler(jnp.deg2rad(x) if degrees else x, seq))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """From orthogonal matrices of determinant 1, shape ``(..., 3, 3)``."""
        return cls(quaternions.from_matrix(floats("Rotation.from_matrix", "matrix", matrix, 3, 3)))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """From modified Rodrigues parameters, the axis times ``tan(angle / 4)``."""
        return cls(quaternions.from_mrp(floats("Rotation.from_mrp", "mrp", mrp, 3)))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """From quaternions, scalar last, of any length but 0, which gives NaN."""
        return cls(quaternions.normalized(floats("Rotation.from_quat", "quat", quat, 4)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """From rotation vectors, the axis times the angle."""
        x = floats("Rotation.from_rotvec", "rotvec", rotvec, 3)
        return cls(quaternions.from_rotvec(jnp.deg2rad(x) if degrees else x))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """Rotations that change nothing: one, or `num` of them."""
        quat = jnp.array([0, 0, 0, 1], dtype=dtype)
        if num is None:
            return cls(quat)
        return cls(jnp.tile(quat, (integer("Rotation.identity", "num", num), 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """Rotations drawn uniformly: one, or `num` of them."""
        shape = () if num is None else (integer("Rotation.random", "num", num),)
        return cls(quaternions.normalized(random.normal(random_key, (*shape, 4))))

    def __getitem__(self, indexer: Any) -> Rotation:
        """Some of the rotations."""
        if self.single:
            raise TypeError(
                "a single Rotation has no parts; from_quat(r.quat[None]) makes an array"
            )
        index = indexer if isinstance(indexer, tuple) else (indexer,)
        if any(part is Ellipsis for part in index):
            return Rotation(self.quat[(*index, slice(None))])
        return Rotation(self.quat[(*index, Ellipsis, slice(None))])

    def __len__(self) -> int:
        """The number of rotations."""
        if self.single:
            raise TypeError("a single Rotation has no length")
        return self.quat.shape[0]

    def __bool__(self) -> bool:
        """True, also for a single rotation, which has no length."""
        return True

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        """The rotation `other`, and then this one; one with many, or as many with as many."""
        if not isinstance(other, Rotation):
            return NotImplemented
        p, q = self.quat, other.quat
        if p.dtype != q.dtype:
            dtype = jnp.promote_types(p.dtype, q.dtype)
            p, q = p.astype(dtype), q.astype(dtype)
        return Rotation(quaternions.product(p, q))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Vectors after the rotations, or their inverses.

        Args:
            vectors: shape ``(..., 3)``, broadcast with the rotations.
            inverse: whether to rotate back.
        """
        x = floats("Rotation.apply", "vectors", vectors, 3)
        dtype = jnp.promote_types(x.dtype, self.quat.dtype)
        quat = quaternions.inverse(self.quat) if inverse else self.quat
        return quaternions.rotated(quat.astype(dtype), x.astype(dtype))

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Angles about three axes, shape ``(..., 3)``.

        The first and third are from -pi to pi; the second is from -pi / 2 to pi / 2, or from 0 to
        pi if the first axis is the third. Where the rotation fixes only their sum or difference,
        the third is 0.

        Args:
            seq: three of the axes ``xyz``, which are at rest, or ``XYZ``, which turn.
            degrees: whether to give degrees.
        """
        angles = quaternions.as_euler(self.quat, _axes("Rotation.as_euler", seq, 3))
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """Matrices, shape ``(..., 3, 3)``."""
        return quaternions.as_matrix(self.quat)

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters of length at most 1, shape ``(..., 3)``."""
        return quaternions.as_mrp(self.quat)

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Quaternions, shape ``(..., 4)``.

        Args:
            canonical: whether to give that of both whose scalar is not negative.
            scalar_first: whether the scalar stands first, not last.
        """
        quat = quaternions.canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Rotation vectors with angles of at most pi, shape ``(..., 3)``."""
        vector = quaternions.as_rotvec(self.quat)
        return jnp.rad2deg(vector) if degrees else vector

    def inv(self) -> Rotation:
        """The rotations back."""
        return Rotation(quaternions.inverse(self.quat))

    def magnitude(self) -> Array:
        """Angles from 0 to pi, in radians."""
        return quaternions.magnitude(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation with the least mean square of chords to these; its quaternion has any sign.

        Args:
            weights: of the rotations, shape ``(n,)``; equal ones by default.
        """
        quat = self.quat.reshape((-1, 4))
        if weights is None:
            x = jnp.ones(quat.shape[0], quat.dtype)
        else:
            x = floats("Rotation.mean", "weights", weights).astype(quat.dtype)
        if x.shape != quat.shape[:1]:
            raise ValueError(
                f"Rotation.mean: weights must have the shape {quat.shape[:1]}, got {x.shape}"
            )
        return Rotation(quaternions.mean(quat, x))

    @property
    def single(self) -> bool:
        """Whether it is one rotation, and not an array of them."""
        return self.quat.ndim == 1
