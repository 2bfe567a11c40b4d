"""Quaternions, scalar last, and the other forms of rotations, for arrays of any leading shape.

The formulas are those of M. D. Shuster, A Survey of Attitude Representations, J. Astronaut. Sci. 41
(1993), 439, where nothing else is said.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend import dtypes
from dovetail.numpy.compiled import compiled, compiled_with


def _length(x: Any) -> Any:
    """Lengths of vectors, with a derivative that is 0 where they vanish."""
    squares = jnp.sum(x * x, axis=-1, keepdims=True)
    some = squares > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, squares, 1)), 0)


def _small(x: Any) -> Any:
    """Where a series of a few terms is exact."""
    return jnp.abs(x) < float(jnp.finfo(x.dtype).eps) ** 0.25


@compiled
def normalized(quat: Any) -> Any:
    """Quaternions of length 1; NaN for zero."""
    largest = jnp.max(jnp.abs(lax.stop_gradient(quat)), axis=-1, keepdims=True)
    quat = quat / largest
    return quat / jnp.sqrt(jnp.sum(quat * quat, axis=-1, keepdims=True))


@compiled
def product(p: Any, q: Any) -> Any:
    """The rotation `q`, and then `p`."""
    u, v, a, b = p[..., :3], q[..., :3], p[..., 3:], q[..., 3:]
    vector = a * v + b * u + jnp.cross(u, v)
    scalar = a * b - jnp.sum(u * v, axis=-1, keepdims=True)
    return normalized(jnp.concatenate([vector, scalar], axis=-1))


@compiled
def inverse(quat: Any) -> Any:
    """The rotations back."""
    return jnp.concatenate([-quat[..., :3], quat[..., 3:]], axis=-1)


@compiled
def canonical(quat: Any) -> Any:
    """Of both quaternions of a rotation, that whose first part that is not zero is positive.

    The parts are looked at in the order w, x, y, z.
    """
    x, y, z, w = (quat[..., k : k + 1] for k in range(4))
    first = jnp.where(w != 0, w, jnp.where(x != 0, x, jnp.where(y != 0, y, z)))
    return jnp.where(first < 0, -quat, quat)


@compiled
def magnitude(quat: Any) -> Any:
    """Angles of rotations, from 0 to pi."""
    return 2 * jnp.arctan2(_length(quat[..., :3])[..., 0], jnp.abs(quat[..., 3]))


@compiled
def from_rotvec(rotvec: Any) -> Any:
    """From axes times angles."""
    angle = _length(rotvec)
    small = _small(angle)
    divisor = jnp.where(small, 1, angle)
    square = jnp.sum(rotvec * rotvec, axis=-1, keepdims=True)
    series = 0.5 - square / 48 + square * square / 3840
    scale = jnp.where(small, series, jnp.sin(divisor / 2) / divisor)
    # The derivative of a cosine at 0 by the square, which has one there.
    cosine = jnp.where(small, 1 - square / 8 + square * square / 384, jnp.cos(divisor / 2))
    return jnp.concatenate([scale * rotvec, cosine], axis=-1)


@compiled
def as_rotvec(quat: Any) -> Any:
    """Axes times angles from 0 to pi."""
    quat = jnp.where(quat[..., 3:] < 0, -quat, quat)
    vector, scalar = quat[..., :3], quat[..., 3:]
    length = _length(vector)
    small = _small(length)
    divisor = jnp.where(small, 1, length)
    square = jnp.sum(vector * vector, axis=-1, keepdims=True)
    # 2 arcsin(s) / s
    series = 2 + square / 3 + 3 * square * square / 20
    scale = jnp.where(small, series, 2 * jnp.arctan2(divisor, scalar) / divisor)
    return scale * vector


@compiled
def from_mrp(mrp: Any) -> Any:
    """From axes times the tangents of a quarter of the angles."""
    square = jnp.sum(mrp * mrp, axis=-1, keepdims=True)
    return jnp.concatenate([2 * mrp, 1 - square], axis=-1) / (1 + square)


@compiled
def as_mrp(quat: Any) -> Any:
    """Axes times the tangents of a quarter of the angles from 0 to pi."""
    quat = jnp.where(quat[..., 3:] < 0, -quat, quat)
    return quat[..., :3] / (1 + quat[..., 3:])


@compiled
def from_matrix(matrix: Any) -> Any:
    """From orthogonal matrices: S. W. Shepperd, J. Guid. Control 1 (1978), 223.

    Of four formulas that with the largest divisor is taken.
    """
    m = [[matrix[..., i, j] for j in range(3)] for i in range(3)]
    trace = m[0][0] + m[1][1] + m[2][2]
    rows = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        row: list[Any] = [None] * 4
        row[i] = 1 - trace + 2 * m[i][i]
        row[j] = m[j][i] + m[i][j]
        row[k] = m[k][i] + m[i][k]
        row[3] = m[k][j] - m[j][k]
        rows.append(jnp.stack(row, axis=-1))
    parts = [m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1], 1 + trace]
    rows.append(jnp.stack(parts, axis=-1))
    sizes = jnp.stack([m[0][0], m[1][1], m[2][2], trace], axis=-1)
    which = jnp.argmax(lax.stop_gradient(sizes), axis=-1)[..., None]
    quat = rows[3]
    for i in range(3):
        quat = jnp.where(which == i, rows[i], quat)
    return normalized(quat)


@compiled
def as_matrix(quat: Any) -> Any:
    """Rotation matrices."""
    x, y, z, w = (quat[..., k] for k in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


@compiled
def rotated(quat: Any, vectors: Any) -> Any:
    """Vectors after rotations: v + 2 u x (u x v + w v)."""
    vector, scalar = quat[..., :3], quat[..., 3:]
    square = jnp.sum(quat * quat, axis=-1, keepdims=True)
    return square * vectors + 2 * jnp.cross(vector, jnp.cross(vector, vectors) + scalar * vectors)


@compiled_with("seq")
def from_euler(angles: Any, seq: str) -> Any:
    """From angles about axes, one after the other."""
    quat = None
    for k, axis in enumerate(seq.lower()):
        half = angles[..., k] / 2
        parts = [jnp.zeros_like(half)] * 4
        parts["xyz".index(axis)] = jnp.sin(half)
        parts[3] = jnp.cos(half)
        turn = jnp.stack(parts, axis=-1)
        if quat is None:
            quat = turn
        else:
            # Capital letters are axes that turn with the body.
            pair = (quat, turn) if seq.isupper() else (turn, quat)
            quat = product(*pair)
    return quat


@compiled_with("seq")
def as_euler(quat: Any, seq: str) -> Any:
    """Angles about axes: E. Bernardes, S. Viollet, PLoS ONE 17 (2022), e0276302.

    Where the first and third axis are parallel, the third angle is 0.
    """
    moving = seq.isupper()
    i, j, k = ("xyz".index(axis) for axis in (seq.lower()[::-1] if moving else seq.lower()))
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    a, b, c, d = quat[..., 3], quat[..., i], quat[..., j], sign * quat[..., k]
    if not symmetric:
        a, b, c, d = a - c, b + d, c + a, d - b
    near, far = jnp.hypot(a, b), jnp.hypot(c, d)
    middle = 2 * jnp.arctan2(far, near)
    total, difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    tiny = 8 * jnp.finfo(quat.dtype).eps
    first_lock, second_lock = far < tiny, near < tiny
    one, three = total - difference, total + difference
    locked = jnp.where(second_lock, 2 * difference * (1 if moving else -1), 2 * total)
    lock = first_lock | second_lock
    if moving:
        one, three = jnp.where(lock, 0, one), jnp.where(lock, locked, three)
    else:
        one, three = jnp.where(lock, locked, one), jnp.where(lock, 0, three)
    if not symmetric:
        three, middle = sign * three, middle - math.pi / 2
    angles = [three, middle, one] if moving else [one, middle, three]
    out = jnp.stack(angles, axis=-1)
    out = jnp.where(out < -math.pi, out + 2 * math.pi, out)
    return jnp.where(out > math.pi, out - 2 * math.pi, out)


@compiled
def mean(quat: Any, weights: Any) -> Any:
    """The rotation nearest to many: F. L. Markley et al., J. Guid. Control Dyn. 30 (2007), 1193."""
    weighted = weights[:, None] * quat
    matrix = jnp.matmul(quat.T, weighted, precision=lax.Precision.HIGHEST)
    wide = matrix.astype(dtypes.common_dtype(matrix.dtype, np.dtype("float32")))
    return jnp.linalg.eigh(wide)[1][:, -1].astype(quat.dtype)
