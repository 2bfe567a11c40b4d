"""Products of a matrix with its own transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import add_tangents, convert_element_type
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import make_aval, shape_of
from dovetail._core.ops.elementwise.arithmetic import add, mul
from dovetail._core.ops.linalg.matrices import (
    batch_all,
    check_batch,
    check_floats,
    check_matrices,
    matrix_transpose,
    product,
    triangular_part,
)
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class SymmetricProduct(Primitive):
    """``alpha * a @ a^T + beta * c``; with beta 0, `c` is not read."""

    name = "symmetric_product"
    accepts_zeros = True

    def abstract(self, a: Any, c: Any, *, alpha: float, beta: float) -> Any:
        check_floats(self.name, a, c, kinds="f")
        check_matrices(self.name, a, "a_matrix")
        check_matrices(self.name, c, "c_matrix", square=True)
        check_batch(self.name, a.shape[:-2], c, "c_matrix", 2)
        if c.shape[-1] != a.shape[-2]:
            raise ValueError(
                "symmetric_product: the matrices in c_matrix must be square, with as many rows as "
                f"those in a_matrix have, got the shapes {a.shape} of a_matrix and {c.shape} of "
                "c_matrix"
            )
        return make_aval(c.shape, c.dtype, a.weak_type and c.weak_type)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(self, a: Any, c: Any, *, alpha: float, beta: float) -> Any:
        dtype = np.asarray(a).dtype
        a, c = np.asarray(a, np.float64), np.asarray(c, np.float64)
        own = alpha * (a @ a.swapaxes(-1, -2))
        return (own + beta * c if beta else own).astype(dtype)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, alpha: float, beta: float
    ) -> tuple[Any, Any]:
        (a, c), (s, t) = primals, tangents
        out = self.bind(a, c, alpha=alpha, beta=beta)
        tangent: Any = Zero.of(out)
        if type(s) is not Zero:
            half = product(s, matrix_transpose(a))
            tangent = mul(add(half, matrix_transpose(half)), alpha)
        if type(t) is not Zero and beta:
            tangent = add_tangents(tangent, mul(t, beta))
        return out, tangent

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return batch_all(self, args, dims, **params)

    def lower(self, context: Builder, *values: Any, alpha: float, beta: float) -> Any:
        (out,) = context.avals_out
        work = np.dtype(np.float32) if out.dtype.itemsize < 4 else out.dtype

        def compute(a: Any, c: Any) -> Any:
            a, c = convert_element_type(a, work), convert_element_type(c, work)
            own = product(a, matrix_transpose(a))
            own = own if alpha == 1 else mul(own, alpha)
            return convert_element_type(add(own, mul(c, beta)) if beta else own, out.dtype)

        return context.lower_function(compute, context.avals_in)(*values)


symmetric_product_p: Final = SymmetricProduct()


def _static_float(value: Any, argument: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"lax.linalg.symmetric_product: {argument} must be a number known when the program is "
            f"made, got {value!r}; for others, multiply the operands and result yourself"
        ) from None


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Products of matrices with their transposes: ``alpha * a @ a^T + beta * c``.

    Args:
        a_matrix: real matrices of shape ``(..., n, k)``.
        c_matrix: symmetric matrices of shape ``(..., n, n)``, of the same dtype. They are not read
            if `beta` is 0.
        alpha: a number.
        beta: a number.
        symmetrize_output: whether to copy the lower triangle to the upper one, to make the result
            symmetric even if `c_matrix` is not.

    Returns:
        Matrices of the shape and dtype of `c_matrix`.

    Raises:
        TypeError: the dtypes differ or are not floating point; the numbers of dimensions or the
            batch dimensions are incompatible; or `alpha` or `beta` is not a number.
        ValueError: the sizes are incompatible.

    Differs:
        `c` is not read where beta is 0.

        >>> c = jnp.full((1, 1), jnp.nan)
        >>> print(lax.linalg.symmetric_product(jnp.ones((1, 2)), c, beta=0.0))
        [[2.]]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> a = np.array([[1.0], [2.0]])
        >>> lax.linalg.symmetric_product(a, np.eye(2), beta=3.0).tolist()
        [[4.0, 2.0], [2.0, 7.0]]
    """
    out = symmetric_product_p.bind(
        as_operand(a_matrix, "lax.linalg.symmetric_product", "a_matrix"),
        as_operand(c_matrix, "lax.linalg.symmetric_product", "c_matrix"),
        alpha=_static_float(alpha, "alpha"),
        beta=_static_float(beta, "beta"),
    )
    if symmetrize_output and shape_of(out):
        out = add(triangular_part(out), matrix_transpose(triangular_part(out, offset=-1)))
    return out
