"""What quasi-Newton methods know of the second derivatives, and the directions they take.

J. Nocedal, S. J. Wright, Numerical Optimization, 2nd ed., chapters 6 and 7.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dovetail import lax
from dovetail import numpy as jnp


def product(x: Any, y: Any) -> Any:
    """A product of vectors and matrices, in full precision."""
    return jnp.matmul(x, y, precision=lax.Precision.HIGHEST)


class Inverse(NamedTuple):
    """BFGS: an approximation of the inverse of the Hessian matrix.

    Attributes:
        matrix: the approximation.
        steps: how often it was updated.
    """

    matrix: Any
    steps: Any

    @staticmethod
    def start(x: Any, _: int) -> Inverse:
        """Knowing nothing."""
        return Inverse(jnp.eye(x.size, dtype=x.dtype), jnp.zeros((), "int32"))

    def direction(self, gradient: Any) -> Any:
        """Newton's direction."""
        return -product(self.matrix, gradient)

    def updated(self, s: Any, y: Any) -> Inverse:
        """After a step `s` with the change `y` of the gradient (6.17, 6.20)."""
        sy, yy = product(s, y), product(y, y)
        fine = (sy > 0) & jnp.isfinite(1 / sy)
        rho = jnp.where(fine, 1 / jnp.where(fine, sy, 1), 0)
        scale = jnp.where((self.steps == 0) & fine & (yy > 0), sy / jnp.where(yy > 0, yy, 1), 1)
        matrix = scale * self.matrix
        image = product(matrix, y)
        cross = jnp.outer(s, image)
        middle = rho * (1 + rho * product(y, image))
        new = matrix - rho * (cross + cross.T) + middle * jnp.outer(s, s)
        fine &= jnp.isfinite(new).all()
        return Inverse(
            jnp.where(fine, new, self.matrix), self.steps + fine.astype(self.steps.dtype)
        )


class Memory(NamedTuple):
    """L-BFGS: the last steps and changes of the gradient, the newest last.

    Attributes:
        s: the steps.
        y: the changes of the gradient.
        rho: the inverses of their products, 0 for none.
    """

    s: Any
    y: Any
    rho: Any

    @staticmethod
    def start(x: Any, size: int) -> Memory:
        """Knowing nothing."""
        zeros = jnp.zeros((size, x.size), x.dtype)
        return Memory(zeros, zeros, jnp.zeros(size, x.dtype))

    def direction(self, gradient: Any) -> Any:
        """Newton's direction, by the recursion of two loops (algorithm 7.4)."""

        def back(q: Any, pair: Any) -> Any:
            s, y, rho = pair
            alpha = rho * product(s, q)
            return q - alpha * y, alpha

        def forth(q: Any, pair: Any) -> Any:
            s, y, rho, alpha = pair
            return q + s * (alpha - rho * product(y, q)), None

        q, alphas = lax.scan(back, gradient, tuple(self), reverse=True)
        last = self.rho[-1] * product(self.y[-1], self.y[-1])
        q = jnp.where(last > 0, q / jnp.where(last > 0, last, 1), q)
        return -lax.scan(forth, q, (*self, alphas))[0]

    def updated(self, s: Any, y: Any) -> Memory:
        """After a step `s` with the change `y` of the gradient."""
        sy = product(s, y)
        fine = (sy > 0) & jnp.isfinite(1 / sy)
        rho = 1 / jnp.where(fine, sy, 1)

        def pushed(old: Any, new: Any) -> Any:
            return jnp.where(fine, jnp.concatenate([old[1:], new[None]]), old)

        return Memory(pushed(self.s, s), pushed(self.y, y), pushed(self.rho, rho))
